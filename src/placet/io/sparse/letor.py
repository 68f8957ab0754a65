"""LETOR / svmlight text, ``grade qid:query feature:value ... # comment``, and LETOR rank aggregation text, whose
features are the ranks given by engines, NULL where an engine did not rank the document.
"""

import os
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from placet.data import DataError, Queries, Rankings
from placet.data.arrays import is_sparse, set_columns, unique_names
from placet.data.parameters import with_checked_options
from placet.io.compression import COMPRESSED
from placet.io.files import Source, layout_of, name_of, open_bytes, read_lines, write_lines
from placet.io.sparse import sparse_text
from placet.io.sparse.relations import read_relations
from placet.io.sparse.sparse_text import MAX_FEATURES, Bad, Buffers, DenseTable, Sparse, TextBlock
from placet.io.tables.tables import FileHead
from placet.io.text import TEXT, OnError, Problems, format_number, parse_whole, quote
from placet.kernels import interpreted

_SHAPE = "a line is: grade qid:query 1:value 2:value ... # comment"
_AGG_SHAPE = "a line is: grade qid:query 1:rank 2:NULL ... #docid = name"
_LINE = re.compile(r"\s*[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?\s+(?:qid:\S+(?:\s|$)|[0-9]+:\S+(?:\s|$|#))")
_NULL = re.compile(r"\s[0-9]+:NULL(?:\s|$|#)")
_DOCID = re.compile(r"docid\s*=\s*(\S+)")


class QueriesBy(NamedTuple):
    """How LETOR text tells its queries apart: by ``qid:``, or by the file of their sizes in ``group``."""

    group: str | None = None


def looks_like_letor(head: FileHead) -> QueriesBy | None:
    """Match ``1 qid:..`` or ``1 1:..``; without ``qid:``, the sizes of the queries are in ``FILE.query`` next to it."""
    if not _LINE.match(head.first):
        return None
    return QueriesBy(None if " qid:" in head.first else sizes_beside(head.sources[0]))


def looks_like_letor_agg(head: FileHead) -> str | None:
    """Match LETOR text with a NULL."""
    ranks = _LINE.match(head.first) and any(_NULL.search(line.partition("#")[0]) for line in head.lines)
    return TEXT if ranks or head.suffix == ".agg" else None


def sizes_beside(source: Source) -> str | None:
    """The path of ``FILE.query`` next to ``FILE``, compressed or not, or None."""
    path = Path(name_of(source))
    stem = path.with_suffix("") if path.suffix.lower() in COMPRESSED else path
    return next((name for end in ("", *COMPRESSED) if os.path.exists(name := f"{stem}.query{end}")), None)


