"""Ctrl-C and SIGTERM end a command within two seconds, whatever it is doing.

Python runs signal handlers between bytecode instructions, so a long step inside a kernel, a solver or LightGBM would
not notice a signal.  A small watcher process does: every signal is written to a pipe as soon as it arrives
(``signal.set_wakeup_fd``), and if the command does not handle it soon, or a second one arrives, the watcher kills the
command.  Files are first written under another name, so none is left incomplete.
"""

import os
import select
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from types import FrameType
from typing import Any

GRACE = 1.5
"""Seconds within which a command must handle a signal."""

LEAST_SPACE = 3 << 30
"""Bytes of address space (ulimit -v) below which libraries used by Placet may abort the process."""

CRASHED = (
    b"placet: the process ended without a word: it was killed, or a library failed; where memory is limited, that is "
    b"the usual cause: raise the limit, or give a part of the data\n"
)
AGAIN = 0.05
"""Seconds until a signal is sent again whose exception was dropped."""

NOTICED = b"\xff"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(KeyboardInterrupt):
    """A signal asked the command to end; fits that handle Ctrl-C keep the best model so far."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextmanager
def stopping() -> Iterator[list[int]]:
    """Context in which SIGINT and SIGTERM raise ``Stopped``; yields the list of signals received."""
    came: list[int] = []
    if not hasattr(os, "fork"):
        yield came
        return
    end, start = os.pipe()
    with warnings.catch_warnings():  # from Python 3.12 on, of threads beside a fork: this child only reads a pipe
        warnings.simplefilter("ignore", DeprecationWarning)
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

    def signal_again(dropped: "sys.UnraisableHookArgs") -> None:
        """Raise a ``Stopped`` again that was raised where Python drops exceptions, as in a callback of the compiler."""
        if isinstance(dropped.exc_value, Stopped) and not over:
            Timer(AGAIN, os.kill, (os.getpid(), dropped.exc_value.number)).start()
        else:
            hook(dropped)

    hook, sys.unraisablehook = sys.unraisablehook, signal_again
    handlers: dict[signal.Signals, Any] = {}
    try:
        for number in _SIGNALS:
            handlers[number] = signal.signal(number, notice)
        yield came
    finally:
        over = True  # signals from now on find the work done and must not interrupt the cleanup
        sys.unraisablehook = hook
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(before)
        os.kill(watcher, signal.SIGKILL)  # before closing the pipe, which would look like a crash
        os.waitpid(watcher, 0)
        os.close(start)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


def _watch(end: int, parent: int) -> None:
    """Body of the watcher process; never returns."""
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
            if not said:  # a crash: a command that ends normally kills this process first
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
    """Print advice on what to do when memory ran out."""
    from placet.cli.common.console_output import say

    space = limit_of_space()
    limit = "" if space is None else f" (this process may take {space / 2**20:,.0f} MiB)"
    say(
        f"placet: memory ran out{limit}; raise the limit, use fewer threads (PLACET_THREADS=1), or give a part of the "
        "data; placet.scan reads files larger than memory"
    )


def limit_of_space() -> int | None:
    """The limit on the address space of this process in bytes (ulimit -v); None if there is no limit."""
    try:
        import resource
    except ImportError:  # a system without such limits
        return None
    soft = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def refuse_little_space() -> None:
    """Exit with a message if the limit on the address space is too low to start."""
    space = limit_of_space()
    if space is not None and space < LEAST_SPACE:
        os.write(
            2,
            f"placet: this process may take {space / 2**20:,.0f} MiB of addresses (ulimit -v); libraries and threads "
            f"reserve more without using it: allow {LEAST_SPACE / 2**20:,.0f} MiB, or limit the memory by a control "
            "group\n".encode(),
        )
        sys.exit(2)


def comes_of_stop(error: BaseException | None) -> bool:
    """Whether a signal is behind an error, as where an extension could not be imported because it was interrupted."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, Stopped):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def run(command: object) -> None:
    """Run a command without arguments under the rules above, then exit."""
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
            except Exception as error:
                if not comes_of_stop(error):
                    raise
                code = 1
    except KeyboardInterrupt as stop:
        came, code = came or [getattr(stop, "number", signal.SIGINT)], 1
    if came:  # immediately, without waiting for threads that may still be running
        sys.stdout.flush()
        os._exit(exit_code(came, code))
    sys.exit(exit_code(came, code))
