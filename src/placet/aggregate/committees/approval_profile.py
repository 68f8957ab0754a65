"""Approval ballots in whole numbers: which groups of equal ballots approve what, and how heavy they are.

Rules of committees decide ties by exact arithmetic, so weights are whole numbers here, in the ratios of those given.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from placet.aggregate.places import ballots_of
from placet.aggregate.result.election_record import Record, Round
from placet.aggregate.rules.approval import Threshold, approved_rows
from placet.aggregate.rules.scored import Scored
from placet.data import DataError, Rankings
from placet.data.arrays import Floats, Ints, Names, offsets_from_sizes
from placet.data.breaking import equal_lists

MOST_COMMITTEES = 4096
"""Maximum number of committees, or of states of a count, that may tie."""
EXACT = 2**53
"""Bound of the sum of weights, so that sums of floats are exact."""
SIMPLE = 1000
"""Largest denominator of the ratio of two weights that is taken as it is."""


@dataclass(frozen=True, eq=False)
class Approvals:
    """Rows (``item``, ``group``): a group of equal ballots approves an item; ``weight`` (groups,) are whole numbers.

    ``total`` is the weight of all ballots, of those that approve nothing, too; ``unit`` the weight that 1 stands for.
    ``approved`` (n,) is the weight of the ballots that approve each item.
    """

    items: Names
    item: Ints
    group: Ints
    weight: Ints
    total: int
    unit: float
    words: str

    @property
    def n_items(self) -> int:
        return len(self.items)

    @property
    def approved(self) -> Ints:
        return self.by_level(np.zeros(len(self.weight), np.int64), 1)[:, 0]

    @property
    def candidates(self) -> list[int]:
        """Items that at least one ballot approves."""
        return np.flatnonzero(self.approved).tolist()

    def by_level(self, level: Ints, n_levels: int) -> Ints:
        """The weight (n_items, n_levels) of the ballots at each level that approve an item.  O(rows)."""
        cell = self.item * n_levels + level[self.group]
        weight = np.bincount(cell, self.weight[self.group], self.n_items * n_levels)
        return weight.reshape(self.n_items, n_levels).astype(np.int64)

    def approvers(self, item: int) -> NDArray[np.bool_]:
        """Mask (groups,) of the ballots that approve an item."""
        mask = np.zeros(len(self.weight), np.bool_)
        mask[self.group[self.item == item]] = True
        return mask


def approvals_of(data: Rankings, rule: str, threshold: Threshold) -> Approvals:
    """The approvals on ballots by ``threshold`` (see `approval`), with equal ballots as one group."""
    rankings = ballots_of(data, rule)
    approved, words = approved_rows(rankings, threshold, rule)
    ballot, item = rankings.ballot[approved], rankings.item[approved].astype(np.int64)
    order = np.lexsort((item, ballot))
    offsets = offsets_from_sizes(np.bincount(ballot, minlength=len(rankings)))
    first, group = equal_lists(item[order], np.zeros(len(item), np.int64), offsets, None, None)
    whole, unit = whole_weights(rankings.weight)
    weight = np.zeros(len(first), np.int64)
    np.add.at(weight, group, whole)
    rows = np.concatenate([np.arange(offsets[b], offsets[b + 1]) for b in first]) if len(first) else np.zeros(0, int)
    which = np.repeat(np.arange(len(first)), np.diff(offsets)[first]) if len(first) else np.zeros(0, int)
    return Approvals(rankings.items, item[order][rows], which, weight, int(whole.sum()), unit, words)


def whole_weights(weight: Floats) -> tuple[Ints, float]:
    """Whole numbers in the ratios of the weights, and the weight that 1 stands for.

    Weights whose ratios are no simple fractions are rounded to 52 bits of their sum.

    >>> whole_weights(np.array([0.1, 0.3, 0.25]))
    (array([2, 6, 5]), 0.05)
    """
    if not (weight > 0).any():
        return np.zeros(len(weight), np.int64), 1.0
    least, (values, which) = float(weight[weight > 0].min()), np.unique(weight, return_inverse=True)
    ratios = [Fraction(v / least).limit_denominator(SIMPLE) for v in values.tolist()]
    common = math.lcm(*(ratio.denominator for ratio in ratios))
    near = all(abs(float(ratio) * least - v) <= 1e-12 * v for ratio, v in zip(ratios, values.tolist()))
    whole = [int(ratio * common) for ratio in ratios]
    if near and sum(w * c for w, c in zip(whole, np.bincount(which).tolist())) < EXACT:
        return np.array(whole, np.int64)[which], least / common
    unit = float(weight.sum()) / (EXACT // 2)
    return np.maximum(np.round(values / unit), values > 0).astype(np.int64)[which], unit


def refuse_many(count: int) -> None:
    """Raise ``DataError`` if more committees tie than can be told apart."""
    if count > MOST_COMMITTEES:
        raise DataError(
            f"more than {MOST_COMMITTEES} committees tie; leave out items that few approve, or change the seats"
        )


def committee_answer(
    approvals: Approvals,
    seats: int,
    committees: Iterable[Sequence[int]],
    counts: tuple[tuple[Round, ...], ...] = (),
    notes: tuple[str, ...] = (),
) -> Scored:
    """The answer of a rule: an item's score is the share of the winning committees that it belongs to."""
    sets = sorted({tuple(sorted(committee)) for committee in committees})
    names = [tuple(approvals.items[k] for k in one) for one in sets]
    share = np.bincount(np.array([k for one in sets for k in one], np.int64), minlength=approvals.n_items) / len(sets)
    always = tuple(approvals.items[k] for k in np.flatnonzero(share == 1))
    sometimes = tuple(approvals.items[k] for k in np.flatnonzero((share > 0) & (share < 1)))
    record = Record(approvals.items, counts, always, sometimes, len(sets), committees=tuple(names))
    said = [f"score 1: elected to one of the {seats} seats" if seats > 1 else "score 1: elected"]
    if len(sets) > 1:
        said = [
            f"{len(sets)} committees tie; a score is the share of them that has the item: {len(always)} in all of "
            f"them, {len(sometimes)} in some"
        ]
    vacant = seats - max(len(one) for one in sets)
    if vacant:
        said += [f"{vacant} of {seats} seats stay{'s' if vacant == 1 else ''} vacant"]
    return Scored(share, (approvals.words, *said, *notes), record=record)
