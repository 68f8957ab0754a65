"""Registries of classes that are imported on first use."""

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Any


class Classes(MutableMapping[str, type]):
    """Mapping from short names to classes of a package; ``homes`` gives where each is defined, as "module:Class".

    >>> Classes("placet.data", {"lists": "arrays:Lists"})["lists"].__name__
    'Lists'
    """

    def __init__(self, package: str, homes: dict[str, str]) -> None:
        self.package, self.homes = package, homes
        self._added: dict[str, type] = {}

    def __getitem__(self, name: str) -> Any:
        if name in self._added:
            return self._added[name]
        module, _, attribute = self.homes[name].partition(":")
        return getattr(import_module(f"{self.package}.{module}"), attribute)

    def __setitem__(self, name: str, kind: type) -> None:
        self._added[name] = kind

    def __delitem__(self, name: str) -> None:
        if name in self._added:
            del self._added[name]
        else:
            del self.homes[name]

    def __contains__(self, name: object) -> bool:
        return name in self.homes or name in self._added

    def __iter__(self) -> Iterator[str]:
        return iter({**self.homes, **self._added})

    def __len__(self) -> int:
        return len({**self.homes, **self._added})

    def name_of(self, kind: type) -> str | None:
        """The short name of a class, or None if it is not registered."""
        home = f"{kind.__module__.removeprefix(f'{self.package}.')}:{kind.__qualname__}"
        known = (name for name, own in self.homes.items() if own == home)
        return next(known, next((name for name, own in self._added.items() if own is kind), None))
