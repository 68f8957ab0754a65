"""Training on features of one scale, for a network that takes them in their own units."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from placet.data.arrays import Floats
from placet.rank.feature_tables import moments
from placet.rank.multilabel.documents import Documents
from placet.rank.torch.network import Weights, layers

DENSE = 0.5  # fraction of stored entries from which features are a table rather than words
NORM = 8.0  # root mean square length of rows of words, about that of 60 words that are there or not


def is_words(X: Any) -> bool:
    """Whether less than half of the entries of a CSR table are stored."""
    return not X.nnz >= DENSE * X.shape[0] * X.shape[1] > 0


class FeatureUnits(NamedTuple):
    """Means and deviations (features,) of features; the first layer of a network absorbs them."""

    mean: Floats
    scale: Floats

    @classmethod
    def of(cls, X: Any) -> "FeatureUnits | None":
        """Those of a CSR table in which at least half of the entries are stored, else None."""
        return None if is_words(X) else cls(*moments(X.toarray()))

    @classmethod
    def of_words(cls, X: Any) -> "FeatureUnits | None":
        """One scale for all features of a CSR table, with which its rows have a root mean square length of NORM."""
        length = float(np.sqrt(np.square(X.data, dtype=np.float64).sum() / max(1, X.shape[0])))
        return cls(np.zeros(X.shape[1]), np.full(X.shape[1], length / NORM)) if length > 0 else None

    def apply(self, documents: Documents) -> Documents:
        """The documents with features in these units."""
        matrix = type(documents.X)
        if self.mean.any():
            return Documents(matrix(((documents.X.toarray() - self.mean) / self.scale).astype(np.float32)), documents.Y)
        X = documents.X
        found = matrix(((X.data / self.scale[X.indices]).astype(np.float32), X.indices, X.indptr), shape=X.shape)
        return Documents(found, documents.Y)

    def to_own(self, weights: Weights, sizes: Sequence[int]) -> Weights:
        """Weights for features as they are, from weights for features in these units."""
        found = weights.copy()
        W, b = layers(found, sizes)[0]
        own = W / self.scale[:, None]
        b -= self.mean @ own
        W[...] = own
        return found

    def from_own(self, weights: Weights, sizes: Sequence[int]) -> Weights:
        """Weights for features in these units, from weights for features as they are."""
        found = weights.copy()
        W, b = layers(found, sizes)[0]
        b += self.mean @ W
        W *= self.scale[:, None]
        return found
