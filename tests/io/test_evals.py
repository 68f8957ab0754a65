"""Logs of evaluations, written by us after the schema of each project, found by their content."""

import json

import numpy as np
import pytest

import placet
from placet import Comparisons, DataError
from placet.data.scores import Scores


def eee(model, lower=False, **scores):
    results = [
        {
            "evaluation_name": name,
            "source_data": {"dataset_name": name},
            "metric_config": {"lower_is_better": lower and name == "errors"},
            "score_details": {"score": score},
        }
        for name, score in scores.items()
    ]
    head = {
        "schema_version": "0.2.1",
        "evaluation_id": f"x/{model}/1",
        "retrieved_timestamp": "1",
        "source_metadata": {},
    }
    return head | {
        "model_info": {"name": model, "id": f"lab/{model}"},
        "eval_library": {},
        "evaluation_results": results,
    }


def answer(model, sample, score):
    return {
        "schema_version": "0.2.1",
        "evaluation_id": "e",
        "model_id": model,
        "evaluation_name": "gsm",
        "sample_id": sample,
        "interaction_type": "single_turn",
        "input": {},
        "answer_attribution": [],
        "evaluation": {"score": score, "is_correct": score == 1},
    }


def pair(question, first, second, one, two):
    return {
        "question_id": question,
        "model_1": first,
        "model_2": second,
        "g1_winner": one,
        "g2_winner": two,
        "judge": ["gpt-4", "pair-v2"],
        "g1_judgment": "...",
        "g2_judgment": "...",
        "turn": 1,
        "tstamp": 1.0,
    }


def single(question, model, score, turn=1):
    return {
        "question_id": question,
        "model": model,
        "judge": ["gpt-4", "single-v1"],
        "user_prompt": "",
        "judgment": "[[8]]",
        "score": score,
        "turn": turn,
        "tstamp": 1.0,
    }


def feedback(user, model, rating, siblings):
    return {
        "id": "f",
        "user_id": user,
        "version": 0,
        "type": "rating",
        "data": {"rating": rating, "model_id": model, "sibling_model_ids": siblings, "reason": ""},
        "meta": {"arena": True},
        "snapshot": {"chat": {}},
        "created_at": 1,
        "updated_at": 1,
    }


PAIRS = [
    pair(81, "x", "y", "model_1", "model_1"),
    pair(82, "y", "z", "tie", "model_2"),
    pair(83, "x", "z", "error", "model_1"),
]
RATED = [feedback("u", "x", 1, ["y", "z"]), feedback("v", "y", "-1", ["z"]), feedback("v", "x", 1, [])]


def annotation(first, second, preference, lengths=(3, 5)):
    return {
        "instruction": "Name an actor.",
        "output_1": "a" * lengths[0],
        "generator_1": first,
        "dataset": "helpful_base",
        "output_2": "b" * lengths[1],
        "generator_2": second,
        "annotator": "weighted_judge",
        "preference": preference,
        "price_per_example": 0.01,
    }


PREFERRED = [
    annotation("base", "x", 1.25),
    annotation("base", "x", 2.0),
    annotation("base", "y", 1),
    annotation("base", "y", 1.5),
    annotation("base", "y", 0),
    annotation("base", "y", None),
]


def task(person, selected, skipped=False, tags="text1,text2", **data):
    result = [{"id": "r", "type": "pairwise", "from_name": "pw", "to_name": tags, "value": {"selected": selected}}]
    annotation = {"id": 1, "completed_by": person, "was_cancelled": skipped, "result": result if selected else []}
    return {"id": 1, "data": data, "annotations": [annotation], "predictions": []}


SHOWN = [
    task(7, "left", model_a="x", model_b="y", text1="longer", text2="short"),
    task({"id": 8, "email": "u@x.org"}, "right", model_a="x", model_b="z", text1="a", text2="abc"),
    task(7, None, model_a="x", model_b="z", text1="a", text2="abc"),
    task(7, "left", True, model_a="x", model_b="z", text1="a", text2="abc"),
]


def lines(records):
    return "\n".join(map(json.dumps, records)) + "\n"


