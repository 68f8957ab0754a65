"""Simulated sources of evidence about the same items, and benchmark tables with holes."""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from placet.data import Scores, Sources
from placet.simulate.orders import Seed, finite_column, names
from placet.simulate.votes import battles


def judged_votes(
    theta: ArrayLike,
    n_votes: int,
    n_judged: int,
    *,
    scale: float = 1.3,
    width: float = 0.3,
    tie: float = -np.inf,
    items: Sequence[Hashable] | None = None,
    random_state: Seed = 0,
) -> Sources:
    """Votes of people ("human", the target) with scores theta, and of a judge ("judge") who sees
    ``scale`` (theta + deviations), the deviations being normal with standard deviation ``width``.

    Returns
    -------
    Sources
        The votes of both, with "human" as the target.

    >>> judged_votes([1.0, 0.0, -1.0], 50, 200)
    Sources(human (target): 50 votes, judge: 200 votes; 3 items)
    """
    theta = finite_column(theta, "theta")
    rng = np.random.default_rng(random_state)
    seen = scale * (theta + width * rng.standard_normal(len(theta)))
    first, second = rng.spawn(2)
    given = {"tie": tie, "items": names(items, len(theta))}
    human = battles(theta, n_votes, random_state=first, **given)  # type: ignore[arg-type]
    judge = battles(seen, n_judged, random_state=second, **given)  # type: ignore[arg-type]
    return Sources({"human": human, "judge": judge}, target="human")


def benchmark_table(
    theta: ArrayLike,
    difficulty: ArrayLike,
    *,
    slope: ArrayLike | None = None,
    dispersion: float = 0.05,
    observed: float = 0.5,
    items: Sequence[Hashable] | None = None,
    random_state: Seed = 0,
) -> Scores:
    """Shares of questions solved, beta with mean expit(slope_t (theta_i - difficulty_t)) and variance
    p (1 - p) ``dispersion``; each cell is there with probability ``observed``, and one at least of each item and task.

    Returns
    -------
    Scores
        The shares of questions solved (items, tasks); missing where they were not observed.

    >>> benchmark_table([1.0, 0.0, -1.0], [0.0, 0.5], observed=1.0)
    Scores(3 items, 2 tasks, 6 scores)
    """
    theta, difficulty = finite_column(theta, "theta"), finite_column(difficulty, "difficulty")
    s = np.ones(len(difficulty)) if slope is None else finite_column(slope, "slope")
    if not 0 < dispersion < 1:
        raise ValueError(f"dispersion must be between 0 and 1, not {dispersion}")
    rng = np.random.default_rng(random_state)
    p = expit(s * (theta[:, None] - difficulty))
    n = 1 / dispersion - 1
    table = rng.beta(np.maximum(p * n, 1e-6), np.maximum((1 - p) * n, 1e-6))
    there = rng.random(table.shape) < observed
    there[np.arange(len(theta)), rng.integers(len(difficulty), size=len(theta))] = True
    there[rng.integers(len(theta), size=len(difficulty)), np.arange(len(difficulty))] = True
    table[~there] = np.nan
    return Scores.from_table(table, items=names(items, len(theta)), tasks=[f"task {t}" for t in range(len(difficulty))])
