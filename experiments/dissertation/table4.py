"""Tables 4.1 and 4.2: Omega, omega, omega_1 and the margins of the five positional rules, for n = 3, 5, 7 and 20 items.

The closed forms of the tables are compared with what the definitions give, and for n up to 6 with linear programmes over all
distributions of rankings.  Of table 4.2 the row of the log rule is printed wrongly in the paper; the corrected forms are expected here.
The last column, the exact margin of the Condorcet criterion itself, is not in the paper, which gives that of its strong form.
"""

import argparse
import csv
import sys
from pathlib import Path

import numpy as np

from placet.aggregate.positional import positional_vector
from placet.axioms import margins_table, worst_case

HERE = Path(__file__).parent
LOG = np.log
PRINTED = {
    "Omega": {"borda": lambda n: n - 1, "plurality": lambda n: 1, "anti-plurality": lambda n: 1, "log": LOG, "squared": lambda n: n**2 - 1},
    "omega": {"borda": lambda n: 1, "plurality": lambda n: 0, "anti-plurality": lambda n: 0, "log": lambda n: LOG(n / (n - 1)), "squared": lambda n: 3},
    "omega_1": {"borda": lambda n: 1, "plurality": lambda n: 1, "anti-plurality": lambda n: 0, "log": lambda n: LOG(2), "squared": lambda n: 3},
    "strong-condorcet": {
        "borda": lambda n: 1 / 2 - 1 / n,
        "plurality": lambda n: 1 / 2,
        "anti-plurality": lambda n: 1 / 2,
        "log": lambda n: LOG(n - 1) / (2 * LOG(n**2 / (n - 1))),  # printed: log(n) / (2 log(n^2 / (n - 1)))
        "squared": lambda n: (n**2 - 4) / (2 * (n**2 + 2)),
    },
    "majority": {
        "borda": lambda n: 1 / 2 - 1 / n,
        "plurality": lambda n: 0,
        "anti-plurality": lambda n: 1 / 2,
        "log": lambda n: LOG(n / 2) / (2 * LOG(2 * n)),  # printed: log(n) / (2 log(n^2 / (n - 1)))
        "squared": lambda n: (n**2 - 4) / (2 * (n**2 + 2)),
    },
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="linear programmes up to 5 items")
    most = 5 if parser.parse_args().quick else 6
    missed, rows = 0, []
    for n in (3, 5, 6, 7, 20):
        for row in margins_table(n):
            rows.append({"n": n, **{key: value if key == "rule" else f"{value:.6g}" for key, value in row.items()}})
            for column, forms in PRINTED.items():
                missed += told(f"{row['rule']}, n = {n}, {column}", row[column], float(forms[row["rule"]](n)), 1e-9)
            if n <= most:
                for axiom in ("iia", "strong-condorcet", "condorcet", "majority"):
                    case = worst_case(axiom, positional_vector(row["rule"], n))
                    missed += told(
                        f"{row['rule']}, n = {n}, {axiom} by linear programme", row[axiom], case.margin, 1e-7
                    )
    missed += expected(rows)
    (HERE / "table4").mkdir(exist_ok=True)
    with open(HERE / "table4" / "ours.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    show(rows)
    sys.exit(1 if missed else 0)


def told(what: str, ours: float, theirs: float, tolerance: float) -> int:
    """1 and a word where two numbers differ."""
    if abs(ours - theirs) <= tolerance:
        return 0
    print(f"MISS {what}: {ours:.9g}, expected {theirs:.9g}")
    return 1


def expected(rows: list[dict]) -> int:
    """Compare with expected_table4.csv (rule, n, column, value, tolerance)."""
    ours = {(row["rule"], str(row["n"]), column): row[column] for row in rows for column in row}
    with open(HERE / "expected_table4.csv", newline="") as file:
        return sum(
            told(f"{r['rule']}, n = {r['n']}, {r['column']}", float(ours[r["rule"], r["n"], r["column"]]), float(r["value"]), float(r["tolerance"]))
            for r in csv.DictReader(file)
        )  # fmt: skip


def show(rows: list[dict]) -> None:
    width = {key: max(len(key), *(len(str(row[key])) for row in rows)) for key in rows[0]}
    for row in ({key: key for key in width}, *rows):
        print("  ".join(str(row[key]).ljust(width[key]) for key in width))


if __name__ == "__main__":
    main()
