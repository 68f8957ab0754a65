"""Continuous conditional random fields: the scores in a list depend on each other through a relation.

Qin, Liu, Zhang, Wang and Li, Global ranking using continuous conditional random fields, NIPS 2008.
"""

import warnings
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from placet.data import DataError, Queries
from placet.data.arrays import Floats, Ints, list_of_rows
from placet.losses import Bound
from placet.optim import ConvergenceWarning, Fit, cg, lbfgs
from placet.rank import similarity
from placet.rank.boosting.score_level import WithLevel
from placet.rank.feature_tables import need_dense
from placet.rank.saving.fitted_state import Array, Number, holds

LONGEST_DENSE = 5000  # maximum rows of a list for eigenvalues and direct solves
ERROR = 1e-6  # largest relative error of a solution without a warning
LARGEST = 12.0  # bound on |log alpha| and |log beta|: the density has no maximum if related rows all have equal grades


class ContinuousCRF(WithLevel):
    """Scores are the mean of a Gaussian field over the list; alpha_k > 0 weights feature k, beta >= 0 the relation.

    Features should be normalized; all of them count as evidence for relevance.  With beta = 0 the score is a weighted
    mean of the features, X alpha / a, a = sum(alpha).  Systems are solved by conjugate gradients in O(entries of S)
    memory, so long lists are no problem.  If these stop early (beta far above a), lists of at most 5,000 rows are
    solved directly; for longer ones a ``ConvergenceWarning`` and ``fit_summary_["relative error"]`` give a bound on
    the error of the scores.

    Parameters
    ----------
    relation : str
        A name in ``Queries.relations``, or, for feedback, "cosine" of the features (no matrix is formed).
    form : str
        "feedback" (pseudo-relevance feedback; rows similar by S have similar scores):
        y = (a I + beta (D - S))^-1 X alpha, D the row sums of S, which must be symmetric and nonnegative.
        "distillation" (R_ij > 0: row i is the parent of j, and should be above it):
        y = (2 X alpha + beta (row sums - column sums of R)) / (2 a); the published denominator lacks the 2, which does
        not affect the order.
    loss : str
        "likelihood" maximizes the field's own density at the grades (scaled to [0, 1]), for lists of at most 5,000
        rows.  Any name in ``LOSSES`` without learned parameters is fitted to c_0 + c_1 y instead, with one more solve
        for the gradient.  c_0 and c_1 > 0 (``level_``) give y, a mean of features, the shift and scale that the loss
        expects; they do not change the order, and matter for probabilities.
    l2 : float
        Penalty on log alpha and log beta.
    tol : float
        Stop when the largest gradient component is below this fraction of its initial value.
    max_iter : int
        Maximum number of iterations.
    metric : str
        Validation metric.
    loss_params : mapping, optional
        Parameters of the loss.

    >>> import placet
    >>> data = placet.simulate.queries(60, 8, 3, w=[1, 1, 1], noise=0.3, random_state=1)
    >>> field = ContinuousCRF("cosine").fit(data[:40])
    >>> field.beta_ >= 0, field.score(data[40:]) > 0.9
    (True, True)
    """

    needs = ("no learned parameters",)
    own_losses = ("likelihood",)
    _state = holds(alpha_=Array("features", low=0), beta_=Number(low=0), level_=Array(2))

    def __init__(
        self,
        relation: str = "cosine",
        form: Literal["feedback", "distillation"] = "feedback",
        loss: str = "likelihood",
        *,
        l2: float = 1e-3,
        tol: float = 1e-4,
        max_iter: int = 300,
        metric: str = "ndcg@10",
        loss_params: Mapping[str, Any] | None = None,
    ) -> None:
        self.relation = relation
        self.form = form
        self.loss = loss
        self.l2 = l2
        self.tol = tol
        self.max_iter = max_iter
        self.metric = metric
        self.loss_params = loss_params

    def _fit(self, queries: Queries, valid: Queries | None) -> None:
        self._check()
        field = self._field(queries)
        objective = _Likelihood(field, queries) if self.loss == "likelihood" else _Loss(field, queries, self)
        n = queries.n_features + 1

        def penalize(x: Floats) -> tuple[float, Floats]:
            value, grad = objective(_clip(x, n))
            grad[:n] = np.where(np.abs(x[:n]) < LARGEST, grad[:n], 0.0) + self.l2 * x[:n]
            return value + 0.5 * self.l2 * float(x[:n] @ x[:n]), grad

        start = np.concatenate([np.full(n, -np.log(n - 1)), objective.start])
        start[n - 1] -= np.log(max(field.mean_degree, 1.0))
        held_out = None if valid is None else self._field(valid)
        judge = self._judge(valid, lambda x: held_out.mean(*_parameters(x, n)))  # type: ignore[union-attr]
        best = self._keep_best(judge, self.max_iter, copy=np.copy)
        fit: Fit | None = None
        with best, warnings.catch_warnings():  # fit_summary_ says whether it converged
            warnings.simplefilter("ignore", ConvergenceWarning)
            after: Any = lambda x, value: best.see(x)  # noqa: E731
            fit = lbfgs(penalize, start, tol=self.tol, max_iter=self.max_iter, relative=True, callback=after)
            best.consider(fit.x)
        self.alpha_, self.beta_ = _parameters(best.state, n)
        self.level_ = objective.level(best.state[n:])
        field.error = 0.0  # from here on, the error at the final parameters only
        value = objective(_clip(best.state, n))[0]
        self.fit_summary_ = {
            "converged": fit is not None and fit.converged and field.error <= ERROR,
            "n_iter": best.steps,
            "message": "interrupted" if fit is None else fit.message,
            "value": value,
            "relative error": field.error,
            **best.summary(),
        }

    def _field(self, queries: Queries) -> "_Feedback | _Distillation":
        X = np.ascontiguousarray(need_dense(queries.X, "a continuous random field needs"), np.float64)
        kind = _Feedback if self.form == "feedback" else _Distillation
        return kind(X, queries.offsets, self.relation, queries.relations)

    def _scores(self, queries: Queries) -> Floats:
        field = self._field(queries)
        s = field.mean(self.alpha_, float(self.beta_))
        if field.error > ERROR:
            stiff = float(self.beta_ / self.alpha_.sum())
            warnings.warn(
                f"conjugate gradients stopped early: beta / a is {stiff:.3g} and scores may be off by "
                f"{field.error:.2g} of their size; raise l2, or give lists of at most {LONGEST_DENSE} rows",
                ConvergenceWarning,
                stacklevel=3,
            )
        return s

    def _check(self) -> None:
        if self.form == "distillation" and self.relation == "cosine":
            raise ValueError("form 'distillation' needs a directed relation of the Queries, not 'cosine'")
        if not (self.l2 >= 0 and self.tol > 0 and self.max_iter >= 1):
            raise ValueError("l2 must not be negative, tol be above 0, max_iter at least 1")


