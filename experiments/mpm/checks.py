"""An experiment is a check: our table written, compared with the published one, and an exit code."""

import csv
from pathlib import Path

HERE = Path(__file__).parent


def expected(name: str) -> list[dict[str, str]]:
    """Rows of expected_<name>.csv; lines that start with # are remarks."""
    with open(HERE / f"expected_{name}.csv", newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def write(name: str, header: list[str], rows: list[list[object]]) -> Path:
    """<name>/ours.csv; rows of other sets and methods that it holds already are kept."""
    path = HERE / name / "ours.csv"
    path.parent.mkdir(exist_ok=True)
    fresh = {tuple(row[:2]) for row in rows}
    if path.exists():
        with open(path, newline="") as file:
            rows = [row for row in list(csv.reader(file))[1:] if tuple(row[:2]) not in fresh] + rows
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([f"{x:.2f}" if isinstance(x, float) else x for x in row] for row in rows)
    return path


def compare(ours: dict[tuple[str, str, str], float], name: str) -> int:
    """Number of misses against expected_<name>.csv (set, method, measure, value, tolerance); each is printed.

    A tolerance of ``>=`` asks for at least the value; an empty one is for the record.
    """
    misses = 0
    for row in expected(name):
        key = (row["set"], row["method"], row["measure"])
        if key not in ours:
            continue
        value, target = ours[key], float(row["value"])
        if row["tolerance"] == "":
            continue
        miss = value < target if row["tolerance"] == ">=" else abs(value - target) > float(row["tolerance"])
        if miss:
            misses += 1
            print(f"MISS {' '.join(key)}: ours {value:.2f}, expected {target} (tolerance {row['tolerance']})")
    return misses
