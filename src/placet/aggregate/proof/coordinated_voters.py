"""Coordinated voters: groups that vote alike beyond chance.

A pair of items that a voter decided is a vote for the favorite of all voters, or against it.  Pairs of items are cut
into strata of about equal odds, by the fit to all votes and by the votes on the pair itself.  Within a stratum a voter
may have any sharpness: given how often each of two voters chose the favorite among the pairs of items that both
decided, the number that both chose is hypergeometric if they vote independently.  The sum over strata is compared with
its exact distribution, and with the spread over all pairs of voters, as tastes and misfit make that wider.  Holm's
procedure over all pairs of voters tested keeps the chance of naming anyone falsely at 1 - level.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse, stats
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, gammaln

from placet.aggregate.pairs.bradley_terry import BradleyTerry
from placet.data import Comparisons, DataError
from placet.data.arrays import Floats, Ints

if TYPE_CHECKING:
    import polars as pl

FEWEST_COMMON = 15
"""Pairs of items that two voters must both have decided to be compared."""

PER_STRATUM = 8
"""Common pairs of items in a stratum, for the median of the pairs of voters."""

MOST_STRATA = 40
MOST_VOTERS = 2000
"""Voters compared, those with the most decided pairs of items: tables of voters by voters are needed."""

MOST_EXACT = 5000
"""Pairs of voters whose p-value is computed, those that agree most; the others are not named."""

ENOUGH_FOR_SPREAD = 30
"""Pairs of voters from which their spread is estimated."""

FIT_WEIGHT = 30.0
"""Votes for which the fit counts in the odds of a pair of items."""


@dataclass(frozen=True)
class VoterGroup:
    """Voters that vote alike beyond chance.  ``common``: pairs of items that two of them both decided, on average;
    ``agree``: the share of these on which they agree, ``expected`` that of independent voters with the same votes for
    favorites.  ``p_value``: the smallest of any two of them, adjusted for all pairs of voters tested.
    """

    voters: tuple[Hashable, ...]
    common: float
    agree: float
    expected: float
    p_value: float

    def words(self) -> str:
        """The group as a sentence."""
        names = ", ".join(map(str, self.voters))
        return (
            f"{len(self.voters)} voters vote alike beyond chance: {names} (two of them agree on {self.agree:.0%} of "
            f"{self.common:.0f} common pairs of items, {self.expected:.0%} expected; p = {self.p_value:.2g})"
        )


@dataclass(frozen=True, eq=False)
class CoordinatedVoters:
    """The groups found, those of most voters first; ``tested``: the pairs of voters compared."""

    groups: tuple[VoterGroup, ...]
    tested: int
    level: float
    notes: tuple[str, ...] = ()

    def to_frame(self) -> "pl.DataFrame":
        """A Polars frame with a row per voter of a group: group (from 1), voter, common, agree, expected, p_value."""
        import polars as pl

        names = ("group", "voter", "common", "agree", "expected", "p_value")
        kinds = (pl.Int64, pl.String, pl.Float64, pl.Float64, pl.Float64, pl.Float64)
        rows = [
            (k, str(voter), one.common, one.agree, one.expected, one.p_value)
            for k, one in enumerate(self.groups, 1)
            for voter in one.voters
        ]
        return pl.DataFrame(rows, schema=dict(zip(names, kinds)), orient="row")

    def sentences(self) -> list[str]:
        """What was found, in words."""
        found = [one.words() for one in self.groups]
        if not found and self.tested:
            found = [f"no voters vote alike beyond chance ({self.tested:,} pairs of voters compared)"]
        return [*found, *self.notes]


class Decided(NamedTuple):
    """Pairs of items decided by voters: ``voter``, ``pair``, and whether the favorite was chosen, one row each."""

    voter: Ints
    pair: Ints
    favorite: Floats
    odds: Floats
    """(pairs,): the chance that the favorite is chosen; at least 1/2."""


class VoterTable(NamedTuple):
    """(strata, voter pairs): common pairs of items, favorites of either voter and of both."""

    n: Floats
    a: Floats
    b: Floats
    both: Floats


def coordinated_voters(data: Comparisons, *, level: float = 0.95) -> CoordinatedVoters:
    """Groups of voters that vote alike beyond chance; any is named falsely with a chance of at most 1 - ``level``.

    Voters who vote independently of each other may have any sharpness.  Voters who share a taste are named too: votes
    do not tell agreement from agreement by plan.  Voters who plan together but judge different pairs of items are not
    seen.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a, b = np.triu_indices(12, 1)
    >>> says = np.where(rng.random((30, len(a))) < 0.6, "a", "b")
    >>> says[:3] = says[0]  # two voters copy the first
    >>> voter = np.repeat(np.arange(30), len(a))
    >>> votes = Comparisons.from_battles(np.tile(a, 30), np.tile(b, 30), says.ravel(), agent=voter)
    >>> [group.voters for group in coordinated_voters(votes).groups]
    [(0, 1, 2)]
    """
    if not isinstance(data, Comparisons):
        raise DataError("coordinated voters are looked for in votes on pairs, not in ballots, ratings or tables")
    if not 0 < level < 1:
        raise ValueError(f"level must be in (0, 1), not {level}")
    if data.agent is None or data.agents is None:
        return CoordinatedVoters((), 0, level, ("the votes do not name voters, so none can be compared",))
    votes, kept, notes = _decided(data)
    first, second, table = _tables(votes, len(kept))
    if not len(first):
        notes.append(f"no two voters decided {FEWEST_COMMON} common pairs of items, so none are compared")
        return CoordinatedVoters((), 0, level, tuple(notes))
    p = adjusted(p_values(table, len(data.items)))
    alike = p <= 1 - level
    groups = _groups(first[alike], second[alike], kept, (first, second, table, p), data.agents)
    return CoordinatedVoters(groups, len(first), level, tuple(notes))


def _decided(data: Comparisons) -> tuple[Decided, Ints, list[str]]:
    """The decided pairs of items of the voters that have enough; which voters these are; notes."""
    assert data.agent is not None
    n = len(data.items)
    low, high = np.minimum(data.i, data.j), np.maximum(data.i, data.j)
    lead = np.where(data.i < data.j, 1.0, -1.0) * (data.wins_i - data.wins_j)
    keys, row = np.unique(np.stack([data.agent, low, high], 1), axis=0, return_inverse=True)
    total = np.bincount(row.ravel(), lead, len(keys))
    keys, says = keys[total != 0], np.sign(total[total != 0])
    count = np.bincount(keys[:, 0], minlength=len(data.agents or ()))
    kept = np.flatnonzero(count >= FEWEST_COMMON)
    notes = []
    if len(kept) > MOST_VOTERS:
        notes.append(f"the {MOST_VOTERS:,} voters with the most votes of {len(kept):,} are compared")
        kept = np.sort(kept[np.argsort(-count[kept], kind="stable")[:MOST_VOTERS]])
    pairs, pair = np.unique(keys[:, 1] * n + keys[:, 2], return_inverse=True)
    pair = pair.ravel()
    for_low = _chances(pairs // n, pairs % n, pair, says, n)
    favored = np.where(for_low[pair] >= 0.5, says > 0, says < 0).astype(np.float64)
    own = np.isin(keys[:, 0], kept)
    voter = np.searchsorted(kept, keys[own, 0])
    return Decided(voter, pair[own], favored[own], np.maximum(for_low, 1 - for_low)), kept, notes


def _chances(i: Ints, j: Ints, pair: Ints, says: Floats, n: int) -> Floats:
    """(pairs,): the chance that i is chosen over j, by the fit and by the votes on the pair."""
    won, lost = (np.bincount(pair, says == one, len(i)).astype(np.float64) for one in (1, -1))
    if not len(i):
        return won
    rows = Comparisons(i, j, won, lost, np.zeros(len(i)), items=tuple(range(n)))
    theta = BradleyTerry(stderr=None).fit(rows).consensus_.scores
    return (won + FIT_WEIGHT * expit(theta[i] - theta[j])) / (won + lost + FIT_WEIGHT)


def _tables(votes: Decided, n_voters: int) -> tuple[Ints, Ints, VoterTable]:
    """The two voters of each comparison, and their table in each stratum."""
    shape = (n_voters, len(votes.odds))
    judged = sparse.csr_matrix((np.ones(len(votes.voter)), (votes.voter, votes.pair)), shape)
    favorite = sparse.csr_matrix((votes.favorite, (votes.voter, votes.pair)), shape)
    common = sparse.triu(judged @ judged.T, 1).tocoo()
    enough = common.data >= FEWEST_COMMON
    first, second = common.row[enough].astype(np.int64), common.col[enough].astype(np.int64)
    if not len(first):
        return first, second, VoterTable(*np.zeros((4, 0, 0)))
    strata = strata_of(votes, float(np.median(common.data[enough])))
    cells = np.empty((4, int(strata.max()) + 1, len(first)))
    for g in range(cells.shape[1]):
        J, F = judged[:, strata == g], favorite[:, strata == g]
        for k, (left, right) in enumerate(((J, J), (F, J), (J, F), (F, F))):
            cells[k, g] = np.asarray((left @ right.T).todense())[first, second]
    return first, second, VoterTable(*cells)


def strata_of(votes: Decided, common: float) -> Ints:
    """(pairs,): the stratum of each pair of items, by its odds; each has about as many votes."""
    n = int(np.clip(common // PER_STRATUM, 1, MOST_STRATA))
    order = np.argsort(votes.odds, kind="stable")
    size = np.bincount(votes.pair, minlength=len(votes.odds))[order]
    middle = np.cumsum(size) - size / 2
    stratum = np.empty(len(order), np.int64)
    stratum[order] = np.minimum((middle * n / max(size.sum(), 1)).astype(np.int64), n - 1)
    return np.unique(stratum, return_inverse=True)[1].ravel()


def p_values(table: VoterTable, n_items: int) -> Floats:
    """(voter pairs,): the chance of as many common favorites, the larger of the exact one for independent votes and
    the one by Student's law with the center and spread of all pairs of voters; 1 for those far from agreement.

    Tastes make agreement an inner product over items: where a share w of its variance is theirs, its excess kurtosis is
    6 w^2 / items, that of Student's law with 4 + items / w^2 degrees of freedom.
    """
    expected, variance = moments(table)
    z = (table.both.sum(0) - expected) / np.sqrt(np.maximum(variance, 1e-12))
    z[variance <= 0] = 0.0
    center, spread = spread_of(z)
    p = np.ones(len(z))
    for k in np.argsort(-z, kind="stable")[:MOST_EXACT]:
        if z[k] > 0.5:
            p[k] = exact_tail(*(cells[:, k] for cells in table))
    tastes = 1 - spread**-2
    return np.maximum(p, stats.t.sf((z - center) / spread, 4 + n_items / max(tastes, 1e-3) ** 2))


def moments(table: VoterTable) -> tuple[Floats, Floats]:
    """(voter pairs,): mean and variance of the common favorites of independent voters."""
    n, a, b = np.maximum(table.n, 1.0), table.a, table.b
    mean = a * b / n
    variance = mean * (n - a) * (n - b) / (n * np.maximum(n - 1, 1.0))
    return mean.sum(0), variance.sum(0)


def spread_of(z: Floats) -> tuple[float, float]:
    """Center (at least 0) and spread (at least 1) of most pairs of voters, whatever a few of them do."""
    if len(z) < ENOUGH_FOR_SPREAD:
        return 0.0, 1.0
    center = float(np.median(z))
    return max(center, 0.0), max(float(1.4826 * np.median(np.abs(z - center))), 1.0)


def exact_tail(n: Floats, a: Floats, b: Floats, both: Floats) -> float:
    """P(as many common favorites or more): a sum of independent hypergeometric numbers, by convolution."""
    law, least = np.ones(1), 0
    for size, left, right in zip(n, a, b):
        low, high = int(max(0, left + right - size)), int(min(left, right))
        k = np.arange(low, high + 1)
        ways = -gammaln(k + 1) - gammaln(left - k + 1) - gammaln(right - k + 1) - gammaln(size - left - right + k + 1)
        mass = np.exp(ways - ways.max())
        law, least = np.convolve(law, mass / mass.sum()), least + low
    return float(min(law[int(np.rint(both.sum())) - least :].sum(), 1.0))


def adjusted(p: Floats) -> Floats:
    """Holm's adjusted p-values."""
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    found = np.empty(len(p))
    found[order] = np.minimum(stepped, 1.0)
    return found


def _groups(first: Ints, second: Ints, kept: Ints, tested: Any, agents: Any) -> tuple[VoterGroup, ...]:
    """Connected components of the pairs of voters that vote alike."""
    edges = sparse.coo_matrix((np.ones(len(first)), (first, second)), (len(kept), len(kept)))
    _, part = connected_components(edges, directed=False)
    sizes = np.bincount(part, minlength=1)
    left, right, table, p = tested
    expected = moments(table)[0]
    found = []
    for number in np.flatnonzero(sizes > 1):
        inside = (part[left] == number) & (part[right] == number)
        n = table.n.sum(0)[inside]
        alone = (table.n - table.a - table.b).sum(0)[inside]  # agreements are both plus neither
        agree, chance = alone + 2 * table.both.sum(0)[inside], alone + 2 * expected[inside]
        names = tuple(agents[kept[v]] for v in np.flatnonzero(part == number))
        share = float(agree.sum() / n.sum()), float(chance.sum() / n.sum())
        found.append(VoterGroup(names, float(n.mean()), *share, float(p[inside].min())))
    return tuple(sorted(found, key=lambda group: -len(group.voters)))
