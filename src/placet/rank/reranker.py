"""A ranking function of the whole list: a base ranker's score times a product over the other rows."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from placet.data import DataError, Queries
from placet.data.arrays import Floats
from placet.data.errors import one_of
from placet.losses import LOSSES
from placet.metrics import metric as metric_of
from placet.optim import lbfgs
from placet.rank import base_scores, files, similarity
from placet.rank.objective import parameters_for
from placet.rank.ranker import Ids, Ranker, mean_defined, restored

LARGEST_EXPONENT = 30.0  # |sum_k w_k sum_j S_k| is held here, so that no list, however long, gives an infinite score


class ListwiseReranker(Ranker):
    """f_i = b(x_i) exp(sum_k w_k sum_{j != i} S_k(x_i, x_j)): a base score b and similarities S_k to the other rows.

    The sums over j are computed once per list (``placet.rank.similarity`` says which kernels there are and what they
    cost), so each evaluation in training costs as much as one of a pointwise function.  ``w_`` = 0 is the base ranking.
    The function is exchangeable: rows in another order get the same scores in that order.

    ``base``: a ranker of Placet (an unfitted one is cloned and fitted first; with ``folds`` its training scores are
    those of fits on the other folds), anything else with ``predict(X)`` such as LightGBM's, fitted; or the number or
    name of a column of scores.  The product turns round for rows with b < 0: ``positive=True`` subtracts the smallest b
    of each list first, which leaves the base ranking as it is.  ``average``: means over j in place of sums.

    Training minimises loss(c_0 + c_1 f) per unit weight + l2 / 2 |w|^2, w in units of the sums' deviations; c_0 and c_1
    > 0 bring f to the level that the loss expects and change no order, so they are not kept.  The objective is not
    convex; it starts at w = 0.  With several ``l2`` the validation set chooses among them, and the base itself
    (w = 0), by ``metric``.

    ``terms`` > 1 adds terms (v_0 + v_1 b(x_i)) exp(...) with weights of their own by gradient boosting with
    ``shrinkage`` (the sum of products that every exchangeable function is).

    >>> import placet
    >>> data = placet.simulate.queries(60, 8, 3, noise=0.3, random_state=1)
    >>> base = placet.rank.LinearRanker("ranknet").fit(data[:20])
    >>> reranker = ListwiseReranker(base, positive=True).fit(data[20:40])
    >>> reranker.w_.shape, reranker.score(data[40:]) > 0.9
    ((1, 1), True)
    """

    _state = ("v_", "w_", "scale_")

    def __init__(
        self,
        base: Any = 0,
        kernels: Sequence[similarity.Kernel] = ("cosine",),
        loss: str = "bregman-ce",
        terms: int = 1,
        *,
        l2: float | Sequence[float] = 1e-3,
        shrinkage: float = 0.5,
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
        self.shrinkage = shrinkage
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
        self.base_, b = base_scores.fitted(self.base, queries, valid, self.folds, self.random_state)
        b, T = self._parts(queries, b)
        deviation = T.std(axis=0)
        self.scale_ = np.where(deviation > 0, deviation, 1.0)
        problem = _Problem(b, T / self.scale_, queries, self.loss, parameters_for(self.loss, self.loss_params))
        judge = None if valid is None else self._judge(valid)
        found = [self._path(problem, float(l2)) for l2 in penalties]
        chosen, best = found[0][-1], None
        if judge is not None:
            candidates = [(_first(b, T), -1.0)] + [(c, l2) for path, l2 in zip(found, penalties.tolist()) for c in path]
            values = [judge(c) for c, _ in candidates]
            best = max(values)
            chosen, kept_l2 = candidates[int(np.argmax(values))]
        else:
            kept_l2 = float(penalties[0])
        self.v_, self.w_ = chosen[0], chosen[1] / self.scale_
        self.fit_summary_ = {
            "value": problem.value(chosen),
            "value of the base": problem.value(_first(b, T)),
            "l2": None if kept_l2 < 0 else kept_l2,
            "base kept": bool((self.w_ == 0).all()),
            "validation": best,
        }

    def _path(self, problem: "_Problem", l2: float) -> list[tuple[Floats, Floats]]:
        """(v, w) after one term, two terms, ...; ends early when a further term does not lower the loss."""
        v, w = np.array([[0.0, 1.0]]), problem.first_term(l2, self.max_iter)[None]
        path = [(v, w)]
        for term in range(1, self.terms):
            more = problem.next_term((v, w), l2, self.max_iter, self.shrinkage)
            if more is None:
                break
            v, w = np.vstack([v, more[0]]), np.vstack([w, more[1]])
            path.append((v, w))
            self._tell(term + 1, self.terms, None)
        return path

    def _judge(self, valid: Queries) -> Any:
        b, T = self._parts(valid, base_scores.scored(self.base_, valid))
        metric, z = metric_of(self.metric), T / self.scale_
        return lambda c: mean_defined(metric(_product_sum(b, z, *c), valid.grade, valid.offsets))

    def _parts(self, queries: Queries, b: Floats) -> tuple[Floats, Floats]:
        """Base scores (rows,) and sums (rows, kernels) as the formula takes them."""
        sizes = np.diff(queries.offsets)
        if self.positive and len(b):
            full = sizes > 0
            b = b - np.repeat(np.minimum.reduceat(b, queries.offsets[:-1][full]), sizes[full])
        T = similarity.sums(self.kernels, queries.X, queries.offsets, queries.relations, bandwidth=self.bandwidth)
        if self.average:
            T /= np.repeat(np.maximum(sizes - 1, 1), sizes)[:, None]
        return b, T

    def predict(self, X: Any, qid: Ids | None = None) -> Floats:
        """A score for every row, in the order given.  The list matters: give ``qid``, or the rows are one list.

        Kernels that are relations need ``Queries`` that hold them.
        """
        queries = self._seen(X, qid)
        b, T = self._parts(queries, base_scores.scored(self.base_, queries))
        scores = _product_sum(b, T, self.v_, self.w_)
        return scores if isinstance(X, Queries) else restored(queries, scores)

    def _scores(self, X: Any, offsets: NDArray[np.int64]) -> Floats:
        return self.predict(Queries(X, np.zeros(X.shape[0]), offsets, features=self.features_))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the reranker with its base (a ranker of Placet or of LightGBM, or a column) to one file."""
        self._check_fitted()
        state = {name: getattr(self, name) for name in (*self._common, *self._state)}
        params = {**self.get_params(deep=False), "base": None}
        files.write(path, type(self).__name__, params, {**state, **base_scores.packed(self.base_)})

    @classmethod
    def from_saved(cls, params: dict[str, Any], state: dict[str, Any]) -> Self:
        own, base = base_scores.unpacked(state)
        ranker = super().from_saved(params, own)
        ranker.base = ranker.base_ = base
        return ranker

    def _check(self, penalties: Floats, valid: Queries | None) -> None:
        one_of(self.loss, LOSSES, "loss")
        if isinstance(self.kernels, str) or not len(self.kernels):
            raise ValueError(f"kernels {self.kernels!r} must be a sequence of at least one kernel")
        if self.terms < 1 or self.max_iter < 1 or not 0 < self.shrinkage <= 1:
            raise ValueError(
                f"terms {self.terms} and max_iter {self.max_iter} must be at least 1, "
                f"shrinkage {self.shrinkage} above 0 and at most 1"
            )
        if not len(penalties) or not (penalties >= 0).all():
            raise ValueError(f"l2 {self.l2} must be one or more numbers that are not negative")
        if len(penalties) > 1 and valid is None:
            raise ValueError(f"{len(penalties)} values of l2 need a validation set to choose among them")


