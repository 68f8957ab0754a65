"""Existence check for all likelihood models: are scores finite, and for which items only because of the prior?"""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placet.data import DataError, Rankings
from placet.data.arrays import Floats, Ints, Names, numbers, offsets_from_sizes
from placet.data.graph import (
    always_together,
    components_of_edges,
    components_of_pairs,
    reduced_edges,
)
from placet.kernels import for_rows
from placet.kernels.aggregate import strict_orders
from placet.kernels.losses import pairs as kernels

WAY_OUT = "give a prior (such as prior=10), leave items out, or add comparisons between the groups"
SHOWN = 5

Codes = NDArray[np.signedinteger[Any]]


def notes_of_pairs(
    i: Codes, j: Codes, wins_i: Floats, wins_j: Floats, ties: Floats, items: Sequence[Hashable], prior: Any
) -> list[str]:
    """Notes on items whose scores only the prior bounds; without a prior, a ``DataError`` that names the groups."""
    n = len(items)
    over, under = (wins_i > 0) | (ties > 0), (wins_j > 0) | (ties > 0)
    spreads = for_rows(kernels, len(i)).spreads
    reach = [spreads(i, j, over, under, forward, 20) for forward in (True, False)]
    if all(last == n and everyone for last, everyone in reach):
        return []
    component = components_of_pairs(np.concatenate([i[over], j[under]]), np.concatenate([j[over], i[under]]), n)
    if prior is None:
        _refuse_groups(component, items)
    beaten, beats = np.zeros(n, bool), np.zeros(n, bool)
    beats[i[over]] = beats[j[under]] = True
    beaten[j[over]] = beaten[i[under]] = True
    return _notes(component, beats, beaten, items)


def notes_of_tie_rate(
    i: Codes, j: Codes, wins_i: Floats, wins_j: Floats, ties: Floats, n: int, prior: Any
) -> list[str]:
    """A note if only the prior bounds a learned tie rate, with the differences; without a prior, a ``DataError``.

    The rate t and the scores s may grow together without end iff some s has s_i - s_j >= 1 wherever i beat j, and
    |s_i - s_j| <= 1 wherever they tied: no cycle has more wins than ties.  O(pairs), O(n pairs) if no wins form a
    cycle.
    """
    won, lost, tied = wins_i > 0, wins_j > 0, ties > 0
    if (won & lost).any():
        return []
    over, under = np.concatenate([i[won], j[lost]]), np.concatenate([j[won], i[lost]])
    if _have_cycle(over, under, n):
        return []
    head = np.concatenate([over, i[tied], j[tied]])
    tail = np.concatenate([under, j[tied], i[tied]])
    step = np.concatenate([np.full(len(over), -1), np.ones(2 * int(tied.sum()), np.int64)])
    height = np.zeros(n, np.int64)
    for _ in range(n):  # shortest paths: s_tail <= s_head + step
        new = height.copy()
        np.minimum.at(new, tail, height[head] + step)
        if np.array_equal(new, height):
            break
        height = new
    else:
        return []
    what = "all votes that are not ties agree with one order, so they fit ever better the more likely ties become"
    if not len(over):
        what = "every result is a tie, which says how often results tie, and not that the items are equal"
    if prior is None:
        raise DataError(f"the tie rate has no finite value: {what}; give a prior (such as prior=10), or ties='none'")
    return [f"{what}; only the prior bounds the scores and the tie rate"]


def _have_cycle(over: Codes, under: Codes, n: int) -> bool:
    """Whether wins form a cycle: items that nobody left has beaten are taken away, again and again."""
    while len(over):
        beaten = np.bincount(under, minlength=n) > 0
        left = beaten[over]
        if left.all():
            return True
        over, under = over[left], under[left]
    return False


def notes_of_rankings(data: Rankings, weight: Floats, prior: Any, rule: str = "order") -> list[str]:
    """As `notes_of_pairs`, for ballots; those of weight zero are ignored.

    ``rule``: the condition for finite scores.  "order": the graph "is in a higher tier than" is strongly connected;
    "tiers": the same, with items of one tier linked both ways; "sums" needs the loss itself (`Ballots.notes`).
    """
    return notes_of_parts([graph_of_part(data, weight, rule, together=False)], data.items, prior)


