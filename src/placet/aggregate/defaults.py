"""The method for data if none is named: one answer for every door, and the sentence that says which it was and why."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from placet.aggregate.method_table import GAMES, METHODS, SOURCES
from placet.data import Comparisons, Parts, Rankings, Scores
from placet.data.contests.games import Games

VOTES, BALLOTS, RATINGS, TABLE = (METHODS[name] for name in ("bradley-terry", "plackett-luce", "adjusted-mean", "mean"))

HOLES = METHODS["item-response"]


class Default(NamedTuple):
    """The name of the method, and a note for the result: for what data it is the default, and why."""

    method: str
    note: str


def default_method(data: Any) -> str:
    """The method for data if none is named, the same at every door.

    Bradley-Terry for votes, with Davidson's model of ties if there are ties; Plackett-Luce for ballots; the mean rating
    adjusted for who rated for ratings, whatever their number; the mean for score tables, or item response if cells are
    missing.

    Returns
    -------
    str
        A key of ``METHODS``.

    >>> default_method(Rankings.from_orders([["a", "b"]]))
    'plackett-luce'
    """
    return default_of(data).method


def default_of(data: Any) -> Default:
    """The default method with the note that says so."""
    if isinstance(data, Mapping) and hasattr(data, "target"):
        return _default(SOURCES.name, "several sources", "each counts as far as it agrees with the target")
    if isinstance(data, Games):
        return _default(GAMES["margins"].name, "games with points", "a clear win says more than a narrow one")
    pieces = _pieces(data)
    kinds = {piece.kind if isinstance(piece, Parts) else type(piece) for piece in pieces}
    if Comparisons in kinds:
        return _default(VOTES.name, "votes", "a win counts for more against a strong item")
    if Scores in kinds and all(_has_holes(piece) for piece in pieces):
        return _default(HOLES.name, "score tables with missing cells", "items are compared on the tasks they took")
    if Scores in kinds:
        return _default(TABLE.name, "score tables", "every task counts alike")
    if all(map(_are_ratings, pieces)):
        return _default(RATINGS.name, "ratings", "only how high each user rated what counts, not how often or by whom")
    return _default(BALLOTS.name, "ballots", "the likelihood of whole orders; items left out say nothing")


def _default(method: str, what: str, why: str) -> Default:
    return Default(method, f"no method was named: {method}, the default for {what} ({why})")


def check_defaults(params: Mapping[str, Any]) -> None:
    """Reject parameters that no default method takes, before any file is read."""
    refused = []
    for method in (VOTES, BALLOTS, RATINGS, TABLE, HOLES):
        try:
            method.check(params)
        except ValueError as error:
            refused.append(error)
        else:
            return
    raise refused[0]


def _pieces(data: Any) -> list[Any]:
    return list(data.values()) if isinstance(data, Mapping) else [data]


def _has_holes(data: Any) -> bool:
    """Whether a table of several tasks lacks cells."""
    return isinstance(data, Scores) and data.n_tasks > 1 and data.has_holes


def _are_ratings(data: Any) -> bool:
    """Whether ballots were read from ratings: agents gave scores, and there are no instances."""
    data = data[0] if isinstance(data, Parts) and len(data) else data
    return isinstance(data, Rankings) and data.score is not None and data.agent is not None and data.instance is None
