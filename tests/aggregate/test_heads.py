"""Top-k lists: the reading that was taken is said where it matters, by the reader and by the consensus, and only there."""

import numpy as np
import pytest
from scipy.stats import spearmanr

import placet
from placet import Rankings

TRUTH = [f"i{k:02d}" for k in range(40)]


def heads(k=5, n=200, seed=0):
    """The best k of 40 items by noisy orders of them all."""
    rng = np.random.default_rng(seed)
    return [[TRUTH[j] for j in np.argsort(np.arange(40) + rng.gumbel(size=40) * 15)[:k]] for _ in range(n)]


def test_the_reader_and_the_consensus_say_it_once(tmp_path):
    path = tmp_path / "top.txt"
    path.write_text("".join(" > ".join(order) + "\n" for order in heads()))
    data = placet.read(path)
    words = [note for note in data.notes if 'unlisted="last"' in note]
    assert len(words) == 1
    assert f"each of the 200 ballots ranks 5 of {data.n_items} items" in words[0]
    assert [note for note in placet.consensus(data, "borda").notes if 'unlisted="last"' in note] == words
    whole = placet.read(path, "ballots", unlisted="last")
    assert not [note for note in (*whole.notes, *placet.consensus(whole, "borda").notes) if "unlisted" in note]


def test_a_table_of_places_says_it_too(tmp_path):
    path = tmp_path / "top.csv"
    path.write_text("1st,2nd,3rd\n" + "".join(",".join(order) + "\n" for order in heads(3)))
    assert any('unlisted="last"' in note for note in placet.read(path).notes)


def test_what_the_other_reading_gives_is_worth_a_note():
    data = Rankings.from_orders(heads(), items=TRUTH)
    found = [placet.consensus(one, "borda").scores for one in (data, data.completed())]
    absent, last = (-spearmanr(scores, range(40)).statistic for scores in found)
    assert last > absent + 0.1


@pytest.mark.parametrize(
    "orders",
    [
        [["a", "b"], ["c", "d"], ["e", "a"]],  # pairs are votes
        [["a", "b", "c"], ["c", "b", "a"]],  # whole orders
        [["a", "b", "c"], ["d", "e", "f", "g"]],  # of several lengths
        [["a", "b", "c", "d"], ["b", "c", "d", "e"]],  # most of the items
        [["a", "b", "c"]],
        [],
    ],
)
def test_nothing_is_said_of_other_ballots(orders):
    assert (
        Rankings.from_orders(
            orders, items=list("abcdefg") if orders[1:] == [["d", "e", "f", "g"]] else None
        ).heads_note()
        == ()
    )


def test_the_same_three_of_many_names_are_no_heads():
    assert Rankings.from_orders([["a", "b", "c"], ["c", "a", "b"]], items=list("abcdefgh")).heads_note() == ()
