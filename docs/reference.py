"""The directives ``reference`` and ``extras``: the library's own tables as pages of the docs."""

import inspect
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docstrings import entry, escaped, type_text
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

Entry = tuple[str, list[str]]
"""A heading and lines of Markdown."""


def models() -> Iterator[Entry]:
    for name, method in _methods("model"):
        about = f"`placet.consensus(data, {name!r}, ...)`, class `{method.source.__name__}`. {_about(method)}"
        yield name, [about, "", *entry(method.source)]


def rules() -> Iterator[Entry]:
    for name, method in _methods("rule"):
        about = [f"`placet.consensus(ballots, {name!r})`. {_about(method)}", ""]
        yield name, about + entry(method.source, skip=("data",))


def score_methods() -> Iterator[Entry]:
    for name, method in _methods("score method"):
        about = [f"`placet.consensus(scores, {name!r})`. {_about(method)}", ""]
        yield name, about + entry(method.source, skip=("scores", "weight", "weights"))


def _methods(kind: str) -> Iterator[tuple[str, Any]]:
    from placet.aggregate import METHODS

    return ((name, method) for name, method in METHODS.items() if method.kind == kind)


def _about(method: Any) -> str:
    """The sentences of a method's record, the data it takes, and where it was published."""
    takes = {"votes": "votes on pairs", "ballots": "ballots", "scores": "score tables"}
    data = " or ".join(takes[kind] for kind in method.takes)
    return f"{escaped(method.words)} Takes {data}. Source: {escaped(method.reference)}."


def losses() -> Iterator[Entry]:
    from placet.losses import LOSSES

    facts = {
        "shift_invariant": "does not change when all scores of a list are shifted",
        "scale_invariant": "does not change when all scores of a list are multiplied",
        "samples": "is estimated by sampling",
        "convex": "is convex in the scores",
        "values_of_grades": "looks at the values of grades, not only their order",
    }
    for name, loss in LOSSES.items():
        gives = " and ".join({"curvature": "a diagonal curvature", "hvp": "Hessian products"}[g] for g in loss.gives)
        about = [f"Source: {escaped(loss.reference)}.", ""] if loss.reference else []
        about += [f"- has {gives or 'a gradient only'}"]
        about += [f"- is a likelihood: of an {loss.law}"] if loss.law else []
        about += [f"- {text}" for fact, text in facts.items() if getattr(loss, fact)]
        about += [f"- learns {', '.join(f'`{p}`' for p in loss.learned)} with the scores"] if loss.learned else []
        yield name, [*entry(loss.plan, skip=("lists",)), *about, ""]


def metrics() -> Iterator[Entry]:
    from placet.metrics import METRICS

    for name, metric in METRICS.items():
        yield name, entry(metric)


def rankers() -> Iterator[Entry]:
    from placet.rank import RANKERS

    for name in RANKERS:
        yield name, [f"`placet train --ranker {name}`, class `{RANKERS[name].__name__}`", "", *entry(RANKERS[name])]


def formats() -> Iterator[Entry]:
    from placet.io.formats import FORMATS

    for name, record in FORMATS.items():
        endings = f" Endings: {' '.join(f'`{suffix}`' for suffix in record.suffixes)}." if record.suffixes else ""
        about = [f"`--format {name}`, function `{record.read.__name__}`, gives `{record.kind.__name__}`.{endings}", ""]
        yield name, about + entry(record.read, skip=("source",))


def tracking() -> Iterator[Entry]:
    import placet.tracking

    yield from _module(placet.tracking)


def report() -> Iterator[Entry]:
    import placet.report

    yield from _module(placet.report)


def axioms() -> Iterator[Entry]:
    import placet.axioms
    from placet.axioms.sentences import MEANING

    for name in placet.axioms.AXIOMS:
        yield name, [f"{escaped(MEANING[name]).capitalize()}.", "", *entry(placet.axioms.AXIOMS[name])]


def _module(module: Any) -> Iterator[Entry]:
    """Everything that a module names in ``__all__``; of classes their public methods too."""
    for name in module.__all__:
        thing = getattr(module, name)
        if not callable(thing):
            continue
        lines = [f"`{module.__name__}.{name}`", "", *entry(thing)]
        if inspect.isclass(thing):
            for method, function in vars(thing).items():
                if callable(function) and not method.startswith("_") and inspect.getdoc(function):
                    lines += [f"**`{method}`**", "", *entry(function)]
        yield name, lines


