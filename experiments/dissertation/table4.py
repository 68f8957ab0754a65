"""Tables 4.1 and 4.2: Omega, omega, omega_1 and the margins of the five positional rules, for n = 3, 5, 7 and 20 items.

The closed forms of the tables are compared with what the definitions give, and for n up to 6 with linear programs over all
distributions of rankings.  Of table 4.2 the row of the log rule is printed wrongly in the paper; the corrected forms are expected here.
The last column, the exact margin of the Condorcet criterion itself, is not in the paper, which gives that of its strong form.
"""

import numpy as np

from experiments.common import check, expected, output_folder, parser, write
from placet.aggregate.rules.positional import positional_vector
from placet.axioms import margins, worst_case

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


RULES = tuple(PRINTED["Omega"])
ITEMS = (3, 5, 6, 7, 20)
AXIOMS = ("iia", "strong-condorcet", "condorcet", "majority")


def row(rule: str, n: int) -> dict[str, float]:
    """Both tables for one rule: Omega, omega and omega_1, and the margins that follow."""
    m = margins(rule, n)
    values = (
        m.Omega,
        m.omega,
        m.omega_1,
        m.iia_margin,
        m.strong_condorcet_margin,
        m.condorcet_margin,
        m.majority_margin,
    )
    return dict(zip(("Omega", "omega", "omega_1", *AXIOMS), values))


def main() -> None:
    args = parser(__doc__, draws=False).parse_args()
    most = 5 if args.quick else 6  # items in the linear programs
    rows, ours, off_form, off_program = [], {}, [], []
    for n in ITEMS:
        for rule in RULES:
            found = row(rule, n)
            rows.append([n, rule, *found.values()])
            print(f"n = {n:2d}  {rule:15s}" + "  ".join(f"{name} {value:.6g}" for name, value in found.items()))
            off_form += [found[column] - float(forms[rule](n)) for column, forms in PRINTED.items()]
            if n == 5:
                ours |= {f"{rule}, n = 5, {column}": value for column, value in found.items()}
            if n <= most:
                points = positional_vector(rule, n)
                off_program += [found[axiom] - worst_case(axiom, points).margin for axiom in AXIOMS]
    ours |= {
        "closed forms compared": float(len(off_form)),
        "largest difference to a closed form": float(np.abs(off_form).max()),
        "linear programs compared": float(len(off_program)),
        "largest difference to a linear program": float(np.abs(off_program).max()),
    }
    path = expected(__file__, "quick" if args.quick else "")
    write(output_folder(path) / "table.csv", ["n", "rule", "Omega", "omega", "omega_1", *AXIOMS], rows)
    check(ours, path)


if __name__ == "__main__":
    main()
