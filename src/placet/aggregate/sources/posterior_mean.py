"""The evidence expanded about the posterior mean of the scores instead of their mode.

Few votes make a skewed posterior, whose mean lies farther out than its mode and whose curvature is less there.  With f
the negative log likelihood of a source and C the covariance of its scores, the gradient has the expectation f'(x) +
f'''(x) : C / 2 to first order, and x is the mean where that vanishes, together with the prior's pull.  So each
likelihood's linear term is lowered by f''' : C / 2, and its quadratic is taken at the mean that this gives, in turn.
A source with few votes is also kept as such, for `placet.aggregate.sources.vote_sites`.
"""

from copy import copy

import numpy as np

from placet.aggregate.sources.joint_mode import JointPosterior, Widths
from placet.aggregate.sources.source_likelihood import VoteLikelihood
from placet.aggregate.sources.vote_sites import SiteSource, held_source, site_source
from placet.aggregate.sources.width_evidence import Quadratic, SourceEvidence
from placet.data.arrays import Floats

MOST_ROUNDS, ENOUGH = 3, 0.03
"""Maximum number of expansions, and the move of a score, in standard errors, that needs no other."""

FEW_VOTES, MOST_UNKNOWNS, MOST_ROWS = 100.0, 66, 600
"""Votes become sites where an item is in fewer of a source, on average, than the first, unless there are more unknowns,
or rows of such votes, than the others.
"""

LEAST_SAID, ROUNDING = 0.5, 1e-9
"""The share of what votes say about any difference that what is open beside the scores must leave for them to be sites.
"""

LONGEST, FARTHEST = 1.0, 0.4
"""The longest move of a score in one round, in standard errors, and the longest that a first order may ask for."""


def around_mean(joint: JointPosterior, x: Floats, z: Floats, evidence: SourceEvidence) -> SourceEvidence:
    """The evidence around the mode x, at z = (log w, log a, log v), expanded about the mean.  O(n^3) a source.

    Where the mean seems to lie farther than `FARTHEST` errors from the mode, the first order says nothing: many ties
    beside few wins leave a ridge of scores and tie parameters that is far from quadratic.  Then it is expanded about
    the mode, and ``rough``.
    """
    widths, mode, about_mode, x, farthest = Widths.of(z), x, evidence, x.copy(), 0.0
    for left in reversed(range(MOST_ROUNDS)):
        covariances = score_covariances(evidence, widths, evidence.at(z).covariance)
        bent = _with_skew(evidence, joint, x, covariances)
        new = _means(bent, widths, z)
        moved = [_bounded(m - x[at], C) for m, at, C in zip(new, _places(joint), covariances)]
        far = max(float(np.abs(move / _error(C)).max()) for move, C in zip(moved, covariances))
        farthest = max(farthest, far)
        if not left or far < ENOUGH:
            break
        for move, at in zip(moved, _places(joint)):
            x[at] += move
        evidence = SourceEvidence(joint, x, evidence.free)
    if farthest > FARTHEST:
        evidence, bent, x = about_mode, copy(about_mode), mode
    sites = _sites(evidence, bent, joint, x)
    clear = all(_says_most(one) for one in sites)
    bent.sites = sites if clear else []
    bent.rough = farthest > FARTHEST or not clear
    return bent


def _sites(evidence: SourceEvidence, bent: SourceEvidence, joint: JointPosterior, x: Floats) -> list[SiteSource]:
    """The sources, the target first: few votes as sites at x, others with their ``bent`` quadratics; none if no source
    has few votes, or that is too much work.
    """
    own = [(one, joint.own(x, k)) for k, one in enumerate(joint.others)]
    own = own if joint.target is None else [(joint.target, joint.of_target(x)), *own]
    few = [isinstance(one, VoteLikelihood) and one.votes_per_item < FEW_VOTES for one, _ in own]
    rows = sum(len(one.counts.i) for (one, _), s in zip(own, few) if s)
    if not any(few) or rows > MOST_ROWS or joint.n + sum(len(one.index) for one in joint.others) > MOST_UNKNOWNS:
        return []
    both = zip(_quadratics(evidence, joint), _quadratics(bent, joint))
    return [
        site_source(*place, *plain) if s else held_source(place[0].index, *lowered)
        for s, place, (plain, lowered) in zip(few, own, both)
    ]


def _says_most(one: SiteSource) -> bool:
    """Whether votes say at least `LEAST_SAID` of what they would if tie parameter and effects were known; what is
    known of these does not move with the sites, and would leave a source that says less without a bound.
    """
    known = (one.difference.T * one.curvature) @ one.difference
    said = np.linalg.eigvalsh(one.rest + (1 - LEAST_SAID) * known)
    return bool(said[0] >= -ROUNDING * max(float(np.trace(known)), 1.0))


def _quadratics(evidence: SourceEvidence, joint: JointPosterior) -> list[tuple[Floats, Floats]]:
    """L and r of every source, the target first."""
    found = [((one.vectors * one.values) @ one.vectors.T, one.vectors @ one.rho) for one in evidence.sources]
    if joint.target is None:
        return found
    at = joint.target.index
    return [(evidence.base[np.ix_(at, at)], evidence.linear[at]), *found]


def _places(joint: JointPosterior) -> list[slice]:
    """Where theta, then the own scores of every other source, stand in x."""
    own = [slice(block.start, block.start + len(one.index)) for one, block in zip(joint.others, joint.blocks)]
    return [slice(0, joint.n), *own]


def _error(C: Floats) -> Floats:
    return np.sqrt(np.maximum(np.diag(C), 1e-300))


def _bounded(move: Floats, C: Floats) -> Floats:
    return np.clip(move, -LONGEST * _error(C), LONGEST * _error(C))


def score_covariances(evidence: SourceEvidence, widths: Widths, theta: Floats) -> list[Floats]:
    """Covariances of theta (n, n), as given, and of the own scores of every other source (m, m)."""
    found = [theta]
    for k, one in enumerate(evidence.sources):
        V, den = one.vectors, 1 + one.values * widths.v[k] ** 2
        tied = (widths.a[k] * V / den) @ V.T
        found.append((V * (widths.v[k] ** 2 / den)) @ V.T + tied @ theta[np.ix_(one.items, one.items)] @ tied.T)
    return found


def _with_skew(evidence: SourceEvidence, joint: JointPosterior, x: Floats, covariances: list[Floats]) -> SourceEvidence:
    """The evidence with every linear term lowered by f''' : C / 2."""
    found = copy(evidence)
    found.linear, found.sources = evidence.linear.copy(), []
    if joint.target is not None:
        at = joint.target.index
        found.linear[at] -= joint.target.skew(joint.of_target(x), covariances[0][np.ix_(at, at)])
    for k, (one, likelihood) in enumerate(zip(evidence.sources, joint.others)):
        pull = likelihood.skew(joint.own(x, k), covariances[1 + k])
        found.sources.append(one._replace(rho=one.rho - one.vectors.T @ pull))
    return found


def _means(evidence: SourceEvidence, widths: Widths, z: Floats) -> list[Floats]:
    """Means of theta and of the own scores of every other source."""
    theta = evidence.at(z).mean
    return [theta, *(_own_mean(one, widths.a[k], widths.v[k], theta) for k, one in enumerate(evidence.sources))]


def _own_mean(one: Quadratic, a: float, v: float, theta: Floats) -> Floats:
    V = one.vectors
    return np.asarray(V @ ((v * v * one.rho + a * (V.T @ theta[one.items])) / (1 + one.values * v * v)))
