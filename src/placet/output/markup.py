"""HTML and SVG from templates: one Jinja2 environment for the page, the studio and notebooks, escaping everything.

A template is named by its path inside the package (``report/templates/page.html``), so any room can use the macros of
the rooms below it.  Jinja2 is loaded when the first template is.
"""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import placet
from placet.escaping import visible_in_markup
from placet.output.numbers import fact_text, fact_texts

if TYPE_CHECKING:
    import jinja2

PACKAGE = Path(placet.__file__).parent


def render(template: str, **values: object) -> str:
    """The markup that a template makes of plain values."""
    return environment().get_template(template).render(values)


@cache
def environment() -> "jinja2.Environment":
    r"""The environment of all templates; an undefined name is an error, and invisible characters are shown.

    >>> print(environment().from_string("<p>{{ said }}</p>").render(said="<b>\u202e"))
    <p>&lt;b&gt;\u202e</p>
    """
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        autoescape=True,
        auto_reload=False,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=visible_in_markup,
    )
    made.globals |= {"version": placet.__version__, "zip": zip}
    made.filters |= {"fact": fact_text, "facts": fact_texts}
    return made


def _source(template: str) -> tuple[str, str, None] | None:
    path = PACKAGE / template
    return (path.read_text(encoding="utf-8"), template, None) if path.is_file() else None
