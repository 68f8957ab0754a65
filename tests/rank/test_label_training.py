"""How LabelRanker() trains by default: one rate for features of any scale, a mean of weights, few epochs."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from placet.rank.multilabel.documents import as_documents
from placet.rank.validation import Best

torch = pytest.importorskip("torch", reason="PyTorch is not installed (pip install 'placet[neural]')")
pytestmark = pytest.mark.jit

from placet.rank import LabelRanker  # noqa: E402
from placet.rank.multilabel.feature_units import NORM, FeatureUnits  # noqa: E402
from placet.rank.multilabel.schedule import LABEL_SHARE  # noqa: E402
from placet.rank.torch import network as net, neural  # noqa: E402
from placet.rank.torch.running_mean import RISE, RunningMean  # noqa: E402

torch.set_num_threads(1)
GRID = (1e-4, 1e-3, 1e-2)


def documents(n=1500, n_words=300, n_labels=40, seed=0):
    """Documents of some 20 words, half of them words of their two labels."""
    rng = np.random.default_rng(seed)
    words_of = np.random.default_rng(99).integers(n_words, size=(n_labels, 12))
    X, Y = np.zeros((n, n_words)), np.zeros((n, n_labels))
    for d in range(n):
        own = rng.choice(n_labels, 2, replace=False)
        X[d, rng.integers(n_words, size=10)] = 1.0
        X[d, rng.choice(words_of[own].ravel(), 10)] = 1.0
        Y[d, own] = 1.0
    return csr_matrix(X), csr_matrix(Y)


def test_a_tenth_of_the_epochs_of_a_search_over_rates_does_as_well():
    (X, Y), (test, truth) = documents(1000), documents(600, seed=1)
    told: list[int] = []
    short = LabelRanker(hidden=64).fit(X, Y, progress=lambda step, steps, value: told.append(step))
    n_short, told[:] = len(told), []
    long = LabelRanker(hidden=64, learning_rate=GRID).fit(X, Y, progress=lambda step, steps, value: told.append(step))
    assert n_short < 0.2 * len(told)  # about 25 and 270
    a, b = (ranker.evaluate(test, truth, ["p@1", "p@2", "psp@2"]) for ranker in (short, long))
    assert (
        min(x - y for x, y in zip(a, b)) > -0.02
    )  # of a share of right labels in 600 documents: about three standard errors
    assert a[0] > 0.8
    assert short.fit_summary_["tried"] == {"0.003": short.fit_summary_["validation"]}


@pytest.mark.filterwarnings("ignore:on the .* documents held out")
@pytest.mark.parametrize("scale", [2.0**-10, 2.0**10])
def test_the_scale_of_words_does_not_matter(scale):
    X, Y = documents(400)
    one, other = (LabelRanker(hidden=16, epochs=6).fit(words, Y) for words in (X, scale * X))
    np.testing.assert_allclose(other.top(scale * X, 5).score, one.top(X, 5).score, rtol=1e-4, atol=1e-4)
    raw = LabelRanker(hidden=16, epochs=6, standardize=False).fit(scale * X, Y)
    assert np.abs(raw.top(scale * X, 5).score - one.top(X, 5).score).max() > 0.1  # so the test can tell


def test_rows_of_words_are_given_one_length():
    X, Y = documents(50)
    units = FeatureUnits.of_words(3.0 * X)
    rows = units.apply(as_documents(3.0 * X, Y)).X
    assert np.sqrt(np.square(rows.data).sum() / 50) == pytest.approx(NORM, rel=1e-6)
    np.testing.assert_allclose((rows / rows.max()).toarray(), X.toarray(), rtol=1e-6)
    assert FeatureUnits.of_words(csr_matrix((5, 3))) is None
    weights = net.first_weights((300, 4, 40), np.random.default_rng(0))
    np.testing.assert_allclose(units.from_own(units.to_own(weights, (300, 4, 40)), (300, 4, 40)), weights, rtol=1e-5)


def test_training_goes_on_from_the_weights_of_another():
    X, Y = documents(400)
    first = LabelRanker(hidden=16, epochs=8).fit(X, Y)
    more = LabelRanker(hidden=16, epochs=1).fit(X[:300], Y[:300], valid=(X[300:], Y[300:]), start=first)
    fresh = LabelRanker(hidden=16, epochs=1).fit(X[:300], Y[:300], valid=(X[300:], Y[300:]))
    assert more.fit_summary_["validation"] > fresh.fit_summary_["validation"] + 0.2


def test_negatives_and_a_linear_network_are_trained_so_too():
    X, Y = documents()
    for options in ({"negatives": 10, "hidden": 32}, {"hidden": ()}):
        assert LabelRanker(**options).fit(X[:1200], Y[:1200]).score(X[1200:], Y[1200:], "p@1") > 0.6  # by chance: 0.05


def test_a_running_mean_weights_late_steps_by_their_cube():
    values = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)
    mean = RunningMean(np.full(3, 100.0, np.float32), every=1)
    for row in values:
        mean.add(row)
    k = np.arange(1.0, 8.0)
    weight = k * (k + 1) * (k + 2)
    np.testing.assert_allclose(mean.weights, weight @ values / weight.sum(), rtol=1e-5)


@pytest.mark.filterwarnings("ignore:on the .* documents held out")
def test_the_mean_of_the_weights_is_what_is_judged_and_kept(monkeypatch):
    monkeypatch.setattr(RunningMean, "add", lambda self, weights: self.weights.fill(0.5))
    X, Y = documents(100)
    ranker = LabelRanker(hidden=4, epochs=2, standardize=False).fit(X[:70], Y[:70], valid=(X[70:], Y[70:]))
    assert (ranker.weights_ == 0.5).all()
    assert len(set(ranker.fit_summary_["history"]["ndcg@5"])) == 1
    assert (LabelRanker(hidden=4, epochs=2, learning_rate=1e-2).fit(X, Y).weights_ != 0.5).all()


def test_the_rate_rises_over_the_first_batches():
    mean = RunningMean(np.zeros(1, np.float32), every=100)
    shares = []
    for _ in range(RISE + 3):
        shares.append(mean.rise())
        mean.add(np.zeros(1, np.float32))
    np.testing.assert_allclose(shares, np.minimum(1.0, np.arange(1, RISE + 4) / RISE))


def test_small_rises_are_kept_and_do_not_keep_a_training_from_stopping():
    best = Best(judge=float, patience=3, least=0.03)
    stale = []
    for quality in (0.5, 0.6, 0.595, 0.62, 0.625, 0.66, 0.65):
        best.see(quality)
        stale.append(best.stale)
    assert (best.state, best.best_step) == (0.66, 6)
    assert stale == [False, False, False, False, True, False, False]  # 0.625 is no rise beyond 0.6, and 0.66 is


def test_measurements_are_trained_by_a_search_over_rates_as_ever():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 3)), np.eye(3)[rng.integers(3, size=60)]
    Y[np.arange(60), X.argmax(axis=1)] = 2.0
    found, given = (
        LabelRanker(hidden=4, epochs=5).fit(X, Y),
        LabelRanker(hidden=4, epochs=5, learning_rate=GRID).fit(X, Y),
    )
    assert found.fit_summary_["tried"] == given.fit_summary_["tried"]
    np.testing.assert_array_equal(found.weights_, given.weights_)


@pytest.mark.parametrize("shape", [(5, 5), (3, 8), (8, 3)])
def test_vectors_are_orthogonal_or_as_far_from_it_as_their_number_asks(shape):
    W = np.random.default_rng(0).uniform(-1, 1, shape)
    Q = net.orthogonal(W)
    products = Q @ Q.T if shape[0] <= shape[1] else Q.T @ Q
    np.testing.assert_allclose(products, products[0, 0] * np.eye(min(shape)), atol=1e-12)
    assert np.square(Q).mean() == pytest.approx(np.square(W).mean())
    assert (Q * W).sum() > 0.8 * np.linalg.norm(Q) * np.linalg.norm(W)
    order = np.random.default_rng(1).permutation(shape[0])
    np.testing.assert_allclose(net.orthogonal(W[order]), Q[order], atol=1e-12)  # no label comes first


def first_vectors(monkeypatch, **options):
    """The first vectors of 40 labels, and the share of the rate at which they are learned."""
    seen, adams = [], neural._adams

    def look(network, learned, rate, l2, sparse, share=1.0):
        seen.append((network[-1][0].detach().numpy().copy(), share))
        return adams(network, learned, rate, l2, sparse, share)

    monkeypatch.setattr(neural, "_adams", look)
    X, Y = documents(100)
    LabelRanker(epochs=1, **options).fit(X[:70], Y[:70], valid=(X[70:], Y[70:]))
    return seen[0]


@pytest.mark.filterwarnings("ignore:on the .* documents held out")
def test_vectors_of_few_labels_start_orthogonal_and_are_learned_slowly(monkeypatch):
    W, share = first_vectors(monkeypatch, hidden=40)
    products = W @ W.T
    assert np.abs(products - np.diag(np.diag(products))).max() < 1e-5 * products.max()
    assert share == LABEL_SHARE < 1
    for options in ({"hidden": 19}, {"hidden": 40, "learning_rate": 3e-3}, {"hidden": ()}):
        assert first_vectors(monkeypatch, **options)[1] == 1.0
    assert first_vectors(monkeypatch, hidden=20)[1] == LABEL_SHARE  # two labels for a unit


@pytest.mark.parametrize("sparse", [False, True])
def test_a_share_of_the_rate_is_of_the_last_table_alone(sparse):
    def moved(share):
        network = [tuple(torch.ones(shape, requires_grad=True) for shape in ((3, 2), (2,))) for _ in range(2)]
        optimizers = neural._adams(network, [], 0.1, 0.0, sparse, share)
        neural.set_rate(optimizers, 0.01)
        index = torch.tensor([0, 2])
        loss = sum(torch.nn.functional.embedding(index, W, sparse=sparse).sum() + b.sum() for W, b in network)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        return [float(1 - part.detach()[0].mean()) for layer in network for part in layer]

    assert moved(1.0) == pytest.approx([0.01] * 4, rel=1e-3)
    assert moved(0.2) == pytest.approx([0.01, 0.01, 0.002, 0.01], rel=1e-3)


def test_labels_do_not_disturb_each_other(monkeypatch):
    """Random vectors of labels are never quite orthogonal, so that a word of one label speaks for others, too."""
    X, Y = documents(1200)
    test, truth = documents(600, seed=1)
    apart = LabelRanker(hidden=64).fit(X, Y).score(test, truth, "psp@2")
    monkeypatch.setattr("placet.rank.multilabel.label_ranker.APART", 0)
    assert apart > LabelRanker(hidden=64).fit(X, Y).score(test, truth, "psp@2") + 0.03  # 0.05 in three draws
