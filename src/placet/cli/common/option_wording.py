"""Translate Python arguments in messages to command-line options: ``on_error="skip"`` becomes ``--on-error skip``."""

import ast
import inspect
import re
import shlex

_QUOTED = r"\"[^\"\n]*\"|'[^'\n]*'"
_NOT_AFTER = "".join(f"(?<!{text})" for text in (r"[\w.\-/]", r"\w\(", "--read ", "-r ", "--param ", "-p ", "=", ":"))
_VALUE = rf"(?:{_QUOTED})(?: \| (?:{_QUOTED}))*|\[[^\]\n]*\]|True|False|[0-9.]*[0-9]"
_ARGUMENT = re.compile(
    rf"{_NOT_AFTER}(?P<name>[a-z][a-z_]*)=(?P<value>{_VALUE})?(?![\w/{{(\[\"'=<>~]|\.\w)"
    rf"|(?<![\w=])(?:{_QUOTED})"  # quoted text is the user's and is left unchanged
)
_BETWEEN = re.compile(r"(--[a-z-]+ (?:'[^'\n]*'|[^\s;]+?)), (?=--)")
_PHRASES = {
    "constants=False": "--no-constants",
    "constants=True": "--constants",
    'say what it means with outcomes={"word": "a" | "b" | "tie"}': "write a, b or tie there",
    "read_battles(agent=) or from_battles(agent=)": "name their column with --agent",
    'pass open(path, encoding="latin-1") instead of the path, or convert the file': (
        "convert the file: iconv -f latin1 -t utf-8 FILE > NEW"
    ),
    'pass open(path, encoding="utf-16") instead of the path, or convert the file': (
        "convert the file: iconv -f utf-16 -t utf-8 FILE > NEW"
    ),
    ", or use data.completed()": "",
    "read_ballots(agent=) or from_orders(agent=)": "name their column with --agent",
    "read_battles(..., time=) or from_battles(..., time=)": "name the column of dates with --time",
}
_OF_CHOICES = ("chosen", "choice_set", "alternative", "attributes", "case", "errors", "order", "text", "labels")
"""Options of ``placet choice`` and of ``placet train``, under the names that the readers of their tables have."""


def in_options(message: str) -> str:
    """Rewrite arguments of Python functions in a message as options of the command; the rest is unchanged.

    Arguments that have a corresponding option become that option, other arguments of readers become
    ``--read name=value``, and parameters of methods ``--param name=value``.

    >>> in_options('correct it, or read with on_error="skip" to leave such lines out')
    'correct it, or read with --on-error skip to leave such lines out'
    >>> in_options('say format="battles", a="...", b="..." or layout="ranks"')
    'say --format battles --a ... --b ... or --read layout=ranks'
    """
    for phrase, words in _PHRASES.items():
        message = message.replace(phrase, words)
    return _BETWEEN.sub(r"\1 ", _ARGUMENT.sub(_option, message))


def _option(match: re.Match[str]) -> str:
    name, value = match["name"], match["value"]
    if name is None:
        return match[0]
    from placet.cli.aggregate import aggregate
    from placet.cli.common.options import READING

    text = "" if value is None else _text(value)
    if name in inspect.signature(aggregate).parameters or name in READING or name in _OF_CHOICES:
        return f"--{name.replace('_', '-')}" + (f" {text}" if text else "")
    if name in _of_readers():
        return f"--read {name}={text or '...'}"
    return f"--param {name}={text or '...'}" if name in _of_methods() else match[0]


def _text(value: str) -> str:
    """A Python value as a shell word; names in a list are joined by commas, choices by vertical bars."""
    if '" | "' in value:
        return value.replace(" ", "").replace('"', "")
    found = ast.literal_eval(value)
    if isinstance(found, bool):
        return str(found).lower()
    return shlex.quote(",".join(map(str, found)) if isinstance(found, list) else str(found))


def _of_readers() -> set[str]:
    from placet.io import read_labeled_texts
    from placet.io.formats import FORMATS

    readers = (*(one.read for one in FORMATS.values()), read_labeled_texts)
    return {name for read in readers for name in inspect.signature(read).parameters}


def _of_methods() -> set[str]:
    from placet.aggregate import METHODS

    return {name for method in METHODS.values() for name in method.parameters}
