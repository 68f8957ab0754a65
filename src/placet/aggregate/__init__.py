"""Aggregation: from ballots, votes, rank lists or ratings to a consensus that knows its own uncertainty.

Every method is a record in `METHODS`, of which `MODELS` and `RULES` are views; `consensus` serves all and gives a
`Consensus`, or a `ConsensusSet` where the data hold several instances.
"""

from typing import TYPE_CHECKING

from placet.aggregate.consensus_door import consensus
from placet.aggregate.defaults import default_method
from placet.aggregate.method_table import METHODS, MODELS, RULES
from placet.aggregate.result.consensus_set import ConsensusSet
from placet.aggregate.result.groups import Groups
from placet.aggregate.result.result import Consensus
from placet.lazy import lazy_names

if TYPE_CHECKING:
    from placet.aggregate.asking.simulated_poll import votes_needed as votes_needed
    from placet.aggregate.influence import leave_one_out as leave_one_out, surprise as surprise
    from placet.aggregate.mixture.mixture import Mixture as Mixture
    from placet.aggregate.proof_door import fragility as fragility, verify as verify
    from placet.aggregate.result.boards import read_board as read_board
    from placet.aggregate.result.difference import difference as difference
    from placet.aggregate.voter_pulls import influence_map as influence_map

# Modules of the names that are imported when they are first used, as the classes of MODELS are.
_HOMES = {"Mixture": "mixture.mixture", "leave_one_out": "influence", "surprise": "influence"}
_HOMES |= {"influence_map": "voter_pulls", "votes_needed": "asking.simulated_poll"}
_HOMES |= {"difference": "result.difference", "read_board": "result.boards"}
_HOMES |= {"fragility": "proof_door", "verify": "proof_door"}
_HOMES |= {name: home for home, _, name in (str(m.home).partition(":") for m in METHODS.values() if m.kind == "model")}

__all__ = [
    "METHODS",
    "MODELS",
    "RULES",
    "Consensus",
    "ConsensusSet",
    "Groups",
    "Mixture",
    "consensus",
    "default_method",
    "difference",
    "fragility",
    "influence_map",
    "leave_one_out",
    "read_board",
    "surprise",
    "verify",
    "votes_needed",
]


__getattr__ = lazy_names(__name__, _HOMES)
