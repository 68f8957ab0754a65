"""Probabilistic models over ordered partitions (Truyen, Phung and Venkatesh): tied rows are chosen together.

Stage k takes the tier X_k out of the rows left, R_k, with probability Phi(X_k) / sum over non-empty S in R_k of Phi(S);
the last stage counts too.  Full decomposition: Phi(S) = mean of e^s over S.
General state: Phi(S) = e^{mean of s over S}.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from placet.data import Lists
from placet.data.arrays import Floats
from placet.data.errors import one_of
from placet.kernels import pmop as fd
from placet.kernels import pmop_exact as exact
from placet.kernels import pmop_sampling as sampling
from placet.kernels import ranges
from placet.losses.apply import checked, frozen, over_lists

UNIFORMS_AT_ONCE = 1 << 22


def _scale(stage_scale: ArrayLike) -> Floats:
    scale = frozen(stage_scale)
    if scale.ndim != 1 or len(scale) == 0 or not np.isfinite(scale).all():
        raise ValueError(f"stage_scale must hold one finite number or more, first stage first, not {stage_scale!r}")
    return scale


def pmop_fd(s: ArrayLike, lists: Lists, *, stage_scale: ArrayLike | None = None) -> tuple[float, Floats]:
    """Full decomposition: sum_k log sum_{R_k} e^s - log sum_{X_k} e^s + log(C_k |X_k|), C_k = (2^N_k - 1) / N_k.

    O(rows).  ``stage_scale`` (c_1, c_2, ...) lets the potential depend on the place: e^{c_k s} at stage k (the last c
    serves all later stages), so that falling c_k say that later stages are noisier.  O(rows x tiers) then.
    """
    if stage_scale is None:
        return over_lists(fd.pmop_fd, s, lists)
    return over_lists(fd.pmop_fd_staged, s, lists, _scale(stage_scale))


def pmop_fd_curvature(s: ArrayLike, lists: Lists, *, stage_scale: ArrayLike | None = None) -> Floats:
    """Upper bound of the Hessian's diagonal: sum_k c_k^2 p_k (1 - p_k), p_k the row's share of sum_{R_k} phi_k.

    What is left out, - c_k^2 q (1 - q) with q the row's share of its own tier, is never positive, and 0 without ties.
    """
    if stage_scale is None:
        return over_lists(fd.pmop_fd_curvature, s, lists)[1]
    return over_lists(fd.pmop_fd_staged_curvature, s, lists, _scale(stage_scale))[1]


def pmop_fd_hvp(s: ArrayLike, lists: Lists, v: ArrayLike, *, stage_scale: ArrayLike | None = None) -> Floats:
    """Hessian times ``v``, exact: sum_k c_k^2 (p_k (v - p_k.v) - q_k (v - q_k.v)).  Indefinite where tiers tie."""
    if stage_scale is None:
        return over_lists(fd.pmop_fd_hvp, s, lists, rows=[v])[1]
    return over_lists(fd.pmop_fd_staged_hvp, s, lists, _scale(stage_scale), rows=[v])[1]


def _countable(lists: Lists) -> Lists:
    rows = np.diff(np.asarray(lists[1]))
    long = rows > exact.MOST_ROWS
    if long.any():
        q = int(np.argmax(long))
        raise ValueError(
            f"list {q} has {rows[q]} rows; the sum over all subsets takes at most {exact.MOST_ROWS} ({long.sum()} such "
            "lists): use pmop-fd, or pmop-gibbs or pmop-mh"
        )
    return lists


def pmop_exact(s: ArrayLike, lists: Lists) -> tuple[float, Floats]:
    """General state: sum_k log sum_{S in R_k} e^{mean of s over S} - mean of s over X_k, every subset counted.

    N_k^3 / 6 steps per stage and O(N^2) memory: about 2 ms for 100 rows in 3 tiers, 1 s for a stage of 1,000, the
    longest list taken.  Gradient: sum_k E[1_i / |S|] - 1_i / |X_k|.  Convex.
    """
    return over_lists(exact.pmop_exact, s, _countable(lists))


def pmop_exact_curvature(s: ArrayLike, lists: Lists) -> Floats:
    """Diagonal of the Hessian: sum_k Var(1_i / |S|), S a subset of R_k."""
    return over_lists(exact.pmop_exact_curvature, s, _countable(lists))[1]


def pmop_exact_hvp(s: ArrayLike, lists: Lists, v: ArrayLike) -> Floats:
    """Hessian times ``v``, exact: sum_k Cov(1_i / |S|, mean of v over S).  Three times the cost of `pmop_exact`."""
    return over_lists(exact.pmop_exact_hvp, s, _countable(lists), rows=[v])[1]


def _contrast(
    s: ArrayLike, lists: Lists, n_steps: int, random_state: int | np.random.Generator, rule: int
) -> tuple[float, Floats]:
    """Chains of all lists, in blocks that need about UNIFORMS_AT_ONCE numbers, drawn here in the order of the lists."""
    if n_steps < 1:
        raise ValueError(f"n_steps must be at least 1, not {n_steps}")
    x, grade, offsets, weight = checked(s, lists)
    order = ranges.descending_order(grade, offsets)
    x, grade = frozen(x[order]), frozen(grade[order])
    ends = np.append(0, np.cumsum(n_steps * sampling.uniforms_needed(grade, offsets, rule)))
    blocks = np.unique(np.append(np.searchsorted(ends, np.arange(0, ends[-1], UNIFORMS_AT_ONCE)), len(ends) - 1))
    rng = np.random.default_rng(random_state)
    value, grad = 0.0, np.zeros(len(x))
    for p, q in pairwise(blocks):
        a, b = offsets[p], offsets[q]
        first = np.zeros(b - a + 1, np.int64)
        first[offsets[p : q + 1] - a] = ends[p : q + 1] - ends[p]
        block = Lists(grade[a:b], offsets[p : q + 1] - a, weight[p:q])
        here, grad[order[a:b]] = over_lists(
            sampling.contrast, x[a:b], block, rng.random(ends[q] - ends[p]), first, n_steps, rule
        )
        value += here
    return value, grad


def pmop_gibbs(
    s: ArrayLike, lists: Lists, *, n_steps: int = 1, random_state: int | np.random.Generator = 0
) -> tuple[float, Floats]:
    """Contrastive divergence for the general state: ``n_steps`` Gibbs sweeps from each observed X_k.

    The value is the *contrast* sum_k (1/n) sum_l mean of s over S_l - mean of s over X_k, S_l the subset after sweep l:
    not a likelihood, and of either sign.  The gradient, (1/n) sum_l 1_i / |S_l| - 1_i / |X_k|, is that of the contrast
    with the S_l held fixed and estimates that of `pmop_exact`, with a bias that vanishes as ``n_steps`` grows.
    An integer ``random_state`` draws the same chains at every call; training wants a Generator, which draws new ones.
    O(n_steps N_k) per stage.
    """
    return _contrast(s, lists, n_steps, random_state, sampling.GIBBS)


def pmop_mh(
    s: ArrayLike,
    lists: Lists,
    *,
    n_steps: int = 1,
    random_state: int | np.random.Generator = 0,
    as_published: bool = False,
) -> tuple[float, Floats]:
    """As `pmop_gibbs`, by ``n_steps`` Metropolis-Hastings steps that propose a size and then a subset of it, evenly.

    ``as_published`` accepts with Phi(S') / Phi(S) as the paper prints; that chain settles on Phi(S) / binom(N_k, |S|),
    another model.
    """
    rule = sampling.AS_PUBLISHED if as_published else sampling.HASTINGS
    return _contrast(s, lists, n_steps, random_state, rule)


def _reversed(s: ArrayLike, lists: Lists) -> tuple[Floats, Lists]:
    """The lists from the worst row to the best, scores and grades negated: sorted rows stay sorted."""
    x, grade, offsets, weight = checked(s, lists)
    return -x[::-1], Lists(-grade[::-1], len(x) - offsets[::-1], weight[::-1])


def _is_exact(form: str, stage_scale: ArrayLike | None) -> bool:
    one_of(form, ("fd", "exact"), "form")
    if form == "exact" and stage_scale is not None:
        raise ValueError("stage_scale belongs to form 'fd'; form 'exact' has no potentials by stage")
    return form == "exact"


def pmop_backward(
    s: ArrayLike, lists: Lists, *, form: str = "fd", stage_scale: ArrayLike | None = None
) -> tuple[float, Floats]:
    """Elimination: the worst tier goes first, chosen among all rows with potentials of -s, then the next worst.

    The likelihood of the reversed partition at -s under ``form`` "fd" (`pmop_fd`; stage 1 of ``stage_scale`` is the
    first to go) or "exact" (`pmop_exact`); a different law from the forward one.
    """
    exactly = _is_exact(form, stage_scale)
    s, lists = _reversed(s, lists)
    value, grad = pmop_exact(s, lists) if exactly else pmop_fd(s, lists, stage_scale=stage_scale)
    return value, -grad[::-1]


def pmop_backward_curvature(
    s: ArrayLike, lists: Lists, *, form: str = "fd", stage_scale: ArrayLike | None = None
) -> Floats:
    """The curvature of `pmop_fd` (an upper bound) or `pmop_exact` (the diagonal) on the reversed lists."""
    exactly = _is_exact(form, stage_scale)
    s, lists = _reversed(s, lists)
    out = pmop_exact_curvature(s, lists) if exactly else pmop_fd_curvature(s, lists, stage_scale=stage_scale)
    return out[::-1]


def pmop_backward_hvp(
    s: ArrayLike, lists: Lists, v: ArrayLike, *, form: str = "fd", stage_scale: ArrayLike | None = None
) -> Floats:
    """Hessian times ``v``, exact."""
    exactly = _is_exact(form, stage_scale)
    s, lists = _reversed(s, lists)
    v = np.asarray(v, dtype=np.float64)[::-1]
    out = pmop_exact_hvp(s, lists, v) if exactly else pmop_fd_hvp(s, lists, v, stage_scale=stage_scale)
    return out[::-1]
