"""The file format of saved models: safetensors with its own SHA-256 in the header, read as untrusted input.

The digest covers the whole file, with 64 zeros in place of the digest, and is checked before anything else.  Then the
lengths, types and offsets of the arrays, and the depth and size of the JSON, are checked before safetensors reads them.
"""

import hashlib
import json
import math
import os
import stat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placet.data import DataError
from placet.io.files import writing

Arrays = dict[str, NDArray[Any]]

LONGEST_HEADER = 64 << 20
MOST_TENSORS = 10_000
DEEPEST = 40
MOST_VALUES = 50_000
"""Maximum number of values in a header's JSON, besides one for every 8 bytes of it."""

DTYPES = {
    "F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
_NONE = "0" * 64
_BEFORE = b'\\"sha256\\": \\"'  # JSON nested in a JSON string


class NotAModel(DataError):
    """Raised for a file that is not a saved model, or is damaged."""


def write(path: str | os.PathLike[str], header: dict[str, Any], arrays: Arrays) -> None:
    """Write a header and arrays; the file appears under its name only once it is complete."""
    from safetensors.numpy import save

    text = json.dumps({"sha256": _NONE, **header}, allow_nan=False)
    data = save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, metadata={"placet": text})
    with writing(path) as file:
        file.write(seal(data))


def seal(data: bytes) -> bytes:
    """Fill in the digest of the bytes."""
    at = _place_of_digest(memoryview(data))
    blank = data[:at] + _NONE.encode() + data[at + 64 :]
    return data[:at] + hashlib.sha256(blank).hexdigest().encode() + data[at + 64 :]


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """Return the header and the arrays of a file, or raise a ``DataError``."""
    with open(path, "rb", opener=_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise NotAModel("this is not a regular file, so not a saved model")
        data = file.read()
    _check_digest(memoryview(data))
    length = int.from_bytes(data[:8], "little")
    outer = _parse(data[8 : 8 + length])
    about = outer.pop("__metadata__", None)
    text = about.get("placet") if isinstance(about, dict) else None
    if not isinstance(text, str):
        raise NotAModel("these are tensors, but not a model that Placet saved")
    return _parse(text.encode()), _arrays(data, outer, len(data) - 8 - length)


def _without_waiting(path: str, flags: int) -> int:
    """Open without blocking on a pipe that has no writer."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _place_of_digest(data: memoryview) -> int:
    """Offset of the digest, which is inside the header."""
    length = int.from_bytes(data[:8], "little")
    if len(data) < 9 or bytes(data[8:9]) != b"{" or length > len(data) - 8:
        raise NotAModel("this is not a saved model; placet train writes one (or it is damaged: its header is cut off)")
    if length > LONGEST_HEADER:
        raise NotAModel(f"this is not a saved model: its header has {length:,} bytes, more than {LONGEST_HEADER:,}")
    at = bytes(data[8 : 8 + length]).find(_BEFORE)
    if at < 0 or at + len(_BEFORE) + 64 > length:
        raise NotAModel("these are tensors, but not a model that Placet saved, or its digest is missing")
    return 8 + at + len(_BEFORE)


def _check_digest(data: memoryview) -> None:
    at = _place_of_digest(data)
    digest = hashlib.sha256(data[:at])
    digest.update(_NONE.encode())
    digest.update(data[at + 64 :])
    if digest.hexdigest().encode() != data[at : at + 64]:
        raise NotAModel("this saved model is damaged: its bytes are not those that were written; copy or save it again")


def _parse(text: bytes) -> dict[str, Any]:
    """Parse a JSON object of bounded size and depth, with finite numbers and unique names."""
    n_values = sum(text.count(sign) for sign in (b",", b"[", b"{", b":"))
    if n_values > MOST_VALUES + len(text) // 8:
        raise NotAModel(f"this is not a saved model: its header holds {n_values:,} values")
    try:
        found = json.loads(text, object_pairs_hook=_object, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise NotAModel(f"this is not a saved model, or it is damaged ({error})") from None
    if not isinstance(found, dict):
        raise NotAModel("these are tensors, but not a model that Placet saved")
    level: list[Any] = [found]
    for _ in range(DEEPEST):
        level = [inner for value in level for inner in (value.values() if isinstance(value, dict) else value)]
        level = [value for value in level if isinstance(value, list | dict)]
    if level:
        raise NotAModel(f"this is not a saved model: its header is nested more than {DEEPEST} deep")
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice in one object")
    return found


def _refuse(text: str) -> float:
    raise ValueError(f"{text} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    return number if abs(number) < float("inf") else _refuse(text)


def _arrays(data: bytes, tensors: dict[str, Any], n_bytes: int) -> Arrays:
    """The arrays of a file, read by safetensors once their layout in the header is known to be sound."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    _check_layout(tensors, n_bytes)
    try:
        found: Arrays = load(data)
    except (SafetensorError, ValueError) as error:
        raise NotAModel(f"this saved model is damaged: its arrays cannot be read ({error!s:.80})") from None
    for name, array in found.items():
        if array.dtype.kind == "b" and (array.view(np.uint8) > 1).any():
            raise NotAModel(f"this saved model is damaged: array {name!r:.40} holds bytes that are not true or false")
    return found


def _check_layout(tensors: dict[str, Any], n_bytes: int) -> None:
    """Raise unless the arrays in the header fill the ``n_bytes`` after it without gaps."""
    if len(tensors) > MOST_TENSORS:
        raise NotAModel(f"this is not a saved model: it holds {len(tensors):,} arrays, more than {MOST_TENSORS:,}")
    places: list[tuple[int, int, str]] = []
    for name, about in tensors.items():
        dtype, shape, (start, end) = _layout_of(about)
        expected = dtype.itemsize * math.prod(shape)  # Python integers do not overflow
        if end - start != expected:
            raise NotAModel(f"this saved model is damaged: array {name!r:.40} has {end - start} bytes, not {expected}")
        places.append((start, end, name))
    at = 0
    for start, end, name in sorted(places):
        if start != at or end > n_bytes:
            raise NotAModel(f"this saved model is damaged: array {name!r:.40} does not follow the one before it")
        at = end
    if at != n_bytes:
        raise NotAModel(f"this saved model is damaged: {n_bytes - at} bytes after its arrays belong to none")


def _layout_of(about: Any) -> tuple[np.dtype[Any], tuple[int, ...], tuple[int, int]]:
    """Type, shape and (start, end) offsets of an array."""
    if isinstance(about, dict) and set(about) == {"dtype", "shape", "data_offsets"}:
        kind, shape, place = about["dtype"], about["shape"], about["data_offsets"]
        numbers = [*shape, *place] if isinstance(shape, list) and isinstance(place, list) else [None]
        whole = all(type(number) is int and 0 <= number < 2**62 for number in numbers)
        if isinstance(kind, str) and kind in DTYPES and whole and len(place) == 2 and len(shape) <= 4:
            return np.dtype(DTYPES[kind]), tuple(shape), (place[0], place[1])
    raise NotAModel(f"this saved model is damaged: {about!r:.80} describes no array")
