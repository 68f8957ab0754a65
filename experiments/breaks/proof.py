"""Breaks of the experiment on coordinated voters."""

from dataclasses import replace
from typing import Any

import numpy as np

from experiments.breaks.mutant import Mutant, after, before, give

ALARMS = "proof.false_alarms"
MODULE = "placet.aggregate.proof.coordinated_voters"


def disagreement(table: Any, *rest: Any) -> tuple[Any, ...]:
    """Favorites of the first voter alone, in place of those of both."""
    return table._replace(both=table.a - table.both), *rest


def all_but_one(groups: Any, *_: Any) -> Any:
    return tuple(replace(group, voters=group.voters[1:]) for group in groups)


BREAKS = [
    Mutant(ALARMS, "one comparison counted", f"{MODULE}:adjusted", give(lambda p: p)),
    Mutant(ALARMS, "nobody is ever named", f"{MODULE}:adjusted", after(lambda found, *_: np.ones_like(found))),
    Mutant(ALARMS, "p-values a thousandth", f"{MODULE}:p_values", after(lambda found, *_: found / 1000)),
    Mutant(ALARMS, "disagreement counted", f"{MODULE}:p_values", before(disagreement)),
    Mutant(ALARMS, "one voter of a group left out", f"{MODULE}:_groups", after(all_but_one)),
]
