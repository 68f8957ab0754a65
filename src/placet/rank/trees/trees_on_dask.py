"""Trees on a cluster: LightGBM workers grow the same trees jointly, each on the rows of its own parts.

LightGBM sums histograms over the network; the gradient and curvature of a loss depend only on whole queries, so each
worker computes those of its own rows.  Quantities common to all rows (total weight, initial mean curvature) take one
pass before.  LightGBM's order of summation varies, so trees may differ in the last digits with the number of workers.
It cannot continue if a worker is lost: the fit then raises an `EngineError`.
"""

import socket
from typing import Any

import numpy as np

from placet.data import Lists, Parts, Queries
from placet.data.arrays import Floats, is_sparse, offsets_from_sizes
from placet.data.engines.serial import CACHE, Piece
from placet.losses import Bound
from placet.metrics import metric as metric_of
from placet.rank.trees.tree_libraries import lightgbm


def grow_together(parts: Parts, loss: str, params: dict[str, Any], backend_params: dict[str, Any], n_trees: int) -> str:
    """Grow ``n_trees`` trees jointly on all workers of the parts' engine; return the LightGBM model as text."""
    together = getattr(parts.engine, "together", None)
    if together is None:
        raise ValueError(
            "trees grow on parts only on a cluster, whose workers hold all rows together: give engine=client, or load "
            "the queries (parts.load()) where they fit in memory"
        )
    curvature, rows = parts.sum(_curvature, loss, params, parts.weight, name="curvature")
    args = (loss, params, parts.weight, float(curvature / max(rows, 1)) or 1.0, backend_params, n_trees)
    models: list[str] = together(_grow, parts.pieces, args, prepare=free_address)
    return models[0]


def best_number(parts: Parts, model: str, metric: str, n_trees: int) -> tuple[int, float]:
    """The number of leading trees with the best mean metric on the parts, and that metric."""
    total, defined = parts.sum(_metric_after_each_tree, model, metric, n_trees, name="validation")
    mean = np.divide(total, defined, out=np.full(n_trees, -np.inf), where=defined > 0)
    best = int(np.argmax(mean))
    return best + 1, float(mean[best])


def free_address(host: str) -> str:
    """An address of this host with an unused port."""
    with socket.socket() as one:
        one.bind(("", 0))
        return f"{host}:{one.getsockname()[1]}"


def _curvature(queries: Queries, loss: str, params: dict[str, Any], total: float) -> tuple[float, int]:
    h = Bound(loss, queries.lists(), params, total=total).curvature(np.zeros(len(queries.grade)))
    return float(h.sum()), len(h)


def _grow(
    pieces: tuple[Piece, ...],
    number: int,
    addresses: list[str],
    loss: str,
    params: dict[str, Any],
    total: float,
    unit: float,
    backend_params: dict[str, Any],
    n_trees: int,
) -> str:
    """Run the training on worker ``number``; all workers return the same model."""
    from placet.rank.trees.tree_ranker import Slopes
    from placet.threads import get_threads

    lgb = lightgbm()
    own = [CACHE.fetch(piece)[0] for piece in pieces]
    X = _stack_tables([queries.X for queries in own])
    offsets = offsets_from_sizes(np.concatenate([np.diff(queries.offsets) for queries in own]))
    grade, weight = (np.concatenate([getattr(queries, name) for queries in own]) for name in ("grade", "weight"))
    slopes = Slopes(loss, params)
    slopes.bound, slopes.unit = Bound(loss, Lists(grade, offsets, weight), slopes.params, total=total), unit
    network: dict[str, Any] = {"num_threads": get_threads()}
    if len(addresses) > 1:
        network |= {
            "machines": ",".join(addresses),
            "num_machines": len(addresses),
            "local_listen_port": int(addresses[number].rpartition(":")[2]),
            "tree_learner": "data",
            "pre_partition": True,
            "time_out": 2,
        }
    settings = {**backend_params, **network}
    data = lgb.Dataset(X, grade, params=settings)
    booster = lgb.Booster(settings, data)
    try:
        for _ in range(n_trees):
            if booster.update(fobj=slopes):
                break
        return str(booster.model_to_string())
    finally:
        booster.free_network()


def _stack_tables(tables: list[Any]) -> Any:
    if not any(map(is_sparse, tables)):
        return np.concatenate(tables)
    from scipy.sparse import csr_matrix, vstack

    return vstack([csr_matrix(X) for X in tables], format="csr")


def _metric_after_each_tree(queries: Queries, model: str, metric: str, n_trees: int) -> tuple[Floats, Floats]:
    """After each tree, the sum of a metric over the queries for which it is defined, and their number."""
    booster = lightgbm().Booster(model_str=model)
    s, total, defined = np.zeros(len(queries.grade)), np.zeros(n_trees), np.zeros(n_trees)
    chosen = metric_of(metric)
    for k in range(n_trees):
        if k < booster.num_trees():
            s = s + booster.predict(queries.X, start_iteration=k, num_iteration=1, raw_score=True)
            values = chosen(s, queries.grade, queries.offsets)
            total[k], defined[k] = np.nansum(values), np.count_nonzero(~np.isnan(values))
    return total, defined
