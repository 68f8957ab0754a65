"""NeuralRanker and torch_loss: gradients against the losses, what is learned, determinism, files."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone

import placet
from placet.data import DataError, Lists, Queries
from placet.losses import LOSSES

torch = pytest.importorskip("torch", reason="PyTorch is not installed (pip install 'placet[neural]')")
pytestmark = pytest.mark.jit

from placet.rank import LinearRanker, NeuralRanker, load, torch_loss  # noqa: E402
from placet.rank.torch import network as net, neural  # noqa: E402
from placet.rank.torch.feature_bins import Bins  # noqa: E402
from placet.rank.torch.neural import Criterion  # noqa: E402

torch.set_num_threads(1)
DATA = placet.simulate.queries(60, (1, 9), 4, noise=0.3, random_state=1)
QUICK = {
    "hidden": (16,), "learning_rate": 1e-2, "epochs": 12, "batch": 8, "bins": None, "members": 1, "dropout": 0.0, "l1": 0.0,
}  # fmt: skip
RAGGED = Lists([2, 0, 1, 1, 0, 0, 3], [0, 3, 4, 7], [1.0, 2.0, 0.5])


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_the_loss_of_the_table_with_its_gradient(loss):
    s = 0.1 * np.random.default_rng(0).normal(size=7)
    scores = torch.tensor(s, requires_grad=True)
    value = torch_loss(loss, scores, RAGGED)
    (3.0 * value).backward()
    expected, grad = LOSSES[loss](s, RAGGED)
    assert value.item() == pytest.approx(expected)
    np.testing.assert_allclose(scores.grad, 3.0 * grad, rtol=1e-12)


@pytest.mark.parametrize("loss", sorted(name for name, record in LOSSES.items() if record.learned))
def test_learned_parameters_receive_gradients(loss):
    s = np.random.default_rng(0).normal(size=7)
    params = {
        name: torch.tensor(start + 0.3, dtype=torch.float64, requires_grad=True)
        for name, start in LOSSES[loss].learned.items()
    }
    torch_loss(loss, torch.tensor(s), RAGGED, **params).backward()
    numbers = {name: value.item() for name, value in params.items()}
    for name, value in params.items():
        up, down = ({**numbers, name: numbers[name] + step} for step in (1e-5, -1e-5))
        slope = (LOSSES[loss](s, RAGGED, **up)[0] - LOSSES[loss](s, RAGGED, **down)[0]) / 2e-5
        assert float(value.grad) == pytest.approx(slope, rel=1e-4, abs=1e-6)


def test_gradients_pass_through_a_network_of_ones_own():
    """The derivative in a weight of a layer before the loss, by finite differences in double precision."""
    X = torch.tensor(np.random.default_rng(1).normal(size=(7, 3)))
    w = torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64, requires_grad=True)
    torch_loss("pl-partition", torch.tanh(X @ w), RAGGED).backward()
    for k in range(3):
        step = 1e-6 * torch.eye(3, dtype=torch.float64)[k]
        up, down = (torch_loss("pl-partition", torch.tanh(X @ (w.detach() + d)), RAGGED).item() for d in (step, -step))
        assert float(w.grad[k]) == pytest.approx((up - down) / 2e-6, rel=1e-5)


def test_a_second_derivative_is_refused():
    scores = torch.zeros(7, requires_grad=True)
    (grad,) = torch.autograd.grad(torch_loss("ranknet", scores, RAGGED), scores, create_graph=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        grad.sum().backward()


def test_scores_that_do_not_fit_the_lists_or_are_no_numbers_are_refused():
    scores = torch.zeros(len(RAGGED.grade), requires_grad=True)
    with pytest.raises(ValueError, match=r"scores have shape \(2,\) and lists \d+ rows; give one score per row"):
        torch_loss("ranknet", scores[:2], RAGGED)
    with pytest.raises(ValueError, match=r"scores have shape \(1, \d+\)"):
        torch_loss("ranknet", scores[None], RAGGED)
    with pytest.raises(DataError, match=r"row 1: score nan is not finite \(1 such rows\)"):
        torch_loss("ranknet", scores + torch.where(torch.arange(len(scores)) == 1, torch.nan, 0.0), RAGGED)


@pytest.mark.parametrize("sizes", [(5, 1), (5, 4, 1), (5, 4, 3, 2)])
@pytest.mark.parametrize("sparse", [False, True])
def test_numpy_and_torch_give_the_same_scores(sizes, sparse):
    rng = np.random.default_rng(2)
    X = (rng.normal(size=(6, 5)) * (rng.random((6, 5)) < 0.5)).astype(np.float32)
    X[2] = 0
    rows = csr_matrix(X) if sparse else X
    network = net.layers(net.first_weights(sizes, rng), sizes)
    tensors = [tuple(torch.from_numpy(part) for part in layer) for layer in network]
    expected = X.astype(float)
    for k, (W, b) in enumerate(network):
        expected = (np.maximum(expected, 0) if k else expected) @ (W.T if k else W).astype(float) + b
    np.testing.assert_allclose(net.network_scores(network, rows), expected, atol=1e-6)
    np.testing.assert_allclose(net.forward(tensors, net.as_input(rows)), expected, atol=1e-6)


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_every_loss_is_learned(loss):
    ranker = NeuralRanker(loss, **QUICK).fit(DATA[:45])
    assert ranker.score(DATA[45:], metric="ndcg@5") > 0.75  # a random order has 0.62
    assert set(ranker.learned_) <= set(LOSSES[loss].learned)


def test_a_network_finds_what_a_line_cannot():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 2))
    grade, qid = (np.abs(X[:, 0]) > 0.7).astype(float), np.repeat(np.arange(90), 10)
    data = Queries.from_arrays(X, grade, qid)
    options = {"hidden": (32,), "learning_rate": 1e-2, "epochs": 30}
    assert NeuralRanker("pl-partition", **options).fit(data[:60]).score(data[60:]) > 0.97
    assert LinearRanker("pl-partition").fit(data[:60]).score(data[60:]) < 0.9


def test_the_bins_of_a_feature_are_its_piecewise_linear_curve():
    """Against np.interp: between quantiles a bin rises from 0 to 1, and the normal score follows all of them."""
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.normal(size=400), np.exp(4 * rng.normal(size=400)), rng.integers(0, 3, 400), np.ones(400)])
    bins = Bins.of(X, 8)
    new = np.vstack([X, X.min(0) - 1.0, X.max(0) + 1.0])
    found = bins.columns(new) * bins.scale + bins.mean
    assert np.bincount(bins.feature).tolist() == [8, 8, 2, 1]
    for k in range(4):
        edges = np.unique(np.quantile(X[:, k], np.linspace(0, 1, 9)))
        own = found[:, 4:][:, bins.feature == k]
        for j in range(len(edges) - 1):
            expected = np.interp(new[:, k], edges[j : j + 2], [0.0, 1.0])
            np.testing.assert_allclose(own[:, j], expected, atol=1e-5)
        rank = found[:, k] - found[:, k].min()
        np.testing.assert_allclose(rank, own @ bins.step[bins.feature == k], atol=1e-5)
    assert np.corrcoef(found[:400, 0], X[:, 0])[0, 1] > 0.97
    plain = bins.columns(X)
    np.testing.assert_allclose(plain[:, :3].std(axis=0), 1.0, atol=1e-4)


def test_members_are_networks_of_their_own_and_the_score_their_mean():
    """The score with two members is the mean of the scores of the halves of the hidden layer."""
    ranker = NeuralRanker("pl-partition", **QUICK | {"members": 2}).fit(DATA)
    assert ranker.sizes_.tolist() == [4, 32, 1]
    (W, b), (V, c) = net.layers(ranker.weights_, [4, 32, 1])
    H = np.maximum(ranker._columns(np.asarray(DATA.X)) @ W + b, 0.0)
    halves = [2 * H[:, half] @ V[0, half] + c[0] for half in (slice(0, 16), slice(16, 32))]
    np.testing.assert_allclose(ranker.predict(DATA), np.mean(halves, axis=0), atol=1e-5)
    assert all(np.nanmean(placet.metrics.ndcg(s, DATA.grade, DATA.offsets, 5)) > 0.85 for s in halves)
    assert np.corrcoef(*halves)[0, 1] < 0.9999


def test_dropout_draws_other_units_with_another_seed():
    a, b, c = (NeuralRanker(**QUICK | {"dropout": 0.5}, random_state=k).fit(DATA).weights_ for k in (0, 0, 1))
    assert a.tobytes() == b.tobytes() != c.tobytes()
    plain = NeuralRanker(**QUICK).fit(DATA)
    assert not np.array_equal(a, plain.weights_)


def test_l1_leaves_out_features_that_say_nothing():
    """Their weights are exactly 0, those of the two true features are not, and new queries are ranked better."""
    X = np.random.default_rng(0).normal(size=(2400, 42))
    grade = (np.abs(X[:, 0]) + X[:, 1] > 1.3).astype(float)
    data = Queries.from_arrays(X, grade, np.repeat(np.arange(240), 10))
    options = QUICK | {"batch": None, "epochs": 20}
    rankers = {l1: NeuralRanker("pl-partition", **options | {"l1": l1}).fit(data[:100]) for l1 in (0.0, 1.8)}
    first = {l1: net.layers(ranker.weights_, [42, 16, 1])[0][0] for l1, ranker in rankers.items()}
    assert (first[0.0] != 0).all()
    assert (first[1.8][2:] == 0).mean() > 0.7
    assert (first[1.8][:2] != 0).any(axis=1).all()
    assert rankers[1.8].score(data[100:]) > rankers[0.0].score(data[100:]) + 0.03


def test_l1_is_a_number_of_standard_errors(monkeypatch):
    """A mean over four times as many batches has half the standard error; below 20 batches it is that of 20."""
    seen = []

    def descend(*args, l1, **more):
        seen.append(l1)
        return original(*args, l1=l1, **more)

    original = neural.descend
    monkeypatch.setattr(neural, "descend", descend)
    weight = (np.arange(60) < 50).astype(float)  # queries that do not count make no batches
    data = Queries(DATA.X, DATA.grade, DATA.offsets, weight)
    for batch in (1, 2, 50):
        NeuralRanker(**QUICK | {"l1": 1.8, "epochs": 1, "batch": batch}).fit(data)
    np.testing.assert_allclose(seen, 1.8 / np.sqrt([50, 25, 20]))


def test_shrinking_stops_at_zero():
    W = torch.tensor([[0.5, -0.5, 0.1], [-0.1, 0.0, -2.0]])
    neural.shrink(W, 0.25)
    np.testing.assert_allclose(W, [[0.25, -0.25, 0.0], [0.0, 0.0, -1.75]])


def test_a_single_batch_is_learned_by_default():
    ranker = NeuralRanker(batch=60, epochs=40).fit(DATA)
    assert ranker.score(DATA, metric="ndcg@5") > 0.9


def test_sparse_and_dense_rows_agree():
    data = placet.simulate.queries(40, 6, 8, density=0.3, random_state=2)
    dense = Queries(data.X.toarray(), data.grade, data.offsets)
    options = QUICK | {"standardize": False}
    a, b = NeuralRanker(**options).fit(data), NeuralRanker(**options).fit(dense)
    np.testing.assert_allclose(a.predict(data), b.predict(dense), atol=1e-3)
    scaled = NeuralRanker(**QUICK).fit(data)
    np.testing.assert_allclose(scaled.predict(data), scaled.predict(dense), atol=1e-4)


def test_features_far_from_zero_keep_their_digits():
    shifted = Queries(DATA.X + 1e7, DATA.grade, DATA.offsets)
    a, b = NeuralRanker(**QUICK).fit(DATA), NeuralRanker(**QUICK).fit(shifted)
    assert b.score(shifted) == pytest.approx(a.score(DATA), abs=0.01)
    assert b.score(shifted) > 0.95


def test_queries_weigh_as_often_as_they_count():
    twice = Queries(
        np.concatenate([DATA[:10].X, DATA[:10].X]), np.tile(DATA[:10].grade, 2),
        np.concatenate([DATA[:10].offsets, DATA[:10].offsets[1:] + DATA[:10].offsets[-1]]),
    )  # fmt: skip
    options = QUICK | {"batch": 100, "standardize": False}
    weighted = Queries(DATA[:10].X, DATA[:10].grade, DATA[:10].offsets, np.full(10, 7.0))
    np.testing.assert_allclose(
        NeuralRanker(**options).fit(twice).predict(DATA), NeuralRanker(**options).fit(weighted).predict(DATA), atol=2e-3
    )
    zero = Queries(DATA.X, DATA.grade, DATA.offsets, (np.arange(len(DATA)) < 10).astype(float))
    alone = NeuralRanker(**options).fit(DATA[:10]).predict(DATA)
    np.testing.assert_allclose(NeuralRanker(**options).fit(zero).predict(DATA), alone, atol=2e-3)


def test_l2_shrinks_the_weights():
    sizes = [np.square(NeuralRanker(l2=l2, **QUICK).fit(DATA).weights_).sum() for l2 in (0.0, 1.0)]
    assert sizes[1] < 0.5 * sizes[0]


def test_the_same_seed_gives_the_same_bytes_and_another_does_not():
    a, b, c = (NeuralRanker("pmop-gibbs", random_state=k, **QUICK).fit(DATA).weights_ for k in (0, 0, 1))
    assert a.tobytes() == b.tobytes() != c.tobytes()


def test_training_leaves_the_global_random_states_alone():
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    expected = torch.rand(3), np.random.rand(3)  # noqa: NPY002
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    NeuralRanker(**QUICK).fit(DATA)
    assert torch.equal(torch.rand(3), expected[0])
    np.testing.assert_array_equal(np.random.rand(3), expected[1])  # noqa: NPY002


def test_early_stopping_keeps_the_best_epoch():
    noisy = placet.simulate.queries(60, 8, 4, noise=2.0, random_state=3)
    seen = []
    ranker = NeuralRanker(**QUICK | {"epochs": 80, "patience": 3}).fit(
        noisy[:30], valid=noisy[30:], progress=lambda step, steps, value: seen.append(value)
    )
    summary = ranker.fit_summary_
    assert max(seen) == seen[summary["best_epoch"] - 1] == summary["validation"] == ranker.score(noisy[30:])
    assert len(seen) == summary["epochs"] == summary["best_epoch"] + 3 < 80


def test_an_interrupt_keeps_the_epochs_so_far():
    def stop(step, steps, value):
        if step == 4:
            raise KeyboardInterrupt

    stopped = NeuralRanker(**QUICK).fit(DATA, progress=stop)
    assert stopped.fit_summary_["interrupted"]
    again = NeuralRanker(**QUICK).fit(DATA[:50], valid=DATA[50:], progress=stop)
    short = NeuralRanker(**QUICK | {"epochs": 4}).fit(DATA[:50], valid=DATA[50:])
    np.testing.assert_array_equal(again.weights_, short.weights_)
    assert stopped.fit_summary_["epochs"] == 4
    assert stopped.score(DATA) > 0.8


def test_saved_loaded_and_cloned(tmp_path):
    ranker = NeuralRanker("davidson", **QUICK).fit(DATA)
    ranker.save(tmp_path / "net.placet")
    again = load(tmp_path / "net.placet")
    np.testing.assert_array_equal(again.predict(DATA), ranker.predict(DATA))
    assert again.learned_ == ranker.learned_ != {"tie": 0.0}
    assert again.get_params() == ranker.get_params() == clone(ranker).get_params()


def test_a_divergent_training_says_so():
    with pytest.raises(ValueError, match="diverged in its first epoch at learning_rate=1e\\+30; lower it"):
        NeuralRanker("ranknet", **QUICK | {"learning_rate": 1e30}).fit(DATA)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"loss": "plackett"}, "loss 'plackett' is unknown; choose from"),
        ({"batch": 0}, "batch must be above 0"),
        ({"bins": 0}, "bins must be above 0"),
        ({"members": 0}, "members must be above 0"),
        ({"dropout": 1.0}, "dropout 1.0 must be a share"),
        ({"l1": -0.1}, "l1 -0.1 must be a number of standard errors"),
        ({"learning_rate": -1.0}, "learning_rate must be above 0"),
        ({"loss_params": {"alpha": 1}}, "no parameter 'alpha'"),
    ],
)
def test_bad_parameters_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        NeuralRanker(**options).fit(DATA)


def test_sampled_losses_draw_anew_at_every_step():
    s, TIED = np.random.default_rng(0).normal(size=7), Lists([1, 1, 1, 0, 0, 2, 2], [0, 7])
    for loss in (name for name, record in LOSSES.items() if record.samples or record.breaks_ties):
        criterion = Criterion(loss, None, np.random.default_rng(0))
        assert len({criterion.bind(TIED).value_and_grad(s)[1].tobytes() for _ in range(8)}) > 1, loss
        fixed = Criterion(loss, {"random_state": 3}, np.random.default_rng(0))
        assert len({fixed.bind(TIED).value_and_grad(s)[1].tobytes() for _ in range(8)}) == 1


def test_without_pytorch_the_package_loads_predicts_and_says_what_to_install(tmp_path):
    NeuralRanker(**QUICK).fit(DATA).save(tmp_path / "net.placet")
    (tmp_path / "torch.py").write_text("raise ImportError('not here')")
    program = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import numpy as np
import placet.rank
ranker = placet.rank.load({str(tmp_path / "net.placet")!r})
assert np.isfinite(ranker.predict(np.zeros((2, 4)))).all()
try:
    placet.rank.NeuralRanker().fit(np.eye(2), [0, 1], qid=[0, 0])
except ImportError as error:
    print(error)
"""
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'placet[neural]'" in out.stdout


def test_importing_rankers_does_not_load_pytorch():
    program = "import sys, placet.rank; print('torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
