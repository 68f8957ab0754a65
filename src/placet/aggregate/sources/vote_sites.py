"""Votes as sites of expectation propagation: mean, covariance and evidence where a quadratic is too crude.

With few votes the posterior is skewed, and its curvature depends on scales and widths.  Then, at each point of z = (log
w, log a, log v), the votes on a pair are replaced by a normal factor (a site) of the difference d of its scores, such
that mean and variance of d are those with the votes themselves in its place (Minka 2001).  With q the normal of d and t
the likelihood of its votes over the site, the sum of log E_q[t] is what the votes add to the log evidence.

What this leaves out is what two pairs of sites say together, to second order (Opper, Paquet and Winther 2013): with z
the standardized differences, rho their correlations, V = Cov(z, theta), and b_k = E[He_k(z)] with the votes in the
site's place, k = 3 and 4,

    log evidence + sum of b_km b_kn rho_mn^k / (2 k!),   mean + V' (b_4m b_3n rho_mn^3 / 6) 1,
    covariance + V' (b_3m b_3n rho_mn^2 / 2 + b_4m b_4n rho_mn^3 / 6) V

over all m and n but m = n.  Without it, errors are up to 3 percent too small.

The unknowns are theta and e_k / v_k, whose prior is simple for any width; u_k = a_k theta + e_k.  Tie parameters and
effects of controls stay as they are; what their openness adds is kept from the quadratic of the source, as is all of a
source that has no votes on pairs, or so many that its quadratic will do.
"""

from typing import Any, NamedTuple

import numpy as np

from placet.aggregate.pairs import pair_likelihood
from placet.data.arrays import Floats, Ints
from placet.losses.pairwise import outcome_costs

NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(11)
NODE_WEIGHTS = NODE_WEIGHTS / NODE_WEIGHTS.sum()
THIRD, FOURTH = NODES**3 - 3 * NODES, NODES**4 - 6 * NODES**2 + 3

STEP = 1e-3
"""Step of the differences by which the first sites are found."""

MOST_SWEEPS, ENOUGH, DAMPING = 30, 3e-3, 0.7
"""Maximum number of updates of all sites; the change of a mean, in standard errors, or of the logarithm of a variance,
that needs no other; and the share of an update that is made.
"""

LEAST_VARIANCE = 1e-12
"""Variances of differences are at least this, where rounding leaves less."""

LONGEST, NARROWEST, WIDEST = 2.0, 0.2, 3.0
"""Bounds of an update: the move of a mean in standard errors, and the factor of a variance."""

AT_ONCE, MOST_CHANGE, LARGEST = 4_000_000, 0.5, 1e12
"""For the second order as many numbers are worked on at once as the first, in single precision; it changes no variance
by a larger share than the second.  Points with covariances or inverse errors above the third are lost to rounding, and
have no weight.
"""


class SiteSource(NamedTuple):
    """A source: its ``items`` among all; ``rest`` (m, m) and ``rest_linear`` (m,), a quadratic in its scores that
    stays; and for votes on pairs ``difference`` (rows, m), 1 and -1 at the items of a row, its ``shift`` by controls,
    ``counts`` (3, rows) of wins, losses and ties, ``model`` and ``tie``, and the first sites: ``curvature``, ``linear``
    and ``level`` (rows,), their logarithm at 0, which is left out of the evidence as in a quadratic.
    """

    items: Ints
    rest: Floats
    rest_linear: Floats
    difference: Floats
    shift: Floats
    counts: Floats
    model: str
    tie: float
    curvature: Floats
    linear: Floats
    level: Floats

    def log_likelihood(self, d: Floats) -> Floats:
        """Of the votes of each row, at differences of scores d (..., rows, any)."""
        win, loss, tied = outcome_costs(d + self.shift[:, None], self.model, self.tie)
        if self.tie == -np.inf:
            tied = (win + loss) / 2
        won, lost, even = self.counts[:, :, None]
        return np.asarray(-(won * win + lost * loss + even * tied) - self.level[:, None])


def held_source(items: Ints, L: Floats, r: Floats) -> SiteSource:
    """A source that keeps its quadratic u' L u / 2 - r' u."""
    none = np.zeros(0)
    rows = (np.zeros((0, len(items))), none, np.zeros((3, 0)), "bradley-terry", -np.inf, none, none, none)
    return SiteSource(items, L, r, *rows)


def site_source(likelihood: Any, x: Floats, L: Floats, r: Floats) -> SiteSource:
    """Votes on pairs whose quadratic at the unknowns x is u' L u / 2 - r' u."""
    p, items = likelihood.counts, likelihood.index
    m = len(items)
    rows = np.arange(len(p.i))
    D = np.zeros((len(rows), m))
    D[rows, p.i], D[rows, p.j] = 1.0, -1.0
    counts, shift = p.scale * np.array([p.wins_i, p.wins_j, p.ties]), p.control @ pair_likelihood.parameters(p, x)[2]
    one = SiteSource(items, L, r, D, shift, counts, p.model, likelihood.tie(x), *np.zeros((3, len(rows))))
    d = D @ x[:m]
    below, here, above = one.log_likelihood(d[:, None] + STEP * np.array([-1.0, 0.0, 1.0])).T
    curvature, slope = np.maximum(2 * here - below - above, 0.0) / STEP**2, (above - below) / (2 * STEP)
    linear = curvature * d + slope
    return one._replace(
        rest=L - (D.T * curvature) @ D,
        rest_linear=r - D.T @ linear,
        curvature=curvature,
        linear=linear,
        level=here + d * (0.5 * curvature * d - linear),
    )


