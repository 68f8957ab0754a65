"""High-order min factors with clutter (dissertation, sections 5.2.2 and 5.4.1): messages by symmetric polynomials.

Signal k is clutter (J_k = 1) or the arrival of a source (J_k = 0).  With m = J_1 + ... + J_{k-1}, factor k requires

    J_k = 0:  T_k is the (k - m)-th smallest of t_1, ..., t_s
    J_k = 1:  exactly k - 1 - m of t_1, ..., t_s are below T_k

Equation 5.68 has 1 in the second line, which ignores sources that would have arrived before a last signal that is
clutter; with the line above, the product of all factors is the sum over associations of
``placet.tracking.observation_model`` (a test enumerates both).  If the record is not full, there is one more count at
the end of the window.

With below_l, at_l, above_l the mass below T_k, the density at T_k and the mass above T_k of the message from t_l, let
plain_c and chosen_c be the coefficients of x^c and of x^c y in prod_l (above_l + below_l x + at_l y), excluding the
source that receives the message.  The J enter only through m, so a sum over counts replaces the 2^r terms of equations
5.70 and 5.71.  A source may be missed: it is then above every T_k.  The messages from t_i consist of a density on each
interval between the recorded times and an atom at each of them, so a handful of numbers represents them.

The graph has short loops.  If signals compete, its Bethe free energy is a few tenths below the exact sum, and the
messages may not converge; the result says by how much it is off.  The tracker uses the exact sum, or the bipartite
graph (``placet.kernels.tracking.belief_propagation``).
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from placet.data.arrays import Floats
from placet.kernels.tracking import association
from placet.tracking.observation_model import EXACT_LIMIT
from placet.tracking.observations import UNKNOWN


class MinFactorResult(NamedTuple):
    """Result of belief propagation.

    ``log_likelihood`` is from the Bethe free energy (exact for one signal in a full record); ``probability`` (signals,
    sources) and ``clutter`` (signals,) are the probabilities of each signal's origin.  ``error``: ``log_likelihood``
    minus the exact sum over associations; None beyond 10 signals, where that is not computed.
    """

    log_likelihood: float
    probability: Floats
    clutter: Floats
    n_iter: int
    converged: bool
    error: float | None = None


class FactorMessages(NamedTuple):
    """Outgoing messages: ``to_source`` (sources, 3) for t_i at, below and above T_k; ``to_clutter`` (k, 2) for J_1,
    ..., J_k at 0 and 1; ``total``, the sum over everything.
    """

    to_source: Floats
    to_clutter: Floats
    total: float


def polynomials(below: Floats, at: Floats, above: Floats, degree: int) -> tuple[Floats, Floats]:
    """plain_c and chosen_c (degree + 1,) of the product over all given sources.  O(sources x degree)."""
    plain, chosen = np.zeros(degree + 1), np.zeros(degree + 1)
    plain[0] = 1.0
    for k in range(len(below)):
        chosen = above[k] * chosen + below[k] * _shift(chosen) + at[k] * plain
        plain = above[k] * plain + below[k] * _shift(plain)
    return plain, chosen


def factor_messages(below: Floats, at: Floats, above: Floats, clutter: Floats) -> FactorMessages:
    """Messages of factor k, given those of the sources and those of J_1, ..., J_k in ``clutter`` (k, 2).

    O(sources^2 k + k^2).

    >>> below, at, above = np.array([[0.5, 0.25], [1.0, 2.0], [0.5, 0.75]])
    >>> sent = factor_messages(below, at, above, np.array([[1.0, 0.0]]))
    >>> sent.to_source.tolist()  # the smallest is T_1, and nothing is clutter
    [[0.75, 0.0, 2.0], [0.5, 0.0, 1.0]]
    """
    k = len(clutter) - 1  # signals before this one
    earlier, (true, false) = clutter[:-1], clutter[-1]
    weight = _counts(earlier)[::-1]  # of c = k - m sources below T_k
    s = len(below)
    to_source = np.empty((s, 3))
    for i in range(s):
        others = np.arange(s) != i
        plain, chosen = polynomials(below[others], at[others], above[others], k)
        mixed = true * chosen + false * plain
        to_source[i] = weight @ (true * plain), weight[1:] @ mixed[:-1], weight @ mixed
    plain, chosen = polynomials(below, at, above, k)
    mixed = (true * chosen + false * plain)[::-1]  # by m
    to_clutter = np.empty((k + 1, 2))
    to_clutter[k] = weight @ chosen, weight @ plain
    for i in range(k):
        rest = _counts(np.delete(earlier, i, axis=0))
        to_clutter[i] = rest @ mixed[:-1], rest @ mixed[1:]
    return FactorMessages(to_source, to_clutter, float(weight @ mixed[::-1]))


def min_factor_inference(
    mean: Floats, sigma: Floats, detection: Floats, time: Floats, *, clutter: Floats | None = None,
    expected_clutter: float = 0.0, low: float = -np.inf, end: float | None = None, max_iter: int = 500,
    tolerance: float = 1e-10,
) -> MinFactorResult:  # fmt: skip
    """Belief propagation on the graph of min factors for the recorded ``time`` (signals,) of the earliest signals.

    Parameters
    ----------
    mean, sigma, detection : (sources,)
    time : (signals,), increasing
    clutter : (signals,), clutter intensity lambda p_N(T_j); none by default
    expected_clutter : mean number of clutter signals before the last recorded one (before ``end`` if that is given)
    low : start of the window
    end : end of the window if the record is not full; None for a full record
    max_iter, tolerance : maximum number of iterations, and the change in messages at which they stop

    O(signals^2 sources^2) per iteration.

    Returns
    -------
    MinFactorResult
        The log likelihood, and the source of each signal.

    >>> mean, sigma, detection, time = np.array([[1.0, 3.0], [0.1, 0.1], [0.9, 0.9], [1.05, 2.9]])
    >>> found = min_factor_inference(mean, sigma, detection, time)
    >>> found.probability.round(2)
    array([[1., 0.],
           [0., 1.]])
    """
    r, s = len(time), len(mean)
    prior = np.column_stack([np.ones(r), np.zeros(r) if clutter is None else clutter])
    cut = time if end is None else np.append(time, end)
    z = (cut[:, None] - mean) / sigma
    density = detection * norm.pdf(z) / sigma  # (factors, sources): at each T_k
    if end is not None:  # nothing is recorded at the end: only a count
        density[-1] = 0.0
        prior = np.vstack([prior, [0.0, 1.0]])
    before = detection * norm.cdf((low - mean) / sigma)
    inside = np.vstack([np.zeros(s), detection * norm.cdf(z) - before])
    interval = np.vstack([np.diff(inside, axis=0), 1 - inside[-1]])  # missed, too early or too late: above all
    h, g = np.full((len(cut), s, 3), 1 / 3), np.full((len(cut), len(cut), 2), 0.5)  # to t_i; g[k, l] to J_l, l <= k
    change, iteration, sent = np.inf, 0, []
    for iteration in range(1, max_iter + 1):
        sent = _send(density, interval, prior, h, g)
        if not all(message.total > 0 for message in sent):
            return MinFactorResult(-np.inf, np.zeros((r, s)), np.zeros(r), iteration, True)
        new_h, new_g = np.array([message.to_source for message in sent]), g.copy()
        for k, message in enumerate(sent):
            new_g[k, : k + 1] = message.to_clutter
        share = 1.0 if iteration == 1 else 0.5  # damped: the graph has short loops
        change = 0.0
        for new, old in ((new_h, h), (new_g, g)):
            new /= new.sum(axis=-1, keepdims=True)
            new += (1 - share) * (old - new)
            change = max(change, float(np.abs(new - old).max()))
        h, g = new_h, new_g
        if change < tolerance:
            break
    value, probability, false = _bethe(density, interval, prior, h, g)
    value -= expected_clutter
    error = None
    if r <= EXACT_LIMIT:
        last = float(cut[-1]) if len(cut) else low
        error = value - _exact_sum(mean, sigma, detection, time, prior[:r, 1], expected_clutter, low, last)
    return MinFactorResult(value, probability[:r], false[:r], iteration, change < tolerance, error)


def _exact_sum(
    mean: Floats,
    sigma: Floats,
    detection: Floats,
    time: Floats,
    clutter: Floats,
    expected: float,
    low: float,
    cut: float,
) -> float:
    """Log of the sum over all associations, by `placet.kernels.tracking.association`."""
    columns = [np.ascontiguousarray(column, np.float64) for column in (mean, sigma, detection, time, clutter)]
    step = association.SignalStep(
        shift=columns[0],
        speed=np.ones(len(mean)),
        sigma=columns[1],
        detection=columns[2],
        low=float(low),
        cut=cut,
        time=columns[3],
        clutter=columns[4],
        label=np.full(len(time), UNKNOWN),
        level=np.zeros(1),
        log_level=np.full(1, -float(expected)),
        ranked=True,
    )
    out = np.zeros(1)
    association.log_sums(np.zeros((1, len(mean))), step, True, out, np.empty((0, 0, 0)))
    return float(out[0])


def _send(density: Floats, interval: Floats, prior: Floats, h: Floats, g: Floats) -> list[FactorMessages]:
    """Messages of every factor."""
    return [
        factor_messages(*_from_sources(density, interval, h, k), _from_clutter(prior, g, k)) for k in range(len(prior))
    ]


def _shift(polynomial: Floats) -> Floats:
    """x times the polynomial, with the highest power dropped."""
    return np.concatenate([[0.0], polynomial[:-1]])


def _counts(messages: Floats) -> Floats:
    """Weights of 0, 1, ..., n ones among n binary variables with messages (n, 2)."""
    out = np.ones(1)
    for none, one in messages:
        out = np.convolve(out, [none, one])
    return out


def _from_clutter(prior: Floats, g: Floats, k: int) -> Floats:
    """Messages (k + 1, 2) of J_1, ..., J_k to factor k: prior times the other factors' messages, scaled to sum 1."""
    out = np.array([prior[i] * np.prod(np.delete(g[i:, i], k - i, axis=0), axis=0) for i in range(k + 1)])
    return out / out.sum(axis=1, keepdims=True)


