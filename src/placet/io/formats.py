"""The registry of formats, and `read` and `write` for a format that is given or guessed."""

import errno
import glob
import inspect
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, overload

from placet.data import Comparisons, DataError, Queries, Rankings, concat
from placet.data.arrays import set_columns
from placet.data.contests.games import Games
from placet.data.errors import as_choices, one_of
from placet.data.parameters import check_kinds, check_parameters
from placet.data.scores import Scores
from placet.io.ballots import looks_like_ballots, read_ballots, write_ballots
from placet.io.battles import WORDS, looks_like_battles, read_battles, write_battles
from placet.io.clicks import ways_with_clicks
from placet.io.contests.game_tables import looks_like_games, read_games
from placet.io.evals.alpaca_eval import looks_like_alpaca_eval, read_alpaca_eval
from placet.io.evals.argilla import looks_like_argilla, read_argilla
from placet.io.evals.every_eval_ever import looks_like_every_eval_ever, read_every_eval_ever
from placet.io.evals.fastchat import (
    looks_like_fastchat_pairs,
    looks_like_fastchat_scores,
    read_fastchat_pairs,
    read_fastchat_scores,
)
from placet.io.evals.helm import looks_like_helm, read_helm
from placet.io.evals.inspect_logs import looks_like_inspect, read_inspect
from placet.io.evals.label_studio import looks_like_label_studio, read_label_studio
from placet.io.evals.lm_harness import (
    looks_like_lm_harness_results,
    looks_like_lm_harness_samples,
    read_lm_harness_results,
    read_lm_harness_samples,
)
from placet.io.evals.open_webui import looks_like_open_webui, read_open_webui
from placet.io.features import KNOWN as GRADED, looks_like_features, read_features, write_features
from placet.io.files import OpenedFile, Source, bare_suffix, is_pipe, name_of, spool, spool_stdin
from placet.io.preferences import KNOWN as PREFERRED, looks_like_preferences, read_preferences, write_preferences
from placet.io.preflib import looks_like_preflib, read_preflib, write_preflib
from placet.io.ratings import KNOWN as RATED, looks_like_ratings, read_ratings, write_ratings
from placet.io.score_tables import ITEMS as SCORED, looks_like_scores, read_scores, write_scores
from placet.io.sparse.letor import (
    LetorAgg,
    looks_like_letor,
    looks_like_letor_agg,
    read_letor,
    read_letor_agg,
    write_letor,
    write_letor_agg,
)
from placet.io.sparse.xmc import MultiLabel, looks_like_xmc, read_xmc, write_xmc
from placet.io.surveys.best_worst import BEST, WORST, looks_like_best_worst, read_best_worst, write_best_worst
from placet.io.surveys.qualtrics import looks_like_qualtrics, read_qualtrics
from placet.io.surveys.surveyjs import looks_like_surveyjs, read_surveyjs
from placet.io.tables.column_names import roles_by_column, split_names
from placet.io.tables.row_sources import sniff_separator
from placet.io.tables.sheets import SHEET_SUFFIXES
from placet.io.tables.tables import SUFFIXES as TABLES, FileHead, Table, open_head
from placet.io.tables.vote_columns import chosen_column, vote_columns
from placet.io.text import OnError
from placet.io.trec import (
    Qrels,
    looks_like_qrels,
    looks_like_trec_run,
    read_qrels,
    read_trec_run,
    write_qrels,
    write_trec_run,
)


@dataclass(frozen=True)
class Format:
    """How one format is read, written and recognized.

    ``read(source, *, on_error=..., **options)`` returns a ``kind``, and ``write(data, target)`` accepts one; it is None
    for the logs and exports of other programs, which are only read.
    ``looks_like(head)`` returns the layout that ``read`` then uses (the columns by role, ``TEXT`` for text without
    columns), or ``None`` if the head has another format.  Among text formats that share a suffix in ``suffixes``, the
    first that matches is used.  For tables, ``hint`` shows in messages how to name their columns, and ``needs`` are the
    known names of roles without which a table is not asked further; ``by_cells`` formats must read the cells of a table
    to recognize it; ``by_head`` formats are logs that are no tables, and are recognized by their first bytes before a
    table is opened.

    >>> from placet.io import FORMATS
    >>> FORMATS["battles"].kind, FORMATS["preflib"].suffixes[:3]
    (<class 'placet.data.comparisons.Comparisons'>, ('.soc', '.soi', '.toc'))
    """

    read: Callable[..., Any]
    write: Callable[..., None] | None
    kind: type
    suffixes: tuple[str, ...]
    looks_like: Callable[[FileHead], Any]
    hint: str = ""
    needs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    by_cells: bool = False
    by_head: bool = False


