"""Hashed voters: no name is left, results and certificates are as before, and the salt decides."""

import pytest

import placet
from placet.io.hashed_voters import with_hashed_voters

SALT = "a salt that nobody else knows"
ROWS = [("x", "y", "model_a", "ann")] * 6 + [("y", "x", "model_a", "bob")] * 3 + [("y", "z", "model_b", "cat")] * 4


def test_results_are_the_same_and_names_are_gone():
    a, b, outcome, agent = zip(*ROWS)
    votes = placet.Comparisons.from_battles(a, b, [one[-1] for one in outcome], agent=agent)
    hashed = with_hashed_voters(votes, SALT)
    assert not {"ann", "bob", "cat"} & set(hashed.agents)
    assert placet.consensus(hashed).to_frame().equals(placet.consensus(votes).to_frame())
    assert with_hashed_voters(votes, SALT).agents == hashed.agents
    assert not set(with_hashed_voters(votes, SALT + "!").agents) & set(hashed.agents)
    paper = placet.consensus(hashed).certificate()
    assert placet.verify(paper, hashed) == []
    assert "ann" not in str(paper)


def test_what_cannot_be_hashed_is_said():
    votes = placet.Comparisons.from_battles("xy", "yx", ["a", "a"])
    with pytest.raises(placet.DataError, match="do not say who voted"):
        with_hashed_voters(votes, SALT)
    with pytest.raises(ValueError, match="the salt has 4 characters"):
        with_hashed_voters(votes, "salt")


def test_the_command_makes_a_salt_and_a_file_that_can_be_checked(placet_command, tmp_path):
    path, public, salt = tmp_path / "votes.csv", tmp_path / "public.csv", tmp_path / "salt.txt"
    path.write_text("\n".join(",".join(row) for row in [("model_a", "model_b", "winner", "user"), *ROWS]) + "\n")
    placet_command("convert", path, public, "--agent", "user", "--hash-voters", salt)
    assert salt.stat().st_mode & 0o077 == 0
    text = public.read_text()
    assert "ann" not in text
    placet_command("convert", path, public, "--agent", "user", "--hash-voters", salt)
    assert public.read_text() == text
    placet_command("aggregate", public, "--agent", "agent", "--certificate", tmp_path / "board.cert.json")
    placet_command("verify", tmp_path / "board.cert.json", public)
    salt.write_text("short")
    placet_command("convert", path, public, "--agent", "user", "--hash-voters", salt, code=2)
