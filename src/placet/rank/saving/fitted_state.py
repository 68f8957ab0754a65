"""Specifications of fitted attributes (type, shape, range), and checks of parameters against their annotations.

``Ranker._state`` maps the name of each fitted attribute to one of these.  A file is checked against them before a
ranker is built from it, so that damage is reported as an error in the file and never reaches a kernel; consistency
between attributes is checked by ``Ranker._check_state``.  Sizes have names: the same name stands for the same number
throughout a ranker, and "features" for the number of its features.
"""

import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from placet.data import DataError
from placet.data.parameters import describe_hint, matches
from placet.rank.tree_arrays import Forest

Sizes = dict[str, int]


class Attribute(Protocol):
    """Specification of one fitted attribute."""

    def refuse(self, value: Any, sizes: Sizes) -> str | None:
        """Describe what is wrong with a value; None if it is valid."""


@dataclass(frozen=True)
class Array:
    """A finite array of this shape (numbers, or names of sizes) and type, with values from ``low`` to ``high``.

    ``above`` is an exclusive lower bound.

    >>> Array("rows", 2).refuse(np.zeros((3, 2)), {"rows": 4})
    'has shape (3, 2), not (4, 2)'
    """

    shape: tuple[int | str, ...]
    dtype: str
    low: float
    high: float
    above: float

    def __init__(
        self,
        *shape: int | str,
        dtype: str = "float64",
        low: float = -math.inf,
        high: float = math.inf,
        above: float = -math.inf,
    ) -> None:
        for name, value in {"shape": shape, "dtype": dtype, "low": low, "high": high, "above": above}.items():
            object.__setattr__(self, name, value)

    def refuse(self, value: Any, sizes: Sizes) -> str | None:
        if not isinstance(value, np.ndarray) or value.dtype != np.dtype(self.dtype):
            return f"is {_kind(value)}, not an array of {self.dtype}"
        expected = tuple(
            sizes.setdefault(size, found) if isinstance(size, str) else size
            for size, found in zip(self.shape, (*value.shape, *[-1] * len(self.shape)))
        )
        if value.shape != expected:
            return f"has shape {value.shape}, not {expected}"
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            return f"holds {int((~np.isfinite(value)).sum())} numbers that are not finite"
        if not value.size:
            return None
        low, high = value.min(), value.max()
        if not (low >= self.low and low > self.above and high <= self.high):
            return f"holds numbers from {low} to {high}, beyond their range"
        return None


@dataclass(frozen=True)
class Number:
    """A finite number from ``low`` to ``high``."""

    low: float = -math.inf
    high: float = math.inf
    whole: bool = False

    def refuse(self, value: Any, sizes: Sizes) -> str | None:
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not number or (self.whole and not isinstance(value, int | np.integer)):
            return f"is {_kind(value)}, not a {'whole ' if self.whole else ''}number"
        if not (math.isfinite(value) and self.low <= value <= self.high):
            return f"is {value}, not between {self.low} and {self.high}"
        return None


@dataclass(frozen=True)
class Learned:
    """Learned parameters of a loss, or effects of controls: finite numbers by name."""

    def refuse(self, value: Any, sizes: Sizes) -> str | None:
        if not isinstance(value, dict):
            return f"is {_kind(value)}, not names with numbers"
        return next((f"of {k!r} {why}" for k, v in value.items() if (why := Number().refuse(v, sizes))), None)


@dataclass(frozen=True)
class RankerOf:
    """A fitted Placet ranker."""

    def refuse(self, value: Any, sizes: Sizes) -> str | None:
        return None if is_fitted(value) else f"is {_kind(value)}, not a fitted ranker"


@dataclass(frozen=True)
class Base:
    """A source of base scores: a fitted ranker, trees, or the number or name of a feature column."""

    def refuse(self, value: Any, sizes: Sizes) -> str | None:
        if isinstance(value, str):
            return None
        if isinstance(value, int) and not isinstance(value, bool):
            n = sizes["features"]
            return None if -n <= value < n else f"is column {value} of {n}"
        if not isinstance(value, Forest) and not is_fitted(value):
            return f"is {_kind(value)}, not a column, a fitted ranker or trees"
        n = value.n_features if isinstance(value, Forest) else value.n_features_in_
        return None if n == sizes["features"] else f"takes {n} features, not {sizes['features']}"


@dataclass(frozen=True)
class TreesOf:
    """Trees over all features."""

    def refuse(self, value: Any, sizes: Sizes) -> str | None:
        if not isinstance(value, Forest):
            return f"is {_kind(value)}, not trees"
        return (
            None
            if value.n_features == sizes["features"]
            else f"take {value.n_features} features, not {sizes['features']}"
        )


@dataclass(frozen=True)
class Several:
    """A list of at least ``least`` such values."""

    part: Attribute
    least: int = 0

    def refuse(self, value: Any, sizes: Sizes) -> str | None:
        if not isinstance(value, list) or len(value) < self.least:
            return f"is {_kind(value)}, not a list of at least {self.least}"
        found = ((k, self.part.refuse(one, sizes)) for k, one in enumerate(value))
        return next((f"has an entry {k} that {why}" for k, why in found if why), None)


