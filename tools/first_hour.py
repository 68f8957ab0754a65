"""Write docs/notebooks/first_hour.ipynb: the cells below with what they give.  ``python tools/first_hour.py``."""

import ast
import json
import os
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
NOTEBOOK = DOCS / "notebooks" / "first_hour.ipynb"

CELLS = [
    """# The first hour

Votes, ballots and search results, from files to results. The files are in `docs/files`; each is read by its content.""",
    'import placet\n\nvotes = placet.read("../files/votes.csv")\nvotes',
    """## Who leads?

Bars are 95% intervals. Items whose ranks overlap may be told apart or not: tiers say which.""",
    "board = placet.consensus(votes)\nboard",
    "board.tiers()",
    'round(board.prob_above("cat", "bee"), 2)  # how sure is it that cat is truly above bee?',
    'board.to_pandas()[["item", "rank", "rank_low", "rank_high"]]',
    """How few votes decide the first place?""",
    "placet.fragility(votes)",
    """## Ballots

A model says what ballots settle; a rule counts them, whatever they settle.""",
    'ballots = placet.read("../files/club.ballots")\n'
    '{rule: placet.consensus(ballots, rule).ranking for rule in ("plackett-luce", "borda", "irv", "plurality")}',
    'placet.audit(ballots, "irv")',
    """## A ranker

It learns scores from features of graded search results.""",
    'rows = placet.read("../files/search.letor")\nranker = placet.LinearRanker().fit(rows[:100])\n'
    'round(ranker.score(rows[100:], metric="ndcg@10"), 2)',
    """Where to go: `placet methods` lists the methods, and the how-tos of the documentation have a page for each kind of question.""",
]


def executed(cells: list[str]) -> list[dict[str, Any]]:
    """The cells of a notebook: text as it is, code with the value of its last expression."""
    names: dict[str, Any] = {}
    found: list[dict[str, Any]] = []
    for k, source in enumerate(cells):
        common = {"id": f"cell-{k}", "metadata": {}, "source": source.splitlines(keepends=True)}
        try:
            *before, last = ast.parse(source).body
        except (SyntaxError, ValueError):
            found.append({"cell_type": "markdown", **common})
            continue
        exec(compile(ast.Module(before, []), "cell", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # type: ignore[attr-defined]
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = value._repr_html_().splitlines(keepends=True)
        count = 1 + sum(cell["cell_type"] == "code" for cell in found)
        output = {"output_type": "execute_result", "execution_count": count, "metadata": {}, "data": data}
        found.append({"cell_type": "code", "execution_count": count, "outputs": [output], **common})
    return found


def notebook() -> dict[str, Any]:
    """The notebook, run in its own folder."""
    before = Path.cwd()
    NOTEBOOK.parent.mkdir(exist_ok=True)
    os.chdir(NOTEBOOK.parent)
    try:
        cells = executed(CELLS)
    finally:
        os.chdir(before)
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}


if __name__ == "__main__":
    NOTEBOOK.write_text(json.dumps(notebook(), indent=1, ensure_ascii=False) + "\n")
