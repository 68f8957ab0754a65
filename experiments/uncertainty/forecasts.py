"""Forecasts of dated votes: are favorites as sure as they are said to be, and is Elo beaten at its own game?

    python -m experiments.uncertainty.forecasts [--quick] [--seed N]      # from the project's root

Knock-out tournaments of players whose skills move by steps with heavy tails, and who are in good or bad form for some
tournaments in a row.  The widths are learned from the first half; then every match is predicted from all before it.
``said - seen`` is how much more often favorites were said to win than they won.  The full form adds international
football (a year ahead and after every match), from votes/international-football.csv.
"""

import lzma
import math
from collections.abc import Iterator

import numpy as np

import placet
from experiments.common import check, data_folder, expected, parser

PLAYERS, DRAW, K = 200, 16, 32.0


def tour(seed: int, events: int, form: float) -> list[tuple[int, int, bool, float]]:
    """Matches (first, second, whether the first won, time)."""
    rng = np.random.default_rng(seed)
    skill, days, rows = rng.normal(size=PLAYERS), np.zeros(PLAYERS), []
    for event in range(events):
        skill = skill + 0.08 * rng.standard_t(4, PLAYERS)
        days = 0.9 * days + math.sqrt(0.19) * form * rng.normal(size=PLAYERS)
        today, entry = skill + days, np.exp(skill)
        left, level = rng.choice(PLAYERS, DRAW, replace=False, p=entry / entry.sum()).tolist(), 0
        while len(left) > 1:
            pairs = list(zip(left[::2], left[1::2]))
            won = [rng.random() < 1 / (1 + math.exp(today[j] - today[i])) for i, j in pairs]
            rows += [(i, j, w, event / 20 + level / 1000) for (i, j), w in zip(pairs, won)]
            left, level = [i if w else j for (i, j), w in zip(pairs, won)], level + 1
    return rows


def votes_of(rows: list[tuple[int, int, bool, float]]) -> placet.Comparisons:
    i, j, won, when = zip(*rows)
    outcome = np.where(won, "a", "b").tolist()
    return placet.Comparisons.from_battles(i, j, outcome, items=range(PLAYERS), time=np.array(when))


def elo(rows: list[tuple[int, int, bool, float]]) -> np.ndarray:
    """Probabilities that Elo ratings, updated after every match, gave to what happened."""
    rating, found = np.zeros(PLAYERS), []
    for i, j, won, _ in rows:
        p = 1 / (1 + 10 ** ((rating[j] - rating[i]) / 400))
        found.append(p if won else 1 - p)
        rating[i], rating[j] = rating[i] + K * (won - p), rating[j] - K * (won - p)
    return np.array(found)


def over_sure(p: np.ndarray) -> float:
    return float(np.maximum(p, 1 - p).mean() - (p > 0.5).mean())


def forecasts(form: float, events: int, runs: int, seed: int) -> Iterator[tuple[str, float]]:
    """Mean over runs of said - seen, of the log loss, and of what Elo's is higher by."""
    said, loss, lead = [], [], []
    for run in range(runs):
        rows = tour(seed + run, events, form)
        half = len(rows) // 2
        board = placet.consensus(votes_of(rows[:half]), "bradley-terry", drift="learn", step=1.0)
        _, cost = board.timeline.forecast.updated(votes_of(rows[half:]))
        said.append(over_sure(np.exp(-cost)))
        loss.append(float(cost.mean()))
        lead.append(float(-np.log(elo(rows)[half:]).mean()) - loss[-1])
    name = f"simulated, tour, form {form:g}"
    yield f"{name}, said - seen", float(np.mean(said))
    yield f"{name}, log loss of Elo - ours", float(np.mean(lead))
    yield f"{name}, log loss", float(np.mean(loss))


def football() -> Iterator[tuple[str, float]]:
    """Log loss of win, draw and loss in 2014, 2019 and 2024: a year ahead, and after every match."""
    folder = data_folder("votes/international-football.csv.xz")
    if folder is None:
        return
    import polars as pl

    with lzma.open(folder) as file:
        frame = pl.read_csv(file.read(), infer_schema=False)
    frame = frame.filter(pl.col("home_score").str.contains(r"^\d+$") & pl.col("away_score").str.contains(r"^\d+$"))
    home, away = frame["home_score"].cast(pl.Int64).to_numpy(), frame["away_score"].cast(pl.Int64).to_numpy()
    outcome = np.where(home > away, "a", np.where(home < away, "b", "tie"))
    at_home = (frame["neutral"].str.to_lowercase() != "true").to_numpy().astype(float)
    when = frame["date"].to_numpy().astype("datetime64[s]")
    names = sorted(set(frame["home_team"]) | set(frame["away_team"]))
    every = placet.Comparisons.from_battles(
        frame["home_team"].to_list(),
        frame["away_team"].to_list(),
        outcome.tolist(),
        items=names,
        time=when,
        control={"home": at_home},
    )
    ahead, each, n = 0.0, 0.0, 0.0
    for year in (2014, 2019, 2024):
        start, end = np.datetime64(f"{year}-01-01"), np.datetime64(f"{year + 1}-01-01")
        before, within = (
            every[np.flatnonzero(every.time < start)],
            every[np.flatnonzero((every.time >= start) & (every.time < end))],
        )
        board = placet.consensus(before, "bradley-terry", ties="davidson", drift="learn", step="1y")
        forecast = board.timeline.forecast
        each += float(forecast.updated(within)[1].sum())
        votes = [within[np.array([r])] for r in range(len(within))]
        ahead += sum(float(forecast.updated(one)[1].sum()) for one in votes)
        n += float((within.wins_i + within.wins_j + within.ties).sum())
    yield "international football, log loss a year ahead", ahead / n
    yield "international football, log loss after every match", each / n


def main() -> None:
    arguments = parser(__doc__).parse_args()
    events, runs = (160, 3) if arguments.quick else (400, 8)
    ours: dict[str, float] = {}
    for form in (0.0, 1.0):
        ours |= dict(forecasts(form, events, runs, arguments.seed))
    if not arguments.quick:
        ours |= dict(football())
    print("\n".join(f"{name}: {value:.4f}" for name, value in ours.items()))
    check(ours, expected(__file__, "quick" if arguments.quick else ""))


if __name__ == "__main__":
    main()
