"""Scores matched with labels: a TREC run with judgments, one score per line with the rows of a LETOR file, or scores
of labels with extreme classification text.
"""

import inspect
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.data import DataError, Queries, Rankings
from placet.data.arrays import list_of_rows, offsets_from_sizes
from placet.io.features import read_features
from placet.io.files import OpenedFile, Source, bare_suffix, first_lines, name_of, opened, read_lines
from placet.io.sparse.letor import read_letor
from placet.io.sparse.xmc import is_xmc, read_label_scores, read_xmc
from placet.io.tables.tables import SUFFIXES
from placet.io.text import OnError, Problems, parse_decimal, quote
from placet.io.trec import Qrels, read_qrels, read_trec_run

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True)
class Judged:
    """Scores matched with labels, in the form metrics expect: rows ``offsets[q]:offsets[q + 1]`` are query ``qid[q]``.

    ``score`` (rows,) is -inf where a judged row was not retrieved; ``grade`` (rows,) is 0 where a retrieved row was not
    judged; ``name`` (rows,) holds the documents, if they have names; ``judged`` (rows, subtopics of a topic) is a CSR
    matrix of grades, if judgments have subtopics: then ``grade`` is the largest of them.

    >>> import placet
    >>> rows = placet.simulate.queries(2, 3, 2)
    >>> found = placet.io.score_rows([3.0, 2.0, 1.0, 3.0, 2.0, 1.0], rows)
    >>> found.score, found.offsets
    (array([3., 2., 1., 3., 2., 1.]), array([0, 3, 6]))
    """

    score: NDArray[np.float64]
    grade: NDArray[np.float64]
    offsets: NDArray[np.int64]
    qid: tuple[Hashable, ...]
    name: NDArray[Any] | None = None
    judged: "csr_matrix | None" = None

    @property
    def n_unanswered(self) -> int:
        """Number of queries with rows, none of which was retrieved."""
        n_lists = len(self.offsets) - 1
        found = np.bincount(list_of_rows(self.offsets), self.score > -np.inf, n_lists)
        return int(((found == 0) & (np.diff(self.offsets) > 0)).sum())


def read_judged(scores: Source, labels: Source, *, on_error: OnError = "raise", **options: Any) -> Judged:
    r"""Read scores and labels from files.

    A TREC run goes with qrels, scores (one per line) with LETOR text or a table with features, and scores of labels
    (``label:score ...``) with extreme classification text.  ``options`` are passed to the reader of the
    labels, ``on_error`` to that of a run, too.

    Returns
    -------
    Judged
        Scores and labels in the form that metrics take.

    >>> import io
    >>> found = read_judged(io.StringIO("0.9\n0.1\n"), io.StringIO("0 qid:1 1:3\n1 qid:1 1:5\n"))
    >>> found.score, found.grade
    (array([0.9, 0.1]), array([0., 1.]))
    """
    with opened(scores) as scored, opened(labels) as labelled:
        return _read_both(scored, labelled, on_error, options)


def _refuse_foreign(reader: Any, what: str, labels: OpenedFile, options: dict[str, Any]) -> None:
    """Raise ``ValueError`` for an option that the reader of the labels does not have."""
    known = inspect.signature(reader).parameters
    foreign = [name for name in options if name not in known]
    if foreign:
        raise ValueError(
            f"{name_of(labels)}: {what} are read without the option {foreign[0]!r}; leave it out (the columns of a "
            "table can be named)"
        )


def _read_both(scores: OpenedFile, labels: OpenedFile, on_error: OnError, options: dict[str, Any]) -> Judged:
    run = [len(line.split()) for line in first_lines(scores.head, 1)] == [6]
    first = next(iter(first_lines(labels.head, 1)), "")
    if is_xmc(first, bare_suffix(labels)):
        _refuse_foreign(read_xmc, "rows with labels (xmc)", labels, options)
        return judge_labels(read_label_scores(scores), read_xmc(labels, on_error=on_error, **options).Y)
    table = bare_suffix(labels) in SUFFIXES
    qrels = not table and len(first.split()) == 4 and ":" not in first
    if run and qrels:
        _refuse_foreign(read_qrels, "TREC judgments", labels, options)
        return judge(read_trec_run(scores, on_error=on_error), read_qrels(labels, on_error=on_error, **options))
    if not run and not qrels:
        read_rows = read_features if table else read_letor
        _refuse_foreign(read_rows, "tables of features" if table else "LETOR rows", labels, options)
        rows = read_rows(labels, on_error=on_error, **options)
        return score_rows(read_score_lines(scores), rows, source=name_of(scores))
    what, other = ("a TREC run", "qrels") if run else ("scores, one per line", "LETOR text or a table with features")
    said = f"{name_of(scores)} holds {what}, but {name_of(labels)} does not hold {other}"
    raise DataError(f"{said}; give two that belong together")


