"""The result of every method: scores, their uncertainty, and how they were found; for one problem or for many."""

import copy
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.aggregate.result import display, separation, uncertainty
from placet.data import Rankings
from placet.data.arrays import Floats, Ints, Names, frozen, offsets_from_sizes, plain_names
from placet.data.errors import one_of
from placet.io.escaping import visible
from placet.optim import Fit

if TYPE_CHECKING:
    import polars as pl

    from placet.aggregate.result.control_effects import Controls
    from placet.aggregate.result.election_record import Record
    from placet.aggregate.result.history import History
    from placet.aggregate.result.rater_parameters import Raters
    from placet.aggregate.result.scales import Points

Win = Callable[[ArrayLike, ArrayLike], Floats]
"""``win(x, y)``: probability that an item of score x strictly beats one of score y; arrays broadcast."""

NO_UNCERTAINTY = "{method!r} gives no standard errors; consensus(data, {method!r}, bootstrap=200) adds resampled scores"
RELATIVE_TOLERANCE = 1e-9
MEASURED = ("score", "stderr", "support")  # columns of decimals in the table of a result; the others are whole numbers


@dataclass(frozen=True, eq=False, repr=False)
class Consensus:
    """Scores of items, higher is better, with their uncertainty if the method provides it.

    ``scores`` and ``stderr`` (n_items,); ``covariance`` (n_items, n_items) of the scores if it is kept, else scores are
    treated as independent; ``draws`` (rounds, n_items) are bootstrap scores and, if present, are used instead of the
    normal approximation.  ``win(x, y)`` is the probability that an item of score x strictly beats one of score y.
    Scores closer than ``tolerance`` tie (default: 1e-9 of the largest absolute score).  ``support`` (n_items,) is the
    weight of the ballots that list an item, or of the votes on it.  ``spread`` (n_items,) is set by models with a
    variance for every item: both scores are divided by the sum of their spreads before ``win``.

    What else a fit found, None if the method has no such thing: ``prior``, the standard deviation of the scores' prior;
    ``tie`` and ``tie_stderr``, the tie parameter; ``effects`` of controls; parameters of ``agents``, if they may
    differ; ``adherence`` and ``agent_weight``, by the names of agents; ``drift``, the standard deviation of the change
    of a score in one time step, and ``timeline``, the scores over time; ``dispersion`` and ``dispersion_stderr``, how
    strongly orders concentrate around the consensus; ``record``, the rounds of an election; ``scale``, if scores are in
    points.

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

    def __post_init__(self) -> None:
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        put("items", tuple(self.items))
        put("scores", frozen(self.scores, np.float64))
        if self.stderr is None and self.covariance is not None:
            put("stderr", np.sqrt(np.diag(self.covariance)))
        if self.stderr is None and self.draws is not None:
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

    # Uncertainty

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Lower and upper bounds of each score: quantiles of the bootstrap draws, else score -+ z stderr."""
        self._need_uncertainty()
        return uncertainty.score_interval(self.scores, self.stderr, self.draws, level)

    def rank_interval(
        self, level: float = 0.95, kind: separation.RankSetKind = "simultaneous", *, random_state: int = 0
    ) -> tuple[Ints, Ints]:
        """Best and worst rank of each item.

        ``kind``: "simultaneous": with probability at least ``level``, the true ranks of all items lie in their sets at
        once; "marginal": the same for a single item chosen beforehand, so the sets are narrower; "simulated": quantiles
        of the ranks of simulated scores (or bootstrap draws), which show how the ranks would vary, but cover less than
        ``level`` if items are nearly tied.  See `placet.aggregate.result.separation`.
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
            return separation.rank_sets_of_many(self.scores, self.stderr, level)
        if kind == "simultaneous":
            return separation.rank_sets(self.separated(level, random_state=random_state))
        errors, stderr = self._errors(random_state)
        own = self.draws is not None
        sets = [separation.separated_from(k, self.scores, errors, stderr, level, own) for k in range(n)]
        low = np.array([1 + above.sum() for above, _ in sets], np.int64)
        return low, np.array([n - below.sum() for _, below in sets], np.int64)

    def separated(self, level: float = 0.95, *, random_state: int = 0) -> NDArray[np.bool_]:
        """(n_items, n_items): whether row is above column beyond chance, jointly for all pairs at confidence ``level``.

        The basis of rank sets and tiers: up to 1,000 items by the joint distribution of all differences (covariance or
        bootstrap draws), beyond by Holm's correction; up to 4,096 items.
        """
        self._need_uncertainty()
        n = len(self.items)
        if n > separation.MOST_PAIRED:
            raise ValueError(
                f"{n} items have too many pairs for a table (at most {separation.MOST_PAIRED}); use rank_interval"
            )
        key = (level, random_state)
        if key not in self._relations:
            errors, stderr = self._errors(random_state)
            self._relations[key] = separation.separated(self.scores, errors, stderr, level, self.draws is not None)
        return self._relations[key]

    def tiers(self, level: float = 0.95, *, random_state: int = 0) -> list[tuple[Hashable, ...]]:
        """Groups of items that the data cannot separate, best first: no group contains a separated pair.

        >>> c = Consensus(("ant", "bee", "cat"), [3.0, 2.9, 0.0], method="m", stderr=[0.2, 0.2, 0.2])
        >>> c.tiers()
        [('ant', 'bee'), ('cat',)]
        """
        tier = self.tier_numbers(level, random_state=random_state)
        order = self.order[np.argsort(tier[self.order], kind="stable")]
        groups = np.split(order, np.flatnonzero(np.diff(tier[order])) + 1) if len(order) else []
        return [tuple(self.items[k] for k in group) for group in groups]

    def tier_numbers(self, level: float = 0.95, *, random_state: int = 0) -> Ints:
        """(n_items,): the number of each item's tier, 1 is the best."""
        return separation.tiers(self.scores, self.separated(level, random_state=random_state)) + 1

    def enough(
        self, goal: str = "order", *, k: int = 1, item: Hashable = None, level: float = 0.95, random_state: int = 0
    ) -> bool:
        """Whether the data suffice for a goal: every pair that matters for it is separated at ``level``.

        ``goal``: "order" (the whole order), "top" (which items are the best ``k``), "best" (whether or not ``item`` is
        the best; by default the first of the ranking).
        """
        one_of(goal, ("order", "top", "best"), "goal")
        if goal == "top" and not 1 <= k <= len(self.items):
            raise ValueError(f"k must be in 1..{len(self.items)}, the number of items, not {k}")
        number = int(self.order[0]) if item is None else self._number(item)
        return separation.is_settled(self.scores, self.separated(level, random_state=random_state), goal, k, number)

    def rank_probabilities(self, *, random_state: int = 0) -> Floats:
        """(n_items, n_items): the probability that item i has rank r + 1, by simulation or from the bootstrap draws."""
        self._need_uncertainty()
        return uncertainty.rank_probabilities(self._simulated_scores(random_state))

    def prob_above(self, a: Hashable, b: Hashable) -> float:
        """The probability that item ``a`` is truly above item ``b``, given the data."""
        self._need_uncertainty()
        i, j = self._number(a), self._number(b)
        return uncertainty.prob_above(self.scores, self.stderr, self.covariance, self.draws, i, j)

    def top_k_probability(self, k: int, *, random_state: int = 0) -> Floats:
        """The probability that each item is among the best ``k``, by simulation or from the bootstrap draws."""
        self._need_uncertainty()
        if not 1 <= k <= len(self.items):
            raise ValueError(f"k must be in 1..{len(self.items)}, the number of items, not {k}")
        return uncertainty.top_k_probability(self._simulated_scores(random_state), k)

    def at(self, when: Any) -> "Consensus":
        """The scores at another time (a date such as "2024-06-01"), for scores that drift (``drift=``)."""
        history = self._history()
        scores, stderr = history.at(when)
        note = f"scores at {when}; differences between items leave correlations out"
        known: dict[str, Any] = {"covariance": None, "draws": None, "timeline": None}
        return replace(self, scores=scores, stderr=stderr, notes=(*self.notes, note), **known)

    def history(self, *items: Hashable) -> "pl.DataFrame":
        """A Polars frame of scores over time (``drift=``): item, time, score, stderr; of all items or those named."""
        which = [self._number(item) for item in items] if items else range(len(self.items))
        return self._history().to_frame(which)

    def _history(self) -> "History":
        if self.timeline is None:
            raise ValueError('scores do not move here; BradleyTerry(drift="learn") on votes with a time lets them')
        return self.timeline

    def win_probability(self, a: Hashable, b: Hashable, at: Any = None) -> float:
        """The model's probability that ``a`` strictly beats ``b`` in a single comparison.

        ``at``: the date, for scores that drift; the result is averaged over the uncertainty of both scores on it.
        """
        if at is not None:
            return float(self._history().probability(self._win(), self._number(a), self._number(b), at))
        return float(self.win_between(self._number(a), self._number(b)))

    def win_probabilities(self) -> Floats:
        """(n_items, n_items): the model's probability that row strictly beats column; NaN on the diagonal."""
        every = np.arange(len(self.items))
        table = self.win_between(every[:, None], every)
        np.fill_diagonal(table, np.nan)
        return table

    def win_between(self, i: ArrayLike, j: ArrayLike) -> Floats:
        """The model's probability that item number ``i`` strictly beats number ``j``; arrays broadcast."""
        i, j = np.asarray(i), np.asarray(j)
        unit = 1.0 if self.spread is None else self.spread[i] + self.spread[j]
        return np.array(self._win()(self.scores[i] / unit, self.scores[j] / unit), dtype=np.float64)

    def next_pairs(
        self, n: int = 10, *, goal: str | None = None, k: int = 1, item: Hashable = None, level: float = 0.95
    ) -> list[tuple[Hashable, Hashable]]:
        """The ``n`` pairs to ask about next, most useful first; none if the data are `enough` for the ``goal``.

        Usefulness is the expected decrease of p (1 - p) from one more answer, where p is the probability of being
        above, summed over the pairs that involve either item; pairs are chosen greedily, each given those before it.
        """
        self._need_uncertainty()
        if goal is not None and self.enough(goal, k=k, item=item, level=level):
            return []
        pairs = uncertainty.next_pairs(self.scores, self.stderr, self._covariance_or_draws(), self.win_between, n)
        return [(self.items[i], self.items[j]) for i, j in pairs]

    # Display and export

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
        """
        shown = self if scale is None else self.in_points(scale, anchor, anchor_value)
        return _frame([shown], level)

    def in_points(self, scale: str = "elo", anchor: Hashable = None, value: float | None = None) -> "Consensus":
        """The same result in points, such as Elo points: 400 points mean odds of 10 to 1.

        The item ``anchor`` has ``value`` points (default 1000); without an anchor, the mean over items does.
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
        """A Polars frame of what was learned about each agent (rater, voter), as with ``agents="sharpness"``."""
        import polars as pl

        if self.agents is not None:
            return self.agents.to_frame()
        if self.adherence is None:
            raise ValueError(f'{self.method!r} learned nothing about agents; agents="sharpness+ties+side" asks for it')
        return pl.DataFrame({"agent": plain_names(list(self.adherence)), "adherence": list(self.adherence.values())})

    def to_rankings(self) -> Rankings:
        """The consensus as one ballot with its scores; tied items share their mean score."""
        return _as_ballots([self], None)

    def with_min_support(self, minimum: float) -> "Consensus":
        """The same scores without the items whose support is below ``minimum``; ranks are among the remaining items.

        >>> c = Consensus(("ant", "bee", "cat"), [3.0, 2.0, 1.0], method="m", support=[1.0, 9.0, 8.0])
        >>> c.with_min_support(5).ranking
        ['bee', 'cat']
        """
        if self.support is None:
            raise ValueError(f"{self.method!r} does not say how much data each item has")
        return subset(self, self.support >= minimum, f"with support below {minimum:g}")

    def renamed(self, items: Sequence[Hashable]) -> "Consensus":
        """The same result with other item names; both share the cached simulations of ranks."""
        if len(items) != len(self.items):
            raise ValueError(f"{len(items)} names for {len(self.items)} items")
        _ = self._computed, self._relations  # created here so that both share them
        twin = copy.copy(self)
        twin.__dict__.pop("_index", None)
        object.__setattr__(twin, "items", tuple(items))
        if self.record is not None:
            object.__setattr__(twin, "record", self.record.renamed(items))
        return twin

    def _repr_html_(self) -> str:
        return display.html_table(self)

    def plot(self, level: float = 0.95, most: int = 30, axes: Any = None) -> Any:
        """Plot the best ``most`` items with intervals by matplotlib, on ``axes`` or new ones; returns the axes."""
        return display.plot(self, level, most, axes)

    def __repr__(self) -> str:
        shown = []
        for k in self.order[:3]:
            error = "" if self.stderr is None else f" ± {self.stderr[k]:.2g}"
            shown.append(f"{visible(str(self.items[k]))} {self.scores[k]:.3g}{error}")
        more = f", ... {len(self.items)} items" if len(self.items) > 3 else ""
        notes = f", {len(self.notes)} notes" if self.notes else ""
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

    def _errors(self, random_state: int) -> tuple[Floats, Floats]:
        """Draws of the scores' errors (draws, n), empty for very many items, and standard errors of differences."""
        if self.draws is not None:
            errors = self.draws - self.scores
            return errors, separation.difference_errors(None, None, errors)
        stderr = separation.difference_errors(self.stderr, self.covariance, None)
        if len(self.items) > separation.MOST_JOINT:
            return np.zeros((0, len(self.items))), stderr
        return self._simulated_scores(random_state)[: separation.MOST_DRAWS] - self.scores, stderr

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


