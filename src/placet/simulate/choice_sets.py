"""Simulated choices among alternatives, by persons who may differ in taste."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from placet.simulate.orders import Seed


def choices(
    coefficients: Mapping[str, float],
    n_choices: int,
    *,
    alternatives: int = 4,
    per_agent: int = 1,
    spread: float = 0.0,
    random_state: Seed = 0,
) -> dict[str, Any]:
    """A long table of choices: columns agent, choice_set, alternative, chosen, and the attributes, standard normal.

    A person, who chooses ``per_agent`` times, has coefficients b + ``spread`` * normal and chooses i with probability
    e^(x_i b) / sum_j e^(x_j b).  O(n_choices * alternatives).

    Returns
    -------
    dict
        Column name -> values, as `choice` and data frames take them.

    >>> rows = choices({"price": -1.0}, 3, alternatives=2, random_state=0)
    >>> rows["choice_set"].tolist(), int(rows["chosen"].sum())
    ([1, 1, 2, 2, 3, 3], 3)
    """
    if alternatives < 2 or per_agent < 1 or n_choices < 1:
        raise ValueError("choices need at least 2 alternatives, and 1 choice of each person")
    rng = np.random.default_rng(random_state)
    mean = np.array([float(value) for value in coefficients.values()])
    X = rng.standard_normal((n_choices, alternatives, len(mean)))
    agent = np.arange(n_choices) // per_agent
    taste = mean + spread * rng.standard_normal((int(agent[-1]) + 1, len(mean)))
    s = np.einsum("cak,ck->ca", X, taste[agent]) + rng.gumbel(size=(n_choices, alternatives))
    each = lambda column: np.repeat(column + 1, alternatives)  # noqa: E731
    return {
        "agent": each(agent),
        "choice_set": each(np.arange(n_choices)),
        "alternative": np.tile(np.arange(1, alternatives + 1), n_choices),
        "chosen": (s == s.max(axis=1, keepdims=True)).astype(np.int64).ravel(),
        **{name: X[:, :, k].ravel() for k, name in enumerate(coefficients)},
    }
