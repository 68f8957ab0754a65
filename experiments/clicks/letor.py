"""Clicks simulated on MQ2008: rankers that learn from them, with and without the positions at which rows were shown.

Five folds, three seeds.  A poor ranking is in production: a linear ranker fitted to one training query in a hundred (at least
three).  It shows the top 10 of every training query, 20 times; the row at position k is examined with probability 1 / k and,
if examined, clicked with probability 0.1 + 0.9 (2^grade - 1) / (2^2 - 1).  The queries of the validation part are shown and clicked
the same way.  Rankers see the clicks alone, no grade; where a method has several settings, the one is taken whose scores
explain the clicks of the validation part best (`placet.rank.click_likelihood`).  NDCG@10 on the true grades of the test parts.

"linear" chooses between "ranknet" and "pl-partition" (each click a choice among the rows shown) and three penalties,
"trees" between the same losses; LightGBM's ``position=`` has trees of the same sizes and as many settings as "trees", XGBoost's
``lambdarank_unbiased`` one; "naive" has no positions; "true grades" saw the grades of the training queries.  The values of fold 1
alone are given beside those of all: there true grades reach 0.72, in all folds 0.70.  About five minutes of one core; what was
computed is kept in letor/values.  `--fold` computes some folds only.  `--quick`: one fold and one seed of simulated queries.
"""

import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from experiments.common import (
    check,
    check_first,
    expected,
    letor_folds,
    letor_parts,
    need,
    output_folder,
    paired,
    parser,
    set_names,
    simulated_parts,
    write,
)
from placet.data import Clicks, Queries
from placet.metrics import ndcg
from placet.rank import LinearRanker, TreeRanker, choose_by_clicks, click_likelihood, fit_clicks
from placet.simulate import clicks
from placet.threads import set_threads

SESSIONS, SEEDS = 20, 3
TREES = {"n_trees": 60, "learning_rate": 0.1, "leaves": 8, "min_rows": 400, "l2": 1.0}
LINEAR = [LinearRanker(loss, l2) for loss in ("ranknet", "pl-partition") for l2 in (1e-3, 1e-2, 1e-1)]
FORESTS = [TreeRanker(loss, **TREES, backend_params={"num_threads": 1}) for loss in ("ranknet", "pl-partition")]
PEER, OTHER_PEER = "LightGBM position", "XGBoost unbiased"
Scores = Callable[[np.ndarray], np.ndarray]


def lightgbm_position(log: Clicks, X: np.ndarray, truncation: int) -> Scores:
    """LambdaRank of LightGBM with ``position=``, which fits the bias of positions as well; the settings of TREES."""
    import lightgbm as lgb

    data = lgb.Dataset(X, log.clicked.astype(int), group=np.diff(log.offsets), position=log.position - 1)
    settings = {"objective": "lambdarank", "learning_rate": TREES["learning_rate"], "num_leaves": TREES["leaves"]}
    settings |= {"min_data_in_leaf": TREES["min_rows"], "lambda_l2": TREES["l2"], "verbosity": -1, "num_threads": 1}
    return lgb.train({**settings, "lambdarank_truncation_level": truncation}, data, TREES["n_trees"]).predict


def xgboost_unbiased(log: Clicks, X: np.ndarray) -> Scores:
    """LambdaMART of XGBoost with ``lambdarank_unbiased``, which takes the order of rows for their positions."""
    import xgboost as xgb

    query = np.repeat(np.arange(len(log)), np.diff(log.offsets))
    settings = {"objective": "rank:ndcg", "lambdarank_unbiased": True, "lambdarank_pair_method": "topk", "nthread": 1}
    settings |= {
        "eta": TREES["learning_rate"],
        "max_leaves": TREES["leaves"],
        "max_depth": 0,
        "grow_policy": "lossguide",
    }
    booster = xgb.train(
        {**settings, "lambda": TREES["l2"], "tree_method": "hist"},
        xgb.DMatrix(X, log.clicked, qid=query),
        TREES["n_trees"],
    )
    return lambda rows: booster.predict(xgb.DMatrix(rows))


