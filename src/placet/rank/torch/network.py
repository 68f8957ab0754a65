"""Networks as plain arrays: layers, scores, and the same in PyTorch.

The weights are one flat float32 array, and a layer (W, b) is a pair of views of it.  The first W is (features, width),
one vector per feature, so that a sparse row is a sum of vectors; later ones are (width, previous width).  ReLU between
layers.
"""

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placet.data import DataError
from placet.data.engines.memory import refuse_beyond_memory
from placet.threads import is_forked

Weights = NDArray[np.float32]
Layer = tuple[Any, Any]

DRAWS_AT_ONCE = 1 << 20


def pytorch() -> Any:
    """Import PyTorch, or say how to install it."""
    try:
        import torch  # a statement, which torch.compile can trace, unlike `import_optional`
    except ImportError:
        raise ImportError("networks are trained with PyTorch; install it with: pip install 'placet[neural]'") from None
    if is_forked() and torch.get_num_threads() > 1:
        torch.set_num_threads(1)
    return torch


def widths(hidden: int | Sequence[int]) -> list[int]:
    """Widths of the hidden layers; a number means one layer, () none."""
    found = [hidden] if isinstance(hidden, int | np.integer) else list(hidden)
    if not all(isinstance(width, int | np.integer) and width > 0 for width in found):
        raise ValueError(f"hidden {hidden!r} must be widths of layers above 0, such as 256 or (256, 64)")
    return [int(width) for width in found]


def check_network(weights: Weights, sizes: NDArray[np.int64], n_features: int, n_outputs: int) -> None:
    """Raise a ``DataError`` unless the weights fit layers of these sizes, from features to outputs."""
    widths = sizes.tolist()
    if len(widths) < 2 or widths[0] != n_features or widths[-1] != n_outputs or 0 in widths[1:]:
        raise DataError(f"layers of sizes {widths[:9]} do not lead from {n_features} features to {n_outputs} scores")
    expected = sum((n_in + 1) * n_out for n_in, n_out in pairwise(widths))
    if len(weights) != expected:
        raise DataError(f"{len(weights)} weights are not the {expected} of layers of sizes {widths[:9]}")


def layers(weights: Weights, sizes: Sequence[int]) -> list[Layer]:
    """Views (W, b) of the flat weights; ``sizes`` are the widths from the features to the scores."""
    found, at = [], 0
    for k, (n_in, n_out) in enumerate(pairwise(sizes)):
        shape = (n_in, n_out) if k == 0 else (n_out, n_in)
        end = at + n_in * n_out
        found.append((weights[at:end].reshape(shape), weights[end : end + n_out]))
        at = end + n_out
    return found


def first_weights(sizes: Sequence[int], rng: np.random.Generator, *, averaged: bool = False) -> Weights:
    """Initial weights and biases, uniform on (-1, 1) / sqrt(n) for a layer with n inputs."""
    ends = np.cumsum([0, *((n_in + 1) * n_out for n_in, n_out in pairwise(sizes))])
    refuse_beyond_memory(
        4.0 * (5 + averaged) * float(ends[-1]),  # float32: weights, the best so far, gradient, two moments, the mean
        f"a network of layers of sizes {', '.join(f'{size:,}' for size in sizes)}",
        "take narrower layers (hidden=), or fewer features or labels",
    )
    weights = np.empty(ends[-1], np.float32)
    for n_in, (start, end) in zip(sizes, pairwise(ends.tolist())):
        for a in range(start, end, DRAWS_AT_ONCE):
            part = weights[a : min(a + DRAWS_AT_ONCE, end)]
            part[:] = rng.uniform(-1.0, 1.0, len(part)) / np.sqrt(n_in)
    return weights


def orthogonal(W: Any) -> Any:
    """The nearest matrix to W (up to scale) whose rows are orthogonal and of one length; with more rows than columns,
    whose columns are, so that rows are as far from parallel as they can be.  Of the same mean square.

    >>> orthogonal(np.array([[3.0, 0.0], [3.0, 4.0]])).round(2)
    array([[ 3.79, -1.62],
           [ 1.62,  3.79]])
    """
    left, _, right = np.linalg.svd(W, full_matrices=False)
    return (left @ right) * np.sqrt(np.square(W).sum() / min(W.shape))


