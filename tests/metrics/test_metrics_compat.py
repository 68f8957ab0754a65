"""``compat`` against the packages themselves: tied scores, empty lists, lists shorter than the depth."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn import metrics as sk

from placet import metrics as m

N_LISTS = 60


def drawn(seed, grades=5, scores="tied"):
    """Lists of 1 to 15 rows, some with nothing relevant; scores with many ties, or without."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 16, N_LISTS)
    offsets = np.append(0, np.cumsum(sizes))
    grade = rng.integers(0, grades, offsets[-1])
    grade[np.repeat(rng.random(N_LISTS) < 0.2, sizes)] = 0
    s = rng.normal(size=offsets[-1])
    return (s.round(0) if scores == "tied" else s), grade, offsets


def slices(offsets):
    return [slice(a, b) for a, b in pairwise(offsets)]


@pytest.mark.parametrize("scores", ["tied", "untied"])
@pytest.mark.parametrize(("name", "theirs", "grades"), [("ndcg", "ndcg", 5), ("average_precision", "map", 2)])
def test_lightgbm(name, theirs, grades, scores):
    lgb = pytest.importorskip("lightgbm")
    s, grade, offsets = drawn(0, grades, scores)
    train = lgb.Dataset(np.zeros((2, 1)), label=[0, 1], group=[2], free_raw_data=False)
    sets = {}
    for q, r in enumerate(slices(offsets)[:30]):
        n = r.stop - r.start
        sets[str(q)] = lgb.Dataset(np.zeros((n, 1)), label=grade[r], group=[n], init_score=s[r], reference=train)
    params = {"objective": "lambdarank", "metric": theirs, "eval_at": [1, 3, 10], "verbosity": -1, "num_threads": 1}
    record: dict = {}
    watch = lgb.record_evaluation(record)
    lgb.train(params, train, 1, valid_sets=list(sets.values()), valid_names=list(sets), callbacks=[watch])
    for k in (1, 3, 10):
        ours = m.METRICS[name](s, grade, offsets, k, compat="lightgbm")
        np.testing.assert_allclose(ours[:30], [record[q][f"{theirs}@{k}"][0] for q in sets], atol=1e-9)


@pytest.mark.parametrize("scores", ["tied", "untied"])
@pytest.mark.parametrize("grades", [2, 5])
def test_xgboost(grades, scores):
    xgb = pytest.importorskip("xgboost")
    s, grade, offsets = drawn(1, grades, scores)
    s[:40] += 1e-9 * np.arange(40)  # tied in single precision
    names = {"ndcg": "ndcg", "map": "average_precision", "pre": "precision"} if grades == 2 else {"ndcg": "ndcg"}
    keys = [name + depth for name in names for depth in ("", "@1", "@3", "@10")]
    params = {"objective": "rank:ndcg", "eval_metric": keys, "verbosity": 0, "nthread": 1}
    expected = []
    for r in slices(offsets):
        rows = xgb.DMatrix(np.zeros((r.stop - r.start, 1)), label=grade[r], base_margin=s[r], group=[r.stop - r.start])
        found = xgb.train(params, rows, num_boost_round=0).eval(rows)  # one "\teval-metric:value" for each key
        expected.append([float(part.split(":")[-1]) for part in found.split("\t")[1:]])
    for key, values in zip(keys, np.transpose(expected), strict=True):
        name, _, depth = key.partition("@")
        ours = m.METRICS[names[name]](s, grade, offsets, int(depth) if depth else None, compat="xgboost")
        np.testing.assert_allclose(ours, values, atol=1e-6, err_msg=key)


TREC = [
    *(("ndcg", None, "ndcg"), ("ndcg", 3, "ndcg_cut_3"), ("ndcg", 10, "ndcg_cut_10")),
    *(("average_precision", None, "map"), ("average_precision", 3, "map_cut_3"), ("mrr", None, "recip_rank")),
    *(("precision", 3, "P_3"), ("precision", 10, "P_10"), ("recall", 3, "recall_3"), ("precision", None, "set_P")),
    *(("recall", None, "set_recall"),),
]


