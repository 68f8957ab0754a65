"""Cells of a benchmark table left out and predicted by item response: share of variance explained, and coverage.

Full: Epoch's table of models and benchmarks, ten folds of its cells, three seeds.  Quick: a simulated table, five folds.
A cell whose model or benchmark has no other cell is not predicted; their number is reported.
"""

import csv
import lzma
from collections.abc import Iterator

import numpy as np

import placet
from experiments.common import check, expected, need_data, parser
from placet.data import Scores

FOLDS, SEEDS = 10, 3


def folds_predicted(table: np.ndarray, folds: int, rng: np.random.Generator) -> np.ndarray:
    """(predicted cells, 3): squared error of the cell, squared error of its task's mean, whether its interval covers."""
    cells = rng.permutation(np.argwhere(~np.isnan(table)))
    found = []
    for fold in range(folds):
        out = cells[fold::folds]
        kept = table.copy()
        kept[out[:, 0], out[:, 1]] = np.nan
        rows, columns = ((~np.isnan(kept)).any(axis=axis) for axis in (1, 0))
        tasks = np.flatnonzero(columns).tolist()
        scores = Scores.from_table(kept[rows][:, columns], items=np.flatnonzero(rows).tolist(), tasks=tasks)
        board = placet.consensus(scores, "item-response")
        for i, t in out[rows[out[:, 0]] & columns[out[:, 1]]].tolist():
            cell = board.predict(i, t)
            inside = cell.low <= table[i, t] <= cell.high
            found.append(((cell.mean - table[i, t]) ** 2, (np.nanmean(kept) - table[i, t]) ** 2, inside))
    return np.array(found, float)


def quantities(name: str, table: np.ndarray, folds: int, seeds: range) -> Iterator[tuple[str, float]]:
    """Means over seeds."""
    runs = [folds_predicted(table, folds, np.random.default_rng(seed)) for seed in seeds]
    yield f"{name}, R2 of cells left out", float(np.mean([1 - run[:, 0].sum() / run[:, 1].sum() for run in runs]))
    yield f"{name}, intervals of cells that cover", float(np.mean([run[:, 2].mean() for run in runs]))
    yield f"{name}, cells predicted", float(np.mean([len(run) for run in runs]))


def epoch_table() -> np.ndarray:
    """(models, benchmarks): shares of tasks solved, NaN where missing."""
    with lzma.open(need_data("scores") / "epoch-benchmarks.csv.xz", "rt") as file:
        rows = list(csv.DictReader(file))
    models, tasks = (sorted({row[name] for row in rows}) for name in ("model", "benchmark"))
    table = np.full((len(models), len(tasks)), np.nan)
    for row in rows:
        table[models.index(row["model"]), tasks.index(row["benchmark"])] = float(row["performance"])
    return table


def simulated_table(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    theta, hard, slope = 1.2 * rng.standard_normal(90), rng.standard_normal(20), np.exp(0.6 * rng.standard_normal(20))
    drawn = placet.simulate.benchmark_table(
        theta, hard, slope=slope, dispersion=0.03, observed=0.4, random_state=rng.spawn(1)[0]
    )
    return np.asarray(drawn.value)


def main() -> None:
    arguments = parser(__doc__).parse_args()
    if arguments.quick:
        found = quantities("simulated, 90 models and 20 tasks", simulated_table(arguments.seed), 5, range(1))
    else:
        found = quantities("epoch", epoch_table(), FOLDS, range(arguments.seed, arguments.seed + SEEDS))
    check(dict(found), expected(__file__, "quick" if arguments.quick else ""))


if __name__ == "__main__":
    main()
