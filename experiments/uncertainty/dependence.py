"""Dependence: errors where agents give several votes or ballots, each with a taste of its own.

    python -m experiments.uncertainty.dependence [--quick] [--seed N] [--only WORD ...]      # from the project's root

Items are equal on average and every agent has its own scores around that, so that answers of one agent go together.
Claimed over true: the mean standard error over the root mean square of the scores, whose true value is 0.  Intervals at
level 0.95 must cover, and equal items may be separated in at most 0.05 of runs, within three Monte Carlo errors.

Raters of unequal sharpness with 5, 15 or 60 votes each: intervals of the scores, and of their sharpness, must cover.

Ballots that are not of the model: PMOP says how often ballots tie.  Equal items on ballots in random order, tied at
random, of few items, or with a first choice alone.

Design weights say how many voters a row stands for: voters are drawn with unequal probabilities and weigh 1, 2 or 8.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

import placet
from experiments.kept_cells import Cell, check_cells
from placet import Comparisons, Rankings
from placet.data import Parts

N_ITEMS = 6
EQUAL, UNEQUAL = np.zeros(N_ITEMS), np.linspace(0.6, -0.6, N_ITEMS)


def votes(agents: int, each: int, seed: int) -> Comparisons:
    rng = np.random.default_rng(seed)
    taste = rng.normal(0, 1, (agents, N_ITEMS))
    g = np.repeat(np.arange(agents), each)
    i = rng.integers(0, N_ITEMS, len(g))
    j = (i + rng.integers(1, N_ITEMS, len(g))) % N_ITEMS
    won = rng.random(len(g)) < 1 / (1 + np.exp(taste[g, j] - taste[g, i]))
    return Comparisons.from_battles(i, j, np.where(won, "a", "b"), agent=g, items=range(N_ITEMS))


def ballots(agents: int, each: int, seed: int) -> Rankings:
    rng = np.random.default_rng(seed)
    taste = rng.normal(0, 1, (agents, N_ITEMS))
    g = np.repeat(np.arange(agents), each)
    orders = np.argsort(-(taste[g] + rng.gumbel(size=(len(g), N_ITEMS))), axis=1)
    return Rankings.from_orders(orders.tolist(), agent=g, items=range(N_ITEMS))


def in_parts(agents: int, each: int, seed: int) -> Parts:
    """The same ballots in two parts, with ballots of every agent in both."""
    whole = ballots(agents, each, seed)
    return Parts.of([whole[::2], whole[1::2]])


def designed_votes(agents: int, each: int, seed: int) -> Comparisons:
    """Votes of unequal items with design weights, each of a voter of its own."""
    rng = np.random.default_rng(seed)
    i = rng.integers(0, N_ITEMS, each)
    j = (i + rng.integers(1, N_ITEMS, each)) % N_ITEMS
    won = rng.random(each) < 1 / (1 + np.exp(UNEQUAL[j] - UNEQUAL[i]))
    weight, outcome = rng.choice([1.0, 2.0, 8.0], each), np.where(won, "a", "b")
    return Comparisons.from_battles(i, j, outcome, weight=weight, items=range(N_ITEMS), weights="design")


def designed_ballots(agents: int, each: int, seed: int, theta: Any = UNEQUAL) -> Rankings:
    rng = np.random.default_rng(seed)
    orders = np.argsort(-(theta + rng.gumbel(size=(each, N_ITEMS))), axis=1)
    weight = rng.choice([1.0, 2.0, 8.0], each)
    return Rankings.from_orders(orders.tolist(), weight=weight, items=range(N_ITEMS)).with_design_weights()


def other_ballots(kind: str, agents: int, each: int, seed: int) -> Rankings:
    """Ballots on which all items are alike, and whose ties are not those of PMOP."""
    rng = np.random.default_rng(seed)
    orders: list[list[Any]] = []
    for _ in range(each):
        order = rng.permutation(N_ITEMS).tolist()
        if kind == "tied at random":
            tier = rng.integers(0, 3, N_ITEMS)
            order = [tuple(k for k in order if tier[k] == t) for t in np.unique(tier)]
        elif kind == "of some items":
            order = order[: rng.integers(2, N_ITEMS)]
        elif kind == "with a first choice":
            order = [order[0], tuple(order[1:])]
        orders.append(order)
    return Rankings.from_orders(orders, items=range(N_ITEMS))


def by_agent(
    name: str, method: str, data: Any, agents: int, each: int, runs: int, seed: int, truth: Any = EQUAL, **options: Any
) -> Iterator[tuple[str, float]]:
    """Claimed over true, coverage of intervals, and the share of runs in which equal items, or wrongly, are separated."""
    scores, errors, inside, wrong = [], [], [], 0
    for r in range(runs):
        found = placet.consensus(data(agents, each, seed + r), method, **options)
        middle = found.scores.mean() + truth
        low, high = found.interval()
        scores.append(found.scores - middle)
        errors.append(found.stderr)
        inside.append((low <= middle) & (middle <= high))
        wrong += bool((found.separated() & (truth[:, None] <= truth)).any())
    what = f"simulated, {name}, {agents} agents with {each} each" if agents else f"simulated, {name}, {each} rows"
    yield f"{what}, claimed over true", float(np.mean(errors) / np.sqrt(np.mean(np.square(scores))))
    yield f"{what}, intervals cover", float(np.mean(inside))
    yield f"{what}, separated", wrong / runs


def rated(raters: int, each: int, runs: int, seed: int) -> Iterator[tuple[str, float]]:
    """Raters of unequal sharpness with few votes each: coverage of the scores, and of the raters' sharpness."""
    n, inside, own = 10, [], []
    for r in range(runs):
        rng = np.random.default_rng(seed + r)
        theta, sharp = rng.normal(size=n), np.maximum(rng.normal(1, 0.5, raters), 0.0)
        theta, sharp = (theta - theta.mean()) * sharp.mean(), sharp / sharp.mean()
        g = np.repeat(np.arange(raters), each)
        i = rng.integers(0, n, len(g))
        j = (i + rng.integers(1, n, len(g))) % n
        won = rng.random(len(g)) < 1 / (1 + np.exp(-sharp[g] * (theta[i] - theta[j])))
        votes = Comparisons.from_battles(i, j, np.where(won, "a", "b"), agent=g, items=range(n))
        found = placet.consensus(votes, "bradley-terry", agents="sharpness")
        low, high = found.interval()
        inside.append((low <= theta) & (theta <= high))
        told = found.agents
        assert told is not None
        gap = np.abs(told.columns["sharpness"] - sharp[np.array(told.agents, int)])
        own.append(gap <= 1.96 * told.stderr["sharpness"])
    name = f"simulated, {raters} raters with {each} votes each"
    yield f"{name}, intervals cover", float(np.mean(inside))
    yield f"{name}, sharpness covered", float(np.mean(own))