def wins(votes):
    found = {}
    for i, j, won, lost, tied in zip(votes.i, votes.j, votes.wins_i, votes.wins_j, votes.ties):
        for a, b, n in ((i, j, won), (j, i, lost)):
            if n:
                found[votes.items[a], votes.items[b]] = found.get((votes.items[a], votes.items[b]), 0) + n
        if tied:
            found["tie"] = found.get("tie", 0) + tied
    return found


@pytest.mark.parametrize(
    ("name", "text", "won", "agents", "notes"),
    [
        (
            "gpt-4_pair.jsonl",
            lines(PAIRS),
            {("x", "y"): 2, ("z", "y"): 1, ("x", "z"): 1, "tie": 1},
            ("gpt-4",),
            ("1 judgment without a verdict left out",),
        ),
        (
            "feedback.json",
            json.dumps(RATED),
            {("x", "y"): 1, ("x", "z"): 1, ("z", "y"): 1},
            ("u", "v"),
            ("1 rating of an answer shown alone left out",),
        ),
        (
            "annotations.json",
            json.dumps(PREFERRED),
            {("base", "x"): 0.75, ("x", "base"): 1.25, ("base", "y"): 1, "tie": 2},
            ("weighted_judge",),
            ("1 vote split by the chance of the preference", "1 annotation without a preference left out"),
        ),
        (
            "project-1.json",
            json.dumps(SHOWN),
            {("x", "y"): 1, ("z", "x"): 1},
            ("7", "u@x.org"),
            ("2 annotations without a selection left out",),
        ),
        (
            "images.json",
            json.dumps([task(7, "right", text1="1.png", text2="2.png")]),
            {("2.png", "1.png"): 1},
            ("7",),
            (),
        ),
    ],
)
def test_votes(name, text, won, agents, notes, tmp_path):
    (tmp_path / name).write_text(text)
    votes = placet.read(tmp_path / name)
    assert isinstance(votes, Comparisons)
    assert wins(votes) == won
    assert votes.agents == agents
    assert votes.notes[1:] == notes


def test_who_was_seen_first_is_kept_where_asked(tmp_path):
    (tmp_path / "p.jsonl").write_text(lines(PAIRS[:1]))
    votes = placet.read(tmp_path / "p.jsonl", ordered=True)
    seen = {(votes.items[i], votes.items[j]): won for i, j, won in zip(votes.i, votes.j, votes.wins_i)}
    assert votes.ordered
    assert seen == {("x", "y"): 1, ("y", "x"): 0}


def test_the_lengths_of_outputs_are_controls(tmp_path, placet_command):
    """The judge takes the longer output in 9 of 10 pairs, and x writes long ones: x leads, until length is controlled."""
    rows = [annotation("base", "x", 1 if k == 0 else 2, (10, 30)) for k in range(10)] * 4
    rows += [annotation("base", "x", 2 if k == 0 else 1, (30, 10)) for k in range(10)]
    (tmp_path / "annotations.json").write_text(json.dumps(rows))
    votes = placet.read(tmp_path / "annotations.json", control="length")
    assert votes.controls == ("length",)
    assert sorted({float(row[0]) for row in votes.control}) == [-20, 20]
    said = placet_command("aggregate", tmp_path / "annotations.json", code=0)[0]
    plain = {line.split("\t")[0]: float(line.split("\t")[1]) for line in said.splitlines()[1:3]}
    said = placet_command("aggregate", tmp_path / "annotations.json", "--control", "length", code=0)[0]
    fair = {line.split("\t")[0]: float(line.split("\t")[1]) for line in said.splitlines()[1:3]}
    assert plain["x"] - plain["base"] > 1
    assert abs(fair["x"] - fair["base"]) < 0.1


def test_sides_of_label_studio_may_be_named_and_are_places(tmp_path):
    rows = [task(7, "left", one="x", two="y", text1="longer", text2="short")]
    (tmp_path / "p.json").write_text(json.dumps(rows))
    votes = placet.read(tmp_path / "p.json", left="one", right="two", control="length", ordered=True)
    assert (votes.items, votes.ordered, votes.controls) == (("x", "y"), True, ("length",))
    assert votes.control.tolist() == [[1.0]]
    with pytest.raises(ValueError, match="give both, or neither"):
        placet.read(tmp_path / "p.json", left="one")


RANKED = [{"value": "reply-1", "rank": 2}, {"value": "reply-2", "rank": 1}, {"value": "reply-3", "rank": 2}]


