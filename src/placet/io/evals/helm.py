"""Per-instance statistics of HELM: a file for each run, whose folder names the scenario and the model."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from placet.data import Scores
from placet.io.evals.json_logs import field, has_keys, objects
from placet.io.evals.metric_rows import MetricRows, as_score, name_or_refuse
from placet.io.files import Source, name_of
from placet.io.tables.tables import FileHead
from placet.io.text import TEXT, OnError, Problems, plural

_OF_MODEL = ("model=", "model_deployment=")


def looks_like_helm(head: FileHead) -> str | None:
    """Match the statistics of instances."""
    return TEXT if has_keys(head, "instance_id", "train_trial_index", "stats") else None


def read_helm(
    source: Source,
    *,
    metric: str | Sequence[str] | None = None,
    model: str | None = None,
    task: str | None = None,
    on_error: OnError = "raise",
) -> Scores:
    """Read a statistic of each instance; the folder is that of a run, such as ``mmlu:subject=anatomy,model=x``.

    ``metric`` names the statistic, such as ``exact_match``, and ``model`` and ``task`` those of other folders.  Trials
    are averaged.  Perturbed instances are left out, and a note counts them.

    Returns
    -------
    Scores
        One model on one task, by question.

    >>> import io, json
    >>> stats = [{"name": {"name": "exact_match", "split": "test"}, "count": 1, "sum": 1.0, "mean": 1.0}]
    >>> log = [{"instance_id": "id1", "train_trial_index": 0, "stats": stats}]
    >>> scores = read_helm(io.StringIO(json.dumps(log)), model="p", task="law")
    >>> scores.items, scores.tasks, scores.value
    (('p',), ('law',), array([[1.]]))
    """
    problems = Problems(name_of(source), on_error)
    found_task, found_model = _run(Path(os.path.abspath(name_of(source))).parent.name)
    model = name_or_refuse(model, found_model, "model", source)
    task = name_or_refuse(task, found_task, "task", source)
    rows = MetricRows(source, metric)
    perturbed = 0
    for place, record in objects(source, problems):
        if record.get("instance_id") is None or not isinstance(record.get("stats"), list):
            problems.add(place, "stats", "the instance has no id or no statistics", "complete the record")
        elif record.get("perturbation"):
            perturbed += 1
        else:
            for stat in record["stats"]:
                name, value = _named_mean(stat)
                if name and value is not None:
                    rows.add(model, task, name, str(record["instance_id"]), value)
    problems.close()
    left_out = [f"{plural(perturbed, 'record')} of perturbed instances left out"] if perturbed else []
    return rows.scores("helm", [f"model {model}, task {task}", *left_out])


def _named_mean(stat: Any) -> tuple[str | None, float | None]:
    """The name of a statistic and its mean."""
    name = field(stat, "name.name")
    value = as_score(field(stat, "mean"))
    total, count = as_score(field(stat, "sum")), as_score(field(stat, "count"))
    if value is None and total is not None and count:
        value = total / count
    return (name if isinstance(name, str) else None), value


def _run(folder: str) -> tuple[str | None, str | None]:
    """(task, model) of the name of a run, ``scenario:key=value,...,model=name``; None where it is no such name."""
    scenario, _, arguments = folder.partition(":")
    parts = [part for part in arguments.split(",") if part]
    model = next((part.partition("=")[2] for part in parts if part.startswith("model=")), None)
    if not model:
        return None, None
    others = ",".join(part for part in parts if not part.startswith(_OF_MODEL))
    return (f"{scenario}:{others}" if others else scenario), model
