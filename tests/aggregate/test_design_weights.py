"""Design weights: rows that stand for more or fewer voters, whose scatter gives the errors."""

import numpy as np
import pytest

import placet
from placet.aggregate.resample import _total, resample
from placet.data import Comparisons, DataError, Rankings, concat
from tests.oracle_errors import sandwich_of_votes

WEIGHT = [1.0, 2.0, 8.0, 1.0, 4.0, 2.0, 1.0, 1.0]
SIDES = "aabbccab", "bccaabca", ["a", "b", "a", "a", "b", "a", "tie", "a"]


def votes(weights="design", factor=1.0, **options):
    weight = factor * np.array(WEIGHT)
    return Comparisons.from_battles(*SIDES, weight=weight, weights=weights, items="abc", **options)


def ballots(factor=1.0, **options):
    orders = [["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"], ["a", "c", "b"], ["b", "c", "a"], ["a", ("b", "c")]]
    weight = factor * np.array([3.0, 1.0, 4.0, 1.0, 5.0, 2.0])
    return Rankings.from_orders(orders, weight=weight, items="abc", **options)


def test_effective_number():
    w = np.array(WEIGHT)
    kept = votes()
    assert len(kept.agents) == len(w)
    assert (kept.wins_i + kept.wins_j + kept.ties).sum() == pytest.approx(w.sum() ** 2 / (w @ w))
    assert Comparisons.from_battles("ab", "ba", ["a", "a"], weight=[0, 0], weights="design").wins_i.sum() == 0


@pytest.mark.parametrize("prior", [1.0, None, "learn"])
def test_errors_of_votes_are_a_sandwich_over_votes(prior):
    found = placet.consensus(votes(ordered=True), "bradley-terry", ties="none", prior=prior)
    assert "design weights" in " ".join(found.notes)
    if prior != "learn":  # a learned width adds its own uncertainty
        weight = np.array(WEIGHT) * sum(WEIGHT) / np.square(WEIGHT).sum()
        expected = sandwich_of_votes(found.scores, *SIDES, weight, "abc", prior)
        np.testing.assert_allclose(found.covariance, expected, atol=1e-7)


@pytest.mark.parametrize("method", ["bradley-terry", "plackett-luce", "pmop", "pmop-fd", "borda"])
def test_the_unit_of_weights_does_not_matter(method):
    options = {"bootstrap": 10} if method == "borda" else {}
    one, ten = (placet.consensus(ballots(f).with_design_weights(), method, **options) for f in (1.0, 10.0))
    np.testing.assert_allclose(one.scores, ten.scores, atol=1e-7)
    np.testing.assert_allclose(one.stderr, ten.stderr, atol=1e-7)
    as_counts = [placet.consensus(ballots(f), method, **options).stderr.mean() for f in (1.0, 10.0)]
    assert method in ("pmop-fd", "borda") or as_counts[1] < 0.8 * as_counts[0]  # ten times as many ballots


def test_agents_stay_units():
    agent = [0, 0, 1, 1, 2, 2, 3, 3]
    found = placet.consensus(votes(agent=agent), "bradley-terry")
    assert "scatter of 4 agents" in " ".join(found.notes)


def test_what_takes_weights_for_counts_is_refused():
    with pytest.raises(DataError, match="for counts"):
        placet.consensus(votes(), "bradley-terry", agents="sharpness")
    with pytest.raises(DataError, match="for counts"):
        placet.consensus(ballots().with_design_weights(), placet.aggregate.Mixture("plackett-luce", 2))
    with pytest.raises(DataError, match="before they are read"):
        concat([votes(), votes()])
    with pytest.raises(DataError, match="from_battles"):
        Comparisons([0], [1], [1.0], [0.0], [0.0], weights="design")
    with pytest.raises(ValueError, match="counts, design"):
        votes("desing")
    with pytest.raises(ValueError, match="at every look"):
        placet.consensus(votes(), "bradley-terry").enough("best")


def test_rows_of_files_stay_apart(tmp_path):
    lines = ["a,b,winner,weight", *(f"{a},{b},{w},{x:g}" for a, b, w, x in zip(*SIDES, WEIGHT))]
    path = tmp_path / "votes.csv"
    path.write_text("\n".join(lines))
    assert placet.read(path, a="a", b="b", outcomes="words", items="abc", weights="design") == votes()
    with pytest.raises(DataError, match="not read in parts"):
        placet.scan(path, a="a", b="b", outcomes="words", weights="design")
    path = tmp_path / "ballots.txt"
    path.write_text("3: a > b > c\n1: b > a > c\n")
    read = placet.read_ballots(path, weights="design")
    assert (read.weights, len(read.agents)) == ("design", 2)
    np.testing.assert_allclose(read.weight, [1.2, 0.4])


def test_samples_of_design_weights_stand_for_as_many_voters():
    """Points are sums: samples of unequal totals made errors 1.4 times those of the differences."""
    rng = np.random.default_rng(0)
    for data in (ballots().with_design_weights(), votes()):
        totals = [_total(resample(data, rng)) for _ in range(20)]
        np.testing.assert_allclose(totals, _total(data))
    drawn = [resample(ballots(), rng).weight for _ in range(5)]
    assert all((one == np.floor(one)).all() for one in drawn)  # counts stay counts
    weight = rng.choice([1.0, 2.0, 8.0], 300)
    orders = [rng.permutation(4).tolist() for _ in weight]
    data = Rankings.from_orders(orders, weight=weight, items=range(4)).with_design_weights()
    found = placet.consensus(data, "borda", bootstrap=400)
    own = found.draws - found.draws.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(found.draws.std(axis=0), own.std(axis=0), rtol=1e-6)
