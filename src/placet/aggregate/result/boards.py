"""Boards: results saved as JSON together with the covariance of the scores and the underlying data.

A board can be compared with another (`placet.aggregate.result.difference`) and updated with new votes without the
original files: ``board.data + new``, fitted with ``start=board.consensus``.
"""

import json
import os
from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any

import numpy as np

from placet.aggregate.result.consensus_set import ConsensusSet
from placet.aggregate.result.result import Consensus
from placet.aggregate.result.scales import in_log_odds
from placet.data import Comparisons, DataError, Rankings, Scores

VERSION = 1
MOST_ITEMS = 200
"""Maximum items for saving the covariance; beyond, only standard errors."""

MOST_ROWS = 1_000_000
"""Maximum rows, or entries of a score table, for saving the data."""

KINDS: dict[str, type] = {"votes": Comparisons, "ballots": Rankings, "scores": Scores}


@dataclass(frozen=True)
class Board:
    """Contents of a board file: the result, the underlying data if saved, and the method with its parameters."""

    consensus: Consensus | ConsensusSet
    data: Any
    method: str
    params: Mapping[str, Any]


def board_dict(result: Consensus | ConsensusSet, data: Any = None) -> dict[str, Any]:
    """A JSON-compatible dict for `read_board`: ``board`` (the version), ``state`` and, unless too large, ``data``."""
    state: Any = (
        _state(result)
        if isinstance(result, Consensus)
        else {"by": result.by, "boards": [[_name(name), _state(c)] for name, c in result.items()]}
    )
    answer = {"board": VERSION, "method": result.method, "params": _json_params(result.params), "state": state}
    kept = _data_dict(data)
    return answer if kept is None else {**answer, "data": kept}


def is_board(path: str | os.PathLike[str]) -> bool:
    """Whether a file starts like a board."""
    try:
        with open(path, "rb") as file:
            return file.read(64).split()[:2] == [b"{", b'"board":']
    except OSError:
        return False


def read_board(path: str | os.PathLike[str]) -> Board:
    """Read a board written by ``placet aggregate --out board.json`` or `write_board`.

    Returns
    -------
    Board
        The ``consensus``, the ``method`` and its ``params``.

    >>> import tempfile, placet
    >>> file = tempfile.mkdtemp() + "/board.json"
    >>> write_board(file, placet.consensus(placet.Rankings.from_orders([["a", "b"]]), "borda"))
    >>> read_board(file).consensus.ranking
    ['a', 'b']
    """
    name = os.fspath(path)
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
        if value["board"] != VERSION:
            raise DataError(f"{name}: a board of version {value['board']}; this Placet reads version {VERSION}")
        method, params, state = value["method"], dict(value["params"]), value["state"]
        result: Consensus | ConsensusSet
        if "boards" in state:
            boards = {key: _consensus(one, method, params) for key, one in state["boards"]}
            result = ConsensusSet(boards, method=method, params=params, by=state["by"])
        else:
            result = _consensus(state, method, params)
        return Board(result, _read_data(value.get("data")), method, params)
    except (KeyError, TypeError, json.JSONDecodeError):
        way_out = "write one with: placet aggregate FILE --out board.json"
        raise DataError(f"{name}: not a board of Placet; {way_out}") from None


def write_board(path: str | os.PathLike[str], result: Consensus | ConsensusSet, data: Any = None) -> None:
    """Write a result and its underlying data to a file for `read_board`."""
    from placet.io.files import writing

    with writing(path) as file:
        file.write(json.dumps(board_dict(result, data), ensure_ascii=False, indent=2).encode() + b"\n")


def _state(c: Consensus) -> dict[str, Any]:
    """Scores in log odds with their errors, and the scale on which they were displayed."""
    plain = in_log_odds(c)
    full = plain._covariance_or_draws() if len(plain.items) <= MOST_ITEMS else None
    return {
        "items": [_name(name) for name in plain.items],
        "scores": plain.scores.tolist(),
        "stderr": _list(plain.stderr),
        "covariance": _list(full),
        "support": _list(plain.support),
        "spread": _list(plain.spread),
        "tolerance": plain.tolerance,
        "win": _win_dict(plain),
        "scale": None if c.scale is None else asdict(c.scale),
    }


