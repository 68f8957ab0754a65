"""Rankers as ONNX graphs: onnxruntime gives their scores."""

from dataclasses import replace

import numpy as np
import pytest

import placet
from placet.data import Queries
from placet.kernels.rank.tree_leaves import ZERO_IS_MISSING
from placet.rank import RANKERS, LinearRanker, NeuralRanker, TreeRanker

runtime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
pytestmark = pytest.mark.jit
DATA = placet.simulate.queries(60, 10, 4, noise=0.4, random_state=1)
NETWORK = {"learning_rate": 1e-2, "epochs": 3, "members": 2}
SMALL = {"n_trees": 12, "leaves": 9, "min_rows": 3}
CASES = {
    "linear": LinearRanker("ranknet"),
    "products": LinearRanker("pmop-fd", second_order=0.05),
    "trees": TreeRanker("pmop-fd", n_trees=30, leaves=9, min_rows=3),
    "network": NeuralRanker("pmop-fd", hidden=(8, 6), **NETWORK),
    "network without bins": NeuralRanker("pmop-fd", hidden=(8,), bins=None, **NETWORK),
    "linear network": NeuralRanker("pmop-fd", hidden=(), **NETWORK),
    "boosted features": RANKERS["booster"]("attrank", 20),
    "boosted trees": RANKERS["booster"]("attrank", 20, learners=("feature", "tree"), min_rows=3),
    "listwise": RANKERS["listwise"](TreeRanker("pmop-fd", **SMALL)),
    "places": RANKERS["listwise"](LinearRanker("pmop-fd"), ("place",)),
    "blend": RANKERS["blend"](
        [
            LinearRanker("ranknet"),
            TreeRanker(**SMALL),
            RANKERS["forest"](n_trees=9, leaves=20),
            RANKERS["booster"]("attrank", 9),
            RANKERS["listwise"](LinearRanker("pmop-fd")),
            RANKERS["listwise"](TreeRanker("xendcg", **SMALL), kernels=("cosine", "cosine")),
            RANKERS["listwise"](TreeRanker("xendcg", **SMALL)),
        ]
    ),
}


def answer(path, X):
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(["scores"], {"X": np.asarray(X, np.float64)})[0]


@pytest.mark.parametrize("name", CASES)
def test_the_runtime_gives_the_scores(name, tmp_path):
    if "network" in name:
        pytest.importorskip("torch")
    ranker = CASES[name].fit(DATA)
    ranker.to_onnx(tmp_path / "model.onnx")
    X = 3 * np.random.default_rng(0).normal(size=(500, 4))
    found = answer(tmp_path / "model.onnx", X)
    assert found.shape == (500,)
    np.testing.assert_allclose(found, ranker.predict(X), rtol=1e-5, atol=1e-5)
    assert np.ptp(found) > 0.1
    for n in (1, 2, 3):
        some = np.repeat(X[:n], 2, axis=0)[1:]  # equal rows; all columns of one row are constant
        np.testing.assert_allclose(answer(tmp_path / "model.onnx", some), ranker.predict(some), rtol=1e-5, atol=1e-5)
    if name == "products":
        assert len(ranker.pairs_)


@pytest.mark.parametrize("hidden", [(), (6, 5)])
def test_a_ranker_of_labels_gives_the_scores_of_all_labels(hidden, tmp_path):
    pytest.importorskip("torch")
    X, Y = np.tile(np.eye(4), (12, 1)), np.tile(np.eye(4, 6) + np.eye(4, 6, 1), (12, 1))
    ranker = RANKERS["labels"]("pl-partition", hidden, learning_rate=1e-1, epochs=3, batch=8).fit(X, Y)
    ranker.to_onnx(tmp_path / "labels.onnx")
    new = np.random.default_rng(0).normal(size=(50, 4))
    found = answer(tmp_path / "labels.onnx", new)
    assert found.shape == (50, 6)
    best = ranker.top(new, 6)
    np.testing.assert_array_equal(np.argsort(-found, axis=1)[:, 0], best.label[:, 0])
    np.testing.assert_allclose(-np.sort(-found, axis=1), best.score, rtol=1e-4, atol=1e-5)
    assert answer(tmp_path / "labels.onnx", new[:1]).shape == (1, 6)
    assert np.ptp(found, axis=0).min() > 0


@pytest.mark.parametrize("missing", [False, True])
def test_trees_answer_on_thresholds_and_missing_values_as_they_do_here(missing, tmp_path):
    """Rows on and beside every threshold, with NaN, where training had missing values and where it had none."""
    X = np.array(DATA.X)
    if missing:
        X[np.random.default_rng(2).random(X.shape) < 0.2] = np.nan
    ranker = TreeRanker("pl-partition", n_trees=20, min_rows=3).fit(X, DATA.grade, qid=DATA.query)
    ranker.to_onnx(tmp_path / "model.onnx")
    probe = ranker.trees_.probe(np.random.default_rng(1))
    assert np.isnan(probe).any()
    np.testing.assert_allclose(answer(tmp_path / "model.onnx", probe), ranker.predict(probe), rtol=1e-5, atol=1e-5)