def asked(responses, **metadata):
    known = {"id": "r", "fields": {"prompt": "?"}, "metadata": metadata, "suggestions": {}}
    return known | {"responses": responses, "vectors": {}, "status": "completed"}


def by_user(user, value, status="submitted", question="best"):
    return [{"user_id": user, "status": status, "values": {question: {"value": value}, "why": {"value": "short"}}}]


@pytest.mark.parametrize(
    ("records", "options", "orders", "agents", "notes"),
    [
        (
            [asked({"best": [{"value": RANKED, "user_id": "u"}], "why": [{"value": "short", "user_id": "u"}]})],
            {},
            [[("reply-2",), ("reply-1", "reply-3")]],
            ("u",),
            (),
        ),
        (
            [
                asked(by_user("u", RANKED[:2]), **{"reply-1-model": "p", "reply-2-model": "q"}),
                asked(by_user("v", RANKED[:2]), **{"reply-1-model": "q", "reply-2-model": "r"}),
                asked(by_user("v", RANKED[:2], "draft"), **{"reply-1-model": "q", "reply-2-model": "r"}),
            ],
            {"names": "{}-model"},
            [[("q",), ("p",)], [("r",), ("q",)]],
            ("u", "v"),
            ("1 answer not submitted left out",),
        ),
        (
            [asked(by_user("u", RANKED) + by_user("u", RANKED[:1], question="worst"))],
            {"question": "worst"},
            [[("reply-1",)]],
            ("u",),
            (),
        ),
    ],
)
def test_ballots_of_argilla(records, options, orders, agents, notes, tmp_path):
    (tmp_path / "records.json").write_text(json.dumps(records))
    ballots = placet.read(tmp_path / "records.json", **options)
    assert list(ballots) == orders
    assert ballots.agents == agents
    assert ballots.notes == (f"read as argilla: question {options.get('question', 'best')}, the user as agent", *notes)


@pytest.mark.parametrize(
    ("responses", "options", "said"),
    [
        ({"best": [{"value": ["reply-1", "reply-2"], "user_id": "u"}]}, {}, "answers to 'best' have no ranks"),
        (by_user("u", RANKED) + by_user("v", [{"value": "reply-1"}]), {}, "answers to 'best' have no ranks"),
        (by_user("u", RANKED) + by_user("u", RANKED, question="worst"), {}, "one of ['best', 'worst']"),
        (by_user("u", RANKED), {"names": "{}-model"}, ":1: no metadata or field '{}-model' for a value"),
        (by_user("u", "reply-1"), {}, "no answers to a ranking question in this log"),
    ],
)
def test_answers_without_ranks_or_names_are_refused(responses, options, said, tmp_path):
    """The order in which Argilla 2 writes values without ranks is not the answer (argilla#5712)."""
    (tmp_path / "records.json").write_text(json.dumps([asked(responses)]))
    with pytest.raises(DataError) as error:
        placet.read(tmp_path / "records.json", **options)
    assert said in str(error.value)


def test_scores_of_every_eval_ever(tmp_path, placet_command):
    for model, gsm, errors in (("p", 0.5, 2.0), ("q", 0.75, 1.0), ("r", 0.25, 3.0)):
        (tmp_path / f"{model}.json").write_text(json.dumps(eee(model, lower=True, gsm=gsm, errors=errors)))
    data = placet.read(str(tmp_path / "*.json"))
    assert isinstance(data, Scores)
    assert data.items == ("lab/p", "lab/q", "lab/r")
    np.testing.assert_array_equal(data.value, [[0.5, -2.0], [0.75, -1.0], [0.25, -3.0]])
    assert data.notes == ("read as every-eval-ever", "lower is better, so signs are changed: errors")
    out = placet_command("aggregate", *sorted(tmp_path.glob("*.json")), code=0)[0]
    assert out.splitlines()[1].startswith("lab/q\t")


def test_answers_are_questions_of_their_task(tmp_path):
    rows = [answer("p", "1", 1), answer("p", "2", 0), answer("q", "2", 1)]
    (tmp_path / "a.jsonl").write_text(lines(rows))
    data = placet.read(tmp_path / "a.jsonl")
    assert (data.items, data.tasks, data.questions) == (("p", "q"), ("gsm",), ("1", "2"))
    np.testing.assert_array_equal(data.value, [[1, 0], [np.nan, 1]])