@with_checked_options
def read_letor(
    source: Source,
    *,
    group: Source | ArrayLike | None = None,
    n_features: int | None = None,
    max_features: int = MAX_FEATURES,
    zero_based: bool = False,
    sparse: Sparse = "auto",
    dtype: DTypeLike = np.float64,
    relations: Mapping[str, Source] | None = None,
    on_error: OnError = "raise",
) -> Queries:
    """Read queries from LETOR / svmlight text; rows of a query need not be adjacent, and grades are any finite numbers.

    ``group``: sizes of consecutive queries (an array, or a file with one size per line, such as LightGBM's ``.query``
    files), for text without ``qid:``.  Features are numbered from 1 (``zero_based``: from 0); an index beyond
    ``n_features``, or beyond ``max_features`` if that is not given, is an error.  ``sparse="auto"`` gives a dense table
    when at least a quarter of its cells are in the text, else CSR.  Numbers are correctly rounded to float64;
    ``dtype=np.float32`` halves the memory.  Query names are ``int`` if all names in the file are whole numbers, else
    text.

    ``relations``: files of "similarity", "links" and "sitemap" as in LETOR 3.0 (see ``placet.io.sparse.relations`` for
    their lines); rows are named by ``#docid = name``.  They become ``Queries.relations``.

    Returns
    -------
    Queries
        Rows with features, query by query.

    >>> import io
    >>> read_letor(io.StringIO("2 qid:1 1:0.5 2:3\\n0 qid:1 1:0.1 2:1\\n"))
    Queries(1 queries, 2 rows, 2 features)
    """
    problems = Problems(name_of(source), on_error)
    layout: QueriesBy | None = layout_of(source)
    group = layout.group if group is None and layout is not None else group
    dtype = sparse_text.checked_dtype(dtype)
    base = 0 if zero_based else 1
    limit = _feature_limit(n_features, max_features)
    named = relations is not None
    parsed, table = _read(source, base, limit, group is None, False, dtype, dense=sparse is not True, comments=named)
    sparse_text.report_bad_lines(parsed, problems)
    n_rows = sum(len(block.indptr) - 1 for block in parsed)
    if n_rows == 0:
        raise DataError(f"{problems.name}: no rows; {_SHAPE}")
    width = max(block.top for block in parsed) + 1 if n_features is None else n_features
    grade, line = sparse_text.column(parsed, "grade"), sparse_text.column(parsed, "line")
    qid = _query_names(parsed) if group is None else _query_numbers(group, line, parsed, problems.name)
    found = Queries.from_arrays(sparse_text.matrix(parsed, width, sparse, table), grade, qid)
    if is_sparse(found.X) and n_features is None and width > 10 * found.X.nnz:
        used = len(np.unique(found.X.indices))
        note = f"read as letor: of {width:,} features only {used:,} occur; check the largest index"
        set_columns(found, notes=(note,))
    if relations is None:
        return found
    names = _document_names(parsed)
    doc = [names[k] for k in found.row.tolist()]
    matrices, notes = read_relations(relations, found.qid, found.query, doc)
    return replace(found, relations=matrices, notes=(*found.notes, *notes))


def read_document_names(source: Source) -> list[str | None]:
    """The document of each row of LETOR text, from ``#docid = name``, in file order; None for rows without one."""
    return _document_names(_read(source, 1, MAX_FEATURES, False, False, np.float64, dense=False, comments=True)[0])


def _document_names(parsed: list[TextBlock]) -> list[str | None]:
    found = (_DOCID.search(text) for text in sparse_text.column(parsed, "comment").tolist())
    return [match.group(1) if match else None for match in found]


def _feature_limit(n_features: int | None, max_features: int) -> int:
    limit = max_features if n_features is None else n_features
    if not 0 < limit <= 2**31 - 1:
        raise ValueError(f"the number of features must be in 1..{2**31 - 1}, not {limit}")
    return limit


def _read(
    source: Source,
    base: int,
    limit: int,
    need_qid: bool,
    null: bool,
    dtype: DTypeLike,
    *,
    dense: bool,
    comments: bool = False,
) -> tuple[list[TextBlock], DenseTable]:
    """Parse all blocks of LETOR text, without raising errors for bad lines yet."""
    name = name_of(source)
    parse = partial(
        _parse, name=name, base=base, limit=limit, need_qid=need_qid, null=null, dtype=dtype, comments=comments
    )
    with open_bytes(source) as file:
        table = DenseTable(dense, sparse_text.plain_size(file), dtype)
        return sparse_text.parse_blocks(parse, sparse_text.read_blocks(file, name), table), table


def _parse(
    buffers: Buffers, *, name: str, base: int, limit: int, need_qid: bool, null: bool, dtype: DTypeLike, comments: bool
) -> TextBlock:
    lines, colons = buffers.lines, buffers.colons
    grade, qid = buffers.array("grade", (lines,), np.float64), buffers.array("qid", (lines,), np.int64)
    token, bad = buffers.array("token", (lines, 4), np.int64), buffers.array("bad", (lines, 4), np.int64)
    csr = buffers.csr()
    slow = buffers.array("slow", (colons + lines, 3), np.int64)
    with np.errstate(over="ignore"):  # a mantissa of 20 digits overflows, and is then reparsed exactly
        answer = buffers.kernels.letor(buffers.content, base, limit, need_qid, null, grade, qid, token, *csr, slow, bad)
    rows, n_bad = answer[0], answer[2]
    columns: dict[str, NDArray[Any]] = {"grade": grade, "qid": qid, "line": token[:, 3]}
    odd = np.flatnonzero(qid[:rows] < 0) if need_qid else ()
    if len(odd):
        names = qid[:rows].astype(object)
        for r in odd:
            names[r] = _name(buffers.token(token[r, 0], token[r, 1]), name)
        columns["qid"] = names
    if comments:
        columns["comment"] = _comments(buffers, token[:rows, 2])
    noted = [_explain(buffers, base, limit, *entry) for entry in bad[:n_bad].tolist()]
    return sparse_text.build_block(buffers, columns, csr, slow, noted, answer, base, dtype)


