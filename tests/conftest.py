"""What several files of tests need."""

import sys

import pytest

from placet.cli import main


@pytest.fixture
def placet_command(monkeypatch, capsys):
    """``placet_command(*words, code=0)`` runs ``placet`` in this process, expects the exit code, and gives (stdout, stderr)."""

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
