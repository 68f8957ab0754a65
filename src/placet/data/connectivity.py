"""Does a finite answer exist?  Strongly connected components of the "beats" graph, in O(rows)."""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.data.columns import Floats, Ints, list_of_rows
from placet.data.errors import DataError


def beats_components(item: Ints, tier: Ints, offsets: Ints, n_items: int, weight: Floats | None = None) -> Ints:
    """Component of every item, where a beats b if some ballot of positive weight puts a in an earlier tier than b.

    Tiers are linked through one node for each boundary between tiers (items of tier k -> node_k -> items of tier k + 1,
    node_k -> node_{k+1}), so the graph has O(rows) edges, not O(pairs).  Rows of a ballot are in order of tier.
    """
    ballot = list_of_rows(offsets)
    n_ballots = len(offsets) - 1
    tiers = np.zeros(n_ballots, np.int64)
    full = np.diff(offsets) > 0
    tiers[full] = tier[offsets[1:][full] - 1] + 1
    if weight is not None:
        tiers[weight == 0] = 0
    borders = np.maximum(tiers - 1, 0)
    base = n_items + np.concatenate([[0], np.cumsum(borders)])[:-1]
    above = tier < borders[ballot]
    below = (tier > 0) & (borders[ballot] > 0)
    node = np.arange(borders.sum())
    inner = np.ones(len(node), bool)
    inner[np.cumsum(borders)[borders > 0] - 1] = False
    source = np.concatenate([item[above], (base[ballot] + tier - 1)[below], n_items + node[inner]])
    target = np.concatenate([(base[ballot] + tier)[above], item[below], n_items + node[inner] + 1])
    return _components(source, target, n_items + len(node), n_items)


def beats_components_of_pairs(i: Ints, j: Ints, wins_i: Floats, wins_j: Floats, ties: Floats, n_items: int) -> Ints:
    """Component of every item, where a win is an edge and a tie an edge both ways."""
    over, under = (wins_i > 0) | (ties > 0), (wins_j > 0) | (ties > 0)
    return _components(np.concatenate([i[over], j[under]]), np.concatenate([j[over], i[under]]), n_items, n_items)


def _components(source: NDArray[np.int64], target: NDArray[np.int64], n_nodes: int, n_items: int) -> Ints:
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    graph = coo_matrix((np.ones(len(source), np.int8), (source, target)), shape=(n_nodes, n_nodes)).tocsr()
    label = connected_components(graph, directed=True, connection="strong")[1][:n_items]
    return np.unique(label, return_inverse=True)[1].astype(np.int64)


def require_connected(component: ArrayLike, items: Sequence[Hashable], way_out: str) -> None:
    """Raise a ``DataError`` that names the groups unless all items are in one component."""
    component = np.asarray(component)
    n = int(component.max(initial=-1)) + 1
    if n <= 1:
        return
    groups = [np.flatnonzero(component == k) for k in np.argsort(np.bincount(component))[::-1][:4]]
    shown = "; ".join(_named(group, items) for group in groups)
    more = f"; and {n - len(groups)} more groups" if n > len(groups) else ""
    raise DataError(
        f"no finite scores exist: {len(component)} items fall into {n} groups that do not all beat one another "
        f"({shown}{more}); {way_out}"
    )


def _named(group: NDArray[np.intp], items: Sequence[Hashable]) -> str:
    names = ", ".join(str(items[k]) for k in group[:5])
    return f"[{names}{f', ... {len(group)} items' if len(group) > 5 else ''}]"
