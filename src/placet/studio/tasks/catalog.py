"""All methods, with their parameters as controls, taken from the method tables and signatures."""

import inspect
import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from placet.aggregate import METHODS

UNSHOWN = ("max_iter", "tol", "agent_weight", "monotone")
"""Parameters that are not offered as controls, and may be given in a URL."""

HIDDEN = ("self", "data", "random_state", "max_iter", "tol", "agent_weight")


def catalog(progress: Any) -> list[dict[str, Any]]:
    """Every method: its name and kind, whether pairwise votes suffice, a one-sentence description, and its controls."""
    kinds = {"model": "model", "rule": "rule", "score method": "score"}
    return [
        {"name": name, "kind": kinds[method.kind], "of_pairs": method.of_pairs, "about": _sentence(method.source)}
        | {"controls": controls(method.source)}
        for name, method in METHODS.items()
    ]


def controls(source: Any) -> list[dict[str, Any]]:
    """The parameters that can be set on a page: name, default, the choices its annotation allows, the kind of input."""
    hints = get_type_hints(source.__init__ if inspect.isclass(source) else source)
    found = []
    for name, parameter in inspect.signature(source).parameters.items():
        hint = hints.get(name)
        if name in HIDDEN or parameter.default is inspect.Parameter.empty:
            continue
        choices = _choices(hint)
        if not choices and not _is_simple(hint):
            continue  # arrays, functions and mappings can only be given in Python
        found.append({"name": name, "default": parameter.default, "choices": choices, "input": _input(hint, choices)})
    return found


def _choices(hint: Any) -> list[Any]:
    """The values that a ``Literal`` in a signature allows; empty for any other annotation."""
    return list(get_args(hint)) if get_origin(hint) is Literal else []


def _is_simple(hint: Any) -> bool:
    parts = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return any(part in (bool, int, float, str) for part in parts) and Any not in parts


def _input(hint: Any, choices: list[Any]) -> str:
    if choices:
        return "select"
    return {bool: "checkbox", int: "number", float: "number"}.get(hint, "text")


def _sentence(source: Any) -> str:
    words = (inspect.getdoc(source) or "").split("\n\n")[0].replace("\n", " ").replace("``", "")
    return words.split(". ")[0].rstrip(".") + "."


def check_given(source: Any, params: Mapping[str, Any], what: str) -> None:
    """Raise a ``ValueError`` for what a page cannot set: what the studio sets itself, and what would name a file."""
    own = inspect.signature(source).parameters
    known = [one["name"] for one in controls(source)] + [name for name in UNSHOWN if name in own]
    for name in params:
        if name not in known:
            raise ValueError(f"{name!r} cannot be set here; the parameters of {what} are {known or 'none'}")
