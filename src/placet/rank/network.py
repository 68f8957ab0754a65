"""A fully connected network: plain arrays outside of training, PyTorch inside it.  PyTorch is loaded when first used.

The weights are one flat float32 array, and a layer is a view of it: (W, b).  The first W is (features, width), a vector
per feature, so that sparse rows are sums of vectors; later ones are (width, width before).  ReLU between layers.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Weights = NDArray[np.float32]
Layer = tuple[Any, Any]
DRAWN_AT_ONCE = 1 << 20


def pytorch() -> Any:
    """PyTorch, or words on how to get it."""
    try:
        import torch
    except ImportError:
        raise ImportError("networks are trained with PyTorch; install it with: pip install 'placet[neural]'") from None
    return torch


def widths(hidden: int | Sequence[int]) -> list[int]:
    """Widths of the hidden layers; a number is one layer, () none."""
    found = [hidden] if isinstance(hidden, int | np.integer) else list(hidden)
    if not all(isinstance(width, int | np.integer) and width > 0 for width in found):
        raise ValueError(f"hidden {hidden!r} must be widths of layers above 0, such as 256 or (256, 64)")
    return [int(width) for width in found]


def layers(weights: Weights, sizes: Sequence[int]) -> list[Layer]:
    """Views (W, b) of the flat weights; ``sizes`` are the widths from the features to the scores."""
    found, at = [], 0
    for k, (n_in, n_out) in enumerate(pairwise(sizes)):
        shape = (n_in, n_out) if k == 0 else (n_out, n_in)
        end = at + n_in * n_out
        found.append((weights[at:end].reshape(shape), weights[end : end + n_out]))
        at = end + n_out
    return found


def first_weights(sizes: Sequence[int], rng: np.random.Generator) -> Weights:
    """Weights and biases of a layer with n inputs uniform on (-1, 1) / sqrt(n)."""
    ends = np.cumsum([0, *((n_in + 1) * n_out for n_in, n_out in pairwise(sizes))])
    weights = np.empty(ends[-1], np.float32)
    for n_in, (start, end) in zip(sizes, pairwise(ends.tolist())):
        for a in range(start, end, DRAWN_AT_ONCE):
            part = weights[a : min(a + DRAWN_AT_ONCE, end)]
            part[:] = rng.uniform(-1.0, 1.0, len(part)) / np.sqrt(n_in)
    return weights


def scores(network: Sequence[Layer], X: Any) -> Weights:
    """Outputs (rows, outputs) for dense or CSR rows, by NumPy and SciPy alone: a fitted network needs no PyTorch."""
    (W, b), *later = network
    out = np.asarray(X.astype(np.float32, copy=False) @ W) + b
    for W, b in later:
        np.maximum(out, 0.0, out=out)
        out = out @ W.T
        out += b
    return out


def first_layer(rows: Any, layer: Layer, *, sparse: bool = False) -> Any:
    """X W + b for rows from `as_input`; ``sparse`` asks for a gradient of W in the rows that occur alone."""
    torch = pytorch()
    W, b = layer
    if not isinstance(rows, tuple):
        return torch.addmm(b, rows, W)
    index, start, value = rows
    return b + torch.nn.functional.embedding_bag(
        index, W, start, mode="sum", per_sample_weights=value, include_last_offset=True, sparse=sparse
    )


def hidden(inner: Sequence[Layer], rows: Any, *, sparse: bool = False) -> Any:
    """What the last layer takes, given the layers before it (at least one)."""
    torch = pytorch()
    out = first_layer(rows, inner[0], sparse=sparse).relu_()
    for W, b in inner[1:]:
        out = torch.nn.functional.linear(out, W, b).relu_()
    return out


def forward(network: Sequence[Layer], rows: Any) -> Any:
    """Outputs (rows, outputs) as a tensor that knows its way back."""
    *inner, last = network
    if not inner:
        return first_layer(rows, last)
    return pytorch().nn.functional.linear(hidden(inner, rows), *last)


def as_input(X: Any) -> Any:
    """Rows as PyTorch takes them: a dense tensor, or (columns, starts, values) of a CSR matrix."""
    torch = pytorch()
    if isinstance(X, np.ndarray):
        return torch.from_numpy(np.require(X, np.float32, ["C", "W"]))
    index, start = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return torch.from_numpy(index), torch.from_numpy(start), torch.from_numpy(X.data.astype(np.float32))
