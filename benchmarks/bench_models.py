"""Extended models: controls against scikit-learn and arena-rank, raters by held-out votes, time-varying scores.

    python -m benchmarks.bench_models [part ...] [--quick]

controls   135,000 votes on 100 items with four controls of effects 0.25, 0.10, 0.05, 0.02: time, and the effects found
raters     votes on language models (LLMFAO, in the folder PLACET_DATA or ../shared/data; simulated if missing): 5-fold log loss of
           held-out votes, by what raters may differ in
time       international football (same folder; simulated if missing): time of a fit with yearly steps, with drift learned and given,
           against whole-history-rating (`pip install whole-history-rating`) if installed; log loss of 2014, 2019, 2024 given the years before
"""

import importlib.util
import lzma
import os
from pathlib import Path

import numpy as np
import pandas
import polars as pl
from scipy.sparse import csr_matrix, hstack
from sklearn.linear_model import LogisticRegression

from benchmarks.harness import compare, main
from placet import Comparisons, consensus
from placet.losses.pairwise import outcome_costs, outcome_probabilities

EFFECTS = np.array([0.25, 0.10, 0.05, 0.02])
NAMES = ("length", "headers", "bold", "lists")
DATA = Path(os.environ.get("PLACET_DATA", Path(__file__).parents[2] / "shared" / "data"))


