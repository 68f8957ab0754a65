"""``placet score``: scores of rows by a saved ranker."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from placet.cli.common.console_output import deliver, progress_bar
from placet.cli.common.feature_rows import (
    FORMATS_READ,
    files_of,
    is_table,
    read_table_to_score,
    rows_reader,
    texts_reader,
)
from placet.cli.common.options import OF_VOTES, Relations, check_target, reads

if TYPE_CHECKING:
    from placet.data import Queries


@reads(*OF_VOTES)
def score(
    model: Annotated[Path, typer.Argument(help="A model that placet train (or .save) wrote.")],
    file: Annotated[
        Path,
        typer.Argument(help="Rows with features: LETOR / svmlight, CSV, Parquet; texts; or extreme classification."),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", callback=check_target, help="Write the scores to a file instead of stdout."),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option(
            "-k",
            min=1,
            help="Only the K best rows of every query, as a table of query, rank, row and score; of a ranker of "
            "labels: how many labels to propose for each point (5 if not given).",
        ),
    ] = None,
    relation: Relations = None,
    text: Annotated[
        str, typer.Option(metavar="COLUMN", help="The column of texts, if it is not called as in training.")
    ] = "",
    run: Annotated[
        str, typer.Option(metavar="TAG", help="Write a TREC run with this tag, of documents named by #docid.")
    ] = "",
    *,
    reading: dict[str, Any],
) -> None:
    """Score rows: one number per line, in the order of the file; higher is better.

    Cases of a label ranking (placet train --order) give one order per line, a > b > c, which is a ballot.
    With --run TAG the scores are a TREC run, which placet evaluate accepts with qrels.  A ranker of labels writes a
    header "points labels", then for each point "label:score ...", best first; if its labels have names, a table
    with the columns document (1 is the first), label and score.
    """
    from placet.io import write_label_scores
    from placet.io.files import write_lines
    from placet.io.surveys.label_orders import case_columns, orders_of
    from placet.io.text import quoted_name
    from placet.rank import load

    ranker = load(model)
    with progress_bar("scoring"):
        if ranker.learns_from == "labels" and (ranker.labels_ is not None or ranker.text_ is not None):
            _score_names(ranker, file, text, k, out, reading)
            return
        if text:
            raise ValueError(f"--text {text}: {model} was not trained on texts; leave --text out")
        read_rows = rows_reader(ranker.learns_from, files_of(relation), reading)
        if is_table(file) and not relation and ranker.learns_from not in FORMATS_READ:
            rows: Any = read_table_to_score(file, ranker, reading, run)
        else:
            rows = read_rows(file, ranker.n_features_in_)
        if ranker.learns_from == "labels":
            write_label_scores(ranker.top(rows.X, k or 5).matrix(), sys.stdout if out is None else out)
            return
        if k:
            _write_best(ranker, rows, k, run, out)
            return
        scores = ranker.predict(rows)
        if case_columns(ranker.features_) is not None:
            lines: Iterator[str] = (" > ".join(map(quoted_name, labels)) for labels in orders_of(rows, scores))
        else:
            lines = run_lines(file, rows, scores, run) if run else map(repr, rows.restore(scores).tolist())
    if out is not None:
        write_lines(out, lines)
    else:
        for line in lines:
            print(line)


def _write_best(ranker: Any, rows: "Queries", k: int, run: str, out: Path | None) -> None:
    """Write the k best rows of every query; ``row`` counts the rows of the file from 1."""
    from placet.io.surveys.label_orders import case_columns

    if run or case_columns(ranker.features_) is not None:
        raise ValueError(f"-k {k} makes a table of rows; leave it out with --run TAG and for orders of labels")
    table = ranker.predict_top(rows, k)
    table = table.with_columns(row=rows.row[table["row"].to_numpy()] + 1)
    deliver(out, False, table.columns, table.rows())


def _score_names(ranker: Any, file: Path, text: str, k: int | None, out: Path | None, reading: dict[str, Any]) -> None:
    """Write the best labels of every document by name, or by number if they have no names."""
    read_rows: Any = rows_reader("labels", {}, {} if ranker.text_ else reading)
    if ranker.text_ is not None:
        column = text or ranker.text_[1]
        read_rows = texts_reader(reading | ({"text": column} if column else {}), labeled=False)
    rows = read_rows(file, ranker.n_features_in_)
    n_labels = int(ranker.sizes_[-1])
    best = ranker.top(rows, min(k or 5, n_labels))
    names = ranker.labels_ or range(n_labels)
    entries = [
        (document, names[label], score)
        for document, (own, scores) in enumerate(zip(best.label.tolist(), best.score.tolist()), 1)
        for label, score in zip(own, scores)
    ]
    deliver(out, False, ["document", "label", "score"], entries)


def run_lines(file: Path, rows: "Queries", scores: Any, tag: str) -> Iterator[str]:
    """Lines ``topic Q0 document rank score tag``, best first in every query."""
    import numpy as np

    from placet.data import DataError
    from placet.io.sparse.letor import read_document_names

    names = read_document_names(file)
    nameless = sum(name is None for name in names)
    if nameless or not tag or tag.split() != [tag]:
        what = f"{nameless} rows have no document name (#docid = name)" if nameless else f"the tag {tag!r} has blanks"
        raise DataError(f"{file}: a TREC run cannot be written: {what}")
    return (
        f"{rows.qid[q]} Q0 {names[int(rows.row[r])]} {place} {float(scores[r])!r} {tag}"
        for q in range(len(rows))
        for place, r in enumerate(
            rows.offsets[q] + np.argsort(-scores[rows.offsets[q] : rows.offsets[q + 1]], kind="stable"), 1
        )
    )
