"""Contestants side by side: interleaved in one process, medians, ratios, peak memory each in a separate process.

    python -m benchmarks.bench_losses [part ...] [--quick] [--threads 1]      # from the project's root

    def partition(quick): ...
        contestants = {"placet": fn, "published": fn}
        peaks = {who: peak_memory(run) for who, run in contestants.items()}      # first, while there are no threads
        compare("pl-partition N=1000", contestants, repeat=5, peaks=peaks)

    main(__doc__, {"partition": partition})

The first name is ours; a ratio is the other's time over ours.  Results go to benchmarks/results/<name>.json.
"""

import argparse
import json
import multiprocessing
import os
import re
import resource
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from placet.threads import get_threads, set_threads

RESULTS = Path(__file__).parent / "results"


def main(about: str | None, parts: Mapping[str, Callable[[bool], None]], threads: int | None = None) -> None:
    """Run the named parts, or all if none are named; each is passed whether small sizes are enough.

    ``threads`` is the number of threads of Placet unless ``--threads`` is given (None: the default); a part calls
    `get_threads` to give its peers the same number.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"any of {', '.join(parts)}; all unless given")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--threads", type=int, default=threads or get_threads())
    given = parser.parse_args()
    unknown = [part for part in given.parts if part not in parts]
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}; choose from {', '.join(parts)}")
    set_threads(given.threads)
    for part in given.parts or parts:
        parts[part](given.quick)


def compare(
    name: str,
    contestants: Mapping[str, Callable[[], object]],
    *,
    repeat: int = 5,
    notes: Mapping[str, str] | None = None,
    peaks: Mapping[str, int] | None = None,
) -> dict[str, dict[str, float]]:
    """Time every contestant ``repeat`` times in turn after a warm-up call; print and write the medians.

    ``cpu`` is the total time of all threads of this process, which is more reliable on a busy machine.
    ``peaks`` is bytes of peak memory per contestant, from `peak_memory`.
    ``notes`` is a note per contestant for the last column, such as its error.
    """
    for run in contestants.values():
        run()
    seconds: dict[str, list[float]] = {who: [] for who in contestants}
    cpu: dict[str, list[float]] = {who: [] for who in contestants}
    for _ in range(repeat):
        for who, run in contestants.items():
            start, start_cpu = time.perf_counter(), time.process_time()
            run()
            seconds[who].append(time.perf_counter() - start)
            cpu[who].append(time.process_time() - start_cpu)
    rows = {
        who: {"seconds": statistics.median(times), "fastest": min(times), "cpu": statistics.median(cpu[who])}
        | ({"peak_mb": peaks[who] / 2**20} if peaks else {})
        for who, times in seconds.items()
    }
    _show(name, rows, notes or {})
    save_rows(name, rows, notes or {})
    return rows


def save_rows(name: str, rows: Mapping[str, Mapping[str, float]], notes: Mapping[str, str]) -> None:
    """Write the rows of a table to benchmarks/results."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{re.sub(r'[^A-Za-z0-9.-]+', '-', name).strip('-')}.json"
    path.write_text(
        json.dumps({"name": name, "cores": os.cpu_count(), "rows": rows, "notes": dict(notes)}, indent=1) + "\n"
    )


class Cost(NamedTuple):
    """CPU seconds of all threads, and bytes by which the peak resident memory rose."""

    cpu: float
    peak: int


def peak_memory(run: Callable[[], object], patience: float = 600.0, warm_up: Callable[[], object] | None = None) -> int:
    """Bytes by which ``run`` raises the peak resident memory; see `cost_in_child`."""
    return cost_in_child(run, patience, warm_up).peak


def cost_in_child(
    run: Callable[[], object], patience: float = 600.0, warm_up: Callable[[], object] | None = None
) -> Cost:
    """CPU seconds and memory of ``run``, measured in a forked child.

    ``warm_up`` (``run`` itself by default) runs first, for imports and compilation; give a small one if ``run`` leaves
    freed memory behind that a second call would reuse.

    Call it before this process has run anything on several threads: a fork does not copy threads, and pools would then wait forever.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_send_cost, args=(run, warm_up or run, sender))
    child.start()
    sender.close()
    if not receiver.poll(patience):
        child.kill()
        raise RuntimeError(f"no answer from the child in {patience:.0f} s; were threads started before the fork?")
    try:
        return receiver.recv()
    finally:
        child.join()


def _send_cost(run: Callable[[], object], warm_up: Callable[[], object], sender) -> None:
    warm_up()
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak to the current resident memory
    before, start = _high_water(), time.process_time()
    run()
    sender.send(Cost(time.process_time() - start, max(_high_water() - before, 0)))


def _high_water() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _show(name: str, rows: Mapping[str, Mapping[str, float]], notes: Mapping[str, str]) -> None:
    ours = next(iter(rows.values()))
    table = Table(title=name, title_justify="left")
    for heading in ("", "median", "fastest", "ratio", "cpu", "ratio", "peak MB", "ratio", "note"):
        table.add_column(heading, justify="left" if heading in ("", "note") else "right")
    for who, row in rows.items():
        peak = row.get("peak_mb")
        table.add_row(
            who,
            _time(row["seconds"]),
            _time(row["fastest"]),
            f"{row['seconds'] / ours['seconds']:.2f}",
            _time(row["cpu"]),
            f"{row['cpu'] / max(ours['cpu'], 1e-9):.2f}",
            "" if peak is None else f"{peak:.1f}",
            "" if peak is None else f"{peak / max(ours['peak_mb'], 0.1):.1f}",
            notes.get(who, ""),
        )
    Console(width=max(Console().width, 130)).print(table)  # so that names are not truncated if the output is a file


def _time(seconds: float) -> str:
    return (
        f"{seconds:.2f} s"
        if seconds >= 1
        else f"{seconds * 1e3:.2f} ms"
        if seconds >= 1e-3
        else f"{seconds * 1e6:.1f} us"
    )
