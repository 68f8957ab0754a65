"""Groups of voters that are half alike: do intervals of the scores cover, or does a note say that they do not?

    python -m experiments.uncertainty.mixtures [--quick] [--seed N] [--only WORD ...]      # from the project's root

Two groups rank half of the items alike and the others independently.  Voters give one ballot of all items, or some votes
each.  Fitted groups are matched with the true ones so that their scores are nearest.  A run whose groups are hardly told
apart has a note; the others must cover.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.special import expit

from experiments.kept_cells import Cell, check_cells
from placet import Comparisons, Rankings
from placet.aggregate import Mixture
from placet.aggregate.result.groups import Groups

ITEMS, ALIKE, EACH = 8, 4, 15
"""Items, of which so many are alike in both groups, and the votes of a voter."""

SHARES = np.array([0.6, 0.4])


def world(kind: str, voters: int, seed: int) -> tuple[np.ndarray, Rankings | Comparisons]:
    """True scores (2, items) and what the voters say."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(2, ITEMS))
    theta[1, :ALIKE] = theta[0, :ALIKE]
    theta -= theta.mean(axis=1, keepdims=True)
    group = (rng.random(voters) >= SHARES[0]).astype(int)
    if kind == "ballots":
        orders = np.argsort(-(theta[group] + rng.gumbel(size=(voters, ITEMS))), axis=1)
        return theta, Rankings.from_orders(orders.tolist(), items=range(ITEMS))
    who = np.repeat(np.arange(voters), EACH)
    i = rng.integers(0, ITEMS, len(who))
    j = (i + rng.integers(1, ITEMS, len(who))) % ITEMS
    won = rng.random(len(who)) < expit(theta[group[who], i] - theta[group[who], j])
    return theta, Comparisons.from_battles(i, j, np.where(won, "a", "b"), agent=who, items=range(ITEMS))


def inside(groups: Groups, theta: np.ndarray) -> tuple[np.ndarray, float]:
    """(2, items): whether the intervals hold the true scores; and the mean square of the scores' errors."""
    scores = np.array([groups[1].scores, groups[2].scores])
    if np.square(scores - theta).sum() > np.square(scores[::-1] - theta).sum():
        theta = theta[::-1]
    ends = np.array([groups[g].interval() for g in (1, 2)])
    return (ends[:, 0] <= theta) & (theta <= ends[:, 1]), float(np.square(scores - theta).mean())


def is_noted(groups: Groups) -> bool:
    return any("the groups are hardly told apart" in note for note in groups.set_notes)


def mixtures(kind: str, voters: int, runs: int, seed: int) -> Iterator[tuple[str, float]]:
    """Coverage of the scores in all runs, in those without a note and with one, and the share of the latter."""
    plain, noted, squares = [], [], []
    for run in range(runs):
        theta, data = world(kind, voters, seed + run)
        model = "plackett-luce" if kind == "ballots" else "bradley-terry"
        groups = Mixture(model, 2, restarts=4).fit(data).groups_
        if groups.share_stderr is not None:
            held, square = inside(groups, theta)
            (noted if is_noted(groups) else plain).append(held)
            squares.append(square)
    name = f"simulated, {kind}, {voters} voters in two groups"
    yield f"{name}, covered", float(np.mean([*plain, *noted]))
    yield f"{name}, covered without a note", float(np.mean(plain))
    yield f"{name}, covered with a note", float(np.mean(noted))
    yield f"{name}, noted", len(noted) / runs
    yield f"{name}, root mean square error", float(np.sqrt(np.mean(squares)))


def cells(quick: bool, seed: int) -> Iterator[Cell]:
    for kind, voters in (
        (("ballots", 200),) if quick else (("ballots", 100), ("ballots", 300), ("votes", 100), ("votes", 300))
    ):
        name = f"simulated, {kind}, {voters} voters in two groups"
        yield name, partial(mixtures, kind, voters, 30 if quick else 300, seed)


def main() -> None:
    check_cells(cells, __doc__, __file__)


if __name__ == "__main__":
    main()
