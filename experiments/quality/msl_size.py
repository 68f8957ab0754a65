"""Grades and clicks at the size of MSLR-WEB30K, simulated: 30,000 queries, 120 rows each, 136 features; what the first call gives.

The shape *graded* of `shapes.py` (curves, products and jumps in equal parts, grades 0 to 4), with 6,000 other queries to score.

*Grades*: `TreeRanker()` and `LGBMRanker()` fitted to the grades.

*Clicks*: a linear ranker of 300 queries is in production.  It shows the top 10 of every query, in 4 sessions; the row at position k is
examined with probability 1 / k and, if examined, clicked with probability 0.1 + 0.9 (2^grade - 1) / 15 (`placet.simulate.clicks`).
Rankers see the log alone: `fit_clicks(TreeRanker())` and LightGBM's lambdarank with ``position=``, in its own settings; "naive" are both
without positions.

NDCG@10 on the true grades, one thread; differences are paired over queries and given in standard errors too.

Protocol, written before the first run.  Asked: `TreeRanker()` not behind `LGBMRanker()` on grades, trees of clicks not behind
LightGBM's of clicks and ahead of their naive form, and the examination of positions 2 to 5 within a tenth of 1 / k.  45 CPU
minutes and 6 GB; cells that are done are kept.

    python -m experiments.quality.msl_size [--only grades] [--only clicks]      # from the project's root
    python -m experiments.quality.msl_size --quick
"""

import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from experiments.common import Timer, need
from experiments.kept_cells import Cell, check_cells
from experiments.quality.defaults import OURS, PEER, of_lightgbm, of_placet
from experiments.quality.shapes import simulated
from placet.data import Clicks, Queries
from placet.metrics import ndcg
from placet.rank import LinearRanker, TreeRanker, fit_clicks
from placet.simulate import clicks
from placet.threads import set_threads

SHAPE, SESSIONS, LATE = "graded", 4, np.arange(2, 6)
"""The shape of the truth; sessions of a query; positions whose examination is compared with 1 / k."""


class Size(NamedTuple):
    """Queries to fit, of which some made the ranker in production, queries to score, their rows and features."""

    fit: int
    production: int
    score: int
    rows: int
    features: int


FULL, QUICK = Size(30_000, 300, 6_000, 120, 136), Size(300, 12, 300, 40, 25)


@cache
def parts(size: Size, seed: int) -> tuple[Queries, Queries]:
    """Queries to fit and to score."""
    made = partial(simulated, SHAPE, n_features=size.features, seed=seed, rows=size.rows)
    return made(size.fit), made(size.score, draw=1)


@cache
def log_of(size: Size, seed: int) -> Clicks:
    train, _ = parts(size, seed)
    production = LinearRanker("pl-partition", 0.1).fit(train[: size.production])
    return clicks(train, production.predict(train), SESSIONS, random_state=seed)


Found = tuple[Any, dict[str, float]]
"""What gives scores to queries, and more that is to be checked."""


def trees_of_clicks(rows: np.ndarray, log: Clicks, *, positions: bool) -> Found:
    fit = fit_clicks(TreeRanker(), rows, log, debias=positions)
    off = float(np.abs(fit.examination[LATE - 1] * LATE - 1.0).max()) if positions else 0.0
    return fit.ranker.predict, {"examination of positions 2 to 5 off by": off} if positions else {}


def lightgbm_of_clicks(rows: np.ndarray, log: Clicks, *, positions: bool) -> Found:
    import lightgbm as lgb

    where = {"position": log.position - 1} if positions else {}
    data = lgb.Dataset(rows, log.clicked.astype(int), group=np.diff(log.offsets), **where)
    made = lgb.train({"objective": "lambdarank", "verbosity": -1, "num_threads": 1}, data, 100)
    return lambda queries: made.predict(queries.X, num_threads=1), {}


CLICK_METHODS: dict[str, Callable[[np.ndarray, Clicks], Found]] = {
    "trees of clicks": partial(trees_of_clicks, positions=True),
    "trees of clicks, naive": partial(trees_of_clicks, positions=False),
    "LightGBM position": partial(lightgbm_of_clicks, positions=True),
    "LightGBM naive": partial(lightgbm_of_clicks, positions=False),
}
GRADE_METHODS: dict[str, Callable[[Queries], Any]] = {OURS: of_placet(lambda: TreeRanker()), PEER: of_lightgbm}


def differences(values: dict[str, np.ndarray], pairs: list[tuple[str, str]], name: str) -> Iterator[tuple[str, float]]:
    """Mean NDCG of each method, and each difference with its standard error over the queries."""
    for method, column in values.items():
        yield f"{name}, {method}", float(np.nanmean(column))
    for a, b in pairs:
        gap = values[a] - values[b]
        gap = gap[~np.isnan(gap)]
        yield f"{name}, {a} - {b}", float(gap.mean())
        yield f"{name}, {a} - {b}, in standard errors", float(gap.mean() / (gap.std(ddof=1) / np.sqrt(len(gap))))


def scored(queries: Queries, scores: Any) -> np.ndarray:
    return ndcg(np.asarray(scores, dtype=np.float64), queries.grade, queries.offsets, 10)


def grades(size: Size, seed: int, name: str) -> Iterator[tuple[str, float]]:
    train, test = parts(size, seed)
    values = {}
    for method, fit in GRADE_METHODS.items():
        with Timer() as spent:
            scorer = fit(train)
        values[method] = scored(test, scorer(test))
        yield f"{name}, {method}, CPU seconds", spent.cpu
    yield from differences(values, [(OURS, PEER)], name)


def of_clicks(size: Size, seed: int, name: str) -> Iterator[tuple[str, float]]:
    (train, test), log = parts(size, seed), log_of(size, seed)
    rows, values = train.X[log.document], {}
    for method, fit in CLICK_METHODS.items():
        with Timer() as spent:
            scorer, more = fit(rows, log)
        values[method] = scored(test, scorer(test))
        yield f"{name}, {method}, CPU seconds", spent.cpu
        yield from ((f"{name}, {method}, {quantity}", value) for quantity, value in more.items())
    pairs = [("trees of clicks", "LightGBM position"), ("trees of clicks", "trees of clicks, naive")]
    yield from differences(values, pairs, name)


def cells(quick: bool, seed: int) -> Iterator[Cell]:
    size = QUICK if quick else FULL
    for kind, run in (("grades", grades), ("clicks", of_clicks)):
        name = f"simulated, {kind} of {size.fit} queries"
        yield name, partial(run, size, seed, name)


def main() -> None:
    need("lightgbm")
    warnings.filterwarnings("ignore")
    set_threads(1)
    check_cells(cells, __doc__, __file__)


if __name__ == "__main__":
    main()
