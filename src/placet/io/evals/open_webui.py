"""Feedback of Open WebUI (0.10.2, the export of its evaluations): a thumb up or down for one of the answers shown."""

from collections.abc import Sequence
from typing import Any

from placet.data import Comparisons
from placet.data.arrays import set_columns
from placet.io.battles import read_battles
from placet.io.evals.json_logs import field, has_keys, objects, refuse_empty
from placet.io.files import Source, name_of
from placet.io.tables.tables import FileHead
from placet.io.text import TEXT, OnError, Problems, plural, quote


def looks_like_open_webui(head: FileHead) -> str | None:
    """Match the records of feedback."""
    return TEXT if has_keys(head, "user_id", "type", "data", "rating", "model_id", "sibling_model_ids") else None


def read_open_webui(
    source: Source, *, control: str | Sequence[str] | None = None, ordered: bool = False, on_error: OnError = "raise"
) -> Comparisons:
    """Read a vote for (rating 1) or against (-1) the model over each of its siblings; the user is the agent.

    ``control="length"`` takes the lengths of the answers (characters) along, and ``ordered`` records which was shown
    first; both are in the snapshot of the chat that an export holds.  Ratings of an answer shown alone compare nothing;
    they are left out, and a note counts them.

    Returns
    -------
    Comparisons
        A vote per sibling of a rated answer.

    >>> import io, json
    >>> rated = {"rating": 1, "model_id": "x", "sibling_model_ids": ["y", "z"]}
    >>> log = [{"id": "f", "user_id": "u", "type": "rating", "data": rated, "meta": {}, "snapshot": {"chat": {}}}]
    >>> read_open_webui(io.StringIO(json.dumps(log)))
    Comparisons(2 pairs, 3 items, 2 votes)
    """
    problems = Problems(name_of(source), on_error)
    rows: list[tuple[Any, ...]] = []
    alone = 0
    for place, record in objects(source, problems):
        rating, model = str(field(record, "data.rating")), field(record, "data.model_id")
        siblings = [name for name in field(record, "data.sibling_model_ids") or () if name != model]
        if record.get("type") != "rating" or not siblings:
            alone += 1
        elif rating not in ("1", "-1") or not model:
            problems.add(place, "rating", f"rating {quote(rating)} is not 1 or -1", "correct the record")
        else:
            shown, user = _answers_shown(record), str(record.get("user_id"))
            for sibling in siblings:
                known = model in shown and sibling in shown
                if not known and (control or ordered):
                    problems.add(
                        place, "snapshot", f"no snapshot of the answers of {model} and {sibling}, so neither their "
                        "lengths nor their order is known", "leave control= and ordered= out",
                    )  # fmt: skip
                    continue
                first = not known or shown[model][0] < shown[sibling][0]
                a, b = (model, sibling) if first else (sibling, model)
                lengths = (shown[a][1], shown[b][1]) if known else (0, 0)
                rows.append((a, b, "a" if (rating == "1") == first else "b", user, *lengths))
    problems.close()
    refuse_empty(rows, source, "ratings of answers shown beside others")
    columns = dict(zip(("model_a", "model_b", "winner", "user", "length_a", "length_b"), map(list, zip(*rows))))
    found = read_battles(
        columns, a="model_a", b="model_b", winner="winner", agent="user", outcomes="words", control=control,
        ordered=ordered,
    )  # fmt: skip
    left_out = (f"{plural(alone, 'rating')} of an answer shown alone left out",) if alone else ()
    set_columns(found, notes=("read as open-webui: the rated model against each of its siblings", *left_out))
    return found


def _answers_shown(record: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Model -> place and length of its answer, of the rated answer and of those beside it, as the snapshot has them."""
    messages = field(record, "snapshot.chat.chat.history.messages")
    if not isinstance(messages, dict):
        return {}
    rated = messages.get(str(field(record, "meta.message_id")))
    asked = messages.get(str(field(rated, "parentId"))) if isinstance(rated, dict) else None
    answers = [messages.get(str(key)) for key in field(asked, "childrenIds") or ()] if isinstance(asked, dict) else []
    known = [one for one in answers if isinstance(one, dict) and isinstance(one.get("content"), str)]
    return {str(one.get("model")): (k, len(one["content"])) for k, one in enumerate(known)}
