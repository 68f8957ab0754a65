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

import argparse
import csv
import itertools
import sys
from pathlib import Path

import numpy as np

from placet.aggregate.positional import positional_vector
from placet.simulate import mallows_mixture

HERE = Path(__file__).parent
RULES = ("borda", "log", "squared", "plurality", "anti-plurality")
CENTERS = {1: ("DEABC", "BCDEA"), 2: ("ABCDE", "BCDEA")}
WEIGHTS = np.round(np.concatenate([[0.51], np.arange(0.55, 1.001, 0.05)]), 2)
PHI, BALLOTS = 0.8, 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="100 trials a point instead of 1000")
    trials = 100 if parser.parse_args().quick else 1000
    success = {e: np.array([curve(e, w, trials) for w in WEIGHTS]) for e in CENTERS}
    folder = HERE / "figure4_1"
    folder.mkdir(exist_ok=True)
    with open(folder / "ours.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["experiment", "w", *RULES])
        writer.writerows([e, w, *np.round(row, 4)] for e in CENTERS for w, row in zip(WEIGHTS, success[e]))
    for e, table in success.items():
        print(f"experiment {e}: probability that A is above B")
        print("     w  " + "  ".join(f"{name:>14}" for name in RULES))
        for w, row in zip(WEIGHTS, table):
            print(f"  {w:.2f}  " + "  ".join(f"{value:14.3f}" for value in row))
        print("  even at" + "  ".join(f"{turning_point(e, name):14.4f}" for name in RULES)[3:])
        print("  " + words(e, table))
    draw(success, folder / "curves.png")
    sys.exit(check(success))


def curve(experiment: int, w: float, trials: int) -> np.ndarray:
    """(rules,): the share of trials in which A has strictly more points than B."""
    seed = 10_000 * experiment + round(1000 * w)
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


def check(success: dict[int, np.ndarray]) -> int:
    """Compare with expected_figure4_1.csv: turning point of the worse rule minus that of the better one, and so their mean success."""
    mean = {(e, name): value for e, table in success.items() for name, value in zip(RULES, table.mean(axis=0))}
    missed = 0
    with open(HERE / "expected_figure4_1.csv", newline="") as file:
        for row in csv.DictReader(file):
            e, better, worse = int(row["experiment"]), row["better"], row["worse"]
            gap = turning_point(e, worse) - turning_point(e, better)
            more = mean[e, better] - mean[e, worse]
            good = float(row["low"]) <= gap <= float(row["high"]) and more > -0.01
            missed += not good
            print(
                f"{'ok  ' if good else 'MISS'} experiment {e}: {better} turns {gap:.3f} before {worse} (expected {row['low']} .. {row['high']}), succeeds {more:+.3f} more often"
            )
    return 1 if missed else 0


if __name__ == "__main__":
    main()
