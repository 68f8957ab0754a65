"""Labeled documents: sparse features, and labels that form tiers, validated once."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placet.data.arrays import as_csr, hold_out, list_of_rows
from placet.data.errors import DataError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class OwnLabels(NamedTuple):
    """Labels ``label[offsets[d]:offsets[d + 1]]`` of each document d, with positive grades in descending order."""

    label: NDArray[np.int64]
    grade: NDArray[np.float64]
    offsets: NDArray[np.int64]

    @property
    def document(self) -> NDArray[np.int64]:
        return list_of_rows(self.offsets)


@dataclass(frozen=True)
class Documents:
    """``X`` (documents, features) float32 and ``Y`` (documents, labels), CSR; grades descend within a row of ``Y``."""

    X: "csr_matrix"
    Y: "csr_matrix"

    @classmethod
    def from_matrices(cls, X: Any, Y: Any) -> "Documents":
        """Validate matrices of features and grades, sparse or dense."""
        rows, labels = checked_features(X), checked_labels(Y)
        if rows.shape[0] != labels.shape[0]:
            raise DataError(
                f"X has {rows.shape[0]} documents and Y has {labels.shape[0]}; give one row for each in both"
            )
        return cls(rows, labels)

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def __getitem__(self, which: NDArray[np.int64]) -> "Documents":
        return Documents(self.X[which], self.Y[which])

    def own_labels(self) -> OwnLabels:
        """The labels in the form that losses expect."""
        return OwnLabels(self.Y.indices.astype(np.int64), self.Y.data, self.Y.indptr.astype(np.int64))

    def has_labels(self) -> NDArray[np.bool_]:
        """Mask of documents that have labels."""
        return np.diff(self.Y.indptr) > 0

    def useful(self) -> NDArray[np.bool_]:
        """Mask of documents with at least two tiers, and so an order to learn."""
        own = self.own_labels()
        counts = np.diff(own.offsets)
        steps = np.zeros(len(self), bool)
        inside = own.document[1:] == own.document[:-1]
        steps[own.document[1:][inside & (own.grade[1:] != own.grade[:-1])]] = True
        return (counts > 0) & ((counts < self.Y.shape[1]) | steps)

    def split(self, share: float, rng: np.random.Generator) -> tuple["Documents", "Documents"]:
        """Split off a random ``share`` of the documents (at least one): the others, and those split off."""
        rest, held_out = hold_out(len(self), share, rng)
        return self[rest], self[held_out]

    def refuse_unlike(self, other: "Documents") -> None:
        """Refuse documents with other numbers of features or labels."""
        for what, a, b in (("features", self.X, other.X), ("labels", self.Y, other.Y)):
            if a.shape[1] != b.shape[1]:
                raise DataError(
                    f"the validation set has {a.shape[1]} {what} and the training set {b.shape[1]}; "
                    "read both with one header"
                )


def checked_features(X: Any) -> "csr_matrix":
    """Features as a float32 CSR matrix; repeated features of a row are summed, and empty rows are allowed."""
    matrix = _as_csr(X, "features")
    bad = ~np.isfinite(matrix.data)
    if bad.any():
        at = int(np.argmax(bad))
        row = int(np.searchsorted(matrix.indptr, at, side="right")) - 1
        raise DataError(
            f"document {row}, feature {matrix.indices[at]}: {matrix.data[at]} is not finite ({int(bad.sum())} such "
            "values); replace them"
        )
    out = matrix.astype(np.float32)
    out.sum_duplicates()
    return out


def checked_labels(Y: Any) -> "csr_matrix":
    """Grades as float64 CSR, in descending order in each row; stored zeros, which mean no label, are removed."""
    matrix = _as_csr(Y, "labels").astype(np.float64)
    bad = ~(np.isfinite(matrix.data) & (matrix.data >= 0))
    if bad.any():
        at = int(np.argmax(bad))
        row = int(np.searchsorted(matrix.indptr, at, side="right")) - 1
        raise DataError(
            f"document {row}, label {matrix.indices[at]}: grade {matrix.data[at]} is not a finite number of at least 0 "
            f"({int(bad.sum())} such grades); labels that a document lacks have 0"
        )
    document = list_of_rows(matrix.indptr.astype(np.int64))
    order = np.lexsort((matrix.indices, -matrix.data, document))
    by_label = np.lexsort((matrix.indices, document))
    again = (document[1:] == document[:-1]) & (matrix.indices[by_label][1:] == matrix.indices[by_label][:-1])
    if again.any():
        at = int(np.argmax(again))
        raise DataError(
            f"document {document[at]}: label {matrix.indices[by_label][at]} occurs more than once "
            f"({int(again.sum())} such labels); keep one of each"
        )
    out = type(matrix)((matrix.data[order], matrix.indices[order], matrix.indptr), shape=matrix.shape)
    out.eliminate_zeros()
    return out


def _as_csr(table: Any, what: str) -> "csr_matrix":
    """A new CSR matrix from a sparse matrix of any format or from a dense table."""
    from scipy.sparse import csr_matrix

    one = what.removesuffix("s")
    try:
        matrix = csr_matrix(as_csr(table, one, "document") if hasattr(table, "tocsr") else table)
    except DataError:
        raise
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} must be a table of documents x {what}, sparse or dense: {error}") from None
    if matrix.dtype.kind not in "fiub":
        raise DataError(f"{what} must be numbers, not {matrix.dtype}")
    return matrix