def judge(run: Rankings, qrels: Qrels) -> Judged:
    r"""Match a run with judgments, over the topics that have any; nothing was retrieved for topics that the run lacks.

    Topics of the run without judgments are left out, as in ``trec_eval``.  A run with several tags, without topics, or
    without any judged topic is a ``DataError``.  O(rows).

    Returns
    -------
    Judged
        Scores and grades in the form that metrics take.

    >>> import io
    >>> from placet.io import read_qrels, read_trec_run
    >>> run = read_trec_run(io.StringIO("q1 Q0 d2 1 0.9 tag\nq1 Q0 d1 2 0.5 tag\n"))
    >>> found = judge(run, read_qrels(io.StringIO("q1 0 d1 2\nq1 0 d3 1\n")))
    >>> found.name.tolist(), found.score.tolist(), found.grade.tolist()
    (['d2', 'd1', 'd3'], [0.9, 0.5, -inf], [0.0, 2.0, 1.0])
    """
    scores = _retrieved_scores(run, qrels)
    grades, parts = _by_topic(qrels)
    score: list[float] = []
    grade: list[float] = []
    name: list[Hashable] = []
    sizes: list[int] = []
    cells: list[tuple[int, int, float]] = []
    for topic, own in zip(qrels.topics, grades):
        found = scores.get(topic, {})
        docs = list(dict.fromkeys([*found, *own]))
        for doc in docs:
            cells += [(len(score), column, value) for column, value in parts.get((topic, doc), ())]
            score.append(found.get(doc, -np.inf))
            grade.append(own.get(doc, 0.0))
        name += docs
        sizes.append(len(docs))
    table = _cells(cells, len(score)) if qrels.subtopic is not None else None
    return Judged(
        np.array(score), np.array(grade), offsets_from_sizes(sizes), qrels.topics, np.array(name, dtype=object), table
    )


def _retrieved_scores(run: Rankings, qrels: Qrels) -> dict[Hashable, dict[Hashable, float]]:
    """Scores of the retrieved documents of each topic."""
    if run.instance is None or run.instances is None or run.score is None:
        raise DataError("a run has topics and scores; read it with read_trec_run")
    if run.agents is not None and len(run.agents) > 1:
        raise DataError(f"{len(run.agents)} runs in one file: {list(run.agents)[:5]}; judge them one by one (by_agent)")
    scores: dict[Hashable, dict[Hashable, float]] = {}
    for b in range(len(run)):
        part = slice(run.offsets[b], run.offsets[b + 1])
        names = (run.items[k] for k in run.item[part].tolist())
        scores[run.instances[run.instance[b]]] = dict(zip(names, run.score[part].tolist()))
    if scores and not scores.keys() & set(qrels.topics):
        first = next(iter(scores))
        raise DataError(
            f"none of the {len(scores)} topics of the run is judged (the first is {first!r}); give its own qrels"
        )
    return scores


def _by_topic(
    qrels: Qrels,
) -> tuple[list[dict[Hashable, float]], dict[tuple[Hashable, Hashable], list[tuple[int, float]]]]:
    """The largest grade of each document of each topic, and its list of (subtopic index within the topic, grade)."""
    grades: list[dict[Hashable, float]] = [{} for _ in qrels.topics]
    parts: dict[tuple[Hashable, Hashable], list[tuple[int, float]]] = {}
    columns: dict[tuple[int, int], int] = {}
    counts = [0] * len(qrels.topics)
    subtopic = [None] * len(qrels) if qrels.subtopic is None else qrels.subtopic.tolist()
    for t, d, part, value in zip(qrels.topic.tolist(), qrels.doc.tolist(), subtopic, qrels.grade.tolist()):
        doc = qrels.docs[d]
        grades[t][doc] = max(grades[t].get(doc, -np.inf), value)
        if part is not None:
            if (t, part) not in columns:
                columns[t, part] = counts[t]
                counts[t] += 1
            parts.setdefault((qrels.topics[t], doc), []).append((columns[t, part], value))
    return grades, parts


