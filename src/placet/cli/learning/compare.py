"""``placet compare``: systems on the same queries, each against the first, or all pairs and tiers of systems."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from placet.cli.common.console_output import check_suffix, deliver, progress_bar, say, show_table
from placet.cli.common.feature_rows import FORMATS_READ, files_of, is_table, read_known_features, rows_reader
from placet.cli.common.metric_values import say_unanswered, split_specs, value_per_query
from placet.cli.common.options import (
    OF_VOTES,
    AsJson,
    Level,
    Out,
    Relations,
    SeedOption,
    check_reading,
    from_stdin,
    reads,
)

if TYPE_CHECKING:
    from placet.io import Judged


@reads(*OF_VOTES)
def compare(
    systems: Annotated[
        list[Path],
        typer.Argument(
            callback=from_stdin,
            metavar="SYSTEM",
            help="Models, files of scores, or TREC runs; others are compared with the first.",
        ),
    ],
    labels: Annotated[Path, typer.Argument(callback=from_stdin, help="LETOR / svmlight file, or TREC qrels.")],
    metric: Annotated[str, typer.Option("--metric", metavar="NAME,...", help="Metrics, comma-separated.")] = "ndcg@10",
    relation: Relations = None,
    level: Level = 0.95,
    seed: SeedOption = 0,
    all_pairs: Annotated[
        bool, typer.Option("--all-pairs", help="Every pair, corrected for their number, and tiers of systems.")
    ] = False,
    correction: Annotated[
        str, typer.Option(metavar="NAME", help="What makes tiers with --all-pairs: max-t (unless given), holm or none.")
    ] = "",
    out: Out = None,
    as_json: AsJson = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Compare systems on the same queries: means, and the difference of each from the first.

    Intervals are by bootstrap over queries, p-values by randomly flipping signs of the paired differences.  With
    --all-pairs, files may be named (name=path), and files with the same name are runs (seeds) of one system.
    """
    from placet.metrics import metric as metric_of

    if len(systems) < 2:
        raise ValueError("give at least two systems and the labels: placet compare A B LABELS")
    if not all_pairs:
        _refuse_all_pairs_only(systems, correction)
    check_suffix(out)
    check_reading(reading, ["qrels", "letor", "features", "xmc", "letor-agg"], "placet compare")
    specs = [metric_of(text) for text in split_specs(metric)]
    read_system = partial(_read_system, labels=labels, relations=files_of(relation), options=reading)
    asked: dict[str, Any] = {"level": level, "random_state": seed}
    if all_pairs:
        named = named_systems(systems)
        with progress_bar("scoring"):
            runs = {name: [read_system(path) for path in paths] for name, paths in named.items()}
        show_all_pairs(specs, runs, labels, correction=correction or "max-t", out=out, as_json=as_json, **asked)
        return
    with progress_bar("scoring"):
        judged = [read_system(path) for path in systems]
    _show_differences(specs, list(zip(map(str, systems), judged)), labels, asked, out, as_json)


def _refuse_all_pairs_only(systems: Sequence[Path], correction: str) -> None:
    """Raise a ``ValueError`` for a correction or a named system, which need --all-pairs."""
    if correction:
        raise ValueError(f"--correction {correction} is for tiers of systems; add --all-pairs, or leave it out")
    for path in systems:
        name, sign, rest = str(path).partition("=")
        if sign and name and not path.exists() and Path(rest).exists():
            raise ValueError(f"{path}: files have names with --all-pairs only; add that, or give {rest} alone")


def _show_differences(
    metrics: Sequence[Any],
    systems: "list[tuple[str, Judged]]",
    labels: Path,
    asked: Mapping[str, Any],
    out: Path | None,
    as_json: bool,
) -> None:
    """Print the mean of each system and its difference from the first, by each metric."""
    from placet.metrics import summary
    from placet.metrics.systems import compare_shared_lists

    head = ["metric", "system", "mean", "stderr", "queries", "minus first", "low", "high", "p"]
    rows: list[list[Any]] = []
    for spec in metrics:
        values = [value_per_query(spec, one, labels) for _, one in systems]
        with progress_bar(f"comparing by {spec!r}"):
            gaps = [compare_shared_lists(own, values[0], **asked) for own in values[1:]]
        for (name, _), own, gap in zip(systems, map(summary, values), [None, *gaps]):
            row = [repr(spec), name, own.mean, own.stderr, own.n_lists]
            ends = [None] * 4 if gap is None else [gap.difference, gap.low, gap.high, gap.p_value]
            rows.append([*row, *ends])
            if gap is not None and not gap.n_lists:
                say(f"{spec!r}: {name} and {systems[0][0]} have values in no common query; nothing is compared")
        left_out = summary(values[0]).n_undefined
        if left_out:
            say(f"{spec!r}: {left_out} queries have no value and are left out")
    deliver(out, as_json, head, rows)


