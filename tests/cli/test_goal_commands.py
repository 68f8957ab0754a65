"""``placet enough``, ``placet next``, ``placet plan``: the same answers as in Python."""

import json

import pytest

import placet


@pytest.fixture
def votes(tmp_path):
    rows = [("ant", "bee", "model_a")] * 40 + [("bee", "cat", "model_a")] * 4 + [("cat", "bee", "model_a")] * 3
    path = tmp_path / "votes.csv"
    path.write_text("\n".join(",".join(row) for row in [("model_a", "model_b", "winner"), *rows]) + "\n")
    return path


def test_enough_says_what_is_settled(placet_command, votes, tmp_path):
    out, _ = placet_command("enough", votes, "--goal", "above", "--item", "ant,bee")
    assert out.startswith("above: enough (95% at every look)")
    placet_command("aggregate", votes, "--out", tmp_path / "board.json")
    out, _ = placet_command("enough", tmp_path / "board.json", "--goal", "order", "--json")
    found = json.loads(out)
    board = placet.consensus(placet.read(votes))
    assert found["missing"] == board.enough("order").missing
    assert [(pair["high"], pair["low"]) for pair in found["open"]] == [("bee", "cat")]
    out, _ = placet_command("enough", votes, "--goal", "order", "--look", "once")
    assert "for a fixed amount of data" in out


def test_next_lists_pairs_and_sets(placet_command, votes, tmp_path):
    placet_command("next", votes, "--goal", "order", "--n", "1", "--out", tmp_path / "pairs.csv")
    assert (tmp_path / "pairs.csv").read_text().splitlines() == ["item_1,item_2", "bee,cat"]
    out, _ = placet_command("next", votes, "--goal", "order", "--size", "3", "--n", "1", "--json")
    assert json.loads(out) == [{"item_1": "ant", "item_2": "bee", "item_3": "cat"}]
    out, err = placet_command("next", votes, "--goal", "above", "--item", "ant,bee")
    assert "the votes are enough" in err
    assert out.splitlines() == ["item_1\titem_2"]


def test_plan_counts_the_votes_of_simulated_polls(placet_command):
    out, _ = placet_command("plan", "--items", "3", "--goal", "top:1", "--gap", "3", "--runs", "5", "--json")
    few = [row["votes"] for row in json.loads(out)]
    out, _ = placet_command("plan", "--items", "3", "--goal", "top:1", "--gap", "1", "--runs", "5", "--json")
    many = [row["votes"] for row in json.loads(out)]
    assert few == sorted(few)
    assert 10 < few[1] < many[1]


def test_next_splits_a_budget_between_sources(placet_command, tmp_path):
    for name, scores, seed in (("human", [1.0, 0.5, 0.0], 0), ("judge", [0.9, 0.6, 0.0], 1)):
        votes = placet.simulate.battles(scores, 40, items=["ant", "bee", "cat"], random_state=seed)
        placet.write(votes, tmp_path / f"{name}.csv")
    files = [f"{name}={tmp_path / name}.csv" for name in ("human", "judge")]
    board = tmp_path / "board.json"
    placet_command("aggregate", *files, "--target", "human", "--out", board)
    prices = {"human": 1.0, "judge": 0.1}
    asked = ["--budget", "5", "--cost", "human=1", "--cost", "judge=0.1", "--goal", "order"]
    out, err = placet_command("next", board, *asked, "--json")
    rows = json.loads(out)
    assert 4.9 < sum(prices[row["source"]] * row["votes"] for row in rows) < 5.000001
    assert all(f"{row['source']}: " in err for row in rows)
    _, err = placet_command("next", board, "--budget", "5", "--cost", "human", code=2)
    assert "write NAME=PRICE" in err
    _, err = placet_command("next", board, "--cost", "human=1", code=2)
    assert "go together" in err
