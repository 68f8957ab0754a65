"""One table of rankers with quick parameters and data of their kind, for every test that walks ``RANKERS``."""

import warnings
from functools import cache

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import clone

import placet
from placet.data import Queries
from placet.optim import ConvergenceWarning
from placet.rank import RANKERS, LinearRanker, TreeRanker
from placet.rank.listwise.diversity import simulated_intents

DATA = placet.simulate.queries(40, (3, 8), 3, 3, noise=0.4, random_state=4)


def related(queries, seed=0):
    """The same queries with a symmetric relation between their rows."""
    rng = np.random.default_rng(seed)
    A = np.where(rng.random((len(queries.grade),) * 2) > 0.5, 1.0, 0.0) * (queries.query[:, None] == queries.query)
    return Queries(queries.X, queries.grade, queries.offsets, relations={"links": csr_matrix(np.maximum(A, A.T))})


RELATED = related(DATA)
RANKS = Queries(np.argsort(np.argsort(DATA.X, axis=0), axis=0) + 1.0, DATA.grade, DATA.offsets)
INTENTS = simulated_intents(12, 10, 3, 4, random_state=1)
DOCUMENTS = csr_matrix(np.tile(np.eye(4), (12, 1))), csr_matrix(np.tile(np.eye(4, 6) + np.eye(4, 6, 1), (12, 1)))
NETWORK = {"hidden": (6,), "learning_rate": 1e-2, "epochs": 4, "batch": 8}

# an unfitted ranker with parameters that make it quick, training data as fit takes them, validation data
CASES = {
    "linear": (LinearRanker("pl-partition"), (DATA[:25],), DATA[25:]),
    "trees": (TreeRanker("pl-partition", n_trees=6, min_rows=3), (DATA[:25],), DATA[25:]),
    "forest": (RANKERS["forest"]("pl-partition", 24), (DATA[:25],), DATA[25:]),
    "neural": (RANKERS["neural"]("pl-partition", **NETWORK), (DATA[:25],), DATA[25:]),
    "booster": (RANKERS["booster"]("pl-partition", 6, learners=("feature", "listwise"), kernels=("links",)), (RELATED[:25],), RELATED[25:]),
    "rankboost": (RANKERS["rankboost"](6, learners=("stump", "feature")), (DATA[:25],), DATA[25:]),
    "adarank": (RANKERS["adarank"](6, learners=("stump", "feature")), (DATA[:25],), DATA[25:]),
    "coordinate": (RANKERS["coordinate"](2, tol=0.0), (DATA[:25],), DATA[25:]),
    "surrogate": (RANKERS["surrogate"](("ce", "square"), max_evaluations=6), (DATA[:25],), DATA[25:]),
    "structrank": (RANKERS["structrank"]("linear", 1, epochs=2, starts=2), (DATA[:25],), DATA[25:]),
    "listwise": (RANKERS["listwise"](TreeRanker("pl-partition", n_trees=6, min_rows=3)), (DATA[:25],), DATA[25:]),
    "reranker": (RANKERS["reranker"](LinearRanker("ranknet"), ("links", "cosine"), "pl-partition", terms=3, positive=True), (RELATED[:25],), RELATED[25:]),
    "crf": (RANKERS["crf"]("links", loss="pl-partition"), (RELATED[:25],), RELATED[25:]),
    "diversity": (RANKERS["diversity"](0, metric="alpha_ndcg@5"), (INTENTS.queries[:8], INTENTS.judged[:80]), (INTENTS.queries[8:], INTENTS.judged[80:])),
    "fusion": (RANKERS["fusion"]([("linear", {"l2": 0.1}), ("trees", {"n_trees": 3, "min_rows": 3}), ("linear", {})]), (RANKS[:25],), RANKS[25:]),
    "blend": (RANKERS["blend"]([LinearRanker(), TreeRanker(n_trees=3, min_rows=3), LinearRanker("ranknet")]), (DATA[:25],), DATA[25:]),
    "labels": (RANKERS["labels"]("pl-partition", **NETWORK), DOCUMENTS, DOCUMENTS),
}  # fmt: skip


def fit(name, valid=False, **more):
    ranker, data, held_out = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(ranker).fit(*data, valid=held_out if valid else None, **more)


@cache
def fitted(name):
    """The fitted ranker of a case, one for all tests of a process; for those that do not alter it."""
    return fit(name)


def rows(name):
    """Rows of the case's own kind to predict for."""
    return CASES[name][1][0]
