"""The linear ordering problem: the order of n items that agrees most with a table of margins.

With margin(i, j) = -margin(j, i), an order loses abs(margin) for every pair ordered against its margin.  Variable x_ij
for i < j is 1 if i is above j; orders are the 0/1 points with 0 <= x_ij + x_jk - x_ik <= 1 for all i < j < k.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy

from placet.data.arrays import Floats, Ints
from placet.data.engines.memory import refuse_beyond_memory
from placet.kernels.aggregate import kemeny as kernels

BYTES_OF_A_PAIR = 5_000
"""Memory that the linear programs use per pair of items, measured with 3,000 items."""


LOOSE_ROUNDS = 3
"""Number of rounds that a constraint may stay slack before it is removed."""

TimeLeft = Callable[[], float | None]


def deadline(time_limit: float | None) -> TimeLeft:
    """A function that returns the remaining seconds (``None`` for no limit, never below 0)."""
    if time_limit is None:
        return lambda: None
    end = time.monotonic() + time_limit
    return lambda: max(0.0, end - time.monotonic())


def lost_weight(margin: Floats, order: Ints) -> float:
    """Sum of abs(margin) over pairs ordered against their margin."""
    against = np.triu(margin[np.ix_(order, order)], 1)
    return float(-against[against < 0].sum())


def free_moves(margin: Floats, order: Ints) -> int:
    """Number of other orders with the same loss that differ by a move of one item.  O(n^2)."""
    m = margin[np.ix_(order, order)]
    n = len(m)
    close = 1e-9 * (1.0 + float(np.abs(m).max(initial=0.0)))
    free = 0
    for k in range(n):
        free += int((np.abs(np.cumsum(m[k, k + 1 :])) <= close).sum())  # the item moves down one place at a time
        free += int((np.abs(np.cumsum(m[k, :k][::-1])) <= close).sum())
        free -= int(k + 1 < n and abs(m[k, k + 1]) <= close)  # swapping neighbors gives one order, not two
    return free


def search(margin: Floats, rng: np.random.Generator) -> Ints:
    """The best order of an iterated local search from the sums of margins; no move of one item improves it."""
    n = len(margin)
    order = np.argsort(-margin.sum(axis=1), kind="stable")
    kernels.insertion_search(margin, order)
    rounds = 40 if n <= 500 else 4
    swaps = rng.integers(0, n, (rounds, 2 * min(6, n)))
    kernels.restarts(margin, order.copy(), swaps, order)
    return order


def refuse_many(n: int) -> None:
    """Raise ``DataError`` if the linear programs of n items do not fit in memory."""
    refuse_beyond_memory(
        BYTES_OF_A_PAIR * n * (n - 1) / 2,
        f"the exact Kemeny order of a component of {n:,} items",
        "use method 'kemeny-local', or fewer items",
    )


def solve(margin: Floats, order: Ints, clock: TimeLeft) -> tuple[Ints, float]:
    """The best order and a lower bound on the loss of any order; they agree unless time ran out.

    ``order`` is the best known.  Linear programs come first: their value bounds the loss of every order, and variables
    whose reduced cost exceeds the gap to the best known order are fixed.  If the final solution is fractional, HiGHS
    branches over the remaining variables.
    """
    n = len(margin)
    program = _Program(margin)
    step = _step(margin)
    best, best_loss = order, lost_weight(margin, order)
    rng = np.random.default_rng(0)
    while True:
        bound = program.relax(clock)
        if bound is None:
            return best, program.bound
        candidate = _rounded_order(margin, program.table())
        kernels.restarts(margin, candidate.copy(), rng.integers(0, n, (4, 4)), candidate)
        if lost_weight(margin, candidate) < best_loss:
            best, best_loss = candidate, lost_weight(margin, candidate)
        if _is_best(bound, best_loss, step):
            return best, best_loss
        program.fix(best_loss - step * (1 - 1e-6))
        if not program.cut():
            break
    return _branch(program, best, best_loss, step, clock)


def _branch(program: "_Program", best: Ints, best_loss: float, step: float, clock: TimeLeft) -> tuple[Ints, float]:
    """Branch and bound with the active triangle inequalities, adding those that its solutions violate."""
    margin = program.margin
    bound = program.bound
    while True:
        answer = program.branch(clock)
        if answer is None:  # no order is better than the best known
            return best, best_loss
        x, bound, done = answer
        if not done:
            return best, bound
        program.x = x
        if not program.cut():
            order = _rounded_order(margin, program.table())
            return (order, lost_weight(margin, order)) if lost_weight(margin, order) < best_loss else (best, best_loss)
        candidate = _rounded_order(margin, program.table())
        kernels.insertion_search(margin, candidate)
        if lost_weight(margin, candidate) < best_loss:
            best, best_loss = candidate, lost_weight(margin, candidate)
            program.fix(best_loss - step * (1 - 1e-6))
        if _is_best(bound, best_loss, step):
            return best, best_loss


class _Program:
    """Variables x_ij of the pairs i < j, active triangle inequalities, and bounds tightened by reduced cost."""

    def __init__(self, margin: Floats) -> None:
        self.margin = margin
        n = len(margin)
        self.i, self.j = np.triu_indices(n, 1)
        self.number = np.zeros((n, n), np.int64)
        self.number[self.i, self.j] = np.arange(len(self.i))
        self.cost = -margin[self.i, self.j]  # loss = constant + cost . x
        self.constant = float(margin[self.i, self.j].clip(0).sum())
        self.low, self.high = np.zeros(len(self.i)), np.ones(len(self.i))
        self.rows = np.zeros((0, 4), np.int64)
        self.slack_for = np.zeros(0, np.int64)
        self.x = (self.cost < 0).astype(np.float64)
        self.bound = 0.0
        self.reduced: Floats | None = None
        self.cut()

    def table(self) -> Floats:
        """x as a table (n, n) of the degree to which i is above j."""
        x = np.zeros_like(self.margin)
        x[self.i, self.j] = self.x
        x[self.j, self.i] = 1 - self.x
        return x

    def cut(self) -> bool:
        """Add triangle inequalities that x violates; returns whether there were any."""
        found = np.empty((20 * len(self.cost) + 100, 4), np.int64)
        count = kernels.violated_triangles(self.table(), 1e-6, 4 * len(self.margin), found)
        self.rows = np.concatenate([self.rows, found[:count]])
        self.slack_for = np.concatenate([self.slack_for, np.zeros(count, np.int64)])
        return count > 0

    def matrix(self) -> tuple[Any, Floats]:
        """A and b of the active triangle inequalities A x <= b."""
        i, j, k, side = self.rows.T
        sign = np.where(side == 1, 1.0, -1.0)
        columns = np.stack([self.number[i, j], self.number[j, k], self.number[i, k]], axis=1)
        values = np.stack([sign, sign, -sign], axis=1)
        pointer = np.arange(0, 3 * len(i) + 1, 3)
        shape = (len(i), len(self.cost))
        return scipy.sparse.csr_matrix((values.ravel(), columns.ravel(), pointer), shape), side.astype(np.float64)

    def relax(self, clock: TimeLeft) -> float | None:
        """Solve the linear program; returns a lower bound on every loss, or ``None`` if time ran out."""
        A, b = self.matrix()
        left = clock()
        options = {} if left is None else {"time_limit": max(left, 1e-3)}
        result = scipy.optimize.linprog(
            self.cost, A, b, bounds=np.stack([self.low, self.high], axis=1), method="highs", options=options
        )
        if result.status == 2:  # infeasible after fixing: no order is better than the best known
            return np.inf
        if result.status != 0:
            return None
        self.x = result.x
        self.reduced = result.lower.marginals + result.upper.marginals
        loose = result.slack > 1e-7
        self.slack_for = np.where(loose, self.slack_for + 1, 0)
        keep = self.slack_for < LOOSE_ROUNDS
        self.rows, self.slack_for = self.rows[keep], self.slack_for[keep]
        self.bound = max(self.bound, result.fun + self.constant)
        return self.bound

    def fix(self, target: float) -> None:
        """Fix variables that keep their value in any order with a loss of at most ``target``."""
        if self.reduced is None:
            return
        gap = target - self.bound
        at_low = (self.reduced > gap) & (self.x < 1e-6)
        at_high = (-self.reduced > gap) & (self.x > 1 - 1e-6)
        self.high[at_low], self.low[at_high] = 0.0, 1.0

    def branch(self, clock: TimeLeft) -> tuple[Floats, float, bool] | None:
        """Run HiGHS over the free variables: x, a bound and whether it finished; ``None`` if infeasible."""
        A, b = self.matrix()
        left = clock()
        options = {"mip_rel_gap": 0.0} | ({} if left is None else {"time_limit": max(left, 1e-3)})
        result = scipy.optimize.milp(
            self.cost,
            integrality=np.ones(len(self.cost)),
            bounds=scipy.optimize.Bounds(self.low, self.high),
            constraints=scipy.optimize.LinearConstraint(A, ub=b),
            options=options,
        )
        if result.status == 2:
            return None
        if result.status != 0:
            known = (
                self.bound if result.mip_dual_bound is None else max(self.bound, result.mip_dual_bound + self.constant)
            )
            return self.x, known, False
        return np.round(result.x), max(self.bound, result.fun + self.constant), True


def _rounded_order(margin: Floats, x: Floats) -> Ints:
    """The order by row sums of x, improved by insertion moves."""
    order = np.argsort(-x.sum(axis=1), kind="stable")
    kernels.insertion_search(margin, order)
    return order


def _step(margin: Floats) -> float:
    """A divisor of the difference of any two losses: the greatest common divisor of integer margins, else 0."""
    if not np.array_equal(margin, np.floor(margin)) or np.abs(margin).max(initial=0.0) > 2**52:
        return 0.0
    return float(np.gcd.reduce(np.abs(margin).astype(np.int64), axis=None))


def _is_best(bound: float, loss: float, step: float) -> bool:
    """Whether no order can be better than ``loss``: the bound exceeds the next smaller possible loss."""
    slack = 1e-6 * max(1.0, loss) if step == 0 else min(step, 1.0) * 1e-3
    return bound > loss - step + slack if step else bound >= loss - slack
