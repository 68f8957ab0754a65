"""Laplace's evidence of scales and widths, its gradient, and averages over what it leaves open.

At the joint mode every likelihood is replaced by its quadratic, u' L u / 2 - r' u with the other parameters eliminated.
With L = V diag(l) V' and rho = V' r, a source integrated over its own scores u = a theta + e, e ~ N(0, v^2), gives
theta the precision a^2 V diag(l / (1 + l v^2)) V', the linear term a V (rho / (1 + l v^2)), and the factor
prod (1 + l v^2)^(-1/2) exp(v^2 rho^2 / (2 (1 + l v^2))), so the evidence of z = (log w, log a_k, log v_k) is in closed
form.  Directions that a source does not see (l = 0), such as a common shift of all scores, contribute nothing.

Prior of z: w has a density proportional to w times a half normal one of standard deviation `SPREAD_PRIOR`, as a source
that sees no differences must not make the target's vanish; v_k is half normal with standard deviation `WIDTH_PRIOR`,
and log a_k normal with mean 0 and standard deviation `SCALE_PRIOR`.
"""

from copy import copy
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky, eigh, lapack
from scipy.special import chdtri, gammaln, ndtri

from placet.aggregate.sources.joint_mode import JointPosterior, Widths, add_square
from placet.aggregate.sources.vote_sites import SiteSource, propagate
from placet.data.arrays import Floats, Ints
from placet.data.errors import DataError

SPREAD_PRIOR, SCALE_PRIOR, WIDTH_PRIOR = 3.0, 1.5, 1.0
NODE, NODE_WEIGHT = 3.0**0.5, 1 / 6
"""Outer node of the Gauss-Hermite rule with three nodes, and its weight."""

STEP, MOST_STEPS = 1e-4, 100
"""The search for the largest evidence stops when no logarithm moves by more than this, or after so many steps."""

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

RULED_OUT = 50.0
"""Points whose log prior is so far below the largest are left out where each costs much."""

MOST_WORTH = 1e4
"""The most that a target's votes are multiplied by to say what a source is worth."""

LEAST_CURVATURE = 0.25
"""Least curvature of the evidence along an axis: no axis is looked at farther than two units of a logarithm."""


class Quadratic(NamedTuple):
    """A source at the mode: numbers of its items, eigenvalues and vectors of L, and rho; of a source that is tied to
    theta directly (`placet.aggregate.sources.paired_votes`), also V' C'.
    """

    items: Ints
    values: Floats
    vectors: Floats
    rho: Floats
    cross: Floats | None = None


def quadratic(likelihood: Any, x: Floats) -> tuple[Floats, Floats]:
    """L (m, m) and r (m,) of a likelihood at x, its other parameters eliminated.

    The last ``held`` parameters of a score table, its slopes, stay as they are: they multiply the abilities, and a
    quadratic in both would leave the scale of the abilities open.
    """
    g, H = likelihood.derivatives(x)
    kept = len(H) - getattr(likelihood, "held", 0)
    g, H = g[:kept], H[:kept, :kept]
    m = len(likelihood.index)
    L, slope = H[:m, :m], g[:m]
    if len(H) > m:
        back = np.linalg.solve(H[m:, m:], np.column_stack([H[m:, :m], g[m:]]))
        L, slope = L - H[:m, m:] @ back[:, :-1], slope - H[:m, m:] @ back[:, -1]
    L = (L + L.T) / 2
    return L, L @ x[:m] - slope


class Posterior(NamedTuple):
    """At given widths: log evidence with the prior, mean and covariance of theta, and F with covariance F F'."""

    value: float
    mean: Floats
    covariance: Floats
    factor: Floats


class Average(NamedTuple):
    """Log evidence with z integrated out and the prior of what is related, mean and covariance of theta averaged over
    z, and the covariance of z.
    """

    mass: float
    mean: Floats
    covariance: Floats
    z_covariance: Floats


def _cholesky(S: Floats) -> Floats:
    """The upper factor of a precision; a ``DataError`` if rounding leaves none, as weights of 1e16 do."""
    try:
        return np.asarray(cholesky(S, check_finite=False))
    except np.linalg.LinAlgError:
        raise DataError(
            f"the sources have a precision of {np.abs(S).max():.3g}, beside which the differences of some items are "
            "lost to rounding; divide all weights by a common factor, so that the largest is below 1e9"
        ) from None