_TABLES = frozenset(TABLES)
_ADDRESS = re.compile(r"(https?|ftp|s3|gs):/+")
NOT_WRITTEN = (*SHEET_SUFFIXES, ".zip", ".html", ".pdf")
"""Suffixes of files that people expect and that are not written."""
LOGS = (".json", ".jsonl")
_SVM = (".letor", ".svm", ".svmlight", ".libsvm")
FORMATS: dict[str, Format] = {
    "preflib": Format(
        read_preflib, write_preflib, Rankings, (".soc", ".soi", ".toc", ".toi", ".cat"), looks_like_preflib
    ),
    "letor-agg": Format(read_letor_agg, write_letor_agg, LetorAgg, (".agg", *_SVM), looks_like_letor_agg),
    "letor": Format(read_letor, write_letor, Queries, _SVM, looks_like_letor),
    "xmc": Format(read_xmc, write_xmc, MultiLabel, (".xmc",), looks_like_xmc),
    "trec-run": Format(read_trec_run, write_trec_run, Rankings, (".run",), looks_like_trec_run),
    "qrels": Format(read_qrels, write_qrels, Qrels, (".qrels",), looks_like_qrels),
    "battles": Format(
        read_battles, write_battles, Comparisons, TABLES, looks_like_battles, 'a="...", b="...", winner="..."'
    ),
    "games": Format(read_games, None, Games, TABLES, looks_like_games, 'a="...", b="...", scores="..."'),
    "ratings": Format(
        read_ratings,
        write_ratings,
        Rankings,
        (".data", *TABLES),
        looks_like_ratings,
        'user="...", item="...", rating="..."',
        RATED,
    ),
    "scores": Format(
        read_scores,
        write_scores,
        Scores,
        TABLES,
        looks_like_scores,
        'item="...", task="...", score="..."',
        {"item": SCORED},
    ),
    "features": Format(
        read_features, write_features, Queries, TABLES, looks_like_features, 'qid="...", label="..."', GRADED
    ),
    "best-worst": Format(
        read_best_worst,
        write_best_worst,
        Rankings,
        TABLES,
        looks_like_best_worst,
        'shown="...", best="...", worst="..."',
        {"best": BEST, "worst": WORST},
    ),
    "qualtrics": Format(read_qualtrics, None, Rankings, TABLES, looks_like_qualtrics, 'question="..."'),
    "surveyjs": Format(read_surveyjs, None, Rankings, TABLES, looks_like_surveyjs, 'question="..."'),
    "every-eval-ever": Format(read_every_eval_ever, None, Scores, LOGS, looks_like_every_eval_ever, by_head=True),
    "fastchat-pairs": Format(read_fastchat_pairs, None, Comparisons, LOGS, looks_like_fastchat_pairs, by_head=True),
    "fastchat-scores": Format(read_fastchat_scores, None, Scores, LOGS, looks_like_fastchat_scores, by_head=True),
    "open-webui": Format(read_open_webui, None, Comparisons, LOGS, looks_like_open_webui, by_head=True),
    "alpaca-eval": Format(read_alpaca_eval, None, Comparisons, LOGS, looks_like_alpaca_eval, by_head=True),
    "inspect": Format(read_inspect, None, Scores, (".eval", *LOGS), looks_like_inspect, by_head=True),
    "lm-harness-samples": Format(
        read_lm_harness_samples, None, Scores, LOGS, looks_like_lm_harness_samples, by_head=True
    ),
    "lm-harness-results": Format(
        read_lm_harness_results, None, Scores, LOGS, looks_like_lm_harness_results, by_head=True
    ),
    "helm": Format(read_helm, None, Scores, LOGS, looks_like_helm, by_head=True),
    "label-studio": Format(read_label_studio, None, Comparisons, LOGS, looks_like_label_studio, by_head=True),
    "argilla": Format(read_argilla, None, Rankings, LOGS, looks_like_argilla, by_head=True),
    "preferences": Format(
        read_preferences,
        write_preferences,
        Rankings,
        (".prefs", *TABLES),
        looks_like_preferences,
        'ballot="...", better="...", worse="..."',
        PREFERRED,
    ),
    "ballots": Format(
        read_ballots,
        write_ballots,
        Rankings,
        (".ballots", ".abif", *TABLES),
        looks_like_ballots,
        'layout="ranks" | "scores" | "places" | "orders" | "long"',
        by_cells=True,
    ),
}