def cells_of_agents(quick: bool, seed: int) -> Iterator[Cell]:
    runs = 40 if quick else 120
    for agents, each in ((20, 30),) if quick else ((8, 60), (20, 30), (60, 20)):
        for name, method, data, options in (
            ("Bradley-Terry", "bradley-terry", votes, {}),
            ("Plackett-Luce", "plackett-luce", ballots, {}),
            ("Borda", "borda", ballots, {"bootstrap": 50}),
            ("Plackett-Luce in parts", "plackett-luce", in_parts, {}),
            ("Borda in parts", "borda", in_parts, {"bootstrap": 50}),
        ):
            few = max(runs // 4, 10) if (options or data is in_parts) and quick else runs
            compute = partial(by_agent, name, method, data, agents, each, few, seed, **options)
            yield f"simulated, {name}, {agents} agents", compute
    for raters, each in ((100, 5),) if quick else ((20, 15), (60, 15), (20, 60), (100, 5)):
        yield f"simulated, {raters} raters with {each} votes", partial(rated, raters, each, 40 if quick else 80, seed)


def cells_of_designs(quick: bool, seed: int) -> Iterator[Cell]:
    runs, equal = 40 if quick else 120, partial(designed_ballots, theta=EQUAL)
    for each in (150,) if quick else (60, 150, 600):
        for name, method, data, options in (
            ("Bradley-Terry", "bradley-terry", designed_votes, {"truth": UNEQUAL}),
            ("Plackett-Luce", "plackett-luce", designed_ballots, {"truth": UNEQUAL}),
            ("Borda", "borda", equal, {"bootstrap": 50}),
            *(() if quick else (("PMOP", "pmop", equal, {}),)),
        ):
            few, what = 20 if quick and data is equal else runs, f"{name} with design weights"
            yield (
                f"simulated, {what}, {each} rows",
                partial(by_agent, what, method, data, 0, each, few, seed, **options),
            )


def cells_of_other_ballots(quick: bool, seed: int) -> Iterator[Cell]:
    runs = 40 if quick else 120
    for kind in ("in order",) if quick else ("in order", "tied at random", "of some items", "with a first choice"):
        for each in (30,) if quick else (10, 30, 100):
            for method in ("pmop",) if quick else ("pmop", "pmop-fd"):
                what, data = f"{method.upper()} on ballots {kind}", partial(other_ballots, kind)
                yield f"simulated, {what}, {each} rows", partial(by_agent, what, method, data, 0, each, runs, seed)


def cells(quick: bool, seed: int) -> Iterator[Cell]:
    for kind in (cells_of_agents, cells_of_designs, cells_of_other_ballots):
        yield from kind(quick, seed)


def main() -> None:
    check_cells(cells, __doc__, __file__)


if __name__ == "__main__":
    main()
