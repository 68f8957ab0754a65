"""NDCG-consistent surrogates: Bregman divergences D_psi(p, (grad psi)^-1(s)) of normalized gains p = G(grade) / |G|_D.

|G|_D, the norm of the list, is its ideal DCG: the sorted gains times the discounts of their places.  Over all scores,
the expected loss is minimal at s = grad psi(E[p]), whose order maximizes expected NDCG; psi determines how error is
measured.  These losses depend on the values of the scores, not only on their order: shifting all scores changes them.

Lists of one row and lists without gain contribute 0, as every order has the same NDCG.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from placet.data import Lists
from placet.data.arrays import Floats, descending_order
from placet.data.errors import one_of
from placet.data.gains import Curve, discounts, gains
from placet.kernels import ranges
from placet.kernels.losses import bregman as kernels, cosine as cosine_kernels
from placet.losses.list_columns import ListColumns, read_only
from placet.losses.loss import Plan

Coefficients = tuple[float, float, float, float]

PSI = ("ce", "square", "qnorm")


def normalized_gains(lists: Lists, gain: str | Curve = "exp2", discount: str | Curve = "log2") -> Floats:
    """p = G(grade) / |G(grade)|_D for every list, (rows,); zeros for lists of one row and lists without gain.

    >>> normalized_gains(Lists([1, 0, 0], [0, 3]))
    array([1., 0., 0.])
    """
    grade, offsets = read_only(lists[0]), read_only(lists[1], np.int64)
    value, p = read_only(gains(grade, gain)), np.zeros(len(grade))
    places = discounts(int(np.diff(offsets).max(initial=0)), discount)
    falls = np.append(places[:1] <= 0.0, np.diff(places) > 0.0)[: len(places)] | (places < 0.0)
    if falls.any():
        k = int(falls.argmax())
        raise ValueError(
            f"discount of place {k + 1} is {places[k]:g}; discounts must start above 0 and never rise or be negative"
        )
    if ranges.is_descending(value, offsets):
        kernels.targets(value, offsets, places, p)
        return p
    order = descending_order(value, offsets)
    kernels.targets(read_only(value[order]), offsets, places, p)
    back = np.empty_like(p)
    back[order] = p
    return back


def dcg_shares(lists: Lists, gain: str | Curve = "exp2", discount: str | Curve = "log2") -> Floats:
    """Contribution of each place of the ideal order to NDCG, (rows,): p times the place's discount; rows best first.

    >>> dcg_shares(Lists([1, 1, 0], [0, 3])).round(3)
    array([0.613, 0.387, 0.   ])
    """
    offsets = read_only(lists[1], np.int64)
    sizes = np.diff(offsets)
    place = np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes)
    return normalized_gains(lists, gain, discount) * discounts(int(sizes.max(initial=0)), discount)[place]


def _coefficients(psi: str | Sequence[str], alpha: ArrayLike | None, beta: float, q: float | None) -> Coefficients:
    """(a, b, c, q) of psi = a sum(x log x - x) + b sum(x^2) + c |x|_q^2; q = 0 means log(m) + 2."""
    names = (psi,) if isinstance(psi, str) else tuple(psi)
    weights = np.ones(len(names)) if alpha is None else np.atleast_1d(np.asarray(alpha, dtype=np.float64))
    for name in names:
        one_of(name, PSI, "psi")
    if weights.shape != (len(names),) or not (weights >= 0.0).all() or not 0.0 < weights.sum() < np.inf:
        raise ValueError(
            f"alpha {weights.tolist()} must be one finite number >= 0 for each of psi {list(names)}, not all 0"
        )
    if not 0.0 < beta < np.inf:
        raise ValueError(f"beta must be a finite number above 0, not {beta}")
    if q is not None and not 2.0 <= q < np.inf:
        raise ValueError(f"q must be a finite number of at least 2 or None (log of the list's length, plus 2), not {q}")
    total = dict.fromkeys(PSI, 0.0)
    for name, w in zip(names, weights.tolist()):
        total[name] += w
    return beta * total["ce"], total["square"], total["qnorm"], 0.0 if q is None else float(q)


def conjugate(
    s: ArrayLike,
    psi: str | Sequence[str] = PSI,
    alpha: ArrayLike | None = None,
    *,
    beta: float = 0.01,
    q: float | None = None,
) -> tuple[float, Floats]:
    """psi*(s) = sup_x <s, x> - psi(x) for psi = sum_k alpha_k psi_k at the scores of one list, and the maximizer x.

    The psi_k: "ce" beta sum(x log x - x), "square" sum(x^2), "qnorm" |x|_q^2 with q = log(m) + 2 unless given.
    x is also the gradient of psi* (envelope theorem).  Accurate to rounding; O(m) per Newton step.

    >>> value, x = conjugate([1.0, -2.0], "square")
    >>> value, x
    (1.25, array([ 0.5, -1. ]))
    """
    a, b, c, exponent = _coefficients(psi, alpha, beta, q)
    s = read_only(s)
    x = np.zeros(len(s))
    return float(kernels.conjugate(s, a, b, c, kernels.exponent(exponent, max(len(s), 1)), x)) if len(s) else 0.0, x


def bregman(
    lists: ListColumns,
    *,
    psi: str | Sequence[str] = PSI,
    alpha: ArrayLike | None = None,
    beta: float = 0.01,
    q: float | None = None,
    gain: str | Curve = "exp2",
    discount: str | Curve = "log2",
) -> Plan:
    """D_psi(p, x) = psi(p) + psi*(s) - <p, s> with psi = sum_k alpha_k psi_k, x = (grad psi)^-1(s); gradient x - p.

    ``psi``: names among "ce" (beta sum(x log x - x)), "square" (sum(x^2)), "qnorm" (|x|_q^2, q = log(m) + 2 if None).
    ``alpha``: a number >= 0 for each name, 1 by default.  See `conjugate` and `placet.data.gains`.  The curvature,
    infinite at a score of 0 with "qnorm" alone, is capped there.  O(rows).
    """
    args = _coefficients(psi, alpha, beta, q)
    return Plan(
        (kernels.bregman, *args),
        curvature=(kernels.bregman_curvature, *args),
        hvp=(kernels.bregman_hvp, *args),
        grade=read_only(normalized_gains(Lists(lists.grade, lists.offsets), gain, discount)),
    )


def bregman_ce(
    lists: ListColumns, *, beta: float = 0.01, gain: str | Curve = "exp2", discount: str | Curve = "log2"
) -> Plan:
    """sum_i beta e^(s_i / beta) - p_i s_i + beta (p_i log p_i - p_i): cross-entropy, psi = beta sum(x log x - x).

    Above s = 300 beta the exponential is continued along its tangent, so value and gradient stay finite.
    """
    return bregman(lists, psi="ce", beta=beta, gain=gain, discount=discount)


def bregman_square(lists: ListColumns, *, gain: str | Curve = "exp2", discount: str | Curve = "log2") -> Plan:
    """|p - s / 2|^2: squared error, psi = sum(x^2)."""
    return bregman(lists, psi="square", gain=gain, discount=discount)


def bregman_qnorm(
    lists: ListColumns, *, q: float | None = None, gain: str | Curve = "exp2", discount: str | Curve = "log2"
) -> Plan:
    """|p|_q^2 + |s|_q'^2 / 4 - <p, s>, 1/q + 1/q' = 1, psi = |x|_q^2; q = log(rows of the list) + 2 unless given."""
    return bregman(lists, psi="qnorm", q=q, gain=gain, discount=discount)


def cosine(lists: ListColumns, *, gain: str | Curve = "exp2", discount: str | Curve = "log2") -> Plan:
    """1/2 |p - s / |s||^2: the divergence of psi = |x|^2 / 2 at the direction of the scores; scale-invariant.

    Not convex.  If all scores of a list are 0 they have no direction: the value is the mean over all directions,
    (|p|^2 + 1) / 2, and the gradient is -p, so that any small step down the gradient lowers the loss.  The curvature is
    a positive bound on the Hessian's diagonal, |p| (2 |u_i| + |1 - 3 u_i^2|) / |s|^2 with u = s / |s|.
    """
    return Plan(
        (cosine_kernels.cosine,),
        curvature=(cosine_kernels.cosine_curvature,),
        hvp=(cosine_kernels.cosine_hvp,),
        grade=read_only(normalized_gains(Lists(lists.grade, lists.offsets), gain, discount)),
    )
