"""Averages over scales and widths, and over which sources are related at all.

Theta is averaged over z = (log w, log a, log v) by points of Student's t around the mode of the evidence, or by nodes
along its principal axes; the models without a source, in turn, are averaged by their probabilities.
"""

from functools import cache, partial
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri, gammaln, ndtri

from placet.aggregate.sources.joint_mode import Widths
from placet.aggregate.sources.vote_sites import propagate
from placet.aggregate.sources.width_evidence import (
    LEAST_CURVATURE,
    SCALE_PRIOR,
    Posterior,
    SourceEvidence,
    log_prior_density,
)
from placet.data.arrays import Floats

NODE, NODE_WEIGHT = 3.0**0.5, 1 / 6
"""Outer node of the Gauss-Hermite rule with three nodes, and its weight."""

SCALE_COST = float(np.log(SCALE_PRIOR))
"""What a scale costs in log evidence: that of its prior, less that of a normal density of standard deviation 1."""

UNRELATED, DOUBT = -30.0, 0.3
"""The log scale of a source that is unrelated to the target, and the prior probability of that."""

SURELY_RELATED, NEGLIGIBLE, FEW_ITEMS = 0.3, 5.0, 10
"""A source whose log scale is known within the first is related, unless there are so few items that any two sources may
agree by chance; models whose log evidence is below the best by the second are left out.
"""

WELL_KNOWN = 0.1
"""Standard deviation of an axis below which no nodes are needed."""

OPEN, MOST_OPEN, MOST_WORK = 0.3, 9, 1_000_000
"""z is averaged over by points if an axis has a larger standard deviation than the first, for at most so many free
unknowns, and so large a cube of the number of items times the number of sources.
"""

POINTS, LEAST_POINTS, TAIL, STRETCH = 1024, 30.0, 5.0, 1.5
"""Number of points; the effective number below which they are not used; degrees of freedom of Student's t, and by how
much it is wider than the evidence at its mode.
"""

FEW_SCORES, TIMES_MORE = 10, 4
"""With at most so many unknown scores a point costs next to nothing, and there are so many times more of them."""

ASTRAY = 1.0
"""Sites whose mean is farther than so many errors from that of the quadratics have gone astray: these remain."""

SOME = 0.05
"""The average over models is rough if those of at least this probability are."""

RULED_OUT = 50.0
"""Points whose log prior is so far below the largest are left out where each costs much."""


class Average(NamedTuple):
    """Log evidence with z integrated out and the prior of what is related, mean and covariance of theta averaged over
    z, and the covariance of z; ``rough`` if sites or points that were asked for could not be used.
    """

    mass: float
    mean: Floats
    covariance: Floats
    z_covariance: Floats
    rough: bool = False


def average(evidence: SourceEvidence, z: Floats) -> Average:
    """Theta averaged over z: by points (`_by_points`), if z is open, there are few unknowns, and that pays.

    Else, along each principal axis of z around its mode, three nodes of Gauss and Hermite, reweighted by the
    evidence there; what the axes change is added up.  O(n^3) for each source and node.  Along axes whose standard
    deviation is below `WELL_KNOWN` the mean is taken as linear and the covariance as constant, which needs no
    nodes.
    """
    here = evidence.at(z)
    _, H, slope = evidence.derivatives(z, here)
    values, axes = np.linalg.eigh(-H)
    values = np.maximum(values, LEAST_CURVATURE)
    few = evidence.free.sum() <= MOST_OPEN and evidence.n**3 * (1 + len(evidence.sources)) <= MOST_WORK
    asked = few and bool((np.abs(axes.T * evidence.free).max(axis=1)[values < OPEN**-2] > 0).any())
    if asked:
        found = _by_points(evidence, z, here, H)
        if found is not None:
            return found._replace(z_covariance=(axes / values) @ axes.T)
    mass = here.value - 0.5 * float(np.log(values).sum()) + _prior_mass(evidence)
    mean, covariance = here.mean.copy(), here.covariance.copy()
    for value, axis in zip(values, axes.T):
        axis = axis * evidence.free / np.sqrt(value)
        if value > WELL_KNOWN**-2:
            covariance += np.outer(axis @ slope, axis @ slope)
            continue
        if not axis.any():
            continue
        nodes = [here, *(evidence.at(z + side * NODE * axis) for side in (-1, 1))]
        ratio = [min(node.value - here.value + NODE**2 / 2, 3.0) for node in nodes[1:]]
        weight = np.array([1 - 2 * NODE_WEIGHT, *(NODE_WEIGHT * np.exp(ratio))])
        weight /= weight.sum()
        center = sum(w * node.mean for w, node in zip(weight, nodes))
        mean += center - here.mean
        covariance -= here.covariance
        for w, node in zip(weight, nodes):
            covariance += w * (node.covariance + np.outer(node.mean - center, node.mean - center))
    return Average(mass, mean, covariance, (axes / values) @ axes.T, asked)


