"""Parameters by name: parsed from texts, checked against signatures before any work, and those of a model."""

import inspect
import sys
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import deepcopy
from functools import lru_cache, wraps
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from placet.data.errors import as_choices, nearest, one_of

LARGEST = sys.float_info.max
_CONSTANTS = {"true": True, "false": False, "none": None}
_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text", type(None): "none"}


def check_parameters(function: Callable[..., Any], params: Mapping[str, Any], who: str, skip: int = 0) -> None:
    """Raise a ``ValueError`` if ``function`` lacks a parameter or a value does not match its annotation.

    The first ``skip`` parameters cannot be given by name.  Only annotations of numbers, text, booleans, mappings and
    choices are checked; a parameter's own default is trusted.

    >>> check_parameters(lambda data, seats=1: 0, {"seat": 2}, "'stv'", skip=1)
    Traceback (most recent call last):
    ValueError: parameter 'seat' is unknown to 'stv' (did you mean 'seats'?); choose from seats
    """
    check_names(params, list(_defaults_and_hints(function)[0])[skip:], who)
    check_kinds(function, params, who)


def choices_of(hint: Any) -> tuple[Any, ...]:
    """The choices of an annotation that is a ``Literal``, or several of them or None; empty if it is anything else."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    members = [member for member in get_args(hint) if member is not type(None)]
    each = [choices_of(member) for member in members]
    return tuple(dict.fromkeys(word for words in each for word in words)) if each and all(each) else ()


def check_kinds(function: Callable[..., Any], params: Mapping[str, Any], who: str) -> None:
    """Raise a ``ValueError`` if a value does not match the annotation of the parameter that it is for."""
    defaults, hints = _defaults_and_hints(function)
    for name, value in params.items():
        hint = hints.get(name, Any)
        if value is not defaults.get(name, Any) and not matches(value, hint):
            words = choices_of(hint)
            if words and isinstance(value, str):
                one_of(value, words, name)
            raise ValueError(f"parameter {name} of {who} must be {describe_hint(hint)}, not {value!r}")
        if name == "random_state":
            check_seed(value)


Reader = TypeVar("Reader", bound=Callable[..., Any])


def with_checked_options(reader: Reader) -> Reader:
    """A reader that refuses options of the wrong kind, such as a list where a name is wanted, before it reads."""

    @wraps(reader)
    def read(*sources: Any, **options: Any) -> Any:
        if options:
            check_kinds(reader, options, repr(reader.__name__))
        return reader(*sources, **options)

    return cast(Reader, read)


def check_seed(random_state: Any) -> None:
    """Raise a ``ValueError`` for a whole number that is no seed: NumPy has none below 0."""
    if isinstance(random_state, Integral) and random_state < 0:
        raise ValueError(f"random_state must be a whole number from 0 on, not {random_state}")


def check_names(given: Collection[str], known: Collection[str], who: str) -> None:
    """Raise a ``ValueError`` for the first given name that is not among the known ones."""
    for name in given:
        if name not in known:
            near = nearest(name, known)
            meant = f" (did you mean {near!r}?)" if near else ""
            way_out = f"choose from {as_choices(known)}" if known else "it has none"
            raise ValueError(f"parameter {name!r} is unknown to {who}{meant}; {way_out}")


@lru_cache(maxsize=256)
def _defaults_and_hints(function: Callable[..., Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters of a function with their defaults, and their annotations: none if only type checkers know these."""
    defaults = {name: one.default for name, one in inspect.signature(function).parameters.items()}
    try:
        return defaults, get_type_hints(function.__init__ if inspect.isclass(function) else function)
    except NameError:
        return defaults, {}


def matches(value: Any, hint: Any, *, saved: bool = False) -> bool:
    """Whether a value matches an annotation; True where that cannot be determined.

    ``saved``: for the plain data of a file, which nothing else vouches for.  Then numbers are finite, a float with a
    whole value counts as an int, the inside of sequences and mappings matches too, and other values are instances.

    >>> matches("ab", Sequence[str]), matches("ab", Sequence[str], saved=True), matches((1, 2.5), tuple, saved=True)
    (True, False, True)
    """
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(matches(value, one, saved=saved) for one in inside)
    if origin is Literal:
        return any(isinstance(value, type(one)) and value == one for one in inside)
    if hint is float or hint is int:
        number = isinstance(value, Real) and not isinstance(value, bool)
        whole = hint is float or isinstance(value, Integral)
        if not (number and saved):
            return number and whole
        return abs(value) <= LARGEST and (whole or value == int(value))
    if hint in (bool, str, type(None)):
        return isinstance(value, hint) or (hint is bool and type(value).__name__ == "bool")
    if origin is Mapping and not isinstance(value, Mapping):
        return False
    return not saved or hint is Any or _saved_matches(value, hint)


