"""Losses of a batch of documents over all labels, or over those of the batch and a sample of the others."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placet.data import Lists
from placet.data.arrays import Floats, Ints, offsets_from_sizes
from placet.kernels.rank import label_order as kernels
from placet.rank.multilabel.documents import Documents, OwnLabels
from placet.rank.torch import neural
from placet.rank.torch.network import Layer, as_input, hidden_outputs, pytorch
from placet.rank.torch.neural import Criterion, to_float32

CELLS_AT_ONCE = 1 << 18  # block of the table in training: a megabyte, which stays in a core's cache between operations


def mean_loss(criterion: Criterion, table: Any, own: OwnLabels) -> Any:
    """Loss per document as a PyTorch node, a function of the scores and of the learned parameters."""
    value, grad, slopes = loss_of_labels(criterion, table, own)
    inputs = [table, *criterion.learned.values()]
    return neural.torch_node(value, [grad, *neural.slopes_like(criterion.learned, slopes)], inputs)


def sampled_loss(
    criterion: Criterion, network: Sequence[Layer], batch: Documents, negatives: int, rng: np.random.Generator
) -> Any:
    """Loss per document over the labels of the batch and ``negatives`` of the others."""
    torch = pytorch()
    n_labels = batch.Y.shape[1]
    here = np.unique(batch.Y.indices).astype(np.int64)
    others = draw_others(here, n_labels, negatives, rng)
    index = torch.from_numpy(np.concatenate([here, others]))
    *inner, (W, b) = network
    vectors = torch.nn.functional.embedding(index, W, sparse=True)
    rows = hidden_outputs(inner, as_input(batch.X), sparse=True)
    table = torch.nn.functional.linear(rows, vectors, b[index])
    own = batch.own_labels()._replace(label=np.searchsorted(here, batch.own_labels().label))
    if criterion.loss.sums_lowest_tier and len(others):
        log_share = np.log((n_labels - len(here)) / len(others))
        stands_for = np.concatenate([np.zeros(len(here)), np.full(len(others), log_share)])
        table = table + torch.from_numpy(stands_for.astype(np.float32))
    return mean_loss(criterion, table, own)


def draw_others(here: Ints, n_labels: int, n: int, rng: np.random.Generator) -> Ints:
    """At most ``n`` of the labels that are not in ``here`` (sorted), without replacement, each equally likely.

    >>> sorted(draw_others(np.array([0, 2, 3]), 6, 9, np.random.default_rng(0)).tolist())
    [1, 4, 5]
    """
    n_others = n_labels - len(here)
    number = rng.choice(n_others, min(n, n_others), replace=False)  # index among the others, from 0
    return number + np.searchsorted(here - np.arange(len(here)), number, side="right")


def loss_of_labels(criterion: Criterion, table: Any, own: OwnLabels) -> tuple[float, Any, Floats]:
    """Value per document, gradient (a tensor like ``table``), and derivatives in learned parameters.

    ``table`` (documents, labels): a float32 tensor of scores.
    """
    return (collapsed_loss if criterion.loss.sums_lowest_tier else whole_loss)(criterion, table, own)


def whole_loss(criterion: Criterion, table: Any, own: OwnLabels) -> tuple[float, Any, Floats]:
    """Every document is a list of all labels, its own first.  O(documents * labels) plus the loss itself."""
    n, n_labels = table.shape
    order = np.empty(n * n_labels, np.int64)
    kernels.own_labels_first(own.offsets, own.label, n_labels, order)
    grade = np.zeros(n * n_labels)
    own_cells = own.document * n_labels + np.arange(len(own.label)) - own.offsets[own.document]
    grade[own_cells] = own.grade
    s = table.detach().numpy().ravel()[order].astype(np.float64)
    bound = criterion.bind(Lists(grade, n_labels * np.arange(n + 1)))
    value, g, slopes = bound.value_grad_slopes(s, criterion.learned_values())
    grad = np.empty(n * n_labels, np.float32)
    grad[order] = to_float32(g)
    return value, pytorch().from_numpy(grad.reshape(n, n_labels)), slopes


def collapsed_loss(criterion: Criterion, table: Any, own: OwnLabels) -> tuple[float, Any, Floats]:
    """Same as `whole_loss`, if the loss sums the lowest tier.  O(documents * labels) plus the loss of own labels."""
    torch = pytorch()
    table, document = table.detach(), own.document
    cell = torch.from_numpy(document), torch.from_numpy(own.label)
    mine = table[cell].double().numpy()
    grad, total, log_rest = others_exponentials(table, cell, own.offsets)
    others = np.diff(own.offsets) < table.shape[1]
    offsets = offsets_from_sizes(np.diff(own.offsets) + others)
    at_rest = offsets[1:][others] - 1
    at_own = np.arange(len(mine)) + (np.cumsum(others) - others)[document]
    s, grade = np.empty(offsets[-1]), np.zeros(offsets[-1])
    s[at_own], grade[at_own], s[at_rest] = mine, own.grade, log_rest[others]
    value, g, slopes = criterion.bind(Lists(grade, offsets)).value_grad_slopes(s, criterion.learned_values())
    share = np.zeros(len(others))
    share[others] = g[at_rest] / total[others]
    grad *= torch.from_numpy(to_float32(share))[:, None]
    grad[cell] = torch.from_numpy(to_float32(g[at_own]))
    return value, grad, slopes


def others_exponentials(
    table: Any, cell: tuple[Any, Any], offsets: NDArray[np.int64]
) -> tuple[Any, NDArray[np.float64], NDArray[np.float64]]:
    """e^{s - max} of the labels that a document does not have (0 at its own), their sums, and log sum e^s.

    For a document that has all labels, the last two are 0 and -inf.
    """
    torch = pytorch()
    e = torch.empty_like(table)
    top, total = torch.empty(len(e), 1), torch.empty(len(e), 1)
    step = max(1, CELLS_AT_ONCE // max(1, e.shape[1]))
    for a in range(0, len(e), step):
        part, highest = e[a : a + step], top[a : a + step]
        part.copy_(table[a : a + step])
        mine = slice(offsets[a], offsets[min(a + step, len(e))])
        part[cell[0][mine] - a, cell[1][mine]] = -torch.inf
        torch.amax(part, dim=1, keepdim=True, out=highest)
        highest[highest == -torch.inf] = 0.0
        part.sub_(highest).exp_()
        torch.sum(part, dim=1, keepdim=True, out=total[a : a + step])
    sums = total.double().numpy()[:, 0]
    log_rest = np.full(len(sums), -np.inf)
    np.log(sums, out=log_rest, where=sums > 0)
    return e, sums, log_rest + top.double().numpy()[:, 0]
