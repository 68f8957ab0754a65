"""The studio under load: 200 simultaneous simulated voters on loopback; errors, lost votes, and response times.

    python -m benchmarks.bench_studio [--quick] [--voters 200] [--seconds 60] [--think 1.0] [part ...]

Each voter opens the poll, then thinks about each pair for --think seconds on average (from half to one and a half times that; the
default, one second, is as fast as people click), answers it, and requests the results, as the page does every second and a half.
Exits with 1 if a request failed, an acknowledged vote is not in the database, or the 95th percentile of a vote is above 300 ms.
The part "board" times a board of 1,000 items and a million votes, including computation and response: opened right after the start,
then after each change of method, which must take less than two seconds.  "upload" sends that file and asks for its board, which must
take at most five seconds.  "slow" opens 1,000 connections that send half of a header, or half of a body, one byte at a time; a client
beside them must be answered in 0.3 seconds.
"""

import argparse
import asyncio
import contextlib
import http.client
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np

from placet import simulate
from placet.io import write
from placet.studio.store import Store

MOST_P95 = 0.3
MOST_REDRAW = 2.0
MOST_UPLOAD = 5.0
MOST_BESIDE_SLOW = 0.3
QUESTIONS = (
    "method=bradley-terry&p.prior=2",  # right after the start, while the processes warm up and the file is read
    "method=bradley-terry",
    "method=bradley-terry&p.ties=davidson",
    "method=bradley-terry&p.ties=davidson&p.prior=3",
    "method=borda",
    "method=copeland",
)


def csrf_of(text: str) -> str:
    return re.search(r'name="csrf" content="(\w+)"', text).group(1)


class Studio:
    """A separate server process, terminated at the end of the ``with`` block."""

    def __init__(self, workspace: Path, *files: Path) -> None:
        command = [
            sys.executable,
            "-m",
            "placet",
            "serve",
            "--no-browser",
            "--port",
            "0",
            "--workspace",
            str(workspace),
        ]
        self.process = subprocess.Popen([*command, *map(str, files)], stdout=subprocess.PIPE, text=True)
        url = self.process.stdout.readline().strip()
        self.base = url.partition("/?")[0]
        self.client = httpx.Client(follow_redirects=True, timeout=300)
        self.headers = {"x-csrf": csrf_of(self.client.get(url).text)}

    def seconds_of(self, url: str) -> tuple[float, str, int]:
        """Seconds from the start of a computation to its numbers, its last state, and the bytes of its answer."""
        start = time.perf_counter()
        job = self.client.post(self.base + url, json={}, headers=self.headers).json()
        while job["state"] in ("waiting", "running"):
            job = self.client.get(f"{self.base}/api/jobs/{job['id']}?wait=1").json()
        size = len(self.client.get(f"{self.base}/api/jobs/{job['id']}/result").content)
        return time.perf_counter() - start, job["state"], size

    def __enter__(self) -> "Studio":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()


class Counter:
    """Statistics collected by the voters."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.votes: list[float] = []
        self.kept: list[str] = []
        self.failed: list[str] = []


class Connection:
    """One browser's connection: hand-written HTTP/1.1, because a full client would cost more than the server."""

    def __init__(self, base: str, seen: Counter) -> None:
        self.host, _, port = base.removeprefix("http://").partition(":")
        self.port, self.seen, self.headers = int(port), seen, ""

    async def open(self) -> None:
        self.reader, self.writer = await asyncio.open_connection(self.host, self.port)

    async def ask(self, method: str, url: str, body: str = "") -> tuple[int, dict[str, str], str]:
        """Status, headers and text of a response; its time is recorded."""
        start = time.perf_counter()
        size = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n" if body else ""
        self.writer.write(f"{method} {url} HTTP/1.1\r\nhost: {self.host}\r\n{self.headers}{size}\r\n{body}".encode())
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:-2])}
        text = (await self.reader.readexactly(int(headers["content-length"]))).decode()
        self.seen.times.append(time.perf_counter() - start)
        status = int(head[0].split()[1])
        if status >= 400:
            self.seen.failed.append(f"{url}: {status} {text[:100]}")
        return status, headers, text


