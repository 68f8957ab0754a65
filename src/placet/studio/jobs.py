"""Background computations that can be started, watched and cancelled; each question is computed once."""

import asyncio
import contextlib
import json
import multiprocessing
import queue
import secrets
import sys
import threading
import time
import traceback
from collections import OrderedDict
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from placet.studio import worker
from placet.studio.security import CLOSING

LANES = {"boards": 300, "polls": 30}
"""Name -> number of items of the board that warms up its process: boards are large, polls are not."""

MOST_KEPT = 64
MOST_KEPT_BYTES = 256 << 20
MOST_WAITING = 32
FINAL = ("done", "failed", "cancelled")


class Busy(RuntimeError):
    """Too many computations are already waiting."""


@dataclass
class Job:
    """One computation: ``state`` is waiting, running, done, failed or cancelled; ``result`` is bytes."""

    id: str
    key: str
    task: str
    values: dict[str, Any]
    lane: str
    state: str = "waiting"
    progress: tuple[int, int] | None = None
    words: list[Any] = field(default_factory=list)
    result: bytes = b""
    error: str = ""
    started: float = 0.0
    seconds: float = 0.0
    changed: threading.Condition = field(default_factory=threading.Condition)
    waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = field(default_factory=list)

    def about(self) -> dict[str, Any]:
        """The status that a page shows while it waits."""
        return {
            "id": self.id,
            "state": self.state,
            "progress": self.progress,
            "words": self.words[-1000:],
            "error": self.error,
            "seconds": round(self.seconds, 3),
        }

    def wait(self, seconds: float) -> bool:
        """Wait for the job to end; return whether it did."""
        with self.changed:
            return self.changed.wait_for(lambda: self.state in FINAL, seconds)

    def _set(self, **values: Any) -> None:
        with self.changed:
            for name, value in values.items():
                setattr(self, name, value)
            self.changed.notify_all()
            if self.state in FINAL:
                for loop, ended in self.waiting:
                    with contextlib.suppress(RuntimeError):  # a loop that is closed has nobody who waits
                        loop.call_soon_threadsafe(ended.set)
                self.waiting.clear()

    async def ended(self, seconds: float) -> None:
        """Wait up to ``seconds`` for the job to end, without a thread."""
        mine = asyncio.get_running_loop(), asyncio.Event()
        with self.changed:
            if self.state in FINAL:
                return
            self.waiting.append(mine)
        try:
            async with asyncio.timeout(seconds):
                await mine[1].wait()
        except TimeoutError:
            return
        finally:
            with self.changed, contextlib.suppress(ValueError):
                self.waiting.remove(mine)


