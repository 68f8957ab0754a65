"""What ``autorank`` does about validation queries, time, folds and weights of a blend."""

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import placet
from placet.data import DataError, Lists, Queries
from placet.losses import LOSSES
from placet.metrics import ndcg
from placet.rank import Blend, LinearRanker, TreeRanker, autorank
from placet.rank.search import candidate_search
from placet.rank.search.autorank import SHORT_LIST
from placet.rank.search.blend import spread
from placet.rank.search.stacking import random_parts, shrunk_weights, stacked_weights
from placet.simulate import queries

DATA = queries(60, (2, 12), 4, noise=0.5, random_state=3)
TRAIN, VALID, TEST = DATA[:30], DATA[30:45], DATA[45:]
LINEAR = [("linear", {"loss": loss, "l2": l2}) for loss in ("ranknet", "attrank") for l2 in (1e-2, 1.0)]


# queries to validate on


def test_without_a_validation_set_a_fifth_of_the_queries_becomes_it():
    choice = autorank(TRAIN, candidates=LINEAR[:2], metric="ndcg@5")
    part = random_parts(TRAIN, 5, 0)
    kept, rest = TRAIN[part == 0], TRAIN[part != 0]
    assert choice.notes == (f"{len(kept)} of 30 queries, drawn at random, were kept for validation",)
    by_hand = [LinearRanker(**params, metric="ndcg@5").fit(rest, valid=kept) for _, params in LINEAR[:2]]
    values = [ranker.score(kept) for ranker in by_hand]
    assert [trial.value for trial in choice.trials] == pytest.approx(values)
    np.testing.assert_array_equal(choice.ranker.predict(TEST), by_hand[int(np.argmax(values))].predict(TEST))
    other = autorank(TRAIN, candidates=LINEAR[:2], metric="ndcg@5", random_state=1)
    assert [t.value for t in other.trials] != [t.value for t in choice.trials]


def test_parts_share_no_query_and_each_has_something_to_order():
    flat = Queries(DATA.X, np.where(DATA.query < 50, 0.0, DATA.grade), DATA.offsets)  # ten teach something
    assert sum(len(set(flat.grade[a:b])) > 1 for a, b in itertools.pairwise(flat.offsets)) >= 5
    part = random_parts(flat, 5, 7)
    assert sorted(np.bincount(part)) == [12] * 5
    for k in range(5):
        own = flat[part == k]
        assert any(len(set(own.grade[a:b])) > 1 for a, b in itertools.pairwise(own.offsets))
    np.testing.assert_array_equal(part, random_parts(flat, 5, 7))
    assert (part != random_parts(flat, 5, 8)).any()


def test_too_few_queries_to_split_are_refused():
    with pytest.raises(DataError, match="1 queries cannot be cut in 5 parts to validate on"):
        autorank(TRAIN[:1], budget=1)
    with pytest.raises(DataError, match="3 queries cannot be cut in 4 parts"):
        autorank(TRAIN[:3], folds=4, budget=1)
    with pytest.raises(ValueError, match="folds 1 must be at least 2"):
        autorank(TRAIN, folds=1)


def test_folds_judge_every_query_by_a_fit_that_has_not_seen_it(tmp_path):
    choice = autorank(TRAIN, VALID, candidates=LINEAR[:2], folds=3, metric="ndcg@5")
    whole = placet.concat([TRAIN, VALID])
    part = random_parts(whole, 3, 0)
    for trial, (_, params) in zip(choice.trials, LINEAR):
        values = []
        for k in range(3):
            own = whole[part == k]
            ranker = LinearRanker(**params, metric="ndcg@5").fit(whole[part != k], valid=own)
            values.append(ndcg(ranker.predict(own), own.grade, own.offsets, 5))
        assert trial.value == pytest.approx(np.nanmean(np.concatenate(values)))
    best = choice.best.params
    expected = np.zeros(len(TEST.grade))
    for k in range(3):
        own = whole[part == k]
        ranker = LinearRanker(**best, metric="ndcg@5").fit(whole[part != k], valid=own)
        expected += ranker.predict(TEST) / spread(ranker.predict(own), own.offsets) / 3
    np.testing.assert_allclose(choice.ranker.predict(TEST), expected, rtol=1e-10)
    assert choice.value == choice.best.value
    choice.ranker.save(tmp_path / "m")
    np.testing.assert_array_equal(placet.load(tmp_path / "m").predict(TEST), choice.ranker.predict(TEST))


