"""Scores of labels as text: a header ``points labels``, then for each point ``label:score ...``, labels from 0.

The form in which tools of extreme classification exchange predictions: a point has as many labels as were proposed.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from placet.data import DataError
from placet.data.arrays import list_of_rows, offsets_from_sizes
from placet.io.files import Source, bare_suffix, first_lines, name_of, peek, read_lines, write_lines
from placet.io.judged import Judged
from placet.io.numerals import decimal, whole, written
from placet.io.problems import Problems, shown
from placet.io.xmc import read_xmc

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def read_label_scores(source: Source) -> "csr_matrix":
    """Scores (points, labels) as a CSR matrix whose stored entries are the labels proposed; a 0 is stored too."""
    from scipy.sparse import csr_matrix

    name = name_of(source)
    problems = Problems(name, may_skip=False)
    (number, header), *lines = read_lines(source)
    if lines and not lines[-1][1]:
        lines.pop()  # what follows the last end of line
    shape = [whole(token) for token in header.split()]
    if len(shape) != 2 or None in shape:
        raise DataError(
            f"{name}:{number}: the header {shown(header.strip())} is not two whole numbers; begin with: points labels"
        )
    points, n_labels = (int(n) for n in shape if n is not None)
    label: list[int] = []
    score: list[float] = []
    sizes: list[int] = []
    for number, line in lines:
        if len(sizes) == points and not line.strip():
            continue  # blank lines after the last point are none
        seen: set[int] = set()
        for token in line.split():
            index, _, text = token.partition(":")
            k, value = whole(index), decimal(text)
            if k is None or value is None:
                problems.add(number, "pair", f"{shown(token)} is not label:score", "write label:score label:score ...")
            elif k >= n_labels:
                problems.add(
                    number, "range", f"label {k} is not in 0..{n_labels - 1}", "correct the header or the line"
                )
            elif k in seen:
                problems.add(number, "twice", f"label {k} occurs more than once", "keep one of each")
            else:
                seen.add(k)
                label.append(k)
                score.append(value)
        sizes.append(len(seen))
    problems.close()
    if len(sizes) != points:
        raise DataError(
            f"{name}: {len(sizes)} points, but the header says {points}; correct the header or complete the file"
        )
    return csr_matrix((np.array(score), np.array(label, np.int64), offsets_from_sizes(sizes)), shape=(points, n_labels))


def write_label_scores(scores: "csr_matrix", target: Source) -> None:
    """Stored entries as text, in their order; a written file reads back equal."""

    def lines() -> Iterator[str]:
        yield f"{scores.shape[0]} {scores.shape[1]}"
        for r in range(scores.shape[0]):
            part = slice(scores.indptr[r], scores.indptr[r + 1])
            pairs = zip(scores.indices[part].tolist(), scores.data[part].tolist())
            yield " ".join(f"{label}:{written(value)}" for label, value in pairs)

    write_lines(target, lines())


def is_xmc(source: Source) -> bool:
    """Whether a source is extreme classification text: by its suffix, or by a header of three whole numbers."""
    head, _ = peek(source)
    header = next(iter(first_lines(head, 1)), "").split()
    return bare_suffix(source) == ".xmc" or (len(header) == 3 and all(whole(token) is not None for token in header))


def read_judged_labels(scores: Source, labels: Source) -> Judged:
    """Scores of labels met with the true labels of extreme classification text."""
    return judge_labels(read_label_scores(scores), read_xmc(labels).Y)


def judge_labels(scores: "csr_matrix", Y: "csr_matrix") -> Judged:
    """Meet proposed labels with true ones: a list per point, a row per label proposed or true; ``name`` is the label.

    True labels that were not proposed have the score -inf; labels proposed that are not true have grade 0.
    """
    if scores.shape != Y.shape:
        raise DataError(
            f"scores are of {scores.shape[0]} points and {scores.shape[1]} labels, the truth of {Y.shape[0]} points "
            f"and {Y.shape[1]} labels; give two that belong together"
        )
    points, n_labels = Y.shape
    asked = list_of_rows(scores.indptr.astype(np.int64)) * n_labels + scores.indices
    true = list_of_rows(Y.indptr.astype(np.int64)) * n_labels + Y.indices
    cells = np.union1d(asked, true)
    score, grade = np.full(len(cells), -np.inf), np.zeros(len(cells))
    score[np.searchsorted(cells, asked)] = scores.data
    grade[np.searchsorted(cells, true)] = Y.data
    offsets = offsets_from_sizes(np.bincount(cells // n_labels, minlength=points) if n_labels else np.zeros(points))
    return Judged(score, grade, offsets, tuple(range(points)), cells % n_labels if n_labels else cells)
