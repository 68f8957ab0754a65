"""Rankers among scikit-learn's tools: searches, pipelines, its own checks, and arguments by the names of others."""

import inspect

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

import placet
from placet.data import DataError, Queries
from placet.rank import RANKERS, LinearRanker, TreeRanker
from placet.rank.query_rows import mean_defined
from placet.rank.sklearn_conventions import INSTEAD

pytestmark = pytest.mark.jit
DATA = placet.simulate.queries(40, (2, 10), 4, noise=0.5, random_state=3)
X, Y = np.asarray(DATA.X), DATA.grade
QID = np.array(DATA.qid)[DATA.query]
GRID = {"linearranker__l2": [1e-4, 1.0]}
FOLDS = GroupKFold(3)
SMALL_TREES = TreeRanker(n_trees=4, min_rows=2)


def pipeline():
    return make_pipeline(StandardScaler(), LinearRanker("ranknet"))


def by_hand(l2, weight=None):
    """Mean over the folds of the score of a ranker fitted to scaled features, without any tool of scikit-learn's."""
    values = []
    for fit, held in FOLDS.split(X, Y, QID):
        mean, scale = X[fit].mean(axis=0), X[fit].std(axis=0)
        ranker = LinearRanker("ranknet", l2).fit((X[fit] - mean) / scale, Y[fit], qid=QID[fit])
        queries = Queries.from_arrays((X[held] - mean) / scale, Y[held], QID[held])
        each = placet.metric("ndcg@10")(ranker.predict(queries), queries.grade, queries.offsets)
        of_query = np.ones(len(each)) if weight is None else weight[[int(q) for q in queries.qid]]
        defined = ~np.isnan(each)
        values.append(np.average(each[defined], weights=of_query[defined]))
    return np.mean(values)


def test_a_search_over_a_pipeline_finds_the_score_of_the_folds():
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(pipeline(), GRID, cv=FOLDS, error_score="raise").fit(X, Y, qid=QID, groups=QID)
        found = cross_val_score(pipeline(), X, Y, cv=FOLDS, params={"qid": QID, "groups": QID})
        several = cross_validate(pipeline(), X, Y, cv=FOLDS, params={"qid": QID, "groups": QID})["test_score"]
        assert search.score(X, Y, qid=QID) == search.best_estimator_.score(X, Y, qid=QID)
        assert len(search.predict(X)) == len(search.best_estimator_.predict(X, qid=QID)) == len(Y)
    expected = [by_hand(1e-4), by_hand(1.0)]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected, rtol=1e-9)
    assert np.mean(found) == pytest.approx(np.mean(several)) == pytest.approx(by_hand(1e-4))
    assert expected[0] != pytest.approx(expected[1], abs=1e-6)


def test_weights_are_routed_to_fit_and_score():
    weight = np.random.default_rng(0).integers(1, 9, len(DATA)).astype(float)
    rows = weight[DATA.query]
    ranker = LinearRanker("ranknet")
    given = {"qid": QID, "groups": QID, "sample_weight": rows}
    with sklearn.config_context(enable_metadata_routing=True):
        ranker.set_fit_request(weight=False).set_score_request(sample_weight=True)
        scaled = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), ranker)
        found = cross_val_score(scaled, X, Y, cv=FOLDS, params=given)
        assert np.mean(found) == pytest.approx(by_hand(1e-4, weight))
        ranker.set_fit_request(weight="sample_weight")
        both = cross_val_score(scaled, X, Y, cv=FOLDS, params=given)
    assert np.mean(both) != pytest.approx(np.mean(found), abs=1e-9)
    fitted = LinearRanker().fit(DATA)
    assert fitted.score(X, Y, QID, sample_weight=rows) == fitted.score(X, Y, QID, sample_weight=weight)
    only = np.where(DATA.query == 3, 2.0, 0.0)
    assert fitted.score(X, Y, QID, sample_weight=only) == pytest.approx(fitted.score(DATA[3:4]))
    assert np.isnan(mean_defined(np.array([1.0, np.nan]), np.array([0.0, 2.0])))


def test_a_search_without_routing_is_refused_and_not_answered_with_nan():
    for one, fit in ((LinearRanker(), {"qid": QID}), (pipeline(), {"linearranker__qid": QID})):
        grid = {"l2": [1.0]} if isinstance(one, LinearRanker) else GRID
        with pytest.raises(ValueError, match="set_config\\(enable_metadata_routing=True\\)"):
            GridSearchCV(one, grid, cv=FOLDS).fit(X, Y, groups=QID, **fit)
        for check in (cross_val_score, cross_validate):
            with pytest.raises(ValueError, match="enable_metadata_routing"):
                check(one, X, Y, cv=FOLDS, groups=QID, params=fit)
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        GridSearchCV(LinearRanker(), {"l2": [1.0]}, cv=FOLDS).fit(X, Y, groups=QID)


