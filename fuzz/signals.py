"""Seconds from a signal to the end of every command, at several points of its work.

    python fuzz/signals.py [--quick] [name ...]

Each command is started on data that keep it busy, receives SIGINT or SIGTERM after a given number of CPU seconds, and is
timed (wall clock) until it has exited.  A command that ends before the signal is not counted.  The load of the machine is
also shown: how many wall-clock seconds one CPU second took just before the signal.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import placet

MOST = 2.0
"""Seconds within which a command must have exited."""
MOMENTS = {signal.SIGINT: (0.1, 2.5), signal.SIGTERM: (1.0,)}
"""CPU seconds after which each signal is sent: during imports, while reading, while computing."""


@dataclass(frozen=True)
class Case:
    """Arguments of a command, and the model file that it must leave behind once it has been training."""

    words: tuple[str, ...]
    model: str = ""
    env: tuple[tuple[str, str], ...] = ()
    due: float = 4.5  # CPU seconds after which training has a model to keep, and SIGTERM is sent


@dataclass(frozen=True)
class Found:
    """Result of a trial: seconds from the signal to the end, load of the machine, exit code, output, and whether the model was kept."""

    seconds: float
    busy: float
    code: int
    said: str
    kept: bool


def files(folder: Path, scale: float = 1.0) -> None:
    """Write the data of ``CASES``."""
    rng = np.random.default_rng(0)
    n = int(400_000 * scale)
    votes = rng.integers(0, 300, (n, 2))
    lines = (f"m{a},n{b},{'model_a' if a > b else 'tie'}" for a, b in votes.tolist())
    (folder / "votes.csv").write_text("model_a,model_b,winner\n" + "\n".join(lines) + "\n")
    orders = [" > ".join(f"i{k}" for k in rng.permutation(130)) for _ in range(9)]
    (folder / "cyclic.txt").write_text("\n".join(orders) + "\n")
    orders = [" > ".join(f"i{k}" for k in rng.permutation(30)[:12]) for _ in range(int(20_000 * scale))]
    (folder / "ballots.txt").write_text("\n".join(orders) + "\n")
    rows = placet.simulate.queries(int(1500 * scale), 20, 50, noise=0.5, random_state=1)
    placet.io.write(rows, folder / "rows.letor")
    placet.io.write(rows[:60], folder / "few.letor")
    placet.rank.LinearRanker(max_iter=3).fit(rows[:40]).save(folder / "a.model")
    run = "".join(
        f"q{q} Q0 d{d} {d + 1} {1000 - d} s\n" for q in range(int(1000 * scale)) for d in rng.permutation(200).tolist()
    )
    (folder / "system.run").write_text(run)
    (folder / "judged.qrels").write_text(
        "".join(f"q{q} 0 d{d} {d % 3}\n" for q in range(int(1000 * scale)) for d in range(0, 200, 5))
    )
    words = ["simulate", "ranked-signals", "--out", str(folder / "signals"), "--steps", "300"]
    subprocess.run([*COMMAND, *words], check=True, capture_output=True)


COMMAND = (sys.executable, "-m", "placet")
CASES = {
    "describe": Case(("describe", "votes.csv")),
    "convert": Case(("convert", "votes.csv", "out.jsonl")),
    "aggregate, a model": Case(("aggregate", "ballots.txt", "-m", "mpm", "--out", "board.json")),
    "aggregate, a bootstrap": Case(("aggregate", "votes.csv", "--out", "board.json", "--bootstrap", "100000")),
    "aggregate, HiGHS": Case(("aggregate", "cyclic.txt", "-m", "kemeny", "--out", "board.json")),
    "audit": Case(("audit", "cyclic.txt", "-m", "kemeny", "--out", "audit.json")),
    "evaluate": Case(("evaluate", "system.run", "judged.qrels", "-m", "ndcg@10,map,err,rbp", "--out", "metrics.csv")),
    "compare": Case(("compare", "system.run", "system.run", "judged.qrels", "--out", "compared.csv")),
    "score": Case(("score", "a.model", "rows.letor", "--out", "scores.txt")),
    "simulate": Case(("simulate", "plackett-luce", "--out", "drawn.txt", "--n", "3000000", "--items", "50")),
    "track": Case(("track", "signals/arrivals.csv", "--beacons", "signals/beacons.csv", "--start", "0,0", "--estimate", "--speed", "1")),
    "serve": Case(("serve", "ballots.txt", "--no-browser", "--port", "0", "--workspace", "studio")),
    "train, linear": Case(("train", "rows.letor", "--save", "m", "-p", "tol=0", "-p", "max_iter=1000000"), "m"),
    "train, LightGBM": Case(
        ("train", "rows.letor", "--save", "m", "--ranker", "trees", "-p", "n_trees=100000", "-p", "leaves=500"), "m"
    ),
    "train, XGBoost": Case(
        ("train", "rows.letor", "--save", "m", "--ranker", "trees", "-p", "n_trees=100000", "-p", "leaves=500", "-p", "backend=xgboost"), "m"
    ),
    "train, PyTorch": Case(("train", "few.letor", "--save", "m", "--ranker", "neural", "-p", "epochs=100000"), "m", due=10.0),
    "train, kernels": Case(("train", "few.letor", "--save", "m", "--ranker", "structrank", "-p", "epochs=100000"), "m"),
    "train, threads": Case(
        ("train", "rows.letor", "--save", "m", "--ranker", "booster", "-p", "n_rounds=100000"), "m", (("PLACET_THREADS", "4"),)
    ),
    "demo": Case(("demo", "--out", "demo")),
}  # fmt: skip


def cpu_of(process: subprocess.Popen) -> float:
    """Seconds of CPU that a process has used."""
    return time.clock_gettime((~process.pid << 3) | 2)  # Linux: the CPU clock of the process


def idle(marks: list[tuple[float, float]]) -> bool:
    """Whether a process is waiting: it has used next to no CPU for three seconds."""
    now, used = marks[-1]
    before = [cpu for moment, cpu in marks if moment <= now - 3.0]
    return bool(before) and used - before[-1] < 0.05


def one(case: Case, folder: Path, number: int, moment: float) -> Found | None:
    """Run a command and send it a signal after ``moment`` seconds of CPU; None if it had ended by then."""
    for left in ("m", "board.json"):
        (folder / left).unlink(missing_ok=True)
    env = {**os.environ, **dict(case.env)}
    with subprocess.Popen(
        [*COMMAND, *case.words], cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        marks = [(time.monotonic(), 0.0)]
        while process.poll() is None and marks[-1][1] < moment and not idle(marks):
            time.sleep(0.01)
            if process.poll() is None:
                marks.append((time.monotonic(), cpu_of(process)))
        if process.poll() is not None:
            return None
        since = next(mark for mark in marks if mark[1] >= marks[-1][1] - 1.0)
        busy = (marks[-1][0] - since[0]) / max(marks[-1][1] - since[1], 1e-3)
        start = time.monotonic()
        process.send_signal(number)
        process.wait()
        seconds = time.monotonic() - start
        said = process.stderr.read()
    kept = bool(case.model) and (folder / case.model).exists() and bool(placet.load(folder / case.model))
    half = [file.name for file in folder.iterdir() if re.fullmatch(r"\.placet-.*\.part", file.name)]
    return Found(seconds, busy, process.returncode, said + "".join(f"left {name}" for name in half), kept)


def every(
    quick: bool = False,
    only: tuple[str, ...] = (),
    keep: Path | None = None,
    tell: Callable[[str], None] = lambda _: None,
):
    """Rows (command, signals sent, maximum seconds, load at that time, models kept of those due) and failures.

    Commands without failures are added to the file ``keep`` and not tried again.
    """
    kept = dict(map(json.loads, keep.read_text().splitlines())) if keep and keep.exists() else {}
    rows, failures = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if set(only or CASES) - set(kept):
            files(folder, 0.1 if quick else 1.0)
        for what, case in CASES.items():
            if only and what not in only:
                continue
            row, bad = (kept[what], []) if what in kept else of_command(what, case, folder, tell)
            rows += [row] if row else []
            failures += bad
            if keep and row and not bad and what not in kept:
                with open(keep, "a") as file:
                    file.write(json.dumps([what, row]) + "\n")
    return rows, failures


def of_command(what: str, case: Case, folder: Path, tell: Callable[[str], None]) -> tuple[list, list[str]]:
    """The row of a command, empty if it ended before the first signal, and its failures."""
    found, failures = [], []
    for number, moments in MOMENTS.items():
        for moment in (*moments, *([case.due] if number == signal.SIGTERM else [])):
            result = one(case, folder, number, moment)
            tell(f"{what}, {number.name} at {moment} s: {result}")
            if result is None:
                break
            found.append((moment, result))
            failures += [f"{what}, {number.name} at {moment} s of CPU: {why}" for why in wrong(result)]
    if not found:
        return [], [f"{what}: ended by itself before the first signal"]
    worst = max((result for _, result in found), key=lambda result: result.seconds)
    due = [result for moment, result in found if case.model and moment >= case.due]
    kept = f"{sum(result.kept for result in due)} of {len(due)}" if due else "-"
    failures += [f"{what}: no model was kept: {result}" for result in due if not result.kept]
    return [what, len(found), f"{worst.seconds:.2f}", f"{worst.busy:.1f}", kept], failures


def wrong(found: Found) -> list[str]:
    """Reasons why a trial failed; the time limit is longer if the command gets less than half a core."""
    why = []
    if found.seconds > MOST * max(1.0, found.busy / 2):
        why.append(f"{found.seconds:.1f} s (a CPU second took {found.busy:.1f} s)")
    if "Traceback" in found.said or "left " in found.said:
        why.append(found.said[-300:])
    return why


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    rows, failures = every(given.quick, tuple(given.names), tell=lambda words: print(words, flush=True))
    for row in rows:
        print(*row, sep="\t")
    print(*failures, sep="\n", file=sys.stderr)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
