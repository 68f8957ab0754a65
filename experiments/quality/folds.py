"""Every method with 20 fits a fold: Placet beside LightGBM, XGBoost and CatBoost, NDCG@10 on five sets.

The protocol of the third round, written before its test parts were scored.  Test parts had been scored in two earlier rounds, of
which README.md tells, and parts rotate: what is a validation part here is a test part of another fold.  So nothing here is as fresh as a
first look; what is asked is the mean of five sets, of which MQ2007-agg had never been scored.

The training and validation parts of each LETOR fold (four of five) are one set of queries, cut in four quarters (`random_parts`, seed 0).

- "Placet" is ``autorank(train, valid, candidates=SHORT_LIST[:20], folds=4, rotate=True, blend=20)``: 20 kinds of rankers, each fitted once,
  kind k without quarter k mod 4, by which it stops; the mean of all, each over its deviation inside lists; 20 fits.  One list and one
  rule for all sets.
- A peer is five draws of its space in ``peers.py``, seeded by name, set and fold; each is fitted four times, each time without a quarter by
  which it stops; the mean of all: 20 fits, as in the first round.
- "<peer>, in turn" has what Placet has: 20 draws of its space, the first five those above, each fitted once, draw k without quarter k mod 4.
- "Placet, 5 kinds" is Placet as in the first round: the kinds of ``FIVE``, four times each.

Primary: the mean over the five sets (MQ2008, OHSUMED, MQ2008-agg, MQ2007-agg, lightgbm_rank) of Placet minus LightGBM's lambdarank, XGBoost's
rank:ndcg and CatBoost's YetiRank, each set counting alike, with a 95 % interval; MQ2008-agg has the queries of MQ2008, so its
differences are added to those of the same query before the error is taken.  Won is what is above 0 with its whole interval.
Secondary: each set, 0.71 on MQ2008 and 0.46 on OHSUMED, the peers in turn, Placet with 5 kinds, CPU seconds.  Test queries are scored
once; the tables are made from what was kept.

How it came about: in each LETOR fold by fits on its three training parts, in quarters as above, judged on its validation part; the test part was
not scored.  There the 20 kinds in turn were ahead of 5 kinds four times by 0.0062 (standard error 0.0032) on lightgbm_rank, 0.0042 (0.0023)
on MQ2008, 0.0055 (0.0033) on a quarter of MQ2007-agg, behind by 0.0026 (0.0049) on OHSUMED, and level on MQ2008-agg (with a list that
differs in three kinds); learned weights, shares of trees by scores out of fold, and scores standardized or ranked inside lists gained nothing.

Differences are paired over test queries of all folds, with 95 % bootstrap intervals for a set.  The power: with n queries and the deviation d
of the differences, a true gain of 2.8 d / sqrt(n) would be seen in four of five such experiments at level 0.05.

    python -m experiments.quality.folds [--only METHOD ...] [--set SET ...]    # from the project's root; fits are kept in folds/fits
    python -m experiments.quality.folds --quick                                # simulated queries: seconds
"""

import json
import os
import shutil
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable
from functools import partial
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
from experiments.quality.fits import generator, one_thread, placet_fit
from experiments.quality.peers import PEERS, Scorer
from experiments.quality.sets import ALL, SAME_QUERIES, parts_of
from placet.data import Queries, concat
from placet.metrics import ndcg
from placet.rank.search.autorank import SHORT_LIST, Candidate, autorank
from placet.rank.search.blend import spread
from placet.rank.search.stacking import random_parts
from placet.threads import set_threads

FOLDS, SETTINGS, IN_TURN = 4, 5, ", in turn"
PLACET, FIRST_ROUND = "Placet", "Placet, 5 kinds"
DRAWN = {"learning_rate": 0.05, "leaves": 15, "feature_fraction": 0.5, "subsample": 0.7}

KINDS: tuple[Candidate, ...] = SHORT_LIST[: FOLDS * SETTINGS]
"""What Placet is here: what ``autorank`` tries first."""

FIVE: tuple[Candidate, ...] = (
    ("linear", {"loss": "pl-partition", "l2": 1e-2, "loss_params": {"stage_weight": "dcg"}}),
    ("trees", {"loss": "xendcg", **DRAWN}),
    ("listwise", {"base": ("linear", {"loss": "pmop-fd", "l2": 1e-2})}),
    ("trees", {"loss": "pmop-fd", **DRAWN}),
    ("booster", {"loss": "attrank", "learning_rate": 0.3, "subsample": 0.7, "feature_fraction": 0.5}),
)
"""What it was in the first round."""

METHODS = (PLACET, "LightGBM lambdarank", "XGBoost rank:ndcg")
"""What a run without ``--only`` fits and checks."""


def in_turn(method: str) -> bool:
    """Whether a setting is fitted once, without one quarter, rather than without each."""
    return method == PLACET or method.endswith(IN_TURN)


def setting_of(method: str, number: int, words: tuple) -> tuple[Any, Callable[[Queries, Queries], Scorer]]:
    """A setting of a method, and its fit on (queries, queries to stop by)."""
    if method in (PLACET, FIRST_ROUND):
        setting: Any = one_thread(*(KINDS if method == PLACET else FIVE)[number])
        return setting, partial(placet_fit, setting)
    name = method.removesuffix(IN_TURN)
    space, fit = PEERS[name]
    setting = space(generator(name, "folds", number, *words))
    return setting, partial(fit, setting)


