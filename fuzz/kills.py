"""SIGKILL where it hurts: a training, the writing of a checkpoint, the scheduler of a Dask cluster.

    python fuzz/kills.py [--quick]

Nothing can be done about SIGKILL but to leave no half file: under the name that was asked for there is what was there
before, or all of what is new.  Without a scheduler a fit ends in an error in words, with a checkpoint to go on from.
"""

import contextlib
import itertools
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import placet
from placet import io, simulate
from placet.cli import app
from placet.data.engines.serial import EngineError, Serial

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


def each_step(what: str) -> tuple[list, list[str]]:
    """Kill at every change of a file, and in the middle of writing it: exact moments, which no clock would meet."""
    alone = {"PLACET_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as name:
        command = [sys.executable, __file__, "--each-step", what]
        done = subprocess.run(
            command, cwd=name, env={**os.environ, **alone}, capture_output=True, text=True, timeout=600
        )
    said = json.loads(done.stdout) if done.returncode == 0 else {"killed": [], "wrong": [done.stderr[-300:]]}
    tried, wrong = len(said["killed"]), [f"{what}: {one}" for one in said["wrong"]]
    return [STEPS[what].words, tried, tried - len(wrong), "the one of before, or a whole new one"], wrong


@dataclass(frozen=True)
class Step:
    """``first`` and ``next`` write a file, the same one; ``read`` reads it, or raises an error."""

    words: str
    file: str
    first: Callable[[], object]
    next: Callable[[], object]
    read: Callable[[], object]


def train(loss: str) -> None:
    """`placet train`, without a process of its own."""
    if not Path("x.letor").exists():
        io.write(simulate.queries(20, 6, 3, random_state=0), "x.letor")
    app(["train", "x.letor", "--loss", loss, "--out", "model.placet"], standalone_mode=False)


class Lost(Serial):
    """An engine that is lost after some passes over the data."""

    def __init__(self, passes: int) -> None:
        self.left = passes

    def sum(self, *args: Any, **more: Any) -> tuple[Any, int]:
        self.left -= 1
        if self.left < 0:
            raise EngineError("all workers are lost")
        return super().sum(*args, **more)


def lose(passes: int) -> None:
    """A fit of a scanned file whose engine is lost, so that it writes a checkpoint."""
    with contextlib.suppress(EngineError):
        placet.consensus(scanned().on(Lost(passes)), "plackett-luce")


def scanned() -> placet.data.Parts:
    """Ballots in a file that is scanned."""
    if not Path("ballots.txt").exists():
        io.write(simulate.plackett_luce(np.linspace(1, -1, 12), 60, random_state=0), "ballots.txt")
    return placet.scan("ballots.txt")


STEPS = {
    "train": Step(
        "`placet train`, at every step of writing over an earlier model",
        "model.placet",
        lambda: train("ranknet"),
        lambda: train("listnet"),
        lambda: placet.load("model.placet").fit(io.read("x.letor")),
    ),
    "scan": Step(
        "a fit of `scan`, at every step of writing over an earlier checkpoint",
        "placet-checkpoint.json",
        lambda: lose(5),
        lambda: lose(6),
        lambda: placet.consensus(scanned(), "plackett-luce", start="placet-checkpoint.json"),
    ),
}


def at_each_step(step: Step) -> dict[str, list[str]]:
    """The moments of the kills, and what was wrong after any of them; in a process of one thread, which forks."""
    left: dict[str, bytes] = {}
    wrong: list[str] = []
    assert in_child(step.first) == 0
    step.read()  # what is imported and compiled here is there in each child
    file = Path(step.file)
    before = file.read_bytes()
    sizes = [(f"{n} bytes written", partial(die_in_writing, n)) for n in (0, 40, len(before) // 2)]
    changes = ((f"before change {n}", partial(die_before_change, n)) for n in itertools.count())
    for moment, prepare in itertools.chain(sizes, changes):
        code = in_child(step.next, prepare)
        if code == 0:
            break
        if code not in (-signal.SIGKILL, -signal.SIGXFSZ):
            wrong.append(f"{moment}: exit code {code}")
        left[moment] = file.read_bytes()
        step.read()
    step.read()
    whole = file.read_bytes()
    wrong += [f"{moment}: a third {file}" for moment, found in left.items() if found not in (before, whole)]
    if len({before, whole}) < 2 or before not in left.values():
        wrong.append(f"{file}: nothing was killed before it was new")
    return {"killed": list(left), "wrong": wrong}


def in_child(work: Callable[[], object], prepare: Callable[[], None] = lambda: None) -> int:
    """The exit code of work in a child; minus the signal that ended it."""
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        prepare()
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def die_in_writing(n: int) -> None:
    """From now on, the process is ended when it writes more than n bytes into a file."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (n, n))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)


def die_before_change(n: int) -> None:
    """From now on, the process is killed before it opens, renames or removes a file here for the n-th time."""
    left = [n]

    def see(event: str, args: tuple[Any, ...]) -> None:
        opened = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)
        if (opened or event in ("os.rename", "os.remove", "os.truncate")) and is_here(args[0]):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(see)


def is_here(path: object) -> bool:
    """Whether a path that is opened or renamed is in the current folder."""
    return isinstance(path, str | bytes) and Path(os.path.abspath(os.fsdecode(path))).parent == Path.cwd()


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
        with Client(scheduler_file=str(file), timeout=6) as client:  # also how long a lost scheduler is looked for
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
    if checkpoint not in str(error):
        return f"the checkpoint is not named: {error}"
    again, whole = (
        placet.consensus(ballots, "plackett-luce", start=checkpoint),
        placet.consensus(ballots, "plackett-luce"),
    )
    return "" if np.abs(again.scores - whole.scores).max() < 1e-6 else "other scores from the checkpoint"


def every(quick: bool) -> tuple[list[list], list[str]]:
    """Rows of a table (what was killed, tried, survived, what is left) and failures."""
    rows, failures = [], []
    for part in (training, lambda _: each_step("train"), checkpoints, lambda _: each_step("scan"), scheduler):
        row, wrong = part(quick)
        rows.append(row)
        failures += wrong
    return rows, failures


if __name__ == "__main__":
    if sys.argv[1:2] == ["--lose-scheduler"]:
        lose_scheduler(int(sys.argv[2]))
    if sys.argv[1:2] == ["--each-step"]:
        print(json.dumps(at_each_step(STEPS[sys.argv[2]])), flush=True)
        os._exit(0)
    found, bad = every("--quick" in sys.argv)
    print(*found, *bad, sep="\n")
    sys.exit(1 if bad else 0)
