"""Logs of Inspect (schema 2): `.eval` archives and JSON, with a score for each sample, or only the metrics."""

import json
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

from placet.data import DataError, Scores
from placet.io.evals.json_logs import field, has_keys, objects
from placet.io.evals.metric_rows import MetricRows, as_score
from placet.io.files import INSPECT_START, Source, name_of, opened
from placet.io.tables.tables import FileHead
from placet.io.text import TEXT, OnError, Problems, plural

_WORDS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_SPREADS = ("stderr", "std", "var", "ci", "bootstrap_stderr")
"""Metrics that say how far another one scatters."""


def looks_like_inspect(head: FileHead) -> str | None:
    """Match an archive with the journal of Inspect, or JSON with the keys of a log."""
    if INSPECT_START in getattr(head.sources[0], "members", ()):
        return TEXT
    return TEXT if has_keys(head, "version", "status", "eval", "run_id", "task", "model") else None


def read_inspect(source: Source, *, metric: str | Sequence[str] | None = None, on_error: OnError = "raise") -> Scores:
    """Read the scores of a model on the samples of a task; a log without samples gives its metrics.

    ``metric`` names the scorer, if there are several (``scorer/key`` where its values have keys; ``scorer/metric``
    where the log has no samples); of several names the first that a task has.  The grades C, P, I and N are 1, 0.5, 0
    and 0; epochs are averaged.  Samples without a score are left out, and a note counts them.

    Returns
    -------
    Scores
        One model on one task, by question.

    >>> import io, json
    >>> about = {"run_id": "r", "created": "2026-01-01", "task": "quiz", "task_id": "i", "model": "lab/p"}
    >>> graded = [{"id": k, "epoch": 1, "scores": {"match": {"value": grade}}} for k, grade in ((1, "C"), (2, "I"))]
    >>> log = {"version": 2, "status": "success", "eval": about, "plan": {}, "stats": {}, "samples": graded}
    >>> scores = read_inspect(io.StringIO(json.dumps(log)))
    >>> scores.items, scores.tasks, scores.value
    (('lab/p',), ('quiz',), array([[1., 0.]]))
    """
    problems = Problems(name_of(source), on_error)
    rows = MetricRows(source, metric)
    left_out = 0
    for place, (log, samples) in enumerate(_logs(source, problems), start=1):
        model, task = field(log, "eval.model"), field(log, "eval.task")
        if not isinstance(model, str) or not isinstance(task, str):
            problems.add(place, "eval", "the log does not name its model or its task", "give a complete log")
            continue
        for sample in samples:
            found = list(_sample_scores(sample))
            left_out += not found
            for name, value in found:
                rows.add(model, task, name, sample.get("id"), value)
        for name, value in () if samples else _metrics(log):
            rows.add(model, task, name, None, value)
    problems.close()
    return rows.scores("inspect", [f"{plural(left_out, 'sample')} without a score left out"] if left_out else [])


def _logs(source: Source, problems: Problems) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """(header, samples) of each log."""
    with opened(source) as file:
        if INSPECT_START in file.members:
            yield _archive(file.stream(), file.name)
            return
        for _, log in objects(file, problems):
            yield log, _dicts(log.get("samples"))


def _archive(stream: Any, name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The header and the summaries of the samples of an archive; of an unfinished one those in its journal."""
    try:
        with zipfile.ZipFile(stream) as archive:
            names = archive.namelist()
            header = json.loads(archive.read("header.json" if "header.json" in names else INSPECT_START))
            whole = [one for one in names if one == "summaries.json"]
            parts = whole or [one for one in names if one.startswith("_journal/summaries/")]
            samples = [one for part in parts for one in _dicts(json.loads(archive.read(part)))]
            if not samples:
                single = [one for one in names if one.startswith("samples/") and one.endswith(".json")]
                samples = _dicts([json.loads(archive.read(one)) for one in single])
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, ValueError, RecursionError) as error:
        raise DataError(f"{name}: a damaged log of Inspect ({str(error)[:80]}); write it again") from None
    return header if isinstance(header, dict) else {}, samples


def _dicts(values: Any) -> list[dict[str, Any]]:
    return [one for one in values if isinstance(one, dict)] if isinstance(values, list) else []


def _sample_scores(sample: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """(scorer, value) of a sample; a value with keys gives one for each key."""
    scores = sample.get("scores")
    for scorer, score in scores.items() if isinstance(scores, dict) else ():
        value = score.get("value") if isinstance(score, dict) else None
        parts = [(f"{scorer}/{key}", one) for key, one in value.items()] if isinstance(value, dict) else None
        for name, one in [(scorer, value)] if parts is None else parts:
            if (number := _graded(one)) is not None:
                yield name, number


def _graded(value: Any) -> float | None:
    if not isinstance(value, str):
        return as_score(value)
    known = _WORDS.get(value, _WORDS.get(value.lower()))
    try:
        return known if known is not None else as_score(float(value))
    except ValueError:
        return None


def _metrics(log: dict[str, Any]) -> Iterator[tuple[str, float]]:
    for score in _dicts(field(log, "results.scores")):
        metrics = score.get("metrics")
        for name, metric in metrics.items() if isinstance(metrics, dict) else ():
            value = as_score(metric.get("value")) if isinstance(metric, dict) else None
            if value is not None and name not in _SPREADS:
                yield f"{score.get('name')}/{name}", value
