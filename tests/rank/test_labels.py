"""LabelRanker: losses of labels against the plain lists, what is learned, bad input, files."""

import json

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.sparse import csr_matrix, random as random_sparse

from placet import DataError, metrics
from placet.data import Lists
from placet.io import MultiLabel, judge_labels, read_label_scores, write_label_scores, write_xmc
from placet.kernels.rank import label_order as kernels
from placet.losses import LOSSES
from placet.rank.multilabel.documents import checked_features, checked_labels

torch = pytest.importorskip("torch", reason="PyTorch is not installed (pip install 'placet[neural]')")
pytestmark = pytest.mark.jit

from placet.rank import LabelRanker, load  # noqa: E402
from placet.rank.multilabel.best_labels import best_labels  # noqa: E402
from placet.rank.multilabel.documents import as_documents  # noqa: E402
from placet.rank.multilabel.label_losses import (  # noqa: E402
    collapsed_loss,
    draw_others,
    loss_of_labels,
    mean_loss,
    others_exponentials,
    sampled_loss,
    whole_loss,
)
from placet.rank.torch import network as net  # noqa: E402
from placet.rank.torch.neural import Criterion  # noqa: E402

torch.set_num_threads(1)


@st.composite
def batches(draw, max_grade=3):
    """Scores (documents, labels) and grades, 0 where a document lacks the label; some have none, some have all."""
    n, n_labels = draw(st.integers(1, 4)), draw(st.integers(2, 7))
    grade = draw(st.lists(st.integers(0, max_grade), min_size=n * n_labels, max_size=n * n_labels))
    seed = draw(st.integers(0, 2**32 - 1))
    s = np.random.default_rng(seed).normal(size=(n, n_labels)) * draw(st.sampled_from([0.1, 1.0, 20.0]))
    return s.astype(np.float32), np.array(grade, float).reshape(n, n_labels)


def plain(loss, s, grade, **params):
    """The loss per document, each a list of all labels, as it stands in the table of losses."""
    n, n_labels = s.shape
    value, grad, *_ = LOSSES[loss](s.astype(float).ravel(), Lists(grade.ravel(), n_labels * np.arange(n + 1)), **params)
    return value / n, grad.reshape(n, n_labels) / n


COLLAPSED = sorted(name for name, record in LOSSES.items() if record.sums_lowest_tier)


def criterion_of(loss, **params):
    return Criterion(loss, {"tol": 1e-11, **params} if loss == "pl-partition" else params, np.random.default_rng(0))


def own_of(grade):
    return as_documents(np.ones((len(grade), 1)), grade).own_labels()


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_every_loss_of_labels_is_the_loss_of_the_plain_lists(loss):
    rng = np.random.default_rng(3)
    s = (0.1 * rng.normal(size=(5, 9))).astype(np.float32)
    grade = rng.integers(0, 2, (5, 9)).astype(float)
    params = {"random_state": 5} if LOSSES[loss].draws else {}
    if params:  # ties are broken by the rows' order, so put the own labels first in the plain list too
        order = np.argsort(-grade, axis=1, kind="stable")
        s, grade = np.take_along_axis(s, order, 1), np.take_along_axis(grade, order, 1)
    value, grad, _ = loss_of_labels(criterion_of(loss, **params), torch.from_numpy(s), own_of(grade))
    expected, slope = plain(loss, s, grade, **params)
    np.testing.assert_allclose(value, expected, rtol=2e-6, atol=1e-6)
    np.testing.assert_allclose(grad.numpy(), slope, rtol=1e-5, atol=2e-6)


