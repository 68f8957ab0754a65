"""Clicks simulated on MQ2008: rankers that learn from them, with and without the positions at which rows were shown.

Five folds, three seeds.  A poor ranking is in production: a linear ranker fitted to one training query in a hundred (at least
three).  It shows the top 10 of every training query, 20 times; the row at position k is examined with probability 1 / k and,
if examined, clicked with probability 0.1 + 0.9 (2^grade - 1) / (2^2 - 1).  Rankers see the clicks alone, no grade, and have the
same settings in all folds; trees have those of LightGBM beside them.  NDCG@10 on the true grades of the test parts.

"linear" is ``fit_clicks(LinearRanker("ranknet"))``, "linear, likelihood" the same with "pl-partition", which is the likelihood of a click
under the position-based model; "naive" has no positions; "true grades" saw the grades of the training queries.  About five
minutes of one core.  `--quick`: one fold and one seed of simulated queries.
"""

import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator

import numpy as np

from experiments.common import (
    check,
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
from placet.rank import LinearRanker, TreeRanker, fit_clicks
from placet.simulate import clicks
from placet.threads import set_threads

SESSIONS, SEEDS = 20, 3
TREES = {"n_trees": 60, "learning_rate": 0.1, "leaves": 8, "min_rows": 400, "l2": 1.0}
PEER = "LightGBM position"


def lightgbm_scores(log: Clicks, X: np.ndarray, test: Queries) -> np.ndarray:
    """LambdaRank of LightGBM with ``position=``, which fits the bias of positions as well; the settings of TREES."""
    import lightgbm as lgb

    data = lgb.Dataset(X, log.clicked.astype(int), group=np.diff(log.offsets), position=log.position - 1)
    settings = {"objective": "lambdarank", "learning_rate": TREES["learning_rate"], "num_leaves": TREES["leaves"]}
    settings |= {"min_data_in_leaf": TREES["min_rows"], "lambda_l2": TREES["l2"], "verbosity": -1, "num_threads": 1}
    return lgb.train(settings, data, TREES["n_trees"]).predict(test.X)


def production(train: Queries) -> LinearRanker:
    """A ranker of few queries."""
    return LinearRanker("pl-partition", 0.1).fit(train[: max(3, len(train) // 100)])


def methods(train: Queries, test: Queries, log: Clicks) -> Iterator[tuple[str, Callable[[], np.ndarray]]]:
    """Name and scores of the test rows."""
    X = train.X[log.document]
    linear, likelihood = LinearRanker("ranknet", 1e-3), LinearRanker("pl-partition", 1e-3)
    trees = TreeRanker("pl-partition", **TREES, engine={"num_threads": 1})

    def fitted(ranker: LinearRanker | TreeRanker, debias: bool = True) -> Callable[[], np.ndarray]:
        return lambda: fit_clicks(ranker, X, log, debias=debias).ranker.predict(test)

    yield "production", lambda: production(train).predict(test)
    yield "linear", fitted(linear)
    yield "linear, likelihood", fitted(likelihood)
    yield "linear, naive", fitted(linear, debias=False)
    yield "linear, true grades", lambda: LinearRanker("ranknet", 1e-3).fit(train).predict(test)
    yield "trees", fitted(trees)
    yield PEER, lambda: lightgbm_scores(log, X, test)


def per_query(parts: list[Queries], args: Namespace) -> dict[str, np.ndarray]:
    """Method -> NDCG@10 of every test query of the folds, mean over the seeds, NaN where nothing is relevant."""
    found: dict[str, list[np.ndarray]] = {}
    for fold, (train, _, test) in enumerate(letor_folds(parts, 1 if args.quick else 5)):
        s = production(train).predict(train)
        values: dict[str, list[np.ndarray]] = {}
        for seed in range(args.seed, args.seed + (1 if args.quick else SEEDS)):
            log = clicks(train, s, SESSIONS, random_state=seed)
            for name, scores in methods(train, test, log):
                values.setdefault(name, []).append(ndcg(scores(), test.grade, test.offsets, 10))
            print(f"fold {fold + 1} seed {seed}", file=sys.stderr, flush=True)
        for name, runs in values.items():
            found.setdefault(name, []).append(np.mean(runs, axis=0))
    return {name: np.concatenate(folds) for name, folds in found.items()}


def main() -> None:
    args = parser(__doc__, sets=("MQ2008",)).parse_args()
    need("lightgbm")
    warnings.filterwarnings("ignore")
    set_threads(1)
    rows, ours = [], {}
    sets = ["simulated"] if args.quick else args.set
    for name, where in zip(set_names(sets), sets):
        values = per_query(simulated_parts(60, seed=args.seed) if args.quick else letor_parts(where), args)
        for method, column in values.items():
            ours[f"{name}, {method}"] = float(np.nanmean(column))
            rows.append([name, method, ours[f"{name}, {method}"]])
        for a, b in (("linear", "linear, naive"), ("trees", PEER), ("linear", PEER)):
            gap = paired(values[a], values[b])
            ours[f"{name}, {a} - {b}"] = gap.mean
            print(f"{name}, {a} - {b}: {gap}")
    path = expected(__file__, "quick" if args.quick else "")
    write(output_folder(path) / "table.csv", ["set", "method", "ndcg@10"], rows)
    check(ours, path, set_names(sets))


if __name__ == "__main__":
    main()
