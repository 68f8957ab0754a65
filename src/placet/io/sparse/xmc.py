"""Extreme classification text: a header ``points features labels``, then ``label,label,... feature:value ...``, with
numbering from 0; and scores of labels: a header ``points labels``, then ``label:score ...`` for each point.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from placet.data import DataError
from placet.data.arrays import offsets_from_sizes
from placet.data.parameters import with_checked_options
from placet.io.files import Source, name_of, open_bytes, read_lines, write_lines
from placet.io.sparse import sparse_text
from placet.io.sparse.sparse_text import MAX_FEATURES, Bad, Buffers, DenseTable, TextBlock
from placet.io.tables.tables import FileHead
from placet.io.text import TEXT, OnError, Problems, parse_decimal, parse_whole, quote
from placet.kernels import interpreted

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_SHAPE = "a line is: label,label,... feature:value feature:value ..., all counted from 0"


@dataclass(frozen=True, eq=False, repr=False)
class MultiLabel:
    r"""Points with features and sets of labels, CSR: ``X`` (points, features) and ``Y`` (points, labels) of ones.

    >>> import io
    >>> from placet.io import read_xmc
    >>> found = read_xmc(io.StringIO("2 3 4\n0,2 0:1.5 1:0.5\n3 2:1\n"))
    >>> found.X.shape, found.Y.toarray().astype(int).tolist()
    ((2, 3), [[1, 0, 1, 0], [0, 0, 0, 1]])
    """

    X: "csr_matrix"
    Y: "csr_matrix"

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def __repr__(self) -> str:
        return f"MultiLabel({len(self)} points, {self.X.shape[1]} features, {self.Y.shape[1]} labels)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MultiLabel):
            return NotImplemented
        pairs = ((self.X, other.X), (self.Y, other.Y))
        return all(a.shape == b.shape and (a != b).nnz == 0 for a, b in pairs)

    __hash__ = None  # type: ignore[assignment]

    def describe(self) -> dict[str, Any]:
        """Counts of points, features and labels, and means per point."""
        features, labels = np.diff(self.X.indptr), np.diff(self.Y.indptr)
        return {
            "kind": "multi-label",
            "points": len(self),
            "features": int(self.X.shape[1]),
            "labels": int(self.Y.shape[1]),
            "features per point": float(features.mean()) if len(self) else 0.0,
            "labels per point": float(labels.mean()) if len(self) else 0.0,
            "points without labels": int((labels == 0).sum()),
            "labels without points": int((np.bincount(self.Y.indices, minlength=self.Y.shape[1]) == 0).sum()),
        }


def is_xmc(first: str, suffix: str = "") -> bool:
    """Whether text is extreme classification: by its suffix, or by a first line of three whole numbers."""
    header = first.split()
    return suffix == ".xmc" or (len(header) == 3 and all(parse_whole(token) is not None for token in header))


def looks_like_xmc(head: FileHead) -> str | None:
    """Match a header of three whole numbers, followed by a line with features."""
    header = is_xmc(head.first) and (len(head.lines) < 2 or ":" in head.lines[1])
    return TEXT if header else None


@with_checked_options
def read_xmc(source: Source, *, dtype: DTypeLike = np.float64, on_error: OnError = "raise") -> MultiLabel:
    """Read points, features and labels from extreme classification text; the header's counts are checked.

    Returns
    -------
    MultiLabel
        The features ``X`` and the labels ``Y`` of each point.

    >>> import io
    >>> points = read_xmc(io.StringIO("2 3 2\\n0,1 0:0.5 2:1\\n1 1:2\\n"))
    >>> points.X.shape, points.Y.toarray().tolist()
    ((2, 3), [[1.0, 1.0], [0.0, 1.0]])
    """
    name = name_of(source)
    problems = Problems(name, on_error)
    dtype = sparse_text.checked_dtype(dtype)
    with open_bytes(source) as file:
        texts = sparse_text.read_blocks(file, name)
        first = next(texts, None)
        if first is None:
            raise DataError(f"{name}: the file is empty; nothing can be read from it")
        end = int(np.argmax(first.text == 10)) + 1
        points, features, labels = _header(first.token(0, end), name)
        first.text, first.lines = first.text[end:], first.lines - 1
        parse = partial(_parse, features=features, labels=labels, dtype=dtype)
        parsed = sparse_text.parse_blocks(parse, _chain(first, texts), DenseTable(False, None, dtype))
    for block in parsed[:1]:
        block.lines += 1  # the header
        block.columns["line"] += 1
        block.bad = [bad._replace(line=bad.line + 1) for bad in block.bad]
    sparse_text.report_bad_lines(parsed, problems)
    left_out = sum(len(block.bad) for block in parsed)
    return _matrices(parsed, points - left_out, features, labels, dtype, name)


def _chain(first: Buffers, others: Iterator[Buffers]) -> Iterator[Buffers]:
    if first.lines:
        yield first
    yield from others


def _header(line: bytes, name: str) -> tuple[int, int, int]:
    numbers = [n for token in line.decode(errors="replace").split() if (n := parse_whole(token)) is not None]
    if len(numbers) != 3 or len(line.split()) != 3:
        said = quote(line.decode(errors="replace").strip())
        raise DataError(f"{name}:1: the header {said} is not three whole numbers; begin with: points features labels")
    points, features, labels = numbers
    for what, number in (("features", features), ("labels", labels)):
        if number > MAX_FEATURES:
            raise DataError(f"{name}:1: {number} {what} are more than {MAX_FEATURES}; correct the header")
    return points, features, labels


def _parse(buffers: Buffers, *, features: int, labels: int, dtype: DTypeLike) -> TextBlock:
    lines = buffers.lines
    commas = int(np.count_nonzero(buffers.text == ord(",")))
    label_ptr = buffers.array("label_ptr", (lines + 1,), np.int64)
    label = buffers.array("label", (commas + lines,), np.int32)
    line, bad = buffers.array("line", (lines,), np.int64), buffers.array("bad", (lines, 4), np.int64)
    csr = buffers.csr()
    slow = buffers.array("slow", (buffers.colons, 3), np.int64)
    with np.errstate(over="ignore"):  # as in ``letor``
        answer = buffers.kernels.multilabel(buffers.content, features, labels, label_ptr, label, line, *csr, slow, bad)
    rows = answer[0]
    noted = [_explain(buffers, features, labels, *entry) for entry in bad[: answer[2]].tolist()]
    sets = np.empty(rows, dtype=object)
    for r in range(rows):
        sets[r] = np.sort(label[label_ptr[r] : label_ptr[r + 1]])
    block = sparse_text.build_block(buffers, {"line": line, "labels": sets}, csr, slow, noted, answer, 0, dtype)
    return _drop_repeats(block)


def _drop_repeats(block: TextBlock) -> TextBlock:
    """Drop the rows that have a label twice, and record them as bad."""
    twice = {r for r, own in enumerate(block.columns["labels"]) if len(own) > 1 and (own[1:] == own[:-1]).any()}
    for r in sorted(twice):
        block.bad.append(
            Bad(int(block.columns["line"][r]), "label twice", "a label occurs more than once", "keep one of each")
        )
    return block.drop(twice) if twice else block


def _explain(buffers: Buffers, features: int, labels: int, line: int, kind: int, start: int, end: int) -> Bad:
    kinds = interpreted("parse")
    token = buffers.token(start, end).decode(errors="replace")
    said = {
        kinds.LABEL: f"labels {quote(token)} are not comma-separated whole numbers",
        kinds.LABEL_RANGE: f"label {quote(token)} is not in 0..{labels - 1}",
    }
    text = said[kind] if kind in said else sparse_text.explain_pair(kind, token, 0, features - 1)
    beyond = kind in (kinds.LABEL_RANGE, kinds.FEATURE_RANGE)
    return Bad(line, str(kind), text, "correct the header or the line" if beyond else _SHAPE)


def _matrices(
    parsed: list[TextBlock], points: int, features: int, labels: int, dtype: DTypeLike, name: str
) -> MultiLabel:
    """The matrices, if there are as many points as the header says; blank lines after the last point do not count."""
    from scipy.sparse import csr_matrix

    sets = sparse_text.column(parsed, "labels") if parsed else np.empty(0, dtype=object)
    X = sparse_text.matrix(parsed, features, True, DenseTable(False, None, dtype))
    n = len(sets)
    while n > max(points, 0) and X.indptr[n] == X.indptr[n - 1] and len(sets[n - 1]) == 0:
        n -= 1
    if n != points:
        raise DataError(f"{name}: {n} points, but the header says {points}; correct the header or complete the file")
    indptr = np.concatenate([[0], np.cumsum([len(own) for own in sets[:n]])])
    indices = np.concatenate([np.zeros(0, np.int32), *sets[:n]])
    Y = csr_matrix((np.ones(len(indices)), indices, indptr), shape=(n, labels))
    return MultiLabel(X[:n], Y)


def write_xmc(data: MultiLabel, target: Source) -> None:
    r"""Write points as extreme classification text; a written file reads back equal.

    >>> import io
    >>> file = io.BytesIO()
    >>> write_xmc(read_xmc(io.StringIO("2 3 4\n0,2 0:1.5 1:0.5\n3 2:1\n")), file)
    >>> print(file.getvalue().decode())
    2 3 4
    0,2 0:1.5 1:0.5
    3 2:1
    """

    def lines() -> Iterator[str]:
        X, Y = data.X, data.Y
        yield f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}"
        for r, pairs in enumerate(sparse_text.format_rows(X, 0)):
            own = ",".join(map(str, Y.indices[Y.indptr[r] : Y.indptr[r + 1]].tolist()))
            yield f"{own} {pairs}" if pairs else own

    write_lines(target, lines())


# Scores of labels


def read_label_scores(source: Source) -> "csr_matrix":
    r"""Read scores (points, labels) as a CSR matrix whose stored entries, including zeros, are the proposed labels.

    Returns
    -------
    csr_matrix
        The scores (points, labels).

    >>> import io
    >>> read_label_scores(io.StringIO("2 4\n1:0.9 3:0.2\n0:0.5\n")).toarray()
    array([[0. , 0.9, 0. , 0.2],
           [0.5, 0. , 0. , 0. ]])
    """
    from scipy.sparse import csr_matrix

    name = name_of(source)
    problems = Problems(name, may_skip=False)
    (number, header), *lines = read_lines(source)
    if lines and not lines[-1][1]:
        lines.pop()  # the empty string after the last line end
    shape = [parse_whole(token) for token in header.split()]
    if len(shape) != 2 or None in shape:
        raise DataError(
            f"{name}:{number}: the header {quote(header.strip())} is not two whole numbers; begin with: points labels"
        )
    points, n_labels = (int(n) for n in shape if n is not None)
    label: list[int] = []
    score: list[float] = []
    sizes: list[int] = []
    for number, line in lines:
        if len(sizes) == points and not line.strip():
            continue  # blank lines after the last point do not count
        seen: set[int] = set()
        for token in line.split():
            index, _, text = token.partition(":")
            k, value = parse_whole(index), parse_decimal(text)
            if k is None or value is None:
                problems.add(number, "pair", f"{quote(token)} is not label:score", "write label:score label:score ...")
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
    """Write the stored entries as text, in their order; a written file reads back equal.

    >>> import io
    >>> from scipy.sparse import csr_matrix
    >>> file = io.BytesIO()
    >>> write_label_scores(csr_matrix([[0.5, 0.0], [0.0, 0.25]]), file)
    >>> print(file.getvalue().decode())
    2 2
    0:0.5
    1:0.25
    """

    def lines() -> Iterator[str]:
        yield f"{scores.shape[0]} {scores.shape[1]}"
        yield from sparse_text.format_rows(scores, 0)

    write_lines(target, lines())
