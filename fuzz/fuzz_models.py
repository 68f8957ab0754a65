"""Mutated model files: ``placet.load`` must give a ranker or a DataError, quickly and within bounded memory.

    python fuzz/fuzz_models.py --mutations 100000                 (both ways, files of every ranker made here)
    python fuzz/fuzz_models.py --files FOLDER --rows rows.npz --mutations 60 --sealed

A mutation flips, cuts, copies, swaps or overwrites bytes, numbers of the header or whole values of its JSON.  With
``--sealed`` the digest is computed again, so that what stands behind it is met; with ``--as-is`` it is not.  The files
are loaded in a child, which says which mutation it has begun: a signal, a hang of more than ten seconds, another
exception than DataError, or a peak of memory of more than 4 times the file (and a megabyte, which small files take) are
failures, and the exit code is 1.  A ranker that could be loaded must also score four rows, or say why not.
"""

import argparse
import json
import multiprocessing as mp
import re
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

import placet
from placet.data import DataError
from placet.rank import container

LONGEST = 10.0  # seconds
SMALL = 1 << 20
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


def mutate(data: bytes, rng: np.random.Generator) -> bytes:
    """One to three changes."""
    for _ in range(rng.integers(1, 4)):
        data = CHANGES[rng.integers(len(CHANGES))](data, rng)
    return data


def flip(data: bytes, rng: np.random.Generator) -> bytes:
    out = bytearray(data)
    for _ in range(rng.integers(1, 9)):
        out[rng.integers(len(out))] ^= 1 << int(rng.integers(8))
    return bytes(out)


def overwrite(data: bytes, rng: np.random.Generator) -> bytes:
    """Eight, four or one bytes in a row by an interesting number, or by a float that is no number."""
    at = int(rng.integers(max(1, len(data) - 8)))
    number = INTERESTING[rng.integers(len(INTERESTING))]
    width = int(rng.choice([1, 4, 8]))
    new = (number & (256**width - 1)).to_bytes(width, "little")
    if rng.random() < 0.3:
        new = np.array(rng.choice([np.nan, np.inf, -np.inf, 1e308, -0.0, 5e-324])).tobytes()
    return data[:at] + new + data[at + len(new) :]


def cut(data: bytes, rng: np.random.Generator) -> bytes:
    a, b = np.sort(rng.integers(len(data) + 1, size=2))
    return data[:a] + data[b:]


def copy(data: bytes, rng: np.random.Generator) -> bytes:
    a, b, to = rng.integers(len(data) + 1, size=3)
    a, b = min(a, b), min(max(a, b), min(a, b) + 64)
    return data[:to] + data[a:b] + data[to:]


def renumber(data: bytes, rng: np.random.Generator) -> bytes:
    """Another number in the header."""
    found = list(re.finditer(rb"\d+", data[8 : 8 + _length(data)]))
    if not found:
        return data
    place = found[rng.integers(len(found))]
    new = str(INTERESTING[rng.integers(len(INTERESTING))]).encode()
    return _with_header(data, data[8 : 8 + place.start()] + new + data[8 + place.end() : 8 + _length(data)])


def revalue(data: bytes, rng: np.random.Generator) -> bytes:
    """Another value somewhere in the JSON of the rankers, or two of them swapped."""
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
    where, key = places[rng.integers(len(places))]
    if rng.random() < 0.3:
        from_where, from_key = places[rng.integers(len(places))]
        where[key] = json.loads(json.dumps(from_where[from_key]))
    elif rng.random() < 0.2:
        del where[key]
    else:
        where[key] = VALUES[rng.integers(len(VALUES))]
    outer["__metadata__"]["placet"] = json.dumps(inner)
    return _with_header(data, json.dumps(outer).encode())


CHANGES = (flip, overwrite, overwrite, cut, copy, renumber, revalue, revalue, revalue)


def _length(data: bytes) -> int:
    return min(int.from_bytes(data[:8], "little"), max(len(data) - 8, 0))


