"""What several files of tests need.

Hypothesis draws the same examples in every run, so that a commit passes or fails whoever tests it;
``PLACET_EXPLORE=1 make test`` draws new ones, and prints how to see a failure again.
"""

import os
import sys
from contextlib import nullcontext

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from placet.cli import main
from placet.cli.common import stopping

ANY_MACHINE = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("same", derandomize=True, **ANY_MACHINE)
settings.register_profile("explore", print_blob=True, **ANY_MACHINE)
EXPLORE = bool(os.environ.get("PLACET_EXPLORE"))
settings.load_profile("explore" if EXPLORE else "same")
if not EXPLORE and hasattr(providers, "_local_constants"):  # else examples depend on which modules are imported so far
    providers._get_local_constants = lambda: providers._local_constants


@pytest.fixture
def placet_command(monkeypatch, capsys):
    """``placet_command(*words, code=0)`` runs ``placet`` in this process, expects the exit code, and gives (stdout, stderr).

    Nothing watches it for signals: a fork of a process as large as this one takes a tenth of a second.
    """
    monkeypatch.setattr(stopping, "stopping", lambda: nullcontext([]))

    def command(*words, code=0):
        monkeypatch.setattr(sys, "argv", ["placet", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            main()
        out, err = capsys.readouterr()
        assert (stopped.value.code or 0) == code, err
        return out, err

    return command


@pytest.fixture
def answer(placet_command):
    """``answer(*words, code=0)``: what ``placet`` prints, or says on stderr where it is expected to fail."""
    return lambda *words, code=0: placet_command(*words, code=code)[code != 0]


@pytest.fixture(scope="module")
def chromium():
    """A browser for the tests of a file that have ``browser.needs_browser``."""
    from browser import launched

    with launched() as found:
        yield found
