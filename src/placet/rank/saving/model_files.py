"""Saved rankers: arrays with a JSON header.  Loading never runs code from the file.

A file holds a list of rankers, each after the rankers that it contains; the last one is the model.  Parameters and
fitted attributes are plain JSON, except for dictionaries with one key: ``$array`` (the name of a tensor), ``$tuple``,
``$ranker`` (an index into the list) and ``$trees`` (the fields of a ``Forest``).
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from placet.data import DataError
from placet.rank.saving import file_format
from placet.rank.saving.file_format import Arrays
from placet.rank.tree_arrays import Forest

FORMAT = 2


class Kinds(Protocol):
    """Registry of the classes that can be saved."""

    def __getitem__(self, name: str) -> Any: ...
    def __contains__(self, name: object) -> bool: ...
    def name_of(self, kind: type) -> str | None: ...


def save(path: str | os.PathLike[str], ranker: Any, kinds: Kinds) -> None:
    """Write a ranker and all rankers that it contains, after checking that they can be loaded again."""
    import placet

    entries, arrays = encoded(ranker, kinds)
    header = {"placet": placet.__version__, "format": FORMAT, "rankers": entries}
    try:
        _rankers(entries, arrays, kinds)
        file_format.write(path, header, arrays)
    except OSError:
        raise
    except (TypeError, ValueError, KeyError) as error:
        raise ValueError(f"this model cannot be saved: it holds objects that are not plain data ({error})") from None


def encoded(ranker: Any, kinds: Kinds) -> tuple[list[dict[str, Any]], Arrays]:
    """A ranker and all rankers that it contains as JSON entries and arrays."""
    encoder = _Encoder(kinds)
    encoder.entry_of(ranker)
    return encoder.entries, encoder.arrays


class _Encoder:
    """Encodes rankers as JSON entries and arrays."""

    def __init__(self, kinds: Kinds) -> None:
        self.kinds = kinds
        self.entries: list[dict[str, Any]] = []
        self.arrays: Arrays = {}
        self.numbers: dict[int, int] = {}  # id of a ranker -> index of its entry
        self.forests: dict[int, Any] = {}  # id of a forest or LightGBM model -> its trees as JSON

    def entry_of(self, ranker: Any) -> int:
        """Index of the ranker's entry, which comes after the entries of the rankers that it contains."""
        if id(ranker) not in self.numbers:
            state = ranker.saved_state()
            entry = {
                "kind": self.kinds.name_of(type(ranker)),
                "params": {name: self.encode(v, name) for name, v in ranker.get_params(deep=False).items()},
                "state": state and {name: self.encode(v, name) for name, v in state.items()},
            }
            self.entries.append(entry)
            self.numbers[id(ranker)] = len(self.entries) - 1
        return self.numbers[id(ranker)]

    def encode(self, value: Any, name: str) -> Any:
        """Encode a parameter or fitted attribute called ``name`` as JSON."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.generic):
            return value.item()
        if self.kinds.name_of(type(value)) is not None:
            return {"$ranker": self.entry_of(value)}
        if isinstance(value, list):
            return [self.encode(inner, name) for inner in value]
        if isinstance(value, tuple):
            return {"$tuple": [self.encode(inner, name) for inner in value]}
        if isinstance(value, Mapping) and not any(str(key).startswith("$") for key in value):
            return {str(key): self.encode(inner, name) for key, inner in value.items()}
        if isinstance(value, np.ndarray):
            return {"$array": self.store(value, name)}
        if isinstance(value, Forest) or hasattr(getattr(value, "booster_", value), "model_to_string"):
            if id(value) not in self.forests:
                forest = value if isinstance(value, Forest) else Forest.from_lightgbm(value)
                parts = {field.name: getattr(forest, field.name) for field in fields(forest)}
                self.forests[id(value)] = {key: self.encode(part, f"{name}{key}") for key, part in parts.items()}
            return {"$trees": self.forests[id(value)]}
        raise ValueError(
            f"this model cannot be saved: its {name} holds a {type(value).__name__}; plain data, arrays, rankers of "
            "Placet and models of LightGBM can be saved"
        )

    def store(self, array: NDArray[Any], name: str) -> str:
        """Add an array; return the name of its tensor."""
        key = f"{len(self.arrays)}/{name}"
        self.arrays[key] = array
        return key


def load(path: str | os.PathLike[str], kinds: Kinds) -> Any:
    """The ranker in a file, or a ``DataError``."""
    try:
        header, arrays = file_format.read(path)
        version = header.get("format")
        if version != FORMAT or isinstance(version, bool):
            raise DataError(
                f"format {version!r:.40}, written by Placet {header.get('placet')!r:.40}, is not {FORMAT}; use that "
                "version of Placet, or save the model again"
            )
        entries: Any = header.get("rankers")
        ranker = _rankers(entries, arrays, kinds)[-1]
        if entries[-1]["state"] is None:  # rankers among its parameters may be unfitted, but not the model
            raise DataError("the saved model is damaged: it is not fitted")
        return ranker
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def _rankers(entries: Any, arrays: Arrays, kinds: Kinds) -> list[Any]:
    """Decode and check all rankers of a file."""
    if not isinstance(entries, list) or not entries:
        raise DataError("the saved model is damaged: it holds no rankers")
    rankers: list[Any] = []
    used: set[str] = set()
    for entry in entries:
        rankers.append(_ranker_from(entry, _Decoder(rankers, arrays, used), kinds))
    if used != set(arrays):
        raise DataError(f"the saved model is damaged: arrays {sorted(set(arrays) - used)[:3]} belong to no ranker")
    return rankers


def _ranker_from(entry: Any, decoder: "_Decoder", kinds: Kinds) -> Any:
    """The ranker of an entry, or a ``DataError``."""
    if not isinstance(entry, dict) or set(entry) != {"kind", "params", "state"}:
        raise DataError("the saved model is damaged: a ranker has no kind, parameters or state")
    kind = entry["kind"]
    if not isinstance(kind, str) or kind not in kinds:
        raise DataError(f"kind of model {kind!r:.60} is unknown; update Placet to read it")
    params, state = decoder.decode(entry["params"]), decoder.decode(entry["state"])
    if not isinstance(params, dict) or not isinstance(state, dict | None):
        raise DataError("the saved model is damaged: it has no parameters or no state")
    return kinds[kind].from_saved(params, state)


class _Decoder:
    """Inverse of ``_Encoder.encode``, given the preceding rankers and the arrays; records which arrays are used."""

    def __init__(self, rankers: Sequence[Any], arrays: Arrays, used: set[str]) -> None:
        self.rankers, self.arrays, self.used = rankers, arrays, used

    def decode(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.decode(inner) for inner in value]
        if not isinstance(value, dict):
            return value
        special = [key for key in value if key.startswith("$")]
        if not special:
            return {name: self.decode(inner) for name, inner in value.items()}
        key, inner = special[0], value[special[0]]
        if len(value) == 1:
            if key == "$array" and isinstance(inner, str) and inner in self.arrays:
                self.used.add(inner)
                return self.arrays[inner]
            if key == "$tuple" and isinstance(inner, list):
                return tuple(self.decode(one) for one in inner)
            if key == "$ranker" and type(inner) is int and 0 <= inner < len(self.rankers):
                return self.rankers[inner]
            if key == "$trees" and isinstance(inner, dict) and set(inner) == {field.name for field in fields(Forest)}:
                forest = Forest(**{name: self.decode(part) for name, part in inner.items()})
                forest.check()
                return forest
        raise DataError(f"the saved model is damaged: {value!r:.60} stands for nothing in it")


def is_saved(path: str | os.PathLike[str]) -> bool:
    """Whether a file looks like a saved model: eight bytes of length, then JSON."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        head = file.read(9)
    return len(head) == 9 and head[8:] == b"{" and int.from_bytes(head[:8], "little") < os.path.getsize(path)
