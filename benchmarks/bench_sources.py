"""Several sources in one fit, against the target fitted alone.  No peer joins sources.

    python -m benchmarks.bench_sources [part ...] [--quick]

many    200 items and 40 sources of 4,000 votes each
large   1,000 items and 10 sources of a million votes each

Measured on one core that others used, too (CPU seconds): many 5.2 s, large 43 s.
"""

import numpy as np

from benchmarks.harness import compare, main
from placet import Sources, consensus
from placet.simulate import battles


def sources(n: int, count: int, votes: int) -> tuple[np.ndarray, Sources]:
    """The target's true scores, and sources that see them on other scales, with deviations of 0.5."""
    rng = np.random.default_rng(0)
    theta = rng.standard_normal(n)
    seen = [np.exp(0.3 * rng.standard_normal()) * (theta + 0.5 * rng.standard_normal(n)) for _ in range(count - 1)]
    votes_of = {k: battles(s, votes, tie=-1.0, random_state=k) for k, s in enumerate([theta, *seen])}
    return theta, Sources(votes_of, target=0)


def joined(n: int, count: int, votes: int) -> None:
    theta, data = sources(n, count, votes)
    ways = {"placet": data, "the target alone": data[0]}
    error = {who: consensus(way).scores - (theta - theta.mean()) for who, way in ways.items()}
    notes = {who: f"error {np.sqrt(np.mean(e**2)):.3f}" for who, e in error.items()}
    contestants = {who: lambda way=way: consensus(way) for who, way in ways.items()}
    compare(f"sources {n} items {count} sources {votes} votes", contestants, repeat=1, notes=notes)


def bench_many(quick: bool) -> None:
    joined(*((30, 5, 1_000) if quick else (200, 40, 4_000)))


def bench_large(quick: bool) -> None:
    joined(*((60, 3, 10_000) if quick else (1_000, 10, 1_000_000)))


if __name__ == "__main__":
    main(__doc__, {"many": bench_many, "large": bench_large})
