"""What is known of data before any method runs: their kind, the support of each item, notes; votes in parts counted."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from placet.aggregate.places import listed_weight
from placet.data import Comparisons, DataError, Parts, Rankings
from placet.data.arrays import Floats
from placet.io.text import plural


def data_kind(data: Any) -> str:
    """ "rankings" or "comparisons"; for anything else, a ``TypeError`` that says how to create them."""
    if isinstance(data, Rankings):
        return "rankings"
    if isinstance(data, Comparisons):
        return "comparisons"
    raise TypeError(
        f"data must be Rankings or Comparisons, not {type(data).__name__}; "
        "placet.read('votes.csv') reads a file, Rankings.from_orders and Comparisons.from_battles take Python objects"
    )


def support(data: Rankings | Comparisons | Parts) -> Floats:
    """(n_items,): the weight of the ballots that list an item, or of the votes on it.  O(rows)."""
    if isinstance(data, Parts):
        found: Floats = data.sum(support, name="support")
        return found
    if isinstance(data, Rankings):
        return listed_weight(data)
    votes = data.wins_i + data.wins_j + data.ties
    both = np.concatenate([data.i, data.j])
    return np.bincount(both, np.concatenate([votes, votes]), data.n_items).astype(np.float64)


def refuse_design(data: Any, what: str) -> None:
    """Raise ``DataError`` if weights are design weights, which ``what`` would take for counts."""
    if getattr(data, "weights", "counts") == "design":
        raise DataError(f'{what} would take design weights for counts; leave it out, or read with weights="counts"')


def notes_of_data(data: Rankings | Comparisons | Parts) -> tuple[str, ...]:
    """The notes of the data, and that they were worked on in parts."""
    return (*data.notes, f"worked on in {plural(len(data), 'part')}") if isinstance(data, Parts) else data.notes


def unused_note(data: Rankings | Comparisons | Parts, method: str) -> list[str]:
    """A note if ``data`` have controls that the method ignores."""
    names: Sequence[str] | None = getattr(data, "controls", None)
    return [f"{method!r} does not look at the controls ({', '.join(names)})"] if names else []


def with_votes_counted(data: Any, agents: bool = True) -> Any:
    """Votes in parts as the counts of all of them, by agent unless ``agents`` is false; other data as they are."""
    if not isinstance(data, Parts) or data.kind is not Comparisons:
        return data
    return data.with_names(data.sum(_itself if agents else _of_all_agents, name="counts"), notes=notes_of_data(data))


def _itself(data: Comparisons) -> Comparisons:
    return data


def _of_all_agents(data: Comparisons) -> Comparisons:
    return data.reweighted(1.0, agents=False)
