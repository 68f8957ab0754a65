"""SupervisedFusion: its features by definition, and that it learns who to trust and that being listed counts."""

import math

import numpy as np
import pytest

import placet
from placet.data import DataError
from placet.metrics import ndcg
from placet.rank.fusion import SupervisedFusion, fusion_features, standardize, sums_by_agreement

NAN = math.nan
LINEAR = [("linear", {"loss": "pmop-fd", "l2": 0.1})]


def searched(n_queries, seed, noise=(0.3, 3.0, 3.0), listing=0.0):
    """Ranks by engines of the given noise; ``listing`` makes relevant documents more often listed."""
    rng = np.random.default_rng(seed)
    n = 12
    truth = rng.normal(size=(n_queries, n))
    grade = np.digitize(truth, [0.5, 1.3]).astype(float)
    rank = np.empty((n_queries, n, len(noise)))
    for e, spread in enumerate(noise):
        seen = truth + spread * rng.normal(size=truth.shape)
        rank[:, :, e] = 1 + np.argsort(np.argsort(-seen, axis=1), axis=1)
        rank[:, :, e][rng.random(truth.shape) > 0.6 + listing * (grade - 1)] = NAN
    qid = np.repeat(np.arange(n_queries), n)
    return rank.reshape(-1, len(noise)), grade.ravel(), qid


def test_features_are_those_of_the_definition_oracle():
    rank = np.array([[3.0, NAN], [7.0, 1.0], [3.0, 4.0], [2.0, NAN]])
    offsets = np.array([0, 3, 4])
    f = fusion_features(rank, offsets)
    assert f.shape == (4, 5 * 2 + 47)
    place = [[1, None], [3, 1], [1, 2], [1, None]]
    length = [[3, 2], [3, 2], [3, 2], [1, 0]]
    for d in range(4):
        for e in range(2):
            p = place[d][e]
            scaled = 0 if p is None else 1 - (p - 1) / length[d][e]
            expected = (
                [0, 0, 0, 0, 0] if p is None else [1, scaled, 1 / p, 1 / math.log2(1 + p), -math.log1p(rank[d, e])]
            )
            assert f[d, e::2][:5] == pytest.approx(expected)
        listed = [e for e in range(2) if place[d][e]]
        assert f[d, 10] == len(listed)
        assert f[d, 12] == pytest.approx(sum(1 / place[d][e] for e in listed))
    assert np.isfinite(f).all()
    assert f[3, 10 + 21 : 52] == pytest.approx(np.zeros(21))  # a query of one document has nothing to standardize by
    # documents and engines of the query, share of its engines that list the document, longest list, best rank
    assert f[:, 52:].tolist() == [[3, 2, 0.5, 3, 3], [3, 2, 1, 3, 1], [3, 2, 1, 3, 3], [1, 1, 1, 1, 2]]


def test_agreement_weighs_engines_inside_each_query():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=40)
    values = np.column_stack([truth + 0.1 * rng.normal(size=40), truth + 0.3 * rng.normal(size=40), -truth])
    values[20:, 2] = truth[20:]  # the third engine is contrary in the first query alone
    offsets = np.array([0, 20, 40])
    weight = np.ones((40, 3))
    for a, b in ((0, 20), (20, 40)):  # by hand: correlations with the weighted sum, three times
        Z = (values[a:b] - values[a:b].mean(axis=0)) / values[a:b].std(axis=0)
        w = np.ones(3)
        for _ in range(3):
            w = np.array([max(np.corrcoef(Z[:, e], Z @ w)[0, 1], 0.0) for e in range(3)])
        weight[a:b] = w
        assert sums_by_agreement(values, offsets)[0][a:b] == pytest.approx(Z @ w)
    assert sums_by_agreement(values, offsets)[1] == pytest.approx((weight * values).sum(axis=1))
    assert sums_by_agreement(values, offsets)[2] == pytest.approx((weight**2 * values).sum(axis=1))
    assert weight[0, 2] == 0.0
    assert weight[20, 2] > 0.9


def test_each_kind_of_ranker_has_the_same_say():
    rank, grade, qid = searched(30, 0)
    linear = [("linear", {"loss": loss, "l2": 0.1}) for loss in ("ranknet", "attrank")]
    trees = [("trees", {"loss": "attrank", "n_trees": 5, "min_rows": 5})]
    alone = {
        k: SupervisedFusion(members).fit(rank, grade, qid=qid).predict(rank, qid=qid)
        for k, members in {"l": linear, "t": trees}.items()
    }
    both = SupervisedFusion([*linear, *trees]).fit(rank, grade, qid=qid).predict(rank, qid=qid)
    assert both == pytest.approx(alone["l"] + alone["t"])


def test_standardizing_is_by_query():
    z = standardize(np.array([1.0, 3.0, 5.0, 5.0]), np.array([0, 2, 4]))
    assert z == pytest.approx([-1, 1, 0, 0])


def test_it_finds_the_good_engine_and_beats_borda():
    train, test = searched(80, 1), searched(40, 2)
    fusion = SupervisedFusion(LINEAR).fit(*train)
    offsets = np.arange(0, len(test[1]) + 1, 12)
    ours = np.nanmean(ndcg(fusion.predict(test[0], qid=test[2]), test[1], offsets, k=5))
    points = np.where(np.isnan(test[0]), 0, 13 - test[0]).sum(axis=1)
    assert ours > np.nanmean(ndcg(points, test[1], offsets, k=5)) + 0.02


def test_being_listed_is_evidence():
    train, test = searched(80, 3, noise=(50.0, 50.0), listing=0.35), searched(40, 4, noise=(50.0, 50.0), listing=0.35)
    fusion = SupervisedFusion(LINEAR).fit(*train)
    offsets = np.arange(0, len(test[1]) + 1, 12)
    blind = np.nanmean(ndcg(np.zeros(len(test[1])), test[1], offsets, k=5))
    assert np.nanmean(ndcg(fusion.predict(test[0], qid=test[2]), test[1], offsets, k=5)) > blind + 0.05


def test_saved_and_loaded_it_predicts_the_same_in_any_order(tmp_path):
    rank, grade, qid = searched(30, 5)
    members = [("linear", [{"l2": 1e6}, {"l2": 0.1}]), ("trees", {"loss": "ranknet", "n_trees": 5, "min_rows": 5})]
    fusion = SupervisedFusion(members).fit(rank, grade, qid, valid=searched(20, 6))
    assert fusion.chosen_ == [1, 0]  # a penalty of a million forgets what the lists say
    scores = fusion.predict(rank, qid=qid)
    fusion.save(tmp_path / "fusion.placet")
    assert np.array_equal(placet.load(tmp_path / "fusion.placet").predict(rank, qid=qid), scores)
    order = np.random.default_rng(0).permutation(len(qid))
    assert fusion.predict(rank[order], qid=qid[order]) == pytest.approx(scores[order])


@pytest.mark.parametrize("bad", [[[-1.0, 2.0], [1.0, 1.0]], [[math.inf, 2.0], [1.0, 1.0]]])
def test_ranks_that_are_not_ranks_are_refused(bad):
    with pytest.raises(DataError):
        SupervisedFusion(LINEAR).fit(bad, [0, 1], qid=[1, 1])


def test_an_unknown_member_is_named():
    with pytest.raises(ValueError, match="member 'oracle' is unknown; choose from"):
        SupervisedFusion([("oracle", {})]).fit([[1.0], [2.0]], [1, 0], qid=[1, 1])
