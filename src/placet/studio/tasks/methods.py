"""Methods side by side on the same data: positions, agreement, pairs that depend on the choice, the audit."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from placet.aggregate import METHODS, Consensus, consensus
from placet.aggregate.consensus_door import expected_seconds
from placet.aggregate.method_table import method_of
from placet.axioms import audit as run_audit
from placet.axioms.outcome import ExaminedMethod
from placet.axioms.rule_agreement import compare_methods
from placet.data import Comparisons, Rankings
from placet.studio.question import Question
from placet.studio.tasks.board import asked_data, shown_data
from placet.studio.tasks.catalog import check_given

MOST_SECONDS = 20.0
MOST_ITEMS = 30
MOST_CONTESTED = 100
MOST_AUDITED = 500


def methods(progress: Any, *, path: str, question: Mapping[str, Any]) -> dict[str, Any]:
    """Run every method that applies to these data and takes only seconds; compare the positions of the best items."""
    data, stamp = _one_problem(path, Question.from_json(question))
    found: dict[str, Consensus] = {}
    left_out: dict[str, str] = {}
    names = [name for name, method in METHODS.items() if method.kind != "score method"]
    for k, name in enumerate(names):
        progress(k, len(names), name)
        seconds = expected_seconds(data, name)
        if seconds > MOST_SECONDS:
            left_out[name] = f"it would take about {seconds:,.0f} seconds; ask for it on the board"
            continue
        try:
            result = consensus(data, name)
        except (ValueError, ImportError) as error:
            left_out[name] = str(error)
            continue
        assert isinstance(result, Consensus)
        found[name] = result
    agreed = compare_methods(data, [ExaminedMethod(name, lambda _, c=result: c) for name, result in found.items()])  # type: ignore[misc]
    places = np.array([result.ranks for result in found.values()])
    shown = np.argsort(np.median(places, axis=0), kind="stable")[:MOST_ITEMS]
    order = _by_likeness(agreed.distance)
    return {
        "methods": [agreed.methods[k] for k in order.tolist()],
        "items": [str(data.items[k]) for k in shown],
        "total": data.n_items,
        "positions": places[np.ix_(order, shown)],
        "winners": {name: [str(x) for x in who] for name, who in zip(agreed.methods, agreed.winners)},
        "distance": agreed.distance[np.ix_(order, order)],
        "pairs": agreed.pairs,
        "tied_by_some": agreed.tied_by_some,
        "contested": [
            {"x": str(c.x), "y": str(c.y), "above": c.above, "below": c.below, "tied": c.tied}
            for c in agreed.contested[:MOST_CONTESTED]
        ],
        "n_contested": len(agreed.contested),
        "left_out": left_out,
        "stamp": stamp,
    }


def audit(progress: Any, *, path: str, question: Mapping[str, Any]) -> dict[str, Any]:
    """Which axioms one method satisfies and violates on these data, in words, with the pairs that show it."""
    asked = Question.from_json(question)
    data, _ = _one_problem(path, asked)
    if data.n_items > MOST_AUDITED:
        raise ValueError(f"{data.n_items} items are too many for an audit here; placet audit does it at length")
    method = asked.method or "borda"
    check_given(method_of(method).source, asked.params, method)
    found: Any = run_audit(data, method, rivals=1, compare=(), **asked.params)
    return {
        "method": found.method,
        "findings": [vars(finding) for finding in found.findings if finding.check != "agreement"],  # shown above
        "witnesses": [duel.sentence() for duel in found.contradicted[:MOST_CONTESTED]],
        "command": asked.command(path, "audit"),
    }


def _one_problem(path: str, asked: Question) -> tuple[Rankings | Comparisons, str]:
    """The data, or those of one slice or contest, restricted to the items on its ballots; and the stamp of its file."""
    loaded = asked_data(path, asked)
    data = shown_data(loaded.data, asked)
    if isinstance(data, Rankings) and data.instance is not None:
        data = data.restricted([data.items[k] for k in np.unique(data.item).tolist()])
    return data, loaded.stamp


def _by_likeness(distance: Any) -> Any:
    """Order methods so that neighbors are similar: starting at the first, always the nearest of the rest."""
    order, rest = [0], list(range(1, len(distance)))
    while rest:
        nearest = min(rest, key=lambda k: (distance[order[-1]][k], k))
        order.append(nearest)
        rest.remove(nearest)
    return np.array(order)
