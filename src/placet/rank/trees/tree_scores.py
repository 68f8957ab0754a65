"""Base of rankers whose score is a forest of trees: scores, importances and explanations."""

from typing import Any

import numpy as np

from placet.data import Queries
from placet.data.arrays import Floats
from placet.data.engines.memory import refuse_dense
from placet.lazy import import_optional
from placet.rank.feature_tables import to_dense
from placet.rank.ranker import Ranker, largest_first, two_rows
from placet.rank.saving.onnx_export import OnnxGraph, add_trees
from placet.rank.tree_arrays import Forest


class OfTrees(Ranker):
    """Base of rankers whose fitted state is ``trees_``, a `Forest`."""

    trees_: Forest

    def _scores(self, queries: Queries) -> Floats:
        return self.trees_.predict(queries.X)

    def _add_onnx(self, graph: OnnxGraph) -> str:
        return add_trees(graph, self.trees_)

    def _check_shares(self, *names: str) -> None:
        """Raise a ``ValueError`` unless these parameters are fractions, above 0 and at most 1."""
        for name in names:
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"{name} {getattr(self, name)} must be a share, above 0 and at most 1")

    @property
    def feature_importances_(self) -> Floats:
        """Fraction (features,) of the variance explained by splits on each feature; see `Forest.importances`."""
        self._check_fitted()
        return self.trees_.importances()

    def shapley(self, X: Any) -> Floats:
        """Shapley values (rows, features): the contribution of each feature to the score of each row.

        They equal those of LightGBM (``pred_contrib``) up to rounding, and sum to the score minus a constant, the sum
        of the trees' mean leaf values.  Each mean is over the rows counted in the leaves: those drawn for the tree by
        LightGBM with ``subsample``, otherwise all training rows, where XGBoost's and CatBoost's empty leaves count as
        one row each.
        """
        queries = self._rows_to_score(X, None)
        refuse_dense(queries.X, "explain fewer rows at a time")
        found = [self.trees_.shapley(row) for row in to_dense(queries.X)]
        return np.array(found).reshape(len(found), self.n_features_in_)

    def to_shap(self, X: Any) -> Any:
        """A ``shap.Explanation`` of the rows, for the plots of the package shap: `shapley`, and the mean score.

        The base value is the sum of the trees' mean leaf values, so base value and Shapley values sum to the score.
        """
        package = import_optional("shap", "explanations in shap's format need shap", "pip install shap")
        values, queries = self.shapley(X), self._rows_to_score(X, None)
        base = self.trees_.predict(queries.X) - values.sum(axis=1)
        names = None if self.features_ is None else [str(name) for name in self.features_]
        return package.Explanation(values, base, to_dense(queries.X), feature_names=names)

    def explain(self, X: Any, i: int, j: int) -> list[tuple[Any, float]]:
        """Why row i is above row j: the contributions (Shapley values) of the features to s_i - s_j, largest first."""
        pair = two_rows(self, X, i, j)
        names = self.features_ if self.features_ is not None else range(self.n_features_in_)
        return largest_first(names, self.trees_.shapley(pair[0]) - self.trees_.shapley(pair[1]))
