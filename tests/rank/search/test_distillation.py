"""One ranker instead of a blend: trees fitted to its scores, and what is said about their loss."""

from dataclasses import replace

import numpy as np
import pytest

from placet.data import concat
from placet.metrics import ndcg
from placet.rank import TreeRanker, autorank
from placet.rank.search.stacking import random_parts
from placet.simulate import queries

DATA = queries(120, 10, 4, noise=0.5, random_state=3)
TRAIN, VALID, TEST = DATA[:60], DATA[60:90], DATA[90:]
LINEAR = [("linear", {"loss": loss, "l2": l2}) for loss in ("ranknet", "attrank") for l2 in (1e-2, 1.0)]


def by_hand(teacher, train):
    """The student: grades do not matter, only the teacher's scores."""
    return TreeRanker("listnet").fit(replace(train, grade=teacher.predict(train)))


def stated(gap, value):
    error = gap.std(ddof=1) / np.sqrt(len(gap))
    return f"distilled into one TreeRanker: ndcg@10 {value:.4f} on held-out queries, {gap.mean():+.4f} +- {error:.4f} "


def test_with_a_validation_set_the_student_is_compared_with_the_blend_there(tmp_path):
    blend = autorank(TRAIN, VALID, candidates=LINEAR, blend=3).ranker
    choice = autorank(TRAIN, VALID, candidates=LINEAR, blend=3, distill=True)
    student = by_hand(blend, TRAIN)
    assert isinstance(choice.ranker, TreeRanker)
    np.testing.assert_array_equal(choice.ranker.predict(TEST), student.predict(TEST))
    own, before = (ndcg(ranker.predict(VALID), VALID.grade, VALID.offsets, 10) for ranker in (student, blend))
    assert choice.value == pytest.approx(own.mean())
    assert choice.notes[-1].startswith(stated(own - before, own.mean()))
    assert "by one ranker distilled from the mean of 3 (*)" in repr(choice)
    assert choice.ranker.score(TEST) > 0.8
    choice.ranker.save(tmp_path / "student")


def test_with_folds_teacher_and_student_of_each_part_have_not_seen_it():
    more = {"candidates": LINEAR, "blend": 4, "folds": 2, "rotate": True}
    blend, choice = autorank(TRAIN, **more).ranker, autorank(TRAIN, **more, distill=True)
    part, gaps, values = random_parts(TRAIN, 2, 0), [], []
    for k in range(2):
        train, valid = TRAIN[part != k], TRAIN[part == k]
        held_out = [LINEAR[at] for at in (k, k + 2)]
        teacher = autorank(train, valid, candidates=held_out, blend=2).ranker
        own, before = (
            ndcg(ranker.predict(valid), valid.grade, valid.offsets, 10) for ranker in (by_hand(teacher, train), teacher)
        )
        values.append(own)
        gaps.append(own - before)
    assert choice.notes[-1].startswith(stated(np.concatenate(gaps), np.concatenate(values).mean()))
    whole = concat([TRAIN[part != 0], TRAIN[part == 0]])
    np.testing.assert_array_equal(choice.ranker.predict(TEST), by_hand(blend, whole).predict(TEST))


def test_there_must_be_a_blend_to_distill():
    with pytest.raises(ValueError, match="distill replaces a blend by one ranker; give blend above 1"):
        autorank(TRAIN, VALID, candidates=LINEAR, distill=True)
