"""Options of readers of the wrong kind, at every reader: an error in words, never a traceback."""

import inspect

import pytest

import placet
from placet.io import FORMATS

FILES = {
    "battles": ("v.csv", "a,b,winner\nx,y,a\ny,z,a\n"),
    "games": ("g.csv", "home,away,home_score,away_score\nx,y,2,1\ny,z,0,0\n"),
    "ratings": ("r.csv", "user,item,rating\nu,x,3\nu,y,2\n"),
    "features": ("f.csv", "qid,label,f1\n1,1,0.5\n1,0,0.2\n"),
    "scores": ("s.csv", "item,task,score\nx,t,1\ny,t,2\n"),
    "preferences": ("p.csv", "ballot,better,worse\n1,x,y\n"),
    "best-worst": ("m.csv", "item1,item2,best,worst\nx,y,x,y\n"),
    "qualtrics": ("e.csv", "Q1_1,Q1_2\nx,y\n" + '"{""ImportId"":""1""}","{""ImportId"":""2""}"\n' + "1,2\n2,1\n"),
    "surveyjs": ("j.json", '[{"q": ["x", "y"]}, {"q": ["y", "x"]}]'),
    "every-eval-ever": (
        "e.json",
        '{"schema_version": "0.2", "model_info": {"id": "x"}, "evaluation_results": '
        '[{"evaluation_name": "t", "score_details": {"score": 1}}]}',
    ),
    "fastchat-pairs": ("w.jsonl", '{"model_1": "x", "model_2": "y", "g1_winner": "tie", "g2_winner": "tie"}'),
    "fastchat-scores": (
        "s.jsonl",
        '{"question_id": 1, "model": "x", "judge": ["u"], "judgment": "", "score": 1, "turn": 1}',
    ),
    "open-webui": (
        "o.json",
        '[{"user_id": "u", "type": "rating", "data": {"rating": 1, "model_id": "x", "sibling_model_ids": ["y"]}}]',
    ),
    "alpaca-eval": (
        "a.json",
        '[{"output_1": "", "generator_1": "x", "output_2": "z", "generator_2": "y", "preference": 1.5}]',
    ),
    "inspect": (
        "i.json",
        '{"version": 2, "status": "success", "eval": {"run_id": "r", "task": "t", "model": "x"}, '
        '"samples": [{"id": 1, "scores": {"match": {"value": "C"}}}]}',
    ),
    "lm-harness-samples": (
        "samples_t_2026-01-01T00-00-00.0.jsonl",
        '{"doc_id": 0, "doc": {}, "target": "", "arguments": {}, "resps": [], "filtered_resps": [], "acc": 1.0}',
    ),
    "lm-harness-results": (
        "r.json",
        '{"results": {"t": {"alias": "t", "acc,none": 0.5, "acc_stderr,none": 0.1}}, "model_name": "x"}',
    ),
    "helm": (
        "per_instance_stats.json",
        '[{"instance_id": "1", "train_trial_index": 0, "stats": [{"name": {"name": "em"}, "mean": 1}]}]',
    ),
    "label-studio": (
        "l.json",
        '[{"data": {"text1": "x", "text2": "y"}, "annotations": [{"completed_by": 1, "result": '
        '[{"type": "pairwise", "to_name": "text1,text2", "value": {"selected": "left"}}]}]}]',
    ),
    "argilla": (
        "g.json",
        '[{"fields": {}, "metadata": {}, "suggestions": {}, "responses": {"q": [{"user_id": "u", "value": '
        '[{"value": "x", "rank": 1}, {"value": "y", "rank": 2}]}]}}]',
    ),
    "ballots": ("b.csv", "ballot,item,rank\n1,x,1\n1,y,2\n"),
    "letor": ("x.letor", "1 qid:1 1:0.5\n0 qid:1 1:0.2\n"),
    "letor-agg": ("a.agg", "1 qid:1 1:1 2:NULL #docid = d\n"),
    "qrels": ("q.qrels", "1 0 d 1\n"),
    "trec-run": ("t.run", "1 Q0 d 1 0.5 x\n"),
    "xmc": ("m.xmc", "1 3 2\n0 0:1.0\n"),
    "preflib": ("o.soc", "# NUMBER ALTERNATIVES: 2\n# ALTERNATIVE NAME 1: x\n# ALTERNATIVE NAME 2: y\n1: 1,2\n"),
}
ODD = (["a"], ["a", "b"], [], {"a": 1}, 3, 1.5, True, [["a"]], ("x",))


@pytest.mark.parametrize("format", FORMATS)
def test_any_value_for_any_option_is_read_or_refused_in_words(format, tmp_path):
    name, text = FILES[format]
    (tmp_path / name).write_text(text)
    refused = 0
    for option in inspect.signature(FORMATS[format].read).parameters:
        for value in ODD if option not in ("source", "format") else ():
            for given in ({}, {"format": format}):
                try:
                    placet.read(tmp_path / name, **given, **{option: value})
                except ValueError:
                    refused += 1
            try:
                FORMATS[format].read(tmp_path / name, **{option: value})
            except ValueError:
                refused += 1
    assert refused > 0


def test_a_list_where_a_name_is_wanted(tmp_path):
    (tmp_path / "v.csv").write_text(FILES["battles"][1])
    with pytest.raises(ValueError, match=r"parameter a of 'read_battles' must be text or none, not \['a'\]"):
        placet.read_battles(tmp_path / "v.csv", a=["a"])
    with pytest.raises(ValueError, match="names of columns must be texts, not 3"):
        placet.read_battles(tmp_path / "v.csv", control=[3])
    assert placet.read_battles(tmp_path / "v.csv", winner=["winner"]).n_items == 3


def test_a_deeply_nested_checkpoint(tmp_path):
    votes = placet.Comparisons.from_battles("ab", "bc", ["a", "a"])
    for text in ("[" * 100_000, '{"scores": ' + "[" * 100_000, '{"scores": [[1, {}]]}', '{"scores": 3}', "[]"):
        (tmp_path / "deep.json").write_text(text)
        with pytest.raises(placet.DataError, match=r"deep.json: not a checkpoint"):
            placet.consensus(votes, "plackett-luce", start=tmp_path / "deep.json")
