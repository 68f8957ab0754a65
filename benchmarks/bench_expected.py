"""Expected and measured CPU seconds of twenty jobs of different kinds, each of which takes a twentieth of a second or more.

    python -m benchmarks.bench_expected      # from the project's root

The studio and the command say beforehand how long a job takes (`expected_seconds`); that should be right within a factor
of two, either way.  Exits with 1 if it is not.  Compilation is not counted: each job runs twice, on data that are read
anew, so that nothing is known of them from the first time.
"""

import pickle
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import placet
from placet import simulate
from placet.aggregate.consensus_door import expected_seconds

FACTOR = 2.0


def votes(items: int, count: int) -> Any:
    theta = np.linspace(1, -1, items)
    return simulate.battles(theta, count, model="bradley-terry", random_state=0)


def dated_votes(items: int, count: int) -> Any:
    rng = np.random.default_rng(0)
    first = rng.integers(items, size=count)
    second = (first + 1 + rng.integers(items - 1, size=count)) % items
    won = np.where(rng.random(count) < 0.6, "a", "b")
    return placet.Comparisons.from_battles(first.tolist(), second.tolist(), won.tolist(), time=10 * rng.random(count))


def ballots(items: int, count: int, length: int | None = None, tiers: int | None = None) -> Any:
    return simulate.plackett_luce(np.linspace(1, -1, items), count, subset=length, partition=tiers, random_state=0)


def ratings() -> Any:
    """As many as in MovieLens 100K, of as many films by as many people."""
    return simulate.ratings(943, 1682, observed=0.063, random_state=0)


def jobs() -> Iterator[tuple[str, Any, str, int, dict[str, Any]]]:
    """Name, data, method, bootstrap, parameters."""
    yield "votes 1,000 x 100,000", votes(1_000, 100_000), "bradley-terry", 0, {}
    yield "votes 2,000 x 300,000", votes(2_000, 300_000), "bradley-terry", 0, {}
    yield "votes 100 x 100,000, bootstrap", votes(100, 100_000), "bradley-terry", 1000, {}
    yield "votes 50 x 20,000, drift", dated_votes(50, 20_000), "bradley-terry", 0, {"drift": "learn", "step": 1.0}
    yield "ballots 50 x 2,000, bradley-terry", ballots(50, 2_000), "bradley-terry", 0, {}
    yield "ballots 100 x 2,000", ballots(100, 2_000), "plackett-luce", 0, {}
    yield "ballots 1,000 x 5,000 of 10", ballots(1_000, 5_000, 10), "plackett-luce", 0, {}
    yield "ballots 20 x 2,000, bootstrap", ballots(20, 2_000), "plackett-luce", 200, {}
    yield "ballots 30 x 5,000 of 20, ties", ballots(30, 5_000, 20, 3), "plackett-luce", 0, {}
    yield "ballots 10 x 10,000, pmop-fd", ballots(10, 10_000), "pmop-fd", 0, {}
    yield "ballots 10 x 300, pmop", ballots(10, 300), "pmop", 0, {}
    yield "ballots 100 x 2,000 of 10, mpm, bootstrap", ballots(100, 2_000, 10), "mpm", 200, {}
    yield "ballots 50 x 20,000, svp", ballots(50, 20_000), "svp", 0, {}
    yield "ballots 50 x 20,000, cps", ballots(50, 20_000), "cps", 0, {}
    yield "ballots 50 x 2,000, schulze, bootstrap", ballots(50, 2_000), "schulze", 200, {}
    yield "ballots 50 x 2,000, irv, bootstrap", ballots(50, 2_000), "irv", 200, {}
    yield "ballots 10 x 5,000, borda, bootstrap", ballots(10, 5_000), "borda", 1000, {}
    yield "100,000 ratings", ratings(), "plackett-luce", 0, {}
    yield "100,000 ratings, adjusted-mean", ratings(), "adjusted-mean", 0, {}
    yield "100,000 ratings, bradley-terry", ratings(), "bradley-terry", 0, {}


def seconds_of(data: Any, method: str, bootstrap: int, params: dict[str, Any]) -> float:
    start = time.process_time()
    placet.consensus(data, method, bootstrap=bootstrap, **params)
    return time.process_time() - start


def main() -> None:
    worst = 1.0
    for name, data, method, bootstrap, params in jobs():
        said, raw = expected_seconds(data, method, bootstrap, params), pickle.dumps(data)
        seconds_of(data, method, 2 * bool(bootstrap), params)
        took = seconds_of(pickle.loads(raw), method, bootstrap, params)
        worst = max(worst, said / took, took / said)
        print(f"{name:42} expected {said:8.3f} s, took {took:8.3f} CPU s, ratio {said / took:6.2f}", flush=True)
    print(f"largest factor {worst:.1f}, at most {FACTOR:g} wanted")
    sys.exit(worst > FACTOR)


if __name__ == "__main__":
    main()
