"""Helpers shared by all routes: JSON bodies, the state of computations, and the studio itself."""

import asyncio
import json
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from placet.studio.file_lists import stamp_of
from placet.studio.jobs import Busy, Job, Jobs
from placet.studio.security import MOST_TEXT
from placet.studio.store import Dataset, Store

MOST_SECONDS = 30
"""Within which a body of JSON must have arrived."""

FILES = ("path", "arrivals", "beacons")
"""The values of computations that name files."""


def store_of(request: Request) -> Store:
    found: Store = request.app.state.store
    return found


def jobs_of(request: Request) -> Jobs:
    found: Jobs = request.app.state.jobs
    return found


async def body_of(request: Request, most: int = MOST_TEXT) -> dict[str, Any]:
    """The body as a JSON object; anything else is refused."""
    text = bytearray()
    try:
        async with asyncio.timeout(MOST_SECONDS):
            async for chunk in request.stream():
                text += chunk
                if len(text) > most:
                    raise HTTPException(413, f"the body is larger than {most:,} bytes")
    except TimeoutError:
        raise HTTPException(408, f"the body did not arrive within {MOST_SECONDS} seconds") from None
    try:
        values = json.loads(text or b"{}")
        if b"\\u" in text:
            json.dumps(values, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise HTTPException(400, "a text in the body has half of a character (a lone surrogate)") from None
    except ValueError:
        raise HTTPException(400, "the body is not JSON") from None
    except RecursionError:
        raise HTTPException(400, "the body is nested too deeply") from None
    if not isinstance(values, dict):
        raise HTTPException(400, "the body is not a JSON object")
    return values


def dataset_of(request: Request) -> Dataset:
    try:
        return store_of(request).dataset(request.path_params["dataset"])
    except KeyError:
        raise HTTPException(404, "there is no such dataset in this workspace") from None


def start_job(request: Request, task: str, values: dict[str, Any], **options: Any) -> JSONResponse:
    """Start a computation and respond with its state."""
    try:
        job = jobs_of(request).start(task, values, of=_stamps(values), **options)
    except Busy as error:
        raise HTTPException(429, str(error)) from None
    return JSONResponse(job.about(), status_code=202)


def _stamps(values: dict[str, Any]) -> str:
    """The stamps of the files that a computation reads: an answer about other content is another answer."""
    paths = [values[name] for name in FILES if name in values] + values.get("paths", [])
    return " ".join(map(stamp_of, paths))


async def run_job(request: Request, task: str, values: dict[str, Any]) -> bytes:
    """Run a computation and return its result; a failure becomes an error response with its message."""
    try:
        job = await jobs_of(request).wait_for(jobs_of(request).start(task, values, of=_stamps(values)))
    except Busy as error:
        raise HTTPException(429, str(error)) from None
    if job.state != "done":
        raise HTTPException(422, job.error or "the computation was cancelled")
    return job.result


# The state of computations


async def job_state(request: Request) -> Response:
    """The state of a computation; with ``?wait=1``, respond when it ends or after a few seconds."""
    job = _job(request)
    if request.query_params.get("wait"):
        await jobs_of(request).wait_for(job, 0.4 if request.query_params["wait"] == "short" else 5.0)
    return JSONResponse(job.about())


async def job_result(request: Request) -> Response:
    """The result of a computation."""
    job = _job(request)
    if job.state != "done":
        raise HTTPException(409, job.error or f"the computation is {job.state}")
    return Response(job.result, media_type="application/json")


async def job_cancel(request: Request) -> Response:
    """Stop a computation."""
    job = _job(request)
    return JSONResponse(jobs_of(request).cancel(job.id).about())


def _job(request: Request) -> Job:
    try:
        return jobs_of(request).get(request.path_params["job"])
    except KeyError:
        raise HTTPException(404, "this computation is forgotten; ask again") from None
