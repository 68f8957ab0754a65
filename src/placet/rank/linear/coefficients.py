"""Coefficients of a linear score with their errors: observed information, and sandwich errors by cluster.

With u_q the gradient of the log likelihood of query q and A minus the second derivatives of the log likelihood (and of
the log prior, where there is a penalty), the covariance of the coefficients is A^-1 (observed), or A^-1 B A^-1 where B
sums u u' over clusters (sandwich), which holds if the choices in a cluster depend on one another.
"""

import math
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from placet.data import DataError, Queries
from placet.data.arrays import Floats, Ints, encode
from placet.data.errors import one_of
from placet.losses import LOSSES, Loss
from placet.optim import ConvergenceWarning, Fit, newton
from placet.rank.feature_tables import ProductTable, SideBySide
from placet.rank.linear.penalized_loss import LinearPart, PenalizedLoss
from placet.stats import normal_quantile

if TYPE_CHECKING:
    import polars as pl

CovarianceKind = Literal["observed", "query", "cluster"]
"""Where errors come from: the observed information, or a sandwich over queries or over clusters of them."""

STEP = 1e-5
"""Step of the differences of gradients in learned parameters, which have no Hessian products."""

DETERMINED = 1e-11
"""Least eigenvalue of the information, scaled to a unit diagonal, at which coefficients are determined."""

SETTLED, MOST_STEPS = 1e-9, 30
"""Newton steps to the maximum end when one moves no unknown by more than this share of the largest."""

NO_MAXIMUM = "the likelihood has no single finite maximum: columns repeat one another, or separate the grades"

NEAR = 0.1
"""Most standard errors that a coefficient may be away from the maximum of the likelihood."""

DIGITS = {"coefficient": 7, "value": 7}
"""Significant digits of columns in print; the others have five."""


class WithError(NamedTuple):
    """A number estimated from data, with its standard error and interval."""

    value: float
    stderr: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class CoefficientTable:
    """Estimates, their covariance, and what follows from both: standard errors, z, p, intervals and ratios.

    ``errors`` tells where the covariance comes from, ``n_clusters`` over how many clusters a sandwich was summed.
    Printed, it is a table.

    >>> found = CoefficientTable(("price", "comfort"), np.array([-0.5, 1.0]), np.diag([0.01, 0.04]), "observed")
    >>> print(found)
             coefficient  stderr      z       p      low    high
    price           -0.5     0.1  -5.00  <0.001   -0.696  -0.304
    comfort            1     0.2   5.00  <0.001  0.60801   1.392
    >>> found.ratio("comfort", "price")  # a unit of comfort is worth as much as two units of price
    WithError(value=-2.0, stderr=0.565685..., low=-3.1087..., high=-0.8912...)
    """

    names: tuple[Hashable, ...]
    values: Floats
    covariance: Floats
    errors: CovarianceKind
    n_clusters: int | None = None
    level: float = 0.95
    notes: tuple[str, ...] = ()

    @classmethod
    def of_fit(
        cls, names: tuple[Hashable, ...], values: Floats, found: "FittedErrors", errors: CovarianceKind, level: float
    ) -> "CoefficientTable":
        """The coefficients of a fit; raise if it is not at the maximum of the likelihood."""
        if found.away > NEAR:
            raise ValueError(
                f"the coefficients are {found.away:.2g} standard errors away from the maximum of the likelihood on "
                "these rows; give the rows of the fit, and fit with a smaller tol and without valid"
            )
        return cls(names, values, found.covariance, errors, found.n_clusters, level)

    @property
    def stderr(self) -> Floats:
        """Standard errors."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def z(self) -> Floats:
        """Estimates in units of their standard errors."""
        return self.values / self.stderr

    @property
    def p(self) -> Floats:
        """Two-sided p-values of "the coefficient is 0", by the normal distribution."""
        return np.array([_p_value(z) for z in self.z.tolist()])

    @property
    def interval(self) -> tuple[Floats, Floats]:
        """Lower and upper ends of the intervals of ``level``."""
        half = normal_quantile((1 + self.level) / 2) * self.stderr
        return self.values - half, self.values + half

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, name: Hashable) -> WithError:
        k = self._place(name)
        low, high = self.interval
        return WithError(*(float(part[k]) for part in (self.values, self.stderr, low, high)))

    def ratio(self, name: Hashable, to: Hashable, sign: float = 1.0) -> WithError:
        """``sign`` times the ratio of two coefficients, with its error to first order (delta method).

        The interval is unreliable if the denominator is within a few standard errors of 0.
        """
        k, j = self._place(name), self._place(to)
        a, b = float(self.values[k]), float(self.values[j])
        if b == 0:
            raise ValueError(f"the coefficient of {to!r} is 0; a ratio to it has no value")
        slope = np.zeros(len(self))
        slope[k] += 1 / b
        slope[j] -= a / b**2
        value, error = sign * a / b, math.sqrt(max(float(slope @ self.covariance @ slope), 0.0))
        half = normal_quantile((1 + self.level) / 2) * error
        return WithError(value, error, value - half, value + half)

    def willingness_to_pay(self, price: Hashable) -> dict[Hashable, WithError]:
        """For every other coefficient, the price at which one unit of it is offset: - coefficient / that of price.

        >>> CoefficientTable(("price", "comfort"), np.array([-0.5, 1.0]), np.diag([0.01, 0.04]), "observed") \\
        ...     .willingness_to_pay("price")["comfort"].value
        2.0
        """
        self._place(price)
        return {name: self.ratio(name, price, -1.0) for name in self.names if name != price}

    def rows(self) -> tuple[list[str], list[list[Any]]]:
        """Names of columns, and a row for each coefficient."""
        low, high = self.interval
        columns = (self.values, self.stderr, self.z, self.p, low, high)
        head = ["name", "coefficient", "stderr", "z", "p", "low", "high"]
        return head, [[str(n), *map(float, row)] for n, row in zip(self.names, zip(*columns))]

    def worth_rows(self, price: Hashable) -> list[list[Any]]:
        """As `rows`, of the willingness to pay for every other coefficient."""
        worth = self.willingness_to_pay(price)
        z = {name: one.value / one.stderr if one.stderr else math.nan for name, one in worth.items()}
        return [
            [str(name), one.value, one.stderr, z[name], _p_value(z[name]), one.low, one.high]
            for name, one in worth.items()
        ]

    def to_frame(self) -> "pl.DataFrame":
        """A Polars data frame with a row for each coefficient."""
        import polars as pl

        head, rows = self.rows()
        return pl.DataFrame(rows, schema=head, orient="row")

    def __str__(self) -> str:
        head, rows = self.rows()
        return "\n".join(text_table(["", *head[1:]], rows))

    def _place(self, name: Hashable) -> int:
        if name not in self.names:
            raise ValueError(f"there is no coefficient {name!r}; there are {list(map(str, self.names[:20]))}")
        return self.names.index(name)


def _p_value(z: float) -> float:
    return math.erfc(abs(z) / math.sqrt(2))


class FittedErrors(NamedTuple):
    """The covariance of coefficients, and how it was found.

    ``away``: how many standard errors the unknowns are away from where the gradient vanishes.
    """

    covariance: Floats
    n_clusters: int | None
    away: float


def text_table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Lines of a table of text: names to the left, numbers to the right."""
    texts = [list(head), *([str(row[0]), *(_text(head[k], row[k]) for k in range(1, len(head)))] for row in rows)]
    wide = [max(len(row[k]) for row in texts) for k in range(len(head))]
    lines = [[row[0].ljust(wide[0]), *(text.rjust(w) for text, w in zip(row[1:], wide[1:]))] for row in texts]
    return ["  ".join(line) for line in lines]


