"""What the experiments on extreme multi-label data share: data, training as in the paper, runs kept between scripts.

A run is one method with one seed.  All metrics of a run are kept in <name>/runs.csv, so that tables 1 and 4 train once and an interrupted
script goes on where it stopped; --fresh begins again.  The learning rate is searched with the first seed and kept for the others.
"""

import argparse
import csv
import statistics
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
DATA = HERE.parents[2] / "shared" / "data" / "xmc" / "delicious"
METHODS = {"PL-P": "pl-partition", "PL-LB": "pl-lower-bound", "R-Net": "ranknet", "R-SVM": "ranksvm"}
DEPTHS = (1, 3, 5, 10)
# The repository's scripts count points without labels as 0 in P and nDCG; in the propensity-scored ratios they stand nowhere.
SPECS = {
    f"{name}@{k}": f"{spec}@{k}{'(empty=0)' if plain else ''}"
    for name, spec, plain in (
        ("P", "p", True),
        ("PSP", "psp", False),
        ("nDCG", "ndcg", True),
        ("PSnDCG", "psndcg", False),
    )
    for k in DEPTHS
}
RATES = (1e-4, 1e-3, 1e-2)


def arguments(about: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument(
        "--data", type=Path, default=DATA, help="folder with train.txt and test.txt (or .gz, .xz, .zst)"
    )
    parser.add_argument("--name", default="D-1K", help="which of the paper's sets it is: D-1K, E-4K, W-31K, D-200K")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rate", type=float, help="learning rate, instead of the search with the first seed")
    parser.add_argument("--methods", default=",".join(METHODS), help=f"any of {','.join(METHODS)}")
    parser.add_argument("--fresh", action="store_true", help="forget earlier runs")
    parser.add_argument(
        "--quick", action="store_true", help="one seed, one learning rate, 5 epochs, nothing compared with the paper"
    )
    return parser.parse_args()


def read(folder: Path, quick: bool = False) -> tuple:
    """The official split; where it is not there and a quick look is enough, simulated documents."""
    import placet

    found = [next(iter(sorted(folder.glob(f"{part}.txt*"))), None) for part in ("train", "test")]
    if None not in found:
        return tuple(placet.read_xmc(path) for path in found)
    if not quick:
        sys.exit(f"{folder} has no train.txt and test.txt; give --data")
    print(f"{folder} has no train.txt and test.txt: simulated documents", file=sys.stderr)
    return tuple(simulated(n, seed) for seed, n in enumerate((600, 200)))


def simulated(n: int, seed: int, features: int = 80, labels: int = 60, own: int = 5):
    """Sparse documents; their own labels are the best under a linear truth."""
    import numpy as np
    from scipy.sparse import csr_matrix

    from placet.io import MultiLabel

    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, features)) * (rng.random((n, features)) < 0.2)
    utility = X @ np.random.default_rng(99).normal(size=(features, labels))
    Y = utility >= np.sort(utility, axis=1)[:, [-own]]
    return MultiLabel(csr_matrix(X), csr_matrix(Y.astype(float)))


def runs(options: argparse.Namespace) -> dict[str, list[dict[str, float]]]:
    """Metrics of every run, by method; those that are not there yet are trained."""
    path = HERE / options.name / ("quick.csv" if options.quick else "runs.csv")
    if options.fresh or options.quick:
        path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    seeds = range(1 if options.quick else options.seeds)
    data = None
    for method in options.methods.split(","):
        for seed in seeds:
            done = kept(path)
            if (method, seed) in done:
                continue
            data = data or read(options.data, options.quick)
            rate = options.rate or (
                done[method, 0]["rate"] if (method, 0) in done else 1e-3 if options.quick else RATES
            )
            write(path, method, seed, train(METHODS[method], seed, rate, *data, quick=options.quick))
    done = kept(path)
    return {m: [row for (name, seed), row in sorted(done.items()) if name == m and seed in seeds] for m in METHODS}