def network_scores(network: Sequence[Layer], X: Any) -> Weights:
    """Outputs (rows, outputs) for dense or CSR rows, by NumPy and SciPy only: a fitted network needs no PyTorch."""
    (W, b), *later = network
    out = np.asarray(X.astype(W.dtype, copy=False) @ W) + b
    for W, b in later:
        np.maximum(out, 0.0, out=out)
        out = out @ W.T
        out += b
    return out


def first_layer(rows: Any, layer: Layer, *, sparse: bool = False) -> Any:
    """X W + b for rows from `as_input`; with ``sparse``, the gradient of W has only the rows used."""
    W, b = layer
    if not isinstance(rows, SparseRows):
        return pytorch().addmm(b, rows, W)
    if rows.transpose is None or sparse:
        return b + sums_of_vectors(rows, W, sparse=sparse)
    return b + _sums_node().apply(W, rows)


def sums_of_vectors(rows: "SparseRows", W: Any, *, sparse: bool = False) -> Any:
    """X W, each row a sum of rows of W."""
    return pytorch().nn.functional.embedding_bag(
        rows.index, W, rows.start, mode="sum", per_sample_weights=rows.value, include_last_offset=True, sparse=sparse
    )


@cache
def _sums_node() -> Any:
    autograd: Any = pytorch().autograd
    function: Any = autograd.Function

    class Sums(function):
        """`sums_of_vectors` whose gradient is one too, by the transpose: about ten times as fast as PyTorch's own."""

        @staticmethod
        def forward(ctx: Any, W: Any, rows: SparseRows) -> Any:
            ctx.transpose = rows.transpose
            return sums_of_vectors(rows, W)

        @staticmethod
        @autograd.function.once_differentiable  # type: ignore[untyped-decorator]
        def backward(ctx: Any, slope: Any) -> tuple[Any, ...]:
            return sums_of_vectors(ctx.transpose, slope.contiguous()), None

    return Sums


def hidden_outputs(inner: Sequence[Layer], rows: Any, *, sparse: bool = False) -> Any:
    """The input of the last layer, given the layers before it (at least one)."""
    torch = pytorch()
    out = first_layer(rows, inner[0], sparse=sparse).relu_()
    for W, b in inner[1:]:
        out = torch.nn.functional.linear(out, W, b).relu_()
    return out


def forward(network: Sequence[Layer], rows: Any) -> Any:
    """Outputs (rows, outputs) as a differentiable tensor."""
    *inner, last = network
    if not inner:
        return first_layer(rows, last)
    return pytorch().nn.functional.linear(hidden_outputs(inner, rows), *last)


def member_scores(network: Sequence[Layer], rows: Any, n_members: int, dropout: float, draws: Any) -> Any:
    """Scores (rows, members): each of the parts of the last hidden layer by itself; `forward` is their sum.

    ``dropout``: the fraction of hidden units that are set to 0, drawn by the generator ``draws``; others are raised
    so that their mean stays.
    """
    torch = pytorch()
    *inner, (W, b) = network
    if not inner:
        return first_layer(rows, (W, b))
    out = first_layer(rows, inner[0]).relu_()
    for layer in [*inner[1:], None]:
        if dropout:
            out = out * ((torch.rand(out.shape, generator=draws) >= dropout) / (1.0 - dropout))
        if layer is not None:
            out = torch.nn.functional.linear(out, *layer).relu_()
    return (out * W).reshape(len(out), n_members, -1).sum(2) + b


class SparseRows(NamedTuple):
    """Columns, starts and values of a CSR matrix as tensors, and, for a faster gradient, those of its transpose."""

    index: Any
    start: Any
    value: Any
    transpose: "SparseRows | None" = None


def as_input(X: Any, *, transposed: bool = False) -> Any:
    """Rows as PyTorch input: a dense tensor, or `SparseRows`, with their transpose if asked for."""
    torch = pytorch()
    if isinstance(X, np.ndarray):
        return torch.from_numpy(np.require(X, np.float32, ["C", "W"]))
    index, start = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    transpose = as_input(X.T.tocsr()) if transposed else None
    return SparseRows(
        torch.from_numpy(index), torch.from_numpy(start), torch.from_numpy(X.data.astype(np.float32)), transpose
    )
