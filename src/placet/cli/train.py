"""``placet train`` and ``placet score``: rankers from files of graded rows."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from placet.cli.common.console_output import deliver, parameters, progress_bar, say, value_of
from placet.cli.common.feature_rows import (
    CONTROL_HELP,
    check_control,
    is_table,
    read_table_to_score,
    read_table_to_train,
)
from placet.cli.common.options import (
    AsJson,
    Relations,
    SeedOption,
    check_ranker,
    check_reading,
    check_target,
    complete_losses,
    complete_rankers,
    reads,
)
from placet.cli.common.parts_option import InParts, OnDask, open_parts

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from placet.data import Queries
    from placet.io import MultiLabel

NO_OPTIONS: Mapping[str, Any] = {}


@reads
def train(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="TRAIN",
            help="Graded rows with features: LETOR / svmlight, CSV, Parquet; labels: extreme classification; "
            "fusion: LETOR-agg.",
        ),
    ],
    save: Annotated[Path, typer.Option("--out", "--save", callback=check_target, help="File to write the model to.")],
    valid: Annotated[Path | None, typer.Option(help="Validation rows: the best state on them is kept.")] = None,
    ranker: Annotated[
        str,
        typer.Option(
            help="linear, trees, forest, neural, booster, rankboost, adarank, coordinate, surrogate, structrank, "
            "listwise, reranker, crf, diversity (--judged), fusion (of rank lists), labels (extreme multi-label), or "
            "auto: the best of a short list (--param budget=N, seconds=S), or the mean of the K best (--param "
            "blend=K; folds=F, rotate=true: each of them fitted without one of F parts, in turn).",
            autocompletion=complete_rankers,
        ),
    ] = "linear",
    loss: Annotated[
        str,
        typer.Option(
            help="Any loss of placet.losses.LOSSES; the ranker's own if not given.", autocompletion=complete_losses
        ),
    ] = "",
    metric: Annotated[
        str, typer.Option("--metric", "-m", help="Metric on the validation rows; the ranker's own if not given.")
    ] = "",
    param: Annotated[
        list[str] | None, typer.Option("--param", "-p", help="name=value, a parameter of the ranker.")
    ] = None,
    loss_param: Annotated[
        list[str] | None, typer.Option("--loss-param", help="name=value, a parameter of the loss.")
    ] = None,
    features: Annotated[int, typer.Option(help="Number of features, where files may omit the last ones.")] = 0,
    control: Annotated[list[str] | None, typer.Option("--control", help=CONTROL_HELP)] = None,
    relation: Relations = None,
    judged: Annotated[
        Path | None, typer.Option(help="Of --ranker diversity: TREC qrels with subtopics of the documents (#docid).")
    ] = None,
    seed: SeedOption = 0,
    as_json: AsJson = False,
    parts: InParts = False,
    dask: OnDask = "",
    *,
    reading: dict[str, Any],
) -> None:
    """Train a ranker and save it.  Ctrl-C keeps the best model so far."""
    given = parameters(param or []) | ({"loss_params": parameters(loss_param)} if loss_param else {})
    kind = "linear" if check_ranker(ranker) == "auto" else ranker
    read_rows = _reader(kind, relation, judged, reading)
    model = None if ranker == "auto" else make_ranker(ranker, loss, metric, given, seed)
    if model is not None:
        model.check_names()
    if control:
        check_control(
            ranker,
            control,
            file,
            *(("--relation", relation), ("--judged", judged), ("--features", features)),
            *(("--parts", parts), ("--dask", dask)),
        )
    if parts or dask:
        if relation or judged:
            raise ValueError("--relation and --judged go with rows in memory; leave --parts and --dask out")
        if model is None:
            raise ValueError("--ranker auto tries many rankers on rows in memory; leave --parts and --dask out")
        options = reading | ({"n_features": features} if features else {})
        with open_parts([[file], *([[valid]] if valid else [])], "", options, dask, ranker) as found:
            about = model.fit(found[0], valid=found[1] if valid else None).fit_summary_
            _deliver_model(model, save, about, found[0].n_lists, as_json)
        return
    fitting: dict[str, Any] = {}
    with progress_bar("reading"):
        rows: Any
        held_out: Any
        if control:
            rows, fitting["control"], held_out = read_table_to_train(file, valid, control, reading)
        else:
            rows = read_rows(file, features or None)
            held_out = None if valid is None else read_rows(valid, _n_features(rows))
    try:
        with showing_progress(metric) as progress:
            if model is None:
                about, model = _choose_ranker(rows, held_out, metric, given, loss, seed, progress)
            else:
                data = rows if isinstance(rows, tuple) else (rows,)
                about = model.fit(*data, valid=held_out, progress=progress, **fitting).fit_summary_
    except ImportError as error:
        raise ValueError(str(error)) from None
    _deliver_model(model, save, about, _n_queries(rows), as_json)


def _deliver_model(model: Any, save: Path, about: dict[str, Any], n_queries: int, as_json: bool) -> None:
    """Save a fitted ranker and report what it is."""
    model.save(save)
    if about.get("interrupted"):
        say(f"interrupted: {save} holds the best model so far")
    one = getattr(model, "loss", None)  # a blend has none: each member has its own
    summary = {"model": str(save), "ranker": type(model).__name__, "loss": one, "queries": n_queries, **about}
    present = {key: value for key, value in summary.items() if value is not None}
    effects = getattr(model, "controls_", {})
    rows = [*present.items(), *((f"effect of {name}", effect) for name, effect in effects.items())]
    deliver(None, as_json, ["what", "value"], rows, present | ({"controls": effects} if effects else {}))


@reads
def score(
    model: Annotated[Path, typer.Argument(help="A model that placet train (or .save) wrote.")],
    file: Annotated[
        Path, typer.Argument(help="Rows with features: LETOR / svmlight, CSV, Parquet; or extreme classification.")
    ],
    out: Annotated[
        Path | None, typer.Option(callback=check_target, help="Write the scores to a file instead of stdout.")
    ] = None,
    k: Annotated[int, typer.Option("-k", help="Of a ranker of labels: how many labels to propose for each point.")] = 5,
    relation: Relations = None,
    run: Annotated[str, typer.Option(help="Write a TREC run with this tag, of documents named by #docid.")] = "",
    *,
    reading: dict[str, Any],
) -> None:
    """Score rows: one number per line, in the order of the file; higher is better.

    With --run TAG the scores are a TREC run, which placet evaluate accepts with qrels.  A ranker of labels writes a
    header ``points labels``, then for each point ``label:score ...``, best first.
    """
    from placet.io import write_label_scores
    from placet.io.files import write_lines
    from placet.rank import load

    ranker = load(model)
    with progress_bar("scoring"):
        read_rows = rows_reader(ranker.learns_from, files_of(relation), reading)
        if is_table(file) and not relation and ranker.learns_from not in FORMATS_READ:
            rows: Any = read_table_to_score(file, ranker, reading, run)
        else:
            rows = read_rows(file, ranker.n_features_in_)
        if ranker.learns_from == "labels":
            write_label_scores(ranker.top(rows.X, k).matrix(), sys.stdout if out is None else out)
            return
        scores = ranker.predict(rows)
        lines = run_lines(file, rows, scores, run) if run else map(repr, rows.restore(scores).tolist())
    if out is not None:
        write_lines(out, lines)
    else:
        for line in lines:
            print(line)


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

    rows = read_letor(path, relations=relations, **options) if relations else read(path, **options)
    if not isinstance(rows, Queries):
        raise DataError(
            f"{path}: these are {type(rows).__name__}, not rows with features; give LETOR / svmlight text, "
            "or a table with --qid and --label"
        )
    for note in rows.notes if relations or rows.features is not None else ():
        say(note)
    if n_features is None or rows.n_features == n_features:
        return rows
    if rows.n_features < n_features and isinstance(rows.X, csr_matrix):
        X = rows.X
        return replace(rows, X=csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features)))
    raise DataError(f"{path}: its rows have {rows.n_features} features; {n_features} are expected")


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

    lists = read(path, **options)
    if not isinstance(lists, LetorAgg):
        raise DataError(f"{path}: these are {type(lists).__name__}, not rank lists; give LETOR rank aggregation text")
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


def _reader(
    name: str, relation: list[str] | None, judged: Path | None, options: Mapping[str, Any]
) -> Callable[[Path, int | None], Any]:
    from placet.rank.ranker import ranker_class

    learns_from, relations = ranker_class(name).learns_from, files_of(relation)
    if judged is not None and learns_from != "subtopics":
        raise ValueError(f"--judged {judged} is for --ranker diversity; {name} learns from {learns_from}")
    if learns_from == "subtopics" and judged is not None:
        check_reading(options, ["letor"], f"a ranker of {learns_from}")
        return partial(read_subtopics, relations=relations, judged=judged, options=options)
    if learns_from not in READERS:
        raise ValueError(f"--ranker {name} needs {NO_READER[learns_from]}")
    return rows_reader(learns_from, relations, options)


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


def _n_features(rows: Any) -> int:
    return int((rows[0] if isinstance(rows, tuple) else rows).X.shape[1])


def _n_queries(rows: Any) -> int:
    return len(rows[0] if isinstance(rows, tuple) else rows)


def make_ranker(name: str, loss: str, metric: str, given: dict[str, Any], seed: int) -> Any:
    """An unfitted ranker; an unknown parameter raises a ``ValueError`` that lists the known ones."""
    from placet.data.parameters import check_parameters
    from placet.rank.ranker import ranker_class

    kind = ranker_class(name)
    defaults = kind().get_params(deep=False)
    unknown = sorted(set(given) - set(defaults))
    if unknown:
        raise ValueError(f"--param {unknown[0]} is unknown to {kind.__name__}; choose from {sorted(defaults)}")
    for option, value in (("loss", loss), ("metric", metric)):
        if value and option not in defaults:
            raise ValueError(f"--{option} {value}: {kind.__name__} has none to choose")
    common = {key: value for key, value in (("loss", loss), ("metric", metric)) if value} | {"random_state": seed}
    common = {key: value for key, value in common.items() if key in defaults}
    values = {key: _value(key, value, defaults[key]) for key, value in given.items()}
    check_parameters(kind, values, kind.__name__)
    return kind(**{**common, **values})


def _value(name: str, value: Any, default: Any) -> Any:
    """A parameter from the command line: commas separate several values; a base may be a saved model."""
    from placet.rank import load
    from placet.rank.monotone import directions_from_text

    if name == "base" and isinstance(value, str) and Path(value).is_file():
        return load(value)
    if name == "monotone" and isinstance(value, str | int | float):
        return directions_from_text(str(value))
    if isinstance(value, str) and (isinstance(default, tuple) or ("," in value and "(" not in value)):
        return tuple(value_of(part.strip()) for part in value.split(","))
    return value


def _choose_ranker(
    rows: "Queries", valid: "Queries | None", metric: str, given: dict[str, Any], loss: str, seed: int, progress: Any
) -> tuple[dict[str, Any], Any]:
    """Select the best of a short list of rankers; also return what was tried."""
    from placet.data.parameters import check_parameters
    from placet.rank.search.autorank import autorank

    own = ("budget", "seconds", "blend", "stack", "folds", "rotate")
    if loss or set(given) - set(own):
        raise ValueError(
            f"--ranker auto chooses loss and parameters itself; with --param it takes only {', '.join(own)}"
        )
    check_parameters(autorank, given, "--ranker auto")
    choice = autorank(rows, valid, metric=metric or "ndcg@10", random_state=seed, progress=progress, **given)
    say(repr(choice))
    about = {"validation": choice.value, "tried": len(choice.trials), "interrupted": choice.interrupted}
    return about, choice.ranker


@contextmanager
def showing_progress(metric: str) -> Iterator[Callable[[int, int, float | None], None] | None]:
    """A callback that draws a bar with the current metric on stderr; None if stderr is not a terminal."""
    with progress_bar("training", after=0.0) as update:

        def advance(step: int, steps: int, value: float | None) -> None:
            if update is not None:
                update(step, steps, None if value is None else f"{metric or 'validation'} {value:.4f}")

        yield None if update is None else advance