async def voter(base: str, poll: str, number: int, until: float, think: float, seen: Counter) -> None:
    """Simulate one voter with its own connection and cookie."""
    browser = Connection(base, seen)
    await asyncio.sleep(random.random() * 2 * think)
    try:
        await browser.open()
        _, headers, text = await browser.ask("GET", f"/p/{poll}")
        browser.headers = f"cookie: {headers['set-cookie'].partition(';')[0]}\r\nx-csrf: {csrf_of(text)}\r\n"
        asked = json.loads((await browser.ask("GET", f"/p/{poll}/next"))[2])
        shown = 0
        while time.monotonic() < until and "first" in asked:
            await asyncio.sleep(think * (0.5 + random.random()))
            first, second, nonce = asked["first"], asked["second"], f"voter{number}-{len(seen.kept):08d}"
            better = random.random() < 1 / (1 + 2.0 ** ((first - second) / 8))
            body = {"nonce": nonce, "first": first, "second": second, "answer": "a" if better else "b"}
            status, _, text = await browser.ask("POST", f"/p/{poll}/vote", json.dumps(body))
            seen.votes.append(seen.times[-1])
            if status == 201:
                seen.kept.append(nonce)
            asked = json.loads(text).get("next", {})
            about = json.loads((await browser.ask("GET", f"/p/{poll}/results?have={shown}"))[2])
            shown = about["of"]
        browser.writer.close()
    except (OSError, EOFError) as error:
        seen.failed.append(repr(error))


async def crowd(base: str, poll: str, voters: int, seconds: float, think: float) -> Counter:
    seen, until = Counter(), time.monotonic() + seconds
    await asyncio.gather(*(voter(base, poll, k, until, think, seen) for k in range(voters)))
    return seen


def cpu_seconds(pid: int) -> float:
    """CPU time of a process and its live child processes; NaN if the system is not Linux."""
    try:
        own = sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
        children = [
            child for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
        ]
    except OSError:
        return float("nan")
    return own / os.sysconf("SC_CLK_TCK") + sum(map(cpu_seconds, map(int, children)))


