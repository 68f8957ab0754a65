"""Kernels as plain Python, for few rows: the same numbers as compiled, and Numba is not imported for them."""

import numpy as np
import pytest
from scipy.special import ndtri

import placet.kernels
from placet import Comparisons, consensus
from placet.kernels import for_rows, interpreted
from placet.kernels.losses import pairs
from placet.stats import normal_quantile

MODELS = ["bradley_terry", "rao_kupper", "davidson"]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("t", [0.01, 0.7, 30.0])
def test_plain_python_computes_what_the_compiled_kernels_do(model, t):
    rng = np.random.default_rng(1)
    theta, i, j = rng.normal(0, 3, 6), rng.integers(0, 3, 40), rng.integers(3, 6, 40)
    theta[0] = 400.0
    control, effect, counts = rng.normal(size=(40, 2)), rng.normal(size=2), rng.integers(0, 4, (3, 40)).astype(float)
    found = []
    for own in (interpreted("losses.pairs"), pairs):
        rows, sums, costs = np.zeros((5, 40)), np.zeros((2, 6)), np.zeros((3, 40))
        getattr(own, f"{model}_sums")(theta, control, effect, t, i, j, *counts, *rows, *sums)
        d = np.empty(40)
        own.advantage(theta, control, effect, i, j, d)
        getattr(own, f"{model}_costs")(d, t, *costs)
        found.append([*rows, *sums, *costs])
    for plain, compiled in zip(*found):
        np.testing.assert_allclose(plain, compiled, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("ties", ["none", "rao-kupper", "davidson"])
@pytest.mark.parametrize("controls", [False, True])
def test_a_fit_to_few_pairs_is_the_same_compiled(ties, controls, monkeypatch):
    given = {"control": {"length": [1.0, -1.0, 0.5, 0.0, 2.0]}} if controls else {}
    votes = Comparisons.from_battles("abcab", "bcaca", ["a", "b", "tie", "tie", "a"], **given)
    few = consensus(votes, "bradley-terry", ties=ties)
    monkeypatch.setattr(placet.kernels, "FEW_ROWS", 0)
    compiled = consensus(votes, "bradley-terry", ties=ties)
    for name in ("scores", "covariance", "prior"):
        np.testing.assert_allclose(getattr(few, name), getattr(compiled, name), rtol=1e-9, atol=1e-12)


def test_the_number_of_rows_alone_decides():
    assert for_rows(pairs, placet.kernels.FEW_ROWS) is interpreted("losses.pairs")
    assert for_rows(pairs, placet.kernels.FEW_ROWS + 1) is pairs


def test_normal_quantiles_are_those_of_scipy():
    for p in (1e-300, 1e-12, 0.005, 0.025, 0.3, 0.5, 0.9, 1 - 1e-12):
        assert normal_quantile(p) == pytest.approx(float(ndtri(p)), rel=1e-13, abs=1e-15)
