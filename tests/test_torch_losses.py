"""Losses in PyTorch operations: values and gradients of the kernels, second derivatives, compiling, adapters."""

import numpy as np
import pytest

from placet.data import DataError, Lists
from placet.losses import LOSSES

torch = pytest.importorskip("torch")

from placet.rank.torch_adapters import CrossEncoderLoss, permutation_grades, preference_loss  # noqa: E402
from placet.rank.torch_losses import NATIVE, native_loss, pad  # noqa: E402

pytestmark = pytest.mark.jit
CASES = [(name, {}) for name in NATIVE] + [("lambdaloss", {"k": 3, "mu": 2.0, "sigma": 0.5})]


def draw(seed=0, sizes=(1, 5, 7, 0, 12, 30), spread=2.0):
    """Ragged lists with ties in scores and grades."""
    rng = np.random.default_rng(seed)
    n, offsets = sum(sizes), np.append(0, np.cumsum(sizes))
    return rng.normal(0, spread, n).round(1), Lists(rng.integers(0, 4, n), offsets, rng.uniform(0.5, 2, len(sizes)))


@pytest.mark.parametrize(("name", "params"), CASES)
@pytest.mark.parametrize("spread", [0.3, 2.0, 300.0])
def test_ragged_lists_have_the_kernels_value_and_gradient(name, params, spread):
    s, lists = draw(spread=spread)
    x = torch.tensor(s, requires_grad=True)
    value = native_loss(name, x, torch.tensor(lists.grade), offsets=lists.offsets, weight=lists.weight, **params)
    value.backward()
    expected, grad = LOSSES[name](s, lists, **params)
    assert value.item() == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(x.grad.numpy(), grad, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("name", "params"), CASES)
def test_a_padded_table_with_a_mask_is_the_same_and_padding_is_not_seen(name, params):
    s, lists = draw(1)
    table, mask = pad(torch.tensor(s), lists.offsets)
    grade, _ = pad(torch.tensor(lists.grade), lists.offsets)
    shift = torch.randperm(table.shape[1], generator=torch.Generator().manual_seed(0))  # padded rows anywhere
    results = []
    for hole in (0.0, 1e6, -1e6, float("nan")):
        x = torch.where(mask, table, hole)[:, shift].requires_grad_()
        y = torch.where(mask, grade, 9)[:, shift]
        values = native_loss(name, x, y, mask=mask[:, shift], reduction="none", **params)
        values.sum().backward()
        assert (x.grad[~mask[:, shift]] == 0).all()
        results.append((values.detach().numpy(), x.grad.numpy()))
    expected = LOSSES[name].per_list(s, lists._replace(weight=None), **params)
    for values, grad in results:
        np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(grad, results[0][1])


