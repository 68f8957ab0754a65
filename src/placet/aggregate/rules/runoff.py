"""Runoffs: the last item is eliminated, round by round.  Transferable votes are in ``stv``.

A ballot counts for its best standing item, divided equally among several that tie (the mean over all orders of the
tie); a ballot without standing items is exhausted.  Ties for the last place are broken in every possible way
(``ties="parallel"``), and an item's place is the best that it reaches; or tied items are eliminated together
(``ties="together"``).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

import numpy as np

from placet.aggregate.places import ballots_of
from placet.aggregate.result.election_record import ELECTED, ELIMINATED, HOPEFUL, Record, Round
from placet.aggregate.result.result import RELATIVE_TOLERANCE
from placet.aggregate.rules.kemeny import margins, pair_tables
from placet.aggregate.rules.order_scores import scores_of
from placet.aggregate.rules.scored import Scored
from placet.data import Comparisons, Rankings
from placet.data.arrays import Floats, Ints
from placet.data.errors import one_of
from placet.kernels.aggregate import election_counts as kernels

Ties = Literal["parallel", "together"]
MOST_STATES = 4096
"""Maximum number of sets of standing items, beyond one per item; with more, tied items are eliminated together."""
MOST_RECORDED = 8
"""Maximum number of counts that are recorded if ties lead to several."""


@dataclass(frozen=True)
class Eliminations:
    """``places`` (n,): how many items outlast each, at best; ``next_out``: standing items -> choices of the next out.

    A choice is an array of items eliminated together.  ``complete`` is False if there were too many ways to break ties
    in parallel, so tied items were eliminated together.
    """

    places: Ints
    next_out: dict[bytes, list[Ints]]
    complete: bool

    @property
    def notes(self) -> tuple[str, ...]:
        if not self.complete:
            return (f"more than {MOST_STATES} outcomes of ties: items that tie for the last place go together",)
        if all(len(choices) == 1 for choices in self.next_out.values()):
            return ()
        return ("ties for the last place are broken in every way: an item's place is the best that it reaches",)

    def paths(self) -> Iterator[tuple[tuple[Ints, Ints], ...]]:
        """Every elimination sequence, as (standing items, eliminated items) of each round."""
        waiting: list[tuple[Ints, tuple[tuple[Ints, Ints], ...]]] = [(np.arange(len(self.places)), ())]
        while waiting:
            standing, path = waiting.pop()
            if not len(standing):
                yield path
                continue
            waiting += [
                (np.setdiff1d(standing, gone, assume_unique=True), (*path, (standing, gone)))
                for gone in reversed(self.next_out[standing.tobytes()])
            ]


def eliminate(n: int, last: Callable[[Ints], tuple[Ints, bool]], ties: Ties) -> Eliminations:
    """Eliminate items until none is left.

    ``last(standing)`` returns the items that tie for the last place among ``standing`` (sorted codes), and whether to
    eliminate them together in any case, because their order does not matter.
    """
    one_of(ties, ("parallel", "together"), "ties")
    if ties == "parallel":
        found = _eliminate(n, last, parallel=True)
        if found is not None:
            return found
    together = _eliminate(n, last, parallel=False)
    assert together is not None  # one set of standing items for each round
    return replace(together, complete=ties == "together")


def _eliminate(n: int, last: Callable[[Ints], tuple[Ints, bool]], parallel: bool) -> Eliminations | None:
    places = np.full(n, n)
    waiting: dict[int, dict[bytes, Ints]] = {n: {b"": np.arange(n)}} if n else {}
    next_out: dict[bytes, list[Ints]] = {}
    while waiting:
        size = max(waiting)
        for standing in waiting.pop(size).values():
            if len(next_out) > n + MOST_STATES:
                return None
            tied, alike = last(standing)
            alone = len(tied) == 1 or not parallel or alike
            np.minimum.at(places, tied, size - len(tied) if alone else size - 1)
            next_out[standing.tobytes()] = choices = [tied] if alone else np.split(tied, len(tied))
            for gone in choices:
                rest = np.setdiff1d(standing, gone, assume_unique=True)
                if len(rest):
                    waiting.setdefault(len(rest), {})[rest.tobytes()] = rest
    return Eliminations(places, next_out, True)


def irv(data: Rankings, ties: Ties = "parallel", batch: bool = False) -> Scored:
    """Instant runoff (ranked choice, alternative vote): repeatedly eliminate the item with the fewest first choices.

    The score is minus the number of items that outlast it, 0 for the winner.  ``batch``: the last items are eliminated
    at once if they have fewer first choices together than the next has alone; they tie, and the winners are the same.
    O(n rows), times the tied sets.

    Returns
    -------
    Scored
        The ``scores`` (items,), higher is better, and notes.

    >>> irv(Rankings.from_orders([["a", "b", "c"]] * 4 + [["b", "c", "a"]] * 3 + [["c", "b", "a"]] * 2)).scores
    array([-1.,  0., -2.])
    """
    rankings = ballots_of(data, "irv")
    n, close = rankings.n_items, RELATIVE_TOLERANCE * float(rankings.weight.sum())
    tallies: dict[bytes, tuple[Floats, float]] = {}

    def last(standing: Ints) -> tuple[Ints, bool]:
        """The last items; those without first choices are eliminated together, as they have no votes to transfer."""
        tallies[standing.tobytes()] = tally = first_choices(rankings, standing)
        votes = tally[0][standing]
        low = float(votes.min())
        hopeless = without_hope(votes, close) if batch else 0
        if hopeless > 1:
            return standing[np.sort(np.argsort(votes, kind="stable")[:hopeless])], True
        return standing[votes <= low + close], low <= close

    found = eliminate(n, last, ties)
    paths = list(islice(found.paths(), MOST_RECORDED))
    counts = tuple(tuple(_round(*tallies[who.tobytes()], who, gone) for who, gone in path) for path in paths)
    winners = tuple(rankings.items[k] for k in np.flatnonzero(found.places == 0))
    elected, tied = (winners, ()) if len(winners) == 1 else ((), winners)
    record = Record(rankings.items, counts, elected, tied, ways=len(paths))
    return Scored(scores_of(found.places), found.notes, record=record)


def without_hope(votes: Floats, close: float, spare: int | None = None) -> int:
    """How many of the last items have fewer votes together than the next one alone; at most ``spare`` of them.

    None of these can pass the others, even with all their votes.

    >>> without_hope(np.array([9.0, 1.0, 2.0, 4.0, 20.0]), 1e-9)
    4
    """
    ranked = np.sort(votes)
    ahead = np.cumsum(ranked)[:-1] < ranked[1:] - close
    return int(np.flatnonzero(ahead[: len(votes) if spare is None else max(spare, 0)]).max(initial=-1)) + 1


def _round(votes: Floats, exhausted: float, standing: Ints, gone: Ints) -> Round:
    """A round of the record; items that leave in the final round are elected, or tie for the seat."""
    status = np.full(len(votes), ELIMINATED)
    status[standing] = HOPEFUL
    final = len(gone) == len(standing)
    status[gone] = ELECTED if final else ELIMINATED
    action = "is eliminated" if not final else "is elected" if len(gone) == 1 else "ties for the seat"
    return Round(votes, exhausted, status, dict.fromkeys(gone.tolist(), action))


def first_choices(rankings: Rankings, standing: Ints) -> tuple[Floats, float]:
    """Weight (n,) of the ballots that rank each item best among those standing, and weight of exhausted ballots."""
    votes, stands = np.zeros(rankings.n_items), np.zeros(rankings.n_items, np.bool_)
    stands[standing] = True
    columns = rankings.item, rankings.tier, rankings.offsets, rankings.weight
    return votes, kernels.first_choices(*columns, stands, votes)


def baldwin(data: Rankings | Comparisons, ties: Ties = "parallel") -> Scored:
    """Baldwin: repeatedly eliminate the item with the lowest Borda count among those standing.

    A Condorcet winner always wins.  The score is minus the number of items that outlast it.  O(n^2), times the tied
    sets.

    Returns
    -------
    Scored
        The ``scores`` (items,), higher is better, and notes.

    >>> baldwin(Rankings.from_orders([["a", "b", "c"]] * 3 + [["b", "c", "a"]] * 2)).scores
    array([ 0., -1., -2.])
    """
    margin, close = _margins(data)
    stood, net = np.ones(len(margin), np.bool_), margin.sum(axis=1)

    def last(standing: Ints) -> tuple[Ints, bool]:
        """The last items by net wins (a Borda count is half of them plus a constant), updated from the last call."""
        nonlocal stood, net
        stands = np.zeros(len(margin), np.bool_)
        stands[standing] = True
        for k in np.flatnonzero(stands != stood):  # margin(i, k) = -margin(k, i)
            net = net - margin[k] if stands[k] else net + margin[k]
        stood = stands
        own = net[standing]
        return standing[own <= own.min() + close * len(standing)], False

    found = eliminate(data.n_items, last, ties)
    return Scored(scores_of(found.places), found.notes)


def nanson(data: Rankings | Comparisons) -> Floats:
    """Nanson: repeatedly eliminate all items with a Borda count below the average among those standing.

    Items eliminated in the same round tie, and so do those remaining when none is below the average.  The score is
    minus the number of items that outlast it.  O(n^3).

    Returns
    -------
    array
        A score per item (items,), higher is better.

    >>> nanson(Rankings.from_orders([["a", "b", "c"]] * 3 + [["b", "c", "a"]] * 2))
    array([ 0., -1., -2.])
    """
    margin, close = _margins(data)
    places, standing = np.zeros(data.n_items, np.int64), np.arange(data.n_items)
    while len(standing):
        net = margin[np.ix_(standing, standing)].sum(axis=1)
        stays = net >= -close * len(standing)
        if stays.all():
            break
        places[standing[~stays]] = stays.sum()
        standing = standing[stays]
    return scores_of(places)


def _margins(data: Rankings | Comparisons) -> tuple[Floats, float]:
    wins, _ = pair_tables(data)
    return margins(wins), RELATIVE_TOLERANCE * float(wins.max(initial=0.0))