BallotFormat = Literal[
    "preflib", "trec-run", "ratings", "best-worst", "qualtrics", "surveyjs", "argilla", "preferences", "ballots"
]
"""Formats that are read as `Rankings`."""


@overload
def read(source: Any, format: Literal["battles"], *, on_error: OnError = ..., **options: Any) -> Comparisons: ...
@overload
def read(source: Any, format: BallotFormat, *, on_error: OnError = ..., **options: Any) -> Rankings: ...
@overload
def read(source: Any, format: Literal["scores"], *, on_error: OnError = ..., **options: Any) -> Scores: ...
@overload
def read(source: Any, format: Literal["letor", "features"], *, on_error: OnError = ..., **options: Any) -> Queries: ...
@overload
def read(source: Any, format: str | None = ..., *, on_error: OnError = ..., **options: Any) -> Any: ...
def read(source: Any, format: str | None = None, *, on_error: OnError = "raise", **options: Any) -> Any:
    """Read data in any supported format; ``format`` is a key of ``FORMATS``, or is guessed.

    ``source`` is a path, a pattern (``votes/*.parquet``), a folder, ``-`` (standard input), an open file, a data frame
    (pandas, Polars, Arrow, DuckDB) or mapping of columns, or a list of these, which are read as one.  ``options`` are
    those of the reader, such as the names of columns; without ``format`` they narrow the guess to the readers that
    accept them.  The ``notes`` of the result say how the data were read.

    A suffix (before any compression suffix) restricts the guess to the formats that have it; without a known suffix all
    are possible.  Text is recognized by its first lines: PrefLib by its header; ``1 qid:.. 1:..`` is LETOR, with
    ``:NULL`` LETOR-agg; three whole numbers are the header of extreme classification text; six fields with a score are
    a TREC run; four fields are ratings if they are numbers separated by tabs, else qrels; ``12: A > B`` or ``A > B``
    are ballots.  Tables are recognized by their columns, and ballots also by their cells; ambiguity is a ``DataError``
    that says how to choose.  LETOR text without ``qid:`` takes the sizes of its queries from the file ``FILE.query``
    next to it (LightGBM), if there is one.

    Returns
    -------
    Comparisons, Rankings, Scores, Queries, ...
        What the file holds; with ``format`` the type is known to type checkers, too.

    >>> read({"model_a": ["ant", "bee"], "model_b": ["bee", "cat"], "winner": ["a", "tie"]}, "battles")
    Comparisons(2 pairs, 3 items, 2 votes)
    """
    possible = formats_with(options, format)
    sources = expand(source)
    with open_head(sources, on_error, options) as head:
        name, layout = choose_format(head, possible)
        if options:
            check_parameters(FORMATS[name].read, options, f"the reader of {name!r}", skip=1)
        if len(sources) == 1 or is_tabular(name):
            return _with_note(name, FORMATS[name].read(head.with_layout(layout), on_error=on_error, **options))
        if FORMATS[name].kind not in (Rankings, Comparisons, Queries, Scores):
            raise DataError(f"{head.name}: several files of {name} cannot be read as one; read them one by one")
    return concat([read(one, name, on_error=on_error, **options) for one in sources])


def is_tabular(name: str) -> bool:
    """Whether a format is that of tables, several of which may be read as one."""
    return TABLES[0] in FORMATS[name].suffixes


