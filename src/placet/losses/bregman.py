"""NDCG-consistent surrogates: Bregman divergences D_psi(p, (grad psi)^-1(s)) of normalised gains p = G(grade) / |G|_D.

|G|_D, the norm of the list, is its ideal DCG: the sorted gains times the discounts of their places.  Over all scores,
the expected loss is least at s = grad psi(E[p]), whose order maximises expected NDCG; psi says how error is measured on
the way.  The scores mean a level, not only an order, so a shift of all scores changes these losses.

Lists of one row and lists without gain say nothing about the order (every order has the same NDCG): they contribute 0.

Ravikumar, Tewari and Yang, On NDCG consistency of listwise ranking methods, AISTATS 2011.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from placet.data import Lists
from placet.data.arrays import Floats
from placet.kernels import bregman as kernels
from placet.kernels import cosine as cosine_kernels
from placet.kernels import ranges
from placet.losses.apply import checked, frozen, over_lists

Map = Callable[[Floats], ArrayLike]
Coefficients = tuple[float, float, float, float]

GAINS: dict[str, Map] = {
    "exp2": lambda grade: np.exp2(grade) - 1.0,
    "linear": lambda grade: grade,
    "log1p": lambda grade: np.log1p(grade),
}
DISCOUNTS: dict[str, Map] = {
    "log2": lambda place: 1.0 / np.log2(1.0 + place),
    "reciprocal": lambda place: 1.0 / place,
    "none": lambda place: np.ones_like(place),
}
PSI = ("ce", "square", "qnorm")


def _named(kind: str, choice: str | Map, table: dict[str, Map]) -> Map:
    if callable(choice):
        return choice
    if choice not in table:
        raise ValueError(f"{kind} {choice!r} is unknown; choose from {sorted(table)} or give a function")
    return table[choice]


def gains(grade: Floats, gain: str | Map = "exp2") -> Floats:
    """Gains of grades, (rows,): "exp2" is 2^grade - 1, "linear" the grade, "log1p" log(1 + grade), or a function.

    >>> gains(np.array([2.0, 1.0, 0.0]))
    array([3., 1., 0.])
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what this hides is refused, by value, below
        values = np.ascontiguousarray(_named("gain", gain, GAINS)(grade), dtype=np.float64)
    if values.shape != grade.shape:
        raise ValueError(f"gain gives shape {values.shape} for grades of shape {grade.shape}")
    bad = ~(np.isfinite(values) & (values >= 0.0))
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"row {row}: grade {grade[row]:g} has gain {values[row]:g}, which is not a finite number >= 0 "
            f"({bad.sum()} such rows); choose another gain or move the grades"
        )
    return values


def discounts(n: int, discount: str | Map = "log2") -> Floats:
    """Weights of places 1..n: "log2" is 1 / log2(1 + place), "reciprocal" 1 / place, "none" 1, or a function.

    >>> discounts(3)
    array([1.       , 0.63092975, 0.5      ])
    """
    place = np.arange(1.0, n + 1.0, dtype=np.float64)
    values = np.ascontiguousarray(_named("discount", discount, DISCOUNTS)(place), dtype=np.float64)
    if values.shape != place.shape:
        raise ValueError(f"discount gives shape {values.shape} for {n} places")
    bad = ~(np.isfinite(values) & (values >= 0.0))
    bad[1:] |= np.diff(values) > 0.0
    if bad.any() or (n and values[0] == 0.0):
        k = int(bad.argmax())
        raise ValueError(
            f"discount of place {k + 1} is {values[k]:g}; discounts must start above 0 and never rise or be negative"
        )
    return values


def normalised_gains(lists: Lists, gain: str | Map = "exp2", discount: str | Map = "log2") -> Floats:
    """p = G(grade) / |G(grade)|_D for every list, (rows,); zeros for lists of one row and lists without gain.

    >>> normalised_gains(Lists([1, 0, 0], [0, 3]))
    array([1., 0., 0.])
    """
    grade, offsets = frozen(lists[0]), frozen(lists[1], np.int64)
    longest = int(np.diff(offsets).max(initial=0))
    value, p = frozen(gains(grade, gain)), np.zeros(len(grade))
    if ranges.is_descending(value, offsets):
        kernels.targets(value, offsets, discounts(longest, discount), p)
        return p
    order = ranges.descending_order(value, offsets)
    kernels.targets(frozen(value[order]), offsets, discounts(longest, discount), p)
    back = np.empty_like(p)
    back[order] = p
    return back


