"""Every method fitted over folds, with the same number of fits: Placet beside LightGBM, XGBoost and CatBoost, NDCG@10.

The protocol, written before the test parts were scored.  The training and validation parts of each LETOR fold (four of five) are one set
of queries.  A setting is fitted four times, each time without a quarter of these queries, by which it stops; the mean of the four,
each over its deviation inside lists, stands for it.  A method is the mean of five settings: 20 fits.  Placet has the first five of
``CANDIDATES``, fixed; each peer has five draws of the space of ``peers.py``, seeded by name, set and fold.  "Placet, 12" is the
mean of all of ``CANDIDATES``, 48 fits.  It is
``autorank(train, valid, candidates=CANDIDATES, folds=4, blend=12)``.  Test queries are scored once; the tables are made from what was kept.

There was a second round, with a forest of random trees of the grades in place of the trees for pmop-fd, which was ahead on the validation
parts (+0.0051 with a standard error of 0.0028 on MQ2008, +0.0024 on OHSUMED; the best of eight ways to use it) and not on the test parts
(README.md); so the candidates are those of the first round.

How CANDIDATES came about: by fits on two training parts stopped on the third and judged on the validation part of the LETOR fold.
Bagging over folds was worth 0.005 to 0.01 for nearly every candidate, the mean of many kinds about as much again, learnt weights
nothing (equal ones stayed in most folds).  Parts rotate, so these validation parts are test parts of other folds.

"Placet, stacked" (``--only``) is the same five with weights from scores of queries that their fits had not seen, ``autorank(..., stack=True)``.

Further sets (``--set MQ2007-agg MQ2008-agg lightgbm_rank``, what they are is in ``sets.py``) came later, with the same candidates and spaces;
nothing was chosen on them.  Over all sets the mean of the differences counts each set alike; MQ2008-agg has the queries of MQ2008, so
its differences are added to those of the same query before the error is taken.

Differences are paired over test queries of all folds, with 95 % bootstrap intervals.  The power: with n queries and the deviation d of
the differences, a true gain of 2.8 d / sqrt(n) would be seen in four of five such experiments at level 0.05.

    python -m experiments.quality.folds [--only METHOD ...]     # from the project's root; fits are kept in folds/fits
    python -m experiments.quality.folds --quick                 # simulated queries: seconds
"""

import json
import os
import sys
import warnings
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.common import (
    Timer,
    check,
    expected,
    letor_folds,
    need,
    output_folder,
    paired,
    parser,
    set_names,
    simulated_parts,
    write,
)
from experiments.quality.fits import generator
from experiments.quality.peers import PEERS
from experiments.quality.sets import SAME_QUERIES, parts_of
from placet.data import Queries, concat
from placet.metrics import ndcg
from placet.rank.auto import Candidate, autorank, unfitted
from placet.rank.blend import spread
from placet.rank.stacking import deal
from placet.threads import set_threads

FOLDS, SETTINGS = 4, 5
DRAWN = {"feature_fraction": 0.5, "subsample": 0.7}
PLACET, MANY, STACKED = "Placet", "Placet, 12", "Placet, stacked"


def trees(loss: str, **more: Any) -> Candidate:
    """Small trees in one thread, rows and features drawn for each."""
    return "trees", {"loss": loss, "learning_rate": 0.05, "leaves": 15, **DRAWN, "engine": {"num_threads": 1}, **more}


CANDIDATES: tuple[Candidate, ...] = (
    ("linear", {"loss": "pl-partition", "l2": 1e-2, "loss_params": {"stage_weight": "dcg"}}),
    trees("xendcg"),
    ("listwise", {"base": ("linear", {"loss": "pmop-fd", "l2": 1e-2})}),
    trees("pmop-fd"),
    ("booster", {"loss": "attrank", "learning_rate": 0.3, "subsample": 0.7, "feature_fraction": 0.5}),
    trees("pl-partition", loss_params={"stage_weight": "dcg"}),
    ("listwise", {"base": trees("pmop-fd", feature_fraction=0.3)}),
    ("linear", {"loss": "xendcg", "l2": 1e-2}),
    ("listwise", {"base": ("linear", {"loss": "pl-partition", "l2": 1e-1})}),
    ("linear", {"loss": "pmop-fd", "l2": 1e-3}),
    trees("attrank"),
    ("linear", {"loss": "attrank", "l2": 1e-3}),
)
"""What Placet is here: linear rankers, trees, boosted features, and features of the whole list."""

