"""Tables of features: their moments, products with vectors, and products of features that correlate with the grade."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placet.data import DataError
from placet.data.arrays import Floats

ROWS_AT_ONCE = 16_384
ENTRIES_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Products:
    """The chosen pairs of features; ``table(X)`` appends their products to the features.

    ``pairs`` (n, 2) columns with first <= second; ``mean``, ``scale`` (features,) standardize before multiplying.
    """

    pairs: NDArray[np.int64]
    mean: Floats
    scale: Floats

    @classmethod
    def select(cls, X: Any, grade: Floats, threshold: float) -> "Products":
        """Pairs whose product has an absolute Pearson correlation with ``grade`` above ``threshold``.

        The moments of all F (F + 1) / 2 products come from three F x F matrices added up over blocks of rows:
        sum z_i z_j, sum z_i z_j g and sum (z_i z_j)^2.  O(rows F^2) time, O(F^2) memory.
        """
        if not 0 <= threshold < 1:
            raise ValueError(f"second_order {threshold} must be a correlation in [0, 1)")
        if not isinstance(X, np.ndarray):
            raise DataError("second-order features need dense features; densify them or leave second_order out")
        mean, scale = moments(X)
        n_rows, n_features = X.shape
        g = grade - grade.mean()
        first, with_grade, second = (np.zeros((n_features, n_features)) for _ in range(3))
        for a in range(0, n_rows, ROWS_AT_ONCE):
            z = (X[a : a + ROWS_AT_ONCE] - mean) / scale
            first += z.T @ z
            with_grade += z.T @ (z * g[a : a + ROWS_AT_ONCE, None])
            second += (z * z).T @ (z * z)
        spread = second / n_rows - (first / n_rows) ** 2
        deviation = np.sqrt(np.maximum(spread, 0.0)) * g.std()
        constant = deviation <= 1e-12 * np.maximum(1.0, np.sqrt(second / n_rows))
        correlation = np.where(constant, 0.0, with_grade / n_rows / np.where(constant, 1.0, deviation))
        pairs = np.argwhere(np.triu(np.abs(correlation) > threshold))
        return cls(pairs.astype(np.int64), mean, scale)

    def table(self, X: Any) -> Any:
        """``X`` with the products as further columns, in the type of ``X``."""
        n_features = X.shape[1]
        out = np.empty((X.shape[0], n_features + len(self.pairs)), X.dtype)
        for a in range(0, len(X), ROWS_AT_ONCE):
            rows = slice(a, a + ROWS_AT_ONCE)
            z = (X[rows] - self.mean) / self.scale
            out[rows, :n_features] = X[rows]
            out[rows, n_features:] = z[:, self.pairs[:, 0]] * z[:, self.pairs[:, 1]]
        return out


def moments(X: Any) -> tuple[Floats, Floats]:
    """Mean and standard deviation of every column, in double precision; a constant column gets deviation 1.

    Squares are of deviations from the mean, block by block, so that float32 columns far from 0 keep their digits and
    nothing of the size of ``X`` is made.  O(entries) time.
    """
    n_rows, n_features = X.shape
    blocks = [slice(a, a + ROWS_AT_ONCE) for a in range(0, n_rows, ROWS_AT_ONCE)]
    if not isinstance(X, np.ndarray):
        return _deviation(*_sparse_moments(X))
    mean, variance = np.zeros(n_features), np.zeros(n_features)
    for rows in blocks:
        mean += X[rows].sum(axis=0, dtype=np.float64)
    mean /= max(n_rows, 1)
    refuse_nan(mean)
    for rows in blocks:
        gap = X[rows] - mean
        variance += np.einsum("rf,rf->f", gap, gap)
    return _deviation(mean, variance / max(n_rows, 1))


def _sparse_moments(X: Any) -> tuple[Floats, Floats]:
    """Mean and variance of the columns of a CSR matrix; entries that are not stored are 0."""
    n_rows, n_features = X.shape
    parts = [slice(a, a + ENTRIES_AT_ONCE) for a in range(0, X.nnz, ENTRIES_AT_ONCE)]
    mean, variance, stored = np.zeros(n_features), np.zeros(n_features), np.zeros(n_features)
    for part in parts:
        mean += np.bincount(X.indices[part], X.data[part], n_features)
        stored += np.bincount(X.indices[part], minlength=n_features)
    mean /= max(n_rows, 1)
    refuse_nan(mean)
    for part in parts:
        variance += np.bincount(X.indices[part], (X.data[part] - mean[X.indices[part]]) ** 2, n_features)
    variance += (n_rows - stored) * mean**2
    return mean, variance / max(n_rows, 1)


def _deviation(mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    scale = np.sqrt(variance)
    flat = scale <= 1e-7 * np.maximum(1e-30, np.abs(mean))
    return mean, np.where(flat | (scale == 0), 1.0, scale)


def refuse_nan(mean: Floats) -> None:
    """Refuse columns with a value that is not finite, seen by their mean."""
    bad = ~np.isfinite(mean)
    if bad.any():
        raise DataError(
            f"feature {int(np.argmax(bad))} has NaN or infinite values ({bad.sum()} such features); replace them, "
            "or use TreeRanker, which knows what to do with NaN"
        )


def times(X: Any, w: Floats) -> Floats:
    """X @ w in double precision out; the product runs in the type of X."""
    return np.asarray(X @ w.astype(X.dtype, copy=False), dtype=np.float64)


def transposed_times(X: Any, g: Floats) -> Floats:
    """X.T @ g; the product runs in the type of X, on g brought to at most 1, which float32 can hold.

    Blocks of rows are added in double precision, so that float32 features lose no digits over many rows.
    """
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
