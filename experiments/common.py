"""Code shared by all experiments: data, folds, arguments, the layout of expected values, and the final check.

    python -m experiments.<paper>.<script> [--quick] [--seed N] [--set NAME_OR_PATH ...]       # from the project's root

An experiment computes named quantities and passes them to `check` together with the file of their expected values.  Each
script has two such files: ``expected_<script>.csv``, and ``expected_<script>_quick.csv`` for ``--quick``, which simulates
its data and takes seconds.  Outputs go to ``<script>/`` and ``<script>_quick/``, which git ignores.
"""

import argparse
import csv
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

import placet
from placet.data import Queries
from placet.io.sparse.relations import RELATIONS
from placet.metrics import compare

ROOT = Path(__file__).resolve().parents[1]
LAYOUT = ("quantity", "paper", "low", "high", "source of the bound")


# Arguments, data, and skipping if data are missing


def parser(
    about: str | None, *, sets: Sequence[str] = (), draws: bool = True, cells: bool = False
) -> argparse.ArgumentParser:
    """A parser of the common arguments.

    ``--quick``; ``--seed`` if something is random; ``--set`` if sets are read; ``--only`` if it has cells.
    """
    made = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--quick", action="store_true", help="simulated data and small sizes: seconds")
    if draws:
        made.add_argument("--seed", type=int, default=0, help="the first seed of whatever is drawn")
    if sets:
        names = ", ".join(sets)
        made.add_argument("--set", nargs="+", default=list(sets), metavar="SET", help=f"of {names}, or a path")
    if cells:
        made.add_argument(
            "--only", nargs="+", default=[], metavar="WORD", help="cells whose name has all of these words"
        )
    return made


def data_folder(inside: str) -> Path | None:
    """The path ``inside`` the folder $PLACET_DATA, or else ../shared/data; None if it exists in neither."""
    places = [os.environ.get("PLACET_DATA"), ROOT.parent / "shared" / "data"]
    found = (Path(place) / inside for place in places if place)
    return next((folder for folder in found if folder.exists()), None)


def skip(why: str) -> NoReturn:
    """Exit without a verdict, and say so.  This is the only way to exit with code 0 without a check."""
    print(f"SKIPPED, nothing was checked: {why}")
    raise SystemExit(0)


def need_data(inside: str) -> Path:
    """The folder of the data; skips the experiment if it does not exist."""
    folder = data_folder(inside)
    if folder is None:
        skip(f"no {inside} in the folder that PLACET_DATA names, nor in ../shared/data; --quick needs none")
    return folder


def need(*modules: str) -> None:
    """Skip the experiment if an optional library is not installed."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        skip(f"{', '.join(missing)} not installed")


# LETOR sets in five folds

LETOR_SETS = {"OHSUMED": "letor3/OHSUMED", "MQ2008": "letor4/MQ2008"}


def rotation(n: int = 5) -> list[tuple[list[int], int, int]]:
    """Training, validation and test parts of the first ``n`` of LETOR's five folds; parts are counted from 0."""
    return [([(f + j) % 5 for j in range(3)], (f + 3) % 5, (f + 4) % 5) for f in range(n)]


def set_names(asked: Sequence[str]) -> list[str]:
    """The names used in quantities for sets given by name or path: the last component of the path."""
    return [Path(name).name for name in asked]


def letor_folder(name: str, known: Mapping[str, str]) -> Path:
    """The folder with S1 to S5 of a set, given by a name in ``known`` or by its path."""
    if Path(name).is_dir():
        return Path(name)
    if name not in known:
        raise SystemExit(f"--set {name} is neither a folder nor one of {', '.join(known)}; give a folder with S1 to S5")
    return need_data(known[name])


def letor_files(folder: Path) -> list[Path]:
    """S1 to S5, plain or compressed."""
    found = [sorted(folder.glob(f"S{k}.txt*")) for k in range(1, 6)]
    if not all(found):
        raise SystemExit(f"{folder} must hold S1.txt to S5.txt (or .xz, .gz, .zst)")
    return [files[0] for files in found]


