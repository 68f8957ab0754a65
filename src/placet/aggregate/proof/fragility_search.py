"""Fragility: the fewest votes, ballots, voters, days, tasks or sources whose removal changes what a result claims."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from placet.aggregate.defaults import default_of
from placet.aggregate.method_table import METHODS, method_of
from placet.aggregate.proof.attacks import attacks_on
from placet.aggregate.proof.ballot_influence import RefitInfluence, influence_of_ballots
from placet.aggregate.proof.changed_ballots import margin_of
from placet.aggregate.proof.claims import Claim, claims_of
from placet.aggregate.proof.fragility_result import HOWS, FragileClaim, Fragility
from placet.aggregate.proof.removal import Removable, has_whole_numbers, removable
from placet.aggregate.proof.removal_search import RemovalInfluence, RemovalSearch
from placet.aggregate.proof.rule_minimum import exact_minimum
from placet.aggregate.proof.vote_influence import VoteInfluence
from placet.aggregate.result.asked import Asked
from placet.aggregate.result.consensus_set import ConsensusSet
from placet.aggregate.result.result import Consensus
from placet.data import Comparisons, DataError, Parts, Rankings
from placet.data.arrays import Ints
from placet.data.errors import one_of
from placet.threads import algebra_threads

FEW_REFITS = {"best": 300, "place": 300, "top": 300, "tiers": 60}
"""Goal -> refits that may be spent to prove that no smaller removal changes a claim; those of tiers need errors too."""

FEW_PIECES = 8
"""Number of things, such as sources, up to which all sets are tried if no order of influence leads anywhere."""


def fragility_of(
    board: Consensus,
    asked: Asked,
    *,
    goal: str = "best",
    k: int = 1,
    by: str = "vote",
    level: float = 0.95,
    how: str = "removed",
    prove: int | None = None,
) -> Fragility:
    """How few votes (ballots, voters, ...), removed, would change the ``board``; see `placet.fragility`.

    ``prove``: the refits that may be spent on the proof that no smaller removal changes a claim.
    """
    with algebra_threads(len(board.items)):  # the same sets for any number of threads
        return _fragility(board, asked, goal, k, by, level, how, prove)


def _fragility(
    board: Consensus, asked: Asked, goal: str, k: int, by: str, level: float, how: str, prove: int | None
) -> Fragility:
    _refuse(asked.data)
    chosen = default_of(asked.data).method if asked.method is None else asked.method
    whole = board if board.scale is None and board.items == asked.items else _one(asked.again(asked.data, chosen))
    claims = claims_of(whole, goal, k, level)
    pieces = removable(asked.data, by)
    again = _refit(asked, chosen, goal)
    if one_of(how, HOWS, "how") == "changed":
        margins = tuple(margin_of(pieces, claim, whole, asked.params, again) for claim in claims)
        return Fragility(goal, chosen, pieces.unit, pieces.total, margins, len(margins), how="changed")
    influence = _influence(pieces, chosen, asked.params, again)
    found, tried, notes = [], 0, _notes(pieces)
    most = FEW_REFITS[goal] if prove is None else prove
    for claim in claims:
        search = RemovalSearch(pieces, claim, again)
        found.append(_fragile(search, claim, whole, influence, most, asked.params))
        tried += search.n_refits
    return Fragility(goal, chosen, pieces.unit, pieces.total, tuple(found), tried, tuple(notes))


def _refuse(data: Any) -> None:
    """Refuse data that are several problems, or not in memory."""
    if isinstance(data, Parts):
        raise ValueError("fragility needs all votes in memory; read the files with placet.read")
    if getattr(data, "instance", None) is not None:
        raise DataError("the ballots belong to several instances; ask about one of them at a time")
    if isinstance(data, Mapping) and not hasattr(data, "target"):
        raise DataError(f"there are {len(data)} slices; ask about one of them at a time")


def _one(result: Consensus | ConsensusSet) -> Consensus:
    if not isinstance(result, Consensus):
        raise DataError(f"the result holds {len(result)} boards; ask about one of them at a time")
    return result


def _refit(asked: Asked, method: str, goal: str) -> Callable[[Any], Consensus]:
    """A function that runs the method again; without errors if only the order matters."""
    record = method_of(method)
    if record.kind == "joint":  # a single source that is left is ranked by its own default
        return lambda data: _one(asked.again(data, None))
    changes: dict[str, Any] = {}
    if goal != "tiers":
        changes["bootstrap"] = 0
        if "stderr" in record.parameters and record.kind == "model":
            changes["stderr"] = None
    return lambda data: _one(asked.again(data, method, **changes))


def _influence(
    pieces: Removable, method: str, params: Mapping[str, Any], again: Callable[[Any], Consensus]
) -> RemovalInfluence:
    """The first-order model of what a removal does; it decides the order of the search alone, not the answer."""
    if isinstance(pieces.data, Comparisons):
        own = dict(params) if METHODS[method].law == "pairs" else {}
        return VoteInfluence(pieces, own)
    if isinstance(pieces.data, Rankings):
        return influence_of_ballots(pieces, method, params)
    return RefitInfluence(pieces, again)


def _notes(pieces: Removable) -> list[str]:
    if pieces.unit in ("vote", "ballot") and not has_whole_numbers(pieces.data):
        return [f"weights are not whole numbers: a part of a {pieces.unit} counts as one"]
    return []


def _fragile(
    search: RemovalSearch,
    claim: Claim,
    whole: Consensus,
    influence: RemovalInfluence,
    prove: int,
    params: Mapping[str, Any],
) -> FragileClaim:
    """The smallest removal found for one claim."""
    take = search.smallest(attacks_on(claim, whole), influence)
    least = exact_minimum(search.pieces, search, claim, whole, params, take)
    if least is not None:
        return FragileClaim(claim, int(least.sum()), True, _rows(search.pieces, least), least)
    every = search.pieces.size
    if take is None and every.sum() > FEW_PIECES:
        return FragileClaim(claim, None, False)
    take, exact = search.polish(every if take is None else take, prove)
    if take is every:
        return FragileClaim(claim, None, False)
    return FragileClaim(claim, int(take.sum()), exact, _rows(search.pieces, take), take)


def _rows(pieces: Removable, take: Ints) -> tuple[dict[str, Any], ...]:
    """What is removed, the most numerous kinds first."""
    kinds = np.flatnonzero(take)
    kinds = kinds[np.argsort(-take[kinds], kind="stable")]
    count = pieces.unit in ("vote", "ballot")
    return tuple(
        {**pieces.name(int(k)), **({"removed": int(take[k]), "of": int(pieces.size[k])} if count else {})}
        for k in kinds
    )
