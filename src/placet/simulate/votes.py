"""Simulated pairwise results from Bradley-Terry, Rao-Kupper, Davidson and the multinomial preference model."""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.data import Comparisons
from placet.data.arrays import Floats, Ints
from placet.data.engines.memory import refuse_square
from placet.data.errors import one_of
from placet.losses.pairwise import PAIR_MODELS, outcome_probabilities
from placet.simulate.orders import Seed, finite_column, join_chunks, names


def battles(
    theta: ArrayLike,
    n_votes: int,
    *,
    model: str = "davidson",
    tie: float = 0.0,
    first: float = 0.0,
    items: Sequence[Hashable] | None = None,
    random_state: Seed = 0,
) -> Comparisons:
    """Votes on uniformly drawn ordered pairs (i, j), with d = theta_i + ``first`` - theta_j.

    "bradley-terry": P(i wins) = 1 / (1 + e^-d), and no ties.
    "rao-kupper": P(i) = 1 / (1 + theta e^-d), P(j) = 1 / (1 + theta e^d), theta = 1 + e^tie; the rest are ties.
    "davidson": i, j and a tie have weights e^(d/2), e^(-d/2) and e^tie.

    ``tie`` is the parameter that ``BradleyTerry(ties=model)`` estimates; at -inf there are no ties.  Which item came
    first is recorded unless ``first`` is 0.  O(n_votes).

    Returns
    -------
    Comparisons
        The votes, counted by pair.

    >>> battles([0.0, 0.0], 1000, model="davidson", tie=0.0).ties  # about one in three
    array([330.])
    """
    theta = finite_column(theta, "theta")
    one_of(model, PAIR_MODELS, "model")
    if len(theta) < 2:
        raise ValueError("battles need at least 2 items")
    rng = np.random.default_rng(random_state)
    i = rng.integers(len(theta), size=n_votes)
    j = (i + rng.integers(1, len(theta), size=n_votes)) % len(theta)
    win, _, tied = outcome_probabilities(theta[i] + first - theta[j], model, tie)
    u = rng.random(n_votes)
    won, drawn = (u < win).astype(np.float64), ((u >= win) & (u < win + tied)).astype(np.float64)
    return Comparisons(i, j, won, 1 - won - drawn, drawn, items=names(items, len(theta)), ordered=first != 0)


def multinomial_preferences(
    theta: ArrayLike,
    n_draws: int | ArrayLike,
    *,
    adherence: ArrayLike | None = None,
    gamma: ArrayLike | None = None,
    items: Sequence[Hashable] | None = None,
    random_state: Seed = 0,
) -> Comparisons:
    """Counts of preferences i > j: P(i > j) ~ exp(a (theta_i - theta_j) / (gamma_i + gamma_j)) over all i != j.

    ``adherence``: a number a >= 0 for each agent (by default one agent with a = 1, and no agent column); at 0 an agent
    answers at random.  ``n_draws``: the total number, each from a uniformly drawn agent, or one number for each agent.
    ``gamma``: the items' variances; without them gamma_i + gamma_j is 1 and a draw costs O(log n_items), because winner
    and loser are independent given that they differ; with them O(n_items^2) for each agent.

    Returns
    -------
    Comparisons
        How often each item was preferred to each other, by agent if ``adherence`` is given.

    >>> multinomial_preferences([2.0, 0.0, -2.0], 100, random_state=0)
    Comparisons(3 pairs, 3 items, 100 votes)
    """
    theta = finite_column(theta, "theta")
    if len(theta) < 2:
        raise ValueError("preferences need at least 2 items")
    follow = np.ones(1) if adherence is None else finite_column(adherence, "adherence")
    if (follow < 0).any():
        raise ValueError(f"adherence must not be negative: agent {int((follow < 0).argmax())} has {follow.min():g}")
    rng = np.random.default_rng(random_state)
    n_agents = len(follow)
    whole = np.asarray(n_draws)
    count = rng.multinomial(int(whole), np.full(n_agents, 1 / n_agents)) if whole.ndim == 0 else whole.astype(np.int64)
    if count.shape != (n_agents,) or (count < 0).any():
        raise ValueError(f"n_draws must be a number or {n_agents} numbers >= 0, not {count.tolist()}")
    winners, losers, wins = [], [], []
    for a, n in zip(follow, count):
        drawn = _pairs(a * theta, int(n), rng) if gamma is None else _table(a, theta, gamma, int(n), rng)
        winner, loser, times = drawn
        winners.append(winner)
        losers.append(loser)
        wins.append(times)
    agent = np.repeat(np.arange(n_agents), [len(x) for x in winners])
    i, j, times = join_chunks(winners), join_chunks(losers), join_chunks(wins).astype(np.float64)
    none = np.zeros(len(i))
    voters = {} if adherence is None else {"agent": agent, "agents": tuple(range(n_agents))}
    return Comparisons(i, j, times, none, none, items=names(items, len(theta)), **voters)  # type: ignore[arg-type]


def _pairs(s: Floats, n: int, rng: np.random.Generator) -> tuple[Ints, Ints, Ints]:
    """n draws of (winner, loser) with weight e^(s_i - s_j), i != j: two independent draws, repeated if they agree."""
    up, down = _cumulative(s), _cumulative(-s)
    winner, loser = np.zeros(n, np.int64), np.zeros(n, np.int64)
    left = np.arange(n)
    while len(left):  # at most half of the draws agree
        winner[left] = np.searchsorted(up, rng.random(len(left)), side="right")
        loser[left] = np.searchsorted(down, rng.random(len(left)), side="right")
        left = left[winner[left] == loser[left]]
    return winner, loser, np.ones(n, np.int64)


def _cumulative(s: Floats) -> Floats:
    """Distribution function of softmax(s); the last entry is 1."""
    total = np.cumsum(np.exp(s - s.max()))
    return total / total[-1]


def _table(a: float, theta: Floats, gamma: ArrayLike, n: int, rng: np.random.Generator) -> tuple[Ints, Ints, Ints]:
    """n draws as counts over all pairs."""
    variance = finite_column(gamma, "gamma")
    if variance.shape != theta.shape or (variance <= 0).any():
        raise ValueError(f"gamma must be a number above 0 for each of the {len(theta)} items")
    refuse_square(len(theta), "a table of all pairs", "draw with fewer items, or all gamma equal", 5.0)
    log_weight = a * (theta[:, None] - theta) / (variance[:, None] + variance)
    weight = np.exp(log_weight - log_weight.max())
    np.fill_diagonal(weight, 0.0)
    count: NDArray[np.int64] = rng.multinomial(n, (weight / weight.sum()).ravel()).reshape(weight.shape)
    i, j = np.nonzero(count)
    return i, j, count[i, j]
