"""The studio under load: 200 simulated voters at once on loopback; no error, no lost vote, and how long an answer takes.

    python -m benchmarks.bench_studio [--quick] [--voters 200] [--seconds 60] [--think 1.0]

Each voter opens the poll, then answers the pair it is asked and thinks for about a second, as a person does at the fastest.
Exits with 1 where a request failed, an acknowledged vote is not in the database, or the 95th percentile is 200 ms or more.
A second part times a board of 1,000 items and a million votes after a change of method, computation and answer included.
"""

import argparse
import asyncio
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from placet import simulate
from placet.io import write
from placet.studio.store import Store

MOST_P95 = 0.2


def csrf_of(text: str) -> str:
    return re.search(r'name="csrf" content="(\w+)"', text).group(1)


class Studio:
    """A server of its own, ended with the block."""

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

    def __enter__(self) -> "Studio":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()


class Counter:
    """What the crowd saw."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.kept: list[str] = []
        self.failed: list[str] = []


async def voter(
    client: httpx.AsyncHTTPTransport, base: str, poll: str, number: int, until: float, think: float, seen: Counter
) -> None:
    """One voter: a cookie of its own on connections that all share."""
    own: dict[str, str] = {}

    async def timed(method: str, url: str, **options: Any) -> httpx.Response:
        start = time.perf_counter()
        answer = await client.handle_async_request(httpx.Request(method, base + url, headers=own, **options))
        await answer.aread()
        seen.times.append(time.perf_counter() - start)
        if answer.status_code >= 400:
            seen.failed.append(f"{url}: {answer.status_code} {answer.text[:100]}")
        return answer

    await asyncio.sleep(random.random() * 2 * think)
    try:
        page = await timed("GET", f"/p/{poll}")
        own |= {"cookie": page.headers["set-cookie"].partition(";")[0], "x-csrf": csrf_of(page.text)}
        asked = (await timed("GET", f"/p/{poll}/next")).json()
        while time.monotonic() < until and "first" in asked:
            better = random.random() < 1 / (1 + 2.0 ** ((asked["first"] - asked["second"]) / 8))
            nonce = f"voter{number}-{len(seen.kept):08d}"
            body = {
                "nonce": nonce,
                "first": asked["first"],
                "second": asked["second"],
                "answer": "a" if better else "b",
            }
            done = await timed("POST", f"/p/{poll}/vote", json=body)
            if done.status_code == 201:
                seen.kept.append(nonce)
            asked = done.json().get("next", {})
            await timed("GET", f"/p/{poll}/results")
            await asyncio.sleep(think * (0.5 + random.random()))
    except httpx.HTTPError as error:
        seen.failed.append(repr(error))


async def crowd(base: str, poll: str, voters: int, seconds: float, think: float) -> Counter:
    seen = Counter()
    limits = httpx.Limits(max_connections=voters, max_keepalive_connections=voters)
    until = time.monotonic() + seconds
    async with httpx.AsyncHTTPTransport(limits=limits) as client:  # no client above it: each voter has its own cookies
        await asyncio.gather(*(voter(client, base, poll, k, until, think, seen) for k in range(voters)))
    return seen


def load(voters: int, seconds: float, think: float) -> bool:
    """Whether all went well with so many voters."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "w"
        with Studio(workspace) as studio:
            items = [f"item {k}" for k in range(30)]
            made = studio.client.post(
                f"{studio.base}/api/polls", json={"title": "Which?", "items": items}, headers=studio.headers
            )
            poll = made.json()["id"]
            seen = asyncio.run(crowd(studio.base, poll, voters, seconds, think))
            times, kept, failed = seen.times, seen.kept, seen.failed
        store = Store(workspace)
        there = {row["nonce"].partition(":")[2] for row in store.rows("SELECT nonce FROM vote WHERE poll = ?", poll)}
        store.close()
    lost = set(kept) - there
    p50, p95, p99 = np.quantile(times, [0.5, 0.95, 0.99])
    print(
        f"{voters} voters, {seconds:.0f} s: {len(kept):,} votes, {len(times):,} requests, {len(failed)} failed, {len(lost)} lost; "
        f"p50 {1e3 * p50:.0f} ms, p95 {1e3 * p95:.0f} ms, p99 {1e3 * p99:.0f} ms"
    )
    for words in failed[:5]:
        print("  ", words)
    return not failed and not lost and p95 < MOST_P95


def board() -> None:
    """A board of 1,000 items and a million votes: the time from a change of method to the numbers."""
    with tempfile.TemporaryDirectory() as folder:
        votes = Path(folder) / "votes.csv"
        theta = np.random.default_rng(0).normal(size=1000)
        write(simulate.battles(theta, 1_000_000, tie=-0.5, random_state=0), votes)
        with Studio(Path(folder) / "w", votes) as studio:
            key = re.search(r'href="/board/(\w+)"', studio.client.get(studio.base).text).group(1)
            for query in (
                "method=bradley-terry",
                "method=bradley-terry&p.ties=davidson",
                "method=bradley-terry&p.prior=3",
                "method=borda",
                "method=copeland",
            ):
                start = time.perf_counter()
                job = studio.client.post(
                    f"{studio.base}/api/board/{key}/board?{query}", json={}, headers=studio.headers
                ).json()
                while job["state"] in ("waiting", "running"):
                    job = studio.client.get(f"{studio.base}/api/jobs/{job['id']}?wait=1").json()
                size = len(studio.client.get(f"{studio.base}/api/jobs/{job['id']}/result").content)
                print(
                    f"board of 1,000 items and 1M votes, {query}: {time.perf_counter() - start:.2f} s ({job['state']}, {size:,} bytes)"
                )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--voters", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--think", type=float, default=1.0)
    parser.add_argument("--quick", action="store_true", help="20 voters for 5 seconds, and no board")
    args = parser.parse_args()
    if args.quick:
        return 0 if load(20, 5, args.think) else 1
    good = load(args.voters, args.seconds, args.think)
    board()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
