"""Polls: their questions, which votes count, and which pair or set to ask next."""

import json
import random
import secrets
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from placet.aggregate.asking.balanced_sets import SetCounts, next_set
from placet.data.errors import one_of
from placet.studio.jobs import FINAL, Busy, Job, Jobs
from placet.studio.store import Store

KINDS = {"pairs": "two at a time", "sets": "best and worst of a few", "ballots": "whole ballots"}
"""What each kind of poll asks."""

AGAIN = ("replace", "refuse", "allow")
RESULTS = ("after", "voters", "owner")
"""Who sees the results: those who have voted, everybody who has the link, or the owner alone."""

GOALS = ("none", "order", "top", "best")
ANSWERS = ("a", "b", "tie", "skip")
MOST_ITEMS = 1000
LEAST_SHOWN, MOST_SHOWN = 3, 7
EACH_SHOWN = 3
"""How often a voter sees each item of a poll of sets, unless its owner sets the number of questions."""

MOST_TEXT = 500
AHEAD = 40
REST, MOST_REST = 3.0, 2.0
"""After a computation a poll pauses for this multiple of its duration, but at most this many seconds."""


@dataclass(frozen=True)
class Poll:
    """A poll: ``items`` are {"text", "image"}; ``settings`` are the answers allowed, how often, and when to stop."""

    id: str
    title: str
    kind: str
    items: list[dict[str, str]]
    settings: dict[str, Any]
    open: bool
    created: float

    @property
    def names(self) -> list[str]:
        return [item["text"] for item in self.items]


class Refused(ValueError):
    """A vote that the poll does not accept."""


