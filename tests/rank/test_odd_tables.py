"""Every ranker on odd tables: a finite answer, or an error raised by Placet itself."""

import traceback
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from ranker_cases import CASES
from scipy.sparse import csr_matrix
from sklearn.base import clone

import placet
from placet.rank import RANKERS, LinearRanker

pytestmark = pytest.mark.jit
SOURCE = str(Path(placet.__file__).parent)
RNG = np.random.default_rng(5)
X = RNG.normal(size=(24, 3))
Y = np.tile([0.0, 1.0, 2.0, 0.0], 6)
QID = np.repeat(np.arange(6), 4)


def cell(value, row=5, column=1, dtype=np.float64):
    out = X.astype(dtype)
    out[row, column] = value
    return out


def col(values):
    out = X.copy()
    out[:, 1] = values
    return out


# name -> (features, grades, query ids)
ODD = {
    "plain": (X, Y, QID),
    "ten rows": (X[:10], Y[:10], QID[:10]),
    "four rows": (X[:4], Y[:4], QID[:4]),
    "two rows": (X[:2], Y[:2], QID[:2]),
    "one row": (X[:1], Y[:1], QID[:1]),
    "no rows": (X[:0], Y[:0], QID[:0]),
    "one query": (X, Y, np.zeros(24)),
    "every row a query": (X, Y, np.arange(24)),
    "one long query, others short": (X, Y, np.r_[np.zeros(20), [1, 2, 3, 4]]),
    "no features": (X[:, :0], Y, QID),
    "one feature": (X[:, :1], Y, QID),
    "many features": (RNG.normal(size=(24, 200)), Y, QID),
    "all columns constant": (np.ones((24, 3)), Y, QID),
    "all zero": (np.zeros((24, 3)), Y, QID),
    "one column constant": (col(7.0), Y, QID),
    "constant inside queries": (col(QID), Y, QID),
    "two equal columns": (np.column_stack([X, X[:, 0]]), Y, QID),
    "linear dependence": (np.column_stack([X, X @ [1.0, 2.0, 3.0]]), Y, QID),
    "all rows equal": (np.tile(X[:1], (24, 1)), Y, QID),
    "rows of a query equal": (X[QID * 4], Y, QID),
    "a perfect feature": (col(Y), Y, QID),
    "a perfect feature, scaled": (col(1e9 * Y), Y, QID),
    "an opposite feature": (col(-Y), Y, QID),
    "one cell 1e155": (cell(1e155), Y, QID),
    "one cell -1e155": (cell(-1e155), Y, QID),
    "one cell 1e308": (cell(1e308), Y, QID),
    "one cell 1e30": (cell(1e30), Y, QID),
    "one cell 1e-300": (cell(1e-300), Y, QID),
    "one cell denormal": (cell(5e-324), Y, QID),
    "all 1e-300": (1e-300 * X, Y, QID),
    "all 1e150": (1e150 * X, Y, QID),
    "all 1e300": (1e300 * X, Y, QID),
    "different scales": (X * [1e-12, 1.0, 1e12], Y, QID),
    "far from 0": (X + 1e12, Y, QID),
    "one NaN": (cell(np.nan), Y, QID),
    "a column of NaN": (col(np.nan), Y, QID),
    "all NaN": (np.full((24, 3), np.nan), Y, QID),
    "one inf": (cell(np.inf), Y, QID),
    "one -inf": (cell(-np.inf), Y, QID),
    "float32": (X.astype(np.float32), Y, QID),
    "float32 near its end": (cell(3e38, dtype=np.float32), Y, QID),
    "float16": (X.astype(np.float16), Y, QID),
    "int8": ((10 * X).astype(np.int8), Y, QID),
    "uint64 beyond 2^53": (np.uint64(2**63) + (1000 * np.abs(X)).astype(np.uint64), Y, QID),
    "booleans": (X > 0, Y, QID),
    "objects that are numbers": (X.astype(object), Y, QID),
    "text that is numbers": (X.astype(str), Y, QID),
    "text": (np.full((24, 3), "a"), Y, QID),
    "complex": (X + 1j, Y, QID),
    "masked": (np.ma.masked_array(X, X > 1), Y, QID),
    "three dimensions": (X[:, :, None], Y, QID),
    "one dimension": (X[:, 0], Y, QID),
    "Fortran order": (np.asfortranarray(X), Y, QID),
    "every second row": (np.repeat(X, 2, axis=0)[::2], Y, QID),
    "read-only": (np.frombuffer(X.tobytes()).reshape(X.shape), Y, QID),
    "CSR": (csr_matrix(np.where(X > 0, X, 0)), Y, QID),
    "CSR without entries": (csr_matrix((24, 3)), Y, QID),
    "frame": (pd.DataFrame(X, columns=["a", "b", "c"]), Y, QID),
    "frame with a column twice": (pd.DataFrame(X, columns=["a", "b", "a"]), Y, QID),
    "frame with missing": (pd.DataFrame(cell(np.nan), columns=["a", "b", "c"]).convert_dtypes(), Y, QID),
    "equal grades": (X, np.ones(24), QID),
    "all grades 0": (X, np.zeros(24), QID),
    "negative grades": (X, -Y, QID),
    "grades that are not whole": (X, Y + RNG.random(24), QID),
    "large grades": (X, 1e6 * Y, QID),
    "grades of 1e308": (X, 1e308 * (Y > 0), QID),
    "a NaN grade": (X, np.where(np.arange(24) == 3, np.nan, Y), QID),
    "an infinite grade": (X, np.where(np.arange(24) == 3, np.inf, Y), QID),
    "a masked grade": (X, np.ma.masked_array(Y, np.arange(24) == 3), QID),
    "queries in turns": (X, Y, np.arange(24) % 6),
    "queries named by text, None among them": (X, Y, ["q", None] * 12),
}  # fmt: skip

