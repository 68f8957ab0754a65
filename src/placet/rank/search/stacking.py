"""Weights of the rankers in a blend, learned from held-out scores."""

from collections.abc import Sequence

import numpy as np

from placet.data import Lists, Queries
from placet.data.arrays import Floats, Ints
from placet.losses import Bound
from placet.metrics import metric as metric_of
from placet.optim import lbfgs
from placet.rank.query_rows import mean_defined

SHRINKAGE = (10.0, 1.0, 0.1, 0.01)
"""Penalties on the distance from equal weights among which ``stacked_weights`` chooses."""

PARTS = 5  # cross-validation folds to choose the penalty


def shrunk_weights(Z: Floats, lists: Lists, shrinkage: float, loss: str = "pl-partition") -> Floats:
    """Learn nonnegative weights (members,) with sum 1 for the columns of ``Z`` (rows, members), of deviation about 1.

    This is a linear ranker of the members' scores: v >= 0 minimizes loss(Z v) per unit weight + ``shrinkage`` / 2
    |v - c|^2, where c has equal entries and minimizes loss(Z c).  The weights are v / sum(v).
    """
    bound = Bound(loss, lists)
    n = Z.shape[1]
    equal = Z.mean(axis=1)

    def loss_of_scale(a: Floats) -> tuple[float, Floats]:
        value, g = bound.value_and_grad(equal * a[0])
        return value, np.array([g @ equal])

    free = (np.zeros(1), np.full(1, np.inf))
    center = float(lbfgs(loss_of_scale, np.ones(1), bounds=free, tol=1e-6).x[0]) / n
    if not center > 0.0:
        return np.full(n, 1.0 / n)

    def penalized_loss(v: Floats) -> tuple[float, Floats]:
        value, g = bound.value_and_grad(Z @ v)
        gap = v - center
        return value + 0.5 * shrinkage * float(gap @ gap), Z.T @ g + shrinkage * gap

    found = lbfgs(penalized_loss, np.full(n, center), bounds=(np.zeros(n), np.full(n, np.inf)), tol=1e-6).x
    return found / found.sum() if found.sum() > 0 else np.full(n, 1.0 / n)


def stacked_weights(
    Z: Floats, queries: Queries, metric: str, random_state: int = 0, shrinkage: Sequence[float] = SHRINKAGE
) -> tuple[Floats, float]:
    """Return the weights (members,) and the chosen penalty, infinite if the weights stay equal.

    Penalties are compared by ``metric`` in cross-validation with ``PARTS`` folds.  Learned weights are used only if
    their gain over equal weights exceeds its standard error.
    """
    n, measure = Z.shape[1], metric_of(metric)
    equal = np.full(n, 1.0 / n)
    part = random_parts(queries, min(PARTS, len(queries)), random_state)
    if n == 1 or part.max(initial=0) < 1:
        return equal, np.inf
    before = measure(Z @ equal, queries.grade, queries.offsets)
    best, chosen = 0.0, np.inf
    for penalty in shrinkage:
        s = np.empty(len(Z))
        for k in range(part.max() + 1):
            rest = queries[part != k]
            w = shrunk_weights(Z[(part != k)[queries.query]], rest.lists(), penalty)
            own = (part == k)[queries.query]
            s[own] = Z[own] @ w
        gain = measure(s, queries.grade, queries.offsets) - before
        gain = gain[~np.isnan(gain)]
        error = float(gain.std(ddof=1)) / np.sqrt(len(gain)) if len(gain) > 1 else np.inf
        if mean_defined(gain) > max(best, error):
            best, chosen = mean_defined(gain), penalty
    return (equal, np.inf) if chosen == np.inf else (shrunk_weights(Z, queries.lists(), chosen), chosen)


def random_parts(queries: Queries, n_parts: int, random_state: int) -> Ints:
    """Assign each query to a random part (queries,), with queries of at least two different grades spread evenly.

    >>> import placet
    >>> data = placet.simulate.queries(10, 5, 2, random_state=0)
    >>> np.bincount(random_parts(data, 5, 0)).tolist()
    [2, 2, 2, 2, 2]
    """
    size = np.diff(queries.offsets)
    low, high = np.zeros((2, len(queries)))
    full = size > 0
    if len(queries.grade):
        starts = queries.offsets[:-1][full]
        low[full], high[full] = np.minimum.reduceat(queries.grade, starts), np.maximum.reduceat(queries.grade, starts)
    order = np.random.default_rng(random_state).permutation(len(queries))
    order = order[np.argsort(~(low < high)[order], kind="stable")]
    part = np.empty(len(queries), np.int64)
    part[order] = np.arange(len(queries)) % n_parts
    return part
