"""Feature tables: moments, products with vectors, and products of features that correlate with the grade."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placet.data import DataError, Parts, Queries
from placet.data.arrays import Floats, Ints, is_sparse
from placet.data.engines.memory import refuse_beyond_memory
from placet.data.parts import OnePart
from placet.kernels.rank import feature_products as kernels
from placet.threads import sum_over_rows

ROWS_AT_ONCE = 16_384
ENTRIES_AT_ONCE = 1 << 20
ROWS_PER_RANGE = 1024


@dataclass(frozen=True)
class Products:
    """The chosen pairs of features; ``table(X)`` appends their products to the features.

    ``pairs`` (n, 2): columns, first <= second; ``mean``, ``scale`` (features,) standardize features before multiplying.
    """

    pairs: NDArray[np.int64]
    mean: Floats
    scale: Floats

    @classmethod
    def select(cls, data: Parts | OnePart, threshold: float) -> "Products":
        """Select pairs whose product has an absolute Pearson correlation with the grade above ``threshold``.

        The moments of all F (F + 1) / 2 products come from three F x F matrices summed over blocks of rows:
        sum z_i z_j, sum z_i z_j g and sum (z_i z_j)^2.  O(rows F^2) time, O(F^2) memory.
        """
        mean, scale = moments_over(data, Columns().table)
        grade_sum, n_rows = data.sum(_grade_sum, name="grades")
        *sums, square = data.sum(_product_sums, grade_sum / max(n_rows, 1), mean, scale, name="products of features")
        deviation = float(np.sqrt(square / max(n_rows, 1)))
        return cls.from_sums((sums[0], sums[1], sums[2]), n_rows, deviation, mean, scale, threshold)

    @classmethod
    def from_sums(
        cls,
        sums: tuple[Floats, Floats, Floats],
        n_rows: int,
        grade_deviation: float,
        mean: Floats,
        scale: Floats,
        threshold: float,
    ) -> "Products":
        """As ``select``, from the `product_sums` of all rows."""
        if not 0 <= threshold < 1:
            raise ValueError(f"second_order {threshold} must be a correlation in [0, 1)")
        first, with_grade, second = sums
        spread = second / n_rows - (first / n_rows) ** 2
        deviation = np.sqrt(np.maximum(spread, 0.0)) * grade_deviation
        constant = deviation <= 1e-12 * np.maximum(1.0, np.sqrt(second / n_rows))
        correlation = np.where(constant, 0.0, with_grade / n_rows / np.where(constant, 1.0, deviation))
        pairs = np.argwhere(np.triu(np.abs(correlation) > threshold))
        return cls(pairs.astype(np.int64), mean, scale)

    def table(self, X: Any) -> "ProductTable":
        """``X`` with the products as additional columns, computed on the fly."""
        return ProductTable(X, self)


class ProductTable:
    """Features (rows, features) and products of some pairs of them, of which only the features are stored.

    It supports what training and scoring need: row indexing, products with vectors and column moments.
    """

    def __init__(self, X: Any, products: Products) -> None:
        self.X, self.products = X, products
        self.shape = (X.shape[0], X.shape[1] + len(products.pairs))
        self.dtype = X.dtype

    def __getitem__(self, rows: Any) -> "ProductTable":
        return ProductTable(self.X[rows], self.products)

    def __matmul__(self, w: Floats) -> Floats:
        n = self.X.shape[1]
        out = times(self.X, np.asarray(w[:n], np.float64))
        self._over_rows(lambda rows, own: kernels.scores(*self._rows(rows), w[n:].astype(np.float64), out[rows]), 0)
        return out

    def transposed_times(self, g: Floats) -> Floats:
        """The table's transpose times g (rows,)."""
        return np.concatenate([transposed_times(self.X, g), self._product_sums(g)])

    def column_sums(self) -> Floats:
        """Sums of the columns."""
        return np.concatenate([column_sums(self.X), self._product_sums(np.ones(self.shape[0]))])

    def squared_gaps(self, mean: Floats) -> Floats:
        """Sums over rows of the squared difference of every column from ``mean``."""
        n = self.X.shape[1]
        own = self._over_rows(
            lambda rows, out: kernels.squares(*self._rows(rows), mean[n:], out), len(self.products.pairs)
        )
        return np.concatenate([squared_gaps(self.X, mean[:n]), own])

    def dense(self) -> Floats:
        """The full table; meant for a few rows."""
        z = (self.X - self.products.mean) / self.products.scale
        return np.hstack([self.X, z[:, self.products.pairs[:, 0]] * z[:, self.products.pairs[:, 1]]])

    def _product_sums(self, g: Floats) -> Floats:
        """Sums over rows of g times each product."""
        size = len(self.products.pairs)
        return self._over_rows(lambda rows, out: kernels.sums(*self._rows(rows), g[rows], out), size)

    def _rows(self, rows: slice) -> tuple[Any, ...]:
        return self.X[rows], self.products.mean, self.products.scale, self.products.pairs

    def _over_rows(self, work: Callable[[slice, Floats], None], size: int) -> Floats:
        """Sum over row ranges of what ``work(rows, out)`` adds to ``out`` (size,)."""
        return sum_over_rows(work, self.shape[0], size, ROWS_PER_RANGE)


