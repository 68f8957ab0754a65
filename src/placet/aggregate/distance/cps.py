"""The coset-permutation distance based stagewise model (Qin, Geng, Liu): an order is drawn place by place.

After i places are filled, the distance of the partial order from a ballot is the mean distance over all completions.
The next item is drawn with probability proportional to e^{-sum_n t_n (that distance from ballot n)}.
"""

from collections.abc import Hashable, Mapping
from typing import Any, Literal

import numpy as np

from placet.aggregate.data_facts import support, unused_note
from placet.aggregate.instances import Instance, instances
from placet.aggregate.likelihood.prior import check_width
from placet.aggregate.places import ballots_of
from placet.aggregate.result.consensus_set import ConsensusSet
from placet.aggregate.result.result import RELATIVE_TOLERANCE, Consensus
from placet.data import DataError, Rankings
from placet.data.arrays import Floats, Ints
from placet.data.parameters import Estimator
from placet.optim import Fit, lbfgs

Distance = Literal["spearman", "footrule", "kendall"]
STAGES_TAUGHT = 10


class CosetPermutation(Estimator):
    """The consensus puts the most probable item at every place, given the items above it.

    ``distance``: "spearman" (squared differences of places), "footrule" (absolute differences) or "kendall" (pairs).
    On a ballot of m of the M items, places are replaced by the expected ones among all M; an unlisted item may have any
    place.  ``weight``: a mapping of agents to t_n, or None for 1; ``fit(data, truth)`` learns them instead, by maximum
    likelihood of the first 10 places of the labeled orders (ties broken by a seeded shuffle), with a normal prior of
    standard deviation ``prior`` on t_n / mean distance.  ``theta_`` is minus the place.  O(ballots M^2) per instance.

    >>> votes = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"], ["a", "c", "b"]])
    >>> CosetPermutation("kendall").fit(votes).consensus_.ranking
    ['a', 'b', 'c']
    """

    def __init__(
        self,
        distance: Distance = "spearman",
        weight: Mapping[Hashable, float] | None = None,
        prior: float = 10.0,
        random_state: int = 0,
    ):
        self.distance = distance
        self.weight = weight
        self.prior = prior
        self.random_state = random_state

    def fit(self, data: Rankings, truth: Rankings | None = None) -> "CosetPermutation":
        """Fit to ballots; ``truth``: one ballot for each labeled instance, over the same items."""
        self.check_parameters()
        check_width(self.prior, "prior")
        rankings = ballots_of(data, "cps")
        agents = (None,) if rankings.agents is None else rankings.agents
        if truth is not None:
            self.weight_, self.fit_ = self._learn_weights(rankings, truth, len(agents))
        else:
            given = self.weight or {}
            self.weight_ = np.array([float(given.get(name, 1.0)) for name in agents])
            self.fit_ = Fit(
                self.weight_, 0.0, 0.0, 0, True, "weights were given; places are filled one after the other"
            )
        self.theta_ = np.zeros(rankings.n_items)
        found: dict[Hashable, Consensus] = {}
        params, by_agent = self.get_params(deep=False), dict(zip(agents, self.weight_.tolist()))
        notes, alone = (*data.notes, *unused_note(data, "cps")), rankings.instance is None
        about: dict[str, Any] = {"notes": notes, "support": support(data)} if alone else {}
        for one in instances(rankings):
            factor = one.weight * (1.0 if one.agent is None else self.weight_[one.agent])
            scores = place_scores(one, factor, self.distance)
            self.theta_[one.item] = scores
            names = tuple(rankings.items[i] for i in one.item)
            about |= {"method": "cps", "params": params, "fit": self.fit_, "agent_weight": by_agent}
            found[one.name] = Consensus(names, scores, **about)
        several = ConsensusSet(found, method="cps", params=params, set_notes=notes)
        self.consensus_ = found[None] if alone else several
        return self

    def _learn_weights(self, rankings: Rankings, truth: Rankings, n_agents: int) -> tuple[Floats, Fit]:
        if rankings.agent is None or rankings.instance is None or truth.instance is None:
            raise DataError("weights are learned from ballots of named agents, in instances that the truth orders")
        if truth.items != rankings.items:
            raise DataError("the truth must be over the same items as the ballots")
        rng = np.random.default_rng(self.random_state)
        orders = _orders(truth, rng)
        stages = [
            stage
            for one in instances(rankings)
            if one.name in orders
            for stage in _stages(one, orders[one.name], self.distance, n_agents)
        ]
        if not stages:
            raise DataError("no instance of the truth has two items on ballots; weights cannot be learned from it")
        size = np.array([len(stage) for stage in stages])
        first = np.concatenate([[0], np.cumsum(size)[:-1]])  # the chosen item comes first
        cost = np.concatenate(stages)
        scale = float(np.abs(cost).mean()) or 1.0
        cost /= scale

        def loss(z: Floats) -> tuple[float, Floats]:
            u = -(cost @ z)
            top = np.maximum.reduceat(u, first)
            p = np.exp(u - np.repeat(top, size))
            total = np.add.reduceat(p, first)
            value = float((np.log(total) + top - u[first]).sum())
            p /= np.repeat(total, size)
            p[first] -= 1.0
            penalty = z / self.prior**2
            return (value + 0.5 * float(penalty @ z)) / len(size), (penalty - p @ cost) / len(size)

        fit = lbfgs(loss, np.full(n_agents, 1.0 / n_agents), tol=1e-5, max_iter=300)
        return fit.x / scale, fit


