"""Ballots of raters who differ in sharpness: a row of rater n has the score  a_n theta[item] + z . gamma.

The likelihood is that of Plackett-Luce on these scores, summed over ties (loss "pl-partition"), so a rater with a_n = 0
orders at random and one with a_n < 0 in reverse.  The Hessian with respect to row scores has one block per ballot; one
product with the k-th rows of all ballots gives the k-th column of every block, so a Hessian costs as many products as
the longest ballot has rows.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from placet.aggregate.ballots.row_controls import typical_differences, within_ballots
from placet.aggregate.likelihood.existence import agent_factor, notes_of_rankings
from placet.aggregate.likelihood.information import SCORE_TOLERANCE, with_mean_zero
from placet.aggregate.likelihood.rater_posterior import (
    Arrow,
    RaterPosterior,
    check_rater_options,
    fit_raters,
    refuse_no_evidence,
)
from placet.aggregate.likelihood.raters import parse_kinds
from placet.aggregate.places import listed_weight
from placet.aggregate.result.learned.control_effects import Controls
from placet.aggregate.result.learned.rater_parameters import Raters
from placet.aggregate.result.uncertainty import MOST_SIMULATED
from placet.data import Lists, Rankings
from placet.data.arrays import Floats
from placet.losses import Bound
from placet.metrics.interrater import describe_agreement

if TYPE_CHECKING:
    from placet.aggregate.ballots.ballot_models import PlackettLuce

KIND = "sharpness"


class RaterBallots(RaterPosterior):
    """Negative log posterior of ballots with agents, in x = (scores, effects of controls, sharpness of raters minus 1).

    ``Z`` (rows, k): controls minus their means within each ballot, divided by ``unit`` (k,), typical differences.
    """

    def __init__(self, ballots: Rankings, weight: Floats) -> None:
        assert ballots.agent is not None
        assert ballots.agents is not None
        self.ballots, self.weight = ballots, weight
        self.item, self.rater = ballots.item, ballots.agent[ballots.ballot]
        k = 0 if ballots.control is None else ballots.control.shape[1]
        self.Z, self.unit = np.zeros((len(self.item), k)), np.ones(k)
        if k:
            self.unit = typical_differences(ballots, weight)
            self.Z = within_ballots(ballots) / self.unit
        super().__init__(ballots.n_items, ballots.n_items + k, len(ballots.agents), (KIND,))
        grade = -ballots.tier.astype(np.float64)
        self.bound = Bound("pl-partition", Lists(grade, ballots.offsets, weight), total=1.0)
        self.sizes = np.diff(ballots.offsets)

    def _parts(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """For every row: the score of its item, the sharpness of its rater, and the score of the row itself."""
        theta, sharp = x[self.item], 1 + x[self.n_shared + self.rater]
        return theta, sharp, sharp * theta + self.Z @ x[self.n : self.n_shared]

    def _back(self, rows: Floats, theta: Floats, sharp: Floats) -> Floats:
        """Gradient with respect to x, from the gradient with respect to row scores."""
        by_item = np.bincount(self.item, sharp * rows, self.n)
        return np.concatenate([by_item, rows @ self.Z, np.bincount(self.rater, theta * rows, self.m)])

    def value(self, x: Floats) -> float:
        """Negative log posterior up to a constant.  O(rows)."""
        return self.bound.value_and_grad(self._parts(x)[2])[0] + 0.5 * float(self.precision @ x**2)

    def gradient(self, x: Floats) -> Floats:
        """Gradient of the value.  O(rows)."""
        theta, sharp, s = self._parts(x)
        return self._back(self.bound.value_and_grad(s)[1], theta, sharp) + self.precision * x

    def arrow(self, x: Floats) -> Arrow:
        """The factored Hessian; if not positive definite, without the term from the product of sharpness and score."""
        theta, sharp, s = self._parts(x)
        slope = self.bound.value_and_grad(s)[1]
        along = self.bound.hvp(s, theta)  # no ballot has two raters, so one product covers them all
        A = self._shared_hessian(s, sharp) + np.diag(self.precision[: self.n_shared])
        C = sparse.diags(np.bincount(self.rater, theta * along, self.m) + self.precision[self.n_shared :])
        for bilinear in (slope, 0.0):
            rows = sharp * along + bilinear
            B = sparse.coo_matrix((rows, (self.item, self.rater)), shape=(self.n, self.m))
            low = sparse.coo_matrix(self._by_rater(self.Z * along[:, None]))
            H = sparse.bmat([[A, sparse.vstack([B, low])], [sparse.vstack([B, low]).T, C]], format="csr")
            try:
                return Arrow.factored(H, self.n_shared, 1)
            except np.linalg.LinAlgError:
                if bilinear is not slope:
                    raise
        raise AssertionError

    def _by_rater(self, rows: Floats) -> Floats:
        """Sums (k, raters) of the columns of ``rows`` (rows, k) over the rows of each rater."""
        return np.array([np.bincount(self.rater, column, self.m) for column in rows.T]).reshape(-1, self.m)

    def _shared_hessian(self, s: Floats, sharp: Floats) -> Floats:
        """The Hessian (N, N) for scores and effects, without the prior.  O(longest ballot x rows)."""
        n, first = self.n, self.ballots.offsets[:-1]
        A = np.zeros((self.n_shared, self.n_shared))
        scores = A[:n, :n]
        for k in range(int(self.sizes.max(initial=0))):
            probe = np.zeros(len(s))
            place = first[self.sizes > k] + k
            probe[place] = sharp[place]
            rows = sharp * self.bound.hvp(s, probe)
            partner = np.zeros(len(self.sizes), np.int64)
            partner[self.sizes > k] = self.item[place]
            used = np.repeat(self.sizes > k, self.sizes)
            np.add.at(scores, (self.item[used], np.repeat(partner, self.sizes)[used]), rows[used])
        for c in range(self.n_shared - n):
            rows = self.bound.hvp(s, self.Z[:, c])
            A[:n, n + c] = A[n + c, :n] = np.bincount(self.item, sharp * rows, n)
            A[n:, n + c] = rows @ self.Z
        return (A + A.T) / 2

    def start(self, theta: Any = None) -> Floats:
        """Starting point: the given scores or 0, and identical raters."""
        x = np.zeros(len(self.precision))
        x[: self.n] = 0.0 if theta is None else theta
        return x

    def raters(self, x: Floats, arrow: Arrow, widths: Mapping[str, float]) -> Raters:
        """The fitted sharpness of each rater, with standard errors."""
        assert self.ballots.agent is not None
        assert self.ballots.agents is not None
        ballots = np.bincount(self.ballots.agent, self.weight, self.m).astype(np.float64)
        errors = np.sqrt(self.final_errors(arrow)[1][:, 0])
        own, none = 1 + self.own(x)[KIND], np.full(self.m, -np.inf)
        return Raters(
            self.ballots.agents,
            ballots,
            "bradley-terry",
            none,
            {KIND: own},
            {KIND: errors},
            dict(widths),
            -np.inf,
            0.0,
            "ballots",
        )


def checked_ballots(ballots: Rankings, kinds: tuple[str, ...]) -> Rankings:
    """The ballots, checked to name their agents; raises an error that says what is missing."""
    other = [kind for kind in kinds if kind != KIND]
    if other:
        raise ValueError(
            f'agents={other[0]!r} is for votes on pairs (method "bradley-terry"); on ballots raters differ in '
            f'agents="{KIND}" alone'
        )
    if ballots.agent is None or ballots.agents is None:
        raise ValueError("agents= needs ballots that say who cast them: read_ballots(agent=) or from_orders(agent=)")
    if ballots.n_items > MOST_SIMULATED:
        raise ValueError(f"agents= takes at most {MOST_SIMULATED} items, and these are {ballots.n_items}")
    return ballots


def fit_rated_ballots(model: "PlackettLuce", data: Rankings, start: Any) -> None:
    """Fit scores and rater parameters jointly, and keep them on the model."""
    ballots = checked_ballots(data, parse_kinds(model.agents))
    check_rater_options(model.prior, model.stderr)
    weight = ballots.weight * agent_factor(model.agent_weight, ballots)
    refuse_no_evidence(float(weight.sum()))
    v = RaterBallots(ballots, weight)
    given = None if isinstance(model.prior, str) else model.prior
    model.fit_, arrow, model.prior_, widths = fit_raters(v, v.start(start), given, model.max_iter, model.tol)
    x, n = model.fit_.x, v.n
    model.theta_ = x[:n] - x[:n].mean() if n else x[:n]
    covariance = with_mean_zero(v.final_errors(arrow)[0], n)
    found = v.raters(x, arrow, widths)
    notes = [*found.notes(), *filter(None, [describe_agreement(ballots)])]
    notes += notes_of_rankings(ballots, weight, model.prior_, model.existence)
    fields: dict[str, Any] = {"agents": found, "support": listed_weight(ballots)}
    fields["covariance"] = None if model.stderr is None else covariance[:n, :n]
    if ballots.controls is not None:
        errors = None if model.stderr is None else np.sqrt(np.diag(covariance)[n:])
        fields["effects"] = Controls.in_units(ballots.controls, x[n : v.n_shared], errors, v.unit)
        notes += fields["effects"].notes()
    model.consensus_ = model.result(data, notes, tolerance=SCORE_TOLERANCE, **fields)
