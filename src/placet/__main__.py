"""Entry point of the command ``placet`` and of ``python -m placet``."""

import atexit
import gc
import os
import signal
import sys
import threading

signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C during the imports below exits silently
gc.set_threshold(100_000, 20, 20)  # objects of imports stay: looking for garbage among them costs 0.1 s

from placet.cli import main as run_command  # noqa: E402


def main() -> None:
    """Run the command and end the process at once.

    Taking the interpreter down object by object takes a third of a second of CPU after Numba and Polars were imported,
    longer than a small fit.  It is done all the same where other threads or the pipe still have a say.
    """
    try:
        run_command()
        code: object = 0
    except SystemExit as stop:
        code = stop.code or 0
    if not isinstance(code, int) or threading.active_count() > 1:
        sys.exit(code)  # type: ignore[arg-type]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):  # a pipe that was closed: the interpreter knows what to do
        sys.exit(code)
    os._exit(code)


if __name__ == "__main__":
    main()