def scores_of(method: str, number: int, words: tuple, whole: Queries, test: Queries) -> tuple[np.ndarray, float, Any]:
    """Scores of the test rows by one setting, over all quarters or without one; its CPU seconds, and the setting."""
    setting, fit = setting_of(method, number, words)
    part, s = random_parts(whole, FOLDS, 0), np.zeros(len(test.grade))
    left_out = [number % FOLDS] if in_turn(method) else range(FOLDS)
    with Timer() as spent:
        for k in left_out:
            valid = whole[part == k]
            scorer = fit(whole[part != k], valid)
            s += np.asarray(scorer(test)) / (len(left_out) * spread(np.asarray(scorer(valid)), valid.offsets))
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


def number_of_settings(method: str, quick: bool) -> int:
    """Settings of a method: 20 fits are made of them, or 8 in a quick run."""
    return (2 if quick else SETTINGS) * (FOLDS if in_turn(method) else 1)


def per_query(name: str, parts: list[Queries], methods: list[str], args: Namespace) -> tuple[dict, dict]:
    """Method -> NDCG@10 of every test query, and method -> CPU seconds."""
    values: dict[str, list[np.ndarray]] = {}
    cpu: dict[str, float] = {}
    folder = output_folder(expected(__file__, "quick" if args.quick else "")) / "fits"
    if args.quick:
        shutil.rmtree(folder, ignore_errors=True)  # what an earlier version fitted says nothing of this one
    for fold, (train, valid, test) in enumerate(letor_folds(parts, 1 if args.quick else 5)):
        whole = concat([train, valid])
        for method in methods:
            n_settings = number_of_settings(method, args.quick)
            some = [kept(folder, method, k, (name, fold), whole, test) for k in range(n_settings)]
            s = np.mean([one for one, _ in some], axis=0)
            values.setdefault(method, []).append(ndcg(s, test.grade, test.offsets, 10))
            cpu[method] = cpu.get(method, 0.0) + sum(seconds for _, seconds in some)
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
    n = number_of_settings(PLACET, quick=True)
    choice = autorank(train, valid, candidates=KINDS[:n], folds=FOLDS, rotate=True, blend=n)
    ours = [scores_of(PLACET, k, (), concat([train, valid]), test)[0] for k in range(n)]
    return float(np.abs(choice.ranker.predict(test) - np.mean(ours, axis=0)).max())


def table(name: str, values: dict[str, np.ndarray], cpu: dict[str, float], gaps: dict) -> list[list[Any]]:
    """Rows of a set: method, mean, CPU seconds, and what Placet is ahead of it; the differences go into ``gaps``."""
    rows = []
    for label, column in values.items():
        row = [name, label, float(np.nanmean(column)), cpu[label]]
        print(f"{name}: {label} {row[2]:.4f}, {row[3]:.0f} CPU s")
        if PLACET in values and label != PLACET:
            gap = values[PLACET] - column
            gaps.setdefault(label, {})[name] = gap
            gap = gap[~np.isnan(gap)]
            seen, power = paired(values[PLACET], column), 2.8 * gap.std(ddof=1) / np.sqrt(len(gap))
            row += [str(seen), f"{power:.4f}"]
            print(f"{name}: {PLACET} - {label}: {seen}; a gain of {power:.4f} would be seen in four of five")
        rows.append(row)
    return rows


def main() -> None:
    made = parser(__doc__, sets=ALL)
    made.add_argument(
        "--only",
        nargs="+",
        default=list(METHODS),
        metavar="METHOD",
        help=f"fit and show only these, of {PLACET}, {FIRST_ROUND}, {', '.join(PEERS)}, or a peer followed by '{IN_TURN}'",
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
        some = table(name, *per_query(name, parts, methods, args), gaps)
        ours |= {f"{name}, {label}": mean for _, label, mean, *_ in some}
        rows += some
        if args.quick:
            ours[f"{name}, largest difference to autorank"] = difference_to_autorank(parts)
    for label, per_set in gaps.items():
        if len(per_set) > 1:
            mean, error = mean_over_sets(per_set)
            low, high = mean - 1.96 * error, mean + 1.96 * error
            words = f"mean of {len(per_set)} sets: {PLACET} - {label}: {mean:+.4f} [{low:+.4f}, {high:+.4f}]"
            print(f"{words}; {2.8 * error:.4f} would be seen in four of five")
            if set(per_set) == set(ALL):
                ours[f"mean of sets, Placet - {label}"] = mean
    path = expected(__file__, "quick" if args.quick else "")
    header = ["set", "method", "ndcg@10", "cpu seconds", "placet - it", "would be seen"]
    write(output_folder(path) / "table.csv", header, rows)
    if args.quick or set(args.only) == set(METHODS):
        check(ours, path, [*set_names(sets), *(["mean of sets"] if set(sets) == set(ALL) else [])])


if __name__ == "__main__":
    main()