def _text(column: str, value: float) -> str:
    if column == "p":
        return "<0.001" if value < 0.001 else f"{value:.3f}"
    return f"{value:.2f}" if column == "z" else f"{value:.{DIGITS.get(column, 5)}g}"


def hessian(objective: PenalizedLoss, x: Floats) -> Floats:
    """Second derivatives (n, n) of a penalized loss at x: Hessian products, differences for learned parameters."""
    n = len(x)
    n_weights = n - len(objective.unknowns.learned)
    H = np.zeros((n, n))
    for k in range(n_weights):
        unit = np.zeros(n)
        unit[k] = 1.0
        H[:n_weights, k] = objective.hvp(x, unit)[:n_weights]
    for k in range(n_weights, n):
        unit = np.zeros(n)
        unit[k] = STEP
        H[:, k] = (objective(x + unit)[1] - objective(x - unit)[1]) / (2 * STEP)
        H[k, :n_weights] = H[:n_weights, k]
    return (H + H.T) / 2


def inverse(H: Floats) -> Floats | None:
    """The inverse of a positive definite matrix, or None if it is not clearly one."""
    unit = np.sqrt(np.maximum(np.diag(H), 0.0))
    if not unit.all() or not np.isfinite(unit).all():
        return None
    value, vector = np.linalg.eigh(H / np.outer(unit, unit))
    if not value[0] > DETERMINED * value[-1]:
        return None
    return np.asarray((vector / value) @ vector.T / np.outer(unit, unit))


def covariance(
    objective: PenalizedLoss, x: Floats, errors: CovarianceKind, weight: Floats, cluster: Ints | None
) -> FittedErrors:
    """Covariance, at x, of weights per unit of their columns and of learned parameters."""
    A = hessian(objective, x) * objective.total
    inverted = inverse(A)
    if inverted is None:
        raise DataError(
            "the coefficients are not determined: the information matrix is singular; columns repeat one another "
            "within queries, or separate the grades; leave some out, or give l2 a value above 0"
        )
    step = inverted @ (objective(x)[1] * objective.total)
    away = float(np.abs(step / np.sqrt(np.diag(inverted))).max(initial=0.0))
    n_clusters = None
    if errors != "observed":
        own = np.arange(len(weight)) if cluster is None else cluster
        U = cluster_scores(objective, x, own)
        if cluster is None:  # a query of weight 3 is three equal queries, not one that counts three times
            U = U / np.sqrt(np.where(weight > 0, weight, 1.0))[:, None]
            n_clusters = round(float(weight.sum()))
        else:
            n_clusters = int(own.max(initial=-1)) + 1
        if n_clusters <= len(x):
            raise DataError(
                f"{n_clusters} clusters are too few for the errors of {len(x)} coefficients; take fewer columns, or "
                "errors='observed'"
            )
        inverted = inverted @ (U.T @ U) @ inverted * (n_clusters / (n_clusters - 1))
    unit = np.ones(len(x))
    unit[: objective.n] = 1 / objective.unknowns.scale
    return FittedErrors(inverted * np.outer(unit, unit), n_clusters, away)