class SourceEvidence:
    """The evidence around a mode ``x`` of the joint posterior, as a function of z = (log w, log a, log v)."""

    def __init__(self, joint: JointPosterior, x: Floats, free: Floats):
        self.n, self.free, self.related = joint.n, free, np.ones(len(joint.others), bool)
        self.base, self.linear = np.zeros((self.n, self.n)), np.zeros(self.n)
        if joint.target is not None:
            L, r = quadratic(joint.target, joint.of_target(x))
            at = joint.target.index
            self.base[np.ix_(at, at)], self.linear[at] = L, r
        self.sources: list[Quadratic] = []
        self.sites: list[SiteSource] = []
        for k, one in enumerate(joint.others):
            L, r = quadratic(one, joint.own(x, k))
            values, vectors = eigh(L, driver="evd", check_finite=False)
            self.sources.append(Quadratic(one.index, np.maximum(values, 0.0), vectors, vectors.T @ r))

    def without(self, k: int) -> "SourceEvidence":
        """The evidence if source k is unrelated: its scale is 0, and it has only scores of its own."""
        other = copy(self)
        other.free, other.related = self.free.copy(), self.related.copy()
        other.free[1 + k], other.related[k] = 0.0, False
        return other

    def precision(self, widths: Widths) -> tuple[Floats, Floats]:
        """Precision (n, n) and linear term (n,) of theta."""
        S, q = self.base.copy(), self.linear.copy()
        S[np.arange(self.n), np.arange(self.n)] += widths.w**-2
        for k, one in enumerate(self.sources):
            add_square(S, one.items, self.part_of(widths, k))
            q[one.items] += widths.a[k] * (one.vectors @ (one.rho / (1 + one.values * widths.v[k] ** 2)))
        return S, q

    def part_of(self, widths: Widths, k: int) -> Floats:
        """(m, m): the precision that source k adds to theta."""
        one = self.sources[k]
        return _gram(one.vectors, widths.a[k] ** 2 * one.values / (1 + one.values * widths.v[k] ** 2))

    def at(self, z: Floats) -> Posterior:
        """Evidence and posterior at z.  O(n^3) for each source."""
        S, q = self.precision(Widths.of(z))
        upper = _cholesky(S)
        factor, _ = lapack.dtrtri(upper)
        m = factor @ (factor.T @ q)
        value = 0.5 * float(q @ m) - float(np.log(np.diag(upper)).sum()) + self._beside(z)
        return Posterior(value, m, factor @ factor.T, factor)

    def _at_many(self, points: Floats) -> tuple[Floats, Floats, Floats]:
        """Log evidence (points,), means (points, n) and covariances (points, n, n) of theta at points (points, z)."""
        if self.sites:
            return self._by_sites(points)
        S, q = (np.array(part) for part in zip(*(self.precision(Widths.of(z)) for z in points)))
        covariances = np.linalg.inv(S)
        means = np.einsum("pij,pj->pi", covariances, q)
        beside = np.array([self._beside(z) for z in points])
        return 0.5 * (q * means).sum(axis=1) - 0.5 * np.linalg.slogdet(S)[1] + beside, means, covariances

    def _by_sites(self, points: Floats) -> tuple[Floats, Floats, Floats]:
        """`_at_many` by expectation propagation; points that the prior rules out have no weight."""
        count, values = len(self.sources), np.array([log_prior(z, self.related)[0] for z in points])
        means, covariances = np.zeros((len(points), self.n)), np.zeros((len(points), self.n, self.n))
        at = values > values.max() - RULED_OUT
        a, v = np.ones((at.sum(), len(self.sites))), np.zeros((at.sum(), len(self.sites)))
        a[:, -count:], v[:, -count:] = np.exp(points[at, 1 : 1 + count]), np.exp(points[at, 1 + count :])
        found, means[at], covariances[at] = propagate(self.sites, self.n, np.exp(points[at, 0]), a, v)
        values[at] += found
        values[~at] = -np.inf
        return values, means, covariances

    def _beside(self, z: Floats) -> float:
        """The part of the log evidence that is not theta's: the factors of the sources and the prior of z."""
        value, v = log_prior(z, self.related)[0] - self.n * z[0], Widths.of(z).v
        for k, one in enumerate(self.sources):
            den = 1 + one.values * v[k] ** 2
            value += 0.5 * float((v[k] ** 2 * one.rho**2 / den - np.log(den)).sum())
        return float(value)

    def derivatives(self, z: Floats, here: Posterior) -> tuple[Floats, Floats, Floats]:
        """Gradient (z,) and Hessian (z, z) of the log evidence, and the slopes of the mean (z, n).

        With S_j and q_j the derivatives of precision and linear term, and Z_j = F' S_j F, the derivatives are

            E_j = q_j' m - (m' S_j m + tr Z_j) / 2,   m_j = C (q_j - S_j m),
            E_jk = q_jk' m - (m' S_jk m + tr F' S_jk F) / 2 + m_j' S m_k + tr(Z_j Z_k) / 2

        and those of each source's own factor.  O(n^3) for each source, O(n^2) for each pair of unknowns.  Z_j, large
        and needed for the Hessian only, has single precision.
        """
        widths, count, F = Widths.of(z), len(self.sources), here.factor
        grad, H = np.zeros(len(z)), np.zeros((len(z), len(z)))
        left, Z = np.zeros((len(z), self.n)), np.empty((len(z), self.n, self.n), np.float32)
        square = (np.trace(here.covariance) + here.mean @ here.mean) / widths.w**2
        grad[0], H[0, 0], left[0] = square - self.n, -2 * square, 2 / widths.w**2 * here.mean
        Z[0] = -2 / widths.w**2 * (F.T @ F)
        for k, one in enumerate(self.sources):
            at, G = np.array([1 + k, 1 + count + k]), F[one.items].T @ one.vectors  # Z = G diag(precision) G'
            mean = one.vectors.T @ here.mean[one.items]
            found = _source_slopes(one, widths.a[k], widths.v[k] ** 2, mean, (G**2).sum(axis=0) + mean**2)
            grad[at], H[np.ix_(at, at)] = found.grad, found.hessian
            left[np.ix_(at, one.items)] = (found.linear - found.precision * mean) @ one.vectors.T
            G = G.astype(np.float32)
            Z[at[0]], Z[at[1]] = _gram(G, found.precision[0]), -_gram(G, -found.precision[1])
        slope, flat = left @ F, Z.reshape(len(z), -1)
        H += slope @ slope.T + 0.5 * flat @ flat.T
        prior = log_prior(z, self.related)
        H[np.arange(len(z)), np.arange(len(z))] += prior[2]
        H = H * np.outer(self.free, self.free) - np.diag(1 - self.free)
        return (grad + prior[1]) * self.free, H, self.free[:, None] * (slope @ F.T)

    def best(self, z: Floats) -> Floats:
        """The z of the largest evidence, by Newton's method from ``z``; no step moves a logarithm by more than 1."""
        here = self.at(z)
        for _ in range(MOST_STEPS):
            grad, H, _ = self.derivatives(z, here)
            values, axes = np.linalg.eigh(-H)
            step = (axes / np.maximum(np.abs(values), LEAST_CURVATURE)) @ (axes.T @ grad)
            step /= max(1.0, float(np.abs(step).max()))
            if np.abs(step).max() <= STEP:
                return np.asarray(z + step)
            while np.abs(step).max() > STEP:
                there = self.at(z + step)
                if there.value > here.value:
                    break
                step = step / 2
            else:
                return z
            z, here = z + step, there
        return z

    def average(self, z: Floats) -> "Average":
        """Theta averaged over z: by points (`_by_points`), if z is open, there are few unknowns, and that pays.

        Else, along each principal axis of z around its mode, three nodes of Gauss and Hermite, reweighted by the
        evidence there; what the axes change is added up.  O(n^3) for each source and node.  Along axes whose standard
        deviation is below `WELL_KNOWN` the mean is taken as linear and the covariance as constant, which needs no
        nodes.
        """
        here = self.at(z)
        _, H, slope = self.derivatives(z, here)
        values, axes = np.linalg.eigh(-H)
        values = np.maximum(values, LEAST_CURVATURE)
        few = self.free.sum() <= MOST_OPEN and self.n**3 * (1 + len(self.sources)) <= MOST_WORK
        if few and (np.abs(axes.T * self.free).max(axis=1)[values < OPEN**-2] > 0).any():
            found = self._by_points(z, here, H)
            if found is not None:
                return found._replace(z_covariance=(axes / values) @ axes.T)
        mass = here.value - 0.5 * float(np.log(values).sum()) + self._prior_mass()
        mean, covariance = here.mean.copy(), here.covariance.copy()
        for value, axis in zip(values, axes.T):
            axis = axis * self.free / np.sqrt(value)
            if value > WELL_KNOWN**-2:
                covariance += np.outer(axis @ slope, axis @ slope)
                continue
            if not axis.any():
                continue
            nodes = [here, *(self.at(z + side * NODE * axis) for side in (-1, 1))]
            ratio = [min(node.value - here.value + NODE**2 / 2, 3.0) for node in nodes[1:]]
            weight = np.array([1 - 2 * NODE_WEIGHT, *(NODE_WEIGHT * np.exp(ratio))])
            weight /= weight.sum()
            center = sum(w * node.mean for w, node in zip(weight, nodes))
            mean += center - here.mean
            covariance -= here.covariance
            for w, node in zip(weight, nodes):
                covariance += w * (node.covariance + np.outer(node.mean - center, node.mean - center))
        return Average(mass, mean, covariance, (axes / values) @ axes.T)

    def _prior_mass(self) -> float:
        """Log prior probability of which sources are related, and the cost of their scales."""
        return float(np.log(np.where(self.related, 1 - DOUBT, DOUBT)).sum()) - SCALE_COST * int(self.related.sum())

    def _by_points(self, z: Floats, here: Posterior, H: Floats) -> "Average | None":
        """Theta averaged over `POINTS` points of z, drawn from Student's t around the mode and reweighted by the
        evidence; None if few of them carry the weight.

        The points are a lattice along the principal axes, whose signs are those of their largest entries: the same
        for any order of the sources.
        """
        at = np.flatnonzero(self.free)
        values, axes = np.linalg.eigh(-H[np.ix_(at, at)])
        d = len(at)
        axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(d)])
        axes = STRETCH * axes / np.sqrt(np.maximum(values, LEAST_CURVATURE))
        x, log_density = student_points(d)
        moves = np.zeros((POINTS, len(z)))
        moves[:, at] = x @ axes.T
        values, means, covariances = self._at_many(z + moves)
        ratio = values - here.value - log_density
        weight = np.exp(ratio - ratio.max())
        mass = here.value + float(ratio.max() + np.log(weight.mean())) + float(np.linalg.slogdet(axes)[1])
        weight /= weight.sum()
        if 1 / (weight @ weight) < LEAST_POINTS:
            return None
        mean = weight @ means
        off = (means - mean) * np.sqrt(weight)[:, None]
        covariance = off.T @ off + np.einsum("p,pij->ij", weight, covariances)
        return Average(mass - 0.5 * d * float(np.log(2 * np.pi)) + self._prior_mass(), mean, covariance, H)


