"""Sphinx: MyST pages, the API from docstrings; warnings are errors (`make docs`)."""

import re
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import placet

sys.path.append(str(Path(__file__).parent))  # the directives of the reference, and formulas

import formulas

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

# Docstrings are written to be read in the source: plain words, formulas, ``code`` and doctests.  Formulas are found by
# their shape; what else reStructuredText would give a meaning to is escaped, so that nothing needs marks of its own.
_CODE = re.compile(r"(``.+?``)")
_NAME = re.compile(r"`([^`]+)`")
_MARKS = re.compile(r"([|*\\])|(?<=\w)(_)(?!\w)")


def _escaped(text: str) -> str:
    parts = _CODE.split(_NAME.sub(r"``\1``", text) if "``" not in text else text)
    return "".join(
        part if part.startswith("``") else "".join(_marked(*piece) for piece in formulas.parts(part)) for part in parts
    )


def _marked(is_formula: bool, text: str) -> str:
    return rf"\ :math:`{formulas.latex(text)}`\ " if is_formula else _MARKS.sub(r"\\\g<0>", text)


def _plain(app, what, name, obj, options, lines) -> None:
    """Escape prose; keep doctests; bring indented continuation lines back to the margin of their paragraph."""
    doctest = False
    for k, line in enumerate(lines):
        doctest = line.lstrip().startswith(">>>") or (doctest and bool(line.strip()))
        if not doctest:
            lines[k] = _escaped(line.lstrip())


def _skip(app, what, name, obj, skip, options) -> bool | None:
    """Methods that scikit-learn adds have documentation of their own; fields of a named tuple are in its text."""
    added = re.fullmatch(r"set_\w+_request|get_metadata_routing|set_params|get_params", name)
    return True if added or str(getattr(obj, "__doc__", "")).startswith("Alias for field number") else None


def setup(app) -> None:
    app.connect("autodoc-process-docstring", _plain)
    app.connect("autodoc-skip-member", _skip)
