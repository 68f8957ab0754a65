"""The worker process: it receives tasks through a pipe, reports progress, and answers with bytes.

It is separate from the server so that a computation can be stopped at any time, and so that one that runs out of memory
does not affect the server.
"""

import os
import signal
import sys
import threading
import time
import traceback
from multiprocessing.connection import Connection
from typing import Any

from placet.studio.tasks import run_task


def main(pipe: Connection, lane: str) -> None:
    """Answer tasks until the server is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the server, which ends this process
    if lane == "polls" and hasattr(os, "nice"):
        os.nice(5)  # counting has lower priority than answering voters, who wait
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    while True:
        try:
            name, values = pipe.recv()
        except EOFError:
            return
        pipe.send(_answer(name, values, pipe))


def _answer(name: str, values: dict[str, Any], pipe: Connection) -> tuple[str, Any]:
    told = [0.0]

    def progress(done: int, total: int, words: Any = None) -> None:
        now = time.monotonic()
        if words is not None or now - told[0] > 0.1 or done >= total:
            told[0] = now
            pipe.send(("progress", (done, total, words)))

    try:
        return "done", run_task(name, values, progress)
    except OSError as error:
        where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        return "failed", where + error.strerror[0].lower() + error.strerror[1:] if error.strerror else str(error)
    except (ValueError, ImportError) as error:
        return "failed", str(error)
    except Exception as error:  # a bug: report it and continue
        traceback.print_exc(file=sys.stderr)
        return "failed", f"{type(error).__name__}: {error}"


def _end_with(parent: int) -> None:
    """End this process when the server has been killed, even in the middle of a task."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
