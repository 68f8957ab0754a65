"""Diversity: the greedy rules against slow ones, a reranker that wins where no pointwise ranker can, TREC judgments."""

import itertools
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import placet
from placet.data import DataError, Queries
from placet.metrics import alpha_ndcg, compare, err_ia
from placet.rank import DiversityReranker, TreeRanker, mmr, similarity
from placet.rank.listwise.diversity import simulated_intents, subtopic_judgments


@pytest.fixture(scope="module")
def intents():
    return simulated_intents(60, random_state=2)


def halves(data, n):
    cut = int(data.queries.offsets[n])
    return (data.queries[:n], data.judged[:cut]), (data.queries[n:], data.judged[cut:])


def slow_mmr(X, b, trade_off):
    """One list, by the definition."""
    Z = similarity.normalize(X, np.array([0, len(X)]))
    Z = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    b = (b - b.min()) / (b.max() - b.min())
    taken = []
    while len(taken) < len(b):
        worth = {
            i: trade_off * b[i] - (1 - trade_off) * max((Z[i] @ Z[j] for j in taken), default=0.0)
            for i in range(len(b))
            if i not in taken
        }
        taken.append(max(worth, key=worth.get))
    return taken


@pytest.mark.parametrize("trade_off", [0.2, 0.7])
def test_mmr_is_its_definition(trade_off):
    rng = np.random.default_rng(0)
    X, b = rng.random((9, 4)), rng.random(9)
    got = mmr(np.vstack([X, X[::-1]]), np.r_[b, b[::-1]], [0, 9, 18], trade_off=trade_off)
    np.testing.assert_array_equal(np.argsort(-got[:9]), slow_mmr(X, b, trade_off))
    np.testing.assert_array_equal(got[9:], got[:9][::-1])  # rows in another order: the same order of rows


def test_mmr_with_all_weight_on_relevance_is_relevance_and_beyond_k_too(intents):
    X, b, offsets = intents.queries.X, intents.queries.X[:, 0], intents.queries.offsets
    for k, trade_off in ((None, 1.0), (3, 0.3)):
        s = mmr(X, b, offsets, trade_off=trade_off, k=k)
        for low, high in itertools.pairwise(offsets):
            rest = np.argsort(-s[low:high])[k or 0 :]
            assert (np.diff(b[low:high][rest]) <= 0).all()
    with pytest.raises(ValueError, match="trade_off"):
        mmr(X, b, offsets, trade_off=2.0)


def test_no_pointwise_ranker_can_win(intents):
    """Trees on the judgments do no better than the relevance column; MMR and the learned reranker beat both."""
    (train, taught), (test, judged) = halves(intents, 30)
    value = lambda s: alpha_ndcg(s, judged, test.offsets, 10)  # noqa: E731
    by_relevance = value(test.X[:, 0])
    pointwise = TreeRanker("pmop-fd", n_trees=30).fit(train)
    assert compare(value(pointwise.predict(test)), by_relevance).low < 0.01
    reranker = DiversityReranker(0).fit(train, taught)
    assert reranker.w_[0] < 0
    learned = value(reranker.predict(test))
    assert compare(learned, by_relevance).low > 0.03
    assert compare(learned, value(pointwise.predict(test))).low > 0.03
    assert compare(value(mmr(test.X, test.X[:, 0], test.offsets, trade_off=0.5, k=10)), by_relevance).low > 0.0


def test_the_metric_can_be_err_ia(intents):
    (train, taught), (test, judged) = halves(intents, 30)
    reranker = DiversityReranker(0, metric="err_ia@10").fit(train, taught)
    gain = err_ia(reranker.predict(test), judged, test.offsets, 10) - err_ia(test.X[:, 0], judged, test.offsets, 10)
    assert gain.mean() > 0
    assert reranker.fit_summary_["value"] >= reranker.fit_summary_["value of the base"]