@dataclass(frozen=True)
class TupleOf:
    """A tuple of values, each of one of the named types: str, float, int, None."""

    kinds: tuple[tuple[type | None, ...], ...]

    def refuse(self, value: Any, sizes: Sizes) -> str | None:
        if not isinstance(value, tuple) or len(value) != len(self.kinds):
            return f"is {_kind(value)}, not {len(self.kinds)} values"
        hints = [typing.Union[tuple(kinds)] for kinds in self.kinds]  # noqa: UP007
        wrong = [one for one, hint in zip(value, hints) if not matches(one, hint, saved=True)]
        return f"holds {wrong[0]!r:.40}" if wrong else None


@dataclass(frozen=True)
class Maybe:
    """Such a value, or None."""

    part: Attribute

    def refuse(self, value: Any, sizes: Sizes) -> str | None:
        return None if value is None else self.part.refuse(value, sizes)


@dataclass(frozen=True)
class ColumnNames:
    """The names of the features."""

    def refuse(self, value: Any, sizes: Sizes) -> str | None:
        if not isinstance(value, tuple) or not all(isinstance(name, str | int | float) for name in value):
            return f"is {_kind(value)}, not names"
        return None if len(value) == sizes["features"] else f"are {len(value)} names for {sizes['features']} features"


@dataclass(frozen=True)
class LevelsOf:
    """The categories of columns by name: texts and numbers, each once."""

    def refuse(self, value: Any, sizes: Sizes) -> str | None:
        if not isinstance(value, dict):
            return f"is {_kind(value)}, not categories by column"
        for name, own in value.items():
            if not isinstance(own, list) or not all(isinstance(one, str | int | float) for one in own):
                return f"of {name!r} are not texts and numbers"
            if len(set(own)) != len(own):
                return f"of {name!r} has a category twice"
        return None


@dataclass(frozen=True)
class NamesOf:
    """Different texts, as many as the size with this name.

    >>> NamesOf("labels").refuse(("a", "a"), {"labels": 2})
    'has a name twice'
    """

    size: str

    def refuse(self, value: Any, sizes: Sizes) -> str | None:
        if not isinstance(value, tuple) or not all(isinstance(name, str) for name in value):
            return f"is {_kind(value)}, not names"
        if len(value) != sizes.setdefault(self.size, len(value)):
            return f"has {len(value)} names, not {sizes[self.size]}"
        return "has a name twice" if len(set(value)) < len(value) else None


@dataclass(frozen=True)
class SummaryOf:
    """The summary of a fit: plain values by name, including whether it was interrupted."""

    def refuse(self, value: Any, sizes: Sizes) -> str | None:
        if not isinstance(value, dict) or not isinstance(value.get("interrupted"), bool):
            return "does not say whether the fit was interrupted"
        return None


def holds(**parts: Attribute) -> Mapping[str, Attribute]:
    """The ``_state`` of a class: the names of its fitted attributes, each with its specification.

    >>> sorted(holds(coef_=Array("features"), intercept_=Number()))
    ['coef_', 'intercept_']
    """
    return types.MappingProxyType(parts)


COMMON: dict[str, Attribute] = {
    "n_features_in_": Number(low=0, whole=True),
    "features_": Maybe(ColumnNames()),
    "fit_summary_": SummaryOf(),
}
"""Fitted attributes of every ranker."""


def is_fitted(value: Any) -> bool:
    """Whether this is a fitted Placet ranker."""
    return hasattr(type(value), "from_saved") and hasattr(value, "n_features_in_")


def fitted_attributes(kind: type) -> dict[str, Attribute]:
    """All fitted attributes of a ranker class, with their specifications."""
    own = getattr(kind, "_state", None)
    if not isinstance(own, Mapping) or not all(hasattr(part, "refuse") for part in own.values()):
        raise TypeError(
            f"{kind.__name__}._state must say what each fitted attribute is, such as "
            'holds(coef_=Array("features"), intercept_=Number()) of placet.rank.saving.fitted_state, '
            f"so that its files can be checked; it is {own!r}"
        )
    return {**COMMON, **own}


def check_state(kind: type, state: Mapping[str, Any]) -> None:
    """Raise a ``DataError`` unless the values match the specifications of the class."""
    expected = fitted_attributes(kind)
    if set(state) != set(expected):
        raise DataError(f"the state of a {kind.__name__} is {sorted(expected)}, not {sorted(map(str, state))}")
    sizes: Sizes = {}
    for name, part in expected.items():
        why = part.refuse(state[name], sizes)
        if why:
            raise DataError(f"the saved model is damaged: {name} of a {kind.__name__} {why}")
        if name == "n_features_in_":
            sizes["features"] = int(state[name])


def check_saved_params(kind: type, params: Mapping[str, Any]) -> None:
    """Raise a ``DataError`` if a parameter is unknown, or its value does not match the annotation."""
    hints = typing.get_type_hints(kind.__init__)  # type: ignore[misc]
    known: list[str] = kind._get_param_names()  # type: ignore[attr-defined]
    unknown = sorted(set(map(str, params)) - set(known))
    if unknown:
        raise DataError(f"{kind.__name__} has no parameters {unknown}; update Placet to read this model")
    for name, value in params.items():
        if not matches(value, hints[name], saved=True):
            words = describe_hint(hints[name])
            raise DataError(f"{name}={value!r:.60} is not a parameter of a {kind.__name__}, which takes {words}")


def _kind(value: Any) -> str:
    return f"{value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
