"""What to ask next, and whether the votes are enough.  No peer asks for a goal, or has such a stop; ratios are to the times asked for.

    python -m benchmarks.bench_asking [part ...] [--quick]

small   100 items, 20,000 votes: enough and next pairs for each goal; asked for 10 ms of CPU
large   1,000 items, 200,000 votes: the same; asked for 0.2 s
dense   1,000 items, every pair asked 40 times, so that most pairs are settled and paths between them many

Measured on a core that others used, too (ms of CPU, the slowest goal, "tiers:3"): small 4, large 65, dense 175; for the
other goals at most 3, 45 and 113.

The board is fitted before; its votes are counted anew in every call ("first"), or are counted already ("warm").
"""

from functools import partial

import numpy as np

from benchmarks.harness import compare, main
from placet import Comparisons, consensus
from placet.aggregate.asking.counted_votes import with_votes
from placet.simulate import battles

GOALS = ("best", "top:10", "order", "tiers:3")


def board_of(n: int, votes: int):
    theta = np.random.default_rng(0).standard_normal(n)
    data = battles(theta, votes, tie=-1.0, random_state=0)
    return consensus(data), data


def dense_board(n: int):
    """Every pair has 40 votes."""
    i, j = np.triu_indices(n, 1)
    theta, rng = 2 * np.random.default_rng(0).standard_normal(n), np.random.default_rng(1)
    won = rng.binomial(40, 1 / (1 + np.exp(theta[j] - theta[i])))
    data = Comparisons(i, j, won.astype(float), 40.0 - won, np.zeros(len(i)), items=list(range(n)))
    return consensus(data), data


def timed(n: int, board, data, asked: float, kind: str = "") -> None:
    for goal in GOALS:
        ways = {
            "enough, warm": partial(board.enough, goal),
            "next 50 pairs, warm": partial(board.next_pairs, 50, goal=goal),
            "enough, first": lambda goal=goal: with_votes(board, data).enough(goal),
        }
        rows = compare(f"asking {kind}{n} items {goal}", ways, repeat=5)
        for who, row in rows.items():
            print(f"  {who}: {row['cpu'] * 1000:.1f} ms of CPU, asked {asked * 1000:.0f}: {row['cpu'] / asked:.2f}")


def bench_small(quick: bool) -> None:
    n, votes = (30, 2_000) if quick else (100, 20_000)
    timed(n, *board_of(n, votes), 0.01)


def bench_large(quick: bool) -> None:
    n, votes = (200, 20_000) if quick else (1_000, 200_000)
    timed(n, *board_of(n, votes), 0.2)


def bench_dense(quick: bool) -> None:
    n = 100 if quick else 1_000
    timed(n, *dense_board(n), 0.2, "dense ")


if __name__ == "__main__":
    main(__doc__, {"small": bench_small, "large": bench_large, "dense": bench_dense})
