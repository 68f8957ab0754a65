"""Votes of individual raters: rater n sees  d = a_n (theta_i - theta_j) + b_n + z . gamma, tie parameter  tie + t_n."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from placet.aggregate.likelihood.controls import control_names
from placet.aggregate.likelihood.existence import agent_factor
from placet.aggregate.likelihood.information import with_mean_zero
from placet.aggregate.likelihood.rater_posterior import (
    Arrow,
    RaterPosterior,
    check_rater_options,
    fit_raters,
    refuse_no_evidence,
)
from placet.aggregate.likelihood.raters import parse_kinds
from placet.aggregate.pairs import pair_likelihood
from placet.aggregate.result.learned.control_effects import Controls
from placet.aggregate.result.learned.rater_parameters import Raters
from placet.aggregate.result.uncertainty import MOST_SIMULATED
from placet.data import Comparisons
from placet.data.arrays import Floats
from placet.losses.pairwise import PAIR_MODELS, TIES, win_probability
from placet.metrics.interrater import describe_agreement

if TYPE_CHECKING:
    from placet.aggregate.pairs.bradley_terry import BradleyTerry


class RatedRows(NamedTuple):
    """The model at x for each row: the difference of scores, and derivatives in d and in the tie parameter."""

    gap: Floats
    slope: Floats
    curvature: Floats
    cross: Floats
    tie_slope: Floats
    tie_curvature: Floats


class RaterVotes(RaterPosterior):
    """Negative log posterior of votes with agents, in x = (scores, tie parameter, effects of controls, raters)."""

    def __init__(self, c: Comparisons, family: str, kinds: tuple[str, ...], order: bool) -> None:
        assert c.agent is not None
        assert c.agents is not None
        self.c, self.agent = c, c.agent
        self.tied = family != "bradley-terry" and bool((c.ties > 0).any())
        self.law = PAIR_MODELS[family if self.tied else "bradley-terry"]
        self.family = family if self.tied else "bradley-terry"
        self.order = order
        self.control, self.unit = pair_likelihood.controls_of(c, order)
        n_shared = c.n_items + int(self.tied) + self.control.shape[1]
        super().__init__(c.n_items, n_shared, len(c.agents), kinds)
        self.bounds = np.searchsorted(self.agent, np.arange(self.m + 1))

    def split(self, x: Floats) -> tuple[Floats, float, Floats, dict[str, Floats]]:
        """Scores (n,), tie parameter, effects (k,), and the raters' deviations (raters,) by kind."""
        shared = x[: self.n_shared]
        tie = float(shared[self.n]) if self.tied else -np.inf
        return shared[: self.n], tie, shared[self.n + int(self.tied) :], self.own(x)

    def _advantage(self, x: Floats) -> tuple[Floats, Floats, list[tuple[slice, float]]]:
        """Score gap and d of each row (rows,), and ranges of rows with the tie parameter of each range."""
        theta, tie, effect, own = self.split(x)
        gap = theta[self.c.i] - theta[self.c.j]
        d = self.control @ effect + gap
        if "sharpness" in own:
            d += own["sharpness"][self.agent] * gap
        if "side" in own:
            d += own["side"][self.agent]
        if "ties" not in own or not self.tied:
            return gap, d, [(slice(0, len(d)), tie)]
        ranges = [(slice(a, z), tie + t) for a, z, t in zip(self.bounds, self.bounds[1:], own["ties"]) if z > a]
        return gap, d, ranges

    def _counts(self, rows: slice) -> tuple[Floats, Floats, Floats]:
        return self.c.wins_i[rows], self.c.wins_j[rows], self.c.ties[rows]

    def value(self, x: Floats) -> float:
        """Negative log posterior up to a constant.  O(votes)."""
        _, d, ranges = self._advantage(x)
        total, costs = 0.5 * float(x @ (self.prior_matrix @ x)), self.law.kernel("costs")
        for rows, tie in ranges:
            win, loss, tied = np.empty((3, rows.stop - rows.start))
            costs(d[rows], self.law.inner(tie) if self.tied else 0.0, win, loss, tied)
            won, lost, even = self._counts(rows)
            total += float(won @ win + lost @ loss + even @ (tied if self.tied else (win + loss) / 2))
        return total

    def rows(self, x: Floats) -> RatedRows:
        """Derivatives of each row in d and in the tie parameter.  O(votes)."""
        gap, d, ranges = self._advantage(x)
        out, slopes = RatedRows(gap, *np.zeros((5, len(d)))), self.law.kernel("slopes")
        for rows, tie in ranges:
            t = self.law.inner(tie) if self.tied else 0.0
            slopes(d[rows], t, *self._counts(rows), *(column[rows] for column in out[1:]))
            if self.tied:  # from the convex parametrization to the tie parameter itself
                _, first, second = self.law.outer(t)
                out.tie_curvature[rows] = (out.tie_curvature[rows] - out.tie_slope[rows] * second / first) / first**2
                out.tie_slope[rows] /= first
                out.cross[rows] /= first
        return out

    def jacobians(self, x: Floats, gap: Floats) -> tuple[Any, Any]:
        """Sparse (rows, unknowns): derivatives of d and of the tie parameter of each row."""
        own = self.split(x)[3]
        rows, size = len(gap), len(x)
        k = self.control.shape[1]
        a = 1 + own["sharpness"][self.agent] if "sharpness" in own else np.ones(rows)
        first = self.n_shared + self.agent * self.r
        columns = [self.c.i, self.c.j, *(np.full(rows, self.n_shared - k + e) for e in range(k))]
        values = [a, -a, *self.control.T]
        for kind, value in (("sharpness", gap), ("side", np.ones(rows))):
            if kind in own:
                columns.append(first + self.kinds.index(kind))
                values.append(value)
        of_d = _by_rows(values, columns, size)
        if not self.tied:
            return of_d, sparse.csr_matrix((rows, size))
        ties = [np.full(rows, self.n)] + ([first + self.kinds.index("ties")] if "ties" in own else [])
        return of_d, _by_rows([np.ones(rows)] * len(ties), ties, size)

    def gradient(self, x: Floats) -> Floats:
        """Gradient of the value.  O(votes)."""
        at = self.rows(x)
        of_d, of_tie = self.jacobians(x, at.gap)
        return np.asarray(of_d.T @ at.slope + of_tie.T @ at.tie_slope + self.prior_matrix @ x)

    def arrow(self, x: Floats) -> Arrow:
        """The Hessian, without its indefinite terms if they keep it from being positive definite."""
        at = self.rows(x)
        of_d, of_tie = self.jacobians(x, at.gap)
        mixed = of_d.T @ of_tie.multiply(at.cross[:, None]).tocsr()
        H = of_d.T @ of_d.multiply(at.curvature[:, None]).tocsr() + mixed + mixed.T
        H = (H + of_tie.T @ of_tie.multiply(at.tie_curvature[:, None]).tocsr() + self.prior_matrix).tocsr()
        if "sharpness" in self.kinds:
            try:
                return Arrow.factored(H + self._bilinear(at.slope, len(x)), self.n_shared, self.r)
            except np.linalg.LinAlgError:
                pass  # happens away from the optimum; the remaining terms are convex in d
        return Arrow.factored(H, self.n_shared, self.r)

    def _bilinear(self, slope: Floats, size: int) -> Any:
        """The slope in d times the second derivatives of d, in which sharpness multiplies scores."""
        column = self.n_shared + self.agent * self.r + self.kinds.index("sharpness")
        rows, columns = np.concatenate([self.c.i, self.c.j]), np.tile(column, 2)
        half = sparse.coo_matrix((np.concatenate([slope, -slope]), (rows, columns)), shape=(size, size))
        return (half + half.T).tocsr()

    def start(self, theta: Any = None) -> Floats:
        """Initial x: scores as given or by odds of winning, tie parameter from the share of ties, raters equal."""
        p = pair_likelihood.pair_counts(self.c, self.family, 1.0, False, (self.control[:, :0], np.zeros(0)))
        shared = pair_likelihood.start_of(p, theta)
        x = np.zeros(self.n_shared + self.m * self.r)
        x[: self.n] = shared[: self.n]
        if self.tied:
            x[self.n] = self.law.outer(float(shared[self.n]))[0]
        return x