@pytest.mark.parametrize("tied", [1, 3, 60, 400])
@pytest.mark.parametrize("shift", [-30.0, -4.0, 0.0, 4.0, 30.0])
def test_the_integral_is_that_of_the_kernel_for_all_shapes(tied, shift):
    rng = np.random.default_rng(tied)
    for spread in (0.3, 2.0, 20.0):
        s = np.append(rng.normal(shift, spread, tied), rng.normal(0, spread, 15))
        grade = np.append(np.ones(tied), np.zeros(15))
        x = torch.tensor(s[None], requires_grad=True)
        value = native_loss("pl-partition", x, torch.tensor(grade[None]))
        value.backward()
        expected, grad = LOSSES["pl-partition"](s, Lists(grade, [0, len(s)]))
        assert value.item() == pytest.approx(expected, rel=1e-8, abs=1e-9)
        np.testing.assert_allclose(x.grad[0].numpy(), grad, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", NATIVE)
def test_second_derivatives_are_those_of_the_kernels(name):
    rng = np.random.default_rng(3)
    s, lists = rng.permutation(9) / 3.0, Lists(rng.integers(0, 3, 9), [0, 4, 9])
    x, v = torch.tensor(s, requires_grad=True), torch.cos(torch.arange(9.0, dtype=torch.float64))
    value = native_loss(name, x, torch.tensor(lists.grade), offsets=lists.offsets)
    (grad,) = torch.autograd.grad(value, x, create_graph=True)
    (product,) = torch.autograd.grad(grad @ v, x)
    np.testing.assert_allclose(product.numpy(), LOSSES[name].hvp(s, lists, v.numpy()), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", NATIVE)
def test_it_compiles_as_one_graph(name):
    s, lists = draw(2, sizes=(4, 4, 4))
    x, grade = torch.tensor(s.reshape(3, 4)), torch.tensor(lists.grade.reshape(3, 4))
    compiled = torch.compile(lambda s: native_loss(name, s, grade), backend="eager", fullgraph=True)
    assert compiled(x).item() == pytest.approx(native_loss(name, x, grade).item(), rel=1e-12)


@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_low_precision_is_near(name, kind):
    s, lists = draw(4)
    x = torch.tensor(s, dtype=kind, requires_grad=True)
    value = native_loss(name, x, torch.tensor(lists.grade), offsets=lists.offsets)
    value.backward()
    expected, grad = LOSSES[name](x.detach().double().numpy(), lists._replace(weight=None))
    assert value.item() == pytest.approx(expected, rel=1e-4)
    np.testing.assert_allclose(x.grad.float().numpy(), grad, rtol=1e-2, atol=2e-2 if kind == torch.bfloat16 else 1e-4)


def test_reductions_and_what_is_refused():
    s, lists = draw(5)
    x, grade = torch.tensor(s), torch.tensor(lists.grade)
    given = {"offsets": lists.offsets, "weight": lists.weight}
    each = native_loss("ranknet", x, grade, reduction="none", **given)
    assert each.shape == (6,)
    assert native_loss("ranknet", x, grade, **given).item() == pytest.approx(each.sum().item())
    mean = native_loss("ranknet", x, grade, reduction="mean", **given).item()
    assert mean == pytest.approx(each.sum().item() / lists.weight.sum())
    for call, message in (
        (lambda: native_loss("listmle", x, grade, offsets=lists.offsets), "loss 'listmle' is unknown; choose from"),
        (lambda: native_loss("ranknet", x, grade), r"both must be \(lists, rows\)"),
        (
            lambda: native_loss("ranknet", x, grade, offsets=[0, 3]),
            "offsets must rise from 0 to the number of rows, 55",
        ),
        (lambda: native_loss("ranknet", x[None], grade[None], offsets=[0, 55]), "a table has a mask"),
        (lambda: native_loss("ranknet", x[None], grade[None], mask=torch.ones(1, 2)), "the mask has shape"),
        (
            lambda: native_loss("ranknet", x, grade, offsets=lists.offsets, reduction="max"),
            "reduction 'max' is unknown",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()


class Tokens(dict):
    def to(self, device):
        return self


class TinyEncoder(torch.nn.Module):
    """What the loss asks of a cross-encoder: a tokenizer, a device, one output per pair."""

    num_labels, device = 1, "cpu"

    def __init__(self):
        super().__init__()
        self.words = torch.nn.EmbeddingBag(64, 8)
        self.out = torch.nn.Linear(8, 1)
        self.seen = []

    def tokenizer(self, pairs, padding, truncation, return_tensors):
        assert (padding, truncation, return_tensors) == (True, True, "pt")
        self.seen.append(len(pairs))
        rows = [[hash_of(word) for text in pair for word in text.split()][:6] for pair in pairs]
        return Tokens(input_ids=torch.tensor([row + [0] * (6 - len(row)) for row in rows]))

    def forward(self, input_ids):
        return (self.out(torch.tanh(self.words(input_ids))),)


def hash_of(word):
    return sum(map(ord, word)) % 64


QUERIES = ["red fruit", "blue sky"]
DOCUMENTS = [["red apple", "green pear", "red cherry", "old shoe"], ["blue sea", "grey wall", "sky blue"]]
LABELS = [torch.tensor([2.0, 1.0, 2.0, 0.0]), torch.tensor([1.0, 0.0, 2.0])]


@pytest.mark.parametrize("loss", NATIVE)
def test_a_cross_encoder_learns_the_order_of_its_documents(loss):
    torch.manual_seed(0)
    model = TinyEncoder()
    criterion = CrossEncoderLoss(model, loss, mini_batch_size=3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    values = []
    for _ in range(60):
        optimizer.zero_grad()
        value = criterion([QUERIES, DOCUMENTS], LABELS)
        value.backward()
        optimizer.step()
        values.append(value.item())
    assert values[-1] < values[0]
    assert set(model.seen) == {3, 1}
    for query, texts, grade in zip(QUERIES, DOCUMENTS, LABELS):
        s = model(**model.tokenizer([(query, text) for text in texts], True, True, "pt"))[0].view(-1)
        above = grade[:, None] > grade
        assert (s[:, None] > s)[above].all()
    whole = CrossEncoderLoss(model, loss)([QUERIES, DOCUMENTS], LABELS).item()
    assert whole == pytest.approx(criterion([QUERIES, DOCUMENTS], LABELS).item(), rel=1e-5)


def test_what_a_cross_encoder_cannot_be_trained_on_is_refused():
    model = TinyEncoder()
    with pytest.raises(DataError, match="each query needs as many labels as documents"):
        CrossEncoderLoss(model)([QUERIES, DOCUMENTS], LABELS[:1])
    with pytest.raises(DataError, match="no documents in this batch"):
        CrossEncoderLoss(model)([[], []], [])
    model.num_labels = 3
    with pytest.raises(ValueError, match="the model has 3 outputs"):
        CrossEncoderLoss(model)


def test_two_answers_are_dpo_and_ties_prefer_neither():
    policy = torch.tensor([[-3.0, -4.0], [-2.0, -1.0]], requires_grad=True)
    reference = torch.tensor([[-3.5, -3.0], [-2.5, -1.5]])
    value = preference_loss(policy, reference, torch.tensor([[1, 0], [0, 1]]), beta=0.3)
    margin = 0.3 * ((policy - reference)[:, 0] - (policy - reference)[:, 1]) * torch.tensor([1.0, -1.0])
    assert value.item() == pytest.approx(-torch.nn.functional.logsigmoid(margin).mean().item())
    tied = preference_loss(policy, reference, torch.tensor([[1, 1], [0, 0]]), reduction="none")
    assert tied.detach().tolist() == [0.0, 0.0]
    ragged = preference_loss(policy.reshape(-1)[:3], reference.reshape(-1)[:3], [1, 0, 5], offsets=[0, 2, 3], beta=0.3)
    assert ragged.item() == pytest.approx(-torch.nn.functional.logsigmoid(margin[0]).item() / 2)
    with pytest.raises(ValueError, match="beta must be above 0"):
        preference_loss(policy, reference, torch.zeros(2, 2), beta=0.0)


def test_a_permutation_becomes_grades():
    assert permutation_grades([3, (0, 2)], 5).tolist() == [1, 0, 1, 2, 0]
    assert permutation_grades([], 2).tolist() == [0, 0]
    with pytest.raises(DataError, match="row 7 is not among the 5 rows"):
        permutation_grades([7], 5)
    with pytest.raises(DataError, match="row 1 is named twice in the 5 rows"):
        permutation_grades([1, 1], 5)
