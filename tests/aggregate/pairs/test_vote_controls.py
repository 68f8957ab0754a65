"""Controls: effects are recovered and covered, equal to a logistic regression, read from files, and held at 0."""

import json
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

import placet
from placet import optim
from placet.aggregate import consensus
from placet.aggregate.pairs.bradley_terry import BradleyTerry
from placet.data import Comparisons, DataError
from placet.losses.pairwise import TIES, outcome_probabilities

POINTS = 400 / np.log(10)


def styled(n, votes, effect, seed, *, ties="none", tie=0.0, spread=1.0):
    """Scores, columns of controls and votes on them, one by one."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=n)
    theta -= theta.mean()
    a = rng.integers(0, n, votes)
    b = (a + rng.integers(1, n, votes)) % n
    Z = spread * rng.normal(size=(votes, len(effect)))
    tie = -np.inf if ties == "none" else tie
    win, loss, _ = outcome_probabilities(theta[a] - theta[b] + Z @ effect, TIES[ties], tie)
    u = rng.random(votes)
    return theta, a, b, Z, np.where(u < win, "a", np.where(u < win + loss, "b", "tie"))


def test_equal_to_a_logistic_regression_on_the_same_columns():
    _, a, b, Z, outcome = styled(8, 4000, [0.4, -0.2], 0, spread=3.0)
    votes = Comparisons.from_battles(a, b, outcome, items=range(8), control={"length": Z[:, 0], "bold": Z[:, 1]})
    found = consensus(votes, "bradley-terry", prior=None)
    X = np.zeros((4000, 8))
    X[np.arange(4000), a] += 1
    X[np.arange(4000), b] -= 1
    X = np.column_stack([X[:, 1:], Z])
    slow = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-12, max_iter=1000).fit(X, outcome == "a")
    theta = np.append(0.0, slow.coef_[0][:7])
    np.testing.assert_allclose(found.scores, theta - theta.mean(), atol=1e-6)
    np.testing.assert_allclose(found.controls["coefficient"], slow.coef_[0][7:], atol=1e-6)
    p = slow.predict_proba(X)[:, 1]
    errors = np.sqrt(np.diag(np.linalg.inv(X.T @ ((p * (1 - p))[:, None] * X))))
    np.testing.assert_allclose(found.controls["stderr"], errors[7:], rtol=1e-6)


@pytest.mark.parametrize("ties", list(TIES))
def test_the_optimum_is_that_of_a_slow_optimizer(ties):
    _, a, b, Z, outcome = styled(4, 150, [0.5, -1.0], 1, ties="davidson")
    votes = Comparisons.from_battles(a, b, outcome, items=range(4), control=Z, ordered=True)
    found = consensus(votes, "bradley-terry", ties=ties, prior=2.0, order_effect=True)
    unit = np.sqrt((Z**2).mean(axis=0))

    def cost(x):
        tie = x[4] if ties != "none" else -np.inf
        d = x[:4][a] - x[:4][b] + Z @ x[5:7] + x[7]
        win, loss, tied = outcome_probabilities(d, TIES[ties], tie)
        tied = np.sqrt(win * loss) if ties == "none" else tied
        value = -np.log(np.select([outcome == "a", outcome == "b"], [win, loss], tied)).sum()
        extra = [x[4] * (ties != "none"), *(x[5:7] * unit), x[7]]
        return value + x[:4] @ x[:4] / 8 + np.square(extra).sum() / 200

    slow = minimize(cost, np.full(8, 0.1), method="BFGS", options={"gtol": 1e-6})
    np.testing.assert_allclose(found.scores, slow.x[:4] - slow.x[:4].mean(), atol=1e-5)
    np.testing.assert_allclose(found.controls["coefficient"], slow.x[5:], atol=1e-5)
    assert found.controls["name"].to_list() == ["control 1", "control 2", "order"]
    assert found.effects.of("order")[0] == found.controls["coefficient"][2]


@pytest.mark.parametrize("ties", list(TIES))
@pytest.mark.parametrize("stderr", ["observed", "sandwich"])
def test_intervals_of_effects_cover(ties, stderr):
    """Sixty draws of three effects: 95% are within 1.96 standard errors, give or take three of its own."""
    effect = np.array([0.25, 0.1, 0.0])
    inside = []
    for seed in range(60):
        _, a, b, Z, outcome = styled(6, 800, effect, seed, ties=ties)
        votes = Comparisons.from_battles(a, b, outcome, control=Z)
        found = consensus(votes, "bradley-terry", ties=ties, stderr=stderr, prior=1.0).controls
        inside += (abs(found["coefficient"].to_numpy() - effect) < 1.96 * found["stderr"].to_numpy()).tolist()
    assert abs(np.mean(inside) - 0.95) < 3 * np.sqrt(0.95 * 0.05 / 180)


def test_effects_of_many_votes_are_recovered_and_items_are_ranked_without_them():
    """As many votes as a real arena's, of models whose answers differ in length."""
    effect = np.array([0.25, 0.1, 0.05, 0.02])
    rng = np.random.default_rng(2)
    n, m = 50, 135_000
    theta, style = rng.normal(size=n) / 2, rng.normal(size=n)
    a = rng.integers(0, n, m)
    b = (a + rng.integers(1, n, m)) % n
    Z = rng.normal(size=(m, 4))
    Z[:, 0] += 2 * (style[a] - style[b])  # some models are wordy
    win, loss, _ = outcome_probabilities(theta[a] - theta[b] + Z @ effect, "davidson", -0.3)
    u = rng.random(m)
    outcome = np.where(u < win, "a", np.where(u < win + loss, "b", "tie"))
    votes = Comparisons.from_battles(a, b, outcome, items=range(n), control=Z)
    found = consensus(votes, "bradley-terry", ties="davidson")
    frame = found.controls
    error = abs(frame["coefficient"].to_numpy() - effect)
    assert ((error < 0.05 * effect) | (error < 2 * frame["stderr"].to_numpy())).all()
    plain = consensus(votes.pooled(), "bradley-terry", ties="davidson")
    assert np.corrcoef(found.scores, theta)[0, 1] > 0.995 > 0.95 > np.corrcoef(plain.scores, theta)[0, 1]
    np.testing.assert_allclose(frame["points"], POINTS * frame["coefficient"])
    np.testing.assert_allclose(frame["typical_points"], frame["points"] * frame["typical"])


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from([1e-6, 1e3]), st.sampled_from(list(TIES)))
def test_nothing_depends_on_units_sides_or_the_order_of_votes(seed, factor, ties):
    _, a, b, Z, outcome = styled(4, 60, [0.5, 0.2], seed, ties="rao-kupper")
    fit = lambda *votes, Z: consensus(  # noqa: E731
        Comparisons.from_battles(*votes, items=range(4), control=Z), "bradley-terry", ties=ties, prior=1.0
    )
    plain = fit(a, b, outcome, Z=Z)
    scaled = fit(a, b, outcome, Z=Z * [factor, 1])
    np.testing.assert_allclose(scaled.scores, plain.scores, atol=1e-7)
    coefficient = scaled.controls["coefficient"].to_numpy() * [factor, 1]
    np.testing.assert_allclose(coefficient, plain.controls["coefficient"], atol=1e-7)
    turned = np.array([{"a": "b", "b": "a"}.get(word, word) for word in outcome])
    order = np.random.default_rng(seed).permutation(60)
    other = fit(b[order], a[order], turned[order], Z=-Z[order])
    np.testing.assert_allclose(other.scores, plain.scores, atol=1e-7)
    np.testing.assert_allclose(other.controls["stderr"], plain.controls["stderr"], rtol=1e-6)


