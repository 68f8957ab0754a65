"""The result of every method: scores, their uncertainty, and how they were found."""

import copy
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.aggregate.goal_verdict import LOOKS, Goal, GoalVerdict, Look, VotesBehind, ask_question
from placet.aggregate.result import display, result_tables, separation, uncertainty
from placet.aggregate.result.result_tables import StandingRow
from placet.data import Comparisons, Rankings
from placet.data.arrays import Floats, Ints, Names, frozen, plain_names
from placet.data.errors import one_of
from placet.escaping import visible
from placet.io.text import plural
from placet.optim import Fit
from placet.stats import normal_quantile

if TYPE_CHECKING:
    import polars as pl

    from placet.aggregate.result.asked import Asked
    from placet.aggregate.result.election_record import Record
    from placet.aggregate.result.independent_units import Units
    from placet.aggregate.result.learned.control_effects import Controls
    from placet.aggregate.result.learned.game_forecast import GameForecast
    from placet.aggregate.result.learned.history import History
    from placet.aggregate.result.learned.rater_parameters import Raters
    from placet.aggregate.result.learned.source_parameters import SourceParameters
    from placet.aggregate.result.learned.source_prediction import SourcePrediction
    from placet.aggregate.result.learned.task_responses import CellPrediction, TaskResponses
    from placet.aggregate.result.scales import Points

Win = Callable[[ArrayLike, ArrayLike], Floats]
"""``win(x, y)``: probability that an item of score x strictly beats one of score y; arrays broadcast."""