def votes_with_controls(n: int, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Sides, outcomes (a, b or tie) and controls of simulated votes."""
    rng = np.random.default_rng(4)
    theta = rng.normal(size=n) / 2
    a = rng.integers(0, n, m)
    b = (a + rng.integers(1, n, m)) % n
    Z = rng.normal(size=(m, len(EFFECTS)))
    win, loss, _ = outcome_probabilities(theta[a] - theta[b] + Z @ EFFECTS, "davidson", -0.3)
    u = rng.random(m)
    return a, b, np.where(u < win, "a", np.where(u < win + loss, "b", "tie")), Z


def bench_controls(quick: bool) -> None:
    n, m = (30, 10_000) if quick else (100, 135_000)
    a, b, outcome, Z = votes_with_controls(n, m)
    votes = Comparisons.from_battles(a, b, outcome, control=dict(zip(NAMES, Z.T)))
    found: dict[str, np.ndarray] = {}

    def ours(who: str, **params: object) -> None:
        found[who] = consensus(votes, "bradley-terry", ties="davidson", **params).controls["coefficient"].to_numpy()

    rows = np.repeat(np.arange(m), 2)
    X = csr_matrix((np.tile([1.0, -1.0], m), (rows, np.column_stack([a, b]).ravel())), shape=(m, n))
    X, won = hstack([X, csr_matrix(Z)]).tocsr(), (outcome == "a") + 0.5 * (outcome == "tie")
    both, weight = csr_matrix(np.vstack([X.toarray(), X.toarray()])), np.concatenate([won, 1 - won])

    def by_sklearn() -> None:  # a tie is half a win for each side
        model = LogisticRegression(C=100.0, fit_intercept=False).fit(both, np.repeat([1, 0], m), sample_weight=weight)
        found["scikit-learn"] = model.coef_[0][n:]

    contestants = {
        "placet": lambda: ours("placet"),
        "placet, prior given": lambda: ours("placet, prior given", prior=0.5),
        "scikit-learn": by_sklearn,
    }
    if importlib.util.find_spec("arena_rank"):
        contestants["arena-rank"] = lambda: found.update({"arena-rank": by_arena(n, a, b, outcome, Z)})
    for run in contestants.values():
        run()
    notes = {who: " ".join(f"{value:.3f}" for value in effect) for who, effect in found.items()}
    compare(f"controls {n} items {m} votes", contestants, repeat=3, notes=notes)


def by_arena(n: int, a: np.ndarray, b: np.ndarray, outcome: np.ndarray, Z: np.ndarray) -> np.ndarray:
    from arena_rank.models.contextual_bradley_terry import ContextualBradleyTerry
    from arena_rank.utils.data_utils import ContextualPairDataset

    words = np.where(outcome == "a", "model_a", np.where(outcome == "b", "model_b", "tie"))
    frame = pandas.DataFrame({"model_a": a, "model_b": b, "winner": words} | dict(zip(NAMES, Z.T)))
    data = ContextualPairDataset.from_pandas(frame, list(NAMES))
    model = ContextualBradleyTerry(n, len(NAMES))
    model.fit(data)
    return np.asarray(model.params["coeffs"])


def votes_of_workers(quick: bool) -> pl.DataFrame:
    """left, right, winner (left, right or tie) and worker of real or simulated votes."""
    path = DATA / "votes" / "llmfao-crowd.csv.xz"
    if path.exists() and not quick:
        return pl.read_csv(lzma.open(path).read())
    rng = np.random.default_rng(0)
    n, m, each = 20, 30, 60
    theta, sharp, tie = rng.normal(size=n), rng.normal(1, 0.5, m), rng.normal(0, 1, m)
    rows = []
    for k in np.repeat(np.arange(m), each):
        a, b = rng.choice(n, 2, replace=False)
        win, loss, _ = outcome_probabilities(sharp[k] * (theta[a] - theta[b]), "davidson", tie[k])
        u = rng.random()
        rows.append((f"m{a}", f"m{b}", int(k), "left" if u < win else "right" if u < win + loss else "tie"))
    return pl.DataFrame(rows, schema=["left", "right", "worker", "winner"], orient="row")


def bench_raters(quick: bool) -> None:
    votes = votes_of_workers(quick)
    left, right, worker = (votes[name].to_numpy() for name in ("left", "right", "worker"))
    outcome = votes["winner"].replace({"left": "a", "right": "b"}).to_numpy()
    items = sorted(set(left) | set(right))
    fold = np.random.default_rng(0).permutation(len(left)) % 5
    for agents in (None, "sharpness", "ties", "sharpness+ties", "sharpness+ties+side"):
        total = 0.0
        for k in range(5):
            train, test = fold != k, fold == k
            sides = (left[train], right[train], outcome[train])
            data = Comparisons.from_battles(*sides, agent=worker[train], items=items, ordered=True)
            board = consensus(data, "bradley-terry", ties="davidson", order_effect=True, agents=agents, stderr=None)
            score = dict(zip(board.items, board.scores))
            gap = np.array([score[x] - score[y] for x, y in zip(left[test], right[test])])
            if agents is None:
                costs = outcome_costs(gap + board.effects.of("order")[0], "davidson", board.tie)
            else:
                costs = [-np.log(p) for p in board.agents.probabilities(worker[test].tolist(), gap)]
            total += float(np.choose([("a", "b", "tie").index(word) for word in outcome[test]], costs).sum())
        loss = total / len(left)
        print(
            f"{len(left)} votes, 5-fold log loss of a held-out vote, raters differ in {agents or 'nothing'}: {loss:.4f}"
        )


def matches(quick: bool) -> pl.DataFrame:
    """date, home_team, away_team, outcome (a, b or tie) and at_home (0 on neutral ground) of real or simulated matches."""
    path = DATA / "votes" / "international-football.csv.xz"
    if path.exists() and not quick:
        frame = pl.read_csv(lzma.decompress(path.read_bytes()), null_values=["NA"], infer_schema_length=None)
        frame = frame.drop_nulls(["home_score", "away_score"])
        lead = pl.col("home_score") - pl.col("away_score")
        word = pl.when(lead > 0).then(pl.lit("a")).when(lead < 0).then(pl.lit("b")).otherwise(pl.lit("tie"))
        neutral = pl.col("neutral").cast(pl.String).str.to_lowercase() == "true"
        return frame.select(
            "date", "home_team", "away_team", word.alias("outcome"), (~neutral).cast(pl.Float64).alias("at_home")
        )
    rng = np.random.default_rng(0)
    years, n = np.arange(1990, 2025), 20
    theta = np.cumsum(np.vstack([rng.normal(size=n), 0.3 * rng.normal(size=(len(years) - 1, n))]), axis=0)
    rows = []
    for k, year in enumerate(years):
        for _ in range(60):
            a, b = rng.choice(n, 2, replace=False)
            win, loss, _ = outcome_probabilities(theta[k, a] - theta[k, b] + 0.4, "davidson", -0.3)
            u = rng.random()
            rows.append((f"{year}-06-01", f"t{a}", f"t{b}", "a" if u < win else "b" if u < win + loss else "tie", 1.0))
    return pl.DataFrame(rows, schema=["date", "home_team", "away_team", "outcome", "at_home"], orient="row")


def dated_games(frame: pl.DataFrame, items: list[str]) -> Comparisons:
    columns = (frame[name].to_numpy() for name in ("home_team", "away_team", "outcome"))
    control = {"home": frame["at_home"].to_numpy()}
    return Comparisons.from_battles(
        *columns, items=items, control=control, time=frame["date"].cast(pl.String).to_list()
    )


def bench_time(quick: bool) -> None:
    frame = matches(quick).with_columns(pl.col("date").cast(pl.String))
    items = sorted(set(frame["home_team"]) | set(frame["away_team"]))
    games = dated_games(frame, items)
    fit = lambda **params: consensus(games, "bradley-terry", ties="davidson", **params)  # noqa: E731
    contestants = {
        "placet, drift learned": lambda: fit(drift="learn"),
        "placet, drift given": lambda: fit(drift=0.14, prior=2.4),
    }
    if importlib.util.find_spec("whr"):
        contestants["whole-history-rating, 10 passes"] = lambda: by_whole_history(frame, 10)
    compare(f"scores that move {len(frame)} matches {len(items)} items", contestants, repeat=1)
    for params in ({}, {"drift": "learn"}, {"drift": 0.14, "prior": 2.4}):
        total, count = 0.0, 0
        for year in (2014, 2019, 2024):
            of_year = pl.col("date").str.slice(0, 4).cast(pl.Int64)
            past, test = frame.filter(of_year < year), frame.filter(of_year == year)
            total, count = total + cost_of(past, test, items, year, params), count + len(test)
        print(
            f"log loss of {count} matches of 2014, 2019 and 2024 from those before, {params or 'scores stand still'}: {total / count:.4f}"
        )


def cost_of(past: pl.DataFrame, test: pl.DataFrame, items: list[str], year: int, params: dict[str, object]) -> float:
    """Total log loss of the matches of a year, averaged over the uncertainty of both scores."""
    data = dated_games(past, items)
    board = consensus(data, "bradley-terry", ties="davidson", **params)
    board = board.at(f"{year}-07-01") if params else board
    index = {name: k for k, name in enumerate(items)}
    i, j = (np.array([index[name] for name in test[side]]) for side in ("home_team", "away_team"))
    gap = board.scores[i] - board.scores[j] + board.controls["coefficient"][0] * test["at_home"].to_numpy()
    spread = np.hypot(board.stderr[i], board.stderr[j])
    nodes, weight = np.polynomial.hermite_e.hermegauss(21)
    chance = sum(
        w * np.array(outcome_probabilities(gap + z * spread, "davidson", board.tie)) for z, w in zip(nodes, weight)
    )
    chosen = [("a", "b", "tie").index(word) for word in test["outcome"]]
    return -float(np.log(chance[chosen, np.arange(len(test))] / weight.sum()).sum())


def by_whole_history(frame: pl.DataFrame, passes: int) -> object:
    """Whole-history rating: its days are years, w2 is in squared Elo points per day; a draw is half a win."""
    import warnings

    from whr import Base

    unit = 400 / np.log(10)
    board = Base({"w2": (0.14 * unit) ** 2})
    winner = {"a": "B", "b": "W", "tie": "D"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for date, home, away, outcome, _ in frame.iter_rows():
            board.create_game(home, away, winner[outcome], int(date[:4]) - 1800, 0)
        board.iterate(passes)
    return board


if __name__ == "__main__":
    main(__doc__, {"controls": bench_controls, "raters": bench_raters, "time": bench_time})