@dataclass(frozen=True, eq=False, repr=False)
class ConsensusSet(Mapping[Hashable, Consensus]):
    """A mapping from the name of each instance to its `Consensus`.

    ``set_notes`` concern the data as a whole; ``notes`` adds those of the instances, each kind once.  ``by`` is what
    instances are called in tables: slices of votes have the name of their column.

    >>> one = Consensus(("a", "b"), [1.0, 0.0], method="borda")
    >>> two = Consensus(("b", "c"), [2.0, 2.0], method="borda")
    >>> found = ConsensusSet({"cats": one, "dogs": two}, method="borda")
    >>> found
    ConsensusSet(borda: 2 instances, 4 items)
    >>> found["dogs"].ranking
    [('b', 'c')]
    >>> found.ranking
    {'cats': ['a', 'b'], 'dogs': [('b', 'c')]}
    """

    results: Mapping[Hashable, Consensus]
    method: str
    params: Mapping[str, object] = field(default_factory=dict)
    set_notes: tuple[str, ...] = ()
    by: str = "instance"

    def __post_init__(self) -> None:
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        put("results", dict(self.results))
        put("params", dict(self.params))
        put("set_notes", tuple(self.set_notes))

    def __getitem__(self, instance: Hashable) -> Consensus:
        try:
            return self.results[instance]
        except KeyError:
            raise KeyError(f"{self.by} {instance!r} is not among the {len(self)} {self.by}s") from None

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __repr__(self) -> str:
        items = sum(len(c.items) for c in self.values())
        notes = f", {len(self.notes)} notes" if self.notes else ""
        return f"{type(self).__name__}({self.method}: {len(self)} {self.by}s, {items} items{notes})"

    def _repr_html_(self) -> str:
        return display.html_tables(self)

    def plot(self, level: float = 0.95, most: int = 10) -> Any:
        """Plot the best ``most`` items of the first six instances by matplotlib; returns their axes."""
        return display.plot_many(self, level, most)

    @property
    def ranking(self) -> dict[Hashable, list[Hashable]]:
        """The ranking of every instance."""
        return {name: c.ranking for name, c in self.items()}

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Notes on the whole, then on instances: a note common to all once, others with the number of their instances.

        Notes that differ only in numbers, or in names after a colon, count as one kind, and only the first is shown.
        """
        kinds: Counter[str] = Counter()
        first: dict[str, tuple[Hashable, str]] = {}
        texts: dict[str, set[str]] = {}
        for name, c in self.items():
            for note in c.notes:
                kind = re.sub(r"[0-9][0-9.,e+-]*", "#", note.partition(": ")[0])
                kinds[kind] += 1
                first.setdefault(kind, (name, note))
                texts.setdefault(kind, set()).add(note)
        found = list(self.set_notes)
        for kind, count in kinds.items():
            name, note = first[kind]
            everywhere = count == len(self) and len(texts[kind]) == 1
            those = f"All {count}" if count == len(self) else f"{count} of {len(self)}"
            such = name if count == 1 else f"as in {name}"
            found.append(note if everywhere else f"{those} {self.by}s ({such}): {note}")
        return tuple(found)

    def to_frame(self, level: float = 0.95) -> "pl.DataFrame":
        """A Polars frame, instance by instance and best first: ``by``, then the columns of `Consensus.to_frame`."""
        import polars as pl

        names = [name for name, c in self.items() for _ in c.items]
        frame = _frame(list(self.values()), level)
        return frame.insert_column(0, pl.Series(self.by, plain_names(names)))

    def with_min_support(self, minimum: float) -> "ConsensusSet":
        """Every instance without items whose support in it is below ``minimum``; instances left empty are dropped."""
        enough = {name: c for name, c in self.items() if c.support is None or (c.support >= minimum).any()}
        notes = self.set_notes
        if len(enough) < len(self):
            notes += (f"{len(self) - len(enough)} instances have no item with support of {minimum:g} and are left out",)
        return replace(self, results={name: c.with_min_support(minimum) for name, c in enough.items()}, set_notes=notes)

    def to_rankings(self) -> Rankings:
        """One ballot with scores for each instance, as written to a TREC run."""
        return _as_ballots(list(self.values()), list(self))


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


def table_columns(results: Sequence[Consensus], level: float) -> dict[str, Any]:
    """The columns of `Consensus.to_frame`, results one after another: names as a list, numbers as an array with NaN for
    unknown values, or None if all are unknown.
    """
    columns: dict[str, list[Floats | Ints]] = {
        name: [] for name in ("score", "stderr", "rank", "rank_low", "rank_high", "tier", "support")
    }
    known = any(c.stderr is not None for c in results)
    for c in results:
        order = c.order
        columns["score"].append(c.scores[order])
        columns["rank"].append(c.ranks[order])
        if known:
            unknown = np.full(len(order), np.nan)
            low, high = (unknown, unknown) if c.stderr is None else c.rank_interval(level)
            columns["stderr"].append(unknown if c.stderr is None else c.stderr[order])
            columns["rank_low"].append(low[order])
            columns["rank_high"].append(high[order])
            tiered = c.stderr is not None and len(order) <= separation.MOST_PAIRED
            columns["tier"].append(c.tier_numbers(level)[order] if tiered else unknown)
        if c.support is not None:
            columns["support"].append(c.support[order])
    names = plain_names([c.items[k] for c in results for k in c.order])
    return {"item": names, **{name: np.concatenate(parts) if parts else None for name, parts in columns.items()}}


def table_rows(c: Consensus, level: float) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Column names and rows of `Consensus.to_frame` without a data frame, with None for unknown values.

    Printing a few numbers then need not wait for the import of Polars.
    """
    columns = table_columns([c], level)
    shown: list[list[Any]] = [list(columns.pop("item"))]
    for name, values in columns.items():
        plain = [None] * len(c.items) if values is None else [None if v != v else v for v in values.tolist()]
        shown.append(plain if name in MEASURED else [None if v is None else int(v) for v in plain])
    return ["item", *columns], list(zip(*shown))


