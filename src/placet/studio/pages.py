"""Pages rendered from the templates of the studio; all user input is escaped."""

from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse

from placet.output.markup import render

HERE = Path(__file__).parent


def page(request: Request, template: str, *, status: int = 200, csrf: str | None = None, **values: Any) -> HTMLResponse:
    """Render a template as a page, with the CSRF token for its writes."""
    keys = request.app.state.keys
    token = keys.csrf(keys.session) if csrf is None else csrf
    text = render(f"studio/templates/{template}", csrf=token, path=request.url.path, **values)
    return HTMLResponse(text, status_code=status)
