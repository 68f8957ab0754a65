"""Options shared by several commands, checked before any work is done."""

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from placet.cli.common.console_output import be_quiet

READ_HELP = "An option of the reader of --format, such as the name of a column."


def check_level(value: float) -> float:
    """Check that a confidence level is a share; for a percentage, the error suggests the share that is meant."""
    if not 0 < value < 1:
        meant = f"; for {value:g} % say --level {value / 100:g}" if 1 < value < 100 else ""
        raise ValueError(f"--level {value:g} is not between 0 and 1{meant}")
    return value


def from_stdin(value: Any) -> Any:
    """Replace ``-``, alone or among files, by the path of standard input, which can be opened by name."""
    if isinstance(value, list):
        return [from_stdin(one) for one in value]
    return Path("/dev/stdin") if str(value) == "-" and os.path.exists("/dev/stdin") else value


def check_target(value: Path | None) -> Path | None:
    """Check that a file can be written: its folder (or that of a link's target) exists, and it is not a folder."""
    if value is None:
        return value
    path = Path(os.path.realpath(value))
    if path.is_symlink():
        raise ValueError(f"{value} is a link that leads back to itself; remove it, or name another file")
    if not path.parent.is_dir():
        folder = path.parent if value.is_symlink() else value.parent
        raise ValueError(f"{value}: there is no such folder as {folder} to write to; make it first")
    if not path.exists() and not os.access(path.parent, os.W_OK | os.X_OK):
        raise ValueError(f"{value}: nothing may be written to the folder {path.parent}; name a file in another")
    if value.is_dir():
        raise ValueError(f"{value} is a folder; name a file in it")
    return value


def complete_methods(incomplete: str) -> list[str]:
    """Names of methods that begin with ``incomplete``."""
    from placet.aggregate import METHODS

    return [name for name in METHODS if name.startswith(incomplete)]


def complete_formats(incomplete: str) -> list[str]:
    """Names of formats that begin with ``incomplete``."""
    from placet.io.formats import FORMATS

    return [name for name in FORMATS if name.startswith(incomplete)]


def complete_losses(incomplete: str) -> list[str]:
    """Names of losses that begin with ``incomplete``."""
    from placet.losses import LOSSES

    return [name for name in LOSSES if name.startswith(incomplete)]


def complete_rankers(incomplete: str) -> list[str]:
    """Names of rankers that begin with ``incomplete``."""
    return [name for name in _rankers() if name.startswith(incomplete)]


def check_ranker(name: str) -> str:
    """Return the name of a ranker, or "auto"; the error for any other lists them all."""
    from placet.data.errors import one_of

    return one_of(name, _rankers(), "ranker")


def _rankers() -> list[str]:
    from placet.rank import RANKERS

    return [*RANKERS, "auto"]


METHOD, MODEL, OUTPUT, LARGE, READ = (
    "Method",
    "What the model allows for",
    "Output",
    "Large files",
    "Columns and reading",
)
"""The groups of options in ``--help``."""


def in_group(help: str, group: str, value: str = "", *names: str, **more: Any) -> Any:
    """An option in a group of the help; ``value`` is what stands for its value there, by default what its kind is
    called (nothing for a flag).  ``more`` are further settings of the option, such as ``callback``.
    """
    return typer.Option(*names, metavar=value or None, help=help, rich_help_panel=group, **more)


Level = Annotated[
    float,
    typer.Option(
        callback=check_level, metavar="SHARE", help="Level of the intervals, such as 0.95.", rich_help_panel=METHOD
    ),
]
SeedOption = Annotated[int, typer.Option(min=0, metavar="N", help="Seed of everything random.", rich_help_panel=METHOD)]
AsJson = Annotated[bool, typer.Option("--json", help="JSON instead of a table.", rich_help_panel=OUTPUT)]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        callback=check_target,
        metavar="FILE",
        help="Write to a file instead of stdout: .csv, .tsv, .json or .parquet by its suffix.",
        rich_help_panel=OUTPUT,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", callback=be_quiet, help="No notes or progress on stderr, only errors.", rich_help_panel=OUTPUT
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(
        callback=check_target,
        metavar="PAGE.html",
        help="Write a page about the result (HTML).",
        rich_help_panel=OUTPUT,
    ),
]
FormatName = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Format of the files; found by their content if not given.",
        autocompletion=complete_formats,
        rich_help_panel=READ,
    ),
]
MethodText = Annotated[
    str,
    typer.Option(
        "--method",
        "-m",
        metavar="NAME",
        help="A model or rule; placet methods lists them.",
        autocompletion=complete_methods,
        rich_help_panel=METHOD,
    ),
]
Param = Annotated[
    list[str] | None,
    typer.Option("--param", "-p", metavar="NAME=VALUE", help="A parameter of the method.", rich_help_panel=METHOD),
]
Relations = Annotated[
    list[str] | None,
    typer.Option(
        "--relation",
        metavar="NAME=FILE",
        help="Similarity, links or sitemap of documents named by #docid.",
        rich_help_panel=READ,
    ),
]

