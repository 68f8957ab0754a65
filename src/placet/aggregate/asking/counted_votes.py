"""The votes behind a board: whether they are enough for a goal, and what to ask next."""

import copy
from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from placet.aggregate.asking.goal_evidence import GoalEvidence
from placet.aggregate.asking.head_to_head import HeadToHead
from placet.aggregate.asking.pairs_to_ask import Chance, Claims, batch, open_claims, sets_to_show
from placet.aggregate.goal_verdict import HOPELESS, Goal, GoalVerdict, SourcePair
from placet.aggregate.result.result import Consensus
from placet.aggregate.result.uncertainty import difference_variance
from placet.data import Comparisons, Parts, Rankings
from placet.data.arrays import Floats, Ints
from placet.io.text import plural

UNKNOWN_SHARE = 0.75
"""Expected share of votes that the higher of two items wins if nothing is known about them."""

MOST_NAMED = 5


class CountedVotes:
    """Votes or ballots whose pairs are counted once they are asked for."""

    def __init__(self, data: Any) -> None:
        self.data = data

    @cached_property
    def counts(self) -> HeadToHead:
        return self.data if isinstance(self.data, HeadToHead) else HeadToHead.from_data(self.data)

    def renamed(self, names: Mapping[Hashable, Hashable]) -> "CountedVotes":
        """The same votes with other names of the items."""
        return CountedVotes(self.counts.renamed([names.get(name, name) for name in self.counts.items]))

    def standing(self, board: Consensus, question: Goal) -> GoalEvidence:
        """What the votes prove about a goal."""
        return GoalEvidence(self.counts.among(board.items), board.order, question)

    def verdict(self, board: Consensus, question: Goal) -> GoalVerdict:
        """Whether the votes are enough, at any look."""
        standing = self.standing(board, question)
        claims = open_claims(standing, chance_of(board, standing.votes))
        answer, settled = _answer(board, standing), _settled(board, standing)
        return GoalVerdict(
            question.text, question.level, "any", standing.is_reached(), answer, settled, _open_pairs(board, claims)
        )

    def next_pairs(self, board: Consensus, question: Goal, n: int, each: int) -> list[tuple[int, int]]:
        """The numbers of the items of the next ``n`` pairs."""
        standing = self.standing(board, question)
        return batch(standing, chance_of(board, standing.votes), n, each)

    def next_sets(self, board: Consensus, question: Goal, n: int, size: int) -> list[tuple[int, ...]]:
        """The numbers of the items of the next ``n`` sets."""
        standing = self.standing(board, question)
        return sets_to_show(standing, chance_of(board, standing.votes), n, size)

    def split(
        self, board: Consensus, question: Goal, budget: float, cost: Mapping[Hashable, float]
    ) -> list[SourcePair]:
        """Votes of one source leave nothing to split."""
        raise ValueError("a budget is split between sources: placet.consensus(placet.Sources({...}, target=...))")


def with_votes(board: Any, data: Any) -> Any:
    """The board with the votes or ballots behind it, if they can be counted by pairs; other results as they are."""
    ballots = isinstance(data, Rankings) and data.instance is None
    if not isinstance(board, Consensus) or not (ballots or isinstance(data, Comparisons | Parts)):
        return board
    if getattr(data, "weights", "counts") == "design":
        return board  # these are not counts
    twin = copy.copy(board)  # a result is checked once
    object.__setattr__(twin, "asking", CountedVotes(data))
    return twin


def chance_of(board: Consensus, votes: HeadToHead) -> Chance:
    """How often the higher of two items is expected to win and to lose: by the model, with its uncertainty added to the
    difference of the scores, so that little is taken as settled; or by the votes, if there is no model.
    """
    win, stderr = board.win, board.stderr
    if win is None or stderr is None:
        return _chance_of_votes(votes)
    full = board.covariance

    def chance(high: Ints, low: Ints) -> tuple[Floats, Floats]:
        gap = board.scores[high] - board.scores[low]
        gap = np.sqrt(gap**2 + np.maximum(difference_variance(stderr, full, high, low), 0.0))
        unit = 1.0 if board.spread is None else board.spread[high] + board.spread[low]
        zero = np.zeros(len(gap))
        return np.asarray(win(gap / unit, zero)), np.asarray(win(zero, gap / unit))

    return chance


def _chance_of_votes(votes: HeadToHead) -> Chance:
    n = votes.n_items
    won = np.zeros((n, n))
    won[votes.i, votes.j], won[votes.j, votes.i] = votes.wins_i, votes.wins_j

    def chance(high: Ints, low: Ints) -> tuple[Floats, Floats]:
        ahead, behind = won[high, low], won[low, high]
        share = (np.maximum(ahead, behind) + 4 * UNKNOWN_SHARE) / (ahead + behind + 4)
        return share, 1 - share

    return chance


def _open_pairs(board: Consensus, claims: Claims) -> tuple[tuple[Hashable, Hashable, int | None], ...]:
    """The open statements by names, each with the votes it is expected to need."""
    votes = [None if count > HOPELESS else int(np.ceil(count)) for count in claims.votes.tolist()]
    pairs = zip(claims.high.tolist(), claims.low.tolist(), votes)
    return tuple((board.items[i], board.items[j], count) for i, j, count in pairs)


def _answer(board: Consensus, standing: GoalEvidence) -> Any:
    """What is asked for, if it is known."""
    if not standing.is_reached():
        return None
    name, ahead, items = standing.goal.name, standing.ahead.tolist(), board.items
    if name == "best":
        asked = standing.goal.items
        return items[standing.leader] if not asked or not standing.not_best[asked[0]] else f"not {items[asked[0]]}"
    if name == "top":
        return [items[k] for k in ahead[: standing.goal.k]]
    if name == "tiers":
        return _tiers(board, standing)
    if name == "order":
        return [items[k] for k in ahead]
    return [items[k] for k in ahead if k in standing.goal.items or len(standing.goal.items) == 1]


def _tiers(board: Consensus, standing: GoalEvidence) -> list[tuple[Hashable, ...]]:
    return [tuple(board.items[k] for k in one) for one in np.split(standing.ahead, standing.cuts)]


def _settled(board: Consensus, standing: GoalEvidence) -> tuple[str, ...]:
    """What is known so far, in words."""
    goal, words = standing.goal, []
    if goal.name == "best":
        words = [_items_in_words(board, np.flatnonzero(~standing.not_best), "the best is one of", standing)]
    elif goal.name == "top":
        words = [
            _items_in_words(board, np.flatnonzero(one), word, standing)
            for one, word in zip(standing.sure_top, ("in", "out"))
        ]
    elif goal.name == "tiers":
        words = [f"{plural(len(standing.cuts) + 1, 'tier')} told apart"]
    else:
        told = int(standing.is_told(*standing.pairs()).sum())
        what = "neighboring pairs" if goal.name == "order" else "pairs"
        words = [f"{told} of {len(standing.pairs()[0])} {what} settled"]
    if standing.contradicted.any() and goal.name != "above":
        words.append(
            _items_in_words(board, np.flatnonzero(standing.contradicted), "beat one another in a circle", standing)
        )
    return tuple(words)


def _items_in_words(board: Consensus, numbers: Ints, word: str, standing: GoalEvidence) -> str:
    """Items by name, those ahead first, and what is said of them."""
    ordered = numbers[np.argsort(standing.place[numbers])].tolist()
    names = [str(board.items[k]) for k in ordered[:MOST_NAMED]]
    more = f" and {len(ordered) - MOST_NAMED} more" if len(ordered) > MOST_NAMED else ""
    return f"{word}: {', '.join(names) or 'none'}{more}"
