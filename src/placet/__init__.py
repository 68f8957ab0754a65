"""Placet ranks things from votes, ballots, ratings or search results, and tells which ranks the data settle."""

from typing import TYPE_CHECKING

from placet.lazy import lazy_names

__version__ = "0.1.0"

if TYPE_CHECKING:
    from placet import (
        aggregate as aggregate,
        axioms as axioms,
        data as data,
        io as io,
        losses as losses,
        metrics as metrics,
        optim as optim,
        rank as rank,
        report as report,
        simulate as simulate,
        tracking as tracking,
    )
    from placet.aggregate import (
        METHODS as METHODS,
        Consensus as Consensus,
        ConsensusSet as ConsensusSet,
        difference as difference,
        fragility as fragility,
        read_board as read_board,
        verify as verify,
        votes_needed as votes_needed,
    )
    from placet.aggregate.consensus_door import consensus as consensus
    from placet.axioms import audit as audit
    from placet.data import (
        Clicks as Clicks,
        Comparisons as Comparisons,
        DataError as DataError,
        Games as Games,
        Lists as Lists,
        Parts as Parts,
        Queries as Queries,
        Rankings as Rankings,
        Scores as Scores,
        Sources as Sources,
        concat as concat,
    )
    from placet.io import (
        read as read,
        read_ballots as read_ballots,
        read_battles as read_battles,
        read_clicks as read_clicks,
        read_features as read_features,
        read_games as read_games,
        read_letor as read_letor,
        read_letor_agg as read_letor_agg,
        read_preferences as read_preferences,
        read_preflib as read_preflib,
        read_qrels as read_qrels,
        read_ratings as read_ratings,
        read_scores as read_scores,
        read_slices as read_slices,
        read_trec_run as read_trec_run,
        read_xmc as read_xmc,
        scan as scan,
        write as write,
    )
    from placet.metrics import compare as compare, evaluate as evaluate, metric as metric
    from placet.rank import load as load
    from placet.rank.choices.choice_door import choice as choice
    from placet.rank.linear.linear_ranker import LinearRanker as LinearRanker
    from placet.rank.search.autorank import autorank as autorank
    from placet.rank.trees.tree_ranker import TreeRanker as TreeRanker
    from placet.report import write_consensus_page as write_consensus_page
    from placet.threads import set_threads as set_threads

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
