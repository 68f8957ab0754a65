"""Piecewise-linear columns of features: bins between quantiles, each of which rises from 0 to 1 across its bin.

The columns of a feature together follow any piecewise-linear curve with corners at the quantiles, whatever the scale
and the tails of the feature.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from placet.data.arrays import Floats, Ints, offsets_from_sizes
from placet.rank.feature_tables import deviation_of

MOST_ROWS = 50_000
"""Rows from which quantiles and moments are taken, evenly spaced."""
ROWS_AT_ONCE = 4096


class Bins(NamedTuple):
    """Bin k of a row is clip((x[feature[k]] - low[k]) / width[k], 0, 1).

    The columns are, for every feature, the sum of ``step`` times its bins, which is about the normal score of its rank
    among the training rows, and then the bins, those of a feature divided by the root of their number; all of them
    standardized by ``mean`` and ``scale``.
    """

    feature: Ints
    low: Floats
    width: Floats
    step: Floats
    mean: Floats
    scale: Floats

    @classmethod
    def of(cls, X: Any, n_bins: int) -> "Bins":
        """At most ``n_bins`` bins with about equally many rows for each feature of dense rows; at least one."""
        rows = X[np.linspace(0, len(X) - 1, min(len(X), MOST_ROWS)).astype(np.int64)]
        level = np.linspace(0.0, 1.0, n_bins + 1)
        normal = ndtri(np.clip(level, 0.5 / n_bins, 1.0 - 0.5 / n_bins))
        found: list[list[Any]] = [[], [], [], []]
        for k in range(X.shape[1]):
            edges, place = np.unique(np.quantile(rows[:, k].astype(np.float64), level), return_inverse=True)
            height = np.bincount(place, normal) / np.bincount(place)  # of equal quantiles: their mean
            n = max(len(edges) - 1, 1)
            own = np.full(n, k), edges[:n], np.diff(edges), np.diff(height)
            for part, values in zip(found, own):
                part.append(values if len(values) else np.ones(1))
        feature, low, width, step = (np.concatenate(part) for part in found)
        n = X.shape[1] + len(feature)
        plain = cls(feature, low, width, step, np.zeros(n), np.ones(n))
        mean = square = np.zeros(n)
        for a in range(0, len(rows), ROWS_AT_ONCE):
            mean = mean + plain.columns(rows[a : a + ROWS_AT_ONCE]).sum(axis=0, dtype=np.float64) / len(rows)
        for a in range(0, len(rows), ROWS_AT_ONCE):
            square = square + np.square(plain.columns(rows[a : a + ROWS_AT_ONCE]) - mean).sum(axis=0) / len(rows)
        scale = deviation_of(mean, square)
        scale[X.shape[1] :] *= np.sqrt(np.bincount(feature)[feature])
        return plain._replace(mean=mean, scale=scale)

    def columns(self, X: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
        """The columns (rows, features + bins) of dense rows."""
        z = (X[:, self.feature] - self.low) / self.width
        np.clip(z, 0.0, 1.0, out=z)
        normal = np.add.reduceat(z * self.step, offsets_from_sizes(np.bincount(self.feature))[:-1], axis=1)
        return ((np.hstack([normal, z]) - self.mean) / self.scale).astype(np.float32)

    def sums(self) -> Floats:
        """The matrix (bins, features) that adds up the bins of every feature."""
        found = np.zeros((len(self.feature), int(self.feature[-1]) + 1))
        found[np.arange(len(found)), self.feature] = self.step
        return found
