"""Figure 2: time and memory of one loss with its gradient against the number of items N, a batch of 20 rankings.

Each ranking has tiers of 100, 150, 250 and N - 500 items; scores are uniform on (0, log N) as in the simulation.  Beside our losses,
on the same scores in the same run and on one thread: PL-Partition as published (10,000 equal intervals, single precision, automatic
differentiation: `published` of benchmarks/bench_losses.py) and the paper's baselines written in PyTorch the same way, pairs as a matrix.
The paper gives the time of 1,000 steps on a GPU, and its peak memory; here a thousand times the CPU time of one, on one core, and the
growth of resident memory in a process of its own, with memory that is freed given back at once, so that nothing is hidden in a pool.

`--quick`: two sizes, one repeat, 1,000 intervals.

What came out (the least of five, on a machine that was busy with other work, so up to a half too much in places; seconds for 1,000 steps, MB of one):

                        N = 1,000    10,000   100,000     MB at 100,000
    PL-Partition              2.3       3.5        13                15
    as published            2,200     2,300     2,200             1,170
    PL-LB                     0.2       1.3        12                15
    AttRank                   0.2       2.6        17                16
    RankNet                    15       225     2,300                27
    RankSVM                   2.7        30       380                21
    PyTorch: PL-LB            0.7       4.4        44                38
    PyTorch: AttRank          0.3       1.1         9                31
    PyTorch: RankNet           50     1,500  left out    731 at 10,000
    PyTorch: RankSVM           37     1,200  left out    731 at 10,000

The gradient of the published method is off by 1e-4, ours by 5e-15 (1e-7 at tol=1e-4), for 170 to 940 times less time and 77 to over
1,000 times less memory.  The overhead of PL-Partition is amortised as the paper says, 14 times PL-LB at N = 1,000 and 1.05 times at 100,000; the published
method on one core, unlike on the paper's GPU, is still 49 times PL-LB in PyTorch there.  Pairwise losses grow faster in PyTorch (5 times as
much as PL-LB from N = 1,000 to 10,000); ours grow 1.9 (RankNet) and 1.4 times (RankSVM, which sorts) as much and need no matrix of pairs.
PL-LB takes longer than AttRank in PyTorch, 4.8 times; ours does not, 0.7 times.  Our AttRank is slower than the one in PyTorch, which is in single
precision and takes the target over the 500 rows above the lowest tier alone.  The paper's figure is a picture without numbers, so that
expected_figure2.csv has its sentences as bounds, set before the full run; the one on N = 100,000 binds our losses only, for the reason above.
"""

import ctypes
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.bench_losses import BATCH, TIED, batch_of_partitions, published
from benchmarks.harness import peak_memory
from experiments.common import check, check_first, expected, least_cpu, need, output_folder, parser, write
from experiments.formulas import off_formula
from placet.data import Lists
from placet.losses import LOSSES
from placet.threads import set_threads

SIZES, QUICK_SIZES = (1_000, 3_000, 10_000, 30_000, 100_000), (1_000, 3_000)
TORCH = ", PyTorch"
# All pairs of 100,000 items: the matrix has 4 GB in single precision, and it is needed several times; the paper's ran out of memory too.
LARGEST = {f"RankNet{TORCH}": 10_000, f"RankSVM{TORCH}": 10_000}

COARSE = 1.0  # MB; the kernel counts resident pages in batches, so that less cannot be told apart

Run = Callable[[], tuple[float, np.ndarray]]


def ours(s: np.ndarray, lists: Lists) -> dict[str, Run]:
    """Losses of the table; the oracle's order is that of figure1.py."""
    n, grade = len(s) // BATCH, np.asarray(lists.grade)
    places = np.tile(np.maximum(sum(TIED) - np.arange(n), 0.0), BATCH)
    given: dict[str, tuple[str, np.ndarray, dict[str, float]]] = {
        "PL-Partition": ("pl-partition", grade, {}),
        "PL-Partition, tol=1e-4": ("pl-partition", grade, {"tol": 1e-4}),
        "PL-LB": ("pl-lower-bound", grade, {}),
        "AttRank": ("attrank", grade, {}),
        "RankNet": ("ranknet", grade, {}),
        "RankSVM": ("ranksvm", grade, {}),
        "PL-TopK": ("pl-topk", places, {}),
    }
    return {
        who: partial(LOSSES[loss], s, Lists(g, lists.offsets), **params) for who, (loss, g, params) in given.items()
    }


