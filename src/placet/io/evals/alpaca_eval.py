"""Annotations of AlpacaEval: which of two outputs a judge prefers, or how likely it does, with their lengths."""

from collections.abc import Sequence
from typing import Any

from placet.data import Comparisons
from placet.data.arrays import set_columns
from placet.io.battles import read_battles
from placet.io.evals.json_logs import has_keys, number_at, objects, refuse_empty
from placet.io.files import Source, name_of
from placet.io.tables.tables import FileHead
from placet.io.text import TEXT, OnError, Problems, plural, quote

_COLUMNS = ("model_a", "model_b", "winner", "annotator", "weight", "length_a", "length_b")


def looks_like_alpaca_eval(head: FileHead) -> str | None:
    """Match the annotations of pairs of outputs."""
    return TEXT if has_keys(head, "output_1", "generator_1", "output_2", "generator_2", "preference") else None


def read_alpaca_eval(
    source: Source, *, control: str | Sequence[str] | None = None, on_error: OnError = "raise"
) -> Comparisons:
    """Read a vote from each annotation: preference 1 is for the first generator, 2 for the second, 1.5 or 0 a tie.

    Any other preference p between 1 and 2 is a chance: the vote is split, p - 1 of it for the second generator.  The
    annotator is the agent.  ``control="length"`` takes the lengths of the outputs (characters) along.  Annotations
    without a preference are left out, and a note counts them.

    Returns
    -------
    Comparisons
        A vote per annotation.

    >>> import io, json
    >>> row = {"generator_1": "x", "generator_2": "y", "annotator": "judge", "preference": 2}
    >>> read_alpaca_eval(io.StringIO(json.dumps([row | {"output_1": "", "output_2": ""}])))
    Comparisons(1 pairs, 2 items, 1 votes)
    """
    problems = Problems(name_of(source), on_error)
    rows: list[tuple[Any, ...]] = []
    missing = split = 0
    for place, record in objects(source, problems):
        preference = number_at(record, "preference")
        first, second = record.get("generator_1"), record.get("generator_2")
        if record.get("preference") is None or preference != preference:
            missing += 1
        elif preference is None or not (preference == 0 or 1 <= preference <= 2):
            said = quote(str(record.get("preference")))
            problems.add(place, "preference", f"preference {said} is not between 1 and 2", "correct the record")
        elif not first or not second:
            problems.add(place, "generator", "generator_1 or generator_2 is missing", "complete the record")
        else:
            parts = _parts(preference)
            split += len(parts) - 1
            lengths = (len(str(record.get("output_1") or "")), len(str(record.get("output_2") or "")))
            judge = str(record.get("annotator"))
            rows.extend((str(first), str(second), winner, judge, share, *lengths) for winner, share in parts)
    problems.close()
    refuse_empty(rows, source, "preferences")
    votes = dict(zip(_COLUMNS, map(list, zip(*rows))))
    found = read_battles(
        votes, a="model_a", b="model_b", winner="winner", agent="annotator", weight="weight", outcomes="words",
        control=control,
    )  # fmt: skip
    notes = ["read as alpaca-eval: generator_1 against generator_2, the annotator as agent"]
    notes += [f"{plural(split, 'vote')} split by the chance of the preference"] if split else []
    notes += [f"{plural(missing, 'annotation')} without a preference left out"] if missing else []
    set_columns(found, notes=tuple(notes))
    return found


def _parts(preference: float) -> list[tuple[str, float]]:
    """(winner, share of the vote) of a preference."""
    if preference in (0, 1.5):
        return [("tie", 1.0)]
    shares = (("a", 2 - preference), ("b", preference - 1))
    return [(winner, share) for winner, share in shares if share > 0]