class _Feedback:
    """mu = A^-1 X alpha with A = a I + beta L, L = D - S."""

    def __init__(self, X: Floats, offsets: Ints, relation: str, relations: Any) -> None:
        self.X, self.offsets = X, offsets
        self.error = 0.0  # largest bound on the relative error of a solution so far
        if relation == "cosine":
            U = similarity.unit_rows(X, offsets)
            self.product = lambda v: similarity.cosine_product(U, offsets, v)
            self.block = lambda a, b: _without_diagonal(U[a:b] @ U[a:b].T)
        else:
            S = _symmetric(similarity.relation(relations, relation), relation)
            self.product = lambda v: S @ v
            self.block = lambda a, b: S[a:b, a:b].toarray()
        self.degree = np.asarray(self.product(np.ones(len(X))), dtype=np.float64)
        self.mean_degree = float(self.degree.mean()) if len(X) else 0.0

    def laplacian(self, v: Floats) -> Floats:
        return self.degree * v - self.product(v)

    def solve(self, a: float, beta: float, right: Floats) -> Floats:
        """A^-1 right, by conjugate gradients with the diagonal as preconditioner, for all lists at once.

        A is at least a I, so |right - A x| / a bounds the error.  Lists where it exceeds ``ERROR`` |x| are solved
        directly, unless they are too long.
        """
        if beta == 0.0 or not len(right):
            return right / a
        times = lambda v: a * v + beta * self.laplacian(v)  # noqa: E731
        x = cg(times, right, rtol=1e-12, diagonal=a + beta * self.degree, max_iter=min(1000, 50 + 2 * len(right)))
        query = list_of_rows(self.offsets)
        n = len(self.offsets) - 1
        error = np.sqrt(np.bincount(query, (right - times(x)) ** 2, n)) / a
        size = np.sqrt(np.bincount(query, x**2, n))
        for q in np.flatnonzero(error > ERROR * size).tolist():
            lo, hi = int(self.offsets[q]), int(self.offsets[q + 1])
            if hi - lo > LONGEST_DENSE:
                self.error = max(self.error, float(error[q] / size[q]) if size[q] > 0 else np.inf)
                continue
            S = self.block(lo, hi)
            A = beta * (np.diag(S.sum(axis=1)) - S) + a * np.eye(hi - lo)
            x[lo:hi] = cho_solve(cho_factor(A), right[lo:hi])
        return x

    def mean(self, alpha: Floats, beta: float) -> Floats:
        return self.solve(float(alpha.sum()), beta, self.X @ alpha)

    def pull_back(self, mu: Floats, g: Floats, alpha: Floats, beta: float) -> tuple[Floats, float]:
        """Derivatives in alpha and beta of a function of mu with gradient g, by one more solve."""
        z = self.solve(float(alpha.sum()), beta, g)
        return z @ self.X - float(z @ mu), -float(z @ self.laplacian(mu))

    def eigenvalues(self) -> Floats:
        """Eigenvalues of L, list by list, (rows,)."""
        found = []
        for a, b in zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist()):
            if b - a > LONGEST_DENSE:
                raise DataError(
                    f"a list of {b - a} rows is too long for the likelihood, which takes eigenvalues of at most "
                    f"{LONGEST_DENSE} rows; use another loss, such as loss='pmop-fd'"
                )
            S = self.block(a, b)
            found.append(np.linalg.eigvalsh(np.diag(S.sum(axis=1)) - S))
        return np.maximum(np.concatenate(found), 0.0) if found else np.zeros(0)


