"""High-order min factors (dissertation, section 5.2.2): message passing by elementary symmetric polynomials, without
clutter.

Factor j says "the j-th smallest of t_1, ..., t_s is T_j".  Its message to t_i is h1 at t_i = T_j, h2 below and h3
above, where with below_l, at_l, above_l the mass below T_j, the density at T_j and the mass above T_j of the message
from t_l,

    prod_{l != i} (above_l + below_l x + at_l y)  mod y^2

has h1 as the coefficient of x^(j-1), h2 of x^(j-2) y and h3 of x^(j-1) y.  A source may be missed: it is then above
every T_j. The messages from t_i are a density on each interval between the recorded times and an atom at each of
them, so a handful of numbers carries them all.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from placet.data.arrays import Floats


class MinFactorResult(NamedTuple):
    """``log_likelihood`` by the Bethe free energy (exact for one signal); ``probability`` (signals, sources)."""

    log_likelihood: float
    probability: Floats
    n_iter: int
    converged: bool


def messages(below: Floats, at: Floats, above: Floats, rank: int) -> Floats:
    """(h1, h2, h3) of the factor "the ``rank``-th smallest is T" (``rank`` from 1) to each source, (sources, 3).

    O(sources^2 rank).

    >>> messages(np.array([0.5, 0.25]), np.array([1.0, 2.0]), np.array([0.5, 0.75]), rank=1).tolist()
    [[0.75, 0.0, 2.0], [0.5, 0.0, 1.0]]
    """
    s = len(below)
    out = np.zeros((s, 3))
    for i in range(s):
        plain, chosen = np.zeros(rank + 1), np.zeros(rank + 1)  # coefficients of x^k, and of x^k y, kept up to x^rank
        plain[0] = 1.0
        for k in range(s):
            if k != i:
                chosen = above[k] * chosen + below[k] * _shift(chosen) + at[k] * plain
                plain = above[k] * plain + below[k] * _shift(plain)
        out[i] = plain[rank - 1], chosen[rank - 2] if rank > 1 else 0.0, chosen[rank - 1]
    return out


def factor_sum(below: Floats, at: Floats, above: Floats, rank: int) -> float:
    """Sum of the factor against all its messages: the density of the ``rank``-th smallest at T.  O(sources rank)."""
    plain, chosen = np.zeros(rank), np.zeros(rank)
    plain[0] = 1.0
    for k in range(len(below)):
        chosen = above[k] * chosen + below[k] * _shift(chosen) + at[k] * plain
        plain = above[k] * plain + below[k] * _shift(plain)
    return float(chosen[rank - 1])


def min_factor_inference(
    mean: Floats, sigma: Floats, detection: Floats, time: Floats, max_iter=500, tolerance=1e-10
) -> MinFactorResult:
    """Belief propagation on the graph of min factors for a full record ``time`` (signals,) of the earliest signals,
    no clutter.

    ``mean, sigma, detection`` (sources,).  O(signals x sources^2 x signals) for each iteration.
    """
    r, s = len(time), len(mean)
    z = (time[:, None] - mean) / sigma
    density = detection * norm.pdf(z) / sigma  # (signals, sources): at each T_j
    cdf = np.vstack([np.zeros(s), detection * norm.cdf(z), np.ones(s)])  # a missed source is above all
    interval = np.diff(cdf, axis=0)  # (signals + 1, sources): mass between the recorded times
    h = np.ones((r, s, 3)) / 3
    change, iteration = np.inf, 0
    for iteration in range(1, max_iter + 1):
        new = np.array([messages(*_incoming(density, interval, h, j), rank=j + 1) for j in range(r)])
        new /= new.sum(axis=2, keepdims=True)
        new = 0.5 * new + 0.5 * h if iteration > 1 else new  # damped: the graph has short loops
        change = float(np.abs(new - h).max())
        h = new
        if change < tolerance:
            break
    return _bethe(density, interval, h, iteration, change < tolerance)


def _shift(polynomial: Floats) -> Floats:
    """x times the polynomial, the highest power dropped."""
    return np.concatenate([[0.0], polynomial[:-1]])


def _steps(h: Floats, skip: int) -> tuple[Floats, Floats]:
    """Product of all messages but ``skip`` on each interval (signals + 1, sources), and at each other atom (signals,
    sources).
    """
    r = len(h)
    others = [k for k in range(r) if k != skip]
    on = np.array([np.prod([h[k, :, 1] if g <= k else h[k, :, 2] for k in others], axis=0) for g in range(r + 1)])
    at = np.array(
        [
            np.prod([h[k, :, 0] if k == j else h[k, :, 1] if j < k else h[k, :, 2] for k in others], axis=0)
            for j in range(r)
        ]
    )
    shape = (1, h.shape[1])
    return np.broadcast_to(on.reshape(r + 1, -1), (r + 1, shape[1])), np.broadcast_to(at.reshape(r, -1), (r, shape[1]))


def _incoming(density: Floats, interval: Floats, h: Floats, j: int) -> tuple[Floats, Floats, Floats]:
    """Mass below T_j, density at T_j and mass above T_j of the message from each source to factor j, scaled to a sum
    of 1.
    """
    on, atom = _steps(h, j)
    mass, point = interval * on, density * atom
    below = mass[: j + 1].sum(axis=0) + point[:j].sum(axis=0)
    above = mass[j + 1 :].sum(axis=0) + point[j + 1 :].sum(axis=0)
    at = point[j]
    total = below + above + at
    return below / total, at / total, above / total


def _bethe(density: Floats, interval: Floats, h: Floats, n_iter: int, converged: bool) -> MinFactorResult:
    """Bethe free energy: factors plus variables less edges, every message scaled alike in all three."""
    r = len(h)
    on, atom = _steps(h, skip=-1)
    variable = (interval * on).sum(axis=0) + (density * atom).sum(axis=0)
    probability = density * atom / variable
    value = np.log(variable).sum()
    for j in range(r):
        incoming = _incoming(density, interval, h, j)
        value += np.log(factor_sum(*incoming, rank=j + 1))
        below, at, above = incoming
        value -= np.log(at * h[j, :, 0] + below * h[j, :, 1] + above * h[j, :, 2]).sum()
    return MinFactorResult(float(value), probability, n_iter, converged)
