"""Tables of votes under unknown names are recognized by their cells, and by nothing less."""

import numpy as np
import pytest

import placet
from placet.data import DataError
from placet.io.battles import WORDS
from placet.io.tables.tables import read_table
from placet.io.tables.vote_columns import vote_columns


def found(columns, sides=None):
    return vote_columns(read_table(columns, "raise"), WORDS["tie"], sides)


@pytest.mark.parametrize("seed", range(20))
def test_the_three_columns_are_found_whatever_their_order_and_company(seed):
    rng = np.random.default_rng(seed)
    sides = [rng.choice(list("uvwxyz"), 2, replace=False) for _ in range(30)]
    columns = {
        "eins": [a for a, _ in sides],
        "zwei": [b for _, b in sides],
        "sieger": [rng.choice([a, b, "draw"]) for a, b in sides],
        "wetter": rng.choice(["rain", "sun"], 30).tolist(),
    }
    columns["sieger"][:2] = [sides[0][0], sides[1][1]]
    names = rng.permutation(list(columns)).tolist()
    a, b, winner = found({name: columns[name] for name in names})
    assert {a, b} == {"eins", "zwei"}
    assert winner == "sieger"


@pytest.mark.parametrize(
    "columns",
    [
        {"p": ["u", "v"], "q": ["v", "w"], "r": ["u", "x"]},  # x is neither
        {"p": ["u", "v"], "q": ["u", "w"], "r": ["u", "w"]},  # u against itself
        {"p": ["u", "v"], "q": ["v", "w"], "r": ["u", "draw"]},  # one winner may be chance
        {"p": ["u", "v"], "q": ["v", "w"], "r": ["u", "w"], "s": ["u", "w"]},  # two columns of winners
        {"p": ["u", ""], "q": ["v", "w"], "r": ["u", "w"]},  # a side is missing
    ],
)
def test_less_is_not_taken_for_votes(columns):
    assert found(columns) is None


def test_two_places_and_a_winner_are_refused_and_both_ways_work(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text("choice1,choice2,preferred\nred,blue,red\nblue,green,green\nred,green,red\n")
    with pytest.raises(DataError, match="may be votes or ballots of two places"):
        placet.read(path)
    votes = placet.read(path, "battles", a="choice1", b="choice2", winner="preferred")
    assert placet.consensus(votes).ranking[0] == "red"
    assert len(placet.read(path, layout="places")) == 3
    path.write_text("choice1,choice2,city\nred,blue,Rome\nblue,green,Oslo\n")
    assert len(placet.read(path)) == 2  # nothing repeats a choice
