"""Aggregation: from ballots, votes, rank lists or ratings to a consensus that knows its own uncertainty.

A model is an estimator in `MODELS`, a rule a record in `RULES`; `consensus` serves both and gives a `Consensus`, or a
`ConsensusSet` where the data hold several instances.
"""

from typing import TYPE_CHECKING

from placet.aggregate.consensus_door import MODELS, consensus
from placet.aggregate.result.groups import Groups
from placet.aggregate.result.result import Consensus, ConsensusSet
from placet.aggregate.rules.rule_table import RULES
from placet.lazy import lazy_names

if TYPE_CHECKING:
    from placet.aggregate.influence import leave_one_out, surprise
    from placet.aggregate.mixture.mixture import Mixture

# Modules of the names that are imported when they are first used, as the classes of MODELS are.
_HOMES = {"Mixture": "mixture.mixture", "leave_one_out": "influence", "surprise": "influence"}
_HOMES |= {name: module for module, _, name in (home.partition(":") for home in MODELS.homes.values())}

__all__ = [
    "MODELS",
    "RULES",
    "Consensus",
    "ConsensusSet",
    "Groups",
    "Mixture",
    "consensus",
    "leave_one_out",
    "surprise",
]


__getattr__ = lazy_names(__name__, _HOMES)
