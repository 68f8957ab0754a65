"""Comparison of many systems on the same lists: all pairs, corrected for multiple testing, and tiers of systems."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from placet.data.arrays import Floats, refuse_masked_or_complex
from placet.data.errors import one_of
from placet.metrics.paired import MeanSummary, PairedDifference, compare, sign_patterns, summary
from placet.stats import holm, tiers

CORRECTIONS = ("max-t", "holm", "none")
"""Which p-values decide whether two systems differ."""


@dataclass(frozen=True)
class Pair:
    """Systems ``a`` and ``b``: the paired difference a - b, and its p-values corrected for the number of pairs.

    >>> import placet
    >>> found = placet.metrics.compare_systems({"x": [0.9, 0.8, 0.7], "y": [0.6, 0.7, 0.5]})
    >>> pair = found.pairs[0]
    >>> pair.a, pair.b, round(pair.gap.difference, 2), pair.p_holm
    ('x', 'y', 0.2, 0.25)
    """

    a: str
    b: str
    gap: PairedDifference
    p_holm: float
    p_max_t: float

    def p(self, correction: str) -> float:
        """The p-value under one of ``CORRECTIONS``."""
        return {"max-t": self.p_max_t, "holm": self.p_holm, "none": self.gap.p_value}[correction]


@dataclass(frozen=True)
class Systems:
    """Result of `compare_systems`.  Names are sorted by mean, best first; ``tier`` counts from 1.

    ``n_runs`` is the number of runs (seeds) of each system, ``run_spread`` the standard deviation of the means of its
    runs (NaN with one run).  In ``pairs``, ``a`` has the higher mean over its own lists; on the lists that it shares
    with ``b`` the difference can be negative if the two are undefined on different lists.

    >>> import placet
    >>> found = placet.metrics.compare_systems({"x": [0.9, 0.8, 0.7], "y": [0.9, 0.7, 0.5]})
    >>> found.names, found.tiers()
    (('x', 'y'), [('x', 'y')])
    """

    names: tuple[str, ...]
    summaries: tuple[MeanSummary, ...]
    n_runs: tuple[int, ...]
    run_spread: tuple[float, ...]
    tier: tuple[int, ...]
    pairs: tuple[Pair, ...]
    correction: str
    level: float

    def tiers(self) -> list[tuple[str, ...]]:
        """Groups of systems, best first; no group contains a pair that differs."""
        return [
            tuple(name for name, t in zip(self.names, self.tier) if t == number)
            for number in range(1, max(self.tier, default=0) + 1)
        ]

    def __repr__(self) -> str:
        lines = [f"{len(self.names)} systems, {len(self.pairs)} pairs ({self.correction}, {self.level:g}):"]
        for name, own, runs, tier in zip(self.names, self.summaries, self.n_runs, self.tier):
            seeds = f", {runs} runs" if runs > 1 else ""
            lines.append(f"  tier {tier}  {own.mean:.4f} +- {own.stderr:.4f}  {name}{seeds}")
        return "\n".join(lines)


def compare_systems(
    values: Mapping[str, ArrayLike],
    *,
    correction: str = "max-t",
    level: float = 0.95,
    n_boot: int = 10_000,
    random_state: int = 0,
) -> Systems:
    """Compare every pair of systems on the same lists and sort the systems into tiers.

    ``values``: name -> values of one metric, (lists,), or (runs, lists) for several runs of a system with different
    seeds.  The value of a list is the mean over the runs in which it is defined; lists for which either system is NaN
    are left out of a pair and counted there.  A pair that shares no list has a difference of NaN and p-values of 1, and
    is not counted by the corrections.

    The statistic of a pair is abs(sum d) / sqrt(sum d^2) over its differences d, which increases with Student's t; its
    null distribution is that of random signs, the same sign for all pairs of a list (all 2^n patterns if at most
    ``n_boot``).  "max-t" compares each statistic with the largest over all pairs that are not more significant
    (Westfall and Young's stepdown), so that correlated systems cost little power; "holm" needs no joint distribution.
    Either keeps the probability of any false difference below 1 - ``level``.  Intervals (`compare`) are for a single
    pair.  O(n_boot lists pairs).

    Returns
    -------
    Systems
        Their means, tiers, and the difference of every pair.

    >>> found = compare_systems({"x": [0.9, 0.8, 0.7], "y": [0.6, 0.7, 0.5], "z": [0.1, 0.2, 0.1]}, level=0.7)
    >>> found.tiers()
    [('x',), ('y',), ('z',)]
    >>> [(pair.a, pair.b, pair.gap.p_value, pair.p_holm, pair.p_max_t) for pair in found.pairs]
    [('x', 'y', 0.25, 0.75, 0.25), ('x', 'z', 0.25, 0.75, 0.25), ('y', 'z', 0.25, 0.75, 0.25)]
    """
    one_of(correction, CORRECTIONS, "correction")
    if len(values) < 2:
        raise ValueError(f"{len(values)} systems; give at least two to compare")
    runs = {str(name): _runs(given, str(name)) for name, given in values.items()}
    lengths = {name: table.shape[1] for name, table in runs.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the systems have {lengths} lists; compare values of the same lists in the same order")
    mean = {name: _mean_defined(table) for name, table in runs.items()}
    own = {name: summary(column) for name, column in mean.items()}
    empty = [name for name, one in own.items() if not one.n_lists]
    if empty:
        raise ValueError(f"{empty[0]!r} has no value in any list ({len(empty)} such systems); leave it out")
    names = sorted(runs, key=lambda name: -own[name].mean)
    table = np.column_stack([mean[name] for name in names])
    n = len(names)
    first, second = np.triu_indices(n, 1)
    asked: Any = {"n_boot": n_boot, "level": level, "random_state": random_state}
    gaps = [compare_shared_lists(table[:, i], table[:, j], **asked) for i, j in zip(first, second)]
    p, shared = np.array([gap.p_value for gap in gaps]), np.array([gap.n_lists > 0 for gap in gaps])
    p_holm = np.ones(len(gaps))
    p_holm[shared] = holm(p[shared])
    p_max_t = _stepdown(table[:, first] - table[:, second], n_boot, random_state)
    p_max_t = np.maximum(p_max_t, p)  # their random signs differ, and so could the last digits
    pairs = tuple(
        Pair(names[i], names[j], gap, float(h), float(m))
        for i, j, gap, h, m in zip(first, second, gaps, p_holm, p_max_t)
    )
    above = np.zeros((n, n), np.bool_)
    for i, j, pair in zip(first, second, pairs):
        if pair.p(correction) <= 1.0 - level + 1e-12:
            above[(i, j) if pair.gap.difference > 0 else (j, i)] = True
    score = np.array([own[name].mean for name in names])
    spread = [_spread(runs[name]) for name in names]
    return Systems(
        tuple(names),
        tuple(own[name] for name in names),
        tuple(len(runs[name]) for name in names),
        tuple(spread),
        tuple((tiers(score, above | above.T) + 1).tolist()),
        pairs,
        correction,
        level,
    )


def compare_shared_lists(a: Floats, b: Floats, **asked: Any) -> PairedDifference:
    """`compare`, or a difference of NaN with a p-value of 1 if no list is defined in both."""
    if np.isnan(a - b).all() and len(a):
        nan = float("nan")
        return PairedDifference(nan, nan, nan, asked["level"], 1.0, 0, len(a))
    return compare(a, b, **asked)


def _stepdown(d: Floats, n_flips: int, random_state: int) -> Floats:
    """Westfall and Young's stepdown p-values of the columns of d (lists, pairs), ignoring NaN."""
    d = d[~np.isnan(d).all(axis=1)]  # so that few lists with a value stay few: all their signs are tried
    d = np.where(np.isnan(d), 0.0, d)
    size = np.sqrt((d * d).sum(axis=0))
    unit = np.divide(d, size, out=np.zeros_like(d), where=size > 0)
    seen = np.abs(unit.sum(axis=0))
    order = np.argsort(seen, kind="stable")  # the least significant first
    far = seen[order] * (1 - 1e-12)
    hits, total = np.zeros(d.shape[1]), 0
    for signs, observed in sign_patterns(len(d), n_flips, np.random.default_rng(random_state), d.shape[1]):
        largest = np.maximum.accumulate(np.abs(signs @ unit[:, order]), axis=1)
        hits += (largest >= far).sum(axis=0)
        total += len(signs)
        if observed:
            hits, total = hits + 1, total + 1
    p = np.empty(d.shape[1])
    p[order] = np.maximum.accumulate((hits / total)[::-1])[::-1]
    return p


def _runs(given: ArrayLike, name: str) -> Floats:
    """Values of a system as an array (runs, lists)."""
    refuse_masked_or_complex(given)
    table = np.atleast_2d(np.asarray(given, dtype=np.float64))
    if table.ndim != 2 or not len(table):
        raise ValueError(f"{name!r} has values of shape {np.shape(given)}; they must be (lists,) or (runs, lists)")
    if np.isinf(table).any():
        raise ValueError(f"{name!r}: {int(np.isinf(table).sum())} values are infinite; they have no mean")
    return table


def _mean_defined(table: Floats) -> Floats:
    """Mean over the rows that are not NaN, or NaN if all are."""
    count = (~np.isnan(table)).sum(axis=0)
    total = np.where(np.isnan(table), 0.0, table).sum(axis=0)
    return np.divide(total, count, out=np.full(table.shape[1], np.nan), where=count > 0)


def _spread(table: Floats) -> float:
    """Standard deviation of the means of the runs."""
    if len(table) < 2:
        return float("nan")
    means: Any = [summary(run).mean for run in table]
    return float(np.std(means, ddof=1))
