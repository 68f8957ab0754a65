"""The engine that processes parts on a Dask cluster, using little more than ``Client.submit``.

A pass submits x once, one task for each block of parts, and a fixed tree of additions that run on the workers, up to
`FAN_IN` results in one task; only the sum is returned.  Workers cache parts in their own memory, so a task taken over
by another worker reads its files again: losing a worker costs time but does not change the result.
"""

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from placet.data.engines.memory import VARIABLE, memory_limit, parse_bytes
from placet.data.engines.serial import CACHE, EngineError, Function, Merge, Piece, run, tree, with_bytes
from placet.threads import set_threads, usable_cores

if TYPE_CHECKING:
    from distributed import Client, Future

TASKS_PER_WORKER = 4
"""Approximate number of blocks of parts per worker: fewer would leave workers idle, more cost as much as they save."""

FAN_IN = 8
"""Number of results added by one task: a power of 2, so that the tree stays the same.  Every level of the tree is a
round trip through the scheduler, and every task costs it milliseconds.
"""

PATIENCE = 60.0
"""Seconds without any worker after which a fit gives up, as a cluster may be starting new ones."""

_ABOUT = "(__import__('placet').__version__, __import__('sys').version_info[:2], __import__('numpy').__version__)"
_NUMBER = count()


class Share(NamedTuple):
    """Resources of workers by address: threads and workers on the host, and the worker's memory limit."""

    threads_of_host: dict[str, int]
    workers_of_host: dict[str, int]
    memory: dict[str, int]


