"""Coefficients with errors: by differences of values alone, by peers, and where there are none."""

import numpy as np
import pytest

from placet.data import DataError, Queries
from placet.losses import LOSSES
from placet.rank import LinearRanker
from placet.simulate import queries as simulated

LAWS = [name for name, loss in LOSSES.items() if loss.law is not None]


def rows(loss="pl-partition", n=40, seed=0, features=2):
    """Queries of five rows with ties, in double precision, with weights, some of them not 1."""
    data = simulated(n, 5, features, noise=1.0, grades=3, random_state=seed)
    weight = np.where(np.arange(n) % 4 == 0, 2.0, 1.0)
    return Queries(data.X.astype(np.float64) * [2.0, 0.1][:features] + 3, data.grade, data.offsets, weight)


def values_of(loss, data, parameters):
    """Negative log likelihoods of the queries, from the raw columns."""
    learned = dict(zip(LOSSES[loss].learned, parameters[data.n_features :]))
    return LOSSES[loss].per_list(data.X @ parameters[: data.n_features], data.lists(), **learned)


def differences(f, x, h):
    """Jacobian of f at x by central differences; ``h`` (len(x),)."""
    steps = np.diag(h)
    return np.stack([(f(x + e) - f(x - e)) / (2 * e.sum()) for e in steps], axis=-1)


@pytest.mark.parametrize("loss", LAWS)
def test_errors_are_those_of_finite_differences(loss):
    data = rows()
    ranker = LinearRanker(loss, l2=0).fit(data)
    assert ranker.fit_summary_["converged"]
    at = np.array([*ranker.coef_, *ranker.learned_.values()])
    h = np.array([1e-3, 2e-2, 1e-2][: len(at)])
    f = lambda x: values_of(loss, data, x)  # noqa: E731
    scores = differences(f, at, h)  # (queries, unknowns)
    assert np.abs(scores.sum(axis=0) * h).max() < 1e-5
    A = differences(lambda x: differences(f, x, h).sum(axis=0), at, h)
    inverse = np.linalg.inv(A)
    found = ranker.coefficients(data, errors="observed")
    np.testing.assert_allclose(found.covariance, inverse, rtol=2e-3, atol=1e-4 * np.abs(inverse).max())
    cluster = np.arange(len(data)) // 3
    for U, options in (
        (scores / np.sqrt(data.weight)[:, None], {"errors": "query"}),
        (np.stack([scores[cluster == g].sum(axis=0) for g in range(14)]), {"cluster": cluster}),
    ):
        n = data.weight.sum() if "errors" in options else 14
        sandwich = inverse @ (U.T @ U) @ inverse * n / (n - 1)
        own = ranker.coefficients(data, **options)
        np.testing.assert_allclose(own.covariance, sandwich, rtol=3e-3, atol=1e-3 * np.abs(sandwich).max())
        assert own.n_clusters == n


def test_weights_are_counts_and_order_does_not_matter():
    data = rows()
    again = np.repeat(np.arange(len(data)), data.weight.astype(int))[::-1]
    where = np.concatenate([np.arange(*data.offsets[k : k + 2]) for k in again])
    expanded = Queries(data.X[where], data.grade[where], np.arange(0, len(where) + 1, 5))
    for errors in ("observed", "query"):
        one, other = (
            LinearRanker("pl-partition", l2=0).fit(d).coefficients(d, errors=errors) for d in (data, expanded)
        )
        np.testing.assert_allclose(one.covariance, other.covariance, rtol=1e-7)
        np.testing.assert_allclose(one.values, other.values, rtol=1e-9)


