"""Conversion of XGBoost and CatBoost trees to Placet's arrays, with every row in the same leaf as before."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placet.data.arrays import Floats, Ints
from placet.kernels.rank.tree_leaves import DEFAULT_LEFT, NAN_IS_MISSING
from placet.rank.tree_arrays import DTYPES, Forest

Tree = Mapping[str, NDArray[Any]]
"""Node arrays of one tree: feature (-1 in a leaf), threshold, left, right, how and value; the root comes first."""


def forest_of(trees: Sequence[Tree], n_features: int) -> Forest:
    """Concatenate trees into a forest; node counts are 1 until ``Forest.with_row_counts`` sets them."""
    sizes = np.array([len(tree["feature"]) for tree in trees], np.int64)
    roots = np.concatenate([[0], np.cumsum(sizes)])[:-1].astype(np.int64)
    parts: dict[str, Any] = {name: np.zeros(0, dtype) for name, dtype in DTYPES.items()}
    parts |= {"roots": roots, "bounds": np.zeros(1, np.int64), "count": np.ones(int(sizes.sum()), np.int64)}
    for name in ("feature", "threshold", "how", "value"):
        columns = [tree[name] for tree in trees]
        parts[name] = np.concatenate([parts[name], *columns]).astype(DTYPES[name])
    for name in ("left", "right"):
        columns = [np.where(tree["feature"] >= 0, tree[name] + root, 0) for tree, root in zip(trees, roots)]
        parts[name] = np.concatenate([parts[name], *columns]).astype(DTYPES[name])
    return Forest(n_features, **parts)


def trees_of_xgboost(model: Mapping[str, Any], n_rounds: int) -> list[Tree]:
    """The trees of the first rounds of a model that XGBoost wrote as JSON, without those that have no split.

    A round grows as many trees as XGBoost's ``num_parallel_tree`` says.
    """
    found: list[Tree] = []
    grown = model["learner"]["gradient_booster"]["model"]
    for tree in grown["trees"][: grown["iteration_indptr"][n_rounds]]:
        left, right = (np.array(tree[name], np.int64) for name in ("left_children", "right_children"))
        inner = left >= 0
        if not inner[0]:
            continue
        at = np.array(tree["split_conditions"], np.float32)
        found.append(
            {
                "feature": np.where(inner, np.array(tree["split_indices"], np.int64), -1),
                "threshold": np.where(inner, last_below(at), 0.0),
                "left": left,
                "right": right,
                "how": np.where(inner, NAN_IS_MISSING + DEFAULT_LEFT * np.array(tree["default_left"], np.int64), 0),
                "value": np.where(inner, 0.0, at.astype(np.float64)),
            }
        )
    return found


def trees_of_catboost(model: Mapping[str, Any], sign: Ints) -> list[Tree]:
    """The trees of a model that CatBoost wrote as JSON, symmetric or not, without those that have no split.

    ``sign`` (features,): directions of monotone features; leaves without training rows get values that preserve
    monotonicity.
    """
    features = model["features_info"]["float_features"]
    nan_right = {f["flat_feature_index"]: f["nan_value_treatment"] == "AsTrue" for f in features}
    columns = [f["flat_feature_index"] for f in features]
    scale, bias = model["scale_and_bias"][0], float(np.sum(model["scale_and_bias"][1]))
    nested = [_nested_tree(tree, columns, sign) for tree in model.get("oblivious_trees", [])]
    nested += model.get("trees", [])
    return [_flat(tree, columns, nan_right, scale, bias) for tree in nested if "split" in tree]


def _nested_tree(tree: Mapping[str, Any], columns: Sequence[int], sign: Ints) -> dict[str, Any]:
    """A symmetric tree as nested nodes: split k is bit k of the index of a leaf."""
    splits, values = tree["splits"] or [], np.array(tree["leaf_values"], np.float64)  # None: no split
    full = np.array(tree["leaf_weights"], np.float64) > 0
    direction = np.array([sign[columns[split["float_feature_index"]]] for split in splits], np.int64)
    if direction.any() and not full.all():
        values = _monotone_values(values, full, direction)

    def node(depth: int, leaf: int) -> dict[str, Any]:
        if depth < 0:
            return {"value": values[leaf]}
        return {"split": splits[depth], "left": node(depth - 1, leaf), "right": node(depth - 1, leaf | 1 << depth)}

    return node(len(splits) - 1, 0)


def _monotone_values(values: Floats, full: NDArray[np.bool_], direction: Ints) -> Floats:
    """Set an empty leaf to the largest value of the nonempty leaves below it, if there is none to the smallest of all.

    "All" are the nonempty leaves on the same sides of the splits without a direction; if there is none, the value is 0.
    The largest value below a leaf can only grow from a leaf to one above it, and nothing lies below the smallest.
    """
    out = values.copy()
    bits = (np.arange(len(values))[:, None] >> np.arange(len(direction))) & 1
    level = bits * direction  # increases with the score along monotone splits
    for leaf in np.flatnonzero(~full):
        same = full & (bits[:, direction == 0] == bits[leaf, direction == 0]).all(axis=1)
        below = same & (level <= level[leaf]).all(axis=1)
        out[leaf] = values[below].max() if below.any() else values[same].min() if same.any() else 0.0
    return out


def _flat(
    tree: Mapping[str, Any], columns: Sequence[int], nan_right: Mapping[int, bool], scale: float, bias: float
) -> Tree:
    """Flatten nested nodes into arrays, children after their parent."""
    rows: dict[str, list[float]] = {name: [] for name in ("feature", "threshold", "left", "right", "how", "value")}
    waiting: list[tuple[Mapping[str, Any], str, int]] = [(tree, "left", -1)]
    while waiting:
        node, side, parent = waiting.pop()
        here = len(rows["feature"])
        if parent >= 0:
            rows[side][parent] = here
        inner = "split" in node
        column = columns[node["split"]["float_feature_index"]] if inner else -1
        border = np.float32(node["split"]["border"]) if inner else np.float32(0.0)
        missing = NAN_IS_MISSING + (0 if nan_right[column] else DEFAULT_LEFT) if inner else 0
        entries = {
            "feature": column,
            "threshold": last_not_above(border) if inner else 0.0,
            "left": 0,
            "right": 0,
            "how": missing,
            "value": 0.0 if inner else scale * float(node["value"]) + bias,
        }
        for name, entry in entries.items():
            rows[name].append(entry)
        if inner:
            waiting += [(node["right"], "right", here), (node["left"], "left", here)]
    return {name: np.array(column, DTYPES[name]) for name, column in rows.items()}


def last_below(at: NDArray[np.float32] | np.float32) -> Floats:
    """The largest double t that rounds to a float32 below ``at``: x <= t if and only if float32(x) < at.

    >>> t = last_below(np.float32(0.1))
    >>> bool(np.float32(t) < np.float32(0.1)), bool(np.float32(np.nextafter(t, 1)) < np.float32(0.1))
    (True, False)
    """
    high = np.asarray(at, np.float32)
    low = np.nextafter(high, np.float32(-np.inf))
    middle = (low.astype(np.float64) + high.astype(np.float64)) / 2
    return np.where(middle.astype(np.float32) < high, middle, np.nextafter(middle, -np.inf))


def last_not_above(border: np.float32) -> float:
    """The largest double that rounds to ``border`` or less; the largest float32 marks off missing values."""
    if border == np.finfo(np.float32).max:
        return float(np.nextafter(float(border) + 2.0**103, 0.0))  # half a step above it, doubles round to inf
    return float(last_below(np.nextafter(border, np.float32(np.inf))))
