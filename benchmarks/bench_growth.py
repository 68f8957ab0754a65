"""Time of every reader against the size of its file: linear, or it is not.

    python -m benchmarks.bench_growth [--quick]

Files of 1, 2, 4 and 8 units; the exponent is the slope of log time against log size between the largest two (1 is
linear, 2 quadratic).  Wide tables, single long lines and compressed files are among them, where readers of other shapes
have been quadratic.
"""

import gzip
import io
import math
import time
from collections.abc import Callable, Iterator

import numpy as np
import zstandard

import placet
from benchmarks.harness import main

RNG = np.random.default_rng(0)


def _battles(n: int) -> bytes:
    rows = RNG.integers(0, 200, (n, 2))
    return b"model_a,model_b,winner\n" + b"".join(b"m%d,n%d,model_a\n" % (a, b) for a, b in rows.tolist())


def _ballots(n: int) -> bytes:
    return b"".join(b" > ".join(b"i%d" % k for k in RNG.permutation(10).tolist()) + b"\n" for _ in range(n // 10))


def _one_long_ballot(n: int) -> bytes:
    return b" > ".join(b"i%d" % k for k in range(n)) + b"\n"


def _preflib(n: int) -> bytes:
    names = b"".join(b"# ALTERNATIVE NAME %d: i%d\n" % (k + 1, k) for k in range(10))
    lines = [b"1: " + b",".join(b"%d" % (k + 1) for k in RNG.permutation(10).tolist()) + b"\n" for _ in range(n // 10)]
    head = b"# FILE NAME: x.soc\n# NUMBER ALTERNATIVES: 10\n# NUMBER VOTERS: %d\n# NUMBER UNIQUE ORDERS: %d\n" % (
        len(lines),
        len(lines),
    )
    return head + names + b"".join(lines)


def _preflib_many_names(n: int) -> bytes:
    names = b"".join(b"# ALTERNATIVE NAME %d: i%d\n" % (k + 1, k) for k in range(n))
    head = b"# FILE NAME: x.soi\n# NUMBER ALTERNATIVES: %d\n# NUMBER VOTERS: 1\n# NUMBER UNIQUE ORDERS: 1\n" % n
    return head + names + b"1: 1,2,3\n"


def _letor(n: int) -> bytes:
    return b"".join(b"%d qid:%d 1:0.5 2:%d 7:1\n" % (k % 3, k // 20, k) for k in range(n))


def _ratings(n: int) -> bytes:
    return b"user,item,rating\n" + b"".join(b"u%d,i%d,%d\n" % (k // 20, k % 20, k % 5) for k in range(n))


def _wide(n: int) -> bytes:
    columns = n // 20
    head = b"ballot," + b",".join(b"i%d" % k for k in range(columns)) + b"\n"
    return head + b"".join(b"b%d," % r + b",".join(b"%d" % (k + 1) for k in range(columns)) + b"\n" for r in range(20))


def _columns(n: int, head: bytes, name: bytes, start: bytes, cell: Callable[[int, int], bytes]) -> bytes:
    """Twenty rows of n / 20 columns, after those that ``head`` names and ``start`` fills; a line is blank."""
    columns = range(n // 20)
    rows = (start + b",".join(cell(row, k) for k in columns) + b"\n" for row in range(20))
    return head + b",".join(name + b"%d" % (k + 1) for k in columns) + b"\n\n" + b"".join(rows)


def _places(n: int) -> bytes:
    return _columns(n, b"", b"choice ", b"", lambda _, k: b"i%d" % k)


def _features(n: int) -> bytes:
    return _columns(n, b"qid,label,", b"f", b"1,2,", lambda row, k: b"0.%d" % (k + row))


READERS: dict[str, tuple[Callable[[int], bytes], str, str, int]] = {
    "battles, csv": (_battles, "x.csv", "battles", 40_000),
    "ballots, text": (_ballots, "x.txt", "ballots", 80_000),
    "one ballot on one line": (_one_long_ballot, "x.txt", "ballots", 40_000),
    "preflib": (_preflib, "x.soc", "preflib", 60_000),
    "preflib, many names": (_preflib_many_names, "x.soi", "preflib", 20_000),
    "letor": (_letor, "x.letor", "letor", 100_000),
    "ratings, csv": (_ratings, "x.csv", "ratings", 80_000),
    "a wide table of ranks": (_wide, "x.csv", "ballots", 40_000),
    "a wide table of places": (_places, "x.csv", "ballots", 40_000),
    "a wide table of features": (_features, "x.csv", "features", 40_000),
    "battles, gz": (lambda n: gzip.compress(_battles(n)), "x.csv.gz", "battles", 40_000),
    "zeros, zst": (lambda n: zstandard.compress(b"a > b\n" * n), "x.txt.zst", "ballots", 80_000),
}


def exponents(unit: float = 1.0) -> Iterator[tuple[str, list[float], float]]:
    """Every reader, its seconds at 1, 2, 4 and 8 units, and the exponent."""
    for name, (make, file, format, n) in READERS.items():
        seconds = []
        for size in (1, 2, 4, 8):
            data = make(int(size * n * unit))
            best = math.inf
            for _ in range(2):
                source = io.BytesIO(data)
                source.name = file
                start = time.process_time()
                placet.read(source, format)
                best = min(best, time.process_time() - start)
            seconds.append(best)
        yield name, seconds, math.log2(max(seconds[3], 1e-3) / max(seconds[2], 1e-3))


def growth(quick: bool) -> None:
    """CPU seconds of every reader at four sizes."""
    for name, seconds, exponent in exponents(0.1 if quick else 1.0):
        print(f"{name:26} " + " ".join(f"{s:8.3f}" for s in seconds) + f"   exponent {exponent:.2f}", flush=True)


if __name__ == "__main__":
    main(__doc__, {"growth": growth})
