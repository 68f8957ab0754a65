"""Bootstrap of pair counts: every round starts from the fit and reuses its inverse Hessian."""

from collections.abc import Callable

import numpy as np

from placet.aggregate.likelihood.existence import notes_of_pairs
from placet.aggregate.likelihood.information import WAY_OUT, WHAT, inverse_of
from placet.aggregate.likelihood.prior import without_trend
from placet.aggregate.pairs.pair_likelihood import PairCounts, derivatives, fit_counts, hessian
from placet.aggregate.resample import are_counts, resampled_counts
from placet.aggregate.result.uncertainty import MOST_SIMULATED
from placet.data import Comparisons
from placet.data.arrays import Floats
from placet.data.engines.memory import refuse_square
from placet.kernels.losses import pairs as kernels

MOST_SHARED_STEPS = 30
SHARED_STEP = 1e-4
FARTHEST = 600.0
VOTES_AT_ONCE = 4096


def bootstrap_draws(
    c: Comparisons,
    p: PairCounts,
    x: Floats,
    rounds: int,
    rng: np.random.Generator,
    max_iter: int,
    tol: float,
    progress: Callable[[], None],
) -> Floats:
    """Mean-zero scores (rounds, n_items) fitted to resampled counts of ``c``; ``p`` holds the counts, x is the fit."""
    shared = None
    if c.n_items <= MOST_SIMULATED:
        refuse_square(len(x), WHAT, WAY_OUT)
        shared = inverse_of(hessian(p, derivatives(p, x)))
    draw = sampler(np.concatenate([c.wins_i, c.wins_j, c.ties]), rng)
    draws = np.empty((rounds, c.n_items))
    for k in range(rounds):
        won, lost, tied = (column / p.scale for column in np.split(draw(), 3))
        sample = p._replace(wins_i=won, wins_j=lost, ties=tied)
        if p.precision == 0.0:
            notes_of_pairs(p.i, p.j, won, lost, tied, c.items, None)
        found = None if shared is None else shared_newton(sample, x, shared)
        if found is None:
            found = fit_counts(sample, x, max_iter=max_iter, tol=tol)[0].x
        theta = found[: c.n_items]
        draws[k] = theta - theta.mean()
        progress()
    return draws


def sampler(weight: Floats, rng: np.random.Generator) -> Callable[[], Floats]:
    """A function that resamples the counts.

    If counts are integers and mostly small, drawing every vote is cheaper than one binomial for each cell.  The number
    of draws in each block of votes is drawn first, so that counting stays in cache.
    """
    total = weight.sum()
    occupied = np.flatnonzero(weight)
    if not are_counts(weight) or total == 0 or total > 4 * len(occupied) or total >= 2**31:
        return lambda: resampled_counts(weight, rng)
    cells = np.repeat(occupied, weight[occupied].astype(np.int64)).astype(np.int32)
    n = len(cells)
    share = np.diff(np.append(np.arange(0, n, VOTES_AT_ONCE), n)) / n

    def draw() -> Floats:
        draws_in = rng.multinomial(n, share)
        inside = rng.integers(0, VOTES_AT_ONCE, n - draws_in[-1], dtype=np.uint16)
        last = rng.integers(0, (n - 1) % VOTES_AT_ONCE + 1, draws_in[-1], dtype=np.uint16)
        return kernels.count_draws(cells, VOTES_AT_ONCE, draws_in, np.concatenate([inside, last]), len(weight))

    return draw


def gradients(p: PairCounts) -> Callable[[Floats], Floats]:
    """The gradient as a function of x; plain Bradley-Terry needs one exponential for each item, not for each pair."""
    if p.n_extra or p.model != "bradley-terry":
        return lambda x: derivatives(p, x).gradient
    won, count = p.wins_i + 0.5 * p.ties, p.wins_i + p.wins_j + p.ties
    fixed = np.zeros(p.n_items)
    kernels.scatter(p.i, p.j, won, fixed)

    def gradient(x: Floats) -> Floats:
        if np.ptp(x) > FARTHEST:
            return derivatives(p, x).gradient
        out = p.precision * without_trend(p.trend, x) - fixed
        kernels.expected_wins(np.exp(x - x.max()), p.i, p.j, count, out)
        return out

    return gradient


def shared_newton(p: PairCounts, x: Floats, inverse: Floats) -> Floats | None:
    """Newton steps with the inverse Hessian of another sample; None unless they shrink fast enough to be worthwhile.

    Stops when no score moves by more than SHARED_STEP, far below any standard error that a bootstrap can resolve.
    """
    size = np.inf
    gradient = gradients(p)
    for _ in range(MOST_SHARED_STEPS):
        step = inverse @ gradient(x)
        new = float(np.abs(step).max(initial=0.0))
        if not new < 0.5 * size:
            return None
        x, size = x - step, new
        if p.model == "rao-kupper" and x[p.n_items] <= 0:
            return None
        if size <= SHARED_STEP:
            return x
    return None