def _prior_mass(evidence: SourceEvidence) -> float:
    """Log prior probability of which sources are related, and the cost of their scales."""
    return float(np.log(np.where(evidence.related, 1 - DOUBT, DOUBT)).sum()) - SCALE_COST * int(evidence.related.sum())


def _by_points(evidence: SourceEvidence, z: Floats, here: Posterior, H: Floats) -> Average | None:
    """Theta averaged over `POINTS` points of z, drawn from Student's t around the mode and reweighted by the
    evidence; None if few of them carry the weight, or sites went astray.

    The points are a lattice along the principal axes, whose signs are those of their largest entries: the same
    for any order of the sources.
    """
    at = np.flatnonzero(evidence.free)
    values, axes = np.linalg.eigh(-H[np.ix_(at, at)])
    d = len(at)
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(d)])
    axes = STRETCH * axes / np.sqrt(np.maximum(values, LEAST_CURVATURE))
    scores = evidence.n + sum(len(one.items) for one in evidence.sources)
    x, log_density = student_points(d, POINTS * (TIMES_MORE if scores <= FEW_SCORES else 1))
    moves = np.zeros((len(x), len(z)))
    moves[:, at] = x @ axes.T
    try:
        values, means, covariances = _at_many(evidence, z + moves)
    except np.linalg.LinAlgError:  # expectation propagation went astray: the quadratics remain
        return None
    ratio = values - here.value - log_density
    if not np.isfinite(ratio.max()):
        return None
    weight = np.exp(ratio - ratio.max())
    mass = here.value + float(ratio.max() + np.log(weight.mean())) + float(np.linalg.slogdet(axes)[1])
    weight /= weight.sum()
    if 1 / (weight @ weight) < LEAST_POINTS:
        return None
    mean = weight @ means
    if evidence.sites and (np.abs(mean - here.mean) > ASTRAY * np.sqrt(np.diag(here.covariance))).any():
        return None
    off = (means - mean) * np.sqrt(weight)[:, None]
    covariance = off.T @ off + np.einsum("p,pij->ij", weight, covariances)
    return Average(mass - 0.5 * d * float(np.log(2 * np.pi)) + _prior_mass(evidence), mean, covariance, H)


def _at_many(evidence: SourceEvidence, points: Floats) -> tuple[Floats, Floats, Floats]:
    """Log evidence (points,), means (points, n) and covariances (points, n, n) of theta at points (points, z)."""
    if evidence.sites:
        return _by_sites(evidence, points)
    S, q = (np.array(part) for part in zip(*(evidence.precision(Widths.of(z)) for z in points)))
    covariances = np.linalg.inv(S)
    means = np.einsum("pij,pj->pi", covariances, q)
    beside = np.array([evidence._beside(z) for z in points])
    return 0.5 * (q * means).sum(axis=1) - 0.5 * np.linalg.slogdet(S)[1] + beside, means, covariances