class _Distillation:
    """mu = (2 X alpha + beta (row sums - column sums of R)) / (2 a)."""

    def __init__(self, X: Floats, offsets: Ints, relation: str, relations: Any) -> None:
        R = similarity.relation(relations, relation)
        self.X, self.offsets, self.error = X, offsets, 0.0
        self.lead = np.asarray(R.sum(axis=1)).ravel() - np.asarray(R.sum(axis=0)).ravel()
        self.mean_degree = float(np.abs(self.lead).mean()) if len(X) else 0.0

    def mean(self, alpha: Floats, beta: float) -> Floats:
        return (self.X @ alpha + 0.5 * beta * self.lead) / float(alpha.sum())

    def pull_back(self, mu: Floats, g: Floats, alpha: Floats, beta: float) -> tuple[Floats, float]:
        a = float(alpha.sum())
        return (g @ self.X - float(g @ mu)) / a, 0.5 * float(g @ self.lead) / a

    def eigenvalues(self) -> Floats:
        return np.zeros(len(self.X))

    def laplacian(self, v: Floats) -> Floats:
        return np.zeros_like(v)


class _Likelihood:
    """-log density of the grades per unit weight, precision 2 A: (y - mu)' A (y - mu) - log det A / 2 + const.

    Each list's term is multiplied by its weight.  x = (log alpha, log beta).
    """

    start = np.zeros(0)

    def level(self, x: Floats) -> Floats:
        """Constant and factor that turn the mean into the score used by the loss."""
        return np.array([0.0, 1.0])

    def __init__(self, field: Any, queries: Queries) -> None:
        low, high = queries.grade.min(), queries.grade.max()
        self.field, self.y = field, (queries.grade - low) / (high - low)
        self.eigen = field.eigenvalues()
        self.weight = queries.weight[queries.query]
        self.total = float(queries.weight.sum())

    def __call__(self, x: Floats) -> tuple[float, Floats]:
        alpha, beta = _parameters(x, len(x))
        a = float(alpha.sum())
        mu = self.field.mean(alpha, beta)
        gap = self.y - mu
        rough = self.field.laplacian(gap)
        weighted = self.weight * gap
        spectrum = a + beta * self.eigen
        value = float(weighted @ (a * gap + beta * rough)) - 0.5 * float(self.weight @ np.log(spectrum / np.pi))
        d_alpha, d_beta = self.field.pull_back(mu, -2.0 * self.weight * (a * gap + beta * rough), alpha, beta)
        d_alpha = d_alpha + float(weighted @ gap) - 0.5 * float(self.weight @ (1.0 / spectrum))
        d_beta += float(weighted @ rough) - 0.5 * float(self.weight @ (self.eigen / spectrum))
        return value / self.total, np.append(alpha * d_alpha, beta * d_beta) / self.total


