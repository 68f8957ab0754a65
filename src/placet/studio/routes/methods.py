"""Methods side by side."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from placet.studio.pages import page
from placet.studio.routes.board import question_of
from placet.studio.routes.common import dataset_of, start_job


async def show(request: Request) -> Response:
    """The page of all methods on one dataset."""
    return page(request, "methods.html", data=dataset_of(request))


async def compute(request: Request) -> Response:
    """Run all methods."""
    data = dataset_of(request)
    return start_job(request, "methods", {"path": data.path, "question": question_of(request, data)})


async def audit(request: Request) -> Response:
    """Audit one method."""
    data = dataset_of(request)
    return start_job(request, "audit", {"path": data.path, "question": question_of(request, data)})


routes = [
    Route("/methods/{dataset}", show),
    Route("/api/methods/{dataset}", compute, methods=["POST"]),
    Route("/api/methods/{dataset}/audit", audit, methods=["POST"]),
]
