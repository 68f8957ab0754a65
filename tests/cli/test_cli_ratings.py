"""Ratings without a method: a model that respects support."""

import numpy as np
import pytest

import placet
from placet.aggregate import defaults
from placet.aggregate.defaults import default_method, default_note


@pytest.fixture
def ratings(tmp_path):
    """A file of ratings, in which one user alone rated "new" with five stars."""
    drawn = placet.simulate.ratings(60, 25, observed=0.3, popularity=1.0, random_state=2)
    rows = zip(drawn.agent[drawn.ballot], drawn.item, drawn.score)
    lines = [f"u{user},film {item},{stars:g}" for user, item, stars in rows]
    loner = next(k for k in range(60) if len(set(drawn.score[drawn.ballot == k])) > 2)
    path = tmp_path / "ratings.csv"
    path.write_text("\n".join(["user,item,rating", *lines, f"u{loner},new,5"]) + "\n")
    return path


@pytest.fixture
def table(placet_command):
    """``table(*words)``: the rows that ``placet`` prints, and what it says on stderr."""

    def table(*words):
        out, err = placet_command(*words)
        return [line.split("\t") for line in out.splitlines()], err

    return table


@pytest.mark.parametrize(("most", "method"), [(100_000, "plackett-luce"), (100, "mpm")])
def test_the_winner_is_no_item_with_a_single_five_star_rating(ratings, monkeypatch, table, most, method):
    monkeypatch.setattr(defaults, "MOST_RATINGS", most)
    data = placet.read(ratings)
    values = data.score[data.item == data.items.index("new")]
    assert values.tolist() == [5]  # so that by the mean nothing is above it
    assert max(data.score) == 5
    assert default_method(data) == method
    (head, *rows), err = table("aggregate", ratings)
    support = {row[0]: float(row[head.index("support")]) for row in rows}
    assert support["new"] == 1
    assert support[rows[0][0]] > 5
    assert ("ranked by mpm" in err) == (method == "mpm")
    assert ("--method plackett-luce looks only" in err) == (method == "mpm")
    unasked = placet.consensus(data)
    assert unasked.method == method
    assert any("method='plackett-luce' looks only" in note for note in unasked.notes) == (method == "mpm")
    expected = placet.consensus(data, method)
    rank = {row[0]: float(row[head.index("rank")]) for row in rows}
    assert rank == dict(zip(expected.items, expected.ranks.tolist()))
    (head, *rows), _ = table("aggregate", ratings, "--method", "plackett-luce")
    assert [row[0] for row in rows] == list(placet.consensus(data, "plackett-luce").ranking)


def test_many_ratings_or_many_rated_items_take_the_model_that_is_fast():
    many = placet.simulate.ratings(11_000, 50, observed=0.2, random_state=0)
    wide = placet.simulate.ratings(50, 2001, observed=0.01, random_state=0)
    few = placet.simulate.ratings(50, 2000, observed=0.01, random_state=0)
    assert [default_method(data) for data in (many, wide, few)] == ["mpm", "mpm", "plackett-luce"]
    assert default_method({"x": few, "y": many}) == "mpm"
    assert default_note({"x": few, "y": few}) == ""


def test_other_data_keep_their_defaults():
    orders = placet.Rankings.from_orders([["a", "b"]] * 3)
    assert default_method(orders) == "plackett-luce"
    big = placet.simulate.plackett_luce(np.zeros(1200), 12, random_state=0)
    assert default_method(big) == "plackett-luce"
    votes = placet.read({"a": ["x"], "b": ["y"], "winner": ["a"]})
    assert (default_method(votes), default_note(votes)) == ("bradley-terry", "")
