"""The web application: its routes behind the guard."""

import asyncio
import contextlib
import errno
import secrets
import sqlite3
import sys
from collections.abc import AsyncIterator, Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from placet.report.document import shared_style
from placet.studio.jobs import Jobs
from placet.studio.pages import HERE, page
from placet.studio.polls import Desk
from placet.studio.routes import board, common, data, joint, methods, polls, rankers, tracks
from placet.studio.security import LOCAL_NAMES, Guard, Keys, Rate, refusal
from placet.studio.store import Dataset, Store

MOST_UPLOAD = 1 << 30
MOST_AHEAD = 2
FULL = (errno.ENOSPC, errno.EDQUOT)
MOST_UPLOADS, MOST_VOTERS, MOST_VOTES = 60, 2000, 600
"""Limits per minute: uploads and new voters from one address, and answers of one voter."""


def application(
    store: Store,
    token: str,
    *,
    most_upload: int = MOST_UPLOAD,
    names: Sequence[str] = (),
    opened: Sequence[Dataset] = (),
) -> Starlette:
    """The studio of one workspace.

    ``names`` are those by which it is called besides this machine's own; ``opened`` are datasets to read before they
    are requested.
    """
    keys = Keys(token, store.fact("secret", lambda: secrets.token_hex(32)))

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.jobs.warm_up()
        for one in opened[:MOST_AHEAD]:
            app.state.jobs.start("read ahead", {"path": one.path, "reading": one.reading})
        yield
        app.state.jobs.close()
        await asyncio.to_thread(store.close)

    app = Starlette(
        routes=[
            *data.routes,
            *board.routes,
            *joint.routes,
            *methods.routes,
            *polls.routes,
            *rankers.routes,
            *tracks.routes,
            Route("/api/jobs/{job}", common.job_state),
            Route("/api/jobs/{job}/result", common.job_result),
            Route("/api/jobs/{job}", common.job_cancel, methods=["DELETE"]),
            Route("/static/report.css", _report_style),
            Mount("/static", StaticFiles(directory=HERE / "static")),
        ],
        middleware=[Middleware(Guard, keys=keys, names=LOCAL_NAMES | {name.lower() for name in names})],
        exception_handlers={
            HTTPException: _error_response,
            OSError: _system_response,
            sqlite3.Error: _system_response,
            Exception: _failure_response,
        },
        lifespan=lifespan,
    )
    app.state.store, app.state.keys, app.state.jobs = store, keys, Jobs()
    app.state.desk, app.state.most_upload, app.state.tasks = Desk(store, app.state.jobs), most_upload, set()
    app.state.uploads, app.state.voters, app.state.votes = (
        Rate(MOST_UPLOADS, 60),
        Rate(MOST_VOTERS, 60),
        Rate(MOST_VOTES, 60),
    )
    return app


async def _report_style(request: Request) -> Response:
    return PlainTextResponse(shared_style(), media_type="text/css")


async def _error_response(request: Request, error: Exception) -> Response:
    """An error response: a page for a person, JSON for a script."""
    assert isinstance(error, HTTPException)
    words = error.detail if error.detail != "Not Found" else "there is nothing at this address"
    if "text/html" in request.headers.get("accept", ""):
        return page(request, "refused.html", status=error.status_code, words=words)
    return refusal(error.status_code, words)


async def _system_response(request: Request, error: Exception) -> Response:
    """What the disk, the database or the operating system refused, in words; nothing was half written."""
    folder = request.app.state.store.folder
    print(f"placet: {request.url.path}: {error}", file=sys.stderr)
    if getattr(error, "errno", None) in FULL or getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
        return refusal(507, f"the disk of {folder} is full; nothing was kept of this: free some space and try again")
    words = getattr(error, "strerror", None) or str(error)
    return refusal(500, f"the workspace {folder} cannot be used for this: {words}")


async def _failure_response(request: Request, error: Exception) -> Response:
    return refusal(500, "the studio failed at this; the terminal that runs it says more")
