"""Scores that drift: do intervals cover at the end and over time, for slow, usual and fast drift that is learned?

    python -m experiments.uncertainty.drifting [--quick] [--seed N] [--only WORD ...]      # from the project's root

Items move by a random walk; every step has the same number of votes between random items.  The width of first scores and
of a step is learned from the votes.  At level 0.95 intervals of the scores at the last step, and of the scores at all
steps, must cover.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.special import expit

import placet
from experiments.kept_cells import Cell, check_cells
from placet import Comparisons

ITEMS = 10
Z = 1.959964
QUICK = ((0.05, 12, 40), (0.6, 12, 40))
FULL = tuple((drift, steps, votes) for drift in (0.05, 0.2, 0.6) for steps, votes in ((5, 60), (12, 40), (25, 100)))


def world(drift: float, steps: int, votes: int, seed: int) -> tuple[np.ndarray, Comparisons]:
    """True scores (steps, items), with mean zero at the last step, and votes."""
    rng = np.random.default_rng(seed)
    theta = np.cumsum(np.vstack([rng.normal(size=ITEMS), drift * rng.normal(size=(steps - 1, ITEMS))]), axis=0)
    t = np.repeat(np.arange(steps), votes)
    i = rng.integers(0, ITEMS, len(t))
    j = (i + rng.integers(1, ITEMS, len(t))) % ITEMS
    won = rng.random(len(t)) < expit(theta[t, i] - theta[t, j])
    data = Comparisons.from_battles(i, j, np.where(won, "a", "b"), items=range(ITEMS), time=t.astype(float))
    return theta - theta[-1].mean(), data


def drifting(drift: float, steps: int, votes: int, runs: int, seed: int) -> Iterator[tuple[str, float]]:
    """Coverage at the last step and at all, the claimed over the true error at the last, and the median learned drift."""
    last, every, claimed, missed, learned = [], [], [], [], []
    for run in range(runs):
        theta, data = world(drift, steps, votes, seed + run)
        board = placet.consensus(data, "bradley-terry", drift="learn", step=1.0)
        low, high = board.interval()
        last.append((low <= theta[-1]) & (theta[-1] <= high))
        claimed.append(board.stderr)
        missed.append(board.scores - theta[-1])
        learned.append(board.drift)
        for t in range(steps):
            score, error = board.timeline.at_step(float(t))
            every.append(np.abs(score - theta[t]) <= Z * error)
    name = f"simulated, drift {drift:g}, {steps} steps of {votes} votes"
    yield f"{name}, last scores covered", float(np.mean(last))
    yield f"{name}, all scores covered", float(np.mean(every))
    yield f"{name}, claimed over true", float(np.sqrt(np.mean(np.square(claimed)) / np.mean(np.square(missed))))
    yield f"{name}, median learned drift", float(np.median(learned))


def cells(quick: bool, seed: int) -> Iterator[Cell]:
    for drift, steps, votes in QUICK if quick else FULL:
        name = f"simulated, drift {drift:g}, {steps} steps of {votes} votes"
        yield name, partial(drifting, drift, steps, votes, 30 if quick else 150, seed)


def main() -> None:
    check_cells(cells, __doc__, __file__)


if __name__ == "__main__":
    main()
