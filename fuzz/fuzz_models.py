"""Mutated model files: ``placet.load`` must return a ranker or raise a DataError, quickly and within bounded memory.

    python fuzz/fuzz_models.py --mutations 100000                 (both modes, with files of every ranker created here)
    python fuzz/fuzz_models.py --files FOLDER --rows rows.npz --mutations 60 --sealed

A mutation flips, cuts, copies, swaps or overwrites bytes, numbers of the header or whole values of its JSON.  With
``--sealed`` the digest is recomputed, so that the code after its check is tested; with ``--as-is`` it is not, and no
changed file may load.  The files are loaded in a child process, which announces each mutation and is restarted only when
it dies: a signal, more than ten seconds of CPU, an exception other than DataError, or peak memory of more than 4 times
the file (or a megabyte, for small files) are failures, and the exit code is 1.  A ranker that could be loaded must also
score four rows, or say why not.  Linux only: times and memory come from the kernel, 0.6 ms per mutation in total.
"""

import argparse
import ctypes
import json
import multiprocessing as mp
import os
import random
import re
import resource
import signal
import struct
import sys
import tempfile
import tracemalloc
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

import placet
from placet.data import DataError
from placet.rank.saving import file_format

LONGEST = 10.0  # seconds of CPU
ASLEEP = 600.0  # wall-clock seconds, generous for a busy machine
SMALL = 1 << 20
M_MMAP_THRESHOLD = -3  # of malloc.h
SPARE = 1 << 28  # bytes of address space that a child may allocate in addition to those in use
INTERESTING = (0, 1, -1, 2, 255, 2**15, 2**31 - 1, -(2**31), 2**31, 2**53, 2**62, 2**63 - 1, -(2**63), 10**30)
VALUES = (
    None,
    True,
    -1,
    0,
    1.5,
    1e308,
    "",
    "x",
    [],
    {},
    [[]],
    {"$array": "0/x"},
    {"$ranker": 0},
    {"$tuple": [1]},
    {"$trees": {}},
)


NOT_NUMBERS = [struct.pack("<d", x) for x in (float("nan"), float("inf"), -float("inf"), 1e308, -0.0, 5e-324)]
KINDS = ("refused", "loaded and scored", "loaded", "loaded, and says why it cannot score", "BAD")


def mutate(data: bytes, rng: random.Random, changes: tuple | None = None) -> bytes:
    """Apply one to three random changes, by default of all kinds."""
    for _ in range(rng.randrange(1, 4)):
        data = rng.choice(changes or CHANGES)(data, rng)
    return data


def flip(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.randrange(1, 9) if data else 0):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def overwrite(data: bytes, rng: random.Random) -> bytes:
    """Overwrite one, four or eight consecutive bytes with an interesting integer, or eight with an extreme float."""
    at = rng.randrange(max(1, len(data) - 8))
    width = rng.choice((1, 4, 8))
    new = (rng.choice(INTERESTING) & (256**width - 1)).to_bytes(width, "little")
    if rng.random() < 0.3:
        new = rng.choice(NOT_NUMBERS)
    return data[:at] + new + data[at + len(new) :]


def cut(data: bytes, rng: random.Random) -> bytes:
    a, b = sorted((rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)))
    return data[:a] + data[b:]


def copy(data: bytes, rng: random.Random) -> bytes:
    a, b, to = (rng.randrange(len(data) + 1) for _ in range(3))
    a, b = min(a, b), min(max(a, b), min(a, b) + 64)
    return data[:to] + data[a:b] + data[to:]


def renumber(data: bytes, rng: random.Random) -> bytes:
    """Replace a number in the header."""
    found = list(re.finditer(rb"\d+", data[8 : 8 + _length(data)]))
    if not found:
        return data
    place = rng.choice(found)
    new = str(rng.choice(INTERESTING)).encode()
    return _with_header(data, data[8 : 8 + place.start()] + new + data[8 + place.end() : 8 + _length(data)])


