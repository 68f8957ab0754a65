"""One file format for every model: safetensors arrays with a JSON header.  Loading never runs code."""

import json
import os
import tempfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from placet.data import DataError

FORMAT = 1

# kind in the file -> where its class lives; nothing else can be loaded
KINDS = {
    "LinearRanker": "placet.rank.linear",
    "TreeRanker": "placet.rank.trees",
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
        text = json.dumps(header, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"this model cannot be saved: a parameter is not plain data ({error})") from None
    data = save(arrays, metadata={"placet": text})
    path = Path(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


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
    if not isinstance(header, dict) or header.get("kind") not in KINDS:
        kind = header.get("kind") if isinstance(header, dict) else None
        raise DataError(f"{path}: kind of model {kind!r} is unknown; known are {sorted(KINDS)}")
    if header["format"] > FORMAT:
        raise DataError(
            f"{path}: written by a newer Placet ({header['placet']}, format {header['format']}); update to read it"
        )
    return header["kind"], header["params"], {**header["state"], **arrays}


def load(path: str | os.PathLike[str]) -> Any:
    """Any saved model; it predicts as the one that was saved.  Nothing is unpickled."""
    kind, params, state = read(path)
    return getattr(import_module(KINDS[kind]), kind).from_saved(params, state)
