"""Aggregation: from ballots, votes, rank lists or ratings to a consensus that knows its own uncertainty.

A model is an estimator in `MODELS`, a rule a record in `RULES`; `consensus` serves both and gives a `Consensus`, or a
`ConsensusSet` where the data hold several instances.
"""

from placet.aggregate.groups import Groups
from placet.aggregate.influence import leave_one_out, surprise
from placet.aggregate.methods import MODELS, consensus
from placet.aggregate.mixture import Mixture
from placet.aggregate.result import Consensus, ConsensusSet
from placet.aggregate.rules import RULES

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
