"""The table of methods."""

from collections import ChainMap
from collections.abc import Mapping
from typing import Any, Literal

from placet.aggregate.method import Method, MethodView, Takes
from placet.aggregate.result.result import RELATIVE_TOLERANCE
from placet.data.errors import one_of

_PAIRWISE = "It looks at each pair of items by itself and counts how many put the one above the other."
_ROUNDS = "It counts in rounds; in each the item that does worst leaves, and its votes go to the next choice."
_SEATS = "Items are elected to a number of seats by ballots that approve of some items and not of others."
_POINTS = "Every ballot gives points to the items on it by their places, and the points are added."

MOST_DENSE = 4096
"""Number of items up to which models factor dense matrices."""


# CPU seconds for rows of ballots (or of pair counts) over items, ``length`` being that of the longest ballot; measured
# by benchmarks/bench_expected.py, and a fifth or so above what it took there, as many machines are slower.


def _pairs_seconds(rows: int, items: int, length: int) -> float:
    """Newton steps on pair counts, dense up to a few thousand items; ballots are counted by pairs first."""
    pairs = 3.5e-8 * rows * length if length > 2 else 0.0
    return 1e-3 + 2e-7 * rows + pairs + 4e-11 * min(items, MOST_DENSE) ** 3


def _orders_seconds(rows: int, items: int, length: int) -> float:
    """Newton steps with a Hessian in closed form."""
    dense = min(items, MOST_DENSE)
    return 2e-3 + 1.5e-7 * rows + 8e-9 * rows * length + 1.5e-10 * dense**3 * (1 + dense / 2000)


def _full_seconds(rows: int, items: int, length: int) -> float:
    return 5e-3 + 9e-6 * rows * (1 + min(items, 500) / 60)


def _partitions_seconds(rows: int, items: int, length: int) -> float:
    """Exact normalizers of all subsets at each stage, and a Hessian by columns."""
    return 5e-3 + 4.3e-6 * rows * float(length) ** 2 * (1 + min(items, 500) / 20)


def _preference_seconds(rows: int, items: int, length: int) -> float:
    """Steps linear in rows and items; standard errors with correlations up to a few thousand items, else without."""
    return 1e-3 + 6e-8 * rows + (2e-11 * items**3 if items <= MOST_DENSE else 1e-6 * items)


def _search_seconds(rows: int, items: int, length: int) -> float:
    """The pairs of every ballot, and an order of items by exchanges."""
    return 5e-4 + 7e-10 * rows * length + 1e-9 * float(items) ** 3


def _choices_seconds(rows: int, items: int, length: int) -> float:
    """Each place of every ballot is chosen among the items that are left, at every step."""
    return 5e-4 + 2e-9 * rows * length + 2e-9 * float(items) ** 3


def _matching_seconds(rows: int, items: int, length: int) -> float:
    return 5e-4 + 1.2e-7 * rows + 2e-9 * float(items) ** 3


def _runoff_seconds(rows: int, items: int, length: int) -> float:
    """A count in each round; with many items, several orders of elimination are followed where the last tie."""
    return 5e-4 + 1.5e-8 * rows + 7e-8 * float(items) ** 3


def _transfer_seconds(rows: int, items: int, length: int) -> float:
    """As `_runoff_seconds`, in exact fractions."""
    return 1e-3 + 1.5e-7 * rows + 8e-8 * float(items) ** 3


def _seats_seconds(rows: int, items: int, length: int) -> float:
    """Counts seat by seat, in exact fractions; for one seat, as no seats are known here."""
    return 1e-3 + 2e-6 * rows + 1e-5 * items


def _committee_seconds(rows: int, items: int, length: int) -> float:
    """A search of committees of a few seats."""
    return 2e-3 + 3e-6 * rows + 1e-4 * items


def _projection_seconds(rows: int, items: int, length: int) -> float:
    """A hundred projections, by all singular values of a small table and by Lanczos iterations of a large one."""
    return 3e-3 + 7e-7 * rows + (2.5e-8 * items**3 if items <= 150 else 4e-6 * items**2)


def _rating_seconds(rows: int, items: int, length: int) -> float:
    """Conjugate gradients, linear in rows; standard errors with correlations up to a few thousand items."""
    return 2e-2 + 8e-7 * rows + (7e-11 * items**3 if items <= MOST_DENSE else 1e-4 * items)


PAIRS: tuple[Takes, ...] = ("votes", "ballots")

