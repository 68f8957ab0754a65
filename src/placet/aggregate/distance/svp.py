"""Singular value projection: rank-2 completion of a skew-symmetric matrix of mean rank differences."""

from collections.abc import Hashable
from typing import Any

import numpy as np

from placet.aggregate.data_facts import support, unused_note
from placet.aggregate.instances import Instance, instances
from placet.aggregate.places import ballots_of
from placet.aggregate.result.consensus_set import ConsensusSet
from placet.aggregate.result.result import RELATIVE_TOLERANCE, Consensus
from placet.data import DataError, Rankings
from placet.data.arrays import Floats
from placet.data.breaking import PairStrength
from placet.data.parameters import Estimator
from placet.optim import Fit

SMALL = 150
"""Items up to which all singular values are computed in every step."""

LANCZOS_ACCURACY, CLEAR_GAP = 1e-11, 1e-4
"""Relative accuracy of squared singular values, and the smallest relative gap between the first and the second pair."""


class SingularValueProjection(Estimator):
    """Singular value projection (Gleich and Lim): scores are the row means of X, the skew-symmetric matrix of rank 2
    closest to the known entries of Y, where Y_ij is the mean of place_j - place_i over ballots that list both.

    X <- rank-2 part of X - P(X - Y), starting from 0, until a step changes X by less than ``tol`` relative to its norm;
    P keeps known pairs, and ``max_iter=1`` treats unknown ones as ties.  ``strength``: "difference" of places, "binary"
    (which is above) or "rating" (differences of the scores on ballots).  If all pairs are known, scores are the row
    means of Y.  With instances, ``consensus_`` is a `ConsensusSet`.  O(items^2) per
    step beyond 150 items, if the first pair of singular values stands clear of the second, else O(items^3).

    >>> votes = Rankings.from_orders([["a", "b", "c"], ["a", "c", "b"], ["b", "c"]])
    >>> SingularValueProjection().fit(votes).consensus_.ranking
    ['a', 'b', 'c']
    """

    def __init__(self, strength: PairStrength = "difference", max_iter: int = 500, tol: float = 1e-5):
        self.strength = strength
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, data: Rankings) -> "SingularValueProjection":
        """Fit to ballots."""
        self.check_parameters()
        rankings = ballots_of(data, "svp")
        if self.strength == "rating" and rankings.score is None:
            raise DataError(
                "strength 'rating' needs ballots with scores; these have none: use 'difference' or 'binary'"
            )
        self.theta_ = np.zeros(rankings.n_items)
        found: dict[Hashable, Consensus] = {}
        params = self.get_params(deep=False)
        notes, alone = (*data.notes, *unused_note(data, "svp")), rankings.instance is None
        about: dict[str, Any] = {"support": support(data)} if alone else {}
        worst, steps, value = 0.0, 0, 0.0
        for one in instances(rankings):
            Y, known = mean_differences(one, self.strength)
            X, change, n = project(Y, known, self.max_iter, self.tol)
            scores = X.mean(axis=1) if len(X) else np.zeros(0)
            worst, steps, value = max(worst, change), max(steps, n), value + float((((X - Y) * known) ** 2).sum()) / 2
            self.theta_[one.item] = scores
            names = tuple(rankings.items[i] for i in one.item)
            close = RELATIVE_TOLERANCE * largest_difference(one, self.strength)
            said = (*(notes if alone else ()), *_unfinished(change, n, self.tol))
            found[one.name] = Consensus(
                names, scores, method="svp", params=params, tolerance=close, notes=said, **about
            )
        converged = worst <= self.tol
        message = f"the last step changed the table by {worst:.1e} of its size after {steps} steps"
        self.fit_ = Fit(self.theta_, value, worst, steps, converged, message)
        several = ConsensusSet(found, method="svp", params=params, set_notes=notes)
        self.consensus_ = found[None] if alone else several
        return self


