"""The table of methods, and the method for data if none is named."""

from collections.abc import Mapping
from typing import Any

from placet.aggregate.method import Method, MethodView
from placet.aggregate.result.result import RELATIVE_TOLERANCE
from placet.data import Comparisons, Parts, Rankings, Scores
from placet.data.errors import one_of

_PAIRWISE = "It looks at each pair of items by itself and counts how many put the one above the other."
_ROUNDS = "It counts in rounds; in each the item that does worst leaves, and its votes go to the next choice."
_POINTS = "Every ballot gives points to the items on it by their places, and the points are added."

MOST_DENSE = 4096
"""Number of items up to which models factor dense matrices."""


def _newton_seconds(rows: int, items: int) -> float:
    """A dozen Newton steps, dense up to a few thousand items and by Hessian-vector products beyond; ranks by draws."""
    dense = min(items, MOST_DENSE)
    return 5e-3 + 2e-5 * rows + 2e-10 * dense**3 + 2e-7 * min(dense, 1000) ** 2


def _preference_seconds(rows: int, items: int) -> float:
    """Steps linear in rows and items; standard errors with correlations up to a few thousand items, else without."""
    return 5e-3 + 2e-5 * rows + (2e-10 * items**3 if items <= MOST_DENSE else 1e-4 * items)


def _model(
    name: str, title: str, words: str, home: str, reference: str, *, votes: bool = True, cost: Any = None, **facts: Any
) -> Method:
    takes = ("votes", "ballots") if votes else ("ballots",)
    facts |= {"takes": takes, "power": 3, "cost": cost or _newton_seconds}
    return Method(name, title, words, home, reference, kind="model", **facts)


def _rule(name: str, title: str, words: str, home: str, reference: str, *, votes: bool = False, **facts: Any) -> Method:
    return Method(
        name, title, words, f"rules.{home}", reference, takes=("votes", "ballots") if votes else ("ballots",), **facts
    )


def _score_method(name: str, title: str, words: str, home: str, reference: str) -> Method:
    return Method(name, title, words, home, reference, kind="score method", takes=("scores",), power=3)