# one fit a candidate, each without another part


def in_turn(candidates, n_parts, metric="ndcg@5"):
    """By hand: (part, ranker, its value, its spread) of every candidate, and the parts of the queries."""
    whole = placet.concat([TRAIN, VALID])
    part, fits = random_parts(whole, n_parts, 0), []
    for number, (_, params) in enumerate(candidates):
        k = number % n_parts
        own = whole[part == k]
        ranker = LinearRanker(**params, metric=metric).fit(whole[part != k], valid=own)
        fits.append((k, ranker, ranker.score(own), spread(ranker.predict(own), own.offsets)))
    return [whole[part == k] for k in range(n_parts)], fits


def test_candidates_in_turn_leave_out_one_part_after_the_other(tmp_path):
    steps = []
    more = {"folds": 3, "rotate": True, "metric": "ndcg@5", "progress": lambda *state: steps.append(state[:2])}
    choice = autorank(TRAIN, VALID, candidates=LINEAR, blend=4, **more)
    parts, fits = in_turn(LINEAR, 3)
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert [trial.value for trial in choice.trials] == pytest.approx([value for _, _, value, _ in fits])
    expected = sum(ranker.predict(TEST) / unit for _, ranker, _, unit in fits) / 4
    np.testing.assert_allclose(choice.ranker.predict(TEST), expected, rtol=1e-10)
    unseen = []
    for k, own in enumerate(parts):
        s = sum(ranker.predict(own) / unit for part, ranker, _, unit in fits if part == k)
        unseen.append(ndcg(s, own.grade, own.offsets, 5))
    assert choice.value == pytest.approx(np.nanmean(np.concatenate(unseen)))
    assert choice.best.value == max(trial.value for trial in choice.trials)
    assert "fitted without one, in turn" in choice.notes[0]
    choice.ranker.save(tmp_path / "m")
    np.testing.assert_array_equal(placet.load(tmp_path / "m").predict(TEST), choice.ranker.predict(TEST))


def test_the_best_in_turn_are_as_many_from_each_part():
    many = [("linear", {"loss": "ranknet", "l2": l2}) for l2 in (1e-3, 1e-3, 1.0, 1e2, 1e2, 1.0, 1e-1, 1e-1)]
    choice = autorank(TRAIN, VALID, candidates=many, folds=2, rotate=True, blend=4, metric="ndcg@5")
    kept = [any(trial is member for member in choice.members) for trial in choice.trials]
    for k in (0, 1):
        values = [trial.value for trial in choice.trials[k::2]]
        best = sorted(range(4), key=lambda i: -values[i])[:2]  # stable: a tie goes to the earlier
        assert [i for i in range(4) if kept[k::2][i]] == sorted(best)
    assert choice.to_frame()["weight"].to_list() == [0.25 if own else 0.0 for own in kept]


def test_in_turn_goes_on_past_a_failure_and_ends_with_the_time(monkeypatch):
    sparse = Queries(csr_matrix(DATA.X), DATA.grade, DATA.offsets)
    listwise = ("listwise", {"base": LINEAR[0]})
    choice = autorank(sparse, candidates=[LINEAR[0], listwise, *LINEAR[2:]], folds=2, rotate=True, blend=4)
    assert [bool(trial.failure) for trial in choice.trials] == [False, True, False, False]
    assert len(choice.members) == 3
    monkeypatch.setattr(candidate_search, "time", Ticking())
    cut = autorank(TRAIN, VALID, candidates=LINEAR, folds=4, rotate=True, blend=4, seconds=15)
    assert 1 <= len(cut.members) < 4
    assert np.isfinite(cut.value)
    assert any("time was up" in note for note in cut.notes)
    n = len(cut.members)
    assert f"no member was fitted without part{'s' if n < 3 else ''} {n + 1}" in cut.notes[1]