def _win_dict(c: Consensus) -> dict[str, Any] | None:
    """The win probability function by family and tie parameter; None if it has no named family."""
    own: Any = getattr(c.win, "keywords", {})
    if "family" not in own:
        return None
    return {"family": own["family"], "tie": float(own["tie"]) if np.isfinite(own["tie"]) else None}


def _tie(value: float | None) -> float:
    """The tie parameter; JSON has no -inf."""
    return -np.inf if value is None else float(value)


def _consensus(state: Mapping[str, Any], method: str, params: Mapping[str, Any]) -> Consensus:
    array = lambda name: None if state[name] is None else np.array(state[name], dtype=np.float64)  # noqa: E731
    law = None
    if (win := state["win"]) is not None:
        from placet.losses.pairwise import win_probability  # slow import; rules do not need it

        law = partial(win_probability, family=win["family"], tie=_tie(win["tie"]))
    return Consensus(
        tuple(state["items"]),
        np.array(state["scores"], dtype=np.float64),
        method=method,
        params=params,
        stderr=array("stderr"),
        covariance=array("covariance"),
        support=array("support"),
        spread=array("spread"),
        tolerance=state["tolerance"],
        win=law,
    )


def _data_dict(data: Any) -> dict[str, Any] | None:
    """The columns of votes, ballots or a score table; None if absent, too large or not JSON-compatible."""
    if isinstance(data, Mapping):
        parts = [[_name(name), _data_dict(part)] for name, part in data.items()]
        return None if any(part is None for _, part in parts) else {"kind": "slices", "slices": parts}
    kind = next((name for name, own in KINDS.items() if type(data) is own), None)
    if kind is None or _size(data) > MOST_ROWS:
        return None
    columns: dict[str, Any] = {}
    for one in fields(data):
        value = getattr(data, one.name)
        if isinstance(value, np.ndarray):
            value = _column(value)
        elif isinstance(value, tuple):
            value = list(value)
            if one.name != "notes" and not all(isinstance(name, str | int | float) for name in value):
                return None
        elif not isinstance(value, str | int | float | bool | None):
            return None
        columns[one.name] = value
    return {"kind": kind, **columns}


def _size(data: Comparisons | Rankings | Scores) -> int:
    if isinstance(data, Scores):
        return data.value.size
    return len(data.item) if isinstance(data, Rankings) else len(data)


def _column(values: Any) -> Any:
    """A column as a JSON list: dates become text, missing scores null."""
    if values.dtype.kind == "M":
        return np.datetime_as_string(values).tolist()
    if values.dtype.kind == "f" and np.isnan(values).any():
        plain = values.astype(object)
        plain[np.isnan(values)] = None
        return plain.tolist()
    return values.tolist()


def _read_data(value: Mapping[str, Any] | None) -> Any:
    if value is None:
        return None
    if value["kind"] == "slices":
        return {name: _read_data(part) for name, part in value["slices"]}
    own = KINDS[value["kind"]]
    columns = {name: tuple(v) if name in _NAMES and v is not None else v for name, v in value.items() if name != "kind"}
    return own(**{name: _array(name, v) if isinstance(v, list) else v for name, v in columns.items()})


def _array(name: str, values: list[Any]) -> Any:
    """The original column: null is a missing score, text a date."""
    if name == "time" and values and isinstance(values[0], str):
        return np.array(values, dtype="datetime64")
    return np.array(values, dtype=np.float64) if name == "value" else np.array(values)


_NAMES = ("items", "agents", "instances", "notes", "controls", "tasks", "questions")


def _list(values: Any) -> Any:
    return None if values is None else np.asarray(values).tolist()


def _name(name: Hashable) -> Any:
    return name if isinstance(name, str | int | float) else str(name)


def _json_params(params: Mapping[str, object]) -> dict[str, Any]:
    return {name: v for name, v in params.items() if isinstance(v, str | int | float | bool | None)}