def train(loss: str, seed: int, rate, train, test, *, quick: bool = False, **params) -> dict[str, float]:
    """Fit as the paper does and measure on the test set: in percent; seconds and epochs beside."""
    from placet.rank import LabelRanker

    start = time.perf_counter()
    more = {"epochs": 5} if quick else {}
    ranker = LabelRanker(loss, learning_rate=rate, random_state=seed, loss_params=params or None, **more).fit(train)
    seconds = time.perf_counter() - start
    means = ranker.evaluate(test, metrics=list(SPECS.values()))
    summary = ranker.fit_summary_
    row = {"rate": summary["learning_rate"], "epochs": summary["epochs"], "seconds": round(seconds, 1)}
    row |= {name: round(100 * value, 3) for name, value in zip(SPECS, means)}
    print(f"{loss} seed {seed}: {row}", file=sys.stderr, flush=True)
    return row


def kept(path: Path) -> dict[tuple[str, int], dict[str, float]]:
    if not path.exists():
        return {}
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return {(row.pop("method"), int(row.pop("seed"))): {k: float(v) for k, v in row.items()} for row in rows}


def write(path: Path, method: str, seed: int, row: dict[str, float]) -> None:
    new = not path.exists()
    with open(path, "a", newline="") as file:
        out = csv.writer(file)
        if new:
            out.writerow(["method", "seed", *row])
        out.writerow([method, seed, *row.values()])


def mean(found: list[dict[str, float]], name: str) -> float:
    return statistics.fmean(row[name] for row in found)


def report(name: str, values: dict[str, float], rows: list[tuple], quick: bool) -> None:
    """Write <name>/ours.csv, print each quantity beside its bound in expected_<name>.csv, exit with 1 on a miss."""
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    with open(folder / "ours.csv", "w", newline="") as file:
        out = csv.writer(file)
        out.writerows([("quantity", "value"), *((key, f"{value:.6g}") for key, value in values.items()), *rows])
    with open(HERE / f"expected_{name}.csv", newline="") as file:
        expected = {row["quantity"]: float(row["high"]) for row in csv.DictReader(file)}
    missed = [key for key, value in values.items() if value > expected[key] and not quick]
    for key, value in values.items():
        print(f"{'MISS' if key in missed else 'ok  '} {key} = {value:.4g} (at most {expected[key]:g})")
    sys.exit(1 if missed else 0)


def compare(table: str, options: argparse.Namespace, names: list[str], ahead: list[str]) -> None:
    """Print the table beside the paper's, write <name>/<table>.csv, exit with 1 on a miss.

    expected_<table>.csv: set, metric, method, paper, tolerance (empty: printed only).  ``ahead``: metrics in which PL-P must lead.
    """
    found = {method: rows for method, rows in runs(options).items() if rows}
    with open(HERE / f"expected_{table}.csv", newline="") as file:
        expected = {(r["metric"], r["method"]): r for r in csv.DictReader(file) if r["set"] == options.name}
    missed, lines = 0, []
    for name in names:
        for method, rows in found.items():
            ours, row = mean(rows, name), expected.get((name, method), {})
            spread = statistics.stdev(r[name] for r in rows) if len(rows) > 1 else float("nan")
            bad = (
                bool(row.get("tolerance"))
                and not options.quick
                and abs(ours - float(row["paper"])) > float(row["tolerance"])
            )
            missed += bad
            lines.append(
                [name, method, f"{ours:.2f}", f"{spread:.2f}", len(rows), row.get("paper", ""), "MISS" if bad else ""]
            )
    others = [
        [name, method, "", "", "", row["paper"], ""]
        for (name, method), row in expected.items()
        if method not in METHODS
    ]
    for name in ahead if not options.quick and "PL-P" in found else []:
        for method in set(found) - {"PL-P"}:
            lead = mean(found["PL-P"], name) - mean(found[method], name)
            missed += lead <= 0
            lines.append([name, f"PL-P over {method}", f"{lead:.2f}", "", "", "", "MISS" if lead <= 0 else ""])
    head = ["metric", "method", "ours", "deviation", "seeds", "paper", ""]
    for line in (head, *lines, *others):
        print("\t".join(map(str, line)))
    with open(HERE / options.name / f"{table}.csv", "w", newline="") as file:
        csv.writer(file).writerows([head, *lines, *others])
    sys.exit(1 if missed else 0)
