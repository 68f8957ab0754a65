"""All pairs of systems: against enumeration by hand, corrections, runs, missing values, tiers, the command."""

import itertools
import json

import numpy as np
import pytest
from typer.testing import CliRunner

import placet
from placet.cli import app
from placet.metrics import compare, compare_systems, holm

NAN = float("nan")
TABLE = {
    "x": [0.9, 0.8, 0.7, 0.9, 0.6],
    "y": [0.6, 0.9, 0.5, 0.7, 0.4],
    "z": [0.1, 0.2, 0.5, 0.3, 0.2],
    "w": [0.1, 0.2, 0.4, 0.3, 0.3],
}


def by_hand(table):
    """Stepdown p-values by enumeration: each pair against the largest of itself and all less significant ones."""
    pairs = list(itertools.combinations(table, 2))
    d = {(a, b): np.subtract(table[a], table[b]) for a, b in pairs}
    d = {pair: values[~np.isnan(values)] if np.isnan(values).any() else values for pair, values in d.items()}

    def statistic(values):
        n = len(values)
        deviation = values.std(ddof=1)
        return abs(values.mean()) / (deviation / np.sqrt(n)) if deviation > 1e-15 else (np.inf if values.any() else 0.0)

    n = len(next(iter(table.values())))
    seen = {pair: statistic(values) for pair, values in d.items()}
    out, so_far = {}, 0.0
    for pair in sorted(pairs, key=lambda pair: -seen[pair]):
        weaker = [other for other in pairs if seen[other] <= seen[pair]]
        hits = 0
        for signs in itertools.product((-1, 1), repeat=n):
            hits += max(statistic(np.array(signs) * d[other]) for other in weaker) >= seen[pair] * (1 - 1e-9)
        so_far = max(so_far, hits / 2**n)
        out[frozenset(pair)] = so_far
    return out


def test_p_values_are_those_of_enumeration_with_students_t():
    expected = by_hand({name: np.array(values) for name, values in TABLE.items()})
    found = compare_systems(TABLE)
    assert {frozenset((pair.a, pair.b)): pair.p_max_t for pair in found.pairs} == expected
    assert len(set(expected.values())) > 2
    for pair in found.pairs:
        assert pair.gap == compare(TABLE[pair.a], TABLE[pair.b])
        assert pair.gap.p_value <= pair.p_max_t <= 1
    assert [pair.p_holm for pair in found.pairs] == holm([pair.gap.p_value for pair in found.pairs]).tolist()


def test_holm_by_hand():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]).tolist() == [1.0, 1.0]
    assert holm([]).tolist() == []


def test_lists_without_a_value_are_left_out_of_their_pairs_and_counted():
    table = {
        "x": [0.9, 0.8, NAN, 0.9, 0.7, 0.2],
        "y": [0.6, 0.9, 0.5, NAN, 0.4, 0.1],
        "z": [0.1, 0.2, 0.3, 0.1, 0.2, 0.0],
    }
    found = compare_systems(table)
    pairs = {(pair.a, pair.b): pair.gap for pair in found.pairs}
    assert (pairs["x", "y"].n_lists, pairs["x", "y"].n_left_out) == (4, 2)
    assert (pairs["x", "z"].n_lists, pairs["y", "z"].n_lists) == (5, 5)
    assert [own.n_undefined for own in found.summaries] == [1, 1, 0]
    both = {name: np.where(np.isnan(np.add(table["x"], table["y"])), NAN, values) for name, values in table.items()}
    kept = {name: values[~np.isnan(values)] for name, values in both.items()}
    same = compare_systems(both)
    assert {(p.a, p.b): p.p_max_t for p in same.pairs} == {(p.a, p.b): p.p_max_t for p in compare_systems(kept).pairs}


def test_runs_of_a_system_count_by_their_mean():
    runs = np.array([TABLE["x"], [0.7, 0.8, 0.5, 0.9, NAN]])
    found = compare_systems({"x": runs, "y": TABLE["y"]})
    single = compare_systems({"x": [0.8, 0.8, 0.6, 0.9, 0.6], "y": TABLE["y"]})
    assert found.pairs[0].gap.p_value == single.pairs[0].gap.p_value
    assert found.pairs[0].gap.difference == pytest.approx(single.pairs[0].gap.difference)
    assert found.n_runs == (2, 1)
    assert found.run_spread[0] == pytest.approx(np.std([0.78, 0.725], ddof=1))
    assert np.isnan(found.run_spread[1])


def test_tiers_hold_no_pair_that_differs_and_the_order_of_the_input_does_not_matter():
    rng = np.random.default_rng(0)
    base = rng.random(60)
    table = {f"s{k}": base + shift + rng.normal(0, 0.05, 60) for k, shift in enumerate([0, 0, 0.2, 0.2, 0.2, -0.3])}
    found = compare_systems(table, n_boot=2000)
    assert [set(tier) for tier in found.tiers()] == [{"s2", "s3", "s4"}, {"s0", "s1"}, {"s5"}]
    tier = dict(zip(found.names, found.tier))
    assert all(pair.p_max_t > 0.05 for pair in found.pairs if tier[pair.a] == tier[pair.b])
    turned = compare_systems(dict(reversed(table.items())), n_boot=2000)
    assert turned.tiers() == found.tiers()
    assert [pair.p_max_t for pair in turned.pairs] == [pair.p_max_t for pair in found.pairs]
    assert "tier 1" in repr(found)


