"""Losses in PyTorch operations: values and gradients of the kernels, second derivatives, compiling, adapters."""

import re

import mpmath
import numpy as np
import pytest

from placet.data import DataError, Lists
from placet.losses import LOSSES

torch = pytest.importorskip("torch")

from placet.rank.torch import native_losses  # noqa: E402
from placet.rank.torch.native_losses import NATIVE, native_loss, pad  # noqa: E402
from placet.rank.torch.training_adapters import CrossEncoderLoss, permutation_grades, preference_loss  # noqa: E402

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
    x, grade = torch.tensor(s.reshape(3, 4)), torch.tensor(lists.grade.reshape(3, 4), dtype=torch.float64)
    mask, weight = torch.ones(3, 4, dtype=torch.bool), torch.tensor(lists.weight)
    mask[1, 2] = False

    def loss(s):
        return native_loss(name, s, grade, mask=mask, weight=weight, reduction="mean")

    x.requires_grad_()
    value, expected = torch.compile(loss, backend="eager", fullgraph=True)(x), loss(x)
    assert value.item() == pytest.approx(expected.item(), rel=1e-12)
    (grad,), (expected_grad,) = torch.autograd.grad(value, x), torch.autograd.grad(expected, x)
    np.testing.assert_allclose(grad, expected_grad, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_a_compiler_may_replace_expm1_by_exp_minus_one(monkeypatch, kind):
    monkeypatch.setattr(torch, "expm1", lambda x: torch.exp(x) - 1.0)  # what torch.compile does on some processors
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    rng = np.random.default_rng(0)
    for shift in (-30.0, -10.0, 0.0, 10.0):
        s = np.append(rng.normal(shift, 2.0, 6), rng.normal(0.0, 2.0, 4)).astype(np.float32)
        lists = Lists([2, 2, 2, 1, 1, 1, 0, 0, 0, 0], [0, 10])
        x = torch.tensor(s[None], dtype=kind, requires_grad=True)
        value = native_loss("pl-partition", x, torch.tensor(lists.grade)[None])
        value.backward()
        expected, grad = LOSSES["pl-partition"](s.astype(float), lists)
        rounding = 1e-5 if kind == torch.float32 else 1e-12
        assert value.item() == pytest.approx(expected, rel=rounding)
        np.testing.assert_allclose(x.grad[0].numpy(), grad, rtol=rounding, atol=rounding)


@pytest.mark.parametrize("compiling", [False, True])
def test_the_logarithm_of_a_factor_and_its_slope_are_exact(monkeypatch, compiling):
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: compiling)
    u = torch.linspace(-60.0, 6.0, 200, dtype=torch.float64, requires_grad=True)
    value = native_losses._log_factor(u)
    (slope,) = torch.autograd.grad(value.sum(), u)
    with mpmath.workdps(60):
        y = [mpmath.exp(mpmath.mpf(at)) for at in u.tolist()]
        logs, slopes = [mpmath.log(-mpmath.expm1(-at)) for at in y], [at / mpmath.expm1(at) for at in y]
    np.testing.assert_allclose(value.detach().numpy(), np.array(logs, float), rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(slope.numpy(), np.array(slopes, float), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(
        native_losses._slope(torch.exp(u.detach())).numpy(), np.array(slopes, float), rtol=1e-13, atol=1e-15
    )


def slopes_of_second_derivatives(name, s, grade):
    """By automatic differentiation and by differences of second derivatives, of one number made of them."""

    def number(x):
        (first,) = torch.autograd.grad(native_loss(name, x, grade), x, create_graph=True)
        (second,) = torch.autograd.grad(first.pow(2).sum(), x, create_graph=True)
        return second.pow(2).sum()

    x = s.clone().requires_grad_()
    (third,) = torch.autograd.grad(number(x), x)
    step = 1e-5 * torch.eye(s.shape[1], dtype=s.dtype)
    by_differences = [(number((s + h).requires_grad_()) - number((s - h).requires_grad_())).item() / 2e-5 for h in step]
    return third[0].numpy(), by_differences


@pytest.mark.parametrize("name", NATIVE)
def test_third_derivatives_are_differences_of_the_second(name):
    s = torch.tensor([[0.7, -0.4, 0.2, 1.1, -0.9]], dtype=torch.float64)
    third, expected = slopes_of_second_derivatives(name, s, torch.tensor([[2, 1, 1, 0, 0]]))
    np.testing.assert_allclose(third, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", NATIVE)
def test_a_list_that_does_not_count_has_second_derivatives_of_zero(name):
    x = torch.tensor([[0.5, -0.3, 0.1], [1.0, 0.2, -0.4]], dtype=torch.float64, requires_grad=True)
    grade = torch.tensor([[2, 1, 0], [1, 1, 0]])
    for value in (
        native_loss(name, x, grade, reduction="none")[1],
        native_loss(name, x, grade, weight=torch.tensor([0.0, 1.0])),
    ):
        (first,) = torch.autograd.grad(value, x, create_graph=True)
        (second,) = torch.autograd.grad(first.pow(2).sum(), x)
        assert second[0].tolist() == [0.0, 0.0, 0.0]
        assert torch.isfinite(second).all()
        assert second[1].abs().max() > 0


@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.parametrize(("kind", "shift"), [(torch.float32, 2.0**16), (torch.float64, 2.0**40)])
def test_a_shift_of_all_scores_changes_nothing(name, kind, shift):
    rng = np.random.default_rng(6)
    s = torch.tensor(rng.integers(-30, 30, (3, 12)) / 16.0, dtype=kind)  # exact when shifted
    grade = torch.tensor(rng.integers(0, 3, (3, 12)))
    results = []
    for x in (s.clone().requires_grad_(), (s + shift).requires_grad_()):
        value = native_loss(name, x, grade)
        value.backward()
        results.append((value.item(), x.grad.numpy()))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-6)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.parametrize("scale", [1e3, 1e30, 1e300])
def test_scores_far_apart_have_the_gradient_of_the_kernels(name, scale):
    s = np.array([-1.0, 0.0, 1.0, 0.9]) * scale
    lists = Lists([2, 1, 0, 1], [0, 4])
    x = torch.tensor(s[None], requires_grad=True)
    value = native_loss(name, x, torch.tensor(lists.grade)[None])
    value.backward()
    expected, grad = LOSSES[name](s, lists)
    assert value.item() == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(x.grad[0].numpy(), grad, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.parametrize("grade", [[16777217, 16777216, 16777216], [0.3000000001, 0.3, 0.3], [130, 1, 0]])
def test_grades_are_not_rounded_to_the_precision_of_scores(name, grade):
    s, exact = np.array([0.5, 1.5, -0.5]), torch.tensor(grade, dtype=torch.float64)
    wide, narrow = (torch.tensor(s[None], dtype=kind, requires_grad=True) for kind in (torch.float64, torch.float32))
    native_loss(name, wide, exact[None]).backward()
    value = native_loss(name, narrow, [grade])
    value.backward()
    np.testing.assert_allclose(narrow.grad.numpy(), wide.grad.numpy(), rtol=1e-5, atol=1e-6)
    if name != "lambdaloss" or max(grade) < 1024:  # 2^1024 overflows in the kernel
        expected, grad = LOSSES[name](s, Lists(grade, [0, 3]))
        assert value.item() == pytest.approx(expected, rel=1e-5, abs=1e-6)
        np.testing.assert_allclose(wide.grad[0].numpy(), grad, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.parametrize("reduction", ["sum", "mean", "none"])
def test_a_batch_without_rows_or_without_weight_is_zero(name, reduction):
    x = torch.zeros(0, requires_grad=True)
    value = native_loss(name, x, [], offsets=[0, 0, 0], reduction=reduction)
    assert value.sum().item() == 0.0
    value.sum().backward()
    assert x.grad.shape == (0,)
    y = torch.zeros(2, 3, requires_grad=True)
    native_loss(name, y, [[2, 1, 0], [1, 0, 0]], weight=[0, 0], reduction=reduction).sum().backward()
    assert y.grad.abs().max() == 0.0


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
        (lambda: native_loss("listmle", x, grade, offsets=lists.offsets), "loss 'listmle' is unknown"),
        (lambda: native_loss("ranknet", x, grade), r"both must be \(lists, rows\)"),
        (
            lambda: native_loss("ranknet", x, grade, offsets=[0, 3]),
            "offsets must be whole numbers that rise from 0 to the number of rows, 55",
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


TABLE = torch.tensor([[1.0, 2.0, 0.0], [0.5, 0.0, 1.0]])
GRADES = torch.tensor([[2, 1, 0], [1, 0, 0]])


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("ranknet", {"weight": [[1.0], [2.0]]}, r"weight has shape \(2, 1\); there are 2 lists: give \(2,\)"),
        ("ranknet", {"weight": 2.0}, r"weight has shape \(\); there are 2 lists"),
        ("ranknet", {"weight": [1.0]}, r"weight has shape \(1,\); there are 2 lists"),
        ("ranknet", {"weight": [1, -2]}, r"list 1: weight -2 is not a finite number of at least 0 \(1 such lists\)"),
        ("ranknet", {"weight": [np.nan, 1.0]}, "list 0: weight nan is not a finite number"),
        ("ranknet", {"sigma": 2.0}, r"the loss 'ranknet' has no parameter 'sigma' in PyTorch; it has \[\]"),
        ("lambdaloss", {"sigmaa": 2.0}, r"no parameter 'sigmaa' in PyTorch; it has \['k', 'sigma', 'mu'\]"),
        ("lambdaloss", {"k": 2.7}, "parameter k of 'lambdaloss' must be a whole number or none, not 2.7"),
        ("lambdaloss", {"sigma": "a"}, "parameter sigma of 'lambdaloss' must be a number, not 'a'"),
        ("lambdaloss", {"k": 0}, "k must be at least 1, or None for all places, not 0"),
        ("lambdaloss", {"sigma": -1.0}, r"sigma must be a finite number above 0, not -1.0"),
        ("lambdaloss", {"mu": -20.0}, r"mu must be a finite number of at least 0, not -20.0"),
        ("pl-partition", {"nodes": 1}, "nodes must be a whole number of at least 16, not 1"),
        ("pl-partition", {"nodes": 32.5}, "nodes must be a whole number of at least 16, not 32.5"),
    ],
)
def test_weights_and_parameters_are_checked(name, given, message):
    with pytest.raises(ValueError, match=message):
        native_loss(name, TABLE, GRADES, **given)


@pytest.mark.parametrize("params", [{"k": 0}, {"sigma": -1.0}, {"mu": -20.0}, {"mu": np.nan}, {"sigma": np.inf}])
def test_parameters_are_refused_in_the_words_of_the_kernels(params):
    messages = []
    for call in (
        lambda: native_loss("lambdaloss", TABLE[:1], GRADES[:1], **params),
        lambda: LOSSES["lambdaloss"](TABLE[0].numpy(), Lists(GRADES[0].numpy(), [0, 3]), **params),
    ):
        with pytest.raises(ValueError, match="must be") as caught:
            call()
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("name", NATIVE)
def test_grades_that_are_no_numbers_are_refused_but_not_in_padding(name):
    bad = GRADES.double()
    bad[1, 2] = np.nan
    with pytest.raises(DataError, match=r"list 1, row 2: grade nan is not a finite number.*\(1 such rows\)"):
        native_loss(name, TABLE, bad)
    mask = [[True] * 3, [True, True, False]]
    assert native_loss(name, TABLE, bad, mask=mask) == native_loss(name, TABLE, GRADES, mask=np.array(mask))
    if name == "lambdaloss":
        with pytest.raises(DataError, match="list 0, row 1: grade -1 is not a finite number of at least 0"):
            native_loss(name, TABLE, [[2, -1, 0], [1, 0, 0]])


def test_columns_that_do_not_fit_are_named():
    x = torch.zeros(4)
    with pytest.raises(ValueError, match=r"4 scores have grades of shape \(3,\); both must be \(rows,\)"):
        native_loss("ranknet", x, [1, 0, 0], offsets=[0, 4])
    with pytest.raises(ValueError, match="offsets must be whole numbers that rise from 0 to the number of rows, 4"):
        native_loss("ranknet", x, [1, 0, 0, 1], offsets=[0, 2.7, 4])


@pytest.mark.parametrize("name", NATIVE)
def test_lists_of_grades_may_be_mapped(name):
    grades = torch.stack([GRADES, GRADES + 1])
    each = torch.vmap(lambda s, grade: native_loss(name, s, grade))(torch.stack([TABLE, TABLE]), grades)
    assert each.tolist() == pytest.approx([native_loss(name, TABLE, grade).item() for grade in grades], rel=1e-6)


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
    whole = CrossEncoderLoss(model, loss, mini_batch_size=-1)([QUERIES, DOCUMENTS], LABELS).item()
    assert whole == pytest.approx(criterion([QUERIES, DOCUMENTS], LABELS).item(), rel=1e-5)


@pytest.mark.parametrize(("size", "seen"), [(None, [2, 2, 2, 1]), (0, [7]), (-1, [7]), (5, [5, 2])])
def test_mini_batches_are_those_of_sentence_transformers(size, seen):
    model = TinyEncoder()
    CrossEncoderLoss(model, mini_batch_size=size)([QUERIES, DOCUMENTS], LABELS)
    assert model.seen == seen


def test_an_activation_is_applied_to_the_outputs():
    model = TinyEncoder()
    constant = CrossEncoderLoss(model, "ranknet", activation_fn=torch.zeros_like)
    assert constant([QUERIES, DOCUMENTS], LABELS).item() == pytest.approx((5 + 3) * np.log(2.0) / 2)
    config = CrossEncoderLoss(model, "lambdaloss", activation_fn=torch.nn.Sigmoid(), k=3).get_config_dict()
    assert config == {"loss": "lambdaloss", "activation_fn": "Sigmoid", "mini_batch_size": None, "k": 3}


def test_what_a_cross_encoder_cannot_be_trained_on_is_refused():
    model = TinyEncoder()
    with pytest.raises(DataError, match="each query needs as many labels as documents"):
        CrossEncoderLoss(model)([QUERIES, DOCUMENTS], LABELS[:1])
    with pytest.raises(DataError, match="no documents in this batch"):
        CrossEncoderLoss(model)([[], []], [])
    with pytest.raises(ValueError, match="the loss 'pl-partition' has no parameter 'mini_batchsize'"):
        CrossEncoderLoss(model, mini_batchsize=2)
    with pytest.raises(ValueError, match="k must be at least 1"):
        CrossEncoderLoss(model, "lambdaloss", k=0)
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
    for beta in (0.0, float("inf")):
        with pytest.raises(ValueError, match="beta must be a finite number above 0"):
            preference_loss(policy, reference, torch.zeros(2, 2), beta=beta)


def test_a_permutation_becomes_grades():
    assert permutation_grades([3, (0, 2)], 5).tolist() == [1, 0, 1, 2, 0]
    assert permutation_grades([], 2).tolist() == [0, 0]
    assert permutation_grades([{1, 2}, np.int64(0)], 4).tolist() == [1, 2, 2, 0]
    assert permutation_grades(torch.tensor([2, 0]), 3).tolist() == [1, 0, 2]
    for entry in (1.5, "a", (0, 1.5)):
        with pytest.raises(
            DataError, match=f"entry {re.escape(repr(entry))} of the permutation is neither a row number"
        ):
            permutation_grades([entry], 3)
    with pytest.raises(DataError, match="row 7 is not among the 5 rows"):
        permutation_grades([7], 5)
    with pytest.raises(DataError, match="row 1 is named twice in the 5 rows"):
        permutation_grades([1, 1], 5)
