"""Label ranking on small data: orders of the same labels from features, against published results and a rival of our own.

The protocol, written before the folds below were scored.

- Sets: eight.  Six are label-ranking versions of UCI sets by Cheng, Huehn and Huellermeier (2009), 150 to 846 cases with 3 to 11 labels, in the folder
  ``label_ranking`` of the data (``<set>.txt``: features scaled to [-1, 1], the column ``ranking``, and the place of each label from 0).  Two are made here in the
  same way, which needs no file: naive Bayes fitted to all cases of scikit-learn's iris and wine, features in their own units, and the
  labels of a case in the order of their probabilities.  ``--quick`` has these two.
- Methods, each with no argument but the loss: ``LinearRanker("pl-partition")``, the linear Plackett-Luce model, and ``TreeRanker()``, both on
  the rows of ``placet.io.read_label_orders``; ``LabelRanker()`` on the features as they are; and *neighbors*, a rival: the mean
  ranks of the nearest cases by standardized features, 5, 10 or 20 of them, chosen by leave-one-out on the training part.
- Kendall's tau of every case when it is left out, by tenfold cross-validation, five times; LabelRanker, which takes the most time, once.
- Asked: LinearRanker not more than 0.02 below the published linear Plackett-Luce model (Lin-PL); the better of LabelRanker and TreeRanker not more than 0.02
  below the published instance-based one (IB-PL), and LabelRanker not more than 0.02 below *neighbors*; on every set.
  Published: Cheng, Dembczynski and Huellermeier, Label ranking methods based on the Plackett-Luce model, ICML 2010, complete rankings.  The
  figures are as they are commonly cited; the paper was not at hand.  The made sets have no published figures, as another naive Bayes was used there.
- Seen before, with other folds: two of five parts of iris, wine, glass and the made sets.

    python -m experiments.quality.label_orders [--set SET ...]     # from the project's root; scores are kept
    python -m experiments.quality.label_orders --quick
"""

import csv
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.common import Timer, check, expected, need, need_data, output_folder, paired, parser, write
from placet.io import read_label_orders
from placet.metrics import metric
from placet.rank import LabelRanker, LinearRanker, TreeRanker
from placet.threads import set_threads

PUBLISHED = {
    "iris": (0.960, 0.832),
    "wine": (0.947, 0.954),
    "glass": (0.841, 0.825),
    "vehicle": (0.859, 0.838),
    "vowel": (0.851, 0.586),
    "housing": (0.711, 0.659),
}
"""Set -> Kendall's tau of the published instance-based (IB-PL) and linear (Lin-PL) Plackett-Luce models."""

MADE = ("iris-made", "wine-made")
LINEAR, LABELS, TREES, NEIGHBORS = 'LinearRanker("pl-partition")', "LabelRanker()", "TreeRanker()", "neighbors"
SIZES = (5, 10, 20)  # neighbors
tau = metric("kendall_tau")


class Cases(NamedTuple):
    """Features (cases, features), and the place of each label (cases, labels), 0 the best."""

    X: np.ndarray
    place: np.ndarray

    def of(self, which: np.ndarray) -> "Cases":
        return Cases(self.X[which], self.place[which])

    def rows(self, like: Any = None) -> Any:
        """Queries with a row for every case and label."""
        columns = {f"x{k}": x for k, x in enumerate(self.X.T)}
        ranks = {f"rank_{k:02d}": place + 1 for k, place in enumerate(self.place.T)}
        return read_label_orders({**columns, **ranks}, like=like)


def cases_of(name: str) -> Cases:
    """A set of the folder ``label_ranking``, or one made of scikit-learn's data by naive Bayes."""
    if name not in MADE:
        with open(need_data("label_ranking") / f"{name}.txt", newline="") as file:
            header, *lines = csv.reader(file)
        at = header.index("ranking")
        values = np.array([[float(text) for text in (*line[:at], *line[at + 1 :])] for line in lines])
        return Cases(values[:, :at], values[:, at:].astype(int))
    from sklearn import datasets
    from sklearn.naive_bayes import GaussianNB

    X, y = {"iris-made": datasets.load_iris, "wine-made": datasets.load_wine}[name](return_X_y=True)
    chance = GaussianNB().fit(X, y).predict_joint_log_proba(X)
    return Cases(X, np.argsort(np.argsort(-chance, axis=1, kind="stable"), axis=1))


def of_rows(make: Callable[[], Any]) -> Callable[[Cases, Cases], np.ndarray]:
    """Scores (cases, labels) by a ranker of the rows of `read_label_orders`."""

    def scores(train: Cases, test: Cases) -> np.ndarray:
        rows = train.rows()
        return make().fit(rows).predict(test.rows(rows.features)).reshape(test.place.shape)

    return scores


def of_labels(train: Cases, test: Cases) -> np.ndarray:
    n_labels = train.place.shape[1]
    order = LabelRanker().fit(train.X, n_labels - 1 - train.place).predict(test.X, k=n_labels)
    return -np.argsort(order, axis=1).astype(float)


