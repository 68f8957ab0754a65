"""Ratings without a method: a model that respects support."""

import numpy as np
import pytest

import placet
from placet.aggregate.defaults import default_method


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


def test_the_winner_is_no_item_with_a_single_five_star_rating(ratings, table):
    data = placet.read(ratings)
    values = data.score[data.item == data.items.index("new")]
    assert values.tolist() == [5]  # so that by the mean nothing is above it
    assert max(data.score) == 5
    (head, *rows), err = table("aggregate", ratings)
    support = {row[0]: float(row[head.index("support")]) for row in rows}
    assert support["new"] == 1
    assert support[rows[0][0]] > 5
    assert "adjusted-mean, the default for ratings" in err
    unasked = placet.consensus(data)
    assert unasked.method == default_method(data) == "adjusted-mean"
    rank = {row[0]: float(row[head.index("rank")]) for row in rows}
    assert rank == dict(zip(unasked.items, unasked.ranks.tolist()))
    (head, *rows), _ = table("aggregate", ratings, "--method", "plackett-luce")
    assert [row[0] for row in rows] == list(placet.consensus(data, "plackett-luce").ranking)


def test_the_default_does_not_depend_on_the_number_of_ratings():
    many = placet.simulate.ratings(11_000, 50, observed=0.2, random_state=0)
    wide = placet.simulate.ratings(50, 4200, observed=0.01, random_state=0)
    few = placet.simulate.ratings(5, 4, observed=0.9, random_state=0)
    for data in (many, wide, few, {"x": few, "y": many}, placet.Parts.of([few])):
        assert default_method(data) == "adjusted-mean"
    for data in (wide, placet.Parts.of([few])):
        assert np.isfinite(placet.consensus(data).stderr).all()


def test_other_data_keep_their_defaults():
    orders = placet.Rankings.from_orders([["a", "b"]] * 3)
    assert default_method(orders) == "plackett-luce"
    big = placet.simulate.plackett_luce(np.zeros(1200), 12, random_state=0)
    assert default_method(big) == "plackett-luce"
    votes = placet.read({"a": ["x"], "b": ["y"], "winner": ["a"]})
    assert default_method(votes) == "bradley-terry"