def _unfinished(change: float, steps: int, tol: float) -> list[str]:
    """A note if the projection stopped before it converged; a single step is what was asked for."""
    if change <= tol or steps == 1:
        return []
    return [f"not converged: step {steps} still changed the table by {change:.1e} of its size; raise max_iter or tol"]


def mean_differences(one: Instance, strength: str) -> tuple[Floats, Floats]:
    """Y, and a mask of its known pairs (1.0 or 0.0).  O(M^2 + pairs on ballots)."""
    M = len(one.item)
    total, weight = np.zeros((M, M)), np.zeros((M, M))
    places = -one.score if strength == "rating" and one.score is not None else one.place
    for place, w in zip(places, one.weight):
        listed = np.flatnonzero(~np.isnan(place))
        gap = place[listed][None, :] - place[listed][:, None]
        cells = np.ix_(listed, listed)
        total[cells] += w * (np.sign(gap) if strength == "binary" else gap)
        weight[cells] += w
    np.fill_diagonal(weight, 1.0)
    known = weight > 0
    return np.divide(total, weight, out=np.zeros((M, M)), where=known), known.astype(np.float64)


def largest_difference(one: Instance, strength: str) -> float:
    """The scale of the differences: the largest one on any ballot."""
    if strength == "binary" or not one.place.size:
        return 1.0
    places = one.score if strength == "rating" and one.score is not None else one.place
    here = ~np.isnan(places)
    wide = np.where(here, places, -np.inf).max(axis=1) - np.where(here, places, np.inf).min(axis=1)
    return float(wide.max(initial=0.0))


def project(Y: Floats, known: Floats, max_iter: int, tol: float) -> tuple[Floats, float, int]:
    """X, the relative change in the last step, and the number of steps."""
    X = np.zeros_like(Y)
    change, steps = 0.0, 0
    while steps < max_iter and len(Y):
        new = rank_two(X - known * (X - Y))
        size = float(np.linalg.norm(new))
        change = float(np.linalg.norm(new - X)) / size if size > 0 else 0.0
        X, steps = new, steps + 1
        if change <= tol:
            break
    return X, change, steps


def rank_two(X: Floats) -> Floats:
    """The closest matrix of rank 2, or the mean of several equally close ones, so that item numbers do not matter.

    Singular values of a skew-symmetric matrix come in pairs; the closest matrix is not unique if the second pair equals
    the first.  Beyond SMALL items the first pairs are found by Lanczos iterations on -X X, O(items^2) each.
    """
    near = _leading_part(X) if len(X) > SMALL else None
    if near is not None:
        return near
    U, s, V = np.linalg.svd(X)
    level = s[1] if len(s) > 1 else 0.0
    equal = np.abs(s - level) <= 1e-9 * (s[0] if len(s) else 0.0)
    first = (s > level) & ~equal
    share = np.where(first, 1.0, 0.0) + equal * (2 - first.sum()) / max(int(equal.sum()), 2 - int(first.sum()))
    return (U * (s * share)) @ V


def _leading_part(X: Floats) -> Floats | None:
    """The rank-2 part of a skew-symmetric matrix with a distinct first pair of singular values; None if not found.

    -X X is symmetric with the squared singular values as double eigenvalues; the part is the projection of X on the
    first two eigenvectors.
    """
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    start = X @ np.sign(X.sum(axis=1))
    if not np.abs(start).max() > 0:
        return None
    square = LinearOperator(X.shape, matvec=lambda v: -(X @ (X @ v)), dtype=np.float64)
    try:
        values, vectors = eigsh(square, k=4, v0=start, tol=LANCZOS_ACCURACY)
    except ArpackNoConvergence:
        return None
    order = np.argsort(-values)
    values, vectors = values[order], vectors[:, order]
    if values[2] > (1 - CLEAR_GAP) * values[0] or values[1] < (1 - 1e-6) * values[0]:
        return None  # the first pair is not clear of the second, or was not found whole
    image = X @ vectors[:, :2]
    return np.asarray(image @ vectors[:, :2].T)
