"""Many simulated polls at once: all runs of a cell vote in step, and the library decides what is known.

Each run is a `SimulatedPoll` of the library whose table of votes is a slice of one array, so that drawing a vote and
counting it is one operation for all runs.  What is asked comes from the library's rule, and whether something has been
proven from its `GoalEvidence`; only *when* to call that is decided here: whenever a vote may have made a statement of
the kind that is waited for, with half a unit of log evidence to spare, and every 500 votes in any case.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from placet.aggregate.asking import pair_evidence
from placet.aggregate.asking.goal_evidence import GoalEvidence
from placet.aggregate.asking.pairs_to_ask import batch
from placet.aggregate.asking.simulated_poll import SimulatedPoll, uniformly
from placet.aggregate.goal_verdict import Goal

AHEAD = 40
"""Pairs listed at a time, as in polls of the studio; every vote is looked at all the same."""

SLACK = 0.5
SPOT = 500


Pairs = tuple[np.ndarray, np.ndarray]
Asking = Callable[["Crowd"], Pairs]
"""``asking(crowd)``: the numbers of the two items that each run asks about next, (runs,) and (runs,)."""


@lru_cache(maxsize=1)
def _evidence_table(size: int) -> np.ndarray:
    """(size, size): the library's log evidence after so many wins and losses."""
    count = np.arange(float(size))
    return np.stack([pair_evidence.log_evidence(wins, count) for wins in count])


class Crowd:
    """``runs`` polls about items of true scores ``theta``, in an order of their own each."""

    def __init__(self, theta: np.ndarray, goal: Goal, runs: int, most: int, seed: int, tie: float = -np.inf) -> None:
        self.rng = np.random.default_rng(seed)
        self.n, self.goal, self.most = len(theta), goal, most
        self.theta = self.rng.permuted(np.tile(np.asarray(theta, np.float64), (runs, 1)), axis=1)
        self.won = np.zeros((runs, self.n, self.n))
        self.log_evidence = np.zeros((runs, self.n, self.n))
        self.polls = [SimulatedPoll(one, goal, self.rng, tie) for one in self.theta]
        for poll, table in zip(self.polls, self.won):
            poll.won = table
        self.bound = self.polls[0].standing().bound
        self.tie = float(np.exp(tie))
        self.every, self.votes = np.arange(runs), 0
        self.alive, self.hot = np.ones(runs, bool), np.zeros(runs, bool)
        self.doubted = np.zeros((runs, self.n), bool)
        self._listed: list[list[tuple[int, int]]] = []

    def vote(self, i: np.ndarray, j: np.ndarray, *, evidence: bool = True) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """One answer in every run: the runs that are still going and whose voter decided, the winners and losers.

        ``evidence``: keep its table, too.
        """
        half = (self.theta[self.every, i] - self.theta[self.every, j]) / 2
        first, second = np.exp(half), np.exp(-half)
        drawn = self.rng.random(len(i)) * (first + second + self.tie)
        winner, loser = np.where(drawn < first, i, j), np.where(drawn < first, j, i)
        runs = np.flatnonzero((drawn < first + second) & self.alive)
        winner, loser = winner[runs], loser[runs]
        self.won[runs, winner, loser] += 1
        self.votes += 1
        for a, b in ((winner, loser), (loser, winner)) if evidence else ():
            self.log_evidence[runs, a, b] = self._evidence(self.won[runs, a, b], self.won[runs, b, a])
        return runs, winner, loser

    def _evidence(self, won: np.ndarray, lost: np.ndarray) -> np.ndarray:
        size = self.most // 2 + 300
        if max(won.max(initial=0), lost.max(initial=0)) >= size:
            return pair_evidence.log_evidence(won, lost)
        return _evidence_table(size)[won.astype(np.int64), lost.astype(np.int64)]

    def near(self, runs: np.ndarray, winner: np.ndarray, loser: np.ndarray, false: bool) -> np.ndarray:
        """Of these runs, those in which a statement may have been made, or a ``false`` one.

        A false one follows from a step that is false, or from evidence that adds up against a best item.  It may be
        made later than that, so a run in which this has happened is looked at after every vote from then on.
        """
        best = self.goal.name == "best"
        if false:
            here = self.theta[runs, loser]
            may = here == self.theta[runs].max(axis=1) if best else self.theta[runs, winner] <= here
        else:
            may = np.ones(len(runs), bool)
        own, high, low = runs[may], winner[may], loser[may]
        if best and len(own):
            column = self.log_evidence[own, :, low]
            column[np.arange(len(own)), low] = -np.inf
            total = np.logaddexp.reduce(column, axis=1)
        else:
            total = self.log_evidence[own, high, low]
        reached = total >= self.bound - SLACK
        if not false and best:
            return own[reached]
        if best:  # a name needs all best items but one, at least, to be excluded
            self.doubted[own[reached], low[reached]] = True
            own = own[reached]
            n_best = (self.theta[own] == self.theta[own].max(axis=1, keepdims=True)).sum(axis=1)
            self.hot[own[self.doubted[own].sum(axis=1) >= n_best - 1]] = True
        else:
            self.hot[own[reached]] = True
        return runs[self.hot[runs]]

    def standing(self, run: int) -> GoalEvidence:
        return self.polls[run].standing()

    def run(
        self, asking: Asking, is_over: Callable[[GoalEvidence, np.ndarray], bool], *, false: bool = False
    ) -> np.ndarray:
        """(runs,): the votes after which ``is_over(standing, true scores)`` first held; infinite if it never did.

        ``false``: what is waited for is a false statement.
        """
        found = np.full(len(self.every), np.inf)
        while self.votes < self.most and self.alive.any():
            voted = self.vote(*asking(self))
            look = np.flatnonzero(self.alive) if self.votes % SPOT == 0 else self.near(*voted, false)
            for run in look.tolist():
                if is_over(self.standing(run), self.theta[run]):
                    found[run], self.alive[run] = self.votes, False
        return found


