"""Every format is found by its content, and every reader has a row in the documentation."""

import json
import re
from pathlib import Path

import pytest
from test_evals import PAIRS, PREFERRED, RANKED, RATED, SHOWN, answer, asked, by_user, lines, single
from test_harness_logs import FOLDER, HELM, LINES, LOG, RESULTS, harness_sample
from test_surveys import ASKED, QUALTRICS, WIDE

import placet
from placet import io as pio
from placet.io.formats import FORMATS, choose_format, formats_with
from placet.io.tables.tables import open_head

FILES = {
    "preflib": ("x.txt", "# DATA TYPE: soc\n# NUMBER ALTERNATIVES: 2\n2: 1,2\n"),
    "letor-agg": ("x.txt", "1 qid:7 1:3 2:NULL #docid = a\n0 qid:7 1:1 2:1 #docid = b\n"),
    "letor": ("x.txt", "2 qid:10 1:0.5 2:1\n0 qid:10 1:0.25 2:3\n"),
    "xmc": ("x.txt", "2 3 2\n0,1 0:0.5 2:1\n1 1:2\n"),
    "trec-run": ("x.txt", "301 Q0 d1 1 2.5 me\n301 Q0 d2 2 1.5 me\n"),
    "qrels": ("x.txt", "301 0 d1 1\n301 0 d2 0\n"),
    "battles": ("x.csv", "model_a,model_b,winner\nx,y,model_a\ny,z,tie\n"),
    "games": ("x.csv", "home,away,home_score,away_score\nx,y,2,1\ny,z,0,0\n"),
    "ratings": ("x.csv", "user,item,rating\nu,a,3\nu,b,5\n"),
    "scores": ("x.csv", "model,math,law\nx,1,2\ny,2,1\n"),
    "features": ("x.csv", "qid,label,f\n1,1,2\n1,0,1\n"),
    "best-worst": ("x.csv", WIDE),
    "qualtrics": ("x.csv", QUALTRICS),
    "surveyjs": ("x.json", json.dumps(ASKED)),
    "every-eval-ever": ("x.jsonl", lines([answer("x", 1, 1.0), answer("y", 1, 0.0)])),
    "fastchat-pairs": ("x.jsonl", lines(PAIRS)),
    "fastchat-scores": ("x.jsonl", lines([single(81, "x", 8), single(81, "y", 7)])),
    "open-webui": ("x.json", json.dumps(RATED)),
    "alpaca-eval": ("x.json", json.dumps(PREFERRED)),
    "inspect": ("x.json", json.dumps(LOG)),
    "lm-harness-samples": (f"lab__p/{LINES}", lines([harness_sample(0, acc=1.0), harness_sample(1, acc=0.0)])),
    "lm-harness-results": ("results_x.json", json.dumps(RESULTS)),
    "helm": (f"{FOLDER}/per_instance_stats.json", json.dumps(HELM)),
    "label-studio": ("x.json", json.dumps(SHOWN)),
    "argilla": ("x.json", json.dumps([asked(by_user("u", RANKED))])),
    "preferences": ("x.csv", "list,over,under\n1,x,y\n1,y,z\n"),
    "ballots": ("x.txt", "12: A > B = C\nB > A\n"),
}
"""Format -> the name and the text of a file in it."""

NAMED = {"games"}
"""Formats that are read only if they are asked for: the same tables are votes."""
CHOSEN = {
    "lm-harness-results": {"metric": "acc,word_perplexity,exact_match/strict-match"},
    "helm": {"metric": "exact_match"},
}
"""Options without which a file is refused."""


def test_every_format_has_a_file_here():
    assert list(FILES) == list(FORMATS)


@pytest.mark.parametrize("name", FILES)
def test_a_format_is_found_by_its_content(name, tmp_path):
    path = tmp_path / FILES[name][0]
    path.parent.mkdir(exist_ok=True)
    path.write_text(FILES[name][1])
    options = CHOSEN.get(name, {})
    with open_head([str(path)], "raise", options) as head:
        found, _ = choose_format(head, formats_with(options, name if name in NAMED else None))
    assert found == name
    data = placet.read(path, name if name in NAMED else None, **options)
    assert isinstance(data, FORMATS[name].kind) or name == "preferences"


def test_every_reader_has_a_row_in_the_documentation():
    page = Path(__file__).parents[2] / "docs/howto/formats.md"
    lines = [line.partition(" | ")[0] for line in page.read_text().splitlines() if line.startswith("| `read")]
    rows = {name for line in lines for name in re.findall(r"`(read\w*)`", line)}
    of_data = {one.read.__name__ for one in FORMATS.values()}
    others = {"read_choices", "read_label_orders", "read_labeled_texts"}
    assert rows == of_data | others | {"read"}
    assert of_data | others <= set(pio.__all__)
