"""Local optima of a loss that is not convex: found from a saddle point in every direction that its items suggest.

Two items with the same record can have two mirrored optima, one with either item far above the other.  Directions of
descent are those of the items themselves, projected onto the space of negative curvature: unlike eigenvectors they do
not depend on the order of the items, and every mirror image is found with its original.
"""

import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placet.data.arrays import Floats
from placet.optim import ConvergenceWarning, Fit

MOST_DESCENTS = 60
"""Directions searched from all saddle points together; with more, the saddle point itself is returned."""

NEGATIVE = 1e-7
"""Eigenvalues below this fraction of the largest one, with a minus sign, are negative curvature."""

SAME, SAME_VALUE = 1e-4, 1e-9
"""Differences of scores, and relative differences of values, of two descents to one optimum."""

LEAST_CURVATURE = 1e-12
"""Smaller eigenvalues count as this one: a common shift of scores, and differences within a group, without a prior."""

UNLIKELY = 12.0
"""Loss above the optimum, in nats, of exchanged scores from which no descent is worth its time."""

FAR_ALONG, LEAST_BEND = 8.0, 1e-6
"""Start of a descent along a direction without a bound; relative curvature below which scores are still rising."""

LEAST_SHARE = 1e-3
"""Smallest posterior probability of an optimum that is worth a note."""


class Optima(NamedTuple):
    """Distinct local optima, the best first, with their posterior probabilities; ``complete``: all directions tried."""

    fits: list[Fit]
    share: Floats
    complete: bool

    def mean(self) -> Floats:
        """Scores averaged over the optima, by their posterior probabilities."""
        return np.asarray(self.share @ np.array([fit.x for fit in self.fits]))

    def spread(self) -> Floats:
        """Covariance (n, n) of the optima's scores about their mean."""
        away = np.array([fit.x for fit in self.fits]) - self.mean()
        return np.asarray((away.T * self.share) @ away)

    def notes(self, items: Sequence[Hashable]) -> list[str]:
        """A note if the optimum is not unique, with the items whose scores it leaves open."""
        if not self.complete:
            return [
                f"the optimum is not unique: more than {MOST_DESCENTS} directions lead down from the scores given, at "
                'which items with equal records are equal; method "pmop" has a single optimum'
            ]
        likely = int((self.share >= LEAST_SHARE).sum())
        if likely < 2:
            return []
        width = np.sqrt(np.diag(self.spread())[: len(items)])
        open_items = [str(items[k]) for k in np.flatnonzero(width > max(0.1 * width.max(), SAME)).tolist()]
        names = ", ".join(open_items[:5]) + (f", ... {len(open_items)} items" if len(open_items) > 5 else "")
        shares = ", ".join(f"{share:.2g}" for share in self.share[: min(likely, 5)]) + (", ..." if likely > 5 else "")
        return [
            f"the optimum is not unique: {likely} local optima (posterior probabilities {shares}) differ in the scores "
            f"of [{names}]; scores are their mean, and standard errors include the distance between them; method "
            '"pmop" has a single optimum'
        ]


def find_optima(b: Any, descend: Callable[[Floats], Fit], starts: Sequence[Floats], swaps: bool = False) -> Optima:
    """The local optima below the stationary points that ``descend`` reaches from the starts.

    ``swaps``: also descend from every optimum with the scores of two items exchanged, where that may matter
    (`behind_barriers`): almost equal items have almost mirrored optima, and no saddle point on the way down.

    ``b`` has ``value``, ``dense`` (the Hessian), ``average`` and ``scale``; where the Hessian has negative curvature,
    ``descend`` is called again on either side of the point for every direction.  O(n) Hessian products per point.
    """
    first = descend(starts[0])
    waiting, found, logs, descents = [first], list[Fit](), list[float](), 0
    for start in starts[1:]:
        _append_new(waiting, waiting, descend(start))
    seen = list(waiting)
    while waiting:
        point = waiting.pop(0)
        values, vectors = np.linalg.eigh(b.dense(point.x))
        negative = values < -NEGATIVE * max(float(values[-1]), 1e-300)
        below = list[Fit]()
        if negative.any():
            directions = item_directions(vectors[:, negative], b.average)
            descents += 2 * len(directions)
            if descents > MOST_DESCENTS:
                return Optima([first], np.ones(1), False)
            lower = (lower_along(b, point, sign * v) for v in directions for sign in (1.0, -1.0))
            below = [descend(start) for start in lower if start is not None]
        if not below:
            found.append(point)
            logs.append(-b.scale * point.value - 0.5 * float(np.log(np.maximum(values, LEAST_CURVATURE)).sum()))
            for start in behind_barriers(b, point, seen) if swaps else ():
                descents += 1
                if descents <= MOST_DESCENTS:
                    below.append(descend(start))
        for fit in below:
            _append_new(waiting, seen, fit)
    best = np.argsort([fit.value for fit in found], kind="stable")
    return Optima([found[k] for k in best], _shares(np.array(logs)[best]), True)