class SiteAnswer(NamedTuple):
    """At every point: log evidence (points,) without the prior of z, mean (points, n) and covariance (points, n, n) of
    theta.
    """

    value: Floats
    mean: Floats
    covariance: Floats


def propagate(sources: list[SiteSource], n: int, w: Floats, a: Floats, v: Floats) -> SiteAnswer:
    """Expectation propagation at all points at once, all sites of a point at once.

    ``w`` (points,); ``a`` and ``v`` (points, sources), for a target 1 and 0.  O(points (N^3 + rows)) for each of up to
    `MOST_SWEEPS` updates, N being the number of items of all sources together; a point that stands still is left out.
    """
    at = SiteUnknowns(sources, n, w, a, v)
    moving = np.arange(len(w))
    curvature = [np.tile(one.curvature, (len(w), 1)) for one in sources]
    linear = [np.tile(one.linear, (len(w), 1)) for one in sources]
    for _ in range(MOST_SWEEPS):
        _, mean, C = at.normal(moving, [c[moving] for c in curvature], [r[moving] for r in linear])
        moved = np.zeros(len(moving))
        for k, one in enumerate(sources):
            if not len(one.shift):
                continue
            found = _update(one, *at.differences(k, moving, mean, C), curvature[k][moving], linear[k][moving])
            curvature[k][moving], linear[k][moving] = found.curvature, found.linear
            moved = np.maximum(moved, found.moved)
        moving = moving[moved > ENOUGH]
        if not len(moving):
            break
    rows = sum(len(one.shift) for one in sources)
    answers = [
        _answer(at, which, [c[which] for c in curvature], [r[which] for r in linear])
        for which in np.array_split(np.arange(len(w)), 1 + len(w) * (rows + at.size) ** 2 // AT_ONCE)
    ]
    return SiteAnswer(*(np.concatenate(part) for part in zip(*answers)))


def _answer(at: "SiteUnknowns", which: Ints, curvature: list[Floats], linear: list[Floats]) -> SiteAnswer:
    """Evidence and moments at the points ``which``, given the sites, with what pairs of sites add."""
    value, mean, C = at.normal(which, curvature, linear)
    found = SiteAnswer(value, mean[:, : at.n], C[:, : at.n, : at.n])
    slopes, bends, directions = [], [], []
    for k, one in enumerate(at.sources):
        if len(one.shift):
            d, variance = at.differences(k, which, mean, C)
            log_mass, weight = _tilted(one, d, np.sqrt(variance), curvature[k], linear[k])
            found = found._replace(value=found.value + log_mass.sum(axis=1))
            slopes.append(weight @ THIRD)
            bends.append(weight @ FOURTH)
            directions.append(at.directions(k, which) / np.sqrt(variance)[:, :, None])
    if not slopes:
        return found
    third, fourth, P = (np.concatenate(part, axis=1) for part in (slopes, bends, directions))
    sane = (np.abs(C).max(axis=(1, 2)) < LARGEST) & (np.abs(P).max(axis=(1, 2)) < LARGEST)
    changed = _second_order(SiteAnswer(*(part[sane] for part in found)), C[sane], third[sane], fourth[sane], P[sane])
    for part, new, none in zip(found, changed, (-np.inf, 0.0, 0.0)):
        part[sane] = new
        part[~sane] = none
    return found


def _second_order(found: SiteAnswer, C: Floats, third: Floats, fourth: Floats, P: Floats) -> SiteAnswer:
    """The answer with what pairs of sites add: b_3 and b_4 (points, rows), and z = P x (points, rows, unknowns)."""
    z = P.astype(np.float32)
    V = z @ C.astype(np.float32)
    rho = np.clip(V @ z.transpose(0, 2, 1), -1.0, 1.0)
    rho[:, np.arange(rho.shape[1]), np.arange(rho.shape[1])] = 0.0
    square = rho * rho
    cube, V = square * rho, V[:, :, : found.mean.shape[1]]
    b3, b4 = (b[:, :, None].astype(np.float32) for b in (third, fourth))
    uneven, flat, pull = b3 * V, b4 * V, cube @ b3
    more = uneven.transpose(0, 2, 1) @ (square @ uneven) / 2 + flat.transpose(0, 2, 1) @ (cube @ flat) / 6
    gain = (b3 * pull).sum(axis=(1, 2)) / 12 + (b4 * ((square * square) @ b4)).sum(axis=(1, 2)) / 48
    relative = np.linalg.solve(found.covariance, more)
    change = np.sqrt(np.maximum(np.einsum("pij,pji->p", relative, relative), 0.0))
    share = 1 / np.maximum(1.0, change / MOST_CHANGE)
    return SiteAnswer(
        found.value + share * gain,
        found.mean + share[:, None] * (flat * pull).sum(axis=1) / 6,
        found.covariance + share[:, None, None] * more,
    )


class SiteUnknowns:
    """The unknowns (theta, e_k / v_k of each source but the target) at every point, given the sites."""

    def __init__(self, sources: list[SiteSource], n: int, w: Floats, a: Floats, v: Floats):
        self.sources, self.n, self.w = sources, n, w
        self.squares = [np.einsum("ri,rj->rij", one.difference, one.difference) for one in sources]
        self.size = n
        self.terms: list[list[tuple[Ints, Floats]]] = []
        """Per source: the unknowns that make up its scores, each with its factor (points,)."""
        for k, one in enumerate(sources):
            self.terms.append([(one.items, a[:, k])])
            if v[:, k].any():
                self.terms[k].append((self.size + np.arange(len(one.items)), v[:, k]))
                self.size += len(one.items)

    def normal(self, which: Ints, curvature: list[Floats], linear: list[Floats]) -> tuple[Floats, Floats, Floats]:
        """Log evidence of the sites, mean and covariance of all unknowns, at the points ``which``."""
        Q, q = np.zeros((len(which), self.size, self.size)), np.zeros((len(which), self.size))
        Q[:, np.arange(self.size), np.arange(self.size)] = 1.0
        Q[:, np.arange(self.n), np.arange(self.n)] = self.w[which, None] ** -2
        for k, one in enumerate(self.sources):
            L = one.rest + np.tensordot(curvature[k], self.squares[k], 1)
            r = one.rest_linear + linear[k] @ one.difference
            for at, x in self.terms[k]:
                q[:, at] += x[which, None] * r
                for to, y in self.terms[k]:
                    Q[:, at[:, None], to] += (x * y)[which, None, None] * L
        C: Floats = np.linalg.inv(Q).astype(np.float64, copy=False)
        mean = np.einsum("pij,pj->pi", C, q)
        value = 0.5 * ((q * mean).sum(axis=1) - np.linalg.slogdet(Q)[1]) - self.n * np.log(self.w[which])
        return value, mean, C

    def directions(self, k: int, which: Ints) -> Floats:
        """(points, rows, unknowns): the differences of scores in source k as sums of the unknowns."""
        D = self.sources[k].difference
        found = np.zeros((len(which), len(D), self.size))
        for at, x in self.terms[k]:
            found[:, :, at] += x[which, None, None] * D
        return found

    def differences(self, k: int, which: Ints, mean: Floats, C: Floats) -> tuple[Floats, Floats]:
        """Means and variances (points, rows) of the differences of scores in source k."""
        D, parts = self.sources[k].difference, self.terms[k]
        u: Any = sum(x[which, None] * mean[:, at] for at, x in parts)
        U: Any = sum((x * y)[which, None, None] * C[:, at[:, None], to] for at, x in parts for to, y in parts)
        i, j = D.argmax(axis=1), D.argmin(axis=1)
        variance = U[:, i, i] + U[:, j, j] - 2 * U[:, i, j]
        return u[:, i] - u[:, j], np.maximum(variance, LEAST_VARIANCE)


class Update(NamedTuple):
    """New sites (points, rows), and how far they moved (points,)."""

    curvature: Floats
    linear: Floats
    moved: Floats


def _update(one: SiteSource, d: Floats, variance: Floats, curvature: Floats, linear: Floats) -> Update:
    """Move the sites of a source towards the moments of its votes, if the differences have mean d and a variance."""
    error = np.sqrt(variance)
    _, weight = _tilted(one, d, error, curvature, linear)
    first = weight @ NODES
    second = np.clip(weight @ NODES**2 - first**2, NARROWEST, WIDEST)
    first = np.clip(first, -LONGEST, LONGEST)
    gain = np.maximum((1 / second - 1) / variance, -curvature)
    moved = np.maximum(np.abs(first), np.abs(np.log(second))).max(axis=1)
    return Update(curvature + DAMPING * gain, linear + DAMPING * (d * gain + first / (second * error)), moved)


def _tilted(one: SiteSource, d: Floats, error: Floats, curvature: Floats, linear: Floats) -> tuple[Floats, Floats]:
    """With the votes of a row in the place of its site: the log of the mean likelihood over the site (points, rows),
    and the weights (points, rows, nodes) of the nodes, at which the difference is d and so many errors.
    """
    node = d[:, :, None] + error[:, :, None] * NODES
    log = one.log_likelihood(node) + node * (0.5 * curvature[:, :, None] * node - linear[:, :, None])
    top = log.max(axis=2)
    t = np.exp(log - top[:, :, None]) * NODE_WEIGHTS
    mass = t.sum(axis=2)
    return top + np.log(mass), t / mass[:, :, None]
