"""Second-order features: products of standardised features that correlate with the grade."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placet.data import DataError

Array = NDArray[np.float64]
ROWS_AT_ONCE = 16_384


@dataclass(frozen=True)
class Products:
    """The chosen pairs of features; ``table(X)`` appends their products to the features.

    ``pairs`` (n, 2) columns with first <= second; ``mean``, ``scale`` (features,) standardise before multiplying.
    """

    pairs: NDArray[np.int64]
    mean: Array
    scale: Array

    @classmethod
    def selected(cls, X: Any, grade: Array, threshold: float) -> "Products":
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


def moments(X: Any) -> tuple[Array, Array]:
    """Mean and standard deviation of every column, in double precision; a constant column gets deviation 1.

    Squares are of deviations from the mean, block by block, so that float32 columns far from 0 keep their digits.
    """
    n_rows, n_features = X.shape
    if not isinstance(X, np.ndarray):
        mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
        square = np.asarray(X.multiply(X).mean(axis=0), dtype=np.float64).ravel()
        variance = np.maximum(square - mean**2, 0.0)
    else:
        mean, variance = np.zeros(n_features), np.zeros(n_features)
        for a in range(0, n_rows, ROWS_AT_ONCE):
            mean += X[a : a + ROWS_AT_ONCE].sum(axis=0, dtype=np.float64)
        mean /= max(n_rows, 1)
        for a in range(0, n_rows, ROWS_AT_ONCE):
            variance += ((X[a : a + ROWS_AT_ONCE] - mean) ** 2).sum(axis=0)
        variance /= max(n_rows, 1)
    scale = np.sqrt(variance)
    flat = scale <= 1e-7 * np.maximum(1e-30, np.abs(mean))
    return mean, np.where(flat | (scale == 0), 1.0, scale)
