"""Read the rows that a ranker learns from or scores: queries, labels, rank lists; tables by the names of features."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placet.cli.common.console_output import say
from placet.cli.common.options import check_reading

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from placet.data import Queries
    from placet.io import LabeledTexts, MultiLabel

NO_OPTIONS: Mapping[str, Any] = {}


def is_table(file: Path) -> bool:
    """Whether a file is a table by its suffix."""
    from placet.io.files import bare_suffix
    from placet.io.tables.tables import SUFFIXES

    return bare_suffix(file) in SUFFIXES


def check_control(ranker: str, control: Sequence[str], file: Path, *others: tuple[str, object]) -> None:
    """Raise a ``ValueError`` if this ranker, file or set of other options (``others``) does not allow controls."""
    from placet.rank.ranker import RANKERS, ranker_class

    said = f"--control {shlex.quote(control[0])}"
    able = [name for name in RANKERS if ranker_class(name).takes_control]
    if ranker not in able:
        from placet.data.errors import as_choices

        raise ValueError(
            f"{said}: --ranker {ranker} fits no effects of controls beside its scores; "
            f"choose from {as_choices(able)}, or leave --control out"
        )
    for option, given in others:
        if given:
            raise ValueError(f"{said} takes a table in memory; leave {option} out, or --control")
    if not is_table(file):
        raise ValueError(
            f"{said} names a column of a table, and {file} is text whose features have numbers only; make it a table "
            f"(placet convert {file} {file.stem}.csv; feature 7 is the column feature7), add the column to it if it is "
            "not among them, and train on that"
        )


def read_table_to_train(
    file: Path, valid: Path | None, control: Sequence[str], options: Mapping[str, Any]
) -> "tuple[Queries, dict[str, Any], Queries | None]":
    """Read the rows of a table as queries, their controls by name, and validation rows with the same features."""
    from placet.io.features import read_controlled

    rows, controls = read_controlled(str(file), control, **options)
    for note in rows.notes:
        say(note)
    if valid is None:
        return rows, controls, None
    if not is_table(valid):
        raise ValueError(f"--valid {valid}: the training rows are a table; give the validation rows as a table too")
    return rows, controls, read_known_features(valid, [str(name) for name in rows.features or ()], options)


def read_table_to_score(file: Path, ranker: Any, options: Mapping[str, Any], run: str = "") -> "Queries":
    """Read a table as queries with the features of a fitted ranker, in its order; other columns are ignored."""
    if run:
        raise ValueError(f"--run {run} names documents by #docid of LETOR text; {file} is a table: leave --run out")
    return read_known_features(file, [str(name) for name in ranker.features_ or ()], options, graded=False)


def read_known_features(
    file: Path, known: Sequence[str], options: Mapping[str, Any], *, graded: bool = True
) -> "Queries":
    """Read a table as queries with the features in ``known``, in that order; other columns are ignored.

    If they are those of a label ranking, the rows of the table are cases.
    """
    from placet.data import DataError
    from placet.io.features import read_features
    from placet.io.surveys.label_orders import case_columns
    from placet.io.tables.tables import read_table

    if case_columns(known) is not None:
        return read_cases(file, options, known, graded=graded)
    given = dict(options)
    form = {name: given.pop(name) for name in ("format", "separator", "sheet") if name in given}
    table = read_table(str(file), given.get("on_error", "raise"), **form)
    absent = [name for name in known if name not in table.names]
    if known and "features" not in given and not absent:
        given["features"] = known
    rows = read_features(table, graded=graded, **given)
    for note in rows.notes:
        say(note)
    if absent and tuple(map(str, rows.features or ())) != tuple(known):
        raise DataError(
            f"{file}: no column {absent[0]!r}, a feature of the model ({len(absent)} of {len(known)} are missing); "
            f"the columns are {table.names[:20]}"
        )
    return rows


def read_cases(
    file: Path, options: Mapping[str, Any], known: Sequence[str] | None = None, *, graded: bool = True
) -> "Queries":
    """Read a table of cases, each with an order of labels, with the features in ``known`` if there are any."""
    from placet.data.parameters import check_parameters
    from placet.io.surveys.label_orders import read_label_orders

    check_parameters(read_label_orders, options, "a table of cases with orders of labels", skip=1)
    rows = read_label_orders(str(file), **options, like=known, graded=graded)
    for note in rows.notes:
        say(note)
    return rows


def texts_reader(options: Mapping[str, Any], *, labeled: bool = True) -> "Callable[[Path, int | None], LabeledTexts]":
    """A function that reads texts and, unless ``labeled`` is False, the names of their labels."""
    from placet.data.parameters import check_parameters
    from placet.io import read_labeled_texts

    check_parameters(read_labeled_texts, options, "a table of texts and labels", skip=1)

    def read(file: Path, n_features: int | None) -> "LabeledTexts":
        found = read_labeled_texts(str(file), **options, labeled=labeled)
        for note in found.notes:
            say(note)
        return found

    return read


def cases_reader(options: Mapping[str, Any]) -> "Callable[[Path, int | None], Queries]":
    """A function that reads cases with orders of labels; files after the first have its labels and features."""
    known: list[str] = []

    def read(file: Path, n_features: int | None) -> "Queries":
        rows = read_cases(file, options, known or None)
        known[:] = map(str, rows.features or ())
        return rows

    return read


def read_queries(
    path: Path,
    n_features: int | None = None,
    relations: "Mapping[str, Path] | None" = None,
    options: Mapping[str, Any] = NO_OPTIONS,
) -> "Queries":
    """Read graded rows with features; sparse text that omits its last features is widened to ``n_features``."""
    from dataclasses import replace

    from scipy.sparse import csr_matrix

    from placet.data import DataError, Queries
    from placet.io import read, read_letor
    from placet.io.several_files import kind_of

    rows = read_letor(path, relations=relations, **options) if relations else read(path, **options)
    if not isinstance(rows, Queries):
        raise DataError(f"{path}: these are {kind_of(rows)}, {NO_ROWS}")
    for note in rows.notes if relations or rows.features is not None else ():
        say(note)
    if n_features is None or rows.n_features == n_features:
        return rows
    if rows.n_features < n_features and isinstance(rows.X, csr_matrix):
        X = rows.X
        return replace(rows, X=csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features)))
    raise DataError(f"{path}: its rows have {rows.n_features} features; {n_features} are expected")


NO_ROWS = (
    "not rows with features; give LETOR / svmlight text, or a table with --qid and --label (of cases with an order of "
    "labels each: --order)"
)


def refuse_votes(path: Path) -> None:
    """Raise a ``DataError`` if a file surely holds votes, ballots, ratings, scores or games; it is read only then."""
    from placet.data import Comparisons, DataError, Games, Rankings, Scores
    from placet.io import read
    from placet.io.several_files import kind_of, kind_of_file

    try:
        if kind_of_file(path, None, {}) not in (Rankings, Comparisons, Scores, Games):
            return
        data = read(path)
    except ValueError:
        return
    raise DataError(f"{path}: these are {kind_of(data)}, {NO_ROWS}")


def read_subtopics(
    path: Path,
    n_features: int | None = None,
    relations: "Mapping[str, Path] | None" = None,
    options: Mapping[str, Any] = NO_OPTIONS,
    *,
    judged: Path,
) -> "tuple[Queries, csr_matrix]":
    """Read rows with features, and the judgments of their documents (rows, subtopics)."""
    from placet.io import read_qrels
    from placet.io.judged_scores import judge_subtopics
    from placet.io.sparse.letor import read_document_names

    rows = read_queries(path, n_features, relations, options)
    names = read_document_names(path)
    return rows, judge_subtopics(rows, [names[k] for k in rows.row.tolist()], read_qrels(judged))


def files_of(relation: list[str] | None) -> dict[str, Path]:
    """Parse name=FILE texts; each name may be given only once."""
    found: dict[str, Path] = {}
    for text in relation or ():
        name, equals, file = text.partition("=")
        if not equals or not file or name in found:
            raise ValueError(f"--relation {text!r} is not name=FILE, each name once")
        found[name] = Path(file)
    return found


def read_documents(path: Path, n_features: int | None = None, options: Mapping[str, Any] = NO_OPTIONS) -> "MultiLabel":
    """Read points with features and labels from extreme classification text, which states the numbers of both."""
    from placet.data import DataError
    from placet.io import read_xmc

    documents = read_xmc(path, **options)
    if n_features is not None and documents.X.shape[1] != n_features:
        raise DataError(f"{path}: its points have {documents.X.shape[1]} features; {n_features} are expected")
    return documents


def read_rank_lists(path: Path, n_engines: int | None = None, options: Mapping[str, Any] = NO_OPTIONS) -> "Queries":
    """Read ranks by engines from LETOR rank aggregation text; NaN if an engine did not list a document."""
    from placet.data import DataError, Queries
    from placet.io import LetorAgg, read
    from placet.io.several_files import kind_of

    lists = read(path, **options)
    if not isinstance(lists, LetorAgg):
        raise DataError(
            f"{path}: these are {kind_of(lists)}, not rank lists by engines; give LETOR rank aggregation text"
        )
    if n_engines is not None and lists.rank.shape[1] != n_engines:
        raise DataError(f"{path}: its rows have {lists.rank.shape[1]} engines; {n_engines} are expected")
    return Queries(lists.rank, lists.grade, lists.offsets, qid=lists.qid, row=lists.row)  # type: ignore[arg-type]


READERS: dict[str, Callable[..., Any]] = {
    "queries": read_queries,
    "labels": read_documents,
    "rank lists": read_rank_lists,
}
"""What a ranker learns from -> the function that reads its files."""

FORMATS_READ = {"labels": ["xmc"], "rank lists": ["letor-agg"]}
"""The formats of these files, if they are not rows with features."""

NO_READER = {
    "subtopics": "rows that are judged for subtopics; give TREC diversity qrels with --judged FILE",
    "rankers": "rankers to blend; use --ranker auto with --param blend=K, or placet.rank.Blend in Python",
}
"""What the other rankers need that cannot be read from one file."""


def rows_reader(
    learns_from: str, relations: dict[str, Path], options: Mapping[str, Any] = NO_OPTIONS
) -> Callable[[Path, int | None], Any]:
    """The function that reads the files of a ranker, with the options that its formats accept."""
    read_rows = READERS.get(learns_from, read_queries)
    formats = FORMATS_READ.get(learns_from, ["letor"] if relations else ["letor", "features"])
    check_reading(options, formats, f"a ranker of {learns_from}" + (" with --relation" if relations else ""))
    if not relations:
        return partial(read_rows, options=options)
    if read_rows is not read_queries:
        raise ValueError(f"--relation joins rows with features; this ranker learns from {learns_from}")
    return partial(read_queries, relations=relations, options=options)