def _with_note(name: str, data: Any) -> Any:
    """The data, with a note of their format if they have no notes."""
    if getattr(data, "notes", None) == ():
        heads = data.heads_note() if isinstance(data, Rankings) else ()
        set_columns(data, notes=(f"read as {name}", *heads))
    return data


def formats_with(options: Mapping[str, Any], format: str | None) -> list[str]:
    """The formats whose readers accept the given options."""
    if format is not None:
        check_format(format)
    names = list(FORMATS) if format is None else [format]
    of = {name: set(inspect.signature(FORMATS[name].read).parameters) for name in names}
    having = [name for name in names if set(options) <= of[name]]
    if having:
        return _of_right_kinds(having, options) if options else having
    unknown = sorted(set(options) - set().union(*of.values()))
    if not unknown:
        owners = (f"{name!r} is of {', '.join(who for who in names if name in of[who])}" for name in sorted(options))
        raise ValueError(f"no reader has the options {sorted(options)} together: {'; '.join(owners)}; leave one out")
    who = "any format" if format is None else repr(format)
    known = sorted(set().union(*of.values()) - {"source", "format"})
    raise ValueError(
        f"the reader of {who} has no option {', '.join(map(repr, unknown))}; leave it out, or "
        f"choose from {as_choices(known)}"
    )


def check_format(format: str, what: str = "format") -> str:
    """The name of a format; for the name of a file type, the error says that it is found by itself."""
    if f".{format.lower().lstrip('.')}" in _TABLES:
        raise ValueError(
            f"{what} {format!r} is a kind of file, which is found by itself: leave it out; a format is what "
            f"the rows are: {as_choices(FORMATS)}"
        )
    return one_of(format, FORMATS, what)


def _of_right_kinds(names: list[str], options: Mapping[str, Any]) -> list[str]:
    """The formats whose readers take the values of the options; if none does, the error of the last that is no log."""
    found, wrong = [], None
    for name in names:
        try:
            check_kinds(FORMATS[name].read, options, f"the reader of {name!r}")
            found.append(name)
        except ValueError as error:
            wrong = error if wrong is None or FORMATS[name].write else wrong
    if wrong is not None and not found:
        raise wrong
    return found


def _refuse_options_of_others(head: FileHead, possible: list[str]) -> None:
    """Raise a ``DataError`` if the text has a format whose reader does not accept some of the options."""
    for name in () if head.table is not None else FORMATS:
        if name not in possible and FORMATS[name].looks_like(head) is not None:
            foreign = [key for key in head.options if key not in inspect.signature(FORMATS[name].read).parameters]
            if foreign:
                way = (
                    " columns beside ranks, votes or grades need a table, such as CSV;"
                    if foreign[0] == "control"
                    else ""
                )
                raise DataError(
                    f"{head.name}: this is {name} text, whose reader has no option {foreign[0]!r};{way} leave it out"
                )


def choose_format(
    head: FileHead, possible: list[str], shorten: Callable[[Table], Table] | None = None
) -> tuple[str, Any]:
    """The format of a file or frame among the possible ones, and its layout.

    The layout is None if the reader has to find it: if there is no choice, or only the suffix tells the format.
    ``shorten`` cuts a long table, of which only the first cells are to be looked at.
    """
    if len(possible) == 1:
        return possible[0], None if head.is_table else FORMATS[possible[0]].looks_like(head)
    for name in _logs(head, possible):
        if (layout := FORMATS[name].looks_like(head)) is not None:
            return name, layout
    if head.is_table:
        table = head.open_table()
        head.table = table if shorten is None else shorten(table)
    tables = [name for name in possible if TABLES[0] in FORMATS[name].suffixes]
    if head.table is None:
        named = [name for name in possible if head.suffix in FORMATS[name].suffixes]
        for name in named or [name for name in possible if not _TABLES.issuperset(FORMATS[name].suffixes)]:
            if (layout := FORMATS[name].looks_like(head)) is not None:
                return name, layout
        if named:
            return named[-1], None
        if tables and (sniff_separator(head.head) or head.text.lstrip()[:1] in ("{", "[")):
            head.open_table()
    if head.table is not None and tables:
        head.table = _without_ignored(head, head.table)
        return _choose_table(head, head.table, tables)
    _refuse_options_of_others(head, possible)
    start = f"; it begins with {head.first[:60]!r}" if head.first else "; it is empty"
    raise DataError(f"{head.name}: the format cannot be guessed{start}; name it with format=, one of {list(FORMATS)}")


