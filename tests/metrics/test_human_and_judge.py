"""Means of a metric from few queries judged by people and many by a judge, and the command that prints them."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from placet.metrics import judged_mean, summary
from placet.metrics.human_and_judge import LEAST_BOTH

NAN = math.nan


def both(seed, people=20, more=100, noise=0.1):
    rng = np.random.default_rng(seed)
    h = rng.beta(2, 2, people + more)
    j = h + rng.normal(0, noise, len(h))
    h[people:] = NAN
    return h, j


def test_the_mean_is_that_of_a_line_at_the_mean_of_the_judge():
    h, j = both(0)
    slope, start = np.polyfit(j[:20], h[:20], 1)
    found = judged_mean(h, j)
    assert found.mean == pytest.approx(start + slope * j.mean(), abs=1e-12)
    assert found.human == summary(h)
    assert found.judge == summary(j)
    assert found.n_both == 20
    assert found.correlation == pytest.approx(np.corrcoef(h[:20], j[:20])[0, 1])
    assert found.worth == pytest.approx(20 * ((found.human_high - found.human_low) / (found.high - found.low)) ** 2)


def test_the_error_is_that_of_many_repeats():
    """Two errors: that of the line, which people make, and that of the judge's mean."""
    means, errors = zip(*((one.mean, one.stderr) for one in (judged_mean(*both(seed, 60, 60)) for seed in range(1500))))
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.std(means), rel=0.12)
    assert np.mean(means) == pytest.approx(0.5, abs=4 * np.std(means) / 1500**0.5)


@given(st.integers(0, 10**6), st.floats(0.1, 10), st.floats(-5, 5))
def test_the_scale_and_the_kindness_of_the_judge_do_not_matter_nor_the_order_of_lists(seed, scale, shift):
    h, j = both(seed)
    order = np.random.default_rng(seed).permutation(len(h))
    a, b, c = judged_mean(h, j), judged_mean(h, shift + scale * j), judged_mean(h[order], j[order])
    for other in (b, c):
        np.testing.assert_allclose([other.mean, other.low, other.high], [a.mean, a.low, a.high], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    "judge",
    [lambda h, j: np.full_like(j, NAN), lambda h, j: np.ones_like(j), lambda h, j: -j, lambda h, j: np.where(np.isnan(h), j, NAN)],
    ids=["has judged nothing", "says one thing", "is reversed", "has judged nothing of people's"],
)  # fmt: skip
def test_a_judge_that_says_nothing_is_not_used(judge):
    h, j = both(1)
    found = judged_mean(h, judge(h, j))
    assert not found.is_used
    assert (found.mean, found.low, found.high, found.worth) == (summary(h).mean, found.human_low, found.human_high, 20)


def test_a_judge_who_agrees_in_all_of_few_lists_is_not_believed_without_error():
    h, j = both(2, people=LEAST_BOTH, noise=0.0)
    found = judged_mean(h, j)
    assert found.is_used
    assert found.high - found.low > 2 * 1.96 * found.judge.stderr


def test_few_lists():
    h, j = both(3, people=LEAST_BOTH - 1, noise=0.0)
    assert not judged_mean(h, j).is_used
    alone = judged_mean([0.5, NAN], [0.5, 0.4])
    assert (alone.mean, alone.low, alone.high) == (0.5, -math.inf, math.inf)
    assert math.isnan(judged_mean([NAN], [0.4]).mean)


@pytest.mark.parametrize(
    ("human", "judge", "level", "message"),
    [
        ([0.5], [0.5, 0.4], 0.95, "human has 1 lists and judge 2"),
        ([0.5], [math.inf], 0.95, "1 values are infinite"),
        ([0.5], [0.5], 1.0, "level is 1.0"),
        ([[0.5]], [0.5], 0.95, "human has shape"),
    ],
)
def test_bad_values(human, judge, level, message):
    with pytest.raises(ValueError, match=message):
        judged_mean(human, judge, level=level)


# The command


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A run over 90 queries, people's judgments of 30 (of the first, half), the judge's of all."""
    folder, rng = tmp_path_factory.mktemp("judged"), np.random.default_rng(1)
    run, people, judge = [], [], []
    for q in range(90):
        grade = rng.choice(3, 12, p=[0.6, 0.3, 0.1])
        score = grade * rng.uniform(0, 3) + rng.normal(size=12)
        run += [f"q{q} Q0 d{d} 1 {score[d]:.5f} mine" for d in range(12)]
        people += [f"q{q} 0 d{d} {grade[d]}" for d in range(12) if q < 30 and (q or d > 5)]
        judge += [f"q{q} 0 d{d} {grade[d] if rng.random() < 0.9 else 1}" for d in range(12)]
    for name, lines in (("run.txt", run), ("human.txt", people), ("llm.txt", judge)):
        (folder / name).write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def evaluated(files, placet_command):
    """``evaluated(*words, code=0)``: stdout and stderr of ``placet evaluate`` in the folder of the files."""

    def run(*words, code=0):
        return placet_command("evaluate", *(files / one if one.endswith(".txt") else one for one in words), code=code)

    return run


def test_the_command_says_what_the_judge_is_worth(evaluated):
    told, said = evaluated("run.txt", "--qrels", "human.txt", "--judged", "llm.txt", "--json")
    found = json.loads(told)["ndcg@10"]
    assert found["low"] < found["mean"] < found["high"]
    assert found["high"] - found["low"] < 0.9 * (found["people high"] - found["people low"])
    assert found["both"] == 30
    assert f"are worth {found['worth']:.0f} queries of people" in said
    assert "taken as a random sample" in said
    assert "documents that the judge finds relevant have no grade in queries that people judged" in said
    assert evaluated("run.txt", "human.txt", "--judged", "llm.txt", "--json")[0] == told
    alone = json.loads(evaluated("run.txt", "human.txt", "--json")[0])["ndcg@10"]
    assert alone["mean"] == found["people"]


def test_values_per_query_are_those_that_the_mean_is_of(evaluated):
    asked = ("run.txt", "human.txt", "--judged", "llm.txt", "--metric", "ndcg@5")
    head, *rows = [line.split("\t") for line in evaluated(*asked, "--per-query")[0].splitlines()]
    assert head == ["qid", "ndcg@5 people", "ndcg@5 judge"]
    values = np.array([[float(cell or "nan") for cell in row[1:]] for row in rows])
    assert np.isnan(values[:, 0]).sum() == 60
    assert json.loads(evaluated(*asked, "--json")[0])["ndcg@5"]["mean"] == judged_mean(*values.T).mean


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run.txt", "human.txt", "--qrels", "human.txt"), "the labels are given twice"),
        (("run.txt",), "placet evaluate needs LABELS"),
        (("run.txt", "human.txt", "--judged", "other.txt"), "none of its 1 queries is among the 30 of"),
        (("run.txt", "human.txt", "--judged", "llm.txt", "--train", "llm.txt"), "take no other option of reading"),
        (("run.txt", "human.txt", "--judged", "run.txt"), "6 fields instead of 4"),
    ],
)
def test_bad_input_of_the_command(files, evaluated, words, message):
    (files / "other.txt").write_text("x1 0 d1 1\n")
    out, err = evaluated(*words, code=2)
    assert message in err
    assert not out
