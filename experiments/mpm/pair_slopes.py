"""Slopes of the likelihoods by matrices of pairs, as the paper writes them: what a fit by net wins must bring to zero.

W[i, j] counts how often, or by how much, i was preferred to j.
"""

from collections.abc import Mapping

import numpy as np

from placet.data import Rankings


def pair_counts(ballots: Rankings, ballot: int) -> np.ndarray:
    """(items, items) differences of scores on one ballot, of the pairs that it orders."""
    W = np.zeros((ballots.n_items, ballots.n_items))
    rows = np.arange(ballots.offsets[ballot], ballots.offsets[ballot + 1])
    item, score = ballots.item[rows], ballots.score[rows]
    W[np.ix_(item, item)] = np.maximum(score[:, None] - score[None], 0.0)
    return W


def mpm_slope(W: np.ndarray, s: np.ndarray, t: float, gamma: np.ndarray) -> np.ndarray:
    """Of sum W_ij log p_ij, p_ij ~ exp(t (s_i - s_j) / (gamma_i + gamma_j)) over all i != j."""
    scale = t / (gamma[:, None] + gamma[None])
    p = np.exp((s[:, None] - s[None]) * scale)
    np.fill_diagonal(p, 0.0)
    gap = (W - W.sum() * p / p.sum()) * scale
    return gap.sum(axis=1) - gap.sum(axis=0)


def bradley_terry_slope(W: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Of sum W_ij log(1 / (1 + exp(s_j - s_i)))."""
    pull = W / (1.0 + np.exp(s[:, None] - s[None]))
    return pull.sum(axis=1) - pull.sum(axis=0)


def mpm_slope_left(
    ballots: Rankings, theta: np.ndarray, adherence: Mapping, prior: float, gamma: np.ndarray, instances: int = 3
) -> float:
    """Largest slope of the log posterior at the scores of a fit, over the largest where all are 0; of some instances.

    Agents that are not in ``adherence`` have 1; items that nobody lists take no part in an instance.
    """
    code = np.zeros(len(ballots), int) if ballots.instance is None else ballots.instance
    left = []
    for k in np.unique(code)[:instances]:
        own = np.flatnonzero(code == k)
        there = np.arange(ballots.n_items)
        if ballots.instance is not None:
            there = np.unique(np.concatenate([ballots.item[ballots.offsets[b] : ballots.offsets[b + 1]] for b in own]))
        at_fit, at_zero = -theta[there] / prior**2, np.zeros(len(there))
        for b in own:
            t = 1.0 if ballots.agent is None else adherence.get(ballots.agents[ballots.agent[b]], 1.0)
            W = pair_counts(ballots, int(b))[np.ix_(there, there)]
            at_fit = at_fit + mpm_slope(W, theta[there], t, gamma[there])
            at_zero = at_zero + mpm_slope(W, np.zeros(len(there)), t, gamma[there])
        left.append(np.abs(at_fit).max() / np.abs(at_zero).max())
    return float(max(left))