WITH_NAN = Queries(np.where(np.arange(len(DATA.grade))[:, None] == 0, np.nan, DATA.X), DATA.grade, DATA.offsets)
TREES = ("trees", {"n_trees": 3, "min_rows": 3})


def test_in_turn_serves_every_part_where_candidates_fail():
    steps = []
    progress = lambda *state: steps.append(state)  # noqa: E731
    choice = autorank(
        WITH_NAN, candidates=[LINEAR[0], TREES] * 4, folds=2, rotate=True, blend=8, metric="ndcg@5", progress=progress
    )
    assert ["NaN" in trial.failure for trial in choice.trials] == [True, False] * 4
    part = random_parts(WITH_NAN, 2, 0)
    unseen, values = [], []
    for k in (0, 1):  # trees, all alike, twice without each part
        own = WITH_NAN[part == k]
        ranker = TreeRanker(**TREES[1], metric="ndcg@5").fit(WITH_NAN[part != k], valid=own)
        unseen.append(ndcg(ranker.predict(own), own.grade, own.offsets, 5))
        values.append(np.nanmean(unseen[-1]))
    assert sorted(trial.value for trial in choice.members) == pytest.approx(sorted([*values, *values]))
    assert choice.value == pytest.approx(np.nanmean(np.concatenate(unseen)))
    assert not any("no member" in note for note in choice.notes)
    first = choice.trials[1].value
    assert [step[:2] for step in steps] == [(k, 8) for k in range(1, 9)]
    assert [step[2] for step in steps[:3]] == [None, first, first]
    assert steps[-1][2] == choice.best.value


def test_a_part_on_which_all_fail_does_not_take_every_candidate():
    long = placet.simulate.queries(1, 1001, DATA.X.shape[1], random_state=0)
    data = Queries(
        np.vstack([DATA.X, long.X]), np.append(DATA.grade, long.grade), np.append(DATA.offsets, DATA.offsets[-1] + 1001)
    )
    candidates = [("linear", {"loss": "pmop-exact", "tol": 100.0, "l2": k / 100}) for k in range(1, 10)]
    choice = autorank(data, candidates=candidates, folds=3, rotate=True, blend=3, metric="ndcg@5")
    assert (
        sum(not trial.failure for trial in choice.trials) >= 2
    )  # two of three parts train on the list that is too long


def test_a_part_that_no_member_left_out_is_said():
    choice = autorank(WITH_NAN, candidates=[TREES, LINEAR[0], LINEAR[1]], folds=2, rotate=True, blend=2)
    assert choice.notes[1] == (
        "no member was fitted without part 2; the value is that of the other 30 of 60 queries, which no member was "
        "trained on"
    )
    assert choice.value == choice.best.value


def test_a_part_without_a_metric_is_refused_before_the_first_fit():
    grade = np.where(DATA.query < 2, DATA.grade, 0.0)
    flat = Queries(DATA.X, grade, DATA.offsets)
    for rotate in (False, True):
        with pytest.raises(DataError, match="ndcg@10 is undefined in all 15 queries of part 3 of 4; give fewer folds"):
            autorank(flat, candidates=LINEAR, folds=4, rotate=rotate, blend=4)


def test_in_turn_needs_a_member_for_every_part():
    with pytest.raises(ValueError, match="give folds, the number of parts"):
        autorank(TRAIN, candidates=LINEAR, rotate=True, blend=4)
    for wrong in ({"blend": 2}, {"blend": 3, "budget": 2}):
        with pytest.raises(ValueError, match=r"at least folds \(3\), one for each part"):
            autorank(TRAIN, candidates=LINEAR, folds=3, rotate=True, **wrong)
    with pytest.raises(ValueError, match="with rotate each scores one part"):
        autorank(TRAIN, candidates=LINEAR, folds=2, rotate=True, blend=4, stack=True)


# time