def to_maximum(objective: PenalizedLoss, fit: Fit) -> Fit:
    """Newton steps from a fit to the maximum of the likelihood; the fit itself if there is none, or none is found."""

    def solve(x: Floats, gradient: Floats) -> Floats:
        inverted = inverse(hessian(objective, x))
        if inverted is None:
            raise np.linalg.LinAlgError
        return inverted @ gradient

    size = max(1.0, float(np.abs(fit.x).max(initial=0.0)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            found = newton(objective, solve, fit.x, step_tol=SETTLED * size, max_iter=MOST_STEPS)
        except np.linalg.LinAlgError:
            return replace(fit, converged=False, message=f"{fit.message}; {NO_MAXIMUM}")
    if not found.converged:
        return replace(fit, converged=False, message=f"{fit.message}; {NO_MAXIMUM}")
    return replace(found, n_iter=fit.n_iter + found.n_iter, message="at the maximum of the likelihood")


def cluster_scores(objective: PenalizedLoss, x: Floats, cluster: Ints) -> Floats:
    """Gradients (clusters, unknowns) of the losses of the queries in each cluster at x, with their weights."""
    from scipy.sparse import csr_matrix

    part: LinearPart = objective.parts.sum(_itself)  # in memory there is one part
    g, slopes = part.bound.gradients_by_list(part.scores(x), objective.unknowns.learned_at(x))
    rows = len(g)
    of_row = np.repeat(cluster, np.diff(part.bound.offsets))
    n = int(cluster.max(initial=-1)) + 1
    spread = csr_matrix((g, (of_row, np.arange(rows))), (n, rows))
    weights = _times_table(spread, part.X)
    total = np.asarray(spread.sum(axis=1)).reshape(-1, 1)
    U = (weights - total * objective.unknowns.shift) / objective.unknowns.scale
    lists = csr_matrix((np.ones(len(cluster)), (cluster, np.arange(len(cluster)))), (n, len(cluster)))
    return np.hstack([U, lists @ slopes]) * objective.total


def _itself(part: LinearPart) -> LinearPart:
    return part


def _times_table(spread: Any, table: Any) -> Floats:
    if isinstance(table, SideBySide):
        return np.hstack([_times_table(spread, table.left), _times_table(spread, table.right)])
    product = spread @ (table.dense() if isinstance(table, ProductTable) else table)
    return np.asarray(product.toarray() if hasattr(product, "toarray") else product, dtype=np.float64)


def errors_of(loss: str, errors: CovarianceKind | None, cluster: Any, level: float) -> tuple[Loss, CovarianceKind]:
    """The record of a loss that is a likelihood, and where its errors come from; raise if options do not fit."""
    record = LOSSES[loss]
    if record.law is None:
        able = [name for name, other in LOSSES.items() if other.law is not None]
        raise ValueError(f"{loss!r} is not a likelihood, so coefficients have no errors; these are: {', '.join(able)}")
    if not 0 < level < 1:
        raise ValueError(f"level {level} is not between 0 and 1")
    usual: CovarianceKind = "cluster" if cluster is not None else "query" if record.law == "pairs" else "observed"
    chosen = one_of(errors or usual, get_args(CovarianceKind), "errors")
    if (chosen == "cluster") != (cluster is not None):
        raise ValueError("errors='cluster' and cluster= (a name for each query or row) go together")
    return record, chosen


def clusters_of(cluster: Any, queries: Queries) -> Ints:
    """Numbers 0, 1, ... of the cluster of every query, from names of the clusters of queries or of their rows.

    Rows are in the order in which the caller gave them; all rows of a query must have one cluster.
    """
    code, names = encode(cluster, "cluster")
    if len(code) == len(queries):
        return np.asarray(code, np.int64)
    if len(code) != len(queries.grade):
        raise DataError(
            f"cluster has {len(code)} entries; give one for each of {len(queries)} queries or of "
            f"{len(queries.grade)} rows"
        )
    of_row = np.asarray(code, np.int64)[queries.row]
    first = of_row[queries.offsets[:-1]]
    differs = of_row != first[queries.query]
    if differs.any():
        row = int(np.argmax(differs))
        raise DataError(
            f"query {queries.qid[queries.query[row]]!r} has rows of two clusters, {names[first[queries.query[row]]]!r} "
            f"and {names[of_row[row]]!r} ({differs.sum()} such rows); a query belongs to one"
        )
    return np.unique(first, return_inverse=True)[1].astype(np.int64)
