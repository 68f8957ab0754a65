"""Adding data: upload, preview, the role of each column, and a summary of what was read."""

import inspect
from typing import Any
from urllib.parse import unquote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from placet.studio.file_lists import stamp_of
from placet.studio.pages import page
from placet.studio.routes.common import body_of, dataset_of, start_job, store_of
from placet.studio.security import address
from placet.studio.store import MOST_NAME, TooLarge


async def home(request: Request) -> Response:
    """Everything in the workspace."""
    store = store_of(request)
    return page(
        request,
        "home.html",
        datasets=store.datasets(),
        polls=store.rows("SELECT id, title, kind, open FROM poll ORDER BY created DESC"),
        runs=store.rows("SELECT id, dataset, settings FROM run ORDER BY created DESC LIMIT 20"),
        folder=store.folder,
        most=request.app.state.most_upload,
    )


async def upload(request: Request) -> Response:
    """Upload a file as the request body, its name in a header; it is listed once it is complete and on disk."""
    state = request.app.state
    if not state.uploads.allows(address(request)):
        raise HTTPException(429, "too many uploads; wait a minute")
    name = unquote(request.headers.get("x-name", "")).replace("\\", "/").rsplit("/", 1)[-1].strip()[:MOST_NAME]
    if not name:
        raise HTTPException(400, "an upload needs the name of its file")
    if int(request.headers.get("content-length") or 0) > state.most_upload:
        raise HTTPException(
            413, f"{name} is larger than {state.most_upload:,} bytes; start the studio with a larger --max-upload"
        )
    try:
        data = await store_of(request).save_upload(name, request.stream(), state.most_upload)
    except TooLarge as error:
        raise HTTPException(413, str(error)) from None
    if not data.size:
        store_of(request).remove_dataset(data.id)
        raise HTTPException(400, f"{name} is empty")
    return JSONResponse({"id": data.id, "name": data.name, "size": data.size}, status_code=201)


async def join(request: Request) -> Response:
    """Combine several datasets into a new one."""
    values = await body_of(request)
    keys = values.get("datasets")
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise HTTPException(400, "name the datasets to be read as one")
    try:
        data = store_of(request).join(keys)
    except KeyError as error:
        raise HTTPException(404, f"there is no dataset {error.args[0]!r} in this workspace") from None
    except ValueError as error:
        raise HTTPException(400, str(error)) from None
    return JSONResponse({"id": data.id, "name": data.name, "size": data.size}, status_code=201)


async def show(request: Request) -> Response:
    """The preview of one dataset."""
    return page(request, "data.html", data=dataset_of(request))


async def stamp(request: Request) -> Response:
    """The stamp of the files as they are now, by which a page knows that it shows older ones."""
    return JSONResponse({"stamp": stamp_of(dataset_of(request).path)})


async def understand(request: Request) -> Response:
    """Read the file with the options in the body (or the stored ones), and summarize what was read."""
    data, values = dataset_of(request), await body_of(request)
    reading = options_of(values["reading"]) if "reading" in values else data.reading
    return start_job(request, "understand", {"path": data.path, "name": data.name, "reading": reading})


async def keep(request: Request) -> Response:
    """Store the options for reading the file."""
    data, values = dataset_of(request), await body_of(request)
    store_of(request).set_reading(data.id, options_of(values.get("reading", {})))
    return JSONResponse({"id": data.id})


async def remove(request: Request) -> Response:
    """Remove a dataset."""
    store_of(request).remove_dataset(dataset_of(request).id)
    return JSONResponse({})


def options_of(values: Any) -> dict[str, Any]:
    """Validate the options of a reader sent by a page: known names, strings or lists of strings."""
    from placet.io import FORMATS

    if not isinstance(values, dict):
        raise HTTPException(400, "the options of a reader are a JSON object")
    known = {name for form in FORMATS.values() for name in inspect.signature(form.read).parameters} - {"source"}
    for name, value in values.items():
        if name not in known | {"format"}:
            raise HTTPException(400, f"no reader has an option {name!r}")
        texts = value if isinstance(value, list) else [value]
        if not all(isinstance(text, str | bool) for text in texts):
            raise HTTPException(400, f"the option {name!r} must be a text, or a list of texts")
    return {name: value for name, value in values.items() if value not in ("", [])}


routes = [
    Route("/", home),
    Route("/api/data", upload, methods=["POST"]),
    Route("/api/data/joined", join, methods=["POST"]),
    Route("/data/{dataset}", show),
    Route("/api/data/{dataset}/stamp", stamp),
    Route("/api/data/{dataset}/understand", understand, methods=["POST"]),
    Route("/api/data/{dataset}/reading", keep, methods=["PUT"]),
    Route("/api/data/{dataset}", remove, methods=["DELETE"]),
]
