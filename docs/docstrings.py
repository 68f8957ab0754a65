"""Docstrings and signatures of the library as Markdown: prose, parameters as a list with types, examples."""

import inspect
import re
from collections.abc import Iterable
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

_CODE = re.compile(r"(``.+?``|`[^`]+`)")
_SECTIONS = re.compile(r"^(Parameters|Attributes|Examples|Returns|Raises|Notes)\n-{3,}$", re.MULTILINE)
_PARAMETER = re.compile(r"^(\*{0,2}\w+(?:, \w+)*) : ?(.*)$")
_LONG = [
    (inspect.formatannotation(NDArray[np.float64]), "array"),
    (inspect.formatannotation(NDArray[np.int64]), "array of int"),
    (inspect.formatannotation(NDArray[np.bool_]), "array of bool"),
]


def escaped(text: str) -> str:
    """Prose of a docstring as Markdown: code stays code, and nothing else has a meaning."""
    parts = _CODE.split(text)
    return "".join(
        f"`{part.strip('`')}`" if _CODE.fullmatch(part) else re.sub(r"([\\*_<>$\[\]{}|~#^])", r"\\\1", part)
        for part in parts
    )


def type_text(annotation: Any) -> str:
    """A type as a person writes it."""
    if annotation is inspect.Parameter.empty:
        return ""
    if annotation is type(None):
        return "None"
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    if "numpy._typing" in text and (parts := get_args(annotation)):  # arrays among other things
        own = [part for part in parts if "numpy._typing" not in repr(part) and part not in (complex, bytes)]
        pure = all(part in (str, type(None)) for part in own)
        words = [type_text(part) for part in own if not (pure and part is str)]
        return " | ".join(["array", *words])
    for long, short in _LONG:
        text = text.replace(long, short)
    text = re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z])", "", text).replace("NoneType", "None")
    while (flat := re.sub(r"Union\[((?:[^\[\]]|\[[^\[\]]*\])*)\]", lambda m: " | ".join(_split(m[1])), text)) != text:
        text = flat
    return text.strip("'\"")


def _split(text: str) -> list[str]:
    """The parts of a list of types."""
    return [part.strip() for part in re.split(r",(?![^\[]*\])", text)]


def sections(doc: str) -> dict[str, str]:
    """The parts of a docstring by their heads; what stands before the first is called ""."""
    pieces = _SECTIONS.split(doc)
    found = {"": pieces[0]}
    for head, text in zip(pieces[1::2], pieces[2::2]):
        found[head] = found.get(head, "") + text
    return found


def described_parameters(text: str) -> tuple[dict[str, str], str]:
    """What a section "Parameters" says of each, and the text that follows it at the margin."""
    found: dict[str, list[str]] = {}
    rest: list[str] = []
    names: list[str] = []
    for line in text.strip("\n").split("\n"):
        start = _PARAMETER.match(line)
        if start and not rest:
            names = [name.lstrip("*") for name in start[1].split(", ")]
            for name in names:
                found[name] = [start[2]]
        elif (line.startswith(" ") or not line) and not rest:
            for name in names:
                found[name].append(line.strip())
        else:
            rest.append(line)
    return {name: " ".join(" ".join(lines).split()) for name, lines in found.items()}, "\n".join(rest)


def prose(text: str) -> list[str]:
    """Paragraphs as Markdown; examples as code."""
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        if paragraph.lstrip().startswith(">>>"):
            lines += ["```python", inspect.cleandoc(paragraph), "```", ""]
        elif paragraph.strip():
            lines += [escaped(" ".join(paragraph.split())), ""]
    return lines


def entry(thing: Any, skip: Iterable[str] = ()) -> list[str]:
    """Markdown of a function or class: what it is, its parameters with types and defaults, and examples."""
    parts = sections(inspect.getdoc(thing) or "")
    told, rest = described_parameters(parts.get("Parameters", ""))
    lines = prose(parts[""])
    items = parameters(thing, told, skip)
    if items:
        lines += ["Parameters:", "", *items, ""]
    return lines + prose(rest) + prose(parts.get("Notes", "")) + prose(parts.get("Examples", ""))


def parameters(thing: Any, told: dict[str, str], skip: Iterable[str] = ()) -> list[str]:
    """A line for each parameter: its name, type and default, and what is said of it."""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return []
    lines = []
    for name, parameter in signature.parameters.items():
        if name in ("self", *skip):
            continue
        kind = type_text(parameter.annotation)
        default = "" if parameter.default is parameter.empty else f"default `{_default(parameter.default)}`"
        brackets = ", ".join(part for part in (f"`{kind}`" if kind else "", default) if part)
        words = escaped(told.get(name, ""))
        lines.append(
            f"- **{escaped(name)}**" + (f" ({brackets})" if brackets else "") + (f": {words}" if words else "")
        )
    return lines


def _default(value: Any) -> str:
    return getattr(value, "__name__", None) or repr(value)


def first_sentence(thing: Any) -> str:
    """The first paragraph of a docstring."""
    return escaped(" ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split()))
