"""One way in and one way out: the format guessed from the suffix and the first lines, or named."""

import inspect
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from placet.data import Comparisons, DataError, Queries, Rankings
from placet.data.errors import one_of
from placet.io.ballots import read_ballots, write_ballots
from placet.io.battles import read_battles, write_battles
from placet.io.files import COMPRESSED, Source, bare_suffix, first_lines, name_of, peek
from placet.io.letor import read_letor, write_letor
from placet.io.letor_agg import LetorAgg, read_letor_agg, write_letor_agg
from placet.io.preflib import read_preflib, write_preflib
from placet.io.problems import OnError
from placet.io.ratings import KNOWN, read_ratings, write_ratings
from placet.io.tables import read_table
from placet.io.trec import Qrels, read_qrels, read_trec_run, write_qrels, write_trec_run
from placet.io.xmc import MultiLabel, read_xmc, write_xmc

READERS: dict[str, Callable[..., Any]] = {
    "letor": read_letor,
    "letor-agg": read_letor_agg,
    "preflib": read_preflib,
    "ballots": read_ballots,
    "battles": read_battles,
    "ratings": read_ratings,
    "trec-run": read_trec_run,
    "qrels": read_qrels,
    "xmc": read_xmc,
}
WRITERS: dict[str, tuple[type, Callable[..., None]]] = {
    "letor": (Queries, write_letor),
    "letor-agg": (LetorAgg, write_letor_agg),
    "preflib": (Rankings, write_preflib),
    "ballots": (Rankings, write_ballots),
    "battles": (Comparisons, write_battles),
    "ratings": (Rankings, write_ratings),
    "trec-run": (Rankings, write_trec_run),
    "qrels": (Qrels, write_qrels),
    "xmc": (MultiLabel, write_xmc),
}
SUFFIXES = {
    **dict.fromkeys((".soc", ".soi", ".toc", ".toi"), "preflib"),
    **dict.fromkeys((".letor", ".svm", ".svmlight", ".libsvm"), "letor"),
    **dict.fromkeys((".ballots", ".abif"), "ballots"),
    ".agg": "letor-agg",
    ".qrels": "qrels",
    ".run": "trec-run",
    ".data": "ratings",
    ".xmc": "xmc",
}
TABLES = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".parquet", ".pq")
# Pairs of columns that are the two sides of a battle; the last two are scores where there is no winner.
SIDES = (
    ("model_a", "model_b"),
    ("left", "right"),
    ("player_a", "player_b"),
    ("item_a", "item_b"),
    ("a", "b"),
    ("white", "black"),
    ("home_team", "away_team"),
)
SCORES = (("score_a", "score_b"), ("home_score", "away_score"))

_NUMBER = r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?"
_LETOR = re.compile(rf"\s*{_NUMBER}\s+(?:qid:\S+(?:\s|$)|[0-9]+:{_NUMBER}(?:\s|$|#))")
_AGG = re.compile(r"\s[0-9]+:NULL(?:\s|$|#)")
_XMC = re.compile(r"\s*[0-9]+ +[0-9]+ +[0-9]+\s*")
_BALLOT = re.compile(rf"\s*(?:{_NUMBER}\s*:\s*\S.*|[^:]*>.*)")


def read(source: Source, format: str | None = None, *, on_error: OnError = "raise", **options: Any) -> Any:
    """Read any file that Placet knows; ``format`` is a key of ``READERS``, or is guessed.

    ``options`` are those of the reader of ``format``, such as the names of columns.

    By suffix (before that of the compression): ``SUFFIXES``.  Tables (``TABLES``): by their columns, battles (a pair
    of ``SIDES`` with ``winner`` or a pair of ``SCORES``), ratings (``user``, ``item``, ``rating`` and their other
    names), else ballots. Other text by its first lines: PrefLib by its header; ``1 qid:.. 1:..`` is LETOR, with
    ``:NULL`` LETOR-agg; three whole numbers are the header of extreme classification text; six fields with ``Q0`` or
    a score are a TREC run; four fields are ratings when tabs lie between numbers, else qrels; ``12: A > B`` or ``A >
    B`` are ballots.  LETOR text without ``qid:`` takes the sizes of its queries from ``FILE.query`` beside it
    (LightGBM), if that is there.
    """
    if format is not None:
        one_of(format, READERS, "format")
        if unknown := set(options) - set(inspect.signature(READERS[format]).parameters):
            raise ValueError(f"the reader of {format!r} has no option {min(unknown)!r}")
        if not options and format in ("battles", "ratings", "ballots") and bare_suffix(source) in TABLES:
            return _read_table(source, on_error, format)
        return READERS[format](source, on_error=on_error, **options)
    if options:
        raise ValueError(f"options {sorted(options)} belong to a reader; name its format, one of {list(READERS)}")
    head, source = peek(source)
    if bare_suffix(source) in TABLES or head[:4] == b"PAR1":
        return _read_table(source, on_error, None)
    kind = guess(head, bare_suffix(source), name_of(source))
    if kind == "letor" and not any(" qid:" in line for line in first_lines(head, 1)):
        return read_letor(source, group=_sizes_beside(source), on_error=on_error)
    return READERS[kind](source, on_error=on_error)


