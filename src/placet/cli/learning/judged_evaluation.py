"""``placet evaluate --judged``: metrics of a run from few judgments of people and many of a judge."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placet.cli.common.console_output import deliver, progress_bar, say
from placet.cli.common.metric_values import subtopics

if TYPE_CHECKING:
    from placet.io.trec import Qrels
    from placet.metrics import JudgedMean

HEAD = ("metric", "mean", "stderr", "low", "high", "people", "people low", "people high", "judge", "both", "worth")


def evaluate_with_judge(
    specs: list[Any], run: Path, human: Path, machine: Path, per_query: bool, out: Path | None, as_json: bool
) -> None:
    """Print the mean of each metric under people's judgments, with the help of the judge's, or the values per query."""
    import numpy as np

    from placet.io.judged_scores import judge
    from placet.io.trec import read_qrels, read_trec_run
    from placet.metrics import evaluate, judged_mean

    with progress_bar("reading"):
        retrieved, people, model = read_trec_run(run), read_qrels(human), read_qrels(machine)
        _refuse_strangers(human, people, machine, model)
        sides = [(judge(retrieved, qrels), path) for qrels, path in ((people, human), (model, machine))]
    topics = list(dict.fromkeys([*people.topics, *model.topics]))
    place = {topic: k for k, topic in enumerate(topics)}
    values = np.full((len(specs), 2, len(topics)), np.nan)
    for side, (judged, path) in enumerate(sides):
        lists, parts = (judged.score, judged.grade, judged.offsets), subtopics(judged, specs, path)
        found = evaluate(specs, *lists, name=judged.name, judged=parts)
        values[:, side, [place[topic] for topic in judged.qid]] = list(found.values())
    names = [repr(spec) for spec in specs]
    if per_query:
        rows: list[list[Any]] = [[topic, *values[:, :, t].ravel().tolist()] for t, topic in enumerate(topics)]
        deliver(out, as_json, ["qid", *(f"{name} {who}" for name in names for who in ("people", "judge"))], rows)
        return
    means = {name: judged_mean(*pair) for name, pair in zip(names, values)}
    table = [_row(name, one) for name, one in means.items()]
    deliver(out, as_json, list(HEAD), table, {row[0]: dict(zip(HEAD[1:], row[1:])) for row in table})
    for name, one in means.items():
        say(f"{name}: {_in_words(one)}")
    say("people's queries are taken as a random sample of all: if they were chosen otherwise, so is the mean")
    if (alone := _graded_by_judge_alone(people, model)) > 0:
        say(
            f"{alone:,} documents that the judge finds relevant have no grade in queries that people judged; they "
            "count as not relevant, as always"
        )


def _refuse_strangers(human: Path, people: "Qrels", machine: Path, model: "Qrels") -> None:
    from placet.data import DataError

    if not set(people.topics) & set(model.topics):
        raise DataError(
            f"{machine}: none of its {len(model.topics)} queries is among the {len(people.topics)} of {human} (the "
            f"first are {model.topics[0]!r} and {people.topics[0]!r}); a judge must have judged some of people's"
        )


def _row(name: str, found: "JudgedMean") -> list[Any]:
    ends = [end if math.isfinite(end) else None for end in (found.low, found.high, found.human_low, found.human_high)]
    own = [found.mean, found.stderr, *ends[:2], found.human.mean, *ends[2:], found.judge.mean]
    return [name, *own, found.n_both, found.worth]


def _in_words(found: "JudgedMean") -> str:
    from placet.metrics.human_and_judge import LEAST_BOTH

    many = f"{found.human.n_lists:,} queries of people"
    if found.is_used:
        return (
            f"{many} and the judge's {found.judge.n_lists:,} are worth {found.worth:,.0f} queries of people "
            f"(correlation {found.correlation:.2f} in the {found.n_both:,} that both judged)"
        )
    if found.n_both < LEAST_BOTH:
        return f"{many} alone: both have a value in {found.n_both}, and a judge is used from {LEAST_BOTH} on"
    return f"{many} alone: the judge's values say too little about them to help"


def _graded_by_judge_alone(people: "Qrels", model: "Qrels") -> int:
    """Documents that the judge finds relevant, and that have no grade, in queries that people judged."""
    graded = {(people.topics[t], people.docs[d]) for t, d in zip(people.topic.tolist(), people.doc.tolist())}
    topics = set(people.topics)
    found = zip(model.topic.tolist(), model.doc.tolist(), model.grade.tolist())
    return len(
        {
            (t, d)
            for t, d, g in found
            if g > 0 and model.topics[t] in topics and (model.topics[t], model.docs[d]) not in graded
        }
    )