def test_equal_votes_are_counted_and_halves_put_together():
    a, b = ["x", "y", "x", "x"], ["y", "x", "y", "y"]
    control = {"first": [1, 1, 0, 1]}
    votes = Comparisons.from_battles(a, b, ["a", "b", "a", "b"], control=control)
    assert len(votes) == 3  # x beat y with 1, y lost at home, x beat y with 0, y beat x with 1
    np.testing.assert_array_equal(votes.control[:, 0], [-1, 0, 1])
    np.testing.assert_array_equal(votes.wins_i, [1, 1, 1])
    np.testing.assert_array_equal(votes.wins_j, [0, 0, 1])
    outcome, items = ["a", "b", "a", "b"], ["x", "y"]
    halves = [slice(0, 2), slice(2, 4)]
    parts = [
        Comparisons.from_battles(a[h], b[h], outcome[h], items=items, control={"first": control["first"][h]})
        for h in halves
    ]
    assert placet.concat(parts) == votes
    assert votes[[0, 1, 2]] == votes
    assert votes.pooled().control is None
    with pytest.raises(DataError, match="different controls|no control"):
        placet.concat([votes, votes.pooled()])


def test_bootstrap_and_other_methods():
    _, a, b, Z, outcome = styled(4, 500, [0.5], 3)
    votes = Comparisons.from_battles(a, b, outcome, control={"length": Z[:, 0]})
    boot = consensus(votes, "bradley-terry", bootstrap=100)
    plain = consensus(votes, "bradley-terry")
    np.testing.assert_allclose(boot.stderr, plain.stderr, rtol=0.35)
    notes = consensus(votes, "borda").notes
    assert "'borda' does not look at the controls (length)" in notes
    with pytest.raises(ValueError, match="there are no controls"):
        _ = consensus(votes.pooled(), "bradley-terry").controls


