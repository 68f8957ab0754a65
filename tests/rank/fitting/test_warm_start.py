"""Continued training: the same as one longer fit where nothing is drawn, never worse on the validation set."""

from functools import partial

import numpy as np
import pytest
from ranker_cases import CASES, DATA, fit, rows

import placet
from placet.data import DataError
from placet.rank import RANKERS, ForestRanker, LinearRanker, NeuralRanker, TreeRanker

pytestmark = pytest.mark.jit
TRAIN, VALID = DATA[:25], DATA[25:]
PLAIN = {"learning_rate": 0.1, "subsample": 1.0, "feature_fraction": 1.0, "min_rows": 3}


@pytest.mark.parametrize("backend", ["lightgbm", "xgboost", "catboost"])
@pytest.mark.parametrize("loss", ["pl-partition", "davidson"])
def test_trees_are_continued_as_in_one_longer_fit(backend, loss):
    pytest.importorskip(backend)
    make = partial(TreeRanker, loss, backend=backend, **PLAIN)
    whole, first = make(8).fit(TRAIN), make(3).fit(TRAIN)
    both = make(5).fit(TRAIN, start=first)
    np.testing.assert_allclose(both.predict(VALID), whole.predict(VALID), rtol=0, atol=1e-6)
    assert both.n_trees_ == whole.n_trees_ == 8
    assert both.learned_ == pytest.approx(whole.learned_, abs=1e-6)
    assert first.n_trees_ == 3  # the model that was continued stays as it is


def test_trees_continue_with_new_rows_and_other_draws():
    first = TreeRanker(n_trees=4, min_rows=3).fit(TRAIN)
    both = TreeRanker(n_trees=4, min_rows=3).fit(VALID, start=first)
    again = TreeRanker(n_trees=4, min_rows=3).fit(TRAIN, start=first)
    np.testing.assert_array_equal(both.trees_.roots[:4], first.trees_.roots)
    assert len(both.trees_.roots) == len(again.trees_.roots) == 8
    assert not np.array_equal(both.predict(VALID), again.predict(VALID))
    slow = TreeRanker(n_trees=1, min_rows=3, learning_rate=1e-9, subsample=0.5)
    one = slow.fit(TRAIN).predict(VALID)
    two = slow.fit(TRAIN, start=slow).predict(VALID)
    assert not np.allclose(two, 2 * one, rtol=1e-3, atol=0.0)  # the second tree is of other rows


def test_controls_are_continued():
    Z = {"place": np.arange(len(TRAIN.grade)) % 4}
    make = partial(TreeRanker, "pl-partition", **PLAIN)
    whole = make(8).fit(TRAIN, control=Z)
    both = make(5).fit(TRAIN, control=Z, start=make(3).fit(TRAIN, control=Z))
    np.testing.assert_allclose(both.predict(VALID), whole.predict(VALID), rtol=0, atol=1e-9)
    assert both.controls_ == pytest.approx(whole.controls_)


def test_a_lightgbm_model_is_continued():
    lightgbm = pytest.importorskip("lightgbm")
    sizes = np.diff(TRAIN.offsets)
    theirs = lightgbm.LGBMRanker(n_estimators=5, min_child_samples=3, verbose=-1, n_jobs=1)
    theirs.fit(TRAIN.X, TRAIN.grade.astype(int), group=sizes)
    both = TreeRanker("lambdarank", n_trees=6, **PLAIN).fit(TRAIN, start=theirs)
    alone = np.asarray(theirs.predict(TRAIN.X))
    assert both.n_trees_ == 11
    loss = placet.losses.LOSSES["pl-partition"]
    assert loss(both.predict(TRAIN), TRAIN.lists())[0] < loss(alone, TRAIN.lists())[0]


def test_a_forest_is_continued_as_in_one_larger_fit():
    whole, first = ForestRanker(n_trees=9).fit(TRAIN), ForestRanker(n_trees=4).fit(TRAIN)
    both = ForestRanker(n_trees=5).fit(TRAIN, start=first)
    np.testing.assert_allclose(both.predict(VALID), whole.predict(VALID), rtol=1e-12)
    assert both.n_trees_ == 9


def test_without_a_better_state_the_first_one_is_kept():
    """Trees and networks that only get worse on the validation set leave the model as it was."""
    for make, more in ((TreeRanker, PLAIN), (NeuralRanker, {"hidden": (6,), "learning_rate": 0.01})):
        first = make("pl-partition", **more).fit(TRAIN)
        again = make("pl-partition", **more, patience=2).fit(VALID, valid=TRAIN, start=first)
        assert again.score(TRAIN) >= first.score(TRAIN)
        perfect = placet.Queries(VALID.X, np.argsort(np.argsort(first.predict(VALID))), VALID.offsets)
        unlucky = make("pl-partition", **more, patience=1).fit(TRAIN, valid=perfect, start=first)
        np.testing.assert_array_equal(unlucky.predict(VALID), first.predict(VALID))


def test_a_network_starts_from_the_weights_and_keeps_the_scale():
    first = NeuralRanker("davidson", hidden=(6,), learning_rate=0.01, epochs=5).fit(TRAIN)
    again = NeuralRanker("davidson", hidden=(6,), learning_rate=1e-12, epochs=1).fit(VALID, start=first)
    np.testing.assert_allclose(again.predict(TRAIN), first.predict(TRAIN), atol=1e-6)
    assert again.learned_ == pytest.approx(first.learned_, abs=1e-6)
    with pytest.raises(ValueError, match="layers of sizes"):
        NeuralRanker("davidson", hidden=(5,)).fit(TRAIN, start=first)


@pytest.mark.parametrize("name", [name for name in CASES if RANKERS[name].takes_start])
def test_a_saved_model_is_continued_from_its_path(name, tmp_path):
    fit(name).save(tmp_path / "model")
    again = fit(name, start=str(tmp_path / "model"))
    assert again.fit_summary_["continued"]
    assert np.isfinite(again.predict(rows(name))).all()


@pytest.mark.parametrize("name", [name for name in CASES if not RANKERS[name].takes_start])
def test_other_rankers_say_that_they_do_not_continue(name):
    with pytest.raises(ValueError, match="does not continue another fit; LinearRanker, TreeRanker"):
        fit(name, start=fit("linear"))


def test_a_start_of_another_kind_or_other_columns_is_refused():
    linear = LinearRanker().fit(TRAIN)
    with pytest.raises(ValueError, match="a TreeRanker cannot continue a LinearRanker"):
        TreeRanker().fit(TRAIN, start=linear)
    with pytest.raises(TypeError, match="start must be a fitted TreeRanker"):
        TreeRanker().fit(TRAIN, start=object())
    narrow = placet.Queries(np.array(TRAIN.X)[:, :2], TRAIN.grade, TRAIN.offsets)
    with pytest.raises(DataError, match="fitted on 2 features"):
        TreeRanker(n_trees=2, min_rows=3).fit(TRAIN, start=TreeRanker(n_trees=2, min_rows=3).fit(narrow))
    with pytest.raises(TypeError, match="init_model: give start="):
        TreeRanker().fit(TRAIN, init_model=linear)


def test_a_ranker_may_continue_itself():
    ranker = TreeRanker("pl-partition", n_trees=4, **PLAIN).fit(TRAIN)
    ranker.fit(TRAIN, start=ranker)
    whole = TreeRanker("pl-partition", n_trees=8, **PLAIN).fit(TRAIN)
    np.testing.assert_allclose(ranker.predict(VALID), whole.predict(VALID), atol=1e-9)