@pytest.mark.parametrize("kernel", ["cosine", "gaussian", "relation", "function"])
def test_the_greedy_product_is_its_definition(intents, kernel):
    one = intents.queries[0]
    Z = similarity.normalize(one.X, one.offsets)
    unit = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    S = {
        "cosine": unit @ unit.T,
        "gaussian": np.exp(-((Z[:, None] - Z) ** 2).mean(axis=2) / (2 * 0.25**2)),
        "relation": (intents.intent[:40, None] == intents.intent[:40]).astype(float),
        "function": one.X @ one.X.T,
    }[kernel]
    related = Queries(one.X, one.grade, one.offsets, relations={"relation": csr_matrix(S)})
    reranker = DiversityReranker(0, ((lambda A, B: A @ B.T) if kernel == "function" else kernel,), "alpha_ndcg@6")
    reranker.base_, reranker.w_ = 0, np.array([-1.5])
    reranker.n_features_in_, reranker.features_ = 9, None
    order = np.argsort(-reranker.predict(related))[:6]
    b = (one.X[:, 0] - one.X[:, 0].min()) / np.ptp(one.X[:, 0])
    taken = []
    for _ in range(6):
        worth = b * np.exp(-1.5 * S[:, taken].sum(axis=1))
        worth[taken] = -np.inf
        taken.append(int(worth.argmax()))
    assert order.tolist() == taken


def test_weights_of_zero_give_the_base_and_rows_may_be_permuted(intents):
    reranker = DiversityReranker(0, metric="alpha_ndcg@5").fit(intents.queries[:10], intents.judged[:400])
    X = intents.queries.X[:40]
    order = np.random.default_rng(0).permutation(40)
    np.testing.assert_array_equal(reranker.predict(X[order]), reranker.predict(X)[order])
    reranker.w_ = np.zeros(1)
    np.testing.assert_array_equal(np.argsort(-reranker.predict(X)), np.argsort(-X[:, 0]))


def test_saved_and_loaded(intents, tmp_path):
    reranker = DiversityReranker(0).fit(intents.queries[:10], intents.judged[:400])
    reranker.save(tmp_path / "model")
    np.testing.assert_array_equal(
        placet.load(tmp_path / "model").predict(intents.queries), reranker.predict(intents.queries)
    )


def test_bad_input(intents):
    queries, judged = intents.queries[:10], intents.judged[:400]
    with pytest.raises(DataError, match="judged has 3 rows"):
        DiversityReranker(0).fit(queries, judged[:3])
    with pytest.raises(DataError, match="nothing to learn from"):
        DiversityReranker(0).fit(queries, np.zeros((400, 2)))
    with pytest.raises(ValueError, match="choose from"):
        DiversityReranker(0, metric="ndcg").fit(queries, judged)
    with pytest.raises(DataError, match="no such relation"):
        DiversityReranker(0, ("links",)).fit(queries, judged)
    one = DiversityReranker(0).fit(queries, judged).predict(queries.X[:1])
    assert one.shape == (1,)


def test_trec_judgments():
    folder = Path(os.environ.get("PLACET_DATA", Path(__file__).parents[4] / "shared" / "data")) / "trec_web"
    if not folder.is_dir():
        pytest.skip(f"no TREC Web judgments in {folder}")
    qrels = placet.read_qrels(folder / "2012.qrels.diversity.txt.xz")
    topics = list(subtopic_judgments(qrels))
    assert len(topics) == len(qrels.topics)
    sizes = [len(table) for _, _, table in topics]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    width = max(table.shape[1] for _, _, table in topics)
    judged = np.concatenate([np.pad(table, [(0, 0), (0, width - table.shape[1])]) for _, _, table in topics])
    by_count = judged.sum(axis=1).astype(float)  # documents that serve many subtopics first: pointwise
    greedy = np.concatenate([greedy_gain(table) for _, _, table in topics])  # knows what is already served: listwise
    a, b = (alpha_ndcg(s, judged, offsets, 10) for s in (greedy, by_count))
    assert np.nanmax(a) <= 1 + 1e-9
    assert compare(a, b).low > 0
    np.testing.assert_allclose(a[~np.isnan(a)], 1.0, atol=1e-9)
    assert compare(err_ia(greedy, judged, offsets, 10), err_ia(by_count, judged, offsets, 10)).difference > 0


def greedy_gain(table):
    """Scores of the greedy order for alpha = 0.5; ties go to the lexicographically largest judgments, as in ndeval."""
    table = np.asarray(table)
    left, seen, place = list(range(len(table))), np.zeros(table.shape[1]), np.zeros(len(table))
    for rank in range(min(len(table), 10)):
        i = max(left, key=lambda r: (round(float(table[r] @ 0.5**seen), 12), tuple(table[r])))
        left.remove(i)
        seen += table[i]
        place[i] = len(table) - rank
    return place


def test_judgments_without_subtopics_are_refused(tmp_path):
    path = tmp_path / "plain"
    path.write_text("1 0 d1 1\n1 0 d2 0\n")
    with pytest.raises(DataError, match="no subtopics"):
        next(subtopic_judgments(placet.read_qrels(path, subtopics=False)))