def letor_parts(name: str) -> list[Queries]:
    """S1 to S5 of OHSUMED, MQ2008 or the folder of another set, with the relations whose files are in the folder."""
    folder = letor_folder(name, LETOR_SETS)
    return [placet.read_letor(path, relations=relation_files(folder) or None) for path in letor_files(folder)]


def relation_files(folder: Path) -> dict[str, Path]:
    """similarity.txt, links.txt and sitemap.txt, plain or compressed, if they are in the folder."""
    found = {name: sorted(folder.glob(f"{name}.txt*")) for name in RELATIONS}
    return {name: files[0] for name, files in found.items() if files}


def simulated_parts(queries: int = 20, seed: int = 0) -> list[Queries]:
    """Five parts of queries with 10 to 30 rows, ten features and three grades, from a noisy linear model.

    The true weights alternate in sign, so that neither random nor equal initial weights rank well.
    """
    w = np.tile([1.0, -1.0], 5) / 3
    whole = placet.simulate.queries(5 * queries, (10, 30), 10, 3, w=w, random_state=seed)
    return [whole[k * queries : (k + 1) * queries] for k in range(5)]


def clustered_parts(queries: int = 20, seed: int = 0) -> list[Queries]:
    """Five parts of queries with 10 to 20 rows whose value lies in the whole list.

    Every row stands at a corner of a cube, and the third of a list that stands at one and the same corner is better.  The
    corner is another in each list, so that a score of the row alone sees only six other features.  Scales are from 0.1 to 10.
    """
    rng = np.random.default_rng(seed)
    size = rng.integers(10, 21, 5 * queries)
    of_row = np.repeat(np.arange(len(size)), size)
    together = rng.random(len(of_row)) < 1 / 3
    shared, own = (rng.choice([-1.0, 1.0], (n, 8)) for n in (len(size), len(of_row)))
    corner = np.where(together[:, None], shared[of_row], own) + 0.3 * rng.normal(size=own.shape)
    plain = rng.normal(size=(len(of_row), 6))
    latent = plain @ np.tile([0.5, -0.5], 3) + 2.5 * together + 0.3 * rng.normal(size=len(plain))
    grade = np.searchsorted(np.quantile(latent, [0.6, 0.85]), latent).astype(float)
    X = np.column_stack([plain, corner]) * np.logspace(-1, 1, 14)[rng.permutation(14)]
    whole = Queries(X, grade, np.append(0, np.cumsum(size)))
    return [whole[k * queries : (k + 1) * queries] for k in range(5)]


def letor_folds(parts: Sequence[Queries], n: int = 5) -> Iterator[tuple[Queries, Queries, Queries]]:
    """(training, validation, test) queries of the first ``n`` folds."""
    for train, valid, test in rotation(n):
        yield placet.concat([parts[k] for k in train]), parts[valid], parts[test]


def stacked(per_fold: Sequence[Mapping[Any, np.ndarray]]) -> dict[Any, np.ndarray]:
    """Values of the test queries of all folds, concatenated for each key."""
    return {key: np.concatenate([fold[key] for fold in per_fold]) for key in per_fold[0]}


# Time, and differences with an interval


class Timer:
    """``with Timer() as spent: ...``, then ``spent.seconds`` is wall time and ``spent.cpu`` CPU time of all threads."""

    seconds = cpu = math.nan

    def __enter__(self) -> "Timer":
        self._start = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds, self.cpu = time.perf_counter() - self._start[0], time.process_time() - self._start[1]


def times(run: Callable[[], object], repeat: int) -> list[Timer]:
    """Times of each of ``repeat`` calls, after a warm-up call."""
    run()
    found = []
    for _ in range(repeat):
        with Timer() as spent:
            run()
        found.append(spent)
    return found


def least_cpu(run: Callable[[], object], repeat: int) -> float:
    """CPU seconds of the fastest of ``repeat`` calls, which is the least affected by other load."""
    return min(spent.cpu for spent in times(run, repeat))


