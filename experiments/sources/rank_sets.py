"""Do 95% rank sets of the target cover, whatever the judge is?  Simulated people and judges.

Items have scores of standard deviation 0.8.  A good judge deviates by 0.1, a biased one by 0.6 and favors an item by 2
beside that, a useless one answers by scores of its own.  People vote 15 or 150 times per item, the judge 300 times.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

import placet
from experiments.common import check, expected, parser
from experiments.kept_cells import Keep, KeptCells, anew
from placet.data import Comparisons

ITEMS, RUNS, QUICK_RUNS = (10, 20, 50), 200, 15
KINDS = ("good", "biased", "useless")
VOTES = {"few": 15, "many": 150}
JUDGED = 300
SPREAD = 0.8


def judge_scores(kind: str, theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """What the judge thinks of the items."""
    if kind == "useless":
        return rng.permutation(theta)
    seen = theta + {"good": 0.1, "biased": 0.6}[kind] * rng.standard_normal(len(theta))
    if kind == "biased":
        seen[rng.integers(len(theta))] += 2.0
    return 1.3 * seen


def votes(theta: np.ndarray, count: int, rng: np.random.Generator) -> Comparisons:
    return placet.simulate.battles(theta, count, tie=-1.0, random_state=rng)


def covered(n: int, kind: str, count: int, seed: tuple[int, ...]) -> tuple[float, float, float]:
    """Whether all ranks are in their sets, and the mean size of the sets: with the judge, and without."""
    rng = np.random.default_rng(seed)
    theta = SPREAD * rng.standard_normal(n)
    people = votes(theta, count * n, rng)
    judge = votes(judge_scores(kind, theta, rng), JUDGED * n, rng)
    low, high = placet.consensus(placet.Sources({"people": people, "judge": judge}, "people")).rank_interval()
    rank = np.empty(n)
    rank[np.argsort(-theta)] = 1 + np.arange(n)
    alone = placet.consensus(people).rank_interval()
    inside = float(((low <= rank) & (rank <= high)).all())
    return inside, 1 + float(np.mean(high - low)), 1 + float(np.mean(alone[1] - alone[0]))


def cells(
    items: tuple[int, ...], amounts: tuple[str, ...], runs: int, seed: int, keep: Keep
) -> Iterator[tuple[str, float]]:
    """By number of items, judge and amount of votes: how often all ranks are covered, and the sets' relative size."""
    for n in items:
        for kind in KINDS:
            for amount in amounts:
                name = f"simulated, {n} items, {kind} judge, {amount} votes"
                one = partial(covered, n, kind, VOTES[amount])
                found = [keep(f"{name}, seed {seed}, run {k}", partial(one, (seed, n, k))) for k in range(runs)]
                cover, size, alone = np.mean(found, axis=0).tolist()
                yield f"{name}, ranks covered", cover
                yield f"{name}, size of rank sets over that of people alone", size / alone


def main() -> None:
    arguments = parser(__doc__).parse_args()
    if arguments.quick:
        found = cells((10,), ("many",), QUICK_RUNS, arguments.seed, anew)
    else:
        found = cells(ITEMS, tuple(VOTES), RUNS, arguments.seed, KeptCells(__file__).of)
    check(dict(found), expected(__file__, "quick" if arguments.quick else ""))


if __name__ == "__main__":
    main()
