"""``placet train``, ``placet score`` and ``placet compare``: rankers from files of graded rows."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from placet.cli.aggregate import parameters
from placet.cli.evaluate import split_specs
from placet.cli.output import progress_bar, say, show_json, show_table

if TYPE_CHECKING:
    from placet.data import Queries
    from placet.io import MultiLabel
    from placet.io.judged import Judged


def train(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="TRAIN", help="Graded rows with features: LETOR / svmlight; for labels: extreme classification."
        ),
    ],
    save: Annotated[Path, typer.Option(help="File to write the model to.")],
    valid: Annotated[Path | None, typer.Option(help="Validation rows: the best state on them is kept.")] = None,
    ranker: Annotated[
        str,
        typer.Option(
            help="linear, trees, booster, neural, labels (extreme multi-label), or auto: the best of a short list, or "
            "the mean of the K best with --param blend=K."
        ),
    ] = "linear",
    loss: Annotated[str, typer.Option(help="Any loss of placet.losses.LOSSES (auto chooses its own).")] = "",
    metric: Annotated[str, typer.Option("--metric", "-m", help="Metric on the validation rows.")] = "ndcg@10",
    param: Annotated[
        list[str] | None, typer.Option("--param", "-p", help="name=value, a parameter of the ranker.")
    ] = None,
    loss_param: Annotated[
        list[str] | None, typer.Option("--loss-param", help="name=value, a parameter of the loss.")
    ] = None,
    features: Annotated[int, typer.Option(help="Number of features, where files may omit the last ones.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
) -> None:
    """Train a ranker and save it.  Ctrl-C keeps the best model so far."""
    if not save.parent.is_dir():
        raise ValueError(f"{save.parent}: no such folder to save the model in; make it first")
    read_rows = read_documents if ranker == "labels" else read_queries
    rows: Any = read_rows(file, features or None)
    held_out: Any = None if valid is None else read_rows(valid, rows.X.shape[1])
    given = parameters(param or []) | ({"loss_params": parameters(loss_param)} if loss_param else {})
    try:
        with showing_progress(metric) as progress:
            if ranker == "auto":
                about, model = _chosen(rows, held_out, metric, given, loss, seed, progress)
            else:
                model = _ranker(ranker, loss, metric, given, seed)
                about = model.fit(rows, valid=held_out, progress=progress).fit_summary_
    except ImportError as error:
        raise ValueError(str(error)) from None
    model.save(save)
    if about.get("interrupted"):
        say(f"interrupted: {save} holds the best model so far")
    one = getattr(model, "loss", None)  # the members of a blend each have their own
    summary = {"model": str(save), "ranker": type(model).__name__, "loss": one, "queries": len(rows), **about}
    known = {key: value for key, value in summary.items() if value is not None}
    show_json(known) if as_json else show_table(["what", "value"], list(known.items()))


def score(
    model: Annotated[Path, typer.Argument(help="A model that placet train (or .save) wrote.")],
    file: Annotated[Path, typer.Argument(help="Rows with features: LETOR / svmlight, or extreme classification.")],
    out: Annotated[Path | None, typer.Option(help="Write the scores to a file instead of stdout.")] = None,
    k: Annotated[int, typer.Option("-k", help="Of a ranker of labels: how many labels to propose for each point.")] = 5,
) -> None:
    """Score rows: one number per line, in the order of the file; higher is better.

    A ranker of labels writes a header ``points labels``, then for each point ``label:score ...``, best first.
    """
    from placet.io import write_label_scores
    from placet.io.files import write_lines
    from placet.rank import LabelRanker, load

    ranker = load(model)
    if isinstance(ranker, LabelRanker):
        found = ranker.top(read_documents(file, ranker.n_features_in_).X, k)
        write_label_scores(found.matrix(), sys.stdout if out is None else out)
        return
    rows = read_queries(file, ranker.n_features_in_)
    lines = (repr(value) for value in rows.restore(ranker.predict(rows)).tolist())
    if out is not None:
        write_lines(out, lines)
    else:
        for line in lines:
            print(line)


def compare(
    systems: Annotated[list[Path], typer.Argument(help="Models, files of scores, or TREC runs; the first is A.")],
    labels: Annotated[Path, typer.Argument(help="LETOR / svmlight file, or TREC qrels.")],
    metric: Annotated[str, typer.Option("--metric", "-m", help="Metrics, separated by commas.")] = "ndcg@10",
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap and of the test.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
) -> None:
    """Compare systems on the same queries: means, and the difference of each from the first.

    The interval is by bootstrap over queries, the p-value by flipping signs of the paired differences.
    """
    from placet.metrics import compare as paired
    from placet.metrics import metric as metric_of
    from placet.metrics import summary

    if len(systems) < 2:
        raise ValueError("give at least two systems and the labels: placet compare A B LABELS")
    specs = [metric_of(text) for text in split_specs(metric)]
    judged = [_judged(path, labels) for path in systems]
    head = ["metric", "system", "mean", "stderr", "queries", "minus first", "low", "high", "p"]
    rows: list[list[Any]] = []
    for spec in specs:
        values = [spec(one.score, one.grade, one.offsets, name=one.name) for one in judged]
        for k, path in enumerate(systems):
            own = summary(values[k])
            row = [repr(spec), str(path), own.mean, own.stderr, own.n_lists]
            if k == 0:
                rows.append([*row, None, None, None, None])
                continue
            gap = paired(values[k], values[0], level=level, random_state=seed)
            rows.append([*row, gap.difference, gap.low, gap.high, gap.p_value])
        left_out = summary(values[0]).n_undefined
        if left_out:
            say(f"{spec!r}: {left_out} queries have no value and are left out")
    show_json([dict(zip(head, row)) for row in rows]) if as_json else show_table(head, rows)


def read_queries(path: Path, n_features: int | None = None) -> "Queries":
    """Graded rows with features; sparse text that omits its last features is widened to ``n_features``."""
    from dataclasses import replace

    from scipy.sparse import csr_matrix

    from placet.data import DataError, Queries
    from placet.io import read

    rows = read(path)
    if not isinstance(rows, Queries):
        raise DataError(f"{path}: these are {type(rows).__name__}, not rows with features; give LETOR / svmlight text")
    if n_features is None or rows.n_features == n_features:
        return rows
    if rows.n_features < n_features and isinstance(rows.X, csr_matrix):
        X = rows.X
        return replace(rows, X=csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features)))
    raise DataError(f"{path}: its rows have {rows.n_features} features; {n_features} are expected")


def read_documents(path: Path, n_features: int | None = None) -> "MultiLabel":
    """Points with features and labels from extreme classification text, which says its own numbers of both."""
    from placet.data import DataError
    from placet.io import read_xmc

    documents = read_xmc(path)
    if n_features is not None and documents.X.shape[1] != n_features:
        raise DataError(f"{path}: its points have {documents.X.shape[1]} features; {n_features} are expected")
    return documents


def _ranker(name: str, loss: str, metric: str, given: dict[str, Any], seed: int) -> Any:
    """An unfitted ranker; an unknown parameter is a ``ValueError`` that lists the known ones."""
    from placet.rank.auto import ranker_class

    made = ranker_class(name)
    known = made().get_params()
    common = {"loss": loss or known["loss"], "metric": metric, "random_state": seed}
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise ValueError(f"--param {unknown[0]} is unknown to {made.__name__}; choose from {sorted(known)}")
    return made(**{**common, **given})


def _chosen(
    rows: "Queries", valid: "Queries | None", metric: str, given: dict[str, Any], loss: str, seed: int, progress: Any
) -> tuple[dict[str, Any], Any]:
    """The best of the short list, and what was tried."""
    from placet.rank import autorank

    if valid is None:
        raise ValueError("--ranker auto chooses by validation rows; give them with --valid")
    if loss or set(given) - {"budget", "blend"}:
        raise ValueError("--ranker auto chooses loss and parameters itself; it takes only --param budget=N and blend=K")
    choice = autorank(rows, valid, metric=metric, random_state=seed, progress=progress, **given)
    say(repr(choice))
    return {"validation": choice.value, "tried": len(choice.trials)}, choice.ranker


def _judged(path: Path, labels: Path) -> "Judged":
    """Scores met with labels, whether they are in a file or a model computes them."""
    from placet.io.judged import read_judged, score_rows
    from placet.rank.files import is_saved, load

    if not is_saved(path):
        return read_judged(path, labels)
    ranker = load(path)
    rows = read_queries(labels, ranker.n_features_in_)
    return score_rows(rows.restore(ranker.predict(rows)), rows)


@contextmanager
def showing_progress(metric: str) -> Iterator[Callable[[int, int, float | None], None] | None]:
    """A callback that draws a bar with the current metric on stderr; None where stderr is not a terminal."""
    with progress_bar("training") as update:

        def advance(step: int, steps: int, value: float | None) -> None:
            if update is not None:
                update(step, steps, None if value is None else f"{metric} {value:.4f}")

        yield None if update is None else advance
