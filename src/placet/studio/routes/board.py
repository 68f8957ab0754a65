"""Boards: the URL of a view encodes its question."""

from typing import Any
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from placet.data.errors import as_choices
from placet.studio.pages import page
from placet.studio.question import Question
from placet.studio.routes.common import body_of, dataset_of, run_job, start_job
from placet.studio.store import Dataset

EXPORTS = {
    "html": "text/html",
    "csv": "text/csv",
    "json": "application/json",
    "parquet": "application/octet-stream",
    "run": "text/plain",
    "cert.json": "application/json",
}
MOST_CHOSEN = 20
VIEWS = ("board", "wins", "ranks", "fragility")


async def show(request: Request) -> Response:
    """The page of a board; its script requests the content with the query of the URL."""
    return page(request, "board.html", data=dataset_of(request))


async def catalog(request: Request) -> Response:
    """All methods with their controls."""
    return start_job(request, "catalog", {})


async def compute(request: Request) -> Response:
    """Start the computation that a view needs."""
    data = dataset_of(request)
    view = request.path_params["view"]
    if view not in VIEWS:
        raise HTTPException(404, f"there is no view {view!r}; choose from {as_choices(VIEWS)}")
    return start_job(request, view, {"path": data.path, "question": question_of(request, data)})


async def pair(request: Request) -> Response:
    """Start a comparison of two items."""
    data, values = dataset_of(request), await body_of(request)
    first, second = (values.get(name) for name in ("first", "second"))
    if not isinstance(first, str) or not isinstance(second, str):
        raise HTTPException(400, "name two items, first and second")
    asked = {"path": data.path, "question": question_of(request, data), "first": first, "second": second}
    return start_job(request, "pair", asked)


async def history(request: Request) -> Response:
    """Start computing the score history of the items in the body and of the best items."""
    data, values = dataset_of(request), await body_of(request)
    chosen = values.get("items", [])
    if not isinstance(chosen, list) or len(chosen) > MOST_CHOSEN or not all(isinstance(one, str) for one in chosen):
        raise HTTPException(400, f"items are a list of up to {MOST_CHOSEN} names")
    asked = {"path": data.path, "question": question_of(request, data), "chosen": chosen}
    return start_job(request, "history", asked)


async def export(request: Request) -> Response:
    """The board as a file."""
    data, kind = dataset_of(request), request.path_params["kind"]
    if kind not in EXPORTS:
        raise HTTPException(404, f"there is no export {kind!r}; choose from {as_choices(EXPORTS)}")
    asked = {"path": data.path, "question": question_of(request, data), "name": data.name}
    if kind == "cert.json":
        content = await run_job(request, "certificate", asked)
    else:
        content = await run_job(request, "export", asked | {"kind": kind, "title": f"Consensus of {data.name}"})
    stem = data.name.split(".")[0] or "board"
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(stem)}-board.{kind}"}
    return Response(content, media_type=EXPORTS[kind], headers=headers)


def question_of(request: Request, data: Dataset) -> dict[str, Any]:
    """The question in the query of a URL."""
    query = request.query_params
    try:
        asked = Question.from_query(dict(query), query.getlist("agent"), data.reading)
    except ValueError as error:
        raise HTTPException(400, str(error)) from None
    return {**vars(asked), "agents": list(asked.agents)}


async def address(request: Request) -> Response:
    """The question in a URL as JSON, for inspection."""
    return JSONResponse(question_of(request, dataset_of(request)))


routes = [
    Route("/board/{dataset}", show),
    Route("/api/catalog", catalog, methods=["POST"]),
    Route("/api/board/{dataset}/pair", pair, methods=["POST"]),
    Route("/api/board/{dataset}/history", history, methods=["POST"]),
    Route("/api/board/{dataset}/{view}", compute, methods=["POST"]),
    Route("/board/{dataset}/export.{kind}", export),
    Route("/api/board/{dataset}/question", address),
]