def place_scores(one: Instance, factor: Floats, distance: str) -> Floats:
    """Minus the place (from 0) of each item; each place goes to the item of least cost, and equal costs tie."""
    M = len(one.item)
    costs = StageCosts(one, distance)
    free = np.ones(M, bool)
    scores = np.zeros(M)
    place = 0
    while place < M:
        left = np.flatnonzero(free)
        table = costs.at(place, left)
        cost = factor @ table if len(factor) else np.zeros(len(left))
        size = float((np.abs(factor) @ np.abs(table)).max(initial=0.0)) if len(factor) else 0.0  # costs may cancel
        chosen = left[cost <= cost.min() + RELATIVE_TOLERANCE * size]
        scores[chosen] = -(place + (len(chosen) - 1) / 2)
        free[chosen] = False
        place += len(chosen)
    return scores


class StageCosts:
    """Increase of the mean distance from every ballot when an item takes a place, up to a term common to all items."""

    def __init__(self, one: Instance, distance: str) -> None:
        self.distance = distance
        self.M = len(one.item)
        self.own = one.place if distance == "kendall" else one.expected()
        self.here = ~np.isnan(self.own)

    def at(self, place: int, left: Ints) -> Floats:
        """Costs (ballots, left) of the remaining items at ``place`` (from 0); the expected cost for unlisted items."""
        own, here, M = self.own[:, left], self.here[:, left], self.M
        if self.distance == "spearman":  # (i - x)^2 - mean_{p > i} (p - x)^2 = const + (mean p - i) 2 x
            gap = (M + place + 2) / 2 - (place + 1)
            return 2 * gap * np.where(here, own, (M + 1) / 2)
        if self.distance == "footrule":
            anywhere = np.arange(1, M + 1, dtype=np.float64)[None, :]
            return np.where(here, _footrule(own, place, M), _footrule(anywhere, place, M).mean())
        # remaining items that the ballot ranks above it (ties count half), minus the half expected at random
        above = (own[:, None, :] < own[:, :, None]).sum(axis=2) + 0.5 * (
            (own[:, None, :] == own[:, :, None]).sum(axis=2) - here
        )
        others = here.sum(axis=1, keepdims=True) - here
        return np.where(here, above - others / 2, 0.0)


def _footrule(own: Floats, place: int, M: int) -> Floats:
    """abs(i - x) - mean over later places p of abs(p - x), for i = place + 1 and every x in ``own``."""
    later = np.arange(place + 2, M + 1)
    rest = np.abs(own[:, :, None] - later).mean(axis=2) if len(later) else 0.0
    return np.abs(own - (place + 1)) - rest


def _orders(truth: Rankings, rng: np.random.Generator) -> dict[Hashable, Ints]:
    """Item codes of each instance's ballot, best first, ties shuffled."""
    names = truth.instances or ()
    found: dict[Hashable, Ints] = {}
    for b in range(len(truth)):
        rows = np.arange(truth.offsets[b], truth.offsets[b + 1])
        rows = rows[np.lexsort((rng.random(len(rows)), truth.tier[rows]))]
        found[names[truth.instance[b]]] = truth.item[rows]  # type: ignore[index]
    return found


def _stages(one: Instance, order: Ints, distance: str, n_agents: int) -> Any:
    """Yield the costs (remaining items, agents) for each of the first places, starting with the true item."""
    costs = StageCosts(one, distance)
    number = {int(i): k for k, i in enumerate(one.item)}
    mine = [number[int(i)] for i in order if int(i) in number]
    for place in range(min(len(mine) - 1, STAGES_TAUGHT)):
        left = np.array(mine[place:])
        by_ballot = costs.at(place, left) * one.weight[:, None]
        table = np.zeros((n_agents, len(left)))
        np.add.at(table, np.asarray(one.agent), by_ballot)
        yield np.ascontiguousarray(table.T)
