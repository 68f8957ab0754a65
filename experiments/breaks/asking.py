"""Breaks of the experiments on asking and stopping."""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy

from experiments.breaks.mutant import Mutant, after, before, give

FALSE, VOTES = "asking.false_statements", "asking.votes_to_goal"
STATEMENTS = "placet.aggregate.asking.goal_evidence:n_false"
EVIDENCE = "placet.aggregate.asking.pair_evidence:_log_evidence"
BATCH = "placet.aggregate.asking.simulated_poll:batch"


def one_look(_: Any, won: Any, lost: Any, bar: float) -> np.ndarray:
    """The evidence of a test for one look: minus the log of its p-value."""
    total = np.maximum(won + lost, 1.0)
    z = (won - bar * (won + lost)) / np.sqrt(total * bar * (1 - bar))
    return np.maximum(-scipy.stats.norm.logsf(z), 0.0)


def no_votes(found: np.ndarray, won: Any, *_: Any) -> np.ndarray:
    """Evidence that never grows."""
    return np.zeros_like(found)


def for_the_order(standing: Any, *rest: Any) -> tuple[Any, ...]:
    return replace(standing, goal=replace(standing.goal, name="order")), *rest


BREAKS = [
    Mutant(FALSE, "one statement counted", STATEMENTS, give(lambda goal, n: 1.0)),
    Mutant(FALSE, "a test for one look", EVIDENCE, after(one_look)),
    Mutant(FALSE, "a tenth of the statements counted", STATEMENTS, after(lambda found, *_: found / 10)),
    Mutant(FALSE, "nothing is ever said", EVIDENCE, after(no_votes)),
    Mutant(VOTES, "random pairs are asked", BATCH, give(lambda *_: [])),
    Mutant(VOTES, "the goal is not looked at when asking", BATCH, before(for_the_order)),
    Mutant(VOTES, "one statement counted", STATEMENTS, give(lambda goal, n: 1.0)),
    Mutant(VOTES, "a test for one look", EVIDENCE, after(one_look)),
]
