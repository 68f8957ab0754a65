"""Which pairs of items depend on the rule that is chosen."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placet.axioms.outcome import Relation, relation, rule_of, tiers
from placet.data import Comparisons, Rankings
from placet.data.arrays import Floats

OF_BALLOTS = ("borda", "plurality", "anti-plurality", "log", "squared", "copeland", "median-rank", "kemeny-local")
OF_PAIRS = ("borda", "copeland", "kemeny-local", "mc4")


@dataclass(frozen=True)
class Contested:
    """A pair that rules order in opposite ways: who puts ``x`` above ``y``, who puts it below, and who ties the two."""

    x: Hashable
    y: Hashable
    above: tuple[str, ...]
    below: tuple[str, ...]
    level: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Agreement:
    """Several rules on the same ballots.

    ``winners`` of each rule (several where they tie); ``distance`` (rules, rules) is the share of pairs on which two
    rules differ, a tie against an order counting half; ``contested`` are the pairs that two rules order in opposite
    ways, most evenly split first; ``levelled`` is how many others some rule ties and another orders, ``pairs`` how many
    there are in all.
    """

    rules: tuple[str, ...]
    winners: tuple[tuple[Hashable, ...], ...]
    distance: Floats
    contested: tuple[Contested, ...]
    levelled: int
    pairs: int


def agreement(
    data: Rankings | Comparisons, rules: Sequence[Any] | None = None, known: tuple[str, Relation] | None = None
) -> Agreement:
    """Run several rules (names, functions) on the same data and compare them pair by pair.  O(rules n^2) and runs.

    ``known`` is one more rule, whose outcome is there already.
    """
    chosen = rules if rules is not None else OF_PAIRS if isinstance(data, Comparisons) else OF_BALLOTS
    outcomes = dict([known] if known else [])
    for rule in map(rule_of, chosen):
        if rule.name not in outcomes:
            outcomes[rule.name] = relation(rule.run(data), data.n_items)
    names, n = tuple(outcomes), data.n_items
    x, y = np.triu_indices(n, 1)
    sign = np.array([a[x, y].astype(np.int64) - a[y, x] for a in outcomes.values()])
    distance = np.array([[np.abs(s - t).mean() / 2 if len(x) else 0.0 for t in sign] for s in sign])
    opposed = (sign > 0).any(axis=0) & (sign < 0).any(axis=0)
    levelled = (sign != sign[:1]).any(axis=0) & ~opposed
    which = np.flatnonzero(opposed)[np.argsort(np.abs(sign[:, opposed].sum(axis=0)), kind="stable")]
    contested = tuple(_contested(data.items[x[k]], data.items[y[k]], names, sign[:, k]) for k in which)
    winners = tuple(tuple(data.items[k] for k in tiers(a)[0]) if n else () for a in outcomes.values())
    return Agreement(names, winners, distance, contested, int(levelled.sum()), len(x))


def _contested(x: Hashable, y: Hashable, names: tuple[str, ...], sign: Any) -> Contested:
    voices = [tuple(name for name, s in zip(names, sign) if s == way) for way in (1, -1, 0)]
    return Contested(x, y, *voices)