def in_torch(s: np.ndarray, n: int, intervals: int) -> dict[str, Run]:
    """The published method, and the baselines as one writes them in PyTorch, single precision."""

    def of(loss) -> Run:
        def run() -> tuple[float, np.ndarray]:
            import torch

            w = torch.tensor(s.reshape(BATCH, n), dtype=torch.float32, requires_grad=True)
            value = loss(torch, w)
            value.backward()
            return float(value.detach()), w.grad.numpy().ravel()

        return run

    return {
        f"PL-Partition{TORCH} (published)": lambda: published(s, n, intervals),
        f"PL-LB{TORCH}": of(lower_bound),
        f"AttRank{TORCH}": of(attrank),
        f"RankNet{TORCH}": of(lambda torch, w: pairs(w, lambda d: torch.nn.functional.softplus(-d))),
        f"RankSVM{TORCH}": of(lambda torch, w: pairs(w, lambda d: torch.relu(1 - d))),
    }


def tiers() -> list[tuple[int, int]]:
    ends = np.cumsum(TIED)
    return list(zip((ends - TIED).tolist(), ends.tolist()))


def lower_bound(torch, w):
    """Without the constant log n_m!."""
    return sum((b - a) * torch.logsumexp(w[:, a:], dim=1).sum() - w[:, a:b].sum() for a, b in tiers())


def attrank(torch, w):
    weight = torch.cat([torch.full((b - a,), 3.0 - k) for k, (a, b) in enumerate(tiers())])
    log_p = torch.log_softmax(w, dim=1)[:, : sum(TIED)]
    return -(torch.softmax(weight, dim=0) * log_p).sum()


def pairs(w, of_difference):
    return sum(of_difference(w[:, a:b, None] - w[:, None, b:]).sum() for a, b in tiers())


def contestants(n: int, intervals: int) -> dict[str, Run]:
    s, lists = batch_of_partitions(n)
    return {who: run for who, run in (ours(s, lists) | in_torch(s, n, intervals)).items() if n <= LARGEST.get(who, n)}


def nothing_kept(run: Run) -> Run:
    """The same, with glibc told to give back every freed block of 64 kB or more: its pools would hide what a second call needs."""

    def alone() -> tuple[float, np.ndarray]:
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(-3, 65_536)  # M_MMAP_THRESHOLD
            mallopt(-1, 65_536)  # M_TRIM_THRESHOLD
        return run()

    return alone


def errors(n: int, runs: dict[str, Run]) -> dict[str, float]:
    """How far values and gradients of PL-Partition are from those at the least tolerance, printed too."""
    exact, slope = LOSSES["pl-partition"](*batch_of_partitions(n), tol=1e-14)
    found = {}
    for who, run in runs.items():
        if who.startswith("PL-Partition"):
            value, grad = run()
            off = abs(value / exact - 1), np.abs(grad - slope).max()
            print(f"N={n:,} {who}: error {off[0]:.0e}, of the gradient {off[1]:.0e}")
            found |= {f"{who}, error of the value": float(off[0]), f"{who}, error of the gradient": float(off[1])}
    return found


def identity(n: int, intervals: int) -> dict[str, float]:
    """What is timed computes the losses: each by its formula, and ours beside the published one on the batch."""
    pairs = {"PL-Partition": "pl-partition", "PL-LB": "pl-lower-bound", "AttRank": "attrank", "RankNet": "ranknet"}
    found = {f"{who}, off its formula": off_formula(loss) for who, loss in (pairs | {"RankSVM": "ranksvm"}).items()}
    return {f"simulated, {name}": value for name, value in (found | errors(n, contestants(n, intervals))).items()}


def measure(sizes: tuple[int, ...], repeat: int, intervals: int) -> dict[tuple[str, int], tuple[float, float]]:
    """(method, N): CPU seconds, the least of ``repeat``, and MB of one loss with gradient."""
    peaks = {}
    for n in sizes:
        for who, run in contestants(n, intervals).items():
            peaks[who, n] = peak_memory(nothing_kept(run)) / 2**20
            print(f"N={n:,} {who}: {peaks[who, n]:.1f} MB", file=sys.stderr, flush=True)
    found = {}
    for n in sizes:
        runs = contestants(n, intervals)
        for who, run in runs.items():
            found[who, n] = least_cpu(run, repeat), peaks[who, n]
            print(f"N={n:,} {who}: {found[who, n][0]:.4g} s", file=sys.stderr, flush=True)
    return found


def cell(x: float | None, k: int) -> str:
    return "-" if x is None else "< 1" if k and x < COARSE else f"{x:,.1f}"


