"""``placet evaluate``: the quality of a ranking, by metrics over lists."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from placet.cli.common.console_output import check_suffix, deliver, progress_bar, say
from placet.cli.common.metric_values import say_unanswered, split_specs, subtopics
from placet.cli.common.options import OF_VOTES, AsJson, Out, check_reading, from_stdin, reads
from placet.cli.learning.judged_evaluation import evaluate_with_judge

if TYPE_CHECKING:
    from placet.io import Judged


@reads(*OF_VOTES)
def evaluate(
    scores: Annotated[
        Path,
        typer.Argument(
            callback=from_stdin,
            help="Scores, one per line in the order of the labels' rows, a TREC run, or label:score; -: stdin.",
        ),
    ],
    labels: Annotated[
        Path | None,
        typer.Argument(callback=from_stdin, help="LETOR / svmlight file, TREC qrels, or extreme classification text."),
    ] = None,
    metric: Annotated[
        str, typer.Option("--metric", metavar="NAME,...", help="Metrics, comma-separated.")
    ] = "ndcg@10,map",
    compat: Annotated[
        str, typer.Option(metavar="NAME", help="Conventions of another package: lightgbm, xgboost, trec_eval, ...")
    ] = "",
    per_query: Annotated[bool, typer.Option("--per-query", help="One row per query.")] = False,
    train: Annotated[
        Path | None, typer.Option(help="Training points, from which propensities of labels are taken (psp, psndcg).")
    ] = None,
    qrels: Annotated[Path | None, typer.Option("--qrels", help="The labels, by name instead of as LABELS.")] = None,
    judge: Annotated[
        Path | None,
        typer.Option("--judged", help="Qrels of a judge for many queries, beside those of people for a few."),
    ] = None,
    out: Out = None,
    as_json: AsJson = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Score a run or a file of scores against graded labels.

    The mean is over the queries in which a metric is defined; the number of queries left out is reported.  With
    --judged the labels are those of people, for some of the queries, and the mean is what people would have given over
    all queries of the judge, with an interval of 95 %.
    """
    from placet.io import read_judged
    from placet.metrics import evaluate as evaluate_all, metric as metric_of, summary

    check_suffix(out)
    check_reading(reading, ["qrels", "letor", "features", "xmc"], "placet evaluate")
    labels = _only_labels(labels, qrels)
    specs = [metric_of(with_compat(text, compat)) for text in split_specs(metric)]
    if judge is not None:
        if reading or train is not None:
            raise ValueError("--judged is for a TREC run and two files of qrels, which take no other option of reading")
        evaluate_with_judge(specs, scores, labels, judge, per_query, out, as_json)
        return
    with progress_bar("reading"):
        judged = read_judged(scores, labels, **reading)
    say_unanswered(scores, judged)
    scored_by_propensity = any(spec.name in ("psp", "psndcg") for spec in specs)
    has_labels = judged.name is not None and judged.name.dtype.kind == "i"
    propensity = row_propensities(judged, labels, train) if scored_by_propensity and has_labels else None
    with progress_bar("measuring"):
        lists = judged.score, judged.grade, judged.offsets
        values = evaluate_all(
            specs, *lists, name=judged.name, propensity=propensity, judged=subtopics(judged, specs, labels)
        )
    if per_query:
        rows = [[qid, *(float(v[q]) for v in values.values())] for q, qid in enumerate(judged.qid)]
        deliver(out, as_json, ["qid", *values], rows)
        return
    table = [(spec, summary(v)) for spec, v in values.items()]
    deliver(
        out,
        as_json,
        ["metric", "mean", "stderr", "queries", "undefined"],
        [[spec, s.mean, s.stderr, s.n_lists, s.n_undefined] for spec, s in table],
        {
            spec: {"mean": s.mean, "stderr": s.stderr, "queries": s.n_lists, "undefined": s.n_undefined}
            for spec, s in table
        },
    )
    for spec, s in table:
        if s.n_undefined:
            say(f"{spec}: {s.n_undefined} of {s.n_lists + s.n_undefined} queries have no value and are not in the mean")


def _only_labels(labels: Path | None, qrels: Path | None) -> Path:
    """The labels, given as an argument or by name."""
    if labels is not None and qrels is not None:
        raise ValueError(f"the labels are given twice, {labels} and --qrels {qrels}; leave one out")
    found = labels or qrels
    if found is None:
        raise ValueError(
            "placet evaluate needs LABELS: LETOR / svmlight file, TREC qrels, or extreme classification text; see "
            "placet evaluate --help"
        )
    return found


def row_propensities(judged: "Judged", labels: Path, train: Path | None) -> Any:
    """The propensity of each row's label, counted in the training points (or else in the labels themselves)."""
    import numpy as np

    from placet.data import DataError
    from placet.io import read_xmc
    from placet.metrics import propensities

    if train is None:
        say(f"propensities are those of {labels} itself; give the training points with --train to take theirs")
    points = read_xmc(train or labels)
    label, n_labels = np.asarray(judged.name, dtype=np.int64), points.Y.shape[1]
    if (label >= n_labels).any():
        raise DataError(f"{train}: {n_labels} labels; label {label.max()} of {labels} is not among them")
    return propensities(points.Y.getnnz(axis=0), len(points))[label]


def with_compat(spec: str, compat: str) -> str:
    """The specification with the conventions ``compat`` added."""
    if not compat:
        return spec
    return f"{spec[:-1]},compat={compat})" if spec.endswith(")") else f"{spec}(compat={compat})"
