"""Scores over time, for votes with times."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.special

from placet.data import Comparisons
from placet.data.times import Times, TimeSteps
from placet.studio.question import Question
from placet.studio.tasks.board import answer, asked_data, first_part

MOST_LINES = 8
MODEL = "bradley-terry"
STEPS = ("1y", "3m", "1m", "1w", "1d", "1h")
FEWEST_STEPS = 8


def history(progress: Any, *, path: str, question: Mapping[str, Any], chosen: Sequence[str]) -> dict[str, Any]:
    """Scores over time of the chosen and the best items, from the board itself or else from the same model with drift.

    ``times`` in the result are the time steps of the data, at which a board can be shown.
    """
    given = Question.from_json(question)
    part = first_part(asked_data(path, given).data)
    if not isinstance(part, Comparisons) or part.time is None:
        raise ValueError("these data do not say when they were given; name the column of their time")
    asked = with_drift(given, step_for(part.time))
    found = answer(path, asked, progress)
    c = found.board_for(asked)
    named = {str(name): name for name in c.items}
    best = [str(c.items[k]) for k in c.order[:MOST_LINES]]
    shown = [name for name in dict.fromkeys([*chosen, *best]) if name in named][: max(MOST_LINES, len(chosen))]
    frame = c.history(*(named[name] for name in shown))
    z = float(-scipy.special.ndtri((1 - asked.level) / 2))
    score, stderr = frame["score"].to_numpy(), frame["stderr"].to_numpy()
    return {
        "items": shown,
        "stamp": found.stamp,
        "total": len(c.items),
        "dates": frame["time"].dtype.is_temporal(),
        "columns": {
            "item": [str(name) for name in frame["item"].to_list()],
            "time": frame["time"].to_list(),
            "score": score,
            "low": score - z * stderr,
            "high": score + z * stderr,
        },
        "step": asked.params.get("step"),
        "times": c.history()["time"].unique().sort().to_list(),
        "notes": [note for note in c.notes if "scores" in note],
        "command": asked.command(path) + (" --json" if asked.command(path) else ""),
        "python": asked.python(path).rpartition("\n")[0] + "\nresult.history()",
    }


def step_for(times: Times) -> str | float:
    """The longest calendar step that divides the times into several steps; a round number if times are numbers."""
    first, last = times.min(), times.max()
    if times.dtype.kind == "M":
        ends = {step: TimeSteps(step, times).number(np.array([first, last])) for step in STEPS}
        long = [step for step, (low, high) in ends.items() if high - low + 1 >= FEWEST_STEPS]
        return long[0] if long else STEPS[-1] if last > first else STEPS[0]
    if last <= first:
        return 1.0
    rough = float(last - first) / FEWEST_STEPS
    size = 10.0 ** math.floor(math.log10(rough))
    return max(size * k for k in (1, 2, 5) if size * k <= rough * (1 + 1e-9))


def with_drift(asked: Question, step: str | float) -> Question:
    """The question itself if its model has drift, else the same question with drift added."""
    if asked.params.get("drift") is not None:
        return replace(asked, at="")
    own = asked.params if asked.method in ("", MODEL) else {}
    params = {name: value for name, value in own.items() if name != "agents"} | {"drift": "learn"}
    params.setdefault("step", step)
    return replace(asked, method=MODEL, params=params, bootstrap=0, at="")