class Dask:
    """An engine for `Parts` that submits the tasks of a pass to a ``distributed.Client``.

    The versions of Placet, Python and NumPy on the workers are checked once; an `EngineError` names a worker that
    differs.  ``patience``: seconds without any worker after which a pass gives up with an `EngineError`.
    """

    def __init__(self, client: "Client", *, patience: float = PATIENCE) -> None:
        self.client, self.patience = client, patience
        self._blocks: dict[tuple[str, ...], Future] = {}
        self._lock = threading.Lock()
        self.share = _share(self._check_versions())

    def __repr__(self) -> str:
        return f"Dask({self.client.scheduler.address if self.client.scheduler else 'closed'})"

    def sum(
        self, f: Function, pieces: Sequence[Piece], x: tuple[Any, ...], *, name: str, merge: Merge
    ) -> tuple[Any, int]:
        workers = self._workers()
        self.share = _share(workers)
        addresses = sorted(workers)
        size = _block_size(len(pieces), max(1, len(addresses)))
        blocks = [tuple(pieces[k : k + size]) for k in range(0, len(pieces), size)]
        number = next(_NUMBER)
        label = f"{re.sub(r'[^A-Za-z]+', '_', name).strip('_') or 'pass'}-pass{number}"
        theta = self.client.submit(_identity, x, key=f"x-{label}", pure=False)
        tasks = []
        for k, block in enumerate(blocks):
            near = addresses[k * len(addresses) // len(blocks)] if addresses else None  # neighbors are added first
            where = {"workers": [near], "allow_other_workers": True} if near else {}
            sent = self._send_block(block, where)
            key = f"{label}-part{k * size:05d}"
            tasks.append(self.client.submit(_work, f, sent, theta, merge, self.share, key=key, pure=False, **where))
        numbers = count()
        while len(tasks) > 1:
            groups = [tasks[k : k + FAN_IN] for k in range(0, len(tasks), FAN_IN)]
            keys = (f"add_{label}-{next(numbers):05d}" for _ in groups)
            tasks = [self.client.submit(_merge, merge, group, key=key, pure=False) for group, key in zip(groups, keys)]
        result: tuple[Any, int] = self._result(tasks[0], name)
        return result

    def together(
        self, f: Function, pieces: Sequence[Piece], x: tuple[Any, ...], *, prepare: Callable[[str], Any]
    ) -> list[Any]:
        """Run ``f(own pieces, own number, prepared of all, *x)`` on all workers at once, so that they can communicate.

        ``prepare(host)`` runs on each worker first.  A lost worker cannot be replaced and raises an `EngineError`.
        """
        workers = self._workers()
        addresses = sorted(workers)[: len(pieces)]
        number = next(_NUMBER)
        alone = [{"workers": [address], "allow_other_workers": False, "pure": False} for address in addresses]
        hosts = [str(workers[address]["host"]) for address in addresses]
        asked = [
            self.client.submit(prepare, host, key=f"prepare-pass{number}-{k}", **alone[k])
            for k, host in enumerate(hosts)
        ]
        prepared = [self._result(future, "prepare") for future in asked]
        bounds = [len(pieces) * k // len(addresses) for k in range(len(addresses) + 1)]
        share = _share(workers)
        futures = [
            self.client.submit(
                _work_together,
                f,
                tuple(pieces[bounds[k] : bounds[k + 1]]),
                (k, prepared, *x),
                share,
                key=f"together-pass{number}-worker{k}",
                **alone[k],
            )
            for k in range(len(addresses))
        ]
        from distributed import wait

        while True:
            try:
                wait(futures, timeout=1.0)
            except TimeoutError:
                lost = sorted(set(addresses) - set(self._workers()))
                if not lost and not any(future.status == "error" for future in futures):
                    continue
                self.client.cancel(futures, force=True)
                if lost:
                    raise EngineError(
                        f"worker {lost[0]} was lost while all worked together, and others cannot continue without it; "
                        "fit again"
                    ) from None
            return [self._result(future, "together") for future in futures]

    def _send_block(self, block: tuple[Piece, ...], where: dict[str, Any]) -> "Future":
        """The description of a block of parts, sent once; workers load the data when a task needs it."""
        keys = tuple(piece.key for piece in block)
        with self._lock:
            future = self._blocks.get(keys)
            if future is None or future.status in ("error", "cancelled", "lost"):
                if len(self._blocks) > 4096:
                    self._blocks.clear()
                key = f"parts-{next(_NUMBER)}"
                future = self._blocks[keys] = self.client.submit(_identity, block, key=key, pure=False, **where)
        return future

    def _result(self, future: "Future", name: str) -> Any:
        """The result, or an `EngineError` after ``patience`` seconds without any worker."""
        from asyncio import CancelledError
        from concurrent.futures import CancelledError as Cancelled

        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        alone: float | None = None
        while True:
            try:
                return future.result(timeout=1.0 if alone is None else 0.2)
            except TimeoutError:
                if self._workers():
                    alone = None
                    continue
                alone = time.monotonic() if alone is None else alone
                if time.monotonic() - alone >= self.patience:
                    raise EngineError(
                        f"all workers are lost (pass {name!r} waited {self.patience:g} s for a new one); start workers "
                        "that can reach the scheduler"
                    ) from None
            except KilledWorker as error:
                raise EngineError(
                    f"several workers died one after the other while they worked on a part ({error}); give workers "
                    "more memory, or cut smaller parts (part_bytes=)"
                ) from error
            except (CancelledError, Cancelled, CommClosedError) as error:
                raise EngineError(f"the connection to the scheduler is lost ({error}); start it again") from error
            except ModuleNotFoundError as error:
                raise EngineError(f"a worker cannot import what it needs ({error}); install Placet there") from error

    def _workers(self) -> dict[str, Any]:
        """The scheduler's information on its workers, by address."""
        try:
            found: dict[str, Any] = dict(
                self.client.scheduler_info(n_workers=-1).get("workers", {})
            )  # none if it is lost
        except (OSError, TypeError):
            return {}
        return found

    def _check_versions(self) -> dict[str, Any]:
        """All workers, after checking that each has the same versions of Placet, Python and NumPy as this process."""
        deadline = time.monotonic() + self.patience
        while not (workers := self._workers()):
            if time.monotonic() > deadline:
                raise EngineError(f"the cluster has no workers (waited {self.patience:g} s); start some")
            time.sleep(0.1)
        own = eval(_ABOUT)
        asked = {
            address: self.client.submit(eval, _ABOUT, key=f"versions-{next(_NUMBER)}", workers=[address], pure=False)
            for address in workers
        }
        for address, future in asked.items():
            try:
                theirs = future.result(timeout=self.patience)
            except ImportError as error:
                raise EngineError(
                    f"worker {address} has no Placet ({error}); install placet=={own[0]} where it runs"
                ) from error
            except TimeoutError:
                raise EngineError(f"worker {address} does not answer within {self.patience:g} s") from None
            for what, a, b in zip(("Placet", "Python", "NumPy"), theirs, own):
                if a != b:
                    raise EngineError(
                        f"worker {address} has {what} {_version(a)}, and this process has {_version(b)}; the same "
                        "bytes need the same versions: install the same on all"
                    )
        return workers


def dask(client: "Client", *, patience: float = PATIENCE) -> Dask:
    """The engine of a Dask client: ``consensus(parts, engine=dask(client))``, or simply ``engine=client``."""
    return Dask(client, patience=patience)


@contextlib.contextmanager
def connect(where: str) -> Iterator["Client"]:
    """A client of the scheduler at ``where`` (``tcp://host:port``); ``local`` starts one worker per core here."""
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise EngineError(f"Dask is not installed ({error}); pip install 'placet[dask]'") from error
    if where != "local":
        if "://" not in where:
            raise ValueError(f"{where!r} is not a scheduler; write tcp://host:port, or local")
        try:
            client = Client(where, timeout=20)
        except OSError as error:
            raise EngineError(f"no scheduler answers at {where} ({error})") from error
        with client:
            yield client
        return
    cores = usable_cores()
    with (
        LocalCluster(n_workers=cores, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


# Functions that run on workers


def _identity(value: Any) -> Any:
    return value


def _work(f: Function, pieces: tuple[Piece, ...], x: tuple[Any, ...], merge: Merge, share: Share) -> tuple[Any, int]:
    """Process a block of parts on a worker, within its share of threads and memory."""
    _take_share(share)
    return run(f, pieces, x, merge)


def _work_together(f: Function, pieces: tuple[Piece, ...], x: tuple[Any, ...], share: Share) -> Any:
    _take_share(share)
    return f(pieces, *x)


def _merge(merge: Merge, results: list[tuple[Any, int]]) -> tuple[Any, int]:
    found: tuple[Any, int] = tree(results, with_bytes(merge))
    return found


def _take_share(share: Share) -> None:
    """Set this worker's limits of threads and memory: those of the host, divided among its workers."""
    import os

    from distributed import get_worker

    try:
        address = get_worker().address
    except ValueError:  # not a worker
        return
    set_threads(max(1, usable_cores() // share.threads_of_host[address]) if address in share.threads_of_host else 1)
    given = os.environ.get(VARIABLE, "").strip()
    limit = parse_bytes(given, VARIABLE) if given else memory_limit() // share.workers_of_host.get(address, 1)
    own = share.memory.get(address, 0)
    CACHE.limit = min(limit, own // 2) if own else limit


def _share(workers: dict[str, Any]) -> Share:
    """How workers share their hosts, from the scheduler's information."""
    threads: dict[str, int] = {}
    number: dict[str, int] = {}
    for about in workers.values():
        host = about.get("host", "")
        threads[host] = threads.get(host, 0) + int(about.get("nthreads", 1))
        number[host] = number.get(host, 0) + 1
    hosts = {address: about.get("host", "") for address, about in workers.items()}
    return Share(
        {address: threads[host] for address, host in hosts.items()},
        {address: number[host] for address, host in hosts.items()},
        {address: int(about.get("memory_limit") or 0) for address, about in workers.items()},
    )


def _block_size(n_parts: int, n_workers: int) -> int:
    """Number of parts for one task: a power of 2, so that the tree over blocks matches the tree over parts."""
    size = 1
    while n_parts / (2 * size) >= TASKS_PER_WORKER * n_workers:
        size *= 2
    return size


def _version(value: Any) -> str:
    return ".".join(map(str, value)) if isinstance(value, tuple) else str(value)
