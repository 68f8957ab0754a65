"""Training on standardized features, for a network that takes them in their own units."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from placet.data.arrays import Floats
from placet.rank.feature_tables import moments
from placet.rank.multilabel.documents import Documents
from placet.rank.torch.network import Weights, layers

DENSE = 0.5  # fraction of stored entries from which features are a table rather than words


class FeatureUnits(NamedTuple):
    """Means and deviations (features,) of features; the first layer of a network absorbs them."""

    mean: Floats
    scale: Floats

    @classmethod
    def of(cls, X: Any) -> "FeatureUnits | None":
        """Those of a CSR table in which at least half of the entries are stored, else None."""
        return cls(*moments(X.toarray())) if X.nnz >= DENSE * X.shape[0] * X.shape[1] > 0 else None

    def standardized(self, documents: Documents) -> Documents:
        """The documents with features of mean 0 and deviation 1."""
        rows = ((documents.X.toarray() - self.mean) / self.scale).astype(np.float32)
        return Documents(type(documents.X)(rows), documents.Y)

    def to_own(self, weights: Weights, sizes: Sequence[int]) -> Weights:
        """Weights for features as they are, from weights for standardized ones."""
        found = weights.copy()
        W, b = layers(found, sizes)[0]
        own = W / self.scale[:, None]
        b -= self.mean @ own
        W[...] = own
        return found

    def from_own(self, weights: Weights, sizes: Sequence[int]) -> Weights:
        """Weights for standardized features, from weights for features as they are."""
        found = weights.copy()
        W, b = layers(found, sizes)[0]
        b += self.mean @ W
        W *= self.scale[:, None]
        return found
