"""``placet aggregate``: compute a consensus from files of votes, ballots, rank lists or ratings."""

import inspect
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from placet.cli.common.certificate_files import check_certificate_options, write_certificate
from placet.cli.common.consensus_output import show_result, show_tiers
from placet.cli.common.console_output import LONG, check_suffix, progress_bar, say, show_json
from placet.cli.common.options import (
    METHOD,
    MODEL,
    OUTPUT,
    AsJson,
    FormatName,
    Level,
    MethodText,
    Out,
    Param,
    Report,
    SeedOption,
    check_reading,
    check_target,
    formats_to_rank,
    in_group,
    reads,
)
from placet.cli.common.parts_option import InParts, OnDask, open_parts
from placet.cli.common.read_files import read_or_update
from placet.cli.common.read_sources import (
    PairColumn,
    SourceColumn,
    Target,
    Tasks,
    check_sources,
    read_sources,
    sources_in_parts,
)

if TYPE_CHECKING:
    from placet.aggregate import Groups, Mixture
    from placet.aggregate.result.boards import Board
    from placet.data import Comparisons, Rankings

CONTROL_HELP = (
    'A column that may have moved votes or ballots: "bold", "length_a - length_b", "one-hot(position)", "age * tea" (a '
    "number of the ballot, in the rows of that item); may be repeated."
)
AGENTS_HELP = "What raters may differ in: sharpness, ties, side, joined by +, or all; --agent names their column."
DRIFT_HELP = 'Let scores change over time: standard deviation per step, or "learn"; --time names the column of dates.'
ABOUT_HELP = (
    "With --report: a table about the items (column item, or the first), whose other columns the page shows: "
    "organization, license; a column of web addresses links the names."
)
STEP_HELP = 'Length of a time step, such as "1y", "6m", "2w", "30d", or a number where times are numbers.'


