"""Extreme classification text: a header ``points features labels``, then ``label,label,... feature:value ...``, all
from 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from placet.data import DataError
from placet.io import blocks
from placet.io.blocks import MAX_FEATURES, Bad, Block, Desk, Store
from placet.io.files import Source, name_of, open_bytes, write_lines
from placet.io.numerals import whole, written
from placet.io.problems import OnError, Problems, shown

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_SHAPE = "a line is: label,label,... feature:value feature:value ..., all counted from 0"


@dataclass(frozen=True, eq=False, repr=False)
class MultiLabel:
    """Points with sparse features and sets of labels: ``X`` (points, features) and ``Y`` (points, labels), CSR; Y
    holds ones.
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
        """Counts of points, features and labels, and how many a point has."""
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


def read_xmc(source: Source, *, dtype: DTypeLike = np.float64, on_error: OnError = "raise") -> MultiLabel:
    """Points, features and labels from extreme classification text; the header's counts are checked."""
    name = name_of(source)
    problems = Problems(name, on_error)
    dtype = blocks.checked_dtype(dtype)
    with open_bytes(source) as file:
        desks = blocks.whole_lines(file, name)
        first = next(desks, None)
        if first is None:
            raise DataError(f"{name}: the file is empty; nothing can be read from it")
        end = int(np.argmax(first.text == 10)) + 1
        points, features, labels = _header(first.token(0, end), name)
        first.text, first.lines = first.text[end:], first.lines - 1
        work = partial(_parsed, features=features, labels=labels, dtype=dtype)
        parsed = blocks.parsed(work, _chained(first, desks), Store(False, None, dtype))
    for block in parsed[:1]:
        block.lines += 1  # the header
        block.columns["line"] += 1
        block.bad = [bad._replace(line=bad.line + 1) for bad in block.bad]
    blocks.report(parsed, problems)
    left_out = sum(len(block.bad) for block in parsed)
    return _checked(parsed, points - left_out, features, labels, dtype, name)


def _chained(first: Desk, desks: Iterator[Desk]) -> Iterator[Desk]:
    if first.lines:
        yield first
    yield from desks


def _header(line: bytes, name: str) -> tuple[int, int, int]:
    numbers = [n for token in line.decode(errors="replace").split() if (n := whole(token)) is not None]
    if len(numbers) != 3 or len(line.split()) != 3:
        said = shown(line.decode(errors="replace").strip())
        raise DataError(f"{name}:1: the header {said} is not three whole numbers; begin with: points features labels")
    points, features, labels = numbers
    for what, number in (("features", features), ("labels", labels)):
        if number > MAX_FEATURES:
            raise DataError(f"{name}:1: {number} {what} are more than {MAX_FEATURES}; correct the header")
    return points, features, labels


def _parsed(desk: Desk, *, features: int, labels: int, dtype: DTypeLike) -> Block:
    from placet.kernels import parse

    lines = desk.lines
    commas = int(np.count_nonzero(desk.text == parse.COMMA))
    label_ptr, label = desk.array("label_ptr", (lines + 1,), np.int64), desk.array("label", (commas + lines,), np.int32)
    line, bad = desk.array("line", (lines,), np.int64), desk.array("bad", (lines, 4), np.int64)
    csr = desk.csr()
    slow = desk.array("slow", (desk.colons, 3), np.int64)
    answer = parse.multilabel(desk.text, features, labels, label_ptr, label, line, *csr, slow, bad)
    rows = answer[0]
    noted = [_explained(desk, features, labels, *entry) for entry in bad[: answer[2]].tolist()]
    sets = np.empty(rows, dtype=object)
    for r in range(rows):
        sets[r] = np.sort(label[label_ptr[r] : label_ptr[r + 1]])
    block = blocks.finished(desk, {"line": line, "labels": sets}, csr, slow, noted, answer, 0, dtype)
    return _once(block)


def _once(block: Block) -> Block:
    """The block without the rows that name a label twice, which are noted."""
    twice = {r for r, own in enumerate(block.columns["labels"]) if len(own) > 1 and (own[1:] == own[:-1]).any()}
    for r in sorted(twice):
        block.bad.append(
            Bad(int(block.columns["line"][r]), "label twice", "a label occurs more than once", "keep one of each")
        )
    return block.without(twice) if twice else block


def _explained(desk: Desk, features: int, labels: int, line: int, kind: int, start: int, end: int) -> Bad:
    from placet.kernels import parse

    token = desk.token(start, end).decode(errors="replace")
    index, _, value = token.partition(":")
    said = {
        parse.LABEL: f"labels {shown(token)} are not whole numbers with commas between them",
        parse.LABEL_RANGE: f"label {shown(token)} is not in 0..{labels - 1}",
        parse.INDEX: f"{shown(token)} is not feature:value",
        parse.VALUE: f"feature {shown(index)[1:-1]} has the value {shown(value)}, which is not a finite number",
        parse.FEATURE_RANGE: f"feature index {shown(index)[1:-1]} is not in 0..{features - 1}",
    }
    beyond = kind in (parse.LABEL_RANGE, parse.FEATURE_RANGE)
    return Bad(line, str(kind), said[kind], "correct the header or the line" if beyond else _SHAPE)


def _checked(parsed: list[Block], points: int, features: int, labels: int, dtype: DTypeLike, name: str) -> MultiLabel:
    """The matrices, if there are as many points as the header says; blank lines after the last point are none."""
    from scipy.sparse import csr_matrix

    sets = blocks.column(parsed, "labels") if parsed else np.empty(0, dtype=object)
    X = blocks.matrix(parsed, features, True, Store(False, None, dtype))
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
    """Points as extreme classification text; a written file reads back equal."""

    def lines() -> Iterator[str]:
        X, Y = data.X, data.Y
        yield f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}"
        for r in range(X.shape[0]):
            own = ",".join(map(str, Y.indices[Y.indptr[r] : Y.indptr[r + 1]].tolist()))
            part = slice(X.indptr[r], X.indptr[r + 1])
            pairs = (f"{k}:{written(v)}" for k, v in zip(X.indices[part].tolist(), X.data[part].tolist()))
            yield " ".join([own, *pairs])

    write_lines(target, lines())
