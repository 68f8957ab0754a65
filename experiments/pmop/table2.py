"""Table 2: how the time of one training evaluation (value and gradient) grows with the length of the lists.

Simulated lists of 16 to 4,096 rows in five grades, each half as common as the one below, 519 features, one thread;
processor time per list of the loss alone and of the evaluation with its two products with the features (the NF of the
paper's max{N^2, NF}).  Exponents are slopes of log time in log length from 256 rows on (pmop-exact: from 128 to 512).

What came out: PMOP-FD, PMOP-Gibbs, PMOP-MH and ListMLE are linear, RankNet and both models of tied pairs reach the
square (1.9 to 2.0 at the last doubling), as the paper says.  Rank Regress and Ranking SVM, for which it gives the square
too, need no pairs: sums per tier and one sort make them 0.9 and 1.1 here.  With 519 features the products hide the
square until lists have hundreds of rows.  pmop-exact, which the paper holds to be out of reach, is near the cube.
"""

from typing import Any

import numpy as np

import placet
from experiments.common import check, check_first, expected, least_cpu, output_folder, parser, write
from experiments.formulas import STEPS, off_chain, off_formula
from experiments.pmop.table1 import FORMULAS
from placet.losses import LOSSES, Bound
from placet.threads import set_threads

METHODS = {
    "Rank Regress": "rank-regress",
    "RankNet": "ranknet",
    "Ranking SVM": "ranksvm",
    "ListMLE": "listmle",
    "PairTies-D": "davidson",
    "PairTies-RK": "rao-kupper",
    "PMOP-FD": "pmop-fd",
    "PMOP-Gibbs": "pmop-gibbs",
    "PMOP-MH": "pmop-mh",
    "pmop-exact": "pmop-exact",
    "pl-partition": "pl-partition",
}
PAIRS, LINEAR = "max{N^2, NF}", "NF"
CLAIMED = {
    **dict.fromkeys(("Rank Regress", "RankNet", "Ranking SVM", "PairTies-D", "PairTies-RK"), PAIRS),
    **dict.fromkeys(("ListMLE", "PMOP-FD", "PMOP-Gibbs", "PMOP-MH"), LINEAR),
    "pmop-exact": "nothing",
    "pl-partition": "nothing",
}
LENGTHS = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
ROWS, ROWS_EXACT, LONGEST_EXACT = 16_384, 1024, 512
FEATURES = 519  # as many as in the paper
LONG = 256  # exponents are fitted from here on: below, what does not depend on the length still counts
REPEAT = 7


def identity(seed: int) -> dict[str, float]:
    """Whether what is timed is the loss of its name, by its formula or the step of its chain; a quick run cannot tell by its times."""
    found = {}
    for method, loss in METHODS.items():
        formula = FORMULAS[method][1]
        if formula in STEPS:
            found[f"{method}, off its chain"] = off_chain(loss, {}, formula, seed=seed)
        else:
            found[f"{method}, off its formula"] = off_formula(loss, {}, seed, formula)
    return {f"simulated, {name}": value for name, value in found.items()}


def measured(loss: str, length: int, rows: int, n_features: int, seed: int) -> tuple[float, float]:
    """CPU seconds per list of the loss alone, and of the whole evaluation with its two products with the features."""
    queries = placet.simulate.queries(rows // length, length, n_features, 5, random_state=[seed, length])
    rng = np.random.default_rng(seed)
    params = LOSSES[loss].training_parameters({"random_state": rng} if LOSSES[loss].samples else None)
    bound = Bound(loss, queries.lists(), params)
    X, w = queries.X, rng.normal(size=n_features) / np.sqrt(n_features)
    s = X @ w
    alone = least_cpu(lambda: bound.value_and_grad(s), REPEAT)
    whole = least_cpu(lambda: X.T @ bound.value_and_grad(X @ w)[1], REPEAT)
    return alone / len(queries), whole / len(queries)


def exponent(lengths: list[int], seconds: list[float], long: int) -> float:
    """Slope of log time per list in log length, from lists of ``long`` rows on."""
    x, y = np.log([(n, t) for n, t in zip(lengths, seconds) if n >= long]).T
    return float(np.polyfit(x, y, 1)[0])


def timed(method: str, quick: bool, seed: int) -> tuple[list[list[Any]], dict[str, float]]:
    """Rows (method, claimed, length, us of the loss, us of an evaluation) and the exponents of one method, printed."""
    loss = METHODS[method]
    longest, total = (LONGEST_EXACT, ROWS_EXACT) if loss == "pmop-exact" else (LENGTHS[-1], ROWS)
    if quick:
        longest, total = 256, min(total, 4096)
    lengths = [n for n in LENGTHS if n <= longest]
    times = [measured(loss, n, total, 20 if quick else FEATURES, seed) for n in lengths]
    alone, whole = ([pair[k] for pair in times] for k in (0, 1))
    long = min(LONG, longest // 4)
    found = {
        "exponent of the loss": exponent(lengths, alone, long),
        "exponent of the loss, last doubling": exponent(lengths[-2:], alone[-2:], 0),
        "exponent of an evaluation": exponent(lengths, whole, long),
    }
    print(f"{method}, claimed {CLAIMED[method]}: " + ", ".join(f"{name} {e:.2f}" for name, e in found.items()))
    for name, seconds in (("loss", alone), ("evaluation", whole)):
        print(f"  us, {name:10s} " + "  ".join(f"{n}: {1e6 * t:.1f}" for n, t in zip(lengths, seconds)), flush=True)
    rows = [[method, CLAIMED[method], n, 1e6 * a, 1e6 * w] for n, a, w in zip(lengths, alone, whole)]
    return rows, {f"{method}, {name}": e for name, e in found.items()}


def main() -> None:
    args = parser(__doc__).parse_args()
    set_threads(1)
    ours: dict[str, float] = {}
    rows: list[list[Any]] = []
    path = expected(__file__, "quick" if args.quick else "")
    named = identity(args.seed)
    check_first(named, path)
    for method in METHODS:
        more, found = timed(method, args.quick, args.seed)
        rows += more
        ours |= found
    write(output_folder(path) / "table.csv", ["method", "claimed", "length", "us, loss", "us, evaluation"], rows)
    plot(rows, output_folder(path) / "table2.png")
    check(named | {f"simulated, {name}": value for name, value in ours.items()}, path)


def plot(rows, path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), sharey=True)
    for method in METHODS:
        chosen = [r for r in rows if r[0] == method]
        for axis, column in zip(axes, (3, 4)):
            axis.loglog([r[2] for r in chosen], [r[column] for r in chosen], marker=".", label=method)
    for axis, title in zip(axes, ("the loss alone", f"an evaluation, {FEATURES} features")):
        axis.set_title(title)
        axis.set_xlabel("rows in a list")
    axes[0].set_ylabel("microseconds per list")
    axes[1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
