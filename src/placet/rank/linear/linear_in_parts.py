"""Linear rankers on queries in parts: moments, objective, metrics and scores are sums or lists over the parts."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from placet.data import Lists, Parts, Queries
from placet.data.arrays import Floats
from placet.losses import Bound
from placet.metrics import evaluate_parts
from placet.rank.feature_tables import (
    Products,
    column_sums,
    deviation_of,
    product_sums,
    refuse_nan,
    squared_gaps,
    times,
)
from placet.rank.linear.penalized_loss import PenalizedLoss
from placet.rank.query_rows import mean_defined


class PartsObjective(PenalizedLoss):
    """`PenalizedLoss` for queries in parts: the same value and derivatives, summed over the parts."""

    def __init__(
        self,
        parts: Parts,
        loss: str,
        l2: float,
        standardize: bool,
        params: Mapping[str, Any],
        products: Products | None,
    ) -> None:
        self.n = parts.n_features + (0 if products is None else len(products.pairs))
        self.standardize_by(*moments_of_parts(parts, products), standardize)
        self.bind(Bound(loss, Lists(np.zeros(0), np.zeros(1, np.int64), np.zeros(0)), params))
        self.l2 = 0.0 if self.bound.loss.scale_invariant else l2
        args = (loss, dict(params), parts.weight, self.shift, self.scale, products)
        self.parts = parts.map(_bound_part, *args)

    def __call__(self, x: Floats, rng: np.random.Generator | None = None) -> tuple[float, Floats]:
        w = x[: self.n]

        def penalized(value: float, grad: Floats) -> tuple[float, Floats]:
            grad = grad.copy()
            grad[: self.n] += self.l2 * w
            return value + 0.5 * float((self.l2 * w) @ w), grad

        return self.parts.objective(_value, x, then=penalized)

    def hvp(self, x: Floats, v: Floats) -> Floats:
        out: Floats = self.parts.sum(_hvp, x, v, name="Hessian product").copy()
        out[: self.n] += self.l2 * v[: self.n]
        return out


def _bound_part(
    number: int,
    queries: Queries,
    loss: str,
    params: dict[str, Any],
    total: float,
    shift: Floats,
    scale: Floats,
    products: Products | None,
) -> PenalizedLoss:
    X = queries.X if products is None else products.table(queries.X)
    return PenalizedLoss.of_part(X, queries.lists(), loss, params, total, shift, scale)


def _value(part: PenalizedLoss, x: Floats) -> tuple[float, Floats]:
    return part(x)


def _hvp(part: PenalizedLoss, x: Floats, v: Floats) -> Floats:
    return part.hvp(x, v)


def moments_of_parts(parts: Parts, products: Products | None = None) -> tuple[Floats, Floats]:
    """Mean and standard deviation of every column over all parts, in two passes."""
    mean = parts.sum(_sums, products, name="means") / max(parts.n_rows, 1)
    refuse_nan(mean)
    return mean, deviation_of(mean, parts.sum(_gaps, mean, products, name="deviations") / max(parts.n_rows, 1))


def _sums(queries: Queries, products: Products | None) -> Floats:
    return column_sums(queries.X if products is None else products.table(queries.X))


def _gaps(queries: Queries, mean: Floats, products: Products | None) -> Floats:
    return squared_gaps(queries.X if products is None else products.table(queries.X), mean)


def select_products(parts: Parts, threshold: float) -> Products:
    """Select products of features that correlate with the grade, as in `Products.select`."""
    mean, scale = moments_of_parts(parts)
    grade = parts.sum(_grade_sum, name="grades") / max(parts.n_rows, 1)
    *sums, square = parts.sum(_product_sums, grade, mean, scale, name="products of features")
    deviation = float(np.sqrt(square / max(parts.n_rows, 1)))
    return Products.from_sums((sums[0], sums[1], sums[2]), parts.n_rows, deviation, mean, scale, threshold)


def _grade_sum(queries: Queries) -> float:
    return float(queries.grade.sum())


def _product_sums(queries: Queries, mean_grade: float, mean: Floats, scale: Floats) -> tuple[Floats, ...]:
    g = queries.grade - mean_grade
    return *product_sums(queries.X, g, mean, scale), np.array(float(g @ g))


def mean_metric(parts: Parts, metric: str, w: Floats, constant: float, products: Products | None) -> float:
    """Mean of a metric over the queries for which it is defined."""
    return mean_defined(*evaluate_parts([metric], partial(linear_scores, w, constant, products), parts).values())


def linear_scores(w: Floats, constant: float, products: Products | None, queries: Queries) -> Floats:
    """Scores of the rows of queries."""
    return times(queries.X if products is None else products.table(queries.X), w) + constant
