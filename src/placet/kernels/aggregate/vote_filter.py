"""One pass over dated votes: every score is normal, widens as time passes, and moves with every vote.

Before a vote at time t, item k has mean m_k and variance v_k + drift^2 (t - last_k).  The vote is predicted by the mean
of its probability over x, normal with mean m_i - m_j and variance v_i + v_j + form^2: what is particular to a single
comparison says nothing about later ones.  Then the scores move to the mode of their posterior, with its curvature as
precision.  Votes at the same time see the same scores and their updates add up, so that their order is irrelevant.
"""

import math

import numpy as np

from placet.kernels.jit import jit

BRADLEY_TERRY, RAO_KUPPER, DAVIDSON = 0, 1, 2

MOST_STEPS = 50


@jit()
def vote_slopes(x, tie, model, won, lost, tied):
    """(slope, curvature) in x of -log P of ``won``, ``lost`` and ``tied`` votes between two items that differ by x."""
    if model == DAVIDSON:
        high = max(0.5 * abs(x), tie)
        first, second, level = math.exp(0.5 * x - high), math.exp(-0.5 * x - high), math.exp(tie - high)
        total, n = first + second + level, won + lost + tied
        lead = 0.5 * (first - second) / total
        return n * lead - 0.5 * (won - lost), n * (0.25 * (first + second) / total - lead * lead)
    t, share = (tie, 1.0) if model == RAO_KUPPER else (0.0, 0.5)  # of a tie that each side has as a win
    wins, losses = won + share * tied, lost + share * tied
    p = 1 / (1 + math.exp(min(x - t, 700.0)))  # 1 - P(win)
    q = 1 / (1 + math.exp(min(-x - t, 700.0)))  # 1 - P(loss)
    return losses * q - wins * p, wins * p * (1 - p) + losses * q * (1 - q)


@jit()
def predict_outcomes(d, s, tie, model, node, weight):
    """Probabilities of a win, a loss and a tie, averaged over a difference with mean d and variance s."""
    won = lost = tied = 0.0
    for k in range(len(node)):
        x = d + math.sqrt(s) * node[k]
        if model == DAVIDSON:
            high = max(0.5 * abs(x), tie)
            first, second, level = math.exp(0.5 * x - high), math.exp(-0.5 * x - high), math.exp(tie - high)
            total = first + second + level
            first, second, level = first / total, second / total, level / total
        else:
            t = tie if model == RAO_KUPPER else 0.0
            first, second = 1 / (1 + math.exp(min(t - x, 700.0))), 1 / (1 + math.exp(min(t + x, 700.0)))
            level = max(1 - first - second, 0.0)
        won += weight[k] * first
        lost += weight[k] * second
        tied += weight[k] * level
    return won, lost, tied


@jit()
def posterior_mode(d, s, offset, tie, model, won, lost, tied):
    """(mode, curvature of the votes there) of x, normal with mean d and variance s, after votes that saw x + offset."""
    x = d
    for _ in range(MOST_STEPS):
        slope, curvature = vote_slopes(x + offset, tie, model, won, lost, tied)
        step = (slope + (x - d) / s) / (curvature + 1 / s)
        x -= min(max(step, -5.0), 5.0)
        if abs(step) < 1e-9 * (1 + abs(x)):
            break
    return x, vote_slopes(x + offset, tie, model, won, lost, tied)[1]


@jit()
def log_score(count, probability):
    """-log of the probability of ``count`` such votes."""
    return -count * math.log(max(probability, 1e-300)) if count > 0.0 else 0.0


@jit()
def filter_votes(
    i, j, won, lost, tied, offset, time, tie, model, drift, form, node, weight, mean, variance, last, cost
):
    """Update ``mean``, ``variance`` and ``last`` (items,) by votes ordered by time; ``last`` is NaN before the first.

    ``cost`` (rows,) is -log of the probability that the votes had beforehand.  ``node`` and ``weight``: Gauss-Hermite
    for the standard normal.  O(rows x nodes).
    """
    more, pull = np.zeros(len(mean)), np.zeros(len(mean))
    a = 0
    while a < len(i):
        z = a
        while z < len(i) and time[z] == time[a]:
            for k in (i[z], j[z]):
                if last[k] < time[z]:
                    variance[k] += drift * drift * (time[z] - last[k])
                last[k] = time[z]
            z += 1
        for r in range(a, z):
            k, o = i[r], j[r]
            d, s = mean[k] - mean[o], variance[k] + variance[o]
            first, second, level = predict_outcomes(d + offset[r], s + form * form, tie, model, node, weight)
            cost[r] = log_score(won[r], first) + log_score(lost[r], second) + log_score(tied[r], level)
            if model == BRADLEY_TERRY:
                cost[r] = log_score(won[r] + 0.5 * tied[r], first) + log_score(lost[r] + 0.5 * tied[r], second)
            x, curvature = posterior_mode(d, s, offset[r], tie, model, won[r], lost[r], tied[r])
            gain, cut = (x - d) / s, curvature / (1 + curvature * s)
            for item, sign in ((k, 1.0), (o, -1.0)):
                v = variance[item]
                narrower = max(1 - v * cut, 1e-9)  # variance after the vote over variance before
                more[item] += (1 / narrower - 1) / v
                pull[item] += (mean[item] + sign * v * gain) / (v * narrower) - mean[item] / v
        for r in range(a, z):
            for k in (i[r], j[r]):
                if pull[k] != 0.0 or more[k] != 0.0:
                    precision = 1 / variance[k] + more[k]
                    mean[k] = (mean[k] / variance[k] + pull[k]) / precision
                    variance[k] = 1 / precision
                    more[k] = pull[k] = 0.0
        a = z
