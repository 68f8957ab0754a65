"""Entry point of the command ``placet`` and of ``python -m placet``."""

import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C during the imports below exits silently

from placet.cli import main  # noqa: E402

if __name__ == "__main__":
    main()
