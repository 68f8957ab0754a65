"""The record of a method: what it is called, what it does, what data it takes, what it costs, and how to run it."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Any, Literal

import numpy as np

from placet.aggregate.instances import refuse_instances
from placet.aggregate.places import ballots_of
from placet.aggregate.result.result import RELATIVE_TOLERANCE
from placet.aggregate.rules.scored import Scored, level_ties
from placet.data import Comparisons, Parts, Rankings
from placet.data.arrays import Floats
from placet.data.parameters import check_parameters
from placet.output.numbers import count_text

MethodKind = Literal["model", "rule", "score method", "joint", "game model"]
Takes = Literal["votes", "ballots", "scores", "games"]
TieFate = Literal["half", "ignored"]
VoterLaw = Literal["pairs", "orders", "partitions", "distances"]

DATA_FIRST = {"model": 0, "rule": 1, "score method": 2, "joint": 1, "game model": 1}
"""Number of leading parameters of a method's function that are data, not settings."""


@dataclass(frozen=True)
class Method:
    """A method of `METHODS`.  A rule can be called: ``method(data, **params)`` gives scores (n_items,), best highest.

    Attributes
    ----------
    name, title, words : str
        The name that users type, the one they read, and what the method does, for readers of a ranking.
    home : str or callable
        "module:name" below `placet.aggregate` of the estimator class, the function of a rule or the `ScoreFit` of a
        score method, imported on first use; or the thing itself.
    reference : str
        Where it was published, in one line.
    kind : str
        "model" (an estimator with ``fit``), "rule" (a function from ballots or pairs to scores), "score method" (of
        score tables), "joint" (of `placet.Sources`), "game model" (of `placet.Games`).
    takes : tuple
        Kinds of data: "votes" on pairs, "ballots", "scores", "games" with points.
    law : str or None
        What a voter's likelihood is about: "pairs", "orders", "partitions" or "distances" of orders; None if voters
        have none.  Such models can be mixed.
    shares_agents : bool
        Fitted to the ballots of all instances at once, because what it learns about an agent holds in all of them.
    reads_scores, reads_controls : bool
        Whether the scores on ballots, and the controls of votes or rows, are used.
    drifts : bool
        Whether scores may change over time (``drift=``).
    adds : bool
        The scores of two sets of ballots add up to those of their union.
    ties : str or None
        What becomes of ties on votes: "half" a win for either side, or "ignored"; None if its own notes say so.
    beyond_pairs : bool
        Though it takes votes on pairs, it uses more of ballots than their pairs.
    picks_one : bool
        It picks one of several orders that are equally good.
    compared : tuple
        Kinds of data on which an audit compares it with the rule audited.
    tolerance : float or None
        The difference within which two scores tie, if the scale of the scores is known; else 1e-9 of the largest.
    power : int
        Exponent of the running time in the number of items; from 3 on it uses linear algebra.
    cost : callable or None
        ``cost(rows, items, length)``: an estimate of the running time in seconds, if not that of a rule that counts;
        ``length`` is that of the longest ballot.
    tie_cost : float
        Seconds for each row that ties above the last tier of its ballot, beside them.
    """

    name: str
    title: str
    words: str
    home: str | Callable[..., Any]
    reference: str
    kind: MethodKind = "rule"
    takes: tuple[Takes, ...] = ("ballots",)
    law: VoterLaw | None = None
    shares_agents: bool = False
    reads_scores: bool = False
    reads_controls: bool = False
    drifts: bool = False
    adds: bool = False
    ties: TieFate | None = None
    beyond_pairs: bool = False
    picks_one: bool = False
    compared: tuple[Takes, ...] = ()
    tolerance: float | None = None
    power: int = 1
    cost: Callable[[int, int, int], float] | None = None
    tie_cost: float = 0.0

    @cached_property
    def function(self) -> Any:
        """The function of a rule, the class of a model, the `ScoreFit` of a score method."""
        if not isinstance(self.home, str):
            return self.home
        module, _, name = self.home.partition(":")
        return getattr(import_module(f"placet.aggregate.{module}"), name)

    @property
    def source(self) -> Any:
        """The function or class whose signature and docstring state the parameters."""
        return self.function.fit if self.kind == "score method" else self.function

    @property
    def of_pairs(self) -> bool:
        """Whether it takes votes on pairs."""
        return "votes" in self.takes

    @property
    def pairs_suffice(self) -> bool:
        """Whether a rule uses nothing of ballots but their pairs."""
        return "votes" in self.takes and not self.beyond_pairs

    @property
    def works_on_sums(self) -> bool:
        """Whether it needs only sums over ballots: of points, of pairs, of the values of a likelihood."""
        if self.kind == "model":
            return bool(getattr(self.function, "fits_parts", False))
        return self.kind == "rule" and (self.adds or self.pairs_suffice)

    @property
    def parameters(self) -> dict[str, Any]:
        """Names and defaults of the parameters that a caller may set."""
        every = list(inspect.signature(self.source).parameters.values())[DATA_FIRST[self.kind] :]
        own = {one.name: one.default for one in every if one.default is not one.empty}
        return own | ({"unit": None} if self.kind == "score method" and self.function.answer is None else {})

    def check(self, params: Mapping[str, Any]) -> None:
        """Raise a ``ValueError`` for parameters that it does not have, or values of the wrong kind; needs no data."""
        if not params:
            return
        given = dict(params)
        if self.kind == "score method" and "unit" in given and self.function.answer is None:
            self.function.check_unit(given.pop("unit"))
        check_parameters(self.source, given, repr(self.name), skip=DATA_FIRST[self.kind])
        if self.kind == "model" and "prior" in given:
            from placet.aggregate.likelihood.prior import check_prior

            check_prior(given["prior"])

    def ties_note(self, n_ties: float) -> list[str]:
        """A note on what becomes of ties on votes, unless the method's own notes say it."""
        if not n_ties or self.ties is None:
            return []
        ties = "1 tie" if n_ties == 1 else f"{count_text(n_ties)} ties"
        if self.ties == "half":
            return [
                f"{ties} counted as half a win for either side by {self.name!r}; 'bradley-terry' has a model of ties"
            ]
        return [f"{ties} said nothing to {self.name!r}, which counts wins alone; 'bradley-terry' has a model of ties"]

    def seconds(self, rows: int, items: int, length: int | None = None) -> float:
        """An estimate of the running time for data with ``rows`` rows over ``items`` items.

        ``length``: that of the longest ballot, by default all items.
        """
        if self.cost is not None:
            return self.cost(rows, items, items if length is None else length)
        pairs = 6e-10 * rows * (items if length is None else length) if "votes" in self.takes and not self.adds else 0.0
        return 1e-4 + 4e-8 * rows + pairs + 1e-9 * float(items) ** self.power

    # Rules

    def __call__(self, data: Rankings | Comparisons | Parts, *args: object, **params: object) -> Floats:
        return self.run(data, *args, **params).scores

    def run(self, data: Rankings | Comparisons | Parts, *args: object, **params: object) -> Scored:
        """Scores of a rule, with notes and tolerance; scores that differ only by rounding are made equal."""
        if isinstance(data, Parts) and self.adds:
            points, weight = data.sum(_points, self, params, name="points")
            factor = data.weight / weight if data.is_resampled and weight > 0 else 1.0  # resampled ballots vary
            return self.from_points((points[0] * factor, *points[1:]))
        if isinstance(data, Parts):
            from placet.aggregate.pairs.ballot_pairs import counted_pairs

            data = counted_pairs(data)
        if not (isinstance(data, Comparisons) and "votes" in self.takes):
            data = ballots_of(data, self.name)
        refuse_instances(data, self.name)
        return self._level(self._answer(data, *args, **params))

    def points(self, data: Rankings, params: Mapping[str, object]) -> tuple[Floats, float, list[str]]:
        """Scores of a part, its share of the tolerance, and notes; summed over parts they give those of all."""
        found = self._answer(data, **params)
        return found.scores, found.tolerance or 0.0, list(found.notes)

    def from_points(self, points: tuple[Floats, float, list[str]]) -> Scored:
        """Scores from the sum of points of all parts."""
        scores, tolerance, notes = points
        return self._level(Scored(scores, tuple(dict.fromkeys(notes)), tolerance or None))

    def _answer(self, data: Rankings | Comparisons, *args: object, **params: object) -> Scored:
        answer = self.function(data, *args, **params)
        return answer if isinstance(answer, Scored) else Scored(answer)

    def _level(self, found: Scored) -> Scored:
        size = float(np.abs(found.scores).max(initial=0.0))
        known = self.tolerance if found.tolerance is None else found.tolerance
        close = RELATIVE_TOLERANCE * size if known is None else known
        return replace(found, scores=level_ties(found.scores, close), tolerance=close)


def _points(data: Rankings, method: Method, params: Mapping[str, object]) -> tuple[Any, float]:
    """Points of a part, and its weight."""
    return method.points(data, params), float(data.weight.sum())


@dataclass(frozen=True, eq=False)
class MethodView(Mapping[str, Any]):
    """Methods of a table that ``holds`` accepts: name -> ``show(method)``; what is added to the table is seen here."""

    table: Mapping[str, Method]
    holds: Callable[[Method], bool]
    show: Callable[[Method], Any]

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise KeyError(name)
        return self.show(self.table[name])

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self.table and self.holds(self.table[name])

    def __iter__(self) -> Iterator[str]:
        return (name for name, method in self.table.items() if self.holds(method))

    def __len__(self) -> int:
        return sum(1 for _ in self)