def test_controls_products_and_penalties_have_errors():
    data = rows(n=120)
    Z = np.random.default_rng(1).normal(size=(len(data.grade), 1))
    both = Queries(np.hstack([data.X, Z]), data.grade, data.offsets, data.weight)
    ranker = LinearRanker("listmle", l2=0).fit(data, control={"place": Z[:, 0]})
    found = ranker.coefficients(data, control={"place": Z[:, 0]}, cluster=np.arange(120) // 2)
    plain = LinearRanker("listmle", l2=0).fit(both).coefficients(both, cluster=np.arange(120) // 2)
    assert found.names == (0, 1, "place")
    np.testing.assert_allclose(found.covariance, plain.covariance, rtol=1e-6)
    with pytest.raises(ValueError, match="the fit had the controls"):
        ranker.coefficients(data)
    penalized = LinearRanker("listmle", l2=0.5, tol=1e-8).fit(data).coefficients(data)
    assert (penalized.stderr < LinearRanker("listmle", l2=0).fit(data).coefficients(data).stderr).all()
    products = LinearRanker("listmle", l2=1e-6, second_order=0.01, tol=1e-7).fit(data)
    assert len(products.coefficients(data, errors="query")) == len(products.coef_) > 2


def test_clusters_of_rows_are_in_the_order_of_the_caller():
    data = rows()
    by_query = np.arange(len(data)) % 7
    ranker = LinearRanker("pl-partition", l2=0).fit(data)
    mixed = np.random.default_rng(0).permutation(len(data.grade))
    table = data.X[mixed], data.grade[mixed], data.query[mixed]
    first = ranker.coefficients(data, cluster=by_query)
    per_row = by_query[data.query][mixed]
    weights = data.weight[data.query][mixed]
    again = ranker.coefficients(*table, weight=weights, cluster=[f"p{k}" for k in per_row])
    np.testing.assert_allclose(first.covariance, again.covariance, rtol=1e-9)
    per_row[0] += 1
    with pytest.raises(DataError, match="rows of two clusters"):
        ranker.coefficients(*table, weight=weights, cluster=per_row)


def test_the_maximum_is_reached_to_all_digits_only_where_it_is_asked_for():
    data = rows()
    best = LinearRanker("pl-partition", l2=0, solver="newton", tol=1e-12).fit(data).coef_
    np.testing.assert_allclose(LinearRanker("pl-partition", l2=0).fit(data).coef_, best, rtol=1e-9)
    assert np.abs(LinearRanker("pl-partition", l2=0, tol=1e-2).fit(data).coef_ / best - 1).max() > 1e-6


def test_what_has_no_errors_says_why():
    data = rows()
    with pytest.raises(ValueError, match="not a likelihood"):
        LinearRanker("listnet", l2=0).fit(data).coefficients(data)
    twice = Queries(np.hstack([data.X, data.X[:, :1]]), data.grade, data.offsets)
    ranker = LinearRanker("listmle", l2=0).fit(twice)
    assert "no single finite maximum" in ranker.fit_summary_["message"]
    with pytest.raises(DataError, match="not determined"):
        ranker.coefficients(twice)
    fitted = LinearRanker("listmle", l2=0).fit(data)
    with pytest.raises(ValueError, match="standard errors away"):
        fitted.coefficients(rows(seed=5))
    for options, words in (
        ({"errors": "cluster"}, "go together"),
        ({"errors": "query", "cluster": np.arange(40)}, "go together"),
        ({"errors": "robust"}, "errors"),
        ({"level": 95}, "between 0 and 1"),
        ({"cluster": np.arange(3)}, "3 entries"),
        ({"cluster": np.zeros(40)}, "too few"),
    ):
        with pytest.raises(ValueError, match=words):
            fitted.coefficients(data, **options)
    with pytest.raises(ValueError, match="no coefficient 'price'"):
        fitted.coefficients(data).ratio(0, "price")


def test_z_p_intervals_and_ratios():
    data = rows()
    found = LinearRanker("listmle", l2=0).fit(data).coefficients(data, level=0.9)
    from scipy.stats import norm

    np.testing.assert_allclose(found.p, 2 * norm.sf(np.abs(found.z)))
    low, high = found.interval
    np.testing.assert_allclose([low, high], norm.interval(0.9, found.values, found.stderr))
    rng = np.random.default_rng(0)
    found = type(found)(("price", "x"), np.array([-2.0, 1.0]), np.array([[0.01, 0.005], [0.005, 0.02]]), "observed")
    draws = rng.multivariate_normal(found.values, found.covariance / 100, 200_000)
    ratio = found.ratio("x", "price", -1.0)
    assert ratio == found.willingness_to_pay("price")["x"]
    assert ratio.value == 0.5
    assert abs(ratio.stderr / (10 * (draws[:, 1] / draws[:, 0]).std()) - 1) < 0.01
    assert found.to_frame()["name"].to_list() == ["price", "x"]
