"""The default at every door: the same method and answer, said in a note; ties have a model, or a note says their fate."""

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import linprog

import placet
from placet.aggregate import METHODS
from placet.aggregate.defaults import default_of
from placet.aggregate.likelihood.existence import notes_of_tie_rate
from placet.data import Comparisons, DataError
from placet.simulate import battles

TIED = battles([1.0, 0.4, 0.0, -0.6], 400, tie=0.0, items=list("abcd"), random_state=1)
STRICT = battles([1.0, 0.4, 0.0, -0.6], 400, tie=-np.inf, items=list("abcd"), random_state=1)
BALLOTS = placet.simulate.plackett_luce([1.0, 0.0, -1.0], 30, random_state=2)
SCORES = placet.data.Scores.from_table([[0.9, 0.2, 0.4], [0.1, 0.8, 0.9]], items=["a", "b"], tasks=["x", "y", "z"])


def asked_in_the_studio(path):
    from placet.studio.question import Question
    from placet.studio.tasks.board import answer

    return answer(str(path), Question()).whole


# Doors


@pytest.mark.parametrize(
    ("data", "name", "why"),
    [
        (TIED, "votes.csv", "the default for votes"),
        (STRICT, "votes.csv", "the default for votes"),
        (BALLOTS, "ballots.ballots", "the default for ballots"),
        (SCORES, "scores.csv", "the default for score tables"),
    ],
)
def test_every_door_gives_the_same_answer_and_says_why(tmp_path, answer, data, name, why):
    path = tmp_path / name
    placet.io.write(data, path)
    data = placet.read(path)
    found = placet.consensus(data)
    scores = dict(zip(map(str, found.items), found.scores))
    assert any(why in note for note in found.notes)
    said = json.loads(answer("aggregate", path, "--json"))
    assert said["method"] == found.method == default_of(data).method
    assert {row["item"]: row["score"] for row in said["ranking"]} == pytest.approx(scores, abs=1e-6)
    assert any(why in note for note in said["notes"])
    others = [asked_in_the_studio(path), placet.consensus({"x": data, "y": data})["y"]]
    if not isinstance(data, placet.data.Scores):
        others.append(placet.consensus(placet.Parts.of([data])))
    for other in others:
        assert dict(zip(map(str, other.items), other.scores)) == pytest.approx(scores, abs=1e-6)
    assert any(why in note for note in others[0].notes)
    assert any(why in note for note in placet.consensus({"x": data, "y": data}).notes)


def test_a_named_method_is_no_default():
    assert not any("default" in note for note in placet.consensus(TIED, "bradley-terry").notes)


# Ties


def test_ties_are_fitted_if_some_votes_tie_and_some_do_not():
    found, named = placet.consensus(TIED), placet.consensus(TIED, "bradley-terry", ties="davidson")
    np.testing.assert_array_equal(found.scores, named.scores)
    assert found.tie == named.tie
    assert abs(found.tie - 0.0) < 4 * found.tie_stderr
    assert any("Davidson's model" in note for note in found.notes)
    assert placet.consensus(STRICT).tie is None
    half = placet.consensus(TIED, ties="none")
    assert half.tie is None
    assert any("half a win" in note for note in half.notes)
    assert (half.stderr > found.stderr * half.scores.std() / found.scores.std()).all()


def test_if_every_vote_is_a_tie_scores_are_equal_and_it_is_said():
    votes = Comparisons.from_battles(["x"] * 100, ["y"] * 100, ["tie"] * 100)
    found = placet.consensus(votes)
    assert found.scores.tolist() == [0.0, 0.0]
    assert found.tie is None
    assert any("every vote is a tie" in note for note in found.notes)
    asked = placet.consensus(votes, ties="davidson")
    assert np.isfinite(asked.stderr).all()
    assert any("only the prior bounds" in note for note in asked.notes)


def test_one_win_among_ties_is_little_evidence():
    votes = Comparisons.from_battles(["x"] * 101, ["y"] * 101, ["a"] + ["tie"] * 100)
    found = placet.consensus(votes)
    assert found.tiers() == [("x", "y")]
    assert any("agree with one order" in note for note in found.notes)
    with pytest.raises(DataError, match="no finite value"):
        placet.consensus(votes, prior=None)


@st.composite
def counts(draw):
    n = draw(st.integers(2, 4))
    i, j = np.triu_indices(n, 1)
    columns = [np.array(draw(st.lists(st.integers(0, 1), min_size=len(i), max_size=len(i))), float) for _ in range(3)]
    return n, i, j, *columns


@given(counts())
def test_the_tie_rate_is_unbounded_where_a_linear_program_finds_a_direction(drawn):
    n, i, j, won, lost, tied = drawn
    rows = []
    for a, b, w, x, t in zip(i, j, won, lost, tied):
        gap = np.eye(n)[a] - np.eye(n)[b]
        rows += [-gap] * int(w) + [gap] * int(x)
        rows += [np.append(gap, 1.0), np.append(-gap, 1.0)] * int(t)
    bound = [-1.0 if len(row) == n else 1.0 for row in rows]
    table = np.array([row[:n] for row in rows]).reshape(-1, n)
    free = linprog(np.zeros(n), table, bound, bounds=(None, None)).success if len(rows) else True
    assert bool(notes_of_tie_rate(i, j, won, lost, tied, n, 10.0)) == free


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.of_pairs])
def test_a_method_of_votes_says_what_becomes_of_ties(name):
    found = placet.consensus(TIED, name)
    n_ties = f"{TIED.ties.sum():g} ties"
    note = next(note for note in found.notes if note.startswith(n_ties))
    fate = METHODS[name].ties
    nothing = np.zeros(len(TIED))
    if fate == "half":
        assert "half a win" in note
        other = Comparisons(
            TIED.i, TIED.j, TIED.wins_i + TIED.ties / 2, TIED.wins_j + TIED.ties / 2, nothing, items=TIED.items
        )
    elif fate == "ignored":
        assert "said nothing" in note
        other = Comparisons(TIED.i, TIED.j, TIED.wins_i, TIED.wins_j, nothing, items=TIED.items)
    else:
        assert "fitted by" in note or "left out" in note
        return
    again = placet.consensus(other, name)
    np.testing.assert_allclose(again.scores, found.scores, atol=1e-6)
    assert not any(" ties " in note for note in again.notes)
