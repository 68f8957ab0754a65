"""LETOR / svmlight text: ``grade qid:query feature:value ... # comment``."""

import os
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from placet.data import DataError, Queries
from placet.io import blocks
from placet.io.blocks import MAX_FEATURES, Bad, Block, Desk, Sparse, Store
from placet.io.files import Source, name_of, open_bytes, read_lines, write_lines
from placet.io.numerals import whole, written
from placet.io.problems import OnError, Problems, shown

_SHAPE = "a line is: grade qid:query 1:value 2:value ... # comment"


def read_letor(
    source: Source,
    *,
    group: Source | ArrayLike | None = None,
    n_features: int | None = None,
    max_features: int = MAX_FEATURES,
    zero_based: bool = False,
    sparse: Sparse = "auto",
    dtype: DTypeLike = np.float64,
    on_error: OnError = "raise",
) -> Queries:
    """Queries from LETOR / svmlight text; rows of a query may lie apart, and grades may be any finite numbers.

    ``group``: sizes of consecutive queries (an array, or a file with one size per line, as LightGBM's ``.query``
    files), for text without ``qid:``.  Features are numbered from 1 (``zero_based``: from 0); an index beyond
    ``n_features``, or ``max_features`` where that is not given, is an error.  ``sparse="auto"`` gives a dense table
    when at least a quarter of its cells are in the text, else CSR.  Numbers are correctly rounded to float64;
    ``dtype=np.float32`` halves the memory. Queries named by whole numbers are ``int``, unless any name in the file is
    not one: then all are text.
    """
    problems = Problems(name_of(source), on_error)
    dtype = blocks.checked_dtype(dtype)
    base = 0 if zero_based else 1
    limit = _limit(n_features, max_features, base)
    parsed, store = read_blocks(source, base, limit, group is None, False, dtype, dense=sparse is not True)
    blocks.report(parsed, problems)
    n_rows = sum(len(block.indptr) - 1 for block in parsed)
    if n_rows == 0:
        raise DataError(f"{problems.name}: no rows; {_SHAPE}")
    width = max(block.top for block in parsed) + 1 if n_features is None else n_features
    grade, line = blocks.column(parsed, "grade"), blocks.column(parsed, "line")
    qid = query_names(parsed) if group is None else _grouped(group, line, parsed, problems.name)
    return Queries.from_arrays(blocks.matrix(parsed, width, sparse, store), grade, qid)


def _limit(n_features: int | None, max_features: int, base: int) -> int:
    limit = max_features if n_features is None else n_features
    if not 0 < limit <= 2**31 - 1:
        raise ValueError(f"the number of features must be in 1..{2**31 - 1}, not {limit}")
    return limit


def read_blocks(
    source: Source,
    base: int,
    limit: int,
    need_qid: bool,
    null: bool,
    dtype: DTypeLike,
    *,
    dense: bool,
    comments: bool = False,
) -> tuple[list[Block], Store]:
    """Every block of LETOR text, parsed; nothing is raised for bad lines yet."""
    name = name_of(source)
    work = partial(
        _parsed, name=name, base=base, limit=limit, need_qid=need_qid, null=null, dtype=dtype, comments=comments
    )
    with open_bytes(source) as file:
        store = Store(dense, blocks.plain_size(file), dtype)
        return blocks.parsed(work, blocks.whole_lines(file, name), store), store


def _parsed(
    desk: Desk, *, name: str, base: int, limit: int, need_qid: bool, null: bool, dtype: DTypeLike, comments: bool
) -> Block:
    from placet.kernels import parse

    lines, colons = desk.lines, desk.colons
    grade, qid = desk.array("grade", (lines,), np.float64), desk.array("qid", (lines,), np.int64)
    token, bad = desk.array("token", (lines, 4), np.int64), desk.array("bad", (lines, 4), np.int64)
    csr = desk.csr()
    slow = desk.array("slow", (colons + lines, 3), np.int64)
    answer = parse.letor(desk.text, base, limit, need_qid, null, grade, qid, token, *csr, slow, bad)
    rows, n_bad = answer[0], answer[2]
    columns: dict[str, NDArray[Any]] = {"grade": grade, "qid": qid, "line": token[:, 3]}
    odd = np.flatnonzero(qid[:rows] < 0) if need_qid else ()
    if len(odd):
        names = qid[:rows].astype(object)
        for r in odd:
            names[r] = _name(desk.token(token[r, 0], token[r, 1]), name)
        columns["qid"] = names
    if comments:
        columns["comment"] = _comments(desk, token[:rows, 2])
    noted = [_explained(desk, base, limit, *entry) for entry in bad[:n_bad].tolist()]
    return blocks.finished(desk, columns, csr, slow, noted, answer, base, dtype)


def _name(token: bytes, source: str) -> str:
    try:
        return token.decode()
    except UnicodeDecodeError:
        raise DataError(f"{source}: the query name {token!r} is not UTF-8; convert the file to UTF-8") from None