def _logs(head: FileHead, possible: list[str]) -> list[str]:
    """The logs that a file may be: all if it begins as JSON, else those with its suffix."""
    if not isinstance(head.sources[0], OpenedFile):
        return []
    is_json = head.text.lstrip()[:1] in ("{", "[")
    return [name for name in possible if FORMATS[name].by_head and (is_json or head.suffix in FORMATS[name].suffixes)]


def _without_ignored(head: FileHead, table: Table) -> Table:
    return table.without(split_names(head.options.get("ignore", ())))


def _choose_table(head: FileHead, table: Table, possible: list[str]) -> tuple[str, Any]:
    """The format of a table by its columns; formats that must look at cells are tried only if no other matches."""
    found: dict[str, Any] = {}
    for by_cells in (False, True):
        if not found:
            own = [name for name in possible if FORMATS[name].by_cells is by_cells and _has_needs(head, table, name)]
            found = {name: layout for name in own if (layout := FORMATS[name].looks_like(head)) is not None}
    if len(found) == 1:
        name, layout = found.popitem()
        if name == "ballots":
            _refuse_places_and_winner(table, layout)
        return name, layout
    if found:
        ways = [f'format="{name}"' for name in found]
        said = f"{table.name}: the columns {table.names} may be read in {len(found)} ways; say {' or '.join(ways)}"
        raise DataError.of_ways(said, ways)
    for name in [name for name in FORMATS if name not in possible and is_tabular(name)]:
        if FORMATS[name].looks_like(head) is not None:
            known = inspect.signature(FORMATS[name].read).parameters
            unknown = ", ".join(f"{option}=" for option in head.options if option not in known)
            raise DataError(
                f"{table.name}: the columns {table.names} are those of {name}, which are read without {unknown}; leave "
                "it out, or name the format with format="
            )
    if (ways_on := ways_with_clicks(table.names)) is not None:
        raise DataError(f"{table.name}: the columns {table.names} {ways_on}")
    if "battles" in possible and (votes := vote_columns(table, WORDS["tie"])) is not None:
        raise DataError.of_ways(f"{table.name}: this looks like votes; say {_as_votes(votes)}", [_as_votes(votes)])
    if "ratings" in possible and (rated := table.find(RATED["rating"])) and (item := table.find(RATED["item"])):
        raise DataError(
            f"{table.name}: columns {item!r} and {rated!r} look like ratings, but none says who rated; name it: "
            f'format="ratings", user="..."'
        )
    hints = "; ".join(f'format="{name}", {FORMATS[name].hint}' for name in possible if FORMATS[name].write)
    raise DataError(f"{table.name}: the columns {table.names} do not tell which format this is; say {hints}")


def _has_needs(head: FileHead, table: Table, name: str) -> bool:
    """Whether a table has the columns that a format needs, under an option of its reader or a known name."""
    own = table.plain_names
    return all(
        head.options.get(role) or any(map(own.__contains__, known)) for role, known in FORMATS[name].needs.items()
    )


def _as_votes(columns: tuple[str, str, str]) -> str:
    a, b, winner = columns
    return f'format="battles", a="{a}", b="{b}", winner="{winner}"'


def _refuse_places_and_winner(table: Table, layout: Any) -> None:
    """Raise a ``DataError`` if columns of places may be items shown together, with the one chosen in another column."""
    if layout.layout != "places" or len(layout.main) < 2:
        return
    ballots = 'layout="places"'
    if len(layout.main) == 2:
        votes = vote_columns(table, WORDS["tie"], (layout.main[0], layout.main[1]))
        if votes is not None:
            raise DataError.of_ways(
                f"{table.name}: column {votes[2]!r} repeats {votes[0]!r} or {votes[1]!r} in every row, so these may be "
                f"votes or ballots of two places; for votes say {_as_votes(votes)}; for ballots, {ballots}",
                [_as_votes(votes), ballots],
            )
        return
    chosen = chosen_column(table, layout.main)
    if chosen is not None:
        choices = f'format="best-worst", shown="{",".join(layout.main)}", best="{chosen}"'
        raise DataError.of_ways(
            f"{table.name}: column {chosen!r} repeats one of {', '.join(layout.main)} in every row, so these may be "
            f"the items shown and the one chosen, or ballots; for choices say {choices}; for ballots, {ballots}",
            [choices, ballots],
        )


