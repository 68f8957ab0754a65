"""Polls that close by themselves: the goal is looked at with every vote, in the transaction that stores it."""

import json
import sqlite3
from collections import Counter

import numpy as np

from placet.aggregate.asking.goal_evidence import GoalEvidence
from placet.aggregate.asking.head_to_head import HeadToHead
from placet.aggregate.asking.pair_evidence import log_evidence
from placet.aggregate.goal_verdict import Goal
from placet.studio.polls import Poll
from placet.studio.tasks.polls import votes_of

MOST_WATCHED = 200
"""Maximum number of items for which every vote is looked at; beyond, a poll closes with its next results."""


def closes_now(connection: sqlite3.Connection, poll: Poll, asked: str) -> bool:
    """Close a poll that asks for it if the answer to ``asked`` has just reached its goal; whether it did.

    The vote and the closing are one transaction: a server that is killed has both or neither, and no vote is taken
    beyond the one that reached the goal.
    """
    if not poll.settings.get("stop") or len(poll.items) > MOST_WATCHED:
        return False
    goal = Goal(poll.settings["goal"], poll.settings["k"], level=poll.settings["level"])
    if poll.kind == "pairs" and not _is_near(connection, poll, goal, asked):
        return False
    if not GoalEvidence(_count_votes(connection, poll), np.arange(len(poll.items)), goal).is_reached():
        return False
    connection.execute("UPDATE poll SET open = 0 WHERE id = ?", (poll.id,))
    return True


def _is_near(connection: sqlite3.Connection, poll: Poll, goal: Goal, asked: str) -> bool:
    """Whether votes on this pair may have made a statement, alone or with those on other pairs."""
    sql = "SELECT answer, count(*) FROM vote WHERE poll = ? AND asked = ? AND counts = 1 GROUP BY answer"
    won = _wins(connection.execute(sql, (poll.id, asked)).fetchall())
    i, j = map(int, asked.split("-"))
    nothing = HeadToHead(tuple(poll.names), *(np.zeros(0, np.int64),) * 2, *(np.zeros(0),) * 2)
    bound = GoalEvidence(nothing, np.arange(len(poll.items)), goal).bound
    most = log_evidence([won[i, j], won[j, i]], [won[j, i], won[i, j]]).max()
    return bool(most >= bound - np.log(len(poll.items)))


def _count_votes(connection: sqlite3.Connection, poll: Poll) -> HeadToHead:
    """The votes that count, by pairs."""
    if poll.kind != "pairs":
        cursor = connection.execute("SELECT * FROM vote WHERE poll = ? AND counts = 1 ORDER BY number", (poll.id,))
        names = [column[0] for column in cursor.description]
        return HeadToHead.from_data(votes_of(poll, [dict(zip(names, row)) for row in cursor])).among(poll.names)
    sql = "SELECT answer, count(*) FROM vote WHERE poll = ? AND counts = 1 GROUP BY answer"
    won = _wins(connection.execute(sql, (poll.id,)).fetchall())
    pairs = sorted({(min(pair), max(pair)) for pair in won})
    i, j = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    wins, losses = ([float(won[pair]) for pair in some] for some in (pairs, [pair[::-1] for pair in pairs]))
    return HeadToHead(tuple(poll.names), i, j, np.array(wins), np.array(losses))


def _wins(rows: list[tuple[str, int]]) -> Counter[tuple[int, int]]:
    """How often the first of two items won against the second."""
    won: Counter[tuple[int, int]] = Counter()
    for answer, count in rows:
        one = json.loads(answer)
        if one["answer"] in ("a", "b"):
            pair = (one["first"], one["second"])
            won[pair if one["answer"] == "a" else pair[::-1]] += count
    return won
