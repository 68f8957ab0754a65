"""A listwise ranking function: a base ranker's score times a product over the other rows."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from placet.data import DataError, Queries
from placet.data.arrays import Floats, Ints, list_of_rows
from placet.losses import Bound
from placet.optim import ConvergenceWarning, lbfgs
from placet.rank import similarity
from placet.rank.boosting.score_level import POWERS, WithLevel, best_constant
from placet.rank.feature_tables import reduce_per_list, to_dense
from placet.rank.ranker import Ranker
from placet.rank.saving.fitted_state import Array, Base, holds

LARGEST_EXPONENT = 300.0  # limit on exponents in training: e^300 can be squared

Terms = tuple[Floats, Floats]
"""(v, w): sum_t (v_t0 + v_t1 b) exp(T w_t); v is (terms, 2), w is (terms, kernels)."""


class ListwiseReranker(WithLevel):
    """f_i = b(x_i) exp(sum_k w_k T_ik), with a base score b and sums T_ik of similarities S_k to the other rows.

    T_ik = sum_{j != i} S_k(x_i, x_j), minus its mean over the list, a factor common to all rows of the list that does
    not change the order.  The sums are computed once per list (``placet.rank.similarity`` describes the
    kernels and their cost), so each evaluation in training costs as much as one of a pointwise function.  ``w_`` = 0 is
    the base ranking.  The function is permutation-equivariant: reordering the rows only reorders the scores.  In a list
    so long that some f_i would overflow or underflow, the scores are sign(f_i) (log|f_i| - c), with one c per list, in
    the same order.

    Training minimizes loss(c_0 + c_1 f) per unit weight + l2 / 2 |w|^2, w for sums scaled to unit deviation.  c_0 and
    c_1 > 0 (``level_``) give f the shift and scale that the loss expects; they do not change the order, and matter for
    probabilities.  The objective is not convex; training starts at w = 0.

    Parameters
    ----------
    base : Ranker, model, int or str
        A Placet ranker (an unfitted one is cloned and fitted first); any other fitted model with ``predict(X)``, such
        as LightGBM's; or the number or name of a column of scores.
    kernels : sequence
        Names, functions or relations: see ``placet.rank.similarity``.
    loss : str
        A name in ``LOSSES`` without learned parameters.
    terms : int
        More than 1 adds terms (v_0 + v_1 b(x_i)) exp(...), each with its own weights, by gradient boosting (every
        permutation-equivariant function is such a sum of products).
    l2 : float or sequence of float
        Penalty on the weights; of several, the best by ``metric`` on the validation set is kept, or the base alone.
    learning_rate : float
        Factor of additional terms.
    positive : bool
        First subtract the smallest b of each list, which does not change the base ranking; otherwise the effect of the
        product is reversed for rows with b < 0.
    average : bool
        Use means over j instead of sums.
    bandwidth : float
        Bandwidth of "gaussian".
    folds : int
        If at least 2, the training scores of an unfitted base are out-of-fold.
    metric : str
        Validation metric.
    max_iter : int
        Maximum number of iterations per term.
    loss_params : mapping, optional
        Parameters of the loss.
    random_state : int
        Seed of the folds.

    >>> import placet
    >>> data = placet.simulate.queries(60, 8, 3, noise=0.3, random_state=1)
    >>> base = placet.rank.LinearRanker("ranknet").fit(data[:20])
    >>> reranker = ListwiseReranker(base, positive=True).fit(data[20:40])
    >>> reranker.w_.shape, reranker.score(data[40:]) > 0.9
    ((1, 1), True)
    """

    needs = ("no learned parameters",)
    _state = holds(base_=Base(), v_=Array("terms", 2), w_=Array("terms", "kernels"), level_=Array(2))

    def __init__(
        self,
        base: Any = 0,
        kernels: Sequence[similarity.SimilarityKernel] = ("cosine",),
        loss: str = "bregman-ce",
        terms: int = 1,
        *,
        l2: float | Sequence[float] = 1e-3,
        learning_rate: float = 0.5,
        positive: bool = False,
        average: bool = False,
        bandwidth: float = 0.25,
        folds: int = 0,
        metric: str = "ndcg@10",
        max_iter: int = 100,
        loss_params: Mapping[str, Any] | None = None,
        random_state: int = 0,
    ) -> None:
        self.base = base
        self.kernels = kernels
        self.loss = loss
        self.terms = terms
        self.l2 = l2
        self.learning_rate = learning_rate
        self.positive = positive
        self.average = average
        self.bandwidth = bandwidth
        self.folds = folds
        self.metric = metric
        self.max_iter = max_iter
        self.loss_params = loss_params
        self.random_state = random_state

    def _fit(self, queries: Queries, valid: Queries | None) -> None:
        penalties = np.atleast_1d(np.asarray(self.l2, dtype=np.float64))
        self._check(penalties, valid)
        params = self._loss_record().training_parameters(self.loss_params)
        self.base_, b, interrupted = fit_base(self.base, queries, valid, self.folds, self.random_state)
        b, T = self._parts(queries, b)
        deviation = T.std(axis=0)
        scale = np.where(deviation > 0, deviation, 1.0)
        problem = _TermObjective(b, T / scale, Bound(self.loss, queries.lists(), params))
        base = np.array([[0.0, 1.0]]), np.zeros((1, T.shape[1]))
        judge = None
        if valid is not None:
            b_valid, T_valid = self._parts(valid, base_scores(self.base_, valid))
            judge = self._judge(valid, lambda state: list_scores(b_valid, T_valid / scale, state[0], valid.offsets))
        best = self._keep_best(judge, len(penalties) * self.terms)
        with best:
            best.consider((base, None))
            if interrupted:
                raise KeyboardInterrupt
            for l2 in penalties.tolist():
                for found in self._path(problem, l2):
                    best.see((found, l2))
        found, l2 = best.state
        self.v_, self.w_ = found[0], found[1] / scale
        value, self.level_ = problem.best_level(found)
        self.fit_summary_ = {
            "value": value,
            "value of the base": problem.best_level(base)[0],
            "l2": l2,
            "base kept": not self.w_.any(),
            **best.summary(),
        }

    def _path(self, problem: "_TermObjective", l2: float) -> Any:
        """Yield (v, w) with one term, two terms, ...; stop early when another term does not lower the loss."""
        v, w = np.array([[0.0, 1.0]]), problem.first_term(l2, self.max_iter)[None]
        yield v, w
        for _ in range(1, self.terms):
            more = problem.next_term((v, w), l2, self.max_iter, self.learning_rate)
            if more is None:
                return
            v, w = np.vstack([v, more[0]]), np.vstack([w, more[1]])
            yield v, w

    def _parts(self, queries: Queries, b: Floats) -> tuple[Floats, Floats]:
        """Base scores (rows,) and centered sums (rows, kernels), as used in the formula."""
        if self.positive:
            b = b - reduce_per_list(np.minimum, b, queries.offsets)
        T = similarity.sums(self.kernels, queries.X, queries.offsets, queries.relations, bandwidth=self.bandwidth)
        if self.average:
            T = similarity.means_from_sums(T, queries.offsets)
        return b, similarity.center(T, queries.offsets)

    def _scores(self, queries: Queries) -> Floats:
        b, T = self._parts(queries, base_scores(self.base_, queries))
        return list_scores(b, T, (self.v_, self.w_), queries.offsets)

    def _check_state(self) -> None:
        check_kernels(self.kernels, self.w_.shape[1])

    def _check(self, penalties: Floats, valid: Queries | None) -> None:
        if isinstance(self.kernels, str) or not len(self.kernels):
            raise ValueError(f"kernels {self.kernels!r} must be a sequence of at least one kernel")
        if self.terms < 1 or self.max_iter < 1 or not 0 < self.learning_rate <= 1:
            raise ValueError(
                f"terms {self.terms} and max_iter {self.max_iter} must be at least 1, "
                f"learning_rate {self.learning_rate} above 0 and at most 1"
            )
        if not len(penalties) or not (penalties >= 0).all():
            raise ValueError(f"l2 {self.l2} must be one or more numbers that are not negative")
        if len(penalties) > 1 and valid is None:
            raise ValueError(f"{len(penalties)} values of l2 need a validation set to choose among them")


def check_kernels(kernels: Any, n: int) -> None:
    """Raise a ``DataError`` unless there are ``n`` > 0 kernels."""
    if len(kernels) != n or not n:
        raise DataError(f"weights of {n} kernels do not fit {len(kernels)} of them")


def list_scores(b: Floats, T: Floats, terms: Terms, offsets: Ints) -> Floats:
    """sum_t (v_t0 + v_t1 b) exp(T w_t), (rows,), or sign (log|.| - c) of it in lists with over- or underflow.

    The c of a list is slightly below its smallest logarithm, which preserves signs and order.
    """
    v, w = terms
    exponent = T @ w.T
    largest = exponent.max(axis=1, initial=-np.inf)
    factor = v[:, 0] + v[:, 1] * b[:, None]
    sums = (factor * np.exp(exponent - largest[:, None])).sum(axis=1)
    bad = ~np.isfinite(sums)
    if bad.any():
        raise DataError(f"row {int(np.argmax(bad))}: the score is not finite ({bad.sum()} such rows); look at the base")
    out = sums * np.exp(np.clip(largest, -LARGEST_EXPONENT, LARGEST_EXPONENT))
    query = list_of_rows(offsets)
    far = np.zeros(len(offsets) - 1, bool)
    far[query[np.abs(largest) > LARGEST_EXPONENT]] = True
    rows = np.flatnonzero(far[query] & (sums != 0.0))
    if len(rows):
        logs = np.log(np.abs(sums[rows])) + largest[rows]
        least = np.full(len(far), np.inf)
        np.minimum.at(least, query[rows], logs)
        out[far[query]] = 0.0
        out[rows] = np.sign(sums[rows]) * (logs - least[query[rows]] + 1.0)
    return out


class _TermObjective:
    """The loss as a function of the weights of the first term and its level, or of another term."""

    def __init__(self, b: Floats, z: Floats, bound: Bound) -> None:
        self.b, self.z, self.bound, self.offsets = b, z, bound, bound.offsets
        self.constant = best_constant(bound)
        self.start = self.level = self.fit_level(b)

    def fit_level(self, f: Floats) -> Floats:
        """(c_0 / unit, log(c_1 spread), unit, spread) that minimize the loss of c_0 + c_1 f.

        c_0 starts at the best constant, whose absolute value is the unit, and c_1 at the best power of 2.
        """
        spread, c0 = float(f.std()) or 1.0, self.constant
        unit = abs(c0) or 1.0
        c1 = min(unit * POWERS, key=lambda c: self.bound.value_and_grad(c0 + c * f / spread)[0])

        def fun(x: Floats) -> tuple[float, Floats]:
            s = unit * x[0] + np.exp(min(x[1], LARGEST_EXPONENT)) * f / spread
            value, g = self.bound.value_and_grad(s)
            return value, np.array([unit * g.sum(), g @ (s - unit * x[0])])

        x = _minimize(fun, np.array([c0 / unit, np.log(c1)]), 100)
        return np.array([x[0], x[1], unit, spread])

    def first_term(self, l2: float, max_iter: int) -> Floats:
        """w of the first term, fitted jointly with c_0 and c_1, which become the level for additional terms."""
        z, unit, b = self.z, self.start[2], self.b / self.start[3]

        def fun(x: Floats) -> tuple[float, Floats]:
            exponent = x[1] + z @ x[2:]
            f = b * np.exp(np.clip(exponent, -LARGEST_EXPONENT, LARGEST_EXPONENT))
            value, g = self.bound.value_and_grad(unit * x[0] + f)
            along = g * f * (np.abs(exponent) < LARGEST_EXPONENT)
            slope = np.concatenate([[unit * g.sum(), along.sum()], along @ z + l2 * x[2:]])
            return value + 0.5 * l2 * float(x[2:] @ x[2:]), slope

        x = _minimize(fun, np.concatenate([self.start[:2], np.zeros(z.shape[1])]), max_iter)
        self.level = np.concatenate([x[:2], self.start[2:]])
        return x[2:]

    def next_term(self, found: Terms, l2: float, max_iter: int, learning_rate: float) -> Terms | None:
        """(v, w) of another term, or None if it does not lower the loss.

        Starts at the weights, among 0 and plus or minus one deviation in each kernel, whose term has the largest
        projection on the gradient.
        """
        z, n_kernels = self.z, self.z.shape[1]
        constant, log_factor, unit, spread = self.level
        factor = np.exp(log_factor) / spread
        before = unit * constant + factor * list_scores(self.b, z, found, self.offsets)
        columns = np.column_stack([np.ones(len(self.b)), self.b / spread])
        old, g0 = self.bound.value_and_grad(before)

        def fun(x: Floats) -> tuple[float, Floats]:
            exponent = z @ x[2:]
            e = np.exp(np.clip(exponent, -LARGEST_EXPONENT, LARGEST_EXPONENT))
            h = (columns @ x[:2]) * e
            value, g = self.bound.value_and_grad(before + h)
            along = g * h * (np.abs(exponent) < LARGEST_EXPONENT)
            slope = np.concatenate([(g * e) @ columns, along @ z + l2 * x[2:]])
            return value + 0.5 * l2 * float(x[2:] @ x[2:]), slope

        starts = np.vstack([np.zeros(n_kernels), np.eye(n_kernels), -np.eye(n_kernels)])
        terms = [columns * np.exp(z @ w)[:, None] for w in starts]
        norms = [np.linalg.norm(h, axis=0) for h in terms]
        projection = [np.abs(g0 @ h) / np.where(n > 0, n, 1.0) for h, n in zip(terms, norms)]
        best = int(np.argmax([p.max() for p in projection]))
        x = _minimize(fun, np.concatenate([[0.0, 0.0], starts[best]]), max_iter)
        if not fun(x)[0] < old - 1e-12 * abs(old):
            return None
        v = learning_rate * x[:2] / factor
        return np.array([[v[0], v[1] / spread]]), x[None, 2:]

    def best_level(self, found: Terms) -> tuple[float, Floats]:
        """The loss per unit weight of the best c_0 + c_1 f for these weights, and (c_0, c_1)."""
        f = list_scores(self.b, self.z, found, self.offsets)
        constant, log_factor, unit, spread = self.fit_level(f)
        level = np.array([unit * constant, np.exp(log_factor) / spread])
        return self.bound.value_and_grad(level[0] + level[1] * f)[0], level


def _minimize(fun: Callable[[Floats], tuple[float, Floats]], start: Floats, max_iter: int) -> Floats:
    """Run L-BFGS without a warning if it stops at ``max_iter``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return lbfgs(fun, start, tol=1e-6, max_iter=max_iter, rel_tol=1e-10, relative=True).x