def roles_in_table(head: FileHead, name: str) -> dict[str, str]:
    """The role of each column that the reader of a format would use in a table; empty if it has another format."""
    layout = FORMATS[name].looks_like(replace(head, table=_without_ignored(head, head.table or head.open_table())))
    if layout is None:
        return {}
    return roles_by_column(layout) if isinstance(layout, dict) else dict(layout.roles())


def expand(source: Any) -> list[Any]:
    """List the sources: the files of a pattern or folder, standard input for ``-``, the members of a list."""
    if isinstance(source, list | tuple):
        found = [one for part in source for one in expand(part)]
        if not found:
            raise DataError("nothing to read: the list of sources is empty")
        return found
    if not isinstance(source, str | os.PathLike):
        return [source]
    path = os.fspath(source)
    if path == "-":
        return [spool_stdin()]
    if is_pipe(path):
        return [spool(path)]
    if os.path.isdir(path):
        files = [entry.path for entry in os.scandir(path) if entry.is_file() and not entry.name.startswith(".")]
        files = sorted(name for name in files if not (name.endswith(".query") and name[:-6] in files))
        if not files:
            raise DataError(f"{path}: the folder holds no files")
        return list(files)
    if (address := _ADDRESS.match(path)) and not os.path.exists(path):
        url = f"{address[1]}://{path[address.end() :]}"  # a Path has only one of the two slashes
        raise DataError(f"{url}: an address, not a file; download it first: curl -LO {shlex.quote(url)}")
    if not os.path.exists(path) and glob.has_magic(path):
        files = sorted(name for name in glob.glob(path, recursive=True) if os.path.isfile(name))
        if not files:
            raise FileNotFoundError(errno.ENOENT, "no file matches", path)
        return list(files)
    return [source]


def check_written(target: Source, format: str | None = None) -> None:
    """Raise a ``DataError`` if no file with the suffix of the target is written; plain text, and any suffix where a
    format is named, may hold several.
    """
    suffix = bare_suffix(target)
    if suffix in NOT_WRITTEN:
        raise DataError(f"{name_of(target)}: files of {suffix} are not written; write .csv and open that")
    known = sorted({own for record in FORMATS.values() if record.write for own in record.suffixes} - set(NOT_WRITTEN))
    if not format and suffix not in ("", ".txt", *known):
        raise DataError(
            f"{name_of(target)}: the suffix {suffix!r} is unknown; choose from {as_choices(['.txt', *known])}, or name "
            "the format"
        )


def write(data: Any, target: Source, format: str | None = None) -> None:
    """Write data to ``target``; ``format`` is a key of ``FORMATS``, by default chosen by suffix, then by data type.

    >>> import io
    >>> file = io.BytesIO()
    >>> write(Rankings.from_orders([["tea", "milk"], ["milk", "tea"]]), file, "ballots")
    >>> print(file.getvalue().decode())
    # items: tea = milk
    1: tea > milk
    1: milk > tea
    <BLANKLINE>
    """
    own = [name for name, record in FORMATS.items() if record.write and isinstance(data, record.kind)]
    if not own:
        raise DataError(f"{type(data).__name__} cannot be written; only what the readers return can")
    check_written(target, format)
    if format is None:
        suffix = bare_suffix(target)
        named = [name for name, record in FORMATS.items() if suffix in record.suffixes]
        # ballots before ratings, which need scores, and before the formats that lose ties or weights
        format = next((name for name in reversed(own) if name in named), named[0] if named else own[-1])
    one_of(format, FORMATS, "format")
    if format not in own:
        raise DataError(f"{type(data).__name__} cannot be written as {format}; choose from {as_choices(own)}")
    FORMATS[format].write(data, target)  # type: ignore[misc]