def _saved_matches(value: Any, hint: Any) -> bool:
    """Whether a sequence, mapping or object from a file is what an annotation names, with all that is inside."""
    origin, inside = get_origin(hint) or hint, get_args(hint)
    if not isinstance(origin, type):
        return False
    if isinstance(value, np.ndarray):
        numbers = issubclass(Sequence, origin) and inside[:1] in ((int,), (float,))
        return numbers and value.ndim == 1 and bool(np.isfinite(value).all())
    if not inside or not isinstance(value, dict | list | tuple):
        return isinstance(value, origin) and not (inside and isinstance(value, str))  # text is no sequence of texts
    if issubclass(origin, Mapping):
        return isinstance(value, dict) and all(
            matches(one, kind, saved=True) for pair in value.items() for one, kind in zip(pair, inside)
        )
    if not issubclass(origin, Sequence) or isinstance(value, dict):
        return False
    if origin is tuple and inside[-1:] != (...,):
        return len(value) == len(inside) and all(matches(one, kind, saved=True) for one, kind in zip(value, inside))
    return all(matches(one, inside[0], saved=True) for one in value)


def describe_hint(hint: Any) -> str:
    """An annotation in words: ``a number, text or none``."""
    parts = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    words = [
        " or ".join(map(repr, get_args(one)))
        if get_origin(one) is Literal
        else "a mapping of names"
        if get_origin(one) is Mapping
        else _WORDS.get(one, getattr(one, "__name__", str(one)))
        for one in parts
    ]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def parse_parameters(pairs: Sequence[str]) -> dict[str, Any]:
    """Parse ``name=value`` texts; values are numbers, true/false/none, or text.

    >>> parse_parameters(["ties=davidson", "max-iter=20", "prior=none"])
    {'ties': 'davidson', 'max_iter': 20, 'prior': None}
    """
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ValueError(f"{pair!r} is not of the form name=value")
        values[name.strip().replace("-", "_")] = parse_value(text.strip() or text)
    return values


def parse_value(text: str) -> Any:
    """A number, true, false, none, or the text itself."""
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


class Estimator:
    """A model whose parameters are the arguments of ``__init__``, stored under their names.

    ``sklearn.base.clone`` and tools that call ``get_params`` work with it; importing scikit-learn takes a second.

    >>> class Model(Estimator):
    ...     def __init__(self, prior: float = 1.0, ties: str = "none"):
    ...         self.prior, self.ties = prior, ties
    >>> Model(ties="davidson")
    Model(ties='davidson')
    >>> Model().set_params(prior=2.0).get_params()
    {'prior': 2.0, 'ties': 'none'}
    """

    _defaults: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._defaults = {name: one.default for name, one in inspect.signature(cls).parameters.items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; if ``deep``, also those of a parameter that is a model, as ``name__its_name``."""
        found = {name: getattr(self, name) for name in self._defaults}
        if deep:
            inner = [(name, value) for name, value in found.items() if isinstance(value, Estimator)]
            found |= {f"{name}__{key}": own for name, value in inner for key, own in value.get_params().items()}
        return found

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, those of an inner model as ``name__its_name``; returns the model."""
        for name, value in params.items():
            outer, _, inner = name.partition("__")
            check_names([outer], self._defaults, type(self).__name__)
            if inner:
                getattr(self, outer).set_params(**{inner: value})
            else:
                setattr(self, name, value)
        return self

    def unfitted(self, **changes: Any) -> Self:
        """A model with copies of the same parameters, except for ``changes``, that is not fitted."""
        own = self.get_params(deep=False) | changes
        copies = {k: v.unfitted() if isinstance(v, Estimator) else deepcopy(v) for k, v in own.items()}
        return type(self)(**copies)

    def check_parameters(self) -> None:
        """Raise ``ValueError`` if a parameter does not match the annotation of its argument."""
        given = self._changed()
        if given:
            check_parameters(type(self), given, repr(getattr(self, "method", type(self).__name__)))

    def _changed(self) -> dict[str, Any]:
        """Parameters that are not at their defaults."""
        both = ((name, getattr(self, name), usual) for name, usual in self._defaults.items())
        return {name: value for name, value, usual in both if value is not usual and repr(value) != repr(usual)}

    def __repr__(self) -> str:
        shown = (f"{name}={value!r}" for name, value in self._changed().items())
        return f"{type(self).__name__}({', '.join(shown)})"