class Difference(NamedTuple):
    """Mean of a - b over pairs, its 95 % interval, and the p-value of a sign-flip test."""

    mean: float
    low: float
    high: float
    p_value: float

    def __str__(self) -> str:
        return f"{self.mean:+.4f} [{self.low:+.4f}, {self.high:+.4f}] p {self.p_value:.3f}"


FEW_PAIRS = 30


def paired(a: Sequence[float] | np.ndarray, b: Sequence[float] | np.ndarray) -> Difference:
    """Mean of a - b over the pairs in which neither is NaN (queries, or seeds), with its 95 % interval.

    The interval is a bootstrap over pairs (`placet.metrics.compare`) or, below 30 pairs, where that is too narrow, Student's t.
    """
    found = compare(a, b)
    low, high = found.low, found.high
    gap = np.asarray(a, float) - np.asarray(b, float)
    gap = gap[~np.isnan(gap)]
    if len(gap) < FEW_PAIRS:
        from scipy.stats import t as student

        spread = gap.std(ddof=1) if len(gap) > 1 else math.inf
        half = student.ppf(0.975, max(len(gap) - 1, 1)) * spread / math.sqrt(len(gap))
        low, high = found.difference - half, found.difference + half
    return Difference(found.difference, low, high, found.p_value)


# Expected values, and the check


LONGEST_CELL = 90


class Bound(NamedTuple):
    """One row of an expected file: ``paper`` is a number or a quotation from the paper, "" if it has none."""

    quantity: str
    paper: str
    low: float
    high: float
    source: str


def expected(script: str, kind: str = "") -> Path:
    """The expected file next to ``script`` (its ``__file__``) for a kind of run: "" for the full one, "quick", or a set's name."""
    path = Path(script)
    return path.with_name("_".join(filter(None, ("expected", path.stem, kind))) + ".csv")


def output_folder(path: Path) -> Path:
    """The output folder of a run with this expected file; created if it does not exist."""
    folder = path.with_name(path.stem.removeprefix("expected_"))
    folder.mkdir(exist_ok=True)
    return folder


def read_expected(path: Path) -> list[Bound]:
    """Rows of an expected file: ``quantity, paper, low, high, source of the bound``.

    An empty ``low`` or ``high`` means no bound on that side.  If both are empty, the source says "none: why".  A file
    without any bound, duplicate quantities, and bounds without a source are errors.
    """
    with open(path, newline="") as file:
        header, *lines = csv.reader(file)
    if tuple(header) != LAYOUT:
        raise ValueError(f"{path}: the header is {header}; it must be {list(LAYOUT)}")
    rows: list[Bound] = []
    for number, line in enumerate(lines, start=2):
        if len(line) != len(LAYOUT) or not line[0] or not line[4]:
            raise ValueError(f"{path}:{number}: {line}; five columns, with a quantity and the source of its bound")
        quantity, paper, low, high, source = line
        row = Bound(quantity, paper, float(low or -math.inf), float(high or math.inf), source)
        if not row.low <= row.high:
            raise ValueError(f"{path}:{number}: low is {low} and high {high}; low must not be above high")
        if (low == high == "") != source.startswith("none: "):
            raise ValueError(f"{path}:{number}: {source!r}; without bounds, and only then, the source is 'none: why'")
        if quantity in {other.quantity for other in rows}:
            raise ValueError(f"{path}:{number}: {quantity!r} stands twice")
        rows.append(row)
    if not any(map(bounded, rows)):
        raise ValueError(f"{path}: none of {len(rows)} rows has a bound, so nothing would be compared")
    return rows


def bounded(row: Bound) -> bool:
    return math.isfinite(row.low) or math.isfinite(row.high)