def test_scores_of_mt_bench(tmp_path):
    rows = [single(81, "p", 8), single(81, "p", 6, 2), single(81, "q", 9.5), single(82, "q", -1)]
    (tmp_path / "gpt-4_single.jsonl").write_text(lines(rows))
    data = placet.read(tmp_path / "gpt-4_single.jsonl")
    assert (data.items, data.tasks, data.questions) == (("p", "q"), ("turn 1", "turn 2"), (81, 81))
    np.testing.assert_array_equal(data.value, [[8, 6], [9.5, np.nan]])
    assert data.notes[1] == "1 judgment without a score left out"


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([PAIRS[0], pair(1, "x", "y", "A", "tie")], ":2: g1_winner 'A' is not model_1, model_2 or tie"),
        ([RATED[0], feedback("u", "x", 5, ["y"])], ":2: rating '5' is not 1 or -1"),
        ([RATED[2]], "no ratings of answers shown beside others in this log"),
        ([PREFERRED[0], annotation("base", "x", 3)], ":2: preference '3' is not between 1 and 2"),
        ([PREFERRED[0], annotation("base", None, 1)], ":2: generator_1 or generator_2 is missing"),
        ([PREFERRED[5]], "no preferences in this log"),
        ([SHOWN[0], task(7, "middle", model_a="x", model_b="y")], ":2: selected 'middle' of ['x', 'y'] is not left or"),
        ([SHOWN[2], SHOWN[0] | {"annotations": []}, task(7, "left", skipped=True)], "no selections out of two"),
        ([task(7, "left", prompt="?", one="1", two="2")], 'such as left="prompt" right="one"'),
        ([single(1, "p", 8), single(1, "q", None)], ":2: a model, a question or a score is missing"),
        ([answer("p", "1", 1), answer(None, "2", 0)], ":2: a model, an evaluation or a score is missing"),
    ],
)
def test_what_is_wrong_is_named_by_its_line(records, said, tmp_path):
    (tmp_path / "x.jsonl").write_text(lines(records))
    with pytest.raises(DataError) as error:
        placet.read(tmp_path / "x.jsonl")
    assert said in str(error.value)


def test_votes_with_the_usual_columns_are_still_tables(tmp_path):
    (tmp_path / "v.jsonl").write_text('{"model_a": "x", "model_b": "y", "winner": "model_a", "judge": "u"}\n' * 2)
    assert placet.read(tmp_path / "v.jsonl").notes[0].startswith("read as votes: model_a, model_b, winner")


def chat(order, lengths, rated):
    """A snapshot of Open WebUI: the answers of models in this order, with texts of these lengths."""
    answers = {f"m{k}": {"role": "assistant", "parentId": "q", "model": model, "content": "x" * n}
               for k, (model, n) in enumerate(zip(order, lengths))}  # fmt: skip
    messages = {"q": {"role": "user", "content": "?", "childrenIds": list(answers)}, **answers}
    meta = {"message_id": f"m{order.index(rated)}"}
    return {"meta": meta, "snapshot": {"chat": {"chat": {"history": {"messages": messages}}}}}


def test_open_webui_knows_lengths_and_order_where_it_has_a_snapshot(tmp_path):
    rating = lambda value, model, others: {"rating": value, "model_id": model, "sibling_model_ids": others}  # noqa: E731
    known = {"user_id": "u", "type": "rating"}
    rows = [
        known | {"data": rating(1, "x", ["y", "z"])} | chat(["y", "x", "z"], [10, 30, 5], "x"),
        known | {"data": rating(-1, "y", ["x"])} | chat(["x", "y"], [1, 2], "y"),
    ]
    (tmp_path / "f.json").write_text(json.dumps(rows))
    votes = placet.read(tmp_path / "f.json", control="length", ordered=True)
    first = {(votes.items[i], votes.items[j]): (won, lost, gap) for i, j, won, lost, (gap,) in
             zip(votes.i, votes.j, votes.wins_i, votes.wins_j, votes.control)}  # fmt: skip
    assert first == {("y", "x"): (0, 1, -20), ("x", "z"): (1, 0, 25), ("x", "y"): (1, 0, -1)}
    assert wins(placet.read(tmp_path / "f.json")) == wins(votes)
    del rows[1]["snapshot"]
    (tmp_path / "g.json").write_text(json.dumps(rows))
    with pytest.raises(DataError, match="no snapshot of the answers of y and x"):
        placet.read(tmp_path / "g.json", control="length")