def _comments(desk: Desk, ends: NDArray[np.int64]) -> NDArray[Any]:
    text = desk.text.tobytes()
    tails = (text[end : text.index(b"\n", end)].decode(errors="replace") for end in ends.tolist())
    return np.array([tail.lstrip("#").strip() for tail in tails], dtype=object)


def _explained(desk: Desk, base: int, limit: int, line: int, kind: int, start: int, end: int) -> Bad:
    """A bad line in words."""
    from placet.kernels import parse

    token = desk.token(start, end).decode(errors="replace")
    index, _, value = token.partition(":")
    said = {
        parse.GRADE: f"grade {shown(token)} is not a finite number",
        parse.QID: "the query name after qid: is empty",
        parse.NO_QID: "no qid:",
        parse.INDEX: f"{shown(token)} is not feature:value",
        parse.VALUE: f"feature {shown(index)[1:-1]} has the value {shown(value)}, which is not a finite number",
        parse.FEATURE_RANGE: f"feature index {shown(index)[1:-1]} is not in {base}..{base + limit - 1}",
    }
    way_out = _SHAPE
    if kind == parse.NO_QID:
        way_out = "give the sizes of the queries with group=, or put qid:query after the grade"
    elif kind == parse.FEATURE_RANGE and whole(index) == 0:
        way_out = "features count from 1 here; read with zero_based=True if the file counts from 0"
    elif kind == parse.FEATURE_RANGE:
        way_out = "raise n_features= or max_features= if there are so many features"
    return Bad(line, str(kind) + (":0" if whole(index) == 0 else ""), said[kind], way_out)


def query_names(parsed: list[Block]) -> NDArray[Any]:
    """The query of every row: whole numbers, or text where any name in the file is not a whole number."""
    qid = blocks.column(parsed, "qid")
    return np.array([str(name) for name in qid.tolist()], dtype=object) if qid.dtype == object else qid


def _grouped(group: Source | ArrayLike, line: NDArray[Any], parsed: list[Block], name: str) -> NDArray[np.int64]:
    """The query number of every row from the sizes of consecutive queries; lines left out count in their query."""
    named = isinstance(group, str | os.PathLike) or hasattr(group, "read")
    sizes = read_sizes(cast(Source, group)) if named else np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 0).any():
        raise DataError("group must be whole numbers, the rows of each query in turn")
    before, left_out = 0, []
    for block in parsed:
        left_out += [before + bad.line + 1 for bad in block.bad]
        before += block.lines
    every = np.union1d(line, left_out)
    if sizes.sum() != len(every):
        raise DataError(
            f"{name}: {len(every)} rows, but group sizes add up to {sizes.sum()}; give the sizes of this file"
        )
    return np.repeat(np.arange(len(sizes)), sizes)[np.searchsorted(every, line)]


def read_sizes(source: Source) -> NDArray[np.int64]:
    """Sizes of consecutive queries, one whole number per line."""
    problems = Problems(name_of(source), may_skip=False)
    sizes = []
    for number, text in read_lines(source):
        if text.strip():
            size = whole(text.strip())
            if size is None:
                problems.add(number, "size", f"{shown(text.strip())} is not a whole number", "write one size per line")
            else:
                sizes.append(size)
    problems.close()
    return np.array(sizes, dtype=np.int64)


def write_letor(queries: Queries, target: Source) -> None:
    """Queries as LETOR text, rows in the caller's order; read back with ``n_features`` and ``sparse`` they are equal.

    Dense tables are written with their zeros, CSR without what it does not store.  Weights and relations have no
    place in this format: other weights than 1 are a ``DataError``.
    """
    if not (queries.weight == 1).all():
        raise DataError("LETOR text has no place for query weights; set them to 1 before writing")
    if not np.isfinite(queries.X.sum(dtype=np.float64)):
        raise DataError("LETOR text has no missing values; replace the NaN in X before writing")
    names = [str(name) for name in queries.qid]
    for name in names:
        if not name or any(c <= " " or c == "#" for c in name):
            raise DataError(
                f"query name {name!r} cannot be written: LETOR names have no spaces and no #; rename the query"
            )
    write_lines(target, _rows(queries, names))


def _rows(queries: Queries, names: list[str]) -> Iterator[str]:
    X, query = queries.X, queries.query
    dense = isinstance(X, np.ndarray)
    labels = [f"{k + 1}:" for k in range(queries.n_features)] if dense else []
    for r in np.argsort(queries.row, kind="stable").tolist():
        if dense:
            pairs = [label + written(v) for label, v in zip(labels, X[r].tolist())]
        else:
            part = slice(X.indptr[r], X.indptr[r + 1])
            pairs = [f"{k + 1}:{written(v)}" for k, v in zip(X.indices[part].tolist(), X.data[part].tolist())]
        yield " ".join([written(queries.grade[r]), f"qid:{names[query[r]]}", *pairs])
