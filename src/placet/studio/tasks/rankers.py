"""Rankers: trained with a validation split, compared by paired differences, and explained row by row."""

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from placet.data import DataError, Queries
from placet.data.arrays import hold_out
from placet.losses import LOSSES
from placet.metrics import compare, metric as metric_of, summary
from placet.rank import load as load_model
from placet.rank.named_ranker import make_ranker
from placet.rank.ranker import ranker_class
from placet.studio.tasks.catalog import check_given, controls
from placet.studio.tasks.preview import load

OFFERED = ("linear", "trees", "booster", "neural", "structrank", "reranker")
MOST_QUERIES = 50
MOST_ROWS = 200


def rankers(progress: Any) -> dict[str, Any]:
    """The rankers that learn from graded rows, with their controls, and the available losses."""
    found = []
    for name in OFFERED:
        try:
            kind = ranker_class(name)
        except ImportError:
            continue  # an extra that is not installed
        own = [one for one in controls(kind) if one["name"] not in ("loss", "metric")]
        found.append({"name": name, "controls": own, "has_loss": "loss" in inspect.signature(kind).parameters})
    return {"rankers": found, "losses": sorted(LOSSES)}


def split(path: str, reading: Mapping[str, Any], share: float, seed: int) -> tuple[Queries, Queries]:
    """Split into training and validation queries: a random share of the queries is held out."""
    data = load(path, reading).data
    if not isinstance(data, Queries):
        raise DataError(
            "these are not graded rows with features, as in LETOR files and tables with a query and a grade"
        )
    if len(data) < 2:
        raise DataError("one query cannot be split; bring two at least")
    rest, held_out = hold_out(len(data), share, np.random.default_rng(seed))
    return data[rest], data[held_out]


def train(
    progress: Any, *, path: str, reading: dict[str, Any], settings: dict[str, Any], target: str
) -> dict[str, Any]:
    """Train a ranker, report the metric on the validation queries at each step, and save the best model."""
    check_given(ranker_class(settings["ranker"]), settings["params"], settings["ranker"])
    rows, valid = split(path, reading, settings["validation"], settings["seed"])
    model = make_ranker(settings["ranker"], settings["loss"], settings["metric"], settings["params"], settings["seed"])
    history: list[tuple[int, float]] = []

    def tell(step: int, steps: int, value: float | None) -> None:
        if value is not None and np.isfinite(value):
            history.append((step, float(value)))
        progress(step, steps, None if value is None else [step, float(value)])

    model.fit(rows, valid=valid, progress=tell)
    model.save(target)
    values = metric_of(settings["metric"] or "ndcg@10")(model.predict(valid), valid.grade, valid.offsets)
    found = summary(values)
    return {
        "history": history,
        "mean": found.mean,
        "stderr": found.stderr,
        "queries": len(valid),
        "trained_on": len(rows),
        "fit": {key: value for key, value in model.fit_summary_.items() if value is not None},
    }


def compare_runs(
    progress: Any, *, path: str, reading: dict[str, Any], runs: list[dict[str, Any]], metric: str
) -> dict[str, Any]:
    """Compare saved rankers on the same validation queries: means, differences from the first, extreme queries."""
    _, valid = split(path, reading, runs[0]["settings"]["validation"], runs[0]["settings"]["seed"])
    spec = metric_of(metric)
    values = [spec(load_model(run["model"]).predict(valid), valid.grade, valid.offsets) for run in runs]
    rows = []
    for run, own in zip(runs, values):
        mean = summary(own)
        row: dict[str, Any] = {"run": run["id"], "mean": mean.mean, "stderr": mean.stderr, "queries": mean.n_lists}
        if run is not runs[0]:
            paired = compare(own, values[0])
            row |= {"difference": paired.difference, "low": paired.low, "high": paired.high, "p": paired.p_value}
        rows.append(row)
    differ: list[dict[str, Any]] = []
    if len(runs) > 1:
        gap = np.nan_to_num(np.abs(values[1] - values[0]), nan=-1.0)
        names = valid.qid if valid.qid is not None else range(len(valid))
        differ = [
            {"query": k, "name": str(names[k]), "first": values[0][k], "second": values[1][k]}
            for k in np.argsort(-gap, kind="stable")[:MOST_QUERIES].tolist()
            if gap[k] > 0
        ]
    return {"metric": repr(spec), "rows": rows, "differ": differ}


def query(
    progress: Any, *, path: str, reading: dict[str, Any], runs: list[dict[str, Any]], number: int
) -> dict[str, Any]:
    """One validation query under one or two rankers: each row's grade, score and place."""
    _, valid = split(path, reading, runs[0]["settings"]["validation"], runs[0]["settings"]["seed"])
    one = _query(valid, number)
    scores = [load_model(run["model"]).predict(one) for run in runs]
    places = [np.argsort(np.argsort(-s, kind="stable"), kind="stable") + 1 for s in scores]
    order = np.argsort(places[0], kind="stable")[:MOST_ROWS]
    rows = [
        {"row": k, "grade": float(one.grade[k]), "scores": [s[k] for s in scores], "places": [p[k] for p in places]}
        for k in order.tolist()
    ]
    return {"rows": rows, "runs": [run["id"] for run in runs]}


def explain(
    progress: Any, *, path: str, reading: dict[str, Any], run: dict[str, Any], number: int, first: int, second: int
) -> dict[str, Any]:
    """Why a ranker puts one row of a query above another: the contribution of each feature to the score difference."""
    _, valid = split(path, reading, run["settings"]["validation"], run["settings"]["seed"])
    model = load_model(run["model"])
    if not hasattr(model, "explain"):
        raise ValueError(f"{type(model).__name__} cannot say what each feature adds; linear and trees can")
    one = _query(valid, number)
    parts = model.explain(one, first, second)
    names = list(getattr(one, "features", None) or getattr(model, "features_", None) or [])
    told = [(str(names[name]) if isinstance(name, int) and name < len(names) else str(name), v) for name, v in parts]
    scores = model.predict(one)
    return {"parts": told[:30], "difference": float(scores[first] - scores[second])}


def _query(valid: Queries, number: int) -> Queries:
    if not 0 <= number < len(valid):
        raise ValueError(f"query {number} is not in 0..{len(valid) - 1}")
    return valid[[number]]