def of_neighbors(train: Cases, test: Cases) -> np.ndarray:
    """Minus the mean ranks of the nearest cases; how many is chosen by leave-one-out."""
    mean, scale = train.X.mean(axis=0), train.X.std(axis=0) + 1e-12
    known, asked = (train.X - mean) / scale, (test.X - mean) / scale

    def nearest(A: np.ndarray, *, itself: bool) -> np.ndarray:
        distance = np.square(A[:, None] - known).sum(axis=2)
        if itself:
            np.fill_diagonal(distance, np.inf)
        return np.argsort(distance, axis=1, kind="stable")

    inside, outside = nearest(known, itself=True), nearest(asked, itself=False)
    mean_rank = lambda near, k: -train.place[near[:, :k]].mean(axis=1)  # noqa: E731
    best = max(SIZES, key=lambda k: values_of(mean_rank(inside, k), train).mean())
    return mean_rank(outside, best)


METHODS: dict[str, Callable[[Cases, Cases], np.ndarray]] = {
    LINEAR: of_rows(lambda: LinearRanker("pl-partition")),
    LABELS: of_labels,
    TREES: of_rows(lambda: TreeRanker()),
    NEIGHBORS: of_neighbors,
}


def values_of(scores: np.ndarray, cases: Cases) -> np.ndarray:
    """Kendall's tau of every case."""
    n, n_labels = cases.place.shape
    return tau(scores.ravel().astype(float), -cases.place.ravel().astype(float), n_labels * np.arange(n + 1))


def folds(n: int, n_folds: int, repetition: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Indices of the training and of the test cases."""
    part = np.random.default_rng([7, repetition]).permutation(n) % n_folds
    for k in range(n_folds):
        yield np.flatnonzero(part != k), np.flatnonzero(part == k)


def scored(folder: Path, name: str, method: str, n_folds: int, repetition: int) -> tuple[np.ndarray, float]:
    """Tau of every case when it was left out, and CPU seconds, read from ``folder`` if they were computed before."""
    path = folder / f"{name}-{method}-{repetition}.npz".replace(" ", "_").replace('"', "")
    if not path.exists():
        cases = cases_of(name)
        values = np.empty(len(cases.X))
        with Timer() as spent:
            for train, test in folds(len(values), n_folds, repetition):
                found = METHODS[method](cases.of(train), cases.of(test))
                values[test] = values_of(found, cases.of(test))
        folder.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path, values=values, cpu=spent.cpu)
        print(f"{name} {method}: {values.mean():.4f}, {spent.cpu:.1f} CPU s", file=sys.stderr, flush=True)
    with np.load(path) as file:
        return file["values"], float(file["cpu"])


def run(args: Namespace, folder: Path) -> tuple[list[list[Any]], dict[str, float]]:
    """Rows of the table, and what is checked."""
    rows: list[list[Any]] = []
    ours: dict[str, float] = {}
    n_folds = 3 if args.quick else 10
    for name in args.set:
        found = {
            method: [scored(folder, name, method, n_folds, k) for k in range(repetitions(method, args.quick))]
            for method in METHODS
        }
        mean = {method: np.mean([values for values, _ in runs], axis=0) for method, runs in found.items()}
        instance, linear = PUBLISHED.get(name, ("", ""))
        for method, values in mean.items():
            cpu = sum(seconds for _, seconds in found[method]) / len(found[method])
            gap = "" if method == NEIGHBORS else str(paired(values, mean[NEIGHBORS]))
            rows.append([name, method, f"{values.mean():.4f}", f"{cpu:.1f}", gap, instance, linear])
            ours[f"{name}, {method}"] = float(values.mean())
        ours[f"{name}, better of {LABELS} and {TREES}"] = max(ours[f"{name}, {LABELS}"], ours[f"{name}, {TREES}"])
        ours[f"{name}, {LABELS} - {NEIGHBORS}"] = ours[f"{name}, {LABELS}"] - ours[f"{name}, {NEIGHBORS}"]
    return rows, {f"simulated, {key}": value for key, value in ours.items()} if args.quick else ours


def repetitions(method: str, quick: bool) -> int:
    return 1 if quick or method == LABELS else 5


def main() -> None:
    args = parser(__doc__, draws=False, sets=(*MADE, *PUBLISHED)).parse_args()
    need("lightgbm", "torch")
    warnings.filterwarnings("ignore")
    set_threads(1)
    path = expected(__file__, "quick" if args.quick else "")
    folder = output_folder(path) / "scores"
    if args.quick:
        args.set = list(MADE)
        for old in folder.glob("*.npz"):
            old.unlink()  # what an earlier version scored says nothing of this one
    rows, ours = run(args, folder)
    for row in rows:
        print(", ".join(str(cell) for cell in row))
    names = ["set", "method", "tau", "CPU seconds of ten folds", "minus neighbors", "IB-PL", "Lin-PL"]
    write(folder.parent / "table.csv", names, rows)
    check(ours, path, args.set if not args.quick else None)


if __name__ == "__main__":
    main()
