"""Influence of voters: how surprising each one is, and the result without it.

Surprise is the negative log probability of a voter's ballots under the fitted model.  Evidence is the log ratio of that
probability to the one with all scores equal, where every order is equally likely: if negative, the voter agrees with
the others less than a random voter does on average.

Leave-one-out is exact for rules, which are counted again, and a single Newton step for models with derivatives: with
g_n the gradient of voter n's log likelihood and H_n its part of the Hessian H of the objective at the fit,

    theta without n = theta - (H - H_n)^-1 g_n.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from placet.aggregate.consensus_door import check_method, consensus
from placet.aggregate.data_facts import data_kind
from placet.aggregate.instances import refuse_instances
from placet.aggregate.method_table import MIXED, method_of, mixed_model
from placet.aggregate.mixture.families import family_of
from placet.aggregate.mixture.mallows_family import Distances
from placet.aggregate.mixture.voters import Family, Voters, voters_of
from placet.aggregate.result.result import Consensus
from placet.data import Comparisons, DataError, Rankings
from placet.data.arrays import Floats
from placet.data.engines.memory import refuse_table
from placet.threads import algebra_threads

if TYPE_CHECKING:
    import polars as pl

MOST_OWN = 128
"""Maximum unknowns for separate Hessians in leave-one-out steps; beyond, that of all voters is used."""

MOST_ROUNDS = 100
"""Maximum rounds of alternating fits and shares when identifying random voters."""


@dataclass(frozen=True, eq=False)
class Surprise:
    """How well each voter agrees with the fitted model; all columns are (voters,).

    ``surprise``: negative log probability of the voter's ballots.  ``evidence``: log probability of the ballots minus
    that with all scores equal.  ``random``: probability that the voter votes at random, as a ``share`` of all voters
    does; both are estimated by maximum likelihood together with the scores of the others.  ``voters``: names of agents,
    or None for ballots.
    """

    method: str
    voters: tuple[Hashable, ...] | None
    count: Floats
    surprise: Floats
    evidence: Floats
    random: Floats
    share: float

    def to_frame(self) -> "pl.DataFrame":
        """A Polars frame, least evidence first: voter, count, surprise, evidence, random."""
        import polars as pl

        columns = {name: getattr(self, name) for name in ("count", "surprise", "evidence", "random")}
        return pl.DataFrame({"voter": voter_names(self.voters, len(self.count)), **columns}).sort("evidence")


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """The results with one voter left out at a time (or one of those with the same ballot).

    ``scores`` (voters, n_items); ``first``: the items that come first without the voter; ``winners``: those that come
    first with all voters.  ``gap`` (voters,): change of the winners' lead over the best other item when the voter is
    left out; if negative, the voter supports the winner.  ``shift`` (voters,): the largest change of a score.
    ``exact``: whether the scores come from a new count or fit.  ``overall`` (n_items,): the scores with all voters.
    """

    method: str
    items: tuple[Hashable, ...]
    voters: tuple[Hashable, ...] | None
    count: Floats
    scores: Floats
    winners: tuple[Hashable, ...]
    first: tuple[tuple[Hashable, ...], ...]
    gap: Floats
    shift: Floats
    exact: bool
    overall: Floats
    notes: tuple[str, ...] = ()

    @property
    def decisive(self) -> list[int]:
        """Indices of the voters without whom the first items change."""
        return [n for n, first in enumerate(self.first) if self.count[n] > 0 and set(first) != set(self.winners)]

    def to_frame(self) -> "pl.DataFrame":
        """A Polars frame, strongest supporters of the winner first: voter, count, first, gap, shift."""
        import polars as pl

        first = [" = ".join(map(str, names)) for names in self.first]
        columns = {"count": self.count, "first": first, "gap": self.gap, "shift": self.shift}
        return pl.DataFrame({"voter": voter_names(self.voters, len(self.count)), **columns}).sort("gap")


def surprise(data: Rankings | Comparisons, method: str = "plackett-luce", **params: Any) -> Surprise:
    """How surprising every voter is under a model fitted to all; spam and misread scales stand out.

    ``method``: "plackett-luce", "bradley-terry", "pmop", "pmop-fd" or "mallows", with its parameters.  A voter is an
    agent where the data name agents, else a ballot.

    Returns
    -------
    Surprise
        Per voter the evidence of a random ballot against the model, and its posterior probability.

    >>> votes = Rankings.from_orders([["a", "b", "c", "d"]] * 12 + [["b", "a", "c", "d"]] * 6 + [["d", "c", "b", "a"]])
    >>> found = surprise(votes)
    >>> int(found.evidence.argmin()), bool(found.random[18] > 0.9), bool(found.random[0] < 0.1)
    (18, True, True)
    """
    family, voters = _family(data, method, params)
    method = method_of(method).name
    with algebra_threads(family.size):
        _, state = family.refitted(voters.count, family.start(voters.count))
        value = family.log_likelihood(state)
        flat = family.log_likelihood(_without_scores(family, state))
        share, random = _random_and_others(family, voters, state, flat)
    evidence = value - flat
    own = voters.unit
    return Surprise(method, voters.names, voters.given, -value[own], evidence[own], random[own], share)


def _random_and_others(family: Family, voters: Voters, state: Any, flat: Floats) -> tuple[float, Floats]:
    """The share of random voters and each voter's probability, alternating with refits to the others."""
    share, random = random_voters(family.log_likelihood(state) - flat, voters.count)
    for _ in range(MOST_ROUNDS):
        state = family.improve(voters.count * (1 - random), state)
        before = share
        share, random = random_voters(family.log_likelihood(state) - flat, voters.count)
        if abs(share - before) < 1e-5:
            break
    return share, random