# --- scores of a base: a Placet ranker, a LightGBM model, anything with ``predict``, or a column of the features -----


def fit_base(
    base: Any, queries: Queries, valid: Queries | None, folds: int, random_state: int
) -> tuple[Any, Floats, bool]:
    """The fitted base, its scores of the training rows, and whether its training was interrupted.

    An unfitted Placet ranker is cloned and fitted; with ``folds`` >= 2 its scores are out-of-fold, so that a model
    trained on them does not rely on an overfitted base.
    """
    if not (isinstance(base, Ranker) and not hasattr(base, "n_features_in_")):
        return base, base_scores(base, queries), False
    own = clone(base).fit(queries, valid=valid)
    interrupted = bool(own.fit_summary_["interrupted"])
    if folds < 2 or interrupted:
        return own, base_scores(own, queries), interrupted
    if folds > len(queries):
        raise ValueError(f"folds {folds} must not be more than the {len(queries)} queries")
    part = np.random.default_rng(random_state).permutation(len(queries)) % folds
    out = np.empty(len(queries.grade))
    of_row = part[queries.query]
    for k in range(folds):
        one = clone(base).fit(queries[part != k], valid=valid)
        out[of_row == k] = base_scores(one, queries[part == k])
        if one.fit_summary_["interrupted"]:
            return own, base_scores(own, queries), True
    return own, out, False


