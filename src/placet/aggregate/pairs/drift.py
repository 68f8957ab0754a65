"""Scores that change over time: a random walk over the time steps in which an item was compared.

theta[item, step] is normal around theta[item, previous step] with variance drift^2 x (steps between); the first one has
the scores' prior.  Steps without a comparison are integrated out exactly: there is one unknown for each (item, step)
that occurs.

The Hessian is factored step by step in time order (`placet.aggregate.pairs.time_blocks`); where that
would take seconds, only products with it are used (`placet.aggregate.pairs.time_chains`).
"""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from placet import optim
from placet.aggregate.likelihood.existence import agent_factor
from placet.aggregate.likelihood.information import LEAST_PRECISION, with_mean_zero
from placet.aggregate.likelihood.prior import LEARN
from placet.aggregate.pairs import pair_likelihood
from placet.aggregate.pairs.drift_widths import COARSE, WalkWidths, learn_drift
from placet.aggregate.pairs.forecast_fit import forecast_of
from placet.aggregate.pairs.time_blocks import Bordered, Fronts, chains_of, cost_of, steps_of
from placet.aggregate.pairs.time_chains import Chained
from placet.aggregate.result.learned.forecast import VoteLaw
from placet.aggregate.result.learned.history import History
from placet.aggregate.result.result import Consensus, subset
from placet.data import Comparisons, DataError
from placet.data.arrays import Floats, Ints
from placet.data.engines.memory import available, refuse_beyond_memory
from placet.data.times import TimeSteps, since
from placet.kernels.losses import pairs as kernels
from placet.losses.pairwise import TIES

if TYPE_CHECKING:
    from placet.aggregate.pairs.bradley_terry import BradleyTerry

MOST_JOINT = 1000
"""Maximum items for computing the covariance of all final scores."""

MOST_STEPS = 20
"""Newton steps of a fit with other widths, from the fit with the best ones."""

MOST_WORK = 2e10
"""Maximum multiplications (about a second) for factoring the Hessian."""

NUMBERS_A_ROW, NUMBERS_AN_UNKNOWN = 40, 60
"""Upper bounds on the numbers that a fit holds in memory at once, per row and per unknown."""

SOLVED, ROUGHLY_SOLVED = 1e-4, 1e-2
"""Relative residuals of iteratively solved Newton steps, in the final fit and while learning widths."""


class WalkVariances(NamedTuple):
    """Posterior variances of the unknowns (u,), covariances with the next unknowns (u,), variances of the increments
    (links,), and mean minus mode (u,).
    """

    own: Floats
    link: Floats
    moves: Floats
    shift: Floats


class WalkPosterior(NamedTuple):
    """Means (u,) of the unknowns, their variances less the mean score at the end, and the covariance (items, items) of
    the scores at the end, unless there are many items; the drift by which variances grow, and the log evidence of it.
    """

    mean: Floats
    spread: WalkVariances
    covariance: Floats | None
    drift: float
    evidence: float


