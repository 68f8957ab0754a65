"""Latency of one request: python -m benchmarks.bench_serving [trees] [blend] [--quick]

A request is one query of 100 rows of 136 float64 features; every request has other rows.  One thread everywhere.  Milliseconds of
CPU of the calling thread, p50 and p99, requests of all contestants in turn; on a busy machine p99 holds what the machine does beside.
"""

import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.bench_rank import N_FEATURES, search_data
from benchmarks.harness import main, save_rows
from placet.data import Queries
from placet.rank import TreeRanker
from placet.rank.search.autorank import SHORT_LIST, autorank

ROWS = 100


def requests(n: int) -> np.ndarray:
    """(requests, rows, features), none of them seen in training."""
    return np.random.default_rng(1).standard_normal((n, ROWS, N_FEATURES))


def latencies(name: str, contestants: Mapping[str, Callable], n: int, sizes: Mapping[str, int], notes: Mapping) -> None:
    """Send ``n`` requests to each contestant in turn, after twenty to warm up; print and write p50 and p99."""
    spent: dict[str, list[float]] = {who: [] for who in contestants}
    for number, X in enumerate(requests(n + 20)):
        for who, answer in contestants.items():
            start = time.thread_time()
            answer(X)
            if number >= 20:
                spent[who].append(1e3 * (time.thread_time() - start))
    table = Table(title=name, title_justify="left")
    for heading in ("", "p50 ms", "p99 ms", "ratio of p50", "MB", "note"):
        table.add_column(heading, justify="left" if heading in ("", "note") else "right")
    rows = {}
    for who, own in spent.items():
        p50, p99 = np.percentile(own, [50, 99])
        rows[who] = {"p50_ms": float(p50), "p99_ms": float(p99)}
        rows[who] |= {"mb": sizes[who] / 1e6} if who in sizes else {}
        ratio = p50 / next(iter(rows.values()))["p50_ms"]
        mb = f"{sizes[who] / 1e6:.2f}" if who in sizes else ""
        table.add_row(who, f"{p50:.3f}", f"{p99:.3f}", f"{ratio:.2f}", mb, notes.get(who, ""))
    Console(width=max(Console().width, 110)).print(table)
    save_rows(name, rows, notes)


def session_of(path: Path) -> Callable[[np.ndarray], np.ndarray]:
    """The answers of onnxruntime, on one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda X: session.run(["scores"], {"X": X})[0]


def trees(quick: bool) -> None:
    """300 trees of 31 leaves by every library; CatBoost's have 32 leaves and are symmetric."""
    import catboost
    import lightgbm as lgb
    import xgboost as xgb

    n_trees, data = (30, search_data(30)) if quick else (300, search_data(200))
    group, qid = np.diff(data.offsets), data.query
    ranker = TreeRanker(n_trees=n_trees, backend="lightgbm").fit(data)
    common = {"objective": "lambdarank", "num_leaves": 31, "verbosity": -1, "num_threads": 1}
    light = lgb.train(common, lgb.Dataset(data.X, data.grade, group=group), n_trees)
    dmatrix = xgb.DMatrix(data.X, data.grade, qid=qid)
    settings = {"objective": "rank:ndcg", "max_leaves": 31, "max_depth": 0, "grow_policy": "lossguide", "nthread": 1}
    extreme = xgb.train(settings, dmatrix, n_trees)
    cat = catboost.CatBoost(
        {
            "loss_function": "YetiRank",
            "depth": 5,
            "iterations": n_trees,
            "thread_count": 1,
            "silent": True,
            "allow_writing_files": False,
        }
    )
    cat.fit(catboost.Pool(data.X, data.grade, group_id=qid))
    with tempfile.TemporaryDirectory() as folder:
        saved, exported = Path(folder) / "model.placet", Path(folder) / "model.onnx"
        ranker.save(saved)
        ranker.to_onnx(exported)
        latencies(
            f"one query, {n_trees} trees",
            {
                "placet": ranker.predict,
                "placet in onnxruntime": session_of(exported),
                "LightGBM": lambda X: light.predict(X, num_threads=1),
                "XGBoost": extreme.inplace_predict,
                "CatBoost": lambda X: cat.predict(X, thread_count=1),
            },
            30 if quick else 500,
            {"placet": saved.stat().st_size, "placet in onnxruntime": exported.stat().st_size},
            {"CatBoost": "symmetric trees"},
        )


def blend(quick: bool) -> None:
    """The recommended blend of 20 kinds of rankers, by Placet and by onnxruntime, beside 20 boosters of LightGBM."""
    import lightgbm as lgb

    data, n_kinds = search_data(40 if quick else 150), 8 if quick else 20
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        choice = autorank(data, candidates=SHORT_LIST[:n_kinds], folds=4, rotate=True, blend=n_kinds)
    boosters = [_booster(lgb, data, seed) for seed in range(n_kinds)]
    with tempfile.TemporaryDirectory() as folder:
        saved, exported = Path(folder) / "model.placet", Path(folder) / "model.onnx"
        choice.ranker.save(saved)
        choice.ranker.to_onnx(exported)
        latencies(
            f"one query, a blend of {n_kinds}",
            {
                "placet": choice.ranker.predict,
                "placet in onnxruntime": session_of(exported),
                f"{n_kinds} of LightGBM": lambda X: sum(one.predict(X, num_threads=1) for one in boosters),
            },
            10 if quick else 100,
            {"placet": saved.stat().st_size, "placet in onnxruntime": exported.stat().st_size},
            {f"{n_kinds} of LightGBM": "100 trees of 31 leaves each"},
        )


def _booster(lgb, data: Queries, seed: int):
    params = {"objective": "lambdarank", "verbosity": -1, "num_threads": 1, "seed": seed, "feature_fraction": 0.5}
    return lgb.train(params, lgb.Dataset(data.X, data.grade, group=np.diff(data.offsets)), 100)


if __name__ == "__main__":
    main(__doc__, {"trees": trees, "blend": blend}, threads=1)
