"""Sphinx: MyST pages, the API from docstrings; warnings are errors (`make docs`)."""

import placet

project = "Placet"
author = "the Placet developers"
copyright = "2026, the Placet developers"
version = release = placet.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "Placet"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