def commands() -> Iterator[Entry]:
    """Every command with its arguments and options, as ``--help`` has them."""
    import typer.main

    from placet.cli import app

    def walk(command: Any, name: str) -> Iterator[Entry]:
        children = getattr(command, "commands", {})
        if children and name != "placet":
            yield name, [escaped(command.help or ""), ""]
        for child in children.values():
            yield from walk(child, f"{name} {child.name}")
        if not children:
            yield name, _command(command)

    yield from walk(typer.main.get_command(app), "placet")


def _command(command: Any) -> list[str]:
    text = inspect.cleandoc(command.help or "")
    lines = [line for paragraph in text.split("\n\n") for line in (escaped(" ".join(paragraph.split())), "")]
    for option in command.params:
        if option.name == "help":
            continue
        flags = ", ".join(f"`{flag}`" for flag in (*option.opts, *option.secondary_opts))
        flags = f"`{option.name.upper()}`" if option.param_type_name == "argument" else flags
        kind = _kind(option)
        shown = option.default not in (None, "", False, [], ()) and not callable(option.default)
        brackets = ", ".join(
            part
            for part in (
                kind,
                "needed" if option.required else "",
                "may be repeated" if option.multiple or option.nargs == -1 else "",
                f"default `{getattr(option.default, 'value', option.default)}`" if shown else "",
            )
            if part
        )
        words = escaped(" ".join((option.help or "").split()))
        lines.append(f"- {flags}" + (f" ({brackets})" if brackets else "") + (f": {words}" if words else ""))
    return [*lines, ""]


def _kind(option: Any) -> str:
    """What an option takes, in a word."""
    told = getattr(option, "type_descriptor", None)  # newer versions of Typer; older ones have the types of Click
    if told is None:
        choices = getattr(option.type, "choices", None)
        return " or ".join(choices) if choices else WORDS.get(option.type.name, option.type.name)
    text = type_text(told.annotation)
    if text.startswith("Literal["):
        return " or ".join(part.strip(" '\"") for part in text[len("Literal[") : -1].split(","))
    return WORDS.get(text.removeprefix("list[").removesuffix("]"), text)


WORDS = {
    "str": "text",
    "bool": "",
    "boolean": "",
    "Path": "file",
    "path": "file",
    "int": "whole number",
    "integer": "whole number",
    "float": "number",
}
"""Types of options, as a person says them."""

REFERENCES = {
    function.__name__: function
    for function in (
        models,
        rules,
        score_methods,
        losses,
        metrics,
        rankers,
        formats,
        axioms,
        tracking,
        report,
        commands,
    )
}


class Reference(SphinxDirective):
    """Replaced by a section for each entry of the table that is named."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        kind = self.arguments[0]
        lines = []
        for name, text in REFERENCES[kind]():
            lines += [f"({label(kind, name)})=", f"## {escaped(name)}", "", *text, ""]
        return parsed(self, lines)


class Extras(SphinxDirective):
    """Replaced by a list of the extras of the package: what each is for, and what it installs."""

    def run(self) -> list[nodes.Node]:
        project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
        told = project["optional-dependencies"]
        lines = []
        for name, words in EXTRAS.items():
            packages = ", ".join(re.split(r"[<>=]", text)[0] for text in told[name])
            lines.append(f"- `{name}`: {words} ({packages})")
        return parsed(self, lines)


EXTRAS = {
    "trees": "boosted trees",
    "neural": "networks and labels",
    "serve": "the studio, in a browser",
    "tracking": "maps and netCDF for ocean floats",
    "plot": "charts of rankings",
    "onnx": "models for onnxruntime",
    "dask": "many machines",
}
"""Extras for users, and what each is for; others are for those who work on Placet."""


def label(kind: str, name: str) -> str:
    """What the section of an entry is linked by."""
    return f"{kind}-{name}".replace(" ", "-").replace("_", "-").lower()


def parsed(directive: SphinxDirective, lines: list[str]) -> list[nodes.Node]:
    """Markdown as nodes."""
    flat = [part for line in lines for part in line.split("\n")]
    parent = nodes.section()
    parent.document = directive.state.document
    directive.state.nested_parse(StringList(flat, "tables"), directive.content_offset, parent, match_titles=True)
    return parent.children


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("reference", Reference)
    app.add_directive("extras", Extras)
    return {"parallel_read_safe": True}
