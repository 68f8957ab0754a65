"""Chains of unknowns over time: factoring the Hessian step by step.

The unknowns of a time step are eliminated by a dense Cholesky factorization, which leaves a dense matrix over the next
unknowns of the items that are still alive.  O(sum over steps of active x alive^2).  The backward pass over the same
blocks gives all required variances.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack, solve_triangular

from placet.aggregate.pairs import pair_likelihood
from placet.data.arrays import Floats, Ints
from placet.kernels.losses import pairs as kernels


class Chains(NamedTuple):
    """Unknowns (u,), ordered by step and item: item, step, the item's next unknown (or -1), whether it is the first."""

    item: Ints
    step: Ints
    next: Ints
    first: Any

    @property
    def linked(self) -> Ints:
        """Unknowns that are not the last of their item."""
        return np.flatnonzero(self.next >= 0)


class Elimination(NamedTuple):
    """Elimination of the unknowns ``a:z`` of one step.

    In the matrix left by the previous steps, ``own`` are the positions of unknowns of this step (``at``: their indices
    within the step) and ``others`` the rest.  The matrix left by this step is over ``after``: the others, followed by
    the next unknowns of ``linked``, those in this step that have one.
    """

    a: int
    z: int
    own: Ints
    at: Ints
    others: Ints
    linked: Ints
    after: Ints
    rows: slice


def chains_of(item: Ints, step: Ints) -> tuple[Chains, Ints]:
    """The chains of unknowns for (item, step) pairs, and the unknown of each given pair."""
    span = int(item.max(initial=0)) + 1
    low = int(step.min(initial=0))
    key, place = np.unique((step - low) * span + item, return_inverse=True)
    own_item, own_step = key % span, key // span + low
    order = np.lexsort((own_step, own_item))
    following = np.full(len(key), -1)
    same = own_item[order][1:] == own_item[order][:-1]
    following[order[:-1][same]] = order[1:][same]
    first = np.ones(len(key), bool)
    first[following[following >= 0]] = False
    return Chains(own_item, own_step, following, first), place


def steps_of(chains: Chains, row_step: Ints) -> list[Elimination]:
    """The elimination plan; ``row_step`` (rows,) is increasing."""
    found = []
    front = np.zeros(0, np.int64)
    values, starts = np.unique(chains.step, return_index=True)
    ends = np.append(starts[1:], len(chains.step))
    bounds = np.searchsorted(row_step, values), np.searchsorted(row_step, values, side="right")
    for a, z, r0, r1 in zip(starts.tolist(), ends.tolist(), bounds[0].tolist(), bounds[1].tolist()):
        inside = (front >= a) & (front < z)
        own, others = np.flatnonzero(inside), np.flatnonzero(~inside)
        linked = np.flatnonzero(chains.next[a:z] >= 0)
        after = np.concatenate([front[others], chains.next[a:z][linked]])
        found.append(Elimination(a, z, own, front[own] - a, others, linked, after, slice(r0, r1)))
        front = after
    return found


def cost_of(plan: list[Elimination]) -> tuple[float, float]:
    """Multiplications of one factorization, and bytes of the factors and temporary matrices."""
    active = np.array([s.z - s.a for s in plan], np.float64)
    after = np.array([len(s.after) for s in plan], np.float64)
    work = active**3 / 3 + active**2 * after + active * after**2
    return float(work.sum()), 8 * float((active * (active + after)).sum() + 4 * (after**2).max(initial=0.0))