class PartGraph(NamedTuple):
    """The contribution of a part to the existence check: edges between items and the number of nodes, which items beat
    some other and which are beaten, and groups of items that the part's ballots never separate (-1: on no ballot).
    Edges are None if the part alone connects all items.
    """

    edges: tuple[Ints, int] | None
    beats: NDArray[np.bool_]
    beaten: NDArray[np.bool_]
    together: Ints | None


def graph_of_part(data: Rankings, weight: Floats, rule: str | None, together: bool) -> PartGraph:
    """Build the `PartGraph` of a part; without a rule, only groups if they are to be found ``together``.  O(rows)."""
    group = None
    if together:
        item, tier, offsets = informative_rows(data, weight)
        group = np.where(np.bincount(item, minlength=data.n_items) > 0, 0, -1)
        group = np.where(group < 0, -1, always_together(item, tier, offsets, data.n_items))
    if rule is None or (rule != "tiers" and _connects_all(data, weight)):
        return PartGraph(None, np.zeros(0, bool), np.zeros(0, bool), group)
    edges = reduced_edges(*_counting_rows(data, weight), data.n_items, ties_link=rule == "tiers")
    return PartGraph(edges, *_beats(data, weight), group)


def _connects_all(data: Rankings, weight: Floats) -> bool:
    """Whether a quick search finds wins that lead from every item to every other."""
    columns = (data.item, data.tier, data.offsets)
    return all(strict_orders.spreads(*columns, weight, data.n_items, forward, 20) for forward in (True, False))


def notes_of_parts(graphs: Sequence[PartGraph], items: Sequence[Hashable], prior: Any) -> list[str]:
    """As `notes_of_rankings`, for ballots in parts; for rule "sums" without a prior see `Ballots.notes`."""
    if any(graph.edges is None for graph in graphs):
        return []
    component = components_of_edges([graph.edges for graph in graphs if graph.edges is not None], len(items))
    if prior is None:
        _refuse_groups(component, items)
    beats, beaten = (np.any([getattr(graph, name) for graph in graphs], axis=0) for name in ("beats", "beaten"))
    return _notes(component, beats, beaten, items)


def compare_items(graphs: Sequence[PartGraph], n_items: int) -> bool:
    """Whether any ballot says something about two items: one is above the other, or a tie counts by the rule."""
    if any(graph.edges is None or graph.beats.any() for graph in graphs):
        return True
    component = components_of_edges([graph.edges for graph in graphs if graph.edges is not None], n_items)
    return int(component.max(initial=-1)) + 1 < n_items