def test_what_cannot_be_told_apart_is_an_error():
    _, a, b, Z, outcome = styled(4, 300, [0.5], 3)
    of_items = np.array([1.0, 2.0, 3.0, 5.0])
    for control in ({"size": of_items[a] - of_items[b]}, {"z": Z[:, 0], "twice": 2 * Z[:, 0]}, {"zero": np.zeros(300)}):
        votes = Comparisons.from_battles(a, b, outcome, items=range(4), control=control)
        with pytest.raises(DataError, match="cannot be told"):
            consensus(votes, "bradley-terry", prior=None)
        assert np.isfinite(consensus(votes, "bradley-terry").controls["coefficient"].to_numpy()).all()
    with pytest.raises(DataError, match="row 1: control 'z' is nan"):
        Comparisons.from_battles("ab", "ba", ["a", "a"], control={"z": [1.0, np.nan]})
    with pytest.raises(DataError, match="3 rows are needed|2 rows are needed"):
        Comparisons.from_battles("ab", "ba", ["a", "a"], control={"z": [1.0]})
    ordered = Comparisons.from_battles(
        "abab", "baba", ["a", "a", "b", "b"], control={"order": [1, 2, 3, 4]}, ordered=True
    )
    with pytest.raises(DataError, match="rename it"):
        BradleyTerry(order_effect=True).fit(ordered)


@pytest.mark.parametrize("ties", ["none", "davidson", "rao-kupper"])
def test_a_control_that_tells_every_winner_has_no_finite_effect(ties):
    _, a, b, Z, outcome = styled(4, 300, [0.5, 0.3], 3)
    outcome = np.where(outcome == "tie", "a", outcome)
    told = np.where(outcome == "a", 1.0, -1.0)
    rare = np.where((np.arange(300) % 10 == 0) & (outcome == "a"), 1.0, 0.0)  # tells some winners, and never fails
    outcome[1::30] = "tie"
    told[1::30] = 0.0
    for control in ({"told": told, "z": Z[:, 0]}, {"z": Z[:, 0], "rare": rare}):
        name = next(name for name in control if name != "z")
        votes = Comparisons.from_battles(a, b, outcome, items=range(4), control=control)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optim.ConvergenceWarning)
            with pytest.raises(
                DataError, match=f"effects of the controls '{name}' have no finite values.*give a prior"
            ):
                BradleyTerry(ties=ties, prior=None).fit(votes)
        effect = BradleyTerry(ties=ties, prior=2.0).fit(votes).consensus_.controls
        assert dict(zip(effect["name"], effect["coefficient"]))[name] > 1
    kept = Comparisons.from_battles(a, b, outcome, items=range(4), control={"z": Z[:, 0]})
    assert np.isfinite(BradleyTerry(ties=ties, prior=None).fit(kept).consensus_.controls["stderr"].to_numpy()).all()


# ---- files

TABLE = {
    "model_a": ["x", "y", "x", "z"],
    "model_b": ["y", "z", "z", "x"],
    "winner": ["model_a", "model_b", "tie", "model_a"],
    "length_a": [10, 20, 30, 40],
    "length_b": [5, 25, 30, 10],
    "bold": [True, False, True, False],
    "slot_a": [1, 2, 3, 1],
    "slot_b": [2, 3, 1, 2],
}


