"""Sphinx: MyST pages, the API from docstrings; warnings are errors (`make docs`)."""

import re
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import placet

sys.path.append(str(Path(__file__).parent))  # the directives of the reference, and formulas

from api_text import restructured

project = "Placet"
author = "the Placet developers"
copyright = "2026, the Placet developers"
version = release = placet.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "reference",
    "mathml",
    "pages",
    "sphinx_inline_tabs",
    "sphinx_codeautolink",
]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "_templates", "files", "notebooks"]
html_math_renderer = "mathml"
smartquotes = False  # an option such as --out must stay two hyphens, to be pasted into a shell
html_theme = "furo"
templates_path = ["_templates"]
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_js_files = ["copy.js"]
html_css_files = ["copy.css"]
html_title = f"Placet {placet.__version__}"
_settings = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["tool"]["hatch"]["metadata"]
home = _settings["hooks"]["custom"]["home"]  # empty until there is a public repository: no links to it, none to edit
html_theme_options = {"source_repository": home, "source_branch": "main", "source_directory": "docs/"} if home else {}
codeautolink_concat_default = True  # the examples of a page are one session
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_mock_imports = [] if find_spec("torch") else ["torch"]  # optional, here as everywhere


def _plain(app, what, name, obj, options, lines) -> None:
    lines[:] = restructured("\n".join(lines))


def _skip(app, what, name, obj, skip, options) -> bool | None:
    """Methods that scikit-learn adds have documentation of their own; fields of a named tuple are in its text."""
    added = re.fullmatch(r"set_\w+_request|get_metadata_routing|set_params|get_params", name)
    return True if added or str(getattr(obj, "__doc__", "")).startswith("Alias for field number") else None


def setup(app) -> None:
    app.connect("autodoc-process-docstring", _plain)
    app.connect("autodoc-skip-member", _skip)
