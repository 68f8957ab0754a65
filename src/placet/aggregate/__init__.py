"""Aggregation: from ballots, votes, rank lists or ratings to a consensus that knows its own uncertainty.

A model is an estimator in `MODELS`, a rule a record in `RULES`; `consensus` serves both and gives a `Consensus`, or a
`ConsensusSet` where the data hold several instances.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from placet.aggregate.groups import Groups
from placet.aggregate.methods import MODELS, consensus
from placet.aggregate.result import Consensus, ConsensusSet
from placet.aggregate.rules import RULES

if TYPE_CHECKING:
    from placet.aggregate.influence import leave_one_out, surprise
    from placet.aggregate.mixture import Mixture

# Where names live that are imported when they are first used, as the classes of MODELS are.
_HOMES = {"Mixture": "mixture", "leave_one_out": "influence", "surprise": "influence"}

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


def __getattr__(name: str) -> Any:
    for home in MODELS.homes.values():
        module, _, own = home.partition(":")
        if name == own:
            return getattr(import_module(f"placet.aggregate.{module}"), name)
    if name in _HOMES:
        return getattr(import_module(f"placet.aggregate.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'placet.aggregate' has no attribute {name!r}")
