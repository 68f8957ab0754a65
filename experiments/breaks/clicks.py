"""Breaks of the experiment on clicks."""

from dataclasses import replace
from typing import Any

import numpy as np

from experiments.breaks.mutant import Mutant, after, always

LETOR = "clicks.letor"
CLICKS = "placet.rank.clicks"


def anywhere(log: Any, *_: Any) -> Any:
    """Clicks fall on any row shown."""
    return replace(log, clicked=np.random.default_rng(0).permutation(log.clicked))


BREAKS = [
    Mutant(LETOR, "positions forgotten", f"{CLICKS}:fit_clicks", always(debias=False)),
    Mutant(
        LETOR, "the worst on held-out clicks is kept", f"{CLICKS}:click_likelihood", after(lambda value, *_: -value)
    ),
    Mutant(LETOR, "clicks on any row", "experiments.clicks.letor:clicks", after(anywhere)),
    Mutant(LETOR, "the naive ranker knows the positions", "experiments.clicks.letor:fit_clicks", always(debias=True)),
]
