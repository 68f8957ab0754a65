"""The posterior of two sources of votes by Gibbs sampling: slow and plain, for tests.

The unknowns are the target's scores theta, the judge's scores u, whether it is related at all, and w, a and v, with the
priors that the model page states.  Every sweep moves one unknown after the other by a random walk of Metropolis; widths
and scales are moved with the scores held, and again with the standardized scores held (interweaving).  Chains are
independent and side by side in an array; the Monte Carlo error is that of their means.
"""

from typing import NamedTuple

import numpy as np

SPREAD, SCALE, WIDTH, DOUBT = 3.0, 1.5, 1.0, 0.3


class Draws(NamedTuple):
    """Mean and standard deviation (n,) of the centered scores, the probability that the judge is unrelated, and the
    Monte Carlo standard error of each.
    """

    mean: np.ndarray
    deviation: np.ndarray
    unrelated: float
    mean_error: np.ndarray
    deviation_error: np.ndarray
    unrelated_error: float


def log_likelihood(votes, s):
    """(chains,): of Bradley-Terry at scores s (chains, n); a tie is half a win for either."""
    d = s[:, votes.i] - s[:, votes.j]
    return -np.logaddexp(0, -d) @ (votes.wins_i + votes.ties / 2) - np.logaddexp(0, d) @ (votes.wins_j + votes.ties / 2)


class Chains:
    """Theta, u, log w, log a, log v, whether the judge is related, and the log density of all that, of every chain."""

    def __init__(self, human, judge, chains, rng):
        self.human, self.judge, self.rng, self.n = human, judge, rng, human.n_items
        self.theta, self.u = rng.standard_normal((2, chains, self.n))
        self.w, self.a, self.v = 0.5 * rng.standard_normal((3, chains))
        self.related = rng.random(chains) < 0.5
        self.steps, self.burning = {}, True
        self.said = log_likelihood(human, self.theta), log_likelihood(judge, self.u)
        self.now = self.log_prior(self.theta, self.u, self.w, self.a, self.v) + sum(self.said)

    def log_prior(self, theta, u, w, a, v):
        """(chains,): of scores, log widths and whether the judge is related."""
        off = u - (self.related * np.exp(a))[:, None] * theta
        prior = 2 * w - 0.5 * np.exp(2 * w) / SPREAD**2 - 0.5 * (a / SCALE) ** 2 + v - 0.5 * np.exp(2 * v) / WIDTH**2
        normal = -self.n * w - 0.5 * (theta**2).sum(axis=1) * np.exp(-2 * w)
        own = -self.n * v - 0.5 * (off**2).sum(axis=1) * np.exp(-2 * v)
        return prior + normal + own

    def move(self, name, propose):
        """A random walk: ``propose(step)`` gives the new (theta, u, w, a, v) and the log volume of the map."""
        here = self.theta, self.u, self.w, self.a, self.v
        step = self.steps.setdefault(name, 0.5)
        there, volume = propose(step * self.rng.standard_normal(len(self.w)))
        said = tuple(  # what scores that stay say is known
            known if new is old else log_likelihood(votes, new)
            for known, votes, new, old in zip(self.said, (self.human, self.judge), there, here)
        )
        density = self.log_prior(*there) + sum(said)
        taken = np.log(self.rng.random(len(self.w))) < density - self.now + volume
        self.now, *self.said = (np.where(taken, *pair) for pair in ((density, self.now), *zip(said, self.said)))
        self.theta, self.u, self.w, self.a, self.v = (
            old if new is old else np.where(taken if old.ndim == 1 else taken[:, None], new, old)
            for old, new in zip(here, there)
        )
        if self.burning:
            self.steps[name] = step * np.exp(0.2 * (taken.mean() - 0.44))

    def sweep(self):
        unit = np.eye(self.n)
        for k in range(self.n):
            self.move(f"theta {k}", lambda h, e=unit[k]: ((self.theta + h[:, None] * e, self.u, *self.widths()), 0.0))
            self.move(f"u {k}", lambda h, e=unit[k]: ((self.theta, self.u + h[:, None] * e, *self.widths()), 0.0))
        self.move("shift of theta", lambda h: ((self.theta + h[:, None], self.u, *self.widths()), 0.0))
        self.move("shift of u", lambda h: ((self.theta, self.u + h[:, None], *self.widths()), 0.0))
        for held in (True, False):
            for k, name in enumerate("wav"):
                self.move(f"{name} {held}", lambda h, k=k, held=held: self.changed(k, h, held))
        self.choose_related()

    def widths(self):
        return self.w, self.a, self.v

    def changed(self, k, h, held):
        """Width or scale k moved by h, with the scores held, or with theta / w and (u - a theta) / v held."""
        z = [*self.widths()]
        z[k] = z[k] + h
        if held:
            return (self.theta, self.u, *z), 0.0
        a, new_a = (self.related * np.exp(one) for one in (self.a, z[1]))
        theta = self.theta * np.exp(z[0] - self.w)[:, None]
        off = (self.u - a[:, None] * self.theta) * np.exp(z[2] - self.v)[:, None]
        volume = self.n * (z[0] - self.w + z[2] - self.v)
        return (theta, off + new_a[:, None] * theta, *z), volume

    def choose_related(self):
        off = self.u - np.exp(self.a)[:, None] * self.theta
        gain = 0.5 * ((self.u**2).sum(axis=1) - (off**2).sum(axis=1)) * np.exp(-2 * self.v)
        odds = np.log((1 - DOUBT) / DOUBT) + gain
        self.related = self.rng.random(len(odds)) < 1 / (1 + np.exp(-np.clip(odds, -500, 500)))
        self.now = self.log_prior(self.theta, self.u, self.w, self.a, self.v) + sum(self.said)


def posterior_draws(human, judge, chains=200, sweeps=600, burn=300, seed=0):
    """Means and standard deviations, and their Monte Carlo errors by the chains as batches."""
    at = Chains(human, judge, chains, np.random.default_rng(seed))
    total, square, apart = np.zeros((chains, at.n)), np.zeros((chains, at.n)), np.zeros(chains)
    for k in range(burn + sweeps):
        at.burning = k < burn
        at.sweep()
        if k >= burn:
            centered = at.theta - at.theta.mean(axis=1, keepdims=True)
            total, square, apart = total + centered, square + centered**2, apart + ~at.related
    mean = total.mean(axis=0) / sweeps
    spread = (square - 2 * mean * total) / sweeps + mean**2  # of each chain, about the mean of all
    deviation = np.sqrt(spread.mean(axis=0))

    def error(values):
        return values.std(axis=0, ddof=1) / np.sqrt(chains)

    return Draws(
        mean,
        deviation,
        float(apart.mean() / sweeps),
        error(total / sweeps),
        error(spread) / (2 * deviation),
        float(error(apart / sweeps)),
    )
