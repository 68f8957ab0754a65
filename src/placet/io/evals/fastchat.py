"""Judgments of MT-bench as FastChat (0.2.36) writes them: pairs of models judged in both orders, or single answers."""

from typing import Any

from placet.data import Comparisons, Scores
from placet.data.arrays import set_columns
from placet.io.battles import read_battles
from placet.io.evals.json_logs import has_keys, number_at, objects, refuse_empty
from placet.io.files import Source, name_of
from placet.io.tables.tables import FileHead
from placet.io.text import TEXT, OnError, Problems, plural, quote

_GAMES = {
    "g1_winner": ("model_1", "model_2", {"model_1": "a", "model_2": "b", "tie": "tie"}),
    "g2_winner": ("model_2", "model_1", {"model_2": "a", "model_1": "b", "tie": "tie"}),
}
"""Field of the winner -> the model shown first, the other one, and what the words mean."""


def looks_like_fastchat_pairs(head: FileHead) -> str | None:
    """Match the judgments of pairs, each judged twice."""
    return TEXT if has_keys(head, "model_1", "model_2", "g1_winner", "g2_winner") else None


def looks_like_fastchat_scores(head: FileHead) -> str | None:
    """Match the judgments of single answers."""
    return TEXT if has_keys(head, "question_id", "model", "judge", "judgment", "score", "turn") else None


def read_fastchat_pairs(source: Source, *, ordered: bool = False, on_error: OnError = "raise") -> Comparisons:
    """Read two votes from each line, one for each order in which the judge saw the answers; the judge is the agent.

    ``ordered`` records which was seen first, to estimate what that is worth.  A judgment without a verdict ("error")
    is left out, and a note counts them.

    Returns
    -------
    Comparisons
        Two votes per line.

    >>> import io, json
    >>> line = {"question_id": 81, "model_1": "x", "model_2": "y", "judge": ["gpt-4"]}
    >>> votes = read_fastchat_pairs(io.StringIO(json.dumps(line | {"g1_winner": "model_1", "g2_winner": "tie"})))
    >>> votes.wins_i, votes.ties, votes.agents
    (array([1.]), array([1.]), ('gpt-4',))
    """
    problems = Problems(name_of(source), on_error)
    votes: dict[str, list[Any]] = {"a": [], "b": [], "winner": [], "judge": []}
    errors = 0
    for place, record in objects(source, problems):
        for name, (first, second, meaning) in _GAMES.items():
            said = record.get(name)
            if said == "error":
                errors += 1
            elif said not in meaning or not record.get(first) or not record.get(second):
                problems.add(place, name, f"{name} {quote(said)} is not model_1, model_2 or tie", "correct the line")
            else:
                row = (record[first], record[second], meaning[said], _judge(record))
                for values, value in zip(votes.values(), row):
                    values.append(value)
    problems.close()
    refuse_empty(votes["a"], source, "verdicts")
    found = read_battles(votes, a="a", b="b", winner="winner", agent="judge", outcomes="words", ordered=ordered)
    left_out = (f"{plural(errors, 'judgment')} without a verdict left out",) if errors else ()
    set_columns(found, notes=("read as fastchat-pairs: each pair in both orders, the judge as agent", *left_out))
    return found


def read_fastchat_scores(source: Source, *, on_error: OnError = "raise") -> Scores:
    r"""Read the score of each answer; a task is a turn of the conversation, a question one of its questions.

    A score of -1 is a judgment without a verdict: it is left out, and a note counts them.

    Returns
    -------
    Scores
        A model per row, a turn per column, by question.

    >>> import io, json
    >>> about = {"question_id": 81, "model": "x", "judge": ["gpt-4"]}
    >>> lines = [json.dumps(about | {"turn": turn, "score": score}) for turn, score in ((1, 8), (2, 9))]
    >>> scores = read_fastchat_scores(io.StringIO("\n".join(lines)))
    >>> scores.tasks, scores.value
    (('turn 1', 'turn 2'), array([[8., 9.]]))
    """
    problems = Problems(name_of(source), on_error)
    rows: list[tuple[Any, str, float, Any]] = []
    errors = 0
    for place, record in objects(source, problems):
        score = number_at(record, "score")
        if score is None or record.get("model") is None or record.get("question_id") is None:
            problems.add(place, "score", "a model, a question or a score is missing", "complete the line")
        elif score == -1:
            errors += 1
        else:
            rows.append((record["model"], f"turn {record.get('turn', 1)}", score, record["question_id"]))
    problems.close()
    refuse_empty(rows, source, "scores")
    left_out = (f"{plural(errors, 'judgment')} without a score left out",) if errors else ()
    models, tasks, values, questions = zip(*rows)
    return Scores.from_rows(models, tasks, values, questions, notes=("read as fastchat-scores", *left_out))


def _judge(record: dict[str, Any]) -> str:
    judge = record.get("judge")
    return str(judge[0] if isinstance(judge, list) and judge else judge)