def revalue(data: bytes, rng: random.Random) -> bytes:
    """Replace a value somewhere in the JSON of the rankers, or swap two."""
    try:
        outer = json.loads(data[8 : 8 + _length(data)])
        inner = json.loads(outer["__metadata__"]["placet"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return data
    places = []
    waiting = [inner]
    while waiting:
        value = waiting.pop()
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        places += [(value, key) for key in keys]
        waiting += [value[key] for key in keys if isinstance(value[key], dict | list)]
    if not places:
        return data
    where, key = rng.choice(places)
    if rng.random() < 0.3:
        from_where, from_key = rng.choice(places)
        where[key] = json.loads(json.dumps(from_where[from_key]))
    elif rng.random() < 0.2:
        del where[key]
    else:
        where[key] = rng.choice(VALUES)
    outer["__metadata__"]["placet"] = json.dumps(inner)
    return _with_header(data, json.dumps(outer).encode())


CHANGES = (flip, overwrite, overwrite, cut, copy, renumber, revalue, revalue, revalue)


def _length(data: bytes) -> int:
    return min(int.from_bytes(data[:8], "little"), max(len(data) - 8, 0))


def _with_header(data: bytes, header: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header + data[8 + _length(data) :]


def seal(data: bytes) -> bytes:
    try:
        return file_format.seal(data)
    except DataError:
        return data


def limit_memory(spare: int) -> None:
    """Allow this process ``spare`` bytes of address space in addition to those in use."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + spare,) * 2)


def start_timers(cpu: float, wall: float) -> None:
    """Let the operating system kill this process after so many seconds: no Python handler runs in compiled code."""
    for number, timer, seconds in (
        (signal.SIGPROF, signal.ITIMER_PROF, cpu),
        (signal.SIGALRM, signal.ITIMER_REAL, wall),
    ):
        signal.signal(number, signal.SIG_DFL)
        signal.setitimer(timer, seconds)


def work(data: bytes, rows: np.ndarray | None, seeds: range, sealed: bool, folder: Path, state) -> None:
    """In a child process, load one mutation after another, each announced in ``state`` (number, then counts of KINDS)."""
    warnings.simplefilter("ignore")
    path = folder / "mutated"
    path.write_bytes(data)
    try_predict(placet.load(path), rows)  # imports and compiles, which must not be counted below
    limit_memory(SPARE + 4 * len(data))
    libc = ctypes.CDLL(None)
    libc.mallopt(M_MMAP_THRESHOLD, SMALL // 4)  # freed memory is returned, so that a new allocation is visible
    peaks = os.open("/proc/self/clear_refs", os.O_WRONLY)
    file = os.open(path, os.O_WRONLY)
    for number in seeds:
        changed = mutate(data, random.Random(number))
        changed = seal(changed) if sealed else changed
        os.ftruncate(file, 0)
        os.pwrite(file, changed, 0)
        state[0] = number
        libc.malloc_trim(0)  # and so is memory that was freed before, which an allocation may take without growing
        start_timers(LONGEST, ASLEEP)
        os.write(peaks, b"5")  # resets the peak of resident memory
        kind = try_load(path, changed, rows, sealed or changed == data)
        if kind.startswith("BAD"):
            with open(folder / "bad", "a") as found:
                found.write(json.dumps([number, kind]) + "\n")
            kind = "BAD"
        state[1 + KINDS.index(kind)] += 1


def try_load(path: Path, changed: bytes, rows: np.ndarray | None, may_load: bool) -> str:
    """The outcome of a mutation, one of KINDS; BAD is followed by the reason."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ranker = None
    try:
        ranker = placet.load(path)
    except DataError:
        kind = "refused"
    except BaseException as error:
        return f"BAD load: {type(error).__name__}: {error!s:.200}"
    allowed = max(4 * len(changed), SMALL)
    if 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) > SMALL:  # then measure exactly
        peak = peak_memory(path)
        if peak > allowed:
            return f"BAD memory: {peak:,} bytes for a file of {len(changed):,}"
    if ranker is not None:
        kind = try_predict(ranker, rows) if may_load else "BAD load: its bytes are not those that were written"
    return kind


def peak_memory(path: Path) -> int:
    """The peak memory of a load, measured by tracemalloc."""
    tracemalloc.start()
    try:
        placet.load(path)
    except DataError:
        pass  # only its memory matters here
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak


def try_predict(ranker, rows: np.ndarray | None) -> str:
    if rows is None:
        return "loaded"
    try:
        with np.errstate(all="ignore"):
            ranker.predict(rows[:, : ranker.n_features_in_])
    except ValueError:  # includes DataError
        return "loaded, and says why it cannot score"
    except ImportError:
        return "loaded"
    except BaseException as error:
        return f"BAD predict: {type(error).__name__}: {error!s:.200}"
    return "loaded and scored"


def fuzz(data: bytes, rows: np.ndarray | None, n: int, sealed: bool) -> tuple[Counter, list]:
    """Counts of outcomes, and the failures (number of the mutation, reason)."""
    context = mp.get_context("fork")
    bad: list = []
    state = context.RawArray("q", 1 + len(KINDS))
    state[0] = -1
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as name:
        folder = Path(name)
        while state[0] + 1 < n:
            child = context.Process(target=work, args=(data, rows, range(state[0] + 1, n), sealed, folder, state))
            begun = state[0]
            child.start()
            child.join()
            if child.exitcode:
                if state[0] == begun:
                    raise RuntimeError(f"the child ended with {child.exitcode} before its first mutation")
                bad.append((state[0], f"BAD {ENDS.get(child.exitcode, f'exit code {child.exitcode}')}"))
                state[1 + KINDS.index("BAD")] += 1
        if (folder / "bad").exists():
            bad += [tuple(json.loads(line)) for line in (folder / "bad").read_text().splitlines()]
    counts = Counter({kind: count for kind, count in zip(KINDS, state[1:], strict=True) if count})
    return counts, sorted(bad)


ENDS = {
    -signal.SIGPROF: f"hang: more than {LONGEST:g} seconds of CPU",
    -signal.SIGALRM: f"hang: more than {ASLEEP:g} seconds",
}


def fuzz_file(keep: Path | None, path: Path, rows: np.ndarray | None, n: int, sealed: bool) -> dict:
    """Counts, failures and CPU seconds of at least ``n`` mutations of a file, read from the file ``keep`` or computed and added to it."""
    key = [path.name, "sealed" if sealed else "as is", n]
    lines = keep.read_text().splitlines() if keep and keep.exists() else []
    for line in lines:
        found = json.loads(line)
        if found["key"][:2] == key[:2] and found["key"][2] >= n:
            return found
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    counts, bad = fuzz(path.read_bytes(), rows, n, sealed)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found = {"key": key, "counts": dict(counts), "bad": bad, "cpu": round(cpu, 1)}
    if keep:
        keep.parent.mkdir(parents=True, exist_ok=True)
        with open(keep, "a") as file:
            file.write(json.dumps(found) + "\n")
    return found


def models(folder: Path) -> dict[str, np.ndarray | None]:
    """A saved file of every ranker, and rows to score, from the test cases."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from ranker_cases import CASES, fit, rows

    found = {}
    for name in CASES:
        fit(name).save(folder / name)
        X = getattr(rows(name), "X", rows(name))[:4]
        found[name] = np.asarray(X.todense() if hasattr(X, "todense") else X)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutations", type=int, default=1000)
    parser.add_argument("--files", type=Path, help="folder with saved models; made here if not given")
    parser.add_argument("--rows", type=Path, help="npz with rows to score, by the name of the file")
    parser.add_argument("--sealed", action="store_true")
    parser.add_argument("--as-is", action="store_true")
    parser.add_argument("--only", help="names of models, separated by commas")
    parser.add_argument("--keep", type=Path, help="a file of results so far, which are not made again; added to")
    given = parser.parse_args()
    ways = [sealed for sealed, asked in ((False, given.as_is), (True, given.sealed)) if asked] or [False, True]
    all_bad = 0
    with tempfile.TemporaryDirectory() as own:
        folder = given.files or Path(own)
        tables = models(folder) if given.files is None else dict(np.load(given.rows)) if given.rows else {}
        for path in sorted(file for file in folder.iterdir() if file.is_file() and file.suffix != ".npz"):
            if given.only and path.name not in given.only.split(","):
                continue
            for sealed in ways:
                found = fuzz_file(given.keep, path, tables.get(path.name), given.mutations, sealed)
                all_bad += len(found["bad"])
                print(
                    f"{path.name:12} {'sealed' if sealed else 'as is':7} {sum(found['counts'].values()):7} {found['counts']}",
                    flush=True,
                )
                for number, what in found["bad"][:5]:
                    print(f"    mutation {number}: {what}", flush=True)
    sys.exit(1 if all_bad else 0)


if __name__ == "__main__":
    main()