def uniform(crowd: Crowd) -> Pairs:
    """Every pair equally often, at random."""
    first = crowd.rng.integers(0, crowd.n, len(crowd.every))
    return first, (first + crowd.rng.integers(1, crowd.n, len(crowd.every))) % crowd.n


def by_our_rule(crowd: Crowd) -> Pairs:
    """The library's list of the next pairs, renewed when it has been asked."""
    if crowd.votes % AHEAD == 0:
        crowd._listed = [_list(poll) if alive else [(0, 1)] for poll, alive in zip(crowd.polls, crowd.alive)]
    now = np.array([one[crowd.votes % AHEAD % len(one)] for one in crowd._listed])
    return now[:, 0], now[:, 1]


def _list(poll: SimulatedPoll) -> list[tuple[int, int]]:
    poll.fit()
    return batch(poll.standing(), poll.chance(), AHEAD, AHEAD) or uniformly(poll, AHEAD)


def adversary(crowd: Crowd) -> Pairs:
    """Knows the truth and asks about the false statement that is nearest to being made; gives a pair up when a new one
    is nearer.  It stops when one is made, since every vote is looked at.
    """
    false = crowd.theta[:, :, None] <= crowd.theta[:, None]
    false[:, np.arange(crowd.n), np.arange(crowd.n)] = False
    if crowd.goal.name != "order":  # only these are harmful: about a best item, or across the border of the top
        level = np.sort(crowd.theta, axis=1)[:, ::-1][:, crowd.goal.k - 1, None]
        false &= (crowd.theta >= level)[:, None] & (crowd.theta <= level)[:, :, None]
    value = np.where(false, crowd.log_evidence + 1e-9 * crowd.rng.random(false.shape), -np.inf)
    at = value.reshape(len(value), -1).argmax(axis=1)
    return at // crowd.n, at % crowd.n
