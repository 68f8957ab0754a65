"""Docstrings and signatures of the library as Markdown: prose, parameters as a list with types, examples."""

import inspect
import re
import sys
from collections.abc import Callable, Iterable
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

import formulas
import numpy as np
from numpy.typing import NDArray
from shared_parameters import shared_text

_CODE = re.compile(r"(``.+?``|`[^`]+`)")
_SECTIONS = re.compile(r"^(Parameters|Attributes|Examples|Returns|Raises|Notes)\n-{3,}$", re.MULTILINE)
_PARAMETER = re.compile(r"^(\*{0,2}\w+(?:, \w+)*) : ?(.*)$")
_NAMES = re.compile(r"^(\*{0,2}\w+(?:, \w+)*)$")
WRAPPED = 80
"""A line of at least this length that is followed by an indented one is text that was wrapped."""

_LONG = [
    (inspect.formatannotation(NDArray[np.float64]), "array"),
    (inspect.formatannotation(NDArray[np.int64]), "array of int"),
    (inspect.formatannotation(NDArray[np.bool_]), "array of bool"),
]


def escaped(text: str) -> str:
    """Prose of a docstring as Markdown: code stays code, formulas are formulas, and nothing else has a meaning."""
    return "".join(
        f"`{part.strip('`')}`" if _CODE.fullmatch(part) else "".join(_marked(*piece) for piece in formulas.parts(part))
        for part in _CODE.split(text)
    )


def _marked(is_formula: bool, text: str) -> str:
    return f"${formulas.latex(text)}$" if is_formula else re.sub(r"([\\*_<>$\[\]{}|~#^])", r"\\\1", text)


def type_text(annotation: Any) -> str:
    """A type as a person writes it."""
    if annotation is inspect.Parameter.empty:
        return ""
    if annotation is type(None):
        return "None"
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    if "_SupportsDType" in text:
        return "dtype"
    if get_origin(annotation) is Callable:
        return "function"
    parts = get_args(annotation)
    if complex in parts:  # an array among other things, each of which may be a text
        own = [part for part in parts if "numpy._typing" not in repr(part) and part not in (complex, bytes)]
        if parts.index(str) > parts.index(complex):  # only as an array
            own.remove(str)
        return " | ".join(["array", *map(type_text, own)])
    if "numpy._typing" in text and get_origin(annotation) in (Union, UnionType):
        return " | ".join(map(type_text, parts))
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


class Told(NamedTuple):
    """What a docstring says of a parameter: the type in words, if it gives one, and the text."""

    type: str = ""
    text: str = ""


def described_parameters(text: str) -> tuple[dict[str, Told], str]:
    """What a section "Parameters" says of each, and the text that follows it at the margin.

    A short first line above an indented text is a type; a text that begins in the first line fills it.
    """
    found: dict[str, list[str]] = {}
    rest: list[str] = []
    names: list[str] = []
    lines = text.strip("\n").split("\n")
    for line, below in zip(lines, [*lines[1:], ""]):
        start = _PARAMETER.match(line) or (_NAMES.match(line) if below.startswith(" ") else None)
        if start and not rest:
            names = [name.lstrip("*") for name in start[1].split(", ")]
            first = start[2] if start.lastindex == 2 else ""
            typed = below.startswith(" ") and len(line) < WRAPPED
            for name in names:
                found[name] = [first if typed else "", "" if typed else first]
        elif (line.startswith(" ") or not line) and not rest:
            for name in names:
                found[name].append(line.strip())
        else:
            rest.append(line)
    told = {name: Told(kind, " ".join(" ".join(words).split())) for name, (kind, *words) in found.items()}
    return told, "\n".join(rest)


def told_of(thing: Any) -> tuple[dict[str, Told], str]:
    """What is said of the parameters of a function or class, wherever it is said, and the text after the section.

    In its section "Parameters"; in that of another, if it says "Parameters as in `Other`"; in a sentence of its prose
    that names the parameter as code; or, for what many have in common, in `shared_parameters`.
    """
    doc = inspect.getdoc(thing) or ""
    parts = sections(doc)
    told, rest = described_parameters(parts.get("Parameters", ""))
    as_in = re.search(r"Parameters(?: and scores)?\s+as\s+in\s+`(\w+)`", parts[""])
    other = getattr(sys.modules.get(getattr(thing, "__module__", "")), as_in[1], None) if as_in else None
    if other is not None and other is not thing:
        told = told_of(other)[0] | told
    said = [" ".join(p.split()) for p in re.split(r"\n\s*\n", parts[""] + "\n\n" + rest) if ">>>" not in p]
    for sentence in (one for paragraph in said for one in re.split(r"(?<=[.;]) +(?=[A-Z`])", paragraph)):
        for name in re.findall(r"``(\w+)(?:=[^`]*)?``", sentence):
            told.setdefault(name, Told("", sentence))
    return told, rest


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
    told, rest = told_of(thing)
    lines = prose(parts[""])
    items = parameters(thing, told, skip)
    if items:
        lines += ["Parameters:", "", *items, ""]
    returned, _, examples = parts.get("Returns", "").strip("\n").partition("\n\n")
    if returned:
        kind, _, words = returned.partition("\n")
        lines += [f"Returns: *{escaped(kind)}*." + (f" {escaped(' '.join(words.split()))}" if words else ""), ""]
    return lines + prose(rest) + prose(parts.get("Notes", "")) + prose(examples) + prose(parts.get("Examples", ""))


def parameters(thing: Any, told: dict[str, Told], skip: Iterable[str] = ()) -> list[str]:
    """A line for each parameter: its name, type and default, and what is said of it."""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return []
    lines = []
    for name, parameter in signature.parameters.items():
        if name in ("self", *skip):
            continue
        said = told.get(name, Told("", shared_text(thing, name)))
        kind = escaped(said.type) if said.type else f"`{hint}`" if (hint := type_text(parameter.annotation)) else ""
        default = "" if parameter.default is parameter.empty else f"default `{_default(parameter.default)}`"
        brackets = ", ".join(part for part in (kind, default) if part)
        text = f": {escaped(said.text)}" if said.text else ""
        lines.append(f"- **{escaped(name)}**" + (f" ({brackets})" if brackets else "") + text)
    return lines


def _default(value: Any) -> str:
    return getattr(value, "__name__", None) or repr(value)