METHODS = (PLACET, "LightGBM lambdarank", "XGBoost rank:ndcg")
"""What a run without ``--only`` fits and checks."""

WITH_MANY = ("MQ2008", "OHSUMED")
"""Sets on which all of CANDIDATES are fitted; on others the first five."""


def scores_of(method: str, number: int, words: tuple, whole: Queries, test: Queries) -> tuple[np.ndarray, float, Any]:
    """Scores of the test rows by one setting over all folds, its CPU seconds, and the setting."""
    if method == STACKED:
        with Timer() as spent:
            choice = autorank(whole, candidates=CANDIDATES[:SETTINGS], folds=FOLDS, blend=SETTINGS, stack=True)
            s = choice.ranker.predict(test)
        return s, spent.cpu, choice.weights
    if method == PLACET:
        setting: Any = CANDIDATES[number]
    else:
        space, fit = PEERS[method]
        setting = space(generator(method, "folds", number, *words))
    part, s = deal(whole, FOLDS, 0), np.zeros(len(test.grade))
    with Timer() as spent:
        for k in range(FOLDS):
            train, valid = whole[part != k], whole[part == k]
            if method == PLACET:
                scorer = unfitted(*setting, "ndcg@10", 0).fit(train, valid=valid).predict
            else:
                scorer = fit(setting, train, valid)
            s += np.asarray(scorer(test)) / (FOLDS * spread(np.asarray(scorer(valid)), valid.offsets))
    return s, spent.cpu, setting


def kept(
    folder: Path, method: str, number: int, words: tuple, whole: Queries, test: Queries
) -> tuple[np.ndarray, float]:
    """The same, read from ``folder`` if it was computed before."""
    name = "-".join(str(w) for w in (*words, method, number)).replace(" ", "_").replace(":", "_")
    path = folder / f"{name}.npz"
    if not path.exists():
        s, cpu, setting = scores_of(method, number, words, whole, test)
        folder.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path.with_suffix(".part.npz"), s=s, cpu=cpu, setting=json.dumps(setting))
        os.replace(path.with_suffix(".part.npz"), path)
    with np.load(path) as file:
        return file["s"], float(file["cpu"])


def settings_of(method: str, name: str, quick: bool) -> dict[str, tuple[int, ...]]:
    """What is shown of a method on a set: a label -> the numbers of the settings whose mean it is."""
    if method == STACKED:
        return {STACKED: (0,)}
    if method != PLACET:
        return {method: tuple(range(3 if quick else SETTINGS))}
    if quick:
        return {PLACET: (0, 1, 2), MANY: (0, 1, 2)}
    many = {MANY: tuple(range(len(CANDIDATES)))} if name in WITH_MANY else {}
    return {PLACET: tuple(range(SETTINGS))} | many


def per_query(name: str, parts: list[Queries], methods: list[str], args: Namespace) -> tuple[dict, dict]:
    """Method -> NDCG@10 of every test query, and method -> CPU seconds."""
    values: dict[str, list[np.ndarray]] = {}
    cpu: dict[str, float] = {}
    folder = output_folder(expected(__file__, "quick" if args.quick else "")) / "fits"
    for fold, (train, valid, test) in enumerate(letor_folds(parts, 1 if args.quick else 5)):
        whole = concat([train, valid])
        for method in methods:
            for label, numbers in settings_of(method, name, args.quick).items():
                some = [kept(folder, method, k, (name, fold), whole, test) for k in numbers]
                if some:
                    s = np.mean([one for one, _ in some], axis=0)
                    values.setdefault(label, []).append(ndcg(s, test.grade, test.offsets, 10))
                    cpu[label] = cpu.get(label, 0.0) + sum(seconds for _, seconds in some)
            print(f"{name} fold {fold + 1} {method}", file=sys.stderr, flush=True)
    return {label: np.concatenate(columns) for label, columns in values.items()}, cpu


