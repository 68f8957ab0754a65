"""Item response of score tables: cells held out, coverage of predictions, invariances, errors."""

import numpy as np
import pytest

import placet
from placet import DataError, Scores, Sources, consensus
from placet.aggregate.sources.item_response import TableLikelihood
from placet.aggregate.sources.joint_mode import JointPosterior, Widths
from placet.aggregate.sources.source_fit import fit_sources
from placet.simulate import benchmark_table
from tests.aggregate.sources.test_source_fit import drawn


def simulated(seed, n=60, t=15, observed=0.5):
    rng = np.random.default_rng(seed)
    theta, b, s = 1.2 * rng.standard_normal(n), rng.standard_normal(t), np.exp(0.3 * rng.standard_normal(t))
    every = benchmark_table(theta, b, slope=s, dispersion=0.03, observed=1.0, random_state=seed)
    there = rng.random((n, t)) < observed
    there[:, 0] = True
    kept = Scores.from_table(np.where(there, every.value, np.nan), items=every.items, tasks=every.tasks)
    return theta, s, every, kept, there


def test_missing_cells_are_predicted_and_intervals_cover():
    theta, s, every, kept, there = simulated(1)
    found = consensus(kept, "item-response")
    assert np.corrcoef(found.scores, theta)[0, 1] > 0.95
    inside, error = [], []
    for i, t in np.argwhere(~there):
        cell = found.predict(every.items[i], every.tasks[t])
        inside.append(cell.low <= every.value[i, t] <= cell.high)
        error.append(cell.mean - every.value[i, t])
    assert 0.92 < np.mean(inside) < 0.98
    assert 1 - np.mean(np.square(error)) / np.var(every.value[~there]) > 0.85
    frame = found.tasks_frame()
    slope = dict(zip(frame["task"], frame["slope"]))
    assert np.corrcoef([np.log(slope[name]) for name in every.tasks], np.log(s))[0, 1] > 0.5
    z = (found.scores - (theta - theta.mean()) * np.std(found.scores) / np.std(theta)) / found.stderr
    assert np.mean(np.abs(z) < 1.96) > 0.85


def test_numbers_are_standardized_and_units_do_not_matter():
    _, _, every, kept, there = simulated(2)
    i, t = np.argwhere(~there)[0]
    logits = np.log(np.clip(kept.value, 0.02, 0.98) / (1 - np.clip(kept.value, 0.02, 0.98)))
    one = Scores.from_table(logits, items=every.items, tasks=every.tasks)
    other = Scores.from_table(100 + 7 * logits, items=every.items, tasks=every.tasks)
    a, b = consensus(one, "item-response"), consensus(other, "item-response")
    assert a.scores == pytest.approx(b.scores, abs=1e-6)
    assert b.predict(every.items[i], every.tasks[t]).mean == pytest.approx(
        100 + 7 * a.predict(every.items[i], every.tasks[t]).mean, rel=1e-6
    )
    assert any("taken as numbers" in note for note in a.notes)


def test_order_of_items_and_tasks_does_not_matter():
    _, _, every, kept, _ = simulated(3, n=20, t=8)
    rng = np.random.default_rng(0)
    p, q = rng.permutation(20), rng.permutation(8)
    mixed = Scores.from_table(kept.value[p][:, q], items=[every.items[k] for k in p], tasks=[every.tasks[k] for k in q])
    a, b = consensus(kept, "item-response"), consensus(mixed, "item-response")
    assert b.scores == pytest.approx(a.scores[p], abs=1e-5)


def test_it_is_the_default_where_cells_are_missing():
    _, _, every, kept, _ = simulated(4, n=20, t=8)
    assert consensus(kept).method == "item-response"
    assert consensus(every).method == "mean"


def test_questions_count_as_their_number():
    """A share of few questions counts for less: with more questions of the same share, errors are smaller."""
    rng = np.random.default_rng(0)
    p = 1 / (1 + np.exp(-(np.linspace(1, -1, 8)[:, None] - np.linspace(-1, 1, 4))))

    def table(count):
        task = np.repeat(np.arange(4), count)
        value = (rng.random((8, 4 * count)) < p[:, task]).astype(float)
        return Scores(value, task, tuple("abcdefgh"), tuple("wxyz"), tuple(range(4 * count)))

    few, many = consensus(table(10), "item-response"), consensus(table(200), "item-response")
    assert many.stderr.mean() < 0.6 * few.stderr.mean()


def test_errors():
    with pytest.raises(DataError, match="one task alone"):
        consensus(Scores.from_table([[0.1], [0.2]]), "item-response")
    with pytest.raises(DataError, match="all scores are equal"):
        consensus(Scores.from_table([[0.5, 0.5], [0.5, 0.5]]), "item-response")
    with pytest.raises(DataError, match="shares are in 0..1"):
        consensus(Scores.from_table([[5.0, 0.5], [0.5, 0.2]]), "item-response", response="share")
    found = consensus(Scores.from_table([[0.4, 0.5], [0.5, 0.2]]), "item-response")
    with pytest.raises(ValueError, match="task 'x' is not among the 2 tasks"):
        found.predict(0, "x")
    with pytest.raises(ValueError, match="knows no tasks"):
        consensus(placet.Rankings.from_orders([["a", "b"]]), "borda").predict("a", 0)


@pytest.mark.parametrize("solved", ["1111 1110 1111 1110 1010", "101 101 001 10- 101 111"])
def test_dispersions_that_overshoot_are_damped(solved):
    """Without damping, two sets of dispersions follow each other; the second is item response with a table's default."""
    value = [[np.nan if cell == "-" else float(cell) for cell in row] for row in solved.split()]
    table = Scores.from_table(value)
    fit = fit_sources(None, [TableLikelihood.of(table, np.arange(len(value)))], len(value)).fit
    assert (fit.message, fit.converged) == ("converged", True)
    assert consensus(table, "item-response", bootstrap=2).fit.converged


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", [8, 29, 50])
def test_a_table_of_noise_beside_votes_converges(seed):
    """The abilities hardly agree with the votes, so that the observed Hessian of the table need not be definite."""
    rng = np.random.default_rng(seed)
    theta, names = rng.standard_normal(20), [f"m{k}" for k in range(20)]
    noise = rng.random((20, 3))
    noise[np.arange(20) % 3 > 0, 1] = np.nan
    data = {"human": drawn(theta, 1000, rng, names=names), "judge": drawn(1.3 * theta, 6000, rng, names=names)}
    found = consensus(Sources(data | {"bench": Scores.from_table(noise, items=names)}, "human"))
    assert found.fit.converged
    assert np.corrcoef(found.scores, theta)[0, 1] > 0.97


def test_a_table_that_learned_at_another_width_has_a_step():
    """A step with an observed Hessian that is not definite is made with the expected one."""
    rng = np.random.default_rng(2)
    index = np.arange(12)
    table = TableLikelihood.of(Scores.from_table(rng.random((12, 3))), index)
    joint = JointPosterior(None, [table], 12)
    joint.mode(joint.start(), Widths(1.0, np.ones(1), np.full(1, 0.05)), 100)
    joint.widths = Widths(1.0, np.ones(1), np.full(1, 3.0))
    failed = 0
    for _ in range(20):
        x = 1.5 * rng.standard_normal(joint.size)
        gradient = joint.value_and_gradient(x)[1]
        assert table.precision == pytest.approx(400)
        assert gradient @ joint.solve(x, gradient) > 0
        try:
            failed += gradient @ joint._step(x, gradient) <= 0
        except np.linalg.LinAlgError:
            failed += 1
    assert failed > 3
