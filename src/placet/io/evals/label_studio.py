"""Exports of Label Studio (JSON): which of two objects shown side by side an annotator selected."""

import re
from collections.abc import Sequence
from typing import Any

from placet.data import Comparisons, DataError
from placet.data.arrays import set_columns
from placet.data.parameters import with_checked_options
from placet.io.battles import read_battles
from placet.io.evals.json_logs import Who, field, has_keys, objects, refuse_empty
from placet.io.files import Source, name_of
from placet.io.tables.column_names import SIDES, find_column
from placet.io.tables.tables import FileHead
from placet.io.text import TEXT, OnError, Problems, plural, quote

_PAIRWISE = re.compile(r'"type"\s*:\s*"pairwise"')
_SELECTED = {"left": "a", "right": "b"}


def looks_like_label_studio(head: FileHead) -> str | None:
    """Match tasks with annotations, one of which is a selection out of two."""
    return TEXT if has_keys(head, "data", "annotations", "result") and _PAIRWISE.search(head.text) else None


@with_checked_options
def read_label_studio(
    source: Source,
    *,
    left: str | None = None,
    right: str | None = None,
    control: str | Sequence[str] | None = None,
    ordered: bool = False,
    who: Who = "people",
    on_error: OnError = "raise",
) -> Comparisons:
    """Read a vote from each selection of a Pairwise tag; who annotated is the agent.

    ``left`` and ``right`` name the data of a task that say what was shown on either side, such as the names of models.
    By default these are two with the names of sides (``model_a``, ``model_b``), else the objects themselves, if they
    are named like their tags.  ``ordered`` records what was on the left; ``control="length"`` takes the lengths of the
    texts along, if they are named like their tags.  ``who="judges"`` reads the predictions of models instead of the
    annotations; the version of the model is then the agent.  Annotations without a selection are left out, and a note
    counts.

    Returns
    -------
    Comparisons
        A vote per annotation.

    >>> import io, json
    >>> result = {"type": "pairwise", "from_name": "pw", "to_name": "text1,text2", "value": {"selected": "left"}}
    >>> task = {"id": 1, "data": {"model_a": "x", "model_b": "y"}}
    >>> answered = task | {"annotations": [{"completed_by": 7, "result": [result]}]}
    >>> read_label_studio(io.StringIO(json.dumps([answered])))
    Comparisons(1 pairs, 2 items, 1 votes)
    """
    key, person = ("annotations", _person) if who == "people" else ("predictions", _model)
    problems = Problems(name_of(source), on_error)
    rows: list[tuple[Any, ...]] = []
    unselected = 0
    used: dict[str, None] = {}
    for place, task in objects(source, problems):
        data = found if isinstance(found := task.get("data"), dict) else {}
        for annotation in task.get(key) or ():
            result = _selection(annotation)
            if result is None:
                unselected += 1
                continue
            tags = [name.strip() for name in str(result.get("to_name")).split(",")]
            sides = _sides(data, tags, left, right, source)
            selected, shown = field(result, "value.selected"), [data.get(side) for side in sides]
            if selected not in _SELECTED or any(one in (None, "") for one in shown):
                said = f"selected {quote(str(selected))} of {shown}"
                problems.add(place, "selected", f"{said} is not left or right of two", "correct the task")
                continue
            used[" against ".join(sides)] = None
            lengths = [len(text) if isinstance(text := data.get(tag), str) else None for tag in tags[:2]]
            rows.append((*map(str, shown), _SELECTED[selected], person(annotation), *lengths))
    problems.close()
    refuse_empty(rows, source, f"selections out of two among the {key}")
    votes = dict(zip(("model_a", "model_b", "winner", "annotator", "length_a", "length_b"), map(list, zip(*rows))))
    if None in votes["length_a"] or None in votes["length_b"]:
        del votes["length_a"], votes["length_b"]
    found_votes = read_battles(
        votes, a="model_a", b="model_b", winner="winner", agent="annotator", outcomes="words", control=control,
        ordered=ordered,
    )  # fmt: skip
    left_out = (f"{plural(unselected, 'annotation')} without a selection left out",) if unselected else ()
    set_columns(found_votes, notes=(f"read as label-studio: {', '.join(used)}, the annotator as agent", *left_out))
    return found_votes


def _selection(annotation: Any) -> dict[str, Any] | None:
    """The result of the Pairwise tag of an annotation that was not skipped; None if it has none."""
    if not isinstance(annotation, dict) or annotation.get("was_cancelled"):
        return None
    results = [one for one in annotation.get("result") or () if isinstance(one, dict)]
    return next((one for one in results if one.get("type") == "pairwise"), None)


def _sides(
    data: dict[str, Any], tags: list[str], left: str | None, right: str | None, source: Source
) -> tuple[str, str]:
    """The names of the data that say what was on the left and on the right."""
    if left is not None and right is not None:
        return left, right
    if left is not None or right is not None:
        raise ValueError("left and right name the data of the two sides together; give both, or neither")
    for one, other in SIDES:
        first, second = find_column(list(data), (one,)), find_column(list(data), (other,))
        if first is not None and second is not None:
            return first, second
    if len(tags) == 2 and tags[0] in data and tags[1] in data:
        return tags[0], tags[1]
    names = [*data, "...", "..."]
    way = f'left="{names[0]}" right="{names[1]}"'
    raise DataError.of_ways(
        f"{name_of(source)}: the tasks have the data {list(data)}; say which of them name the two sides, such as {way}",
        [way],
    )


def _model(prediction: dict[str, Any]) -> str:
    """The version of the model that predicted."""
    return str(prediction.get("model_version") or "model")


def _person(annotation: dict[str, Any]) -> str:
    """Who annotated: an address if there is one, else a number."""
    who = annotation.get("completed_by")
    return str(who.get("email") or who.get("id")) if isinstance(who, dict) else str(who)
