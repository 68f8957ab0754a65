"""The directive ``tables``: losses, models, rules, metrics, rankers and formats, from the library's own tables."""

import inspect

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective


def first_sentence(thing) -> str:
    text = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
    return text.replace("|", "\\|").replace("*", "\\*")


def rows():
    """(title, head, rows) of every table."""
    from placet.aggregate import MODELS, RULES
    from placet.io.formats import FORMATS
    from placet.losses import LOSSES
    from placet.metrics import METRICS
    from placet.rank import RANKERS

    second = {(): "none", ("curvature",): "curvature", ("curvature", "hvp"): "curvature, products"}
    yield (
        "Losses",
        ("name", "what", "law", "second derivatives", "source"),
        [
            (name, first_sentence(loss.plan), loss.law or "", second[loss.gives], loss.reference)
            for name, loss in LOSSES.items()
        ],
    )
    yield "Models", ("name", "what"), [(name, first_sentence(model)) for name, model in MODELS.items()]
    yield (
        "Rules",
        ("name", "what", "source"),
        [(name, first_sentence(rule.function), rule.reference) for name, rule in RULES.items()],
    )
    yield "Metrics", ("name", "what"), [(name, first_sentence(metric)) for name, metric in METRICS.items()]
    yield "Rankers", ("name", "what"), [(name, first_sentence(RANKERS[name])) for name in RANKERS]
    yield (
        "Formats",
        ("name", "what", "endings"),
        [(name, first_sentence(record.read), " ".join(record.suffixes)) for name, record in FORMATS.items()],
    )


class Tables(SphinxDirective):
    """Replaced by one section with a table for each of the library's tables."""

    def run(self) -> list[nodes.Node]:
        lines = []
        for title, head, body in rows():
            lines += [f"## {title}", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
            lines += ["| " + " | ".join((f"`{row[0]}`", *row[1:])) + " |" for row in body]
            lines.append("")
        parent = nodes.section()
        parent.document = self.state.document
        self.state.nested_parse(StringList(lines, "tables"), self.content_offset, parent, match_titles=True)
        return parent.children


def setup(app) -> dict[str, bool]:
    app.add_directive("tables", Tables)
    return {"parallel_read_safe": True}
