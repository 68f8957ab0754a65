"""Rank sets by simulation: how often do they hold the true ranks, of all items at once and of each?

    python -m experiments.uncertainty.coverage [--quick] [--seed N]      # from the project's root

True scores fall by a constant gap, from none to half a logit; votes, ballots and bootstrap draws; 10 and 100 items.
A set of level 0.95 must cover in at least 95 % of runs, within three Monte Carlo standard errors.  Without a gap every
order is the truth, so that nothing may be separated.  With the mean width beside it: a set of all ranks covers, too.
Sets of all items at once are wider than the sets of each item alone.
"""

from collections.abc import Iterator

import numpy as np

import placet
from experiments.common import check, expected, parser
from placet import simulate
from placet.aggregate import Consensus

LEVEL = 0.95
GAPS = (0.0, 1e-4, 0.05, 0.5)
RUNS = {10: 400, 100: 100}
QUICK_RUNS = {10: 30}


def fitted(kind: str, theta: np.ndarray, seed: int) -> Consensus:
    """A fit to drawn data: 40 votes an item and 10 items, 200 with 100; or 400 ballots of ten items each."""
    n = len(theta)
    if kind == "ballots":
        ballots = simulate.plackett_luce(theta, 400 if n == 10 else 1000, subset=10, random_state=seed)
        return placet.consensus(ballots, "plackett-luce")
    votes = simulate.battles(theta, 200 * n, model="bradley-terry", random_state=seed)
    rounds = 200 if kind == "bootstrap" else 0
    return placet.consensus(votes, "bradley-terry", bootstrap=rounds, random_state=seed)


def coverage(kind: str, n: int, gap: float, runs: int, seed: int) -> Iterator[tuple[str, float]]:
    """Shares of runs in which the sets cover all items at once, and the worst item; and mean widths in ranks."""
    theta, truth = gap * np.arange(n)[::-1], np.arange(1, n + 1)
    together, each, widths, own_widths = [], [], [], []
    for run in range(runs):
        c = fitted(kind, theta, seed + run)
        low, high = c.rank_interval(LEVEL)
        own_low, own_high = c.rank_interval(LEVEL, kind="marginal")
        if gap == 0.0:
            together.append(not c.separated(LEVEL).any())
            each.append((own_low == 1) & (own_high == n))
        else:
            together.append(bool(((low <= truth) & (truth <= high)).all()))
            each.append((own_low <= truth) & (truth <= own_high))
        widths.append(float((high - low).mean()))
        own_widths.append(float((own_high - own_low).mean()))
    name = f"simulated, {kind}, {n} items, gap {gap:g}"
    yield f"{name}, all at once", float(np.mean(together))
    yield f"{name}, worst item", float(np.mean(each, axis=0).min())
    yield f"{name}, mean width", float(np.mean(widths))
    if kind == "votes" and gap == GAPS[-1]:
        yield f"{name}, mean width less that of each item's own set", float(np.mean(widths) - np.mean(own_widths))


def main() -> None:
    arguments = parser(__doc__).parse_args()
    ours: dict[str, float] = {}
    for n, runs in (QUICK_RUNS if arguments.quick else RUNS).items():
        for kind in ("votes", "ballots", "bootstrap"):
            for gap in GAPS:
                found = dict(coverage(kind, n, gap, runs, arguments.seed))
                print(", ".join(f"{name} {value:.3f}" for name, value in found.items()), flush=True)
                ours |= found
    check(ours, expected(__file__, "quick" if arguments.quick else ""))


if __name__ == "__main__":
    main()
