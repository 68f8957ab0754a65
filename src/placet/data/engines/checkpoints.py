"""Checkpoints: what a fit had found when its engine failed, as one JSON file to start again from."""

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from placet.data.engines.serial import EngineError
from placet.data.errors import DataError

CHECKPOINT = "placet-checkpoint.json"
"""The name of the file, in the current folder."""

T = TypeVar("T")


def write_checkpoint(error: EngineError, what: str, found: Mapping[str, Any]) -> None:
    """Write what was found so far, called ``what``, and add the path to the error."""
    path = os.path.abspath(CHECKPOINT)
    unfinished = f"{path}.part"
    with open(unfinished, "w", encoding="utf-8") as file:
        json.dump({"placet": "checkpoint", **found}, file, ensure_ascii=False)
    os.replace(unfinished, path)
    error.checkpoint = path
    error.args = (f"{error}; the best {what} so far are in {path}: continue with start={path!r}",)


def read_checkpoint(path: str | os.PathLike[str], take: Callable[[Any], T], whose: str) -> T:
    """Return ``take`` of what a checkpoint holds; raise a ``DataError`` if it is not one of ``whose``."""
    try:
        with open(path, encoding="utf-8") as file:
            return take(json.load(file))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(f"{os.fspath(path)}: not a checkpoint of {whose} ({error})") from None
