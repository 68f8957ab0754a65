"""What rankers whose score is a forest of trees share: scores, and why a row is above another."""

from typing import Any

import numpy as np

from placet.data import Queries
from placet.data.arrays import Floats
from placet.data.room import refuse_dense
from placet.rank.forest import Forest
from placet.rank.ranker import Ranker, largest_first, two_rows


class OfTrees(Ranker):
    """A ranker whose fitted state is ``trees_``, Placet's own arrays of nodes."""

    trees_: Forest

    def _scores(self, queries: Queries) -> Floats:
        return self.trees_.predict(queries.X)

    def _check_shares(self, *names: str) -> None:
        """A ``ValueError`` unless these parameters are shares."""
        for name in names:
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"{name} {getattr(self, name)} must be a share, above 0 and at most 1")

    @property
    def feature_importances_(self) -> Floats:
        """Share (features,) of each feature in the variance that splits explain; see `Forest.importances`."""
        self._check_fitted()
        return self.trees_.importances()

    def shapley(self, X: Any) -> Floats:
        """What each feature adds to the score of each row, (rows, features): Shapley values over the trees.

        They differ from those of LightGBM (``pred_contrib``) by rounding; their sum is the score less its mean over the
        training rows.
        """
        queries = self._rows_to_score(X, None)
        refuse_dense(queries.X, "explain fewer rows at a time")
        rows = queries.X.toarray() if hasattr(queries.X, "toarray") else queries.X
        found = [self.trees_.shapley(row) for row in np.asarray(rows, np.float64)]
        return np.array(found).reshape(len(found), self.n_features_in_)

    def explain(self, X: Any, i: int, j: int) -> list[tuple[Any, float]]:
        """Why row i is above row j: what each feature adds to s_i - s_j (Shapley values), largest first."""
        pair = two_rows(self, X, i, j)
        pair = np.asarray(pair.toarray() if hasattr(pair, "toarray") else pair)
        names = self.features_ if self.features_ is not None else range(self.n_features_in_)
        return largest_first(names, self.trees_.shapley(pair[0]) - self.trees_.shapley(pair[1]))
