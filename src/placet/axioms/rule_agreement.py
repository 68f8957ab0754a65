"""Agreement between methods: pairs of items whose order depends on the rule chosen."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placet.aggregate.method_table import METHODS
from placet.axioms.outcome import Above, as_method, tiers
from placet.data import Comparisons, Rankings
from placet.data.arrays import Floats


@dataclass(frozen=True)
class Contested:
    """A pair that methods order in opposite ways: the methods with ``x`` above ``y``, below ``y``, or tied with it.

    >>> import placet
    >>> votes = placet.Rankings.from_orders([["A", "B", "C"]] * 3 + [["B", "C", "A"]] * 2)
    >>> placet.axioms.compare_methods(votes, ["borda", "plurality"]).contested
    (Contested(x='A', y='B', above=('plurality',), below=('borda',), tied=()),)
    """

    x: Hashable
    y: Hashable
    above: tuple[str, ...]
    below: tuple[str, ...]
    tied: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class RuleAgreement:
    """Comparison of several methods on the same ballots.

    ``winners`` lists the winners of each method (several if they tie); ``distance`` (methods, methods) is the share of
    pairs on which two methods differ, a tie against an order counting half; ``contested`` are the pairs that two
    methods order in opposite ways, most evenly split first; ``tied_by_some`` counts the remaining pairs that some
    method ties and another orders; ``pairs`` is the total number of pairs.

    >>> import placet
    >>> votes = placet.Rankings.from_orders([["A", "B", "C"]] * 3 + [["B", "C", "A"]] * 2)
    >>> found = placet.axioms.compare_methods(votes, ["borda", "plurality"])
    >>> found.winners, found.distance[0].round(2)  # the share of pairs that they order differently
    ((('B',), ('A',)), array([0.  , 0.33]))
    """

    methods: tuple[str, ...]
    winners: tuple[tuple[Hashable, ...], ...]
    distance: Floats
    contested: tuple[Contested, ...]
    tied_by_some: int
    pairs: int


def compare_methods(
    data: Rankings | Comparisons, methods: Sequence[Any] | None = None, first: tuple[str, Above] | None = None
) -> RuleAgreement:
    """Run several methods (names, functions) on the same data and compare them pair by pair.

    ``first`` is an additional method, given by its name and outcome.  O(methods n^2) plus the runs of the methods.

    Returns
    -------
    RuleAgreement
        Winners, distances between methods, and the pairs on which they disagree.

    >>> import placet
    >>> votes = placet.Rankings.from_orders([["A", "B", "C"]] * 3 + [["B", "C", "A"]] * 2)
    >>> compare_methods(votes, ["borda", "plurality"]).winners
    (('B',), ('A',))
    """
    chosen = usual_rivals(data) if methods is None else methods
    outcomes = dict([first] if first else [])
    for method in map(as_method, chosen):
        if method.name not in outcomes:
            outcomes[method.name] = method.outcome(data)
    names, n = tuple(outcomes), data.n_items
    x, y = np.triu_indices(n, 1)
    sign = np.array([a[x, y].astype(np.int64) - a[y, x] for a in outcomes.values()])
    distance = np.array([[np.abs(s - t).mean() / 2 if len(x) else 0.0 for t in sign] for s in sign])
    opposed = (sign > 0).any(axis=0) & (sign < 0).any(axis=0)
    tied_by_some = (sign != sign[:1]).any(axis=0) & ~opposed
    which = np.flatnonzero(opposed)[np.argsort(np.abs(sign[:, opposed].sum(axis=0)), kind="stable")]
    contested = tuple(_contested_pair(data.items[x[k]], data.items[y[k]], names, sign[:, k]) for k in which)
    winners = tuple(tuple(data.items[k] for k in tiers(a)[0]) if n else () for a in outcomes.values())
    return RuleAgreement(names, winners, distance, contested, int(tied_by_some.sum()), len(x))


def usual_rivals(data: Rankings | Comparisons) -> list[str]:
    """The rules that an audit compares unless others are named."""
    kind = "votes" if isinstance(data, Comparisons) else "ballots"
    return [name for name, method in METHODS.items() if kind in method.compared]


def _contested_pair(x: Hashable, y: Hashable, names: tuple[str, ...], sign: Any) -> Contested:
    return Contested(x, y, *(tuple(name for name, s in zip(names, sign) if s == way) for way in (1, -1, 0)))
