"""Reliability tests, with counts and outcomes: writes docs/reliability.md (``make torture``).

    python fuzz/torture.py [--mutations 100000] [--quick] [--again] [--kept] [--out docs/reliability.md] [part ...]

Each part returns lines of Markdown; a part that finds a failure reports it in its table, and the exit code is 1.  The
results of each part are cached in build/torture and not computed again without ``--again``, so an interrupted run
continues where it stopped.  Limits are in CPU time if a busy machine would exceed wall-clock limits.
"""

import argparse
import io
import json
import os
import re
import subprocess
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "rank")]

import fuzz_door  # noqa: E402
import fuzz_models  # noqa: E402
import fuzz_peers  # noqa: E402
import fuzz_server  # noqa: E402
import kills  # noqa: E402
import signals as signals_of_commands  # noqa: E402

import placet  # noqa: E402
from placet.data.engines import memory as free_memory  # noqa: E402

FAILURES: list[str] = []


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return [*lines, *("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows), ""]


def model_files(given):
    """Mutated model files of every ranker, and of two peers."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        tables = fuzz_models.models(Path(folder))
        found = [
            fuzz_models.fuzz_file(KEPT / "models.jsonl", Path(folder) / name, X, given.mutations, sealed)
            for name, X in tables.items()
            for sealed in (False, True)
        ]
    return model_lines(found, peers(min(given.mutations, 2000)))


def peers(n=None):
    """Rows of mutated model files of peers, cached or computed now; if n is None, only cached ones."""
    file = KEPT / "peers.jsonl"
    kept = dict(map(json.loads, file.read_text().splitlines())) if file.exists() else {}
    rows = []
    for name in fuzz_peers.models():
        if name not in kept:
            if n is None:
                continue
            kept[name] = fuzz_peers.alone("mutated", name, n)
            KEPT.mkdir(parents=True, exist_ok=True)
            with open(file, "a") as out:
                out.write(json.dumps([name, kept[name]]) + "\n")
        counts = Counter(kept[name])
        good = counts["error"] + counts["loaded"]
        rows.append([f"{name}, a peer", "none", sum(counts.values()), good, counts["error"], counts["loaded"]])
    return rows


def model_lines(found, of_peers):
    """The table of outcomes of mutated model files."""
    rows, cpu = [], 0.0
    for (name, how), one in sorted({tuple(one["key"][:2]): one for one in found}.items()):
        FAILURES.extend(f"model file {name}: {what}" for _, what in one["bad"])
        counts = Counter(one["counts"])
        total = sum(counts.values())
        cpu += one["cpu"]
        survived, refused = total - counts["BAD"], counts["refused"]
        rows.append([name, "computed again" if how == "sealed" else how, total, survived, refused, survived - refused])
    n = sum(row[2] for row in rows)
    text = (
        "A file is changed in one to three places: bits, numbers, cuts, copies, values of its header. It survives if it is refused by a "
        "`DataError`, or gives a ranker that scores or says why not; no signal, no hang (ten seconds of CPU), memory at most 4 times the "
        "file (and a megabyte). With the digest as it is, only a file whose changes cancel may load; with the digest computed again, "
        f"what stands behind it is met. {n:,} files, {cpu / 60:.1f} minutes of CPU. For a peer, survival is an error of Python or a model; "
        "one that ends the process, or takes more than five seconds of CPU, does not survive; no more are begun after a minute of CPU."
    )
    return [text, "", *table(["file of", "digest", "tried", "survived", "refused", "loaded"], [*rows, *of_peers])]


def odd_tables(given):
    """Odd tables for every ranker."""
    from test_odd_tables import FAST, ODD, attempt, raised_by_us

    rows = []
    for name in FAST:
        counts = Counter()
        for features, grades, qid in ODD.values():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    kind = "finite" if np.isfinite(attempt(name, features, grades, qid)).all() else "bad"
                except Exception as error:
                    kind = "refused" if raised_by_us(error) else "bad"
            counts[kind] += 1
        if counts["bad"]:
            FAILURES.append(f"odd tables: {name}: {counts['bad']}")
        rows.append([name, len(ODD), len(ODD) - counts["bad"], counts["finite"], counts["refused"]])
    for name in fuzz_peers.rankers():
        counts = fuzz_peers.alone("tables", name)
        good = counts["finite"] + counts["refused"]
        rows.append([f"{name}, a peer", len(ODD), good, counts["finite"], counts["refused"]])
    text = f"{len(ODD)} tables: few rows, no columns, constants, cells of 1e155 and 1e308, NaN, infinities, every type of number, text, masks, repeated names, odd grades. Each ends in finite scores or in an error that Placet itself raised; for a peer any exception counts as refused, and scores that are not finite, signals and hangs as failures."
    return [text, "", *table(["ranker", "tried", "survived", "finite scores", "refused"], rows)]


def names(given):
    """Names with markup, control characters, direction marks and formulas."""
    from test_names import HARMFUL, NAMES

    from placet import escaping

    def harmless(text, target):
        return not HARMFUL.search(text) and ("\n" not in text or target == "page")  # where a line break is only a space

    targets = {"terminal": escaping.visible, "tab-separated text": escaping.in_tsv, "page": escaping.in_html}
    rows = [
        [target, len(NAMES), sum(harmless(write(name), target) for name in NAMES)] for target, write in targets.items()
    ]
    rows.append(
        [
            "spreadsheet",
            len(NAMES),
            sum(
                not escaping.in_sheet(name).startswith(("=", "@"))
                and escaping.from_sheet(escaping.in_sheet(name)) == name
                for name in NAMES
            ),
        ]
    )
    return table(["target", "tried", "survived"], rows)


def signals(given):
    """Seconds from a signal to the end of every command."""
    rows, failures = signals_of_commands.every(given.quick, keep=None if given.quick else KEPT / "signals.jsonl")
    FAILURES.extend(failures)
    load = os.getloadavg()[0]
    return [
        "Every command, on data that keep it busy, gets SIGINT (Ctrl-C) or SIGTERM when it has used 0.1 and 2.5, or 1 and 4.5 seconds of CPU (10 with PyTorch, which takes 5 to import; a command that ends by itself before is not counted). "
        "The seconds are those on the clock from the signal to the end of the process, the most of all signals; beside them is how long this machine, "
        "busy with other work, took then for a second of CPU of the command. A training that is stopped then leaves its best model, "
        "which is loaded. No half file is left, nor a traceback; before a training has a first state there is nothing to keep. More than 2 seconds is a failure where the command "
        f"had half a core or more; where it had less, the time allowed grows in proportion (5 seconds where a CPU second took 5). The load of the machine was {load:.1f} on {os.cpu_count()} cores.",
        "",
        *table(["command", "signals", "most seconds", "a CPU second took", "models kept"], rows),
    ]


def readers(given):
    """Running time of readers against file size."""
    from benchmarks.bench_growth import exponents

    rows = [
        [name, *(f"{s:.3f}" for s in seconds), f"{exponent:.2f}"]
        for name, seconds, exponent in exponents(0.1 if given.quick else 0.4)
    ]
    return [
        "CPU seconds at 1, 2, 4 and 8 units of size; the exponent is the slope between the last two (1 is linear).",
        "",
        *table(["reader", "1", "2", "4", "8", "exponent"], rows),
    ]


DIGITS = """
import hashlib, json, sys, warnings
warnings.simplefilter("ignore")
import numpy as np, placet
from placet.rank import LinearRanker, TreeRanker, RANKERS
rng = np.random.default_rng(0)
votes = placet.Rankings.from_orders([rng.permutation(40).tolist() for _ in range(200)])
data = placet.simulate.queries(60, 20, 30, noise=0.5, random_state=1)
found = {}
def keep(name, values):
    found[name] = hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()
few = placet.Rankings.from_orders([rng.permutation(9).tolist() for _ in range(40)])
for method in (*placet.aggregate.MODELS, *placet.aggregate.RULES):
    for form in (few, few.to_comparisons()):
        try:
            result = placet.consensus(form, method)
        except (placet.DataError, ValueError, TypeError):  # takes other data
            continue
        keep(method, result.scores)
        break
for method in ("bradley-terry", "plackett-luce", "mpm", "rank-centrality", "mc4", "kemeny-local", "footrule", "schulze"):
    form = votes.to_comparisons() if method in ("bradley-terry", "rank-centrality") else votes
    result = placet.consensus(form, method)
    keep(method + ", 40 items", result.scores)
    if result.stderr is not None:
        keep(method + ", 40 items, errors", result.stderr)
for name, ranker in {
    "linear": LinearRanker(), "linear, newton": LinearRanker("pmop-fd", solver="newton"), "trees": TreeRanker(n_trees=20),
    "booster": RANKERS["booster"](n_rounds=10), "structrank": RANKERS["structrank"]("linear", epochs=2, starts=1),
    "neural": RANKERS["neural"](hidden=(16,), epochs=3), "crf": RANKERS["crf"](max_iter=20),
}.items():
    keep(name, ranker.fit(data).predict(data))
print(json.dumps(found))
"""


def same_bytes(given):
    """Scores with one thread and with several threads of Placet, BLAS and OpenMP."""
    settings = {
        "one": {"PLACET_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        "Placet": {"PLACET_THREADS": "4", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        "BLAS": {"PLACET_THREADS": "1", "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "2"},
        "OpenMP": {"PLACET_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "1"},
    }
    found = {}
    for name, more in settings.items():
        done = subprocess.run(
            [sys.executable, "-c", DIGITS], env={**os.environ, **more}, capture_output=True, text=True, check=True
        )
        found[name] = json.loads(done.stdout)
    rows = []
    for name in ("Placet", "BLAS", "OpenMP"):
        differ = [key for key, value in found["one"].items() if found[name][key] != value]
        if set(differ) - {"neural"}:
            FAILURES.append(f"threads of {name} change {differ}")
        rows.append([name, len(found["one"]), len(found["one"]) - len(differ), ", ".join(differ) or "none"])
    return [
        "Scores (and standard errors) with one thread against several (4 of Placet, 2 of the others), byte by byte. The exceptions that may differ, in the last digits, are networks of PyTorch and dense systems of more than 2,000 unknowns (see *Deployment*).",
        "",
        *table(["threads of", "tried", "equal", "different"], rows),
    ]


SHORT = {
    "describe": ("describe", "votes.csv"),
    "convert": ("convert", "votes.csv", "out.jsonl"),
    "aggregate": ("aggregate", "votes.csv", "--report", "page.html"),
    "aggregate, HiGHS": ("aggregate", "few.txt", "-m", "kemeny"),
    "audit": ("audit", "few.txt"),
    "evaluate": ("evaluate", "system.run", "judged.qrels"),
    "compare": ("compare", "system.run", "system.run", "judged.qrels"),
    "train, linear": ("train", "rows.letor", "--save", "m"),
    "train, LightGBM": ("train", "rows.letor", "--save", "m", "--ranker", "trees", "-p", "n_trees=5"),
    "train, XGBoost": ("train", "rows.letor", "--save", "m", "--ranker", "trees", "-p", "n_trees=5", "-p", "backend=xgboost"),
    "train, PyTorch": ("train", "rows.letor", "--save", "m", "--ranker", "neural", "-p", "epochs=1"),
    "score": ("score", "a.model", "rows.letor", "--out", "scores.txt"),
    "simulate": ("simulate", "plackett-luce", "--out", "drawn.txt"),
    "a file of 4 GiB of zeros": ("describe", "zeros.csv"),
    "an archive of 2 GiB of zeros": ("describe", "zeros.csv.gz"),
}  # fmt: skip


def under_a_limit(space=3 << 30):
    """Run every command with a limit of ``space`` bytes on its address space (ulimit -v)."""
    import gzip
    import resource
    import tempfile

    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        signals_of_commands.files(folder, 0.02)
        lines = (folder / "ballots.txt").read_text().splitlines()
        (folder / "few.txt").write_text("\n".join(lines[:20]) + "\n")
        with open(folder / "zeros.csv", "wb") as file:
            file.write(b"model_a,model_b,winner\n")
            file.truncate(4 << 30)  # takes no space on disk
        with gzip.open(folder / "zeros.csv.gz", "wb", 1) as file:
            file.write(b"model_a,model_b,winner\n")
            for _ in range(30):
                file.write(bytes(1 << 26))
        for what, words in SHORT.items():
            done = subprocess.run(
                [*signals_of_commands.COMMAND, *words],
                cwd=folder,
                capture_output=True,
                text=True,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (space, space)),
            )
            said = done.stderr.strip().splitlines()[-1:] if done.returncode else []
            clear = done.returncode == 0 or (done.returncode == 2 and bool(said) and "Traceback" not in done.stderr)
            if not clear:
                FAILURES.append(f"{what} under a limit: code {done.returncode}: {done.stderr[-300:]}")
            rows.append(
                [what, done.returncode, "".join(said).replace(str(folder), "").replace("|", "/")[:200] or "an answer"]
            )
    return [
        f"Commands in {space / 2**30:g} GiB of addresses (`ulimit -v`; with less, none begins, and each says so): exit code 0 is an answer, 2 an error in words.",
        "",
        *table(["command", "exit code", "what is said"], rows),
    ]


def memory(given):
    """Requests that exceed memory."""
    rng = np.random.default_rng(0)
    rows = []
    votes = placet.Rankings.from_orders([rng.permutation(3000).tolist() for _ in range(5)])
    left = free_memory.available
    for method, most in (("kemeny", 8e9), ("copeland", 1e8), ("footrule", 1e8), ("schulze", 1e8)):
        free_memory.available = lambda root=None, most=most: int(most)
        start = time.process_time()
        try:
            placet.consensus(votes, method)
            said = "an answer"
        except ValueError as error:
            said = str(error)
        rows.append([method, f"{most / 1e9:g} GB", f"{time.process_time() - start:.1f}", said.replace("|", "/")])
    free_memory.available = left
    return [
        "3,000 items with this much memory left: refused before it is spent.",
        "",
        *table(["method", "left", "CPU seconds", "what is said"], rows),
        *under_a_limit(),
    ]


def votes(given):
    """Votes on which peers have failed."""
    text = (
        "What each library makes of votes that have no answer, or no meaning: *refused* is an error, *finite* and *not finite* are scores, *said* are scores "
        "with a note or a warning. Where the votes have no meaning, anything but *refused* is a number that nobody should have been given."
    )
    found = fuzz_peers.votes()
    FAILURES.extend(
        f"votes: {case}: {cells['Placet']}"
        for case, cells in found.items()
        if cells["Placet"] not in ("refused", "finite", "said")
    )
    libraries = list(next(iter(found.values())))
    rows = [[case, *(cells[name] for name in libraries)] for case, cells in found.items()]
    return [text, "", *table(["votes", *libraries], rows)]


def server(given):
    """Attacks on a studio that runs."""
    keep = None if given.quick else KEPT / "server.jsonl"
    rows, failures = fuzz_server.every(given.quick, keep)
    FAILURES.extend(failures)
    return [
        "A studio runs in a process of its own and is attacked on loopback. It survives if it answers as it should (an error in words, never 5xx), prints no "
        "traceback, loses no vote that it has acknowledged, and answers a normal client afterwards.",
        "",
        *table(["attack", "tried", "survived"], rows),
    ]


def door(given):
    """Random small problems at the one door."""
    n = 1000 if given.quick else 30_000
    cpu = time.process_time()
    said = Counter()
    for number in range(n):
        words = fuzz_door.verdict(number)
        said["BAD" if words.startswith("BAD") else words] += 1
        if words.startswith("BAD"):
            FAILURES.append(f"door, problem {number}: {words}")
    return door_lines(said, time.process_time() - cpu)


def door_lines(said, cpu):
    """The table of random problems at the door."""
    total = sum(said.values())
    text = (
        "Random votes, ballots, score tables, slices, parts and sources with ties, gaps, weights (0, 1e-300, 1e300), voters, times, controls and "
        "contests; every method, any values of its parameters, with and without bootstrap. A problem survives if the numbers are finite, every "
        "rank lies in its own interval, probabilities sum to one and the same rows in another order give the same scores (to 1 % of the largest "
        "if the result says that it did not converge); or if Placet "
        f"refuses it in its own words. Any other exception and any warning of NumPy is a failure. {cpu:.0f} seconds of CPU."
    )
    rows = [["`consensus`", total, total - said["BAD"], said["answered"], said["refused"]]]
    return [text, "", *table(["door", "tried", "survived", "answered", "refused"], rows)]


def keyboard(given):
    """Stories of the studio in Chromium, with keys alone."""
    test = ROOT / "tests" / "studio" / "test_studio_keyboard.py"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    marks = "".join(re.findall(r"^([.FEs]+) +\[", done.stdout, flags=re.MULTILINE))
    FAILURES.extend(re.findall(r"^FAILED.*", done.stdout, flags=re.MULTILINE))
    return keyboard_lines(len(marks) - marks.count("s"), marks.count("."))


def keyboard_lines(tried, survived):
    """The table of stories by keyboard."""
    text = (
        "A board, its question and its tabs, a ballot, odd columns, images of a poll, a phone with the question folded: each is done in Chromium "
        "by Tab, arrows, Enter and letters alone. A story survives if every control is reached, the focus is seen, no redraw loses it, "
        "and axe-core finds no fault."
    )
    return [text, "", *table(["studio", "tried", "survived"], [["by keyboard", tried, survived]])]


def killed(given):
    """SIGKILL of a training, of a checkpoint, of a scheduler."""
    rows, failures = kills.every(given.quick)
    FAILURES.extend(failures)
    return killed_lines(rows)


def killed_lines(rows):
    """The table of what was killed."""
    text = "SIGKILL cannot be caught: what matters is what is left. No half file may stand under the name that was asked for."
    return [text, "", *table(["killed", "tried", "survived", "what is left"], rows)]


PARTS = {
    "Model files": model_files,
    "Odd tables": odd_tables,
    "Odd votes": votes,
    "Door": door,
    "Names": names,
    "Memory": memory,
    "Readers": readers,
    "Server": server,
    "Studio by keyboard": keyboard,
    "Signals": signals,
    "Killed": killed,
    "Same bytes": same_bytes,
}
KEPT = ROOT / "build" / "torture"


def lines_of(name, given):
    """The lines of a part and its failures, cached or computed now."""
    file = KEPT / f"{name.lower().replace(' ', '_')}.json"
    if file.exists() and not given.again:
        kept = json.loads(file.read_text())
        if kept["quick"] == given.quick:
            FAILURES.extend(kept["failures"])
            return kept["lines"]
    if given.kept:
        models = KEPT / "models.jsonl"
        if name == "Model files" and models.exists():
            found = model_lines(map(json.loads, models.read_text().splitlines()), peers())
            return [
                *found,
                "Files and peers that are not in the table have not been run here, or not again since a failure was mended; `make torture` runs them.",
                "",
            ]
        return ["Not run here yet; `make torture` runs it.", ""]
    before = len(FAILURES)
    start, cpu = time.monotonic(), time.process_time()
    lines = [*PARTS[name](given), run_on(), ""]
    print(
        f"{name}: {time.monotonic() - start:.0f} s, {time.process_time() - cpu:.0f} s of CPU here",
        file=sys.stderr,
        flush=True,
    )
    KEPT.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"quick": given.quick, "lines": lines, "failures": FAILURES[before:]}))
    return lines


def run_on():
    """The day of a run and its code, for the page."""
    code = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    of = f", commit {code.stdout.strip()}" if code.returncode == 0 else ""
    return f"Run on {time.strftime('%Y-%m-%d')}{of}."


def sections(text):
    """The sections of a page by their headings, in order; the beginning has none."""
    found = {}
    for part in re.split(r"^(?=## )", text, flags=re.MULTILINE):
        found[part.partition("\n")[0].removeprefix("## ") if part.startswith("## ") else ""] = part
    return found


def with_sections(old, new):
    """The old page with the parts of the new one in place of theirs; a part it did not have stands where `PARTS` has it."""
    kept, made = sections(old), sections(new)
    last = "In continuous integration"
    every = kept | {name: text for name, text in made.items() if name in PARTS}
    order = [
        "",
        *(name for name in PARTS if name in every),
        *(name for name in every if name not in ("", last, *PARTS)),
        last,
    ]
    return "".join(every[name].rstrip("\n") + "\n\n" for name in order if name in every).rstrip("\n") + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "parts",
        nargs="*",
        help=f"any of {', '.join(PARTS)}; all unless given, else these sections of the page are replaced",
    )
    parser.add_argument(
        "--mutations", type=int, default=100_000, help="of each model file, with and without its digest"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, for a look")
    parser.add_argument("--again", action="store_true", help="make anew what was kept")
    parser.add_argument("--kept", action="store_true", help="write what was kept, and run nothing")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "reliability.md")
    given = parser.parse_args()
    if given.quick:
        given.mutations = min(given.mutations, 200)
    page = io.StringIO()
    print(
        "# Reliability\n\nWhat we tried, how often, and what survived; other libraries get the same input where possible. This page is "
        "written by `make torture`, on one machine. Sections are of several runs, each with its day and commit; one without is of an earlier run. Failures were fixed and rerun.\n",
        file=page,
    )
    for name in PARTS:
        if not given.parts or name in given.parts:
            print(f"## {name}\n\n" + "\n".join(lines_of(name, given)), file=page)
    print(
        "## In continuous integration\n\nSmaller runs of all of this are tests: 60 mutations of every model file both ways, every odd table, every name, refusals of memory, signals and forks, 720 problems at the door, kills at every step of writing, the studio by keyboard.",
        file=page,
    )
    whole = page.getvalue() if not given.parts else with_sections(given.out.read_text(), page.getvalue())
    given.out.write_text(whole)
    for failure in FAILURES:
        print(failure, file=sys.stderr)
    sys.exit(1 if FAILURES else 0)


if __name__ == "__main__":
    main()