class SideBySide:
    """Two tables with the same rows as one table, without copying; each keeps its own type."""

    def __init__(self, left: Any, right: Any) -> None:
        self.left, self.right, self.n_left = left, right, left.shape[1]
        self.shape = (left.shape[0], left.shape[1] + right.shape[1])
        self.dtype = left.dtype

    def __getitem__(self, rows: Any) -> "SideBySide":
        return SideBySide(self.left[rows], self.right[rows])

    def __matmul__(self, w: Floats) -> Floats:
        out = times(self.left, w[: self.n_left])
        out += times(self.right, w[self.n_left :])
        return out

    def transposed_times(self, g: Floats) -> Floats:
        """The table's transpose times g (rows,)."""
        return np.concatenate([transposed_times(self.left, g), transposed_times(self.right, g)])

    def column_sums(self) -> Floats:
        """Sums of the columns."""
        return np.concatenate([column_sums(self.left), column_sums(self.right)])

    def squared_gaps(self, mean: Floats) -> Floats:
        """Sums over rows of the squared difference of every column from ``mean``."""
        parts = squared_gaps(self.left, mean[: self.n_left]), squared_gaps(self.right, mean[self.n_left :])
        return np.concatenate(parts)


@dataclass(frozen=True)
class Columns:
    """The columns of a linear score: the features, chosen products of them, and controls beside them."""

    products: Products | None = None
    control: Floats | None = None

    def of(self, X: Any) -> Any:
        """The table of these columns, given the features."""
        table = X if self.products is None else self.products.table(X)
        return table if self.control is None else SideBySide(table, self.control)

    def table(self, queries: Queries) -> Any:
        """The table of these columns, of queries."""
        return self.of(queries.X)


def need_dense(X: Any, who_needs: str, alternative: str = "") -> Floats:
    """Return dense features; raise a ``DataError`` if they are sparse.

    >>> from scipy.sparse import csr_array
    >>> need_dense(csr_array((2, 2)), "the gaussian kernel needs", "the kernel 'cosine'")
    Traceback (most recent call last):
    placet.data.errors.DataError: the gaussian kernel needs dense features; use X.toarray(), or the kernel 'cosine'
    """
    if isinstance(X, np.ndarray):
        return X
    raise DataError(f"{who_needs} dense features; use X.toarray()" + (f", or {alternative}" if alternative else ""))


def to_dense(X: Any) -> Floats:
    """A dense or sparse table as contiguous float64."""
    return np.ascontiguousarray(X.toarray() if is_sparse(X) else X, dtype=np.float64)


def reduce_per_list(reduce: np.ufunc, values: Floats, offsets: Ints) -> Floats:
    """Reduce over the rows of each list, and broadcast the result back to these rows.

    >>> reduce_per_list(np.maximum, np.array([1.0, 3.0, 2.0]), np.array([0, 2, 2, 3]))
    array([3., 3., 2.])
    """
    full = np.diff(offsets) > 0
    found = reduce.reduceat(values, offsets[:-1][full], axis=0) if full.any() else values[:0]
    return found[np.repeat(np.arange(full.sum()), np.diff(offsets)[full])]


def product_sums(X: Any, g: Floats, mean: Floats, scale: Floats) -> tuple[Floats, Floats, Floats]:
    """sum z_i z_j, sum z_i z_j g and sum (z_i z_j)^2 over rows, z the standardized features."""
    n_rows, n_features = need_dense(X, "second-order features need", "leave second_order out").shape
    refuse_beyond_memory(
        8.0 * 4 * n_features**2,
        f"products of all pairs of {n_features:,} features",
        "leave second_order out, or take fewer features",
    )
    first, with_grade, second = (np.zeros((n_features, n_features)) for _ in range(3))
    for a in range(0, n_rows, ROWS_AT_ONCE):
        z = (X[a : a + ROWS_AT_ONCE] - mean) / scale
        first += z.T @ z
        with_grade += z.T @ (z * g[a : a + ROWS_AT_ONCE, None])
        second += (z * z).T @ (z * z)
    return first, with_grade, second


def _grade_sum(queries: Queries) -> tuple[float, int]:
    return float(queries.grade.sum()), len(queries.grade)


def _product_sums(queries: Queries, mean_grade: float, mean: Floats, scale: Floats) -> tuple[Floats, ...]:
    g = queries.grade - mean_grade
    return *product_sums(queries.X, g, mean, scale), np.array(float(g @ g))


