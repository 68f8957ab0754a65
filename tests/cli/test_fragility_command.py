"""``placet fragility``: words on stderr, the removed votes on stdout."""

import json

import pytest

ROWS = [("x", "y", "model_a", "ann")] * 6 + [("y", "x", "model_a", "bob")] * 3 + [("y", "z", "model_a", "cat")] * 4


@pytest.fixture
def votes(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("\n".join(",".join(row) for row in [("model_a", "model_b", "winner", "voter"), *ROWS]) + "\n")
    return path


def test_the_votes_that_decide_are_listed(placet_command, votes):
    out, err = placet_command("fragility", votes)
    assert "x is first: 3 of 13 votes decide it" in err
    assert out.splitlines()[:2] == ["claim\titem\tagainst\toutcome\tremoved\tof", "x is first\tx\ty\twin\t3\t6"]


def test_as_json_by_voter_and_to_a_file(placet_command, votes, tmp_path):
    out, err = placet_command("fragility", votes, "--agent", "voter", "--by", "voter", "--json")
    found = json.loads(out)
    assert found["unit"] == "voter"
    assert found["claims"][0]["removed"] == [{"voter": "ann", "votes": 6.0}]
    assert "1 of 3 voters decides it" in err
    placet_command(
        "fragility", votes, "--method", "borda", "--goal", "top", "--top", "2", "--out", tmp_path / "few.csv"
    )
    assert (tmp_path / "few.csv").read_text().startswith("claim,item,against,outcome,removed,of")


def test_one_tier_has_no_border(placet_command, votes):
    out, err = placet_command("fragility", votes, "--goal", "tiers")
    assert out.strip() == "claim"
    assert "a single tier" in err


def test_who_pulls_what(placet_command, votes):
    out, err = placet_command("fragility", votes, "--influence", "--agent", "voter", "--method", "borda")
    assert out.splitlines()[0].split("\t") == ["voter", "count", "up", "up_by", "down", "down_by", "group"]
    assert out.splitlines()[1].split("\t")[:3] == ["ann", "6.0", "x"]
    assert "ann pulls x up by" in err
    assert "no two voters decided 15 common pairs" in err
    out, _ = placet_command("fragility", votes, "--influence", "--agent", "voter", "--json")
    found = json.loads(out)
    assert sorted((row["voter"], row["count"], row["up"]) for row in found["voters"]) == [
        ("ann", 6.0, "x"),
        ("bob", 3.0, "y"),
        ("cat", 4.0, "y"),
    ]
    assert found["groups"] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--by", "voter"], "do not say who voted"),
        (["--goal", "top", "--top", "3"], "the best 3 of 3 items"),
        (["--method", "no"], "method 'no' is unknown"),
        (["--qid", "x"], "has no option --qid"),
        (["--method", "irv"], "needs whole ballots"),
    ],
)
def test_what_cannot_be_asked_ends_with_2(placet_command, votes, words, said):
    _, err = placet_command("fragility", votes, *words, code=2)
    assert said in err
