"""Pair models and pairwise losses: sums (not means) over the pairs of each list, d = s_i - s_j, i graded above j.

`PAIR_MODELS` are the models of a single pair, shared by the losses here (lists), the estimators (counts) and `simulate`
(draws).  They have one tie parameter: Rao-Kupper's theta is 1 + e^tie, Davidson's nu is e^tie, and ``tie = -inf`` gives
the Bradley-Terry model, in which ties are impossible.

`ranknet`, `ranksvm` and `rank_regress` ignore tied pairs.  `rao_kupper` and `davidson` assign ties a probability; the
probabilities of win, loss and tie sum to 1.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from placet.data.arrays import Floats
from placet.data.errors import one_of
from placet.kernels.losses import margins, pairs as kernels
from placet.losses.list_columns import ListColumns, read_only
from placet.losses.loss import Kernel, Plan


def log_theta(tie: float) -> float:
    """t = log(1 + e^tie), in which Rao-Kupper's negative log likelihood is convex."""
    return float(np.logaddexp(0.0, tie))


def tie_of_log_theta(t: float) -> tuple[float, float, float]:
    """The tie parameter log(e^t - 1), t > 0, and its first and second derivatives."""
    g = -math.expm1(-t)
    return t + math.log(g), 1.0 / g, (g - 1.0) / (g * g)


@dataclass(frozen=True)
class PairModel:
    """A model of a single pair: kernels that take the differences d and t, a transform of the tie parameter.

    ``name``: that of its kernels (`kernel`).  ``inner(tie)`` returns t, and ``outer(t)`` the tie parameter with its
    first and second derivatives.  ``reference``: where the model was first published.
    """

    name: str
    reference: str
    inner: Callable[[float], float] = lambda tie: tie
    outer: Callable[[float], tuple[float, float, float]] = lambda t: (t, 1.0, 0.0)

    def kernel(self, what: str) -> Kernel:
        """One of its kernels.

        "costs": negative log probabilities of a win, a loss and a tie.  "slopes": derivatives of the negative log
        likelihood of counts, which is convex in (d, t).  "sums": these at the scores, and their sums by item.
        """
        found: Kernel = getattr(kernels, f"{self.name}_{what}")
        return found


PAIR_MODELS: dict[str, PairModel] = {
    "bradley-terry": PairModel(
        "bradley_terry",
        "Bradley and Terry, Rank analysis of incomplete block designs, Biometrika 1952",
    ),
    "rao-kupper": PairModel(
        "rao_kupper",
        "Rao and Kupper, Ties in paired-comparison experiments, JASA 1967",
        log_theta,
        tie_of_log_theta,
    ),
    "davidson": PairModel(
        "davidson",
        "Davidson, On extending the Bradley-Terry model to accommodate ties, JASA 1970",
    ),
}


def outcome_costs(d: ArrayLike, model: str, tie: float = -math.inf) -> tuple[Floats, Floats, Floats]:
    """Negative log probabilities that the first of a pair wins, loses and ties, at differences d of any shape.

    >>> [float(cost.round(6)) for cost in outcome_costs(0.0, "davidson", 0.0)]  # log 3: all alike
    [1.098612, 1.098612, 1.098612]
    """
    chosen = PAIR_MODELS[one_of(model, PAIR_MODELS, "model") if tie > -math.inf else "bradley-terry"]
    d = np.asarray(d, dtype=np.float64)
    win, loss, tied = np.empty((3, d.size))
    chosen.kernel("costs")(read_only(d.ravel()), chosen.inner(float(tie)), win, loss, tied)
    return win.reshape(d.shape), loss.reshape(d.shape), tied.reshape(d.shape)


TIES = {"none": "bradley-terry", "rao-kupper": "rao-kupper", "davidson": "davidson"}
"""Family of ties -> model of a pair."""


def outcome_probabilities(d: ArrayLike, model: str, tie: float = -math.inf) -> tuple[Floats, Floats, Floats]:
    """Probabilities that the first of a pair wins, loses and ties, at differences d of any shape."""
    win, loss, tied = outcome_costs(d, model, tie)
    return np.exp(-win), np.exp(-loss), np.exp(-tied)


def _plan(lists: ListColumns, value: tuple[object, ...], second: Kernel, *args: object) -> Plan:
    """``second`` computes out_i = sum_j h_ij (v_i - other v_j): diagonal at v = 1, other = 0; products at other = 1."""
    ones = read_only(np.ones(len(lists.grade)))
    return Plan(value, curvature=(second, ones, 0.0, *args), hvp=(second, 1.0, *args))


def ranknet(lists: ListColumns) -> Plan:
    """Logistic: sum over i above j of log(1 + e^{-d}); the Bradley-Terry model.  O(N^2) per list."""
    return _plan(lists, (kernels.ranknet,), kernels.rao_kupper_second, 0.0, False)


def ranksvm(lists: ListColumns) -> Plan:
    """Hinge: sum over i above j of max(0, 1 - d).  O(N log N) per list; the slope at d = 1 is taken as 0.

    The second derivative is that of max(0, 1 - d)^2 / 2, which is nonzero where the hinge slopes; the hinge itself has
    none.
    """
    return _plan(lists, (margins.hinge,), margins.hinge_second)


def rank_regress(lists: ListColumns) -> Plan:
    """Quadratic: sum over i above j of (1 - d)^2.  O(rows)."""
    return _plan(lists, (margins.quadratic,), margins.quadratic_second)


def rao_kupper(lists: ListColumns, *, tie: float = 0.0) -> Plan:
    """Rao-Kupper, theta = 1 + e^tie: P(i > j) = 1 / (1 + theta e^{-d}), P(tie) = (theta^2 - 1) P(i > j) P(j > i).

    - log P(i > j) = softplus(log theta - d), and a tie costs softplus(log theta - d) + softplus(log theta + d)
    - log(theta^2 - 1).  O(N^2) per list.
    """
    eta = log_theta(tie)
    above_one = float(np.logaddexp(math.log(2.0), tie))  # log(theta + 1)
    value = (kernels.rao_kupper, eta, tie + above_one, math.exp(tie - eta), 1.0 + math.exp(tie - above_one))
    return _plan(lists, value, kernels.rao_kupper_second, eta, True)


def davidson(lists: ListColumns, *, tie: float = 0.0) -> Plan:
    """Davidson: a win, a loss and a tie have weights e^{d/2}, e^{-d/2} and e^tie.

    - log P(i > j) = log(e^{d/2} + e^{-d/2} + e^tie) - d/2; a tie has - tie in place of - d/2.  O(N^2) per list.
    """
    return _plan(lists, (kernels.davidson, float(tie)), kernels.davidson_second, float(tie))


def win_probability(x: Any, y: Any, *, family: str, tie: float) -> Any:
    """The probability that an item with score x strictly beats one with score y, without an order effect."""
    return outcome_probabilities(np.subtract(x, y), TIES.get(family, family), tie)[0]
