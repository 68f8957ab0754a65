"""Continuous random fields: the printed linear algebra, the Gaussian density, gradients, bad relations, long lists."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import multivariate_normal

import placet
from placet.data import DataError, Queries
from placet.optim import ConvergenceWarning
from placet.rank import ContinuousCRF
from placet.rank.listwise.crf import _Distillation, _Feedback, _Likelihood, _Loss


def related(queries, symmetric=True, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.random((len(queries.grade),) * 2) * (queries.query[:, None] == queries.query)
    A = np.where(A > 0.4, A, 0.0)
    A = (A + A.T) / 2 if symmetric else A
    return Queries(queries.X, queries.grade, queries.offsets, relations={"similarity": csr_matrix(A)})


@pytest.fixture(scope="module")
def data():
    return related(placet.simulate.queries(15, (1, 7), 3, 3, w=[1, 1, 1], noise=0.3, random_state=4))


def test_feedback_is_equation_2_22(data):
    alpha, beta = np.array([0.5, 1.0, 2.0]), 0.7
    got = _Feedback(data.X, data.offsets, "similarity", data.relations).mean(alpha, beta)
    for a, b in zip(data.offsets[:-1], data.offsets[1:]):
        S = data.relations["similarity"][a:b, a:b].toarray()
        np.fill_diagonal(S, 0.0)  # a row is as far from itself with it as without
        A = alpha.sum() * np.eye(b - a) + beta * np.diag(S.sum(axis=1)) - beta * S
        np.testing.assert_allclose(got[a:b], np.linalg.solve(A, data.X[a:b] @ alpha), rtol=1e-9)


def test_distillation_is_equation_2_23_up_to_its_factor(data):
    alpha, beta = np.array([0.5, 1.0, 2.0]), 0.7
    directed = related(data, symmetric=False)
    R = directed.relations["similarity"].toarray()
    printed = (2 * data.X @ alpha + beta * (R.sum(axis=1) - R.sum(axis=0))) / alpha.sum()
    got = _Distillation(data.X, data.offsets, "similarity", directed.relations).mean(alpha, beta)
    np.testing.assert_allclose(2 * got, printed, rtol=1e-12)


def test_beta_zero_is_a_linear_ranker(data):
    for kind in (_Feedback, _Distillation):
        got = kind(data.X, data.offsets, "similarity", data.relations).mean(np.array([1.0, 2.0, 1.0]), 0.0)
        np.testing.assert_allclose(got, data.X @ [0.25, 0.5, 0.25])


def test_cosine_makes_no_matrix_and_is_the_relation_of_cosines(data):
    from placet.rank import similarity

    U = similarity.unit_rows(data.X, data.offsets)
    S = csr_matrix((U @ U.T) * (data.query[:, None] == data.query))
    named = _Feedback(data.X, data.offsets, "s", {"s": S})
    direct = _Feedback(data.X, data.offsets, "cosine", None)
    alpha = np.ones(3)
    np.testing.assert_allclose(direct.mean(alpha, 0.3), named.mean(alpha, 0.3), rtol=1e-9)
    np.testing.assert_allclose(direct.eigenvalues(), named.eigenvalues(), atol=1e-9)


@pytest.mark.parametrize("kind", [_Feedback, _Distillation])
def test_likelihood_is_the_gaussian_density(data, kind):
    field = kind(data.X, data.offsets, "similarity", data.relations)
    x = np.array([0.1, -0.3, 0.4, -0.5])
    alpha, beta = np.exp(x[:-1]), np.exp(x[-1])
    mu = field.mean(alpha, beta)
    y = (data.grade - data.grade.min()) / (data.grade.max() - data.grade.min())
    expected = 0.0
    for a, b in zip(data.offsets[:-1], data.offsets[1:]):
        A = alpha.sum() * np.eye(b - a)
        if kind is _Feedback:
            S = data.relations["similarity"][a:b, a:b].toarray()
            np.fill_diagonal(S, 0.0)
            A = A + beta * (np.diag(S.sum(axis=1)) - S)
        expected -= multivariate_normal(mu[a:b], np.linalg.inv(2 * A)).logpdf(y[a:b])
    assert _Likelihood(field, data)(x)[0] * len(data) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("kind", [_Feedback, _Distillation])
@pytest.mark.parametrize("loss", ["likelihood", "pmop-fd", "bregman-square"])
def test_gradients_are_derivatives(data, kind, loss):
    field = kind(data.X, data.offsets, "similarity", data.relations)
    objective = _Likelihood(field, data) if loss == "likelihood" else _Loss(field, data, ContinuousCRF(loss=loss))
    x = np.concatenate([[0.1, -0.3, 0.4, -0.5], 0.2 + objective.start])
    grad = objective(x)[1]
    for k in range(len(x)):
        step = np.zeros(len(x))
        step[k] = 1e-5
        slope = (objective(x + step)[0] - objective(x - step)[0]) / 2e-5
        assert grad[k] == pytest.approx(slope, rel=1e-5, abs=1e-7)


def test_weight_two_is_the_list_twice(data):
    field = lambda q: _Feedback(q.X, q.offsets, "cosine", None)  # noqa: E731
    heavy = Queries(data.X, data.grade, data.offsets, weight=np.where(np.arange(15) < 5, 2.0, 1.0))
    first = int(data.offsets[5])
    rows = np.r_[0:first, 0 : len(data.grade)]
    twice = Queries(data.X[rows], data.grade[rows], np.r_[data.offsets[:5], first + data.offsets])
    x = np.array([0.1, -0.3, 0.4, -0.5])
    a, b = _Likelihood(field(heavy), heavy)(x), _Likelihood(field(twice), twice)(x)
    assert a[0] == pytest.approx(b[0], rel=1e-12)
    np.testing.assert_allclose(a[1], b[1], rtol=1e-9)


def test_related_rows_help_where_relevance_comes_in_groups():
    """Grades belong to groups of rows; features see them through noise; the relation says who belongs together."""
    rng = np.random.default_rng(0)
    n, size = 60, 12
    group = rng.integers(0, 4, n * size) + 4 * np.repeat(np.arange(n), size)
    worth = rng.integers(0, 3, 4 * n)[group].astype(float)
    X = worth[:, None] + rng.normal(0, 4, (n * size, 3))
    worth = np.clip(worth + rng.choice([-1, 0, 1], n * size, p=[0.1, 0.8, 0.1]), 0, 2)
    S = csr_matrix((group[:, None] == group).astype(float) - np.eye(n * size))
    data = Queries(X, worth, np.arange(0, n * size + 1, size), relations={"group": S})
    field = ContinuousCRF("group").fit(data[:40])
    test = data[40:]
    assert field.beta_ > 0.1 * field.alpha_.sum()
    alone = placet.rank.LinearRanker("bregman-square").fit(data[:40])
    assert field.score(test) > alone.score(test) + 0.03


@pytest.mark.parametrize("form", ["feedback", "distillation"])
def test_exchangeable(data, form):
    ranker = ContinuousCRF("similarity", form).fit(data)
    q = int(np.argmax(np.diff(data.offsets)))
    one = data[q]
    order = np.random.default_rng(0).permutation(len(one.grade))
    S = one.relations["similarity"][order][:, order]
    turned = Queries(one.X[order], one.grade[order], one.offsets, relations={"similarity": S})
    np.testing.assert_allclose(ranker.predict(turned), ranker.predict(one)[order], rtol=1e-8)


def test_saved_and_loaded(data, tmp_path):
    ranker = ContinuousCRF(loss="pmop-fd").fit(data[:10], valid=data[10:])
    ranker.save(tmp_path / "model")
    np.testing.assert_array_equal(placet.load(tmp_path / "model").predict(data), ranker.predict(data))


def test_bad_relations(data):
    with pytest.raises(DataError, match=r"not symmetric: entry \(\d+, \d+\) is .* use \(S \+ S.T\) / 2"):
        ContinuousCRF("similarity").fit(related(data, symmetric=False))
    negative = Queries(data.X, data.grade, data.offsets, relations={"s": -data.relations["similarity"]})
    with pytest.raises(DataError, match="negative entries"):
        ContinuousCRF("s").fit(negative)
    with pytest.raises(DataError, match="no such relation"):
        ContinuousCRF("links").fit(data)
    with pytest.raises(ValueError, match="directed relation"):
        ContinuousCRF("cosine", "distillation").fit(data)
    with pytest.raises(ValueError, match="unknown"):
        ContinuousCRF(form="x").fit(data)
    with pytest.raises(ValueError, match="no learned parameters"):
        ContinuousCRF(loss="davidson").fit(data)
    with pytest.raises(DataError, match="dense features"):
        ContinuousCRF().fit(placet.simulate.queries(5, 4, 3, density=0.5))


def test_equal_grades_of_all_related_rows_end_at_the_bound_of_beta():
    """The density grows without end with beta there: the answer is finite and orders by the groups' means."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    S = csr_matrix(np.kron(np.eye(20), np.ones((2, 2))))
    grade = np.repeat(np.arange(20) % 2, 2).astype(float)
    ranker = ContinuousCRF("s").fit(Queries(X, grade, np.arange(0, 41, 4), relations={"s": S}))
    assert np.isfinite(ranker.predict(Queries(X, grade, np.arange(0, 41, 4), relations={"s": S}))).all()