@pytest.mark.parametrize("retrieved", ["all", "some"])
@pytest.mark.parametrize("scores", ["tied", "untied"])
def test_trec_eval(scores, retrieved):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    s, grade, offsets = drawn(2, 4, scores)
    grade = grade - 1  # below 1 is not relevant, below 0 is no gain
    s[:40] += 1e-9 * np.arange(40)  # tied in single precision
    rng = np.random.default_rng(3)
    name = np.array([f"doc{x}" for x in rng.permutation(len(s))])
    if retrieved == "some":
        s[rng.random(len(s)) < 0.3] = -math.inf
        s[offsets[:-1]] = 0.5  # trec_eval has no value for a query without a run
    qrels = {str(q): dict(zip(name[r], grade[r].tolist(), strict=True)) for q, r in enumerate(slices(offsets))}
    run = {
        str(q): {d: x for d, x in zip(name[r], s[r].tolist(), strict=True) if x > -math.inf}
        for q, r in enumerate(slices(offsets))
    }
    measures = {"ndcg", "ndcg_cut", "map", "map_cut.3", "recip_rank", "P", "recall.3", "set_P", "set_recall"}
    measures = (measures - {"ndcg_cut", "P"}) | {"ndcg_cut.3,10", "P.3,10"}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    for metric, k, key in TREC:
        ours = m.METRICS[metric](s, grade, offsets, k, compat="trec_eval", name=name)
        np.testing.assert_allclose(ours, [theirs[str(q)][key] for q in range(N_LISTS)], atol=1e-9, err_msg=key)


def test_trec_eval_without_names_puts_the_later_row_first():
    pytrec_eval = pytest.importorskip("pytrec_eval")
    s, grade, offsets = drawn(4, 2)
    qrels = {str(q): {f"{i:03}": int(g) for i, g in enumerate(grade[r])} for q, r in enumerate(slices(offsets))}
    run = {str(q): {f"{i:03}": float(x) for i, x in enumerate(s[r])} for q, r in enumerate(slices(offsets))}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"map"}).evaluate(run)
    ours = m.average_precision(s, grade, offsets, compat="trec_eval")
    np.testing.assert_allclose(ours, [theirs[str(q)]["map"] for q in range(N_LISTS)])


@pytest.mark.parametrize("scores", ["tied", "untied"])
@pytest.mark.parametrize("k", [None, 1, 3, 10])
def test_sklearn_ndcg(k, scores):
    s, grade, offsets = drawn(5, 5, scores)
    long = [q for q, r in enumerate(slices(offsets)) if r.stop - r.start > 1]  # it refuses a single document
    expected = [sk.ndcg_score(grade[None, r], s[None, r], k=k) for q, r in enumerate(slices(offsets)) if q in long]
    np.testing.assert_allclose(m.ndcg(s, grade, offsets, k, compat="sklearn")[long], expected, atol=1e-12)


@pytest.mark.parametrize("scores", ["tied", "untied"])
@pytest.mark.filterwarnings("ignore:No positive class found:UserWarning")
def test_sklearn_average_precision(scores):
    s, grade, offsets = drawn(6, 2, scores)
    expected = [sk.average_precision_score(grade[r], s[r]) for r in slices(offsets)]
    np.testing.assert_allclose(m.average_precision(s, grade, offsets, compat="sklearn"), expected, atol=1e-12)


