"""Relations between documents of a query, from the files that accompany LETOR sets: similarities, links, sitemaps."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from placet.data import DataError
from placet.data.errors import one_of
from placet.io.files import Source, name_of, read_lines
from placet.io.text import Problems, parse_decimal, parse_whole, quote

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Entry = tuple[int, int, float]
_SHAPES = {
    "similarity": "a line is: query document document value, or qid:query qdid:number number:value ...",
    "links": "a line is: source destination, two documents",
    "sitemap": "a line is: document depth length children parent, or document parent; parent -1 is none",
}


class DocumentIndex:
    """Index of documents: (query, document) -> row, and the queries of each document."""

    def __init__(self, qid: Sequence[Hashable], query: NDArray[np.int64], doc: Sequence[str | None]) -> None:
        self.query_of = {str(name): q for q, name in enumerate(qid)}
        self.offsets = np.append(0, np.cumsum(np.bincount(query, minlength=len(qid))))
        self.row: dict[tuple[int, str], int] = {}
        self.queries: dict[str, list[int]] = {}
        self.n = len(doc)
        for r, (q, name) in enumerate(zip(query.tolist(), doc)):
            if name is None:
                continue
            if (q, name) in self.row:
                raise DataError(f"document {name!r} occurs twice in query {qid[q]!r}; relations need one row of it")
            self.row[q, name] = r
            self.queries.setdefault(name, []).append(q)

    def pairs(self, a: str, b: str, value: float) -> list[Entry]:
        """Entries for a pair of documents in every query that contains both."""
        both = [q for q in self.queries.get(a, ()) if (q, b) in self.row]
        return [(self.row[q, a], self.row[q, b], value) for q in both]


def read_relations(
    sources: Mapping[str, Source], qid: Sequence[Hashable], query: NDArray[np.int64], doc: Sequence[str | None]
) -> tuple["dict[str, csr_matrix]", tuple[str, ...]]:
    """(rows, rows) matrices by name, and notes on how many entries join rows of one query.

    ``query`` (rows,) holds indices into ``qid``; ``doc`` (rows,) names the documents, None for rows without a name.
    "similarity" is symmetric (an entry given in one direction holds in both, and the larger of two different ones is
    used); "links" has entry (source, destination); "sitemap" has entry (parent, child).  Documents without a row, and
    pairs that occur together in no query, are left out.
    """
    from scipy.sparse import csr_matrix

    rows = DocumentIndex(qid, query, doc)
    found, notes = {}, []
    for name, source in sources.items():
        read = _READERS[one_of(name, _READERS, "relation")]
        if not rows.row and name != "similarity":
            raise DataError(f"{name_of(source)}: the rows have no names; put '#docid = name' at the end of each line")
        entries, lines = _entries(source, name, read, rows)
        i, j, value = (np.array(column) for column in zip(*entries)) if entries else (np.zeros(0, int),) * 3
        matrix = csr_matrix((value.astype(float), (i, j)), shape=(rows.n, rows.n))
        if name == "similarity":
            matrix = matrix.maximum(matrix.T).tocsr()
        else:
            matrix.data[:] = 1.0  # a link that is given twice counts once
        if not matrix.nnz:
            raise DataError(
                f"{name_of(source)}: none of {lines} lines joins two documents of one query; give the file of this set"
            )
        found[name] = matrix
        notes.append(f"{name}: {len(entries):,} entries join documents of one query ({lines:,} lines)")
    return found, tuple(notes)


def _entries(
    source: Source, name: str, read: "Callable[[list[str], DocumentIndex], list[Entry]]", rows: DocumentIndex
) -> tuple[list[Entry], int]:
    """The entries of a file, and its number of lines."""
    problems = Problems(name_of(source), may_skip=False)
    entries: list[Entry] = []
    lines = 0
    for number, text in read_lines(source):
        words = text.partition("#")[0].split()
        if not words:
            continue
        lines += 1
        try:
            entries += read(words, rows)
        except ValueError as error:
            problems.add(number, "relation", str(error), _SHAPES[name])
    problems.close()
    return entries, lines


def _similarity(words: list[str], rows: DocumentIndex) -> list[Entry]:
    if words[0].startswith("qid:"):
        return _similarity_by_number(words, rows)
    if len(words) != 4:
        raise ValueError(f"{len(words)} columns; there must be 4")
    q = rows.query_of.get(words[0])
    a, b = (rows.row.get((-1 if q is None else q, word)) for word in words[1:3])
    value = _value(words[3])
    return [] if a is None or b is None or a == b else [(a, b, value)]


def _similarity_by_number(words: list[str], rows: DocumentIndex) -> list[Entry]:
    """Entries of ``qid:10 qdid:1 3:0.7 2:0.5``, where documents are numbered from 1 within the query."""
    q = rows.query_of.get(words[0].removeprefix("qid:"))
    own = parse_whole(words[1].removeprefix("qdid:")) if len(words) > 1 and words[1].startswith("qdid:") else None
    if own is None:
        raise ValueError(f"{quote(' '.join(words[:2]))} is not qid:query qdid:number")
    pairs = [word.partition(":") for word in words[2:]]
    others = [(parse_whole(number), _value(value)) for number, _, value in pairs]
    if q is None:
        return []
    first, size = int(rows.offsets[q]), int(rows.offsets[q + 1] - rows.offsets[q])
    for number in (own, *(other for other, _ in others)):
        if number is None or not 1 <= number <= size:
            raise ValueError(f"document {number} is not in 1..{size}, the documents of query {words[0][4:]}")
    return [(first + own - 1, first + int(other or 0) - 1, value) for other, value in others if other != own]


def _link(words: list[str], rows: DocumentIndex) -> list[Entry]:
    if len(words) != 2:
        raise ValueError(f"{len(words)} columns; there must be 2")
    return rows.pairs(words[0], words[1], 1.0) if words[0] != words[1] else []


def _page(words: list[str], rows: DocumentIndex) -> list[Entry]:
    if len(words) not in (2, 5):
        raise ValueError(f"{len(words)} columns; there must be 2 or 5")
    return rows.pairs(words[-1], words[0], 1.0) if words[-1] not in ("-1", words[0]) else []


def _value(text: str) -> float:
    value = parse_decimal(text)
    if value is None:
        raise ValueError(f"{quote(text)} is not a finite number")
    return value


_READERS: dict[str, Callable[[list[str], DocumentIndex], list[Entry]]] = {
    "similarity": _similarity,
    "links": _link,
    "sitemap": _page,
}
RELATIONS = tuple(_READERS)
"""Names of the relations that can be read from files."""
