"""The file of a saved ranker: safetensors arrays with a JSON header.  Loading never runs code.

A file holds a list of rankers, each after the rankers that it holds; the last one is the model.  Their parameters and
fitted attributes are plain JSON, but for dictionaries with one key: ``$array`` (the name of a tensor), ``$tuple``,
``$ranker`` (a number in the list) and ``$lightgbm`` (the name of a tensor with the text of the trees).
"""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from placet.data import DataError
from placet.io.files import writing

FORMAT = 1
Arrays = dict[str, NDArray[Any]]


class Kinds(Protocol):
    """The table of classes that can be saved."""

    def __getitem__(self, name: str) -> Any: ...
    def __contains__(self, name: object) -> bool: ...
    def name_of(self, kind: type) -> str | None: ...


def save(path: str | os.PathLike[str], ranker: Any, kinds: Kinds) -> None:
    """Write a ranker and all rankers that it holds; the file appears under its name only when it is whole."""
    from safetensors.numpy import save

    import placet

    encoder = _Encoder(kinds)
    encoder.entry_of(ranker)
    header = {"placet": placet.__version__, "format": FORMAT, "rankers": encoder.entries}
    try:
        text = json.dumps(header, allow_nan=False)
        data = save({k: np.ascontiguousarray(v) for k, v in encoder.arrays.items()}, metadata={"placet": text})
    except (TypeError, ValueError, KeyError) as error:
        raise ValueError(f"this model cannot be saved: it holds what is not plain data ({error})") from None
    with writing(path) as file:
        file.write(data)


class _Encoder:
    """Rankers as JSON entries and arrays."""

    def __init__(self, kinds: Kinds) -> None:
        self.kinds = kinds
        self.entries: list[dict[str, Any]] = []
        self.arrays: Arrays = {}
        self.numbers: dict[int, int] = {}  # id of a ranker -> its number among the entries
        self.texts: dict[int, str] = {}  # id of a model of LightGBM -> the name of its tensor

    def entry_of(self, ranker: Any) -> int:
        """The number of the ranker's entry, which comes after those of the rankers that it holds."""
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
        """A parameter or fitted attribute as JSON; ``name`` is its name."""
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
        trees = getattr(getattr(value, "booster_", value), "model_to_string", None)
        if trees is not None:
            if id(value) not in self.texts:
                self.texts[id(value)] = self.store(np.frombuffer(trees().encode(), np.uint8), name)
            return {"$lightgbm": self.texts[id(value)]}
        raise ValueError(
            f"this model cannot be saved: its {name} holds a {type(value).__name__}; plain data, arrays, rankers of "
            "Placet and models of LightGBM can be saved"
        )

    def store(self, array: NDArray[Any], name: str) -> str:
        """The name of the tensor that holds the array."""
        key = f"{len(self.arrays)}/{name}"
        self.arrays[key] = array
        return key


def load(path: str | os.PathLike[str], kinds: Kinds) -> Any:
    """The ranker of a file, or a ``DataError``."""
    header, arrays = _read(path)
    entries = header.get("rankers")
    rankers: list[Any] = []
    try:
        if not isinstance(entries, list) or not entries:
            raise DataError("the saved model is damaged: it holds no rankers")
        for entry in entries:
            rankers.append(_ranker_from(entry, rankers, arrays, kinds))
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    return rankers[-1]


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """The header and the arrays of a file, or a ``DataError``."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get("placet")
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        header = json.loads(text) if text else None
    except (SafetensorError, json.JSONDecodeError, RecursionError) as error:
        raise DataError(f"{path}: this is not a saved model, or it is damaged ({error})") from None
    if not isinstance(header, dict):
        raise DataError(f"{path}: these are tensors, but not a model that Placet saved")
    version = header.get("format")
    if not isinstance(version, int) or version > FORMAT:
        raise DataError(
            f"{path}: format {version!r}, written by Placet {header.get('placet')!r}, is newer than {FORMAT}; "
            "update Placet to read it"
        )
    return header, arrays


def _ranker_from(entry: Any, rankers: Sequence[Any], arrays: Arrays, kinds: Kinds) -> Any:
    """The ranker of an entry, given those before it, or a ``DataError``."""
    if not isinstance(entry, dict) or set(entry) != {"kind", "params", "state"}:
        raise DataError("the saved model is damaged: a ranker has no kind, parameters or state")
    kind = entry["kind"]
    if not isinstance(kind, str) or kind not in kinds:
        raise DataError(f"kind of model {kind!r} is unknown; update Placet to read it")
    try:
        params, state = _decode(entry["params"], rankers, arrays), _decode(entry["state"], rankers, arrays)
    except (KeyError, IndexError, TypeError) as error:
        raise DataError(f"the saved model is damaged ({type(error).__name__}: {error})") from None
    if not isinstance(params, dict) or not isinstance(state, dict | None):
        raise DataError("the saved model is damaged: it has no parameters or no state")
    return kinds[kind].from_saved(params, state)


def _decode(value: Any, rankers: Sequence[Any], arrays: Arrays) -> Any:
    """What ``encode`` was given."""
    if isinstance(value, list):
        return [_decode(inner, rankers, arrays) for inner in value]
    if not isinstance(value, dict):
        return value
    key = next(iter(value), "")
    inner: Any = value.get(key)
    if key == "$array":
        return arrays[inner]
    if key == "$tuple":
        return tuple(_decode(one, rankers, arrays) for one in inner)
    if key == "$ranker":
        return dict(enumerate(rankers))[inner]
    if key == "$lightgbm":
        return lightgbm_model(arrays[inner])
    return {name: _decode(one, rankers, arrays) for name, one in value.items()}


def is_saved(path: str | os.PathLike[str]) -> bool:
    """Whether a file looks like a saved model: eight bytes of length, then JSON."""
    with open(path, "rb") as file:
        head = file.read(9)
    return len(head) == 9 and head[8:] == b"{" and int.from_bytes(head[:8], "little") < os.path.getsize(path)


def lightgbm() -> Any:
    """LightGBM, or words on how to get it."""
    try:
        import lightgbm
    except ImportError:
        raise ImportError("trees need LightGBM; install it with: pip install 'placet[trees]'") from None
    return lightgbm


def lightgbm_model(text: NDArray[np.uint8]) -> Any:
    """LightGBM's model from the bytes of its text, or a ``DataError``."""
    lgb = lightgbm()
    try:
        return lgb.Booster(model_str=text.tobytes().decode())
    except (lgb.basic.LightGBMError, UnicodeDecodeError) as error:
        raise DataError(f"the trees of this model are damaged ({error})") from None
