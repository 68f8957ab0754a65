"""Formulas as MathML, written when the documentation is built: a page needs no script and no network to show them."""

from docutils import nodes
from latex2mathml.converter import convert


def mathml(latex: str, display: str) -> str:
    """MathML of a formula in LaTeX; ``display`` is "inline" or "block"."""
    return convert(" ".join(latex.split()), display=display)


def _inline(translator, node) -> None:
    translator.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _block(translator, node) -> None:
    translator.body.append(f'<div class="math">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def setup(app) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