# those whose case stands on relations between rows, which tables do not have, take features alone
WITHOUT_RELATIONS = {
    "booster": RANKERS["booster"]("bregman-ce", 3, learners=("feature", "stump", "tree", "listwise"), min_rows=2),
    "reranker": RANKERS["reranker"](LinearRanker(max_iter=5), max_iter=5),
    "crf": RANKERS["crf"](max_iter=5),
}
FAST = {name: ranker for name, (ranker, *_) in CASES.items()} | WITHOUT_RELATIONS


def attempt(name, X, y, qid):
    """Scores, in the way of the ranker."""
    ranker = clone(FAST[name])
    if name == "labels":
        labels = np.stack([np.asarray(y) == grade for grade in (0.0, 1.0, 2.0)], axis=1).astype(float)
        return ranker.fit(X, csr_matrix(labels)).top(X, 2).score
    if name == "diversity":
        judged = np.stack([np.asarray(y, float) > 0, np.asarray(y, float) > 1], axis=1).astype(float)
        return ranker.fit(X, judged, qid=qid).predict(X, qid=qid)
    return ranker.fit(X, y, qid=qid).predict(X, qid=qid)


def raised_by_us(error):
    """An error of data or parameters that Placet's own code raised, not one that came up from below it."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return isinstance(error, ValueError) and last.filename.startswith(SOURCE)


@pytest.mark.parametrize("name", FAST)
def test_odd_tables_give_finite_scores_or_an_error_of_ours(name):
    failures = []
    for table, (features, grades, qid) in ODD.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = attempt(name, features, grades, qid)
            except Exception as error:
                if not raised_by_us(error):
                    last = traceback.extract_tb(error.__traceback__)[-1]
                    failures.append(f"{table}: {type(error).__name__} at {last.filename}:{last.lineno}: {error!s:.150}")
                continue
        if not np.isfinite(found).all():
            failures.append(f"{table}: {int((~np.isfinite(found)).sum())} scores of {found.size} are not finite")
    assert not failures, "\n".join([f"{len(failures)} of {len(ODD)}", *failures])


def test_every_ranker_of_the_table_is_tried():
    assert set(FAST) == set(RANKERS)
    assert len(ODD) >= 67


@pytest.mark.parametrize("loss", sorted(name for name in placet.losses.LOSSES))
@pytest.mark.parametrize("step", ["plain", "adagrad", "adam"])
def test_gradient_descent_ends_finite_or_says_that_it_diverged(loss, step):
    data = placet.simulate.queries(8, 5, 3, noise=0.5, random_state=3)
    ranker = LinearRanker(loss, solver="sgd", step=step, max_iter=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ranker.fit(data)
        except ValueError as error:
            assert "training diverged" in str(error)  # noqa: PT017
            return
    assert np.isfinite(ranker.predict(data)).all()
    assert isinstance(ranker.fit_summary_["converged"], bool)