def _by_rows(values: list[Floats], columns: list[Any], size: int) -> Any:
    """A sparse matrix (rows, size) with the same number of entries in each row."""
    rows, each = len(values[0]), len(values)
    data, place = np.column_stack(values).ravel(), np.column_stack(columns).ravel()
    return sparse.csr_matrix((data, place, np.arange(0, rows * each + 1, each)), shape=(rows, size))


def raters_of(v: RaterVotes, x: Floats, arrow: Arrow, widths: Mapping[str, float]) -> Raters:
    """The fitted raters; side and tie parameter, and their errors, include the part that raters share."""
    c = v.c
    _, tie, effect, own = v.split(x)
    variances = v.final_errors(arrow)[1]
    order = float(effect[-1] / v.unit[-1]) if v.order else 0.0
    shared = {"ties": (v.n, 1.0)} if v.tied else {}
    shared |= {"side": (v.n_shared - 1, float(v.unit[-1]))} if v.order else {}
    for kind, (k, unit) in shared.items():
        if kind in v.kinds:
            at = v.kinds.index(kind)
            together = arrow.with_shared(k).reshape(v.m, v.r)[:, at] / unit
            variances[:, at] += arrow.covariance[k, k] / unit**2 + 2 * together
    errors = np.sqrt(np.maximum(variances, 0.0))
    columns = {kind: values + {"sharpness": 1.0, "side": order}.get(kind, 0.0) for kind, values in own.items()}
    ties = tie + own["ties"] if "ties" in own else np.full(v.m, tie)
    votes = np.bincount(v.agent, c.wins_i + c.wins_j + c.ties, v.m).astype(np.float64)
    assert c.agents is not None
    return Raters(c.agents, votes, v.family, ties, columns, dict(zip(v.kinds, errors.T)), dict(widths), tie, order)