_TABLE = (
    _model(
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
    ),
    _model(
        "plackett-luce",
        "Plackett-Luce",
        "Each item has a strength. A ballot is filled from the top: at each place an item is chosen with a probability "
        "in proportion to its strength among those that are left. The strengths are those under which the ballots are "
        "most probable; items that a ballot leaves out say nothing on it.",
        "ballots.ballot_models:PlackettLuce",
        "Luce 1959; Plackett 1975",
        law="orders",
        reads_controls=True,
    ),
    _model(
        "pmop-fd",
        "PMOP (full decomposition)",
        "Each item has a strength, and a ballot is filled from the top tier by tier: items that tie are chosen "
        "together. The strengths are those under which the ballots are most probable.",
        "ballots.ballot_models:PMOPFullDecomposition",
        "Truyen, Phung and Venkatesh 2011",
        law="partitions",
    ),
    _model(
        "pmop",
        "PMOP",
        "Each item has a strength, and a ballot is filled from the top tier by tier: items that tie are chosen "
        "together, by the mean of their strengths. The strengths are those under which the ballots are most probable.",
        "ballots.ballot_models:PMOP",
        "Truyen, Phung and Venkatesh 2011",
        law="partitions",
    ),
    _model(
        "mpm",
        "Multinomial preference model",
        "Every voter states preferences between items, more often the further apart the items are. An item needs "
        "many preferences to move far from the middle, so a few good ratings do not put it first. How closely each "
        "voter follows the common scores can be learned.",
        "mpm.multinomial_preference:MultinomialPreference",
        "Volkovs and Zemel 2012",
        shares_agents=True,
        cost=_preference_seconds,
    ),
    _model(
        "mallows",
        "Mallows",
        "There is one central order, and a ballot is the less probable the more it differs from it. The order is the "
        "one under which the ballots are most probable.",
        "distance.mallows:Mallows",
        "Mallows 1957",
        votes=False,
        law="distances",
    ),
    _model(
        "cps",
        "Coset-permutation stages",
        "There is one central order. A ballot is filled from the top, and an item is the less probable at a place the "
        "more the orders that begin so differ from the central one.",
        "distance.cps:CosetPermutation",
        "Qin, Geng and Liu 2010",
        votes=False,
        shares_agents=True,
    ),
    _model(
        "svp",
        "Spectral ranking",
        "The mean differences between items are completed to the simplest full table that fits them, and an item's "
        "score is its mean difference to all others.",
        "distance.svp:SingularValueProjection",
        "Gleich and Lim 2011",
        votes=False,
        shares_agents=True,
    ),
    _rule(
        "borda",
        "Borda count",
        f"{_POINTS} Each item gets one point for every item that it stands above.",
        "positional:borda",
        "Borda 1781",
        votes=True,
        adds=True,
        compared=("votes", "ballots"),
    ),
    _rule(
        "plurality",
        "Plurality",
        "Each ballot counts for the item in its first place, and for no other.",
        "positional:plurality",
        "Young 1975, scoring rules",
        adds=True,
        compared=("ballots",),
    ),
    _rule(
        "anti-plurality",
        "Anti-plurality",
        "The item that is last on the fewest ballots wins.",
        "positional:anti_plurality",
        "Young 1975, scoring rules",
        adds=True,
        compared=("ballots",),
    ),
    _rule(
        "log",
        "Logarithmic points",
        f"{_POINTS} Points fall with the logarithm of the place, so first places count most.",
        "positional:logarithmic",
        "h(i) = -log i, a scoring rule (Young 1975)",
        adds=True,
        compared=("ballots",),
    ),
    _rule(
        "squared",
        "Squared points",
        f"{_POINTS} Points fall with the square of the place, so last places hurt most.",
        "positional:squared",
        "h(i) = -i^2, a scoring rule (Young 1975)",
        adds=True,
        compared=("ballots",),
    ),
    _rule("positional", "Points by place", _POINTS, "positional:by_points", "Young 1975, scoring rules", adds=True),
    _rule(
        "copeland",
        "Copeland",
        f"{_PAIRWISE} An item's score is the number of items it beats minus the number of items that beat it.",
        "pairwise_contests:copeland",
        "Copeland 1951",
        votes=True,
        power=2,
        compared=("votes", "ballots"),
    ),
    _rule(
        "median-rank",
        "Median rank",
        "An item's score is the middle one of its places on all ballots.",
        "typical_places:median_rank",
        "Fagin, Kumar and Sivakumar 2003",
        compared=("ballots",),
    ),
    _rule(
        "footrule",
        "Footrule",
        "The order whose places differ least from those on the ballots, in sum.",
        "footrule:footrule",
        "Diaconis and Graham 1977; Dwork, Kumar, Naor and Sivakumar 2001",
        power=3,
        picks_one=True,
    ),
    _rule(
        "kemeny",
        "Kemeny",
        "The order that contradicts the fewest preferences between two items, summed over all ballots.",
        "kemeny:kemeny",
        "Kemeny 1959; Conitzer, Davenport and Kalagnanam 2006",
        votes=True,
        power=5,
        picks_one=True,
    ),
    _rule(
        "kemeny-local",
        "Kemeny, by local search",
        "An order that contradicts few preferences between two items, summed over all ballots: no move of a single "
        "item makes it better, but another order might.",
        "kemeny:kemeny_local",
        "Kemeny 1959; Schiavinotto and Stuetzle 2004",
        votes=True,
        power=3,
        picks_one=True,
        compared=("votes", "ballots"),
    ),
    _rule(
        "mode",
        "Most frequent ballot",
        "The order that most ballots share.",
        "typical_places:mode",
        "Caragiannis, Procaccia and Shah 2014, modal ranking",
    ),
    _rule(
        "mc4",
        "MC4",
        f"{_PAIRWISE} A walk goes from item to item, always to one that a majority prefers; where it stays longest is "
        "best.",
        "markov:mc4",
        "Dwork, Kumar, Naor and Sivakumar 2001",
        votes=True,
        power=3,
        compared=("votes",),
    ),
    _rule(
        "rank-centrality",
        "Rank centrality",
        f"{_PAIRWISE} A walk goes from item to item, more often to one that wins more; where it stays longest is best.",
        "markov:rank_centrality",
        "Negahban, Oh and Shah 2012",
        votes=True,
        power=3,
        tolerance=RELATIVE_TOLERANCE,
    ),
    _rule(
        "rrf",
        "Reciprocal rank fusion",
        f"{_POINTS} A place p gives 1 / (60 + p) points unless another constant is set.",
        "positional:reciprocal",
        "Cormack, Clarke and Buettcher 2009",
        adds=True,
    ),
    _rule(
        "combsum",
        "CombSUM",
        "The scores that the lists give to an item are brought to one scale and added.",
        "fusion:combsum",
        "Fox and Shaw 1994",
        reads_scores=True,
        adds=True,
    ),
    _rule(
        "combmnz",
        "CombMNZ",
        "The scores that the lists give to an item are brought to one scale, added, and multiplied by the number of "
        "lists that name it.",
        "fusion:combmnz",
        "Fox and Shaw 1994",
        reads_scores=True,
    ),
    _rule(
        "schulze",
        "Schulze",
        f"{_PAIRWISE} One item is above another if a chain of majorities from it to the other is stronger than any "
        "chain back.",
        "pairwise_contests:schulze",
        "Schulze 2011",
        votes=True,
    ),
    _rule(
        "ranked-pairs",
        "Ranked pairs",
        f"{_PAIRWISE} Majorities are taken over from the strongest on, unless they contradict those taken before.",
        "pairwise_contests:ranked_pairs",
        "Tideman 1987; Brill and Fischer 2012",
        votes=True,
    ),
    _rule(
        "minimax",
        "Minimax",
        f"{_PAIRWISE} The item whose worst defeat is smallest wins.",
        "pairwise_contests:minimax",
        "Simpson 1969; Kramer 1977",
        votes=True,
    ),
    _rule(
        "irv",
        "Instant runoff",
        f"{_ROUNDS} The item with the fewest first choices does worst.",
        "runoff:irv",
        "Ware 1871; Conitzer, Rognlie and Xia 2009, parallel universes",
    ),
    _rule(
        "stv",
        "Single transferable vote",
        f"{_ROUNDS} Items that reach the quota are elected, and what they have beyond it goes on to the next choices.",
        "stv:stv",
        "Hill, Wichmann and Woodall 1987 (Meek); Scottish Local Government Elections Order 2007",
    ),
    _rule(
        "baldwin",
        "Baldwin",
        f"{_ROUNDS} The item with the lowest Borda count does worst.",
        "runoff:baldwin",
        "Baldwin 1926",
        votes=True,
    ),
    _rule(
        "nanson",
        "Nanson",
        f"{_ROUNDS} All items below the mean Borda count leave.",
        "runoff:nanson",
        "Nanson 1882",
        votes=True,
    ),
    _rule(
        "bucklin",
        "Bucklin",
        "First choices are counted, then second ones are added, and so on, until an item has more than half of the "
        "ballots.",
        "typical_places:bucklin",
        "Bucklin 1909; Hoag and Hallett 1926",
    ),
    _rule(
        "black",
        "Black",
        "The item that beats every other head to head wins; where there is none, the Borda count decides.",
        "pairwise_contests:black",
        "Black 1958",
        votes=True,
        beyond_pairs=True,
    ),
    _rule(
        "star",
        "STAR",
        "Score, then automatic runoff: the two items with the highest scores go to a runoff, which the one wins that "
        "more ballots put above the other.",
        "approval:star",
        "Equal Vote Coalition 2014",
        reads_scores=True,
    ),
    _rule(
        "approval",
        "Approval",
        "An item gets a point from each ballot that approves of it.",
        "approval:approval",
        "Brams and Fishburn 1978",
        reads_scores=True,
        adds=True,
    ),
    _rule(
        "dowdall",
        "Dowdall",
        f"{_POINTS} A place p gives 1 / p points.",
        "positional:dowdall",
        "Fraenkel and Grofman 2014",
        adds=True,
    ),
    _score_method(
        "mean",
        "Mean score",
        "An item's score is its mean over the tasks. Where scores are missing, the difficulty of each task is taken "
        "into account, so that nobody gains by leaving out hard tasks.",
        "scores.score_consensus:MEAN",
        "Yates 1933 (missing cells)",
    ),
    _score_method(
        "mean-win-rate",
        "Mean win rate",
        "On each task, the share of the other items that an item beats; then the mean over tasks.",
        "scores.score_consensus:MEAN_WIN_RATE",
        "Liang et al. 2022, HELM",
    ),
    _score_method(
        "rasch",
        "Rasch",
        "Each item has an ability and each question a difficulty; the chance of a right answer follows from the "
        "difference of the two.",
        "scores.score_consensus:RASCH",
        "Rasch 1960; Bock and Aitkin 1981 (difficulties integrated out)",
    ),
)
METHODS: dict[str, Method] = {method.name: method for method in _TABLE}
"""Name -> `Method`.  A method that is added here works at every door."""

