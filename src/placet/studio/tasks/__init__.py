"""Tasks of the studio's worker processes: each calls the library as the command line does, and answers with bytes."""

import importlib
import json
from typing import Any

from placet.output.json_values import plain

TASKS = {
    "warm up": "preview:warm_up",
    "read ahead": "preview:read_ahead",
    "catalog": "catalog:catalog",
    "understand": "preview:understand",
    "board": "board:board",
    "pair": "board:pair",
    "wins": "board:wins",
    "ranks": "board:ranks",
    "history": "scores_over_time:history",
    "fragility": "decisive_votes:fragility",
    "certificate": "decisive_votes:certificate",
    "export": "board:export",
    "joint": "joint_boards:joint",
    "joint page": "joint_boards:joint_page",
    "methods": "methods:methods",
    "audit": "methods:audit",
    "poll": "polls:poll",
    "rankers": "rankers:rankers",
    "train": "rankers:train",
    "compare": "rankers:compare_runs",
    "query": "rankers:query",
    "explain": "rankers:explain",
    "track": "tracks:track",
}
"""Name -> module in this folder and function: ``function(progress, **values)`` returns JSON data or bytes."""


def run_task(name: str, values: dict[str, Any], progress: Any) -> bytes:
    """Run a task; results that are not bytes become JSON."""
    module, function = TASKS[name].split(":")
    answer = getattr(importlib.import_module(f"placet.studio.tasks.{module}"), function)(progress, **values)
    if isinstance(answer, bytes):
        return answer
    return json.dumps(plain(answer), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
