"""TREC files: runs (``topic Q0 document rank score tag``) and relevance judgments, with or without subtopics."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from placet.data import DataError, Rankings
from placet.data.arrays import encode, frozen, offsets_from_sizes
from placet.data.parameters import with_checked_options
from placet.io.files import Source, name_of, read_lines, write_lines
from placet.io.tables.tables import FileHead
from placet.io.text import TEXT, OnError, Problems, format_number, parse_decimal, quote

_RUN = "a line is: topic Q0 document rank score tag"
_QRELS = "a line is: topic iteration document grade, or topic subtopic document grade"


def looks_like_trec_run(head: FileHead) -> str | None:
    """Match text with six fields, the fifth a number."""
    fields = head.first.split()
    return TEXT if len(fields) == 6 and parse_decimal(fields[4]) is not None else None


@with_checked_options
def read_trec_run(source: Source, *, on_error: OnError = "raise") -> Rankings:
    """Read one ballot per topic and run: instance = topic, agent = tag, items = documents, by descending score.

    The rank column is ignored, as in ``trec_eval``, and equal scores tie.  A document may occur only once per topic and
    run.

    Returns
    -------
    Rankings
        One list per topic and run.

    >>> import io
    >>> run = read_trec_run(io.StringIO("1 Q0 doc7 1 9.5 bm25\\n1 Q0 doc9 2 3.1 bm25\\n"))
    >>> run.orders(), run.instances, run.agents
    ([['doc7', 'doc9']], ('1',), ('bm25',))
    """
    problems = Problems(name_of(source), on_error)
    rows: list[tuple[str, str, str, float]] = []
    seen: set[tuple[str, str, str]] = set()
    for number, fields in _fields(source, 6, problems, _RUN):
        topic, _, doc, _, said, tag = fields
        score = parse_decimal(said)
        if score is None:
            problems.add(number, "score", f"score {quote(said)} is not a finite number", _RUN)
        elif (topic, tag, doc) in seen:
            text = f"document {quote(doc)} occurs more than once for topic {quote(topic)}"
            problems.add(number, "twice", text, "keep one of them")
        else:
            seen.add((topic, tag, doc))
            rows.append((topic, tag, doc, score))
    problems.close()
    if not rows:
        raise DataError(f"{problems.name}: no results; {_RUN}")
    topics, tags, docs, scores = zip(*rows)
    ballot, pairs = encode(list(zip(topics, tags)), "topic and tag")
    item, items = encode(docs, "document")
    value = np.array(scores)
    tier = np.unique(-value, return_inverse=True)[1]
    order = np.lexsort((item, tier, ballot))
    offsets = offsets_from_sizes(np.bincount(ballot, minlength=len(pairs)))
    instance, agent = zip(*pairs)
    return Rankings.of_rows(
        item[order], tier[order], offsets, items, agent=agent, instance=instance, score=value[order]
    )


def _fields(source: Source, n: int, problems: Problems, shape: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in read_lines(source):
        fields = line.split()
        if len(fields) == n:
            yield number, fields
        elif fields:
            text = f"{len(fields)} fields instead of {n}: {quote(line.strip())}"
            problems.add(number, "fields", text, shape)


def write_trec_run(rankings: Rankings, target: Source, *, tag: str = "placet") -> None:
    """Write ballots as a TREC run: topic = instance, tag = agent (else ``tag``), score = score (else minus the tier).

    Runs with scores read back equal if ballots, items, topics and tags are in order of first appearance.

    >>> import io
    >>> import placet
    >>> file = io.BytesIO()
    >>> write_trec_run(placet.Rankings.from_orders([["d2", "d1"]], instance=["q1"]), file)
    >>> print(file.getvalue().decode())
    q1 Q0 d2 1 0 placet
    q1 Q0 d1 2 -1 placet
    """
    names = [str(name) for name in (*rankings.items, *(rankings.instances or ()), *(rankings.agents or ()), tag)]
    for name in names:
        if not name or len(name.split()) != 1 or name != name.strip():
            raise DataError(f"name {name!r} cannot be written: TREC fields have no blanks; rename it")
    score = 0.0 - rankings.tier if rankings.score is None else rankings.score

    def lines() -> Iterator[str]:
        for b in range(len(rankings)):
            topic = 1 + b if rankings.instance is None else rankings.instances[rankings.instance[b]]  # type: ignore[index]
            run = tag if rankings.agent is None else rankings.agents[rankings.agent[b]]  # type: ignore[index]
            for rank, r in enumerate(range(rankings.offsets[b], rankings.offsets[b + 1]), 1):
                yield f"{topic} Q0 {rankings.items[rankings.item[r]]} {rank} {format_number(float(score[r]))} {run}"

    write_lines(target, lines())


@dataclass(frozen=True, eq=False, repr=False)
class Qrels:
    r"""Relevance judgments as read-only columns (rows,): codes of ``topics``, ``docs`` and, if there are any,
    ``subtopics``.

    >>> import io
    >>> from placet.io import read_qrels
    >>> found = read_qrels(io.StringIO("q1 0 d1 2\nq1 0 d2 0\n"))
    >>> found.topics, found.docs, found.grade
    (('q1',), ('d1', 'd2'), array([2., 0.]))
    """

    topic: NDArray[np.int64]
    doc: NDArray[np.int64]
    grade: NDArray[np.float64]
    topics: tuple[Hashable, ...]
    docs: tuple[Hashable, ...]
    subtopic: NDArray[np.int64] | None = None
    subtopics: tuple[Hashable, ...] | None = None

    def __len__(self) -> int:
        return len(self.grade)

    def __repr__(self) -> str:
        extra = "" if self.subtopics is None else ", with subtopics"
        return f"Qrels({len(self.topics)} topics, {len(self.docs)} documents, {len(self)} judgments{extra})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Qrels):
            return NotImplemented
        names = (self.topics, self.docs, self.subtopics) == (other.topics, other.docs, other.subtopics)
        pairs = [(self.topic, other.topic), (self.doc, other.doc), (self.grade, other.grade)]
        if self.subtopic is not None and other.subtopic is not None:
            pairs.append((self.subtopic, other.subtopic))
        return names and all(np.array_equal(a, b) for a, b in pairs)

    __hash__ = None  # type: ignore[assignment]

    def describe(self) -> dict[str, Any]:
        """Counts of topics, documents, judgments, subtopics and grades."""
        values, counts = np.unique(self.grade, return_counts=True)
        pairs = None
        if self.subtopic is not None and self.subtopics is not None:
            pairs = len(np.unique(self.topic * len(self.subtopics) + self.subtopic))
        return {
            "kind": "relevance judgments",
            "topics": len(self.topics),
            "documents": len(self.docs),
            "judgments": len(self),
            "subtopics of topics": pairs,
            "grades": dict(zip(values.tolist(), counts.tolist())),
        }


def looks_like_qrels(head: FileHead) -> str | None:
    """Match text with four fields, the last a number, but not MovieLens ratings: four numbers separated by tabs."""
    fields = head.first.split()
    if len(fields) != 4 or parse_decimal(fields[3]) is None:
        return None
    return None if "\t" in head.first and all(parse_decimal(field) is not None for field in fields) else TEXT


@with_checked_options
def read_qrels(source: Source, *, subtopics: Literal["auto"] | bool = "auto", on_error: OnError = "raise") -> Qrels:
    """Read relevance judgments; grades are any finite numbers, and negative ones stay negative.

    The second column is a subtopic (diversity judgments) or an unused iteration; ``"auto"`` treats it as a subtopic
    unless it is ``0`` or ``Q0`` on every line.  A document may be judged only once per topic (and subtopic).

    Returns
    -------
    Qrels
        Grades by topic and document.

    >>> import io
    >>> judged = read_qrels(io.StringIO("1 0 doc7 2\\n1 0 doc9 0\\n"))
    >>> judged.grade
    array([2., 0.])
    """
    problems = Problems(name_of(source), on_error)
    rows = []
    seen: dict[tuple[str, str, str], int] = {}
    for number, (topic, second, doc, said) in _fields(source, 4, problems, _QRELS):
        grade = parse_decimal(said)
        if grade is None:
            problems.add(number, "grade", f"grade {quote(said)} is not a finite number", _QRELS)
        elif (topic, second, doc) in seen:
            text = f"document {quote(doc)} is judged more than once for topic {quote(topic)}"
            problems.add(number, "twice", text, "keep one of the judgments")
        else:
            seen[topic, second, doc] = number
            rows.append((topic, second, doc, grade))
    if subtopics == "auto":
        subtopics = not {row[1] for row in rows} <= {"0", "Q0"}
    if not subtopics:
        rows = _first_judgments(rows, seen, problems)
    problems.close()
    if not rows:
        raise DataError(f"{problems.name}: no judgments; {_QRELS}")
    topics, seconds, docs, grades = zip(*rows)
    topic_code, topic_names = encode(topics, "topic")
    doc_code, doc_names = encode(docs, "document")
    part, part_names = encode(seconds, "subtopic") if subtopics else (None, None)
    return Qrels(
        frozen(topic_code, np.int64),
        frozen(doc_code, np.int64),
        frozen(grades, np.float64),
        topic_names,
        doc_names,
        part,
        part_names,
    )


def _first_judgments(
    rows: list[tuple[str, str, str, float]], lines: dict[tuple[str, str, str], int], problems: Problems
) -> list[tuple[str, str, str, float]]:
    """The first judgment of each document per topic, whatever the second column; others are reported as problems."""
    kept: dict[tuple[str, str], tuple[str, str, str, float]] = {}
    for row in rows:
        if (row[0], row[2]) in kept:
            text = f"document {quote(row[2])} is judged more than once for topic {quote(row[0])}"
            way_out = "keep one of the judgments, or read with subtopics=True"
            problems.add(lines[row[0], row[1], row[2]], "twice", text, way_out)
        else:
            kept[row[0], row[2]] = row
    return list(kept.values())


def write_qrels(qrels: Qrels, target: Source) -> None:
    r"""Write judgments as text, in order; a written file reads back equal (unless all subtopics are named 0).

    >>> import io
    >>> file = io.BytesIO()
    >>> write_qrels(read_qrels(io.StringIO("q1 0 d1 2\nq1 0 d2 0\n")), file)
    >>> print(file.getvalue().decode())
    q1 0 d1 2
    q1 0 d2 0
    """

    def lines() -> Iterator[str]:
        for r in range(len(qrels)):
            second = "0" if qrels.subtopic is None else qrels.subtopics[qrels.subtopic[r]]  # type: ignore[index]
            grade = format_number(float(qrels.grade[r]))
            yield f"{qrels.topics[qrels.topic[r]]} {second} {qrels.docs[qrels.doc[r]]} {grade}"

    for name in (*qrels.topics, *qrels.docs, *(qrels.subtopics or ())):
        if len(str(name).split()) != 1 or str(name) != str(name).strip():
            raise DataError(f"name {name!r} cannot be written: TREC fields have no blanks; rename it")
    write_lines(target, lines())
