"""The first call: every ranker and every peer with no argument, NDCG@10, on real sets and on simulated shapes of the truth.

The protocol, written before any test part was scored with it.

- Methods: ``TreeRanker()``, ``LinearRanker()``, ``NeuralRanker()``; ``LGBMRanker()``, ``XGBRanker()`` and ``CatBoostRanker()``, each with no argument but one
  thread and no output; and "TreeRanker, as before", the default up to 18 November 2026 (`BEFORE`), with today's curvature.  No method has a validation
  set: it is the first call that is compared.
- Real sets: those of ``sets.py``, five folds, fitted to the training and validation parts of each, scored on its test part.
- Simulated sets: the shapes of ``shapes.py``, 500 queries (about 20,000 rows) with 40 features, scored on 1,000 further queries of the same truth, seed
  ``SEED``, with which nothing was chosen.  ``--large``: 12,500 queries (about 500,000 rows) with 136 features, scored on 2,000.
- Asked: TreeRanker() minus each peer, paired over test queries, with a 95 % bootstrap interval; the mean over the seven shapes and the mean over the five real sets,
  each set counting alike.  Reached is what is not below 0 beyond chance on any set, and above 0 beyond chance in both means, against LGBMRanker().

How the default was chosen: on the validation parts of MQ2008, OHSUMED and lightgbm_rank (fits on the training parts), and on simulated sets with seed 7, of 400
and of 1,500 queries.  Compared were losses (pmop-fd, pl-partition with equal and with DCG weights of the stages, xendcg, lambdarank with and without LightGBM's norm,
lambdaloss), bounds on the Newton step of a row (1, 2, 4, none), rates 0.03, 0.05 and 0.1, 100 to 500 trees, 15 and 31 leaves, l2 0, 0.1 and 1, shares of
features and rows of 0.5 / 0.7, 0.8 / 0.8 and 1 / 1.  README.md has the table.

``NeuralRanker()`` got a new default after that (18 November 2026; its protocol, before its test parts were scored with it): bins of features, two members,
dropout, pl-partition, 20 epochs at a falling rate.  It was chosen on the shapes *interactions*, *steps* and *additive* with seed 7 (500 queries to fit, 500 others to
judge), where bins (none, 8, 16, 32), dropout (0.3, 0.4), widths (128, 256), members (1, 2, 4), rates (1e-3, 2e-3) and epochs (10 to 50) were varied, not in all combinations.
Asked: NeuralRanker() minus LGBMRanker(), paired over test queries, on each shape and in the mean; reached is what is not below 0 beyond chance.

``NeuralRanker()`` got a third default on 19 November 2026 (this protocol, before its test parts were scored with it): ``l1``, which keeps a weight of the first
layer only if its mean gradient is about 1.8 standard errors from 0, a rate of 5e-3 for 1e-3, and dropout of 0.2 for 0.3.  Chosen with seed 7 (500 queries
to fit, 500 others to judge) on *interactions*, *steps* and *few relevant*, and looked at once on the four other shapes; dropout also with seeds 8 and 9 and on
validation parts (fits on the training parts) of OHSUMED, MQ2008 and lightgbm_rank.  README.md has the table.
Asked: NeuralRanker() minus LGBMRanker() on each of the seven shapes and the five real sets, and in both means, paired over test queries; reached is what is not
below 0 beyond chance on any.  "NeuralRanker, as before" is the second default, scored on the same test parts; only the first default had been scored on those of the real sets.

``TreeRanker()`` got a new default after that (19 November 2026; this paragraph, before its test parts were scored with it): 600 symmetric trees of 32 leaves, grown by Placet
itself, and a rate by `rate_for` that is higher from 500 queries on and lower for small sets.  Asked: TreeRanker() minus CatBoostRanker(), minus LGBMRanker() and minus XGBRanker(), paired over test
queries with 95 % intervals, on each of the seven shapes and the five real sets, and in both means; reached is what is not below 0 beyond chance.  The test parts are scored once with it; those of the
five real sets, and of five with CatBoostRanker(), had been scored with the default before.  How it was chosen: on the shapes with seed 7 (500 queries to fit, 1,000 others to judge; few relevant also with seed
107) and on the validation parts of the real sets (MQ2007-agg: two folds).  Compared were LightGBM's trees (300 to 1,000 of them; 8, 16, 31 and 64 leaves; extra_trees; features drawn for each
node; half of the rows; l2 1 and 20; 100 rows per leaf; lambdarank and ranknet), CatBoost with leaf-wise trees and without its noise, and symmetric trees (32, 64 and 128 leaves, up to 1,000 of them, rates
0.03 to 0.07, l2 1, 10 and 50, 1, 20, 60 and 100 rows per leaf, all or half of the rows and features).  README.md has the table.

    python -m experiments.quality.defaults [--only METHOD ...] [--of METHOD] [--set SET ...] [--large]    # from the project's root; scores are kept
    python -m experiments.quality.defaults --quick
"""

