"""The votes behind a board of sources: the target's prove what holds at every look; a budget is split between all."""

import copy
from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from placet.aggregate.asking.budget_split import difference_covariance, sources_to_ask, split
from placet.aggregate.asking.counted_votes import CountedVotes
from placet.aggregate.asking.head_to_head import HeadToHead
from placet.aggregate.goal_verdict import Goal, SourcePair
from placet.aggregate.result.result import Consensus
from placet.aggregate.result.separation import open_pairs
from placet.aggregate.result.uncertainty import difference_variance
from placet.aggregate.sources.source_fit import SourceFit, fit_sources
from placet.aggregate.sources.source_likelihood import likelihood_of
from placet.data import Parts, Scores, Sources
from placet.data.arrays import Ints
from placet.data.errors import as_choices

MOST_OPEN = 100
"""Maximum number of open differences, those nearest to 0 in standard errors, that a budget is split for."""


class SourceVotes(CountedVotes):
    """The sources behind a board; ``names``: those of the board's items by those of the sources, if they differ."""

    def __init__(self, sources: Sources, names: Mapping[Hashable, Hashable] | None = None) -> None:
        super().__init__(sources)
        self.names = names or {}

    @cached_property
    def counts(self) -> HeadToHead:
        sources = self.data
        if sources.target is None or _is_table(sources[sources.target]):
            raise ValueError(
                "no answer holds at every look without votes of a target, whose opinion is asked for; name one with "
                'votes or ballots (target=), or ask with look="once"'
            )
        found = HeadToHead.from_data(sources[sources.target])
        return found.renamed([self.names.get(name, name) for name in found.items])

    def renamed(self, names: Mapping[Hashable, Hashable]) -> "SourceVotes":
        new = {name: self.names.get(name, name) for name in self.data.item_names}
        return SourceVotes(self.data, {name: names.get(now, now) for name, now in new.items()})

    def split(
        self, board: Consensus, question: Goal, budget: float, cost: Mapping[Hashable, float]
    ) -> list[SourcePair]:
        """The votes to ask for within a budget, by source, the pairs with the most votes first."""
        _check_prices(self.data, budget, cost)
        high, low = _open(board, question)
        if not len(high):
            return []
        fit = self._fit(dict(board.params))
        number = {self.names.get(name, name): k for k, name in enumerate(self.data.item_names)}
        place = np.array([number[name] for name in board.items], np.int64)
        others = [name for name in self.data if name != self.data.target]
        asked = sources_to_ask(fit, others, cost, place[high], place[low])
        covariance = difference_covariance(fit, asked, place[high], place[low])
        votes = split(fit.mean[place[high]] - fit.mean[place[low]], covariance, asked, budget)
        rows = []
        for name, row in zip(cost, votes):
            first = np.argsort(-row, kind="stable")
            rows += [
                SourcePair(name, board.items[high[k]], board.items[low[k]], int(row[k])) for k in first if row[k] > 0
            ]
        return rows

    def _fit(self, params: Mapping[str, Any]) -> SourceFit:
        """The joint fit; that of paired sources as if they were not, since new votes are about new answers."""
        sources, ties, response = self.data, params.get("ties", "davidson"), params.get("response", "auto")
        own = {name: likelihood_of(part, sources.index(name), ties, response) for name, part in sources.items()}
        target = own.pop(sources.target, None)
        return fit_sources(target, list(own.values()), sources.n_items)


def with_sources(board: Consensus, sources: Sources) -> Consensus:
    """The board with the sources behind it."""
    twin = copy.copy(board)
    object.__setattr__(twin, "asking", SourceVotes(sources))
    return twin


def _is_table(part: Any) -> bool:
    return (part.kind if isinstance(part, Parts) else type(part)) is Scores


def _check_prices(sources: Sources, budget: float, cost: Mapping[Hashable, float]) -> None:
    """Raise a ``ValueError`` for prices of nobody, of who answers no pairs, or of nothing."""
    if not 0 < budget < np.inf:
        raise ValueError(f"budget must be positive, not {budget}")
    asked = [name for name, part in sources.items() if not _is_table(part)]
    if not cost:
        raise ValueError(f"cost= says what a vote of each source costs; choose from {as_choices(asked)}")
    for name, price in cost.items():
        if name not in asked:
            raise ValueError(f"{name!r} is no source with votes or ballots; choose from {as_choices(asked)}")
        if not 0 < price < np.inf:
            raise ValueError(f"the cost of a vote of {name!r} must be positive, not {price}")


def _open(board: Consensus, question: Goal) -> tuple[Ints, Ints]:
    """The pairs that matter for a goal and are not separated by the model, the most doubtful first."""
    if question.margin:
        raise ValueError("a margin does not go with a budget, which is split by a model of all votes")
    high, low = open_pairs(board.scores, board.separated(question.level), question.name, question.k, question.items)
    assert board.stderr is not None
    error = np.sqrt(np.maximum(difference_variance(board.stderr, board._covariance_or_draws(), high, low), 1e-300))
    first = np.argsort(np.abs(board.scores[high] - board.scores[low]) / error, kind="stable")[:MOST_OPEN]
    return high[first], low[first]