def _first(b: Floats, T: Floats) -> tuple[Floats, Floats]:
    """The base ranking: one term with weights 0."""
    return np.array([[0.0, 1.0]]), np.zeros((1, T.shape[1]))


def _product_sum(b: Floats, T: Floats, v: Floats, w: Floats) -> Floats:
    """sum_t (v_t0 + v_t1 b) exp(T w_t), (rows,)."""
    out = np.zeros(len(b))
    for (constant, slope), row in zip(v, w):
        out += (constant + slope * b) * np.exp(np.clip(T @ row, -LARGEST_EXPONENT, LARGEST_EXPONENT))
    bad = ~np.isfinite(out)
    if bad.any():
        raise DataError(f"row {int(np.argmax(bad))}: the score is not finite ({bad.sum()} such rows); look at the base")
    return out


class _Problem:
    """The loss as a function of the weights: of one term with its level, or of one term more."""

    def __init__(self, b: Floats, z: Floats, queries: Queries, loss: str, params: Mapping[str, Any]) -> None:
        self.b, self.z, self.loss, self.params = b, z, LOSSES[loss], params
        self.lists, self.total = queries.lists(), float(queries.weight.sum())
        self.spread = float(b.std()) or 1.0
        self.start = self.level = self._level()

    def _loss(self, s: Floats) -> tuple[float, Floats]:
        value, grad = self.loss(s, self.lists, **self.params)
        return value / self.total, grad / self.total

    def _level(self) -> Floats:
        """(c_0 / unit, log c_1) that fit c_0 + c_1 b to the loss: where training starts.

        Losses differ by orders of magnitude in the level that they expect and can be flat away from it, so a coarse
        search over powers of 2 comes first; ``unit`` is the c_0 that it finds.
        """
        steps = 2.0 ** np.arange(-14, 8)
        constant = np.zeros(len(self.b))
        c0 = min([0.0, *steps, *-steps], key=lambda c: self._loss(constant + c)[0])
        self.unit = abs(c0) or 1.0
        c1 = min(self.unit * steps, key=lambda c: self._loss(c0 + c * self.b / self.spread)[0])

        def fun(x: Floats) -> tuple[float, Floats]:
            s = self.unit * x[0] + np.exp(min(x[1], 300.0)) * self.b / self.spread
            value, g = self._loss(s)
            return value, np.array([self.unit * g.sum(), g @ (s - self.unit * x[0])])

        return _minimum(fun, np.array([c0 / self.unit, np.log(c1)]), 100)

    def first_term(self, l2: float, max_iter: int) -> Floats:
        """w of the first term; c_0 and c_1 move along and are kept as the level for further terms."""
        z, b = self.z, self.b / self.spread

        def fun(x: Floats) -> tuple[float, Floats]:
            raw = z @ x[2:]
            e = np.exp(np.clip(raw, -LARGEST_EXPONENT, LARGEST_EXPONENT))
            f = np.exp(min(x[1], 300.0)) * b * e
            value, g = self._loss(self.unit * x[0] + f)
            slope = (g * f * (np.abs(raw) < LARGEST_EXPONENT)) @ z
            return value + 0.5 * l2 * float(x[2:] @ x[2:]), np.concatenate(
                [[self.unit * g.sum(), g @ f], slope + l2 * x[2:]]
            )

        x = _minimum(fun, np.concatenate([self.start, np.zeros(z.shape[1])]), max_iter)
        self.level = x[:2]
        return x[2:]

    def next_term(self, found: tuple[Floats, Floats], l2: float, max_iter: int, shrinkage: float) -> Any:
        """(v, w) of one term more, or None if it does not lower the loss.

        Starts from the weights, among 0 and one deviation either way in every kernel, whose term has the largest
        projection on the gradient.
        """
        z, n_kernels = self.z, self.z.shape[1]
        unit = np.exp(self.level[1]) / self.spread
        before = self.unit * self.level[0] + unit * _product_sum(self.b, z, *found)
        columns = np.column_stack([np.ones(len(self.b)), self.b / self.spread])
        old, g0 = self._loss(before)

        def fun(x: Floats) -> tuple[float, Floats]:
            raw = z @ x[2:]
            e = np.exp(np.clip(raw, -LARGEST_EXPONENT, LARGEST_EXPONENT))
            h = (columns @ x[:2]) * e
            value, g = self._loss(before + h)
            slope = (g * h * (np.abs(raw) < LARGEST_EXPONENT)) @ z
            return value + 0.5 * l2 * float(x[2:] @ x[2:]), np.concatenate([(g * e) @ columns, slope + l2 * x[2:]])

        starts = np.vstack([np.zeros(n_kernels), np.eye(n_kernels), -np.eye(n_kernels)])
        terms = [columns * np.exp(z @ w)[:, None] for w in starts]
        norms = [np.linalg.norm(h, axis=0) for h in terms]
        projection = [np.abs(g0 @ h) / np.where(n > 0, n, 1.0) for h, n in zip(terms, norms)]
        best = int(np.argmax([p.max() for p in projection]))
        x = _minimum(fun, np.concatenate([[0.0, 0.0], starts[best]]), max_iter)
        if not fun(x)[0] < old - 1e-12 * abs(old):
            return None
        v = shrinkage * x[:2] / unit
        return np.array([[v[0], v[1] / self.spread]]), x[None, 2:]

    def value(self, found: tuple[Floats, Floats]) -> float:
        """The loss per unit weight at the best level c_0 + c_1 f for these weights."""
        other = object.__new__(_Problem)
        other.__dict__.update(self.__dict__)
        other.b = _product_sum(self.b, self.z, *found)
        other.spread = float(other.b.std()) or 1.0
        x = other._level()
        return other._loss(other.unit * x[0] + np.exp(x[1]) * other.b / other.spread)[0]


def _minimum(fun: Any, start: Floats, max_iter: int) -> Floats:
    """L-BFGS in units of the gradient at the start; a few weights need no warning when it stops at ``max_iter``."""
    import warnings

    from placet.optim import ConvergenceWarning

    unit = float(np.abs(fun(start)[1]).max(initial=0.0)) or 1.0

    def scaled(x: Floats) -> tuple[float, Floats]:
        value, grad = fun(x)
        return value / unit, grad / unit

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return lbfgs(scaled, start, tol=1e-6, max_iter=max_iter, rel_tol=1e-10).x