_TABLE = (
    Method(
        "bradley-terry",
        "Bradley-Terry",
        "Each item has a strength, and the chance that one beats another follows from the difference of the two. The "
        "strengths are those under which the votes are most probable, so a win against a strong item counts for more "
        "than one against a weak item. Items with few votes are drawn to the middle.",
        "pairs.bradley_terry:BradleyTerry",
        "Zermelo 1929; Bradley and Terry 1952; ties by Rao and Kupper 1967 or Davidson 1970",
        law="pairs",
        reads_controls=True,
        drifts=True,
        kind="model",
        takes=PAIRS,
        power=3,
        cost=_pairs_seconds,
    ),
    Method(
        "plackett-luce",
        "Plackett-Luce",
        "Each item has a strength. A ballot is filled from the top: at each place an item is chosen with a probability "
        "in proportion to its strength among those that are left. The strengths are those under which the ballots are "
        "most probable; items that a ballot leaves out say nothing on it.",
        "ballots.ballot_models:PlackettLuce",
        "Luce 1959; Plackett 1975",
        law="orders",
        reads_controls=True,
        kind="model",
        takes=PAIRS,
        ties="ignored",
        power=3,
        cost=_orders_seconds,
        tie_cost=1.3e-5,
    ),
    Method(
        "pmop-fd",
        "PMOP (full decomposition)",
        "Each item has a strength, and a ballot is filled from the top tier by tier: items that tie are chosen "
        "together. The strengths are those under which the ballots are most probable. Several sets of strengths can "
        "be equally probable; the result is then their mean. PMOP has one.",
        "ballots.ballot_models:PMOPFullDecomposition",
        "Truyen, Phung and Venkatesh 2011",
        law="partitions",
        kind="model",
        takes=PAIRS,
        ties="ignored",
        power=3,
        cost=_full_seconds,
    ),
    Method(
        "pmop",
        "PMOP",
        "Each item has a strength, and a ballot is filled from the top tier by tier: items that tie are chosen "
        "together, by the mean of their strengths. The strengths are those under which the ballots are most probable.",
        "ballots.ballot_models:PMOP",
        "Truyen, Phung and Venkatesh 2011",
        law="partitions",
        kind="model",
        takes=PAIRS,
        ties="half",
        power=3,
        cost=_partitions_seconds,
    ),
    Method(
        "mpm",
        "Multinomial preference model",
        "Every voter states preferences between items, more often the further apart the items are. An item needs "
        "many preferences to move far from the middle, so a few good ratings do not put it first. How closely each "
        "voter follows the common scores can be learned.",
        "mpm.multinomial_preference:MultinomialPreference",
        "Volkovs and Zemel 2012",
        shares_agents=True,
        kind="model",
        takes=PAIRS,
        power=3,
        cost=_preference_seconds,
    ),
    Method(
        "adjusted-mean",
        "Adjusted mean rating",
        "An item's score is its mean rating, adjusted for who rated it: a rating is the level of the user plus the "
        "score of the item. Items with few ratings are drawn to what items that are rated as often get.",
        "ballots.adjusted_mean:AdjustedMean",
        "Henderson 1975 (best linear unbiased prediction); Mundlak 1978 (the mean follows support)",
        reads_scores=True,
        kind="model",
        power=3,
        cost=_rating_seconds,
    ),
    Method(
        "mallows",
        "Mallows",
        "There is one central order, and a ballot is the less probable the more it differs from it. The order is the "
        "one under which the ballots are most probable.",
        "distance.mallows:Mallows",
        "Mallows 1957",
        law="distances",
        kind="model",
        power=3,
        cost=_search_seconds,
    ),
    Method(
        "cps",
        "Coset-permutation stages",
        "There is one central order. A ballot is filled from the top, and an item is the less probable at a place the "
        "more the orders that begin so differ from the central one.",
        "distance.cps:CosetPermutation",
        "Qin, Geng and Liu 2010",
        shares_agents=True,
        kind="model",
        power=3,
        cost=_choices_seconds,
    ),
    Method(
        "svp",
        "Spectral ranking",
        "The mean differences between items are completed to the simplest full table that fits them, and an item's "
        "score is its mean difference to all others.",
        "distance.svp:SingularValueProjection",
        "Gleich and Lim 2011",
        shares_agents=True,
        kind="model",
        power=3,
        cost=_projection_seconds,
    ),
    Method(
        "borda",
        "Borda count",
        f"{_POINTS} Each item gets one point for every item that it stands above.",
        "rules.positional:borda",
        "Borda 1781",
        takes=PAIRS,
        ties="half",
        adds=True,
        compared=("votes", "ballots"),
    ),
    Method(
        "plurality",
        "Plurality",
        "Each ballot counts for the item in its first place, and for no other.",
        "rules.positional:plurality",
        "Young 1975, scoring rules",
        adds=True,
        compared=("ballots",),
    ),
    Method(
        "anti-plurality",
        "Anti-plurality",
        "The item that is last on the fewest ballots wins.",
        "rules.positional:anti_plurality",
        "Young 1975, scoring rules",
        adds=True,
        compared=("ballots",),
    ),
    Method(
        "log",
        "Logarithmic points",
        f"{_POINTS} Points fall with the logarithm of the place, so first places count most.",
        "rules.positional:logarithmic",
        "h(i) = -log i, a scoring rule (Young 1975)",
        adds=True,
        compared=("ballots",),
    ),
    Method(
        "squared",
        "Squared points",
        f"{_POINTS} Points fall with the square of the place, so last places hurt most.",
        "rules.positional:squared",
        "h(i) = -i^2, a scoring rule (Young 1975)",
        adds=True,
        compared=("ballots",),
    ),
    Method(
        "positional", "Points by place", _POINTS, "rules.positional:by_points", "Young 1975, scoring rules", adds=True
    ),
    Method(
        "copeland",
        "Copeland",
        f"{_PAIRWISE} An item's score is the number of items it beats minus the number of items that beat it.",
        "rules.pairwise_contests:copeland",
        "Copeland 1951",
        takes=PAIRS,
        ties="ignored",
        power=2,
        compared=("votes", "ballots"),
    ),
    Method(
        "median-rank",
        "Median rank",
        "An item's score is the middle one of its places on all ballots.",
        "rules.typical_places:median_rank",
        "Fagin, Kumar and Sivakumar 2003",
        compared=("ballots",),
    ),
    Method(
        "footrule",
        "Footrule",
        "The order whose places differ least from those on the ballots, in sum.",
        "rules.footrule:footrule",
        "Diaconis and Graham 1977; Dwork, Kumar, Naor and Sivakumar 2001",
        power=3,
        picks_one=True,
        cost=_matching_seconds,
    ),
    Method(
        "kemeny",
        "Kemeny",
        "The order that contradicts the fewest preferences between two items, summed over all ballots.",
        "rules.kemeny:kemeny",
        "Kemeny 1959; Conitzer, Davenport and Kalagnanam 2006",
        takes=PAIRS,
        ties="ignored",
        power=5,
        picks_one=True,
    ),
    Method(
        "kemeny-local",
        "Kemeny, by local search",
        "An order that contradicts few preferences between two items, summed over all ballots: no move of a single "
        "item makes it better, but another order might.",
        "rules.kemeny:kemeny_local",
        "Kemeny 1959; Schiavinotto and Stuetzle 2004",
        takes=PAIRS,
        ties="ignored",
        power=3,
        picks_one=True,
        compared=("votes", "ballots"),
        cost=_search_seconds,
    ),
    Method(
        "mode",
        "Most frequent ballot",
        "The order that most ballots share.",
        "rules.typical_places:mode",
        "Caragiannis, Procaccia and Shah 2014, modal ranking",
    ),
    Method(
        "mc4",
        "MC4",
        f"{_PAIRWISE} A walk goes from item to item, always to one that a majority prefers; where it stays longest is "
        "best.",
        "rules.markov:mc4",
        "Dwork, Kumar, Naor and Sivakumar 2001",
        takes=PAIRS,
        ties="ignored",
        power=3,
        compared=("votes",),
    ),
    Method(
        "rank-centrality",
        "Rank centrality",
        f"{_PAIRWISE} A walk goes from item to item, more often to one that wins more; where it stays longest is best.",
        "rules.markov:rank_centrality",
        "Negahban, Oh and Shah 2012",
        takes=PAIRS,
        ties="half",
        power=3,
        tolerance=RELATIVE_TOLERANCE,
    ),
    Method(
        "rrf",
        "Reciprocal rank fusion",
        f"{_POINTS} A place p gives 1 / (60 + p) points unless another constant is set.",
        "rules.positional:reciprocal",
        "Cormack, Clarke and Buettcher 2009",
        adds=True,
    ),
    Method(
        "combsum",
        "CombSUM",
        "The scores that the lists give to an item are brought to one scale and added.",
        "rules.fusion:combsum",
        "Fox and Shaw 1994",
        reads_scores=True,
        adds=True,
    ),
    Method(
        "combmnz",
        "CombMNZ",
        "The scores that the lists give to an item are brought to one scale, added, and multiplied by the number of "
        "lists that name it.",
        "rules.fusion:combmnz",
        "Fox and Shaw 1994",
        reads_scores=True,
    ),
    Method(
        "schulze",
        "Schulze",
        f"{_PAIRWISE} One item is above another if a chain of majorities from it to the other is stronger than any "
        "chain back.",
        "rules.pairwise_contests:schulze",
        "Schulze 2011",
        takes=PAIRS,
        ties="ignored",
    ),
    Method(
        "ranked-pairs",
        "Ranked pairs",
        f"{_PAIRWISE} Majorities are taken over from the strongest on, unless they contradict those taken before.",
        "rules.pairwise_contests:ranked_pairs",
        "Tideman 1987; Brill and Fischer 2012",
        takes=PAIRS,
        ties="ignored",
    ),
    Method(
        "minimax",
        "Minimax",
        f"{_PAIRWISE} The item whose worst defeat is smallest wins.",
        "rules.pairwise_contests:minimax",
        "Simpson 1969; Kramer 1977",
        takes=PAIRS,
        ties="ignored",
    ),
    Method(
        "irv",
        "Instant runoff",
        f"{_ROUNDS} The item with the fewest first choices does worst.",
        "rules.runoff:irv",
        "Ware 1871; Conitzer, Rognlie and Xia 2009, parallel universes",
        cost=_runoff_seconds,
    ),
    Method(
        "stv",
        "Single transferable vote",
        f"{_ROUNDS} Items that reach the quota are elected, and what they have beyond it goes on to the next choices.",
        "rules.stv:stv",
        "Hill, Wichmann and Woodall 1987 (Meek); Scottish Local Government Elections Order 2007",
        cost=_transfer_seconds,
    ),
    Method(
        "baldwin",
        "Baldwin",
        f"{_ROUNDS} The item with the lowest Borda count does worst.",
        "rules.runoff:baldwin",
        "Baldwin 1926",
        takes=PAIRS,
        ties="ignored",
    ),
    Method(
        "nanson",
        "Nanson",
        f"{_ROUNDS} All items below the mean Borda count leave.",
        "rules.runoff:nanson",
        "Nanson 1882",
        takes=PAIRS,
        ties="ignored",
    ),
    Method(
        "bucklin",
        "Bucklin",
        "First choices are counted, then second ones are added, and so on, until an item has more than half of the "
        "ballots.",
        "rules.typical_places:bucklin",
        "Bucklin 1909; Hoag and Hallett 1926",
    ),
    Method(
        "black",
        "Black",
        "The item that beats every other head to head wins; where there is none, the Borda count decides.",
        "rules.pairwise_contests:black",
        "Black 1958",
        takes=PAIRS,
        ties="half",
        beyond_pairs=True,
    ),
    Method(
        "star",
        "STAR",
        "Score, then automatic runoff: the two items with the highest scores go to a runoff, which the one wins that "
        "more ballots put above the other.",
        "rules.approval:star",
        "Equal Vote Coalition 2014",
        reads_scores=True,
    ),
    Method(
        "approval",
        "Approval",
        "An item gets a point from each ballot that approves of it.",
        "rules.approval:approval",
        "Brams and Fishburn 1978",
        reads_scores=True,
        adds=True,
    ),
    Method(
        "pav",
        "Proportional approval voting",
        f"{_SEATS} A ballot counts once for the first elected item that it approves, a half for the second, a third "
        "for the third, and so on; of all committees, the one with the highest sum is elected.",
        "committees.best_committee:pav",
        "Thiele 1895; Aziz et al. 2017",
        reads_scores=True,
        cost=_committee_seconds,
    ),
    Method(
        "seq-pav",
        "Sequential proportional approval voting",
        f"{_SEATS} Seat by seat the item with most votes is elected, where a ballot that approves of some already "
        "elected counts less: a half after one, a third after two, and so on.",
        "committees.sequential:seq_pav",
        "Thiele 1895",
        reads_scores=True,
        cost=_seats_seconds,
    ),
    Method(
        "rev-seq-pav",
        "Reverse sequential PAV",
        f"{_SEATS} All items start as elected, and one after the other the item is removed whose loss hurts least: a "
        "ballot that keeps others that it approves of is hurt less.",
        "committees.sequential:rev_seq_pav",
        "Thiele 1895",
        reads_scores=True,
        cost=_seats_seconds,
    ),
    Method(
        "phragmen",
        "Phragmen's sequential rule",
        f"{_SEATS} All ballots are given money at the same rate, and an item is elected as soon as those that approve "
        "of it can pay its price together.",
        "committees.sequential:phragmen",
        "Phragmen 1894; Brill, Freeman, Janson and Lackner 2017",
        reads_scores=True,
        cost=_seats_seconds,
    ),
    Method(
        "equal-shares",
        "Method of equal shares",
        f"{_SEATS} Each ballot has the same share of the money for all seats; the item is bought for which those that "
        "approve of it pay least each, and so on while there is money. Seats that nobody can pay for are filled by "
        "Phragmen's rule, unless another completion is set.",
        "committees.sequential:equal_shares",
        "Peters and Skowron 2020",
        reads_scores=True,
        cost=_seats_seconds,
    ),
    Method(
        "chamberlin-courant",
        "Chamberlin-Courant",
        f"{_SEATS} The committee is elected of which as many ballots as possible approve of at least one item.",
        "committees.best_committee:chamberlin_courant",
        "Thiele 1895; Chamberlin and Courant 1983",
        reads_scores=True,
        cost=_committee_seconds,
    ),
    Method(
        "dowdall",
        "Dowdall",
        f"{_POINTS} A place p gives 1 / p points.",
        "rules.positional:dowdall",
        "Fraenkel and Grofman 2014",
        adds=True,
    ),
    Method(
        "mean",
        "Mean score",
        "An item's score is its mean over the tasks. Where scores are missing, the difficulty of each task is taken "
        "into account, so that nobody gains by leaving out hard tasks.",
        "scores.score_consensus:MEAN",
        "Yates 1933 (missing cells)",
        kind="score method",
        takes=("scores",),
        power=3,
    ),
    Method(
        "mean-win-rate",
        "Mean win rate",
        "On each task, the share of the other items that an item beats; then the mean over tasks.",
        "scores.score_consensus:MEAN_WIN_RATE",
        "Liang et al. 2022, HELM",
        kind="score method",
        takes=("scores",),
        power=3,
    ),
    Method(
        "rasch",
        "Rasch",
        "Each item has an ability and each question a difficulty; the chance of a right answer follows from the "
        "difference of the two.",
        "scores.score_consensus:RASCH",
        "Rasch 1960; Bock and Aitkin 1981 (difficulties integrated out)",
        kind="score method",
        takes=("scores",),
        power=3,
    ),
    Method(
        "item-response",
        "Item response",
        "Each item has an ability; each task has a difficulty and a slope, which says how sharply it tells items "
        "apart. The expected score follows from all three, so scores that are missing can be predicted, and items that "
        "took only hard tasks are not punished for it.",
        "sources.table_consensus:ITEM_RESPONSE",
        "Birnbaum 1968 (two parameters); shares by quasi-likelihood (Papke and Wooldridge 1996)",
        kind="score method",
        takes=("scores",),
        power=3,
    ),
)
METHODS: dict[str, Method] = {method.name: method for method in _TABLE}
"""Name -> `Method`.  A method that is added here works at every door."""

