"""Outcomes: which items a method puts above which others, with ties kept as ties."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.aggregate import METHODS, RULES, Consensus, consensus
from placet.aggregate.method_table import method_of
from placet.aggregate.rules.positional import POSITIONAL, positional_vector
from placet.axioms.profiles import Profile, pair_weights
from placet.data import Comparisons, DataError, Rankings
from placet.data.arrays import Floats

Above = NDArray[np.bool_]
"""(n, n): whether the row item is strictly above the column item."""


@dataclass(frozen=True)
class ExaminedMethod:
    """A method under examination: a name, and a function from ballots to a ``Consensus``, scores (n,) or a relation.

    A relation (n, n) is positive where the row item is above the column item; it need not be transitive.  For a
    positional method, ``h`` gives the points of n places; ``unlisted`` is how it treats items that a ballot omits.
    ``scores`` of a rule gives its scores alone, equal where they tie.

    >>> import placet
    >>> votes = placet.Rankings.from_orders([["A", "B", "C"]] * 3 + [["B", "C", "A"]] * 2)
    >>> from placet.axioms import as_method
    >>> rule = as_method("borda")
    >>> rule.name, rule.run(votes).ranking
    ('borda', ['B', 'A', 'C'])
    """

    name: str
    run: Callable[[Any], Any]
    h: Callable[[int], Floats] | None = None
    unlisted: str = "absent"
    scores: Callable[[Any], Floats] | None = None

    def outcome(self, data: Rankings | Comparisons) -> Above:
        """Which items it puts above which others; a rule is asked for its scores, with no result built around them."""
        if self.scores is None:
            return relation(self.run(data), data.n_items)
        scores = self.scores(data)
        return scores[:, None] > scores[None, :]


def as_method(method: Any, **params: Any) -> ExaminedMethod:
    """A method from its name in ``METHODS``, a function, a model, or the ``Consensus`` it produced.

    ``"majority"`` is the relation of pairwise majorities, which need not be transitive.

    Returns
    -------
    ExaminedMethod
        What the searches and audits of axioms run.

    >>> as_method("plurality").name, as_method("PL").name
    ('plurality', 'plackett-luce')
    """
    if isinstance(method, ExaminedMethod):
        return method
    if isinstance(method, Consensus):
        if method.method not in METHODS:
            raise ValueError(f"the consensus came from {method.method!r}, which is not one of METHODS")
        return as_method(method.method, **(dict(method.params) | params))
    if isinstance(method, str):
        if method == "majority":
            return ExaminedMethod(method, majority_relation)
        record = method_of(method)
        method = record.name
        unlisted = str(params.get("unlisted", "absent"))
        run = lambda data: consensus(data, method, **params)  # noqa: E731
        if record.kind != "rule":
            return ExaminedMethod(method, run, unlisted=unlisted)
        record.check(params)
        scores = lambda data: record.run(data, **params).scores  # noqa: E731
        return ExaminedMethod(method, run, _points(method, params), unlisted, scores)
    if hasattr(method, "get_params") and hasattr(method, "fit"):
        settings = method.get_params(deep=False)
        name = getattr(method, "method", type(method).__name__)
        return ExaminedMethod(name, lambda data: type(method)(**settings).fit(data).consensus_)
    if callable(method):
        name = next((key for key, rule in RULES.items() if rule is method), None)
        return as_method(name, **params) if name else ExaminedMethod(getattr(method, "__name__", "method"), method)
    raise TypeError(f"a method is a name, a function, a model or a Consensus, not {type(method).__name__}")


def positional_method(h: ArrayLike) -> ExaminedMethod:
    """The positional rule with the given points, best place first.

    Returns
    -------
    ExaminedMethod
        The rule, to be searched for axioms that it breaks.

    >>> import placet
    >>> votes = placet.Rankings.from_orders([["A", "B", "C"]] * 3 + [["B", "C", "A"]] * 2)
    >>> positional_method([2, 1, 0]).run(votes).ranking
    ['B', 'A', 'C']
    """
    return as_method("positional", h=np.asarray(h, np.float64))


def _points(name: str, params: dict[str, Any]) -> Callable[[int], Floats] | None:
    if name in POSITIONAL:
        return lambda n: positional_vector(name, n)
    if name != "positional":
        return None
    h = params.get("h", "borda")
    if isinstance(h, str):
        return _points(h, {})
    return lambda n: np.asarray(h(n) if callable(h) else h, np.float64)


def majority_relation(data: Rankings | Comparisons) -> Floats:
    """Positive where more weight puts the row item above the column item than below; may be cyclic.  O(pairs).

    Returns
    -------
    array
        Weight above minus weight below, (items, items).

    >>> import placet
    >>> votes = placet.Rankings.from_orders([["A", "B", "C"]] * 3 + [["B", "C", "A"]] * 2)
    >>> majority_relation(votes)
    array([[ 0.,  1.,  1.],
           [-1.,  0.,  5.],
           [-1., -5.,  0.]])
    """
    pairs = pair_weights(data)
    return pairs.wins - pairs.wins.T


def relation(answer: Any, n_items: int) -> Above:
    """The relation given by a method's answer; scores that are not finite raise a ``DataError``."""
    if isinstance(answer, Consensus):
        return answer.ranks[:, None] < answer.ranks[None, :]
    values = np.asarray(answer, np.float64)
    if values.shape not in ((n_items,), (n_items, n_items)):
        shapes = f"{n_items} scores, or a table of {n_items} x {n_items}"
        raise ValueError(f"a method must give {shapes}, not {values.shape}")
    if not np.isfinite(values).all():
        raise DataError(f"the method gave {int((~np.isfinite(values)).sum())} scores that are not finite")
    if values.ndim == 2:
        return values > 0
    return relation(Consensus(tuple(range(n_items)), values, method="rule"), n_items)


class CachedMethod:
    """A method that runs only once on each profile."""

    def __init__(self, method: Any, most_cached: int = 200_000):
        self.method = as_method(method)
        self.reason = ""
        self._cache: dict[Profile, Above | None] = {}
        self._most_cached = most_cached

    @property
    def name(self) -> str:
        return self.method.name

    def outcome(self, profile: Profile) -> Above | None:
        """The relation on a profile, or ``None`` if the method has no answer (``reason`` then says why)."""
        if profile in self._cache:
            return self._cache[profile]
        if len(self._cache) >= self._most_cached:
            self._cache.clear()
        try:
            above: Above | None = self.method.outcome(profile.to_rankings())
        except DataError as error:
            above, self.reason = None, str(error)
        self._cache[profile] = above
        return above


def tiers(above: Above) -> list[tuple[int, ...]]:
    """Items grouped by how many are above them, best first: the tiers of a ranking with ties."""
    count = above.sum(axis=0)
    return [tuple(np.flatnonzero(count == level).tolist()) for level in np.unique(count)]


def sole_winner(above: Above) -> int | None:
    """The item above all others, or ``None``."""
    wins = np.flatnonzero(above.sum(axis=1) == len(above) - 1)
    return int(wins[0]) if len(wins) else None


def place_range(above: Above, x: int) -> tuple[int, int]:
    """How many items are above x, and how many are above it or tied with it."""
    return int(above[:, x].sum()), len(above) - 1 - int(above[x].sum())