def _by_sites(evidence: SourceEvidence, points: Floats) -> tuple[Floats, Floats, Floats]:
    """`_at_many` by expectation propagation; points that the prior rules out have no weight."""
    count, values = len(evidence.sources), log_prior_density(points, evidence.related)
    means, covariances = np.zeros((len(points), evidence.n)), np.zeros((len(points), evidence.n, evidence.n))
    at = values > values.max() - RULED_OUT
    a, v = np.ones((at.sum(), len(evidence.sites))), np.zeros((at.sum(), len(evidence.sites)))
    a[:, -count:], v[:, -count:] = np.exp(points[at, 1 : 1 + count]), np.exp(points[at, 1 + count :])
    found, means[at], covariances[at] = propagate(evidence.sites, evidence.n, np.exp(points[at, 0]), a, v)
    values[at] += found
    values[~at] = -np.inf
    return values, means, covariances


@cache
def student_points(d: int, count: int) -> tuple[Floats, Floats]:
    """Points (``count``, d) of Student's t with `TAIL` degrees of freedom, and their log density.

    Point k of the lattice is the fractional part of k (1/g, 1/g^2, ...), with g^(d + 2) = g + 1; its last number says
    how far out the point is.
    """
    g = 1.5
    for _ in range(60):
        g = (1 + g) ** (1 / (d + 2))
    u = (0.5 + np.outer(np.arange(1, count + 1), g ** -np.arange(1.0, d + 2))) % 1
    x = ndtri(u[:, :d]) / np.sqrt(chdtri(TAIL, u[:, d:]) / TAIL)
    constant = gammaln((TAIL + d) / 2) - gammaln(TAIL / 2) - 0.5 * d * np.log(TAIL * np.pi)
    return x, constant - 0.5 * (TAIL + d) * np.log1p((x**2).sum(axis=1) / TAIL)


def average_over_relations(evidence: SourceEvidence, z: Floats) -> tuple[Average, Floats]:
    """The average over z and over which sources are related at all; probabilities (sources,) that each is not.

    A source is unrelated with prior probability `DOUBT`.  From all related, the source that is least so is taken
    out, one at a time, until that is far less probable than what came before; the models on the way are averaged.  The
    covariance of z is that of the first.
    """
    count = len(evidence.sources)
    models, gone = [average(evidence, z)], []
    while True:
        error = np.sqrt(np.maximum(np.diag(models[-1].z_covariance), 0.0))[1 : 1 + count]
        sure = (error <= SURELY_RELATED) & (evidence.n > FEW_ITEMS)
        doubtful = np.flatnonzero(evidence.related & ~sure).tolist()
        if not doubtful or not evidence.free[0]:
            break
        k = max(doubtful, key=partial(_value_without, evidence, z))
        evidence = evidence.without(k)
        z = evidence.best(_unrelated(z, k))
        found = average(evidence, z)
        if found.mass < max(one.mass for one in models) - NEGLIGIBLE:
            break
        models.append(found)
        gone.append(k)
    weight = np.exp([one.mass - max(one.mass for one in models) for one in models])
    weight /= weight.sum()
    unrelated = np.zeros(count)
    for after, k in enumerate(gone, 1):
        unrelated[k] = weight[after:].sum()
    mean = sum(w * one.mean for w, one in zip(weight, models))
    spread = [one.covariance + np.outer(one.mean - mean, one.mean - mean) for one in models]
    covariance = sum(w * one for w, one in zip(weight, spread))
    rough = bool(weight @ [one.rough for one in models] > SOME)
    return models[0]._replace(mean=np.asarray(mean), covariance=np.asarray(covariance), rough=rough), unrelated


def _value_without(evidence: SourceEvidence, z: Floats, k: int) -> float:
    return evidence.without(k).at(_unrelated(z, k)).value


def _unrelated(z: Floats, k: int) -> Floats:
    """z with source k unrelated."""
    z = z.copy()
    z[1 + k] = UNRELATED
    return z
