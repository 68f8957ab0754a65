"""Search for the surrogate: the pattern search on known functions, warm starts, the choice of alpha, files."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.base import clone

import placet
from placet.data import DataError
from placet.losses import LOSSES
from placet.losses.bregman import PSI
from placet.metrics import ndcg
from placet.rank import ConsistentBooster, LinearRanker, SurrogateSearch
from placet.rank.linear.surrogate_search import GRID, Path, pattern_search, starts


@pytest.fixture(scope="module")
def data():
    return placet.simulate.queries(40, (3, 9), 4, 3, noise=0.5, random_state=6)


@settings(max_examples=30)
@given(st.lists(st.floats(0, 2), min_size=1, max_size=3))
def test_pattern_search_finds_the_top_of_a_smooth_hill(top):
    top = np.array(top)
    found = pattern_search(
        lambda x: -float(((x - top) ** 2).sum()), [np.ones(len(top))], least_step=1 / 64, max_evaluations=500
    )
    assert np.abs(found.x - top).max() <= 1 / 32
    assert found.value == max(v for _, v in found.tried)


def test_pattern_search_copes_with_steps_stays_positive_and_counts():
    seen = []

    def stairs(x):
        seen.append(x)
        return float(np.floor(4 * -abs(x[0] - 1.31)) + np.floor(-3 * x[1]))

    found = pattern_search(stairs, [np.ones(2), np.zeros(2)], max_evaluations=40)
    assert found.value == max(stairs(np.array([a, b])) for a in np.arange(0, 2, 0.05) for b in (0.0, 0.1))
    assert len(found.tried) <= 40
    assert all((x >= 0).all() for x, _ in found.tried)
    assert len({x.tobytes() for x, _ in found.tried}) == len(found.tried)


def test_every_start_gets_its_share():
    tried = pattern_search(lambda x: -float(x @ x), starts(3, np.random.default_rng(0)), max_evaluations=12).tried
    points = [x.tolist() for x, _ in tried]
    assert [1.0, 1.0, 1.0] in points
    assert [1.0, 0.0, 0.0] in points
    assert [0.0, 0.0, 1.0] in points
    assert len(tried) <= 12


def test_starts_lie_on_the_grid_and_are_not_zero():
    for x in starts(3, np.random.default_rng(1)):
        assert x.any()
        np.testing.assert_array_equal(x, np.round(x / GRID) * GRID)


def test_warm_start_reaches_the_same_minimum_as_a_cold_one(data):
    settings_ = (data, ("ce", "square"), 1e-2, 0.01, 1e-6, 500)
    warm, cold = Path(*settings_), Path(*settings_)
    warm.at(np.array([1.0, 0.5]))
    w, constant = warm.at(np.array([1.0, 1.0]))
    v, _ = cold.at(np.array([1.0, 1.0]))
    np.testing.assert_allclose(w, v, rtol=2e-2, atol=1e-4)
    s = data.X @ w + constant
    value = LOSSES["bregman"](s, data.lists(), psi=("ce", "square"), alpha=[1.0, 1.0])[0]
    for factor in (0.9, 1.1):  # a minimum: scores scaled either way are worse
        assert LOSSES["bregman"](factor * s, data.lists(), psi=("ce", "square"), alpha=[1.0, 1.0])[0] > value


def test_the_scale_of_alpha_changes_no_order_without_a_penalty(data):
    path = Path(data, ("ce", "square"), 0.0, 0.01, 1e-6, 500)
    a, _ = path.at(np.array([1.0, 1.0]))
    b, _ = path.at(np.array([0.25, 0.25]))
    np.testing.assert_allclose(a / np.linalg.norm(a), b / np.linalg.norm(b), atol=2e-3)


def test_alpha_is_the_best_of_those_tried_on_the_validation_set(data):
    train, valid = data[:25], data[25:]
    search = SurrogateSearch(max_evaluations=12).fit(train, valid=valid)
    assert (search.alpha_ >= 0).all()
    assert search.fit_summary_["validation"] == search.tried_[:, -1].max()
    found = np.nanmean(ndcg(search.predict(valid), valid.grade, valid.offsets, 10))
    assert found == pytest.approx(search.fit_summary_["validation"], abs=1e-12)
    alone = [row[-1] for row in search.tried_ if np.count_nonzero(row[:-1]) == 1]
    assert len(alone) >= 3
    assert search.fit_summary_["validation"] >= max(alone)


def test_without_a_validation_set_a_share_is_held_out(data):
    a, b = (SurrogateSearch(("ce", "square"), max_evaluations=6, random_state=1).fit(data) for _ in range(2))
    np.testing.assert_array_equal(a.predict(data), b.predict(data))


@pytest.mark.parametrize(
    "final",
    [
        None,
        LinearRanker(l2=1e-3, max_iter=40),
        ConsistentBooster(n_rounds=8, learners="stump"),
        ConsistentBooster(n_rounds=8, learners="listwise", learning_rate=0.5),
    ],
    ids=["path", "linear", "stumps", "listwise"],
)
def test_what_is_kept_is_what_was_judged_and_no_less_than_any_entry_of_the_dictionary(data, final):
    train, valid = data[:25], data[25:]
    search = SurrogateSearch(max_evaluations=7, final=final).fit(train, valid=valid)
    kept = float(np.nanmean(ndcg(search.predict(valid), valid.grade, valid.offsets, 10)))
    assert kept == search.fit_summary_["validation"] == search.tried_[:, -1].max()
    if final is not None:
        for name in PSI:
            one = clone(final).set_params(loss=f"bregman-{name}").fit(train, valid=valid)
            assert kept >= one.score(valid)
        np.testing.assert_array_equal(search.predict(data), search.final_.predict(data))
        assert not hasattr(final, "coef_")


def test_the_final_ranker_of_a_mixture_has_its_weights_and_is_saved(data, tmp_path):
    final = ConsistentBooster(n_rounds=6, learners="stump")
    search = SurrogateSearch(("ce", "square"), max_evaluations=5, final=final).fit(data)  # a share is held out
    if np.count_nonzero(search.alpha_) == 2:
        assert search.final_.loss_params["alpha"] == search.alpha_.tolist()
    else:
        assert search.final_.loss in ("bregman-ce", "bregman-square")
    search.save(tmp_path / "model")
    np.testing.assert_array_equal(placet.load(tmp_path / "model").predict(data), search.predict(data))


def test_saved_and_loaded(data, tmp_path):
    search = SurrogateSearch(("ce", "square"), max_evaluations=5).fit(data)
    search.save(tmp_path / "model")
    np.testing.assert_array_equal(placet.load(tmp_path / "model").predict(data), search.predict(data))


def test_bad_parameters(data):
    for wrong, words in (({"psi": ("kl",)}, "one or more of"), ({"psi": "ce"}, "one or more of"), ({"validation": 1.0}, "validation"), ({"beta": 0.0}, "beta"), ({"max_evaluations": 2}, "one for each psi")):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            SurrogateSearch(**wrong).fit(data)
    with pytest.raises(DataError, match="nothing to learn"):
        SurrogateSearch().fit(data.X, np.ones(len(data.grade)), data.query)
