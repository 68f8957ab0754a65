"""Columns of categories: pandas' and Polars', the trees of LightGBM, the same codes at prediction and in files."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import placet
from placet.data import DataError
from placet.rank import LinearRanker, TreeRanker

pytestmark = pytest.mark.jit
RNG = np.random.default_rng(5)
N, NAMES = 240, np.array(["red", "green", "blue", "gray"])
COLOR, SIZE, QID = RNG.integers(0, 4, N), RNG.normal(size=N), np.repeat(np.arange(24), 10)
GRADE = ((COLOR % 2 == 1) + (SIZE > 0)).astype(int)
QUICK = {"n_trees": 8, "min_rows": 3, "backend_params": {"min_data_per_group": 1, "cat_smooth": 1}}


def pandas(color=COLOR, size=SIZE):
    return pd.DataFrame({"color": pd.Categorical(NAMES[color], categories=NAMES), "size": size})


def polars(color=COLOR, size=SIZE):
    return pl.DataFrame({"color": pl.Series(NAMES[color].tolist(), dtype=pl.Categorical), "size": size})


def enum(color=COLOR, size=SIZE):
    return pl.DataFrame({"color": pl.Series(NAMES[color].tolist(), dtype=pl.Enum(NAMES.tolist())), "size": size})


@pytest.mark.parametrize("frame", [pandas, polars, enum])
def test_categories_are_split_as_lightgbm_splits_their_codes(frame, tmp_path):
    ranker = TreeRanker(**QUICK).fit(frame(), GRADE, qid=QID)
    assert ranker.categories_ == {"color": ["blue", "gray", "green", "red"]}
    codes = np.array([3.0, 2.0, 0.0, 1.0])[COLOR]
    own = {**QUICK["backend_params"], "categorical_feature": [0]}
    by_code = TreeRanker(**{**QUICK, "backend_params": own}).fit(np.column_stack([codes, SIZE]), GRADE, qid=QID)
    np.testing.assert_array_equal(ranker.predict(frame()), by_code.predict(np.column_stack([codes, SIZE])))
    order = RNG.permutation(N)[:50]  # other rows, with other categories present
    part = frame(COLOR[order], SIZE[order])
    np.testing.assert_array_equal(ranker.predict(part), ranker.predict(frame())[order])
    assert ranker.score(frame(), GRADE, QID) > 0.95
    ranker.save(tmp_path / "model")
    np.testing.assert_array_equal(placet.load(tmp_path / "model").predict(part), ranker.predict(part))


def test_a_new_or_missing_category_is_missing():
    ranker = TreeRanker(**QUICK).fit(pandas(), GRADE, qid=QID)
    new = pd.DataFrame({"color": ["pink", None, "red"], "size": [0.0, 0.0, 0.0]})
    s = ranker.predict(new)
    green = ranker.predict(pandas(np.array([1, 1]), np.zeros(2)))
    assert s[0] == s[1] != green[0]
    with pytest.raises(DataError, match=r"none of its values \('pink', ...\) is among the 4 categories"):
        ranker.predict(new[:1])
    with pytest.raises(DataError, match=r"columns of categories \(color\); give a data frame"):
        ranker.predict(np.zeros((2, 2)))


@pytest.mark.parametrize("of", [lambda X: X, pl.from_pandas], ids=["pandas", "polars"])
def test_a_column_of_texts_is_named_with_the_way_out(of):
    texts = pandas().assign(color=NAMES[COLOR])
    with pytest.raises(
        DataError, match=r"column 'color' holds texts, such as '\w+' \(1 such columns\); make them categ"
    ):
        TreeRanker(**QUICK).fit(of(texts), GRADE, qid=QID)
    with pytest.raises(DataError, match=r"column 'color' holds texts.*; give numbers"):
        LinearRanker().fit(of(texts), GRADE, qid=QID)
    numbers = pandas().assign(
        color=[f"{c}.0" if c else None for c in COLOR]
    )  # numbers as text, and one that is missing
    as_numbers = pandas().assign(color=np.where(COLOR == 0, np.nan, COLOR))
    by_text, by_number = (TreeRanker(**QUICK).fit(of(X), GRADE, qid=QID).trees_.value for X in (numbers, as_numbers))
    np.testing.assert_array_equal(by_text, by_number)


def test_categories_are_learned_anew_or_continued():
    first = TreeRanker(**QUICK).fit(pandas(COLOR % 3), GRADE, qid=QID)
    more = TreeRanker(**QUICK).fit(pandas(), GRADE, qid=QID, start=first, valid=(polars(), GRADE, QID))
    assert first.categories_ == {"color": ["blue", "green", "red"]}
    assert more.categories_ == {"color": ["blue", "green", "red", "gray"]}
    assert more.fit(pandas(COLOR % 2), GRADE, qid=QID).categories_ == {"color": ["green", "red"]}
    plain = pandas().drop(columns="color")
    assert more.fit(plain, GRADE, qid=QID).categories_ == {}


def test_rankers_that_take_no_categories_say_so():
    with pytest.raises(DataError, match=r"column 'color' holds categories \(1 such columns\), which LinearRanker"):
        LinearRanker().fit(pandas(), GRADE, qid=QID)
    with pytest.raises(ValueError, match="which backend='lightgbm' takes as they are"):
        TreeRanker(backend="xgboost").fit(pandas(), GRADE, qid=QID)
    dates = pd.DataFrame({"day": pd.Categorical(pd.to_datetime(["2026-01-01"] * N)), "size": SIZE})
    with pytest.raises(DataError, match="is neither text nor a number"):
        TreeRanker().fit(dates, GRADE, qid=QID)
