"""``placet aggregate``: compute a consensus from files of votes, ballots, rank lists or ratings."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from placet.cli.common.consensus_output import show_result, show_tiers
from placet.cli.common.console_output import LONG, check_suffix, progress_bar, say, show_json
from placet.cli.common.model_options import AGENTS_HELP, CONTROL_HELP, DRIFT_HELP, STEP_HELP, check_drift, model_options
from placet.cli.common.options import (
    AsJson,
    FormatName,
    Level,
    Out,
    Param,
    Report,
    SeedOption,
    check_reading,
    complete_methods,
    ranked_formats,
    reads,
)
from placet.cli.common.parts_option import InParts, OnDask, open_parts
from placet.cli.common.provenance import origin, page_title
from placet.cli.common.read_files import read_all, read_boards, read_slices
from placet.cli.common.voter_groups import mixture_of, say_groups, split_parameters

if TYPE_CHECKING:
    from placet.aggregate.result.boards import Board
    from placet.data import Comparisons, Rankings


@reads
def aggregate(
    files: Annotated[
        list[Path],
        typer.Argument(help="Votes, ballots, PrefLib, rank lists, ratings, score tables; several TREC runs are fused."),
    ],
    method: Annotated[
        str,
        typer.Option(
            "--method", "-m", help="A model or rule; a wrong name lists them all.", autocompletion=complete_methods
        ),
    ] = "",
    format: FormatName = "",
    param: Param = None,
    control: Annotated[list[str] | None, typer.Option("--control", help=CONTROL_HELP)] = None,
    agents: Annotated[str, typer.Option("--agents", help=AGENTS_HELP)] = "",
    drift: Annotated[str, typer.Option("--drift", help=DRIFT_HELP)] = "",
    step: Annotated[str, typer.Option("--step", help=STEP_HELP)] = "",
    bootstrap: Annotated[int, typer.Option(min=0, help="Rounds of resampling; 0 for none.")] = 0,
    level: Level = 0.95,
    min_support: Annotated[
        float,
        typer.Option(min=0, help="Show only items with at least this many votes or ballots (all are used in the fit)."),
    ] = 0,
    tiers: Annotated[bool, typer.Option("--tiers", help="Show groups of items that the data cannot separate.")] = False,
    by: Annotated[str, typer.Option(help="A column: one board for each of its values, and a page that compares.")] = "",
    scale: Annotated[str, typer.Option(help="elo: scores as points, 400 for odds of 10 to 1.")] = "",
    anchor: Annotated[str, typer.Option(help="With --scale: ITEM=POINTS, or POINTS of the mean item (1000).")] = "",
    seed: SeedOption = 0,
    report: Report = None,
    title: Annotated[str, typer.Option(help="With --report: the heading of the page.")] = "",
    out: Out = None,
    as_json: AsJson = False,
    parts: InParts = False,
    dask: OnDask = "",
    groups: Annotated[str, typer.Option(help="Groups of voters, each with a ranking: a number, or auto.")] = "",
    members: Annotated[Path | None, typer.Option(help="With --groups: write each voter's group to this file.")] = None,
    *,
    reading: dict[str, Any],
) -> None:
    """Rank the items in files by consensus, with standard errors and rank intervals.

    Without --method: Bradley-Terry for votes, Plackett-Luce for ballots and ratings (MPM for more than 100,000 ratings
    or 2,000 rated items), the mean for score tables.
    Ballots that belong to instances (the topics of TREC runs, the queries of LETOR files) are ranked instance by
    instance.  To update a board written with --out board.json: placet aggregate board.json new.csv
    """
    from placet.aggregate import consensus
    from placet.aggregate.consensus_door import check_method, expected_seconds
    from placet.aggregate.method_table import METHODS, check_defaults, default_method, default_note
    from placet.aggregate.result.result_files import WRITERS
    from placet.data import Scores
    from placet.data.parameters import parse_parameters

    if title and report is None:
        raise ValueError(f"--title {title!r} is the heading of a page; add --report PAGE.html")
    check_suffix(out, list(WRITERS))
    check_scale(scale, anchor)
    check_reading(reading, [format] if format else ranked_formats(), "placet aggregate")
    show = show_tiers if tiers else show_result
    also, fitting = model_options(control or [], agents, drift, step)
    params, mixed = split_parameters(groups, members, by, fitting | parse_parameters(param or []))
    if method:
        check_drift(drift, method)
        check_method(method, params)
    elif params:
        check_defaults(params)
    options = also | reading
    if parts or dask:
        if report is not None or by:
            raise ValueError("--report and --by look at all data and need them in memory; leave --parts or --dask out")
        with open_parts([files], format, options, dask, method or "consensus") as (found,):
            chosen = method or default_method(found)
            check_method(chosen, params)
            answer: Any = consensus(found, chosen, bootstrap=bootstrap, random_state=seed, **params)
        answer = answer.with_min_support(min_support) if min_support else answer
        answer = _in_points(answer, scale, anchor) if scale else answer
        _deliver(answer, set(found.notes), out, as_json, level, None, show)
        return
    with progress_bar("reading"):
        data, start, old = _read(files, by, format, options)
    chosen = method or (old.method if old is not None else default_method(data))
    if not method and old is None and (why := default_note(data)):
        say(why)
    params = {**(old.params if old is not None and chosen == old.method else {}), **params}
    params.pop("random_state", None)
    check_drift(drift, chosen)
    check_method(chosen, params)
    mixture = mixture_of(groups, chosen, params, mixed, seed) if groups else None
    kept = data
    if isinstance(data, Scores) and "scores" not in METHODS[chosen].takes:
        data = data.to_rankings()  # one ballot per task
    if not isinstance(data, Mapping | Scores) and (seconds := expected_seconds(data, chosen, bootstrap, params)) > LONG:
        say(f"{chosen} on {_size(data)}: about {_time(seconds)}")
    with progress_bar(chosen) as bar:
        given = {"bootstrap": bootstrap, "random_state": seed, "progress": bar, "start": start}
        given |= params if mixture is None else {}
        result: Any = consensus(data, mixture or chosen, **given)
        result = replace(result, by=by) if by else result
        result = result.with_min_support(min_support) if min_support else result
        result = _in_points(result, scale, anchor) if scale else result
    said = data.values() if isinstance(data, Mapping) else [data]
    known = {note for part in said for note in part.notes}  # already reported when the files were read
    say_groups(result, members)
    if report is not None:  # before stdout, which may be a pipe that is closed early
        with progress_bar("report"):
            _write_page(report, result, data, title=title or page_title(files), level=level, origin=origin(files, seed))
        say(f"report: {report}")
    _deliver(result, known, out, as_json, level, kept, show)


def _deliver(result: Any, known: set[str], out: Path | None, as_json: bool, level: float, data: Any, show: Any) -> None:
    """Report notes that are not in ``known`` on stderr, and write the result where it is requested."""
    from placet.aggregate.result.result_files import WRITERS, result_json
    from placet.io.files import bare_suffix

    for note in result.notes:
        if note not in known:
            say(note)
    if out is not None:
        with progress_bar("writing"):
            WRITERS[bare_suffix(out)](out, result, level, data)
    elif as_json:
        with progress_bar("ranks"):
            value = result_json(result, level, data)
        show_json(value)
    else:
        show(result, level)


def check_scale(scale: str, anchor: str) -> None:
    """Raise a ``ValueError`` for an unknown scale, or an anchor without a scale."""
    from placet.aggregate.result.scales import SCALES
    from placet.data.errors import one_of

    if scale:
        one_of(scale, SCALES, "--scale")
    elif anchor:
        raise ValueError(f"--anchor {anchor} needs --scale, such as --scale elo")


def _in_points(result: Any, scale: str, anchor: str) -> Any:
    from placet.aggregate.result.scales import rescale
    from placet.data.parameters import parse_value

    item, equals, points = anchor.rpartition("=")
    value = parse_value(points) if anchor else None
    if value is not None and not isinstance(value, int | float):
        if equals:
            raise ValueError(f"--anchor {anchor}: {points!r} is not a number; write --anchor ITEM=POINTS")
        item, value = anchor, None
    names = {
        str(name): name
        for board in (result.values() if isinstance(result, Mapping) else [result])
        for name in board.items
    }
    if item and item not in names:
        raise ValueError(f"--anchor {anchor}: item {item!r} is not among the {len(names)} items")
    return rescale(result, scale, names.get(item), value)


def _read(files: "list[Path]", by: str, format: str, options: dict[str, Any]) -> "tuple[Any, Any, Board | None]":
    """The data, the scores to start from, and the board to continue, if one is given."""
    from placet.data import DataError, concat

    boards, others = read_boards(files)
    if not boards:
        return (read_slices(files, by, format, options) if by else read_all(files, format, options)), None, None
    if by or any(board.data is None or isinstance(board.data, Mapping) for board in boards):
        raise DataError(
            f"{files[0]}: this board cannot be updated: it has slices, or no votes; aggregate all files together"
        )
    parts = [board.data for board in boards]
    if others:
        parts.append(read_all(others, format, _as_before(boards[0].data, options)))
    if len({type(part) for part in parts}) > 1:
        raise DataError(
            f"{', '.join(map(str, files))}: a board of {_kind(parts[0])} cannot be updated with {_kind(parts[-1])}; "
            "give --format where a file was read as something else"
        )
    say(f"continuing from {boards[0].consensus!r}")
    return concat(parts), boards[0].consensus, boards[0]


def _as_before(data: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The options with the controls of the board to continue, unless some are given or their names are not plain."""
    known = getattr(data, "controls", None) or ()
    if not known or "control" in options or any("=" in name for name in known):
        return options
    say(f"controls as before: {', '.join(known)}")
    return options | {"control": list(known)}


def _kind(data: Any) -> str:
    return {"Comparisons": "votes", "Rankings": "ballots", "Scores": "scores"}.get(type(data).__name__, "other data")


def _write_page(report: Path, result: Any, data: Any, **options: Any) -> None:
    from placet.report import write_consensus_page, write_slices_page

    if isinstance(data, Mapping):
        write_slices_page(report, result, **options)
    else:
        write_consensus_page(report, result, data, **options)


def _size(data: "Rankings | Comparisons") -> str:
    from placet.data import Rankings

    if isinstance(data, Rankings) and data.instances is not None:
        return f"{len(data.instances):,} instances with {len(data.item):,} rows"
    return f"{data.n_items:,} items"


def _time(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 100 else f"{seconds / 60:.0f} minutes"
