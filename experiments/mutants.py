"""Checks of the checks: every break of `experiments/breaks` is put in place, and the quick form of its script must fail.

    python -m experiments.mutants                     # all of them, each in a process of its own
    python -m experiments.mutants --quick             # one part of them, chosen by the content of the commit
    python -m experiments.mutants --part 3/24         # this part
    python -m experiments.mutants --only pmop.table1  # those of a script, or by a part of their name

A mutant is caught if its script ends with 1 because a quantity is out of its bounds.  A script that passes, or that raises
an error in place of a verdict, is a failure here; so is a break of something that does not exist.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

from experiments import common
from experiments.breaks import BREAKS
from experiments.breaks.mutant import Mutant, put

PARTS = 24
CAUGHT, SURVIVED, RAISED, SKIPPED = 0, 3, 4, 5
WORDS = {CAUGHT: "caught", SURVIVED: "SURVIVED", RAISED: "RAISED", SKIPPED: "skipped"}


def title(mutant: Mutant) -> str:
    return f"{mutant.script}: {mutant.name}"


def run_here(mutant: Mutant, scratch: Path) -> int:
    """Break, run the quick form with its output in ``scratch``, and say how it ended."""

    def folder(path: Path) -> Path:
        made = scratch / path.stem
        made.mkdir(exist_ok=True)
        return made

    common.output_folder = folder  # before the script imports it
    script = import_module(f"experiments.{mutant.script}")
    put(mutant)
    sys.argv = [str(script.__file__), "--quick"]
    try:
        script.main()
    except SystemExit as end:
        return CAUGHT if end.code == 1 else SKIPPED
    except Exception:
        traceback.print_exc()
        return RAISED
    return SURVIVED


def missed(scratch: Path) -> list[str]:
    """Quantities that were out of bounds."""
    found = []
    for path in scratch.glob("*/ours.csv"):
        with open(path, newline="") as file:
            found += [f"{row['quantity']} = {row['ours']}" for row in csv.DictReader(file) if row["verdict"].isupper()]
    return found


def run(mutant: Mutant) -> tuple[int, str]:
    """The same in a process of its own; the verdict, and what explains it."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "experiments.mutants", "--one", title(mutant), scratch]
        done = subprocess.run(command, cwd=common.ROOT, capture_output=True, text=True)
        misses = missed(Path(scratch))
    code = done.returncode if done.returncode in WORDS else RAISED
    if code == CAUGHT and not misses:
        code = RAISED
    why = f"{len(misses)} missed: {misses[0]}" if code == CAUGHT else "" if code == SURVIVED else _end(done)
    print(f"{WORDS[code]:8s}  {title(mutant)}  ({why})", flush=True)
    return code, why


def _end(done: subprocess.CompletedProcess) -> str:
    """The last line that the process printed."""
    lines = (done.stderr if done.returncode != SKIPPED else done.stdout).strip().splitlines()
    return lines[-1] if lines else f"exit status {done.returncode}"


def part_of_commit() -> int:
    """A number that follows from the content of the commit, 0 where there is none."""
    command = ["git", "rev-parse", "HEAD^{tree}"]
    try:
        done = subprocess.run(command, cwd=common.ROOT, capture_output=True, text=True)
    except OSError:
        return 0
    return int(done.stdout, 16) % PARTS if done.returncode == 0 else 0


def chosen(args: argparse.Namespace) -> list[Mutant]:
    """The mutants asked for; a part has every n-th, so that it goes through all folders."""
    found = [m for m in BREAKS if not args.only or any(word in title(m) for word in args.only)]
    if args.quick or args.part:
        k, n = map(int, args.part.split("/")) if args.part else (part_of_commit(), PARTS)
        print(f"part {k}/{n}: python -m experiments.mutants --part {k}/{n} runs it again")
        found = found[k % n :: n]
    return found


def main(argv: Sequence[str] | None = None) -> None:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--quick", action="store_true", help=f"one of {PARTS} parts, by the content of the commit")
    made.add_argument("--part", metavar="K/N", help="every N-th mutant from the K-th on, K from 0")
    made.add_argument("--only", nargs="+", metavar="WORD", help="those whose script or name contains one of these")
    made.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="processes at a time")
    made.add_argument("--one", nargs=2, metavar=("TITLE", "FOLDER"), help=argparse.SUPPRESS)
    args = made.parse_args(argv)
    if args.one:
        name, scratch = args.one
        raise SystemExit(run_here(next(m for m in BREAKS if title(m) == name), Path(scratch)))
    todo = chosen(args)
    if not todo:
        made.error("no such mutants")
    with ThreadPoolExecutor(args.jobs) as pool:
        codes = [code for code, _ in pool.map(run, todo)]
    print(f"{len(todo)} mutants of {len(BREAKS)}: " + ", ".join(f"{codes.count(c)} {w}" for c, w in WORDS.items()))
    if codes.count(SURVIVED) or codes.count(RAISED):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