def random_voters(evidence: Floats, count: Floats, max_iter: int = 1000) -> tuple[float, Floats]:
    """Maximum likelihood estimate of the share of random voters, and each voter's probability of being one.

    The model is a mixture of p and the uniform distribution with evidence log(p / uniform); its likelihood is concave
    in the share.
    """
    total, share = float(count.sum()), 0.5
    if total <= 0:
        return 0.0, np.zeros(len(evidence))
    for _ in range(max_iter):
        inside = min(max(share, 1e-12), 1 - 1e-12)
        random = expit(np.log(inside) - np.log1p(-inside) - evidence)
        new = float(count @ random) / total
        if abs(new - share) < 1e-10:
            break
        share = new
    return share, random


def leave_one_out(data: Rankings | Comparisons, method: str = "plackett-luce", **params: Any) -> LeaveOneOut:
    """Scores and winners without each voter: recomputed for rules (and Mallows), by a Newton step for other models.

    The width of a learned prior stays fixed at its value for all voters.

    Returns
    -------
    LeaveOneOut
        The scores, the winners and the lead of the first, without each voter.

    >>> votes = Rankings.from_orders([["a", "b", "c"]] * 3 + [["b", "c", "a"]] * 2)
    >>> found = leave_one_out(votes, "plurality")
    >>> found.first[0], found.first[3], found.gap.tolist()
    (('a', 'b'), ('a',), [-1.0, -1.0, -1.0, 1.0, 1.0])
    """
    data_kind(data)
    refuse_instances(data, method)
    check_method(method, params)
    record = method_of(method)
    method = record.name
    if record.law not in (None, "distances"):
        family, voters = _family(data, method, params)
        with algebra_threads(family.size):
            return _by_newton(family, voters, method)
    if record.kind == "model" and record.law is None:
        raise ValueError(f"leaving one out is not possible for {method!r}; choose a rule or one of {sorted(MIXED)}")
    return _by_counts(data, method, params)


def _family(data: Any, method: str, params: dict[str, Any]) -> tuple[Family, Voters]:
    data_kind(data)
    refuse_instances(data, method)
    kind = mixed_model(method, "model with a value per voter")
    check_method(method, params)
    if not data.n_items or not len(data):
        raise DataError("there are no ballots to look at")
    model = kind(**params)
    voters = voters_of(data, getattr(model, "agent_weight", None))
    return family_of(model, voters), voters


