"""Standard errors in plain Python: the sandwich over single votes of a Bradley-Terry fit."""

import math

import numpy as np


def sandwich_of_votes(scores, a, b, outcome, weight, items, prior):
    """H^-1 M H^-1 of mean-zero scores, M = G / (G - 1) sum of (weight x gradient)^2 + the prior's precision."""
    n = len(items)
    precision = 0.0 if prior is None else 1 / prior**2
    H, M = precision * np.eye(n), np.zeros((n, n))
    for x, y, won, w in zip(a, b, outcome, weight):
        e = np.zeros(n)
        e[items.index(x)], e[items.index(y)] = 1.0, -1.0
        p = 1 / (1 + math.exp(-float(e @ scores)))
        got = {"a": 1.0, "b": 0.0, "tie": 0.5}[won]
        H += w * p * (1 - p) * np.outer(e, e)
        M += w**2 * (got - p) ** 2 * np.outer(e, e)
    votes = len(weight)
    M = M * votes / (votes - 1) + precision * np.eye(n)
    center = np.eye(n) - 1 / n
    inverse = np.linalg.pinv(H) if prior is None else np.linalg.inv(H)
    return center @ inverse @ M @ inverse @ center
