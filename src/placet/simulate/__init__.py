"""Simulated data from every model; the same ``random_state`` gives the same bytes."""

from typing import TYPE_CHECKING, Any

from placet.simulate.choice_sets import choices
from placet.simulate.evidence_sources import benchmark_table, judged_votes
from placet.simulate.graded_queries import queries, ratings
from placet.simulate.impressions import clicks
from placet.simulate.orders import best_worst, mallows, mallows_mixture, plackett_luce
from placet.simulate.partitions import ordered_partitions
from placet.simulate.votes import battles, multinomial_preferences

if TYPE_CHECKING:
    from placet.simulate.signals import ranked_signals

__all__ = [
    "battles",
    "benchmark_table",
    "best_worst",
    "choices",
    "clicks",
    "judged_votes",
    "mallows",
    "mallows_mixture",
    "multinomial_preferences",
    "ordered_partitions",
    "plackett_luce",
    "queries",
    "ranked_signals",
    "ratings",
]


def __getattr__(name: str) -> Any:
    """Import ``ranked_signals`` on first use, as tracking takes longer to load than everything else."""
    if name == "ranked_signals":
        from placet.simulate.signals import ranked_signals

        return ranked_signals
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