def production(train: Queries) -> LinearRanker:
    """A ranker of few queries."""
    return LinearRanker("pl-partition", 0.1).fit(train[: max(3, len(train) // 100)])


def methods(
    train: Queries, valid: Queries, log: Clicks, valid_log: Clicks, quick: bool
) -> Iterator[tuple[str, Callable[[], Scores]]]:
    """Name, and what gives scores to rows."""
    X, X_valid = train.X[log.document], valid.X[valid_log.document]

    def chosen(rankers: list) -> Scores:
        return choose_by_clicks(rankers, X, log, valid_log, X_valid=X_valid)[0].ranker.predict

    def lightgbm() -> Scores:
        found = [lightgbm_position(log, X, truncation) for truncation in (10, 30)]
        values = [click_likelihood(SimpleNamespace(predict=one), X_valid, valid_log) for one in found]
        return found[int(np.argmax(values))]

    yield "production", lambda: production(train).predict
    yield "linear", lambda: chosen(LINEAR)
    yield "linear, naive", lambda: fit_clicks(LinearRanker("ranknet", 1e-3), X, log, debias=False).ranker.predict
    yield "linear, true grades", lambda: LinearRanker("ranknet", 1e-2).fit(train).predict
    yield "trees", lambda: chosen(FORESTS)
    yield PEER, lightgbm
    if not quick:
        yield OTHER_PEER, lambda: xgboost_unbiased(log, X)


def identity(seed: int) -> dict[str, float]:
    """How far the learned examination is from the true 1 / k, and whether the ranker kept explains held-out clicks best."""
    train, valid, _ = next(letor_folds(simulated_parts(40, seed=seed), 1))
    shown_by = production(train)
    log, valid_log = (
        clicks(q, shown_by.predict(q), SESSIONS, random_state=seed + k) for k, q in enumerate((train, valid))
    )
    X, X_valid = train.X[log.document], valid.X[valid_log.document]
    some = [LinearRanker("pl-partition", l2) for l2 in (1e-2, 1.0, 100.0)]
    kept, _ = choose_by_clicks(some, X, log, valid_log, X_valid=X_valid)
    best = max(click_likelihood(fit_clicks(one, X, log).ranker, X_valid, valid_log) for one in some)
    off = np.log(kept.examination[1:5] / kept.examination[0]) + np.log(np.arange(2, 6))
    return {
        "simulated, root mean squared error of log examination": float(np.sqrt(np.mean(off**2))),
        "simulated, likelihood of held-out clicks, kept - best": click_likelihood(kept.ranker, X_valid, valid_log)
        - best,
    }


def values_of(train: Queries, valid: Queries, test: Queries, seed: int, quick: bool) -> dict[str, np.ndarray]:
    """Method -> NDCG@10 of every test query, NaN where nothing is relevant."""
    shown_by = production(train)
    log = clicks(train, shown_by.predict(train), SESSIONS, random_state=seed)
    valid_log = clicks(valid, shown_by.predict(valid), SESSIONS, random_state=seed + 1000)
    return {
        name: ndcg(np.asarray(scores()(test.X), dtype=np.float64), test.grade, test.offsets, 10)
        for name, scores in methods(train, valid, log, valid_log, quick)
    }


def kept(folder: Path, key: str, parts: tuple[Queries, Queries, Queries], seed: int) -> dict[str, np.ndarray]:
    """The same, read from ``folder`` if it was computed before."""
    path = folder / f"{key}-{seed}.npz"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(path, **values_of(*parts, seed, False))
    with np.load(path) as file:
        return dict(file)


def per_query(name: str, parts: list[Queries], args: Namespace) -> tuple[dict[str, np.ndarray], int]:
    """Method -> NDCG@10 of every test query of the folds, mean over the seeds; and the number of queries of the first fold."""
    found: dict[str, list[np.ndarray]] = {}
    folder = output_folder(expected(__file__)) / "values" if not args.quick else Path()
    for fold, three in enumerate(letor_folds(parts, 1 if args.quick else 5)):
        if fold + 1 not in (args.fold or range(1, 6)):
            continue
        runs = []
        for seed in range(args.seed, args.seed + (1 if args.quick else SEEDS)):
            runs.append(
                values_of(*three, seed, True) if args.quick else kept(folder, f"{name}-{fold + 1}", three, seed)
            )
            print(f"fold {fold + 1} seed {seed}", file=sys.stderr, flush=True)
        for method in runs[0]:
            found.setdefault(method, []).append(np.mean([run[method] for run in runs], axis=0))
    return {method: np.concatenate(folds) for method, folds in found.items()}, len(found["linear"][0])


def main() -> None:
    made = parser(__doc__, sets=("MQ2008",))
    made.add_argument("--fold", nargs="+", type=int, help="only these of the folds 1 to 5; nothing is checked then")
    args = made.parse_args()
    need("lightgbm", *([] if args.quick else ["xgboost"]))
    warnings.filterwarnings("ignore")
    set_threads(1)
    path = expected(__file__, "quick" if args.quick else "")
    rows, ours = [], identity(args.seed) if args.quick else {}
    check_first(ours, path)
    sets = ["simulated"] if args.quick else args.set
    for name, where in zip(set_names(sets), sets):
        values, first = per_query(name, simulated_parts(60, seed=args.seed) if args.quick else letor_parts(where), args)
        for method, column in values.items():
            ours[f"{name}, {method}"] = float(np.nanmean(column))
            if not args.quick:
                ours[f"{name}, fold 1, {method}"] = float(np.nanmean(column[:first]))
            rows.append([name, method, ours[f"{name}, {method}"], float(np.nanmean(column[:first]))])
        pairs = [
            ("linear", "linear, naive"),
            ("linear", PEER),
            ("trees", PEER),
            ("linear", OTHER_PEER),
            ("trees", OTHER_PEER),
        ]
        for a, b in pairs:
            if b in values:
                gap = paired(values[a], values[b])
                ours[f"{name}, {a} - {b}"] = gap.mean
                print(f"{name}, {a} - {b}: {gap}")
    for row in rows:
        print(f"{row[0]}, {row[1]}: {row[2]:.4f} (fold 1: {row[3]:.4f})")
    if args.fold:
        return
    write(output_folder(path) / "table.csv", ["set", "method", "ndcg@10", "fold 1"], rows)
    check(ours, path, set_names(sets))


if __name__ == "__main__":
    main()