@reads("qid", "label")
def aggregate(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="Votes, ballots, PrefLib, rank lists, ratings, score tables; several TREC runs are fused. NAME=FILE "
            "names a source of a joint fit (see --target).",
        ),
    ],
    method: MethodText = "",
    format: FormatName = "",
    param: Param = None,
    ties: Annotated[str, in_group("Model of ties on votes: auto, none, rao-kupper or davidson.", METHOD, "NAME")] = "",
    order_effect: Annotated[
        bool, in_group("Learn the advantage of the side named first (home, left).", METHOD, "", "--order-effect")
    ] = False,
    control: Annotated[list[str] | None, in_group(CONTROL_HELP, MODEL, "COLUMN", "--control")] = None,
    agents: Annotated[str, in_group(AGENTS_HELP, MODEL, "KINDS", "--agents")] = "",
    drift: Annotated[str, in_group(DRIFT_HELP, MODEL, "NUMBER|learn", "--drift")] = "",
    step: Annotated[str, in_group(STEP_HELP, MODEL, "LENGTH", "--step")] = "",
    bootstrap: Annotated[
        int, typer.Option(min=0, metavar="N", help="Rounds of resampling; 0 for none.", rich_help_panel=METHOD)
    ] = 0,
    level: Level = 0.95,
    min_support: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="N",
            help="Show only items with at least this many votes or ballots (all are used in the fit).",
            rich_help_panel=OUTPUT,
        ),
    ] = 0,
    tiers: Annotated[
        bool, in_group("Show groups of items that the data cannot separate.", OUTPUT, "", "--tiers")
    ] = False,
    top: Annotated[
        int, typer.Option(min=0, metavar="N", help="Show only the best N items.", rich_help_panel=OUTPUT)
    ] = 0,
    source: SourceColumn = "",
    target: Target = "",
    tasks: Tasks = False,
    pair: PairColumn = "",
    by: Annotated[
        str, in_group("A column: one board for each of its values, and a page that compares.", MODEL, "COLUMN")
    ] = "",
    scale: Annotated[str, in_group("elo: scores as points, 400 for odds of 10 to 1.", OUTPUT, "elo")] = "",
    anchor: Annotated[
        str, in_group("With --scale: ITEM=POINTS, or POINTS of the mean item (1000).", OUTPUT, "ITEM=POINTS")
    ] = "",
    seed: SeedOption = 0,
    report: Report = None,
    certificate: Annotated[
        Path | None,
        typer.Option(
            callback=check_target,
            metavar="FILE",
            help="Write what others need to check the result with placet verify (JSON).",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    sign: Annotated[
        Path | None, in_group("With --certificate: sign it with this SSH key, by ssh-keygen -Y.", OUTPUT, "KEY")
    ] = None,
    title: Annotated[str, in_group("With --report: the heading of the page.", OUTPUT, "TEXT")] = "",
    about: Annotated[Path | None, in_group(ABOUT_HELP, OUTPUT, "FILE")] = None,
    out: Out = None,
    as_json: AsJson = False,
    parts: InParts = False,
    dask: OnDask = "",
    groups: Annotated[str, in_group("Groups of voters, each with a ranking: a number, or auto.", MODEL, "N|auto")] = "",
    members: Annotated[
        Path | None, in_group("With --groups: write each voter's group to this file.", MODEL, "FILE")
    ] = None,
    *,
    reading: dict[str, Any],
) -> None:
    """Rank the items in files by consensus, with standard errors and rank intervals.

    Without --method: Bradley-Terry for votes (Davidson's model if there are ties), Plackett-Luce for ballots, the mean
    rating adjusted for who rated for ratings, the mean for score tables.
    Ballots that belong to instances (the topics of TREC runs, the queries of LETOR files) are ranked instance by
    instance.  To update a board written with --out board.json: placet aggregate board.json new.csv
    """
    from placet.aggregate import consensus
    from placet.aggregate.method_table import GAMES, method_name
    from placet.aggregate.result.result_files import WRITERS
    from placet.data.parameters import parse_parameters

    check_suffix(out, list(WRITERS))
    check_scale(scale, anchor)
    check_reading(reading, formats_to_rank(format), "placet aggregate")
    in_parts = parts or bool(dask)
    if title and report is None:
        raise ValueError(f"--title {title!r} is the heading of a page; add --report PAGE.html")
    if about is not None and report is None:
        raise ValueError(f"--about {about} has columns for a page; add --report PAGE.html")
    if in_parts and (report is not None or by):
        raise ValueError("--report and --by look at all data and need them in memory; leave --parts or --dask out")
    if top and (out is not None or as_json or tiers):
        raise ValueError(f"--top {top} is for the table shown; --out, --json and --tiers have all items: leave it out")
    together = {"--by": by, "--groups": groups, "--parts or --dask": in_parts, "--source": source, "--tasks": tasks}
    check_certificate_options(certificate, sign, files, together)
    method = method_name(method) if method else ""
    format = format or ("games" if method in GAMES else "")
    options, fitting = _model_options(control or [], agents, drift, step, ties, order_effect)
    refused = {"--by": by, "--groups": groups, "--agents": agents, "--drift": drift, f"--method {method}": method}
    joined = (check_sources(files, source, target, refused, tasks, pair), source, target, tasks, pair)
    params, mixed = _split_parameters(groups, members, by, fitting | (parse_parameters(param) if param else {}))
    _check_parameters(method, params, drift, any(joined))
    with _opened(files, by, format, options | reading, in_parts, dask, method, joined) as (data, board):
        chosen = method or _default(data, board, params, drift)
        if board is not None and chosen == board.method:
            params = {name: value for name, value in board.params.items() if name != "random_state"} | params
        fitted = _to_fit(data, chosen)
        _say_time(fitted, chosen, bootstrap, params)
        named = chosen if method or board is not None else None  # else the result says which method it was, and why
        model = _mixture(groups, chosen, params, mixed, seed) if groups else named
        given: dict[str, Any] = {} if groups else params  # a mixture holds those of its model
        given = given | {"bootstrap": bootstrap, "random_state": seed}
        start = None if board is None else board.consensus
        with nullcontext() if in_parts else progress_bar(chosen) as bar:  # of parts, passes are shown
            result: Any = consensus(fitted, model, progress=bar, start=start, **given)
    made: Mapping[str, Any] | None = None
    if certificate is not None:
        how = {"format": format, "options": options | reading}
        with progress_bar("certificate"):
            made = write_certificate(certificate, result, files, how, level, sign)
        say(f"certificate: {certificate}")
    result = replace(result, by=by) if by else result
    result = result.with_min_support(min_support) if min_support else result
    result = _in_points(result, scale, anchor) if scale else result
    if groups:
        _say_groups(result, members)
    if report is not None:  # before stdout, which may be a pipe that is closed early
        with progress_bar("report"):
            _write_page(report, result, fitted, files, seed, title, level, made, about)
        say(f"report: {report}")
    known = _notes(fitted)  # reported when the files were read
    for note in result.notes:
        if note not in known:
            say(note)
    if not min_support:
        _say_support(result, level)
    show = show_tiers if tiers else partial(show_result, top=top)
    _deliver(result, out, as_json, level, None if in_parts else data, show)


def _say_support(result: Any, level: float) -> None:
    """Say which --min-support makes rank sets useful, if the first items of a wide board could have any rank."""
    from placet.aggregate.result.separation import useful_support

    if getattr(result, "stderr", None) is None or result.support is None:
        return
    least = useful_support(result.scores, result.stderr, result.support, level)
    if least is None:
        return
    kept = result.with_min_support(least)
    before, after = (int(board.rank_interval(level)[1][board.order[0]]) for board in (result, kept))
    if after < before:
        say(
            f"many items have little data: the first could be 1..{before} of {len(result.items)}; "
            f"--min-support {least:g} leaves {len(kept.items)} items, of which the first could be 1..{after}"
        )


# Before any file is read


def check_scale(scale: str, anchor: str) -> None:
    """Raise a ``ValueError`` for an unknown scale, or an anchor without a scale."""
    from placet.aggregate.result.scales import SCALES
    from placet.data.errors import one_of

    if scale:
        one_of(scale.lower(), SCALES, "--scale")
    elif anchor:
        raise ValueError(f"--anchor {anchor} needs --scale, such as --scale elo")


def _model_options(
    control: Sequence[str], agents: str, drift: str, step: str, ties: str, order_effect: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of the reader and parameters of the model; those given by -r and -p take precedence."""
    from placet.data.parameters import parse_value

    reading: dict[str, Any] = {"control": list(control)} if control else {}
    moving = {"drift": parse_value(drift)} if drift else {}
    if step:
        moving["step"] = parse_value(step)
    if ties:
        moving["ties"] = ties
    if order_effect:
        reading["ordered"] = moving["order_effect"] = True
    if not agents:
        return reading, moving
    from placet.aggregate.likelihood.raters import parse_kinds

    kinds = parse_kinds(agents)
    if "side" in kinds:
        reading["ordered"] = True
    return reading, ({"ties": "davidson"} if "ties" in kinds else {}) | moving | {"agents": agents}


def _check_drift(drift: str, method: str) -> None:
    """Raise a ``ValueError`` for a method whose scores cannot change over time."""
    from placet.aggregate.method_table import method_of

    if drift and not method_of(method).drifts:
        raise ValueError(
            f"--drift {drift} is for votes on pairs (--method bradley-terry); scores of {method} do not move"
        )


def _split_parameters(
    groups: str, members: Path | None, by: str, params: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split parameters into those of the model and those of the mixture."""
    if not groups:
        if members is not None:
            raise ValueError("--members needs --groups: a number of groups, or auto")
        return params, {}
    from placet.aggregate import Mixture
    from placet.data.parameters import check_parameters

    if by:
        raise ValueError(f"--groups finds groups of voters in all the data; --by {by} cuts them up: give only one")
    if groups != "auto" and not groups.isdecimal():
        raise ValueError(f"--groups must be a number of groups or auto, not {groups!r}")
    names = [name for name in inspect.signature(Mixture).parameters if name not in ("model", "k", "random_state")]
    own = {name: value for name, value in params.items() if name in names}
    check_parameters(Mixture, own, "the mixture")
    return {name: value for name, value in params.items() if name not in names}, own


def _check_parameters(method: str, params: Mapping[str, Any], drift: str, joined: bool) -> None:
    """Reject parameters that the method, or every possible default, does not take."""
    from placet.aggregate.consensus_door import check_method
    from placet.aggregate.defaults import check_defaults

    if joined:
        from placet.aggregate.method_table import SOURCES

        SOURCES.check(params)
    elif method:
        _check_drift(drift, method)
        check_method(method, params)
    elif params:
        check_defaults(params)


# Reading and fitting


@contextmanager
def _opened(
    files: list[Path],
    by: str,
    format: str,
    options: dict[str, Any],
    in_parts: bool,
    dask: str,
    method: str,
    joined: tuple[dict[str, list[Path]], str, str, bool, str],
) -> "Iterator[tuple[Any, Board | None]]":
    """The data, in memory or in parts, and the board to update, if one is given; ``joined``: files of sources by name,
    the column of sources, the target, whether tasks are sources, and the column of ids that pairs votes.
    """
    named, source, target, tasks, pair = joined
    if in_parts and (named or source or tasks):
        with sources_in_parts(files, named, source, target, format, options, dask, tasks, pair) as parts:
            yield parts, None
        return
    if named or source or tasks:
        with progress_bar("reading"):
            data = read_sources(files, named, source, target, format, options, tasks, pair)
        yield data, None
        return
    if in_parts:
        with open_parts([files], format, [options], dask, method or "consensus") as (found,):
            yield found, None
        return
    with progress_bar("reading"):
        opened = read_or_update(files, by, format, options)
    yield opened


def _default(data: Any, board: "Board | None", params: Mapping[str, Any], drift: str) -> str:
    """The method of the board, or the default for the data; its parameters are checked now that it is known."""
    from placet.aggregate.consensus_door import check_method
    from placet.aggregate.defaults import default_method

    chosen = default_method(data) if board is None else board.method
    if drift:
        _check_drift(drift, chosen)
    check_method(chosen, params)
    return chosen


def _to_fit(data: Any, method: str) -> Any:
    """The data as the method reads them: of a score table, one ballot per task unless the method reads scores."""
    from placet.aggregate.method_table import METHODS
    from placet.data import Scores

    return data.to_rankings() if isinstance(data, Scores) and "scores" not in METHODS[method].takes else data


def _say_time(data: Any, method: str, bootstrap: int, params: Mapping[str, Any]) -> None:
    """Say how long a long fit will take, if the data are one problem or many that are known in size."""
    from placet.aggregate.consensus_door import expected_seconds
    from placet.data import Comparisons, Rankings

    if isinstance(data, Rankings | Comparisons):
        seconds = expected_seconds(data, method, bootstrap, params)
        if seconds > LONG:
            say(f"{method} on {_size(data)}: about {_time(seconds)}")


def _size(data: "Rankings | Comparisons") -> str:
    from placet.data import Rankings

    if isinstance(data, Rankings) and data.instances is not None:
        return f"{len(data.instances):,} instances with {len(data.item):,} rows"
    return f"{data.n_items:,} items"


def _time(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 100 else f"{seconds / 60:.0f} minutes"


def _mixture(groups: str, method: str, params: dict[str, Any], own: dict[str, Any], seed: int) -> "Mixture":
    """The mixture specified by --groups."""
    from placet.aggregate import Mixture
    from placet.aggregate.method_table import mixed_model

    model = mixed_model(method, "method of --groups")(**params)
    return Mixture(model, groups if groups == "auto" else int(groups), random_state=seed, **own)


# The result


def _notes(data: Any) -> set[str]:
    several = isinstance(data, Mapping) and not hasattr(data, "notes")
    return {note for part in (data.values() if several else [data]) for note in part.notes}


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
    return rescale(result, scale.lower(), names.get(item), value)


def _say_groups(result: "Groups", members: Path | None) -> None:
    """Report shares and favorites of the groups; write the memberships to the file ``members``."""
    for row in result.summary():
        error = "" if row["share_stderr"] is None else f" ± {row['share_stderr']:.3f}"
        say(f"group {row['group']}: {row['share']:.1%} of voters{error}, {row['first']}")
    if members is not None:
        from placet.io.tables.tables import write_table

        write_table(members, result.membership_frame().to_dict())
        say(f"members: {members}")


def _write_page(
    report: Path,
    result: Any,
    data: Any,
    files: Sequence[Path],
    seed: int,
    title: str,
    level: float,
    certificate: Mapping[str, Any] | None,
    about: Path | None,
) -> None:
    """Write the page about the result, which says from what files, by what command, with what seed and when."""
    from placet.io import read_item_columns
    from placet.io.tables.item_tables import period_of
    from placet.report import Origin, write_consensus_page, write_slices_page
    from placet.report.document import now

    names = [file.name for file in files]
    typed = shlex.join(["placet", *sys.argv[1:]]) if sys.argv[1:2] in (["aggregate"], ["rank"]) else ""
    period = period_of(list(files) if len(files) > 1 else files[0])
    origin = Origin(files=tuple(names), command=typed, seed=seed, date=now(), period=period)
    columns = None if about is None else read_item_columns(about)
    if isinstance(data, Mapping) and not hasattr(data, "describe"):
        write_slices_page(report, result, title=title, level=level, origin=origin, about=columns)
    else:
        given: dict[str, Any] = {"title": title, "level": level, "origin": origin, "certificate": certificate}
        write_consensus_page(report, result, data, about=columns, **given)


def _deliver(result: Any, out: Path | None, as_json: bool, level: float, data: Any, show: Any) -> None:
    """Write the result where it is requested."""
    from placet.aggregate.result.result_files import WRITERS, result_json
    from placet.io.files import bare_suffix

    if out is not None:
        with progress_bar("writing"):
            WRITERS[bare_suffix(out)](out, result, level, data)
    elif as_json:
        with progress_bar("ranks"):
            value = result_json(result, level, data)
        show_json(value)
    else:
        show(result, level)
