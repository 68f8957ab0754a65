"""Run the commands that the documentation shows, as at a terminal of 80 columns: python tools/shown_commands.py [PAGE ...].

A ``console`` block has lines ``$ placet ...``, each with what it prints below it (what it says on the standard error, if it prints nothing else), or nothing.  The commands of a page run one after the
other in a copy of docs/files.  Shown output that differs is replaced by what was printed; three dots stand for any text.
"""

import doctest
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COLOR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Shown(NamedTuple):
    """A command of a page, where its output begins and ends in the text of the page, and that output."""

    command: str
    start: int
    end: int
    output: str

    def is_printed_by(self, text: str) -> bool:
        return doctest.OutputChecker().check_output(self.output, text, doctest.ELLIPSIS)


def shown_commands(text: str) -> Iterator[Shown]:
    """The commands ``placet`` of a page; a backslash continues a line."""
    for block in _BLOCK.finditer(text):
        for one in re.finditer(r"^\$ (placet (?:\\\n|.)*)\n((?:(?!\$ ).*\n)*)", block[1], re.MULTILINE):
            yield Shown(one[1].replace("\\\n", " "), block.start(1) + one.start(2), block.start(1) + one.end(2), one[2])


class Printed(NamedTuple):
    """What a command printed, what it said besides, and its exit code."""

    output: str
    notes: str
    code: int


def run(pages: list[list[str]]) -> list[list[Printed]]:
    """What the commands of each page print; all run in one process, each page in a folder of its own."""
    known = {**os.environ, "COLUMNS": "80", "LINES": "40", "TERM": "xterm", "PYTHONIOENCODING": "utf-8"}
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder, "asked.json"), Path(folder, "answered.json")
        asked.write_text(json.dumps(pages))
        subprocess.run([sys.executable, __file__, "--child", asked, answered], check=True, env=known)
        return [[Printed(*one) for one in page] for page in json.loads(answered.read_text())]


def _child(asked: str, answered: str) -> None:
    """Nothing watches these commands for signals: that would fork this process, which is large, at each of them."""
    import pty

    from placet.cli.common import stopping

    stopping.stopping = lambda: nullcontext([])
    pages = json.loads(Path(asked).read_text())
    ours, theirs = pty.openpty()
    os.dup2(theirs, 1)
    answers = []
    for commands in pages:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(ROOT / "docs" / "files", folder, dirs_exist_ok=True)
            os.chdir(folder)
            answers.append([_run_one(command, ours) for command in commands])
            os.chdir("/")
    Path(answered).write_text(json.dumps(answers))


def _run_one(command: str, ours: int) -> tuple[str, str, int]:
    from placet.cli import main

    parts: list[bytes] = []
    end = b"\x00end\x00"

    def listen() -> None:
        while not b"".join(parts[-2:]).endswith(end):
            parts.append(os.read(ours, 65536))

    listener = threading.Thread(target=listen)
    listener.start()
    code = 0
    with tempfile.TemporaryFile() as notes:
        kept = os.dup(2)
        os.dup2(notes.fileno(), 2)
        sys.argv = shlex.split(command, comments=True)
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
        notes.seek(0)
        said = notes.read().decode()
    os.write(1, end)
    listener.join()
    text = b"".join(parts).removesuffix(end).decode()
    return _plain(text) or _plain(said), said, code


def _plain(text: str) -> str:
    """Without colors and trailing blanks."""
    lines = [line.rstrip() for line in _COLOR.sub("", text).replace("\r\n", "\n").split("\n")]
    return "\n".join(lines).strip("\n") + "\n" if any(lines) else ""


def main(pages: list[Path]) -> None:
    texts = [page.read_text() for page in pages]
    shown = [list(shown_commands(text)) for text in texts]
    printed = run([[one.command for one in page] for page in shown])
    for path, text, commands, answers in zip(pages, texts, shown, printed):
        for one, answer in reversed(list(zip(commands, answers))):
            if answer.code:
                print(f"{path}: {one.command}: exit code {answer.code}: {answer.notes}")
            elif one.output and not one.is_printed_by(answer.output):
                print(f"{path}: {one.command}")
                text = text[: one.start] + answer.output + text[one.end :]
        path.write_text(text)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        _child(*sys.argv[2:])
    else:
        main([Path(one) for one in sys.argv[1:]] or PAGES)