MODELS: Mapping[str, Any] = MethodView(METHODS, lambda method: method.kind == "model", lambda method: method.function)
"""Name -> estimator class: ``fit(data)`` sets ``theta_``, ``consensus_`` and ``fit_``, and returns the estimator."""

RULES: Mapping[str, Any] = MethodView(METHODS, lambda method: method.kind == "rule", lambda method: method)
"""Name -> rule: ``RULES[name](data, **params)`` gives the scores (n_items,)."""

MIXED: Mapping[str, Any] = MethodView(METHODS, lambda method: method.law is not None, lambda method: method.function)
"""Name -> estimator class of the models that can be mixed: those that give every voter a likelihood."""


def method_of(name: str) -> Method:
    """The record of a method; a ``ValueError`` lists the names if there is none."""
    return METHODS[one_of(name, METHODS, "method")]


def record_of(name: str) -> Method:
    """The record of a method; one without facts for what is not in the table, such as a caller's own function."""
    return METHODS.get(name) or Method(name, name, "", name, "")


# What is used if no method is named

VOTES, BALLOTS, MANY_RATINGS, TABLE = (METHODS[name] for name in ("bradley-terry", "plackett-luce", "mpm", "mean"))

MOST_RATINGS, MOST_RATED = 100_000, 2_000
"""Numbers of ratings and of rated items up to which Plackett-Luce with a learned prior takes a few seconds."""


