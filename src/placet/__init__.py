"""Placet ranks things from votes, ballots, ratings or search results, and tells which ranks the data settle."""

from typing import TYPE_CHECKING

from placet.lazy import lazy_names

__version__ = "0.1.0"

if TYPE_CHECKING:
    from placet import aggregate, axioms, data, io, losses, metrics, optim, rank, report, simulate, tracking
    from placet.aggregate import (
        METHODS,
        Consensus,
        ConsensusSet,
        difference,
        fragility,
        read_board,
        verify,
        votes_needed,
    )
    from placet.aggregate.consensus_door import consensus
    from placet.axioms import audit
    from placet.data import (
        Clicks,
        Comparisons,
        DataError,
        Games,
        Lists,
        Parts,
        Queries,
        Rankings,
        Scores,
        Sources,
        concat,
    )
    from placet.io import (
        read,
        read_ballots,
        read_battles,
        read_clicks,
        read_features,
        read_games,
        read_letor,
        read_letor_agg,
        read_preferences,
        read_preflib,
        read_qrels,
        read_ratings,
        read_scores,
        read_slices,
        read_trec_run,
        read_xmc,
        scan,
        write,
    )
    from placet.metrics import compare, evaluate, metric
    from placet.rank import load
    from placet.rank.choices.choice_door import choice
    from placet.rank.linear.linear_ranker import LinearRanker
    from placet.rank.search.autorank import autorank
    from placet.rank.trees.tree_ranker import TreeRanker
    from placet.report import write_consensus_page
    from placet.threads import set_threads

# Where each public name lives.  A name is imported when it is first used, so that `import placet` stays light.
_HOME = {
    "placet.data": (
        "Clicks",
        "Comparisons",
        "DataError",
        "Games",
        "Lists",
        "Parts",
        "Queries",
        "Rankings",
        "Scores",
        "Sources",
        "concat",
    ),
    "placet.io": (
        "read",
        "read_ballots",
        "read_battles",
        "read_clicks",
        "read_features",
        "read_games",
        "read_letor",
        "read_letor_agg",
        "read_preferences",
        "read_preflib",
        "read_qrels",
        "read_ratings",
        "read_scores",
        "read_slices",
        "read_trec_run",
        "read_xmc",
        "scan",
        "write",
    ),
    "placet.metrics": ("compare", "evaluate", "metric"),
    "placet.aggregate": (
        "METHODS",
        "Consensus",
        "ConsensusSet",
        "consensus",
        "difference",
        "fragility",
        "read_board",
        "verify",
        "votes_needed",
    ),
    "placet.axioms": ("audit",),
    "placet.rank": ("LinearRanker", "TreeRanker", "autorank", "choice", "load"),
    "placet.report": ("write_consensus_page",),
    "placet.threads": ("set_threads",),
}
_MODULES = (
    *("aggregate", "axioms", "data", "io", "losses", "metrics", "optim", "rank", "report", "simulate", "tracking"),
)
_OWNER = {name: home.removeprefix("placet.") for home, names in _HOME.items() for name in names}

__all__ = ["__version__", *_MODULES, *_OWNER]

__getattr__ = lazy_names("placet", _OWNER | dict.fromkeys(_MODULES, ""))


def __dir__() -> list[str]:
    return sorted(__all__)
