"""The joint fit of several sources: mode and evidence in turn, then averages over scales and widths."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from placet import optim
from placet.aggregate.sources.joint_mode import JointPosterior, Widths
from placet.aggregate.sources.paired_votes import PairedEvidence, PairedPosterior, PairedVotes
from placet.aggregate.sources.posterior_mean import around_mean
from placet.aggregate.sources.width_average import average_over_relations
from placet.aggregate.sources.width_evidence import SourceEvidence
from placet.data.arrays import Floats

MOST_ROUNDS, ACCURACY = 30, 0.01
"""Maximum rounds of mode and evidence, and the change of log scales and widths at which they stop."""

MOST_WIDER = 0.5
"""A log width of theta that moves farther than this with the expansion about the mean says that it does not hold."""

FIRST_WIDTH = 0.3


@dataclass(frozen=True)
class SourceFit:
    """``mean`` (n,) and ``covariance`` (n, n) of theta, averaged over z = (log w, log a, log v); ``z`` is its mode and
    ``z_covariance`` its covariance; ``x`` the joint mode at z; ``unrelated`` (others,) the probability that a source
    has nothing to do with theta; ``rough`` if an approximation of last resort had to do.
    """

    joint: JointPosterior
    evidence: SourceEvidence
    x: Floats
    z: Floats
    mean: Floats
    covariance: Floats
    z_covariance: Floats
    unrelated: Floats
    fit: optim.Fit
    rough: bool = False

    @property
    def widths(self) -> Widths:
        return Widths.of(self.z)

    @cached_property
    def _at_mode(self) -> tuple[Floats, Floats]:
        """Covariance (n, n) of theta at z, and slopes (z, n) of its mean."""
        here = self.evidence.at(self.z)
        return here.covariance, self.evidence.derivatives(self.z, here)[2]

    def with_source(self, k: int) -> Floats:
        """Covariance of theta at z, and what the scale and the width of source k leave open."""
        count = len(self.evidence.sources)
        covariance, slope = self._at_mode
        at = [1 + k, 1 + count + k]
        return np.asarray(covariance + slope[at].T @ self.z_covariance[np.ix_(at, at)] @ slope[at])


def fit_sources(target: Any, others: Sequence[Any], n: int, max_iter: int = 200) -> SourceFit:
    """Fit likelihoods (`SourceLikelihood`) of a target (or None) and of other sources to n items.

    Without a target the width w of theta is held at 1, and the sources' scales say how far apart they see the items.
    """
    count = len(others)
    posterior, around = JointPosterior, SourceEvidence  # type: tuple[Any, Any]
    if isinstance(target, PairedVotes):
        posterior, around = PairedPosterior, PairedEvidence
    joint: Any = posterior(target, others, n)
    free = np.ones(1 + 2 * count)
    free[0] = float(target is not None)
    z = np.zeros(1 + 2 * count)
    z[1 + count :] = np.log(FIRST_WIDTH)
    x, converged, steps = joint.start(), False, 0
    for _ in range(MOST_ROUNDS):
        found = joint.mode(x, Widths.of(z), max_iter)
        x, steps = found.x, steps + found.n_iter
        change = _learn_tables(joint, x, z)
        evidence = around(joint, x, free)
        new = evidence.best(z)
        change = max(change, float(np.abs(new - z).max(initial=0.0)))
        z = new
        if change < ACCURACY:
            converged = found.converged
            break
    found = joint.mode(x, Widths.of(z), max_iter)
    evidence = around(joint, found.x, free)
    if others and around is SourceEvidence:  # a table alone keeps its mode, and pairing its own quadratic
        about_mean = around_mean(joint, found.x, z, evidence)
        new = about_mean.best(z)
        if abs(new[0] - z[0]) <= MOST_WIDER:
            evidence, z = about_mean, new
        else:
            evidence.rough = True
    average, unrelated = average_over_relations(evidence, z)
    message = "converged" if converged else f"not converged: scales and widths still move after {MOST_ROUNDS} rounds"
    fit = optim.Fit(found.x, found.value, found.grad_norm, steps + found.n_iter, converged, message)
    spread = average.z_covariance * np.outer(free, free)
    rough = evidence.rough or average.rough
    return SourceFit(joint, evidence, found.x, z, average.mean, average.covariance, spread, unrelated, fit, rough)


def _learn_tables(joint: JointPosterior, x: Floats, z: Floats) -> float:
    """Update what score tables learn beside their abilities; returns the largest change of a logarithm."""
    widths, change = Widths.of(z), 0.0
    if hasattr(joint.target, "learn"):
        change = joint.target.learn(joint.of_target(x), widths.w**-2)
    for k, one in enumerate(joint.others):
        if hasattr(one, "learn"):
            change = max(change, one.learn(joint.own(x, k), float(widths.v[k]) ** -2))
    return change