def parse_poll(values: Mapping[str, Any], images: Path) -> dict[str, Any]:
    """The title, kind, items and settings of a new poll; missing or invalid values raise a ``ValueError``."""
    title = str(values.get("title", "")).strip()[:MOST_TEXT]
    if not title:
        raise ValueError("a poll needs a question")
    items = _items(values.get("items"), images)
    goal, n = str(values.get("goal", "none")), len(items)
    top = _whole(values.get("k", 1), "k", 1, n)
    level = float(values.get("level", 0.95))
    if not 0.5 <= level < 1:
        raise ValueError(f"level must be from 0.5 to below 1, not {level}")
    settings = {
        "ties": bool(values.get("ties", True)),
        "skip": bool(values.get("skip", True)),
        "again": one_of(str(values.get("again", "replace")), AGAIN, "again"),
        "results": one_of(str(values.get("results", RESULTS[0])), RESULTS, "results"),
        "goal": one_of(goal, GOALS, "goal"),
        "k": top,
        "level": level,
        "most": _whole(values.get("most", 0), "most", 0, 100_000),
        "stop": bool(values.get("stop", False)) and goal != "none",
    }
    kind = one_of(str(values.get("kind", "pairs")), KINDS, "kind")
    if kind == "sets":
        if n < LEAST_SHOWN:
            raise ValueError(f"a poll of the best and worst of a few needs {LEAST_SHOWN} items at least, not {n}")
        shown = _whole(values.get("shown", min(4, n)), "shown", LEAST_SHOWN, min(MOST_SHOWN, n))
        settings |= {"shown": shown, "most": settings["most"] or -(-EACH_SHOWN * n // shown)}
    return {"title": title, "kind": kind, "items": items, "settings": settings}


def _items(given: Any, images: Path) -> list[dict[str, str]]:
    if not isinstance(given, list) or not 2 <= len(given) <= MOST_ITEMS:
        raise ValueError(f"a poll needs from 2 to {MOST_ITEMS} items")
    items: list[dict[str, str]] = []
    for one in given:
        text = str(one.get("text", "") if isinstance(one, dict) else one).strip()[:MOST_TEXT]
        image = str(one.get("image", "")) if isinstance(one, dict) else ""
        if not text:
            raise ValueError(f"item {len(items) + 1} has no name; images need one, too, for those who cannot see them")
        if image and not (image.replace(".", "").isalnum() and (images / image).is_file()):
            raise ValueError(f"the image of {text!r} is not in this workspace; bring it first")
        items.append({"text": text, "image": image})
    names = [item["text"] for item in items]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{twice!r} is there twice; items have different names")
    return items


def _whole(value: Any, what: str, low: int, high: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ValueError(f"{what} must be a whole number in {low}..{high}, not {value!r}")
    return value


# In the database


def add_poll(store: Store, values: Mapping[str, Any]) -> str:
    """Store a new poll; its id cannot be guessed, and is part of its URL."""
    key = secrets.token_hex(8)
    row = (key, values["title"], values["kind"], json.dumps(values["items"]), json.dumps(values["settings"]))
    store.execute("INSERT INTO poll VALUES (?, ?, ?, ?, ?, 1, ?)", *row, time.time()).result()
    return key


def remove_image(path: Path) -> Any:
    """The change that deletes an image; one that a poll shows raises `Refused`."""

    def change(connection: sqlite3.Connection) -> None:
        for (items,) in connection.execute("SELECT items FROM poll"):
            if any(item["image"] == path.name for item in json.loads(items)):
                raise Refused("a poll shows this image; it stays as long as the poll does")
        path.unlink(missing_ok=True)

    return change


def get_poll(store: Store, key: str) -> Poll:
    """The poll with an id; a ``KeyError`` if there is none."""
    row = store.row("SELECT * FROM poll WHERE id = ?", key)
    if row is None:
        raise KeyError(key)
    return poll_of_row(row)


def poll_of_row(row: sqlite3.Row) -> Poll:
    """The poll in a row of the database."""
    values = dict(row) | {"items": json.loads(row["items"]), "settings": json.loads(row["settings"])}
    return Poll(**values | {"open": bool(row["open"])})


def answer_of(poll: Poll, values: Mapping[str, Any]) -> tuple[str, str]:
    """The question and the answer in stored form; an answer that the poll does not offer raises `Refused`."""
    n = len(poll.items)
    if poll.kind == "ballots":
        tiers: Any = values.get("tiers")
        flat = [k for tier in tiers for k in tier] if _is_tiers(tiers) else None
        if flat is None or any(not isinstance(k, int) or isinstance(k, bool) or not 0 <= k < n for k in flat):
            raise Refused("a ballot is a list of tiers, each a list of items' numbers")
        if len(set(flat)) < len(flat):
            raise Refused("an item is on the ballot twice")
        if not flat:
            raise Refused("the ballot is empty; rank one item at least")
        if not poll.settings["ties"] and any(len(tier) > 1 for tier in tiers):
            raise Refused("this poll takes no ties")
        return "ballot", json.dumps([sorted(tier) for tier in tiers if tier])
    if poll.kind == "sets":
        return _set_answer(poll, values)
    first, second, answer = (values.get(name) for name in ("first", "second", "answer"))
    if any(not isinstance(k, int) or isinstance(k, bool) or not 0 <= k < n for k in (first, second)) or first == second:
        raise Refused("a vote names two different items by their numbers")
    if (
        answer not in ANSWERS
        or (answer == "tie" and not poll.settings["ties"])
        or (answer == "skip" and not poll.settings["skip"])
    ):
        raise Refused(f"this poll does not take the answer {answer!r}")
    assert isinstance(first, int) and isinstance(second, int)  # noqa: PT018
    return pair_key(first, second), json.dumps({"first": first, "second": second, "answer": answer})


def _set_answer(poll: Poll, values: Mapping[str, Any]) -> tuple[str, str]:
    """The set and what was chosen of it; nothing if the voter cannot say."""
    shown, best, worst = (values.get(name) for name in ("shown", "best", "worst"))
    n, size = len(poll.items), poll.settings["shown"]
    whole = isinstance(shown, list) and all(type(k) is int and 0 <= k < n for k in shown)
    if not whole or not isinstance(shown, list) or len(set(shown)) != size or len(shown) != size:
        raise Refused(f"an answer names the {size} different items that were shown, by their numbers")
    if best is None and worst is None and poll.settings["skip"]:
        return set_key(shown), json.dumps({"shown": shown, "best": None, "worst": None})
    if type(best) is not int or type(worst) is not int or best not in shown or worst not in shown or best == worst:
        raise Refused("an answer names the best and the worst of the items shown, which differ")
    return set_key(shown), json.dumps({"shown": shown, "best": best, "worst": worst})


def _is_tiers(tiers: Any) -> bool:
    return isinstance(tiers, list) and all(isinstance(tier, list) for tier in tiers)


def pair_key(i: int, j: int) -> str:
    return f"{min(i, j)}-{max(i, j)}"


def set_key(shown: Sequence[int]) -> str:
    return "set " + "-".join(map(str, sorted(shown)))


def set_of_key(key: str) -> tuple[int, ...]:
    return tuple(map(int, key.removeprefix("set ").split("-")))


Closing = Callable[[sqlite3.Connection, Poll, str], bool]
"""``closing(connection, poll, asked)``: close a poll whose goal an answer has just reached; whether it did."""


def cast_vote(poll: Poll, voter: str, nonce: str, asked: str, answer: str, closing: Closing) -> Any:
    """The change that stores a vote; its result is what became of it, and whether the poll is closed now.

    A repeated submission counts once; the poll's settings decide what happens to a second answer.
    """

    def change(connection: sqlite3.Connection) -> tuple[str, bool]:
        known = connection.execute("SELECT 1 FROM vote WHERE poll = ? AND nonce = ?", (poll.id, nonce)).fetchone()
        if known is not None:
            return "known", False
        is_open = connection.execute("SELECT open FROM poll WHERE id = ?", (poll.id,)).fetchone()
        if is_open is None or not is_open[0]:
            raise Refused("this poll is closed")
        mine = "poll = ? AND voter = ? AND asked = ? AND counts = 1"
        before = connection.execute(f"SELECT number FROM vote WHERE {mine}", (poll.id, voter, asked)).fetchone()
        if before is not None and poll.settings["again"] == "refuse":
            raise Refused("you have answered this already; this poll counts one answer of each voter")
        if before is not None and poll.settings["again"] == "replace":
            connection.execute(f"UPDATE vote SET counts = 0 WHERE {mine}", (poll.id, voter, asked))
        row = (poll.id, voter, nonce, asked, answer, time.time())
        connection.execute(
            "INSERT INTO vote (poll, voter, nonce, asked, answer, created) VALUES (?, ?, ?, ?, ?, ?)", row
        )
        state = "replaced" if before is not None and poll.settings["again"] == "replace" else "counted"
        return state, closing(connection, poll, asked)

    return change


def last_vote(store: Store, key: str) -> int:
    """The number of the last vote of a poll; 0 before the first."""
    row = store.row("SELECT max(number) AS last FROM vote WHERE poll = ?", key)
    return (row["last"] if row is not None else 0) or 0


def turnout(store: Store, key: str) -> dict[str, int]:
    """The numbers of answers that count and of voters who gave them."""
    row = store.row(
        "SELECT count(*) AS votes, count(DISTINCT voter) AS voters FROM vote WHERE poll = ? AND counts = 1", key
    )
    return {"votes": row["votes"], "voters": row["voters"]} if row is not None else {"votes": 0, "voters": 0}


@dataclass(frozen=True)
class Latest:
    """The last result of a poll, which includes votes up to number ``of``.

    ``text`` is what voters see, as JSON; ``pairs`` are the pairs to ask next by their keys, the most useful first.
    """

    of: int
    text: str
    pairs: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    settled: bool = False

    @classmethod
    def from_job(cls, of: int, job: Job) -> "Latest":
        if job.state != "done":
            return cls(of, json.dumps({"error": job.error, "of": of}))
        result = json.loads(job.result)
        pairs = {pair_key(i, j): (i, j) for i, j in result.pop("pairs")}
        return cls(of, json.dumps(result | {"of": of}), pairs, result["settled"])


class Desk:
    """Cache of polls, so that the database is rarely queried: the polls themselves, their turnout, the last results.

    All writes go through one server, so the cache is consistent with the database.  Each poll runs one computation at a
    time, followed by a pause: a crowd that votes continuously costs a quarter of a core, whatever its size.
    """

    def __init__(self, store: Store, jobs: Jobs) -> None:
        self.store, self.jobs = store, jobs
        self._polls: dict[str, Poll] = {}
        self._last: dict[str, Latest] = {}
        self._running: dict[str, tuple[int, Job]] = {}
        self._rest_until: dict[str, float] = {}
        self._handed: dict[str, Counter[str]] = {}
        self._counted: dict[str, tuple[float, dict[str, int]]] = {}
        self._shown: dict[str, SetCounts] = {}
        self._pending: dict[str, dict[str, tuple[int, ...]]] = {}

    def poll(self, key: str) -> Poll:
        """The poll with an id; a ``KeyError`` if there is none."""
        if key not in self._polls:
            self._polls[key] = get_poll(self.store, key)
            self.jobs.warm_up("polls")
        return self._polls[key]

    def forget(self, key: str) -> None:
        """Drop a poll from the cache because it has changed."""
        self._polls.pop(key, None)

    def latest(self, poll: Poll) -> Latest | None:
        """The last result; if there are new votes, the next computation is started in the background."""
        running = self._running.get(poll.id)
        if running is not None and running[1].state in FINAL:
            count, job = running
            self._last[poll.id] = Latest.from_job(count, job)
            if self._last[poll.id].settled and poll.open and poll.settings.get("stop"):
                closing = self.store.execute("UPDATE poll SET open = 0 WHERE id = ?", poll.id)
                closing.add_done_callback(lambda _: self.forget(poll.id))
            self._rest_until[poll.id] = time.monotonic() + min(MOST_REST, REST * job.seconds)
            del self._running[poll.id]
            self._handed.pop(poll.id, None)
        last = self._last.get(poll.id)
        if poll.id in self._running or time.monotonic() < self._rest_until.get(poll.id, 0.0):
            return last
        count = last_vote(self.store, poll.id)
        if count > (0 if last is None else last.of):
            try:
                values = {"database": str(self.store.database), "poll": poll.id, "last": count}
                self._running[poll.id] = count, self.jobs.start("poll", values, lane="polls")
            except Busy:
                return last  # the next request tries again
        return last

    def results(self, poll: Poll, have: int = -1) -> str:
        """Turnout and last result as JSON; the result is omitted if the reader already has it."""
        latest = self.latest(poll)
        of = 0 if latest is None else latest.of
        about = {"open": poll.open, "level": poll.settings["level"], "goal": poll.settings["goal"], "of": of}
        about |= {"last": last_vote(self.store, poll.id)} | self.turnout(poll)
        shown = "null" if latest is None or have == of else latest.text
        return f'{json.dumps(about)[:-1]}, "result": {shown}}}'

    def turnout(self, poll: Poll) -> dict[str, int]:
        """The numbers of answers that count and of voters who gave them, counted at most once a second."""
        at, known = self._counted.get(poll.id, (-1.0, {}))
        if time.monotonic() - at > 1 or not poll.open:
            known = turnout(self.store, poll.id)
            self._counted[poll.id] = time.monotonic(), known
        return known

    def next_question(self, poll: Poll, voter: str) -> dict[str, Any]:
        """The pair or set to ask a voter next; none if the voter or the poll is done.

        Pairs are handed out in the order of their use, the most useful first, each once before any a second time; sets
        so that items are shown equally often, to each voter and in all.
        """
        if not poll.open:
            return {"done": "This poll is closed."}
        rows = self.store.rows("SELECT asked FROM vote WHERE poll = ? AND voter = ? AND counts = 1", poll.id, voter)
        met = {row["asked"] for row in rows}
        latest = self.latest(poll)
        if latest is not None and latest.settled:
            return {"done": "The votes are enough: no further answer is needed."}
        most, n = poll.settings["most"], len(poll.items)
        if poll.kind == "sets":
            shown = None if most and len(met) >= most else self._next_set(poll, voter, met)
            done = {"done": "That was all. Thank you!"}
            return done if shown is None else {"shown": list(shown), "answered": len(met), "most": most}
        if len(met) >= n * (n - 1) // 2 or (most and len(met) >= most):
            return {"done": "That was all. Thank you!"}
        useful = [key for key in latest.pairs if key not in met] if latest is not None else []
        if latest is not None and useful:
            handed = self._handed.setdefault(poll.id, Counter())
            key = min(useful, key=lambda one: handed[one])  # the first of those handed out least often
            handed[key] += 1
            pair = latest.pairs[key]
        else:
            pair = fresh_pair(n, met)
        first, second = pair if random.random() < 0.5 else pair[::-1]
        return {"first": first, "second": second, "answered": len(met)}

    def _next_set(self, poll: Poll, voter: str, met: set[str]) -> tuple[int, ...] | None:
        """The set to show a voter: the last one as long as it is not answered; None if there is no other."""
        pending = self._pending.setdefault(poll.id, {})
        if voter in pending and set_key(pending[voter]) not in met:
            return pending[voter]
        if poll.id not in self._shown:
            rows = self.store.rows("SELECT asked FROM vote WHERE poll = ? AND counts = 1", poll.id)
            self._shown[poll.id] = SetCounts(set_of_key(row["asked"]) for row in rows)
        seen = {set_of_key(key) for key in met}
        n, size, everyone = len(poll.items), poll.settings["shown"], self._shown[poll.id]
        shown = next_set(n, size, SetCounts(seen), everyone, random.Random(secrets.token_bytes(8)), seen)
        if shown is not None:
            everyone.add(shown)
            pending[voter] = shown
        return shown


def has_voted(store: Store, key: str, voter: str) -> bool:
    """Whether a voter has given an answer that counts."""
    return store.row("SELECT 1 FROM vote WHERE poll = ? AND voter = ? AND counts = 1 LIMIT 1", key, voter) is not None


def fresh_pair(n: int, met: set[str]) -> tuple[int, int]:
    """A random pair that the voter has not seen."""
    for _ in range(50):
        i, j = random.sample(range(n), 2)
        if pair_key(i, j) not in met:
            return i, j
    left = [(i, j) for i in range(n) for j in range(i + 1, n) if pair_key(i, j) not in met]
    return random.choice(left)


def shuffled_for(voter: str, n: int) -> Sequence[int]:
    """An order of the items specific to the voter, so that no item comes first for everyone."""
    order = list(range(n))
    random.Random(voter).shuffle(order)
    return order