def table(found: dict[tuple[str, int], tuple[float, float]], sizes: tuple[int, ...]) -> None:
    who_all = list(dict.fromkeys(who for who, _ in found))
    for k, title in enumerate(("seconds for 1,000 steps on one core", "MB of one step (- : left out)")):
        print(f"{title}\n{'':36}" + "".join(f"{f'N={n:,}':>13}" for n in sizes))
        for who in who_all:
            cells = [found[who, n][k] * (1e3, 1.0)[k] if (who, n) in found else None for n in sizes]
            print(f"{who:36}" + "".join(f"{cell(x, k):>13}" for x in cells))


def claims(found: dict[tuple[str, int], tuple[float, float]], sizes: tuple[int, ...]) -> dict[str, float]:
    """The sentences of section 4.1 as ratios; time first, memory second in `found`."""
    small, middle, large = sizes[0], sizes[len(sizes) // 2], sizes[-1]

    def ratio(a: str, b: str, n: int, k: int = 0) -> float:
        return max(found[a, n][k], COARSE * k) / max(found[b, n][k], COARSE * k)

    said = {}
    for kind in ("", TORCH):
        mine = "PL-Partition" if not kind else f"PL-Partition{TORCH} (published)"
        bound, flat = f"PL-LB{kind}", f"AttRank{kind}"
        for n in (small, middle, large):
            said[f"time, {mine} over {bound}, N={n}"] = ratio(mine, bound, n)
        fall = ratio(mine, bound, small) / ratio(mine, bound, large)
        said[f"time, fall of {mine} over {bound} from N={small} to {large}"] = fall
        said[f"time, {bound} over {flat}, N={large}"] = ratio(bound, flat, large)
        said[f"memory, {bound} over {flat}, N={large}"] = ratio(bound, flat, large, 1)
        for pairwise in (f"RankNet{kind}", f"RankSVM{kind}"):
            for k, what in enumerate(("time", "memory")):
                growth = ratio(pairwise, bound, middle, k) / ratio(pairwise, bound, small, k)
                said[f"{what}, growth from N={small} to {middle}, {pairwise} over {bound}"] = growth
    theirs = f"PL-Partition{TORCH} (published)"
    for n in (small, middle, large):
        said[f"time, published over ours, N={n}"] = ratio(theirs, "PL-Partition", n)
        said[f"memory, published over ours, N={n}"] = ratio(theirs, "PL-Partition", n, 1)
    return said


def plot(found: dict[tuple[str, int], tuple[float, float]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 5), layout="constrained")
    looks = dict(zip(("PL-Partition", "PL-LB", "AttRank", "RankNet", "RankSVM", "PL-TopK"), enumerate("os^vDx")))
    for k, axes in enumerate(figure.subplots(1, 2)):
        for who in dict.fromkeys(who for who, _ in found):
            if who.endswith("tol=1e-4"):
                continue
            ns = sorted(n for name, n in found if name == who)
            values = [max(found[who, n][k] * (1e3, 1.0)[k], COARSE * k) for n in ns]
            colour, marker = looks[who.split(",")[0]]
            style = {"linestyle": "--", "markerfacecolor": "none"} if TORCH in who else {}
            axes.plot(ns, values, color=f"C{colour}", marker=marker, label=who, **style)
        axes.set(xscale="log", yscale="log", xlabel="items N")
    figure.axes[0].set_ylabel("seconds for 1,000 steps, one core")
    figure.axes[1].set_ylabel("MB of one step, at least 1")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), fontsize=8, loc="outside right upper")
    figure.savefig(path, dpi=120)


def main() -> None:
    args = parser(__doc__, draws=False).parse_args()
    need("torch")
    import torch

    torch.set_num_threads(1)  # before any use: forks would wait for ever for threads of this process
    set_threads(1)
    path = expected(__file__, "quick" if args.quick else "")
    sizes = QUICK_SIZES if args.quick else SIZES
    named = identity(sizes[0], 1_000 if args.quick else 10_000)
    check_first(named, path)
    found = measure(sizes, *((1, 1_000) if args.quick else (5, 10_000)))
    table(found, sizes)
    plot(found, output_folder(path) / "figure2.png")
    rows = [[who, n, seconds, mb] for (who, n), (seconds, mb) in found.items()]
    write(output_folder(path) / "table.csv", ["method", "N", "cpu seconds of a step", "MB of a step"], rows)
    check(named | {f"simulated, {words}": value for words, value in claims(found, sizes).items()}, path)


if __name__ == "__main__":
    main()
