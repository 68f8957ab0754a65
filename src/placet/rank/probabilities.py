"""Probabilities under the fitted model: of orders, of pairs and of tiers, and their calibration."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.data import DataError, Lists, Queries
from placet.data.arrays import Floats, Ints, frozen
from placet.data.engines.memory import refuse_table
from placet.kernels.losses import softmax
from placet.kernels.rank import rank_distribution as kernels
from placet.losses import LOSSES, Bound
from placet.losses.pairwise import PAIR_MODELS, outcome_costs, outcome_probabilities
from placet.rank.query_rows import in_order_of
from placet.rank.tier_probabilities import first_shares, pair_outcomes, refuse_stages, stage_potential


def refuse_unless_order(loss: str) -> None:
    """Raise a ``ValueError`` unless the loss defines a distribution over orders."""
    if law_of(loss) != "order":
        raise ValueError(
            f"loss {loss!r} gives no probability of an order; fit with one of {_losses_with('order')} for that"
            + (" (pairwise_probability is defined)" if law_of(loss) == "pairs" else "")
        )


def refuse_unless_pairs(loss: str) -> None:
    """Raise a ``ValueError`` unless the loss defines the probability of a pair."""
    if law_of(loss) not in ("order", "pairs") and stage_potential(loss) is None:
        by_tiers = [name for name in _losses_with("partition") if stage_potential(name) is not None]
        raise ValueError(
            f"loss {loss!r} gives no probability that one row is above another; "
            f"fit with one of {_losses_with('order', 'pairs') + by_tiers} for that"
        )


def law_of(loss: str) -> str | None:
    """What the loss is a likelihood of, or None; also None for a name not in ``LOSSES``."""
    return LOSSES[loss].law if loss in LOSSES else None


def _losses_with(*laws: str) -> list[str]:
    return [name for name, record in LOSSES.items() if record.law in laws]


def refuse_unless_first(loss: str) -> None:
    """Raise a ``ValueError`` unless the loss defines the probability of being first."""
    if stage_potential(loss) is None:
        refuse_unless_order(loss)


def first_probability(s: Floats, offsets: NDArray[np.int64], loss: str, params: Mapping[str, Any]) -> Floats:
    """The probability that each row comes first in its list: `top1`, or where rows tie, `first_shares`."""
    if stage_potential(loss) is None:
        return top1(s, offsets)
    refuse_stages(loss, params)
    return first_shares(s, offsets, loss)


def top1(s: Floats, offsets: NDArray[np.int64]) -> Floats:
    """Softmax of the scores of each list: the probability that each row comes first in an order without ties.

    >>> top1(np.array([0.0, 0.0, 1000.0, 0.0]), np.array([0, 2, 4])).round(6)
    array([0.5, 0.5, 1. , 0. ])
    """
    out = np.empty(len(s))
    for a, b in pairwise(offsets):
        if b > a:
            softmax.softmax(s, a, b, out)
    return out


def probability_above(gap: ArrayLike, loss: str, params: Mapping[str, Any]) -> Floats:
    """P(i above j) at ``gap`` = s_i - s_j.

    Plackett-Luce and Bradley-Terry: 1 / (1 + e^-gap).  Rao-Kupper: 1 / (1 + theta e^-gap), theta = 1 + e^tie.
    Davidson: e^(gap / 2) / (e^(gap / 2) + e^(-gap / 2) + e^tie).  In the last two, the rest is P(tied).

    >>> probability_above([0.0], "ranknet", {}), probability_above([0.0], "davidson", {"tie": 0.0})
    (array([0.5]), array([0.33333333]))
    """
    model = loss if loss in PAIR_MODELS else "bradley-terry"
    return outcome_probabilities(gap, model, params.get("tie", 0.0))[0]


def pair_probabilities(s: Floats, i: Ints, j: Ints, loss: str, params: Mapping[str, Any]) -> tuple[Floats, Floats]:
    """P(row i above row j) and P(below) in the list of scores ``s``; they depend on other rows only if tiers do."""
    if stage_potential(loss) is not None:
        refuse_stages(loss, params)
        return pair_outcomes(s, i, j, loss)
    gap = s[i] - s[j]
    return probability_above(gap, loss, params), probability_above(-gap, loss, params)


def above_in_lists(
    s: Floats, which: Ints | None, i: ArrayLike, j: ArrayLike, loss: str, params: Mapping[str, Any]
) -> Floats:
    """P(row i above row j) within their list; ``which`` (rows,) numbers the lists, None if each row of s is one."""
    one, other = np.broadcast_arrays(np.asarray(i), np.asarray(j))
    if which is None:
        columns = [pair_probabilities(row, one.ravel(), other.ravel(), loss, params)[0] for row in s]
        return np.array(columns).reshape(len(s), *one.shape)
    out, shape = np.empty(one.size), one.shape
    one, other = np.arange(len(s))[one.ravel()], np.arange(len(s))[other.ravel()]
    apart = np.flatnonzero(which[one] != which[other])
    if len(apart):
        raise ValueError(
            f"rows {one[apart[0]]} and {other[apart[0]]} are in different lists ({len(apart)} such pairs); loss "
            f"{loss!r} gives probabilities within a list"
        )
    for number in np.unique(which[one]):
        rows, asked = np.flatnonzero(which == number), np.flatnonzero(which[one] == number)
        at = np.searchsorted(rows, one[asked]), np.searchsorted(rows, other[asked])
        out[asked] = pair_probabilities(s[rows], *at, loss, params)[0]
    return out.reshape(shape)[()]


def refuse_unless_tiers(loss: str) -> None:
    """Raise a ``ValueError`` unless the loss defines a probability of ties."""
    if loss in _TIERS:
        return
    if stage_potential(loss) is not None:
        raise ValueError(
            f"loss {loss!r} gives no useful tiers: its most probable partition puts almost every row in a tier of "
            f"its own, whatever the sizes of tiers in the training data; fit with one of {list(_TIERS)} for that"
        )
    raise ValueError(f"loss {loss!r} gives no probability of ties; fit with one of {list(_TIERS)} for that")


def most_probable_tiers(s: ArrayLike, loss: str, params: Mapping[str, Any]) -> NDArray[np.int64]:
    """Tier (rows,) of each row of one list, 0 the best, in the most probable partition consistent with the scores.

    Rows in descending order of score are split by dynamic programming; equal scores share a tier.  The probability is
    the product over pairs of P(above) or P(tied), for Rao-Kupper and Davidson.  O(rows^2).

    >>> most_probable_tiers([3.0, 0.0, 2.9], "davidson", {"tie": 1.0})
    array([0, 1, 0])
    """
    s = _one_list(s)
    order = np.argsort(-s, kind="stable")
    n, t = len(s), s[order]
    refuse_table(n, n + 1, "a table of first and last rows of a tier", "take the first rows of the list", 6.0)
    gain = _pair_gains(t, loss, params)  # (n, n + 1): log gain of the tier of sorted rows a..b - 1
    best, cut = np.full(n + 1, -np.inf), np.zeros(n, np.int64)
    best[n] = 0.0
    joined = np.append(t[1:] == t[:-1], False)
    for a in range(n - 1, -1, -1):
        ends = np.arange(a + 1, n + 1)
        values = np.where(joined[ends - 1], -np.inf, gain[a, a + 1 :] + best[a + 1 :])
        cut[a] = a + 1 + int(np.argmax(values))
        best[a] = values.max()
    tier, a, number = np.empty(n, np.int64), 0, 0
    while a < n:
        tier[order[a : cut[a]]] = number
        a, number = int(cut[a]), number + 1
    return tier


def _pair_gains(t: Floats, loss: str, params: Mapping[str, Any]) -> Floats:
    """Sum over pairs of rows a..b - 1 of log P(tied) - log P(in this order): the gain from tying them."""
    n = len(t)
    win, _, tied = outcome_costs(t[:, None] - t[None, :], loss, params.get("tie", 0.0))
    below = np.cumsum(np.triu(win - tied, 1)[::-1], axis=0)[::-1]  # (a, b): pairs of b with rows a..b - 1
    inside = np.zeros((n, n + 1))
    inside[:, 1:] = np.cumsum(np.triu(below), axis=1)
    return inside


_TIERS = {name: record for name, record in LOSSES.items() if record.law == "pairs" and "tie" in record.learned}


def _one_list(s: ArrayLike) -> Floats:
    """Scores (rows,) of one list; raise a ``DataError`` unless they are finite."""
    column: Floats = frozen(s, np.float64)
    bad = ~np.isfinite(column)
    if bad.any():
        raise DataError(f"row {int(np.argmax(bad))}: a score is not finite ({int(bad.sum())} such rows); leave it out")
    return column


def place_probabilities(s: ArrayLike) -> Floats:
    """P(row i at position r) of one list under Plackett-Luce, (rows, positions); rows and columns sum to 1.

    Computed by quadrature over arrival times, to about 1e-13.  O(rows^2 nodes), with max(200, 50 sqrt(rows)) nodes.

    >>> place_probabilities([0.0, 0.0]).round(6)
    array([[0.5, 0.5],
           [0.5, 0.5]])
    >>> place_probabilities(np.log([2.0, 1.0, 1.0]))[0].round(6)  # 1/2, then 2 (1/4)(2/3), then the rest
    array([0.5     , 0.333333, 0.166667])
    """
    s = _one_list(s)
    refuse_table(len(s), len(s), "a table of rows and places", "take the first rows of the list")
    out = np.zeros((len(s), len(s)))
    if len(s):
        kernels.place_law(s, out)
    return out


@dataclass(frozen=True)
class Calibration:
    """Pairs binned by the predicted probability of their order, and how often that order was observed.

    ``predicted`` and ``observed`` (bins,): means over the pairs of the bin, with equal weight per query; ``share``
    (bins,): the fraction of pairs in the bin; ``n_pairs``: the pairs of all ``n_queries``.  ``error``: the mean of
    abs(observed - predicted), weighted by share.  ``slope``: the factor on all scores that would fit these pairs best;
    1 if calibrated, below 1 if the ranker is overconfident.
    """

    predicted: Floats
    observed: Floats
    share: Floats
    n_pairs: int
    n_queries: int
    error: float
    slope: float

    def __repr__(self) -> str:
        lines = [f"{p:9.3f} {o:9.3f} {w:7.3f}" for p, o, w in zip(self.predicted, self.observed, self.share)]
        found = f"error {self.error:.3f}, slope {self.slope:.3f}"
        head = f"Calibration of {self.n_pairs} pairs in {self.n_queries} queries: {found}"
        return "\n".join([head, "predicted  observed   share", *lines])


def calibration(s: Floats, lists: Lists, loss: str, params: Mapping[str, Any], *, bins: int = 10) -> Calibration:
    """Compare P(i above j | not tied) >= 1/2 with how often grade i > grade j.  O(rows^2) per list; O(nodes rows^3)
    or, under "pmop-exact", O(3^rows) where rows are drawn in tiers.

    Queries count by their weight; pairs of equal grades are left out; bins are equal parts of [1/2, 1].
    """
    if bins < 1:
        raise ValueError(f"bins must be at least 1, not {bins}")
    grade, offsets = np.asarray(lists.grade), np.asarray(lists.offsets)
    weight = np.ones(len(offsets) - 1) if lists.weight is None else np.asarray(lists.weight)
    sums = np.zeros((3, bins))  # predicted, observed, weight
    per_query = np.zeros(len(weight))
    for q, (a, b) in enumerate(pairwise(offsets)):
        i, j = np.nonzero(grade[a:b, None] > grade[None, a:b])
        per_query[q] = len(i)
        if not len(i):
            continue
        gap = s[a:b][i] - s[a:b][j]
        above, below = pair_probabilities(s[a:b], i, j, loss, params)
        p = np.maximum(above, below) / (above + below)
        right = np.where(gap == 0, 0.5, gap > 0)
        which = np.minimum(((p - 0.5) * 2 * bins).astype(np.int64), bins - 1)
        for row, values in zip(sums, (p, right, np.ones(len(p)))):
            row += np.bincount(which, values, bins) * (weight[q] / len(i))
    used = sums[2] > 0
    if not used.any():
        raise DataError(f"none of the {len(weight)} queries has two different grades; there are no pairs to check")
    predicted, observed = sums[:2, used] / sums[2, used]
    share = sums[2, used] / sums[2].sum()
    even = Lists(grade, offsets, np.divide(weight, per_query, out=np.zeros(len(weight)), where=per_query > 0))
    error = float(share @ np.abs(observed - predicted))
    n_queries = int((per_query > 0).sum())
    slope = best_slope(s, even) if stage_potential(loss) is None else best_tier_slope(s, even, loss, params)
    return Calibration(predicted, observed, share, int(per_query.sum()), n_queries, error, slope)


def best_slope(s: Floats, lists: Lists) -> float:
    """The t >= 0 that minimizes the logistic loss of pairs at t s, by root finding on its monotone derivative.

    Infinite if every pair is in order, 0 if the scores are no better than chance.
    """
    from scipy.optimize import brentq

    bound = Bound("ranknet", lists)

    def rise(log_t: float) -> float:
        return float(bound.value_and_grad(np.exp(log_t) * s)[1] @ s)

    unit = float(np.abs(s).max(initial=0.0))
    if unit == 0.0 or float(bound.value_and_grad(np.zeros(len(s)))[1] @ s) >= 0.0:
        return 0.0
    low, high = -np.log(unit) - 20.0, -np.log(unit) + 20.0
    if rise(low) >= 0.0:
        return 0.0
    return float(np.exp(brentq(rise, low, high, xtol=1e-6))) if rise(high) > 0.0 else float("inf")


def best_tier_slope(s: Floats, lists: Lists, loss: str, params: Mapping[str, Any]) -> float:
    """As `best_slope`, by the probabilities of pairs given that they are not tied; the factor to within 1%.

    Infinite or 0 beyond factors of 30.
    """
    from scipy.optimize import minimize_scalar

    grade, offsets, weight = np.asarray(lists.grade), np.asarray(lists.offsets), np.asarray(lists.weight)
    bounds = list(pairwise(offsets.tolist()))
    pairs = [np.nonzero(grade[a:b, None] > grade[None, a:b]) for a, b in bounds]

    def cost(log_t: float) -> float:
        total = 0.0
        for (a, b), (i, j), w in zip(bounds, pairs, weight):
            if len(i):
                above, below = pair_probabilities(np.exp(log_t) * s[a:b], i, j, loss, params)
                total -= float(w) * float(np.log(np.maximum(above / (above + below), 1e-300)).sum())
        return total

    limit = float(np.log(30.0))
    found = float(minimize_scalar(cost, bounds=(-limit, limit), method="bounded", options={"xatol": 0.01}).x)
    return 0.0 if found < -limit + 0.05 else float("inf") if found > limit - 0.05 else float(np.exp(found))


class OrderProbabilities:
    """Methods of rankers that turn scores into probabilities, for losses that define a distribution over orders."""

    if TYPE_CHECKING:  # of the ranker
        _loss: Callable[[], str]
        _loss_parameters: Callable[[], dict[str, Any]]
        _rows_to_score: Callable[[Any, Any], Queries]
        _rows_and_grades: Callable[[Any, Any, Any], tuple[Queries, Lists]]
        _model_scores: Callable[[Queries], tuple[Floats, Ints]]

    def top1_probability(self, X: Any, qid: Any = None) -> Floats:
        """Probability (rows,) that the row is first in its list, under the fitted model; sums to 1 in each list.

        For losses that define a distribution over orders (Plackett-Luce family): softmax of the scores.  Under PMOP
        several rows may be first: the rows of the first tier share its probability equally.
        """
        loss = self._loss()
        refuse_unless_first(loss)
        queries = self._rows_to_score(X, qid)
        s, offsets = self._model_scores(queries)
        first = first_probability(s.ravel(), offsets, loss, self._loss_parameters())
        return in_order_of(X, queries, first.reshape(s.shape))

    def pairwise_probability(self, X: Any, i: ArrayLike, j: ArrayLike, qid: Any = None) -> Floats:
        """Probability that row ``i`` of ``X`` is above row ``j`` of the same list (numbers, or arrays of them).

        For losses that define a distribution over orders, logistic(s_i - s_j), or over the outcomes of a pair, which
        may include ties.  Under "pmop-fd" and "pmop-exact" it depends on all rows of the list, and the rest is
        P(below) and P(tied); lists have at most 1,000 and 18 rows.
        """
        refuse_unless_pairs(self._loss())
        queries = self._rows_to_score(X, qid)
        s = in_order_of(X, queries, self._model_scores(queries)[0])
        if stage_potential(self._loss()) is not None:
            which = in_order_of(X, queries, queries.query) if s.ndim == 1 else None
            return above_in_lists(s, which, i, j, self._loss(), self._loss_parameters())
        gap = s[..., np.asarray(i)] - s[..., np.asarray(j)]
        return probability_above(gap, self._loss(), self._loss_parameters())

    def predict_tiers(self, X: Any, qid: Any = None) -> NDArray[np.int64]:
        """Tier of every row in its list, 0 the best, in the most probable partition consistent with the scores.

        For losses with a probability of ties for each pair: Rao-Kupper and Davidson.
        """
        refuse_unless_tiers(self._loss())
        queries = self._rows_to_score(X, qid)
        s, offsets = self._model_scores(queries)
        params, loss = self._loss_parameters(), self._loss()
        lists = [most_probable_tiers(s.ravel()[a:b], loss, params) for a, b in pairwise(offsets)]
        tiers = np.concatenate(lists) if lists else np.zeros(0, np.int64)
        return in_order_of(X, queries, tiers)

    def rank_distribution(self, X: Any, qid: Any = None) -> list[Floats]:
        """For each list a table (rows, positions): the probability of each row at each position.  O(rows^2) per list.

        For losses that define a distribution over orders; under "pmop-fd", given that no rows tie.  Lists are in order
        of first appearance, rows in the order given.
        """
        refuse_unless_order(self._loss())
        s, offsets = self._model_scores(self._rows_to_score(X, qid))
        s = s.ravel()
        return [place_probabilities(s[a:b]) for a, b in pairwise(offsets)]

    def calibration(self, X: Any, y: Any = None, qid: Any = None, *, bins: int = 10) -> "Calibration":
        """Compare the predicted probability of the order of pairs with how often that order is observed.

        Uses pairs with different grades; the queries should not be those of the fit.
        """
        refuse_unless_pairs(self._loss())
        queries, lists = self._rows_and_grades(X, y, qid)
        s, _ = self._model_scores(queries)
        return calibration(s.ravel(), lists, self._loss(), self._loss_parameters(), bins=bins)