SOURCES = Method(
    "sources",
    "Several sources",
    "Every source (people, a judge, rankings, a benchmark table) has scores of its own, which follow those of the "
    "target up to a scale and to deviations whose size is learned. A source that agrees with the target adds to what "
    "is known; one that contradicts it is discounted.",
    "sources.source_consensus:consensus_of_sources",
    "Bradley-Terry, Plackett-Luce and item response, joined by normal deviations; widths by Laplace's evidence "
    "(MacKay 1992)",
    kind="joint",
    power=3,
)
"""The method of `placet.Sources`; no other data can be given to it, so it is not in `METHODS`."""

GAMES: dict[str, Method] = {
    "margins": Method(
        "margins",
        "Ordered margins",
        "Each item has a score, that of a side is the sum over its items, and the chance to win by at least a given "
        "number of points follows from the difference of the two sides. A clear win says more than a narrow one.",
        "games.game_fit:margins",
        "McCullagh 1980 (cumulative logit); Rao and Kupper 1967 for wins, draws and losses",
        kind="game model",
        takes=("games",),
        power=3,
    ),
    "goals": Method(
        "goals",
        "Poisson goals",
        "The goals of a side follow Poisson's law, at a rate that depends on its attack and on the defense of the "
        "other side. An item's score is its attack and defense together.",
        "games.game_fit:goals",
        "Maher 1982; Karlis and Ntzoufras 2003 (bivariate); Dixon and Coles 1997 (half-life)",
        kind="game model",
        takes=("games",),
        power=3,
    ),
}
"""Name -> method of `placet.Games`; no other data can be given to them, so they are not in `METHODS`."""

