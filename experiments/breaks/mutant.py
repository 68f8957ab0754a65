"""The record of a break, and how it is put in place: one object of the library or of a script, replaced by a broken one."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from importlib import import_module
from typing import Any, NamedTuple


class Mutant(NamedTuple):
    """A break that the quick form of ``script`` must notice: what stands at ``place`` becomes ``broken(what stood there)``.

    ``script`` is "folder.file"; ``place`` is "module:path" with attributes after dots and keys in brackets, for example
    "placet.losses:LOSSES[pmop-fd]".  A name that a module imported by ``from ... import`` is replaced where it is used.
    """

    script: str
    name: str
    place: str
    broken: Callable[[Any], Any]


def find(place: str) -> tuple[Any, str, Any]:
    """The holder of a place, the last step (a key in brackets, or an attribute), and what stands there now."""
    module, path = place.split(":")
    holder: Any = import_module(module)
    steps = re.findall(r"\[[^]]+\]|[^.\[]+", path)
    for step in steps[:-1]:
        holder = _inside(holder, step)
    return holder, steps[-1], _inside(holder, steps[-1])


def put(mutant: Mutant) -> None:
    """Break the place in this process; there is no way back, so each mutant has a process of its own."""
    holder, step, original = find(mutant.place)
    new = mutant.broken(original)
    if step.startswith("["):
        holder[step[1:-1]] = new
    else:
        setattr(holder, step, new)


def _inside(holder: Any, step: str) -> Any:
    return holder[step[1:-1]] if step.startswith("[") else getattr(holder, step)


def give(value: Any) -> Callable[[Any], Any]:
    """Put ``value`` there, whatever it was."""
    return lambda original: value


def loss(name: str) -> Callable[[Any], Any]:
    """Another loss under the same name: its formula and what is known of it; parameters that it has not are ignored."""

    def broken(original: Any) -> Any:
        from placet.losses import LOSSES

        other = LOSSES[name]

        @wraps(original.plan)
        def plan(columns: Any, **asked: Any) -> Any:
            return other.plan(columns, **{key: value for key, value in asked.items() if key in other.parameters})

        return replace(other, plan=plan)

    return broken


def preset(**params: Any) -> Callable[[Any], Any]:
    """The same loss with parameters that nobody asked for."""

    def broken(original: Any) -> Any:
        @wraps(original.plan)
        def plan(columns: Any, **asked: Any) -> Any:
            return original.plan(columns, **{**asked, **params})

        return replace(original, plan=plan)

    return broken


def after(change: Callable[..., Any]) -> Callable[[Any], Any]:
    """The same function with its result changed: ``change(result, *arguments)``."""

    def broken(original: Any) -> Any:
        def instead(*args: Any, **named: Any) -> Any:
            return change(original(*args, **named), *args)

        return instead

    return broken


def before(change: Callable[..., tuple[Any, ...]]) -> Callable[[Any], Any]:
    """The same function with its positional arguments changed."""

    def broken(original: Any) -> Any:
        def instead(*args: Any, **named: Any) -> Any:
            return original(*change(*args), **named)

        return instead

    return broken


def always(**fixed: Any) -> Callable[[Any], Any]:
    """The same function with these keywords set, whatever is asked."""

    def broken(original: Any) -> Any:
        return lambda *args, **named: original(*args, **{**named, **fixed})

    return broken
