"""Few units: how often are equal items separated by few tasks, ballots or votes, and how often are unequal ones?

    python -m experiments.uncertainty.few_units [--quick] [--seed N] [--only WORD ...]      # from the project's root

Score tables of equal models (normal, skewed, with missing cells), ballots in random order with a bootstrap, and single
votes or ballots.  At level 0.95 equal items may be separated in at most 0.05 of runs, within three Monte Carlo standard
errors; tables whose items do differ show that this is not had by separating nothing.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

import placet
from experiments.kept_cells import Cell, check_cells
from placet import Rankings, Scores

TABLES = ((40, 10), (40, 20), (10, 5), (3, 6), (40, 100), (12, 3))
QUICK_TABLES = ((40, 10), (10, 5))
BALLOTS = (3, 10, 20, 40, 100)
QUICK_BALLOTS = (10,)
RULES = ("borda", "plurality", "copeland", "median-rank", "schulze", "irv", "bucklin", "baldwin", "kemeny-local")
QUICK_RULES = ("borda", "irv")


def table(items: int, tasks: int, kind: str, seed: int, gap: float = 0.0) -> Scores:
    """Scores of items that differ by ``gap`` in standard deviations of a cell; tasks differ in difficulty."""
    rng = np.random.default_rng(seed)
    noise = rng.exponential(size=(items, tasks)) if kind == "skewed" else rng.normal(size=(items, tasks))
    value = noise + 3 * rng.normal(size=tasks) + gap * np.arange(items)[:, None]
    if kind == "missing":
        hole = rng.random(value.shape) < 0.3
        hole[0], hole[:, 0] = False, False
        value[hole] = np.nan
    return Scores.from_table(value)


def tables(method: str, kind: str, items: int, tasks: int, runs: int, seed: int) -> Iterator[tuple[str, float]]:
    """The share of runs in which equal models are separated."""
    found = [
        placet.consensus(table(items, tasks, kind, seed + r), method, bootstrap=2).separated().any()
        for r in range(runs)
    ]
    yield f"simulated, {method}, {kind}, {items} equal models x {tasks} tasks, separated", float(np.mean(found))


def power(runs: int, seed: int) -> Iterator[tuple[str, float]]:
    """Share of pairs separated of 6 models two standard deviations apart, 10 tasks."""
    found = [
        placet.consensus(table(6, 10, "normal", seed + r, 2.0), "mean", bootstrap=2).separated().sum() / 15
        for r in range(runs)
    ]
    yield "simulated, mean, 6 unequal models x 10 tasks, share of pairs separated", float(np.mean(found))


def ballots(rule: str, size: int, runs: int, seed: int) -> Iterator[tuple[str, float]]:
    """The share of runs in which a rule with a bootstrap separates items on ballots in random order."""
    wrong = 0
    for r in range(runs):
        rng = np.random.default_rng(seed + r)
        orders = [[int(k) for k in rng.permutation(8)] for _ in range(size)]
        data = Rankings.from_orders(orders, items=range(8))
        wrong += bool(placet.consensus(data, rule, bootstrap=20, random_state=r).separated().any())
    yield f"simulated, {rule}, {size} ballots of 8 equal items, separated", wrong / runs


def single() -> Iterator[tuple[str, float]]:
    """Tiers of one ballot, and whether one vote is enough."""
    one = placet.consensus(Rankings.from_orders([["a", "b", "c"]]), "borda", bootstrap=50)
    yield "simulated, one ballot with a bootstrap, tiers", float(len(one.tiers()))
    vote = placet.Comparisons.from_battles(["a"], ["b"], ["a"])
    boards = [placet.consensus(vote, name, bootstrap=50) for name in ("bradley-terry", "borda", "copeland")]
    yield (
        "simulated, one vote is enough, of three methods",
        float(sum(bool(one.enough(look="once")) for one in boards)),
    )


def cells(quick: bool, seed: int) -> Iterator[Cell]:
    yield "simulated, one ballot and one vote", single
    yield "simulated, mean, 6 unequal models", partial(power, 10 if quick else 100, seed)
    for items, tasks in QUICK_TABLES if quick else TABLES:
        for method, kind in (("mean", "normal"), ("mean", "skewed"), ("mean", "missing"), ("mean-win-rate", "normal")):
            name = f"simulated, {method}, {kind}, {items} equal models x {tasks} tasks"
            yield name, partial(tables, method, kind, items, tasks, 40 if quick else 100, seed)
    for rule in QUICK_RULES if quick else RULES:
        for size in QUICK_BALLOTS if quick else BALLOTS:
            yield f"simulated, {rule}, {size} ballots", partial(ballots, rule, size, 20 if quick else 60, seed)


def main() -> None:
    check_cells(cells, __doc__, __file__)


if __name__ == "__main__":
    main()
