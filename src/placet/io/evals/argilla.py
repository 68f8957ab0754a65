"""Exports of Argilla (JSON): the answers to a ranking question, with their ranks."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from placet.data import DataError, Rankings
from placet.data.arrays import set_columns
from placet.data.parameters import with_checked_options
from placet.io.ballots import read_ballots
from placet.io.evals.json_logs import Who, field, has_keys, objects, refuse_empty
from placet.io.files import Source, name_of
from placet.io.tables.tables import FileHead
from placet.io.text import TEXT, OnError, Problems, plural, quote

Beside = list[tuple[int, int]]
"""Length and position of each value of an answer."""


def looks_like_argilla(head: FileHead) -> str | None:
    """Match records with fields, suggestions and responses."""
    return TEXT if has_keys(head, "fields", "suggestions", "responses", "user_id", "metadata") else None


@with_checked_options
def read_argilla(
    source: Source,
    *,
    question: str | None = None,
    names: str | None = None,
    control: str | Sequence[str] | None = None,
    who: Who = "people",
    on_error: OnError = "raise",
) -> Rankings:
    """Read the answers to a ranking question as ballots, best first, equal ranks tied; the user is the agent.

    ``question`` is its name, if there are several.  Its values are often places, such as ``reply-1``; ``names`` is then
    the key of a record's metadata (or fields) that says what stood there, with ``{}`` for the value: ``"{}-model"``.
    Answers need ranks: ``to_json`` of Argilla 2 writes the values of an answer without them, in an order that is not
    the answer, and such a file is a ``DataError``.  ``control`` takes along the "length" of the field of a value
    (characters), or its "position" (2 of ``reply-2``), or both ("length,position").  ``who="judges"`` reads the
    suggestions of models instead of the answers of people; the agent of a suggestion is then the agent.  Drafts and
    discarded answers are left out, and a note counts them.

    Returns
    -------
    Rankings
        A ballot per answer.

    >>> import io, json
    >>> answer = [{"value": "p", "rank": 2}, {"value": "q", "rank": 1}]
    >>> by = {"user_id": "u", "status": "submitted", "values": {"best": {"value": answer}}}
    >>> record = {"id": 1, "fields": {}, "metadata": {}, "suggestions": {}, "responses": [by]}
    >>> read_argilla(io.StringIO(json.dumps([record]))).orders()
    [['q', 'p']]
    """
    problems = Problems(name_of(source), on_error)
    found: dict[str, list[tuple[Any, list[tuple[Any, ...]]]]] = {}
    beside: dict[str, list[Beside]] = {}
    unranked: dict[str, None] = {}
    unfinished = 0
    for place, record in objects(source, problems):
        for name, value, user, status in _answers(record) if who == "people" else _suggestions(record):
            tiers = _tiers(value)
            if not isinstance(value, list) or (question is not None and name != question):
                continue
            if status not in (None, "submitted"):
                unfinished += 1
            elif tiers is None:
                unranked[name] = None
            elif (named := _with_names(tiers, record, names)) is None:
                problems.add(place, "names", f"no metadata or field {names!r} for a value", "complete the record")
            elif (known := _beside(tiers, record) if control else []) is None:
                problems.add(
                    place, "control", f"a value of {name} has no field with its text, or no number at its end",
                    "leave control= out",
                )  # fmt: skip
            else:
                found.setdefault(name, []).append((user, named))
                beside.setdefault(name, []).append(known)
    problems.close()
    if wrong := [name for name in unranked if name in found or not found]:
        raise DataError(
            f"{name_of(source)}: answers to {', '.join(map(quote, wrong))} have no ranks, and the order of their "
            "values is not the answer; export the records from the server's API, whose values have ranks"
        )
    refuse_empty(list(found), source, "answers to a ranking question")
    if len(found) > 1:
        said = f"{name_of(source)}: several ranking questions; choose with question=, one of {list(found)}"
        raise DataError.of_ways(said, [f'question="{name}"' for name in found])
    ((name, answers),) = found.items()
    if control:
        result = _controlled(answers, beside[name], control)
    else:
        result = Rankings.from_orders([order for _, order in answers], agent=[str(user) for user, _ in answers])
    left_out = (f"{plural(unfinished, 'answer')} not submitted left out",) if unfinished else ()
    set_columns(result, notes=(f"read as argilla: question {name}, the user as agent", *left_out))
    return result


def _answers(record: dict[str, Any]) -> Iterator[tuple[str, Any, Any, str | None]]:
    """(question, value, user, status) of each answer, by question or by user."""
    responses = record.get("responses")
    for name, answers in responses.items() if isinstance(responses, dict) else ():
        for answer in answers if isinstance(answers, list) else ():
            if isinstance(answer, dict):
                yield name, answer.get("value"), answer.get("user_id"), answer.get("status")
    for answer in responses if isinstance(responses, list) else ():
        values = field(answer, "values")
        for name, value in values.items() if isinstance(values, dict) else ():
            yield name, field(value, "value"), answer.get("user_id"), answer.get("status")


def _suggestions(record: dict[str, Any]) -> Iterator[tuple[str, Any, Any, str | None]]:
    """(question, value, model, None) of each suggestion."""
    found = record.get("suggestions")
    for name, one in found.items() if isinstance(found, dict) else ():
        yield name, field(one, "value"), field(one, "agent") or "model", None


def _beside(tiers: list[tuple[Any, ...]], record: dict[str, Any]) -> Beside | None:
    """(length, position) of each value, in the order of the tiers; None if one is not known."""
    found: Beside = []
    for value in (value for tier in tiers for value in tier):
        text, number = field(record, "fields").get(value), re.search("[0-9]+$", value)
        if not isinstance(text, str) or number is None:
            return None
        found.append((len(text), int(number[0])))
    return found


def _controlled(answers: list[tuple[Any, list[tuple[Any, ...]]]], beside: list[Beside], control: Any) -> Rankings:
    """The ballots with controls of their rows."""
    columns: dict[str, list[Any]] = {name: [] for name in ("ballot", "item", "rank", "agent", "length", "position")}
    for ballot, ((user, order), known) in enumerate(zip(answers, beside)):
        values = [(item, rank) for rank, tier in enumerate(order, 1) for item in tier]
        for (item, rank), shown in zip(values, known):
            for column, value in zip(columns.values(), (ballot, item, rank, str(user), *shown)):
                column.append(value)
    return read_ballots(
        columns, layout="long", ballot="ballot", item="item", rank="rank", agent="agent", control=control
    )


def _tiers(value: Any) -> list[tuple[Any, ...]] | None:
    """The values by their ranks; None if one has no rank."""
    ranks: dict[float, list[str]] = {}
    for one in value if isinstance(value, list) else ():
        rank = field(one, "rank")
        if isinstance(rank, bool) or not isinstance(rank, int | float):
            return None
        ranks.setdefault(rank, []).append(str(one.get("value")))
    return [tuple(ranks[rank]) for rank in sorted(ranks)] or None


def _with_names(
    tiers: list[tuple[Any, ...]], record: dict[str, Any], names: str | None
) -> list[tuple[Any, ...]] | None:
    """The tiers with what the record says of each value; None if it says nothing of one."""
    if names is None:
        return tiers
    known = {**(record.get("fields") or {}), **(record.get("metadata") or {})}
    found = [tuple(known.get(names.replace("{}", value)) for value in tier) for tier in tiers]
    return None if any(one is None for tier in found for one in tier) else found
