"""Polls of simulated voters: how many votes a goal takes, by a rule of asking and a stop at every look."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy

from placet.aggregate.asking.goal_evidence import GoalEvidence
from placet.aggregate.asking.head_to_head import HeadToHead
from placet.aggregate.asking.pair_evidence import log_evidence
from placet.aggregate.asking.pairs_to_ask import Chance, batch
from placet.aggregate.goal_verdict import Goal, ask_question
from placet.data.arrays import Floats, Ints

PRIOR = 2.0
"""Standard deviation of the scores' prior while a simulated poll runs."""

NEWTON_STEPS = 3

Rule = Callable[["SimulatedPoll", int], list[tuple[int, int]]]
"""``rule(poll, n)``: the next n pairs to ask about."""


@dataclass
class SimulatedPoll:
    """A poll about items of true scores ``theta``, whose voters answer by Davidson's model: odds e^d, and a tie with
    the odds e^``tie`` to the geometric mean of the two.
    """

    theta: Floats
    goal: Goal
    rng: np.random.Generator
    tie: float = -np.inf
    votes: int = 0
    won: Floats = field(init=False)
    scores: Floats = field(init=False)
    covariance: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.theta = np.asarray(self.theta, np.float64)
        n = len(self.theta)
        self.won = np.zeros((n, n))
        self.scores, self.covariance = np.zeros(n), PRIOR**2 * np.eye(n)

    def ask(self, i: int, j: int) -> None:
        """One voter's answer about two items."""
        half = (self.theta[i] - self.theta[j]) / 2
        chances = np.exp([half, -half, self.tie])
        drawn = self.rng.random() * chances.sum()
        self.votes += 1
        if drawn < chances[0]:
            self.won[i, j] += 1
        elif drawn < chances[0] + chances[1]:
            self.won[j, i] += 1

    def fit(self) -> None:
        """Scores by the decided votes with a normal prior, and their covariance, from the last fit on."""
        met = self.won + self.won.T
        for _ in range(NEWTON_STEPS):
            share = scipy.special.expit(self.scores[:, None] - self.scores)
            slope = (self.won - met * share).sum(axis=1) - self.scores / PRIOR**2
            weight = met * share * share.T
            hessian = np.diag(weight.sum(axis=1) + 1 / PRIOR**2) - weight
            self.covariance = np.linalg.inv(hessian)
            self.scores = self.scores + np.clip(self.covariance @ slope, -2.0, 2.0)

    def standing(self) -> GoalEvidence:
        """What the votes prove so far."""
        i, j = np.nonzero(np.triu(self.won + self.won.T, 1))
        counts = HeadToHead(tuple(range(len(self.theta))), i, j, self.won[i, j], self.won[j, i])
        return GoalEvidence(counts, np.argsort(-self.scores, kind="stable"), self.goal)

    def chance(self) -> Chance:
        """How often the higher of two items is expected to win and to lose."""
        variance = np.diag(self.covariance)
        spread = np.maximum(variance[:, None] + variance - 2 * self.covariance, 0.0)

        def chance(high: Ints, low: Ints) -> tuple[Floats, Floats]:
            gap = np.sqrt((self.scores[high] - self.scores[low]) ** 2 + spread[high, low])
            return scipy.special.expit(gap), scipy.special.expit(-gap)

        return chance

    def run(self, rule: Rule, most: int, n: int = 1, look: "Callable[[SimulatedPoll], bool] | None" = None) -> bool:
        """Ask by a rule, ``n`` pairs at a time, until the goal is reached; False if it is not by ``most`` votes.

        Every vote is looked at; ``look(poll)``, if given, is called when a statement may have become known, and stops
        the poll if it is true.
        """
        stop = look or (lambda poll: poll.standing().is_reached())
        near = self.standing().bound - np.log(len(self.theta))
        while self.votes < most:
            self.fit()
            for i, j in rule(self, n):
                self.ask(i, j)
                known = log_evidence(*([self.won[i, j], self.won[j, i]], [self.won[j, i], self.won[i, j]])).max()
                if known >= near and stop(self):
                    return True
                if self.votes >= most:
                    break
        return False


def by_plan(poll: SimulatedPoll, n: int) -> list[tuple[int, int]]:
    """The rule of `placet.aggregate.asking.pairs_to_ask`."""
    return batch(poll.standing(), poll.chance(), n) or uniformly(poll, n)


def uniformly(poll: SimulatedPoll, n: int) -> list[tuple[int, int]]:
    """Every pair equally often, at random."""
    size = len(poll.theta)
    first, step = poll.rng.integers(0, size, n), poll.rng.integers(1, size, n)
    return list(zip(first.tolist(), ((first + step) % size).tolist()))


def votes_needed(
    theta: Sequence[float] | Floats,
    goal: Goal | str,
    *,
    rule: Rule = by_plan,
    tie: float = -np.inf,
    runs: int = 50,
    most: int = 100_000,
    n: int = 5,
    random_state: int = 0,
) -> Floats:
    """The votes after which simulated polls about items of scores ``theta`` reach a goal, such as "best" or "top:3".

    Returns
    -------
    array (runs,)
        Infinite where a poll did not reach it by ``most`` votes.

    >>> votes_needed([2.0, 0.0], "best", runs=3)
    array([10., 13., 22.])
    """
    found = []
    if isinstance(goal, str):
        goal = ask_question({k: k for k in range(len(theta))}, goal, None, None, 0.95, 0.0)
    for rng in np.random.default_rng(random_state).spawn(runs):
        order = rng.permutation(len(theta))  # the numbers of the items tell nothing
        poll = SimulatedPoll(np.asarray(theta, np.float64)[order], goal, rng, tie)
        found.append(float(poll.votes) if poll.run(rule, most, n) else np.inf)
    return np.array(found)
