"""Results as files: the table, a TREC run, or JSON that holds what is needed to update the result later."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from placet.aggregate.result.boards import board_dict
from placet.aggregate.result.consensus_set import ConsensusSet
from placet.aggregate.result.groups import Groups
from placet.aggregate.result.result import Consensus
from placet.io.files import writing
from placet.io.tables.tables import write_table
from placet.io.trec import write_trec_run
from placet.output.json_values import json_text


def result_json(result: Consensus | ConsensusSet, level: float, data: Any = None) -> dict[str, object]:
    """A result as JSON: the table, the notes, and what `placet.aggregate.result.boards` needs to update it."""
    rows = result.to_frame(level).to_dicts()
    if isinstance(result, Groups):
        return {"method": result.method, "notes": list(result.notes), "ranking": rows, **result.to_dict()}
    board = board_dict(result, data)
    state = {name: board.pop(name) for name in ("state", "data") if name in board}
    answer: dict[str, object] = {**board, "notes": list(result.notes), "ranking": rows}
    answer |= beside_json(result)
    if isinstance(result, Consensus) and result.record is not None:
        answer["record"] = result.record.to_dict()
    return answer | state


def beside_json(result: Consensus | ConsensusSet) -> dict[str, object]:
    """The parts of a result other than the ranking, for JSON."""
    if not isinstance(result, Consensus):
        return {}
    frames: dict[str, Any] = {"controls": result.effects, "agents": result.agents, "sources": result.sources}
    frames |= {"tasks": result.responses}
    found: dict[str, object] = {name: one.to_frame().to_dicts() for name, one in frames.items() if one is not None}
    if result.timeline is not None:
        found["history"] = result.history().to_dicts()
    return found


def _write_run(out: Path, result: Consensus | ConsensusSet, level: float, data: Any) -> None:
    write_trec_run(result.to_rankings(), out, tag=result.method)


def _write_json(out: Path, result: Consensus | ConsensusSet, level: float, data: Any) -> None:
    with writing(out) as file:
        file.write(json_text(result_json(result, level, data)).encode() + b"\n")


def _write_table(out: Path, result: Consensus | ConsensusSet, level: float, data: Any) -> None:
    write_table(out, result.to_frame(level).to_dict())


WRITERS: dict[str, Callable[[Path, Consensus | ConsensusSet, float, Any], None]] = {
    ".run": _write_run,
    ".csv": _write_table,
    ".tsv": _write_table,
    ".json": _write_json,
    ".jsonl": _write_table,
    ".parquet": _write_table,
}
"""Suffix -> ``write(path, result, level, data)``; ``data`` are kept in JSON only."""