@cache
def student_points(d: int) -> tuple[Floats, Floats]:
    """Points (`POINTS`, d) of Student's t with `TAIL` degrees of freedom, and their log density.

    Point k of the lattice is the fractional part of k (1/g, 1/g^2, ...), with g^(d + 2) = g + 1; its last number says
    how far out the point is.
    """
    g = 1.5
    for _ in range(60):
        g = (1 + g) ** (1 / (d + 2))
    u = (0.5 + np.outer(np.arange(1, POINTS + 1), g ** -np.arange(1.0, d + 2))) % 1
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
    models, gone = [evidence.average(z)], []
    while True:
        error = np.sqrt(np.maximum(np.diag(models[-1].z_covariance), 0.0))[1 : 1 + count]
        sure = (error <= SURELY_RELATED) & (evidence.n > FEW_ITEMS)
        doubtful = np.flatnonzero(evidence.related & ~sure).tolist()
        if not doubtful or not evidence.free[0]:
            break
        k = max(doubtful, key=partial(_value_without, evidence, z))
        evidence = evidence.without(k)
        z = evidence.best(_unrelated(z, k))
        found = evidence.average(z)
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
    return models[0]._replace(mean=np.asarray(mean), covariance=np.asarray(covariance)), unrelated


def _value_without(evidence: SourceEvidence, z: Floats, k: int) -> float:
    return evidence.without(k).at(_unrelated(z, k)).value


