"""A forest: many independently grown trees, whose mean is one Newton step of a loss."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from placet.data import DataError, Queries
from placet.data.arrays import Floats, Ints, is_sparse, offsets_from_sizes
from placet.data.engines.memory import refuse_beyond_memory
from placet.kernels.rank.tree_leaves import DEFAULT_LEFT, NAN_IS_MISSING, ZERO
from placet.rank.saving.fitted_state import Learned, Number, TreesOf, holds
from placet.rank.tree_arrays import Forest
from placet.rank.trees.tree_conversion import Tree, forest_of
from placet.rank.trees.tree_ranker import Slopes
from placet.rank.trees.tree_scores import OfTrees
from placet.threads import map_ordered

TREES_AT_ONCE = 8
MOST_VALUES = 1 << 16
"""Maximum number of distinct values of a feature; a feature with more is reduced to this many quantiles."""

LOWEST = -float(np.finfo(np.float64).max)


class ForestRanker(OfTrees):
    """The mean of deep, randomized regression trees, fitted to one Newton step of a loss from equal scores.

    With g and h the gradient and curvature of the loss where all scores are equal, a tree is fitted to -g / h with
    weights h, so that a leaf with rows R has the value -sum_R g / sum_R h.  Trees depend only on the order of the
    values of a feature.  A forest needs little tuning, improves with every additional tree, and makes other errors
    than boosted trees, so it is a good member of a blend; it does not minimize the loss.

    Geurts, Ernst and Wehenkel, Extremely randomized trees, Machine Learning 2006; Breiman, Random forests, Machine
    Learning 2001.

    Parameters
    ----------
    loss : str
        A name in ``LOSSES`` with a curvature.
    n_trees : int
        Number of trees.
    min_rows : int
        Minimum rows per leaf.
    leaves : int, optional
        Maximum leaves per tree, the best splits first; without a limit a forest grows with the number of rows, in size
        and in the time of a score.
    feature_fraction : float
        Fraction of the features drawn for each split.
    splits : str
        "random": the best of one random cut per drawn feature, with all rows used for each tree.  "best": the best of
        all cuts of the drawn features, with rows drawn with replacement for each tree.
    metric : str
        Metric reported on the validation set, which does not affect the fit.
    loss_params : mapping, optional
        Parameters of the loss.
    random_state : int
        Seed of the draws.

    >>> import placet
    >>> data = placet.simulate.queries(60, 8, 3, noise=0.3, random_state=1)
    >>> ForestRanker(n_trees=50).fit(data[:40]).score(data[40:], metric="ndcg@5") > 0.7
    True
    """

    needs = ("curvature",)
    takes_start = True
    _missing = "keep"
    records_metrics = False
    _state = holds(trees_=TreesOf(), learned_=Learned(), n_trees_=Number(low=0, whole=True))

    def __init__(
        self,
        loss: str = "xendcg",
        n_trees: int = 300,
        *,
        min_rows: int = 3,
        leaves: int | None = None,
        feature_fraction: float = 0.3,
        splits: Literal["random", "best"] = "random",
        metric: str = "ndcg@10",
        loss_params: Mapping[str, Any] | None = None,
        random_state: int = 0,
    ) -> None:
        self.loss = loss
        self.n_trees = n_trees
        self.min_rows = min_rows
        self.leaves = leaves
        self.feature_fraction = feature_fraction
        self.splits = splits
        self.metric = metric
        self.loss_params = loss_params
        self.random_state = random_state

    def _fit(self, queries: Queries, valid: Queries | None) -> None:
        if self.n_trees < 1 or self.min_rows < 1:
            raise ValueError(f"n_trees {self.n_trees} and min_rows {self.min_rows} must be at least 1")
        if self.leaves is not None and self.leaves < 2:
            raise ValueError(f"leaves {self.leaves} must be at least 2, or None for no limit")
        self._check_shares("feature_fraction")
        n_features = queries.n_features
        if not n_features:
            raise DataError("the rows have no features to split by")
        slopes = Slopes(self.loss, self.loss_params)
        slopes.bind(queries.lists())
        g, h = slopes.at(np.zeros(len(queries.grade)))
        y = -g / h
        cuts, code = encode_columns(queries.X)
        starts = offsets_from_sizes([1 + len(own) for own in cuts])
        places = np.concatenate([np.append(LOWEST, own) for own in cuts])  # threshold m: codes up to m lie below it
        grown: list[tuple[Tree, Ints]] = []
        best = self._keep_best(None, -(-self.n_trees // TREES_AT_ONCE))
        before = 0 if self._start is None else self._start.n_trees_
        with best:
            for first in range(0, self.n_trees, TREES_AT_ONCE):
                grow = lambda k: self._tree(before + first + k, code, y, h, places, starts)  # noqa: B023, E731
                grown += map_ordered(grow, min(TREES_AT_ONCE, self.n_trees - first))
                best.see(len(grown))
        trees, counts = zip(*grown[: best.state])
        self.trees_ = replace(forest_of(trees, n_features), count=np.concatenate(counts), averaged=1)
        if self._start is not None:
            self.trees_ = replace(
                Forest.sum_of([(self._start.trees_, 1.0), (self.trees_, 1.0)], n_features), averaged=1
            )
        self.n_trees_ = before + best.state
        self.learned_ = dict(slopes.learned)
        judge = self._judge(valid, lambda _: self._scores(valid))  # type: ignore[arg-type]
        found = {"validation": None if judge is None else judge(None)}
        self.fit_summary_ = {"trees": self.n_trees_, **best.summary(), **found}

    def _tree(
        self, number: int, code: NDArray[np.float32], y: Floats, h: Floats, places: Floats, starts: Ints
    ) -> tuple[Tree, Ints]:
        """Grow the tree with this number; return it with the number of training rows in each node."""
        from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor

        rng = np.random.default_rng((self.random_state, number))
        kind = ExtraTreeRegressor if self.splits == "random" else DecisionTreeRegressor
        weight = h if self.splits == "random" else h * np.bincount(rng.integers(0, len(h), len(h)), minlength=len(h))
        tree = (
            kind(
                min_samples_leaf=self.min_rows,
                max_leaf_nodes=self.leaves,
                max_features=self.feature_fraction,
                random_state=int(rng.integers(1 << 31)),
            )
            .fit(code, y, sample_weight=weight, check_input=False)
            .tree_
        )
        inner = tree.children_left >= 0
        threshold = np.zeros(len(inner))
        threshold[inner] = places[starts[tree.feature[inner]] + np.floor(tree.threshold[inner]).astype(np.int64)]
        return {
            "feature": np.where(inner, tree.feature, -1),
            "threshold": threshold,
            "left": tree.children_left,
            "right": tree.children_right,
            "how": np.where(inner, NAN_IS_MISSING + DEFAULT_LEFT, 0),
            "value": np.where(inner, 0.0, tree.value[:, 0, 0]),
        }, tree.n_node_samples.astype(np.int64)


def encode_columns(X: Any) -> tuple[list[Floats], NDArray[np.float32]]:
    """Cut points between neighboring values of every feature, and each entry's code: 1 + cuts below it, or 0 for NaN.

    >>> cuts, code = encode_columns(np.array([[1.0], [3.0], [np.nan], [3.0]]))
    >>> cuts[0], code[:, 0]
    (array([2.]), array([1., 2., 0., 2.], dtype=float32))
    """
    n_rows, n_features = X.shape
    refuse_beyond_memory(
        4.0 * n_rows * n_features + 32.0 * n_rows,
        "the dense table of a forest",
        "take fewer features or rows, or boosted trees (--ranker trees)",
    )
    columns = X.tocsc() if is_sparse(X) else X
    cuts, code = [], np.empty((n_rows, n_features), np.float32)
    for k in range(n_features):
        column = columns[:, [k]].toarray().ravel() if is_sparse(X) else np.asarray(columns[:, k])
        own = np.where(np.abs(column) <= ZERO, 0.0, column.astype(np.float64))
        known = ~np.isnan(own)
        values = np.unique(own[known])
        low, high = values[:-1], values[1:]
        between = low / 2 + high / 2
        between = np.where((between >= low) & (between < high), between, low)  # no number between adjacent floats
        if len(between) >= MOST_VALUES:
            between = between[np.linspace(0, len(between) - 1, MOST_VALUES - 1).astype(np.int64)]
        cuts.append(between)
        code[:, k] = np.where(known, 1 + np.searchsorted(between, own), 0)
    return cuts, code
