"""Trees as arrays: every row reaches the leaf that the rules of its splits say, however rows are stored."""

import math
from functools import reduce
from operator import add

import numpy as np
from hypothesis import given, settings, strategies as st
from scipy.sparse import csr_matrix

from placet.kernels.rank.tree_leaves import CATEGORY, DEFAULT_LEFT, NAN_IS_MISSING, PLAIN, ZERO, ZERO_IS_MISSING
from placet.rank.tree_arrays import DTYPES, Forest
from placet.threads import get_threads, set_threads

EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, ZERO, -ZERO, ZERO / 2, -ZERO / 2, np.nextafter(ZERO, 1), np.nextafter(-ZERO, -1)]
RULES = [0, NAN_IS_MISSING, NAN_IS_MISSING | DEFAULT_LEFT, PLAIN]
RARE = [ZERO_IS_MISSING, ZERO_IS_MISSING | DEFAULT_LEFT, CATEGORY]


def random_forest(rng, n_trees, n_features, rules):
    """Trees of random shapes, one of them a single leaf, whose splits follow random rules."""
    columns = {name: [] for name in DTYPES}
    columns["bounds"].append(0)
    for tree in range(n_trees):
        n_splits = int(rng.integers(0, 9)) if tree else 0
        first = len(columns["feature"])
        columns["roots"].append(first)
        open_nodes = [add_node(columns)]
        for _ in range(n_splits):
            node = open_nodes.pop(int(rng.integers(len(open_nodes))))
            how = int(rng.choice(rules))
            at = float(rng.choice([*EDGES, np.inf]))
            if how == CATEGORY:
                at = float(len(columns["bounds"]) - 1)
                columns["bits"] += rng.integers(0, 1 << 32, int(rng.integers(1, 3))).tolist()
                columns["bounds"].append(len(columns["bits"]))
            split = {"feature": int(rng.integers(n_features)), "threshold": at, "how": how, "value": 0.0}
            split |= {"left": add_node(columns), "right": add_node(columns)}
            for name, entry in split.items():
                columns[name][node] = entry
            open_nodes += [split["left"], split["right"]]
        for node in open_nodes:
            columns["value"][node] = float(rng.normal())
    forest = Forest(n_features, **{name: np.array(columns[name], dtype) for name, dtype in DTYPES.items()})
    forest.check()
    return forest


def add_node(columns):
    for name, entry in (("feature", -1), ("threshold", 0.0), ("left", 0), ("right", 0), ("how", 0), ("value", 0.0)):
        columns[name].append(entry)
    columns["count"].append(1)
    return len(columns["feature"]) - 1


def leaf_of(forest, root, x):
    """The leaf that a row reaches, by LightGBM's rules in plain words."""
    node = root
    while forest.feature[node] >= 0:
        value, at, how = float(x[forest.feature[node]]), float(forest.threshold[node]), int(forest.how[node])
        if how == CATEGORY:
            bits = forest.bits[forest.bounds[int(at)] : forest.bounds[int(at) + 1]]
            known = {32 * k + b for k, word in enumerate(bits) for b in range(32) if int(word) >> b & 1}
            left = not math.isnan(value) and value > -1 and int(value) in known
        elif how == PLAIN:
            left = value <= at
        else:
            value = 0.0 if abs(value) <= ZERO or (math.isnan(value) and not how & NAN_IS_MISSING) else value
            missing = math.isnan(value) or (how & ZERO_IS_MISSING and value == 0.0)
            left = bool(how & DEFAULT_LEFT) if missing else value <= at
        node = forest.left[node] if left else forest.right[node]
    return node


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.sampled_from([1, 31, 32, 33, 70]), st.sampled_from([RULES, RULES + RARE]))
def test_every_row_reaches_the_leaf_of_the_rules(seed, n_rows, rules):
    rng = np.random.default_rng(seed)
    n_features = int(rng.choice([2, 5, 40]))  # 40: most are in no split
    forest = random_forest(rng, 6, n_features, rules)
    X = rng.choice([*EDGES, np.nan, 3.0, 40.0, 1e10, -1e300], (n_rows, n_features))
    leaves = [[leaf_of(forest, root, x) for root in forest.roots] for x in X]
    expected = [
        reduce(add, (float(forest.value[leaf]) for leaf in own), 0.0) for own in leaves
    ]  # sum() rounds otherwise
    assert forest.predict(X).tolist() == expected
    assert forest.predict(np.asfortranarray(X)).tolist() == expected
    assert forest.predict(csr_matrix(X)).tolist() == expected
    count = np.bincount(np.ravel(leaves), minlength=len(forest.feature))
    found = forest.with_row_counts(X).count
    leaf = forest.feature < 0
    assert found[leaf].tolist() == np.maximum(count, 1)[leaf].tolist()
    assert (found[~leaf] == found[forest.left[~leaf]] + found[forest.right[~leaf]]).all()


def test_threads_and_the_type_of_the_table_change_nothing():
    rng = np.random.default_rng(3)
    forest = random_forest(rng, 20, 4, RULES + RARE)
    X = rng.choice([*EDGES, np.nan, 3.0], (9_000, 4)).astype(np.float32)
    before, expected = get_threads(), forest.predict(X.astype(np.float64))
    try:
        for threads in (1, 2):
            set_threads(threads)
            assert (forest.predict(X) == expected).all()
    finally:
        set_threads(before)
    parts = [forest.predict(X[k : k + 7]) for k in range(0, 70, 7)]
    assert (np.concatenate(parts) == expected[:70]).all()