def default_method(data: Any) -> str:
    """The method for data if none is named, the same at every door.

    Bradley-Terry for votes, the mean for score tables, Plackett-Luce for ballots and ratings; the multinomial
    preference model for very many ratings.  Both shrink items with few ratings towards the middle.  Plackett-Luce
    conditions on which items each user rated; the other, in which items gain by being rated often, takes time
    proportional to the number of ratings.

    >>> default_method(Rankings.from_orders([["a", "b"]]))
    'plackett-luce'
    """
    kinds = {data.kind} if isinstance(data, Parts) else {type(piece) for piece in _pieces(data)}
    if Comparisons in kinds:
        return VOTES.name
    if Scores in kinds:
        return TABLE.name
    return MANY_RATINGS.name if default_note(data) else BALLOTS.name


def default_note(data: Any) -> str:
    """Why ratings are ranked by a model other than the usual one; empty if they are not."""
    pieces = [] if isinstance(data, Parts) else _pieces(data)
    if not pieces or not all(map(_are_ratings, pieces)):
        return ""
    rows, items = max(len(piece.item) for piece in pieces), max(piece.n_items for piece in pieces)
    if rows <= MOST_RATINGS and items <= MOST_RATED:
        return ""
    return (
        f"{rows:,} ratings of {items:,} items are ranked by {MANY_RATINGS.name}, in seconds; items gain by being rated "
        f"often. --method {BALLOTS.name} looks only at how high each user rated what, and may take minutes"
    )


def check_defaults(params: Mapping[str, Any]) -> None:
    """Reject parameters that no default method takes, before any file is read."""
    refused = []
    for method in (VOTES, BALLOTS, MANY_RATINGS, TABLE):
        try:
            method.check(params)
        except ValueError as error:
            refused.append(error)
        else:
            return
    raise refused[0]


def _pieces(data: Any) -> list[Any]:
    return list(data.values()) if isinstance(data, Mapping) else [data]


def _are_ratings(data: Any) -> bool:
    """Whether ballots were read from ratings: agents gave scores, and there are no instances."""
    return isinstance(data, Rankings) and data.score is not None and data.agent is not None and data.instance is None