def _append_new(waiting: list[Fit], seen: list[Fit], fit: Fit) -> None:
    """Add a fit to both lists unless it is the same as one seen."""
    if not any(is_same(fit, other) for other in seen):
        waiting.append(fit)
        if seen is not waiting:
            seen.append(fit)


def _shares(log: Floats) -> Floats:
    share = np.exp(log - log.max(initial=-np.inf))
    return np.asarray(share / share.sum())


def finite_optima(
    b: Any, descend: Callable[[Floats], Fit], starts: Sequence[Floats], free: Sequence[NDArray[np.bool_]], swaps: bool
) -> tuple[Optima, list[NDArray[np.bool_]]]:
    """As `find_optima`, for a loss that stays bounded while all scores of a set in ``free`` (masks of items) rise.

    Also descends from scores that are already far along each of these directions.  If the loss is then lower than at
    the best finite optimum, or there is none, the second result has masks of items whose scores rise for ever, one of
    each such descent.
    """
    far = [b.average(np.where(mask, FAR_ALONG, 0.0)) for mask in free[:MOST_DESCENTS]]
    with warnings.catch_warnings():  # a descent for ever does not converge, and is no result
        warnings.simplefilter("ignore", ConvergenceWarning)
        every = find_optima(b, descend, [*starts, *far], swaps)
    finite = np.array([_is_finite(b, fit.x) for fit in every.fits])
    values = np.array([fit.value for fit in every.fits])
    ends = values[finite].min(initial=np.inf)
    least = values[~finite].min(initial=np.inf)
    close = SAME_VALUE * (1 + abs(least))
    if least < ends - close or not finite.any():
        endless = np.flatnonzero(~finite & (values <= least + close))
        return every, [_above_largest_gap(every.fits[k].x) for k in endless]
    log = np.log(np.maximum(every.share[finite], 1e-300))
    return Optima([fit for fit, ok in zip(every.fits, finite) if ok], _shares(log), every.complete), []


def _above_largest_gap(x: Floats) -> NDArray[np.bool_]:
    """Mask of the scores above the largest gap between neighbors."""
    ordered = np.sort(x)
    return x > ordered[int(np.argmax(np.diff(ordered)))]


def _is_finite(b: Any, x: Floats) -> bool:
    """Whether the loss has curvature at x in every direction, except a common shift and differences within a group."""
    rank = (len(x) if b.group is None else int(b.group.max()) + 1) - 1
    values = np.linalg.eigvalsh(b.dense(x))
    return rank == 0 or bool(values[-rank] > LEAST_BEND * b.diagonal(np.zeros(len(x))).max())


def item_directions(space: Floats, average: Callable[[Floats], Floats]) -> list[Floats]:
    """The unit vectors of the items, projected onto the columns of ``space``, without opposite and equal ones."""
    P = space @ space.T
    P = np.array([average(row) for row in P])
    length = np.linalg.norm(P, axis=1)
    kept = list[Floats]()
    for k in np.flatnonzero(length > 0.1 * length.max()):
        v = P[k] / length[k]
        if all(abs(float(v @ other)) < 1 - 1e-6 for other in kept):
            kept.append(v)
    return kept


def behind_barriers(b: Any, point: Fit, seen: Sequence[Fit]) -> Iterator[Floats]:
    """Scores of an optimum with two items exchanged, if that costs little but the way there is higher than both ends.

    Two values for every pair of items.
    """
    x = point.x
    for i, j in combinations(range(b.n_items), 2):
        swapped, between = x.copy(), x.copy()
        swapped[i], swapped[j] = x[j], x[i]
        between[i] = between[j] = (x[i] + x[j]) / 2
        if abs(x[i] - x[j]) <= SAME or any(np.abs(swapped - other.x).max() <= SAME for other in seen):
            continue
        there = b.value(swapped)[0]
        if b.scale * (there - point.value) < UNLIKELY and there < b.value(between)[0]:
            yield swapped


def lower_along(b: Any, point: Fit, v: Floats) -> Floats | None:
    """The lowest of several points along v from a saddle point; None if none is lower."""
    steps = [point.x + length * v for length in 0.5 ** np.arange(-1, 12)]
    values = [b.value(x)[0] for x in steps]
    lowest = int(np.argmin(values))
    return steps[lowest] if values[lowest] < point.value else None


def is_same(one: Fit, other: Fit) -> bool:
    """Whether two descents ended at the same optimum."""
    close = abs(one.value - other.value) <= SAME_VALUE * (1 + abs(other.value))
    return close and bool(np.abs((one.x - one.x.mean()) - (other.x - other.x.mean())).max(initial=0.0) <= SAME)