def guess(head: bytes, suffix: str, name: str) -> str:
    """The format of a text, from the suffix of its name and its first bytes."""
    lines = first_lines(head, 2)
    if suffix in SUFFIXES:
        agg = SUFFIXES[suffix] == "letor" and any(_AGG.search(line.partition("#")[0]) for line in lines)
        return "letor-agg" if agg else SUFFIXES[suffix]
    text = head.decode("utf-8-sig", errors="replace")
    if re.search(r"^#\s*NUMBER ALTERNATIVES", text, re.MULTILINE):
        return "preflib"
    first = lines[0].partition("#")[0] if lines else ""
    fields = first.split()
    if _LETOR.match(first):
        rows = text.split("\n")[:200]
        return "letor-agg" if any(_AGG.search(row.partition("#")[0]) for row in rows) else "letor"
    if _XMC.fullmatch(first) and (len(lines) < 2 or ":" in lines[1]):
        return "xmc"
    if len(fields) == 6 and re.fullmatch(_NUMBER, fields[4]):
        return "trec-run"
    if len(fields) == 4 and re.fullmatch(_NUMBER, fields[3]):
        ratings = "\t" in first and all(re.fullmatch(_NUMBER, field) for field in fields)
        return "ratings" if ratings else "qrels"
    if first.count("::") in (2, 3):
        return "ratings"
    if _BALLOT.fullmatch(first) or "# items:" in text:
        return "ballots"
    start = f"; it begins with {first[:60]!r}" if first else "; it is empty"
    raise DataError(f"{name}: the format cannot be guessed{start}; name it with format=, one of {list(READERS)}")


def _sizes_beside(source: Source) -> str | None:
    """``FILE.query`` beside ``FILE``, compressed or not."""
    if not isinstance(source, str | os.PathLike):
        return None
    path = Path(source)
    stem = path.with_suffix("") if path.suffix.lower() in COMPRESSED else path
    for suffix in ("", *COMPRESSED):
        beside = Path(f"{stem}.query{suffix}")
        if beside.exists():
            return str(beside)
    return None


def _read_table(source: Source, on_error: OnError, kind: str | None) -> Any:
    """Battles, ratings or ballots, as the columns say."""
    if kind == "ratings":
        return read_ratings(source, on_error=on_error)
    table = read_table(source, on_error)
    columns = table.names
    sides = next((pair for pair in SIDES if set(pair) <= set(columns)), None)
    scores = next((pair for pair in SCORES if set(pair) <= set(columns)), None)
    if kind in (None, "battles") and sides and ("winner" in columns or scores):
        extra: dict[str, Any] = {name: name for name in ("weight", "agent") if name in columns}
        return read_battles(
            table,
            a=sides[0],
            b=sides[1],
            scores=None if "winner" in columns else scores,
            **extra,
            on_error=on_error,
        )
    if kind == "battles" or (kind is None and sides):
        raise DataError(
            f"{name_of(source)}: the columns {columns} are not those of battles; use read_battles and name them"
        )
    if kind is None and all(set(names) & set(columns) for names in KNOWN.values()):
        return read_ratings(table, on_error=on_error)
    extra = {name: name for name in ("agent", "instance") if name in columns}
    return read_ballots(table, **extra, on_error=on_error)


def write(data: Any, target: Source, format: str | None = None) -> None:
    """Write data to ``target``; ``format`` is a key of ``WRITERS``, else the suffix says, else the type of the data."""
    kind = format or SUFFIXES.get(bare_suffix(target)) or _home(data)
    one_of(kind, WRITERS, "format")
    accepted, writer = WRITERS[kind]
    if not isinstance(data, accepted):
        own = [name for name, (type_, _) in WRITERS.items() if isinstance(data, type_)]
        raise DataError(f"{type(data).__name__} cannot be written as {kind}; choose from {own}")
    writer(data, target)


def _home(data: Any) -> str:
    if isinstance(data, Rankings):
        return "ballots"
    for name, (accepted, _) in WRITERS.items():
        if isinstance(data, accepted):
            return name
    raise DataError(f"{type(data).__name__} cannot be written; only what the readers return can")
