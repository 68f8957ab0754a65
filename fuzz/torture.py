"""What was tried, how often, and what survived: writes docs/reliability.md (minutes; ``make torture``).

    python fuzz/torture.py [--mutations 2000] [--out docs/reliability.md] [part ...]

Each part returns lines of Markdown; a part that finds a failure says so in its table, and the exit code is 1.
"""

import argparse
import hashlib
import io
import json
import multiprocessing as mp
import os
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), str(ROOT), str(ROOT / "tests")]

import fuzz_models  # noqa: E402

import placet  # noqa: E402
from placet.data import room  # noqa: E402

FAILURES: list[str] = []


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return [*lines, *("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows), ""]


def model_files(n):
    """Mutated model files of every ranker, and of two peers."""
    import tempfile

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        tables = fuzz_models.models(Path(folder))
        for name, X in tables.items():
            data = (Path(folder) / name).read_bytes()
            for sealed in (False, True):
                counts, bad = fuzz_models.fuzz(data, X, n, sealed)
                FAILURES.extend(f"model file {name}: {what}" for _, what in bad)
                total = sum(counts.values())
                rows.append(
                    [
                        name,
                        "computed again" if sealed else "as it was",
                        total,
                        total - counts["BAD"],
                        counts["refused"],
                        total - counts["refused"] - counts["BAD"],
                    ]
                )
    for name, (data, load) in peers().items():
        counts = peer_counts(data, load, min(n, 500))
        total = sum(counts.values())
        rows.append([name, "none", total, total - counts["crash"], counts["error"], counts["loaded"]])
    text = "A file is changed in one to three places: bits, numbers, cuts, copies, values of its header. It survives if it is refused by a `DataError`, or gives a ranker that scores or says why not; no signal, no hang, memory at most 4 times the file (and a megabyte). With the digest computed again, what stands behind it is met."
    return [text, "", *table(["file of", "digest", "tried", "survived", "refused", "loaded"], rows)]


def peers():
    """Model files of peers, and how each loads them."""
    import lightgbm as lgb
    import xgboost as xgb

    X = np.random.default_rng(0).normal(size=(200, 5))
    y = X[:, 0] + X[:, 1]
    quiet = {"verbosity": -1, "min_data_in_leaf": 5}
    text = lgb.train(quiet, lgb.Dataset(X, y), 5).model_to_string().encode()
    booster = xgb.train({"verbosity": 0}, xgb.DMatrix(X, y), 5)
    raw = bytes(booster.save_raw("json"))

    def light(data):
        lgb.Booster(model_str=data.decode("latin-1")).predict(X[:4])

    def extreme(data):
        xgb.Booster(model_file=bytearray(data)).predict(xgb.DMatrix(X[:4]))

    return {"LightGBM (text)": (text, light), "XGBoost (JSON)": (raw, extreme)}


def peer_counts(data, load, n):
    """The same mutations of bytes for a peer: error, loaded, or crash (a signal, or ten seconds)."""
    counts = Counter()
    context = mp.get_context("fork")
    for number in range(n):
        rng = np.random.default_rng(number)
        changed = data
        for _ in range(rng.integers(1, 4)):
            changed = (fuzz_models.flip, fuzz_models.overwrite, fuzz_models.cut, fuzz_models.copy)[rng.integers(4)](
                changed, rng
            )

        def child(changed=changed):
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            try:
                load(changed)
            except Exception:
                os._exit(7)
            os._exit(0)

        process = context.Process(target=child)
        process.start()
        process.join(10)
        if process.is_alive():
            process.kill()
            process.join()
        counts[{0: "loaded", 7: "error"}.get(process.exitcode, "crash")] += 1
    return counts


def odd_tables(_):
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
    text = f"{len(ODD)} tables: few rows, no columns, constants, cells of 1e155 and 1e308, NaN, infinities, every type of number, text, masks, repeated names, odd grades. Each ends in finite scores or in an error that Placet itself raised."
    return [text, "", *table(["ranker", "tried", "survived", "finite scores", "refused"], rows)]


def names(_):
    """Names with markup, control characters, marks of direction and formulas."""
    from test_names import HARMFUL, NAMES

    from placet.io import escaping

    targets = {"terminal": escaping.visible, "tab-separated text": escaping.in_tsv, "page": escaping.in_html}
    rows = [
        [target, len(NAMES), sum(not HARMFUL.search(write(name)) and "\n" not in write(name) for name in NAMES)]
        for target, write in targets.items()
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


COMMANDS = {
    "Python code": "while True: pass",
    "a kernel": "deep()",
    "HiGHS": "votes = placet.Rankings.from_orders([np.random.default_rng(k).permutation(70).tolist() for k in range(9)]); print('ready', flush=True); placet.consensus(votes, 'kemeny')",
    "LightGBM": "X = np.random.default_rng(0).normal(size=(200_000, 30)); print('ready', flush=True); lightgbm.train({'verbosity': -1, 'num_leaves': 4000}, lightgbm.Dataset(X, X[:, 0]), 1000)",
    "threads": "placet.set_threads(4); placet.threads.map_ordered(lambda k: deep(), 4)",
}


def signals(_):
    """Seconds from a signal to the end of the process."""
    head = "import numpy as np, lightgbm, placet, placet.threads\nfrom numba import njit\nfrom placet.cli.stopping import run\n@njit(nogil=True)\ndef deep():\n    x = 1\n    while x != 0:\n        x = (x * 3 + 1) % 1000003 + 1\n    return x\n"
    rows = []
    for where, what in COMMANDS.items():
        body = what if "ready" in what else f"print('ready', flush=True); {what}"
        for number in (signal.SIGINT, signal.SIGTERM):
            script = f"{head}def command():\n    {body}\nrun(command)"
            with subprocess.Popen(
                [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            ) as process:
                process.stdout.readline()
                time.sleep(1.5)
                start = time.monotonic()
                process.send_signal(number)
                process.wait(60)
                seconds = time.monotonic() - start
            if seconds > 2:
                FAILURES.append(f"{where}: {number.name} took {seconds:.1f} s")
            rows.append([where, number.name, f"{seconds:.2f}"])
    return [
        "Seconds from the signal to the end, inside each of these.",
        "",
        *table(["inside", "signal", "seconds"], rows),
    ]


def readers(_):
    """Time against size."""
    from benchmarks.bench_growth import exponents

    rows = [[name, *(f"{s:.3f}" for s in seconds), f"{exponent:.2f}"] for name, seconds, exponent in exponents(0.4)]
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
for method in ("bradley-terry", "plackett-luce", "mpm", "borda", "copeland", "rank-centrality", "mc4", "kemeny-local", "footrule", "schulze"):
    data_for = votes.to_comparisons() if method in ("bradley-terry", "rank-centrality") else votes
    keep(method, placet.consensus(data_for, method).scores)
for name, ranker in {
    "linear": LinearRanker(), "linear, newton": LinearRanker("pmop-fd", solver="newton"), "trees": TreeRanker(n_trees=20),
    "booster": RANKERS["booster"](n_rounds=10), "structrank": RANKERS["structrank"]("linear", epochs=2, starts=1),
    "neural": RANKERS["neural"](hidden=(16,), epochs=3), "crf": RANKERS["crf"](max_iter=20),
}.items():
    keep(name, ranker.fit(data).predict(data))
print(json.dumps(found))
"""


def same_bytes(_):
    """Scores with one thread and with several, of Placet, BLAS and OpenMP."""
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
        if name == "Placet" and differ:
            FAILURES.append(f"threads of Placet change {differ}")
        rows.append([name, len(found["one"]), len(found["one"]) - len(differ), ", ".join(differ) or "none"])
    return [
        "Scores with one thread against scores with several (4 of Placet, 2 of the others), byte by byte. Placet's own threads never change a digit. Sums inside BLAS and inside PyTorch follow their number of threads, which Placet leaves to the user for large products: what differs below differs in the last digits. Fix `OPENBLAS_NUM_THREADS` and `OMP_NUM_THREADS` where bytes must be equal across machines.",
        "",
        *table(["threads of", "tried", "equal", "different"], rows),
    ]


def memory(_):
    """Requests beyond memory."""
    rng = np.random.default_rng(0)
    rows = []
    votes = placet.Rankings.from_orders([rng.permutation(3000).tolist() for _ in range(5)])
    left = room.available
    for method, most in (("kemeny", 8e9), ("copeland", 1e8), ("footrule", 1e8), ("schulze", 1e8)):
        room.available = lambda root=None, most=most: int(most)
        start = time.monotonic()
        try:
            placet.consensus(votes, method)
            said = "an answer"
        except ValueError as error:
            said = str(error)
        rows.append([method, f"{most / 1e9:g} GB", f"{time.monotonic() - start:.1f}", said.replace("|", "/")])
    room.available = left
    return [
        "3,000 items with this much memory left: refused before it is spent.",
        "",
        *table(["method", "left", "seconds", "what is said"], rows),
    ]


PARTS = {
    "Model files": model_files,
    "Odd tables": odd_tables,
    "Names": names,
    "Memory": memory,
    "Readers": readers,
    "Signals": signals,
    "Same bytes": same_bytes,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"any of {', '.join(PARTS)}; all unless given")
    parser.add_argument("--mutations", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "reliability.md")
    given = parser.parse_args()
    page = io.StringIO()
    print(
        "# Reliability\n\nWhat was tried, how often, and what survived. This page is written by `make torture`.\n",
        file=page,
    )
    for name, part in PARTS.items():
        if given.parts and name not in given.parts:
            continue
        start = time.monotonic()
        lines = part(given.mutations)
        print(f"{name}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
        print(f"## {name}\n\n" + "\n".join(lines), file=page)
    print(f"Digest of the scripts: {hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]}.", file=page)
    given.out.write_text(page.getvalue())
    for failure in FAILURES:
        print(failure, file=sys.stderr)
    sys.exit(1 if FAILURES else 0)


if __name__ == "__main__":
    main()
