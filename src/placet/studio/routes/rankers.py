"""Rankers: train, monitor, compare, explain and download them."""

import asyncio
import json
import secrets
import time
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from placet.data.parameters import parse_value
from placet.studio.file_uses import usable
from placet.studio.pages import page
from placet.studio.routes.common import body_of, dataset_of, jobs_of, start_job, store_of


async def overview(request: Request) -> Response:
    """Datasets to train on."""
    every = store_of(request).datasets()
    found = await asyncio.to_thread(usable, every, "rankers")
    others = len(every) - len(found["rankers"])
    return page(request, "rankers.html", datasets=found["rankers"], others=others, data=None)


async def show(request: Request) -> Response:
    """The rankers of one dataset."""
    return page(request, "ranker.html", data=dataset_of(request))


async def list_rankers(request: Request) -> Response:
    """The available rankers."""
    return start_job(request, "rankers", {})


async def runs(request: Request) -> Response:
    """The runs on a dataset, newest first."""
    return JSONResponse([_public_fields(run) for run in _runs(request)])


async def train(request: Request) -> Response:
    """Start training; it becomes a run when it succeeds."""
    data, values = dataset_of(request), await body_of(request)
    settings = _settings(values)
    key = secrets.token_hex(8)
    asked = {"path": data.path, "reading": data.reading, "settings": settings}
    job = jobs_of(request).start("train", asked | {"target": _model(request, key)}, fresh=True)
    task = asyncio.create_task(_keep(request, key, data.id, settings, job))
    request.app.state.tasks.add(task)
    task.add_done_callback(request.app.state.tasks.discard)
    return JSONResponse(job.about() | {"run": key}, status_code=202)


async def _keep(request: Request, key: str, dataset: str, settings: dict[str, Any], job: Any) -> None:
    """Store a run once its model exists."""
    while job.state in ("waiting", "running"):
        await jobs_of(request).wait_for(job, 30)
    if job.state == "done":
        row = (key, dataset, json.dumps(settings), job.result.decode(), time.time())
        await asyncio.wrap_future(store_of(request).execute("INSERT INTO run VALUES (?, ?, ?, ?, ?)", *row))


def _settings(values: dict[str, Any]) -> dict[str, Any]:
    share = values.get("validation", 0.25)
    if not isinstance(share, int | float) or not 0 < share < 1:
        raise HTTPException(400, f"validation must be a share between 0 and 1, not {share!r}")
    params = values.get("params", {})
    texts = {name: values.get(name, "") for name in ("ranker", "loss", "metric")}
    if not isinstance(params, dict) or not all(isinstance(text, str) for text in (*texts.values(), *params.values())):
        raise HTTPException(400, "ranker, loss, metric and the values of params are texts")
    seed = values.get("seed", 0)
    if not isinstance(seed, int):
        raise HTTPException(400, f"seed must be a whole number, not {seed!r}")
    given = {name: parse_value(text) for name, text in params.items() if text != ""}
    return {**texts, "metric": texts["metric"] or "ndcg@10", "params": given, "validation": share, "seed": seed}


async def compare(request: Request) -> Response:
    """Compare runs on the validation queries of the first."""
    data, values = dataset_of(request), await body_of(request)
    chosen = _runs_named(request, values.get("runs"))
    metric = values.get("metric") or chosen[0]["settings"]["metric"]
    asked = {"path": data.path, "reading": data.reading, "runs": chosen, "metric": str(metric)}
    return start_job(request, "compare", asked)


async def query(request: Request) -> Response:
    """Show one validation query under the chosen runs."""
    data, values = dataset_of(request), await body_of(request)
    asked = {"runs": _runs_named(request, values.get("runs")), "number": _number(values, "query")}
    return start_job(request, "query", {"path": data.path, "reading": data.reading, **asked})


async def explain(request: Request) -> Response:
    """Explain why one row is above another."""
    data, values = dataset_of(request), await body_of(request)
    run = _runs_named(request, [values.get("run")])[0]
    asked = {"number": _number(values, "query"), "first": _number(values, "first"), "second": _number(values, "second")}
    return start_job(request, "explain", {"path": data.path, "reading": data.reading, "run": run, **asked})


async def download(request: Request) -> Response:
    """The model of a run, as a file for `placet score`."""
    run = _run(request)
    name = f"{run['settings']['ranker']}-{run['id'][:6]}.placet"
    return FileResponse(_model(request, run["id"]), filename=name, media_type="application/octet-stream")


async def remove(request: Request) -> Response:
    """Delete a run and its model."""
    key = _run(request)["id"]
    await asyncio.wrap_future(store_of(request).execute("DELETE FROM run WHERE id = ?", key))
    Path(_model(request, key)).unlink(missing_ok=True)
    return JSONResponse({})


def _runs(request: Request) -> list[dict[str, Any]]:
    sql = "SELECT * FROM run WHERE dataset = ? ORDER BY created DESC"
    rows = store_of(request).rows(sql, dataset_of(request).id)
    return [
        {**dict(row), "settings": json.loads(row["settings"]), "summary": json.loads(row["summary"])} for row in rows
    ]


def _run(request: Request) -> dict[str, Any]:
    run = next((one for one in _runs(request) if one["id"] == request.path_params["run"]), None)
    if run is None:
        raise HTTPException(404, "there is no such run")
    return run


def _public_fields(run: dict[str, Any]) -> dict[str, Any]:
    return {key: run[key] for key in ("id", "settings", "summary", "created")}


def _runs_named(request: Request, keys: Any) -> list[dict[str, Any]]:
    known = {run["id"]: run for run in _runs(request)}
    if not isinstance(keys, list) or not keys or not all(isinstance(key, str) and key in known for key in keys):
        raise HTTPException(400, "name runs of this dataset")
    return [{"id": key, "settings": known[key]["settings"], "model": _model(request, key)} for key in keys]


def _model(request: Request, key: str) -> str:
    return str(store_of(request).models / f"{key}.placet")


def _number(values: dict[str, Any], name: str) -> int:
    value = values.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise HTTPException(400, f"{name} must be a whole number, not {value!r}")
    return value


routes = [
    Route("/rankers", overview),
    Route("/rankers/{dataset}", show),
    Route("/api/rankers", list_rankers, methods=["POST"]),
    Route("/api/rankers/{dataset}/runs", runs),
    Route("/api/rankers/{dataset}/train", train, methods=["POST"]),
    Route("/api/rankers/{dataset}/compare", compare, methods=["POST"]),
    Route("/api/rankers/{dataset}/query", query, methods=["POST"]),
    Route("/api/rankers/{dataset}/explain", explain, methods=["POST"]),
    Route("/api/rankers/{dataset}/runs/{run}", remove, methods=["DELETE"]),
    Route("/rankers/{dataset}/{run}.placet", download),
]
