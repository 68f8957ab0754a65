"""Files as sources of one fit: ``human=votes.csv gpt-4=judge.jsonl``, or one file with a column of sources."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from placet.cli.common.console_output import say
from placet.cli.common.options import MODEL
from placet.cli.common.parts_option import open_parts

if TYPE_CHECKING:
    from placet.data import Sources

SourceColumn = Annotated[
    str,
    typer.Option(
        "--source",
        metavar="COLUMN",
        help="A column that says who judged: its values are sources of one fit.",
        rich_help_panel=MODEL,
    ),
]
Target = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="The source whose opinion is asked for, such as human; others count as far as they agree.",
        rich_help_panel=MODEL,
    ),
]

Tasks = Annotated[
    bool,
    typer.Option("--tasks", help="Every task of a score table is a source of its own.", rich_help_panel=MODEL),
]

PairColumn = Annotated[
    str,
    typer.Option(
        "--pair",
        metavar="COLUMN",
        help="A column with the id of what was judged: votes of two sources with one id are about the same answers.",
        rich_help_panel=MODEL,
    ),
]


def named_files(files: Sequence[Path]) -> dict[str, list[Path]]:
    """NAME=FILE arguments as name -> files; empty if no argument has a name.  An existing file is never split."""
    pairs = [(file, *str(file).partition("=")) for file in files]
    named = [bool(name and equals and path) and not file.exists() for file, name, equals, path in pairs]
    if not any(named):
        return {}
    if not all(named):
        plain = files[named.index(False)]
        raise ValueError(f"{plain} has no name, while other files have; write NAME={plain}")
    found: dict[str, list[Path]] = {}
    for _, name, _, path in pairs:
        found.setdefault(name, []).append(Path(path))
    return found


def check_sources(
    files: Sequence[Path], source: str, target: str, refused: dict[str, Any], tasks: bool = False, pair: str = ""
) -> dict[str, list[Path]]:
    """The named files; a ``ValueError`` for options that do not go together, before anything is read.

    ``tasks``: score tables are taken apart, so that files need no names, and a target may be a task.
    """
    named = named_files(files)
    if target and not (named or source or tasks):
        example = f"{target}={files[0]}"
        raise ValueError(f"--target {target} needs sources: name the files ({example}), or --source COLUMN")
    if pair and not target:
        raise ValueError(f"--pair {pair} joins votes of a target with those of a judge; name it by --target")
    if tasks and source:
        raise ValueError(f"--source {source} and --tasks both say what the sources are; give only one")
    if source and named:
        raise ValueError(f"--source {source} and NAME=FILE both say what the sources are; give only one")
    if named and target and target not in named and not tasks:
        raise ValueError(f"--target {target} is not among the sources: {', '.join(named)}")
    if named or source or tasks:
        given = next((name for name, value in refused.items() if value), None)
        if given is not None:
            raise ValueError(f"{given} does not go with several sources, which are joined by a model of their own")
    return named


def read_sources(
    files: Sequence[Path],
    named: dict[str, list[Path]],
    source: str,
    target: str,
    format: str,
    options: dict[str, Any],
    tasks: bool = False,
    pair: str = "",
) -> "Sources":
    """Read the named files, or one file by its column of sources; ``tasks`` takes score tables apart, and ``pair`` is
    the column of ids by which votes are paired.
    """
    from placet import io

    if tasks and not named:
        named = {files[0].name: list(files)}
    if named:
        parts: dict[Any, Any] = {
            name: io.to_aggregate(
                io.read_files(own, format or None, **_own_options(own, format, options, pair)), str(own[0])
            )
            for name, own in named.items()
        }
    else:
        options = options | {"agent": pair} if pair else options
        slices = io.read_slices([str(file) for file in files], source, format or None, **options)
        parts = {str(name): io.to_aggregate(part, f"{source} {name!r}") for name, part in slices.items()}
    found = _join(parts, files, target, tasks)
    found = replace(found, paired=True) if pair else found
    for note in found.notes:
        say(note)
    return found


def _own_options(own: list[Path], format: str, options: dict[str, Any], pair: str = "") -> dict[str, Any]:
    """The options that a source takes: only votes have ids and a side that came first, and tables have no controls."""
    from placet.data import Comparisons, Scores
    from placet.io.several_files import kind_of_file

    most = {name: value for name, value in options.items() if name not in ("control", "ordered")}
    if len(most) == len(options) and not pair:
        return options
    kind = kind_of_file(own[0], format or None, most)
    if kind is Comparisons:
        return options | {"agent": pair} if pair else options
    if kind is Scores:
        return most
    return {name: value for name, value in options.items() if name != "ordered"}


def _join(parts: dict[Any, Any], files: Sequence[Path], target: str, tasks: bool) -> "Sources":
    """The sources, with every task of a score table as one if ``tasks``."""
    from placet.data import Scores, Sources

    if tasks and not any(isinstance(part, Scores) for part in parts.values()):
        raise ValueError(f"--tasks needs a score table; {', '.join(map(str, files))} hold none")
    return Sources.of_tasks(parts, target or None) if tasks else Sources(parts, target or None)


@contextmanager
def sources_in_parts(
    files: Sequence[Path],
    named: dict[str, list[Path]],
    source: str,
    target: str,
    format: str,
    options: dict[str, Any],
    dask: str,
    tasks: bool,
    pair: str = "",
) -> Iterator[Any]:
    """As `read_sources`, with votes and ballots in parts; score tables, which are small, are read as a whole."""
    from placet import io
    from placet.data import Scores, Sources
    from placet.io.several_files import kind_of_file

    if source and pair:
        raise ValueError(
            f"--pair {pair} and --source {source} are two columns of names, of which parts hold one; "
            "write a file for each source and name it, NAME=FILE, or leave --parts and --dask out"
        )
    if source:
        with open_parts([list(files)], format, [options | {"agent": source}], dask, "sources") as (found,):
            yield Sources.of_agents(found, target or None)
        return
    named = named or {files[0].name: list(files)}
    own = {name: _own_options(paths, format, options, pair) for name, paths in named.items()}
    rest = {name: value for name, value in options.items() if name not in ("control", "ordered")}
    small = [name for name, paths in named.items() if kind_of_file(paths[0], format or None, rest) is Scores]
    tables = {name: io.read_files(named[name], format or None, **own[name]) for name in small}
    large = [name for name in named if name not in tables]
    with open_parts([named[name] for name in large], format, [own[name] for name in large], dask, "sources") as parts:
        every = tables | dict(zip(large, parts))
        joined = _join({name: every[name] for name in named}, files, target, tasks)
        yield replace(joined, paired=True) if pair else joined