def test_trees_that_split_by_categories_answer_as_they_do_here(tmp_path):
    """Known and unknown categories, fractions, negative values and NaN, beside splits of numbers."""
    rng = np.random.default_rng(3)
    codes, other = rng.integers(0, 70, (len(DATA.grade), 2)).astype(float), np.array(DATA.X)[:, :2]
    grade = (np.isin(codes[:, 0] % 7, (1, 2, 5)) + (codes[:, 1] % 3 == 0) + (other[:, 0] > 0)).astype(float)
    own = {"categorical_feature": [0, 2], "min_data_per_group": 1, "cat_smooth": 1, "max_cat_to_onehot": 2}
    ranker = TreeRanker(n_trees=20, min_rows=3, backend_params=own)
    ranker.fit(np.column_stack([codes[:, 0], other[:, 0], codes[:, 1], other[:, 1]]), grade, qid=DATA.query)
    assert len(ranker.trees_.bounds) > 5
    ranker.to_onnx(tmp_path / "model.onnx")
    probe = ranker.trees_.probe(np.random.default_rng(1))
    values = [*range(-2, 90), -0.5, 0.5, 69.9, np.nan, 1e9, 1e300]
    probe[:, [0, 2]] = rng.choice(values, (len(probe), 2))
    np.testing.assert_allclose(answer(tmp_path / "model.onnx", probe), ranker.predict(probe), rtol=1e-5, atol=1e-5)


def test_what_has_no_form_is_refused_and_nothing_is_written(tmp_path):
    blend = RANKERS["blend"]([LinearRanker(), RANKERS["reranker"]()]).fit(DATA)
    able = "LinearRanker, TreeRanker, ForestRanker, NeuralRanker, ConsistentBooster, RankBoost, AdaRank"
    with pytest.raises(ValueError, match=f"ListwiseReranker has no ONNX form; {able}"):
        blend.to_onnx(tmp_path / "model.onnx")
    for params, words in (({"kernels": ("gaussian",)}, "'gaussian' have no ONNX form"),):
        with pytest.raises(ValueError, match=words):
            RANKERS["listwise"](LinearRanker(), **params).fit(DATA).to_onnx(tmp_path / "model.onnx")
    with pytest.raises(ValueError, match="listwise learners has no ONNX form"):
        RANKERS["booster"]("attrank", 9, learners="listwise").fit(DATA).to_onnx(tmp_path / "model.onnx")
    zero = TreeRanker(n_trees=3, min_rows=3).fit(DATA)
    zero.trees_ = replace(zero.trees_, how=zero.trees_.how | ZERO_IS_MISSING)
    with pytest.raises(ValueError, match="take zeros as missing"):
        zero.to_onnx(tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())
    with pytest.raises(Exception, match="not fitted"):
        LinearRanker().to_onnx(tmp_path / "model.onnx")


def test_members_that_look_at_the_list_share_its_columns(tmp_path):
    """One query per run: the graph holds the columns of a list once, and answers for each query as `predict` does."""
    import onnx

    blend = CASES["blend"].fit(DATA)
    blend.to_onnx(tmp_path / "blend.onnx")
    graph = onnx.load(tmp_path / "blend.onnx").graph
    assert sum(node.op_type == "Round" for node in graph.node) == 2  # of columns: with one kernel, and with two
    found = np.concatenate([answer(tmp_path / "blend.onnx", query.X) for query in (DATA[k : k + 1] for k in range(60))])
    np.testing.assert_allclose(found, blend.predict(DATA), rtol=0, atol=1e-6)
    members = zip(blend.members_, blend.spread_, blend.weight_)
    expected = sum(weight / unit * member.predict(DATA) for member, unit, weight in members)
    np.testing.assert_allclose(blend.predict(DATA), expected, rtol=1e-12, atol=1e-12)


def test_a_forest_without_trees_scores_nothing(tmp_path):
    flat = Queries(np.zeros_like(DATA.X), DATA.grade, DATA.offsets)
    with pytest.warns(UserWarning, match="no tree could be grown"):
        ranker = TreeRanker().fit(flat)
    ranker.to_onnx(tmp_path / "model.onnx")
    X = np.array(DATA.X[:3])
    X[0, 0], X[1, 1] = np.nan, np.inf
    assert answer(tmp_path / "model.onnx", X).tolist() == [0.0, 0.0, 0.0]