def moments(X: Any) -> tuple[Floats, Floats]:
    """Mean and standard deviation of every column, in double precision; a constant column gets deviation 1.

    Deviations from the mean are squared block by block, so that float32 columns far from 0 keep their precision and
    no copy of ``X`` is made.  O(entries) time.
    """
    return moments_over(OnePart(X), _itself)


def _itself(table: Any) -> Any:
    return table


def moments_over(data: Parts | OnePart, table_of: Callable[[Any], Any]) -> tuple[Floats, Floats]:
    """As `moments`, over the tables of all parts of the data."""
    sums, n_rows = data.sum(_sums, table_of, name="means")
    mean = sums / max(n_rows, 1)
    refuse_nan(mean)
    return mean, deviation_of(mean, data.sum(_gaps, table_of, mean, name="deviations") / max(n_rows, 1))


def _sums(data: Any, table_of: Callable[[Any], Any]) -> tuple[Floats, int]:
    table = table_of(data)
    return column_sums(table), table.shape[0]


def _gaps(data: Any, table_of: Callable[[Any], Any], mean: Floats) -> Floats:
    return squared_gaps(table_of(data), mean)


def column_sums(X: Any) -> Floats:
    """Sums of the columns, in double precision."""
    if isinstance(X, ProductTable | SideBySide):
        return X.column_sums()
    sums = np.zeros(X.shape[1])
    if not isinstance(X, np.ndarray):
        for part in _entries(X):
            sums += np.bincount(X.indices[part], X.data[part], X.shape[1])
        return sums
    for a in range(0, X.shape[0], ROWS_AT_ONCE):
        sums += X[a : a + ROWS_AT_ONCE].sum(axis=0, dtype=np.float64)
    return sums


def squared_gaps(X: Any, mean: Floats) -> Floats:
    """Sums over rows of the squared difference of every column from ``mean``; entries that are not stored are 0."""
    if isinstance(X, ProductTable | SideBySide):
        return X.squared_gaps(mean)
    n_rows, n_features = X.shape
    sums = np.zeros(n_features)
    if isinstance(X, np.ndarray):
        for a in range(0, n_rows, ROWS_AT_ONCE):
            gap = X[a : a + ROWS_AT_ONCE] - mean
            sums += np.einsum("rf,rf->f", gap, gap)
        return sums
    stored = np.zeros(n_features)
    for part in _entries(X):
        sums += np.bincount(X.indices[part], (X.data[part] - mean[X.indices[part]]) ** 2, n_features)
        stored += np.bincount(X.indices[part], minlength=n_features)
    return sums + (n_rows - stored) * mean**2


def _entries(X: Any) -> list[slice]:
    """Ranges of the stored entries of a sparse matrix."""
    return [slice(a, a + ENTRIES_AT_ONCE) for a in range(0, X.nnz, ENTRIES_AT_ONCE)]


def deviation_of(mean: Floats, variance: Floats) -> Floats:
    """Standard deviation of every column; 1 for a constant column."""
    scale = np.sqrt(variance)
    flat = scale <= 1e-7 * np.maximum(1e-30, np.abs(mean))
    return np.where(flat | (scale == 0), 1.0, scale)


def refuse_nan(sums: Floats) -> None:
    """Raise if a column has a non-finite value, as shown by its sum or mean."""
    bad = ~np.isfinite(sums)
    if bad.any():
        raise DataError(
            f"feature {int(np.argmax(bad))} has NaN or infinite values ({bad.sum()} such features); replace them, "
            "or use TreeRanker, which knows what to do with NaN"
        )


def times(X: Any, w: Floats) -> Floats:
    """X @ w, computed in the type of X and returned in double precision."""
    if isinstance(X, ProductTable | SideBySide):
        return X @ w
    return np.asarray(X @ w.astype(X.dtype, copy=False), dtype=np.float64)


def transposed_times(X: Any, g: Floats) -> Floats:
    """X.T @ g, computed in the type of X with g scaled to at most 1, to stay in the range of float32.

    Blocks of rows are summed in double precision, so that float32 features do not lose precision over many rows.
    """
    if isinstance(X, ProductTable | SideBySide):
        return X.transposed_times(g)
    unit = float(np.abs(g).max(initial=0.0)) if X.dtype == np.float32 else 1.0
    if unit == 0.0 or not np.isfinite(unit):
        return np.full(X.shape[1], unit)
    if not isinstance(X, np.ndarray):
        return unit * np.asarray(X.T @ (g / unit).astype(X.dtype, copy=False), dtype=np.float64)
    out = np.zeros(X.shape[1])
    for a in range(0, len(X), ROWS_AT_ONCE):
        part = g[a : a + ROWS_AT_ONCE] if unit == 1.0 else g[a : a + ROWS_AT_ONCE] / unit
        out += part.astype(X.dtype, copy=False) @ X[a : a + ROWS_AT_ONCE]
    return unit * out
