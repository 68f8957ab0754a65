"""What a rule says: who stands above whom, ties shown as ties."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.aggregate import MODELS, RULES, Consensus, consensus
from placet.aggregate.positional import POSITIONAL, positional_vector
from placet.axioms.profiles import Profile, pairs_of
from placet.data import Comparisons, DataError, Rankings
from placet.data.arrays import Floats
from placet.data.errors import one_of

Relation = NDArray[np.bool_]
"""(n, n): whether row stands strictly above column."""
Ballots = Rankings | Comparisons


@dataclass(frozen=True)
class Rule:
    """A rule or model by name, and a function from ballots to a ``Consensus``, scores (n,), or a relation (n, n).

    A relation is positive where row stands above column; it need not be transitive.  ``h`` gives the points of n places
    where the rule is positional, and ``unlisted`` what it makes of items that a ballot leaves out.
    """

    name: str
    run: Callable[[Any], Any]
    h: Callable[[int], Floats] | None = None
    unlisted: str = "absent"


def rule_of(rule: Any, **params: Any) -> Rule:
    """A rule by its name in ``RULES`` or ``MODELS``, as a function, as a model, or as the ``Consensus`` it gave."""
    if isinstance(rule, Rule):
        return rule
    if isinstance(rule, Consensus):
        if rule.method not in RULES and rule.method not in MODELS:
            raise ValueError(f"the consensus came from {rule.method!r}, which is not a method of RULES or MODELS")
        return rule_of(rule.method, **(dict(rule.params) | params))
    if isinstance(rule, str):
        if rule == "majority":
            return Rule(rule, majority_relation)
        one_of(rule, [*MODELS, *RULES], "rule")
        unlisted = str(params.get("unlisted", "absent"))
        return Rule(rule, lambda data: consensus(data, rule, **params), _points(rule, params), unlisted)
    if hasattr(rule, "get_params") and hasattr(rule, "fit"):
        settings = rule.get_params(deep=False)
        return Rule(getattr(rule, "method", type(rule).__name__), lambda d: type(rule)(**settings).fit(d).consensus_)
    if callable(rule):
        name = next((key for key, known in RULES.items() if known is rule), None)
        return rule_of(name, **params) if name else Rule(getattr(rule, "__name__", "rule"), rule)
    raise TypeError(f"a rule is a name, a function, a model or a Consensus, not {type(rule).__name__}")


def positional_rule(h: ArrayLike) -> Rule:
    """The positional rule of given points, best place first."""
    points = np.asarray(h, np.float64)
    return rule_of("positional", h=points)


def _points(name: str, params: dict[str, Any]) -> Callable[[int], Floats] | None:
    if name in POSITIONAL:
        return lambda n: positional_vector(name, n)
    if name != "positional":
        return None
    h = params.get("h", "borda")
    if isinstance(h, str):
        return _points(h, {})
    return lambda n: np.asarray(h(n) if callable(h) else h, np.float64)


def majority_relation(data: Ballots) -> Floats:
    """Row above column where more weight puts it above than below: not transitive on every profile.  O(pairs)."""
    pairs = pairs_of(data)
    return pairs.wins - pairs.wins.T


def relation(answer: Any, n_items: int) -> Relation:
    """Who stands above whom by a rule's answer; no answer (not finite) is a ``DataError``."""
    if isinstance(answer, Consensus):
        return answer.ranks[:, None] < answer.ranks[None, :]
    values = np.asarray(answer, np.float64)
    if values.shape not in ((n_items,), (n_items, n_items)):
        raise ValueError(f"a rule must give {n_items} scores, or a table of {n_items} x {n_items}, not {values.shape}")
    if not np.isfinite(values).all():
        raise DataError(f"the rule gave {int((~np.isfinite(values)).sum())} scores that are not finite")
    if values.ndim == 2:
        return values > 0
    return relation(Consensus(tuple(range(n_items)), values, method="rule"), n_items)


class Observer:
    """A rule that is asked only once about each profile; ``asked`` counts how often it was."""

    def __init__(self, rule: Any, most_kept: int = 200_000):
        self.rule = rule_of(rule)
        self.asked = 0
        self.reason = ""
        self._known: dict[Profile, Relation | None] = {}
        self._most_kept = most_kept

    def __call__(self, profile: Profile) -> Relation | None:
        """Who stands above whom; ``None`` where the rule has no answer, and then ``reason`` says why."""
        if profile in self._known:
            return self._known[profile]
        if len(self._known) >= self._most_kept:
            self._known.clear()
        self.asked += 1
        try:
            above: Relation | None = relation(self.rule.run(profile.rankings()), len(profile.items))
        except DataError as error:
            above, self.reason = None, str(error)
        self._known[profile] = above
        return above


def tiers(above: Relation) -> list[tuple[int, ...]]:
    """Items by how many stand above them, best first: the tiers of a ranking with ties."""
    count = above.sum(axis=0)
    return [tuple(np.flatnonzero(count == level).tolist()) for level in np.unique(count)]
