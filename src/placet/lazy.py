"""Names and packages that are imported on first use: tables of classes, names of a package, optional packages."""

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package: ``homes`` maps each name to the module that defines it, or "" for a submodule.

    >>> lazy_names("placet.data", {"Lists": "arrays"})("Lists").__name__
    'Lists'
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = homes[name]
        return getattr(import_module(f"{package}.{module}"), name) if module else import_module(f"{package}.{name}")

    return find


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


def import_optional(name: str, why: str, install: str) -> Any:
    """Import a package, or raise an ``ImportError`` that says why it is needed and how to install it.

    >>> import_optional("no_such_package", "pictures need no_such_package", "pip install 'placet[pictures]'")
    Traceback (most recent call last):
    ImportError: pictures need no_such_package; install it with: pip install 'placet[pictures]'
    """
    try:
        return import_module(name)
    except ImportError:
        raise ImportError(f"{why}; install it with: {install}") from None