def _frame(results: Sequence[Consensus], level: float) -> "pl.DataFrame":
    """A Polars frame of `table_columns`."""
    import polars as pl

    columns = table_columns(results, level)
    names = columns.pop("item")
    frame = {"item": pl.Series(names)}
    for name, values in columns.items():
        kind = pl.Float64 if name in MEASURED else pl.Int64
        column = pl.Series([None] * len(names), dtype=kind) if values is None else pl.Series(values).fill_nan(None)
        frame[name] = column.cast(kind)
    return pl.DataFrame(frame)


def _as_ballots(results: Sequence[Consensus], instance: Sequence[Hashable] | None) -> Rankings:
    """Every result as a ballot with its tiers, and scores that are equal within a tier."""
    names: dict[Hashable, int] = {}
    item = [names.setdefault(c.items[k], len(names)) for c in results for k in c.order]
    tier, score = [], []
    for c in results:
        own, size = c._tiers
        mean = np.bincount(own, c.scores, len(size)) / size
        tier.append(own[c.order])
        score.append(np.where(size == 1, c.scores[c.order[np.cumsum(size) - size]], mean)[own[c.order]])
    return Rankings.from_codes(
        np.array(item, np.int64),
        np.concatenate([np.zeros(0, np.int64), *tier]),
        offsets_from_sizes([len(c.items) for c in results]),
        tuple(names),
        instance=instance,
        score=np.concatenate([np.zeros(0), *score]),
    )