import os
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from experiments.common import Timer, check, expected, letor_folds, need, output_folder, paired, parser, write
from experiments.quality.folds import mean_over_sets
from experiments.quality.sets import ALL, parts_of
from experiments.quality.shapes import SHARES, simulated
from placet.data import Lists, Queries, concat
from placet.losses import LOSSES
from placet.metrics import ndcg
from placet.rank import LinearRanker, NeuralRanker, TreeRanker
from placet.rank.trees.tree_ranker import Slopes
from placet.threads import set_threads

SEED = 11
OURS, BEFORE_NAME, PEER = "TreeRanker()", "TreeRanker, as before", "LGBMRanker()"
BEFORE = {
    "backend": "lightgbm",
    "loss": "pmop-fd",
    "n_trees": 300,
    "learning_rate": 0.1,
    "leaves": 31,
    "min_rows": 20,
    "l2": 1.0,
    "subsample": 1.0,
    "feature_fraction": 1.0,
}
NETWORK_BEFORE = {"learning_rate": 1e-3, "l1": 0.0, "dropout": 0.3}
"""The network of 18 November 2026: what has changed since."""

SIZES = {"": (500, 1000, 40), "large": (12_500, 2_000, 136), "quick": (150, 300, 25)}
"""Kind of run -> queries to fit, queries to score, features."""

Scorer = Callable[[Queries], Any]


def of_placet(make: Callable[[], Any]) -> Callable[[Queries], Scorer]:
    return lambda train: make().fit(train).predict


def of_lightgbm(train: Queries) -> Scorer:
    from lightgbm import LGBMRanker

    made = LGBMRanker(n_jobs=1, verbosity=-1).fit(train.X, train.grade, group=np.diff(train.offsets))
    return lambda queries: made.predict(queries.X, num_threads=1)


def of_xgboost(train: Queries) -> Scorer:
    from xgboost import XGBRanker

    made = XGBRanker(n_jobs=1).fit(train.X, train.grade, qid=train.query)
    return lambda queries: made.predict(queries.X)


def of_catboost(train: Queries) -> Scorer:
    from catboost import CatBoostRanker

    made = CatBoostRanker(thread_count=1, verbose=False, allow_writing_files=False)
    made.fit(train.X, train.grade, group_id=train.query)
    return lambda queries: made.predict(queries.X)


METHODS: dict[str, Callable[[Queries], Scorer]] = {
    OURS: of_placet(lambda: TreeRanker()),
    BEFORE_NAME: of_placet(lambda: TreeRanker(**BEFORE)),
    "LinearRanker()": of_placet(lambda: LinearRanker()),
    "NeuralRanker()": of_placet(lambda: NeuralRanker()),
    "NeuralRanker, as before": of_placet(lambda: NeuralRanker(**NETWORK_BEFORE)),
    PEER: of_lightgbm,
    "XGBRanker()": of_xgboost,
    "CatBoostRanker()": of_catboost,
}


UNBOUNDED = [name for name in METHODS if name not in (OURS, BEFORE_NAME, PEER)]
"""Methods whose differences are shown and not checked."""


def splits(name: str, kind: str) -> Iterator[tuple[Queries, Queries]]:
    """(queries to fit, queries to score) of a set: five folds of a real one, one of a simulated one."""
    if name in SHARES:
        n_fit, n_score, n_features = SIZES[kind]
        yield simulated(name, n_fit, n_features, SEED), simulated(name, n_score, n_features, SEED, draw=1)
        return
    for train, valid, test in letor_folds(parts_of(name)):
        yield concat([train, valid]), test


def scored(folder: Path, name: str, method: str, fold: int, train: Queries, test: Queries) -> tuple[np.ndarray, float]:
    """NDCG@10 of every query of ``test`` and CPU seconds of the fit, read from ``folder`` if they were computed before."""
    path = folder / f"{name}-{fold}-{method}.npz".replace(" ", "_")
    if not path.exists():
        with Timer() as spent:
            scorer = METHODS[method](train)
        values = ndcg(np.asarray(scorer(test), dtype=np.float64), test.grade, test.offsets, 10)
        folder.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path.with_suffix(".part.npz"), values=values, cpu=spent.cpu)
        os.replace(path.with_suffix(".part.npz"), path)
        print(
            f"{name} fold {fold + 1} {method}: {np.nanmean(values):.4f}, {spent.cpu:.1f} CPU s",
            file=sys.stderr,
            flush=True,
        )
    with np.load(path) as file:
        return file["values"], float(file["cpu"])