class Walk:
    """Negative log posterior of dated votes in x = (unknowns, tie parameter, effects of controls)."""

    def __init__(self, c: Comparisons, steps: TimeSteps, family: str, order: bool) -> None:
        assert c.time is not None
        step = steps.number(c.time)
        rows = np.argsort(step, kind="stable")
        p = pair_likelihood.pair_counts(c, family, 1.0, order)
        both = np.concatenate([c.i[rows], c.j[rows]])
        self.chains, place = chains_of(both, np.tile(step[rows], 2))
        n_bytes = 8.0 * (NUMBERS_A_ROW * len(rows) + NUMBERS_AN_UNKNOWN * len(self.chains.item))
        what = f"scores of items at {len(self.chains.item):,} steps"
        refuse_beyond_memory(n_bytes, what, 'take longer steps, such as step="1y", or fewer votes')
        columns = {name: getattr(p, name)[rows] for name in ("wins_i", "wins_j", "ties", "control")}
        i, j = place[: len(rows)].astype(np.int32), place[len(rows) :].astype(np.int32)
        self.n = len(self.chains.item)
        self.p = p._replace(i=i, j=j, n_items=self.n, precision=0.0, **columns)
        self.plan = steps_of(self.chains, step[rows])
        work, n_bytes = cost_of(self.plan)
        self.direct = work <= MOST_WORK and n_bytes <= (available() or math.inf) / 2
        linked = self.chains.linked
        self.linked, self.following = linked, self.chains.next[linked]
        self.gaps = (self.chains.step[self.following] - self.chains.step[linked]).astype(np.float64)

    def set_widths(self, prior: float, drift: float) -> None:
        """Set the standard deviations of the scores' prior and of the random walk per step."""
        self.prior, self.drift = prior, drift
        precision = max(1 / prior**2 / self.p.scale, LEAST_PRECISION)
        self.link = np.zeros(self.n)
        self.link[self.linked] = 1 / (drift**2 * self.gaps) / self.p.scale
        self.own = np.where(self.chains.first, precision, 0.0) + self.link
        self.own[self.following] += self.link[self.linked]

    def prior_gradient(self, theta: Floats) -> Floats:
        """Gradient (u,) of the priors of first scores and of increments."""
        g = self.own * theta
        g[self.linked] -= self.link[self.linked] * theta[self.following]
        g[self.following] -= self.link[self.linked] * theta[self.linked]
        return g

    def value(self, x: Floats) -> float:
        """Negative log posterior up to a constant, divided by ``p.scale``."""
        return pair_likelihood.value(self.p, x) + 0.5 * float(x[: self.n] @ self.prior_gradient(x[: self.n]))

    def derivatives(self, x: Floats) -> pair_likelihood.Derivatives:
        """Gradient (including the priors), curvatures of rows, border and corner."""
        at = pair_likelihood.derivatives(self.p, x)
        at.gradient[: self.n] += self.prior_gradient(x[: self.n])
        return at

    def factored(self, at: pair_likelihood.Derivatives, accuracy: float = SOLVED) -> Bordered:
        """The factored Hessian; if that is too costly, one solved iteratively to a relative ``accuracy``."""
        fronts: Fronts | Chained
        if self.direct:
            fronts = Fronts(self.plan, self.p, at.curvature, self.own, self.link)
        else:
            fronts = Chained(self.chains, self.p, at.curvature, self.own, self.link, accuracy)
        back = fronts.solve(at.border.T) if len(at.border) else np.zeros((self.n, 0))
        return Bordered(fronts, at.border, back, at.corner - at.border @ back)

    def start(self, c: Comparisons, order: bool, theta: Any, max_iter: int) -> tuple[float, Floats]:
        """Starting point from a fit without dates: prior width, and unknowns (with given scores, if any)."""
        prior, static = pair_likelihood.learn_prior(c, self.p.model, order, theta, max_iter, 0, level=True)
        x = np.concatenate([static[: c.n_items][self.chains.item], static[c.n_items :]])
        if theta is not None:
            x[: self.n] = np.asarray(theta)[self.chains.item]
        return prior.width, x

    def fit(self, x: Floats, max_iter: int, tol: float) -> tuple[optim.Fit, Bordered]:
        """Minimize by Newton's method using gradients only, as for votes without dates."""
        at_x, at = x, self.derivatives(x)

        def slopes(x: Floats) -> tuple[float, Floats]:
            nonlocal at, at_x
            if self.p.model == "rao-kupper" and x[self.n] <= 0:
                return math.nan, np.full(len(x), math.nan)
            if not np.array_equal(x, at_x):
                at_x, at = x, self.derivatives(x)
            return math.nan, at.gradient

        last: Bordered | None = None
        accuracy = max(SOLVED, min(ROUGHLY_SOLVED, tol))

        def solve(x: Floats, gradient: Floats) -> Floats:
            nonlocal last
            last = self.factored(at, accuracy)
            return last.solve(gradient)

        found = optim.newton(slopes, solve, x, step_tol=math.sqrt(tol), max_iter=max_iter, convex=True)
        slopes(found.x)
        total = float((self.p.wins_i + self.p.wins_j + self.p.ties).sum()) or 1.0
        # the last step was too short to change the Hessian
        return replace(found, value=self.value(found.x) / total), last if last is not None else self.factored(at)

    def evidence(self, x: Floats, H: Bordered) -> float:
        """The logarithm of Laplace's evidence of the drift at the mode x, up to a constant; H is factored."""
        bend = 2 * sum(float(np.log(np.diag(L)).sum()) for L, _ in H.fronts.factors)
        bend += float(np.linalg.slogdet(H.schur)[1]) if len(H.schur) else 0.0
        return -self.p.scale * self.value(x) - 0.5 * bend - len(self.linked) * math.log(self.drift)

    def spread(self, x: Floats, H: Bordered) -> "WalkVariances":
        """Posterior variances of unknowns and of increments, and the shift from mode to mean.

        The shift is -1/2 H^-1 sum over rows of f_ddd Var(d) (e_i - e_j), as for votes without dates.
        """
        own, link, gap = H.fronts.variances(self.p.i, self.p.j)
        if H.back.shape[1]:
            inverse = np.linalg.inv(H.schur)
            moved = H.back @ inverse
            own = own + (moved * H.back).sum(axis=1)
            nexts = H.back[self.following]
            link[self.linked] += (moved[self.linked] * nexts).sum(axis=1)
        steps = own[self.linked] + own[self.following] - 2 * link[self.linked]
        third = pair_likelihood.third_derivative(self.p, x) * gap / self.p.scale
        pull = np.zeros(len(x))
        kernels.scatter(self.p.i, self.p.j, third, pull)
        scale = self.p.scale
        return WalkVariances(own / scale, link / scale, np.maximum(steps, 0.0) / scale, -0.5 * H.solve(pull)[: self.n])

    def from_mean(self, spread: WalkVariances, H: Any, n_items: int) -> WalkVariances:
        """Variances after subtracting the mean score of all items at the last step, which votes do not determine."""
        last, end = self.last_unknowns(n_items), int(self.chains.step[-1])
        last = last[last >= 0]
        e = np.zeros(self.n + len(H.border))
        e[last] = 1 / n_items
        with_mean = H.solve(e)[: self.n] / self.p.scale
        idle = self.drift**2 * float((end - self.chains.step[last]).sum()) / n_items**2
        mean = float(e[: self.n] @ with_mean) + idle
        link = spread.link.copy()
        link[self.linked] += mean - with_mean[self.linked] - with_mean[self.following]
        return spread._replace(own=np.maximum(spread.own + mean - 2 * with_mean, 0.0), link=link)

    def last_unknowns(self, n_items: int) -> Ints:
        """The last unknown of every item, or -1."""
        found = np.full(n_items, -1)
        found[self.chains.item] = np.arange(self.n)  # steps are increasing
        return found

    def covariance(self, H: Bordered, n_items: int) -> Floats:
        """Covariance (items, items) of the scores at the last step.  O(items) solves."""
        last = self.last_unknowns(n_items)
        last = last[last >= 0]
        E = np.zeros((self.n, len(last)))
        E[last, np.arange(len(last))] = 1.0
        found = H.fronts.solve(E)[last]
        if H.back.shape[1]:
            found += H.back[last] @ np.linalg.solve(H.schur, H.back[last].T)
        return self.at_end((found + found.T) / 2 / self.p.scale, n_items)

    def at_end(self, covariance: Floats, n_items: int) -> Floats:
        """Covariance (items, items) at the last step, from that of the last unknown of each item that has one."""
        last, end = self.last_unknowns(n_items), int(self.chains.step[-1])
        known = np.flatnonzero(last >= 0)
        C = np.diag(np.full(n_items, self.prior**2))
        C[np.ix_(known, known)] = covariance
        C[known, known] += self.drift**2 * (end - self.chains.step[last[known]])
        return C


