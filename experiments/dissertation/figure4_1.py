"""Figure 4.1: how often A ends above B when ballots come from a mixture of two Mallows models.

Both experiments of section 4.6: five items, phi = 0.8, Z2 = B C D E A with weight 1 - w, and Z1 with weight w from 0.51 to 1.  In experiment 1
Z1 = D E A B C, which has A and B towards the bottom; in experiment 2 Z1 = A B C D E, which has them on top.  A success is A strictly above B.
The paper states neither the number of ballots nor of trials: here 1000 ballots and 1000 trials (100 with --quick).  It writes
P ~ phi^distance, as here, and adds that a higher phi is more concentrated, which is the opposite.  With concentrated models (phi = 0.2)
squared, borda, log and plurality keep their order in both experiments; anti-plurality, which sees only last places, falls behind in the first.

Beside the curves stands what they turn at: the weight w at which A's expected points pass B's, exact by enumeration of the 120 orders.

Ballots enter a positional rule only through the counts of places of A and B, so the trials of a point are drawn together.  The paper's prose
swaps convex and concave once; what counts is where the points fall fastest: log and plurality at the top, squared and anti-plurality at the
bottom.
"""

import itertools
from pathlib import Path

import numpy as np

from experiments.common import check, expected, output_folder, parser, write
from placet.aggregate.rules.positional import positional_vector
from placet.simulate import mallows_mixture

RULES = ("borda", "log", "squared", "plurality", "anti-plurality")
CENTERS = {1: ("DEABC", "BCDEA"), 2: ("ABCDE", "BCDEA")}
WEIGHTS = np.round(np.concatenate([[0.51], np.arange(0.55, 1.001, 0.05)]), 2)
PHI, BALLOTS = 0.8, 1000
# what the dissertation says: the first of each pair succeeds at less weight than the second
ORDERED = {
    1: (("squared", "borda"), ("borda", "log"), ("anti-plurality", "borda"), ("borda", "plurality")),
    2: (("log", "borda"), ("plurality", "borda"), ("borda", "squared"), ("borda", "anti-plurality")),
}


def main() -> None:
    args = parser(__doc__).parse_args()
    trials = 100 if args.quick else 1000
    success = {e: np.array([curve(e, w, trials, args.seed) for w in WEIGHTS]) for e in CENTERS}
    path = expected(__file__, "quick" if args.quick else "")
    folder = output_folder(path)
    rows = [[e, float(w), *row.tolist()] for e in CENTERS for w, row in zip(WEIGHTS, success[e])]
    write(folder / "table.csv", ["experiment", "w", *RULES], rows)
    for e, table in success.items():
        print(f"experiment {e}: probability that A is above B")
        print("     w  " + "  ".join(f"{name:>14}" for name in RULES))
        for w, row in zip(WEIGHTS, table):
            print(f"  {w:.2f}  " + "  ".join(f"{value:14.3f}" for value in row))
        print("  even at" + "  ".join(f"{turning_point(e, name):14.4f}" for name in RULES)[3:])
        print("  " + words(e, table))
    draw(success, folder / "curves.png")
    check(quantities(success), path)


def quantities(success: dict[int, np.ndarray]) -> dict[str, float]:
    """Where each rule turns, exact, and for each pair of the claim how much sooner and more often the better succeeds."""
    ours = {}
    for e, pairs in ORDERED.items():
        mean = dict(zip(RULES, success[e].mean(axis=0)))
        ours |= {f"experiment {e}, {name}, turning point": turning_point(e, name) for name in RULES}
        ours |= {f"simulated, experiment {e}, {name}, mean success": float(mean[name]) for name in RULES}
        for better, worse in pairs:
            sooner = turning_point(e, worse) - turning_point(e, better)
            ours[f"experiment {e}, {better} before {worse}, turning point"] = sooner
            ours[f"simulated, experiment {e}, {better} - {worse}, mean success"] = float(mean[better] - mean[worse])
    return ours


def curve(experiment: int, w: float, trials: int, first: int) -> np.ndarray:
    """(rules,): the share of trials in which A has strictly more points than B."""
    seed = 100_000 * first + 10_000 * experiment + round(1000 * w)
    drawn = mallows_mixture(
        CENTERS[experiment], PHI, trials * BALLOTS, share=[w, 1 - w], items="ABCDE", random_state=seed
    )
    place = np.empty((trials * BALLOTS, 5), np.int64)
    place[drawn.ballot, drawn.item] = drawn.tier
    success = []
    for name in RULES:
        h = positional_vector(name, 5)
        lead = (h[place[:, 0]] - h[place[:, 1]]).reshape(trials, BALLOTS).sum(axis=1)
        success.append((lead > 1e-9).mean())
    return np.array(success)


def turning_point(experiment: int, rule: str) -> float:
    """The weight w at which A and B have the same expected points; above 1 if A never gets there."""
    h = positional_vector(rule, 5)
    leads = []
    for center in CENTERS[experiment]:
        orders = list(itertools.permutations(center))
        far = [sum(center.index(a) > center.index(b) for a, b in itertools.combinations(order, 2)) for order in orders]
        weight = PHI ** np.array(far)
        lead = np.array([h[order.index("A")] - h[order.index("B")] for order in orders])
        leads.append(weight @ lead / weight.sum())
    return float(-leads[1] / (leads[0] - leads[1]))


def words(experiment: int, table: np.ndarray) -> str:
    order = sorted(RULES, key=lambda name: turning_point(experiment, name))
    where = "the bottom" if experiment == 1 else "the top"
    shape = (
        "fall fastest at the bottom (concave: squared, anti-plurality)"
        if experiment == 1
        else "fall fastest at the top (convex: log, plurality)"
    )
    return f"A and B stand near {where} of the heavier center; rules whose points {shape} need the least weight: {' < '.join(order)}."


def draw(success: dict[int, np.ndarray], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    for axes, (experiment, table) in zip(figure.subplots(1, 2, sharey=True), success.items()):
        for name, values in zip(RULES, table.T):
            axes.plot(WEIGHTS, values, marker="o", markersize=3, label=name)
        axes.set(title=f"Experiment {experiment}", xlabel="weight w of Z1", ylabel="probability that A is above B")
        axes.legend()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