def _name(token: bytes, source: str) -> str:
    try:
        return token.decode()
    except UnicodeDecodeError:
        raise DataError(f"{source}: the query name {token!r} is not UTF-8; convert the file to UTF-8") from None


def _comments(buffers: Buffers, ends: NDArray[np.int64]) -> NDArray[Any]:
    text = buffers.text.tobytes()
    tails = (text[end : text.index(b"\n", end)].decode(errors="replace") for end in ends.tolist())
    return np.array([tail.lstrip("#").strip() for tail in tails], dtype=object)


def _explain(buffers: Buffers, base: int, limit: int, line: int, kind: int, start: int, end: int) -> Bad:
    """Describe a bad line."""
    kinds = interpreted("parse")
    token = buffers.token(start, end).decode(errors="replace")
    index = token.partition(":")[0]
    said = {
        kinds.GRADE: f"grade {quote(token)} is not a finite number",
        kinds.QID: "the query name after qid: is empty",
        kinds.NO_QID: "no qid:",
    }
    text = said[kind] if kind in said else sparse_text.explain_pair(kind, token, base, base + limit - 1)
    way_out = _SHAPE
    if kind == kinds.NO_QID:
        way_out = "give the sizes of the queries with group=, or put qid:query after the grade"
    elif kind == kinds.FEATURE_RANGE and parse_whole(index) == 0:
        way_out = "features count from 1 here; read with zero_based=True if the file counts from 0"
    elif kind == kinds.FEATURE_RANGE:
        way_out = "raise n_features= or max_features= if there are this many features"
    return Bad(line, str(kind) + (":0" if parse_whole(index) == 0 else ""), text, way_out)


def _query_names(parsed: list[TextBlock]) -> NDArray[Any]:
    """The query of every row: integers, or text if any name in the file is not a whole number."""
    qid = sparse_text.column(parsed, "qid")
    return np.array([str(name) for name in qid.tolist()], dtype=object) if qid.dtype == object else qid


def _query_numbers(
    group: Source | ArrayLike, line: NDArray[Any], parsed: list[TextBlock], name: str
) -> NDArray[np.int64]:
    """The query index of every row, from the sizes of consecutive queries; skipped lines count toward their query."""
    named = isinstance(group, str | os.PathLike) or hasattr(group, "read")
    sizes = read_sizes(cast(Source, group)) if named else np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 0).any():
        raise DataError("group must be whole numbers, the rows of each query in turn")
    before, left_out = 0, []
    for block in parsed:
        left_out += [before + bad.line + 1 for bad in block.bad]
        before += block.lines
    every = np.union1d(line, left_out)
    total = sum(sizes.tolist())  # Python integers do not overflow
    if total != len(every):
        raise DataError(f"{name}: {len(every)} rows, but group sizes add up to {total}; give the sizes of this file")
    return np.repeat(np.arange(len(sizes)), sizes)[np.searchsorted(every, line)]


def read_sizes(source: Source) -> NDArray[np.int64]:
    r"""Read the sizes of consecutive queries, one whole number per line.

    Returns
    -------
    array of int
        The number of rows of each query.

    >>> import io
    >>> read_sizes(io.StringIO("12\n7\n"))
    array([12,  7])
    """
    problems = Problems(name_of(source), may_skip=False)
    sizes = []
    for number, text in read_lines(source):
        if text.strip():
            size = parse_whole(text.strip())
            if size is None:
                problems.add(number, "size", f"{quote(text.strip())} is not a whole number", "write one size per line")
            else:
                sizes.append(size)
    problems.close()
    return np.array(sizes, dtype=np.int64)