@given(batches(), st.sampled_from(COLLAPSED))
@settings(max_examples=150)
def test_one_row_stands_for_all_other_labels(batch, loss):
    s, grade = batch
    value, grad, _ = collapsed_loss(criterion_of(loss), torch.from_numpy(s), own_of(grade))
    expected, slope = plain(loss, s, grade)
    np.testing.assert_allclose(value, expected, rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(grad.numpy(), slope, rtol=2e-5, atol=2e-6)


@given(batches())
@settings(max_examples=50)
def test_the_whole_table_keeps_more_than_two_tiers(batch):
    s, grade = batch
    value, grad, _ = whole_loss(criterion_of("ranknet"), torch.from_numpy(s), own_of(grade))
    expected, slope = plain("ranknet", s, grade)
    np.testing.assert_allclose(value, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(grad.numpy(), slope, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("loss", COLLAPSED)
def test_scores_far_apart_stay_finite_and_right(loss):
    grade = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    s = np.array([[1e4, 9e3, -1e4, -1.1e4], [-1e4, -2e4, 1e4, 0.0]], np.float32)
    value, grad, _ = collapsed_loss(criterion_of(loss), torch.from_numpy(s), own_of(grade))
    expected, slope = plain(loss, s, grade)
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    np.testing.assert_allclose(grad.numpy(), slope, atol=1e-6)


def test_a_document_with_all_labels_has_no_others():
    s = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    e, total, log_rest = others_exponentials(s, (torch.tensor([0, 0, 1]), torch.tensor([0, 1, 0])), np.array([0, 2, 3]))
    assert e.tolist() == [[0.0, 0.0], [0.0, 1.0]]
    assert total.tolist() == [0.0, 1.0]
    assert log_rest.tolist() == [-np.inf, 4.0]


@pytest.mark.parametrize("width", [1, 5, 64])
def test_the_gradient_by_the_transpose_is_the_gradient(width):
    X = random_sparse(30, 50, 0.1, format="csr", random_state=1, dtype=np.float32)
    slope = torch.randn(30, width, generator=torch.Generator().manual_seed(0))
    W, b = torch.zeros(50, width, requires_grad=True), torch.zeros(width, requires_grad=True)
    net.first_layer(net.as_input(X, transposed=True), (W, b)).backward(slope)
    np.testing.assert_allclose(W.grad, X.T @ slope.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(b.grad, slope.sum(0), rtol=1e-5)


def test_blocks_of_documents_do_not_change_the_loss(monkeypatch):
    rng = np.random.default_rng(0)
    s = torch.from_numpy(rng.normal(size=(7, 11)).astype(np.float32))
    own = own_of((rng.random((7, 11)) < 0.3).astype(float))
    value, grad, _ = collapsed_loss(criterion_of("pl-partition"), s, own)
    monkeypatch.setattr("placet.rank.multilabel.label_losses.CELLS_AT_ONCE", 25)
    again, grad_again, _ = collapsed_loss(criterion_of("pl-partition"), s, own)
    assert value == again
    np.testing.assert_array_equal(grad, grad_again)


@pytest.mark.parametrize("loss", ["pl-partition", "ranknet", "rao-kupper"])
def test_the_gradient_goes_back_to_weights_and_learned_parameters(loss):
    rng = np.random.default_rng(1)
    table = torch.tensor(rng.normal(size=(3, 6)), dtype=torch.float32, requires_grad=True)
    own = own_of((rng.random((3, 6)) < 0.4).astype(float))
    criterion = Criterion(loss, None, rng)
    mean_loss(criterion, table, own).backward()
    _, grad, slopes = loss_of_labels(criterion, table, own)
    np.testing.assert_allclose(table.grad, grad, rtol=1e-6)
    assert set(criterion.learned) == set(LOSSES[loss].learned)
    for slope, tensor in zip(slopes, criterion.learned.values()):
        assert float(tensor.grad) == pytest.approx(slope)
        assert slope != 0


@given(st.integers(1, 6), st.integers(1, 12), st.integers(0, 10**6), st.data())
@settings(max_examples=100)
def test_the_best_labels_are_those_of_a_stable_sort(n, n_labels, seed, data):
    k = data.draw(st.integers(1, n_labels))
    s = np.random.default_rng(seed).integers(-2, 3, (n, n_labels)).astype(np.float32)
    label, score = np.empty((n, k), np.int64), np.empty((n, k), np.float32)
    kernels.largest(s, label, score)
    expected = np.argsort(-s, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(label, expected)
    np.testing.assert_array_equal(score, np.take_along_axis(s, expected, 1))


def test_own_labels_first_in_any_order():
    order = np.empty(8, np.int64)
    kernels.own_labels_first(np.array([0, 2, 2]), np.array([3, 1]), 4, order)
    assert order.tolist() == [3, 1, 0, 2, 4, 5, 6, 7]


def simulated(n=240, features=30, n_labels=12, own=3, seed=0):
    """Sparse documents whose best labels under a linear truth are their own."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, features)) * (rng.random((n, features)) < 0.3)
    utility = X @ np.random.default_rng(99).normal(size=(features, n_labels))
    Y = (utility >= np.sort(utility, axis=1)[:, [-own]]).astype(float)
    return csr_matrix(X), csr_matrix(Y)


QUICK = {"hidden": (24,), "learning_rate": 1e-2, "epochs": 15, "batch": 16}


@pytest.mark.parametrize(
    "loss",
    ["pl-partition", "pl-lower-bound", "ranknet", "ranksvm", "attrank", "pmop-fd", "davidson", "listmle", "pmop-gibbs"],
)
def test_labels_are_learned(loss):
    X, Y = simulated()
    ranker = LabelRanker(loss, **QUICK).fit(X[:200], Y[:200])
    assert ranker.score(X[200:], Y[200:], "p@3") > 0.5  # by chance: 0.25
    assert ranker.predict(X[200:], k=3).shape == (40, 3)


def test_predictions_are_those_of_the_network_and_metrics_those_of_all_scores():
    X, Y = simulated()
    ranker = LabelRanker(**QUICK).fit(X[:200], Y[:200])
    network = net.layers(ranker.weights_, ranker.sizes_.tolist())
    tensors = [tuple(torch.from_numpy(part) for part in layer) for layer in network]
    s = net.forward(tensors, net.as_input(checked_features(X))).numpy()
    np.testing.assert_allclose(net.network_scores(network, X), s, atol=1e-5)
    np.testing.assert_array_equal(
        ranker.predict(X, 4), np.argsort(-net.network_scores(network, X), axis=1, kind="stable")[:, :4]
    )
    full = metrics.psp(
        net.network_scores(network, X).astype(float).ravel(), Y.toarray().ravel(), 12 * np.arange(241), 3,
        propensity=np.tile(metrics.propensities(np.bincount(Y[:200].indices, minlength=12), 200), 240),
    )  # fmt: skip
    assert ranker.score(X, Y, "psp@3") == pytest.approx(full.mean())


def test_prediction_in_blocks_is_the_same(monkeypatch):
    X, Y = simulated()
    ranker = LabelRanker(**QUICK).fit(X, Y)
    at_once = ranker.top(X, 3)
    monkeypatch.setattr("placet.rank.multilabel.best_labels.SCORES_AT_ONCE", 50)
    in_blocks = ranker.top(X, 3)
    np.testing.assert_array_equal(at_once.label, in_blocks.label)
    np.testing.assert_allclose(at_once.score, in_blocks.score, rtol=1e-5)


def test_grades_make_more_than_two_tiers():
    X, Y = simulated(n=400)
    graded = Y.toarray() * (1 + (np.arange(12) >= 6))  # of the own labels, the later half are better
    both = graded[((graded == 2).any(1)) & ((graded == 1).any(1))]
    rows = csr_matrix(X.toarray()[((graded == 2).any(1)) & ((graded == 1).any(1))])
    ranker = LabelRanker(metric="ndcg@3", **QUICK).fit(rows, csr_matrix(both))
    best = ranker.predict(rows, 1)[:, 0]
    assert (both[np.arange(len(best)), best] == 2).mean() > 0.8
    flat = LabelRanker(metric="ndcg@3", **QUICK).fit(rows, csr_matrix(both > 0).astype(float)).predict(rows, 1)[:, 0]
    assert (both[np.arange(len(flat)), flat] == 2).mean() < 0.75


def test_the_same_seed_gives_the_same_bytes_and_another_does_not():
    X, Y = simulated()
    a, b, c = (LabelRanker(random_state=seed, **QUICK).fit(X, Y).weights_ for seed in (0, 0, 1))
    assert a.tobytes() == b.tobytes() != c.tobytes()


def test_sampled_seeds_too():
    X, Y = simulated()
    a, b = (LabelRanker(negatives=4, random_state=3, **QUICK).fit(X, Y).weights_ for _ in range(2))
    assert a.tobytes() == b.tobytes()


def test_the_learning_rate_is_chosen_on_validation():
    X, Y = simulated()
    options = QUICK | {"learning_rate": (1e-6, 1e-2), "epochs": 8}
    ranker = LabelRanker(**options).fit(X, Y)
    tried = ranker.fit_summary_["tried"]
    assert ranker.fit_summary_["learning_rate"] == 1e-2
    assert ranker.fit_summary_["validation"] == max(tried.values()) > tried["1e-06"]


def test_all_documents_are_learned_from_after_validation():
    """A label that only held-out documents have is learned, and the choice made on validation is kept."""
    X, Y = simulated()
    held = LabelRanker(**QUICK).fit(X, Y)
    assert held.fit_summary_["refitted"]
    again = LabelRanker(**QUICK | {"epochs": held.fit_summary_["best_epoch"]})
    documents = as_documents(X, Y)
    again.sizes_, again.label_counts_ = held.sizes_, held.label_counts_
    again.n_documents_ = held.n_documents_
    whole = again._train(
        documents[np.flatnonzero(documents.useful())], None, held.fit_summary_["learning_rate"], again.epochs
    )
    np.testing.assert_array_equal(held.weights_, whole.weights)
    given = LabelRanker(**QUICK).fit(X[:40], Y[:40], valid=(X[40:], Y[40:]))
    assert not given.fit_summary_["refitted"]


def test_rates_beyond_the_end_of_the_grid_are_tried_where_the_best_is_at_its_end():
    X, Y = simulated()
    found = LabelRanker(**QUICK | {"learning_rate": (1e-7, 1e-6, 1e-5), "epochs": 6}).fit(X, Y).fit_summary_
    assert list(found["tried"]) == ["1e-07", "1e-06", "1e-05", "0.0001", "0.001"]
    ranker = LabelRanker(learning_rate=(1e-4, 1e-3, 1e-2))
    assert ranker._rates_beyond(1e-4, [1e-4, 1e-3, 1e-2]) == [pytest.approx(1e-5)]
    assert ranker._rates_beyond(1e-3, [1e-4, 1e-3, 1e-2]) == []


def test_few_documents_and_few_labels_are_learned_by_default():
    """Batches and patience follow the data: 60 documents and three labels, whose order the sign of two features decides."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4))
    truth = np.column_stack([X[:, 0], -X[:, 0], 0.3 * X[:, 1]])
    Y = np.argsort(np.argsort(truth, axis=1), axis=1).astype(float)
    ranker = LabelRanker(hidden=(16,), learning_rate=1e-3).fit(X[:60], Y[:60])
    assert (ranker.predict(X[60:])[:, 0] == Y[60:].argmax(axis=1)).mean() > 0.8
    assert ranker.predict(X[:2]).shape == ranker.top(X[:2]).label.shape == (2, 3)  # all three: five are too many
    with pytest.raises(ValueError, match=r"k 5 is not in 1\.\.3, the number of labels"):
        ranker.predict(X[:2], k=5)
    with pytest.warns(UserWarning, match=r"no better than one order of labels for all documents, by mean grade"):
        LabelRanker(hidden=(16,), learning_rate=1e-3).fit(np.ones((60, 2)), Y[:60])


def cases_in_units(unit=1.0, shift=0.0):
    """Dense features, and orders of four labels that they decide."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(80, 3))
    place = np.argsort(np.argsort(X @ rng.normal(size=(3, 4)), axis=1), axis=1)
    return (X * unit + shift).astype(np.float32), place.astype(float)


def test_units_of_dense_features_do_not_matter():
    (X, Y), (other, _) = cases_in_units(), cases_in_units(np.array([1e-3, 1.0, 1e3]), [5.0, -3.0, 2e3])
    plain, scaled = (LabelRanker(hidden=(16,), learning_rate=1e-2, epochs=20).fit(A, Y) for A in (X, other))
    np.testing.assert_allclose(scaled._scores(scaled._rows_to_score(other, None)), plain._scores(plain._rows_to_score(X, None)), atol=2e-2)  # fmt: skip
    assert (scaled.predict(other, k=1)[:, 0] == Y.argmax(axis=1)).mean() > 0.9
    raw = LabelRanker(hidden=(16,), learning_rate=1e-2, epochs=20, standardize=False).fit(other, Y)
    assert (raw.predict(other, k=1)[:, 0] == Y.argmax(axis=1)).mean() < 0.8  # so the test can tell


def test_words_are_not_standardized():
    X, Y = simulated(n=60)
    one, other = (LabelRanker(**QUICK, standardize=standardize).fit(X, Y) for standardize in (True, False))
    np.testing.assert_array_equal(one.weights_, other.weights_)


def test_a_standardized_network_is_continued_where_it_was():
    """A rate of almost 0 leaves what the first fit had found, in the units of its own features."""
    X, Y = cases_in_units(np.array([1e-3, 1.0, 1e3]), [5.0, -3.0, 2e3])
    first = LabelRanker(hidden=(16,), learning_rate=1e-2, epochs=20).fit(X, Y)
    more = LabelRanker(hidden=(16,), learning_rate=1e-12, epochs=1).fit(X[:70], Y[:70], start=first)
    np.testing.assert_allclose(more.top(X, 4).score, first.top(X, 4).score, atol=2e-3)


def test_early_stopping_keeps_the_best_epoch():
    X, Y = simulated(n=60)
    seen = []
    ranker = LabelRanker(patience=2, **QUICK | {"epochs": 60}).fit(
        X[:40], Y[:40], valid=(X[40:], Y[40:]), progress=lambda step, steps, value: seen.append((step, steps, value))
    )
    values = [value for _, _, value in seen]
    best = ranker.fit_summary_["best_epoch"]
    assert values[best - 1] == max(values) == ranker.fit_summary_["validation"] == ranker.score(X[40:], Y[40:])
    assert len(values) == best + 2 < 60
    assert seen[0][:2] == (1, 60)


def test_an_interrupt_keeps_what_was_found():
    X, Y = simulated()

    def stop(step, steps, value):
        if step == 3:
            raise KeyboardInterrupt

    ranker = LabelRanker(**QUICK | {"learning_rate": (1e-2, 1e-3)}).fit(X, Y, progress=stop)
    assert ranker.fit_summary_["interrupted"]
    assert list(ranker.fit_summary_["tried"]) == ["0.01"]
    assert ranker.score(X, Y, "p@3") > 0.4


def test_saved_and_loaded(tmp_path):
    X, Y = simulated()
    ranker = LabelRanker(metric="ndcg@3", **QUICK).fit(X, Y)
    ranker.save(tmp_path / "labels.placet")
    again = load(tmp_path / "labels.placet")
    assert again.get_params() == ranker.get_params()
    assert again.fit_summary_ == ranker.fit_summary_
    np.testing.assert_array_equal(again.predict(X, 5), ranker.predict(X, 5))
    np.testing.assert_array_equal(again.top(X, 5).score, ranker.top(X, 5).score)
    assert again.score(X, Y, "psp@3") == ranker.score(X, Y, "psp@3")


@pytest.mark.parametrize("loss", ["pl-partition", "ranknet"])
def test_negatives_are_enough_to_learn(loss):
    X, Y = simulated(n_labels=60)
    ranker = LabelRanker(loss, negatives=15, **QUICK).fit(X[:200], Y[:200])
    assert ranker.score(X[200:], Y[200:], "p@3") > 0.2  # by chance: 0.05


def test_sampling_all_labels_is_no_sampling():
    rng = np.random.default_rng(0)
    X, Y = simulated(n=10)
    data = as_documents(X, Y)
    sizes = [30, 5, 12]
    network = [
        tuple(torch.from_numpy(part) for part in layer) for layer in net.layers(net.first_weights(sizes, rng), sizes)
    ]
    criterion = Criterion("pl-partition", {"tol": 1e-10}, rng)
    whole_value = mean_loss(criterion, net.forward(network, net.as_input(data.X)), data.own_labels())
    assert float(sampled_loss(criterion, network, data, 12, rng)) == pytest.approx(float(whole_value), rel=1e-5)


def test_sampled_sums_are_right_in_the_mean():
    """With one own label the loss is log(1 + e^{-d}): e^{loss} - 1 is linear in the sum over the others."""
    rng = np.random.default_rng(0)
    sizes = [1, 1, 40]
    weights = net.first_weights(sizes, rng) * 4
    network = [tuple(torch.from_numpy(part) for part in layer) for layer in net.layers(weights, sizes)]
    data = as_documents(np.ones((1, 1)), np.eye(1, 40, 7))
    criterion = Criterion("pl-partition", {"tol": 1e-10}, rng)
    exact = np.expm1(float(mean_loss(criterion, net.forward(network, net.as_input(data.X)), data.own_labels())))
    values = np.array([float(sampled_loss(criterion, network, data, 10, rng)) for _ in range(800)])
    ratios = np.expm1(values) / exact
    assert abs(ratios.mean() - 1) < 4 * ratios.std() / np.sqrt(800)
    assert values.mean() < np.log1p(exact)  # the stated bias of the logarithm


@pytest.mark.parametrize("n_here", [0, 10, 150, 190])
def test_every_other_label_is_drawn_equally_often(n_here):
    rng = np.random.default_rng(1)
    here = np.sort(rng.choice(200, n_here, replace=False))
    n = min(5, 200 - n_here)
    counts = np.zeros(200)
    for _ in range(4000):
        drawn = draw_others(here, 200, 5, rng)
        assert len(set(drawn.tolist())) == n
        counts[drawn] += 1
    assert not counts[here].any()
    others = np.delete(counts, here)
    expected = 4000 * n / len(others)
    assert np.abs(others - expected).max() < 5 * np.sqrt(expected)


def test_a_batch_with_most_labels_still_meets_all_others():
    """The labels that a batch lacks are all drawn in turn, whatever their numbers."""
    data = as_documents(np.ones((1, 1)), (np.arange(60) % 3 > 0).astype(float)[None])
    rng = np.random.default_rng(0)
    sizes = [1, 1, 60]
    weights = net.first_weights(sizes, rng)
    touched = set()
    for _ in range(100):
        network = [
            tuple(torch.from_numpy(part).requires_grad_() for part in layer) for layer in net.layers(weights, sizes)
        ]
        sampled_loss(Criterion("ranknet", None, rng), network, data, 2, rng).backward()
        touched |= set(network[-1][0].grad.coalesce().indices()[0].tolist())
    assert touched == set(range(60))


# bad input


def test_documents_without_labels_and_with_all_teach_nothing_but_are_scored():
    X, Y = simulated()
    table = Y.toarray()
    table[:5], table[5:9] = 0, 1
    ranker = LabelRanker(**QUICK).fit(X, csr_matrix(table), valid=(X[100:], Y[100:]))
    assert ranker.fit_summary_["left_out"] == 9
    alone = LabelRanker(**QUICK).fit(X[9:], csr_matrix(table[9:]), valid=(X[100:], Y[100:]))
    np.testing.assert_array_equal(ranker.weights_, alone.weights_)
    with_empty = ranker.evaluate(X[:20], csr_matrix(table[:20]), ["p@3"])[0]
    assert with_empty == pytest.approx(ranker.evaluate(X[5:20], csr_matrix(table[5:20]), ["p@3"])[0])


def test_a_document_with_all_labels_in_two_grades_teaches():
    table = np.where(np.arange(12) < 3, 2.0, 1.0)[None].repeat(40, 0)
    X = csr_matrix(np.ones((40, 2)))
    ranker = LabelRanker(metric="ndcg@3", **QUICK).fit(X, table)
    assert sorted(ranker.predict(X[:1], 3)[0].tolist()) == [0, 1, 2]


@pytest.mark.parametrize("table", [np.zeros((20, 4)), np.ones((20, 4))])
def test_nothing_to_learn_is_an_error(table):
    with pytest.raises(DataError, match="0 of 15 documents for training have labels above others"):
        LabelRanker(**QUICK).fit(np.ones((20, 2)), table)


def test_a_feature_twice_counts_as_the_sum():
    twice = csr_matrix((np.array([1.0, 2.0, 5.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 3))
    np.testing.assert_array_equal(checked_features(twice).toarray(), [[0, 3, 0], [5, 0, 0]])
    assert twice.nnz == 3, "the caller's matrix is left alone"


def test_documents_without_features_have_the_scores_that_all_have_in_common():
    X, Y = simulated()
    table = X.toarray()
    table[::7] = 0
    ranker = LabelRanker(**QUICK).fit(csr_matrix(table), Y)
    top = ranker.top(csr_matrix(table), 12)
    assert np.isfinite(top.score).all()
    assert (top.label[::7] == top.label[0]).all()


def broken(index, columns=4, value=1.0):
    """A CSR matrix with a column number that it does not have."""
    matrix = csr_matrix(np.eye(20, columns))
    matrix.indices[2], matrix.data[2] = index, value
    return matrix


@pytest.mark.parametrize(
    ("X", "Y", "words"),
    [
        (np.ones((20, 3)), broken(4), r"document 2: label 4 is not in 0..3 \(1 such labels\)"),
        (np.ones((20, 3)), broken(-1), r"document 2: label -1 is not in 0..3"),
        (broken(9), np.eye(20, 5), r"document 2: feature 9 is not in 0..3"),
        (np.ones((20, 3)), broken(2, value=-1.0), r"document 2, label 2: grade -1.0"),
        (np.ones((20, 3)), broken(2, value=np.nan), r"document 2, label 2: grade nan"),
        (broken(2, value=np.inf), np.eye(20, 5), r"document 2, feature 2: inf is not finite \(1 such values\)"),
        (np.ones((19, 3)), np.eye(20, 5), r"X has 19 documents and Y has 20"),
        (np.array([["a"]]), np.eye(1), "features must be numbers|features must be a table"),
    ],
)
def test_bad_documents_are_named(X, Y, words):
    with pytest.raises(DataError, match=words):
        LabelRanker(**QUICK).fit(X, Y)


def test_a_label_twice_is_an_error():
    twice = csr_matrix((np.ones(3), np.array([1, 0, 1]), np.array([0, 0, 3])), shape=(2, 3))
    with pytest.raises(DataError, match=r"document 1: label 1 occurs more than once \(1 such labels\)"):
        checked_labels(twice)


def test_stored_zeros_are_labels_that_a_document_lacks():
    stored = csr_matrix((np.array([0.0, 2.0, 1.0]), np.array([0, 1, 2]), np.array([0, 3])), shape=(1, 4))
    assert checked_labels(stored).indices.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"loss": "plackett"}, "loss 'plackett' is unknown"),
        ({"learning_rate": (1e-3, 0.0)}, "learning_rate must be above 0"),
        ({"learning_rate": ()}, "learning_rate is empty"),
        ({"validation": 1.0}, "validation 1.0 must be a share"),
        ({"negatives": 0}, "negatives must be above 0"),
        ({"negatives": 5, "hidden": ()}, "negatives need a hidden layer"),
        ({"batch": 0}, "batch must be above 0"),
        ({"hidden": (24, 0)}, r"hidden \(24, 0\) must be widths"),
        ({"hidden": "24"}, "hidden '24' must be widths"),
        ({"loss_params": {"toll": 1}}, "no parameter 'toll'"),
    ],
)
def test_bad_parameters_are_named(options, words):
    X, Y = simulated(n=20)
    with pytest.raises(ValueError, match=words):
        LabelRanker(**options).fit(X, Y)


def test_other_numbers_of_features_and_labels_are_refused():
    X, Y = simulated(n=40)
    ranker = LabelRanker(**QUICK).fit(X, Y)
    with pytest.raises(DataError, match="fitted on 30 features; these rows have 29"):
        ranker.predict(X[:, :29])
    with pytest.raises(DataError, match="fitted on 12 labels; these documents have 11"):
        ranker.score(X, Y[:, :11])
    with pytest.raises(DataError, match="validation set has 11 labels"):
        LabelRanker(**QUICK).fit(X, Y, valid=(X, Y[:, :11]))
    with pytest.raises(ValueError, match="k 13 is not in 1..12"):
        ranker.predict(X, 13)


def test_a_linear_network_and_multilabel_data():
    X, Y = simulated()
    options = QUICK | {"hidden": ()}
    assert LabelRanker(**options).fit(MultiLabel(X, Y)).score(MultiLabel(X, Y), metric="p@3") > 0.6


# files of scores


def test_scores_of_labels_read_back_equal(tmp_path):
    scores = csr_matrix(
        (np.array([0.5, 0.0, -1e-30, 3.0]), np.array([2, 0, 1, 3]), np.array([0, 2, 2, 4])), shape=(3, 4)
    )
    write_label_scores(scores, tmp_path / "scores.txt")
    assert (tmp_path / "scores.txt").read_text() == "3 4\n2:0.5 0:0\n\n1:-1e-30 3:3\n"
    back = read_label_scores(tmp_path / "scores.txt")
    for name in ("data", "indices", "indptr", "shape"):
        np.testing.assert_array_equal(getattr(back, name), getattr(scores, name))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("3\n", r":1: the header '3' is not two whole numbers"),
        ("1 2\n0:1 2:1\n", r":2: label 2 is not in 0..1 \(1 such line\)"),
        ("1 2\n0:1 0:1\n", r":2: label 0 occurs more than once"),
        ("1 2\n0:x\n", r":2: '0:x' is not label:score"),
        ("2 2\n0:1\n", r"1 points, but the header says 2"),
        ("1 2\n0:nan\n", r"'0:nan' is not label:score"),
    ],
)
def test_bad_files_of_scores_are_named(tmp_path, text, words):
    (tmp_path / "s.txt").write_text(text)
    with pytest.raises(DataError, match=words):
        read_label_scores(tmp_path / "s.txt")


def test_true_labels_that_were_not_proposed_are_not_retrieved():
    scores = csr_matrix((np.array([2.0, 1.0]), np.array([3, 0]), np.array([0, 2, 2])), shape=(2, 4))
    judged = judge_labels(scores, csr_matrix([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]))
    assert judged.name.tolist() == [0, 1, 3, 2]
    assert judged.score.tolist() == [1.0, -np.inf, 2.0, -np.inf]
    assert judged.grade.tolist() == [1.0, 1.0, 0.0, 1.0]
    assert judged.offsets.tolist() == [0, 3, 4]
    with pytest.raises(DataError, match="2 points and 4 labels, the truth of 1 points"):
        judge_labels(scores, csr_matrix([[1.0, 1.0, 0.0, 0.0]]))


def test_the_best_labels_know_how_many_there_are():
    assert (
        best_labels(
            [(np.ones((2, 3), np.float32), np.zeros(3, np.float32))], csr_matrix(np.eye(2, dtype=np.float32)), 1
        ).n_labels
        == 3
    )


# the command line


def run(*words):
    from typer.testing import CliRunner

    from placet.cli import app

    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    return result.stdout, result.stderr


def test_train_score_and_evaluate_from_the_command_line(tmp_path):
    X, Y = simulated()
    train, test, model, scores = (tmp_path / name for name in ("train.xmc", "test.txt", "m.placet", "s.txt"))
    write_xmc(MultiLabel(X[:200], Y[:200]), train)
    write_xmc(MultiLabel(X[200:], Y[200:]), test)
    params = [word for name in ("hidden=24", "learning_rate=0.01", "batch=16") for word in ("-p", name)]
    out, _ = run("train", train, "--ranker", "labels", "--save", model, "--metric", "p@3", *params, "--json")
    ranker = load(model)
    assert json.loads(out)["validation"] == ranker.fit_summary_["validation"]
    run("score", model, test, "-k", 5, "--out", scores)
    assert run("score", model, test)[0] == scores.read_text()
    assert scores.read_text().startswith("40 12\n")
    out, words = run("evaluate", scores, test, "--train", train, "--metric", "p@1,psp@5,ndcg@5,psndcg@5", "--json")
    found = {name: entry["mean"] for name, entry in json.loads(out).items()}
    expected = ranker.evaluate(X[200:], Y[200:], ["p@1", "psp@5", "ndcg@5", "psndcg@5"])
    assert list(found.values()) == pytest.approx(expected)
    assert "--train" not in words
    out, words = run("evaluate", scores, test, "--metric", "psp@5", "--json")
    assert "propensities are those of" in words
    assert json.loads(out)["psp@5"]["mean"] != found["psp@5"]


def test_files_that_do_not_belong_together_are_refused(tmp_path):
    X, Y = simulated(n=40)
    write_xmc(MultiLabel(X, Y), tmp_path / "a.xmc")
    write_xmc(MultiLabel(X[:, :20], Y[:, :8]), tmp_path / "b.xmc")
    model = tmp_path / "m.placet"
    LabelRanker(**QUICK).fit(X, Y).save(model)
    with pytest.raises(DataError, match=r"b.xmc: its points have 20 features; 30 are expected"):
        run("score", model, tmp_path / "b.xmc")
    run("score", model, tmp_path / "a.xmc", "--out", tmp_path / "s.txt")
    with pytest.raises(DataError, match=r"b.xmc: 8 labels; label 11 of"):
        run("evaluate", tmp_path / "s.txt", tmp_path / "a.xmc", "--train", tmp_path / "b.xmc", "--metric", "psp@5")
    with pytest.raises(DataError, match="scores are of 40 points and 12 labels, the truth of 40 points and 8 labels"):
        run("evaluate", tmp_path / "s.txt", tmp_path / "b.xmc", "--metric", "p@5")