def letor_script(s, grade, n=10):
    """P@1..n, MAP and NDCG@1..n of one query as LETOR 4.0's evaluation script defines them."""
    order = sorted(range(len(s)), key=lambda i: (-s[i], i))
    rates = [grade[i] for i in order]
    padded = [*rates, *[0] * n]
    hits = np.cumsum([r > 0 for r in padded])
    p = [hits[i] / (i + 1) for i in range(n)]
    found = [hits[i] / (i + 1) for i in range(len(rates)) if rates[i] > 0]
    ndcg = []
    for depth in range(1, n + 1):
        if depth > len(rates):  # the script stops at the last document, and what is missing prints as 0
            ndcg.append(0.0)
            continue
        total, best = 0.0, 0.0
        for i, (r, b) in enumerate(zip(rates[:depth], sorted(rates, reverse=True)[:depth], strict=True)):
            d = 1.0 if i < 2 else math.log(2) / math.log(i + 1)
            total += (2**r - 1) * d
            best += (2**b - 1) * d
        ndcg.append(total / best if best else 0.0)
    return p, sum(found) / len(found) if found else 0.0, ndcg


@pytest.mark.parametrize("seed", [7, 8])
def test_letor(seed):
    s, grade, offsets = drawn(seed, 3)
    p, ap, ndcg = zip(*[letor_script(s[r], grade[r]) for r in slices(offsets)], strict=True)
    np.testing.assert_allclose(m.average_precision(s, grade, offsets, compat="letor"), ap)
    for k in range(1, 11):
        np.testing.assert_allclose(m.precision(s, grade, offsets, k, compat="letor"), np.array(p)[:, k - 1])
        np.testing.assert_allclose(m.ndcg(s, grade, offsets, k, compat="letor"), np.array(ndcg)[:, k - 1])


def test_letor_discount_is_one_at_the_first_two_places():
    np.testing.assert_allclose(m.ndcg([3.0, 2.0, 1.0], [0, 1, 0], [0, 3], compat="letor"), [1.0])
    np.testing.assert_allclose(m.ndcg([3.0, 2.0, 1.0], [0, 0, 1], [0, 3], compat="letor"), [1 / math.log2(3)])


@given(st.integers(0, 10_000), st.sampled_from([0.25, 0.5, 0.9]), st.sampled_from(["all", "some"]))
@settings(max_examples=40)
def test_subtopic_metrics_equal_ndeval(seed, alpha, retrieved):
    pyndeval = pytest.importorskip("pyndeval")
    rng = np.random.default_rng(seed)
    n, topics = int(rng.integers(2, 30)), int(rng.integers(1, 7))
    judged = (rng.random((n, topics)) < rng.random()).astype(int)
    judged[0, 0] = 1
    s = rng.permutation(n).astype(float)
    if retrieved == "some":
        s[s < n // 3] = -math.inf
    # ndeval breaks ties of the greedy ideal by name: names in the order of the judgements make it the same as ours
    name = ["".join(map(str, row)) + f"-{i:03}" for i, row in enumerate(judged)]
    qrels = [("1", str(t), name[i], int(judged[i, t])) for i in range(n) for t in range(topics)]
    run = [("1", name[i], s[i]) for i in range(n) if s[i] > -math.inf]
    names = ["alpha-nDCG@5", "alpha-nDCG@20", "ERR-IA@5", "ERR-IA@20"]
    theirs = pyndeval.RelevanceEvaluator(qrels, names, alpha=alpha).evaluate(run)["1"]
    for key in names:
        metric, k = key.split("@")
        ours = m.METRICS[m.ALIASES[metric.lower()]](s, judged, [0, n], int(k), alpha=alpha)
        np.testing.assert_allclose(ours, [theirs[key]], atol=1e-6, err_msg=key)


def test_an_empty_list_has_the_value_of_the_convention():
    s, grade, offsets = [2.0, 1.0, 2.0, 1.0], [0, 0, 1, 0], [0, 2, 4]
    assert np.isnan(m.ndcg(s, grade, offsets)).tolist() == [True, False]
    for compat, convention in m.CONVENTIONS.items():
        assert m.ndcg(s, grade, offsets, compat=compat).tolist() == [convention.empty, 1.0]
        assert m.ndcg(s, grade, offsets, compat=compat, empty=0.25).tolist() == [0.25, 1.0]
