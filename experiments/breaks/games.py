"""Breaks of the experiment on games."""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from experiments.breaks.mutant import Mutant, after, give

WALK = "games.walk_forward"
FIT, LAWS = "placet.aggregate.games.game_fit", "placet.aggregate.games.game_likelihoods"
FORECAST = "placet.aggregate.result.learned.game_forecast"


def too_sure(chances: Any, *_: Any) -> Any:
    sharp = chances**2
    return sharp / sharp.sum(axis=1, keepdims=True)


def no_draws(chances: Any, *_: Any) -> Any:
    return np.stack([chances[..., 0] + 0.8 * chances[..., 1], 0.2 * chances[..., 1], chances[..., 2]], axis=-1)


def one_partner(found: Any, *_: Any) -> Any:
    """Of every side, only the item of the lowest number."""
    kept = []
    for side in found:
        first = side.indptr[:-1]
        columns = (side.data[first], (np.arange(len(first)), side.indices[first]))
        kept.append(sparse.csr_matrix(columns, shape=side.shape))
    return tuple(kept)


def narrow(posterior: Any, x: Any, max_iter: int) -> Any:
    return replace(posterior, width=(0.02,) * posterior.design.kinds), x


BREAKS = [
    Mutant(WALK, "half-lives ignored", f"{FIT}:decayed_weight", give(lambda games, half_life: games.weight)),
    Mutant(WALK, "forecasts too sure", f"{FORECAST}:GameForecast.chances_of", after(too_sure)),
    Mutant(WALK, "draws given to the first", f"{LAWS}:PoissonGoals.outcomes", after(no_draws)),
    Mutant(WALK, "one partner counted", "placet.aggregate.games.game_design:sides", after(one_partner)),
    Mutant(WALK, "a prior that is never learned", f"{FIT}:_learn", give(narrow)),
]
