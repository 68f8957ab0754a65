"""What a method works on if data are in parts, which together may be larger than memory.

Votes are counted part by part and the counts added, so every method works on them.  Ballots contribute to sums: of
points, of pairs, of the values and derivatives of a likelihood.  Methods that need all ballots at once run on the
distinct ballots with their multiplicities if these fit in memory; otherwise an error names the methods that work on
sums.
"""

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any

from placet.aggregate.data_facts import notes_of_data, with_votes_counted
from placet.aggregate.method import Method
from placet.aggregate.method_table import METHODS
from placet.data import Comparisons, DataError, Parts, Queries, Rankings
from placet.data.engines.memory import PART_OF_MEMORY, array_bytes, memory_limit


def seen_of_parts(parts: Parts, method: Method, params: Mapping[str, Any]) -> Rankings | Comparisons | Parts:
    """The counts of all votes; the parts, if the method needs only sums over ballots; or else the distinct ballots."""
    if parts.kind is Queries:
        raise TypeError("these parts hold queries, which rankers are fitted to; consensus takes ballots or votes")
    if parts.kind is Comparisons:
        votes: Comparisons = with_votes_counted(parts)
        return votes
    if method.works_on_sums and (method.kind == "rule" or method.function(**params).fits_parts):
        return parts
    reads_scores = method.reads_scores or params.get("strength") == "rating"
    models = method.kind == "model"  # they may distinguish voters
    asked = (not reads_scores, models, memory_limit() // PART_OF_MEMORY, method.name)
    united = parts.sum(_Distinct, *asked, name="different ballots", merge=_Distinct.merged)
    ballots: Rankings = parts.with_names(united.data, notes=notes_of_data(parts))
    return ballots


class _Distinct:
    """Ballots of some parts, with equal ones merged."""

    def __init__(self, data: Rankings, collapse: bool, agents: bool, most: int, method: str):
        self.collapse, self.most, self.method = collapse, most, method
        plain = data if agents else replace(data, agent=None, agents=None)
        self.data = self._refuse_large(replace(plain, score=None).collapsed() if collapse else plain)

    def merged(self, other: "_Distinct") -> "_Distinct":
        both, united = self.data + other.data, copy(self)
        united.data = self._refuse_large(both.collapsed() if self.collapse else both)
        return united

    def _refuse_large(self, data: Rankings) -> Rankings:
        if array_bytes(data) > self.most:
            sums = [name for name, method in METHODS.items() if method.works_on_sums]
            raise DataError(
                f"{self.method!r} needs all different ballots at once, and {len(data):,} of them take more than "
                f"{self.most:,} bytes (a quarter of PLACET_MEMORY); use a method that works on sums: {sums}"
            )
        return data