NO_UNCERTAINTY = "{method!r} gives no standard errors; consensus(data, {method!r}, bootstrap=200) adds resampled scores"
RELATIVE_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Consensus:
    """Scores of items, higher is better, with their uncertainty if the method provides it.

    ``scores`` and ``stderr`` (n_items,); ``covariance`` (n_items, n_items) of the scores if it is kept, else scores are
    treated as independent; ``draws`` (rounds, n_items) are bootstrap scores and, if present, are used instead of the
    normal approximation; ``roots``, if known, take its place for two items, near a perfect record too.  ``units``, if
    independent units (tasks, ballots, agents) are few, is what each adds to the scores; what is separated then follows
    from them.  ``win(x, y)`` is the probability that an item of score x strictly beats one of score y.
    Scores closer than ``tolerance`` tie (default: 1e-9 of the largest absolute score).  ``support`` (n_items,) is the
    weight of the ballots that list an item, or of the votes on it.  ``spread`` (n_items,) is set by models with a
    variance for every item: both scores are divided by the sum of their spreads before ``win``.

    What else a fit found, None if the method has no such thing: ``prior``, the standard deviation of the scores' prior;
    ``tie`` and ``tie_stderr``, the tie parameter; ``effects`` of controls; parameters of ``agents``, if they may
    differ; ``adherence`` and ``agent_weight``, by the names of agents; ``drift``, the standard deviation of the change
    of a score in one time step, and ``timeline``, the scores over time; ``dispersion`` and ``dispersion_stderr``, how
    strongly orders concentrate around the consensus; ``record``, the rounds of an election; ``scale``, if scores are in
    points; ``sources``, what a joint fit found about each source; ``responses`` of tasks, by item
    response; ``games``, a forecast of further games.  ``asked``: the data and the question, for results of
    `placet.consensus`; ``asking`` holds the votes, if `enough` and `next_pairs` can count them.

    >>> c = Consensus(("ant", "bee", "cat", "dog"), [1.0, 3.0, 2.0, 2.0], method="borda")
    >>> c.ranking
    ['bee', ('cat', 'dog'), 'ant']
    >>> c.ranks
    array([4, 1, 2, 2])
    """

    items: Names
    scores: Floats
    method: str
    params: Mapping[str, object] = field(default_factory=dict)
    stderr: Floats | None = None
    covariance: Floats | None = None
    draws: Floats | None = None
    units: "Units | None" = None
    roots: uncertainty.Roots | None = None
    win: Win | None = None
    fit: Fit | None = None
    notes: tuple[str, ...] = ()
    tolerance: float = None  # type: ignore[assignment]  # 1e-9 of the largest absolute score
    support: Floats | None = None
    spread: Floats | None = None
    prior: float | None = None
    tie: float | None = None
    tie_stderr: float | None = None
    effects: "Controls | None" = None
    agents: "Raters | None" = None
    adherence: Mapping[Hashable, float] | None = None
    agent_weight: Mapping[Hashable, float] | None = None
    drift: float | None = None
    timeline: "History | None" = None
    dispersion: float | None = None
    dispersion_stderr: float | None = None
    record: "Record | None" = None
    scale: "Points | None" = None
    sources: "SourceParameters | None" = None
    responses: "TaskResponses | None" = None
    games: "GameForecast | None" = None
    asked: "Asked | None" = None
    asking: VotesBehind | None = None

    def __post_init__(self) -> None:
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        put("items", tuple(self.items))
        put("scores", frozen(self.scores, np.float64))
        if self.stderr is None and self.covariance is not None:
            put("stderr", np.sqrt(np.diag(self.covariance)))
        if self.stderr is None and self.draws is not None:
            uncertainty.refuse_without_squares(self.draws)
            put("stderr", np.std(self.draws, axis=0, ddof=1))
        for name in ("stderr", "support", "spread"):
            if getattr(self, name) is not None:
                put(name, frozen(getattr(self, name), np.float64))
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
        put("notes", tuple(self.notes))

    def with_note(self, note: str) -> "Consensus":
        """The same result with one note more, before its own.

        Returns
        -------
        Consensus
            The same result.

        >>> import placet
        >>> votes = placet.Comparisons.from_battles("aabc", "bcca", ["a", "a", "tie", "b"])
        >>> board = placet.consensus(votes)
        >>> board.with_note("a first try").notes[0]
        'a first try'
        """
        own = copy.copy(self)
        object.__setattr__(own, "notes", (note, *self.notes))
        return own

    # Ranking

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
    def ranking(self) -> list[Hashable]:
        """Items best first: single names, and tuples of names that tie, as ``Rankings.from_orders`` accepts them."""
        tier = self._tiers[0][self.order]
        groups = np.split(self.order, np.flatnonzero(np.diff(tier)) + 1) if len(tier) else []
        return [self.items[g[0]] if len(g) == 1 else tuple(self.items[k] for k in g) for g in groups]

    @cached_property
    def _tiers(self) -> tuple[Ints, Ints]:
        """Tier of every item (0 is best) and every tier's size: a new tier starts where a gap exceeds ``tolerance``."""
        return tied_groups(self.scores, self.tolerance)

    @cached_property
    def _level_scores(self) -> Floats:
        """Scores for separation: items that tie have their mean, so what shares a rank is never separated."""
        tier, size = self._tiers
        if len(size) == len(tier):
            return self.scores
        return (np.bincount(tier, self.scores) / size)[tier]

    # Uncertainty

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Lower and upper bounds of each score: quantiles of the bootstrap draws, else score -+ z stderr; wider by
        Student's quantile if they come from few units.

        Returns
        -------
        tuple of numpy.ndarray
            The lower and the upper bounds (n_items,).

        >>> c = Consensus(("ant", "bee", "cat"), [3.0, 2.9, 0.0], method="m", stderr=[0.2, 0.2, 0.2])
        >>> low, high = c.interval(0.95)
        >>> low.round(2), high.round(2)
        (array([ 2.61,  2.51, -0.39]), array([3.39, 3.29, 0.39]))
        """
        self._need_uncertainty()
        if self.draws is None and self.roots is not None and self.stderr is not None:
            low, high = self._profiled_interval(level, self.stderr)
        else:
            low, high = uncertainty.score_interval(self.scores, self.stderr, self.draws, level)
        if self.units is None or len(self.items) == 1:  # one item has its score by definition, whoever voted
            return low, high
        wider = self.units.student(level)
        if np.isinf(wider):  # one unit says nothing, even where its votes do not vary
            return np.full_like(low, -np.inf), np.full_like(high, np.inf)
        return self.scores - wider * (self.scores - low), self.scores + wider * (high - self.scores)

    def _profiled_interval(self, level: float, stderr: Floats) -> tuple[Floats, Floats]:
        """Score -+ standard errors, as many as the signed roots of the posterior say near a perfect record."""
        assert self.roots is not None
        down, up = self.roots.errors_below_and_above(-normal_quantile((1 - level) / 2))
        return self.scores - down * stderr, self.scores + up * stderr

    def rank_interval(
        self, level: float = 0.95, kind: separation.RankSetKind = "simultaneous", *, random_state: int = 0
    ) -> tuple[Ints, Ints]:
        """Best and worst rank of each item.

        ``kind``: "simultaneous": with probability at least ``level``, the true ranks of all items lie in their sets at
        once; "marginal": the same for a single item chosen beforehand, so the sets are narrower; "simulated": quantiles
        of the ranks of simulated scores (or bootstrap draws), which show how the ranks would vary, but cover less than
        ``level`` if items are nearly tied.  See `placet.aggregate.result.separation`.

        Returns
        -------
        tuple of numpy.ndarray
            The best and the worst ranks (n_items,).

        >>> c = Consensus(("ant", "bee", "cat"), [3.0, 2.9, 0.0], method="m", stderr=[0.2, 0.2, 0.2])
        >>> best, worst = c.rank_interval()
        >>> best, worst
        (array([1, 1, 3]), array([2, 2, 3]))
        """
        self._need_uncertainty()
        one_of(kind, ("simultaneous", "marginal", "simulated"), "kind")
        uncertainty.check_level(level)
        key = (kind, level, random_state)
        if key not in self._computed:
            low, high = self._rank_interval(level, kind, random_state)
            self._computed[key] = frozen(low, np.int64), frozen(high, np.int64)
        return self._computed[key]

    def _rank_interval(self, level: float, kind: str, random_state: int) -> tuple[Ints, Ints]:
        n = len(self.items)
        assert self.stderr is not None
        if kind == "simulated":
            if self.draws is None and self.covariance is None and n > uncertainty.MOST_SIMULATED:
                low, high = uncertainty.rank_interval_of_many(self.scores, self.stderr, level, random_state)
            else:
                low, high = uncertainty.rank_quantiles(self._simulated_scores(random_state), level)
            return np.minimum(low, self.ranks), np.maximum(high, self.ranks)
        if n > separation.MOST_PAIRED:
            return separation.rank_sets_of_many(self._level_scores, self.stderr, level)
        if kind == "simultaneous":
            return separation.rank_sets(self.separated(level, random_state=random_state))
        above, below = np.ones((n, n), bool), np.ones((n, n), bool)
        for scores, errors, stderr, law in self._tests(random_state):
            for k in range(n):
                more, less = separation.separated_from(k, scores, errors, stderr, level, law)
                above[k] &= more & (self._level_scores > self._level_scores[k])
                below[k] &= less & (self._level_scores < self._level_scores[k])
        return (1 + above.sum(axis=1)).astype(np.int64), (n - below.sum(axis=1)).astype(np.int64)

    def separated(self, level: float = 0.95, *, random_state: int = 0) -> NDArray[np.bool_]:
        """(n_items, n_items): whether row is above column beyond chance, jointly for all pairs at confidence ``level``.

        The basis of rank sets and tiers: up to 1,000 items by the joint distribution of all differences (covariance or
        bootstrap draws), beyond by Holm's correction; up to 4,096 items.

        Returns
        -------
        numpy.ndarray
            Booleans (n_items, n_items).

        >>> c = Consensus(("ant", "bee", "cat"), [3.0, 2.9, 0.0], method="m", stderr=[0.2, 0.2, 0.2])
        >>> c.separated()[0].tolist()  # ant is above cat, and perhaps not above bee
        [False, False, True]
        """
        n = len(self.items)
        if self.stderr is None and self.units is not None:
            return np.zeros((n, n), bool)  # a single unit
        self._need_uncertainty()
        if n > separation.MOST_PAIRED:
            raise ValueError(
                f"{n} items have too many pairs for a table (at most {separation.MOST_PAIRED}); use rank_interval"
            )
        key = (level, random_state)
        if key not in self._relations:
            found = [separation.separated(*test[:3], level, test[3]) for test in self._tests(random_state)]
            found.append(self._level_scores[:, None] > self._level_scores)
            above = np.logical_and.reduce(found)
            if self.draws is None and self.units is None and self.roots is not None:
                above = self.roots.separated(above, separation.critical_of_pairs(n, level))
            self._relations[key] = above
        return self._relations[key]

    def tiers(self, level: float = 0.95, *, random_state: int = 0) -> list[tuple[Hashable, ...]]:
        """Groups of items that the data cannot separate, best first: no group contains a separated pair.

        A group ends at the first item that is separated from any item of it, so two neighbors in different groups need
        not be separated; `separated` tells.

        Returns
        -------
        list of tuple
            The items of each group.

        >>> c = Consensus(("ant", "bee", "cat"), [3.0, 2.9, 0.0], method="m", stderr=[0.2, 0.2, 0.2])
        >>> c.tiers()
        [('ant', 'bee'), ('cat',)]
        """
        tier = self.tier_numbers(level, random_state=random_state)
        order = self.order[np.argsort(tier[self.order], kind="stable")]
        groups = np.split(order, np.flatnonzero(np.diff(tier[order])) + 1) if len(order) else []
        return [tuple(self.items[k] for k in group) for group in groups]

    def tier_numbers(self, level: float = 0.95, *, random_state: int = 0) -> Ints:
        """(n_items,): the number of each item's tier, 1 is the best.

        Returns
        -------
        array of int
            In the order of ``items``.

        >>> import placet
        >>> votes = placet.Comparisons.from_battles("aabc", "bcca", ["a", "a", "tie", "b"])
        >>> board = placet.consensus(votes)
        >>> board.tier_numbers()
        array([1, 1, 1])
        """
        return separation.tiers(self._level_scores, self.separated(level, random_state=random_state)) + 1

    def enough(
        self,
        goal: str = "order",
        *,
        k: int | None = None,
        item: Any = None,
        level: float = 0.95,
        look: Look = "any",
        margin: float = 0.0,
        random_state: int = 0,
    ) -> GoalVerdict:
        """Whether the data suffice for a goal: true if they do; the verdict says what is settled, and what is not.

        ``goal``: "best" (which item is the best; with ``item``, whether or not that one is), "top" (which items are the
        best ``k``), "order" (the whole order), "tiers" (``k`` groups, each above the next), "above" (which of two items
        is above the other, ``item=(a, b)``, or the place of one ``item`` among all); "top:3" is "top" with k=3.

        ``look="any"`` may be asked after every vote, under any rule of asking and stopping: a false statement is ever
        made with a probability of at most 1 - level (`placet.aggregate.asking`).  It counts the decided votes between
        the two items of a pair, and what follows from pairs settled so.  ``look="once"`` is the fixed-sample answer by
        the model of all votes, for data whose amount did not depend on what they said: looked at again and again, it is
        wrong much more often than 1 - level.  ``margin`` (log odds; only with ``look="any"``): differences smaller than
        that may be left open, so that items too close to call are given up as a tie.

        Returns
        -------
        GoalVerdict
            True or false where a condition is asked for, with what is settled and what is open.

        >>> import placet
        >>> votes = placet.simulate.battles([2.0, 0.0], 100, items=["ant", "bee"])
        >>> bool(placet.consensus(votes).enough("best"))
        True
        """
        asked = self._question(goal, k, item, level, margin)
        if one_of(look, LOOKS, "look") == "any":
            return self._votes_behind().verdict(self, asked)
        if margin:
            raise ValueError('a margin needs look="any"; the fixed-sample answer has none')
        above = self.separated(level, random_state=random_state)
        high, low = separation.open_pairs(self._level_scores, above, asked.name, asked.k, asked.items)
        open_ = tuple((self.items[i], self.items[j], None) for i, j in zip(high.tolist(), low.tolist()))
        return GoalVerdict(asked.text, level, "once", not open_, open=open_)

    def _question(self, goal: str, k: int | None, item: Any, level: float, margin: float) -> Goal:
        uncertainty.check_level(level)
        return ask_question(self._index, goal, k, item, level, margin)

    def _votes_behind(self) -> VotesBehind:
        if self.asking is None:
            raise ValueError(
                "the votes behind this board are not known, so no answer holds at every look: placet.consensus(data) "
                'keeps those of votes and ballots; look="once" answers for data of a fixed amount'
            )
        return self.asking

    def fragility(
        self, goal: str = "best", *, k: int = 1, by: str = "vote", level: float = 0.95, how: str = "removed"
    ) -> Any:
        """How few votes, removed, would change which items come first ("best"), have rank ``k`` ("place"), are the
        best ``k`` ("top"), or where tiers end ("tiers"); with ``how="changed"``, how few ballots, changed, would; see
        `placet.fragility`.

        Returns
        -------
        Fragility
            For each claim the fewest votes that were found.

        >>> import placet
        >>> votes = placet.Comparisons.from_battles("aabc", "bcca", ["a", "a", "tie", "b"])
        >>> board = placet.consensus(votes)
        >>> board.fragility()
        Fragility(a is first: 3 of 4 votes decide it)
        """
        if self.asked is None:
            raise ValueError("this result does not hold its data; use placet.fragility(data, ...)")
        return self.asked.fragility(self, self.asked, goal=goal, k=k, by=by, level=level, how=how)

    def certificate(self, level: float = 0.95, **options: Any) -> dict[str, Any]:
        """The result with its question in full and the digest of its data, as a dict that JSON can hold.

        Anyone with the same data can check it: `placet.verify`, or ``placet verify``.  ``fragility=False`` leaves out
        how few votes decide the first place.

        Returns
        -------
        dict
            The question, the digest of the data, and the answer.

        >>> import placet
        >>> votes = placet.Comparisons.from_battles("aabc", "bcca", ["a", "a", "tie", "b"])
        >>> board = placet.consensus(votes)
        >>> paper = board.certificate()
        >>> placet.verify(paper, votes)  # what differs
        []
        """
        if self.asked is None or self.scale is not None:
            raise ValueError("this result does not hold its data, or is in points; use that of placet.consensus")
        found: dict[str, Any] = self.asked.certificate(self, self.asked, level, **options)
        return found

    def rank_probabilities(self, *, random_state: int = 0) -> Floats:
        """(n_items, n_items): the probability that item i has rank r + 1, by simulation or from the bootstrap draws.

        Returns
        -------
        numpy.ndarray
            Probabilities (n_items, n_items), whose rows and columns sum to 1.

        >>> c = Consensus(("ant", "bee", "cat"), [3.0, 2.9, 0.0], method="m", stderr=[0.2, 0.2, 0.2])
        >>> c.rank_probabilities()[2].round(2)  # cat is third
        array([0., 0., 1.])
        """
        self._need_uncertainty()
        return uncertainty.rank_probabilities(self._simulated_scores(random_state))

    def prob_above(self, a: Hashable, b: Hashable) -> float:
        """The probability that item ``a`` is truly above item ``b``, given the data.

        Returns
        -------
        float
            Between 0 and 1.

        >>> c = Consensus(("ant", "bee", "cat"), [3.0, 2.9, 0.0], method="m", stderr=[0.2, 0.2, 0.2])
        >>> round(c.prob_above("ant", "bee"), 2)
        0.64
        """
        self._need_uncertainty()
        i, j = self._number(a), self._number(b)
        found = uncertainty.prob_above(self._level_scores, self.stderr, self.covariance, self.draws, i, j, self.roots)
        if self.units is None or self.roots is not None:
            return found
        most = self.units.most_probable()
        return min(max(found, 1 - most), most)

    def top_k_probability(self, k: int, *, random_state: int = 0) -> Floats:
        """The probability that each item is among the best ``k``, by simulation or from the bootstrap draws.

        Returns
        -------
        numpy.ndarray
            Probabilities (n_items,), whose sum is ``k``.

        >>> c = Consensus(("ant", "bee", "cat"), [3.0, 2.9, 0.0], method="m", stderr=[0.2, 0.2, 0.2])
        >>> c.top_k_probability(2).round(2)
        array([1., 1., 0.])
        """
        self._need_uncertainty()
        if not 1 <= k <= len(self.items):
            raise ValueError(f"k must be in 1..{len(self.items)}, the number of items, not {k}")
        return uncertainty.top_k_probability(self._simulated_scores(random_state), k)

    def at(self, when: Any) -> "Consensus":
        """The scores at another time (a date such as "2024-06-01"), for scores that drift (``drift=``).

        Returns
        -------
        Consensus
            The board of that time.

        >>> import placet
        >>> votes = {"a": "xxyy", "b": "yyxx", "winner": ["a", "b", "a", "a"], "day": [1, 1, 2, 2]}
        >>> c = placet.consensus(placet.read_battles(votes, time="day"), drift=0.5, step=1)
        >>> bool(c.at(1).scores[0] > c.at(2).scores[0])  # x fell
        True
        """
        history = self._history()
        tau = history.step_of(when)
        keep, (scores, stderr) = history.active(tau), history.at_step(tau)
        notes = (*self.notes, f"scores at {when}; differences between items leave correlations out")
        return self._with_scores(history, keep, scores, stderr, notes=notes, timeline=None)

    def updated(self, votes: Comparisons) -> "Consensus":
        """The board after more votes, without a refit, for scores that drift (``drift=``).

        The votes are not older than those of the board; new items start at the mean.  Each vote moves the scores of its
        two items alone, in O(1); a refit would also revise what is known of others and of the past.

        Returns
        -------
        Consensus
            The board after the votes.

        >>> import placet
        >>> early = placet.Comparisons.from_battles("ab" * 20, "ba" * 20, ["a", "b"] * 20, time=[2020.0] * 40)
        >>> late = placet.Comparisons.from_battles("b", "a", ["a"], time=[2021.0])
        >>> board = placet.consensus(early, drift=0.5, step=1.0)
        >>> after = board.updated(late)
        >>> bool(after["b"].score > board["b"].score)
        True
        """
        from placet.aggregate.result.learned.forecast import join_votes

        history, n = join_votes(self._history(), votes)
        assert history.forecast is not None
        tau = history.step_of(history.last)
        scores, variance = history.forecast.at_step(tau)
        notes = (*self.notes, f"updated by {n:.10g} votes without a refit; differences leave correlations out")
        keep = history.active(tau)
        return self._with_scores(
            history, keep, scores - scores.mean(), np.sqrt(variance), notes=notes, timeline=history
        )

    def _with_scores(
        self, history: "History", keep: NDArray[np.bool_], scores: Any, stderr: Any, **fields: Any
    ) -> "Consensus":
        """The same board with other scores of the items of its history to keep."""
        items = tuple(history.items[k] for k in np.flatnonzero(keep))
        support = None if history.support is None else history.support[keep]
        known = {"covariance": None, "draws": None, "units": None, "support": support} | fields
        return replace(self, items=items, scores=scores[keep], stderr=stderr[keep], **known)

    def history(self, *items: Hashable) -> "pl.DataFrame":
        """A Polars frame of scores over time (``drift=``): item, time, score, stderr; of all items or those named.

        Returns
        -------
        polars.DataFrame
            A row per item and time.

        >>> import placet
        >>> votes = {"a": "xxyy", "b": "yyxx", "winner": ["a", "b", "a", "a"], "day": [1, 1, 2, 2]}
        >>> c = placet.consensus(placet.read_battles(votes, time="day"), drift=0.5, step=1)
        >>> c.history("x").columns
        ['item', 'time', 'score', 'stderr']
        """
        number = self._history().number
        for item in items:
            if item not in number:
                self._number(item)  # raises
        return self._history().to_frame([number[item] for item in items or self.items])

    def _history(self) -> "History":
        if self.timeline is None:
            raise ValueError('scores do not move here; BradleyTerry(drift="learn") on votes with a time lets them')
        return self.timeline

    def win_probability(self, a: Hashable, b: Hashable, at: Any = None) -> float:
        """The model's probability that ``a`` strictly beats ``b`` in a single comparison.

        ``at``: the date, for scores that drift; the result is averaged over the uncertainty of both scores on it.

        Returns
        -------
        float
            Between 0 and 1; with that of the other way round and that of a tie it makes 1.

        >>> import placet
        >>> c = placet.consensus(placet.Comparisons.from_battles("aab", "bbc", ["a", "a", "tie"]))
        >>> c.win_probability("a", "b") > c.win_probability("b", "a")
        True
        """
        if at is not None:
            number = self._history().number
            first, second = (number[name] if name in number else self._number(name) for name in (a, b))
            return float(self._history().probability(self._win(), first, second, at))
        return float(self.win_between(self._number(a), self._number(b)))

    def win_probabilities(self) -> Floats:
        """(n_items, n_items): the model's probability that row strictly beats column; NaN on the diagonal.

        Returns
        -------
        array
            (n_items, n_items).

        >>> import placet
        >>> votes = placet.Comparisons.from_battles("aabc", "bcca", ["a", "a", "tie", "b"])
        >>> board = placet.consensus(votes)
        >>> board.win_probabilities().round(2)
        array([[ nan, 0.95, 0.95],
               [0.  ,  nan, 0.09],
               [0.  , 0.07,  nan]])
        """
        every = np.arange(len(self.items))
        table = self.win_between(every[:, None], every)
        np.fill_diagonal(table, np.nan)
        return table

    def win_between(self, i: ArrayLike, j: ArrayLike) -> Floats:
        """The model's probability that item number ``i`` strictly beats number ``j``; arrays broadcast.

        Returns
        -------
        array
            One for each pair.

        >>> import placet
        >>> votes = placet.Comparisons.from_battles("aabc", "bcca", ["a", "a", "tie", "b"])
        >>> board = placet.consensus(votes)
        >>> board.win_between(0, [1, 2]).round(2)
        array([0.95, 0.95])
        """
        i, j = np.asarray(i), np.asarray(j)
        unit = 1.0 if self.spread is None else self.spread[i] + self.spread[j]
        return np.array(self._win()(self.scores[i] / unit, self.scores[j] / unit), dtype=np.float64)

    def next_pairs(
        self,
        n: int = 10,
        *,
        goal: str | None = None,
        k: int | None = None,
        item: Any = None,
        level: float = 0.95,
        margin: float = 0.0,
        each: int = 1,
        budget: float | None = None,
        cost: Mapping[Hashable, float] | None = None,
    ) -> list[Any]:
        """The ``n`` pairs to ask about next, most useful first; none if the data are `enough` for the ``goal``.

        With a goal: the pairs whose votes prove what is open for it, by the fewest votes, and those farthest from proof
        first (`placet.aggregate.asking.pairs_to_ask`); a pair is there at most ``each`` times, for different voters.
        Without a goal, usefulness is the expected decrease of p (1 - p) from one more answer, where p is the
        probability of being above, summed over the pairs that involve either item; pairs are chosen greedily, each
        given those before it.

        ``budget`` and ``cost``, of a board of `placet.Sources`: the votes to ask each source for, as rows (source,
        high, low, votes), if a vote of a source costs ``cost[source]``; those without a cost are not asked.  What
        lowers the doubt about the pairs that the goal leaves open most, for its price, is asked for, until the budget
        is spent (`placet.aggregate.asking.budget_split`); the goal is "order" if none is named.

        Returns
        -------
        list of tuple
            Pairs of items, or rows (source, high, low, votes) if there is a ``budget``.

        >>> import placet
        >>> people = placet.simulate.battles([1.0, 0.5, 0.0], 40, items=["x", "y", "z"])
        >>> judge = placet.simulate.battles([1.1, 0.4, 0.0], 80, items=["x", "y", "z"], random_state=1)
        >>> board = placet.consensus(placet.Sources({"human": people, "judge": judge}, target="human"))
        >>> rows = board.next_pairs(budget=10, cost={"human": 1.0, "judge": 0.1}, goal="best")
        >>> round(sum({"human": 1.0, "judge": 0.1}[row.source] * row.votes for row in rows), 6)
        10.0
        """
        if (budget is None) != (cost is None):
            raise ValueError("budget= and cost= go together: what may be spent, and what a vote of each source costs")
        if budget is not None and cost is not None:
            question = self._question(goal or "order", k, item, level, margin)
            return list(self._votes_behind().split(self, question, budget, cost))
        if goal is not None:
            asked = self._question(goal, k, item, level, margin)
            pairs = self._votes_behind().next_pairs(self, asked, n, each)
        else:
            self._need_uncertainty()
            pairs = uncertainty.next_pairs(self.scores, self.stderr, self._covariance_or_draws(), self.win_between, n)
        return [(self.items[i], self.items[j]) for i, j in pairs]

    def next_sets(
        self,
        n: int = 10,
        size: int = 4,
        *,
        goal: str = "order",
        k: int | None = None,
        item: Any = None,
        level: float = 0.95,
        margin: float = 0.0,
    ) -> list[tuple[Hashable, ...]]:
        """The ``n`` sets of ``size`` items to show next, for ballots or best-of-a-set questions; see `next_pairs`.

        Each set holds as many open pairs of the goal as possible, those that earlier sets hold counting less.

        Returns
        -------
        list of tuple
            The names of each set.

        >>> import placet
        >>> ballots = placet.Rankings.from_orders([["a", "b", "c", "d"], ["b", "a", "d", "c"]] * 3)
        >>> placet.consensus(ballots).next_sets(2, 3)
        [('a', 'b', 'c'), ('b', 'c', 'd')]
        """
        if not 2 <= size <= len(self.items):
            raise ValueError(f"size must be in 2..{len(self.items)}, the number of items, not {size}")
        asked = self._question(goal, k, item, level, margin)
        sets = self._votes_behind().next_sets(self, asked, n, size)
        return [tuple(self.items[i] for i in one) for one in sets]

    # One item

    def __len__(self) -> int:
        """The number of items."""
        return len(self.items)

    def __iter__(self) -> Iterator[StandingRow]:
        """The rows of the board, best first."""
        return (self[self.items[k]] for k in self.order.tolist())

    def __contains__(self, item: Hashable) -> bool:
        return item in self._index

    def __getitem__(self, item: Hashable) -> StandingRow:
        """The rank, score and uncertainty (95 %) of one item.

        >>> c = Consensus(("ant", "bee"), [1.0, 3.0], method="borda")
        >>> c["ant"].rank, len(c), [row.item for row in c]
        (2, 2, ['bee', 'ant'])
        """
        k = self._number(item)
        row = StandingRow(item, int(self.ranks[k]), float(self.scores[k]))
        if self.stderr is not None:
            low, high = self.rank_interval()
            row = row._replace(stderr=float(self.stderr[k]), rank_low=int(low[k]), rank_high=int(high[k]))
            if len(self.items) <= separation.MOST_PAIRED:
                row = row._replace(tier=int(self._tiers_at_95[k]))
        return row if self.support is None else row._replace(support=float(self.support[k]))

    @cached_property
    def _tiers_at_95(self) -> Ints:
        return self.tier_numbers()

    # Display and export

    def to_pandas(self, level: float = 0.95) -> Any:
        """The table of `to_frame` as a pandas data frame; needs pandas.

        Returns
        -------
        pandas.DataFrame
            A row per item.

        >>> c = Consensus(("ant", "bee", "cat"), [3.0, 2.9, 0.0], method="m", stderr=[0.2, 0.2, 0.2])
        >>> c.to_pandas()["rank"].tolist()
        [1, 2, 3]
        """
        import pandas as pd

        return pd.DataFrame(self.to_frame(level).to_dict(as_series=False))

    def to_frame(
        self,
        level: float = 0.95,
        *,
        scale: str | None = None,
        anchor: Hashable = None,
        anchor_value: float | None = None,
    ) -> "pl.DataFrame":
        """A Polars frame, best first: item, score, stderr, rank, its set rank_low..rank_high, tier, support.

        Unknown values are null.  ``scale="elo"`` gives scores and standard errors in points, see `in_points`.

        Returns
        -------
        polars.DataFrame
            A row per item.

        >>> c = Consensus(("ant", "bee", "cat"), [3.0, 2.9, 0.0], method="m", stderr=[0.2, 0.2, 0.2])
        >>> c.to_frame().columns
        ['item', 'score', 'stderr', 'rank', 'rank_low', 'rank_high', 'tier', 'support']
        >>> c.to_frame()["rank_high"].to_list()
        [2, 2, 3]
        """
        shown = self if scale is None else self.in_points(scale, anchor, anchor_value)
        return result_tables.frame([shown], level)

    def in_points(self, scale: str = "elo", anchor: Hashable = None, value: float | None = None) -> "Consensus":
        """The same result in points, such as Elo points: 400 points mean odds of 10 to 1.

        The item ``anchor`` has ``value`` points (default 1000); without an anchor, the mean over items does.

        Returns
        -------
        Consensus
            The same ranks, and scores in points.

        >>> import placet
        >>> votes = placet.Comparisons.from_battles("aabc", "bcca", ["a", "a", "tie", "b"])
        >>> board = placet.consensus(votes)
        >>> board.in_points(anchor="c").scores.round()
        array([2864., 1038., 1000.])
        """
        from placet.aggregate.result.scales import rescale

        points: Consensus = rescale(self, scale, anchor, value)
        return points

    @property
    def controls(self) -> "pl.DataFrame":
        """A Polars frame of the controls' effects: name, coefficient, stderr, points, typical, typical_points.

        ``coefficient`` is the effect of one unit of the control on the difference of two scores, and ``points`` the
        same in Elo points; ``typical`` is the root mean square of the control, and ``typical_points`` its effect.
        """
        if self.effects is None:
            raise ValueError("there are no controls; name some when the data are read: read_battles(..., control=)")
        return self.effects.to_frame()

    def agents_frame(self) -> "pl.DataFrame":
        """A Polars frame of what was learned about each agent (rater, voter), as with ``agents="sharpness"``.

        Returns
        -------
        polars.DataFrame
            A row per agent.

        >>> import placet
        >>> votes = placet.Comparisons.from_battles("abab", "baba", ["a", "b", "a", "a"], agent=[1, 1, 2, 2])
        >>> placet.consensus(votes, agents="sharpness").agents_frame().columns[:2]
        ['agent', 'votes']
        """
        import polars as pl

        if self.agents is not None:
            return self.agents.to_frame()
        if self.adherence is None:
            raise ValueError(f'{self.method!r} learned nothing about agents; agents="sharpness+ties+side" asks for it')
        return pl.DataFrame({"agent": plain_names(list(self.adherence)), "adherence": list(self.adherence.values())})

    def sources_frame(self) -> "pl.DataFrame":
        """A Polars frame of what a joint fit of several sources found about each: scale, width, agreement with the
        target, how many votes of the target it was worth, and what it favors beyond chance.

        Returns
        -------
        DataFrame
            A row per source (Polars).

        >>> import placet
        >>> sources = placet.simulate.judged_votes([1.0, 0.0, -1.0], 200, 800, items="abc")
        >>> board = placet.consensus(sources)
        >>> board.sources_frame()["source"].to_list()
        ['human', 'judge']
        """
        if self.sources is None:
            raise ValueError("there is only one source; placet.Sources joins several")
        return self.sources.to_frame()

    def predict_source(self, name: Hashable) -> "SourcePrediction":
        """What the other sources alone say about a source: all but it are fitted, and compared with its own board.

        Returns
        -------
        SourcePrediction
            The prediction and the source's own board, with how well they agree.

        >>> import placet
        >>> sources = placet.simulate.judged_votes([1.0, 0.0, -1.0], 200, 800, items="abc")
        >>> board = placet.consensus(sources)
        >>> board.predict_source("judge")
        SourcePrediction(judge: correlation 0.99, 80% of its pairs right, 80% by its own board)
        """
        if self.sources is None or self.asked is None:
            raise ValueError("there is only one source, or its data are not held; placet.consensus(sources) has both")
        from placet.aggregate.result.learned.source_prediction import predict_source

        return predict_source(self.asked, dict(zip(self.sources.names, self.sources.width.tolist())), name)

    def tasks_frame(self) -> "pl.DataFrame":
        """A Polars frame of the tasks of a score table (``method="item-response"``), the one that tells most first.

        Returns
        -------
        DataFrame
            A row per task (Polars).

        >>> import placet
        >>> table = placet.simulate.benchmark_table([1.0, 0.0, -1.0], [0.0, 0.5, -0.5, 1.0], items="abc")
        >>> board = placet.consensus(table, "item-response")
        >>> board.tasks_frame().columns[:2]
        ['task', 'cells']
        """
        return self._responses().to_frame()

    def predict(self, item: Hashable, task: Hashable, level: float = 0.95) -> "CellPrediction":
        """The expected score of an item on a task, and an interval for what would be observed at this ``level``.

        Returns
        -------
        CellPrediction
            The mean and the ends of the interval.

        >>> import placet
        >>> table = placet.simulate.benchmark_table([1.0, 0.0, -1.0], [0.0, 0.5, -0.5, 1.0], items="abc")
        >>> found = placet.consensus(table, "item-response").predict("a", "task 0")
        >>> bool(found.low < found.mean < found.high)
        True
        """
        found = self._responses()
        return found.predict(self._number(item), found.number(task), level)

    def _responses(self) -> "TaskResponses":
        if self.responses is None:
            raise ValueError(f"{self.method!r} knows no tasks; consensus(scores, 'item-response') does")
        return self.responses

    def to_rankings(self) -> Rankings:
        """The consensus as one ballot with its scores; tied items share their mean score.

        Returns
        -------
        Rankings
            One ballot.

        >>> import placet
        >>> votes = placet.Comparisons.from_battles("aabc", "bcca", ["a", "a", "tie", "b"])
        >>> board = placet.consensus(votes)
        >>> board.to_rankings().orders()
        [['a', 'b', 'c']]
        """
        return result_tables.as_ballots([self], None)

    def with_min_support(self, minimum: float) -> "Consensus":
        """The same scores without the items whose support is below ``minimum``; ranks are among the remaining items.

        Returns
        -------
        Consensus
            The result without the other items.

        >>> c = Consensus(("ant", "bee", "cat"), [3.0, 2.0, 1.0], method="m", support=[1.0, 9.0, 8.0])
        >>> c.with_min_support(5).ranking
        ['bee', 'cat']
        """
        if self.support is None:
            raise ValueError(f"{self.method!r} does not say how much data each item has")
        return subset(self, self.support >= minimum, f"with support below {minimum:g}")

    def renamed(self, items: Sequence[Hashable]) -> "Consensus":
        """The same result with other item names; both share the cached simulations of ranks.

        Returns
        -------
        Consensus
            The same scores.

        >>> import placet
        >>> votes = placet.Comparisons.from_battles("aabc", "bcca", ["a", "a", "tie", "b"])
        >>> board = placet.consensus(votes)
        >>> board.renamed(["ant", "bee", "cat"]).ranking
        ['ant', 'bee', 'cat']
        """
        if len(items) != len(self.items):
            raise ValueError(f"{len(items)} names for {len(self.items)} items")
        _ = self._computed, self._relations  # created here so that both share them
        twin = copy.copy(self)
        twin.__dict__.pop("_index", None)
        object.__setattr__(twin, "items", tuple(items))
        if self.record is not None:
            object.__setattr__(twin, "record", self.record.renamed(items))
        if self.asking is not None:
            object.__setattr__(twin, "asking", self.asking.renamed(dict(zip(self.items, items))))
        return twin

    def _repr_html_(self) -> str:
        return display.html_table(self)

    def plot(self, level: float = 0.95, most: int = 30, axes: Any = None) -> Any:
        """Plot the best ``most`` items with intervals by matplotlib, on ``axes`` or new ones; returns the axes.

        Of a rule that only orders, such as instant runoff, the ranks are drawn.

        Returns
        -------
        Axes
            Those of matplotlib.
        """
        return display.plot(self, level, most, axes)

    def __repr__(self) -> str:
        shown, ordered = [], result_tables.repeats_ranks(self)
        for k in self.order[:3]:
            error = "" if self.stderr is None else f" ± {_short(self.stderr[k], 2)}"
            score = "" if ordered else f" {_short(self.scores[k], 3)}{error}"
            shown.append(f"{visible(str(self.items[k]))}{score}")
        more = f", ... {len(self.items)} items" if len(self.items) > 3 else ""
        notes = f", {plural(len(self.notes), 'note')}" if self.notes else ""
        return f"Consensus({self.method}: {', '.join(shown)}{more}{notes})"

    # Internals

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

    def _win(self) -> Win:
        if self.win is None:
            raise ValueError(f"{self.method!r} has no probability of winning; 'bradley-terry' is a method that has")
        return self.win

    def _tests(self, random_state: int) -> list[tuple[Floats, Floats, Floats, separation.ErrorKind]]:
        """The tests that a separated pair passes, each as scores, draws of their errors (draws, n), standard errors of
        differences and the kind of the draws, which are empty for very many items.
        """
        if self.units is not None:
            flips = (self.units.scores, self.units.flipped(random_state), self.units.root)
            return [(*flips, "flips"), *([] if self.units.decides else [self._own_test(random_state)])]
        return [self._own_test(random_state)]

    def _own_test(self, random_state: int) -> tuple[Floats, Floats, Floats, separation.ErrorKind]:
        if self.draws is not None:
            errors = self.draws - self.scores
            return self._level_scores, errors, separation.difference_errors(None, None, errors), "bootstrap"
        stderr = separation.difference_errors(self.stderr, self.covariance, None)
        if len(self.items) > separation.MOST_JOINT:
            return self._level_scores, np.zeros((0, len(self.items))), stderr, "simulated"
        errors = self._simulated_scores(random_state)[: separation.MOST_DRAWS] - self.scores
        if self.units is not None:
            errors *= self.units.student_factors(len(errors), random_state)[:, None]
        return self._level_scores, errors, stderr, "simulated"

    def _covariance_or_draws(self) -> Floats | None:
        if self.covariance is None and self.draws is not None and len(self.items) <= uncertainty.MOST_SIMULATED:
            return np.atleast_2d(np.cov(self.draws, rowvar=False))
        return self.covariance

    def _simulated_scores(self, random_state: int) -> Floats:
        if self.draws is not None:
            return self.draws
        if random_state not in self._simulations:
            rng = np.random.default_rng(random_state)
            self._simulations[random_state] = uncertainty.simulated_scores(
                self.scores, self.stderr, self.covariance, rng
            )
        return self._simulations[random_state]

    @cached_property
    def _simulations(self) -> dict[int, Floats]:
        return {}

    @cached_property
    def _relations(self) -> dict[tuple[float, int], NDArray[np.bool_]]:
        return {}

    @cached_property
    def _computed(self) -> dict[tuple[str, float, int], tuple[Ints, Ints]]:
        return {}


def subset(c: Consensus, keep: NDArray[np.bool_], why: str) -> Consensus:
    """The result for the items of a mask only: scores and errors are unchanged, ranks are among these items."""
    left_out = np.flatnonzero(~keep)
    if not len(left_out):
        return c
    if len(left_out) == len(c.items):
        raise ValueError(f"all {len(c.items)} items are {why}; nothing is left to rank")
    word = "item is" if len(left_out) == 1 else "items are"
    note = f"{len(left_out)} {word} left out, {why}: first {c.items[left_out[0]]!r}"
    cut = lambda values: None if values is None else values[keep]  # noqa: E731
    return replace(
        c,
        items=tuple(c.items[k] for k in np.flatnonzero(keep)),
        scores=c.scores[keep],
        covariance=None if c.covariance is None else c.covariance[np.ix_(keep, keep)],
        draws=None if c.draws is None else c.draws[:, keep],
        units=None if c.units is None else c.units.only(keep),
        roots=None if c.roots is None else c.roots.only(keep),
        notes=(*c.notes, note),
        stderr=cut(c.stderr),
        support=cut(c.support),
        spread=cut(c.spread),
    )


def tied_groups(scores: Floats, tolerance: float) -> tuple[Ints, Ints]:
    """Tier of every score (0 is best) and every tier's size: a new tier starts where a gap exceeds ``tolerance``."""
    falling = np.argsort(-scores, kind="stable")
    gap = -np.diff(scores[falling], prepend=scores[falling[:1]]) > tolerance
    tier = np.empty(len(falling), np.int64)
    tier[falling] = np.cumsum(gap)
    return tier, np.bincount(tier)


def _short(value: float, digits: int) -> str:
    """A number with its first digits, without an exponent unless it is vast or tiny."""
    text = f"{value:.{digits}g}"
    return f"{value:.{0 if abs(value) > 1 else 4}f}" if "e" in text and 1e-9 < abs(value) < 1e9 else text
