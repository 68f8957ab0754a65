"""What takes longer than two seconds shows that it goes on, at a terminal; the bar is gone when the result is there."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

from placet import simulate
from placet.io import write

ENDED = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Terminal:
    """A command at a terminal of its own, whose standard input is a pipe of ours."""

    def __init__(self, words, folder):
        self.screen, theirs = pty.openpty()
        env = os.environ | {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40", "PYTHONIOENCODING": "utf-8"}
        words = [sys.executable, "-m", "placet", *words]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=theirs, stderr=theirs, cwd=folder, env=env)
        os.close(theirs)
        self.text = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        os.close(self.screen)

    def until(self, pattern, seconds=120):
        """Read on until the pattern is on the screen, or the command has ended; gives the text so far."""
        end = time.monotonic() + seconds
        while not re.search(pattern, self.text) and time.monotonic() < end:
            if select.select([self.screen], [], [], 0.2)[0]:
                try:
                    part = os.read(self.screen, 65536)
                except OSError:
                    break
                self.text += ENDED.sub("", part.decode(errors="replace"))
        return self.text


def votes_of(folder):
    write(simulate.battles([1.0, 0.0, -1.0], 60, items=["ant", "bee", "cat"], random_state=0), folder / "votes.csv")
    return (folder / "votes.csv").read_bytes()


def test_a_file_that_is_long_in_coming_shows_a_bar(tmp_path):
    begun = time.monotonic()
    with Terminal(["aggregate", "-"], tmp_path) as terminal:
        text = terminal.until(r"reading .*0:00:0\d")
        assert re.search(r"reading .*━.* 0:00:0\d", text), text
        assert time.monotonic() - begun > 2
        terminal.process.stdin.write(votes_of(tmp_path))
        terminal.process.stdin.close()
        text = terminal.until(r"support[\s\S]*ant[\s\S]*cat.*\n")
        assert "rank  could be  tier  item" in text, text
        assert terminal.process.wait(60) == 0


def test_a_long_fit_counts_its_rounds_and_can_be_ended(tmp_path):
    votes_of(tmp_path)
    with Terminal(["aggregate", "votes.csv", "--bootstrap", "100000"], tmp_path) as terminal:
        text = terminal.until(r"bradley-terry .* \d+/100001 ")
        assert re.search(r"bradley-terry on 3 items: about \d+ (?:seconds|minutes)", text), text
        assert re.search(r"bradley-terry .*━.* [1-9]\d*/100001 0:0", text), text
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.process.wait(60) != 0
