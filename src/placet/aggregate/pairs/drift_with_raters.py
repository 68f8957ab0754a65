"""Drifting scores with individual raters: rater n sees  d = a_n (theta[i, t] - theta[j, t]) + b_n + z . gamma.

The model of `placet.aggregate.pairs.vote_raters` with a score for every item and time step instead of one for every
item, and the random walk of `placet.aggregate.pairs.drift` as their prior.  The unknowns of a rater couple all time
steps, so the Hessian of the shared unknowns is dense: O(scores^3) per Newton step, and at most MOST_SIMULATED scores.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from placet import optim
from placet.aggregate.likelihood.information import with_mean_zero
from placet.aggregate.likelihood.rater_posterior import Arrow, fit_raters, next_width
from placet.aggregate.likelihood.raters import parse_kinds
from placet.aggregate.pairs import drift, pair_likelihood, vote_raters
from placet.aggregate.pairs.drift import Walk, WalkFit, WalkVariances, history_of, walk_notes
from placet.aggregate.pairs.time_blocks import chains_of
from placet.aggregate.pairs.vote_raters import RaterVotes
from placet.aggregate.result.learned.history import History
from placet.aggregate.result.uncertainty import MOST_SIMULATED
from placet.data import Comparisons
from placet.data.arrays import Floats
from placet.data.times import TimeSteps
from placet.losses.pairwise import TIES

if TYPE_CHECKING:
    from placet.aggregate.pairs.bradley_terry import BradleyTerry

DRIFT = "drift"


class RatedWalk(RaterVotes):
    """Negative log posterior in x = (scores at steps, tie parameter, effects of controls, raters)."""

    def __init__(self, walk: Walk, c: Comparisons, steps: TimeSteps, family: str, kinds: tuple[str, ...], order: bool):
        assert c.time is not None
        _, place = chains_of(np.concatenate([c.i, c.j]), np.tile(steps.number(c.time), 2))
        own: dict[str, Any] = {"i": place[: len(c)], "j": place[len(c) :], "items": range(walk.n), "ordered": order}
        kept = ("wins_i", "wins_j", "ties", "agent", "agents", "control", "controls")
        votes = Comparisons(**own, **{name: getattr(c, name) for name in kept})
        super().__init__(votes, family, kinds, order)
        self.walk = walk

    def set_widths(self, prior: float, widths: Mapping[str, float]) -> None:
        """Set the prior standard deviations of initial scores, of a step, and of the differences between raters."""
        super().set_widths(prior, widths)
        walk = self.walk
        walk.set_widths(prior, widths[DRIFT])
        self.precision[: self.n] = walk.own * walk.p.scale
        link = walk.link[walk.linked] * walk.p.scale
        size = (len(self.precision), len(self.precision))
        links = sparse.coo_matrix((link, (walk.linked, walk.following)), shape=size)
        self.prior_matrix = (sparse.diags(self.precision) - links - links.T).tocsr()

    def spread(self, C: Floats) -> WalkVariances:
        """Posterior variances of scores and steps, and covariances of consecutive scores, from the covariance
        (shared, shared) of all; the mode is taken as the mean.
        """
        walk = self.walk
        own, link = np.diag(C)[: self.n].copy(), np.zeros(self.n)
        link[walk.linked] = C[walk.linked, walk.following]
        moves = own[walk.linked] + own[walk.following] - 2 * link[walk.linked]
        return WalkVariances(own, link, np.maximum(moves, 0.0), np.zeros(self.n))

    def scores_width(self, x: Floats, arrow: Arrow, width: float) -> float:
        """The next estimate of the width of initial scores."""
        first = self.walk.chains.first
        return next_width(
            x[: self.n][first], self.spread(arrow.covariance).own[first], width, max(int(first.sum()) - 1, 1)
        )

    def more_widths(self, x: Floats, arrow: Arrow, widths: Mapping[str, float]) -> dict[str, float]:
        """The next estimate of the width of a step."""
        walk = self.walk
        if not len(walk.linked):
            return {}
        unit = np.sqrt(walk.gaps)
        delta = (x[walk.following] - x[walk.linked]) / unit
        count = max(len(delta) - 1, 1)
        return {DRIFT: next_width(delta, self.spread(arrow.covariance).moves / walk.gaps, widths[DRIFT], count)}


@dataclass(frozen=True)
class _Dense:
    """H^-1 as a dense matrix, scaled like the solves of `Walk`."""

    inverse: Floats
    border: Floats

    def solve(self, g: Floats) -> Floats:
        return self.inverse @ g


@dataclass(frozen=True)
class RatedWalkFit:
    """Fit of dated votes by individual raters."""

    v: RatedWalk
    steps: TimeSteps
    fit: optim.Fit
    arrow: Arrow
    prior: float
    widths: Mapping[str, float]

    def results(self, c: Comparisons, *, uncertain: bool) -> tuple[History, Floats | None]:
        """Scores over time, with mean 0 at the end, and the covariance at the end."""
        v, walk = self.v, self.v.walk
        shared, _ = v.final_errors(self.arrow)
        dense = _Dense(shared * walk.p.scale, np.zeros((v.n_shared - v.n, v.n)))
        spread = walk.from_mean(v.spread(shared), dense, c.n_items)
        history = history_of(walk, c, self.steps, self.fit.x, spread)
        score, _ = history.at_step(float(walk.chains.step[-1]))
        history = replace(history, score=history.score - score.mean())
        if not uncertain:
            return history, None
        last = walk.last_unknowns(c.n_items)
        known = last[last >= 0]
        return history, with_mean_zero(walk.at_end(shared[np.ix_(known, known)], c.n_items), c.n_items)

    def notes(self, *, learned: bool) -> list[str]:
        """Notes on the drift and on the date of the scores."""
        return walk_notes(self.v.walk, self.steps, learned=learned)


def fit_rated_walk(
    c: Comparisons, start: WalkFit, kinds: tuple[str, ...], given: tuple[float | None, float | None], order: bool,
    *, max_iter: int, tol: float,
) -> RatedWalkFit:  # fmt: skip
    """Fit dated votes of raters, starting from the fit ``start`` with identical raters; ``given`` as in `fit_walk`."""
    walk = start.walk
    v = RatedWalk(walk, c, start.steps, walk.p.model, kinds, order)
    x = np.zeros(len(v.precision))
    x[: v.n] = start.fit.x[: v.n]
    if v.tied:
        x[v.n] = pair_likelihood.tie_parameter(walk.p, start.fit.x)[0]
    x[v.n_shared - v.control.shape[1] : v.n_shared] = start.fit.x[v.n + int(v.tied) :]
    more = {DRIFT: walk.drift}
    fixed = () if given[1] is None else (DRIFT,)
    fit, arrow, prior, widths = fit_raters(v, x, given[0], max_iter, tol, more, fixed=fixed)
    widths[DRIFT] *= v.factor
    walk.set_widths(prior, widths[DRIFT])  # for the rescaled scores
    return RatedWalkFit(v, start.steps, fit, arrow, prior, widths)


def refuse_many(c: Comparisons, step: str | float) -> None:
    """Raise ``ValueError`` if there are more scores at steps than can be fitted with raters."""
    assert c.time is not None
    when = TimeSteps(step, c.time).number(c.time)
    n = len(chains_of(np.concatenate([c.i, c.j]), np.tile(when, 2))[0].item)
    if n > MOST_SIMULATED:
        raise ValueError(
            f"drift= with agents= takes at most {MOST_SIMULATED} scores of items at steps, and step={step!r} gives "
            f"{n}; take longer steps, or drift= alone with agent_weight={{rater: weight}} from a fit of agents= "
            "over all time"
        )


def fit_rated_drift(model: "BradleyTerry", data: Comparisons, start: Any, progress: Any) -> None:
    """Fit drifting scores and rater parameters jointly, and keep them on the model."""
    kinds = parse_kinds(model.agents)
    dated, given = drift.checked_votes(data, model.drift, model.prior, model.stderr)
    votes = vote_raters.weighted_votes(model, vote_raters.checked_votes(dated, kinds, model), kinds)
    refuse_many(votes, model.step)
    fitting: dict[str, Any] = {"max_iter": model.max_iter, "tol": model.tol}
    walk = (model.step, TIES[model.tie_model(votes)], votes.ordered)
    first = drift.fit_walk(votes.reweighted(1.0, agents=False), *walk, given, start, progress=progress, **fitting)
    found = fit_rated_walk(votes, first, kinds, given, votes.ordered, **fitting)
    model.fit_, model.prior_, model.drift_ = found.fit, found.prior, found.widths[DRIFT]
    history, covariance = found.results(votes, uncertain=model.stderr is not None)
    model.theta_ = history.at_step(float(found.v.walk.chains.step[-1]))[0]
    fields, notes = vote_raters.beside_scores(model, found.v, votes, found.arrow, found.widths)
    notes[1:1] = found.notes(learned=given[1] is None)
    fields |= {"timeline": history, "drift": model.drift_, "covariance": covariance}
    model.consensus_ = drift.active_board(model, model.result(data, notes, **fields), history)
