"""Bootstrap of a joint fit: the votes, ballots and cells of every source are resampled, and all is fitted again."""

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np

from placet.aggregate.resample import resample
from placet.aggregate.result.result import Consensus
from placet.aggregate.sources.source_consensus import consensus_of_sources
from placet.data import Comparisons, DataError, Parts, Scores
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
        again = _resample_pairs(sources, rng) if sources.paired else {}
        again |= {name: _resample(part, name, rng) for name, part in sources.items() if name not in again}
        draws.append(consensus_of_sources(Sources(again, sources.target, sources.paired), **params).scores)
        if progress is not None:
            progress(2 + done, 1 + rounds)
    note = f"uncertainty from {rounds} bootstrap rounds of every source"
    return replace(result, stderr=None, covariance=None, draws=np.array(draws), notes=(*result.notes, note))


def _resample_pairs(sources: Sources, rng: np.random.Generator) -> dict[Hashable, Any]:
    """Sources of votes with ids, which are drawn together: an id that is drawn twice counts twice in all of them."""
    paired = {name: part for name, part in sources.items() if isinstance(part, Comparisons) and part.agents is not None}
    ids = list(dict.fromkeys(one for part in paired.values() for one in part.agents or ()))
    drawn = dict(zip(ids, rng.multinomial(len(ids), np.full(len(ids), 1 / len(ids))).tolist()))
    found: dict[Hashable, Any] = {}
    for name, part in paired.items():
        factor = np.array([drawn[one] for one in part.agents or ()], np.float64)
        found[name] = part.reweighted(factor[part.agent])
    return found


def _resample(part: Any, name: Any, rng: np.random.Generator) -> Any:
    if isinstance(part, Parts | Scores):
        raise DataError(f"source {name!r}: only votes and ballots in memory are resampled; leave the bootstrap out")
    return resample(part, rng)