def test_argilla_takes_lengths_and_positions_along(tmp_path):
    record = asked(by_user("u", RANKED), **{"reply-1-model": "p", "reply-2-model": "q", "reply-3-model": "r"})
    record["fields"] |= {"reply-1": "a", "reply-2": "bbb", "reply-3": "cc"}
    (tmp_path / "a.json").write_text(json.dumps([record]))
    ballots = placet.read(tmp_path / "a.json", names="{}-model", control="length,position")
    assert list(ballots) == list(placet.read(tmp_path / "a.json", names="{}-model"))
    assert (ballots.controls, ballots.agents) == (("length", "position"), ("u",))
    beside = {ballots.items[k]: row for k, row in zip(ballots.item, ballots.control.tolist())}
    assert beside == {"p": [1.0, 1.0], "q": [3.0, 2.0], "r": [2.0, 3.0]}
    del record["fields"]["reply-3"]
    (tmp_path / "b.json").write_text(json.dumps([record]))
    with pytest.raises(DataError, match="has no field with its text"):
        placet.read(tmp_path / "b.json", control="length")


def test_people_and_judges_of_a_log_are_sources(tmp_path, placet_command):
    rows = []
    for k in range(12):
        shown = {"model_a": "xyz"[k % 3], "model_b": "xyz"[(k + 1) % 3]}
        one = task(k % 2, ("left", "right", "left")[k % 3], **shown)
        one["predictions"] = [
            {"model_version": "gpt-4", "result": task(0, "left", **shown)["annotations"][0]["result"]}
        ]
        rows.append(one)
    (tmp_path / "p.json").write_text(json.dumps(rows))
    found = placet.io.read_slices(tmp_path / "p.json", "judge")
    assert list(found) == ["human", "gpt-4"]
    assert wins(found["human"]) == wins(placet.read(tmp_path / "p.json"))
    assert sum(wins(found["gpt-4"]).values()) == 12
    assert list(placet.io.read_slices(tmp_path / "p.json", "agent")) == ["0", "1"]
    board = placet_command("aggregate", tmp_path / "p.json", "--source", "judge", "--target", "human")[0]
    joint = placet.consensus(placet.Sources(found, target="human"))
    assert [line.split("\t")[0] for line in board.splitlines()[1:4]] == joint.ranking
    said = placet_command("aggregate", tmp_path / "p.json", "--source", "day", code=2)[1]
    assert "taken apart by who judged, judge, agent, not by 'day'" in said


def test_judges_of_every_log_of_votes_are_sources(tmp_path):
    judged = [dict(one, judge=[judge, "x"]) for judge in ("gpt-4", "claude") for one in PAIRS]
    (tmp_path / "pair.jsonl").write_text(lines(judged))
    annotated = [dict(one, annotator=judge) for judge in ("j", "k") for one in PREFERRED]
    (tmp_path / "annotations.json").write_text(json.dumps(annotated))
    for name, judges in (("pair.jsonl", ["gpt-4", "claude"]), ("annotations.json", ["j", "k"])):
        found = placet.io.read_slices(tmp_path / name, "judge")
        assert list(found) == judges
        assert wins(found[judges[0]]) == wins(found[judges[1]])
    suggested = asked(by_user("u", RANKED))
    suggested["suggestions"] = {"best": {"value": RANKED[:2], "agent": "gpt-4"}}
    (tmp_path / "a.json").write_text(json.dumps([suggested]))
    found = placet.io.read_slices(tmp_path / "a.json", "judge")
    assert [list(part) for part in found.values()] == [
        [[("reply-2",), ("reply-1", "reply-3")]],
        [[("reply-2",), ("reply-1",)]],
    ]
    (tmp_path / "s.jsonl").write_text(lines([single(81, "x", 8)]))
    with pytest.raises(DataError, match="fastchat-scores logs hold scores"):
        placet.io.read_slices(tmp_path / "s.jsonl", "judge")
