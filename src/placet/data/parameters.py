"""Parameters of methods, checked by the names and annotations that their functions have, before any work is done."""

import inspect
import types
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text", type(None): "none"}


def check_parameters(function: Callable[..., Any], params: Mapping[str, Any], who: str, skip: int = 0) -> None:
    """A ``ValueError`` where ``function`` has no parameter of a name, or where a value is not of the kind it states.

    The first ``skip`` parameters are not to be given by name.  Annotations other than numbers, texts, truth values,
    mappings and choices say nothing, and are not checked.

    >>> check_parameters(lambda data, seats=1: 0, {"seat": 2}, "'stv'", skip=1)
    Traceback (most recent call last):
    ValueError: parameter 'seat' is unknown to 'stv'; choose from ['seats']
    """
    signature = inspect.signature(function).parameters
    known = list(signature)[skip:]
    for name in params:
        if name not in known:
            way_out = f"choose from {known}" if known else "it has none"
            raise ValueError(f"parameter {name!r} is unknown to {who}; {way_out}")
    try:
        hints = get_type_hints(function.__init__ if inspect.isclass(function) else function)
    except NameError:  # annotations of names that exist for type checkers alone
        return
    for name, value in params.items():
        hint = hints.get(name, Any)
        if not matches(value, hint):
            raise ValueError(f"parameter {name} of {who} must be {describe_hint(hint)}, not {value!r}")


def matches(value: Any, hint: Any) -> bool:
    """Whether a value is of the kind that an annotation states; what cannot be told is taken to be."""
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