def check(ours: Mapping[str, float], path: Path, sets: Sequence[str] | None = None, part: bool = False) -> None:
    """Write ours.csv, print our values next to the expected ones, and exit with 1 on a failure.

    Failures are a value that is NaN or outside its bounds; an expected quantity that is missing, for example because a
    method disappeared; an unexpected quantity, which would go unchecked; and a run in which nothing was compared.
    ``sets`` are the data sets that were run, if quantities begin with "set, ": rows of other sets are not expected.
    Of a ``part`` of the cells no row is expected that it has not.
    """
    rows = read_expected(path)
    if part:
        rows = [row for row in rows if row.quantity in ours]
    if sets is not None:
        rows = [row for row in rows if row.quantity.split(", ")[0] in sets]
    _conclude(rows, ours, path)


def check_first(ours: Mapping[str, float], path: Path) -> None:
    """End at once with ``check`` if one of these, which take little time, is out of its bounds; the others will follow.

    Whether a method is what it says is asked before its run: if not, the run would be in vain.
    """
    rows = [row for row in read_expected(path) if row.quantity in ours]
    if len(rows) < len(ours) or any(_verdict(row, ours, True) not in ("ok", "") for row in rows):
        _conclude(rows, ours, path)


def check_sets(ours: Mapping[str, float], path: Path, names: Sequence[str]) -> None:
    """``check`` for quantities that begin with "set, "; sets without any row are reported as unchecked.

    If no set that was run has a row, end with ``skip``; the values are in the tables of the run.
    """
    known = {row.quantity.split(", ")[0] for row in read_expected(path)}
    run = [name for name in names if name in known]
    for name in names:
        if name not in known:
            print(f"{name}: no bounds in {path.name}, so nothing is checked for it")
    if not run:
        skip(f"{path.name} has no bounds for {', '.join(names)}; the values are in {output_folder(path)}")
    check({key: value for key, value in ours.items() if key.split(", ")[0] in run}, path, run)


def _conclude(rows: list[Bound], ours: Mapping[str, float], path: Path) -> None:
    compared = sum(map(bounded, rows))
    known = {row.quantity for row in rows}
    rows += [Bound(name, "", -math.inf, math.inf, f"no row in {path.name}") for name in ours if name not in known]
    table, misses = [], []
    for row in rows:
        verdict = _verdict(row, ours, row.quantity in known)
        value = f"{ours[row.quantity]:.6g}" if row.quantity in ours else ""
        table.append([row.quantity, value, row.paper, _number(row.low), _number(row.high), verdict, row.source])
        if verdict not in ("ok", ""):
            misses.append(table[-1])
    write(output_folder(path) / "ours.csv", [LAYOUT[0], "ours", *LAYOUT[1:4], "verdict", LAYOUT[4]], table)
    _show([["", "quantity", "ours", "paper", "low", "high"], *([r[5], *r[:5]] for r in table)])
    for row in misses:
        print(f"{row[5]}: {row[0]} is {row[1] or 'not there'}, expected {row[3]} to {row[4]} ({row[6]})")
    print(f"{path.name}: {compared} of {len(rows)} quantities have bounds, {len(misses)} missed")
    if misses or not compared:
        raise SystemExit(1)


def _verdict(row: Bound, ours: Mapping[str, float], known: bool) -> str:
    if not known:
        return "UNKNOWN"
    if row.quantity not in ours:
        return "MISSING"
    value = float(ours[row.quantity])
    if not math.isfinite(value) or not row.low <= value <= row.high:
        return "MISS"
    return "ok" if bounded(row) else ""


def _number(value: float) -> str:
    return f"{value:.6g}" if math.isfinite(value) else ""


def _show(table: list[list[str]]) -> None:
    """Print a table with numbers aligned to the right and long texts truncated."""
    table = [[x[:LONGEST_CELL] for x in row] for row in table]
    width = [max(map(len, column)) for column in zip(*table)]
    for verdict, quantity, *numbers in table:
        words = f"{verdict:{width[0]}}  {quantity:{width[1]}}  "
        print(words + "  ".join(f"{x:>{w}}" for x, w in zip(numbers, width[2:])))


def write(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write a table of an experiment as CSV, with numbers to six digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([f"{x:.6g}" if isinstance(x, float) else x for x in row] for row in rows)
