"""Feedback of Open WebUI (0.10.2, the export of its evaluations): a thumb up or down for one of the answers shown."""

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


def read_open_webui(source: Source, *, on_error: OnError = "raise") -> Comparisons:
    """Read a vote for (rating 1) or against (-1) the model over each of its siblings; the user is the agent.

    Ratings of an answer shown alone compare nothing; they are left out, and a note counts them.
    """
    problems = Problems(name_of(source), on_error)
    votes: dict[str, list[Any]] = {"winner": [], "loser": [], "user": []}
    alone = 0
    for place, record in objects(source, problems):
        rating, model = str(field(record, "data.rating")), field(record, "data.model_id")
        siblings = [name for name in field(record, "data.sibling_model_ids") or () if name != model]
        if record.get("type") != "rating" or not siblings:
            alone += 1
        elif rating not in ("1", "-1") or not model:
            problems.add(place, "rating", f"rating {quote(rating)} is not 1 or -1", "correct the record")
        else:
            for sibling in siblings:
                votes["winner"].append(model if rating == "1" else sibling)
                votes["loser"].append(sibling if rating == "1" else model)
                votes["user"].append(str(record.get("user_id")))
    problems.close()
    refuse_empty(votes["winner"], source, "ratings of answers shown beside others")
    found = read_battles(votes, winner="winner", loser="loser", agent="user")
    left_out = (f"{plural(alone, 'rating')} of an answer shown alone left out",) if alone else ()
    set_columns(found, notes=("read as open-webui: the rated model against each of its siblings", *left_out))
    return found