def _with_header(data: bytes, header: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header + data[8 + _length(data) :]


def seal(data: bytes) -> bytes:
    try:
        return container.sealed(data)
    except DataError:
        return data


def work(data: bytes, rows: np.ndarray | None, seeds: range, sealed: bool, folder: str, begun, out) -> None:
    """In a child: mutation after mutation, each announced before it is loaded."""
    warnings.simplefilter("ignore")
    path = Path(folder) / "mutated"
    counts: Counter[str] = Counter()
    path.write_bytes(data)
    scored(placet.load(path), rows)  # imports and compiles, which is not to be counted below
    tracemalloc.start()
    for number in seeds:
        rng = np.random.default_rng(number)
        changed = mutate(data, rng)
        changed = seal(changed) if sealed else changed
        path.write_bytes(changed)
        with begun.get_lock():
            begun[0], begun[1] = number, time.monotonic()
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        try:
            ranker = placet.load(path)
        except DataError:
            kind = "refused"
        except BaseException as error:
            kind = f"BAD load: {type(error).__name__}: {error!s:.200}"
        else:
            kind = scored(ranker, rows)
        peak = tracemalloc.get_traced_memory()[1] - before
        if kind == "refused" and peak > max(4 * len(changed), SMALL):
            kind = f"BAD memory: {peak:,} bytes for a file of {len(changed):,}"
        if kind.startswith("BAD"):
            out.put((number, kind))
            kind = "BAD"
        counts[kind] += 1
    out.put(dict(counts))


def scored(ranker, rows: np.ndarray | None) -> str:
    if rows is None:
        return "loaded"
    try:
        with np.errstate(all="ignore"):
            ranker.predict(rows[:, : ranker.n_features_in_])
    except ValueError:  # DataError among them
        return "loaded, and says why it cannot score"
    except ImportError:
        return "loaded"
    except BaseException as error:
        return f"BAD predict: {type(error).__name__}: {error!s:.200}"
    return "loaded and scored"


def fuzz(data: bytes, rows: np.ndarray | None, n: int, sealed: bool) -> tuple[Counter, list]:
    """Counts of what happened, and what should not have."""
    context = mp.get_context("fork")
    counts: Counter[str] = Counter()
    bad: list = []
    start = 0
    with tempfile.TemporaryDirectory() as folder:
        while start < n:
            begun, out = context.Array("d", [start, time.monotonic()]), context.Queue()
            child = context.Process(target=work, args=(data, rows, range(start, n), sealed, folder, begun, out))
            child.start()
            finished = False
            while not finished:
                try:
                    found = out.get(timeout=0.5)
                except Exception:  # queue.Empty: nothing new
                    found = None
                if isinstance(found, dict):
                    counts.update(found)
                    finished = True
                elif found is not None:
                    bad.append(found)
                elif not child.is_alive() or time.monotonic() - begun[1] > LONGEST:
                    bad.append((int(begun[0]), f"BAD {'hang' if child.is_alive() else f'exit code {child.exitcode}'}"))
                    child.kill()
                    counts["BAD"] += 1
                    break
            child.join()
            if finished:
                break
            start = int(begun[0]) + 1
    return counts, bad


def models(folder: Path) -> dict[str, np.ndarray | None]:
    """A saved file of every ranker, and rows to score, by the cases of the tests."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from test_rank_every import CASES, fit, rows

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
                counts, bad = fuzz(path.read_bytes(), tables.get(path.name), given.mutations, sealed)
                all_bad += len(bad)
                print(
                    f"{path.name:12} {'sealed' if sealed else 'as is':7} {sum(counts.values()):7} {dict(counts)}",
                    flush=True,
                )
                for number, what in bad[:5]:
                    print(f"    mutation {number}: {what}", flush=True)
    sys.exit(1 if all_bad else 0)


if __name__ == "__main__":
    main()
