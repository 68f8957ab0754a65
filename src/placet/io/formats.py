"""Every format in one table; one way in and one way out, by a format that is named or guessed."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from placet.data import Comparisons, DataError, Queries, Rankings
from placet.data.errors import one_of
from placet.io.ballots import looks_like_ballots, read_ballots, write_ballots
from placet.io.battles import looks_like_battles, read_battles, write_battles
from placet.io.files import Source, bare_suffix
from placet.io.letor import (
    LetorAgg,
    looks_like_letor,
    looks_like_letor_agg,
    read_letor,
    read_letor_agg,
    write_letor,
    write_letor_agg,
)
from placet.io.preflib import looks_like_preflib, read_preflib, write_preflib
from placet.io.ratings import looks_like_ratings, read_ratings, write_ratings
from placet.io.tables import SUFFIXES as TABLES
from placet.io.tables import Sample, take_sample
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
from placet.io.xmc import MultiLabel, looks_like_xmc, read_xmc, write_xmc


@dataclass(frozen=True)
class Format:
    """How one format is read, written and recognized.

    ``read(source, *, on_error=..., **options)`` returns a ``kind``, and ``write(data, target)`` takes one.
    ``looks_like(sample)`` returns the options to read the sample with, or ``None`` where it is of another format.
    Among formats that share a suffix of ``suffixes`` the first that the sample looks like is taken.
    """

    read: Callable[..., Any]
    write: Callable[..., None]
    kind: type
    suffixes: tuple[str, ...]
    looks_like: Callable[[Sample], dict[str, Any] | None]


_SVM = (".letor", ".svm", ".svmlight", ".libsvm")
FORMATS: dict[str, Format] = {
    "preflib": Format(read_preflib, write_preflib, Rankings, (".soc", ".soi", ".toc", ".toi"), looks_like_preflib),
    "letor-agg": Format(read_letor_agg, write_letor_agg, LetorAgg, (".agg", *_SVM), looks_like_letor_agg),
    "letor": Format(read_letor, write_letor, Queries, _SVM, looks_like_letor),
    "xmc": Format(read_xmc, write_xmc, MultiLabel, (".xmc",), looks_like_xmc),
    "trec-run": Format(read_trec_run, write_trec_run, Rankings, (".run",), looks_like_trec_run),
    "qrels": Format(read_qrels, write_qrels, Qrels, (".qrels",), looks_like_qrels),
    "battles": Format(read_battles, write_battles, Comparisons, TABLES, looks_like_battles),
    "ratings": Format(read_ratings, write_ratings, Rankings, (".data", *TABLES), looks_like_ratings),
    "ballots": Format(read_ballots, write_ballots, Rankings, (".ballots", ".abif", *TABLES), looks_like_ballots),
}


def read(source: Source, format: str | None = None, *, on_error: OnError = "raise", **options: Any) -> Any:
    """Read any file that Placet knows; ``format`` is a key of ``FORMATS``, or is guessed.

    ``options`` are those of the reader of ``format``, such as the names of columns.

    A suffix (before that of the compression) leaves the formats of ``FORMATS`` that have it; without a known suffix
    all are possible, and the first that the content looks like is taken.  Tables tell by their columns: battles (two
    sides with ``winner`` or scores), ratings (``user``, ``item``, ``rating`` and their other names), else ballots.
    Other text tells by its first lines: PrefLib by its header; ``1 qid:.. 1:..`` is LETOR, with ``:NULL`` LETOR-agg;
    three whole numbers are the header of extreme classification text; six fields with a score are a TREC run; four
    fields are ratings when tabs lie between numbers, else qrels; ``12: A > B`` or ``A > B`` are ballots.  LETOR text
    without ``qid:`` takes the sizes of its queries from ``FILE.query`` beside it (LightGBM), if that is there.
    """
    if format is None and options:
        raise ValueError(f"options {sorted(options)} belong to a reader; name its format, one of {list(FORMATS)}")
    if format is None:
        sample = take_sample(source, on_error)
        found, options = guess(sample)
        return found.read(sample.source if sample.table is None else sample.table, on_error=on_error, **options)
    one_of(format, FORMATS, "format")
    reader = FORMATS[format].read
    if unknown := set(options) - set(inspect.signature(reader).parameters):
        raise ValueError(f"the reader of {format!r} has no option {min(unknown)!r}")
    if not options and bare_suffix(source) in TABLES:
        sample = take_sample(source, on_error)
        source, known = sample.source, FORMATS[format].looks_like(sample)
        if known is not None:
            return reader(sample.table, on_error=on_error, **known)
    return reader(source, on_error=on_error, **options)


def guess(sample: Sample) -> tuple[Format, dict[str, Any]]:
    """The format of a sample, and the options to read it with."""
    named = [format for format in FORMATS.values() if sample.suffix in format.suffixes]
    for format in named or FORMATS.values():
        options = format.looks_like(sample)
        if options is not None:
            return format, options
    if named:
        return named[-1], {}
    start = f"; it begins with {sample.first[:60]!r}" if sample.first else "; it is empty"
    raise DataError(f"{sample.name}: the format cannot be guessed{start}; name it with format=, one of {list(FORMATS)}")


def write(data: Any, target: Source, format: str | None = None) -> None:
    """Write data to ``target``; ``format`` is a key of ``FORMATS``, else the suffix says, else the type of the data."""
    own = [name for name, record in FORMATS.items() if isinstance(data, record.kind)]
    if not own:
        raise DataError(f"{type(data).__name__} cannot be written; only what the readers return can")
    if format is None:
        suffix = bare_suffix(target)
        named = [name for name, record in FORMATS.items() if suffix in record.suffixes]
        # ballots before ratings, which want scores, and before the formats that lose ties or weights
        format = next((name for name in reversed(own) if name in named), named[0] if named else own[-1])
    one_of(format, FORMATS, "format")
    if format not in own:
        raise DataError(f"{type(data).__name__} cannot be written as {format}; choose from {own}")
    FORMATS[format].write(data, target)