def checked_votes(data: Any, kinds: tuple[str, ...], model: "BradleyTerry") -> Comparisons:
    """The data if they are votes that name their agents, or else an error that says what is missing."""
    if not isinstance(data, Comparisons) or data.agent is None:
        raise ValueError("agents= needs votes that say who gave them: read_battles(agent=) or from_battles(agent=)")
    if "side" in kinds and not data.ordered:
        raise ValueError('agents="side" needs to know who came first: Comparisons made with ordered=True')
    if "ties" in kinds and model.tie_model(data) == "none":
        raise ValueError('agents="ties" needs a model of ties, ties="davidson" or "rao-kupper", and votes with ties')
    if data.n_items > MOST_SIMULATED:
        raise ValueError(f"agents= takes at most {MOST_SIMULATED} items, and these are {data.n_items}")
    return data


def fit_rated_votes(model: "BradleyTerry", data: Comparisons, start: Any, progress: Any) -> None:
    """Fit scores and rater parameters jointly, and keep them on the model."""
    kinds = parse_kinds(model.agents)
    votes = weighted_votes(model, checked_votes(data, kinds, model), kinds)
    v = RaterVotes(votes, TIES[model.tie_model(votes)], kinds, votes.ordered)
    given = None if isinstance(model.prior, str) else model.prior
    model.fit_, arrow, model.prior_, widths = fit_raters(v, v.start(start), given, model.max_iter, model.tol)
    model.set_scores(v.split(model.fit_.x)[0])
    fields, notes = beside_scores(model, v, votes, arrow, widths)
    covariance = None if model.stderr is None else with_mean_zero(v.final_errors(arrow)[0], v.n)[: v.n, : v.n]
    model.consensus_ = model.result(data, notes, covariance=covariance, **fields)


def weighted_votes(model: "BradleyTerry", data: Comparisons, kinds: tuple[str, ...]) -> Comparisons:
    """Votes with agents, multiplied by the agents' weights."""
    check_rater_options(model.prior, model.stderr)
    order = model.order_effect or "side" in kinds
    votes = data.reweighted(agent_factor(model.agent_weight, data), ordered=order, time=model.drift is not None)
    refuse_no_evidence(float((votes.wins_i + votes.wins_j + votes.ties).sum()))
    return votes


def beside_scores(
    model: "BradleyTerry", v: RaterVotes, votes: Comparisons, arrow: Arrow, widths: Mapping[str, float]
) -> tuple[dict[str, Any], list[str]]:
    """Fields of the result for raters, ties and controls, and notes of a fit with raters."""
    _, tie, effect, _ = v.split(model.fit_.x)
    errors = np.sqrt(np.diag(with_mean_zero(v.final_errors(arrow)[0], v.n))[v.n :])
    found = raters_of(v, model.fit_.x, arrow, widths)
    notes = [*model.prior_notes(), *found.notes(), *filter(None, [describe_agreement(votes)])]
    notes += model.existence_notes(votes, votes.items)
    fields: dict[str, Any] = {"agents": found, "win": partial(win_probability, family=v.family, tie=tie)}
    if model.tie_model(votes) != "none":
        fields |= {"tie": tie, "tie_stderr": float(errors[0]) if v.tied else None}
    if v.control.shape[1]:
        fields["effects"] = Controls.in_units(control_names(votes, v.order), effect, errors[int(v.tied) :], v.unit)
    return fields, notes if model.fit_.converged else [*notes, model.fit_.message]