def _cells(cells: list[tuple[int, int, float]], rows: int) -> "csr_matrix":
    from scipy.sparse import csr_matrix

    row, column, value = np.array(cells).T
    shape = (rows, int(column.max()) + 1)
    return csr_matrix((value, (row.astype(np.int64), column.astype(np.int64))), shape=shape)


def read_score_lines(source: Source) -> NDArray[np.float64]:
    r"""Read scores, one finite number per line, in the order of the rows they belong to; bad lines cannot be skipped.

    Returns
    -------
    array
        The scores (rows,).

    >>> import io
    >>> read_score_lines(io.StringIO("0.9\n0.1\n"))
    array([0.9, 0.1])
    """
    problems = Problems(name_of(source), may_skip=False)
    values = []
    for number, line in read_lines(source):
        text = line.strip()
        if text:
            value = parse_decimal(text)
            if value is None:
                problems.add(
                    number, "score", f"score {quote(text)} is not a finite number", "write one number per line"
                )
            else:
                values.append(value)
    problems.close()
    return np.array(values)


def score_rows(scores: ArrayLike, queries: Queries, *, source: str = "") -> Judged:
    """Match scores (one per row, in the caller's order) with queries; ``source`` names their file in errors.

    Returns
    -------
    Judged
        Scores and grades in the form that metrics take.

    >>> import placet
    >>> rows = placet.simulate.queries(2, 3, 2)
    >>> found = score_rows([3.0, 2.0, 1.0, 3.0, 2.0, 1.0], rows)
    >>> found.score, found.offsets
    (array([3., 2., 1., 3., 2., 1.]), array([0, 3, 6]))
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != queries.grade.shape:
        where = f"{source}: " if source else ""
        raise DataError(
            f"{where}{values.size} scores for {len(queries.grade)} rows; give one score for each row, in order"
        )
    order = np.argsort(np.argsort(queries.row))
    return Judged(values[order], queries.grade, queries.offsets, queries.qid)


def judge_subtopics(queries: Queries, doc: Sequence[str | None], qrels: Qrels) -> "csr_matrix":
    """Grades (rows, subtopics of a topic) of rows whose documents (rows,) are judged for subtopics.

    Topics are matched with queries by name; rows that are not judged have no subtopics.  It is a ``DataError`` if no
    row is judged, rows have no names, or judgments have no subtopics.
    """
    if qrels.subtopic is None:
        raise DataError("these judgments have no subtopics; diversity needs them (TREC Web diversity qrels)")
    if any(name is None for name in doc):
        nameless = sum(name is None for name in doc)
        raise DataError(f"{nameless} rows have no document name; put '#docid = name' at the end of each line")
    parts = {(str(topic), str(name)): cells for (topic, name), cells in _by_topic(qrels)[1].items()}
    topics = [str(queries.qid[q]) for q in queries.query.tolist()]
    cells = [
        (row, column, value)
        for row, key in enumerate(zip(topics, doc))
        for column, value in parts.get((key[0], str(key[1])), ())
    ]
    if not cells:
        raise DataError(
            f"none of {len(doc)} rows is judged for a subtopic (the first is document {doc[0]!r} of query "
            f"{topics[0]!r}); give the judgments of these queries"
        )
    return _cells(cells, len(doc))


def judge_labels(scores: "csr_matrix", Y: "csr_matrix") -> Judged:
    """Match proposed labels with true ones: a list per point, a row per proposed or true label; ``name`` is the label.

    True labels that were not proposed have score -inf; proposed labels that are not true have grade 0.

    Returns
    -------
    Judged
        A list per point, in the form that metrics take.

    >>> from scipy.sparse import csr_matrix
    >>> found = judge_labels(csr_matrix([[0.9, 0.5, 0.0]]), csr_matrix([[1.0, 0.0, 1.0]]))
    >>> found.name.tolist(), found.score.tolist(), found.grade.tolist()
    ([0, 1, 2], [0.9, 0.5, -inf], [1.0, 0.0, 1.0])
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
