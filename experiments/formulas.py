"""What a quick run holds losses and fits to: the formulas in plain Python, and the slope that a fit leaves.

Rankings of twenty queries do not tell one loss from another.  So the quick forms also compare the losses that they fit with
`tests/oracle.py` on short lists with ties, chains with the mean of their step by enumeration, and the weights of a fit with
the minimum of the loss that it names.
"""

import itertools
import math
from collections.abc import Mapping
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

import numpy as np

from experiments.common import ROOT
from placet.data import Lists, Queries
from placet.losses import LOSSES

SIZES = (2, 3, 4, 5, 5, 6)


def oracle() -> ModuleType:
    """tests/oracle.py, by its path: other packages have folders called tests."""
    spec = spec_from_file_location("placet_oracle", ROOT / "tests" / "oracle.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def short_lists(ties: bool, seed: int) -> tuple[np.ndarray, Lists]:
    """Scores and lists of two to six rows: three grades, or all distinct."""
    rng = np.random.default_rng(seed)
    grade = [np.append(rng.integers(0, 3, n - 2), [2, 0]) if ties else rng.permutation(n) for n in SIZES]
    return rng.normal(size=sum(SIZES)), Lists(np.concatenate(grade).astype(float), np.append(0, np.cumsum(SIZES)))


def off_formula(loss: str, params: Mapping[str, Any] | None = None, seed: int = 0, formula: str = "") -> float:
    """Largest difference of a loss and its gradient from its formula, over the largest component of the gradient.

    ``formula`` is the name in tests/oracle.py, that of the loss unless it is given.
    """
    plain, params = oracle(), dict(params or {})
    s, lists = short_lists(not LOSSES[loss].breaks_ties, seed)
    asked = {k: v for k, v in params.items() if k not in ("tol", "random_state")}
    value = LOSSES[loss].per_list(s, lists, **params)
    grad = LOSSES[loss](s, lists, **params)[1]
    worst, largest = 0.0, 0.0
    for k, (a, b) in enumerate(itertools.pairwise(lists.offsets)):
        grade = lists.grade[a:b].tolist()

        def of_list(x: np.ndarray, grade: list[float] = grade) -> float:
            return plain.VALUES[formula or loss](x.tolist(), grade, **asked)

        slope = plain.central_difference(of_list, s[a:b])
        worst = max(worst, abs(of_list(s[a:b]) - value[k]), float(np.abs(slope - grad[a:b]).max()))
        largest = max(largest, float(np.abs(slope).max()))
    return worst / largest


# Chains of the general state of PMOP


def _phi(s: np.ndarray, subset: tuple[int, ...]) -> float:
    return math.exp(sum(s[r] for r in subset) / len(subset))


def gibbs_step(s: np.ndarray, start: tuple[int, ...]) -> dict[tuple[int, ...], float]:
    """Subsets after a sweep from ``start``, with their probabilities."""
    now = {start: 1.0}
    for r in range(len(s)):
        then: dict[tuple[int, ...], float] = {}
        for subset, p in now.items():
            without = tuple(x for x in subset if x != r)
            if not without:
                then[subset] = then.get(subset, 0.0) + p
                continue
            with_it = tuple(sorted((*without, r)))
            share = _phi(s, with_it) / (_phi(s, with_it) + _phi(s, without))
            then[with_it] = then.get(with_it, 0.0) + p * share
            then[without] = then.get(without, 0.0) + p * (1 - share)
        now = then
    return now


def metropolis_step(s: np.ndarray, start: tuple[int, ...], corrected: bool) -> dict[tuple[int, ...], float]:
    """Subsets after a step from ``start``: a uniform size, a uniform subset of that size, accepted by the ratio."""
    n, found = len(s), {start: 0.0}
    for m in range(1, n + 1):
        for other in itertools.combinations(range(n), m):
            ratio = _phi(s, other) / _phi(s, start)
            if corrected:
                ratio *= math.comb(n, m) / math.comb(n, len(start))
            p = min(1.0, ratio) / (n * math.comb(n, m))
            found[other] = found.get(other, 0.0) + p
    found[start] += 1.0 - sum(found.values())
    return found


STEPS = {
    "gibbs": gibbs_step,
    "hastings": lambda s, start: metropolis_step(s, start, True),
    "as printed": lambda s, start: metropolis_step(s, start, False),
}


def off_chain(loss: str, params: Mapping[str, Any], step: str, draws: int = 1000, seed: int = 0) -> float:
    """Root mean square over rows of (mean sampled gradient - its expectation) in standard errors: 1 if the step is right."""
    s, lists = short_lists(True, seed)
    expected = np.zeros(len(s))
    for a, b in itertools.pairwise(lists.offsets):
        order = a + np.argsort(-lists.grade[a:b], kind="stable")
        for grade in np.unique(lists.grade[a:b]):
            left = order[lists.grade[order] <= grade]
            tier = np.flatnonzero(lists.grade[left] == grade)
            expected[left[tier]] -= 1 / len(tier)
            for subset, p in STEPS[step](s[left], tuple(tier.tolist())).items():
                expected[left[list(subset)]] += p / len(subset)
    rng = np.random.default_rng(seed)
    drawn = np.array([LOSSES[loss](s, lists, **params, random_state=rng)[1] for _ in range(draws)])
    error = drawn.std(axis=0) / math.sqrt(draws)
    moves = error > 0
    return float(np.sqrt(np.mean(((drawn.mean(axis=0) - expected)[moves] / error[moves]) ** 2)))


# Fits


def slope_left(loss: str, params: Mapping[str, Any], scores: np.ndarray, table: np.ndarray, queries: Queries) -> float:
    """Largest slope of a loss along a column of ``table`` at the scores of a fit, over the largest where scores are 0."""
    Z = (table - table.mean(axis=0)) / table.std(axis=0)
    at_fit, at_zero = (Z.T @ LOSSES[loss](s, queries.lists(), **params)[1] for s in (scores, np.zeros(len(scores))))
    return float(np.abs(at_fit).max() / np.abs(at_zero).max())