class _Loss:
    """Any entry of ``LOSSES`` at c_0 + c_1 mu, per unit weight.  x = (log alpha, log beta, log c_1, c_0)."""

    def __init__(self, field: Any, queries: Queries, ranker: ContinuousCRF) -> None:
        record = ranker._loss_record()
        params = record.training_parameters(ranker.loss_params, ranker.tol)
        self.field, self.bound = field, Bound(record, queries.lists(), params)
        self.start = np.zeros(1 if record.shift_invariant else 2)

    def __call__(self, x: Floats) -> tuple[float, Floats]:
        n = len(x) - len(self.start)
        alpha, beta = _parameters(x, n)
        mu = self.field.mean(alpha, beta)
        constant, factor = self.level(x[n:]).tolist()
        value, g = self.bound.value_and_grad(constant + factor * mu)
        d_alpha, d_beta = self.field.pull_back(mu, factor * g, alpha, beta)
        d_level = np.array([factor * float(g @ mu), float(g.sum())])[: len(self.start)]
        return value, np.concatenate([alpha * d_alpha, [beta * d_beta], d_level])

    def level(self, x: Floats) -> Floats:
        """Constant and factor that turn the mean into the score used by the loss; x = (log factor, constant if any)."""
        return np.array([float(x[1:].sum()), float(np.exp(min(x[0], 300.0)))])


def _parameters(x: Floats, n: int) -> tuple[Floats, float]:
    """alpha and beta from their logarithms, the first n entries of x."""
    x = _clip(x, n)
    return np.exp(x[: n - 1]), float(np.exp(x[n - 1]))


def _clip(x: Floats, n: int) -> Floats:
    """Clip the first n entries to the bounds."""
    return np.concatenate([np.clip(x[:n], -LARGEST, LARGEST), x[n:]])


def _without_diagonal(S: Floats) -> Floats:
    np.fill_diagonal(S, 0.0)
    return S


def _symmetric(S: Any, name: str) -> Any:
    """A similarity without its diagonal; raise if it is asymmetric or has negative entries."""
    gap = abs(S - S.T)
    if gap.nnz and gap.max() > 1e-9 * max(abs(S).max(), 1e-300):
        i, j = (int(k[0]) for k in (gap > 0.5 * gap.max()).nonzero())
        raise DataError(
            f"relation {name!r} is not symmetric: entry ({i}, {j}) is {S[i, j]:g} and ({j}, {i}) is {S[j, i]:g}; "
            "form 'feedback' needs a similarity: use (S + S.T) / 2, or form='distillation' for a directed relation"
        )
    if S.nnz and S.min() < 0:
        raise DataError(f"relation {name!r} has {int((S.data < 0).sum())} negative entries; a similarity has none")
    from scipy.sparse import diags_array

    return (S - diags_array(S.diagonal())).tocsr()