class Fronts:
    """Cholesky factors of a Hessian over chains: for each step L (active, active) and W = L^-1 B (active, after)."""

    def __init__(
        self, plan: list[Elimination], p: pair_likelihood.PairCounts, curvature: Floats, own: Floats, link: Floats
    ) -> None:
        """``own`` (u,): diagonal terms from priors and links; ``link`` (u,): precision of the link to the next one."""
        self.plan, self.n = plan, len(own)
        self.factors: list[tuple[Floats, Floats]] = []
        left = np.zeros((0, 0))
        for s in plan:
            active, k = s.z - s.a, len(s.others)
            H = np.zeros((active, active))
            i, j = p.i[s.rows] - s.a, p.j[s.rows] - s.a
            kernels.laplacian_fill(i.astype(np.int32), j.astype(np.int32), curvature[s.rows], H)
            H[np.arange(active), np.arange(active)] += own[s.a : s.z]
            H[np.ix_(s.at, s.at)] += left[np.ix_(s.own, s.own)]
            B = np.zeros((active, len(s.after)), order="F")
            B[s.at, :k] = left[np.ix_(s.own, s.others)]
            q = link[s.a : s.z][s.linked]
            B[s.linked, k + np.arange(len(q))] = -q
            L, failed = lapack.dpotrf(H, lower=1, overwrite_a=1)
            if failed:
                raise np.linalg.LinAlgError("the Hessian is not positive definite")
            W = solve_triangular(L, B, lower=True, check_finite=False) if B.size else B
            new = np.zeros((len(s.after), len(s.after)))
            new[:k, :k] = left[np.ix_(s.others, s.others)]
            left = new - W.T @ W
            self.factors.append((L, W))

    def solve(self, b: Floats) -> Floats:
        """H^-1 b for b (u,) or (u, k)."""
        x = np.array(b, dtype=np.float64)
        for s, (L, W) in zip(self.plan, self.factors):
            y = solve_triangular(L, x[s.a : s.z], lower=True, check_finite=False)
            x[s.a : s.z] = y
            x[s.after] -= W.T @ y
        for s, (L, W) in zip(reversed(self.plan), reversed(self.factors)):
            x[s.a : s.z] = solve_triangular(L, x[s.a : s.z] - W @ x[s.after], lower=True, trans="T", check_finite=False)
        return x

    def variances(self, i: Any, j: Any) -> tuple[Floats, Floats, Floats]:
        """From H^-1: the diagonal (u,), entries with the next unknown (u,), and Var(x_i - x_j) of every row."""
        own, link, gap = np.zeros(self.n), np.zeros(self.n), np.zeros(len(i))
        after = np.zeros((0, 0))  # the block of H^-1 over s.after
        for s, (L, W) in zip(reversed(self.plan), reversed(self.factors)):
            k = len(s.others)
            inverse, _ = lapack.dpotri(L, lower=1)
            inverse = np.tril(inverse) + np.tril(inverse, -1).T
            G = solve_triangular(L, W, lower=True, trans="T", check_finite=False) if W.size else W
            across = -G @ after
            C = inverse - across @ G.T
            own[s.a : s.z] = np.diag(C)
            link[s.a + s.linked] = across[s.linked, k + np.arange(len(s.linked))]
            x, y = i[s.rows] - s.a, j[s.rows] - s.a
            gap[s.rows] = C[x, x] + C[y, y] - 2 * C[x, y]
            before = np.empty((len(s.own) + k, len(s.own) + k))
            before[np.ix_(s.own, s.own)] = C[np.ix_(s.at, s.at)]
            before[np.ix_(s.own, s.others)] = across[s.at, :k]
            before[np.ix_(s.others, s.own)] = across[s.at, :k].T
            before[np.ix_(s.others, s.others)] = after[:k, :k]
            after = before
        return own, link, gap


class Bordered(NamedTuple):
    """A Hessian over chains (`Fronts` or `Chained`) bordered (q, u) by the tie parameter and controls, eliminated."""

    fronts: Any
    border: Floats
    back: Floats
    schur: Floats

    def solve(self, g: Floats) -> Floats:
        """H^-1 g."""
        n = self.fronts.n
        x = self.fronts.solve(g[:n])
        if not len(self.border):
            return x
        extra = np.linalg.solve(self.schur, g[n:] - self.border @ x)
        return np.concatenate([x - self.back @ extra, extra])
