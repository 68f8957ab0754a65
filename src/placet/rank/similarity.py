"""Similarities between the rows of a list, summed over the other rows: sum_{j != i} S(x_i, x_j), (rows,).

A kernel is one of

- "cosine": the cosine of features scaled to [0, 1] in the list (LETOR's query normalization).  O(rows features), by
  one inner product with the sum of the other rows.
- "gaussian": exp(-mean_f (x_if - x_jf)^2 / (2 bandwidth^2)) of the same features, computed in blocks: O(rows^2
  features) time, and memory for one block, not O(rows^2).
- a function (A, B) -> (rows of A, rows of B) of raw features, such as those of ``sklearn.metrics.pairwise``; called on
  blocks of at most ``BLOCK`` rows.
- the name of a relation of the ``Queries``: the sum over j of A_ij, or, with ".T" appended, of A_ji (a child's parents
  instead of a parent's children).  A relation need not be symmetric.

Sparse features are not scaled to [0, 1], so zeros stay zeros.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from placet.data import DataError
from placet.data.arrays import Floats, Ints, list_of_rows
from placet.kernels.rank import inner_products as kernels
from placet.rank.feature_tables import need_dense

Pairwise = Callable[[Any, Any], Any]
SimilarityKernel = str | Pairwise
ListRelations = Mapping[str, Any] | None

BLOCK = 2048
FEATURE_KERNELS = ("cosine", "gaussian")


def normalize(X: Any, offsets: Ints) -> Floats:
    """Copy dense features, scaling every column to the range 0 to 1 in each list (constant columns become 0).

    >>> normalize(np.array([[1.0], [3.0], [2.0], [7.0]]), np.array([0, 3, 4])).ravel()
    array([0. , 1. , 0.5, 0. ])
    """
    Z = np.array(X, dtype=np.float64, order="C")
    kernels.to_unit_interval(Z, offsets)
    return Z


def unit_rows(X: Any, offsets: Ints) -> Any:
    """Rows scaled so that inner products are cosines; CSR for sparse features."""
    if isinstance(X, np.ndarray):
        Z = normalize(X, offsets)
        kernels.to_unit_length(Z)
        return Z
    from scipy.sparse import diags_array

    length = np.sqrt(np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64)).ravel()
    return (diags_array(1.0 / np.where(length > 0, length, 1.0)) @ X).tocsr()


def cosine_product(U: Any, offsets: Ints, v: Floats) -> Floats:
    """sum_{j != i} cos(x_i, x_j) v_j in each list, (rows,), given ``unit_rows``.  O(entries)."""
    if isinstance(U, np.ndarray):
        out = np.empty(len(U))
        kernels.inner_sums(U, offsets, v, out)
        return out
    from scipy.sparse import csr_array

    n = U.shape[0]
    member = csr_array((v, np.arange(n), offsets), shape=(len(offsets) - 1, n))
    query = list_of_rows(offsets)
    total = (member @ U).tocsr()[query]
    return np.asarray(U.multiply(total).sum(axis=1)).ravel() - np.asarray(U.multiply(U).sum(axis=1)).ravel() * v


def sums(
    chosen: Sequence[SimilarityKernel],
    X: Any,
    offsets: Ints,
    relations: ListRelations = None,
    *,
    bandwidth: float = 0.25,
) -> Floats:
    """sum_{j != i} S_k(x_i, x_j) for every kernel k, (rows, kernels); 0 for the only row of a list."""
    out = np.zeros((X.shape[0], len(chosen)))
    for k, kernel in enumerate(chosen):
        if callable(kernel):
            out[:, k] = _block_sums(kernel, X, offsets)
        elif kernel == "cosine":
            out[:, k] = cosine_product(unit_rows(X, offsets), offsets, np.ones(X.shape[0]))
        elif kernel == "gaussian":
            out[:, k] = _block_sums(gaussian(bandwidth), gaussian_table(X, offsets), offsets)
        else:
            out[:, k] = _relation_sums(kernel, relations)
    return out


def means_from_sums(T: Floats, offsets: Ints) -> Floats:
    """Means over the other rows, from the sums (rows, kernels) over them."""
    sizes = np.diff(offsets)
    return T / np.repeat(np.maximum(sizes - 1, 1), sizes)[:, None]


def center(T: Floats, offsets: Ints) -> Floats:
    """Subtract the mean of every column of a table (rows, columns) in each list.

    >>> center(np.array([[1.0], [3.0], [7.0]]), np.array([0, 2, 3])).ravel()
    array([-1.,  1.,  0.])
    """
    query = list_of_rows(offsets)
    out = np.empty_like(T)
    for k, column in enumerate(T.T):
        mean = np.bincount(query, column, len(offsets) - 1) / np.maximum(np.diff(offsets), 1)
        out[:, k] = column - mean[query]
    return out


def gaussian(bandwidth: float) -> Pairwise:
    """(A, B) -> exp(-mean_f (a_f - b_f)^2 / (2 bandwidth^2))."""
    if not bandwidth > 0:
        raise ValueError(f"bandwidth {bandwidth} must be above 0")

    def kernel(A: Floats, B: Floats) -> Floats:
        square = (A * A).sum(axis=1)[:, None] + (B * B).sum(axis=1) - 2.0 * (A @ B.T)
        return np.exp(-np.maximum(square, 0.0) / (2.0 * bandwidth**2 * max(A.shape[1], 1)))

    return kernel


def gaussian_table(X: Any, offsets: Ints) -> Floats:
    """Features scaled for `gaussian`; raise a ``DataError`` if they are sparse."""
    return normalize(need_dense(X, "the gaussian kernel needs", "the kernel 'cosine'"), offsets)


def relation(relations: ListRelations, name: str) -> Any:
    """The named relation as CSR, transposed if the name ends with ".T"."""
    known = relations or {}
    if name in known:
        return known[name]
    if name.endswith(".T") and name[:-2] in known:
        return known[name[:-2]].T.tocsr()
    raise DataError(
        f"kernel {name!r} is not in {list(FEATURE_KERNELS)} and these rows have no such relation (they have "
        f"{sorted(known)}); give Queries with relations={{{name!r}: matrix}}"
    )


def _relation_sums(name: str, relations: ListRelations) -> Floats:
    matrix = relation(relations, name)
    return np.asarray(matrix.sum(axis=1), dtype=np.float64).ravel() - matrix.diagonal()


def blocks(a: int, b: int) -> Iterator[slice]:
    """Rows a..b in blocks of at most ``BLOCK``."""
    return (slice(start, min(start + BLOCK, b)) for start in range(a, b, BLOCK))


def _block_sums(kernel: Pairwise, X: Any, offsets: Ints) -> Floats:
    out = np.zeros(X.shape[0])
    for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist()):
        for rows in blocks(a, b):
            for columns in blocks(a, b):
                part = _table(kernel, X[rows], X[columns])
                out[rows] += part.sum(axis=1)
                if rows == columns:
                    out[rows] -= part.diagonal()
    return out


def _table(kernel: Pairwise, A: Any, B: Any) -> Floats:
    """Evaluate a kernel on two blocks and check the result, since a user's function may return anything."""
    found = np.asarray(kernel(A, B), dtype=np.float64)
    if found.shape != (A.shape[0], B.shape[0]):
        raise ValueError(
            f"the kernel gives shape {found.shape} for blocks of {A.shape[0]} and {B.shape[0]} rows; "
            "it must give one number for every pair of rows"
        )
    if not np.isfinite(found).all():
        raise ValueError(f"the kernel gives {int((~np.isfinite(found)).sum())} values that are NaN or infinite")
    return found