def united_groups(graphs: Sequence[PartGraph], n_items: int) -> Ints | None:
    """Groups of items that no part separates; items on no ballot form their own groups."""
    if graphs[0].together is None:
        return None
    table = np.stack([graph.together for graph in graphs if graph.together is not None])
    alone = (table < 0).all(axis=0)
    key = np.concatenate([table, np.where(alone, np.arange(n_items), -1)[None]])
    _, first, label = np.unique(key, axis=1, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[label.ravel()]


def _counting_rows(data: Rankings, weight: Floats) -> tuple[Ints, Ints, Ints]:
    """Items and tiers of the rows of ballots with positive weight, and the offsets of these ballots."""
    return _rows_of(data, weight > 0)


def _rows_of(data: Rankings, chosen: NDArray[np.bool_]) -> tuple[Ints, Ints, Ints]:
    """Items and tiers of the rows of the chosen ballots, and the offsets of these ballots."""
    sizes = np.diff(data.offsets)
    rows = np.repeat(chosen, sizes)
    return data.item[rows], data.tier[rows], offsets_from_sizes(sizes[chosen])


def _beats(data: Rankings, weight: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which items are above some other on a ballot with positive weight, and which are below."""
    rows = np.repeat(weight > 0, np.diff(data.offsets))
    last = np.zeros(len(data), np.int64)
    np.maximum.at(last, data.ballot, data.tier)
    beats, beaten = np.zeros(data.n_items, bool), np.zeros(data.n_items, bool)
    beats[data.item[rows & (data.tier < last[data.ballot])]] = True
    beaten[data.item[rows & (data.tier > 0)]] = True
    return beats, beaten


def informative_rows(data: Rankings, weight: Floats) -> tuple[Ints, Ints, Ints]:
    """As `_counting_rows`, without ballots that tie all their items."""
    tiers = np.zeros(len(data), np.int64)
    np.maximum.at(tiers, data.ballot, data.tier)
    return _rows_of(data, (tiers > 0) & (weight > 0))


def refuse_rising(rising: Sequence[NDArray[np.bool_]], items: Sequence[Hashable]) -> None:
    """Raise ``DataError``: the likelihood grows for ever as the scores of the items in a mask rise together.

    Of several masks, that of the first names is shown, whatever the order of the items.
    """
    sets = [np.array(sorted(np.flatnonzero(mask).tolist(), key=lambda k: str(items[k]))) for mask in rising]
    inside = min(sets, key=lambda members: [str(items[k]) for k in members])
    raise DataError(
        f"no finite scores exist: the scores of {len(inside)} of {len(items)} items may rise together without end, and "
        f"the likelihood with them ({_group_names(inside, items)}): wherever a ballot lists one of them, every tier "
        "above has one of them, too; " + WAY_OUT
    )


def _refuse_groups(component: Ints, items: Sequence[Hashable]) -> None:
    n = int(component.max(initial=-1)) + 1
    if n > 1:
        raise DataError(
            f"no finite scores exist: {len(component)} items fall into {n} groups, and no wins lead from one back to "
            f"another ({_groups(component, items)}); {WAY_OUT}"
        )


def _notes(component: Ints, beats: Any, beaten: Any, items: Sequence[Hashable]) -> list[str]:
    n = int(component.max(initial=-1)) + 1
    if n <= 1:
        return []
    found = [
        f"the items fall into {n} groups, and no wins lead from one back to {'the other' if n == 2 else 'another'}, so "
        f"only the prior sets the distance between them: {_groups(component, items)}"
    ]
    for which, text in (
        (beats & ~beaten, "undefeated, so only the prior bounds the score above"),
        (beaten & ~beats, "winless, so only the prior bounds the score below"),
        (~beats & ~beaten, "never compared, so the score is the prior's"),
    ):
        if which.any():
            found.append(f"{text}: {_group_names(np.flatnonzero(which), items)}")
    return found


def _groups(component: Ints, items: Sequence[Hashable]) -> str:
    sizes = np.bincount(component)
    largest = np.argsort(-sizes, kind="stable")[:3]
    shown = "; ".join(_group_names(np.flatnonzero(component == k), items) for k in largest)
    return shown + (f"; and {len(sizes) - 3} more" if len(sizes) > 3 else "")


def _group_names(group: Any, items: Sequence[Hashable]) -> str:
    names = ", ".join(str(items[k]) for k in group[:SHOWN])
    return f"[{names}{f', ... {len(group)} items' if len(group) > SHOWN else ''}]"


def agent_factor(agent_weight: Any, data: Any) -> Any:
    """The factor of every ballot or row, from a mapping of agents' names to weights; 1 without a mapping."""
    factor = factor_by_agent(agent_weight, data.agents)
    if factor is None:
        return 1.0
    rows = factor[data.agent]
    weight = data.weight if isinstance(data, Rankings) else data.wins_i + data.wins_j + data.ties
    with np.errstate(over="ignore"):
        numbers(weight * rows, "weight times agent_weight", positive=True)
    return rows


def factor_by_agent(agent_weight: Any, agents: Names | None) -> Floats | None:
    """(agents,): the factors of the agents, from a mapping of their names to weights; None without a mapping."""
    if agent_weight is None:
        return None
    if agents is None:
        raise ValueError("agent_weight is given but the data name no agents")
    unknown = [name for name in agent_weight if name not in set(agents)]
    if unknown:
        raise ValueError(f"agent_weight names {unknown[0]!r}, who is not among the {len(agents)} agents")
    weight = np.array([float(agent_weight.get(name, 1.0)) for name in agents])
    if not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise ValueError(f"agent_weight must be finite and not negative; found {weight[~(weight >= 0)][:1]}")
    return weight