def base_scores(base: Any, queries: Queries) -> Floats:
    """Compute and check the scores (rows,) of the base."""
    if isinstance(base, (int, np.integer, str)) and not isinstance(base, bool):
        found = to_dense(queries.X[:, [_column(base, queries)]])[:, 0]
    elif isinstance(base, Ranker):
        found = base.predict(queries)
    elif hasattr(base, "predict"):
        found = np.asarray(base.predict(queries.X) if queries.X.shape[0] else [], dtype=np.float64)
    else:
        raise ValueError(
            f"base {base!r} must be a fitted ranker with predict, or the number or name of a column of scores"
        )
    found = np.asarray(found, dtype=np.float64)
    if found.shape != (len(queries.grade),):
        raise DataError(f"the base gives scores of shape {found.shape} for {len(queries.grade)} rows")
    bad = ~np.isfinite(found)
    if bad.any():
        raise DataError(f"row {int(np.argmax(bad))}: the base gives {found[bad.argmax()]} ({bad.sum()} such rows)")
    return found


def _column(base: Any, queries: Queries) -> int:
    if isinstance(base, str):
        if queries.features is None or base not in queries.features:
            raise DataError(f"base {base!r} is not the name of a column; they are {list(queries.features or ())[:20]}")
        return queries.features.index(base)
    if not -queries.n_features <= base < queries.n_features:
        raise DataError(f"base {base} is not the number of a column; there are {queries.n_features}")
    return int(base)
