"""Metrics of systems on queries, as ``placet evaluate`` and ``placet compare`` compute them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from placet.cli.common.console_output import say

if TYPE_CHECKING:
    from placet.io import Judged


def split_specs(text: str) -> list[str]:
    """Split specifications at commas that are not inside parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def say_unanswered(path: Path, judged: "Judged") -> None:
    """Say how many queries have no row in a run: nothing was retrieved there."""
    if judged.n_unanswered:
        say(f"{path}: {judged.n_unanswered} of {len(judged.qid)} queries are not in it; there it retrieves nothing")


def subtopics(judged: "Judged", specs: list[Any], labels: Path) -> Any:
    """The grades of subtopics, if a metric needs them; an error if the labels have none."""
    from placet.data import DataError
    from placet.metrics.metric_table import BY_SUBTOPIC

    asked = [repr(spec) for spec in specs if spec.name in BY_SUBTOPIC]
    if asked and judged.judged is None:
        raise DataError(f"{labels}: {asked[0]} needs judgments of subtopics; give TREC diversity qrels with a TREC run")
    return judged.judged


def value_per_query(spec: Any, judged: "Judged", labels: Path) -> Any:
    """One metric of one system: a value per query, from grades or, if the metric needs them, from subtopics."""
    from placet.metrics import evaluate as evaluate_all

    lists = judged.score, judged.grade, judged.offsets
    return evaluate_all([spec], *lists, name=judged.name, judged=subtopics(judged, [spec], labels))[repr(spec)]
