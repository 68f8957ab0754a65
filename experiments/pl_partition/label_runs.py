"""What the experiments on extreme multi-label data share: data, training as in the paper, runs kept between scripts.

A run is one method with one seed.  All metrics of a run are kept in <set>/runs.csv, so that tables 1 and 4 train once and an interrupted
script goes on where it stopped; --fresh begins again.  The learning rate is searched with the first seed and kept for the others.
"""

import argparse
import csv
import statistics
import sys
from pathlib import Path

from experiments.common import (
    Timer,
    check,
    check_first,
    need,
    need_data,
    output_folder,
    paired,
    parser,
    set_names,
    skip,
    write,
)
from experiments.formulas import oracle

HERE = Path(__file__).parent
BATCHES = {"batch": 128, "patience": 5}
"""As in the paper, however few the documents are."""
SETS = {"D-1K": "xmc/delicious"}
SIMULATED = "simulated"
METHODS = {
    "PL-P": "pl-partition",
    "PL-LB": "pl-lower-bound",
    "R-Net": "ranknet",
    "R-SVM": "ranksvm",
    "ListNet": "listnet",
}
FORMULAS = {
    "PL-P": "pl-partition",
    "PL-LB": "pl-lower-bound",
    "R-Net": "ranknet",
    "R-SVM": "ranksvm",
    "ListNet": "listnet",
}
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
    found = parser(about, sets=tuple(SETS))
    found.add_argument("--seeds", type=int, default=5)
    found.add_argument("--rate", type=float, help="learning rate, instead of the search with the first seed")
    found.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    found.add_argument("--fresh", action="store_true", help="forget earlier runs")
    args = found.parse_args()
    need("torch")
    if args.quick:
        args.set, args.seeds, args.rate = [SIMULATED], 1, args.rate or 1e-2
    return args


def read(name: str, seed: int) -> tuple:
    """The official split of a set given by name or folder, or simulated documents for the name "simulated"."""
    import placet

    if name == SIMULATED:
        return tuple(simulated(n, 2 * seed + k) for k, n in enumerate((600, 200)))
    folder = Path(name) if Path(name).is_dir() else None
    if folder is None and name not in SETS:
        raise SystemExit(f"--set {name} is neither a folder with train.txt and test.txt nor one of {', '.join(SETS)}")
    folder = folder or need_data(SETS[name])
    found = [next(iter(sorted(folder.glob(f"{part}.txt*"))), None) for part in ("train", "test")]
    if None in found:
        raise SystemExit(f"{folder} must hold train.txt and test.txt (or .gz, .xz, .zst)")
    return tuple(placet.read_xmc(path) for path in found)


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


def off_network(loss: str, formula: str, seed: int) -> float:
    """Largest error of a loss, as the network is trained with it, and of its gradient, on six labels of which two or three are own."""
    import numpy as np
    import torch
    from scipy.sparse import csr_matrix

    from placet.rank.multilabel.documents import as_documents
    from placet.rank.multilabel.label_losses import mean_loss
    from placet.rank.torch.neural import Criterion

    rng = np.random.default_rng(seed)
    Y = np.array([[1, 1, 0, 0, 0, 0], [0, 1, 0, 1, 0, 1], [0, 0, 1, 0, 1, 0]], float)
    own = as_documents(csr_matrix(rng.random((3, 4))), csr_matrix(Y)).own_labels()
    s = rng.normal(size=Y.shape).astype(np.float32)
    params = {"tol": 1e-9} if loss == "pl-partition" else None
    table = torch.tensor(s, requires_grad=True)
    value = mean_loss(Criterion(loss, params, rng), table, own)
    value.backward()
    plain = oracle()

    def of_formula(x: np.ndarray) -> float:
        return sum(plain.VALUES[formula](row.tolist(), y.tolist()) for row, y in zip(x.reshape(Y.shape), Y)) / len(Y)

    slope = plain.central_difference(of_formula, s.astype(float).ravel(), 1e-4)
    return float(
        max(abs(value.item() - of_formula(s.astype(float).ravel())), np.abs(table.grad.numpy().ravel() - slope).max())
    )


