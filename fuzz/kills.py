"""SIGKILL where it hurts: a training, the writing of a checkpoint, the scheduler of a Dask cluster.

    python fuzz/kills.py [--quick]

Nothing can be done about SIGKILL but to leave no half file: under the name that was asked for there is what was there
before, or all of what is new.  Without a scheduler a fit ends in an error in words, with a checkpoint to go on from.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import placet
from placet import io, simulate

PLACET = [sys.executable, "-c", "from placet.cli import main; main()"]


def killed_at(command: list[str], folder: Path, seconds: float) -> bool:
    """Run a command and kill it when it has used so many seconds of CPU; whether it was still running then."""
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ticks = os.sysconf("SC_CLK_TCK")
    while process.poll() is None:
        try:
            used = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            break
        if (int(used[11]) + int(used[12])) / ticks >= seconds:
            process.send_signal(signal.SIGKILL)
            process.wait()
            return True
        time.sleep(0.01)
    process.wait()
    return False


def training(quick: bool) -> tuple[list, list[str]]:
    """Kill trainings that write over an earlier model: afterwards there is the old one, or a whole new one."""
    tried, wrong = 0, []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        io.write(simulate.queries(300, 30, 20, random_state=0), folder / "x.letor")
        first = ["train", "x.letor", "--ranker", "linear", "--out", "model.placet"]
        subprocess.run([*PLACET, *first], cwd=folder, check=True, capture_output=True)
        for ranker in ("linear", "trees", "coordinate"):
            for seconds in (1.5,) if quick else (0.8, 1.5, 2.0, 2.5, 3.0, 4.0):
                command = [*PLACET, "train", "x.letor", "--ranker", ranker, "--out", "model.placet"]
                tried += killed_at(command, folder, seconds)
                try:
                    placet.load(folder / "model.placet")
                except (OSError, ValueError) as error:
                    wrong.append(f"train {ranker} killed after {seconds} s: {error}")
        left = [file.name for file in folder.iterdir() if file.name not in ("x.letor", "model.placet")]
    note = "the model of before, or a whole new one" + (f"; left behind: {', '.join(left)}" if left else "")
    return ["`placet train` over an earlier model", tried, tried - len(wrong), note], wrong


CHECKPOINTS = """
import itertools
from placet.data.engines.checkpoints import write_checkpoint
from placet.data.engines.serial import EngineError
for k in itertools.count():
    write_checkpoint(EngineError("lost"), "scores", {"scores": [[f"item {i}", float(k)] for i in range(20000)]})
"""


def checkpoints(quick: bool) -> tuple[list, list[str]]:
    """Kill a process that writes one checkpoint after another: what is there can be read, and is of one moment."""
    tried, wrong = 0, []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for k in range(3 if quick else 25):
            tried += killed_at([sys.executable, "-c", CHECKPOINTS], folder, 1.0 + 0.037 * k)
            file = folder / "placet-checkpoint.json"
            if file.exists():
                try:
                    values = {score for _, score in json.loads(file.read_text())["scores"]}
                except ValueError as error:
                    wrong.append(f"checkpoint {k}: {error}")
                    continue
                if len(values) != 1:
                    wrong.append(f"checkpoint {k}: of {len(values)} moments")
    return [
        "a checkpoint that is being written",
        tried,
        tried - len(wrong),
        "the one of before, or a whole new one",
    ], wrong


def scheduler(quick: bool) -> tuple[list, list[str]]:
    """Kill the scheduler of a cluster in the middle of a fit: an error in words, and scores to start again from."""
    tried, wrong = 0, []
    for k in range(1 if quick else 3):
        with tempfile.TemporaryDirectory() as name:
            done = subprocess.run(
                [sys.executable, __file__, "--lose-scheduler", str(k)],
                cwd=name,
                capture_output=True,
                text=True,
                timeout=600,
            )
            tried += 1
            if done.returncode:
                wrong.append(f"scheduler {k}: {done.stdout[-200:]}{done.stderr[-300:]}")
    return [
        "the scheduler of a Dask cluster, in the middle of a fit",
        tried,
        tried - len(wrong),
        "an `EngineError` with a checkpoint, from which the fit goes on",
    ], wrong


def lose_scheduler(after: int) -> None:
    """In a process of its own: a fit whose scheduler is killed after its first passes; exit code 1 if it is not said well."""
    from distributed import Client

    from placet.data import Parts
    from placet.data.engines.serial import EngineError

    here = {**os.environ, "OMP_NUM_THREADS": "1"}
    file = Path("scheduler.json").absolute()
    cluster = [
        subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{what}", "--scheduler-file", str(file), *more],
            env=here, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        for what, more in (("scheduler", ["--port", "0", "--dashboard-address", ":0"]), ("worker", ["--no-nanny", "--no-dashboard"]))
    ]  # fmt: skip
    said = "it did not begin"
    ballots = simulate.plackett_luce(np.linspace(1, -1, 12), 400, random_state=0)
    try:
        while not file.exists():  # a client that waits for it waits as long for a lost scheduler
            time.sleep(0.1)
        with Client(scheduler_file=str(file), timeout=15) as client:
            client.wait_for_workers(1, timeout=120)
            parts = Parts.of([ballots[np.arange(k, 400, 4)] for k in range(4)])
            passes = [0]

            def watch(done: object) -> None:
                passes[0] += 1
                if passes[0] == 6 + 2 * after:
                    cluster[0].kill()

            parts.log.watch = watch
            try:
                placet.consensus(parts, "plackett-luce", engine=client)
                said = "the fit ended before the scheduler was killed"
            except EngineError as error:
                said = not_said_well(error, ballots)
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
    finally:
        print(said, flush=True)
        for process in cluster:
            process.kill()
        os._exit(int(said != ""))


def not_said_well(error: Exception, ballots: placet.Rankings) -> str:
    """What is wrong with the error of a lost scheduler; empty if nothing is."""
    checkpoint = getattr(error, "checkpoint", None)
    if checkpoint is None:
        return f"no checkpoint: {error}"
    again, whole = (
        placet.consensus(ballots, "plackett-luce", start=checkpoint),
        placet.consensus(ballots, "plackett-luce"),
    )
    return "" if np.abs(again.scores - whole.scores).max() < 1e-6 else "other scores from the checkpoint"


def every(quick: bool) -> tuple[list[list], list[str]]:
    """Rows of a table (what was killed, tried, survived, what is left) and failures."""
    rows, failures = [], []
    for part in (training, checkpoints, scheduler):
        row, wrong = part(quick)
        rows.append(row)
        failures += wrong
    return rows, failures


if __name__ == "__main__":
    if sys.argv[1:2] == ["--lose-scheduler"]:
        lose_scheduler(int(sys.argv[2]))
    found, bad = every("--quick" in sys.argv)
    print(*found, *bad, sep="\n")
    sys.exit(1 if bad else 0)
