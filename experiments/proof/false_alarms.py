"""Voters who vote independently: how often is anyone named as coordinated?  And are rings found?

    python -m experiments.proof.false_alarms [--quick] [--seed N]      # from the project's root

60 voters judge 100 random pairs of 20 items each, once per pair; level 0.95.  Settings in which all are independent: equal
voters; voters of unequal sharpness, from coin flips to three times the usual; popular items, three of which are in most
pairs; voters with tastes of their own (scores of each voter are off by a standard deviation of 1.5, that of the items being 1); pairs of items that no
scores fit (log odds of each pair are off by 0.7); ties in a third of votes; 8 voters who judge all pairs.  A false alarm is
a run in which anyone is named.

Rings are 6 of the 60: they judge the same pairs, and copy the first of them in nine of ten votes, else vote as they think.
A ring is found if all 6 are named as one group of only these.  Quiet rings copy in half of the votes: they are here for the reader.
"""

import time

import numpy as np

from experiments.common import check, expected, parser
from placet.aggregate.proof.coordinated_voters import coordinated_voters
from placet.data import Comparisons

ITEMS, VOTERS, VOTES, RING = 20, 60, 100, 6
INDEPENDENT = ("equal voters", "unequal sharpness", "popular items", "own tastes", "misfit", "ties", "8 voters")
RUNS, QUICK_RUNS = 200, 20


def poll(world: str, seed: int, copied: float = 0.0) -> Comparisons:
    """Votes of independent voters; with ``copied`` the first six copy the first of them in that share of votes."""
    rng = np.random.default_rng([seed, len(world)])
    n = 8 if world == "8 voters" else VOTERS
    i, j = np.triu_indices(ITEMS, 1)
    appeal = np.where(np.arange(ITEMS) < 3, 8.0, 1.0) if world == "popular items" else np.ones(ITEMS)
    chance = appeal[i] * appeal[j]
    size = len(i) if world == "8 voters" else VOTES
    shown = np.array([rng.choice(len(i), size, False, chance / chance.sum()) for _ in range(n)])
    theta = rng.normal(size=ITEMS) + rng.normal(size=(n, ITEMS)) * (1.5 if world == "own tastes" else 0.0)
    sharp = rng.uniform(0, 3, n) if world == "unequal sharpness" else np.ones(n)
    off = rng.normal(size=len(i)) * (0.7 if world == "misfit" else 0.0)
    logit = sharp[:, None] * (theta[:, i] - theta[:, j] + off)
    says = rng.random((n, len(i))) < 1 / (1 + np.exp(-logit))
    if copied:
        shown[:RING] = shown[0]
        says[1:RING] = np.where(rng.random((RING - 1, len(i))) < copied, says[0], says[1:RING])
    voter = np.repeat(np.arange(n), size)
    k = shown.ravel()
    outcome = np.where(says[voter, k], "a", "b").astype(object)
    if world == "ties":
        outcome[rng.random(len(outcome)) < 1 / 3] = "tie"
    return Comparisons.from_battles(i[k].tolist(), j[k].tolist(), outcome.tolist(), agent=voter.tolist())


def false_alarms(world: str, runs: int, seed: int) -> float:
    """The share of runs in which anyone is named."""
    return float(np.mean([len(coordinated_voters(poll(world, seed + k)).groups) > 0 for k in range(runs)]))


def found(copied: float, runs: int, seed: int) -> float:
    """The share of runs in which the ring is named as one group, and nobody else is in it."""
    return float(np.mean([_is_found(coordinated_voters(poll("equal voters", seed + k, copied))) for k in range(runs)]))


def _is_found(named) -> bool:
    return any(set(group.voters) == set(range(RING)) for group in named.groups)


def main() -> None:
    given = parser(__doc__).parse_args()
    runs = QUICK_RUNS if given.quick else RUNS
    ours: dict[str, float] = {}
    for world in INDEPENDENT:
        start = time.process_time()
        ours[f"simulated, false alarms, {world}"] = share = false_alarms(world, runs, given.seed)
        print(f"{world}: {share:.3f} of {runs}, {time.process_time() - start:.1f} CPU s", flush=True)
    ours["simulated, ring found"] = found(0.9, max(runs // 5, 10), given.seed)
    ours["simulated, quiet ring found"] = found(0.5, max(runs // 5, 10), given.seed)
    check(ours, expected(__file__, "quick" if given.quick else ""))


if __name__ == "__main__":
    main()