def test_a_scorer_that_finds_the_queries_itself_needs_no_routing():
    frame = pd.DataFrame(X, index=QID)
    scorer = lambda ranker, rows, y: ranker.score(rows, y, rows.index)  # noqa: E731
    found = cross_val_score(LinearRanker(), frame, Y, cv=FOLDS, groups=QID, scoring=scorer, params={"qid": QID})
    expected = [LinearRanker().fit(X[a], Y[a], QID[a]).score(X[b], Y[b], QID[b]) for a, b in FOLDS.split(X, Y, QID)]
    np.testing.assert_allclose(found, expected)


def test_names_importances_and_tags():
    names = ["bm25", "age", "noise", "clicks"]
    frame = pd.DataFrame(X, columns=names)
    with_names, without = clone(SMALL_TREES).fit(frame, Y, qid=QID), clone(SMALL_TREES).fit(X, Y, qid=QID)
    assert with_names.feature_names_in_.tolist() == names
    assert with_names.feature_names_in_.dtype == object
    assert not hasattr(without, "feature_names_in_")
    assert not hasattr(TreeRanker(), "feature_names_in_")
    assert with_names.n_features_in_ == without.n_features_in_ == 4
    np.testing.assert_array_equal(with_names.feature_importances_, without.feature_importances_)
    assert without.feature_importances_.sum() == pytest.approx(1)
    kept = SelectFromModel(without, prefit=True, max_features=2, threshold=-np.inf).transform(X)
    assert kept.shape == (len(Y), 2)
    assert get_tags(TreeRanker()).input_tags.allow_nan
    assert not get_tags(LinearRanker()).input_tags.allow_nan
    assert get_tags(LinearRanker()).target_tags.required
    assert get_tags(LinearRanker()).input_tags.sparse


def test_importances_are_shares_of_the_variance_that_splits_explain():
    ranker = TreeRanker(n_trees=3, min_rows=2, leaves=6, subsample=1.0).fit(DATA)
    trees = ranker.trees_
    slow = np.zeros(4)

    def walk(node, rows):
        """Mean of the leaves below by rows; each split adds the squares of what it moves its rows by."""
        if trees.feature[node] < 0:
            return np.full(len(rows), trees.value[node])
        left = X[rows, trees.feature[node]] <= trees.threshold[node]
        found = np.empty(len(rows))
        found[left], found[~left] = walk(trees.left[node], rows[left]), walk(trees.right[node], rows[~left])
        moved = np.where(left, found[left].mean(), found[~left].mean()) - found.mean()
        slow[trees.feature[node]] += (moved**2).sum()
        return found

    whole = sum(walk(root, np.arange(len(Y))) for root in trees.roots)
    np.testing.assert_allclose(whole, ranker.predict(X), atol=1e-12)
    np.testing.assert_allclose(ranker.feature_importances_, slow / slow.sum(), rtol=1e-9)


class OneList:
    """scikit-learn's checks give no queries: here all rows are one."""

    def fit(self, X, y=None, qid=None, **more):
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        return super().fit(X, y, np.zeros(n, int) if qid is None and y is not None else qid, **more)

    def score(self, X, y=None, qid=None, metric=None, sample_weight=None):
        return super().score(X, y, np.zeros(len(y), int) if qid is None else qid, metric, sample_weight)


class OneListLinear(OneList, LinearRanker):
    pass


class OneListTrees(OneList, TreeRanker):
    pass


