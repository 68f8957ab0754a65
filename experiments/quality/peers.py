"""LightGBM, XGBoost and CatBoost as rankers: a space of settings for each, and one fit that stops on the validation part.

Every fit grows at most ``ROUNDS`` trees and keeps the number of them that was best on the validation part by NDCG@10,
after ``PATIENCE`` rounds without a better one.  LightGBM and XGBoost are given Placet's NDCG@10 for this; CatBoost's own
has the same gain and counts queries with nothing relevant as 1 in every round, so it chooses the same way.
One thread each.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from placet.data import Queries
from placet.metrics import ndcg

ROUNDS, PATIENCE = 300, 50
Scorer = Callable[[Queries], np.ndarray]


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def mean_ndcg(s: np.ndarray, queries: Queries) -> float:
    """NDCG@10 averaged over the queries with something relevant."""
    return float(np.nanmean(ndcg(np.asarray(s, dtype=np.float64), queries.grade, queries.offsets, 10)))


def lightgbm_space(objective: str, rng: np.random.Generator) -> dict[str, Any]:
    params = {
        "learning_rate": log_uniform(rng, 0.02, 0.2),
        "num_leaves": int(log_uniform(rng, 4, 33)),
        "min_data_in_leaf": int(log_uniform(rng, 5, 101)),
        "lambda_l2": log_uniform(rng, 0.01, 30),
        "feature_fraction": float(rng.uniform(0.3, 1)),
        "bagging_fraction": float(rng.uniform(0.5, 1)),
        "bagging_freq": 1,
    }
    if objective == "lambdarank":
        params["lambdarank_truncation_level"] = int(rng.choice([10, 15, 30, 100]))
        params["lambdarank_norm"] = bool(rng.integers(2))
    return params


def lightgbm_fit(objective: str, params: dict[str, Any], train: Queries, valid: Queries) -> Scorer:
    import lightgbm

    data = lightgbm.Dataset(train.X, train.grade, group=np.diff(train.offsets))
    held_out = lightgbm.Dataset(valid.X, valid.grade, group=np.diff(valid.offsets), reference=data)
    fixed = {"objective": objective, "metric": "none", "num_threads": 1, "verbosity": -1, "deterministic": True}
    booster = lightgbm.train(
        {**fixed, **params, "force_row_wise": True, "seed": 0},
        data,
        ROUNDS,
        valid_sets=[held_out],
        feval=lambda s, _: ("ndcg@10", mean_ndcg(s, valid), True),
        callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
    )
    return lambda queries: booster.predict(queries.X, num_iteration=booster.best_iteration, num_threads=1)


def xgboost_space(objective: str, rng: np.random.Generator) -> dict[str, Any]:
    params = {
        "eta": log_uniform(rng, 0.02, 0.2),
        "max_depth": int(rng.integers(2, 7)),
        "min_child_weight": log_uniform(rng, 0.01, 10),
        "lambda": log_uniform(rng, 0.01, 30),
        "colsample_bytree": float(rng.uniform(0.3, 1)),
        "subsample": float(rng.uniform(0.5, 1)),
        "lambdarank_pair_method": str(rng.choice(["topk", "mean"])),
    }
    params["lambdarank_num_pair_per_sample"] = int(
        rng.choice([10, 32, 100] if params["lambdarank_pair_method"] == "topk" else [1, 4, 16])
    )
    return params


def xgboost_fit(objective: str, params: dict[str, Any], train: Queries, valid: Queries) -> Scorer:
    import xgboost

    def matrix(queries: Queries) -> Any:
        return xgboost.DMatrix(queries.X, queries.grade, qid=queries.query, nthread=1)

    fixed = {"objective": objective, "nthread": 1, "seed": 0, "disable_default_eval_metric": True}
    booster = xgboost.train(
        {**fixed, **params},
        matrix(train),
        ROUNDS,
        evals=[(matrix(valid), "valid")],
        custom_metric=lambda s, _: ("ndcg@10", mean_ndcg(s, valid)),
        maximize=True,
        early_stopping_rounds=PATIENCE,
        verbose_eval=False,
    )
    kept = (0, booster.best_iteration + 1)
    return lambda queries: booster.predict(matrix(queries), iteration_range=kept)


def catboost_space(objective: str, rng: np.random.Generator) -> dict[str, Any]:
    return {
        "learning_rate": log_uniform(rng, 0.02, 0.3),
        "depth": int(rng.integers(2, 7)),
        "l2_leaf_reg": log_uniform(rng, 0.3, 30),
        "rsm": float(rng.uniform(0.3, 1)),
        "subsample": float(rng.uniform(0.5, 1)),
        "random_strength": log_uniform(rng, 0.1, 3),
    }


def catboost_fit(objective: str, params: dict[str, Any], train: Queries, valid: Queries) -> Scorer:
    import catboost

    def pool(queries: Queries) -> Any:
        return catboost.Pool(queries.X, queries.grade, group_id=queries.query)

    fixed = {"loss_function": objective, "eval_metric": "NDCG:top=10;type=Exp", "bootstrap_type": "Bernoulli"}
    model = catboost.CatBoost(
        {
            **fixed,
            **params,
            "iterations": ROUNDS,
            "od_type": "Iter",
            "od_wait": PATIENCE,
            "thread_count": 1,
            "random_seed": 0,
            "verbose": False,
            "allow_writing_files": False,
        }
    )
    model.fit(pool(train), eval_set=pool(valid), use_best_model=True)
    return lambda queries: model.predict(queries.X, thread_count=1)


OBJECTIVES = {
    "LightGBM": (lightgbm_space, lightgbm_fit, ("lambdarank", "rank_xendcg")),
    "XGBoost": (xgboost_space, xgboost_fit, ("rank:ndcg", "rank:pairwise")),
    "CatBoost": (catboost_space, catboost_fit, ("YetiRank", "QuerySoftMax")),
}

PEERS = {
    f"{library} {objective}": (partial(space, objective), partial(fit, objective))
    for library, (space, fit, objectives) in OBJECTIVES.items()
    for objective in objectives
}
"""Name of a method -> (its space, its fit).  The extra `bench` has all three libraries."""