def _unrelated(z: Floats, k: int) -> Floats:
    """z with source k unrelated."""
    z = z.copy()
    z[1 + k] = UNRELATED
    return z


class SourceSlopes(NamedTuple):
    """Derivatives in (log a, log v) of a source's part of the evidence: ``grad`` (2,), ``hessian`` (2, 2); of the
    diagonals of its precision and linear term in its eigenvectors: ``precision`` and ``linear`` (2, m).
    """

    grad: Floats
    hessian: Floats
    precision: Floats
    linear: Floats


def _source_slopes(one: Quadratic, a: float, x: float, mean: Floats, square: Floats) -> SourceSlopes:
    """``x`` = v^2; ``mean`` (m,) and ``square`` (m,): E t and E t^2 of theta in the eigenvectors, t = V' theta."""
    curve, rho, den = one.values, one.rho, 1 + one.values * x
    once, twice = curve / den, (curve / den) ** 2
    bend = 4 * x * twice * (2 * x * once - 1)
    precision = a * a * np.array([2 * once, -2 * x * twice])
    second = a * a * np.array([[4 * once, -4 * x * twice], [-4 * x * twice, bend]])
    turn = -2 * x * rho * once / den
    linear = a * np.array([rho / den, turn])
    second_linear = a * np.array([[rho / den, turn], [turn, 4 * x * rho * once / den * (2 * x * once - 1)]])
    own = x * (rho / den) ** 2
    grad = linear @ mean - 0.5 * precision @ square + [0.0, (own - x * once).sum()]
    hessian = second_linear @ mean - 0.5 * second @ square
    hessian[1, 1] += (2 * own * (1 - 2 * x * once) - 2 * x * once / den).sum()
    return SourceSlopes(grad, hessian, precision, linear)


