"""Graded queries with features in five parts: LETOR's own, rank lists as features, and LightGBM's example.

"MQ2007-agg" and "MQ2008-agg" hold no features but the ranks that 21 and 25 engines gave: an engine's feature is
log(1001 / (1 + rank)) / log(1001), 0.9 at the first place and 0 where it did not list the document.  "lightgbm_rank" is the example
that LightGBM ships, training and test files together, query k in part k mod 5.  The rules for all three were written before anything
was fitted to them.
"""

import lzma
from pathlib import Path

import numpy as np

from experiments.common import LETOR_SETS, letor_files, letor_folder, letor_parts, need_data
from placet import read_letor_agg
from placet.data import Queries, concat

RANKS = {"MQ2007-agg": "letor4/MQ2007-agg", "MQ2008-agg": "letor4/MQ2008-agg"}
EXAMPLE = "lightgbm_rank"
ALL = (*LETOR_SETS, *RANKS, EXAMPLE)
SAME_QUERIES = {"MQ2008-agg": "MQ2008"}
"""Sets whose queries are those of another: their differences are no independent draws."""

DEEPEST = 1001.0
FEATURES = 300  # of the example


def parts_of(name: str) -> list[Queries]:
    """The five parts of a set, by its name or the folder of another LETOR set."""
    if name in RANKS:
        return [rank_features(path) for path in letor_files(letor_folder(name, RANKS))]
    if name == EXAMPLE:
        return example_parts()
    return letor_parts(name)


def rank_features(path: Path) -> Queries:
    """Ranks by engines as features in [0, 1], higher for better ranks."""
    lists = read_letor_agg(path)
    rank = np.where(np.isnan(lists.rank), DEEPEST - 1.0, np.minimum(lists.rank, DEEPEST - 1.0))
    X = np.log(DEEPEST / (1.0 + rank)) / np.log(DEEPEST)
    return Queries(X, lists.grade, lists.offsets, qid=lists.qid)


def example_parts() -> list[Queries]:
    """Both files of LightGBM's example: svmlight rows, and sizes of groups in a file beside."""
    from sklearn.datasets import load_svmlight_file

    folder = need_data(EXAMPLE)
    queries, first = [], 0
    for which in ("train", "test"):
        with lzma.open(folder / f"rank.{which}.xz") as rows, lzma.open(folder / f"rank.{which}.query.xz") as sizes:
            X, grade = load_svmlight_file(rows, n_features=FEATURES)
            size = np.loadtxt(sizes, dtype=int)
        queries.append(Queries.from_arrays(X.toarray(), grade, first + np.repeat(np.arange(len(size)), size)))
        first += len(size)
    whole = concat(queries)
    return [whole[np.arange(len(whole)) % 5 == k] for k in range(5)]
