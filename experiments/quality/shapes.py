"""Simulated queries with known shapes of the truth, at any size, from one documented generator.

A query has ``rows`` rows on average, ``ROWS`` if nothing is said (from half to one and a half times as many), and a row has ``n_features`` features, of which the truth reads
the first ``READ``.  Features are normal; half of their variance is common to the rows of a query (its length, its topic), and the last
features are noisy copies of the first ones, as a search engine's features are.  The truth f is scaled to variance 1 within queries, noise with the
deviation ``NOISE`` is added, and grades are cut at quantiles of the sum over all rows, so that queries differ in the number of relevant rows.

| shape | f | grades |
|---|---|---|
| additive | sum of tanh, sin, squares and ramps of one feature each | 0 to 4, each half as common as the one below |
| interactions | products of two features, and slopes that change sign with a third | 0 to 4 |
| steps | jumps at random thresholds of one or two features | 0 to 4 |
| heavy-tailed | as additive; features are then replaced by e^(|z|^1.5 sign z), and by 0 where z < -0.43, a third of the rows | 0 to 4 |
| few relevant | additive and interactions in equal parts | 0 and 1, 2 % of the rows |
| binary | additive and interactions in equal parts | 0 and 1, 30 % of the rows |
| graded | additive, interactions and steps in equal parts | 0 to 4 in equal shares: many relevant |
"""

import numpy as np

from placet.data import Queries
from placet.data.arrays import offsets_from_sizes

ROWS, READ, NOISE = 40, 20, 0.7

HALVES = tuple(0.5 ** np.arange(1, 6))
SHARES: dict[str, tuple[float, ...]] = {
    "additive": HALVES,
    "interactions": HALVES,
    "steps": HALVES,
    "heavy-tailed": HALVES,
    "few relevant": (0.98, 0.02),
    "binary": (0.7, 0.3),
    "graded": (0.2,) * 5,
}
"""Shape -> the share of each grade, from 0 up."""

PARTS: dict[str, tuple[str, ...]] = {
    "few relevant": ("additive", "interactions"),
    "binary": ("additive", "interactions"),
    "graded": ("additive", "interactions", "steps"),
    "heavy-tailed": ("additive",),
}
"""Shape -> the terms of its truth, if it is not a term itself."""


def additive(Z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Sum over features of one of four curves, with a random weight and place."""
    total = np.zeros(len(Z))
    for k, z in enumerate(Z.T):
        x = rng.uniform(0.5, 2.0) * (z - rng.normal(scale=0.5))
        total += rng.normal() * (np.tanh(x), np.sin(2 * x), np.minimum(x * x, 4.0), np.maximum(x, 0.0))[k % 4]
    return total


def interactions(Z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Sum of products of two features, and of slopes whose sign is that of another feature."""
    total = np.zeros(len(Z))
    for k in range(Z.shape[1]):
        i, j = rng.choice(Z.shape[1], 2, replace=False)
        total += rng.normal() * Z[:, i] * (np.tanh(Z[:, j]) if k % 2 else np.sign(Z[:, j] - rng.normal(scale=0.5)))
    return total


def steps(Z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Sum of jumps where one feature, or two together, pass a threshold."""
    total = np.zeros(len(Z))
    for k in range(2 * Z.shape[1]):
        i, j = rng.choice(Z.shape[1], 2, replace=False)
        above = Z[:, i] > rng.normal(scale=0.8)
        total += rng.normal() * (above & (Z[:, j] > rng.normal(scale=0.8)) if k % 2 else above)
    return total


TERMS = {"additive": additive, "interactions": interactions, "steps": steps}


def simulated(shape: str, n_queries: int, n_features: int, seed: int, draw: int = 0, *, rows: int = ROWS) -> Queries:
    """Queries of a shape, with ``rows`` rows on average; equal ``seed`` is the same truth, equal ``draw`` too the same rows."""
    law = np.random.default_rng([seed, sorted(SHARES).index(shape)])
    rng = np.random.default_rng([seed, sorted(SHARES).index(shape), 1 + draw])
    size = rng.integers(rows // 2, 3 * rows // 2 + 1, n_queries)
    query = np.repeat(np.arange(n_queries), size)
    n, read = len(query), min(READ, n_features)
    copied = law.integers(0, read, n_features - read)
    Z = np.empty((n, n_features), np.float32)
    for k in range(n_features):
        if k < read:
            Z[:, k] = np.sqrt(0.5) * (rng.standard_normal(n) + rng.standard_normal(n_queries)[query])
        else:
            Z[:, k] = 0.5 * Z[:, copied[k - read]] + np.sqrt(0.75) * rng.standard_normal(n)
    truth = np.zeros(n)
    for part in PARTS.get(shape, (shape,)):
        term = TERMS[part](Z[:, :read].astype(np.float64), law)
        truth += term / within(term, query)
    latent = truth / within(truth, query) + NOISE * rng.standard_normal(n)
    if shape == "heavy-tailed":
        tail = np.exp(np.sign(Z) * np.abs(Z) ** 1.5)  # increasing in Z: the order of the rows is kept
        Z = np.where(Z < -0.43, 0.0, tail).astype(np.float32)
    bounds = np.quantile(latent, np.cumsum(SHARES[shape])[:-1])
    return Queries(Z, np.searchsorted(bounds, latent, side="right").astype(np.float64), offsets_from_sizes(size))


def within(x: np.ndarray, query: np.ndarray) -> float:
    """Standard deviation of ``x`` within queries."""
    mean = np.bincount(query, x) / np.bincount(query)
    return float((x - mean[query]).std())
