"""Computations of the studio: lanes that survive what the system refuses, and waiting that takes no thread."""

import asyncio
import errno
import multiprocessing
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection

import pytest

pytest.importorskip("starlette")
pytest.importorskip("httpx")

import httpx
from test_studio import TOKEN
from test_studio_polls import PNG

from placet.studio.app import application
from placet.studio.jobs import Busy, Job, Jobs
from placet.studio.security import CLOSING
from placet.studio.store import Store


class ThreadContext:
    """Stands in for the processes of `multiprocessing`: each is a thread, and the first attempt fails at a step."""

    def __init__(self, step, error):
        self.step, self.error, self.failed = step, error, False

    def fail_once(self, step):
        if step == self.step and not self.failed:
            self.failed = True
            raise self.error

    def Pipe(self):
        self.fail_once("pipe")
        return multiprocessing.Pipe()

    def Process(self, target, args, daemon):
        return ThreadProcess(self, args[0])


class ThreadProcess:
    def __init__(self, context, pipe):
        self.context, self.pipe, self.lock = context, Connection(os.dup(pipe.fileno())), threading.Lock()

    def start(self):
        try:
            self.context.fail_once("start")
        except BaseException:
            self.kill()
            raise
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        try:
            task, values = self.pipe.recv()
        except (EOFError, OSError):
            return
        self.pipe.send(("done", f"{task} {values['n']}".encode()))

    def is_alive(self):
        return True

    def kill(self):
        with self.lock:  # several threads may kill a process, as the studio does when it is closed
            self.pipe.close()

    def join(self):
        pass


ERRORS = [OSError(errno.EMFILE, "Too many open files"), OSError(errno.ENOMEM, "Cannot allocate memory"), MemoryError()]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.parametrize("step", ["pipe", "start"])
def test_a_lane_goes_on_after_its_process_could_not_be_started(monkeypatch, error, step):
    context = ThreadContext(step, error)
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: context)
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    jobs = Jobs()
    try:
        first = jobs.start("board", {"n": 1})
        assert first.wait(20)
        assert first.state == "failed"
        assert "no process could be started" in first.error
        assert not before or len(os.listdir("/proc/self/fd")) == before  # nothing is left open
        second = jobs.start("board", {"n": 2})
        assert second.wait(20)
        assert (second.state, second.result) == ("done", b"board 2")
    finally:
        jobs.close()


def test_a_lane_goes_on_after_what_cannot_be_sent(monkeypatch, capsys):
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: ThreadContext("", None))
    jobs = Jobs()
    try:
        first = jobs.start("board", {"n": lambda: 1})  # cannot be pickled
        assert first.wait(20)
        assert first.state == "failed"
        second = jobs.start("board", {"n": 2})
        assert second.wait(20)
        assert second.state == "done"
    finally:
        jobs.close()
    assert "local object" in capsys.readouterr().err


def test_any_number_may_wait_and_threads_are_free():
    """With a hundred readers of one computation, work in a thread starts at once, and all are told of the end."""
    job = Job("id", "key", "board", {}, "boards")

    async def crowd():
        waiting = [asyncio.create_task(job.ended(30)) for _ in range(100)]
        await asyncio.sleep(0)
        await asyncio.to_thread(lambda: None)
        free = not any(one.done() for one in waiting)  # a thread was free while all of them waited
        threading.Thread(target=lambda: job._set(state="done")).start()
        await asyncio.gather(*waiting)
        await job.ended(30)  # one that has ended is not waited for
        return free

    assert asyncio.run(crowd())
    assert not job.waiting


def test_waiting_ends_in_time_and_leaves_nothing():
    job = Job("id", "key", "board", {}, "boards")
    asyncio.run(job.ended(0.01))
    assert job.state == "waiting"
    assert not job.waiting


class SilentProcess(ThreadProcess):
    """A process that never answers."""

    def start(self):
        self.context.started.append(self)


@pytest.fixture
def silent(monkeypatch):
    """Computations begin, and none ends; those that have begun."""
    context = ThreadContext("never", None)
    context.started = []
    context.Process = lambda target, args, daemon: SilentProcess(context, args[0])
    monkeypatch.setattr(multiprocessing, "get_context", lambda kind: context)
    return context.started


def test_an_image_is_uploaded_while_exports_wait(tmp_path, silent):
    """Twelve exports that do not end, more than the four threads of this loop: none of them keeps one."""
    store = Store(tmp_path / "w")
    app = application(store, TOKEN)

    async def crowd():
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(4))
        there = {"base_url": "http://127.0.0.1", "follow_redirects": True, "timeout": None}
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), **there) as client:
            csrf = re.search(r'name="csrf" content="(\w+)"', (await client.get(f"/?token={TOKEN}")).text)[1]
            votes = {"content": b"a,b,winner\nx,y,a\n", "headers": {"x-csrf": csrf, "x-name": "votes.csv"}}
            key = (await client.post("/api/data", **votes)).json()["id"]
            urls = [f"/board/{key}/export.csv?method=borda&level=0.{k}" for k in range(50, 62)]
            exports = [asyncio.create_task(client.get(url)) for url in urls]
            while sum(job.task == "export" for job in app.state.jobs._jobs.values()) < 12:
                await asyncio.sleep(0.01)
            sent = asyncio.create_task(client.post("/api/images", content=PNG, headers={"x-csrf": csrf}))
            done, _ = await asyncio.wait([sent], timeout=30)
            waiting = sum(not one.done() for one in exports)
            app.state.jobs.close()
            return len(done), waiting, (await sent).status_code, {(await one).status_code for one in exports}

    try:
        assert asyncio.run(crowd()) == (1, 12, 201, {422})
    finally:
        store.close()


def test_closing_answers_all_who_wait_and_starts_nothing_more(silent):
    jobs = Jobs()
    some = [jobs.start("board", {"n": k}) for k in range(3)]

    async def waited():
        waiting = asyncio.gather(*(jobs.wait_for(job, 60) for job in some))
        while some[0].state != "running":
            await asyncio.sleep(0.01)
        await asyncio.to_thread(jobs.close)
        return await waiting

    assert [(job.state, job.error) for job in asyncio.run(waited())] == [("cancelled", CLOSING)] * 3
    with pytest.raises(Busy, match="being closed"):
        jobs.start("board", {"n": 4})
    assert len(silent) == 1
