"""Logs of lm-evaluation-harness: a line for each sample (``--log_samples``), or the results of a run."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from placet.data import Scores
from placet.io.evals.json_logs import field, has_keys, objects
from placet.io.evals.metric_rows import MetricRows, as_score, name_or_refuse
from placet.io.files import Source, name_of
from placet.io.tables.tables import FileHead
from placet.io.text import TEXT, OnError, Problems, plural

_SAMPLES = re.compile(r"samples_(?P<task>.+)_\d{4}-\d\d-\d\dT[\d.-]+")
_RESULTS = re.compile(r'\s*\{\s*"results"\s*:\s*\{')
_PRETRAINED = re.compile(r"(?:^|,)(?:pretrained|model)=([^,]+)")
_NO_METRICS = frozenset(
    "doc_id doc target arguments resps filtered_resps filter metrics doc_hash prompt_hash target_hash".split()
)


def looks_like_lm_harness_samples(head: FileHead) -> str | None:
    """Match lines with the keys of a sample."""
    return TEXT if has_keys(head, "doc_id", "doc", "target", "arguments", "resps", "filtered_resps") else None


def looks_like_lm_harness_results(head: FileHead) -> str | None:
    """Match an object that begins with results, whose tasks have an alias and metrics with filters."""
    found = _RESULTS.match(head.text) and '"alias"' in head.text and re.search(r'_stderr,[\w-]+"', head.text)
    return TEXT if found else None


def read_lm_harness_samples(
    source: Source,
    *,
    metric: str | Sequence[str] | None = None,
    model: str | None = None,
    task: str | None = None,
    on_error: OnError = "raise",
) -> Scores:
    r"""Read the score of each sample; the model is the name of the folder, and the task is in the name of the file.

    ``model`` and ``task`` name them where they are not.  ``metric`` chooses among several (``name/filter`` with a
    filter); of several names the first that the task has.

    Returns
    -------
    Scores
        One model on one task, by question.

    >>> import io, json
    >>> about = {"target": "a", "resps": [], "filtered_resps": [], "filter": "none", "metrics": ["acc"]}
    >>> lines = [json.dumps({"doc_id": k, "acc": acc} | about) for k, acc in enumerate((1.0, 0.0))]
    >>> read_lm_harness_samples(io.StringIO("\n".join(lines)), model="p", task="quiz").value
    array([[1., 0.]])
    """
    problems = Problems(name_of(source), on_error)
    path = Path(os.path.abspath(name_of(source)))
    known = _SAMPLES.match(path.name)
    model = name_or_refuse(model, path.parent.name if known else None, "model", source)
    task = name_or_refuse(task, known["task"] if known else None, "task", source)
    rows = MetricRows(source, metric)
    for place, record in objects(source, problems):
        named = record.get("metrics")
        names = named if isinstance(named, list) else [key for key in record if key not in _NO_METRICS]
        if record.get("doc_id") is None:
            problems.add(place, "doc_id", "the sample has no doc_id", "complete the line")
            continue
        for name in map(str, names):
            if (value := as_score(record.get(name))) is not None:
                rows.add(model, task, _with_filter(name, record.get("filter")), str(record["doc_id"]), value)
    problems.close()
    return rows.scores("lm-harness-samples", (f"model {model}, task {task}",))


def read_lm_harness_results(
    source: Source,
    *,
    metric: str | Sequence[str] | None = None,
    model: str | None = None,
    on_error: OnError = "raise",
) -> Scores:
    """Read the score of a model on each task of a run; groups of tasks are left out, because their tasks are there.

    ``metric`` chooses among several of a task (``name/filter`` with a filter): the first that the task has.  Where
    lower is better, the sign is changed, and a note says so.  ``model`` names the model if the file does not.

    Returns
    -------
    Scores
        A model, and its tasks.

    >>> import io, json
    >>> results = {"gsm8k": {"exact_match,strict-match": 0.3}, "law": {"acc,none": 0.5}}
    >>> log = {"results": results, "config": {"model": "hf", "model_args": "pretrained=lab/p"}}
    >>> scores = read_lm_harness_results(io.StringIO(json.dumps(log)))
    >>> scores.items, scores.tasks, scores.value
    (('lab/p',), ('gsm8k', 'law'), array([[0.3, 0.5]]))
    """
    problems = Problems(name_of(source), on_error)
    rows = MetricRows(source, metric)
    turned: dict[str, None] = {}
    groups = 0
    for _, record in objects(source, problems):
        named = name_or_refuse(model, _model_of(record), "model", source)
        results = found if isinstance(found := record.get("results"), dict) else {}
        for task, metrics in results.items():
            if _children(record, task) & set(results):
                groups += 1
                continue
            for key, value in metrics.items() if isinstance(metrics, dict) else ():
                name, comma, filtered = key.partition(",")
                score = as_score(value)
                if not comma or name.endswith("_stderr") or score is None:
                    continue
                directions = field(record, "higher_is_better") or {}
                lower = isinstance(of_task := directions.get(task), dict) and of_task.get(name) is False
                if lower:
                    turned[f"{name} of {task}"] = None
                rows.add(named, task, _with_filter(name, filtered), None, -score if lower else score)
    problems.close()
    notes = [f"{plural(groups, 'group')} of tasks left out"] if groups else []
    notes += [f"lower is better, so signs are changed: {', '.join(turned)}"] if turned else []
    return rows.scores("lm-harness-results", notes)


def _with_filter(metric: str, filtered: Any) -> str:
    return metric if filtered in (None, "", "none") else f"{metric}/{filtered}"


def _children(record: dict[str, Any], task: str) -> set[str]:
    """The names of the tasks in a group; none for a task."""
    groups = record.get("group_subtasks")
    children = groups.get(task) if isinstance(groups, dict) else None
    return {str(one) for one in children} if isinstance(children, list) else set()


def _model_of(record: dict[str, Any]) -> str | None:
    """The name of the model of a run: as it says, else as its arguments say."""
    if isinstance(name := record.get("model_name"), str) and name:
        return name
    arguments = field(record, "config.model_args")
    if isinstance(arguments, dict):
        return next((str(arguments[key]) for key in ("pretrained", "model") if arguments.get(key)), None)
    found = _PRETRAINED.search(arguments) if isinstance(arguments, str) else None
    return found[1] if found else None
