"""One file format for every model: safetensors arrays with a JSON header.  Loading never runs code."""

import json
import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from placet.data import DataError
from placet.io.files import writing

FORMAT = 1

# kind in the file -> where its class lives; nothing else can be loaded
KINDS = {
    "LinearRanker": "placet.rank.linear",
    "TreeRanker": "placet.rank.trees",
    "NeuralRanker": "placet.rank.neural",
    "LabelRanker": "placet.rank.labels",
    "SupervisedFusion": "placet.rank.fusion",
    "ListwiseReranker": "placet.rank.reranker",
    "ContinuousCRF": "placet.rank.crf",
    "ConsistentBooster": "placet.rank.boosting",
    "SurrogateSearch": "placet.rank.surrogate",
    "StructRank": "placet.rank.structrank",
    "DiversityReranker": "placet.rank.diversity",
    "Blend": "placet.rank.blend",
}


def write(path: str | os.PathLike[str], kind: str, params: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    """Write a model: ``params`` as JSON; of ``state`` the arrays as tensors, and the rest as JSON.

    The file appears under its name only when it is whole.
    """
    from safetensors.numpy import save

    import placet

    arrays = {name: np.ascontiguousarray(value) for name, value in state.items() if isinstance(value, np.ndarray)}
    rest = {name: value for name, value in state.items() if name not in arrays}
    header = {"placet": placet.__version__, "format": FORMAT, "kind": kind, "params": dict(params), "state": rest}
    try:
        text = json.dumps(header, allow_nan=False, default=_plain)
    except (TypeError, ValueError) as error:
        raise ValueError(f"this model cannot be saved: a parameter is not plain data ({error})") from None
    data = save(arrays, metadata={"placet": text})
    with writing(path) as file:
        file.write(data)


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays, and mappings, as JSON knows them."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{value!r} of type {type(value).__name__}")


def read(path: str | os.PathLike[str]) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Kind, parameters and state of a saved model, or a ``DataError``."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get("placet")
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        header = json.loads(text) if text else None
    except (SafetensorError, json.JSONDecodeError) as error:
        raise DataError(f"{path}: this is not a saved model, or it is damaged ({error})") from None
    if not isinstance(header, dict):
        raise DataError(f"{path}: these are tensors, but not a model that Placet saved")
    version, kind = header.get("format"), header.get("kind")
    if not isinstance(version, int) or version > FORMAT:
        raise DataError(
            f"{path}: format {version!r}, written by Placet {header.get('placet')!r}, is newer than {FORMAT}; "
            "update Placet to read it"
        )
    if kind not in KINDS:
        raise DataError(f"{path}: kind of model {kind!r} is unknown; known are {sorted(KINDS)}")
    params, state = header.get("params"), header.get("state")
    if not isinstance(params, dict) or not isinstance(state, dict):
        raise DataError(f"{path}: the saved model is damaged: it has no parameters or no state")
    return str(kind), params, {**state, **arrays}


def is_saved(path: str | os.PathLike[str]) -> bool:
    """Whether a file looks like a saved model: eight bytes of length, then JSON."""
    with open(path, "rb") as file:
        head = file.read(9)
    return len(head) == 9 and head[8:] == b"{" and int.from_bytes(head[:8], "little") < os.path.getsize(path)


def load(path: str | os.PathLike[str]) -> Any:
    """Any saved model; it predicts as the one that was saved.  Nothing is unpickled."""
    kind, params, state = read(path)
    try:
        return getattr(import_module(KINDS[kind]), kind).from_saved(params, state)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
