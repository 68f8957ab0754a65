"""Escaping of names for terminals, tables, spreadsheets and web pages.

A name may contain anything: tabs and newlines, control characters that move the cursor, marks that change the text
direction, markup, formulas.  Each target has one function here, and no other module does any escaping.
"""

import re
from collections.abc import Iterable

_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
UNQUOTE = r"^'('*[=+\-@\t\r])"
"""Regular expression to undo ``in_sheet``: replace a match by its first group."""


def visible(text: str) -> str:
    r"""Text for a line on a terminal, with control characters and direction marks escaped.

    >>> print(visible("a\tb\x1b[2J \u202ename"))
    a\tb\x1b[2J \u202ename
    """
    return _UNSEEN.sub(_escape, text)


def visible_lines(text: str) -> str:
    """Escape several lines of text for a terminal."""
    return "\n".join(visible(line) for line in text.split("\n"))


def in_tsv(text: str) -> str:
    r"""A field of tab-separated text, as PostgreSQL writes it: backslashes are doubled, so that names stay distinct.

    >>> print(in_tsv("a\tb"), in_tsv("a\\tb"))
    a\tb a\\tb
    """
    return visible(text.replace("\\", "\\\\"))


def tsv_line(texts: Iterable[str]) -> str:
    r"""A line of tab-separated text.

    >>> tsv_line(["a\tb", "c"])
    'a\\tb\tc'
    """
    return "\t".join(in_tsv(text) for text in texts)


def in_json(text: str) -> str:
    """JSON with invisible characters escaped; all values are unchanged.

    >>> in_json('["\u202e"]')
    '["\\\\u202e"]'
    """
    return "\n".join(_UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", line) for line in text.split("\n"))


def visible_in_markup(value: object) -> object:
    r"""Prepare a value for a template that escapes markup itself; markup made by the template is left as it is.

    >>> visible_in_markup("<b>\u202e"), visible_in_markup(3)
    ('<b>\\u202e', 3)
    """
    known = isinstance(value, int | float) or hasattr(value, "__html__")
    return value if known else visible_lines(str(value))


def in_sheet(text: str) -> str:
    """A cell of a table that a spreadsheet may open, with an apostrophe before anything that looks like a formula.

    Readers of tables remove it again.

    >>> in_sheet("=cmd()"), in_sheet("-5"), in_sheet("'=x"), in_sheet("a=b")
    ("'=cmd()", '-5', "''=x", 'a=b')
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def from_sheet(text: str) -> str:
    """Undo ``in_sheet``."""
    return re.sub(UNQUOTE, r"\1", text)


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    return _SHORT.get(character) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")
