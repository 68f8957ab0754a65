"""LETOR sets in five folds, per-query values of metrics, and reports that check themselves against expected_<name>.csv."""

import csv
import os
import sys
from pathlib import Path

import numpy as np

import placet
from placet.data import Queries
from placet.metrics import compare, ndcg

SETS = {"OHSUMED": "letor3/OHSUMED", "MQ2008": "letor4/MQ2008"}
DEPTHS = (1, 2, 5, 10)


def data_folder() -> Path | None:
    """The folder of PLACET_DATA, else ../shared/data beside the project."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    for folder in (os.environ.get("PLACET_DATA"), beside):
        if folder and Path(folder).is_dir():
            return Path(folder)
    return None


def parts(name_or_path: str) -> list[Queries]:
    """S1..S5 of a set, by name or by the path of a folder with S1.txt[.xz] to S5; simulated ones where there is no data."""
    data = data_folder()
    folder = Path(name_or_path)
    if not folder.is_dir() and data is not None and name_or_path in SETS:
        folder = data / SETS[name_or_path]
    if not folder.is_dir():
        if name_or_path not in SETS:
            sys.exit(f"{name_or_path} is neither a folder nor one of {sorted(SETS)}")
        print(f"no data for {name_or_path} (set PLACET_DATA): simulated queries instead", file=sys.stderr)
        return [placet.simulate.queries(20, (10, 30), 10, 3, w=np.ones(10) / 3, random_state=k) for k in range(5)]
    found = [
        next(p for end in (".txt", ".txt.xz", ".txt.gz") if (p := folder / f"S{k}{end}").exists()) for k in range(1, 6)
    ]
    return [placet.read_letor(path) for path in found]


def joined(some: list[Queries]) -> Queries:
    sizes = np.concatenate([np.diff(q.offsets) for q in some])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Queries(np.vstack([q.X for q in some]), np.concatenate([q.grade for q in some]), offsets)


def folds(some: list[Queries], n: int = 5):
    """(training, validation, test) queries of each fold."""
    for f in range(n):
        yield joined([some[(f + j) % 5] for j in range(3)]), some[(f + 3) % 5], some[(f + 4) % 5]


def ndcgs(s: np.ndarray, queries: Queries, depths=DEPTHS) -> dict[int, np.ndarray]:
    """NDCG at each depth, one value per query; queries without anything relevant are NaN and left out of means."""
    return {k: ndcg(s, queries.grade, queries.offsets, k) for k in depths}


def stacked(per_fold: list[dict]) -> dict:
    """Values of the test queries of all folds, one after the other."""
    return {k: np.concatenate([fold[k] for fold in per_fold]) for k in per_fold[0]}


def difference(a: np.ndarray, b: np.ndarray) -> tuple[float, float, float, float]:
    """Mean of a - b over queries, its 95 % interval and the p-value of a sign-flip test."""
    found = compare(a, b)
    return found.difference, found.low, found.high, found.p_value


def write(path: Path, header: list[str], rows: list[list[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([f"{x:.4f}" if isinstance(x, float) else x for x in row] for row in rows)


def check(expected: Path, ours: dict[str, float]) -> int:
    """1 if a quantity of the expected file (quantity, low, high, published) is outside of its bounds, else 0."""
    misses = 0
    with open(expected, newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            if row["quantity"] not in ours:
                continue
            value = ours[row["quantity"]]
            low, high = float(row["low"] or "-inf"), float(row["high"] or "inf")
            inside = low <= value <= high
            misses += not inside
            said = f" (published {row['published']})" if row["published"] else ""
            print(f"{'ok  ' if inside else 'MISS'} {row['quantity']}: {value:.4f}, expected {low} to {high}{said}")
    return 1 if misses else 0