def steps_of_leaves() -> dict[str, float]:
    """What made trees by likelihoods of orders slow or coarse, in numbers: see README.md, "Why trees trailed"."""
    alone = LOSSES["pmop-fd"].curvature(np.linspace(-1.0, 1.0, 40), Lists(np.zeros(40), [0, 40]))  # type: ignore[misc]
    slopes = Slopes("pl-partition")
    slopes.bind(Lists(np.arange(40) == 0, [0, 40]))
    g, h = slopes.at(np.zeros(40))
    return {
        "simulated, curvature of a list without an order": float(alone.max()),
        "simulated, largest step of a row": float((np.abs(g) / h).max()),
    }


def table(
    values: dict[str, dict[str, np.ndarray]], cpu: dict[str, dict[str, float]], of: str
) -> tuple[list[list[Any]], dict[str, float]]:
    """Rows (set, method, mean, CPU seconds, ``of`` minus it) and the differences to be checked."""
    rows, ours = [], {}
    for name, columns in values.items():
        for method, column in columns.items():
            rows.append([name, method, float(np.nanmean(column)), cpu[name][method]])
            if method != of and of in columns:
                seen = paired(columns[of], column)
                rows[-1].append(str(seen))
                ours[f"simulated, {name}, ahead of {method}" if name in SHARES else f"{name}, ahead of {method}"] = (
                    seen.mean
                )
            print(" ".join(f"{x:.4f}" if isinstance(x, float) else str(x) for x in rows[-1]))
    return rows, ours


def means(values: dict[str, dict[str, np.ndarray]], of: str) -> dict[str, float]:
    """The mean over the simulated and over the real sets of ``of`` minus each other method that has all of them."""
    found = {}
    for group, names in (("shapes", tuple(SHARES)), ("real sets", ALL)):
        if not set(names) <= set(values):
            continue
        for method in METHODS:
            if method != of and all({method, of} <= set(values[name]) for name in names):
                mean, error = mean_over_sets({name: values[name][of] - values[name][method] for name in names})
                low, high = mean - 1.96 * error, mean + 1.96 * error
                print(
                    f"mean of {group}: {of} - {method}: {mean:+.4f} [{low:+.4f}, {high:+.4f}], {mean / error:.1f} errors"
                )
                found[f"mean of {group}, ahead of {method}"] = mean
    return found


def run(args: Namespace, kind: str, folder: Path) -> dict[str, float]:
    values: dict[str, dict[str, np.ndarray]] = {}
    cpu: dict[str, dict[str, float]] = {}
    for name in args.set:
        for fold, (train, test) in enumerate(splits(name, kind)):
            for method in args.only:
                column, seconds = scored(folder, name, method, fold, train, test)
                kept = values.setdefault(name, {})
                kept[method] = np.concatenate([kept[method], column]) if method in kept else column
                spent = cpu.setdefault(name, {})
                spent[method] = spent.get(method, 0.0) + seconds
    rows, ours = table(values, cpu, args.of)
    write(folder.parent / "table.csv", ["set", "method", "ndcg@10", "cpu seconds", f"{args.of} - it"], rows)
    return ours | means(values, args.of)


def main() -> None:
    made = parser(__doc__, draws=False, sets=(*SHARES, *ALL))
    made.add_argument("--only", nargs="+", default=[OURS, BEFORE_NAME, PEER], choices=list(METHODS), metavar="METHOD")
    made.add_argument(
        "--of", default=OURS, choices=list(METHODS), metavar="METHOD", help="show its lead over the others"
    )
    made.add_argument("--large", action="store_true", help="simulated sets of about 500,000 rows and 136 features")
    args = made.parse_args()
    need("lightgbm")
    warnings.filterwarnings("ignore")
    set_threads(1)
    kind = "quick" if args.quick else "large" if args.large else ""
    path = expected(__file__, kind)
    folder = output_folder(path) / "scores"
    if args.quick:
        args.set = ["few relevant", "binary"]
        for old in folder.glob("*.npz"):
            old.unlink()  # what an earlier version scored says nothing of this one
    elif args.large:
        args.set = [name for name in args.set if name in SHARES]
    found = steps_of_leaves() | run(args, kind, folder)
    bounded = {q: value for q, value in found.items() if not q.endswith(tuple(f"ahead of {m}" for m in UNBOUNDED))}
    if args.of == OURS and (args.quick or (not args.large and set(args.set) >= {*SHARES, *ALL})):
        check(bounded, path)
    else:
        print("nothing was checked: bounds are for all sets and TreeRanker()")


if __name__ == "__main__":
    main()
