"""Means of per-list values, and paired comparison of two systems on the same lists."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from placet.data.arrays import refuse_masked_or_complex

CHUNK = 1 << 20  # draws in memory at a time


@dataclass(frozen=True)
class MeanSummary:
    """Mean over the lists with a defined value, its standard error, and the numbers of defined and undefined lists.

    >>> import placet
    >>> found = placet.metrics.summary([1.0, 0.0, 0.5])
    >>> found.mean, found.n_lists, found.n_undefined
    (0.5, 3, 0)
    """

    mean: float
    stderr: float
    n_lists: int
    n_undefined: int


def summary(values: ArrayLike) -> MeanSummary:
    """Mean and standard error (sample deviation over sqrt n) of the values that are not NaN.

    Returns
    -------
    MeanSummary
        The mean, its standard error, and how many values it is of.

    >>> summary([1.0, 0.0, float("nan")])
    MeanSummary(mean=0.5, stderr=0.5, n_lists=2, n_undefined=1)
    """
    values = list_values(values, "values")
    defined = values[~np.isnan(values)]
    n = len(defined)
    mean = float(defined.mean()) if n else float("nan")
    stderr = float(defined.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    return MeanSummary(mean, stderr, n, len(values) - n)


@dataclass(frozen=True)
class PairedDifference:
    """Mean of a - b over lists, its bootstrap interval, and the p-value of a sign-flip test of no difference.

    >>> import placet
    >>> found = placet.metrics.compare([0.9, 0.8, 0.7], [0.6, 0.7, 0.5])
    >>> round(found.difference, 2), found.p_value, found.n_lists
    (0.2, 0.25, 3)
    """

    difference: float
    low: float
    high: float
    level: float
    p_value: float
    n_lists: int
    n_left_out: int


def compare(
    a: ArrayLike,
    b: ArrayLike,
    *,
    n_boot: int = 10_000,
    level: float = 0.95,
    random_state: int | np.random.Generator = 0,
) -> PairedDifference:
    """Compare two systems on the same lists: ``a`` and ``b`` (lists,) are their values of one metric.

    The interval covers the central ``level`` of the means of ``n_boot`` bootstrap samples of lists.  The p-value is the
    fraction of sign patterns of a - b whose mean is at least as far from 0: all 2^n patterns if at most ``n_boot``,
    else ``n_boot`` random ones plus the observed one.  Lists for which either value is NaN are skipped and counted.
    O(n_boot lists).

    Returns
    -------
    PairedDifference
        The mean difference with its interval and p-value.

    >>> compare([0.9, 0.8, 0.7], [0.6, 0.7, 0.5]).p_value  # 2 of 8 sign patterns are as far from 0
    0.25
    """
    a, b = list_values(a, "a"), list_values(b, "b")
    if a.shape != b.shape:
        raise ValueError(f"a has {len(a)} lists and b has {len(b)}; compare values of the same lists in the same order")
    if n_boot < 1 or not 0 < level < 1:
        raise ValueError(f"n_boot is {n_boot} and level {level}; they must be at least 1 and between 0 and 1")
    d = a - b
    if np.isinf(a).any() or np.isinf(b).any():
        raise ValueError(f"{int(np.isinf(a).sum() + np.isinf(b).sum())} values are infinite; they have no mean")
    kept = d[~np.isnan(d)]
    if len(kept) == 0:
        raise ValueError(f"no list is defined in both ({len(d)} left out); there is nothing to compare")
    rng = np.random.default_rng(random_state)
    low, high = np.quantile(_resampled_means(kept, n_boot, rng), [(1 - level) / 2, (1 + level) / 2])
    p_value = _sign_flip_p(kept, n_boot, rng)
    return PairedDifference(float(kept.mean()), float(low), float(high), level, p_value, len(kept), len(d) - len(kept))


def list_values(values: ArrayLike, what: str) -> np.ndarray:
    """Values of lists (lists,) as an array; an error for another shape."""
    refuse_masked_or_complex(values)
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"{what} has shape {values.shape}; it must be (lists,), one value per list")
    return values


def _resampled_means(d: np.ndarray, n_boot: int, rng: np.random.Generator) -> np.ndarray:
    """Means of ``n_boot`` samples with replacement.  O(n_boot lists) time, O(CHUNK) memory."""
    means = np.empty(n_boot)
    step = max(1, CHUNK // len(d))
    for at in range(0, n_boot, step):
        n = min(step, n_boot - at)
        means[at : at + n] = d[rng.integers(0, len(d), (n, len(d)), dtype=np.int32)].mean(axis=1)
    return means


def _sign_flip_p(d: np.ndarray, n_flips: int, rng: np.random.Generator) -> float:
    """Fraction of sign patterns whose sum is at least as far from 0 as the observed one, up to rounding."""
    far = abs(d.sum()) * (1 - 1e-12)
    hits = total = 0
    for signs, observed in sign_patterns(len(d), n_flips, rng):
        hits += int((np.abs(signs @ d) >= far).sum()) + observed
        total += len(signs) + observed
    return hits / total


def sign_patterns(
    n: int, n_flips: int, rng: np.random.Generator, columns: int = 1
) -> Iterator[tuple[np.ndarray, bool]]:
    """Blocks (patterns, n) of signs -1 and 1: all 2^n patterns if at most ``n_flips``, else ``n_flips`` random ones.

    Each block comes with a flag, True only for the last random block: add the observed pattern to those drawn.
    ``columns``: number of sums computed per pattern, which limits the size of a block.
    """
    exact = n < 63 and 2**n <= n_flips
    total = 2**n if exact else n_flips
    step = max(1, CHUNK // max(n, columns))
    for at in range(0, total, step):
        m = min(step, total - at)
        if exact:
            bits = ((np.arange(at, at + m)[:, None] >> np.arange(n)) & 1).astype(np.uint8)
        else:
            bits = np.unpackbits(np.frombuffer(rng.bytes(m * -(-n // 8)), np.uint8).reshape(m, -1), axis=1, count=n)
        yield 2.0 * bits - 1.0, not exact and at + m == total
