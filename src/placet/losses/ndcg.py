"""Losses that target NDCG directly: pairs weighted by the change in NDCG, and smooth approximations of NDCG.

Gains g are divided by the ideal DCG of the list (up to place k, if given).  Lists without gains, or with all gains
equal, have the same NDCG whatever the scores: their pairs have weight 0.
"""

import math

import numpy as np

from placet.data import Lists
from placet.data.arrays import Floats
from placet.data.gains import Curve, discounts
from placet.kernels.losses import lambdas as pairs, smooth_ndcg as kernels
from placet.losses.bregman import normalized_gains
from placet.losses.list_columns import ListColumns, read_only
from placet.losses.loss import Plan


def _gains(lists: ListColumns, gain: str | Curve, discount: str | Curve, k: int | None) -> tuple[Floats, Floats, int]:
    """Gains divided by the ideal DCG of the top k (rows,), discounts up to the longest list, and k as a number."""
    check_pair_weights(k)
    longest = int(np.diff(lists.offsets).max(initial=0))
    places = discounts(longest, discount)
    cut = len(places) if k is None else int(k)

    def top(place: Floats) -> Floats:
        return np.where(place <= cut, places[: len(place)], 0.0)

    g = normalized_gains(Lists(lists.grade, lists.offsets), gain, top)
    return read_only(g), read_only(places), cut


def _positive(value: float, name: str) -> float:
    if not 0.0 < value < math.inf:
        raise ValueError(f"{name} must be a finite number above 0, not {value}")
    return float(value)


def check_pair_weights(k: int | None = None, sigma: float = 1.0, mu: float = 0.0) -> None:
    """Raise a ``ValueError`` if a parameter of pairs that are weighed by the change in NDCG is out of range."""
    if k is not None and k < 1:
        raise ValueError(f"k must be at least 1, or None for all places, not {k}")
    _positive(sigma, "sigma")
    if not 0.0 <= mu < math.inf:
        raise ValueError(f"mu must be a finite number of at least 0, not {mu}")


def _weighed_pairs(
    lists: ListColumns,
    sigma: float,
    k: int | None,
    gain: str | Curve,
    discount: str | Curve,
    *,
    mu: float = 0.0,
    unit: float = 1.0,
    norm: bool = False,
) -> Plan:
    check_pair_weights(k, sigma, mu)
    g, places, cut = _gains(lists, gain, discount, k)
    if (np.diff(places) > 0.0).any():
        raise ValueError(f"discounts must never rise, not {places[:5]} ...")
    args = (places, cut, float(sigma), float(mu), unit, bool(norm))
    ones = read_only(np.ones(len(lists.grade)))
    return Plan(
        (pairs.lambdas, *args),
        curvature=(pairs.lambdas_second, ones, 0.0, *args),
        hvp=(pairs.lambdas_second, 1.0, *args),
        grade=g,
    )


def lambdarank(
    lists: ListColumns,
    *,
    k: int | None = 30,
    sigma: float = 1.0,
    norm: bool = False,
    gain: str | Curve = "exp2",
    discount: str | Curve = "log2",
) -> Plan:
    """LambdaRank: sum over i above j of abs(change of NDCG if i and j swapped places) log(1 + e^{-sigma d}).

    The places are those of the current scores and are held fixed in derivatives, so the value jumps when rows swap
    places.  Only pairs with at least one row in the top ``k`` places count, and the ideal DCG is that of the top k.
    Tied scores are averaged over all their orders.  ``norm`` adds LightGBM's two further factors, also held fixed:
    1 / (0.01 + abs(d)) per pair, unless all scores of the list are equal, and log2(1 + T) / T per list, T the sum of
    all slopes; gradient and curvature are then those of LightGBM's ``lambdarank``.
    O(N log N + k N) per list, O(N^2) with ``k=None``.
    """
    return _weighed_pairs(lists, sigma, k, gain, discount, norm=norm)


def lambdaloss(
    lists: ListColumns,
    *,
    k: int | None = None,
    sigma: float = 1.0,
    mu: float = 10.0,
    gain: str | Curve = "exp2",
    discount: str | Curve = "log2",
) -> Plan:
    """NDCG-Loss2++: sum over i above j of (rho + mu delta) (g_i - g_j) log2(1 + e^{-sigma d}).

    rho = abs(D_a - D_b) for the places a, b of the two rows (LambdaRank's weight), delta = D_{abs(a - b)} -
    D_{abs(a - b) + 1} (NDCG-Loss2's weight, which bounds NDCG), D_1 the discount of the first place.  Places, ``k``,
    ties and cost are as in `lambdarank`.
    """
    return _weighed_pairs(lists, sigma, k, gain, discount, mu=mu, unit=1.0 / math.log(2.0))


def approx_ndcg(lists: ListColumns, *, temperature: float = 1.0, gain: str | Curve = "exp2") -> Plan:
    """1 - sum_i g_i / log2(1 + place_i), place_i = 1 + sum over j != i of 1 / (1 + e^{(s_i - s_j) / temperature}).

    Not convex.  The curvature is a bound on the Hessian's diagonal.  O(rows with a gain x rows) per list.
    """
    g, _, _ = _gains(lists, gain, "log2", None)
    args = (_positive(temperature, "temperature"),)
    return Plan(
        (kernels.approx_ndcg, *args),
        curvature=(kernels.approx_ndcg_curvature, *args),
        hvp=(kernels.approx_ndcg_hvp, *args),
        grade=g,
    )


def neural_ndcg(
    lists: ListColumns,
    *,
    k: int | None = None,
    temperature: float = 1.0,
    sinkhorn: int = 0,
    gain: str | Curve = "exp2",
    discount: str | Curve = "log2",
) -> Plan:
    """1 - sum over places r up to k of D_r sum_i P_ri g_i, P the relaxed permutation matrix of NeuralSort.

    P_r = softmax over i of ((n + 1 - 2 r) s_i - sum_j abs(s_i - s_j)) / temperature: at a low temperature, it selects
    the row in place r.  Rows of P sum to 1 but columns need not, so the value can fall below 0.  With ``sinkhorn`` > 0,
    up to that many Sinkhorn steps (the paper uses 50) divide columns and rows by their sums until both sum to 1, and
    the gradient is propagated through every step, in O(N^2) memory.  Not convex, with kinks where scores tie.  The
    curvature is replaced by a positive number of the same magnitude.  O(N log N + k N) per list, O(N^2) with ``k=None``
    or ``sinkhorn``, times the steps.
    """
    g, places, cut = _gains(lists, gain, discount, k)
    if sinkhorn < 0:
        raise ValueError(f"sinkhorn must be a number of steps, 0 or more, not {sinkhorn!r}")
    args = (places, cut, _positive(temperature, "temperature"))
    value = (kernels.neural_ndcg_scaled, *args, int(sinkhorn)) if sinkhorn else (kernels.neural_ndcg, *args)
    n = len(places)
    scratch = 2 * n * (n + int(sinkhorn)) if sinkhorn else 0
    return Plan(value, curvature=(kernels.neural_ndcg_curvature, *args), grade=g, scratch=scratch)