def history_of(walk: Walk, c: Comparisons, steps: TimeSteps, x: Floats, spread: WalkVariances) -> History:
    """The fit as a `History` of scores."""
    order = np.lexsort((walk.chains.step, walk.chains.item))
    offsets = np.append(0, np.cumsum(np.bincount(walk.chains.item, minlength=c.n_items)))
    columns = (x[: walk.n][order], spread.own[order], spread.link[order])
    assert c.time is not None
    return History(
        c.items, walk.chains.step[order], offsets, *columns, walk.drift, walk.prior, steps, c.time.min(), c.time.max()
    )


@dataclass(frozen=True)
class WalkFit:
    """A fit of dated votes."""

    walk: Walk
    steps: TimeSteps
    fit: optim.Fit
    H: Bordered
    order: bool
    widths: WalkWidths

    def results(self, c: Comparisons, *, uncertain: bool) -> tuple[History, Floats | None, Floats | None]:
        """Scores over time, with mean 0 at the last step; their covariance there, or for many items standard errors."""
        at = self._posterior(c.n_items)
        history = history_of(self.walk, c, self.steps, at.mean, at.spread)
        history = replace(history, drift=at.drift)
        end = float(self.walk.chains.step[-1])
        score, stderr = history.at_step(end)
        history = replace(history, score=history.score - score.mean())
        if not uncertain:
            return history, None, None
        return history, at.covariance, None if at.covariance is not None else stderr

    def _posterior(self, n_items: int) -> WalkPosterior:
        """The posterior of the unknowns; where the Hessian is factored, averaged over the drifts that are possible."""
        at, walk = self._posterior_at(self.fit.x, self.H, n_items), self.walk
        drifts = self.widths.drifts() if walk.direct else []
        if len(drifts) < 2:
            return at
        found = [self._posterior_with(drift, n_items) for drift in drifts]
        walk.set_widths(self.widths.prior, self.widths.drift)
        log = np.array([one.evidence for one in found]) + np.log(drifts)  # the drift has a flat density
        share = np.exp(log - log.max()) / np.exp(log - log.max()).sum()
        last = walk.last_unknowns(n_items)
        own, link, joint = np.zeros(walk.n), np.zeros(walk.n), 0.0
        for weight, one in zip(share, found):
            moved, at_end = _centered(one.mean - at.mean, last, n_items)
            own += weight * (one.spread.own + moved**2)
            link[walk.linked] += weight * (one.spread.link + moved * moved[walk.chains.next])[walk.linked]
            if one.covariance is not None:
                joint = joint + weight * (one.covariance + np.outer(at_end, at_end))
        covariance = None if at.covariance is None else np.asarray(joint)
        drift = math.sqrt(float(share @ np.square(drifts)))
        return WalkPosterior(at.mean, at.spread._replace(own=own, link=link), covariance, drift, at.evidence)

    def _posterior_with(self, drift: float, n_items: int) -> WalkPosterior:
        """The posterior with another drift than that of the fit."""
        self.walk.set_widths(self.widths.prior, drift)
        found, H = self.walk.fit(self.fit.x, MOST_STEPS, COARSE)
        return self._posterior_at(found.x, H, n_items)

    def _posterior_at(self, x: Floats, H: Bordered, n_items: int) -> WalkPosterior:
        """The posterior about the mode x, with the widths that are set.

        With few votes in a step it is skewed: its mean is farther out than its mode.  To the next order, the squared
        distance of the two is added to the covariance, by which curvature at the mode is too small.
        """
        walk, last = self.walk, self.walk.last_unknowns(n_items)
        spread = walk.from_mean(walk.spread(x, H), H, n_items)
        shift, at_end = _centered(spread.shift, last, n_items)
        link = np.where(walk.chains.next >= 0, spread.link + shift * shift[walk.chains.next], 0.0)
        spread = spread._replace(own=spread.own + shift**2, link=link)
        covariance = None
        if walk.direct and n_items <= MOST_JOINT:
            covariance = with_mean_zero(walk.covariance(H, n_items), n_items) + np.outer(at_end, at_end)
        evidence = walk.evidence(x, H) if walk.direct else math.nan
        return WalkPosterior(x[: walk.n] + spread.shift, spread, covariance, walk.drift, evidence)

    def law(self) -> VoteLaw:
        """What a vote says, given scores."""
        p = self.walk.p
        effect = pair_likelihood.parameters(p, self.fit.x)[2]
        tie, _ = pair_likelihood.tie_parameter(p, self.fit.x)
        return VoteLaw(p.model, tie, effect / p.unit, self.order)

    def notes(self, history: History, *, learned: bool) -> list[str]:
        """Notes on the drift, the time that the scores refer to, and omitted correlations."""
        found = walk_notes(self.walk, self.steps, learned=learned)
        if not self.walk.direct:
            found.append(
                "too many scores for exact errors: standard errors are sampled, and differences leave correlations out"
            )
        elif len(history.items) > MOST_JOINT:
            found.append(f"more than {MOST_JOINT} items: differences leave correlations out")
        return found