OTHER_WORDS = {
    "check_n_features_in_after_fitting": "the error says 'the ranker was fitted on 4 features; these rows have 1'",
    "check_dtype_object": "features that are no numbers are a DataError, where the check wants a TypeError",
    "check_estimators_empty_data_messages": "the error says 'the table of 12 rows has no features'",
    "check_fit2d_1sample": "the error says that one row has nothing to learn an order from",
    "check_fit2d_predict1d": "the error says 'fitted on 3 features; these rows have (3,)'",
    "check_requires_y_none": "the error says 'give y (grades) and qid (the query of every row), or Queries'",
}
"""Checks that fail since they look for scikit-learn's own sentences: what they test is refused, in other words."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ranker", [OneListLinear(), OneListTrees(n_trees=4, min_rows=2)])
def test_scikit_learns_checks_hold_but_for_its_wording(ranker):
    found = check_estimator(ranker, expected_failed_checks=OTHER_WORDS, on_fail="raise", on_skip=None)
    status = {one["check_name"]: one["status"] for one in found}
    assert {name for name, how in status.items() if how == "xfail"} == set(OTHER_WORDS)
    assert sum(how == "passed" for how in status.values()) >= 28


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ranker", [LinearRanker(), SMALL_TREES])
def test_without_queries_every_check_that_fits_fails_by_that_alone(ranker):
    found = check_estimator(ranker, on_fail=None, on_skip=None)
    failed = [one for one in found if one["status"] == "failed"]
    assert len(failed) < len(found)
    for one in failed:
        causes, error = [], one["exception"]
        while error is not None:
            causes.append(str(error))
            error = error.__cause__ or error.__context__
        asked = any("qid (the query of every row)" in words for words in causes)
        assert asked or one["check_name"] in OTHER_WORDS or "NaN and inf" in causes[0], (one["check_name"], causes)


@pytest.mark.parametrize("name", RANKERS)
def test_arguments_of_others_are_answered_with_what_to_give(name):
    ranker = RANKERS[name]()
    for argument, words in INSTEAD.items():
        with pytest.raises(TypeError) as raised:
            ranker.fit(DATA, **{argument: [1]})
        assert words in str(raised.value)
    with pytest.raises(TypeError, match="fit has no argument nonsense"):
        ranker.fit(DATA, nonsense=1)
    sizes = [len(QID[q == QID]) for q in dict.fromkeys(QID)]
    np.testing.assert_array_equal(np.repeat(np.arange(len(sizes)), sizes), DATA.query)  # as the sentence on group says


@pytest.mark.parametrize("name", RANKERS)
def test_names_of_metrics_are_checked_before_the_data_are_looked_at(name):
    ranker = RANKERS[name]()
    if "metric" not in ranker.get_params(deep=False):
        pytest.skip("it has no metric of its own")
    with pytest.raises(ValueError, match="metric 'ndgc' is unknown"):
        ranker.set_params(metric="ndgc@10").fit(object())
    with pytest.raises(ValueError, match="metric 'ndgc' is unknown"):
        LinearRanker().score(object(), metric="ndgc")


def test_the_docstring_names_lightgbms_parameters():
    names = "n_estimators num_leaves min_child_samples reg_lambda colsample_bytree early_stopping_rounds".split()
    assert all(f"``{name}``" in inspect.getdoc(TreeRanker) for name in names)
    with pytest.raises(ValueError, match="backend_params holds n_estimators; the number of trees is n_trees \\(600\\)"):
        TreeRanker(backend_params={"n_estimators": 7}).fit(DATA)
    with pytest.raises(ValueError, match="backend_params holds iterations"):  # CatBoost's word
        TreeRanker(backend_params={"iterations": 10}, backend="catboost").fit(DATA)
    for wrong in ({"leaves": 1}, {"learning_rate": -1.0}, {"l2": -1.0}, {"subsample": 7.0}, {"feature_fraction": 0.0}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} .* must"):
            clone(SMALL_TREES).set_params(**wrong).fit(DATA)
    with pytest.raises(ValueError, match="LightGBM cannot grow such trees"):
        clone(SMALL_TREES).set_params(backend_params={"bagging_fraction": 7}).fit(DATA)


@pytest.mark.parametrize("n", [0, 1, 2, 3])
@pytest.mark.parametrize("name", [name for name in RANKERS if RANKERS[name].learns_from == "queries"])
@pytest.mark.filterwarnings("ignore")
def test_tiny_data_are_fitted_or_refused_in_words(name, n):
    if name == "neural":
        pytest.importorskip("torch", reason="networks are trained with PyTorch")
    ranker = RANKERS[name]()
    try:
        fitted = ranker.fit(X[:n], np.arange(n), qid=np.zeros(n))
    except DataError as error:
        words = str(error)
    else:
        words = "" if np.isfinite(fitted.predict(X[:n])).all() else "scores that are not finite"
    assert not words or any(part in words for part in ("nothing to learn", "min_rows", "no relation", "to hold out"))


def test_every_sparse_format_is_a_table_and_complex_numbers_are_none():
    expected = LinearRanker().fit(sparse.csr_matrix(X), Y, qid=QID).predict(X)
    for form in ("dok_array", "dok_matrix", "lil_matrix", "coo_array", "csc_array"):
        X_sparse = getattr(sparse, form)(X)
        found = LinearRanker().fit(X_sparse, Y, qid=QID).predict(X_sparse)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    for wrong in (X + 1j, sparse.csr_matrix(X + 1j)):
        with pytest.raises(DataError, match="complex numbers have no order"):
            LinearRanker().fit(wrong, Y, qid=QID)
    with pytest.raises(DataError, match="complex numbers have no order"):
        LinearRanker().fit(X, Y + 1j, qid=QID)
