"""Sources of one fit: the URL names datasets, or one dataset and its column of sources, and the target."""

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from placet.studio.pages import page
from placet.studio.question import MOST_SOURCES
from placet.studio.routes.common import run_job, start_job, store_of
from placet.studio.store import Dataset


async def show(request: Request) -> Response:
    """The page of a joint board; its script requests the content with the query of the URL."""
    chosen, column, _ = sources_of(request)
    asked = {"datasets": [[data.id, data.name, data.path] for data in chosen], "column": column}
    return page(request, "joint.html", datasets=chosen, column=column, asked=asked)


async def compute(request: Request) -> Response:
    """Start the joint fit."""
    return start_job(request, "joint", asked_of(request))


async def export(request: Request) -> Response:
    """The page of the report."""
    content = await run_job(request, "joint page", asked_of(request))
    headers = {"Content-Disposition": "attachment; filename=sources-board.html"}
    return Response(content, media_type="text/html", headers=headers)


def sources_of(request: Request) -> tuple[list[Dataset], str, str]:
    """The datasets in the query of a URL, the column whose values are the sources of a single one, and the target: one
    of the datasets, or a value of the column; empty if none is named.
    """
    query = request.query_params
    keys, column, target = list(dict.fromkeys(query.getlist("data"))), query.get("column", ""), query.get("target", "")
    if column and len(keys) != 1:
        raise HTTPException(400, f"a column of sources is one of a single dataset, not of {len(keys)}")
    if not column and not 2 <= len(keys) <= MOST_SOURCES:
        raise HTTPException(400, f"choose 2 to {MOST_SOURCES} datasets as sources of one fit, not {len(keys)}")
    try:
        chosen = [store_of(request).dataset(key) for key in keys]
    except KeyError:
        raise HTTPException(404, "one of these datasets is not in this workspace") from None
    if target and not column and target not in keys:
        raise HTTPException(400, "the target is not among the chosen datasets")
    return chosen, column, target


def asked_of(request: Request) -> dict[str, Any]:
    """The values of the computation; a dataset that is a source is called as its file, without the ending."""
    chosen, column, target = sources_of(request)
    names: list[str] = []
    for data in chosen:
        stem = data.name.split(".")[0] or data.name
        same = [name for name in names if name == stem or name.startswith(f"{stem} ")]
        names.append(f"{stem} {len(same) + 1}" if stem in names else stem)
    called = {data.id: name for data, name in zip(chosen, names)}
    return {
        "paths": [data.path for data in chosen],
        "names": names,
        "readings": [data.reading for data in chosen],
        "target": (target if column else called[target]) if target else None,
        "column": column,
    }


routes = [
    Route("/sources", show),
    Route("/api/sources", compute, methods=["POST"]),
    Route("/sources/export.html", export),
]
