"""Looked at after every vote: in how many polls is anything false ever said?

    python -m experiments.asking.false_statements [--quick] [--seed N] [--only WORD ...]      # from the project's root

Polls in which the goal has no answer: equal items; equal items whose voters say "tie" every second time; two equal
items at the border (two equal leaders for "best", two equal items at places k and k + 1 for "top", equal leaders and
items 0.5 apart below them for "order").  Level 0.95, 5,000 votes, each looked at.  Asked are random pairs, those of our
rule in lists of 40, and those of an adversary who knows the truth, works on the false statement that is nearest to being
made, and stops when it is.  With two items there is one pair, so all three are the same.

False is: a name, a top or an order, as there is none; "the best is one of" without any of the best; items in the top, or
out of it, that fit no top; "above" of an item that is not.  A second quantity keeps the method from saying nothing: the
share of polls with a clear best item, a clear top and a clear order that say so, rightly.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from experiments.asking.crowds import Crowd, adversary, by_our_rule, uniform
from experiments.kept_cells import Cell, check_cells
from placet.aggregate.asking.goal_evidence import GoalEvidence
from placet.aggregate.goal_verdict import Goal

SIZES = (2, 3, 5, 10, 20)
ASKING = {"uniform": uniform, "our rule": by_our_rule, "adversary": adversary}
WORLDS = ("equal items", "ties frequent", "two equal at the border")
RUNS, VOTES = 400, 5000
QUICK_RUNS, QUICK_VOTES, QUICK_SIZES = 100, 400, (2, 5)


def goals(n: int) -> list[Goal]:
    """The goals asked of n items; with two, which is the best is the same as the order."""
    top = [Goal("top", k=n // 3)] if n >= 10 else []
    return [Goal("best"), Goal("order"), *top] if n > 2 else [Goal("best")]


def scores(world: str, goal: Goal, n: int) -> np.ndarray:
    """True scores, best first."""
    if world != "two equal at the border":
        return np.zeros(n)
    theta = -0.5 * np.arange(float(n))
    theta[goal.k :] += 0.5  # places k and k + 1 share a score
    return theta


def is_false(standing: GoalEvidence, theta: np.ndarray) -> bool:
    """Whether what the library says so far is false in any part."""
    goal = standing.goal
    if goal.name == "best":
        best = theta == theta.max()
        if standing.is_reached() and (best.sum() > 1 or not best[standing.leader]):
            return True
        return bool(standing.not_best[best].all())
    if goal.name == "top":
        return _is_false_top(standing, theta, goal.k)
    return bool((standing.above & (theta[:, None] <= theta)).any())


def _is_false_top(standing: GoalEvidence, theta: np.ndarray, k: int) -> bool:
    border, below = np.sort(theta)[::-1][k - 1 : k + 1]
    surely, tied = theta > border, theta == border
    if standing.is_reached() and (border == below or not (theta[standing.ahead[:k]] >= border).all()):
        return True
    inside, outside = standing.sure_top
    free = k - surely.sum()  # places in the top for the tied
    fits = (inside & tied).sum() <= free and (outside & tied).sum() <= tied.sum() - free
    return bool((inside & ~surely & ~tied).any() or (outside & surely).any() or not fits)


def is_said(standing: GoalEvidence, theta: np.ndarray) -> bool:
    return standing.is_reached()


def cells(sizes: tuple[int, ...]) -> list[tuple[str, Goal, int, str]]:
    return [
        (world, goal, n, asked)
        for n in sizes
        for world in WORLDS[: 2 if n == 2 else 3]  # two equal leaders of two are equal items
        for goal in goals(n)
        for asked in (ASKING if n > 2 else ("uniform",))
    ]


def run_cell(
    name: str, world: str, goal: Goal, n: int, asked: str, quick: bool, seed: int
) -> Iterator[tuple[str, float]]:
    """The share of runs with a false statement."""
    runs, votes = (QUICK_RUNS, QUICK_VOTES) if quick else (RUNS, VOTES)
    tie = np.log(2.0) if world == "ties frequent" else -np.inf
    crowd = Crowd(scores(world, goal, n), goal, runs * 5 if n == 2 else runs, votes, seed, tie)
    yield name, float(np.isfinite(crowd.run(ASKING[asked], is_false, false=True)).mean())


def run_ours(name: str, goal: Goal, n: int, quick: bool, seed: int) -> Iterator[tuple[str, float]]:
    """The share of runs in which our rule of asking says what is true, of items far apart."""
    runs, votes = (QUICK_RUNS, QUICK_VOTES) if quick else (RUNS, VOTES)
    crowd = Crowd(-2.0 * np.arange(float(n)), goal, runs, votes, seed)
    yield name, float(np.isfinite(crowd.run(by_our_rule, is_said)).mean())


def every_cell(quick: bool, seed: int) -> Iterator[Cell]:
    sizes = QUICK_SIZES if quick else SIZES
    for world, goal, n, asked in cells(sizes):
        name = f"simulated, {world}, {n} items, {goal.text}, {asked}"
        yield name, partial(run_cell, name, world, goal, n, asked, quick, seed)
    n = sizes[-1] if quick else 10
    for goal in goals(n):
        name = f"simulated, gaps of 2, {n} items, {goal.text}, our rule, said"
        yield name, partial(run_ours, name, goal, n, quick, seed)


def main() -> None:
    check_cells(every_cell, __doc__, __file__)


if __name__ == "__main__":
    main()