def _centered(moved: Floats, last: Ints, n_items: int) -> tuple[Floats, Floats]:
    """Changes of the unknowns less the mean change of all items at the end, and (items,) those at the end."""
    level = float(moved[last[last >= 0]].sum()) / n_items
    return moved - level, np.where(last >= 0, moved[last], 0.0) - level


def walk_notes(walk: Walk, steps: TimeSteps, *, learned: bool) -> list[str]:
    """Notes on the drift and the time that the scores refer to."""
    how = ", learned from the data" if learned else ""
    if learned and walk.chains.step.min() == walk.chains.step.max():
        how = ", which is assumed: all votes are in one step, so the data do not say how far scores move"
    end = steps.start(walk.chains.step[-1])
    said = np.datetime_as_string(end, unit="D") if steps.dates else f"{float(end):g}"
    return [
        f"scores move by a random walk with standard deviation {walk.drift:.3g} in a step of time{how}",
        f"scores are those of the last step, which begins {said}; {walk.n} scores of items at a step",
    ]


def fit_walk(
    c: Comparisons,
    step: str | float,
    family: str,
    order: bool,
    given: tuple[float | None, float | None],
    start: Any,
    *,
    max_iter: int,
    tol: float,
    progress: optim.Progress | None = None,
) -> WalkFit:
    """Fit dated votes; ``given`` are the prior width and the drift, None for those to learn.

    ``progress(done, expected)`` is called before each round of learning.
    """
    assert c.time is not None
    steps = TimeSteps(step, c.time)
    walk = Walk(c, steps, family, order)
    static = c.reweighted(1.0, agents=False, ordered=order, time=False)
    width, x = walk.start(static, order, start, max_iter)
    widths, x = learn_drift(walk, x, width, *given, max_iter, progress)
    walk.set_widths(widths.prior, widths.drift)
    fit, H = walk.fit(x, max_iter, tol)
    return WalkFit(walk, steps, fit, H, order, widths)


