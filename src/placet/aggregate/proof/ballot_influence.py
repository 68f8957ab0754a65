"""Influence of ballots on the difference of two scores: by the gradients of a likelihood, by points, or by refits."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy

from placet.aggregate.method_table import METHODS, MIXED
from placet.aggregate.mixture.families import family_of
from placet.aggregate.mixture.voters import voters_of
from placet.aggregate.places import tier_starts
from placet.aggregate.proof.removal import Removable
from placet.aggregate.proof.vote_influence import Attack
from placet.aggregate.result import separation
from placet.aggregate.result.result import Consensus
from placet.data import DataError, Rankings
from placet.data.arrays import Floats, Ints, with_columns


class LawInfluence:
    """The influence of ballots under a likelihood, with the prior held at that of all ballots.

    As `placet.aggregate.proof.vote_influence`, with the square of what a ballot moves in place of its curvature.
    """

    def __init__(self, pieces: Removable, method: str, params: Mapping[str, Any]):
        self.pieces = pieces
        data: Rankings = with_columns(pieces.data, agent=None, agents=None)
        by_agent = ("agents", "agent_weight")  # the order of the search needs no raters, and ballots are nobody's here
        model = MIXED[method](**{name: value for name, value in params.items() if name not in by_agent})
        self.voters = voters_of(data)
        self.family = family_of(model, self.voters)
        count = self.voters.count
        _, self.state = self.family.refitted(count, self.family.start(count))

    def effects(self, take: Ints, attack: Attack) -> tuple[float, Floats]:
        """See `RemovalInfluence`."""
        left = self.pieces.data.weight - self.pieces.share(take)
        count = np.bincount(self.voters.unit, left, len(self.voters)).astype(np.float64)
        state = self.family.improve(count, self.state)
        contrast = np.zeros(self.family.size)
        contrast[[attack.a, attack.b]] = 1.0, -1.0
        y = scipy.linalg.solve(self.family.information(count, state), contrast, assume_a="sym")
        away = (self.family.gradient(state) @ y)[self.voters.unit]  # what a ballot adds to the difference
        variance = max(float(contrast @ y), 1e-300)
        scores = self.family.scores(state)
        return _distance(
            attack, float(scores[attack.a] - scores[attack.b]), math.sqrt(variance), -away, away**2, self.pieces
        )


def _distance(
    attack: Attack, gap: float, error: float, moved: Floats, widened: Floats, pieces: Removable
) -> tuple[float, Floats]:
    """How far an attack is from its end, and how much nearer each kind brings it."""
    wider = attack.critical * widened / (2 * error)
    if attack.kind == "split":
        return attack.critical * error - gap, pieces.sums(moved - wider)
    return gap - attack.critical * error, pieces.sums(wider - moved)


class PlaceInfluence:
    """How much higher a ballot places one item than the other, whatever the rule: a guess that refits put right."""

    def __init__(self, pieces: Removable):
        self.pieces, data = pieces, pieces.data
        first, size = tier_starts(data)
        place = first + (size - 1) / 2
        width = np.maximum(np.diff(data.offsets)[data.ballot] - 1, 1)
        self.height = scipy.sparse.csr_matrix(
            (1.0 - place / width + 1e-9, (data.ballot, data.item)), (len(data), data.n_items)
        )

    def effects(self, take: Ints, attack: Attack) -> tuple[float, Floats]:
        """See `RemovalInfluence`."""
        a, b = (self.height[:, k].toarray().ravel() for k in (attack.a, attack.b))
        lead = np.where((a > 0) & (b > 0), a - b, 0.0)
        left = self.pieces.data.weight - self.pieces.share(take)
        gap = float(lead @ left)
        return (-gap, -self.pieces.sums(lead)) if attack.kind == "split" else (gap, self.pieces.sums(lead))


class RefitInfluence:
    """The influence of few things, such as tasks or sources, by running the method without each of them."""

    def __init__(self, pieces: Removable, again: Callable[[Any], Consensus]):
        self.pieces, self.again = pieces, again
        self.known: dict[bytes, Consensus | None] = {}
        self.start = np.zeros(len(pieces.size), np.int64)

    def effects(self, take: Ints, attack: Attack) -> tuple[float, Floats]:
        """See `RemovalInfluence`."""
        here, start = self._distance(take, attack), self._distance(self.start, attack)
        nearer = np.zeros(len(take))
        for kind in np.flatnonzero(self.pieces.size):
            one = self.start.copy()
            one[kind] = 1
            there = self._distance(one, attack)
            nearer[kind] = 0.0 if math.isnan(there) else start - there
        return here, nearer

    def _distance(self, take: Ints, attack: Attack) -> float:
        result = self._result(take)
        if result is None:
            return math.nan
        a, b = attack.a, attack.b
        gap, error = float(result.scores[a] - result.scores[b]), 0.0
        if attack.critical and result.stderr is not None:
            table = separation.difference_errors(result.stderr, result._covariance_or_draws(), None)
            error = float(table[a, b])
        return attack.critical * error - gap if attack.kind == "split" else gap - attack.critical * error

    def _result(self, take: Ints) -> Consensus | None:
        """The result without what is taken; None if there is none, or if it lacks items."""
        key = take.tobytes()
        if key not in self.known:
            found: Consensus | None
            try:
                found = self.again(self.pieces.without(take))
            except DataError:
                found = None
            whole = self.known.get(self.start.tobytes())
            self.known[key] = found if found is None or whole is None or found.items == whole.items else None
        return self.known[key]


def influence_of_ballots(pieces: Removable, method: str, params: Mapping[str, Any]) -> LawInfluence | PlaceInfluence:
    """By the gradients of the method's likelihood, if it has one, else by places."""
    if METHODS[method].law in ("orders", "partitions"):
        return LawInfluence(pieces, method, params)
    return PlaceInfluence(pieces)
