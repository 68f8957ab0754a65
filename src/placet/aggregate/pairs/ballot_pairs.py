"""The pairs of items on the same ballot, counted over all ballots in memory or part by part."""

from dataclasses import replace
from typing import Any

from placet.aggregate.data_facts import notes_of_data
from placet.aggregate.likelihood.existence import factor_by_agent
from placet.data import Comparisons, Parts, Rankings
from placet.data.arrays import Floats

INDEPENDENT_PAIRS = "pairs of one ballot were taken as independent votes; 'plackett-luce' or bootstrap does not"


def counted_pairs(data: Rankings | Parts, agent_weight: Any = None) -> Comparisons:
    """One row per pair: how many ballots put the one item above the other, weighted by their agents."""
    factor = factor_by_agent(agent_weight, data.agents)
    if isinstance(data, Rankings):
        return _pairs_of(data, factor)
    found: Comparisons = data.with_names(data.sum(_pairs_of, factor, name="pairs"), notes=notes_of_data(data))
    return found


def _pairs_of(data: Rankings, factor: Floats | None) -> Comparisons:
    weight = data.weight if factor is None else data.weight * factor[data.agent]
    plain = data if data.agent is None else replace(data, weight=weight, agent=None, agents=None, weights="counts")
    return plain.to_comparisons()
