"""Walk-forward forecasts of games: do margins and goals say more than who won, and are favorites as sure as said?

    python -m experiments.games.walk_forward [--quick]      # from the project's root

Simulated leagues whose teams move over time, and doubles in which every player has a score.  The full form adds
international football: win, draw and loss in 2014, 2019 and 2024, a year ahead, from votes/international-football.csv.
The half-life is chosen on 2009 and 2012, before the years of the test; widths of priors are learned.
"""

import lzma
import math
from collections.abc import Iterator

import numpy as np

import placet
from experiments.common import check, data_folder, expected, parser
from placet.data import Games

TEAMS, YEARS = 20, 8


def league(seed: int) -> Games:
    """Seasons of home and away games; strengths move every year, and goals are Poisson."""
    rng = np.random.default_rng(seed)
    attack, defense = 0.35 * rng.normal(size=(2, TEAMS))
    rows = []
    for year in range(YEARS):
        for i in range(TEAMS):
            for j in rng.choice(TEAMS, 8, replace=False):
                if i != j:
                    rates = np.exp([0.3 + attack[i] - defense[j], -0.1 + attack[j] - defense[i]])
                    rows.append((i, int(j), *rng.poisson(rates), year + rng.random()))
        attack, defense = (0.85 * old + 0.2 * rng.normal(size=TEAMS) for old in (attack, defense))
    a, b, x, y, when = map(list, zip(*sorted(rows, key=lambda row: row[-1])))
    return Games.from_results(a, b, x, y, time=np.array(when), control={"home": np.ones(len(a))}, items=range(TEAMS))


def measures(chances: np.ndarray, games: Games) -> tuple[float, float, float]:
    """Log loss of win, draw and loss; how much more often favorites are said to win than they do; the same of draws."""
    happened = np.where(games.margin > 0, 0, np.where(games.margin < 0, 2, 1))
    loss = float(-np.log(chances[np.arange(len(games)), happened]).mean())
    sure = float(chances.max(axis=1).mean() - (chances.argmax(axis=1) == happened).mean())
    return loss, sure, float(chances[:, 1].mean() - (happened == 1).mean())


MODELS = {
    "wins": ("margins", {"levels": 1}),
    "margins": ("margins", {}),
    "goals": ("goals", {}),
    "shared goals": ("goals", {"shared": True}),
}


def simulated(runs: int, seed: int) -> Iterator[tuple[str, float]]:
    """The last two years of each league, a year ahead, by who won alone, by margins and by goals."""
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in MODELS}
    flat = []
    for run in range(runs):
        games = league(seed + run)
        for year in (YEARS - 2, YEARS - 1):
            before, within = games[games.time < year], games[(games.time >= year) & (games.time < year + 1)]
            for name, (method, params) in MODELS.items():
                board = placet.consensus(before, method, half_life=1.5, **params)
                found[name].append(measures(board.games.chances_of(within), within))
            flat.append(measures(placet.consensus(before, "goals").games.chances_of(within), within)[0])
    mean = {name: np.mean(values, axis=0) for name, values in found.items()}
    yield "simulated, league, log loss of wins - margins", mean["wins"][0] - mean["margins"][0]
    yield "simulated, league, log loss of margins - goals", mean["margins"][0] - mean["goals"][0]
    yield "simulated, league, log loss without a half-life - with", float(np.mean(flat)) - mean["goals"][0]
    for name in ("margins", "goals"):
        yield f"simulated, league, {name}, log loss", mean[name][0]
        yield f"simulated, league, {name}, said - seen", mean[name][1]
        yield f"simulated, league, {name}, draws said - seen", mean[name][2]


def doubles(runs: int, seed: int) -> Iterator[tuple[str, float]]:
    """Random pairs of players against each other: the error of the scores over their standard error."""
    square, order = [], []
    for run in range(runs):
        rng = np.random.default_rng(seed + 1000 + run)
        skill = rng.normal(size=16)
        four = np.array([rng.choice(16, 4, replace=False) for _ in range(600)])
        d = skill[four[:, 0]] + skill[four[:, 1]] - skill[four[:, 2]] - skill[four[:, 3]]
        won = rng.random(600) < 1 / (1 + np.exp(-d))
        sides = [list(map(tuple, half.tolist())) for half in (four[:, :2], four[:, 2:])]
        board = placet.consensus(Games.from_results(*sides, won, ~won, items=range(16)), "margins")
        error = board.scores - (skill - skill.mean())
        square.append(float(np.mean((error / board.stderr) ** 2)))
        order.append(float(np.corrcoef(board.scores, skill)[0, 1]))
    yield "simulated, doubles, mean squared error in standard errors", float(np.mean(square))
    yield "simulated, doubles, correlation with the truth", float(np.mean(order))


def football() -> Games | None:
    """All international games, with home 1 unless the ground is neutral."""
    path = data_folder("votes/international-football.csv.xz")
    if path is None:
        return None
    import polars as pl

    with lzma.open(path) as file:
        frame = pl.read_csv(file.read(), infer_schema=False)
    whole = pl.col("home_score").str.contains(r"^\d+$") & pl.col("away_score").str.contains(r"^\d+$")
    options = {"ordered": True, "neutral": "neutral", "time": "date"}
    return placet.read_games(frame.filter(whole), **options)


def year_ahead(games: Games, years: tuple[int, ...], method: str, **params: object) -> tuple[float, float, float]:
    """Measures of the games of the years, each from all games before it."""
    parts, chances = [], []
    for year in years:
        start, end = np.datetime64(f"{year}-01-01"), np.datetime64(f"{year + 1}-01-01")
        within = np.flatnonzero((games.time >= start) & (games.time < end))
        board = placet.consensus(games[games.time < start], method, **params)
        parts.append(within)
        chances.append(board.games.chances_of(games[within]))
    return measures(np.concatenate(chances), games[np.concatenate(parts)])


def real(games: Games) -> Iterator[tuple[str, float]]:
    lengths = ("2y", "4y", "8y")
    tried = {length: year_ahead(games, (2009, 2012), "margins", half_life=length)[0] for length in lengths}
    chosen = min(tried, key=lambda length: tried[length])
    print(f"half-life {chosen}: " + ", ".join(f"{length} {loss:.4f}" for length, loss in tried.items()))
    for name, (method, params) in MODELS.items():
        given = params | ({"most": 8} if method == "goals" else {})
        loss, sure, drawn = year_ahead(games, (2014, 2019, 2024), method, half_life=chosen, **given)
        yield f"international football, {name}, log loss a year ahead", loss
        yield f"international football, {name}, said - seen", sure
        yield f"international football, {name}, draws said - seen", drawn


def main() -> None:
    arguments = parser(__doc__).parse_args()
    runs = 8 if arguments.quick else 40
    ours = dict(simulated(runs, arguments.seed)) | dict(doubles(runs, arguments.seed))
    games = None if arguments.quick else football()
    if games is not None:
        ours |= dict(real(games))
    print("\n".join(f"{name}: {value:.4f}" for name, value in ours.items()))
    assert all(math.isfinite(value) for value in ours.values())
    check(ours, expected(__file__, "quick" if arguments.quick else ""))


if __name__ == "__main__":
    main()
