"""Sparse matrices whose numbers point outside them are refused before any kernel sees them."""

import numpy as np
import pytest
from scipy.sparse import csc_matrix, csr_matrix

import placet
from placet.data import DataError, Queries
from placet.data.arrays import as_csr
from placet.rank import RANKERS

X = csr_matrix(np.arange(12.0).reshape(4, 3) % 5)
DAMAGE = {
    "beyond the width": lambda m: m.indices.__setitem__(3, max(m.shape)),
    "far beyond": lambda m: m.indices.__setitem__(0, 2**30),
    "negative": lambda m: m.indices.__setitem__(-1, -1),
    "falling indptr": lambda m: m.indptr.__setitem__(1, m.indptr[2] + 1),
    "indptr beyond the values": lambda m: m.indptr.__setitem__(-1, len(m.data) + 9),
    "indptr not from 0": lambda m: m.indptr.__setitem__(0, 1),
}


@pytest.mark.parametrize("kind", [csr_matrix, csc_matrix])
@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_matrices_are_refused(kind, name):
    bad = kind(X).copy()
    DAMAGE[name](bad)
    with pytest.raises(DataError, match="is not in 0..|indptr does not rise"):
        as_csr(bad, "feature")
    with pytest.raises(DataError):
        Queries.from_arrays(bad, [1, 0, 1, 0], [0, 0, 1, 1])
    with pytest.raises(DataError):
        Queries(bad, np.array([1.0, 0, 1, 0]), np.array([0, 2, 4]))


@pytest.mark.parametrize("name", [name for name, kind in RANKERS.items() if kind.learns_from in ("queries", "labels")])
def test_no_ranker_meets_them(name):
    if name == "labels":
        pytest.importorskip("torch")
    bad = X.copy()
    bad.indices[3] = 3
    with pytest.raises(DataError):
        RANKERS[name]().fit(
            bad,
            csr_matrix(np.eye(4)) if name == "labels" else [1, 0, 1, 0],
            **({} if name == "labels" else {"qid": [0, 0, 1, 1]}),
        )
    good = placet.rank.LinearRanker().fit(X, [1, 0, 1, 0], qid=[0, 0, 1, 1])
    with pytest.raises(DataError):
        good.predict(bad)


def test_relations_are_looked_at_too():
    links = csr_matrix(np.kron(np.eye(2), np.ones((2, 2))))
    links.indices[0] = 77
    with pytest.raises(DataError, match="77 is not in 0..3"):
        Queries(X, np.array([1.0, 0, 1, 0]), np.array([0, 2, 4]), relations={"links": links})


def test_sound_matrices_pass_in_every_form():
    for form in ("csr", "csc", "coo", "bsr", "lil", "dok", "dia"):
        assert (as_csr(X.asformat(form), "features") != X).nnz == 0
