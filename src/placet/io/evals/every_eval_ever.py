"""Results in the schema of Every Eval Ever (0.2): a file for each model, or a line for each answer to a question."""

from typing import Any

from placet.data import Scores
from placet.io.evals.json_logs import field, has_keys, number_at, objects, refuse_empty
from placet.io.files import Source, name_of
from placet.io.tables.tables import FileHead
from placet.io.text import TEXT, OnError, Problems


def looks_like_every_eval_ever(head: FileHead) -> str | None:
    """Match JSON with the keys that the schema requires, of results or of single answers."""
    results = has_keys(head, "schema_version", "model_info", "evaluation_results")
    answers = has_keys(head, "schema_version", "model_id", "evaluation_name", "sample_id")
    return TEXT if results or answers else None


def read_every_eval_ever(source: Source, *, on_error: OnError = "raise") -> Scores:
    """Read the scores of models on evaluations; single answers are questions of their evaluation.

    Where ``lower_is_better``, the sign of the score is changed, and a note says so.

    Returns
    -------
    Scores
        A model per row, an evaluation per column.

    >>> import io, json
    >>> result = {"evaluation_name": "gsm8k", "score_details": {"score": 0.5}}
    >>> log = {"schema_version": "0.2.1", "evaluation_id": "e", "model_info": {"id": "lab/p"}}
    >>> scores = read_every_eval_ever(io.StringIO(json.dumps(log | {"evaluation_results": [result]})))
    >>> scores.items, scores.tasks, scores.value
    (('lab/p',), ('gsm8k',), array([[0.5]]))
    """
    problems = Problems(name_of(source), on_error)
    rows: list[tuple[Any, Any, float, Any]] = []
    turned: dict[str, None] = {}
    for place, record in objects(source, problems):
        if "evaluation_results" in record:
            model = field(record, "model_info.id") or field(record, "model_info.name")
            for result in record["evaluation_results"] or ():
                task, score = field(result, "evaluation_name"), number_at(result, "score_details.score")
                if lower := field(result, "metric_config.lower_is_better") is True:
                    turned[str(task)] = None
                _add(rows, problems, place, (model, task, None if score is None else -score if lower else score, None))
        else:
            task, question = record.get("evaluation_name"), record.get("sample_id")
            _add(rows, problems, place, (record.get("model_id"), task, number_at(record, "evaluation.score"), question))
    problems.close()
    refuse_empty(rows, source, "scores")
    models, tasks, values, questions = zip(*rows)
    asked = None if all(question is None for question in questions) else questions
    notes = ["read as every-eval-ever"]
    if turned:
        notes.append(f"lower is better, so signs are changed: {', '.join(turned)}")
    return Scores.from_rows(models, tasks, values, asked, notes=tuple(notes))


def _add(rows: list[Any], problems: Problems, place: int, row: tuple[Any, Any, float | None, Any]) -> None:
    if row[0] is None or row[1] is None or row[2] is None:
        problems.add(place, "score", "a model, an evaluation or a score is missing", "complete the record")
    else:
        rows.append(row)
