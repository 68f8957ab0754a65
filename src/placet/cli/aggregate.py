"""``placet aggregate``: from files of votes, ballots, rank lists or ratings to a consensus."""

import sys
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from placet.cli.models import AGENTS_HELP, CONTROL_HELP, beside, model_options
from placet.cli.options import AsJson, FormatName, Level, Out, Param, Read, Report, Seed, complete_methods
from placet.cli.output import LONG, check_suffix, json_text, parameters, progress_bar, say, show_json, show_table

if TYPE_CHECKING:
    from placet.aggregate import Consensus, ConsensusSet
    from placet.data import Comparisons, Rankings

SHOWN_INSTANCES, SHOWN_ITEMS = 20, 10


def aggregate(
    files: Annotated[
        list[Path], typer.Argument(help="Votes, ballots, PrefLib, rank lists, ratings; several TREC runs are fused.")
    ],
    method: Annotated[
        str,
        typer.Option(
            "--method", "-m", help="A model or rule; a wrong name lists them all.", autocompletion=complete_methods
        ),
    ] = "",
    format: FormatName = "",
    option: Read = None,
    param: Param = None,
    control: Annotated[list[str] | None, typer.Option("--control", help=CONTROL_HELP)] = None,
    agents: Annotated[str, typer.Option("--agents", help=AGENTS_HELP)] = "",
    bootstrap: Annotated[int, typer.Option(min=0, help="Rounds of resampling; 0 for none.")] = 0,
    level: Level = 0.95,
    min_support: Annotated[
        float, typer.Option(min=0, help="Rank only items with at least so many votes or ballots; all are fitted.")
    ] = 0,
    seed: Seed = 0,
    report: Report = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Rank the items of files by consensus, with standard errors and rank intervals.

    Without --method: Bradley-Terry for votes, Plackett-Luce for ballots and ratings.  Ballots that belong to instances
    (the topics of TREC runs, the queries of LETOR files) are ranked instance by instance.
    """
    from placet.aggregate import consensus
    from placet.aggregate.methods import check_method, expected_seconds
    from placet.io.files import bare_suffix

    check_suffix(out, list(WRITERS))
    reading, fitting = model_options(control or [], agents)
    params = fitting | parameters(param or [])
    if method:
        check_method(method, params)
    with progress_bar("reading"):
        data = read_all(files, format, reading | parameters(option or []))
    chosen = method or default_method(data)
    check_method(chosen, params)
    seconds = expected_seconds(data, chosen, bootstrap)
    if seconds > LONG:
        say(f"{chosen} on {_size(data)}: about {_time(seconds)}")
    with progress_bar(chosen) as bar:
        result = consensus(data, chosen, bootstrap=bootstrap, random_state=seed, progress=bar, **params)
        result = result.with_min_support(min_support) if min_support else result
    for note in result.notes:
        if note not in data.notes:  # which were said when the files were read
            say(note)
    if report is not None:  # before stdout, which may be a pipe that is closed early
        from placet.report import write_consensus_page

        names = ", ".join(file.name for file in files[:3]) + (", ..." if len(files) > 3 else "")
        with progress_bar("report"):
            write_consensus_page(report, result, data, title=f"Consensus of {names}", level=level)
        say(f"report: {report}")
    if out is not None:
        WRITERS[bare_suffix(out)](out, result, level)
    elif as_json:
        show_json(result_json(result, level))
    else:
        _show(result, level)


def default_method(data: "Rankings | Comparisons") -> str:
    """The method where none is named: by the kind of the data."""
    from placet.data import Comparisons

    return "bradley-terry" if isinstance(data, Comparisons) else "plackett-luce"


def read_all(files: Sequence[Path], format: str, options: dict[str, Any]) -> "Rankings | Comparisons":
    """All files as one set of ballots or votes."""
    from placet.data import Comparisons, DataError, Rankings, concat
    from placet.io import LetorAgg, read

    parts: list[Rankings | Comparisons] = []
    for file in files:
        data = read(file, format or None, **options)
        for note in getattr(data, "notes", ()):
            say(note)
        data = data.rankings if isinstance(data, LetorAgg) else data
        if not isinstance(data, Rankings | Comparisons):
            raise DataError(f"{file}: {type(data).__name__} cannot be aggregated; votes, ballots or ratings can")
        if parts and type(data) is not type(parts[0]):
            kinds = {Rankings: "ballots", Comparisons: "votes"}
            raise DataError(
                f"{files[0]} holds {kinds[type(parts[0])]} and {file} {kinds[type(data)]}; aggregate them separately"
            )
        parts.append(data)
    if len(parts) == 1:
        return parts[0]
    try:
        return concat(cast("list[Rankings]", _distinct_agents(files, parts)))  # or all Comparisons
    except DataError as error:
        raise DataError(f"{', '.join(map(str, files))}: {error}") from error


def _distinct_agents(
    files: Sequence[Path], parts: "Sequence[Rankings | Comparisons]"
) -> "Sequence[Rankings | Comparisons]":
    """Rank lists for the same topics come from different engines, so that equal tags are told apart by file."""
    import numpy as np

    from placet.data import Rankings

    lists = [part for part in parts if isinstance(part, Rankings) and part.instance is not None]
    if len(lists) < len(parts):
        return parts
    if all(part.agent is None for part in lists):
        unnamed = [(_name(file, files), part) for file, part in zip(files, lists)]
        return [replace(part, agent=np.zeros(len(part), np.int64), agents=(name,)) for name, part in unnamed]
    if any(part.agent is None for part in lists):
        return parts
    met: Counter[tuple[Hashable, Hashable]] = Counter()
    for part in lists:
        pairs = zip(part.agent.tolist(), part.instance.tolist())  # type: ignore[union-attr]
        met.update({(part.agents[a], part.instances[k]) for a, k in pairs})  # type: ignore[index]
    if max(met.values(), default=0) < 2:
        return parts
    tags = Counter(tag for part in lists for tag in set(part.agents or ()))
    clear = []
    for file, part in zip(files, lists):
        name, own = _name(file, files), part.agents or ()
        agents = tuple(name if len(own) == 1 else f"{name}:{tag}" if tags[tag] > 1 else tag for tag in own)
        clear.append(replace(part, agents=agents))
    twice = next(tag for tag, count in tags.items() if count > 1)
    say(f"several files have the tag {twice!r}; their runs are named after the files")
    return clear


def _name(file: Path, files: Sequence[Path]) -> str:
    """The file's name, or its path where another file has the same name."""
    return file.name if sum(other.name == file.name for other in files) == 1 else str(file)


def _size(data: "Rankings | Comparisons") -> str:
    from placet.data import Rankings

    if isinstance(data, Rankings) and data.instances is not None:
        return f"{len(data.instances):,} instances with {len(data.item):,} rows"
    return f"{data.n_items:,} items"


def _time(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 100 else f"{seconds / 60:.0f} minutes"


# How the result leaves


def result_json(result: "Consensus | ConsensusSet", level: float) -> dict[str, object]:
    rows = result.to_frame(level).to_dicts()
    answer: dict[str, object] = {"method": result.method, "notes": list(result.notes), "ranking": rows}
    answer |= beside(result)
    if record := getattr(result, "extras", {}).get("record"):
        answer["record"] = record.to_dict()
    return answer


def _show(result: "Consensus | ConsensusSet", level: float) -> None:
    """All on a pipe; on a terminal the best items of the first instances, and how many more there are."""
    from placet.aggregate import ConsensusSet

    if not (isinstance(result, ConsensusSet) and sys.stdout.isatty()):
        frame = result.to_frame(level)
        show_table(frame.columns, frame.rows())
        return
    shown = dict(list(result.items())[:SHOWN_INSTANCES])
    frame = replace(result, results=shown).to_frame(level)
    frame = frame.group_by("instance", maintain_order=True).head(SHOWN_ITEMS)
    show_table(frame.columns, frame.rows())
    total = sum(len(c.items) for c in result.values())
    if len(frame) < total:
        say(
            f"the best {SHOWN_ITEMS} items of {len(shown)} of {len(result)} instances are shown "
            f"({len(frame):,} of {total:,} rows); --out writes all"
        )


def _write_run(out: Path, result: "Consensus | ConsensusSet", level: float) -> None:
    from placet.io import write_trec_run

    write_trec_run(result.to_rankings(), out, tag=result.method)


def _write_json(out: Path, result: "Consensus | ConsensusSet", level: float) -> None:
    from placet.io.files import writing

    with writing(out) as file:
        file.write(json_text(result_json(result, level)).encode() + b"\n")


def _write_table(out: Path, result: "Consensus | ConsensusSet", level: float) -> None:
    from placet.io.tables import write_table

    frame = result.to_frame(level)
    write_table(out, frame.to_dict())


WRITERS: "dict[str, Callable[[Path, Consensus | ConsensusSet, float], None]]" = {
    ".run": _write_run,
    ".csv": _write_table,
    ".tsv": _write_table,
    ".json": _write_json,
    ".jsonl": _write_table,
    ".parquet": _write_table,
}
"""Suffix -> what writes a result: a TREC run, or the table."""
