"""NDCG at the depths of the dissertation."""

import numpy as np

from placet.data import Queries
from placet.metrics import ndcg

PLAIN_NETWORK = {"bins": None, "members": 1, "dropout": 0.0, "learning_rate": 1e-3, "l1": 0.0, "batch": 32}
"""Parameters of a plain network of standardized features, as NeuralRanker was when these tables were made."""

DEPTHS = (1, 2, 5, 10)


def ndcgs(s: np.ndarray, queries: Queries) -> dict[int, np.ndarray]:
    """NDCG at each depth, one value per query; queries without anything relevant are NaN and left out of means."""
    return {k: ndcg(s, queries.grade, queries.offsets, k) for k in DEPTHS}
