"""The default method for data if none is named."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from placet.data import Rankings

DEFAULTS = ("bradley-terry", "plackett-luce", "mpm", "mean")
"""Every method that `default_method` may return."""

MOST_RATINGS, MOST_RATED = 100_000, 2_000
"""Numbers of ratings and of rated items up to which Plackett-Luce with a learned prior takes a few seconds."""


def default_method(data: Any) -> str:
    """Bradley-Terry for votes, the mean for score tables, Plackett-Luce for ballots and ratings; MPM for many ratings.

    Both models shrink items with few ratings towards the middle.  Plackett-Luce conditions on which items each user
    rated; MPM, in which items gain by being rated often, takes time proportional to the number of ratings.
    """
    from placet.data import Comparisons, Scores

    parts = _parts(data)
    if isinstance(parts[0], Comparisons):
        return "bradley-terry"
    if isinstance(parts[0], Scores):
        return "mean"
    return "mpm" if default_note(data) else "plackett-luce"


def default_note(data: Any) -> str:
    """Explain why ratings are ranked by a model other than the usual one; empty if they are not."""
    parts = _parts(data)
    if not all(map(_are_ratings, parts)):
        return ""
    rows, items = max(len(part.item) for part in parts), max(part.n_items for part in parts)
    if rows <= MOST_RATINGS and items <= MOST_RATED:
        return ""
    return (
        f"{rows:,} ratings of {items:,} items are ranked by mpm, in seconds; items gain by being rated often. "
        "--method plackett-luce looks only at how high each user rated what, and may take minutes"
    )


def _parts(data: Any) -> list[Any]:
    return list(data.values()) if isinstance(data, Mapping) else [data]


def _are_ratings(data: Any) -> "TypeGuard[Rankings]":
    """Whether ballots were read from ratings: agents gave scores, and there are no instances."""
    from placet.data import Rankings

    return isinstance(data, Rankings) and data.score is not None and data.agent is not None and data.instance is None


def check_defaults(params: Mapping[str, Any]) -> None:
    """Reject parameters that no possible default method accepts, before any file is read."""
    from placet.aggregate.consensus_door import check_method

    refused = []
    for method in DEFAULTS:
        try:
            check_method(method, dict(params))
        except ValueError as error:
            refused.append(error)
    if len(refused) == len(DEFAULTS):
        raise refused[0]
