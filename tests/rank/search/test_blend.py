"""Means of rankers, and the way of ``autorank`` to them."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone

import placet
from placet.data import DataError, Queries
from placet.metrics import metric
from placet.rank import Blend, ConsistentBooster, LinearRanker, ListwiseReranker, TreeRanker, autorank
from placet.rank.ranker import RANKERS, ranker_class
from placet.rank.search.autorank import SHORT_LIST, build_ranker, draw_candidates
from placet.rank.search.blend import spread
from placet.simulate import queries

DATA = queries(60, (2, 12), 4, noise=0.5, random_state=3)
TRAIN, VALID, TEST = DATA[:30], DATA[30:45], DATA[45:]
RANKERS_OF_THREE_KINDS = [
    LinearRanker("pmop-fd", l2=1e-2),
    TreeRanker("ranknet", n_trees=5, min_rows=3),
    ConsistentBooster("bregman-ce", 5, learners="listwise", kernels=("cosine", "gaussian")),
]

CANDIDATES = [
    ("linear", {"loss": "cosine"}),
    ("trees", {"loss": "pmop-fd", "n_trees": 5, "min_rows": 3}),
    ("linear", {"loss": "pl-partition", "l2": 1e-2}),
    ("booster", {"loss": "attrank", "n_rounds": 5}),
]


def test_the_score_is_the_mean_of_scores_in_units_of_their_spread():
    blend = Blend(RANKERS_OF_THREE_KINDS).fit(TRAIN, valid=VALID)
    expected = np.zeros(len(TEST.grade))
    for ranker in RANKERS_OF_THREE_KINDS:
        alone = clone(ranker).fit(TRAIN, valid=VALID)
        s, cut = alone.predict(VALID), VALID.offsets
        parts = [s[a:b] - s[a:b].mean() for a, b in pairwise(cut)]
        expected += alone.predict(TEST) / np.concatenate(parts).std() / 3
    np.testing.assert_allclose(blend.predict(TEST), expected, rtol=1e-10)
    taken = Blend.of([clone(r).fit(TRAIN, valid=VALID) for r in RANKERS_OF_THREE_KINDS], VALID)
    np.testing.assert_array_equal(taken.predict(TEST), blend.predict(TEST))
    np.testing.assert_array_equal(clone(taken).fit(TRAIN, valid=VALID).predict(TEST), blend.predict(TEST))


def test_rows_may_come_in_any_order():
    X, y, qid = np.asarray(TRAIN.X), TRAIN.grade, np.array(TRAIN.qid)[TRAIN.query]
    blend = Blend(RANKERS_OF_THREE_KINDS).fit(X, y, qid=qid)
    order = np.random.default_rng(0).permutation(len(y))
    np.testing.assert_allclose(blend.predict(X[order], qid=qid[order]), blend.predict(X, qid=qid)[order], rtol=1e-9)
    np.testing.assert_array_equal(blend.predict(X, qid=qid), blend.predict(TRAIN))


def test_a_scale_or_shift_of_a_member_changes_no_order():
    linear = LinearRanker("pmop-fd", l2=1e-2).fit(TRAIN)
    other = TreeRanker("pmop-fd", n_trees=5, min_rows=3).fit(TRAIN)
    before = Blend.of([linear, other], TRAIN).predict(TEST)
    linear.coef_, linear.intercept_ = 1e6 * linear.coef_, linear.intercept_ + 3.0
    after = Blend.of([linear, other], TRAIN).predict(TEST)
    np.testing.assert_allclose(after - after.mean(), before - before.mean(), atol=1e-8)


def test_spread_of_lists_that_are_flat_or_empty_is_one():
    assert spread(np.array([5.0, 5.0, 7.0]), np.array([0, 2, 2, 3])) == 1.0
    assert spread(np.zeros(0), np.zeros(1, np.int64)) == 1.0


def test_a_saved_blend_predicts_the_same(tmp_path):
    blend = Blend(RANKERS_OF_THREE_KINDS, metric="ndcg@5").fit(TRAIN, valid=VALID)
    blend.save(tmp_path / "blend.placet")
    again = placet.load(tmp_path / "blend.placet")
    np.testing.assert_array_equal(again.predict(TEST), blend.predict(TEST))
    assert again.metric == "ndcg@5"
    assert [type(ranker) for ranker in again.members_] == [type(ranker) for ranker in RANKERS_OF_THREE_KINDS]
    np.testing.assert_array_equal(clone(again).fit(TRAIN, valid=VALID).predict(TEST), blend.predict(TEST))
    again.save(tmp_path / "again.placet")
    assert (tmp_path / "again.placet").read_bytes() == (tmp_path / "blend.placet").read_bytes()


def test_a_blend_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one ranker"):
        Blend([]).fit(TRAIN)


def test_a_blend_of_rerankers_with_bases_of_their_own_is_saved(tmp_path):
    trees = TreeRanker("ranknet", n_trees=5, min_rows=3).fit(TRAIN)
    rerankers = [ListwiseReranker(base, positive=True).fit(TRAIN) for base in (trees, LinearRanker("ranknet"), trees)]
    blend = Blend.of([Blend.of(rerankers, TRAIN), trees], TRAIN)
    blend.save(tmp_path / "deep.placet")
    again = placet.load(tmp_path / "deep.placet")
    np.testing.assert_array_equal(again.predict(TEST), blend.predict(TEST))
    inner = again.members_[0].members_
    assert inner[0].base_ is inner[2].base_ is again.members_[1]  # one ranker held in several places is one again
    assert isinstance(inner[1].base, LinearRanker)
    assert not hasattr(inner[1].base, "coef_")
    again.save(tmp_path / "again.placet")
    assert (tmp_path / "again.placet").read_bytes() == (tmp_path / "deep.placet").read_bytes()


def test_missing_values_go_where_all_members_take_them():
    X, y, qid = np.asarray(TRAIN.X).copy(), TRAIN.grade, np.array(TRAIN.qid)[TRAIN.query]
    X[::7, 1] = np.nan
    trees = TreeRanker("ranknet", n_trees=5, min_rows=3)
    assert np.isfinite(Blend([trees, trees]).fit(X, y, qid=qid).predict(X)).all()
    with pytest.raises(DataError, match="NaN"):
        Blend([trees, LinearRanker()]).fit(X, y, qid=qid)


def test_autorank_blends_the_best(tmp_path):
    one = autorank(TRAIN, VALID, candidates=CANDIDATES, metric="ndcg@5")
    some = autorank(TRAIN, VALID, candidates=CANDIDATES, metric="ndcg@5", blend=3)
    assert one.members == (one.best,)
    assert one.value == one.best.value
    assert some.best.params == one.best.params
    by_value = sorted(some.trials, key=lambda trial: -trial.value)
    assert list(some.members) == by_value[:3]
    fitted = [ranker_class(t.ranker)(**t.params, metric="ndcg@5").fit(TRAIN, valid=VALID) for t in by_value[:3]]
    np.testing.assert_array_equal(some.ranker.predict(TEST), Blend.of(fitted, VALID).predict(TEST))
    values = metric("ndcg@5")(some.ranker.predict(VALID), VALID.grade, VALID.offsets)
    assert some.value == pytest.approx(np.nanmean(values))
    assert repr(some).count("* ") == 3
    assert f"{some.value:.4f} by the mean of 3 (*)" in repr(some)
    some.ranker.save(tmp_path / "m")
    np.testing.assert_array_equal(placet.load(tmp_path / "m").predict(TEST), some.ranker.predict(TEST))


def test_autorank_with_fewer_candidates_than_members():
    choice = autorank(TRAIN, VALID, candidates=SHORT_LIST[:1], blend=5)
    assert isinstance(choice.ranker, LinearRanker)
    with pytest.raises(ValueError, match="blend 0"):
        autorank(TRAIN, VALID, blend=0)


def test_autorank_goes_on_where_a_candidate_cannot_take_the_data():
    sparse = [Queries(csr_matrix(part.X), part.grade, part.offsets) for part in (TRAIN, VALID)]
    listwise = ("booster", {"loss": "bregman-ce", "learners": "listwise"})
    choice = autorank(*sparse, candidates=[listwise, ("linear", {"loss": "ranknet"})], blend=2)
    assert isinstance(choice.ranker, LinearRanker)
    assert "listwise learners need dense features" in choice.trials[0].failure
    with pytest.raises(DataError, match="none of the 1 candidates could be fitted: listwise learners need dense"):
        autorank(*sparse, candidates=[listwise])
    with pytest.raises(DataError, match="none of the 3 candidates could be fitted: the validation set is empty"):
        autorank(TRAIN, VALID[:0], budget=3)


@pytest.mark.parametrize("kind", ["linear", "trees"])
def test_orders_of_the_top_are_drawn_with_the_weights_of_ndcg(kind):
    inner = [params.get("base", (name, params)) for name, params in draw_candidates(150, 0)]
    tops = [params for name, params in inner if name == kind and params["loss"] == "pl-topk"]
    assert tops
    assert all(params["loss_params"] == {"stage_weight": "dcg"} for params in tops)
    few = {"n_trees": 2, "min_rows": 2} if kind == "trees" else {}
    assert np.isfinite(build_ranker(kind, {**tops[0], **few}, "ndcg@10", 0).fit(TRAIN).predict(VALID)).all()


def test_candidates_are_drawn_the_same_way_each_time_and_all_can_be_fitted():
    found = draw_candidates(30, 5)
    assert found == draw_candidates(30, 5)
    assert found[:10] == draw_candidates(10, 5)
    assert found != draw_candidates(30, 6)
    assert {name for name, _ in found} == {"linear", "trees", "booster", "listwise"}
    assert {name for name, _ in found} <= set(RANKERS)
    cheap = {"trees": {"n_trees": 2, "min_rows": 2}, "booster": {"n_rounds": 2}}
    inner = [params["base"] if name == "listwise" else (name, params) for name, params in found]
    assert len({params["loss"] for _, params in inner}) > 4
    assert any(params.get("loss_params") == {"stage_weight": "dcg"} for _, params in inner)
    for (name, _), (kind, own) in zip(found, inner):
        params = {**own, **cheap.get(kind, {})}
        fitted = build_ranker(name, {"base": (kind, params)} if name == "listwise" else params, "ndcg@10", 0).fit(TRAIN)
        assert np.isfinite(fitted.predict(VALID)).all()
