"""StructRank's loss: negative log of a cumulative distribution network over the preference edges of a list.

An edge e = (i, j) joins rows with grade_i > grade_j, r_e = s_i - s_j.  With w1, w2 >= 0 the product of bivariate
sigmoids 1 / (1 + e^(-w1 r_e) + e^(-w2 r_f)) is a joint distribution function of all preferences.
"""

import numpy as np

from placet.kernels.losses import structrank as kernels
from placet.losses.list_columns import ListColumns
from placet.losses.loss import Plan


def check_connections(connections: str | float) -> None:
    """Raise unless ``connections`` is "full", "none", a whole number of partners or a share of the edges."""
    if connections in ("full", "none"):
        return
    number = 0.0 if isinstance(connections, (str, bool)) or connections is None else float(connections)
    if 0 < number < 1 or (number >= 1 and number.is_integer()):
        return
    raise ValueError(
        f"connections must be 'full', 'none', a whole number of partners >= 1 or a share below 1, not {connections!r}"
    )


def structrank(
    lists: ListColumns,
    *,
    w1: float = 1.0,
    w2: float = 1.0,
    connections: str | float = "full",
    random_state: int = 0,
) -> Plan:
    """sum over pairs of edges (e, f) of log(1 + e^(-w1 r_e) + e^(-w2 r_f)); w1, w2 >= 0 are learned with the scores.

    ``connections``: "full" uses all E^2 ordered pairs, including e = f, in O(E) memory and O(E log E) time for w r of
    any size (see ``placet.kernels.losses.edge_pairs``).  An integer k pairs every edge with k edges drawn by
    ``random_state`` for each list, O(kE): on average k / E of the full sum; a fraction k below 1 draws both edges of k
    E pairs (at least one), in O(rows) memory.  The draw depends on the order of lists and of tied rows.  "none" uses
    every edge alone, log(1 + e^(-w1 r_e)), O(E): at w1 = 1 this is RankNet.

    The curvature is a bound on the Hessian's diagonal, w1^2 p_e + w2^2 p_f summed over the pairs with an edge at the
    row, p_e and p_f the derivatives of the pair's term in -w1 r_e and -w2 r_f; with "none" it is the diagonal itself.
    """
    check_connections(connections)
    for name, w in (("w1", w1), ("w2", w2)):
        if not 0.0 <= w < np.inf:
            raise ValueError(f"{name} must be a finite number of at least 0, not {w}: else no distribution function")
    if connections == "none":
        return Plan((kernels.disconnected, float(w1), False), curvature=(kernels.disconnected_second, float(w1)))
    offsets = lists.offsets
    seeds = np.zeros(offsets[-1] + 1, np.uint64)  # each list's seed, at its first row
    seeds[offsets[:-1]] = np.random.default_rng(random_state).integers(2**63, size=len(offsets) - 1, dtype=np.uint64)
    share = 0.0 if connections == "full" else float(connections)
    if 0.0 < share < 1.0:
        args = (float(w1), float(w2), share, seeds)
        return Plan((kernels.sparsely, *args, False), curvature=(kernels.sparsely_second, *args))
    partners = (float(w1), float(w2), int(share), seeds)
    return Plan((kernels.connected, *partners, False), curvature=(kernels.connected_second, *partners))
