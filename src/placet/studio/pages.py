"""Pages rendered from templates; all user input is escaped."""

from pathlib import Path
from typing import Any

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse

import placet
from placet.io.output.numbers import fact_text

HERE = Path(__file__).parent
ENGINE = jinja2.Environment(
    loader=jinja2.FileSystemLoader(HERE / "templates"),
    autoescape=True,
    auto_reload=False,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENGINE.globals["version"] = placet.__version__
ENGINE.filters["fact"] = fact_text


def page(request: Request, template: str, *, status: int = 200, csrf: str | None = None, **values: Any) -> HTMLResponse:
    """Render a template as a page, with the CSRF token for its writes."""
    keys = request.app.state.keys
    token = keys.csrf(keys.session) if csrf is None else csrf
    text = ENGINE.get_template(template).render(csrf=token, path=request.url.path, **values)
    return HTMLResponse(text, status_code=status)