@pytest.mark.parametrize("suffix", ["frame", ".csv", ".parquet", ".jsonl"])
def test_columns_differences_and_one_hot_columns_are_read(tmp_path, suffix):
    source = pl.DataFrame(TABLE)
    if suffix != "frame":
        path = tmp_path / f"votes{suffix}"
        placet.io.tables.tables.write_table(path, TABLE)
        source = path
    votes = placet.read_battles(source, control=["length_a - length_b", "bold", "one-hot(slot)"])
    assert votes.controls == ("length_a - length_b", "bold", "slot=2", "slot=3")
    expected = Comparisons.from_battles(
        TABLE["model_a"],
        TABLE["model_b"],
        ["a", "b", "tie", "a"],
        control=np.array([[5, 1, -1, 0], [-5, 0, 1, -1], [0, 1, 0, 1], [30, 0, -1, 0]]),
    )
    np.testing.assert_array_equal(votes.control, expected.control)
    assert placet.read_battles(source, control="length").controls == ("length",)
    assert placet.read_battles(source, control="one-hot(slot_a)").controls == ("slot_a=1", "slot_a=2", "slot_a=3")


def test_votes_with_controls_are_written_and_read_back(tmp_path):
    _, a, b, Z, outcome = styled(3, 20, [0.5], 3)
    names = np.array(["x", "y", "z"])
    votes = Comparisons.from_battles(names[a], names[b], outcome, items=["x", "y", "z"], control={"bold": Z[:, 0]})
    placet.io.write_battles(votes, tmp_path / "votes.csv")
    again = placet.read_battles(tmp_path / "votes.csv", control="bold", items=["x", "y", "z"])
    assert again == votes


@pytest.mark.parametrize(
    ("control", "message"),
    [
        ("size", "control 'size': column 'size' is not there"),
        ("length_a - size", "column 'size' is not there"),
        ("one-hot(length)", r"votes.csv:2: length_b '2.5' is not a whole number"),
        ("word", r"votes.csv:2: word 'long' is not a finite number"),
    ],
)
def test_bad_columns_are_named(tmp_path, control, message):
    path = tmp_path / "votes.csv"
    path.write_text("model_a,model_b,winner,length_a,length_b,word\nx,y,a,1,2.5,long\ny,x,b,1,2,3\n")
    with pytest.raises(DataError, match=message):
        placet.read_battles(path, control=control)


def test_the_command_takes_controls(tmp_path):
    import json

    from typer.testing import CliRunner

    from placet.cli import app

    path = tmp_path / "votes.csv"
    placet.io.tables.tables.write_table(path, TABLE)
    page = tmp_path / "page.html"
    asked = ["aggregate", str(path), "--control", "length_a - length_b", "--control", "bold", "--json"]
    result = CliRunner().invoke(app, [*asked, "--report", str(page)])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)["controls"]
    assert [row["name"] for row in found] == ["length_a - length_b", "bold"]
    assert "effect of one unit" in page.read_text()


def test_a_board_goes_on_with_its_controls(tmp_path, answer):
    rng = np.random.default_rng(2)
    lines = []
    for _ in range(300):
        a, b = rng.choice(4, 2, replace=False)
        x, y = rng.integers(10, 99, 2)
        won = "a" if rng.random() < 1 / (1 + np.exp(-(a - b) / 2 - (x - y) / 40)) else "b"
        lines.append(f"m{a},m{b},{won},{x},{y}")
    head = "a,b,winner,length_a,length_b"
    for name, rows in (("old", lines[:200]), ("new", lines[200:]), ("all", lines)):
        (tmp_path / f"{name}.csv").write_text("\n".join([head, *rows]) + "\n")
    answer("aggregate", tmp_path / "old.csv", "--control", "length", "--out", tmp_path / "old.json")
    found = json.loads(answer("aggregate", tmp_path / "old.json", tmp_path / "new.csv", "--json"))
    whole = json.loads(answer("aggregate", tmp_path / "all.csv", "--control", "length", "--json"))
    for name in ("coefficient", "stderr"):
        assert found["controls"][0][name] == pytest.approx(whole["controls"][0][name], rel=1e-4)
    answer("aggregate", tmp_path / "old.csv", "--control", "one-hot(length)", "--out", tmp_path / "hot.json")
    said = answer("aggregate", tmp_path / "hot.json", tmp_path / "new.csv", code=2)
    assert "read them all with the same --control" in said
    said = answer("aggregate", tmp_path / "all.csv", "--drift", "learn", "--method", "borda", code=2)
    assert "--drift learn is for votes on pairs" in said
    assert "name the column of dates with --time" in answer("aggregate", tmp_path / "all.csv", "--drift", "1", code=2)
