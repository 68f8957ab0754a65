"""Rules: functions from ballots (or pairs) to scores, higher is better; ties are never broken at random.

See also ``positional`` for positional rules, ``kemeny``, ``footrule``, and ``markov`` for random walks.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np

from placet.aggregate.places import UnlistedPlaces, ballots_of, listed_weight, places, sum_by_item, tier_starts
from placet.aggregate.result.result import RELATIVE_TOLERANCE
from placet.aggregate.rules import footrule, kemeny, markov, pairwise_contests, positional, runoff, stv
from placet.aggregate.rules.rule import Rule, Scored
from placet.data import Comparisons, DataError, Rankings
from placet.data.arrays import Floats
from placet.data.errors import one_of


def copeland(data: Rankings | Comparisons) -> Floats:
    """Number of opponents beaten by a majority of those who compared the two, minus opponents lost to.  O(pairs + n^2).

    >>> copeland(Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]]))
    array([ 1.,  1., -2.])
    """
    return np.sign(kemeny.margins(kemeny.pair_tables(data)[0])).sum(axis=1)


def median_rank(data: Rankings, unlisted: Literal["absent", "last"] = "absent") -> Floats:
    """Minus the weighted median place (the midpoint if there are several medians).

    ``"absent"``: over ballots that list the item, using its expected place among all n; an item that nobody lists gets
    the middle place.  ``"last"``: unlisted items share places m + 1 .. n.  O(rows log rows), O(ballots n) with
    ``"last"``.

    >>> median_rank(Rankings.from_orders([["a", "b", "c"], ["a", "c", "b"], ["b", "a", "c"]]))
    array([-1., -2., -3.])
    """
    one_of(unlisted, ("absent", "last"), "unlisted")
    rankings = ballots_of(data, "median-rank")
    rankings = rankings.completed() if unlisted == "last" else rankings
    item, place, weight = rankings.item, places(rankings), rankings.weight[rankings.ballot]
    counts = weight > 0
    item, place, weight = item[counts], place[counts], weight[counts]
    order = np.lexsort((place, item))
    item, place, weight = item[order], place[order], weight[order]
    scores = np.full(rankings.n_items, -(rankings.n_items + 1) / 2)
    bounds = np.searchsorted(item, np.arange(rankings.n_items + 1))
    for i in np.flatnonzero(np.diff(bounds)):
        own = slice(bounds[i], bounds[i + 1])
        share = np.cumsum(weight[own] / weight[own].sum())
        low = place[own][np.searchsorted(share, 0.5 - RELATIVE_TOLERANCE)]
        high = place[own][min(int(np.searchsorted(share, 0.5 + RELATIVE_TOLERANCE)), len(share) - 1)]
        scores[i] = -(low + high) / 2
    return scores


def mode(data: Rankings) -> Scored:
    """Minus the places on the most frequent ballot, averaged if several ballots are equally frequent.

    Items not on it tie for the places after it.  Ballots that list different items are different.  O(rows).

    >>> mode(Rankings.from_orders([["a", "b"], ["b", "a"], ["a", "b"]])).scores
    array([-1., -2.])
    """
    rankings = ballots_of(data, "mode")
    plain = Rankings(rankings.item, rankings.tier, rankings.offsets, rankings.weight, items=rankings.items)
    ballots = plain.collapsed()
    n = rankings.n_items
    ballots = ballots[(np.diff(ballots.offsets) > 0) & (ballots.weight > 0)]
    if not len(ballots):
        return Scored(np.full(n, -(n + 1) / 2))
    top = ballots[ballots.weight >= ballots.weight.max() * (1 - RELATIVE_TOLERANCE)]
    full = top.completed()
    first, size = tier_starts(full)
    notes = (f"{len(top)} ballots are equally frequent; the mean of their places is taken",) if len(top) > 1 else ()
    return Scored(-sum_by_item(full.item, first + (size + 1) / 2, n) / len(top), notes)


NORMALIZATIONS: dict[str, Callable[[Floats, Floats, Floats, Floats], Floats]] = {
    "min-max": lambda x, low, high, mean: np.divide(x - low, high - low, out=np.full(len(x), 0.5), where=high > low),
    "sum": lambda x, low, high, mean: np.divide(x - low, mean - low, out=np.ones(len(x)), where=mean > low),
    "none": lambda x, low, high, mean: x,
}
"""Name -> normalization of the scores on a ballot: to 0..1 (0.5 if all are equal); to minimum 0 and mean 1 (1 if all
are equal); none."""


def combsum(data: Rankings, normalize: str = "min-max") -> Floats:
    """CombSUM: the weighted sum of normalized scores over ballots; an unlisted item gains nothing.  O(rows).

    >>> run = {"q": [1, 1, 2, 2], "doc": ["a", "b", "a", "b"], "s": [9.0, 1.0, 2.0, 1.0]}
    >>> combsum(Rankings.from_scores(run, ballot="q", item="doc", score="s"))
    array([2., 0.])
    """
    rankings = ballots_of(data, "combsum")
    value = _normalized_scores(rankings, normalize)
    return sum_by_item(rankings.item, rankings.weight[rankings.ballot] * value, rankings.n_items)


def combmnz(data: Rankings, normalize: str = "min-max") -> Floats:
    """CombMNZ: CombSUM times the weight of ballots that list the item.  O(rows)."""
    return combsum(data, normalize) * listed_weight(ballots_of(data, "combmnz"))


def _normalized_scores(rankings: Rankings, normalize: str) -> Floats:
    one_of(normalize, tuple(NORMALIZATIONS), "normalize")
    if rankings.score is None:
        raise DataError(
            "these ballots keep no scores; Rankings.from_scores keeps them, and 'rrf' or 'borda' need places only"
        )
    if not len(rankings.item):
        return np.zeros(0)
    full = np.diff(rankings.offsets) > 0
    starts = rankings.offsets[:-1][full]
    number = np.cumsum(full)[rankings.ballot] - 1
    low, high = (reduce.reduceat(rankings.score, starts)[number] for reduce in (np.minimum, np.maximum))
    mean = (np.add.reduceat(rankings.score, starts) / np.diff(rankings.offsets)[full])[number]
    return NORMALIZATIONS[normalize](rankings.score, low, high, mean)


_TABLE = (
    Rule("borda", positional.borda, "Borda 1781", of_pairs=True, adds=True),
    Rule("plurality", positional.plurality, "Young 1975, scoring rules", adds=True),
    Rule("anti-plurality", positional.anti_plurality, "Young 1975, scoring rules", adds=True),
    Rule("log", positional.logarithmic, "h(i) = -log i, a scoring rule (Young 1975)", adds=True),
    Rule("squared", positional.squared, "h(i) = -i^2, a scoring rule (Young 1975)", adds=True),
    Rule("positional", positional.by_points, "Young 1975, scoring rules", adds=True),
    Rule("copeland", copeland, "Copeland 1951", of_pairs=True, power=2),
    Rule("median-rank", median_rank, "Fagin, Kumar and Sivakumar 2003"),
    Rule("footrule", footrule.footrule, "Diaconis and Graham 1977; Dwork, Kumar, Naor and Sivakumar 2001", power=3),
    Rule("kemeny", kemeny.kemeny, "Kemeny 1959; Conitzer, Davenport and Kalagnanam 2006", of_pairs=True, power=5),
    Rule("kemeny-local", kemeny.kemeny_local, "Kemeny 1959; Schiavinotto and Stuetzle 2004", of_pairs=True, power=3),
    Rule("mode", mode, "Caragiannis, Procaccia and Shah 2014, modal ranking"),
    Rule("mc4", markov.mc4, "Dwork, Kumar, Naor and Sivakumar 2001", of_pairs=True, power=3),
    Rule(
        "rank-centrality",
        markov.rank_centrality,
        "Negahban, Oh and Shah 2012",
        of_pairs=True,
        tolerance=RELATIVE_TOLERANCE,
        power=3,
    ),
    Rule("rrf", positional.reciprocal, "Cormack, Clarke and Buettcher 2009", adds=True),
    Rule("combsum", combsum, "Fox and Shaw 1994", reads_scores=True, adds=True),
    Rule("combmnz", combmnz, "Fox and Shaw 1994", reads_scores=True),
    Rule("schulze", pairwise_contests.schulze, "Schulze 2011", of_pairs=True),
    Rule("ranked-pairs", pairwise_contests.ranked_pairs, "Tideman 1987; Brill and Fischer 2012", of_pairs=True),
    Rule("minimax", pairwise_contests.minimax, "Simpson 1969; Kramer 1977", of_pairs=True),
    Rule("irv", runoff.irv, "Ware 1871; Conitzer, Rognlie and Xia 2009, parallel universes"),
    Rule("stv", stv.stv, "Hill, Wichmann and Woodall 1987 (Meek); Scottish Local Government Elections Order 2007"),
    Rule("baldwin", runoff.baldwin, "Baldwin 1926", of_pairs=True),
    Rule("nanson", runoff.nanson, "Nanson 1882", of_pairs=True),
    Rule("bucklin", pairwise_contests.bucklin, "Bucklin 1909; Hoag and Hallett 1926"),
    Rule("black", pairwise_contests.black, "Black 1958", of_pairs=True, beyond_pairs=True),
    Rule("star", pairwise_contests.star, "Equal Vote Coalition 2014", reads_scores=True),
    Rule("approval", pairwise_contests.approval, "Brams and Fishburn 1978", reads_scores=True, adds=True),
    Rule("dowdall", pairwise_contests.dowdall, "Fraenkel and Grofman 2014", adds=True),
)
RULES: dict[str, Rule] = {rule.name: rule for rule in _TABLE}
"""Name -> `Rule`: ``RULES[name](data, **params)`` gives the scores (n_items,)."""

__all__ = ["RULES", "UnlistedPlaces", "combmnz", "combsum", "copeland", "median_rank", "mode"]
