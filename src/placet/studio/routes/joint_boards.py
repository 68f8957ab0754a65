"""Several datasets as sources of one fit: the URL names the datasets and the target."""

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from placet.studio.pages import page
from placet.studio.routes.common import run_job, start_job, store_of
from placet.studio.store import Dataset

MOST_SOURCES = 50


async def show(request: Request) -> Response:
    """The page of a joint board; its script requests the content with the query of the URL."""
    chosen, target = sources_of(request)
    files = [[data.path, data.name] for data in chosen]
    return page(request, "joint.html", datasets=chosen, target="" if target is None else target.id, files=files)


async def compute(request: Request) -> Response:
    """Start the joint fit."""
    return start_job(request, "joint", asked_of(request))


async def export(request: Request) -> Response:
    """The page of the report."""
    content = await run_job(request, "joint page", asked_of(request))
    headers = {"Content-Disposition": "attachment; filename=sources-board.html"}
    return Response(content, media_type="text/html", headers=headers)


def sources_of(request: Request) -> tuple[list[Dataset], Dataset | None]:
    """The datasets in the query of a URL, and the target among them, if one is named."""
    keys, target = list(dict.fromkeys(request.query_params.getlist("data"))), request.query_params.get("target", "")
    if not 2 <= len(keys) <= MOST_SOURCES:
        raise HTTPException(400, f"choose 2 to {MOST_SOURCES} datasets as sources of one fit, not {len(keys)}")
    try:
        chosen = [store_of(request).dataset(key) for key in keys]
    except KeyError:
        raise HTTPException(404, "one of these datasets is not in this workspace") from None
    if target and target not in keys:
        raise HTTPException(400, "the target is not among the chosen datasets")
    return chosen, next((data for data in chosen if data.id == target), None)


def asked_of(request: Request) -> dict[str, Any]:
    """The values of the computation; a source is called as its file, without the ending."""
    chosen, target = sources_of(request)
    names: list[str] = []
    for data in chosen:
        stem = data.name.split(".")[0] or data.name
        same = [name for name in names if name == stem or name.startswith(f"{stem} ")]
        names.append(f"{stem} {len(same) + 1}" if stem in names else stem)
    return {
        "paths": [data.path for data in chosen],
        "names": names,
        "readings": [data.reading for data in chosen],
        "target": None if target is None else names[chosen.index(target)],
    }


routes = [
    Route("/sources", show),
    Route("/api/sources", compute, methods=["POST"]),
    Route("/sources/export.html", export),
]
