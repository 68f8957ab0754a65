"""Speed of the losses: python -m benchmarks.bench_losses [part ...] [--threads 1] [--quick]

Parts are the keys of PARTS at the end; to benchmark another family of losses, add its function there.
"""

from collections.abc import Callable

import numpy as np

from benchmarks.harness import compare, main, peak_memory
from experiments.common import least_cpu
from placet.data import Lists
from placet.losses import LOSSES
from placet.threads import get_threads, set_threads

BATCH, TIED = 20, (100, 150, 250)


def batch_of_partitions(n: int, seed: int = 0) -> tuple[np.ndarray, Lists]:
    """20 lists of n rows, with three top tiers of 500 rows in total; scores uniform on (0, log n) as in the paper's simulation."""
    rng = np.random.default_rng(seed)
    grade = np.concatenate([np.full(size, 3.0 - k) for k, size in enumerate(TIED)] + [np.zeros(n - sum(TIED))])
    return rng.uniform(0, np.log(n), BATCH * n), Lists(np.tile(grade, BATCH), n * np.arange(BATCH + 1))


def published(s: np.ndarray, n: int, intervals: int = 10_000) -> tuple[float, np.ndarray]:
    """Ma et al. (2021): equal intervals of (0, 1), log space (appendix A.5), automatic differentiation, single precision.

    With the shift c = 5 of their experiments (appendix A.4), on logits whose log-sum-exp is 0:
    e^{w_R + c} times the integral of v^{e^{w_R + c} - 1} prod_i (1 - v^{e^{w_i + c}}).
    """
    import torch

    w = torch.tensor(s.reshape(BATCH, n), dtype=torch.float32, requires_grad=True)
    shifted = torch.log_softmax(w, dim=1) + 5.0
    log_v = torch.log((torch.arange(intervals, dtype=torch.float32) + 0.5) / intervals)
    ends = np.cumsum(TIED)
    loss = torch.zeros(())
    for start, end in zip(ends - TIED, ends):
        a = torch.exp(shifted[:, start:end])
        below = torch.logsumexp(shifted[:, end:], dim=1, keepdim=True)
        log_factor = torch.log(-torch.expm1(log_v[None, :, None] * a[:, None, :])).sum(dim=2)
        log_p = below[:, 0] + torch.logsumexp(log_factor + (below.exp() - 1) * log_v, dim=1) - np.log(intervals)
        loss = loss - log_p.sum()
    loss.backward()
    return float(loss.detach()), w.grad.numpy().ravel().astype(float)


def partition_contestants(n: int) -> dict[str, Callable[[], tuple[float, np.ndarray]]]:
    s, lists = batch_of_partitions(n)
    return {
        "placet": lambda: LOSSES["pl-partition"](s, lists),
        "placet tol=1e-4": lambda: LOSSES["pl-partition"](s, lists, tol=1e-4),
        "published": lambda: published(s, n),
    }


def partition(quick: bool, sizes: tuple[int, ...] = (1_000, 10_000, 100_000)) -> None:
    """`pl-partition` against the published method, with the same number of threads."""
    import torch

    torch.set_num_threads(get_threads())
    sizes = sizes[:1] if quick else sizes
    peaks = {n: {who: peak_memory(run) for who, run in partition_contestants(n).items()} for n in sizes}
    for n in sizes:
        contestants = partition_contestants(n)
        exact, slope = LOSSES["pl-partition"](*batch_of_partitions(n), tol=1e-14)
        notes = {}
        for who, run in contestants.items():
            value, grad = run()
            notes[who] = f"error {abs(value - exact) / abs(exact):.0e}, gradient {np.abs(grad - slope).max():.0e}"
        compare(f"pl-partition N={n} threads={get_threads()}", contestants, repeat=3, notes=notes, peaks=peaks[n])


# The longest list for each loss (cost is quadratic for losses over all pairs, cubic for `pmop-exact`).
LONGEST = {
    "pl-partition": 1_000_000,
    "pl-topk": 1_000_000,
    "listmle": 1_000_000,
    "pl-lower-bound": 1_000_000,
    "attrank": 1_000_000,
    "pmop-fd": 1_000_000,
    "pmop-backward": 1_000_000,
    "pmop-gibbs": 1_000_000,
    "pmop-mh": 1_000_000,
    "pmop-exact": 300,
    "ranknet": 3_000,
    "rao-kupper": 3_000,
    "davidson": 3_000,
    "ranksvm": 1_000_000,
    "rank-regress": 1_000_000,
    "bregman-ce": 1_000_000,
    "bregman-square": 1_000_000,
    "bregman-qnorm": 1_000_000,
    "cosine": 1_000_000,
    "structrank": 1_000,
}


