"""LETOR rank aggregation text: ``grade qid:query engine:rank ... #docid = ...``, NULL where an engine did not rank."""

import re
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placet.data import DataError, Queries, Rankings
from placet.io import blocks
from placet.io.files import Source, name_of, write_lines
from placet.io.letor import query_names, read_blocks
from placet.io.numerals import written
from placet.io.problems import OnError, Problems

_DOCID = re.compile(r"docid\s*=\s*(\S+)")
_SHAPE = "a line is: grade qid:query 1:rank 2:NULL ... #docid = name"


@dataclass(frozen=True, eq=False, repr=False)
class LetorAgg:
    """Documents ranked by engines; rows ``offsets[q]:offsets[q + 1]`` are the documents of query ``qid[q]``.

    ``rank`` (rows, engines) float64: lower is better, NaN where the engine did not rank the document.  ``grade``
    (rows,) relevance.  ``doc`` (rows,) document names.  ``rankings``: one ballot for each query and engine that
    ranked anything in it (instance = query, agent = engine 1, 2, ...); item ``r`` is row ``r``, so ``grade[item]`` is
    its relevance.
    """

    rankings: Rankings
    grade: NDArray[np.float64]
    offsets: NDArray[np.int64]
    qid: tuple[Hashable, ...]
    doc: tuple[str, ...]
    rank: NDArray[np.float64]

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
        """Counts of queries, documents, engines and ballots, and documents that no engine ranked."""
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


def read_letor_agg(source: Source, *, max_engines: int = 4096, on_error: OnError = "raise") -> LetorAgg:
    """Rank lists of engines and relevance grades from LETOR rank aggregation text; ranks are numbers, lower is better.

    An engine that a line does not name did not rank that document, as with NULL.
    """
    problems = Problems(name_of(source), on_error)
    parsed, _ = read_blocks(source, 1, max_engines, True, True, np.float64, dense=False, comments=True)
    blocks.report(parsed, problems)
    rows = sum(len(block.indptr) - 1 for block in parsed)
    engines = max((block.top for block in parsed), default=-1) + 1
    if rows == 0 or engines == 0:
        raise DataError(f"{problems.name}: no rows with engines; {_SHAPE}")
    grade, comment = blocks.column(parsed, "grade"), blocks.column(parsed, "comment")
    found = [_DOCID.search(text) for text in comment]
    doc = np.array([match.group(1) if match else None for match in found], dtype=object)
    named = query_names(parsed)
    rank = _ranks(parsed, rows, engines, problems.name)
    grouped = Queries.from_arrays(rank, grade, named, missing="keep")
    order, place = grouped.row, np.arange(rows) - grouped.offsets[:-1][grouped.query]
    docs = tuple(str(k + 1) if name is None else name for name, k in zip(doc[order].tolist(), place.tolist()))
    rankings = _ballots(grouped, docs, problems.name)
    return LetorAgg(rankings, grouped.grade, grouped.offsets, grouped.qid, docs, grouped.X)


def _ranks(parsed: list[blocks.Block], rows: int, engines: int, name: str) -> NDArray[np.float64]:
    """(rows, engines), NaN where there is no rank."""
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
    """One ballot for each query and engine with a rank in it, in that order."""
    items = tuple(f"{grouped.qid[q]}:{doc}" for q, doc in zip(grouped.query.tolist(), docs))
    if len(set(items)) != len(items):
        seen: set[str] = set()
        twice = [item for item in items if item in seen or seen.add(item)]  # type: ignore[func-returns-value]
        raise DataError(
            f"{name}: document {twice[0]!r} (query:docid) occurs more than once ({len(twice)} such rows); "
            "a query has each document once: remove the repeats"
        )
    engines = grouped.X.shape[1]
    row, engine = np.nonzero(~np.isnan(grouped.X))
    rank = grouped.X[row, engine]
    ballot = grouped.query[row] * engines + engine
    order = np.lexsort((row, rank, ballot))
    present, start = np.unique(ballot[order], return_index=True)
    tier = np.unique(rank, return_inverse=True)[1]  # Rankings renumbers them inside each ballot
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
    """Rank lists as LETOR rank aggregation text, queries one after the other; a written file reads back equal."""

    def lines() -> Any:
        for q, name in enumerate(data.qid):
            for r in range(data.offsets[q], data.offsets[q + 1]):
                ranks = (f"{k}:{'NULL' if np.isnan(v) else written(v)}" for k, v in enumerate(data.rank[r].tolist(), 1))
                yield " ".join([written(data.grade[r]), f"qid:{name}", *ranks, f"#docid = {data.doc[r]}"])

    write_lines(target, lines())
