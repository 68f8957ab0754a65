"""Probabilistic models over ordered partitions: tied rows are chosen together.

Stage k draws the tier X_k from the remaining rows R_k with probability Phi(X_k) / sum over nonempty S in R_k of Phi(S);
the last stage counts too.  Full decomposition: Phi(S) = mean of e^s over S.
General state: Phi(S) = e^{mean of s over S}.
"""

import numpy as np
from numpy.typing import ArrayLike

from placet.data.arrays import Floats
from placet.data.errors import one_of
from placet.data.gains import Curve
from placet.kernels.losses import pmop as fd, pmop_exact as exact, pmop_sampling as sampling
from placet.losses.list_columns import ListColumns, read_only
from placet.losses.loss import Plan
from placet.losses.plackett_luce import stage_weights


def pmop_fd(
    lists: ListColumns,
    *,
    stage_scale: ArrayLike | None = None,
    stage_weight: str | None = None,
    gain: str | Curve = "exp2",
    discount: str | Curve = "log2",
) -> Plan:
    """Full decomposition: sum_k log sum_{R_k} e^s - log sum_{X_k} e^s + log(C_k |X_k|), C_k = (2^N_k - 1) / N_k.

    O(rows).  ``stage_scale`` (c_1, c_2, ...) makes the potential depend on the stage: e^{c_k s} at stage k (the last c
    applies to all later stages), so that decreasing c_k model noisier later stages.  ``stage_weight="dcg"`` multiplies
    the term of a tier by its share of the ideal DCG, with ``gain`` and ``discount``.  O(rows x tiers) with either.

    The curvature is an upper bound on the Hessian's diagonal, sum_k c_k^2 p_k (1 - p_k), p_k the row's share of
    sum_{R_k} phi_k, over all stages but the last, whose cost is constant; the omitted term, - c_k^2 q (1 - q) with q
    the row's share of its own tier, is never positive.
    Hessian products are exact, and indefinite if there are ties.
    """
    weight = stage_weights(lists, stage_weight, gain, discount, tiers=True)
    if stage_scale is None and stage_weight is None:
        return Plan((fd.pmop_fd,), curvature=(fd.pmop_fd_curvature,), hvp=(fd.pmop_fd_hvp,))
    scale = _stage_scale((1.0,) if stage_scale is None else stage_scale)
    args = scale, weight
    return Plan(
        (fd.pmop_fd_staged, *args),
        curvature=(fd.pmop_fd_staged_curvature, *args),
        hvp=(fd.pmop_fd_staged_hvp, *args),
    )


def _stage_scale(stage_scale: ArrayLike) -> Floats:
    scale = read_only(stage_scale)
    if scale.ndim != 1 or len(scale) == 0 or not np.isfinite(scale).all():
        raise ValueError(f"stage_scale must hold one finite number or more, first stage first, not {stage_scale!r}")
    return scale


def pmop_exact(lists: ListColumns) -> Plan:
    """General state: sum_k log sum_{S in R_k} e^{mean of s over S} - mean of s over X_k, summing over all subsets.

    N_k^3 / 6 steps per stage and O(N^2) memory: about 2 ms for 100 rows in 3 tiers, 1 s for a stage of 1,000 rows, the
    longest list accepted.  Gradient: sum_k E[1_i / |S|] - 1_i / |X_k|.  Convex; second derivatives are variances.
    """
    rows = np.diff(lists.offsets)
    long = rows > exact.MOST_ROWS
    if long.any():
        q = int(np.argmax(long))
        raise ValueError(
            f"list {q} has {rows[q]} rows; the sum over all subsets takes at most {exact.MOST_ROWS} ({long.sum()} such "
            "lists): use pmop-fd, or pmop-gibbs or pmop-mh"
        )
    return Plan(
        (exact.pmop_exact,),
        curvature=(exact.pmop_exact_curvature,),
        hvp=(exact.pmop_exact_hvp,),
        scratch=3 * int(rows.max(initial=0)) ** 2,
    )


def _contrast(lists: ListColumns, n_steps: int, rule: int) -> Plan:
    """Plan for the chains of all lists; their uniforms are drawn at each call, in the order of the lists."""
    if n_steps < 1:
        raise ValueError(f"n_steps must be at least 1, not {n_steps}")
    ends = np.append(0, np.cumsum(n_steps * sampling.uniforms_needed(lists.grade, lists.offsets, rule)))
    first = np.zeros(len(lists.grade) + 1, np.int64)  # start of a list's uniforms, stored at its first row
    first[lists.offsets] = ends
    return Plan((sampling.contrast, first, n_steps, rule), draw=lambda rng: (rng.random(ends[-1]),))


def pmop_gibbs(lists: ListColumns, *, n_steps: int = 1, random_state: int | np.random.Generator = 0) -> Plan:
    """Contrastive divergence for the general state: ``n_steps`` Gibbs sweeps from each observed X_k.

    The value is the *contrast* sum_k (1/n) sum_l mean of s over S_l - mean of s over X_k, S_l the subset after sweep l:
    not a likelihood, and of either sign.  The gradient, (1/n) sum_l 1_i / |S_l| - 1_i / |X_k|, is that of the contrast
    with the S_l held fixed and estimates that of `pmop_exact`, with a bias that vanishes as ``n_steps`` grows.
    An integer ``random_state`` draws the same chains at every call; for training use a Generator, which draws new ones.
    O(n_steps N_k) per stage.
    """
    return _contrast(lists, n_steps, sampling.GIBBS)


def pmop_mh(
    lists: ListColumns,
    *,
    n_steps: int = 1,
    random_state: int | np.random.Generator = 0,
    as_published: bool = False,
) -> Plan:
    """`pmop_gibbs` with ``n_steps`` Metropolis-Hastings steps that propose a uniform size, then a uniform subset of it.

    ``as_published`` accepts with Phi(S') / Phi(S) as in the paper; that chain converges to Phi(S) / binom(N_k, |S|), a
    different model.
    """
    return _contrast(lists, n_steps, sampling.AS_PUBLISHED if as_published else sampling.HASTINGS)


def pmop_backward(lists: ListColumns, *, form: str = "fd", stage_scale: ArrayLike | None = None) -> Plan:
    """Elimination: the worst tier is drawn first, from all rows with potentials of -s, then the next worst.

    The negative log likelihood of the reversed partition at -s under ``form`` "fd" (`pmop_fd`; stage 1 of
    ``stage_scale`` is the first elimination) or "exact" (`pmop_exact`); a different model from the forward one.
    """
    one_of(form, ("fd", "exact"), "form")
    if form == "exact" and stage_scale is not None:
        raise ValueError("stage_scale belongs to form 'fd'; form 'exact' has no potentials by stage")
    plan = pmop_exact(lists) if form == "exact" else pmop_fd(lists, stage_scale=stage_scale)
    return plan._replace(backward=True)
