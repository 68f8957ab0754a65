"""Docstrings of the API as reStructuredText: prose, parameters and attributes as lists, what is returned, examples."""

import re
from collections.abc import Iterator
from itertools import groupby

import formulas
from docstrings import Told, described_parameters, sections

# Docstrings are written to be read in the source: plain words, formulas, ``code`` and doctests.  Formulas are found by
# their shape; what else reStructuredText would give a meaning to is escaped, so that nothing needs marks of its own.
_CODE = re.compile(r"(``.+?``)")
_NAME = re.compile(r"`([^`]+)`")
_MARKS = re.compile(r"([|*\\])|(?<=\w)(_)(?!\w)")


def restructured(text: str) -> list[str]:
    """The lines of a docstring; a section has a bold head instead of a heading, which would be one of the page."""
    lines: list[str] = []
    for head, part in sections(text).items():
        if head in ("Parameters", "Attributes"):
            told, rest = described_parameters(part)
            lines += [f"**{head}**", "", *_items(told), "", *_paragraphs(rest)]
        elif head in ("Returns", "Raises"):
            first, _, rest = part.strip("\n").partition("\n\n")
            kind, _, words = first.partition("\n")
            said = f": {_escaped(' '.join(words.split()))}" if words else ""
            lines += [f"**{head}** {_escaped(kind)}{said}", "", *_paragraphs(rest)]
        else:
            lines += _paragraphs(part)
    return lines


def _items(told: dict[str, Told]) -> Iterator[str]:
    """A list of names, those that are described together on one line."""
    for one, group in groupby(told.items(), lambda item: item[1]):
        names = ", ".join(f"**{name}**" for name, _ in group)
        kind = f" ({_escaped(one.type)})" if one.type else ""
        yield f"- {names}{kind}" + (f": {_escaped(one.text)}" if one.text else "")


def _paragraphs(text: str) -> list[str]:
    """Escape prose; keep doctests; bring indented continuation lines back to the margin of their paragraph."""
    lines, doctest = [], False
    for line in text.strip("\n").split("\n"):
        doctest = line.lstrip().startswith(">>>") or (doctest and bool(line.strip()))
        lines.append(line if doctest else _escaped(line.lstrip()))
    return [*lines, ""]


def _escaped(text: str) -> str:
    parts = _CODE.split(_NAME.sub(r"``\1``", text) if "``" not in text else text)
    return "".join(
        part if part.startswith("``") else "".join(_marked(*piece) for piece in formulas.parts(part)) for part in parts
    )


def _marked(is_formula: bool, text: str) -> str:
    return rf"\ :math:`{formulas.latex(text)}`\ " if is_formula else _MARKS.sub(r"\\\g<0>", text)
