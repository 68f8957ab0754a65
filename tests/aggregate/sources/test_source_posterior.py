"""The posterior of the joint fit, against quadrature over everything and against Gibbs sampling."""

import numpy as np
import pytest
from scipy.special import ndtr

from placet.aggregate.sources import vote_sites
from placet.aggregate.sources.source_fit import fit_sources
from placet.aggregate.sources.source_likelihood import VoteLikelihood
from tests.aggregate.sources.gibbs import posterior_draws
from tests.aggregate.sources.test_source_fit import drawn


def fitted(human, judge):
    """The joint fit, and its mean and standard errors of the centered scores."""
    index = np.arange(human.n_items)
    found = fit_sources(VoteLikelihood(human, index, "none"), [VoteLikelihood(judge, index, "none")], human.n_items)
    C = found.covariance - found.covariance.mean(axis=0)
    return found, found.mean - found.mean.mean(), np.sqrt(np.diag(C - C.mean(axis=1, keepdims=True)))


def quadrature(human, judge, found):
    """The exact posterior of three items and two sources: mean and spread of the scores, probability of no relation.

    Votes see only differences, so theta and u have two coordinates each, on grids around the fit; given theta, a and v
    the integral over u is a product of two matrices; w, a and v are sums over their stated priors.
    """
    basis = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])

    def grid(mean, covariance, reach, count):
        middle, error = basis @ mean, np.sqrt(np.diag(basis @ covariance @ basis.T))
        return [np.linspace(m - reach * s, m + reach * s, count) for m, s in zip(middle, error)]

    def likelihood(votes, axes):
        s = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1) @ basis
        d = s[..., votes.i] - s[..., votes.j]
        log = -(np.logaddexp(0, -d) @ votes.wins_i + np.logaddexp(0, d) @ votes.wins_j)
        return s, np.exp(log - log.max())

    own = found.joint.own(found.x, 0)[:3]
    spread = np.linalg.inv(found.joint.others[0].derivatives(own)[1] + 0.1 * np.eye(3))
    ts, us = grid(found.mean, found.covariance, 9, 61), grid(own, 1.5 * spread, 8, 81)
    (theta, people), (_, judged) = likelihood(human, ts), likelihood(judge, us)
    zw, za, zv = np.linspace(-6, 3, 73), np.linspace(-5.5, 4.5, 51), np.linspace(-6, 1.5, 31)
    w, v, square = np.exp(zw), np.exp(zv), (theta**2).sum(axis=-1)
    chance_w, chance_a, chance_v = np.exp(2 * zw - w**2 / 18), np.exp(-0.5 * (za / 1.5) ** 2), np.exp(zv - v**2 / 2)
    prior = sum(p * np.exp(-square / (2 * x * x)) / x**2 for p, x in zip(chance_w / chance_w.sum(), w))
    edges = [np.append(u - (u[1] - u[0]) / 2, u[-1] + (u[1] - u[0]) / 2) for u in us]
    alone, together = 0.0, np.zeros(prior.shape)
    for x, q in zip(v, chance_v / chance_v.sum()):
        for a, p in zip(np.exp(za), chance_a / chance_a.sum()):
            A = [np.diff(ndtr((e - a * t[:, None]) / x), axis=1) for e, t in zip(edges, ts)]
            together += p * q * (A[0] @ judged @ A[1].T)
        near = [np.diff(ndtr(e / x)) for e in edges]
        alone += q * (near[0] @ judged @ near[1])
    related, apart = 0.7 * people * prior * together, 0.3 * people * prior * alone
    weight = (related + apart) / (related + apart).sum()
    assert weight[[0, -1]].sum() + weight[:, [0, -1]].sum() < 1e-4
    mean = (weight[..., None] * theta).sum(axis=(0, 1))
    return (
        mean,
        np.sqrt((weight[..., None] * (theta - mean) ** 2).sum(axis=(0, 1))),
        apart.sum() / (related + apart).sum(),
    )


THREE = [(100, 400, 1.0, 100), (40, 150, 1.4, 40), (40, 150, 0.0, 40), (10, 50, 1.4, 10), (20, 100, 0.0, (20, 0))]
"""Votes of people and of the judge, the judge's scale, and the seed; in the last the first item is never beaten."""


def three_items(people, judged, scale, seed):
    rng = np.random.default_rng(seed)
    truth = np.array([0.9, 0.0, -0.9])
    return drawn(truth, people, rng), drawn(scale * truth, judged, rng)


@pytest.mark.parametrize("case", THREE)
def test_posterior_on_three_items_by_quadrature(case):
    """Mean within a small part of an error, errors within a hundredth, even with ten votes: less than what 1,000
    independent draws would tell (0.03 of an error, and 2 percent).
    """
    human, judge = three_items(*case)
    found, ours, stderr = fitted(human, judge)
    mean, error, unrelated = quadrature(human, judge, found)
    assert (np.abs(ours - mean) < 0.02 * error).all()
    assert stderr == pytest.approx(error, rel=0.01)
    assert found.unrelated[0] == pytest.approx(unrelated, abs=0.01)


def test_what_pairs_of_sites_say_together_is_counted(monkeypatch):
    """Without it, errors are six percent too small where the first item is never beaten."""
    for name in ("THIRD", "FOURTH"):
        monkeypatch.setattr(vote_sites, name, np.zeros(11))
    human, judge = three_items(*THREE[-1])
    found, _, stderr = fitted(human, judge)
    assert (stderr < 0.96 * quadrature(human, judge, found)[1]).all()


@pytest.mark.parametrize(
    ("truth", "people", "judged", "scale", "ties"),
    [
        ([0.9, 0.0, -0.9], 10, 50, 1.4, 0.0),
        ([1.0, 0.4, -0.2, -1.2], 20, 80, 0.0, 0.0),
        ([1.2, 0.5, 0.1, -0.6, -1.2], 40, 200, 1.3, 0.2),
    ],
)
def test_posterior_is_that_of_gibbs_sampling(truth, people, judged, scale, ties):
    """Means, standard deviations and the chance of no relation within three Monte Carlo errors of 200 chains, which
    are those of some thousand independent draws or more; on three items also the chains against quadrature.
    """
    rng = np.random.default_rng(people)
    human, judge = drawn(np.array(truth), people, rng, ties), drawn(scale * np.array(truth), judged, rng, ties)
    found, ours, stderr = fitted(human, judge)
    draws = posterior_draws(human, judge)
    assert (draws.mean_error / draws.deviation).max() < 0.012
    assert (draws.deviation_error / draws.deviation).max() < 0.009
    assert (np.abs(ours - draws.mean) < 3 * draws.mean_error).all()
    assert (np.abs(stderr - draws.deviation) < 3 * draws.deviation_error).all()
    assert abs(found.unrelated[0] - draws.unrelated) < 3 * draws.unrelated_error
    if len(truth) == 3:
        mean, error, unrelated = quadrature(human, judge, found)
        assert (np.abs(mean - draws.mean) < 3 * draws.mean_error).all()
        assert (np.abs(error - draws.deviation) < 3 * draws.deviation_error).all()
        assert abs(unrelated - draws.unrelated) < 3 * draws.unrelated_error