def _with_targets(s: ArrayLike, lists: Lists, gain: str | Map, discount: str | Map) -> tuple[Floats, Lists]:
    s, grade, offsets, weight = checked(s, lists)
    return s, Lists(normalised_gains(Lists(grade, offsets), gain, discount), offsets, weight)


def _coefficients(psi: str | Sequence[str], alpha: ArrayLike | None, beta: float, q: float | None) -> Coefficients:
    """(a, b, c, q) of psi = a sum(x log x - x) + b sum(x^2) + c |x|_q^2; q = 0 stands for log(m) + 2."""
    names = (psi,) if isinstance(psi, str) else tuple(psi)
    weights = np.ones(len(names)) if alpha is None else np.atleast_1d(np.asarray(alpha, dtype=np.float64))
    unknown = [name for name in names if name not in PSI]
    if unknown:
        raise ValueError(f"psi {unknown[0]!r} is unknown; choose from {list(PSI)}")
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
    """psi*(s) = sup_x <s, x> - psi(x) of psi = sum_k alpha_k psi_k for the scores of one list, and the x there.

    The dictionary: "ce" beta sum(x log x - x), "square" sum(x^2), "qnorm" |x|_q^2 with q = log(m) + 2 unless given.
    x is also the gradient of psi* (envelope theorem).  Accurate to rounding; O(m) per Newton step.

    >>> value, x = conjugate([1.0, -2.0], "square")
    >>> value, x
    (1.25, array([ 0.5, -1. ]))
    """
    a, b, c, exponent = _coefficients(psi, alpha, beta, q)
    s = frozen(s)
    x = np.zeros(len(s))
    return float(kernels.conjugate(s, a, b, c, kernels.exponent(exponent, max(len(s), 1)), x)) if len(s) else 0.0, x


def bregman(
    s: ArrayLike,
    lists: Lists,
    *,
    psi: str | Sequence[str] = PSI,
    alpha: ArrayLike | None = None,
    beta: float = 0.01,
    q: float | None = None,
    gain: str | Map = "exp2",
    discount: str | Map = "log2",
) -> tuple[float, Floats]:
    """D_psi(p, x) = psi(p) + psi*(s) - <p, s> with psi = sum_k alpha_k psi_k, x = (grad psi)^-1(s); gradient x - p.

    ``psi``: names among "ce" (beta sum(x log x - x)), "square" (sum(x^2)), "qnorm" (|x|_q^2, q = log(m) + 2 if None).
    ``alpha``: a number >= 0 for each name; 1 each unless given.  See ``conjugate``, ``gains`` and ``discounts``.
    """
    s, lists = _with_targets(s, lists, gain, discount)
    return over_lists(kernels.bregman, s, lists, *_coefficients(psi, alpha, beta, q), in_order=False)


def bregman_curvature(
    s: ArrayLike,
    lists: Lists,
    *,
    psi: str | Sequence[str] = PSI,
    alpha: ArrayLike | None = None,
    beta: float = 0.01,
    q: float | None = None,
    gain: str | Map = "exp2",
    discount: str | Map = "log2",
) -> Floats:
    """Diagonal of the Hessian of ``bregman``, (rows,); infinite at a score of 0 with "qnorm" alone, capped there."""
    s, lists = _with_targets(s, lists, gain, discount)
    return over_lists(kernels.bregman_curvature, s, lists, *_coefficients(psi, alpha, beta, q), in_order=False)[1]


def bregman_hvp(
    s: ArrayLike,
    lists: Lists,
    v: ArrayLike,
    *,
    psi: str | Sequence[str] = PSI,
    alpha: ArrayLike | None = None,
    beta: float = 0.01,
    q: float | None = None,
    gain: str | Map = "exp2",
    discount: str | Map = "log2",
) -> Floats:
    """Hessian of ``bregman`` times ``v``, (rows,)."""
    s, lists = _with_targets(s, lists, gain, discount)
    return over_lists(kernels.bregman_hvp, s, lists, *_coefficients(psi, alpha, beta, q), rows=[v], in_order=False)[1]


def bregman_ce(
    s: ArrayLike, lists: Lists, *, beta: float = 0.01, gain: str | Map = "exp2", discount: str | Map = "log2"
) -> tuple[float, Floats]:
    """sum_i beta e^(s_i / beta) - p_i s_i + beta (p_i log p_i - p_i): cross-entropy, psi = beta sum(x log x - x).

    Above s = 300 beta the exponential goes on along its tangent, so value and gradient stay finite.
    """
    return bregman(s, lists, psi="ce", beta=beta, gain=gain, discount=discount)


