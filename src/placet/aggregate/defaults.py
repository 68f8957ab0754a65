"""The method for data if none is named: one answer for every door."""

from collections.abc import Mapping
from typing import Any

from placet.aggregate.method_table import METHODS
from placet.data import Comparisons, Parts, Rankings, Scores

VOTES, BALLOTS, MANY_RATINGS, TABLE = (METHODS[name] for name in ("bradley-terry", "plackett-luce", "mpm", "mean"))

MOST_RATINGS, MOST_RATED = 100_000, 2_000
"""Numbers of ratings and of rated items up to which Plackett-Luce with a learned prior takes a few seconds."""


def default_method(data: Any) -> str:
    """The method for data if none is named, the same at every door.

    Bradley-Terry for votes, the mean for score tables, Plackett-Luce for ballots and ratings; the multinomial
    preference model for very many ratings.  Both shrink items with few ratings towards the middle.  Plackett-Luce
    conditions on which items each user rated; the other, in which items gain by being rated often, takes time
    proportional to the number of ratings.

    >>> default_method(Rankings.from_orders([["a", "b"]]))
    'plackett-luce'
    """
    kinds = {data.kind} if isinstance(data, Parts) else {type(piece) for piece in _pieces(data)}
    if Comparisons in kinds:
        return VOTES.name
    if Scores in kinds:
        return TABLE.name
    return MANY_RATINGS.name if default_note(data) else BALLOTS.name


def default_note(data: Any) -> str:
    """Why ratings are ranked by a model other than the usual one; empty if they are not."""
    pieces = [] if isinstance(data, Parts) else _pieces(data)
    if not pieces or not all(map(_are_ratings, pieces)):
        return ""
    rows, items = max(len(piece.item) for piece in pieces), max(piece.n_items for piece in pieces)
    if rows <= MOST_RATINGS and items <= MOST_RATED:
        return ""
    return (
        f"{rows:,} ratings of {items:,} items are ranked by {MANY_RATINGS.name}, in seconds; items gain by being rated "
        f"often. method={BALLOTS.name!r} looks only at how high each user rated what, and may take minutes"
    )


def check_defaults(params: Mapping[str, Any]) -> None:
    """Reject parameters that no default method takes, before any file is read."""
    refused = []
    for method in (VOTES, BALLOTS, MANY_RATINGS, TABLE):
        try:
            method.check(params)
        except ValueError as error:
            refused.append(error)
        else:
            return
    raise refused[0]


def _pieces(data: Any) -> list[Any]:
    return list(data.values()) if isinstance(data, Mapping) else [data]


def _are_ratings(data: Any) -> bool:
    """Whether ballots were read from ratings: agents gave scores, and there are no instances."""
    return isinstance(data, Rankings) and data.score is not None and data.agent is not None and data.instance is None
