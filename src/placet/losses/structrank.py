"""StructRank's loss: minus the logarithm of a cumulative distribution network over the preference edges of a list.

An edge e = (i, j) joins rows with grade_i > grade_j, r_e = s_i - s_j.  With w1, w2 >= 0 the product of bivariate
sigmoids 1 / (1 + e^(-w1 r_e) + e^(-w2 r_f)) is a joint distribution function of all preferences.

Huang and Frey, Structured ranking learning using cumulative distribution networks, NIPS 2008.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from placet.data import Lists
from placet.data.arrays import Floats
from placet.kernels import structrank as kernels
from placet.losses.apply import checked, over_lists


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


def _run(
    s: ArrayLike, lists: Lists, w1: float, w2: float, connections: str | float, random_state: int, second: bool
) -> tuple[float, Floats, Floats]:
    """Value, gradient (or curvature) and the derivatives in w1 and w2, (2,)."""
    check_connections(connections)
    for name, w in (("w1", w1), ("w2", w2)):
        if not 0.0 <= w < np.inf:
            raise ValueError(f"{name} must be a finite number of at least 0, not {w}: else no distribution function")
    offsets = checked(s, lists).offsets
    slope = np.zeros((2, offsets[-1]))  # one place per list: sums do not depend on which thread comes first
    if connections == "none":
        value, out = over_lists(kernels.disconnected, s, lists, slope, float(w1), second)
    else:
        seeds = np.zeros(offsets[-1] + 1, np.uint64)
        seeds[offsets[:-1]] = np.random.default_rng(random_state).integers(
            2**63, size=len(offsets) - 1, dtype=np.uint64
        )
        kernel, drawn = _network(connections)
        value, out = over_lists(kernel, s, lists, slope, float(w1), float(w2), drawn, seeds, second)
    return value, out, slope.sum(axis=1)


def _network(connections: str | float) -> tuple[Any, float]:
    if connections == "full":
        return kernels.connected, 0
    return (kernels.connected, int(connections)) if float(connections) >= 1 else (kernels.sparsely, float(connections))


def structrank(
    s: ArrayLike,
    lists: Lists,
    *,
    w1: float = 1.0,
    w2: float = 1.0,
    connections: str | float = "full",
    random_state: int = 0,
    parameter_gradient: bool = False,
) -> Any:
    """sum over pairs of edges (e, f) of log(1 + e^(-w1 r_e) + e^(-w2 r_f)); w1, w2 >= 0 are learnt with the scores.

    ``connections``: "full" takes all E^2 ordered pairs, e = f among them, in O(E) memory and O(E^2) time, or O(E)
    where they are many and no |w r| is beyond 200 (``placet.kernels.edge_pairs`` says how).  A number k pairs every
    edge with k edges drawn by ``random_state`` for each list, O(kE): on average k / E of the full sum; a share below 1
    draws both edges of k E pairs (at least one), in O(rows) memory.  The draw depends on the order of lists and of
    tied rows.  "none" takes every edge alone, log(1 + e^(-w1 r_e)), O(E): at w1
    = 1 this is RankNet.

    >>> value, grad = structrank([0.0, 0.0], Lists([1, 0], [0, 2]))
    >>> round(value, 6), grad.round(6)  # log 3
    (1.098612, array([-0.666667,  0.666667]))
    """
    value, grad, slope = _run(s, lists, w1, w2, connections, random_state, second=False)
    if parameter_gradient:
        return value, grad, {"w1": float(slope[0]), "w2": float(slope[1])}
    return value, grad


def structrank_curvature(
    s: ArrayLike,
    lists: Lists,
    *,
    w1: float = 1.0,
    w2: float = 1.0,
    connections: str | float = "full",
    random_state: int = 0,
) -> Floats:
    """A bound on the diagonal of the Hessian: w1^2 p_e + w2^2 p_f summed over the pairs whose edges touch the row.

    p_e and p_f are the derivatives of the pair's term in -w1 r_e and -w2 r_f.  With connections="none" it is the
    diagonal itself.
    """
    return _run(s, lists, w1, w2, connections, random_state, second=True)[1]