OnErrorChoice = Literal["raise", "skip"]
WeightsChoice = Literal["counts", "design"]
WEIGHTS_HELP = "What weights are: counts of equal rows, or how many voters a row stands for (design)."
_COLUMNS = {
    "a": "Column of one side of a vote.",
    "b": "Column of the other side.",
    "winner": "Column that says who won.",
    "qid": "Column of the query of a row with features.",
    "label": "Column of the grade of a row with features.",
    "items": "Names of all items, in order, comma-separated.",
    "ignore": "Columns to ignore, comma-separated.",
    "weight": "Column with the weight (count) of each row.",
    "agent": "Column of who judged or voted.",
    "time": "Column of dates (2024-06-01) or numbers.",
    "sheet": "Sheet of a workbook, by name.",
}
"""Options of readers, available under the same names in every command that reads files."""


OF_VOTES = ("a", "b", "winner", "items", "agent", "time", "weights")
"""Options of readers that no file of rows with features, of labels or of judged documents takes."""

NAMES = ("items", "ignore")
"""Options of readers that are lists of names; the others name a column, or a sheet."""
_VALUES = dict.fromkeys(NAMES, "NAME,...") | {"sheet": "NAME"}


READING = {
    **{
        name: (Annotated[str, in_group(help, READ, _VALUES.get(name, "COLUMN"), f"--{name}")], "")
        for name, help in _COLUMNS.items()
    },
    "weights": (Annotated[WeightsChoice, in_group(WEIGHTS_HELP, READ, "counts|design", "--weights")], "counts"),
    "on_error": (
        Annotated[
            OnErrorChoice,
            in_group(
                "Stop at the first bad row (raise), or skip bad rows and report how many.",
                READ,
                "raise|skip",
                "--on-error",
            ),
        ],
        "raise",
    ),
    "read": (Annotated[list[str] | None, in_group(READ_HELP, READ, "NAME=VALUE", "--read", "-r")], None),
}


def reads(*without: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of readers to a command, which receives those given as a dict in its argument ``reading``.

    ``without``: options that none of its formats takes.  An option that the command itself defines under the same name
    takes precedence.
    """
    return functools.partial(_with_reading, without=without)


def _with_reading(command: Callable[..., None], without: tuple[str, ...]) -> Callable[..., None]:
    own = inspect.signature(command).parameters
    added = [name for name in READING if name not in own and name not in without]

    @functools.wraps(command)
    def reading_command(**given: Any) -> None:
        said = {name: given.pop(name) for name in added}
        command(**given, reading=reading_options(said))

    _declare(reading_command, [p for p in own.values() if p.name != "reading"], {name: READING[name] for name in added})
    return reading_command


def can_be_quiet(command: Callable[..., None]) -> Callable[..., None]:
    """Add ``--quiet`` to a command, which need not know of it: `say` does."""

    @functools.wraps(command)
    def quiet_command(quiet: bool, **given: Any) -> None:
        command(**given)

    _declare(quiet_command, inspect.signature(command).parameters.values(), {"quiet": (Quiet, False)})
    return quiet_command


def _declare(
    command: Callable[..., None], own: Iterable[inspect.Parameter], added: Mapping[str, tuple[Any, Any]]
) -> None:
    """Let the signature of a command, where Typer looks for options, be its own parameters and the ``added`` ones,
    each given as (annotation, default).
    """
    by_name = inspect.Parameter.KEYWORD_ONLY
    plain = [p.replace(kind=by_name) for p in own]
    more = [inspect.Parameter(name, by_name, default=usual, annotation=kind) for name, (kind, usual) in added.items()]
    signature = inspect.Signature([*plain, *more])
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}


def reading_options(said: dict[str, Any]) -> dict[str, Any]:
    """Convert command-line options to those of ``placet.io.read``; names of items and columns become lists."""
    from placet.data.parameters import parse_parameters
    from placet.io.tables.column_names import split_names

    options = {name: said[name] for name in _COLUMNS if said.get(name)}
    for name, usual in (("on_error", "raise"), ("weights", "counts")):
        if said.get(name, usual) != usual:
            options[name] = said[name]
    others = parse_parameters(said["read"] or [])
    for name, value in others.items():
        if options.setdefault(name, value) != value:
            raise ValueError(
                f"--{name.replace('_', '-')} {options[name]} and --read {name}={value}: give one of the two"
            )
    for name in NAMES:
        if name in options:
            options[name] = split_names(str(options[name]))
    return options


def formats_to_rank(format: str = "") -> list[str]:
    """The format, if one is given, else those whose data can be aggregated."""
    from placet.data import Comparisons, Games, Rankings, Scores
    from placet.io import LetorAgg
    from placet.io.formats import FORMATS, check_format

    if format:
        return [check_format(format, "--format")]
    return [name for name, one in FORMATS.items() if one.kind in (Comparisons, Games, Rankings, Scores, LetorAgg)]


def check_reading(options: Mapping[str, Any], formats: list[str], who: str) -> None:
    """Raise a ``ValueError`` for a reader option that none of the ``formats`` read by ``who`` accepts."""
    from placet.io.formats import FORMATS

    taken = {name for format in formats for name in inspect.signature(FORMATS[format].read).parameters}
    for name, value in options.items():
        if name not in taken:
            ways = ", ".join(f"--{known.replace('_', '-')}" for known in READING if known in taken)
            raise ValueError(
                f"--{name.replace('_', '-')} {value}: {who} reads {' or '.join(formats)}, which has no such option; "
                f"leave it out (of these it takes {ways})"
            )
