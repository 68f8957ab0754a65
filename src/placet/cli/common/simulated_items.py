"""Items of simulated data, as ``placet simulate`` and ``placet demo`` make them: names and true scores."""

from typing import Any


def names(n: int) -> list[str]:
    """Names item-1, item-2, ..."""
    return [f"item-{k + 1}" for k in range(n)]


def truth(n: int, spread: float, seed: int) -> Any:
    """True scores, decreasing in the item's number."""
    import numpy as np

    return spread * np.sort(np.random.default_rng(seed).standard_normal(n))[::-1]
