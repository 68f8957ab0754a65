"""Where scoring the whole list helps: listwise features and a listwise second stage over linear, tree and neural bases.

OHSUMED and MQ2008, five folds, NDCG@10.  Each base is fitted (a) to the features of the rows, (b) to these and features
of the list (``ListwiseFeatures``: deviation from the list, place in it, mean similarity), and (c) as it is, with a listwise
second stage (``ListwiseReranker``: means of a cosine and a Gaussian, penalty chosen on the validation part, the base itself
among the choices).  The last two are candidates of ``autorank``.  Differences are paired over the test queries of all
folds, with 95 % intervals; nothing is corrected for the number of comparisons, of which there are twelve.
``--set PATH`` takes another LETOR set; ``--quick``: one fold of simulated queries whose value lies in the whole list, without the network.
"""

import warnings

import numpy as np

from experiments.common import (
    Timer,
    check_sets,
    clustered_parts,
    expected,
    letor_folds,
    letor_parts,
    need,
    output_folder,
    paired,
    parser,
    set_names,
    write,
)
from experiments.dissertation.letor import PLAIN_NETWORK
from placet.metrics import ndcg
from placet.rank.search.candidate_search import build_ranker
from placet.rank.search.candidates import SECOND_STAGE

BASES = {
    "linear": ("linear", {"loss": "pmop-fd", "l2": 1e-3}),
    "trees": ("trees", {"loss": "pmop-fd", "learning_rate": 0.05, "leaves": 15, "n_trees": 200, "backend": "lightgbm"}),
    "network": ("neural", {"loss": "pmop-fd", "hidden": (32,), "epochs": 30, **PLAIN_NETWORK}),
}
WAYS = {
    "rows": lambda base: base,
    "listwise features": lambda base: ("listwise", {"base": base}),
    "second stage": lambda base: ("reranker", {"base": base, **SECOND_STAGE}),
}


def main() -> None:
    args = parser(__doc__, sets=("OHSUMED", "MQ2008")).parse_args()
    need("lightgbm") if args.quick else need("lightgbm", "torch")
    warnings.filterwarnings("ignore")  # of optimizers that reach max_iter
    sets = ["simulated"] if args.quick else args.set
    bases = {name: base for name, base in BASES.items() if name != "network" or not args.quick}
    ours, rows = {}, []
    for name, where in zip(set_names(sets), sets):
        parts = clustered_parts(seed=args.seed) if args.quick else letor_parts(where)
        for base, candidate in bases.items():
            values: dict[str, list[np.ndarray]] = {way: [] for way in WAYS}
            with Timer() as spent:
                for train, valid, test in letor_folds(parts, 1 if args.quick else 5):
                    for way, build in WAYS.items():
                        ranker = build_ranker(*build(candidate), "ndcg@10", args.seed).fit(train, valid=valid)
                        values[way].append(ndcg(ranker.predict(test), test.grade, test.offsets, 10))
            whole = {way: np.concatenate(v) for way, v in values.items()}
            ours[f"{name}, {base}, rows, ndcg@10"] = float(np.nanmean(whole["rows"]))
            for way in list(WAYS)[1:]:
                gap = paired(whole[way], whole["rows"])
                ours[f"{name}, {base}, {way} - rows, ndcg@10"] = gap.mean
                rows.append([name, base, way, float(np.nanmean(whole["rows"])), float(np.nanmean(whole[way])), *gap])
                print(f"{name} {base:8s} {way:18s} {rows[-1][3]:.4f} -> {rows[-1][4]:.4f}  {gap}", flush=True)
            print(f"{spent.seconds:.1f} s", flush=True)
    path = expected(__file__, "quick" if args.quick else "")
    header = ["set", "base", "way", "rows", "whole list", "difference", "low", "high", "p"]
    write(output_folder(path) / "table.csv", header, rows)
    check_sets(ours, path, set_names(sets))


if __name__ == "__main__":
    main()