class Ticking:
    """A clock that gains a second whenever it is asked."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        self.now += 1.0
        return self.now


def test_time_ends_the_search_and_cuts_the_fit_under_way(monkeypatch):
    monkeypatch.setattr(candidate_search, "time", Ticking())
    choice = autorank(TRAIN, VALID, seconds=30)
    assert 1 < len(choice.trials) < len(SHORT_LIST)
    assert any("time was up" in note for note in choice.notes)
    assert not choice.interrupted
    assert np.isfinite(choice.ranker.predict(TEST)).all()


LONG_STEPS = [
    ("structrank", {"scorer": "linear", "connections": 1, "epochs": 1, "starts": 1}),
    ("coordinate", {"max_iter": 1, "starts": 1, "learners": "stump"}),
]


@pytest.mark.parametrize("long", LONG_STEPS, ids=lambda candidate: candidate[0])
def test_time_cuts_a_fit_in_the_middle_of_a_step(monkeypatch, long):
    monkeypatch.setattr(candidate_search, "time", Ticking())
    choice = autorank(TRAIN, VALID, candidates=[LINEAR[0], long], seconds=20)
    assert [trial.failure for trial in choice.trials] == ["", "time was up in fit 1 of 1"]


def test_the_first_candidate_is_fitted_whatever_it_takes():
    choice = autorank(TRAIN, VALID, seconds=1e-6, candidates=LINEAR, blend=3)
    assert len(choice.trials) == 1
    whole = LinearRanker(**LINEAR[0][1]).fit(TRAIN, valid=VALID)
    np.testing.assert_array_equal(choice.ranker.predict(TEST), whole.predict(TEST))


def test_with_time_to_spare_draws_go_on_after_the_short_list(monkeypatch):
    from placet.rank.search import autorank as auto

    monkeypatch.setattr(auto, "SHORT_LIST", LINEAR[:1])
    monkeypatch.setattr(auto, "random_candidates", lambda _: itertools.cycle(LINEAR[1:3]))
    monkeypatch.setattr(candidate_search, "time", Ticking())
    steps = []
    choice = autorank(TRAIN, VALID, seconds=200, progress=lambda *state: steps.append(state))
    assert [t.params for t in choice.trials[:5]] == [LINEAR[k][1] for k in (0, 1, 2, 1, 2)]
    assert [done for done, _, _ in steps] == list(range(1, len(steps) + 1))
    assert all(done <= total for done, total, _ in steps)
    assert len(steps) == len(choice.trials)
    assert [value for _, _, value in steps] == [max(t.value for t in choice.trials[: k + 1]) for k in range(len(steps))]


def test_draws_end_where_no_candidate_of_the_list_can_be_fitted():
    with pytest.raises(
        DataError, match=f"none of the {len(SHORT_LIST)} candidates could be fitted: the validation set"
    ):
        autorank(TRAIN, VALID[:0], seconds=600)


def test_progress_counts_the_fits_of_a_failed_candidate():
    steps = []
    progress = lambda *state: steps.append(state)  # noqa: E731
    choice = autorank(WITH_NAN, candidates=[TREES, LINEAR[0], TREES], folds=3, metric="ndcg@5", progress=progress)
    assert [step[:2] for step in steps] == [(k, 9) for k in (1, 2, 3, 6, 7, 8, 9)]
    assert [step[2] for step in steps] == [None, None, *[choice.best.value] * 5]


def test_an_error_of_the_callback_is_not_one_of_the_fit():
    def progress(*_):
        raise ValueError("of the caller")

    with pytest.raises(ValueError, match="^of the caller$"):
        autorank(TRAIN, VALID, candidates=LINEAR, progress=progress)
    with pytest.raises(ValueError, match="^of the caller$"):
        autorank(TRAIN, candidates=LINEAR, folds=2, progress=progress)


# candidates that fail

DIVERGES = ("linear", {"solver": "sgd", "step": "plain", "learning_rate": 1e300})


def test_a_fit_that_diverges_is_a_failed_trial():
    choice = autorank(TRAIN, VALID, candidates=[DIVERGES, LINEAR[0], DIVERGES])
    assert ["training diverged" in trial.failure for trial in choice.trials] == [True, False, True]
    whole = LinearRanker(**LINEAR[0][1]).fit(TRAIN, valid=VALID)
    np.testing.assert_array_equal(choice.ranker.predict(TEST), whole.predict(TEST))
    with pytest.raises(ValueError, match="none of the 2 candidates could be fitted: training diverged"):
        autorank(TRAIN, VALID, candidates=[DIVERGES, DIVERGES])


@pytest.mark.parametrize("error", [TypeError("odd"), ZeroDivisionError("by 0"), np.linalg.LinAlgError("singular")])
def test_other_errors_of_a_fit(monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr(placet.rank.TreeRanker, "_fit", fail)
    choice = autorank(TRAIN, VALID, candidates=[LINEAR[0], TREES])
    assert choice.trials[1].failure == str(error)


def test_memory_that_is_full_ends_the_search(monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(placet.rank.TreeRanker, "_fit", fail)
    with pytest.raises(MemoryError):
        autorank(TRAIN, VALID, candidates=[LINEAR[0], TREES])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (("lineal", {}), "candidate 2 of 2: ranker 'lineal' is unknown"),
        (
            ("linear", {"losss": "ranknet"}),
            "candidate 2 of 2: parameter 'losss' is unknown to LinearRanker .did you mean",
        ),
        (("linear", {"l2": "small"}), "candidate 2 of 2: parameter l2 of LinearRanker must be a number, not 'small'"),
        (("linear", {"loss": "no-such"}), "candidate 2 of 2: loss 'no-such' is unknown"),
        (("listwise", {"base": ("tree", {})}), "candidate 2 of 2: ranker 'tree' is unknown"),
        (("listwise", {"base": ("linear", {"l1": 1})}), "candidate 2 of 2: parameter 'l1' is unknown to LinearRanker"),
        ("linear", r"candidate 2 of 2: 'linear' is not a pair \(name, parameters\), such as"),
    ],
)
def test_candidates_are_checked_before_the_first_fit(monkeypatch, wrong, words):
    monkeypatch.setattr(LinearRanker, "_fit", None)
    with pytest.raises(ValueError, match=words):
        autorank(TRAIN, VALID, candidates=[LINEAR[0], wrong])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"budget": "3"}, "parameter budget of autorank must be a whole number or none, not '3'"),
        ({"budget": 2.5}, "parameter budget of autorank must be a whole number or none, not 2.5"),
        ({"blend": 1.5}, "parameter blend of autorank must be a whole number, not 1.5"),
        ({"folds": 2.5}, "parameter folds of autorank must be a whole number or none, not 2.5"),
        ({"seconds": "3"}, "parameter seconds of autorank must be a number or none, not '3'"),
        ({"valid": 1}, "valid must be Queries, not int; .* give budget by name"),
        ({"train": DATA.X}, r"train must be Queries, not ndarray; Queries.from_arrays\(X, y, qid\) makes them"),
        ({"metric": "ndgc"}, "^metric 'ndgc' is unknown"),
        ({"candidates": []}, "candidates is empty; give at least one, or leave it out"),
    ],
)
def test_arguments_of_other_types_are_refused(given, words):
    with pytest.raises(ValueError, match=words):
        autorank(**{"train": TRAIN, **given})


def test_wrong_times_are_refused():
    with pytest.raises(ValueError, match="seconds 0 must be above 0"):
        autorank(TRAIN, VALID, seconds=0)


# the table


def test_the_table_of_trials():
    sparse_only = ("booster", {"loss": "no-such"})
    with pytest.raises(ValueError, match="no-such"):
        autorank(TRAIN, VALID, candidates=[sparse_only])
    choice = autorank(TRAIN, VALID, candidates=LINEAR, blend=2)
    frame = choice.to_frame()
    assert frame.columns == ["ranker", "params", "value", "stderr", "seconds", "weight", "failure"]
    assert frame["value"].to_list() == [t.value for t in choice.trials]
    assert frame["params"][0] == "loss=ranknet, l2=0.01"
    members = {id(t) for t in choice.members}
    assert frame["weight"].to_list() == [0.5 if id(t) in members else 0.0 for t in choice.trials]


# weights of a blend


def test_shrunk_weights_minimize_what_they_say():
    rng = np.random.default_rng(0)
    lists = Lists(rng.integers(0, 3, 40).astype(float), np.arange(0, 41, 8))
    Z = rng.normal(size=(40, 3)) + 0.5 * lists.grade[:, None]
    w = shrunk_weights(Z, lists, 0.1)
    assert w.sum() == pytest.approx(1)
    assert (w >= 0).all()

    def mean_loss(s):
        return LOSSES["pl-partition"](s, lists)[0] / 5

    scales = np.linspace(0, 5, 20001)
    center = scales[np.argmin([mean_loss(a * Z.mean(axis=1)) for a in scales[::40]]) * 40] / 3

    def value(v):
        return mean_loss(Z @ v) + 0.05 * ((v - center) ** 2).sum()

    from scipy.optimize import minimize

    found = minimize(value, np.full(3, center), bounds=[(0, None)] * 3, tol=1e-12).x
    np.testing.assert_allclose(w, found / found.sum(), atol=0.01)
    np.testing.assert_allclose(shrunk_weights(Z, lists, 1e9), 1 / 3, atol=1e-6)


def test_a_member_that_is_noise_loses_its_weight_and_equal_ones_keep_theirs():
    rng = np.random.default_rng(1)
    truth = DATA.grade + 0.3 * rng.normal(size=len(DATA.grade))
    noise = 3.0 * rng.normal(size=(len(DATA.grade), 3))
    weights, penalty = stacked_weights(np.column_stack([truth, noise]), DATA, "ndcg@10")
    assert weights[0] > 0.9
    assert penalty < np.inf
    alike = DATA.grade[:, None] + 1.0 * rng.normal(size=(len(DATA.grade), 3))
    weights, penalty = stacked_weights(alike, DATA, "ndcg@10")
    assert np.ptp(weights) < 0.3
    same = np.repeat(truth[:, None], 3, axis=1)
    weights, penalty = stacked_weights(same, DATA, "ndcg@10")
    np.testing.assert_array_equal(weights, 1 / 3)
    assert penalty == np.inf


def test_useless_members_have_equal_weights():
    Z = np.zeros((len(DATA.grade), 2))
    np.testing.assert_array_equal(stacked_weights(Z, DATA, "ndcg@10")[0], 0.5)
    wrong = -DATA.grade[:, None] * np.ones(2)
    np.testing.assert_array_equal(shrunk_weights(wrong, DATA.lists(), 0.1), 0.5)


def test_a_stacked_choice_is_a_blend_with_those_weights():
    bad = ("linear", {"loss": "ranknet", "l2": 1e6, "max_iter": 1})
    choice = autorank(TRAIN, VALID, candidates=[*LINEAR, bad], blend=5, stack=True, folds=3, metric="ndcg@5")
    assert sum(choice.weights) == pytest.approx(1)
    assert isinstance(choice.ranker, Blend)
    assert len(choice.ranker.members_) == 15
    np.testing.assert_allclose(choice.ranker.weight_, np.repeat(choice.weights, 3) / 3)


def test_weights_of_a_blend(tmp_path):
    members = [LinearRanker(**params).fit(TRAIN) for _, params in LINEAR[:2]]
    blend = Blend.of(members, VALID, weights=[3, 1])
    units = [spread(member.predict(VALID), VALID.offsets) for member in members]
    expected = sum(w * m.predict(TEST) / d for w, m, d in zip((0.75, 0.25), members, units))
    np.testing.assert_allclose(blend.predict(TEST), expected)
    blend.save(tmp_path / "m")
    np.testing.assert_array_equal(placet.load(tmp_path / "m").predict(TEST), blend.predict(TEST))
    for wrong in ([1, -1], [0, 0], [1], [1, np.nan]):
        with pytest.raises(ValueError, match="must be 2 numbers of at least 0"):
            Blend.of(members, VALID, weights=wrong)
