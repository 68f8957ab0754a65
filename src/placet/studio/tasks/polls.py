"""Results of a poll: the same consensus as elsewhere, and the pairs to ask next."""

import json
import sqlite3
from contextlib import closing
from typing import Any

from placet.aggregate import Consensus, consensus
from placet.data import Comparisons, Rankings
from placet.studio.polls import AHEAD, Poll, poll_of_row

MOST_JOINT = 200
"""Maximum number of items for which the pairs to ask next are optimized; beyond, they are drawn at random."""


def poll(progress: Any, *, database: str, poll: str, last: int) -> dict[str, Any]:
    """The ranking by the votes up to number ``last``, whether they are enough, and the pairs to ask next."""
    asked, votes = read_votes(database, poll, last)
    data = votes_of(asked, votes)
    if data is None:
        return {"columns": None, "pairs": [], "settled": False, "missing": None, "notes": []}
    result = consensus(data)
    assert isinstance(result, Consensus)
    settings = asked.settings
    frame = result.to_frame(settings["level"])
    low, high = (ends[result.order].tolist() for ends in result.interval(settings["level"]))
    columns = {name: frame[name].to_list() for name in frame.columns} | {"low": low, "high": high}
    about: dict[str, Any] = {"columns": columns, "notes": list(result.notes), "method": result.method}
    return about | _next(asked, result)


def _next(asked: Poll, result: Consensus) -> dict[str, Any]:
    """Whether the goal is reached, about how many votes are missing, and the pairs to ask next."""
    goal, number = asked.settings["goal"], {name: k for k, name in enumerate(asked.names)}
    found: dict[str, Any] = {"pairs": [], "settled": False, "missing": None}
    if goal != "none":
        verdict = result.enough(goal, k=asked.settings["k"], level=asked.settings["level"])
        found |= {"settled": verdict.reached, "missing": verdict.missing, "known": list(verdict.settled)}
        pairs: list[Any] = [pair[:2] for pair in verdict.open[:AHEAD]]
    elif asked.kind == "pairs" and len(asked.items) <= MOST_JOINT:
        pairs = result.next_pairs(min(AHEAD, len(number) * (len(number) - 1) // 2))
    else:
        pairs = []
    if asked.kind == "pairs":
        found["pairs"] = [(number[str(a)], number[str(b)]) for a, b in pairs]
    return found


def read_votes(database: str, key: str, last: int) -> tuple[Poll, list[sqlite3.Row]]:
    """The poll and its votes up to number ``last``, read through a read-only connection."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=30)) as connection:
        connection.row_factory = sqlite3.Row
        row = connection.execute("SELECT * FROM poll WHERE id = ?", (key,)).fetchone()
        sql = "SELECT * FROM vote WHERE poll = ? AND number <= ? AND counts = 1 ORDER BY number"
        votes = connection.execute(sql, (key, last)).fetchall()
    return poll_of_row(row), votes


def votes_of(asked: Poll, votes: list[Any]) -> Rankings | Comparisons | None:
    """The votes as data, with voters as agents; None if there are no votes."""
    names = asked.names
    answers = [json.loads(vote["answer"]) for vote in votes]
    if asked.kind in ("ballots", "sets"):
        ballots = [(tiers, vote["voter"]) for one, vote in zip(answers, votes) if (tiers := _tiers(one))]
        if not ballots:
            return None
        orders = [
            [tuple(names[k] for k in tier) if len(tier) > 1 else names[tier[0]] for tier in one] for one, _ in ballots
        ]
        return Rankings.from_orders(orders, items=names, agent=[voter for _, voter in ballots])
    told = [(one, vote["voter"]) for one, vote in zip(answers, votes) if one["answer"] != "skip"]
    if not told:
        return None
    return Comparisons.from_battles(
        [names[one["first"]] for one, _ in told],
        [names[one["second"]] for one, _ in told],
        [one["answer"] for one, _ in told],
        items=names,
    )


def _tiers(answer: Any) -> list[list[int]]:
    """The tiers of a ballot; of a set, best > the others shown > worst, and none if the voter could not say."""
    if isinstance(answer, list):
        return answer
    best, worst = answer["best"], answer["worst"]
    return [] if best is None else [[best], [k for k in answer["shown"] if k not in (best, worst)], [worst]]
