"""Logs of Inspect, lm-evaluation-harness and HELM, written by us after the schema of each, found by their content."""

import json
import zipfile

import numpy as np
import pytest

import placet
from placet import DataError
from placet.data.scores import Scores


def inspect_log(model, samples=None, metrics=None):
    log = {
        "version": 2,
        "status": "success",
        "eval": {"run_id": "r", "created": "2026-01-01", "task": "quiz", "task_id": "i", "model": model},
        "plan": {"name": "plan"},
        "stats": {},
    }
    scores = [{"name": "match", "scorer": "match", "params": {}, "metrics": metrics or {}}]
    return log | {"results": {"total_samples": 2, "scores": scores}} | ({} if samples is None else {"samples": samples})


def graded(sample, epoch=1, **scores):
    scores = {name: {"value": value, "answer": "x"} for name, value in scores.items()}
    return {"id": sample, "epoch": epoch, "input": "?", "target": "!", "scores": scores}


def archive(path, log, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("_journal/start.json", json.dumps({key: log[key] for key in ("version", "eval", "plan")}))
        for name, data in members.items():
            file.writestr(name, json.dumps(data))


SAMPLES = [graded(1, match="C"), graded(1, 2, match="I"), graded(2, match="P"), graded(3, match="N"), graded(4)]
SEVERAL = [graded(1, match="C", rubric={"style": 3, "facts": "4.5"}), graded(2, match=True, rubric={"style": 1})]
METRICS = {"accuracy": {"name": "accuracy", "value": 0.75}, "stderr": {"name": "stderr", "value": 0.1}}


def harness_sample(doc, filtered="none", **metrics):
    known = {"doc_id": doc, "doc": {"q": "?"}, "target": "a", "arguments": {"gen_args_0": {"arg_0": "?"}}}
    asked = {"resps": [["a"]], "filtered_resps": ["a"], "filter": filtered, "metrics": list(metrics)}
    return known | asked | {"doc_hash": "h", "prompt_hash": "h", "target_hash": "h"} | metrics


FILTERED = [
    harness_sample(doc, filtered, exact_match=value)
    for doc, filtered, value in ((0, "strict", 0.0), (0, "loose", 1.0), (1, "strict", 1.0), (1, "loose", True))
]
RESULTS = {
    "results": {
        "mmlu": {"alias": "mmlu", "acc,none": 0.5, "acc_stderr,none": 0.1},
        "mmlu_law": {"alias": " - law", "acc,none": 0.25, "acc_stderr,none": 0.1},
        "mmlu_art": {"alias": " - art", "acc,none": 0.75, "acc_stderr,none": "N/A"},
        "wiki": {"alias": "wiki", "word_perplexity,none": 12.5, "word_perplexity_stderr,none": "N/A"},
        "gsm8k": {"alias": "gsm8k", "exact_match,strict-match": 0.3, "exact_match,flexible-extract": 0.4},
    },
    "group_subtasks": {"mmlu": ["mmlu_law", "mmlu_art"], "wiki": [], "gsm8k": []},
    "higher_is_better": {"wiki": {"word_perplexity": False}, "gsm8k": {"exact_match": True}},
    "config": {"model": "hf", "model_args": "pretrained=lab/p,dtype=float16"},
}


def helm_record(instance, trial=0, perturbation=None, **stats):
    found = [{"name": {"name": name, "split": "test"}, "count": 1, "sum": v, "mean": v} for name, v in stats.items()]
    known = {"instance_id": instance, "train_trial_index": trial, "stats": found}
    return known | ({"perturbation": perturbation} if perturbation else {})


HELM = [
    helm_record("id1", exact_match=1.0, num_output_tokens=7),
    helm_record("id1", 1, exact_match=0.0),
    helm_record("id2", exact_match=1.0),
    helm_record("id2", perturbation={"name": "typos"}, exact_match=0.0),
]
FOLDER = "mmlu:subject=law,model=lab_p"
LINES = "samples_quiz_2026-01-02T03-04-05.678.jsonl"


def write(folder, name, records):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if name.endswith(".jsonl"):
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    elif name.endswith(".eval"):
        archive(path, *records)
    else:
        path.write_text(json.dumps(records, indent=2))
    return path


LOG = inspect_log("lab/p", SAMPLES, METRICS)
FIRST = ("lab/p", ("quiz",), (1, 2, 3), [[0.5, 0.5, 0.0]])
AVERAGED = ("1 repeated answer averaged with the first", "1 sample without a score left out")


@pytest.mark.parametrize(
    ("name", "records", "options", "said", "found", "notes"),
    [
        ("log.json", LOG, {}, "inspect: metric match", FIRST, AVERAGED),
        (
            "log.eval",
            (LOG, {"header.json": LOG, "summaries.json": SAMPLES}),
            {},
            "inspect: metric match",
            FIRST,
            AVERAGED,
        ),
        (
            "unfinished.eval",
            (LOG, {"_journal/summaries/1.json": SAMPLES[:2], "_journal/summaries/2.json": SAMPLES[2:]}),
            {},
            "inspect: metric match",
            FIRST,
            AVERAGED,
        ),
        (
            "old.eval",
            (LOG, {f"samples/{one['id']}_epoch_{one['epoch']}.json": one for one in SAMPLES}),
            {},
            "inspect: metric match",
            FIRST,
            AVERAGED,
        ),
        (
            "rubric.json",
            inspect_log("lab/p", SEVERAL),
            {"metric": "rubric/style"},
            "inspect: metric rubric/style",
            ("lab/p", ("quiz",), (1, 2), [[3, 1]]),
            (),
        ),
        (
            "metrics.json",
            inspect_log("lab/p", metrics=METRICS),
            {},
            "inspect: metric match/accuracy",
            ("lab/p", ("quiz",), None, [[0.75]]),
            (),
        ),
        (
            f"lab__p/{LINES}",
            [harness_sample(0, acc=1.0), harness_sample(1, acc=0.0)],
            {},
            "lm-harness-samples: metric acc",
            ("lab__p", ("quiz",), ("0", "1"), [[1, 0]]),
            ("model lab__p, task quiz",),
        ),
        (
            f"lab__p/{LINES}",
            FILTERED,
            {"metric": "exact_match/loose"},
            "lm-harness-samples: metric exact_match/loose",
            ("lab__p", ("quiz",), ("0", "1"), [[1, 1]]),
            ("model lab__p, task quiz",),
        ),
        (
            "mine.jsonl",
            [harness_sample(0, acc=1.0, acc_norm=0.5)],
            {"metric": ["f1", "acc_norm"], "model": "p", "task": "t"},
            "lm-harness-samples: metric acc_norm",
            ("p", ("t",), ("0",), [[0.5]]),
            ("model p, task t",),
        ),
        (
            "results_2026.json",
            RESULTS,
            {"metric": "acc,word_perplexity,exact_match/flexible-extract"},
            "lm-harness-results: metric acc, word_perplexity, exact_match/flexible-extract",
            ("lab/p", ("mmlu_law", "mmlu_art", "wiki", "gsm8k"), None, [[0.25, 0.75, -12.5, 0.4]]),
            ("1 group of tasks left out", "lower is better, so signs are changed: word_perplexity of wiki"),
        ),
        (
            f"{FOLDER}/per_instance_stats.json",
            HELM,
            {"metric": "exact_match"},
            "helm: metric exact_match",
            ("lab_p", ("mmlu:subject=law",), ("id1", "id2"), [[0.5, 1]]),
            (
                "1 repeated answer averaged with the first",
                "model lab_p, task mmlu:subject=law",
                "1 record of perturbed instances left out",
            ),
        ),
    ],
)
def test_scores(name, records, options, said, found, notes, tmp_path):
    data = placet.read(write(tmp_path, name, records), **options)
    model, tasks, questions, values = found
    assert isinstance(data, Scores)
    assert (data.items, data.tasks, data.questions) == ((model,), tasks, questions)
    np.testing.assert_array_equal(data.value, values)
    assert data.notes == (f"read as {said}", *notes)


@pytest.mark.parametrize(
    ("name", "records", "options", "said"),
    [
        (
            "rubric.json",
            inspect_log("p", SEVERAL),
            {},
            "3 metrics (match, rubric/style, rubric/facts), and one of them is read; "
            "choose it: --read metric=match or --read metric=rubric/style",
        ),
        ("log.json", LOG, {"metric": "f1"}, "task 'quiz' has none of the metrics ['f1']; it has match"),
        ("empty.json", inspect_log("p"), {}, "no scores in this log"),
        ("nobody.json", inspect_log(None, SAMPLES), {}, "the log does not name its model or its task"),
        ("mine.jsonl", [harness_sample(0, acc=1.0)], {}, "add --read model=NAME"),
        ("mine.jsonl", [harness_sample(0, acc=1.0)], {"model": "p"}, "add --read task=NAME"),
        (f"p/{LINES}", [harness_sample(0, acc=1.0), harness_sample(None, acc=1.0)], {}, ":2: the sample has no doc_id"),
        ("results.json", RESULTS, {}, "task 'gsm8k' has 2 metrics (exact_match/strict-match, exact_match/flexible"),
        ("results.json", RESULTS | {"config": {}}, {}, "add --read model=NAME"),
        (f"{FOLDER}/per_instance_stats.json", HELM, {}, "2 metrics (exact_match, num_output_tokens)"),
        ("run/per_instance_stats.json", HELM, {"metric": "exact_match"}, "add --read model=NAME"),
    ],
)
def test_what_is_not_said_or_said_twice_is_asked_for(name, records, options, said, tmp_path):
    path = write(tmp_path, name, records)
    with pytest.raises(DataError) as error:
        placet.read(path, **options)
    assert said in str(error.value)


def test_a_damaged_archive_is_refused(tmp_path):
    path = write(tmp_path, "log.eval", (LOG, {"header.json": LOG}))
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("summaries.json", '[{"id": 1')
    with pytest.raises(DataError, match="a damaged log of Inspect"):
        placet.read(path)


def test_logs_of_several_models_are_ranked_together(tmp_path, placet_command):
    """Three models on the same eight questions, one log each: the order of their means."""
    for model, right in (("p", 2), ("q", 7), ("r", 4)):
        samples = [graded(k, match="C" if k < right else "I") for k in range(8)]
        write(tmp_path, f"{model}.eval", (inspect_log(model), {"summaries.json": samples}))
        write(tmp_path, f"{model}/{LINES}", [harness_sample(k, acc=float(k < right)) for k in range(8)])
    for files in (sorted(tmp_path.glob("*.eval")), sorted(tmp_path.glob(f"*/{LINES}"))):
        out = placet_command("aggregate", *files, code=0)[0]
        assert [line.split("\t")[0] for line in out.splitlines()[1:4]] == ["q", "r", "p"]