def runs(where: str, options: argparse.Namespace, expected_path: Path) -> dict[str, list[dict[str, float]]]:
    """Metrics of every run on one set, by method; those that are not there yet are trained."""
    path = (output_folder(expected_path) if options.quick else HERE / set_names([where])[0]) / "runs.csv"
    if options.fresh or options.quick:
        path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    seeds = range(options.seed, options.seed + options.seeds)
    data = None
    for method in options.methods:
        for seed in seeds:
            done = kept(path)
            if (method, seed) in done:
                continue
            data = data or read(where, options.seed)
            first = done.get((method, options.seed))
            rate = options.rate or (first["rate"] if first else RATES)
            append(path, method, seed, train(METHODS[method], seed, rate, *data, quick=options.quick))
    done = kept(path)
    return {m: [done[m, seed] for seed in seeds] for m in options.methods}


def train(loss: str, seed: int, rate, train, test, *, quick: bool = False) -> dict[str, float]:
    """Fit as the paper does and measure on the test set: in percent; seconds and epochs beside."""
    from placet.rank import LabelRanker

    more = {"epochs": 5} if quick else {}
    with Timer() as spent:
        ranker = LabelRanker(loss, learning_rate=rate, random_state=seed, **BATCHES, **more).fit(train)
    means = ranker.evaluate(test, metrics=list(SPECS.values()))
    summary = ranker.fit_summary_
    row = {"rate": summary["learning_rate"], "epochs": summary["epochs"], "seconds": round(spent.seconds, 1)}
    row |= {name: round(100 * value, 3) for name, value in zip(SPECS, means)}
    print(f"{loss} seed {seed}: {row}", file=sys.stderr, flush=True)
    return row


def kept(path: Path) -> dict[tuple[str, int], dict[str, float]]:
    if not path.exists():
        return {}
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return {(row.pop("method"), int(row.pop("seed"))): {k: float(v) for k, v in row.items()} for row in rows}


def append(path: Path, method: str, seed: int, row: dict[str, float]) -> None:
    new = not path.exists()
    with open(path, "a", newline="") as file:
        out = csv.writer(file)
        if new:
            out.writerow(["method", "seed", *row])
        out.writerow([method, seed, *row.values()])


def compare(path: Path, options: argparse.Namespace, names: list[str], ahead: list[str]) -> None:
    """Means over seeds of the metrics ``names``; leads of PL-P in the metrics ``ahead``, with 95 % intervals over seeds."""
    named = {
        f"{SIMULATED}, {m}, off its formula": off_network(METHODS[m], f, options.seed) for m, f in FORMULAS.items()
    }
    check_first(named, path)
    ours, rows = dict(named), []
    for name, where in zip(set_names(options.set), options.set):
        found = runs(where, options, path)
        for metric in names:
            for method, of_seeds in found.items():
                values = [run[metric] for run in of_seeds]
                ours[f"{name}, {method}, {metric}"] = mean = statistics.fmean(values)
                rows.append(
                    [name, metric, method, mean, statistics.stdev(values) if len(values) > 1 else "", len(values)]
                )
        for metric in ahead:
            for method in list(found)[1:]:
                lead = paired(*([run[metric] for run in found[who]] for who in ("PL-P", method)))
                ours[f"{name}, PL-P - {method}, {metric}"] = lead.mean
                print(f"{name}, PL-P - {method}, {metric}: {lead.mean:+.2f} [{lead.low:+.2f}, {lead.high:+.2f}]")
    write(output_folder(path) / "table.csv", ["set", "metric", "method", "mean", "deviation", "seeds"], rows)
    if options.methods != list(METHODS):
        skip("the check is of all methods; leave --methods out")
    check(ours, path, [SIMULATED, *set_names(options.set)])