def test_long_lists():
    rng = np.random.default_rng(0)
    X = rng.random((12_000, 3))
    long = Queries(X, (X.sum(axis=1) + rng.normal(0, 0.1, 12_000) > 1.5).astype(float), [0, 12_000])
    with pytest.raises(DataError, match="12000 rows is too long for the likelihood.*loss='pmop-fd'"):
        ContinuousCRF().fit(long)
    ranker = ContinuousCRF(loss="pmop-fd", max_iter=5).fit(long)
    assert np.isfinite(ranker.predict(long)).all()
    one = ContinuousCRF(loss="pmop-fd", max_iter=5).fit(long[:1]).predict(X[:1])
    assert one.shape == (1,)


def chain(n):
    """One list whose rows are joined one after the other: conjugate gradients need as many steps as there are rows."""
    rng = np.random.default_rng(2)
    S = csr_matrix(np.eye(n, k=1) + np.eye(n, k=-1))
    return Queries(rng.random((n, 2)), rng.integers(0, 3, n), [0, n], relations={"chain": S})


def stiff_field(data, beta):
    field = ContinuousCRF("chain", loss="ranknet", max_iter=1).fit(data)
    field.alpha_, field.beta_ = np.ones(2), beta
    return field


def test_a_stiff_field_is_solved_directly():
    data, beta = chain(1500), 2 * 3e6
    got = stiff_field(data, beta).predict(data)
    S = data.relations["chain"].toarray()
    A = 2 * np.eye(1500) + beta * (np.diag(S.sum(axis=1)) - S)
    expected = np.linalg.solve(A, data.X.sum(axis=1))
    np.testing.assert_allclose(got, expected, rtol=1e-6)
    assert set(np.argsort(-got)[:10]) == set(np.argsort(-expected)[:10])


def test_a_long_stiff_list_says_how_far_off_its_scores_may_be(monkeypatch):
    data = chain(1500)
    field = stiff_field(data, 2 * 3e6)
    monkeypatch.setattr("placet.rank.listwise.crf.LONGEST_DENSE", 100)
    with pytest.warns(ConvergenceWarning, match="conjugate gradients stopped early: beta / a is 3e") as told:
        got = field.predict(data)
    S = data.relations["chain"].toarray()
    expected = np.linalg.solve(2 * np.eye(1500) + 6e6 * (np.diag(S.sum(axis=1)) - S), data.X.sum(axis=1))
    bound = float(str(told[0].message).split("off by ")[1].split(" of")[0])
    assert 1e-6 < np.linalg.norm(got - expected) / np.linalg.norm(got) <= 1.1 * bound
    easy = stiff_field(data, 0.5)
    assert np.isfinite(easy.predict(data)).all()  # no warning


def test_the_summary_says_how_exact_the_solution_is():
    assert ContinuousCRF("chain", loss="ranknet", max_iter=5).fit(chain(40)).fit_summary_["relative error"] == 0.0