class Jobs:
    """Lanes of computations, each with its own process, so that a slow board does not delay a poll."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._by_key: dict[str, Job] = {}
        self._warm: set[str] = set()
        self._lock, self._closed = threading.Lock(), False
        self._lanes = {name: _Lane(name) for name in LANES}

    def start(
        self, task: str, values: dict[str, Any], *, lane: str = "boards", of: str = "", fresh: bool = False
    ) -> Job:
        """Start a computation, or return the one running or done with the same values and data unless ``fresh``.

        ``of`` is the stamp of the files that the values name.
        """
        key = json.dumps([task, values, of], sort_keys=True, default=str)
        with self._lock:
            if self._closed:
                raise Busy(CLOSING)
            known = self._by_key.get(key)
            if known is not None and known.state not in ("failed", "cancelled") and not fresh:
                self._jobs.move_to_end(known.id)
                return known
            if sum(job.state == "waiting" for job in self._jobs.values()) >= MOST_WAITING:
                raise Busy("too many computations wait already; cancel one, or wait")
            job = Job(secrets.token_hex(8), key, task, values, lane)
            self._jobs[job.id] = self._by_key[key] = job
            self._forget_old()
        self._lanes[lane].queue.put(job)
        return job

    def _forget_old(self) -> None:
        ended = [job for job in self._jobs.values() if job.state in FINAL]
        size = sum(len(job.result) for job in ended)
        while ended and (len(ended) > MOST_KEPT or size > MOST_KEPT_BYTES):
            old = ended.pop(0)
            size -= len(old.result)
            del self._jobs[old.id]
            if self._by_key.get(old.key) is old:
                del self._by_key[old.key]

    def get(self, key: str) -> Job:
        """The job with an id; a ``KeyError`` if there is none (any more)."""
        with self._lock:
            return self._jobs[key]

    def cancel(self, key: str) -> Job:
        """Stop a computation; its process is killed and replaced."""
        job = self.get(key)
        self._lanes[job.lane].cancel(job)
        return job

    async def wait_for(self, job: Job, seconds: float = 600.0) -> Job:
        """Wait up to ``seconds`` for the job to end, and return it."""
        await job.ended(seconds)
        return job

    def warm_up(self, lane: str = "boards") -> None:
        """Start the process of a lane and load what it will need, without waiting; at most once."""
        if lane not in self._warm:
            self._warm.add(lane)
            self.start("warm up", {"items": LANES[lane]}, lane=lane)

    def close(self) -> None:
        """Cancel what waits or runs, and end all processes; whoever waits for a result is told so at once."""
        with self._lock:
            self._closed = True
            left = [job for job in self._jobs.values() if job.state not in FINAL]
        for lane in self._lanes.values():
            lane.start_nothing_more()  # or the end of one job would start a process for the next
        for job in left:
            self._lanes[job.lane].cancel(job, CLOSING)
        for lane in self._lanes.values():
            lane.close()


class _Lane:
    """One queue and one process; the process is started when needed and restarted if it has ended."""

    def __init__(self, name: str) -> None:
        self.queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._name = name
        self._process: Any = None
        self._pipe: Connection | None = None
        self._current: Job | None = None
        self._closing = False
        self._lock = threading.Lock()
        threading.Thread(target=self._work, name=f"studio-{name}", daemon=True).start()

    def _work(self) -> None:
        while (job := self.queue.get()) is not None:
            with self._lock:
                if self._closing or job.state != "waiting":
                    continue
                self._current = job
                job._set(state="running", started=time.monotonic())
                pipe = self._ready_or_fail(job)
            if pipe is not None:
                self._run(job, pipe)
            with self._lock:
                self._current = None

    def _run(self, job: Job, pipe: Connection) -> None:
        """Hand the job to the process and wait for its end."""
        try:
            pipe.send((job.task, job.values))
            self._follow(job, pipe)
        except (EOFError, OSError):
            self._drop()
            lost = "the process of this computation ended early; it may have run out of memory"
            if job.state == "running":
                job._set(state="failed", error=lost, seconds=time.monotonic() - job.started)
        except Exception as error:  # a bug: this job fails, the lane goes on with the next
            traceback.print_exc(file=sys.stderr)
            self._drop()
            job._set(state="failed", error=f"{type(error).__name__}: {error}")

    def _ready_or_fail(self, job: Job) -> Connection | None:
        """The pipe of the process; if it cannot be started now, this job fails, and the next one tries again."""
        try:
            return self._ready()
        except (OSError, MemoryError) as error:
            why = getattr(error, "strerror", None) or "out of memory"
            lost = f"no process could be started for this computation ({why}); close other programs, then ask again"
            job._set(state="failed", error=lost)
            return None

    def _follow(self, job: Job, pipe: Connection) -> None:
        """Receive messages from the process until the job ends."""
        while job.state == "running":
            what, value = pipe.recv()
            spent = time.monotonic() - job.started
            if what == "progress":
                done, total, words = value
                if words is not None:
                    job.words.append(words)
                job._set(progress=(done, total), seconds=spent)
            elif what == "done":
                job._set(state="done", result=value, seconds=spent)
            else:
                job._set(state="failed", error=value, seconds=spent)

    def _ready(self) -> Connection:
        if self._pipe is None or not self._process.is_alive():
            self._drop()
            context = multiprocessing.get_context("spawn")
            ours, theirs = context.Pipe()
            process = context.Process(target=worker.main, args=(theirs, self._name), daemon=True)
            try:
                process.start()
            except BaseException:
                ours.close()
                raise
            finally:
                theirs.close()
            self._pipe, self._process = ours, process
        return self._pipe

    def _drop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._pipe is not None:
            with contextlib.suppress(OSError):
                self._pipe.close()
        self._pipe = None

    def cancel(self, job: Job, why: str = "") -> None:
        with self._lock:
            if job.state in FINAL:
                return
            job._set(state="cancelled", error=why, seconds=time.monotonic() - job.started if job.started else 0.0)
            if self._current is job and self._process is not None:
                self._process.kill()  # the thread that follows it then reads the end of the pipe
                self._process.join()

    def start_nothing_more(self) -> None:
        with self._lock:
            self._closing = True

    def close(self) -> None:
        self.queue.put(None)
        if self._current is not None:
            self.cancel(self._current)
        if self._process is not None:
            self._process.kill()
            self._process.join()
