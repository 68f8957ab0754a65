"""Labeled documents: sparse features, and labels that form tiers, by number or by name, validated once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placet.data.arrays import as_csr, hold_out, list_of_rows
from placet.data.errors import DataError
from placet.io import MultiLabel

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

    def refuse_unlike(self, other: "Documents", *, named: bool) -> None:
        """Refuse documents with other numbers of features or labels; more labels are allowed if they are named."""
        for what, a, b in (("features", self.X, other.X), ("labels", self.Y, other.Y)):
            if a.shape[1] != b.shape[1] and not (named and what == "labels"):
                raise DataError(
                    f"the validation set has {a.shape[1]} {what} and the training set {b.shape[1]}; "
                    "read both with one header"
                )


def as_documents(X: Any, Y: Any) -> Documents:
    """Check features and labels, or ``MultiLabel`` (as returned by ``read_xmc``) alone."""
    if isinstance(X, MultiLabel | Documents):
        if Y is not None:
            raise ValueError(f"{type(X).__name__} holds its labels; give it alone, without Y")
        X, Y = X.X, X.Y
    if Y is None:
        raise ValueError("give Y (documents, labels), a CSR matrix of grades, or MultiLabel")
    return Documents.from_matrices(X, Y)


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


# Labels by name


def named_labels(Y: Any) -> "list[Mapping[str, float]] | None":
    """The grade of each label of every document by name; None unless labels are given by name.

    A document has a collection of names, a mapping of names to grades, or one name; None is no label.

    >>> named_labels([["a", "b"], "b", {"c": 2}])
    [{'a': 1.0, 'b': 1.0}, {'b': 1.0}, {'c': 2.0}]
    >>> named_labels([[0, 1], [1, 0]]) is None
    True
    """
    if hasattr(Y, "tocsr") or getattr(Y, "ndim", 1) != 1 or isinstance(Y, str) or not isinstance(Y, Iterable):
        return None
    listed = [_names_of(own) for own in Y]
    if not any(isinstance(name, str) for names in listed for name in names):
        return None
    found: list[Mapping[str, float]] = []
    for k, names in enumerate(listed):
        wrong = next((name for name in names if not isinstance(name, str) or not name), None)
        if wrong is not None:
            raise DataError(f"document {k}: label {wrong!r:.40} is not a name; give every label as a text")
        grades = dict(names) if isinstance(names, Mapping) else dict.fromkeys(names, 1.0)
        if len(grades) < len(names):
            raise DataError(f"document {k}: a label occurs more than once in {list(names)!r:.80}; keep one of each")
        found.append({name: float(grade) for name, grade in grades.items()})
    return found


def _names_of(own: Any) -> "Mapping[Any, float] | Sequence[Any]":
    """The labels of one document, as a mapping or a list; numbers stay what they are."""
    if own is None:
        return ()
    if isinstance(own, str):
        return (own,)
    if isinstance(own, Mapping):
        return own
    return list(own) if isinstance(own, Iterable) else (own,)


def label_matrix(
    named: "Sequence[Mapping[str, float]]", known: Sequence[str] = ()
) -> "tuple[csr_matrix, tuple[str, ...]]":
    """Grades (documents, labels), and the names of the labels: ``known``, then the others in alphabetical order."""
    from scipy.sparse import csr_matrix

    there = set(known)
    names = (*known, *sorted({name for own in named for name in own} - there))
    place = {name: k for k, name in enumerate(names)}
    indices = [place[name] for own in named for name in own]
    data = [grade for own in named for grade in own.values()]
    indptr = np.concatenate([[0], np.cumsum([len(own) for own in named], dtype=np.int64)])
    return csr_matrix((np.array(data, float), np.array(indices, np.int64), indptr), (len(named), len(names))), names
