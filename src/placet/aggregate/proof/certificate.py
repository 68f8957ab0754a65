"""Certificates: a result with its question in full, as canonical JSON that anyone with the data can check.

A certificate holds the digests of the data, the question (method, parameters, seed, options of reading), the versions
of what computed it, and the answer: scores, errors, ranks, rank sets, tiers, notes, and how few votes decide the first
place.  Its last entry is the digest of all others.
"""

import base64
import hashlib
import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from placet.aggregate.result.asked import Asked
from placet.aggregate.result.consensus_set import ConsensusSet
from placet.aggregate.result.result import Consensus
from placet.data import Comparisons, DataError, Rankings, Scores

VERSION = 1
MOST_BYTES = 1 << 28
"""Largest certificate that is read."""

LONGEST, MOST_ASKED = 200, 50_000
"""Characters of a version, and of a question."""

SLOW = 0.2
"""Expected seconds of a fit above which how few votes decide, which takes many fits, is left out unless asked for."""

LIBRARIES = ("numpy", "scipy", "numba", "polars")
KINDS: dict[type, str] = {Comparisons: "votes", Rankings: "ballots", Scores: "scores"}


def certificate_of(
    result: Consensus | ConsensusSet,
    asked: Asked,
    level: float,
    *,
    files: Sequence[str | os.PathLike[str]] = (),
    reading: Mapping[str, Any] | None = None,
    fragility: bool | None = True,
) -> dict[str, Any]:
    """The certificate of a result: ``files`` it was read from with the options ``reading``; with ``fragility`` None it
    says how few votes decide the first place if that does not take long.
    """
    if fragility is None:
        fragility = isinstance(result, Consensus) and asked.seconds(asked, result.method) < SLOW
    found: dict[str, Any] = {
        "certificate": VERSION,
        "data": {"kind": _kind(asked.data), "sha256": digest_of_data(asked.data)},
        "files": [file_entry(path) for path in files],
        "question": {
            "method": asked.method,
            "params": _plain(dict(asked.params), "parameter"),
            "bootstrap": asked.bootstrap,
            "random_state": asked.random_state,
            "level": level,
            "fragility": fragility,
            "reading": _plain(dict(reading or {}), "option of reading"),
        },
        "answer": answer_of(result, level, fragility),
        "made_with": environment(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return found | {"digest": digest_of_entries(found)}


def answer_of(result: Consensus | ConsensusSet, level: float, fragility: bool) -> dict[str, Any]:
    """What a certificate says of a result: its table by columns, its notes, and its fragility if asked for."""
    frame = result.to_frame(level)
    columns = {name: [_cell(value) for value in frame[name].to_list()] for name in frame.columns}
    weak: dict[str, Any] | None = None
    if fragility:
        if not isinstance(result, Consensus):
            raise DataError(f"the result holds {len(result)} boards; fragility is about one: leave it out")
        weak = {"goal": "best", **result.fragility().to_dict(voters=False)}
    return {"method": result.method, "columns": columns, "notes": list(result.notes), "fragility": weak}


def _cell(value: Any) -> Any:
    return value if isinstance(value, str | int | float | None) else str(value)


def environment() -> dict[str, str]:
    """What computed a result: versions, the processor and whether kernels were compiled."""
    import numba

    import placet

    return {
        "placet": placet.__version__,
        "python": platform.python_version(),
        **{name: version(name) for name in LIBRARIES},
        "system": platform.system(),
        "processor": f"{platform.machine()} {_processor_features()}",
        "compiled": str(not numba.config.DISABLE_JIT),
    }


def _processor_features() -> str:
    """A short digest of the instructions that NumPy found, on which the last digits may depend."""
    core = "numpy._core" if hasattr(np, "_core") else "numpy.core"  # of NumPy 2 and 1
    known: dict[str, bool] = import_module(f"{core}._multiarray_umath").__cpu_features__
    return hashlib.sha256(" ".join(sorted(name for name, has in known.items() if has)).encode()).hexdigest()[:12]


# Digests


def file_entry(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Name, size and digest of a file."""
    found, size = hashlib.sha256(), 0
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
            size += len(block)
    return {"name": Path(path).name, "bytes": size, "sha256": found.hexdigest()}


def digest_of_data(data: Any) -> str:
    """The digest of votes, ballots, a score table or several sources: their columns and names, not their notes."""
    found = hashlib.sha256()
    _add_data(found, data)
    return found.hexdigest()


def _add_data(found: Any, data: Any) -> None:
    if isinstance(data, Mapping):
        for name, part in data.items():
            found.update(canonical([str(name), str(getattr(data, "target", None))]))
            _add_data(found, part)
        return
    found.update(_kind(data).encode())
    for one in fields(data):
        value = getattr(data, one.name)
        usual = not isinstance(value, np.ndarray) and value == one.default  # a later field must not change old digests
        if one.name == "notes" or value is None or usual:
            continue
        if isinstance(value, np.ndarray):
            whole = np.ascontiguousarray(value.astype(np.int64) if value.dtype.kind in "iuM" else value)
            found.update(canonical([one.name, list(value.shape), value.dtype.kind]) + whole.tobytes())
        else:
            plain = [[type(name).__name__, str(name)] for name in value] if isinstance(value, tuple) else str(value)
            found.update(canonical([one.name, plain]))


def _kind(data: Any) -> str:
    if isinstance(data, Mapping):
        return "sources" if hasattr(data, "target") else "slices"
    if type(data) not in KINDS:
        raise ValueError(
            f"a certificate needs its data in memory, not {type(data).__name__}; read them with placet.read"
        )
    return KINDS[type(data)]


def digest_of_entries(certificate: Mapping[str, Any]) -> str:
    """The digest of all entries but that of the digest itself."""
    rest = {name: value for name, value in certificate.items() if name != "digest"}
    return hashlib.sha256(canonical(rest)).hexdigest()


# JSON


def canonical(value: Any) -> bytes:
    """JSON with sorted names, no spaces and no NaN, as UTF-8: equal values have equal bytes."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "surrogatepass")


def read_certificate(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a certificate, or the one that a page carries; a ``DataError`` says what is wrong with other files."""
    size = os.path.getsize(path)
    if size > MOST_BYTES:
        raise DataError(f"{os.fspath(path)}: {size:,} bytes are too many for a certificate (at most {MOST_BYTES:,})")
    with open(path, "rb") as file:
        text = file.read()
    if text[:200].lstrip().lower().startswith(b"<!doctype html"):
        text = _carried(text, os.fspath(path))
    return parse_certificate(text, os.fspath(path))


_DOWNLOAD = re.compile(
    rb'<a download="[^"<>]*\.cert\.json" href="data:application/json;[a-z0-9=;-]*,([A-Za-z0-9+/=]*)">'
)


def _carried(page: bytes, where: str) -> bytes:
    """The certificate that a page carries."""
    found = _DOWNLOAD.findall(page)
    if len(found) != 1:
        raise DataError(f"{where}: the page carries {len(found) or 'no'} certificates; one is needed")
    try:
        return base64.b64decode(found[0])
    except ValueError as error:
        raise DataError(f"{where}: the certificate of the page cannot be read: {error}") from None


def parse_certificate(text: bytes, where: str) -> dict[str, Any]:
    """A certificate from its bytes, checked entry by entry."""
    try:
        value = json.loads(
            text, parse_constant=_refuse_constant, parse_float=_finite_number, object_pairs_hook=_without_repeats
        )
    except RecursionError:
        raise DataError(f"{where}: not a certificate of Placet: it is nested too deeply") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise DataError(f"{where}: not a certificate of Placet: {error}") from None
    check_certificate(value, where)
    return dict(value)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")


def _finite_number(text: str) -> float:
    value = float(text)
    if not np.isfinite(value):
        raise ValueError(f"{text[:40]} is beyond floating-point numbers")
    return value


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice in an object")
    return found


ENTRIES: dict[str, Any] = {
    "certificate": int,
    "data": {"kind": str, "sha256": str},
    "files": [{"name": str, "bytes": int, "sha256": str}],
    "question": {
        "method": (str, type(None)),
        "params": dict,
        "bootstrap": int,
        "random_state": int,
        "level": float,
        "fragility": bool,
        "reading": dict,
    },
    "answer": {"method": str, "columns": dict, "notes": [str], "fragility": (dict, type(None))},
    "made_with": dict,
    "date": str,
    "digest": str,
}
"""Entry -> type, types, a dict of entries, or a list with the type of its members."""


def check_certificate(value: Any, where: str) -> None:
    """Raise a ``DataError`` unless the value has the entries of a certificate and no others."""
    if isinstance(value, dict) and isinstance(value.get("certificate"), int) and value["certificate"] != VERSION:
        raise DataError(
            f"{where}: a certificate of version {value['certificate']}; this Placet reads version {VERSION}"
        )
    _check_entry(value, ENTRIES, where, "certificate")
    if not all(isinstance(one, str) and len(one) <= LONGEST for one in value["made_with"].values()):
        raise DataError(f"{where}: not a certificate of Placet: entry 'made_with' is not short texts")
    size = len(repr(value["question"]))
    if size > MOST_ASKED:
        raise DataError(f"{where}: not a certificate of Placet: its question has {size:,} characters ({MOST_ASKED:,})")
    for name, column in value["answer"]["columns"].items():
        if not isinstance(column, list) or not all(isinstance(cell, str | int | float | None) for cell in column):
            raise DataError(f"{where}: not a certificate of Placet: column {name!r} is not a list of numbers or names")


def _check_entry(value: Any, kind: Any, where: str, name: str) -> None:
    wrong = f"{where}: not a certificate of Placet: entry {name!r}"
    if isinstance(kind, dict):
        if not isinstance(value, dict):
            raise DataError(f"{wrong} is {type(value).__name__}, not an object")
        if set(value) != set(kind):
            odd = sorted(set(value) ^ set(kind))
            raise DataError(f"{wrong} {'lacks' if odd[0] in kind else 'has'} {odd[0]!r}")
        for own, inner in kind.items():
            _check_entry(value[own], inner, where, own)
    elif isinstance(kind, list):
        if not isinstance(value, list):
            raise DataError(f"{wrong} is {type(value).__name__}, not a list")
        for member in value:
            _check_entry(member, kind[0], where, name)
    elif not _is_of(value, kind):
        raise DataError(f"{wrong} is {type(value).__name__}, which it cannot be")


def _is_of(value: Any, kind: Any) -> bool:
    """Whether a value is of a type; a whole number is a decimal too, and true is no number."""
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, kind) or (kind is float and isinstance(value, int))


def _plain(value: Any, what: str, name: str = "") -> Any:
    """The value as JSON holds it, or an error that names what it cannot hold."""
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise ValueError(f"{what} {name!r} has names that are not text, which a certificate cannot hold")
        return {key: _plain(one, what, name or key) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one, what, name) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        raise ValueError(f"{what} {name!r} is {value}, which a certificate cannot hold")
    if not isinstance(value, str | int | float | bool | None):
        raise ValueError(f"{what} {name!r} is {type(value).__name__}, which a certificate cannot hold")
    return value