EVERY: Mapping[str, Method] = ChainMap(METHODS, {SOURCES.name: SOURCES}, GAMES)
"""All methods, those of sources and of games among them."""

MODELS: Mapping[str, Any] = MethodView(METHODS, lambda method: method.kind == "model", lambda method: method.function)
"""Name -> estimator class: ``fit(data)`` sets ``theta_``, ``consensus_`` and ``fit_``, and returns the estimator."""

RULES: Mapping[str, Any] = MethodView(METHODS, lambda method: method.kind == "rule", lambda method: method)
"""Name -> rule: ``RULES[name](data, **params)`` gives the scores (n_items,)."""

MIXED: Mapping[str, Any] = MethodView(METHODS, lambda method: method.law is not None, lambda method: method.function)
"""Name -> estimator class of the models that can be mixed: those that give every voter a likelihood."""


MethodName = Literal[
    "bradley-terry", "plackett-luce", "pmop-fd", "pmop", "mpm", "adjusted-mean", "mallows", "cps", "svp",
    "borda", "plurality", "anti-plurality", "log", "squared", "positional", "copeland", "median-rank",
    "footrule", "kemeny", "kemeny-local", "mode", "mc4", "rank-centrality", "rrf", "combsum", "combmnz",
    "schulze", "ranked-pairs", "minimax", "irv", "stv", "baldwin", "nanson", "bucklin", "black", "star",
    "approval", "pav", "seq-pav", "rev-seq-pav", "phragmen", "equal-shares", "chamberlin-courant", "dowdall",
    "mean", "mean-win-rate", "rasch", "item-response",
]  # fmt: skip
"""The names of all methods, for editors; `method_name` takes other ways of writing them, too."""

