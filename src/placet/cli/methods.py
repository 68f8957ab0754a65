"""``placet methods``: every method with its sentence, or one with its parameters."""

import textwrap
from typing import Annotated, Any

import typer

from placet.cli.common.console_output import deliver, show_json
from placet.cli.common.options import AsJson, Out, complete_methods

PLAIN = (bool, int, float, str, type(None))
WIDTH = 80


def methods(
    method: Annotated[str, typer.Argument(help="A method, to see it in full.", autocompletion=complete_methods)] = "",
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """List the methods of placet aggregate, or describe one.

    Names are accepted in any case, with _ for -, and by common other names such as bt and pl.
    """
    from placet.aggregate.method_table import GAMES, METHODS, method_of

    if method:
        _show(method_of(method), as_json)
        return
    head = ["method", "kind", "data", "what it does"]
    rows = [
        [one.name, one.kind, ", ".join(one.takes), _first_sentence(one.words)] for one in (METHODS | GAMES).values()
    ]
    deliver(out, as_json, head, rows)


def _show(method: Any, as_json: bool) -> None:
    plain = {name: value if isinstance(value, PLAIN) else str(value) for name, value in method.parameters.items()}
    if as_json:
        names = {"method": method.name, "title": method.title, "kind": method.kind, "data": list(method.takes)}
        show_json({**names, "words": method.words, "reference": method.reference, "parameters": plain})
        return
    print(f"{method.title} ({method.name}), a {method.kind} for {' or '.join(method.takes)}")
    print(textwrap.fill(method.words, WIDTH))
    print(textwrap.fill(f"Reference: {method.reference}", WIDTH))
    given = " ".join(f"-p {name}={value}" for name, value in plain.items())
    print(textwrap.fill(f"Parameters: {given}" if given else "No parameters.", WIDTH, break_on_hyphens=False))


def _first_sentence(words: str) -> str:
    return words.partition(". ")[0].rstrip(".")
