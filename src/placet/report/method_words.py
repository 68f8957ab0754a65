"""Descriptions of methods and data for people who read a ranking but not its manual."""

from collections.abc import Mapping

_PAIRWISE = "It looks at each pair of items by itself and counts how many put the one above the other."
_ROUNDS = "It counts in rounds; in each the item that does worst leaves, and its votes go to the next choice."
_POINTS = "Every ballot gives points to the items on it by their places, and the points are added."

METHODS: Mapping[str, tuple[str, str]] = {
    "bradley-terry": (
        "Bradley-Terry",
        "Each item has a strength, and the chance that one beats another follows from the difference of "
        "the two. The "
        "strengths are those under which the votes are most probable, so a win against a strong item "
        "counts for more "
        "than one against a weak item. Items with few votes are drawn to the middle.",
    ),
    "plackett-luce": (
        "Plackett-Luce",
        "Each item has a strength. A ballot is filled from the top: at each place an item is chosen "
        "with a probability "
        "in proportion to its strength among those that are left. The strengths are those under which "
        "the ballots are "
        "most probable; items that a ballot leaves out say nothing on it.",
    ),
    "pmop-fd": (
        "PMOP (full decomposition)",
        "Each item has a strength, and a ballot is filled from the top tier by tier: items that tie are chosen "
        "together. The strengths are those under which the ballots are most probable.",
    ),
    "pmop": (
        "PMOP",
        "Each item has a strength, and a ballot is filled from the top tier by tier: items that tie are chosen "
        "together, by the mean of their strengths. The strengths are those under which the ballots are "
        "most probable.",
    ),
    "mpm": (
        "Multinomial preference model",
        "Every voter states preferences between items, more often the further apart the items are. An item needs "
        "many preferences to move far from the middle, so a few good ratings do not put it first. How "
        "closely each "
        "voter follows the common scores can be learned.",
    ),
    "mallows": (
        "Mallows",
        "There is one central order, and a ballot is the less probable the more it differs from it. The "
        "order is the "
        "one under which the ballots are most probable.",
    ),
    "cps": (
        "Coset-permutation stages",
        "There is one central order. A ballot is filled from the top, and an item is the less probable "
        "at a place the "
        "more the orders that begin so differ from the central one.",
    ),
    "svp": (
        "Spectral ranking",
        "The mean differences between items are completed to the simplest full table that fits them, "
        "and an item's "
        "score is its mean difference to all others.",
    ),
    "borda": ("Borda count", f"{_POINTS} Each item gets one point for every item that it stands above."),
    "plurality": ("Plurality", "Each ballot counts for the item in its first place, and for no other."),
    "anti-plurality": ("Anti-plurality", "The item that is last on the fewest ballots wins."),
    "log": (
        "Logarithmic points",
        f"{_POINTS} Points fall with the logarithm of the place, so first places count most.",
    ),
    "squared": (
        "Squared points",
        f"{_POINTS} Points fall with the square of the place, so last places hurt most.",
    ),
    "positional": ("Points by place", _POINTS),
    "copeland": ("Copeland", f"{_PAIRWISE} An item's score is the number of items it beats, ties counting half."),
    "median-rank": ("Median rank", "An item's score is the middle one of its places on all ballots."),
    "footrule": ("Footrule", "The order whose places differ least from those on the ballots, in sum."),
    "kemeny": (
        "Kemeny",
        "The order that contradicts the fewest preferences between two items, summed over all ballots.",
    ),
    "kemeny-local": (
        "Kemeny, by local search",
        "An order that contradicts few preferences between two items, summed over all ballots: no move "
        "of a single "
        "item makes it better, but another order might.",
    ),
    "mode": ("Most frequent ballot", "The order that most ballots share."),
    "mc4": (
        "MC4",
        f"{_PAIRWISE} A walk goes from item to item, always to one that a majority prefers; where it "
        "stays longest is best.",
    ),
    "rank-centrality": (
        "Rank centrality",
        f"{_PAIRWISE} A walk goes from item to item, more often to one that wins more; where it stays longest is best.",
    ),
    "rrf": (
        "Reciprocal rank fusion",
        f"{_POINTS} A place p gives 1 / (60 + p) points unless another constant is set.",
    ),
    "combsum": ("CombSUM", "The scores that the lists give to an item are brought to one scale and added."),
    "combmnz": (
        "CombMNZ",
        "The scores that the lists give to an item are brought to one scale, added, and multiplied by "
        "the number of "
        "lists that name it.",
    ),
    "schulze": (
        "Schulze",
        f"{_PAIRWISE} One item is above another if a chain of majorities from it to the other is "
        "stronger than any "
        "chain back.",
    ),
    "ranked-pairs": (
        "Ranked pairs",
        f"{_PAIRWISE} Majorities are taken over from the strongest on, unless they contradict those taken before.",
    ),
    "minimax": ("Minimax", f"{_PAIRWISE} The item whose worst defeat is smallest wins."),
    "irv": ("Instant runoff", f"{_ROUNDS} The item with the fewest first choices does worst."),
    "stv": (
        "Single transferable vote",
        f"{_ROUNDS} Items that reach the quota are elected, and what they have beyond it goes on to the next choices.",
    ),
    "baldwin": ("Baldwin", f"{_ROUNDS} The item with the lowest Borda count does worst."),
    "nanson": ("Nanson", f"{_ROUNDS} All items below the mean Borda count leave."),
    "bucklin": (
        "Bucklin",
        "First choices are counted, then second ones are added, and so on, until an item has more than "
        "half of the ballots.",
    ),
    "black": (
        "Black",
        "The item that beats every other head to head wins; where there is none, the Borda count decides.",
    ),
    "star": (
        "STAR",
        "Score, then automatic runoff: the two items with the highest scores go to a runoff, which the "
        "one wins that more "
        "ballots put above the other.",
    ),
    "approval": ("Approval", "An item gets a point from each ballot that approves of it."),
    "dowdall": ("Dowdall", f"{_POINTS} A place p gives 1 / p points."),
    "mean": (
        "Mean score",
        "An item's score is its mean over the tasks. Where scores are missing, the difficulty of each "
        "task is taken "
        "into account, so that nobody gains by leaving out hard tasks.",
    ),
    "mean-win-rate": (
        "Mean win rate",
        "On each task, the share of the other items that an item beats; then the mean over tasks.",
    ),
    "rasch": (
        "Rasch",
        "Each item has an ability and each question a difficulty; the chance of a right answer follows from the "
        "difference of the two.",
    ),
}
"""Method -> its name and a description of what it does."""

KINDS = {"comparisons": "votes on pairs", "rankings": "ballots", "scores": "a table of scores"}

DATA = {
    "weight": "weight of all ballots",
    "rows": "entries on ballots",
    "largest tier": "most items that one ballot ties",
    "coverage": "share of all items on a ballot, on average",
    "pairs": "pairs that were compared",
    "pairs possible": "pairs that there are",
    "strongly connected components": "groups that no chain of wins leads both into and out of",
    "agents": "voters",
}
"""Fact about data -> its label; other facts keep their names."""


def method_name(method: str) -> str:
    """The common name of a method."""
    return METHODS[method][0] if method in METHODS else method


def data_facts(described: Mapping[str, object]) -> list[tuple[str, object]]:
    """Facts about data with readable labels; unknown facts are omitted."""
    found: list[tuple[str, object]] = []
    for name, fact in described.items():
        if fact is None:
            continue
        if name == "kind":
            fact = KINDS.get(str(fact), fact)
        elif name == "coverage" and isinstance(fact, float):
            fact = f"{fact:.0%}"
        elif isinstance(fact, float) and fact == round(fact):
            fact = round(fact)
        found.append((DATA.get(name, name), fact))
    return found
