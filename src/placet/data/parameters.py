"""Parameters by name: parsed from ``name=value`` texts, and checked against signatures before any work is done."""

import inspect
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from placet.data.errors import one_of

_CONSTANTS = {"true": True, "false": False, "none": None}
_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text", type(None): "none"}


def check_parameters(function: Callable[..., Any], params: Mapping[str, Any], who: str, skip: int = 0) -> None:
    """Raise a ``ValueError`` if ``function`` lacks a parameter or a value does not match its annotation.

    The first ``skip`` parameters cannot be given by name.  Only annotations of numbers, text, booleans, mappings and
    choices are checked.

    >>> check_parameters(lambda data, seats=1: 0, {"seat": 2}, "'stv'", skip=1)
    Traceback (most recent call last):
    ValueError: parameter 'seat' is unknown to 'stv'; choose from ['seats']
    """
    names, hints = _names_and_hints(function)
    check_names(params, names[skip:], who)
    for name, value in params.items():
        hint = hints.get(name, Any)
        if not matches(value, hint):
            if get_origin(hint) is Literal and isinstance(value, str):
                one_of(value, get_args(hint), name)
            raise ValueError(f"parameter {name} of {who} must be {describe_hint(hint)}, not {value!r}")


def check_names(given: Collection[str], known: Collection[str], who: str) -> None:
    """Raise a ``ValueError`` for the first given name that is not among the known ones."""
    for name in given:
        if name not in known:
            way_out = f"choose from {list(known)}" if known else "it has none"
            raise ValueError(f"parameter {name!r} is unknown to {who}; {way_out}")


@lru_cache(maxsize=256)
def _names_and_hints(function: Callable[..., Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Names of the parameters of a function, and their annotations; empty if only type checkers can resolve these."""
    names = tuple(inspect.signature(function).parameters)
    try:
        return names, get_type_hints(function.__init__ if inspect.isclass(function) else function)
    except NameError:
        return names, {}


def matches(value: Any, hint: Any) -> bool:
    """Whether a value matches an annotation; True where that cannot be determined."""
    if get_origin(hint) in (Union, types.UnionType):
        return any(matches(value, one) for one in get_args(hint))
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if hint is float:
        return isinstance(value, Real) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if hint in (bool, str, type(None)):
        return isinstance(value, hint) or (hint is bool and type(value).__name__ == "bool")
    if get_origin(hint) is Mapping:
        return isinstance(value, Mapping)
    return True


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
