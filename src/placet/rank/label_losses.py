"""Losses of a batch of documents whose labels form tiers: a document's own labels by their grade, the others below.

Every loss of ``LOSSES`` takes the whole (documents, labels) table as lists of its rows.  Where the lowest tier enters
only by its log-sum-exp (``COLLAPSED``), one row stands for all the labels that a document does not have: the lists then
have as many rows as labels occur, and what falls on that row is shared among the others by their softmax.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placet.data import Lists
from placet.data.arrays import list_of_rows, offsets_from_sizes
from placet.kernels import labels as kernels
from placet.losses import LOSSES
from placet.rank.network import pytorch
from placet.rank.training import single

COLLAPSED = frozenset({"pl-partition", "pl-lower-bound"})
"""Losses in which the lowest tier enters only by the log-sum-exp of its scores."""

CELLS_AT_ONCE = 1 << 18  # of the table: a megabyte, which stays in a core's cache from one operation to the next

Slopes = dict[str, float]


class Own(NamedTuple):
    """A document's own labels: columns ``label[offsets[d]:offsets[d + 1]]``, grades above 0 that never rise."""

    label: NDArray[np.int64]
    grade: NDArray[np.float64]
    offsets: NDArray[np.int64]

    @property
    def document(self) -> NDArray[np.int64]:
        return list_of_rows(self.offsets)


def loss_of_labels(loss: str, table: Any, own: Own, params: dict[str, Any]) -> tuple[float, Any, Slopes]:
    """Value, gradient (a tensor like ``table``) and slopes of learnt parameters, summed over the documents.

    ``table`` (documents, labels): a float32 tensor of scores.
    """
    if loss in COLLAPSED:
        return (*collapsed(loss, table, own, params), {})
    return whole(loss, table, own, params)


def whole(loss: str, table: Any, own: Own, params: dict[str, Any]) -> tuple[float, Any, Slopes]:
    """Every document is a list of all labels, its own first.  O(documents * labels) and what the loss costs."""
    n, n_labels = table.shape
    order = np.empty(n * n_labels, np.int64)
    kernels.labelled_first(own.offsets, own.label, n_labels, order)
    grade = np.zeros(n * n_labels)
    own_cells = own.document * n_labels + np.arange(len(own.label)) - own.offsets[own.document]
    grade[own_cells] = own.grade
    s = table.detach().numpy().ravel()[order].astype(np.float64)
    value, g, *slopes = LOSSES[loss](s, Lists(grade, n_labels * np.arange(n + 1)), **params)
    grad = np.empty(n * n_labels, np.float32)
    grad[order] = single(g)
    return value, pytorch().from_numpy(grad.reshape(n, n_labels)), slopes[0] if slopes else {}


def collapsed(loss: str, table: Any, own: Own, params: dict[str, Any]) -> tuple[float, Any]:
    """The same as `whole` for a loss of ``COLLAPSED``.  O(documents * labels), and the loss of the own labels."""
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
    value, g = LOSSES[loss](s, Lists(grade, offsets), **params)
    pull = np.zeros(len(others))
    pull[others] = g[at_rest] / total[others]
    grad *= torch.from_numpy(single(pull))[:, None]
    grad[cell] = torch.from_numpy(single(g[at_own]))
    return value, grad


def others_exponentials(
    table: Any, cell: tuple[Any, Any], offsets: NDArray[np.int64]
) -> tuple[Any, NDArray[np.float64], NDArray[np.float64]]:
    """e^{s - max} of the labels that a document does not have (0 at its own), their sums, and log sum e^s.

    A document that has all labels has the sum 0, and -inf.
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
