"""Do finite scores exist?  For the Plackett-Luce family, if and only if the graph "beats" is strongly connected.

An item beats the items of lower tiers on the same ballot.  Tiers are linked through one node each: items of tier k ->
node k -> items of tier k + 1, and node k -> node k + 1.  So a ballot of n rows needs at most 3 n edges, not n^2.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Labels = NDArray[np.int64]


def components(item: ArrayLike, tier: ArrayLike, offsets: ArrayLike, n_items: int) -> Labels:
    """Group of each item (n_items,), numbered by first item; rows of a ballot sorted by tier.  O(rows + n_items).

    >>> components([0, 1, 1, 2, 0], [0, 1, 0, 1, 2], [0, 2, 5], n_items=4)  # 0 > 1, then 1 > 2 > 0; 3 never appears
    array([0, 0, 0, 1])
    """
    item, tier, offsets = (np.asarray(column, dtype=np.int64) for column in (item, tier, offsets))
    ballot = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    new_ballot = np.append(True, ballot[1:] != ballot[:-1])[: len(item)]
    new_tier = new_ballot | np.append(True, tier[1:] != tier[:-1])[: len(item)]
    node = np.cumsum(new_tier) - 1  # number of the row's tier among all tiers of all ballots
    top = new_ballot[new_tier]  # per tier: the first of its ballot
    follows = np.flatnonzero(~top)  # tiers with a tier above them: node - 1
    below = ~top[node]
    start = np.concatenate([item, n_items + node[below] - 1, n_items + follows - 1])
    end = np.concatenate([n_items + node, item[below], n_items + follows])
    return _strong(start, end, n_items, n_items + len(top))


def components_of_pairs(winner: ArrayLike, loser: ArrayLike, n_items: int) -> Labels:
    """Group of each item (n_items,) from comparisons; a tie is two rows, one each way.  O(rows + n_items)."""
    return _strong(np.asarray(winner, dtype=np.int64), np.asarray(loser, dtype=np.int64), n_items, n_items)


def _strong(start: Labels, end: Labels, n_items: int, n_nodes: int) -> Labels:
    """Strongly connected components of the first ``n_items`` nodes, numbered by first item."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(start), dtype=bool), (start, end)), shape=(n_nodes, n_nodes)).tocsr()
    label = connected_components(graph, directed=True, connection="strong")[1][:n_items]
    _, first, inverse = np.unique(label, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]