def _without_scores(family: Family, state: Any) -> Any:
    """The state with all scores equal, or all orders equally likely."""
    if isinstance(family, Distances):
        return state._replace(dispersion=0.0)
    x = state.x.copy()
    x[: len(family.scores(state))] = 0.0
    return state._replace(x=x)


def _by_newton(family: Family, voters: Voters, method: str) -> LeaveOneOut:
    model, state = family.refitted(voters.count, family.start(voters.count))
    H = family.information(voters.count, state)
    refuse_table(len(voters), family.size, "a table of voters and parameters", "take fewer voters or items", 3.0)
    gradient = family.gradient(state).toarray()
    part = np.minimum(voters.count, 1.0)
    own = family.size <= MOST_OWN
    if own:
        steps = [
            np.linalg.solve(H - part[n] * family.own_information(state, n), part[n] * gradient[n])
            for n in range(len(voters))
        ]
        step = np.array(steps).reshape(len(voters), family.size)
    else:
        step = np.linalg.solve(H, (part[:, None] * gradient).T).T
    scores = family.scores(state)
    moved = scores - step[:, : len(scores)]
    moved -= moved.mean(axis=1, keepdims=True)
    notes = ["scores without a voter are by one Newton step"]
    if not own:
        notes.append(f"more than {MOST_OWN} unknowns: the step has the Hessian of all voters")
    return _leave_one_out(model.consensus_, moved, voters, method, False, notes)


def _by_counts(data: Rankings | Comparisons, method: str, params: dict[str, Any]) -> LeaveOneOut:
    """Rerun the method without each voter.  O(distinct voters) runs."""
    voters = voters_of(data, params.get("agent_weight"))
    rest = {name: value for name, value in params.items() if name != "agent_weight"}
    whole = consensus(voters.weighted(voters.count), method, **rest)
    assert isinstance(whole, Consensus)
    scores = np.empty((len(voters), len(whole.items)))
    for n in range(len(voters)):
        count = voters.count.copy()
        count[n] -= min(count[n], 1.0)
        scores[n] = _scores_of(voters, count, method, rest)
    return _leave_one_out(whole, scores, voters, method, True, [])


def _scores_of(voters: Voters, count: Floats, method: str, params: dict[str, Any]) -> Floats:
    found = consensus(voters.weighted(count), method, **params)
    assert isinstance(found, Consensus)
    return found.scores


def _leave_one_out(
    whole: Consensus, scores: Floats, voters: Voters, method: str, exact: bool, notes: list[str]
) -> LeaveOneOut:
    best = whole.ranks == 1
    tied = scores >= scores.max(axis=1, keepdims=True) - max(whole.tolerance, 1e-12)
    first = [tuple(whole.items[k] for k in np.flatnonzero(row)) for row in tied]
    gap = _lead(scores, best) - _lead(whole.scores[None], best)
    shift = np.abs(scores - whole.scores).max(axis=1, initial=0.0)
    own = voters.unit
    return LeaveOneOut(
        method,
        tuple(whole.items),
        voters.names,
        voters.given,
        scores[own],
        tuple(whole.items[k] for k in np.flatnonzero(best)),
        tuple(first[n] for n in own),
        gap[own],
        shift[own],
        exact,
        whole.scores,
        tuple(notes),
    )


def _lead(scores: Floats, best: Any) -> Floats:
    """Lead of the overall winners over all other items; 0 if there are no others."""
    if best.all():
        return np.zeros(len(scores))
    return scores[:, best].max(axis=1) - scores[:, ~best].max(axis=1)


def voter_names(names: tuple[Hashable, ...] | None, n: int) -> list[Any]:
    """Names of agents as text, or ballot numbers from 0."""
    return list(range(n)) if names is None else [str(name) for name in names]