ALIASES = {
    "bt": "bradley-terry",
    "mm": "bradley-terry",  # minorization-maximization, by which others fit it
    "davidson": "bradley-terry",
    "pl": "plackett-luce",
    "rc": "rank-centrality",
    "instant-runoff": "irv",
    "ranked-choice": "irv",
    "fptp": "plurality",
    "kemeny-young": "kemeny",
    "tideman": "ranked-pairs",
    "average": "mean",
    "av": "approval",
    "spav": "seq-pav",
    "seqphragmen": "phragmen",
    "mes": "equal-shares",
    "method-of-equal-shares": "equal-shares",
    "rule-x": "equal-shares",
    "cc": "chamberlin-courant",
}
"""Other names by which people call a method -> its name here."""

WAYS_OUT = {
    "elo": 'Elo is a scale of scores here: ask for bradley-terry, with scale="elo"',
    "trueskill": 'a model with an error for each score is bradley-terry; scores that change over time: drift="learn"',
    "glicko": 'a model with an error for each score is bradley-terry; scores that change over time: drift="learn"',
    "condorcet": "schulze, ranked-pairs, minimax and copeland elect the head-to-head winner if there is one",
}
"""Names that people type for what is no method here -> what to ask for instead."""


def method_name(name: str) -> str:
    """The name of a method in the table, however it is written: any case, ``_`` for ``-``, or a common other name.

    >>> method_name("Bradley_Terry"), method_name("bt")
    ('bradley-terry', 'bradley-terry')
    """
    for known in (name, _plain(name)):
        if known in EVERY:
            return known
    if _plain(name) in WAYS_OUT:
        raise ValueError(f"method {name!r} is unknown; {WAYS_OUT[_plain(name)]}")
    return one_of(name, METHODS, "method")


def _plain(name: str) -> str:
    plain = name.strip().lower().replace("_", "-").replace(" ", "-")
    return ALIASES.get(plain, plain)


def method_of(name: str) -> Method:
    """The record of a method by its name, see `method_name`."""
    return EVERY[method_name(name)]


def record_of(name: str) -> Method:
    """The record of a method; one without facts for what is not in the table, such as a caller's own function."""
    return EVERY.get(name) or Method(name, name, "", name, "")


def mixed_model(name: str, what: str) -> Any:
    """The class of a model that can be mixed; a ``ValueError`` says what was asked for, and lists the names."""
    known = _plain(name)
    return MIXED[one_of(known if known in MIXED else name, MIXED, what)]
