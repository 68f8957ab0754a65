"""NDCG at the depths of the dissertation."""

import numpy as np

from placet.data import Queries
from placet.metrics import ndcg

DEPTHS = (1, 2, 5, 10)


def ndcgs(s: np.ndarray, queries: Queries) -> dict[int, np.ndarray]:
    """NDCG at each depth, one value per query; queries without anything relevant are NaN and left out of means."""
    return {k: ndcg(s, queries.grade, queries.offsets, k) for k in DEPTHS}