def _gram(vectors: Any, weight: Floats) -> Any:
    """V diag(weight) V' for weights that are not negative, in the precision of V."""
    B = vectors * np.sqrt(weight).astype(vectors.dtype)
    return B @ B.T


def log_prior(z: Floats, related: Any = slice(None)) -> tuple[float, Floats, Floats]:
    """Log prior density of z, up to a constant, its gradient, and the diagonal of its Hessian.

    ``related`` (sources,): which sources have a scale; unless said, all.
    """
    k = len(z) // 2
    a, wide = z[1 : 1 + k], np.append(z[0], z[1 + k :])
    square = np.exp(2 * wide) / np.append(SPREAD_PRIOR, np.full(k, WIDTH_PRIOR)) ** 2
    slope = np.append(2.0, np.ones(k)) - square
    value = float(z[0] + wide.sum() - 0.5 * square.sum()) - 0.5 * float((a[related] ** 2).sum()) / SCALE_PRIOR**2
    bend = np.full(k, -1 / SCALE_PRIOR**2)
    return (
        value,
        np.concatenate([slope[:1], bend * a, slope[1:]]),
        np.concatenate([-2 * square[:1], bend, -2 * square[1:]]),
    )


def deviations(one: Quadratic, a: float, v: float, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
    """Mean and standard error of e = u - a theta of a source, less its mean over items."""
    V, den = one.vectors, 1 + one.values * v * v
    B = (V * (v * v / den)) @ V.T
    G = -a * (V * (one.values * v * v / den)) @ V.T
    if one.cross is not None:
        G = G - (V * (v * v / den)) @ one.cross
    center = np.eye(len(V)) - 1 / len(V)
    theta, C = mean[one.items], covariance[np.ix_(one.items, one.items)]
    e = center @ (B @ (V @ one.rho) + G @ theta)
    spread = center @ (B + G @ C @ G.T) @ center
    return e, np.sqrt(np.maximum(np.diag(spread), 0.0))


def worth(base: Floats, S: Floats, covariance: Floats, items: Ints, votes: float) -> float | None:
    """How many more votes of the target would have made the mean error of its ``items`` as small as a source made it.

    ``S`` is the precision of theta without the source, ``base`` the target's part of it.  That part is multiplied by f
    until the mean variance of centered scores is that of ``covariance``, which the source gave; the worth is (f - 1)
    times the target's votes.  0 if the source made no difference; None if no f up to `MOST_WORTH` would do, as where
    the target's votes do not join all its items.
    """
    share, X = eigh(base, S, check_finite=False)  # X' S X = 1, so the variance is a sum over eigenvectors
    own, C = X[items], covariance[np.ix_(items, items)]
    part = (own**2).mean(axis=0) - own.mean(axis=0) ** 2
    goal = float(np.trace(C) / len(C) - C.mean())

    def variance(f: float) -> float:
        return float((part / (1 + (f - 1) * np.maximum(share, 0.0))).sum())

    if variance(1.0) <= goal:
        return 0.0
    if variance(MOST_WORTH) > goal:
        return None
    low, high = 1.0, MOST_WORTH
    for _ in range(50):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if variance(middle) > goal else (low, middle)
    return (high - 1) * votes