@pytest.mark.parametrize("correction", ["max-t", "holm"])
def test_without_differences_false_ones_are_rare(correction):
    rng, wrong = np.random.default_rng(1), 0
    for _ in range(60):
        values = rng.normal(size=(40, 1)) + rng.normal(size=(40, 6))
        found = compare_systems(dict(zip("abcdef", values.T)), correction=correction, n_boot=300, level=0.9)
        wrong += len(found.tiers()) > 1
    assert wrong <= 12  # 6 of 60 are expected at most, and 12 or fewer with 99%


def test_a_corrected_p_value_is_never_below_the_raw_one():
    for seed in range(8):
        rng = np.random.default_rng(seed)
        pair = compare_systems({name: rng.random(40) for name in "ab"}, n_boot=500).pairs[0]
        assert pair.gap.p_value <= pair.p_max_t <= pair.gap.p_value + 0.1


def test_lists_without_any_value_change_no_p_value():
    rng = np.random.default_rng(0)
    a, b = rng.random(8) + 0.3, rng.random(8)
    padded = {"a": np.append(a, [NAN] * 12), "b": np.append(b, [NAN] * 12)}
    pair = compare_systems(padded).pairs[0]
    assert pair.p_max_t == pair.gap.p_value == compare_systems({"a": a, "b": b}).pairs[0].p_max_t


def test_a_pair_that_shares_no_list_does_not_count_and_the_others_are_compared():
    rng = np.random.default_rng(0)
    c, early = rng.random(16), np.arange(16) < 8
    table = {"a": np.where(early, c + 0.5, NAN), "b": np.where(early, NAN, c - 0.5), "c": c}
    found = compare_systems(table)
    pairs = {(pair.a, pair.b): pair for pair in found.pairs}
    nothing = pairs["a", "b"]
    assert np.isnan([nothing.gap.difference, nothing.gap.low, nothing.gap.high]).all()
    assert (nothing.gap.n_lists, nothing.gap.n_left_out) == (0, 16)
    assert (nothing.gap.p_value, nothing.p_holm, nothing.p_max_t) == (1.0, 1.0, 1.0)
    raw = [pairs[pair].gap.p_value for pair in (("a", "c"), ("c", "b"))]
    assert raw == [2 / 2**8] * 2
    assert [pairs[pair].p_holm for pair in (("a", "c"), ("c", "b"))] == holm(raw).tolist()
    assert found.tiers() == [("a",), ("c",), ("b",)]


def test_the_first_of_a_pair_has_the_higher_mean_over_its_own_lists():
    pair = compare_systems({"a": [0.9, 0.9, 0.1, 0.1, NAN, NAN], "b": [NAN, NAN, 0.2, 0.2, 0.2, 0.2]}).pairs[0]
    assert (pair.a, pair.gap.difference) == ("a", pytest.approx(-0.1))


def test_equal_systems_and_wrong_input():
    same = compare_systems({"a": TABLE["x"], "b": TABLE["x"], "c": TABLE["z"]})
    assert {(p.a, p.b): p.p_max_t for p in same.pairs}["a", "b"] == 1.0
    for values, message in (
        ({"a": [1.0]}, "1 systems; give at least two"),
        ({"a": [1.0, 2.0], "b": [1.0]}, "the same lists in the same order"),
        ({"a": [1.0, np.inf], "b": [1.0, 2.0]}, "'a': 1 values are infinite"),
        ({"a": [NAN, NAN], "b": [1.0, 2.0]}, "'a' has no value in any list"),
    ):
        with pytest.raises(ValueError, match=message):
            compare_systems(values)
    with pytest.raises(ValueError, match="correction 'tukey' is unknown"):
        compare_systems(TABLE, correction="tukey")


def test_the_command_prints_systems_in_tiers_and_all_pairs(tmp_path):
    data = placet.simulate.queries(30, 6, 3, noise=0.3, random_state=2)
    placet.io.write(data, tmp_path / "test.letor")
    rng = np.random.default_rng(3)
    scores = {"good": data.grade + rng.normal(0, 0.3, len(data.grade))}
    scores |= {f"bad{k}": rng.normal(size=len(data.grade)) for k in (1, 2)}
    for name, s in scores.items():
        (tmp_path / name).write_text("\n".join(map(repr, s.tolist())) + "\n")
    words = [
        "compare",
        str(tmp_path / "good"),
        f"bad={tmp_path}/bad1",
        f"bad={tmp_path}/bad2",
        str(tmp_path / "test.letor"),
    ]
    out = CliRunner().invoke(app, [*words, "--all-pairs", "--json"], catch_exceptions=False)
    found = json.loads(out.stdout)
    assert [(row["system"], row["tier"], row["runs"]) for row in found["systems"]] == [
        (str(tmp_path / "good"), 1, 1),
        ("bad", 2, 2),
    ]
    values = {name: placet.metrics.ndcg(s, data.grade, data.offsets, 10) for name, s in scores.items()}
    expected = compare_systems({"good": values["good"], "bad": [values["bad1"], values["bad2"]]}).pairs[0]
    assert [found["pairs"][0][key] for key in ("a minus b", "p", "p holm", "p max-t")] == pytest.approx(
        [expected.gap.difference, expected.gap.p_value, expected.p_holm, expected.p_max_t]
    )
    table = CliRunner().invoke(app, [*words, "--all-pairs"], catch_exceptions=False).stdout.splitlines()
    assert [line.split("\t")[0] for line in table if line] == ["metric", "ndcg@10", "ndcg@10", "metric", "ndcg@10"]