def load(voters: int, seconds: float, think: float) -> bool:
    """Whether all went well with this many voters."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "w"
        with Studio(workspace) as studio:
            items = [f"item {k}" for k in range(30)]
            made = studio.client.post(
                f"{studio.base}/api/polls", json={"title": "Which?", "items": items}, headers=studio.headers
            )
            poll = made.json()["id"]
            before, own = cpu_seconds(studio.process.pid), time.process_time()
            seen = asyncio.run(crowd(studio.base, poll, voters, seconds, think))
            spent, own = cpu_seconds(studio.process.pid) - before, time.process_time() - own
            times, kept, failed = seen.times, seen.kept, seen.failed
        store = Store(workspace)
        there = {row["nonce"].partition(":")[2] for row in store.rows("SELECT nonce FROM vote WHERE poll = ?", poll)}
        store.close()
    lost = set(kept) - there
    print(
        f"{voters} voters, {seconds:.0f} s: {len(kept):,} votes, {len(times):,} requests, {len(failed)} failed, {len(lost)} lost"
    )
    for what, some in (("a vote", seen.votes), ("any request", times)):
        p50, p95, p99 = 1e3 * np.quantile(some, [0.5, 0.95, 0.99])
        print(f"   {what}: p50 {p50:.0f} ms, p95 {p95:.0f} ms, p99 {p99:.0f} ms")
    print(
        f"   processor time: studio {spent:.1f} s, simulated voters {own:.1f} s; load of the machine {os.getloadavg()[0]:.1f}"
    )
    for words in failed[:5]:
        print("  ", words)
    return not failed and not lost and bool(np.quantile(seen.votes, 0.95) <= MOST_P95)


def million_votes(path: Path) -> None:
    """Write a file of a million votes on 1,000 items."""
    theta = np.random.default_rng(0).normal(size=1000)
    write(simulate.battles(theta, 1_000_000, tie=-0.5, random_state=0), path)
    text = path.read_text().splitlines()
    rows = (line.rsplit(",", 1) for line in text[1:])  # a line for each vote, as logs have them
    path.write_text(text[0].rsplit(",", 1)[0] + "\n" + "".join((row + "\n") * int(float(n)) for row, n in rows))


def board() -> bool:
    """Whether a board of 1,000 items and a million votes is redrawn in time after a change of method."""
    with tempfile.TemporaryDirectory() as folder:
        votes = Path(folder) / "votes.csv"
        million_votes(votes)
        with Studio(Path(folder) / "w", votes) as studio:
            key = re.search(r'href="/board/(\w+)"', studio.client.get(studio.base).text).group(1)
            start = time.perf_counter()
            studio.client.get(studio.base)
            print(f"first page: {time.perf_counter() - start:.3f} s")
            times = {query: studio.seconds_of(f"/api/board/{key}/board?{query}") for query in QUESTIONS}
    for query, (seconds, state, size) in times.items():
        print(f"board of 1,000 items and 1M votes, {query}: {seconds:.2f} s ({state}, {size:,} bytes)")
    opened, *changed = times.values()
    return all(state == "done" and seconds < MOST_REDRAW for seconds, state, _ in changed) and opened[1] == "done"


def upload() -> bool:
    """Whether a file of a million votes is a board in time, from the first byte of its upload to the numbers."""
    with tempfile.TemporaryDirectory() as folder:
        votes = Path(folder) / "votes.csv"
        million_votes(votes)
        content = votes.read_bytes()
        with Studio(Path(folder) / "w") as studio:
            studio.seconds_of(
                "/api/catalog"
            )  # the process of boards has started, as it has when a person chooses a file
            before, start = cpu_seconds(studio.process.pid), time.perf_counter()
            headers = {**studio.headers, "x-name": "votes.csv"}
            key = studio.client.post(f"{studio.base}/api/data", content=content, headers=headers).json()["id"]
            sent = time.perf_counter() - start
            _, state, _ = studio.seconds_of(f"/api/board/{key}/board")
            took, spent = time.perf_counter() - start, cpu_seconds(studio.process.pid) - before
    print(
        f"upload of {len(content):,} bytes, 1M votes: {sent:.2f} s; board {took:.2f} s after the first byte ({state}); "
        f"processor time {spent:.1f} s; load of the machine {os.getloadavg()[0]:.1f}"
    )
    return state == "done" and took <= MOST_UPLOAD


async def slow_client(base: str, number: int, until: float) -> int:
    """A client that sends half of a request, one byte at a time; returns how often it was closed and came again."""
    host, _, port = base.removeprefix("http://").partition(":")
    half = b"POST /p/x/vote HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1000\r\n" + (
        b"\r\n{" if number % 2 else b"a: "
    )
    closed = 0
    while time.monotonic() < until:
        try:
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(half)
            while time.monotonic() < until and not reader.at_eof() and not writer.transport.is_closing():
                writer.write(b"x")
                await asyncio.sleep(1 + random.random())
            writer.close()
        except OSError:
            await asyncio.sleep(0.2)
        closed += 1
    return closed


def slow(clients: int, seconds: float) -> bool:
    """Whether a normal client is answered in time beside many slow ones."""
    with tempfile.TemporaryDirectory() as folder, Studio(Path(folder) / "w") as studio:
        times: list[float] = []
        cookie = "; ".join(f"{name}={value}" for name, value in studio.client.cookies.items())

        def ask() -> None:
            start = time.perf_counter()
            with contextlib.closing(http.client.HTTPConnection(studio.base.removeprefix("http://"))) as client:
                client.request("GET", "/", headers={"cookie": cookie})  # a connection of its own each time
                assert client.getresponse().status == 200
            times.append(time.perf_counter() - start)

        async def all_of_them() -> list[int]:
            until = time.monotonic() + seconds
            crowd_of_slow = [asyncio.create_task(slow_client(studio.base, k, until)) for k in range(clients)]
            await asyncio.sleep(2)
            while time.monotonic() < until - 1:
                await asyncio.to_thread(ask)
                await asyncio.sleep(0.2)
            return await asyncio.gather(*crowd_of_slow)

        closed = sum(asyncio.run(all_of_them()))
    p50, worst = np.quantile(times, [0.5, 1.0])
    print(
        f"{clients:,} slow clients ({closed:,} connections), {len(times)} requests beside them: p50 {1e3 * p50:.0f} ms, "
        f"most {1e3 * worst:.0f} ms; load of the machine {os.getloadavg()[0]:.1f}"
    )
    return bool(worst <= MOST_BESIDE_SLOW)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", default=["load", "board", "upload", "slow"])
    parser.add_argument("--voters", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--think", type=float, default=1.0)
    parser.add_argument("--quick", action="store_true", help="20 voters for 5 seconds, and nothing else")
    args = parser.parse_args()
    if args.quick:
        return 0 if load(20, 5, args.think) else 1
    every = {
        "load": lambda: load(args.voters, args.seconds, args.think),
        "board": board,
        "upload": upload,
        "slow": lambda: slow(1000, min(args.seconds, 20)),
    }
    good = [every[part]() for part in args.parts]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