def expected_seconds(c: Comparisons, step: str | float, *, raters: bool = False) -> float:
    """Rough estimate of the time for a fit with learned drift; with ``raters`` there are more, with a dense Hessian."""
    assert c.time is not None
    when = TimeSteps(step, c.time).number(c.time)
    chains, _ = chains_of(np.concatenate([c.i, c.j]), np.tile(when, 2))
    work = cost_of(steps_of(chains, np.sort(when)))[0]
    dense = 0.1 + 2e-8 * len(chains.item) ** 3 if raters else 0.0
    return 0.03 + dense + 5e-6 * len(c) + (2e-9 * work if work <= MOST_WORK else 6e-5 * (len(c) + len(chains.item)))


def checked_votes(
    data: Any, drift: Any, prior: Any, stderr: Any
) -> tuple[Comparisons, tuple[float | None, float | None]]:
    """Check the arguments; returns the dated votes, the prior width and the drift (None for those to learn)."""
    if not isinstance(data, Comparisons) or data.time is None:
        raise ValueError("drift= needs to know when: read_battles(..., time=) or from_battles(..., time=)")
    if not (data.wins_i.any() or data.wins_j.any() or data.ties.any()):
        raise DataError("there are no votes (or all have weight 0), so nothing is known about how scores move")
    if drift != LEARN if isinstance(drift, str) else not 0 < drift < math.inf:
        raise ValueError(f'drift must be a positive number or "learn", not {drift!r}')
    if prior is None or stderr == "sandwich":
        raise ValueError('drift= needs a prior, such as prior="learn", and has no stderr="sandwich"')
    return data, (None if isinstance(prior, str) else prior, None if isinstance(drift, str) else float(drift))


def fit_drift(model: "BradleyTerry", data: Comparisons, start: Any, progress: Any) -> None:
    """Fit drifting scores, and keep them on the model."""
    votes, given = checked_votes(data, model.drift, model.prior, model.stderr)
    votes = votes.reweighted(agent_factor(model.agent_weight, votes), agents=False, ordered=model.order_effect)
    fitting: dict[str, Any] = {"max_iter": model.max_iter, "tol": model.tol, "progress": progress}
    found = fit_walk(votes, model.step, TIES[model.tie_model(votes)], model.order_effect, given, start, **fitting)
    walk, model.fit_, model.prior_, model.drift_ = found.walk, found.fit, found.walk.prior, found.walk.drift
    history, covariance, stderr = found.results(votes, uncertain=model.stderr is not None)
    model.theta_ = history.at_step(float(walk.chains.step[-1]))[0]
    notes = [*model.prior_notes(), *found.notes(history, learned=given[1] is None)]
    notes += model.existence_notes(votes, votes.items)
    notes += [] if model.fit_.converged else [model.fit_.message]
    errors = np.sqrt(np.diag(np.linalg.inv(found.H.schur)) / walk.p.scale) if len(found.H.schur) else None
    forecast = forecast_of(history, votes, found.law())
    notes.append(f"forecasts allow for a deviation of {forecast.form:.2g} in each comparison, learned from past ones")
    history = replace(history, forecast=forecast)
    fields = model.beside(votes, walk.p, errors) | {"timeline": history, "drift": model.drift_}
    fields |= {"stderr": stderr, "covariance": covariance}
    model.consensus_ = active_board(model, model.result(data, notes, **fields), history)


def active_board(model: "BradleyTerry", board: Consensus, history: History) -> Consensus:
    """The board without items that were not compared since ``model.active_since``; all are used in the fit."""
    history = replace(history, support=board.support)
    cut = None if model.active_since is None else since(model.active_since, history.last)
    if cut is None:
        return replace(board, timeline=history)
    tau = history.step_of(history.last)
    history = replace(history, window=max(tau - history.step_of(cut), 0.0))
    said = np.datetime_as_string(cut, unit="D") if history.steps.dates else f"{float(cut):g}"
    why = f"not compared since {said} (active_since=None keeps them)"
    return subset(replace(board, timeline=history), history.active(tau), why)
