"""One item of a board: its rank, score, and how sure both are."""

from collections.abc import Hashable
from typing import NamedTuple


class StandingRow(NamedTuple):
    """A row of a board; None for what the method does not provide.

    >>> StandingRow("ant", 1, 2.0).rank
    1
    """

    item: Hashable
    rank: int
    score: float
    stderr: float | None = None
    rank_low: int | None = None
    rank_high: int | None = None
    tier: int | None = None
    support: float | None = None