def _products(h: Floats, skip: int) -> tuple[Floats, Floats]:
    """Products of all messages except ``skip``: on intervals (factors + 1, sources) and at atoms (factors, sources)."""
    n, s = h.shape[:2]
    others = [k for k in range(n) if k != skip]
    on, at = np.ones((n + 1, s)), np.ones((n, s))
    for k in others:
        on[: k + 1] *= h[k, :, 1]
        on[k + 1 :] *= h[k, :, 2]
        at[:k] *= h[k, :, 1]
        at[k] *= h[k, :, 0]
        at[k + 1 :] *= h[k, :, 2]
    return on, at


def _from_sources(density: Floats, interval: Floats, h: Floats, k: int) -> tuple[Floats, Floats, Floats]:
    """Mass below T_k, density at T_k and mass above T_k of the message from each source, scaled to sum 1."""
    on, atom = _products(h, k)
    mass, point = interval * on, density * atom
    below = mass[: k + 1].sum(axis=0) + point[:k].sum(axis=0)
    above = mass[k + 1 :].sum(axis=0) + point[k + 1 :].sum(axis=0)
    total = below + above + point[k]
    return below / total, point[k] / total, above / total


def _bethe(density: Floats, interval: Floats, prior: Floats, h: Floats, g: Floats) -> tuple[float, Floats, Floats]:
    """Bethe free energy (variables plus factors minus edges), P(signal from source), P(signal is clutter)."""
    n = len(h)
    on, atom = _products(h, skip=-1)
    variable = (interval * on).sum(axis=0) + (density * atom).sum(axis=0)
    belief = np.array([prior[i] * np.prod(g[i:, i], axis=0) for i in range(n)])
    value = np.log(variable).sum() + np.log(belief.sum(axis=1)).sum()
    for k in range(n):
        below, at, above = _from_sources(density, interval, h, k)
        clutter = _from_clutter(prior, g, k)
        value += np.log(factor_messages(below, at, above, clutter).total)
        value -= np.log(at * h[k, :, 0] + below * h[k, :, 1] + above * h[k, :, 2]).sum()
        value -= np.log((clutter * g[k, : k + 1]).sum(axis=1)).sum()
    return float(value), density * atom / variable, belief[:, 1] / belief.sum(axis=1)
