"""Breaks of the experiments on sources."""

from typing import Any

import numpy as np

from experiments.breaks.mutant import Mutant, after, before, give
from placet.aggregate.sources.width_average import average

JUDGES, SETS, CELLS, PAIRING = "sources.judges", "sources.rank_sets", "sources.table_cells", "sources.pairing"
EVIDENCE = "placet.aggregate.sources.width_evidence:SourceEvidence"
AVERAGE = "placet.aggregate.sources.width_average:average"
FIT = "placet.aggregate.sources.source_fit:average_over_relations"
PAIRED = "placet.aggregate.sources.paired_votes"
CELL = "placet.aggregate.result.learned.task_responses:TaskResponses.predict"


def nothing_learned(_: Any, evidence: Any, z: Any) -> Any:
    """Scales and widths as they were at the start: every judge is taken to agree with people."""
    return z


def half_scores(found: Any, *_: Any) -> Any:
    return found._replace(mean=0.5 * found.mean)


def too_sure(found: Any, *_: Any) -> Any:
    return found._replace(covariance=0.04 * found.covariance)


def far_too_sure(found: Any, *_: Any) -> Any:
    return found[0]._replace(covariance=0.04 * found[0].covariance), found[1]


def next_verdicts(found: Any, *_: Any) -> Any:
    """Each pair of answers has the verdict on another one."""
    return np.roll(found[0], 1), found[1]


def all_unrelated(_: Any, evidence: Any, z: Any) -> Any:
    apart = evidence.without(0)
    return average(apart, apart.best(np.array([z[0], -30.0, z[2]]))), np.ones(1)


def half_as_wide(found: Any, *_: Any) -> Any:
    middle = found.mean
    return found._replace(low=(middle + found.low) / 2, high=(middle + found.high) / 2)


def one_item(responses: Any, item: int, task: int, level: float) -> tuple[Any, ...]:
    return responses, 0, task, level


BREAKS = [
    Mutant(JUDGES, "scales and widths are not learned", f"{EVIDENCE}.best", after(nothing_learned)),
    Mutant(JUDGES, "scores halved", AVERAGE, after(half_scores)),
    Mutant(JUDGES, "standard errors a fifth", AVERAGE, after(too_sure)),
    Mutant(SETS, "scales and widths are not learned", f"{EVIDENCE}.best", after(nothing_learned)),
    Mutant(SETS, "standard errors a fifth", FIT, after(far_too_sure)),
    Mutant(SETS, "every judge unrelated", FIT, after(all_unrelated)),
    Mutant(
        PAIRING,
        "pairs are not used",
        "placet.aggregate.sources.source_consensus:paired_rows",
        give(lambda *_: None),
    ),
    Mutant(PAIRING, "verdicts on other answers", f"{PAIRED}:verdicts_on", after(next_verdicts)),
    Mutant(PAIRING, "standard errors a fifth", AVERAGE, after(too_sure)),
    Mutant(CELLS, "all slopes equal", "placet.aggregate.sources.item_response:SLOPE_PRIOR", give(1e-3)),
    Mutant(CELLS, "intervals half as wide", CELL, after(half_as_wide)),
    Mutant(CELLS, "every item predicted as the first", CELL, before(one_item)),
]
