"""Ctrl-C and SIGTERM end a command within two seconds, wherever it is.

Python runs a handler between two of its own instructions, so a long step inside a kernel, a solver or LightGBM would
not notice a signal.  A small process beside the command does: every signal is written to a pipe at the moment it comes
(``signal.set_wakeup_fd``), and unless the command has taken notice of it soon, or a second one comes, it is ended from
outside.  Files are written under another name first, so none is left half.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

GRACE = 1.5
"""Seconds in which a command must have noticed a signal."""

LEAST_SPACE = 3 << 30
"""Bytes of addresses (ulimit -v) below which the libraries that Placet calls end the process in ways of their own."""

CRASHED = (
    b"placet: the process ended without a word: it was killed, or a library failed; where memory is limited, that is "
    b"the usual cause: raise the limit, or give a part of the data\n"
)
NOTICED = b"\xff"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(KeyboardInterrupt):
    """A signal asked the command to end; fits that know Ctrl-C keep the best so far."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextmanager
def stopping() -> Iterator[list[int]]:
    """Inside, SIGINT and SIGTERM raise ``Stopped``; yields the list of the signals that came."""
    came: list[int] = []
    if not hasattr(os, "fork"):
        yield came
        return
    end, start = os.pipe()
    watcher = os.fork()
    if watcher == 0:
        os.close(start)
        _watch(end, os.getppid())
    os.close(end)
    os.set_blocking(start, False)
    before = signal.set_wakeup_fd(start, warn_on_full_buffer=False)
    over = False

    def notice(number: int, _: FrameType | None) -> None:
        came.append(number)
        os.write(start, NOTICED)
        if not over:
            raise Stopped(number)

    handlers: dict[signal.Signals, Any] = {}
    try:
        for number in _SIGNALS:
            handlers[number] = signal.signal(number, notice)
        yield came
    finally:
        over = True  # what comes now finds the work done, and must not interrupt the end
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(before)
        os.kill(watcher, signal.SIGKILL)  # before the pipe is closed, which is how a crash looks
        os.waitpid(watcher, 0)
        os.close(start)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


def _watch(end: int, parent: int) -> None:
    """The small process: never returns."""
    try:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        for file in (0, 1):
            os.close(file)
        deadline = None
        while True:
            left = 1.0 if deadline is None else max(deadline - time.monotonic(), 0.0)
            ready, _, _ = select.select([end], [], [], min(left, 1.0))
            if not ready:
                if os.getppid() != parent:
                    os.write(2, CRASHED)
                    break
                if deadline is not None and time.monotonic() >= deadline:
                    _end(parent, "it was inside a step that takes no notice of signals")
                    break
                continue
            said = os.read(end, 1)
            if not said:  # a command that comes to its end ends this process first
                os.write(2, CRASHED)
                break
            if said == NOTICED:
                deadline = None
            elif said[0] in _SIGNALS and deadline is not None:
                _end(parent, "by a second signal")
                break
            elif said[0] in _SIGNALS:
                deadline = time.monotonic() + GRACE
    finally:
        os._exit(0)


def _end(parent: int, why: str) -> None:
    os.write(2, f"placet: stopped; {why}\n".encode())
    os.kill(parent, signal.SIGKILL)


def exit_code(came: list[int], code: int) -> int:
    """The exit code of a command that ended with ``code``: 128 + the signal that ended it."""
    return 128 + came[0] if came and code else code


def say_memory() -> None:
    """What to do when memory ran out."""
    from placet.cli.output import say

    space = limit_of_space()
    limit = "" if space is None else f" (this process may take {space / 2**20:,.0f} MiB)"
    say(
        f"placet: memory ran out{limit}; raise the limit, use fewer threads (PLACET_THREADS=1), or give a part of the "
        "data; placet.scan reads files larger than memory"
    )


def limit_of_space() -> int | None:
    """The bytes of addresses that this process may have (ulimit -v); None where there is no limit."""
    try:
        import resource
    except ImportError:  # a system without such limits
        return None
    soft = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def refuse_little_space() -> None:
    """Exit with words where the limit of addresses is too low to begin."""
    space = limit_of_space()
    if space is not None and space < LEAST_SPACE:
        os.write(
            2,
            f"placet: this process may take {space / 2**20:,.0f} MiB of addresses (ulimit -v); libraries and threads "
            f"reserve more without using it: allow {LEAST_SPACE / 2**20:,.0f} MiB, or limit the memory by a control "
            "group\n".encode(),
        )
        sys.exit(2)


def run(command: object) -> None:
    """Run a command of no arguments to its end, under the rules above; exits."""
    refuse_little_space()
    code = 0
    came: list[int] = []
    try:
        with stopping() as came:
            try:
                command()  # type: ignore[operator]
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
            except MemoryError:
                say_memory()
                code = 2
    except KeyboardInterrupt as stop:
        came, code = came or [getattr(stop, "number", signal.SIGINT)], 1
    if came:  # at once: threads may be at work that nobody waits for any more
        sys.stdout.flush()
        os._exit(exit_code(came, code))
    sys.exit(exit_code(came, code))
