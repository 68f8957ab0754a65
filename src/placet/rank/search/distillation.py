"""One ranker instead of a blend: trees fitted to the blend's scores, and what that costs on held-out queries."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from placet.data import Queries, concat
from placet.data.arrays import Floats
from placet.metrics import metric as metric_of
from placet.rank.query_rows import mean_defined
from placet.rank.ranker import Ranker
from placet.rank.search.blend import Blend
from placet.rank.search.candidate_search import FittedCandidate, Split
from placet.rank.trees.tree_ranker import TreeRanker


class Distilled(NamedTuple):
    """A ranker fitted to the scores of a blend, its mean of the metric on held-out queries, and a note on the loss."""

    ranker: Ranker
    value: float
    note: str


def distill(teacher: Ranker, queries: Queries, random_state: int = 0) -> TreeRanker:
    """Trees for the cross entropy (ListNet) of the teacher's scores, whose deviation within lists is about 1.

    They see the features of a row alone, also if the teacher looks at its list; grades are not used.
    """
    return TreeRanker("listnet", random_state=random_state).fit(replace(queries, grade=teacher.predict(queries)))


def distill_members(
    members: Sequence[FittedCandidate],
    weights: Floats,
    blend: Ranker,
    splits: Sequence[Split],
    metric: str,
    random_state: int,
) -> Distilled:
    """Distill the blend of all fits of the members, on all queries that they were fitted to.

    The loss is measured on queries that neither teacher nor student was trained on: for each split, the fits on its
    training queries are the teacher, and the student has the teacher's scores of these queries.
    """
    measure, blended, own = metric_of(metric), [], []
    for k, (train, valid) in enumerate(splits):
        fits = [(m.rankers[at], m.spreads[at], w) for m, w in zip(members, weights) for at in _places(m, k)]
        if not fits or not sum(w for *_, w in fits) > 0:
            continue
        rankers, spreads, shares = zip(*fits)
        teacher = Blend.of(rankers, valid, metric, spreads=spreads, weights=shares)
        student = distill(teacher, train, random_state)
        blended.append(measure(teacher.predict(valid), valid.grade, valid.offsets))
        own.append(measure(student.predict(valid), valid.grade, valid.offsets))
    gap = np.concatenate(own) - np.concatenate(blended)
    gap = gap[~np.isnan(gap)]
    error = float(gap.std(ddof=1)) / np.sqrt(len(gap)) if len(gap) > 1 else float("nan")
    value = mean_defined(np.concatenate(own))
    note = f"distilled into one TreeRanker: {metric} {value:.4f} on held-out queries, {mean_defined(gap):+.4f} +- "
    whole = splits[0][0] if len(splits) == 1 else concat(splits[0])
    student = student if len(splits) == 1 else distill(blend, whole, random_state)
    return Distilled(student, value, f"{note}{error:.4f} from a blend of fits to the same queries")


def _places(member: FittedCandidate, k: int) -> list[Any]:
    """Where the fit of a member without split ``k`` is, if there is one."""
    return [at for at, split in enumerate(member.scores) if split == k]
