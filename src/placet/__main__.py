"""``placet`` and ``python -m placet``: the command."""

import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C among the imports below ends it without a word

from placet.cli import main  # noqa: E402

if __name__ == "__main__":
    main()