def growth(quick: bool) -> None:
    """Cost from 100 to 1,000,000 rows, in lists of 100 and in one list; 10 tied rows in each of three top tiers."""
    from rich.console import Console

    rng = np.random.default_rng(1)
    sizes = (100, 1_000, 10_000) if quick else (100, 300, 1_000, 3_000, 10_000, 100_000, 1_000_000)
    Console().print(f"ns per row at rows = {', '.join(map(str, sizes))}; threads={get_threads()}")
    for name, longest in LONGEST.items():
        for shape in ("lists of 100", "one list"):
            line = []
            for n in sizes:
                size = 100 if shape == "lists of 100" else n
                if size > longest or (name == "pmop-exact" and n > 100_000):
                    continue
                grade = np.zeros(size)
                grade[:10], grade[10:20], grade[20:30] = 3, 2, 1
                lists = Lists(np.tile(grade, n // size), np.arange(0, n + 1, size))
                s = rng.normal(size=n)
                line.append(
                    f"{least_cpu(lambda s=s, lists=lists, name=name: LOSSES[name](s, lists), 3) / n * 1e9:9.1f}"
                )
            Console().print(f"{name:15} {shape:13} {' '.join(line)}")


def threads(quick: bool) -> None:
    """One thread against two on the same rows, in turn; the results are compared byte by byte."""
    rng = np.random.default_rng(4)
    n = 120_000 if quick else 1_200_000
    grade = np.sort(rng.integers(0, 5, (n // 120, 120)))[:, ::-1].astype(float).ravel()
    s, lists = rng.normal(size=n), Lists(np.ascontiguousarray(grade), np.arange(0, n + 1, 120))
    before = get_threads()

    def on(k: int, name: str) -> tuple[float, np.ndarray]:
        set_threads(k)
        return LOSSES[name](s, lists)

    for name in ("pl-partition", "pmop-fd", "ranknet"):
        run = {f"{k} threads": (lambda k=k, name=name: on(k, name)) for k in (2, 1)}
        (value, grad), (other, other_grad) = (go() for go in run.values())
        same = value == other and grad.tobytes() == other_grad.tobytes()
        compare(f"{name} rows={n} on 1 and 2 threads", run, repeat=25, notes=dict.fromkeys(run, f"same bytes: {same}"))
    set_threads(before)


def pmop(quick: bool) -> None:
    """PMOP-FD against one np.exp of the same rows (target: within 6 times, one thread); the exact form (target: 5 ms)."""
    rng = np.random.default_rng(2)
    n = 120_000 if quick else 1_200_000
    grade = np.sort(rng.integers(0, 5, (n // 120, 120)))[:, ::-1].astype(float).ravel()
    s, lists = rng.normal(size=n), Lists(np.ascontiguousarray(grade), np.arange(0, n + 1, 120))
    contestants = {"placet": lambda: LOSSES["pmop-fd"](s, lists), "np.exp": lambda: np.exp(s)}
    compare(f"pmop-fd rows={n} threads={get_threads()}", contestants, repeat=15)
    hundred = Lists(np.repeat([2.0, 1.0, 0.0], [30, 30, 40]), [0, 100])
    run = {name: (lambda name=name: LOSSES[name](s[:100], hundred)) for name in ("pmop-exact", "pmop-gibbs", "pmop-mh")}
    compare("pmop-exact rows=100", run, repeat=15)


def pairs(quick: bool) -> None:
    """One list of 100,000 rows (target: 0.2 s), and 2 million pairs in one list."""
    rng = np.random.default_rng(3)
    n = 10_000 if quick else 100_000
    for rows, names in ((n, ("ranksvm", "rank-regress")), (2_000, ("ranknet", "rao-kupper", "davidson"))):
        s, lists = rng.normal(size=rows), Lists(rng.integers(0, 5, rows), [0, rows])
        run = {name: (lambda name=name, s=s, lists=lists: LOSSES[name](s, lists)) for name in names}
        compare(f"{names[0]} rows={rows}", run, repeat=5)


# Other families: write ``def part(quick: bool) -> None`` here (or import it) and add it below.
PARTS = {
    "partition": partition,
    "growth": growth,
    "threads": threads,
    "pmop": pmop,
    "pairs": pairs,
}


if __name__ == "__main__":
    main(__doc__, PARTS)
