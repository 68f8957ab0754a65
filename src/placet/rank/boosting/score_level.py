"""The shift and scale that a loss expects of scores: the best constant, and rankers that keep both."""

import numpy as np

from placet.data import Queries
from placet.data.arrays import Floats, Ints
from placet.losses import Bound
from placet.rank.ranker import Ranker

POWERS = 2.0 ** np.arange(-14, 8)
"""Shifts and scales to try first: losses differ by orders of magnitude in those they expect, and are flat elsewhere."""


def best_constant(bound: Bound) -> float:
    """The constant score with the smallest loss; 0 if the loss is shift-invariant.

    A search over powers of 2 is followed by Newton's method.
    """
    if bound.loss.shift_invariant:
        return 0.0
    ones = np.ones(bound.n_rows)
    coarse = float(min([0.0, *POWERS, *-POWERS], key=lambda c: bound.value_and_grad(c * ones)[0]))
    return coarse + bound.best_level(coarse * ones)


class WithLevel(Ranker):
    """Base of rankers whose scores f are fitted as loss(c_0 + c_1 f); ``level_`` is (c_0, c_1), with c_1 > 0.

    They do not change the order, and matter for probabilities.
    """

    level_: Floats

    def _model_scores(self, queries: Queries) -> tuple[Floats, Ints]:
        constant, factor = self.level_
        return constant + factor * self._scores(queries), queries.offsets