def bregman_ce_curvature(
    s: ArrayLike, lists: Lists, *, beta: float = 0.01, gain: str | Map = "exp2", discount: str | Map = "log2"
) -> Floats:
    """e^(s / beta) / beta, held at e^300 / beta above s = 300 beta."""
    return bregman_curvature(s, lists, psi="ce", beta=beta, gain=gain, discount=discount)


def bregman_ce_hvp(
    s: ArrayLike,
    lists: Lists,
    v: ArrayLike,
    *,
    beta: float = 0.01,
    gain: str | Map = "exp2",
    discount: str | Map = "log2",
) -> Floats:
    """e^(s / beta) v / beta."""
    return bregman_hvp(s, lists, v, psi="ce", beta=beta, gain=gain, discount=discount)


def bregman_square(
    s: ArrayLike, lists: Lists, *, gain: str | Map = "exp2", discount: str | Map = "log2"
) -> tuple[float, Floats]:
    """|p - s / 2|^2: squared error, psi = sum(x^2)."""
    return bregman(s, lists, psi="square", gain=gain, discount=discount)


def bregman_square_curvature(
    s: ArrayLike, lists: Lists, *, gain: str | Map = "exp2", discount: str | Map = "log2"
) -> Floats:
    """1/2 in every row of a list that counts."""
    return bregman_curvature(s, lists, psi="square", gain=gain, discount=discount)


def bregman_square_hvp(
    s: ArrayLike, lists: Lists, v: ArrayLike, *, gain: str | Map = "exp2", discount: str | Map = "log2"
) -> Floats:
    """v / 2 in every row of a list that counts."""
    return bregman_hvp(s, lists, v, psi="square", gain=gain, discount=discount)


def bregman_qnorm(
    s: ArrayLike, lists: Lists, *, q: float | None = None, gain: str | Map = "exp2", discount: str | Map = "log2"
) -> tuple[float, Floats]:
    """|p|_q^2 + |s|_q'^2 / 4 - <p, s>, 1/q + 1/q' = 1, psi = |x|_q^2; q = log(rows of the list) + 2 unless given."""
    return bregman(s, lists, psi="qnorm", q=q, gain=gain, discount=discount)


def bregman_qnorm_curvature(
    s: ArrayLike, lists: Lists, *, q: float | None = None, gain: str | Map = "exp2", discount: str | Map = "log2"
) -> Floats:
    """Diagonal of the Hessian; infinite where one score is 0, and capped there; 1/2 where all scores are 0."""
    return bregman_curvature(s, lists, psi="qnorm", q=q, gain=gain, discount=discount)


def bregman_qnorm_hvp(
    s: ArrayLike,
    lists: Lists,
    v: ArrayLike,
    *,
    q: float | None = None,
    gain: str | Map = "exp2",
    discount: str | Map = "log2",
) -> Floats:
    """Hessian times ``v``."""
    return bregman_hvp(s, lists, v, psi="qnorm", q=q, gain=gain, discount=discount)


def cosine(
    s: ArrayLike, lists: Lists, *, gain: str | Map = "exp2", discount: str | Map = "log2"
) -> tuple[float, Floats]:
    """1/2 |p - s / |s||^2: the divergence of psi = |x|^2 / 2 at the direction of the scores, so it depends on no scale.

    Not convex.  A list whose scores are all 0 has no direction: the value is the mean over all, (|p|^2 + 1) / 2, and
    the gradient -p, so that any small step down the gradient lowers the loss.
    """
    s, lists = _with_targets(s, lists, gain, discount)
    return over_lists(cosine_kernels.cosine, s, lists, in_order=False)


def cosine_curvature(s: ArrayLike, lists: Lists, *, gain: str | Map = "exp2", discount: str | Map = "log2") -> Floats:
    """|p| (2 |u_i| + |1 - 3 u_i^2|) / |s|^2 with u = s / |s|: a positive bound on the diagonal of the Hessian."""
    s, lists = _with_targets(s, lists, gain, discount)
    return over_lists(cosine_kernels.cosine_curvature, s, lists, in_order=False)[1]


def cosine_hvp(
    s: ArrayLike, lists: Lists, v: ArrayLike, *, gain: str | Map = "exp2", discount: str | Map = "log2"
) -> Floats:
    """Hessian of ``cosine`` times ``v``, (rows,)."""
    s, lists = _with_targets(s, lists, gain, discount)
    return over_lists(cosine_kernels.cosine_hvp, s, lists, rows=[v], in_order=False)[1]