def mean_over_sets(per_set: dict[str, np.ndarray]) -> tuple[float, float]:
    """The mean of the sets' mean differences, each set counting alike, and its standard error.

    ``per_set``: the difference in every test query, NaN where it has none; queries of `SAME_QUERIES` are one draw.
    """
    draws: dict[str, np.ndarray] = {}
    for name, gap in per_set.items():
        share = np.nan_to_num((gap - np.nanmean(gap)) / (~np.isnan(gap)).sum())
        home = SAME_QUERIES.get(name, name)
        draws[home] = draws.get(home, 0.0) + share
    error = np.sqrt(sum(float((total**2).sum()) for total in draws.values())) / len(per_set)
    return float(np.mean([np.nanmean(gap) for gap in per_set.values()])), float(error)


def difference_to_autorank(parts: list[Queries]) -> float:
    """Largest difference between the scores of ``autorank``, which users call, and those made here."""
    train, valid, test = next(letor_folds([part[:12] for part in parts], 1))
    choice = autorank(train, valid, candidates=CANDIDATES[:3], folds=FOLDS, blend=3)
    ours = [scores_of(PLACET, k, (), concat([train, valid]), test)[0] for k in range(3)]
    return float(np.abs(choice.ranker.predict(test) - np.mean(ours, axis=0)).max())


def main() -> None:
    made = parser(__doc__, sets=("MQ2008", "OHSUMED"))
    made.add_argument(
        "--only",
        nargs="+",
        default=list(METHODS),
        metavar="METHOD",
        help=f"fit and show only these, of {PLACET}, {STACKED}, {', '.join(PEERS)}",
    )
    args = made.parse_args()
    methods = list(METHODS[:2]) if args.quick else args.only
    need("lightgbm", *({"xgboost", "catboost"} & {m.split()[0].lower() for m in methods}))
    warnings.filterwarnings("ignore")
    set_threads(1)
    rows, ours, gaps = [], {}, {}
    sets = ["simulated"] if args.quick else args.set
    for name, where in zip(set_names(sets), sets):
        parts = simulated_parts(seed=args.seed) if args.quick else parts_of(where)
        values, cpu = per_query(name, parts, methods, args)
        for label, column in values.items():
            ours[f"{name}, {label}"] = float(np.nanmean(column))
            row = [name, label, ours[f"{name}, {label}"], cpu[label]]
            for base in (PLACET, MANY, STACKED):
                if base in values and label not in (PLACET, MANY, STACKED):
                    gap = values[base] - column
                    gaps.setdefault((base, label), {})[name] = gap
                    gap = gap[~np.isnan(gap)]
                    seen = paired(values[base], column)
                    power = 2.8 * gap.std(ddof=1) / np.sqrt(len(gap))
                    row += [str(seen), f"{power:.4f}"]
                    print(f"{name}: {base} - {label}: {seen}; a gain of {power:.4f} would be seen in four of five")
            print(f"{name}: {label} {row[2]:.4f}, {row[3]:.0f} CPU s")
            rows.append(row)
        if args.quick:
            ours[f"{name}, largest difference to autorank"] = difference_to_autorank(parts)
    for (base, label), per_set in gaps.items():
        if len(per_set) > 1:
            mean, error = mean_over_sets(per_set)
            low, high = mean - 1.96 * error, mean + 1.96 * error
            print(f"mean of {len(per_set)} sets: {base} - {label}: {mean:+.4f} [{low:+.4f}, {high:+.4f}]")
    path = expected(__file__, "quick" if args.quick else "")
    header = [
        "set",
        "method",
        "ndcg@10",
        "cpu seconds",
        "placet - it",
        "would be seen",
        "placet 12 or stacked - it",
        "would be seen",
    ]
    write(output_folder(path) / "table.csv", header, rows)
    if args.quick or set(args.only) == set(METHODS):
        check(ours, path, set_names(sets))


if __name__ == "__main__":
    main()
