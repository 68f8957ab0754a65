"""Voters, days, tasks and sources against every set of them; what is listed, removed, changes the claim."""

from itertools import combinations

import numpy as np
import pytest

import placet
from placet.aggregate.proof.removal import removable
from placet.aggregate.sources import width_average


def grouped_votes(seed, by):
    """Votes of seven voters, or of seven days, that are of different minds."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 7, 40)
    skill = rng.normal(scale=0.5, size=4) + rng.normal(scale=0.8, size=(7, 4))
    a = rng.integers(0, 4, 40)
    b = (a + rng.integers(1, 4, 40)) % 4
    won = rng.random(40) < 1 / (1 + np.exp(skill[group, b] - skill[group, a]))
    names = [f"v{k}" if by == "voter" else f"2024-03-{k + 1:02d}" for k in group]
    column = {"agent" if by == "voter" else "time": names}
    return placet.Comparisons.from_battles(a.tolist(), b.tolist(), np.where(won, "a", "b").tolist(), **column)


def table_of_tasks(seed):
    rng = np.random.default_rng(seed)
    value = rng.normal(size=(4, 6)) + rng.normal(scale=0.5, size=(4, 1))
    return placet.Scores.from_table(value, items=list("wxyz"), tasks=[f"t{k}" for k in range(6)])


def several_sources(seed):
    rng = np.random.default_rng(seed)
    skill = np.array([0.6, 0.3, 0.0])

    def votes(size, shift):
        a = rng.integers(0, 3, size)
        b = (a + rng.integers(1, 3, size)) % 3
        own = skill + shift
        won = rng.random(size) < 1 / (1 + np.exp(own[b] - own[a]))
        return placet.Comparisons.from_battles([f"m{k}" for k in a], [f"m{k}" for k in b], np.where(won, "a", "b"))

    parts = {"human": votes(12, np.zeros(3))}
    parts |= {f"judge {k}": votes(60, rng.normal(scale=0.5, size=3)) for k in range(3)}
    return placet.Sources(parts, target="human")


def smallest(board, pieces, claim):
    """The fewest whose removal changes a claim, by trying all sets from the smallest on."""
    every = np.flatnonzero(pieces.size)
    for number in range(1, len(every) + 1 - pieces.stays):
        for chosen in combinations(every.tolist(), number):
            take = np.bincount(chosen, minlength=len(pieces.size))
            if not claim.holds(board.asked.again(pieces.without(take), board.asked.method)):
                return number
    return None


@pytest.mark.parametrize(
    ("make", "by", "seeds", "options"),
    [
        (lambda seed: grouped_votes(seed, "voter"), "voter", range(8), {"method": "bradley-terry", "prior": 1.0}),
        (lambda seed: grouped_votes(seed, "voter"), "judge", range(8), {"method": "borda"}),
        (lambda seed: grouped_votes(seed, "day"), "day", range(8), {"method": "bradley-terry", "prior": 1.0}),
        (table_of_tasks, "task", range(5), {"method": "mean"}),
        (several_sources, "judge", (0, 7, 9), {}),
    ],
)
def test_groups_against_every_set(monkeypatch, make, by, seeds, options):
    monkeypatch.setattr(width_average, "MOST_OPEN", 0)  # what is searched does not depend on how sources are averaged
    found_any = 0
    for seed in seeds:
        data = make(seed)
        board = placet.consensus(data, **options)
        found = board.fragility(by=by)
        one, pieces = found.claims[0], removable(data, by)
        least = smallest(board, pieces, one.claim)
        assert (one.count is None) == (least is None), seed
        if least is not None:
            found_any += 1
            assert least <= one.count <= 1.3 * least, seed
            assert not one.claim.holds(board.asked.again(pieces.without(one.take), board.asked.method))
            assert len(one.removed) == one.count
            assert all(by in row for row in one.removed)
    assert found_any


def test_users_who_decide_ratings(tmp_path):
    """Every set of users listed, removed from the file, changes who comes first."""
    rng = np.random.default_rng(1)
    rows = [(f"u{u}", "abcd"[i], round(3 + (2 - i) / 3 + rng.normal())) for u in range(15) for i in range(4)]

    def rated(left_out):
        lines = [f"{user},{item},{value}\n" for user, item, value in rows if user not in left_out]
        (tmp_path / "ratings.csv").write_text("user,item,rating\n" + "".join(lines))
        return placet.consensus(placet.read(tmp_path / "ratings.csv"))

    board = rated(())
    assert board.method == "adjusted-mean"
    found = board.fragility(by="voter")
    assert (found.unit, found.total) == ("voter", 15)
    users = {row["voter"] for row in found.claims[0].removed}
    assert len(users) == found.count
    assert 1 <= len(users) < 8
    assert rated(users).ranking[0] != board.ranking[0]