def write_letor(queries: Queries, target: Source) -> None:
    """Write queries as LETOR text in the caller's order; read back with ``n_features`` and ``sparse`` they are equal.

    Dense tables are written with their zeros, CSR matrices as they are stored.  The format has no place for weights and
    relations: weights other than 1 are a ``DataError``.

    >>> import io
    >>> import placet
    >>> file = io.BytesIO()
    >>> write_letor(placet.Queries.from_arrays([[1.5, 0.0], [0.5, 2.0]], [1, 0], [7, 7]), file)
    >>> print(file.getvalue().decode())
    1 qid:7 1:1.5 2:0
    0 qid:7 1:0.5 2:2
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
    order = np.argsort(queries.row, kind="stable")
    query, grade = queries.query[order].tolist(), queries.grade[order].tolist()
    rows = zip(grade, query, sparse_text.format_rows(queries.X[order], 1))
    write_lines(target, (f"{format_number(g)} qid:{names[q]} {pairs}".rstrip() for g, q, pairs in rows))


# Rank aggregation


@dataclass(frozen=True, eq=False, repr=False)
class LetorAgg:
    r"""Documents ranked by engines; rows ``offsets[q]:offsets[q + 1]`` are the documents of query ``qid[q]``.

    ``rank`` (rows, engines) float64: lower is better, NaN where the engine did not rank the document.  ``grade``
    (rows,): relevance.  ``doc`` (rows,): document names.  ``row`` (rows,): the index of each row in the file, from 0,
    if the rows come from one.  ``rankings``: one ballot for each query and engine that ranked any of its documents
    (instance = query, agent = engine 1, 2, ...); item ``r`` is row ``r``, so ``grade[item]`` is its relevance.

    >>> import io
    >>> from placet.io import read_letor_agg
    >>> found = read_letor_agg(io.StringIO("1 qid:7 1:2 2:NULL #docid = x\n0 qid:7 1:1 2:1 #docid = y\n"))
    >>> found.rank, found.doc
    (array([[ 2., nan],
           [ 1.,  1.]]), ('x', 'y'))
    """

    rankings: Rankings
    grade: NDArray[np.float64]
    offsets: NDArray[np.int64]
    qid: tuple[Hashable, ...]
    doc: tuple[str, ...]
    rank: NDArray[np.float64]
    row: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.qid)

    def __repr__(self) -> str:
        return f"LetorAgg({len(self)} queries, {len(self.grade)} documents, {self.rank.shape[1]} engines)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LetorAgg):
            return NotImplemented
        return (
            (self.qid, self.doc) == (other.qid, other.doc)
            and self.rankings == other.rankings
            and np.array_equal(self.grade, other.grade)
            and np.array_equal(self.offsets, other.offsets)
            and np.array_equal(self.rank, other.rank, equal_nan=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def describe(self) -> dict[str, Any]:
        """Counts of queries, documents, engines, ballots and grades, and of documents that no engine ranked."""
        values, counts = np.unique(self.grade, return_counts=True)
        listed = ~np.isnan(self.rank)
        return {
            "kind": "rank aggregation",
            "queries": len(self),
            "documents": len(self.grade),
            "engines": self.rank.shape[1],
            "ballots": len(self.rankings),
            "documents ranked by no engine": int((~listed.any(axis=1)).sum()),
            "coverage": float(listed.mean()),
            "grades": dict(zip(values.tolist(), counts.tolist())),
        }


@with_checked_options
def read_letor_agg(source: Source, *, max_engines: int = 4096, on_error: OnError = "raise") -> LetorAgg:
    """Read rank lists of engines and relevance grades from LETOR rank aggregation text; lower ranks are better.

    An engine that is missing from a line did not rank that document, as with NULL.

    Returns
    -------
    LetorAgg
        ``rankings`` has one list per query and engine; the grades stand beside it.

    >>> import io
    >>> lists = read_letor_agg(io.StringIO("1 qid:7 1:2 2:1 #docid = x\\n0 qid:7 1:1 2:NULL #docid = y\\n"))
    >>> lists.rankings.orders()
    [['7:y', '7:x'], ['7:x']]
    """
    problems = Problems(name_of(source), on_error)
    parsed, _ = _read(source, 1, max_engines, True, True, np.float64, dense=False, comments=True)
    sparse_text.report_bad_lines(parsed, problems)
    rows = sum(len(block.indptr) - 1 for block in parsed)
    engines = max((block.top for block in parsed), default=-1) + 1
    if rows == 0 or engines == 0:
        raise DataError(f"{problems.name}: no rows with engines; {_AGG_SHAPE}")
    grade = sparse_text.column(parsed, "grade")
    doc = np.array(_document_names(parsed), dtype=object)
    named = _query_names(parsed)
    rank = _ranks(parsed, rows, engines, problems.name)
    grouped = Queries.from_arrays(rank, grade, named, missing="keep")
    order, place = grouped.row, np.arange(rows) - grouped.offsets[:-1][grouped.query]
    docs = tuple(str(k + 1) if name is None else name for name, k in zip(doc[order].tolist(), place.tolist()))
    rankings = _ballots(grouped, docs, problems.name)
    return LetorAgg(rankings, grouped.grade, grouped.offsets, grouped.qid, docs, grouped.X, grouped.row)


def _ranks(parsed: list[TextBlock], rows: int, engines: int, name: str) -> NDArray[np.float64]:
    """Ranks (rows, engines), NaN where there is none."""
    if rows * engines > 1 << 28:
        raise DataError(
            f"{name}: {rows} rows x {engines} engines are too many for a table; number the engines 1, 2, ..."
        )
    rank = np.full((rows, engines), np.nan)
    at = 0
    for block in parsed:
        n = len(block.indptr) - 1
        row = np.repeat(np.arange(at, at + n), np.diff(block.indptr))
        width = len(block.value) // n if n else 0
        rank[row, np.tile(np.arange(width), n) if block.index is None else block.index] = block.value
        at += n
    return rank


def _ballots(grouped: Queries, docs: tuple[str, ...], name: str) -> Rankings:
    """One ballot for each query and engine with a rank in it, sorted by query, then engine."""
    items = tuple(f"{grouped.qid[q]}:{doc}" for q, doc in zip(grouped.query.tolist(), docs))
    try:
        unique_names(items, "document")
    except DataError as error:
        raise DataError(
            f"{name}: {error}; names here are query:docid, and a query has each document once: remove the repeats"
        ) from None
    engines = grouped.X.shape[1]
    row, engine = np.nonzero(~np.isnan(grouped.X))
    rank = grouped.X[row, engine]
    ballot = grouped.query[row] * engines + engine
    order = np.lexsort((row, rank, ballot))
    present, start = np.unique(ballot[order], return_index=True)
    tier = np.unique(rank, return_inverse=True)[1]  # Rankings renumbers them within each ballot
    return Rankings(
        row[order],
        tier[order],
        np.append(start, len(row)),
        agent=present % engines,
        instance=present // engines,
        items=items,
        agents=tuple(range(1, engines + 1)),
        instances=grouped.qid,
        score=-rank[order],
    )


def write_letor_agg(data: LetorAgg, target: Source) -> None:
    r"""Write rank lists as LETOR rank aggregation text, query by query; a written file reads back equal.

    >>> import io
    >>> text = "1 qid:7 1:2 2:NULL #docid = x\n0 qid:7 1:1 2:1 #docid = y\n"
    >>> file = io.BytesIO()
    >>> write_letor_agg(read_letor_agg(io.StringIO(text)), file)
    >>> print(file.getvalue().decode())
    1 qid:7 1:2 2:NULL #docid = x
    0 qid:7 1:1 2:1 #docid = y
    """

    def lines() -> Any:
        for q, name in enumerate(data.qid):
            for r in range(data.offsets[q], data.offsets[q + 1]):
                ranks = ("NULL" if np.isnan(v) else format_number(v) for v in data.rank[r].tolist())
                pairs = (f"{k}:{rank}" for k, rank in enumerate(ranks, 1))
                yield " ".join([format_number(data.grade[r]), f"qid:{name}", *pairs, f"#docid = {data.doc[r]}"])

    write_lines(target, lines())
