"""Battles: two items and who won, from CSV, JSON lines, Parquet or any data frame."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from placet.data import Comparisons, DataError
from placet.io.files import Source
from placet.io.tables import Sample, Table, read_table, write_table
from placet.io.text import OnError

Outcome = Literal["a", "b", "tie"]

# What the winner's column may say, in any case; else it may hold the name of the item that won.
WORDS: dict[Outcome, tuple[str, ...]] = {
    "a": ("a", "model_a", "model a", "a wins", "left", "x", "model_x", "first", "1", "1.0", "win", "w", "1-0"),
    "b": ("b", "model_b", "model b", "b wins", "right", "y", "model_y", "second", "0", "0.0", "loss", "l", "0-1"),
    "tie": (
        *("tie", "draw", "both", "bothbad", "both bad", "both_bad", "both good", "tie (bothbad)", "tie (both bad)"),
        *("tie (both_bad)", "equal", "same", "neither", "=", "0.5", "1/2", "1/2-1/2", "d", "t"),
    ),
}
# Pairs of columns that are the two sides of a battle, and pairs of scores where there is no winner.
SIDES = (
    ("model_a", "model_b"),
    ("left", "right"),
    ("player_a", "player_b"),
    ("item_a", "item_b"),
    ("a", "b"),
    ("white", "black"),
    ("home_team", "away_team"),
)
SCORES = (("score_a", "score_b"), ("home_score", "away_score"))
_MEANING: dict[str, Outcome] = {word: outcome for outcome, words in WORDS.items() for word in words}


def looks_like_battles(sample: Sample) -> dict[str, Any] | None:
    """The columns of a table with a pair of ``SIDES`` and ``winner`` or a pair of ``SCORES``."""
    if sample.table is None:
        return None
    columns = set(sample.table.names)
    sides = next((pair for pair in SIDES if set(pair) <= columns), None)
    scores = next((pair for pair in SCORES if set(pair) <= columns), None)
    if sides is None:
        return None
    if "winner" not in columns and scores is None:
        raise DataError(
            f"{sample.name}: the columns {sample.table.names} are not those of battles; use read_battles and name them"
        )
    extra: dict[str, Any] = {name: name for name in ("weight", "agent") if name in columns}
    return {"a": sides[0], "b": sides[1], "scores": None if "winner" in columns else scores, **extra}


def read_battles(
    source: Source | Any,
    *,
    a: str = "model_a",
    b: str = "model_b",
    winner: str = "winner",
    scores: tuple[str, str] | None = None,
    agent: str | None = None,
    weight: str | None = None,
    outcomes: Mapping[str, Outcome] | None = None,
    items: Sequence[Hashable] | None = None,
    ordered: bool = False,
    format: str | None = None,
    on_error: OnError = "raise",
) -> Comparisons:
    """Comparisons from a table with a row per battle: a path, an open file, or a frame.

    ``a``, ``b`` and ``winner`` name columns.  The winner's column holds a word of ``WORDS`` (in any case), a word that
    ``outcomes`` explains as "a", "b" or "tie", or else the name of the item that won.  With ``scores=(of_a, of_b)``
    two columns of numbers say who won: the higher, and equal numbers tie.  ``agent`` and ``weight`` name optional
    columns.  ``ordered`` keeps who was ``a``.  Names are text where the file is text.
    """
    table = read_table(source, on_error, format)
    way_out = "name the columns with a=, b=, winner= (or scores=)"
    first, second = table.labels(a, way_out), table.labels(b, way_out)
    for row, (x, y) in enumerate(zip(first, second)):
        if x is not None and x == y:
            table.reject(row, "self", f"{x!r} meets itself", "a battle has two different items")
    if scores is not None:
        won = _by_scores(table, scores)
    else:
        won = _by_words(table, table.column(winner, way_out), first, second, winner, outcomes or {})
    agents = None if agent is None else table.labels(agent, "name the column with agent=")
    weights = None if weight is None else table.numbers(weight, "name the column with weight=", positive=True)
    rows = table.good_rows()
    if not rows:
        raise DataError(f"{table.name}: no battles; a row has two items and who won")
    sides = [[values[row] for row in rows] for values in (first, second, won)]
    extra: dict[str, Any] = {
        name: None if values is None else [values[row] for row in rows]
        for name, values in (("weight", weights), ("agent", agents))
    }
    return Comparisons.from_battles(*sides, **extra, items=items, ordered=ordered)


def _by_words(
    table: Table, said: list[Any], first: list[Any], second: list[Any], winner: str, outcomes: Mapping[str, Outcome]
) -> list[Outcome]:
    for word, meaning in outcomes.items():
        if meaning not in WORDS:
            raise ValueError(f"outcomes explains {word!r} as {meaning!r}; choose from {list(WORDS)}")
    known = _MEANING | {str(word).strip().lower(): outcome for word, outcome in outcomes.items()}
    won: list[Outcome] = []
    for row, value in enumerate(said):
        outcome: Outcome | None = None
        if value is not None and not isinstance(value, bool):
            outcome = known.get(str(value).lower())
        if outcome is None and value is not None and value in (first[row], second[row]):
            outcome = "a" if value == first[row] else "b"
        if outcome is None:
            text = "is missing" if value is None else f"{str(value)[:60]!r} is not a, b or tie"
            table.reject(
                row, "winner", f"{winner} {text}", 'say what it means with outcomes={"word": "a" | "b" | "tie"}'
            )
        won.append(outcome or "tie")
    return won


def _by_scores(table: Table, scores: tuple[str, str]) -> list[Outcome]:
    x, y = (np.array(table.numbers(name, "name the columns with scores=")) for name in scores)
    names: list[Outcome] = ["b", "tie", "a"]
    return [names[int(sign) + 1] for sign in np.sign(x - y)]


def write_battles(comparisons: Comparisons, target: Source, *, format: str | None = None) -> None:
    """Comparisons as rows ``model_a, model_b, winner, weight`` (and ``agent``), one for each pair and outcome.

    Read back with ``items=comparisons.items``, ``weight="weight"`` (and ``agent``, ``ordered``) they are equal, where
    names are text (CSV, JSON lines) or all of one type (Parquet); pairs without any outcome are not written.
    """
    c = comparisons
    wins = np.stack([c.wins_i, c.wins_j, c.ties], axis=1)
    row, outcome = np.nonzero(wins)
    words = np.array(["model_a", "model_b", "tie"])
    columns: dict[str, list[Any]] = {
        "model_a": [c.items[k] for k in c.i[row].tolist()],
        "model_b": [c.items[k] for k in c.j[row].tolist()],
        "winner": words[outcome].tolist(),
        "weight": wins[row, outcome].tolist(),
    }
    if c.agent is not None and c.agents is not None:
        columns["agent"] = [c.agents[k] for k in c.agent[row].tolist()]
    write_table(target, columns, format)
