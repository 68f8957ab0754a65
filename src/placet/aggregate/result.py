"""The one result type: scores, how sure they are, and how they were got."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from placet.aggregate import uncertainty
from placet.data.arrays import Floats, Ints, Names, frozen

NO_UNCERTAINTY = "{method!r} gives no standard errors; consensus(data, {method!r}, bootstrap=200) adds resampled scores"
RELATIVE_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Consensus:
    """Scores of items, higher is better, with their uncertainty where the method has one.

    ``scores`` and ``stderr`` (n_items,); ``covariance`` (n_items, n_items) of the scores where it is kept, else
    differences are taken as if scores were independent; ``draws`` (rounds, n_items) are bootstrap scores and, where
    present, answer in place of the normal approximation.  ``win(x, y)`` is the probability that an item of score x
    strictly beats one of score y.  Scores closer than ``tolerance`` tie (default: 1e-9 of the largest score's size).

    >>> c = Consensus(("ant", "bee", "cat", "dog"), [1.0, 3.0, 2.0, 2.0], method="borda")
    >>> c.ranking
    ['bee', ('cat', 'dog'), 'ant']
    >>> c.ranks
    array([4, 1, 2, 2])
    """

    items: Names
    scores: Floats
    method: str
    params: Mapping[str, Any] = field(default_factory=dict)
    stderr: Floats | None = None
    covariance: Floats | None = None
    draws: Floats | None = None
    win: Callable[[ArrayLike, ArrayLike], Any] | None = None
    fit: Any = None
    notes: tuple[str, ...] = ()
    extras: Mapping[str, Any] = field(default_factory=dict)
    tolerance: float = None  # type: ignore[assignment]  # 1e-9 of the largest score's size

    def __post_init__(self) -> None:
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        put("items", tuple(self.items))
        put("scores", frozen(self.scores, np.float64))
        if self.stderr is None and self.covariance is not None:
            put("stderr", np.sqrt(np.diag(self.covariance)))
        if self.stderr is None and self.draws is not None:
            put("stderr", np.std(self.draws, axis=0, ddof=1))
        if self.stderr is not None:
            put("stderr", frozen(self.stderr, np.float64))
        for name, shape in (("scores", (len(self.items),)), ("stderr", (len(self.items),))):
            values = getattr(self, name)
            if values is not None and values.shape != shape:
                raise ValueError(f"{name} has shape {values.shape}; there are {len(self.items)} items")
        if not np.isfinite(self.scores).all():
            k = int(np.argmax(~np.isfinite(self.scores)))
            raise ValueError(
                f"item {self.items[k]!r} has score {self.scores[k]}; {self.method!r} must give finite scores"
            )
        if self.tolerance is None:
            put("tolerance", RELATIVE_TOLERANCE * float(np.abs(self.scores).max(initial=0.0)))
        put("params", dict(self.params))
        put("extras", dict(self.extras))
        put("notes", tuple(self.notes))

    # The ranking

    @cached_property
    def order(self) -> Ints:
        """Item numbers, best first; tied items in the order of ``items``."""
        place, _ = self._tiers
        return frozen(np.lexsort((np.arange(len(place)), place)), np.int64)

    @cached_property
    def ranks(self) -> Ints:
        """Rank of every item from 1: one more than the number of items strictly above it, so ties share a rank."""
        tier, sizes = self._tiers
        return frozen((np.cumsum(sizes) - sizes + 1)[tier], np.int64)

    @property
    def ranking(self) -> list[Any]:
        """Items best first: single names, and tuples of names that tie, as ``Rankings.from_orders`` takes them."""
        tier = self._tiers[0][self.order]
        groups = np.split(self.order, np.flatnonzero(np.diff(tier)) + 1) if len(tier) else []
        return [self.items[g[0]] if len(g) == 1 else tuple(self.items[k] for k in g) for g in groups]

    @cached_property
    def _tiers(self) -> tuple[Ints, Ints]:
        """Tier of every item (0 is best) and every tier's size: a new tier starts where a gap exceeds ``tolerance``."""
        falling = np.argsort(-self.scores, kind="stable")
        gap = -np.diff(self.scores[falling], prepend=self.scores[falling[:1]]) > self.tolerance
        tier = np.empty(len(falling), np.int64)
        tier[falling] = np.cumsum(gap)
        return tier, np.bincount(tier)

    # How sure it is

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Ends of each score's interval: quantiles of the bootstrap draws, else score -+ z stderr."""
        self._need_uncertainty()
        return uncertainty.score_interval(self.scores, self.stderr, self.draws, level)

    def rank_interval(self, level: float = 0.95, *, random_state: int = 0) -> tuple[Ints, Ints]:
        """Best and worst rank of each item at ``level``, from the bootstrap draws or from simulated scores."""
        self._need_uncertainty()
        if self.draws is None and self.covariance is None and len(self.items) > uncertainty.MOST_SIMULATED:
            return uncertainty.rank_interval_of_many(self.scores, self.stderr, level, random_state)
        return uncertainty.rank_quantiles(self._simulated(random_state), level)

    def rank_probabilities(self, *, random_state: int = 0) -> Floats:
        """(n_items, n_items): the probability that item i has rank r + 1, by simulation or from the bootstrap draws."""
        self._need_uncertainty()
        return uncertainty.rank_probabilities(self._simulated(random_state))

    def prob_above(self, a: Hashable, b: Hashable) -> float:
        """The probability that item ``a`` is truly above item ``b``, given the data."""
        self._need_uncertainty()
        i, j = self._number(a), self._number(b)
        return uncertainty.prob_above(self.scores, self.stderr, self.covariance, self.draws, i, j)

    def top_k_probability(self, k: int, *, random_state: int = 0) -> Floats:
        """The probability of each item to be among the best ``k``, by simulation or from the bootstrap draws."""
        self._need_uncertainty()
        if not 1 <= k <= len(self.items):
            raise ValueError(f"k must be in 1..{len(self.items)}, the number of items, not {k}")
        return uncertainty.top_k_probability(self._simulated(random_state), k)

    def win_probability(self, a: Hashable, b: Hashable) -> float:
        """The model's probability that ``a`` strictly beats ``b`` in one comparison of the two."""
        return float(self._win()(self.scores[self._number(a)], self.scores[self._number(b)]))

    def win_probabilities(self) -> Floats:
        """(n_items, n_items): the model's probability that row beats column strictly; NaN on the diagonal."""
        table = np.asarray(self._win()(self.scores[:, None], self.scores[None, :]), dtype=np.float64).copy()
        np.fill_diagonal(table, np.nan)
        return table

    def next_pairs(self, k: int = 10) -> list[tuple[Hashable, Hashable]]:
        """The ``k`` pairs to ask about next, most useful first.

        Usefulness is how far one more answer is expected to lower p (1 - p), p the probability of being above, summed
        over the pairs that involve either item; pairs are chosen in turn, each given what those before will tell.
        """
        self._need_uncertainty()
        pairs = uncertainty.next_pairs(self.scores, self.stderr, self._covariance_or_draws(), self._win(), k)
        return [(self.items[i], self.items[j]) for i, j in pairs]

    # How it is shown

    def to_frame(self, level: float = 0.95) -> Any:
        """A Polars frame, best first: item, score, stderr, rank, rank_low, rank_high (null where nothing is known)."""
        import polars as pl

        order = self.order
        columns = {
            "item": pl.Series(_plain([self.items[k] for k in order])),
            "score": self.scores[order],
            "stderr": pl.Series([None] * len(order), dtype=pl.Float64) if self.stderr is None else self.stderr[order],
            "rank": self.ranks[order],
        }
        low_high = (None, None) if self.stderr is None else self.rank_interval(level)
        for name, values in zip(("rank_low", "rank_high"), low_high):
            columns[name] = pl.Series([None] * len(order), dtype=pl.Int64) if values is None else values[order]
        return pl.DataFrame(columns)

    def __repr__(self) -> str:
        shown = []
        for k in self.order[:3]:
            error = "" if self.stderr is None else f" ± {self.stderr[k]:.2g}"
            shown.append(f"{self.items[k]} {self.scores[k]:.3g}{error}")
        more = f", ... {len(self.items)} items" if len(self.items) > 3 else ""
        notes = f", {len(self.notes)} notes" if self.notes else ""
        return f"Consensus({self.method}: {', '.join(shown)}{more}{notes})"

    # Inside

    def _number(self, name: Hashable) -> int:
        try:
            return self._index[name]
        except (KeyError, TypeError):
            raise ValueError(f"item {name!r} is not among the {len(self.items)} items") from None

    @cached_property
    def _index(self) -> dict[Hashable, int]:
        return {name: k for k, name in enumerate(self.items)}

    def _need_uncertainty(self) -> None:
        if self.stderr is None:
            raise ValueError(NO_UNCERTAINTY.format(method=self.method))

    def _win(self) -> Callable[[ArrayLike, ArrayLike], Any]:
        if self.win is None:
            raise ValueError(f"{self.method!r} has no probability of winning; 'bradley-terry' is a method that has")
        return self.win

    def _covariance_or_draws(self) -> Floats | None:
        if self.covariance is None and self.draws is not None and len(self.items) <= uncertainty.MOST_SIMULATED:
            return np.atleast_2d(np.cov(self.draws, rowvar=False))
        return self.covariance

    def _simulated(self, random_state: int) -> Floats:
        if self.draws is not None:
            return self.draws
        if random_state not in self._simulations:
            rng = np.random.default_rng(random_state)
            self._simulations[random_state] = uncertainty.simulated(self.scores, self.stderr, self.covariance, rng)
        return self._simulations[random_state]

    @cached_property
    def _simulations(self) -> dict[int, Floats]:
        return {}


def _plain(names: list[Any]) -> list[Any]:
    """Names as one column holds them: as they are where their type is one, else as text."""
    return names if len({type(name) for name in names}) <= 1 else [str(name) for name in names]