def _read_system(path: Path, labels: Path, relations: dict[str, Path], options: Mapping[str, Any]) -> "Judged":
    """Scores matched with labels, read from a file or computed by a model."""
    from placet.io.judged_scores import read_judged, score_rows
    from placet.rank import load
    from placet.rank.saving.model_files import is_saved

    if not is_saved(path):
        judged = read_judged(path, labels, **options)
        say_unanswered(path, judged)
        return judged
    ranker = load(path)
    if ranker.learns_from == "labels":
        raise ValueError(f"{path}: a ranker of labels is compared by files of scores; make one with: placet score")
    if is_table(labels) and not relations and ranker.learns_from not in FORMATS_READ:
        rows = read_known_features(labels, [str(name) for name in ranker.features_ or ()], options)
    else:
        rows = rows_reader(ranker.learns_from, relations, options)(labels, ranker.n_features_in_)
    return score_rows(rows.restore(ranker.predict(rows)), rows)


def named_systems(given: Sequence[Path]) -> dict[str, list[Path]]:
    """The files of each system: ``name=path`` gives a name, and files with the same name are runs of one system."""
    out: dict[str, list[Path]] = {}
    for path in given:
        name, sign, rest = str(path).partition("=")
        if sign and name and not path.exists():
            out.setdefault(name, []).append(Path(rest))
        else:
            if str(path) in out:
                raise ValueError(f"{path} is given twice; name runs of one system alike: name=first name=second")
            out[str(path)] = [path]
    return out


def show_all_pairs(
    metrics: Sequence[Any],
    systems: dict[str, list[Any]],
    labels: Path,
    *,
    correction: str,
    level: float,
    random_state: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Print systems in tiers and all pairs (to ``out``, if given) by each metric.

    ``systems`` maps names to runs, matched with the judgments in the file ``labels``.
    """
    from placet.metrics import compare_systems

    system_head = ["metric", "system", "tier", "mean", "stderr", "queries", "runs", "spread of runs"]
    pair_head = ["metric", "a", "b", "a minus b", "low", "high", "p", "p holm", "p max-t", "queries"]
    system_rows: list[list[Any]] = []
    pair_rows: list[list[Any]] = []
    for spec in metrics:
        values = {name: [value_per_query(spec, run, labels) for run in runs] for name, runs in systems.items()}
        with progress_bar(f"comparing by {spec!r}"):
            found = compare_systems(values, correction=correction, level=level, random_state=random_state)
        for name, own, n_runs, spread, tier in zip(
            found.names, found.summaries, found.n_runs, found.run_spread, found.tier
        ):
            shown = None if n_runs == 1 else spread
            system_rows.append([repr(spec), name, tier, own.mean, own.stderr, own.n_lists, n_runs, shown])
        for pair in found.pairs:
            gap = pair.gap
            p = [gap.p_value, pair.p_holm, pair.p_max_t, gap.n_lists]
            pair_rows.append([repr(spec), pair.a, pair.b, gap.difference, gap.low, gap.high, *p])
            if not gap.n_lists:
                say(f"{spec!r}: {pair.a} and {pair.b} have values in no common query; nothing is compared")
        left_out = max(own.n_undefined for own in found.summaries)
        if left_out:
            say(f"{spec!r}: up to {left_out} queries have no value and are left out")
    tables = {"systems": (system_head, system_rows), "pairs": (pair_head, pair_rows)}
    if not as_json:
        show_table(system_head, system_rows)
        if out is None:
            print()
    both = {key: [dict(zip(head, row)) for row in rows] for key, (head, rows) in tables.items()}
    deliver(out, as_json, pair_head, pair_rows, both)
