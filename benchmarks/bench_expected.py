"""Expected and measured CPU seconds of twenty jobs of different kinds and sizes.

    python -m benchmarks.bench_expected      # from the project's root

The studio and the command say beforehand how long a job takes (`expected_seconds`); that should be right within a factor
of three, either way.  Exits with 1 if it is not.  Compilation is not counted: each job runs once before on little data.
"""

import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import placet
from placet import simulate
from placet.aggregate.consensus_door import expected_seconds

FACTOR = 3.0


def votes(items: int, count: int) -> Any:
    theta = np.linspace(1, -1, items)
    return simulate.battles(theta, count, model="bradley-terry", random_state=0)


def ballots(items: int, count: int, length: int | None = None) -> Any:
    return simulate.plackett_luce(np.linspace(1, -1, items), count, subset=length, random_state=0)


def jobs() -> Iterator[tuple[str, Any, str, int]]:
    """Name, data, method, bootstrap."""
    yield "votes 20 x 1,000", votes(20, 1_000), "bradley-terry", 0
    yield "votes 100 x 100,000", votes(100, 100_000), "bradley-terry", 0
    yield "votes 1,000 x 100,000", votes(1_000, 100_000), "bradley-terry", 0
    yield "votes 100 x 100,000, bootstrap", votes(100, 100_000), "bradley-terry", 100
    yield "votes 100 x 20,000, borda, bootstrap", votes(100, 20_000), "borda", 100
    yield "votes 100 x 20,000, copeland", votes(100, 20_000), "copeland", 0
    yield "votes 100 x 20,000, plackett-luce", votes(100, 20_000), "plackett-luce", 0
    yield "ballots 10 x 1,000", ballots(10, 1_000), "plackett-luce", 0
    yield "ballots 100 x 5,000 of 10", ballots(100, 5_000, 10), "plackett-luce", 0
    yield "ballots 1,000 x 5,000 of 10", ballots(1_000, 5_000, 10), "plackett-luce", 0
    yield "ballots 10 x 200, bootstrap", ballots(10, 200), "plackett-luce", 50
    yield "ballots 10 x 5,000, borda", ballots(10, 5_000), "borda", 0
    yield "ballots 10 x 5,000, borda, bootstrap", ballots(10, 5_000), "borda", 100
    yield "ballots 50 x 2,000, schulze", ballots(50, 2_000), "schulze", 0
    yield "ballots 50 x 2,000, irv", ballots(50, 2_000), "irv", 0
    yield "ballots 30 x 500, kemeny-local", ballots(30, 500), "kemeny-local", 0
    yield "ballots 10 x 1,000, pmop-fd", ballots(10, 1_000), "pmop-fd", 0
    yield "ballots 10 x 300, pmop", ballots(10, 300), "pmop", 0
    yield "ballots 100 x 2,000 of 10, mpm", ballots(100, 2_000, 10), "mpm", 0
    yield "ballots 8 x 500, mallows", ballots(8, 500), "mallows", 0


def main() -> None:
    worst = 1.0
    for name, data, method, bootstrap in jobs():
        said = expected_seconds(data, method, bootstrap)
        placet.consensus(
            ballots(4, 20) if isinstance(data, placet.Rankings) else votes(4, 50), method, bootstrap=2 * bool(bootstrap)
        )
        start = time.process_time()
        placet.consensus(data, method, bootstrap=bootstrap)
        took = time.process_time() - start
        worst = max(worst, said / took, took / said)
        print(f"{name:40} expected {said:8.3f} s, took {took:8.3f} CPU s, ratio {said / took:6.2f}", flush=True)
    print(f"largest factor {worst:.1f}, at most {FACTOR:g} wanted")
    sys.exit(worst > FACTOR)


if __name__ == "__main__":
    main()
