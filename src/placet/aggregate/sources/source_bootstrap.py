"""Bootstrap of a joint fit: the votes, ballots and cells of every source are resampled, and all is fitted again."""

from dataclasses import replace
from typing import Any

import numpy as np

from placet.aggregate.resample import resample
from placet.aggregate.result.result import Consensus
from placet.aggregate.sources.source_consensus import consensus_of_sources
from placet.data import DataError, Parts, Scores
from placet.data.sources import Sources


def with_bootstrap(sources: Sources, rounds: int, random_state: int, progress: Any, **params: Any) -> Consensus:
    """The consensus of the sources; with ``rounds`` > 0, its errors are those of resampled data."""
    result = consensus_of_sources(sources, **params)
    if progress is not None:
        progress(1, 1 + rounds)
    if not rounds:
        return result
    if rounds < 2:
        raise ValueError(f"bootstrap must be 0 or at least 2 rounds, not {rounds}")
    rng, draws = np.random.default_rng(random_state), []
    for done in range(rounds):
        again = {name: _resample(part, name, rng) for name, part in sources.items()}
        draws.append(consensus_of_sources(Sources(again, sources.target), **params).scores)
        if progress is not None:
            progress(2 + done, 1 + rounds)
    note = f"uncertainty from {rounds} bootstrap rounds of every source"
    return replace(result, stderr=None, covariance=None, draws=np.array(draws), notes=(*result.notes, note))


def _resample(part: Any, name: Any, rng: np.random.Generator) -> Any:
    if isinstance(part, Parts | Scores):
        raise DataError(f"source {name!r}: only votes and ballots in memory are resampled; leave the bootstrap out")
    return resample(part, rng)
