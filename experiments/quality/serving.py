"""A blend that can be served: what its smaller forest costs in NDCG@10, and its time, size and ONNX file.

The protocol, written before the test parts were scored with it.  The training and validation parts of each LETOR fold are one set of
queries, cut in four quarters, as in ``folds.py``.

- "served" is ``autorank(train, valid, candidates=SHORT_LIST[:20], folds=4, rotate=True, blend=20)``, whose forest has at most 256 leaves per
  tree.
- "full" is the same blend with the forest as it was before, without a limit; all other members are the same fits.
- "without" is the served blend without its listwise members, which look at the other rows of the list: what pruning them would cost.

Primary: served minus full in NDCG@10, paired over test queries, with a 95 % bootstrap interval; "no loss beyond chance" is a set whose
interval does not lie below 0.  Secondary: without minus served.  To reach, in every fold: at most 5 CPU ms for a query of 100 rows, one thread, at
most 4 MB, and ONNX scores within 1e-6 of ``predict`` in every test query.

How it came about: fits on the three training parts, in quarters, judged on the validation part (OHSUMED and MQ2008, folds 1 and 2): 256 leaves
were within 0.004 of no limit, either way, and the forest alone was better.  The test parts of all sets were scored in earlier experiments.

    python -m experiments.quality.serving [--set SET ...]     # from the project's root
    python -m experiments.quality.serving --quick             # simulated queries: seconds
"""

import tempfile
import warnings
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.common import (
    check,
    expected,
    least_cpu,
    letor_folds,
    need,
    output_folder,
    paired,
    parser,
    set_names,
    simulated_parts,
    write,
)
from experiments.quality.fits import one_thread
from experiments.quality.sets import ALL, parts_of
from placet.data import Queries, concat
from placet.metrics import ndcg
from placet.rank.search.autorank import SHORT_LIST, autorank, build_ranker
from placet.rank.search.blend import Blend, spread
from placet.rank.search.stacking import random_parts
from placet.threads import set_threads

FOLDS, KINDS, ROWS = 4, 20, 100
FULL, SERVED, WITHOUT = "full", "served", "without"


def blends(train: Queries, valid: Queries, n_kinds: int) -> dict[str, Blend]:
    """The three blends of a fold; they share all fits but the forest's."""
    chosen = [one_thread(*candidate) for candidate in SHORT_LIST[:n_kinds]]
    served = autorank(train, valid, candidates=chosen, folds=FOLDS, rotate=True, blend=n_kinds).ranker
    names = [type(member).__name__ for member in served.members_]
    forest, whole = names.index("ForestRanker"), concat([train, valid])
    part, number = random_parts(whole, FOLDS, 0), [name for name, _ in chosen].index("forest")
    params = {name: value for name, value in chosen[number][1].items() if name != "leaves"}
    held_out = whole[part == number % FOLDS]
    large = build_ranker("forest", params, "ndcg@10", 0).fit(whole[part != number % FOLDS])
    members, spreads = list(served.members_), served.spread_.copy()
    members[forest], spreads[forest] = large, spread(large.predict(held_out), held_out.offsets)
    alone = [k for k, name in enumerate(names) if name != "ListwiseFeatures"]
    return {
        FULL: Blend.of(members, whole, spreads=spreads),
        SERVED: served,
        WITHOUT: Blend.of([served.members_[k] for k in alone], whole, spreads=served.spread_[alone]),
    }


def cost(blend: Blend, test: Queries, folder: Path) -> dict[str, float]:
    """Milliseconds of CPU for a query of 100 rows, megabytes of both files, and the largest difference of ONNX."""
    import onnxruntime

    blend.save(folder / "model.placet")
    blend.to_onnx(folder / "model.onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    X = np.asarray(test.X, np.float64)
    query = X[np.arange(ROWS) % len(X)]
    run = lambda rows: session.run(["scores"], {"X": rows})[0]  # noqa: E731
    s, cuts = blend.predict(test), test.offsets[1:-1]
    gaps = [np.abs(run(rows) - own).max() for rows, own in zip(np.split(X, cuts), np.split(s, cuts))]
    return {
        "ms": 1e3 * least_cpu(lambda: blend.predict(query), 30),
        "ms of onnxruntime": 1e3 * least_cpu(lambda: run(query), 30),
        "MB": (folder / "model.placet").stat().st_size / 1e6,
        "MB of onnx": (folder / "model.onnx").stat().st_size / 1e6,
        "difference of onnx": float(max(gaps)),
    }


def run_set(name: str, parts: list[Queries], args: Namespace) -> tuple[list[list[Any]], dict[str, float]]:
    """Rows of the table of a set, and what is checked."""
    values: dict[str, list[np.ndarray]] = {FULL: [], SERVED: [], WITHOUT: []}
    costs: dict[str, list[float]] = {}
    for fold, (train, valid, test) in enumerate(letor_folds(parts, 1 if args.quick else 5), 1):
        found = blends(train, valid, 8 if args.quick else KINDS)
        for label, blend in found.items():
            values[label].append(ndcg(blend.predict(test), test.grade, test.offsets, 10))
        with tempfile.TemporaryDirectory() as folder:
            for what, amount in cost(found[SERVED], test, Path(folder)).items():
                costs.setdefault(what, []).append(amount)
        print(f"{name}, fold {fold}", flush=True)
    whole = {label: np.concatenate(own) for label, own in values.items()}
    ours = {f"{name}, {label}": float(np.nanmean(own)) for label, own in whole.items()}
    ours |= {f"{name}, {what}": max(own) for what, own in costs.items()}
    pairs = {"served - full": (SERVED, FULL), "without - served": (WITHOUT, SERVED)}
    rows: list[list[Any]] = [[name, key.split(", ")[1], f"{value:.4g}"] for key, value in ours.items()]
    rows += [[name, words, str(paired(whole[a], whole[b]))] for words, (a, b) in pairs.items()]
    ours[f"{name}, served - full"] = float(np.nanmean(whole[SERVED] - whole[FULL]))
    for row in rows:
        print(", ".join(row), flush=True)
    return rows, ours


def main() -> None:
    args = parser(__doc__, sets=ALL).parse_args()
    need("lightgbm", "onnx", "onnxruntime")
    warnings.filterwarnings("ignore")
    set_threads(1)
    rows, ours = [], {}
    sets = ["simulated"] if args.quick else args.set
    for name, where in zip(set_names(sets), sets):
        some, checked = run_set(name, simulated_parts(seed=args.seed) if args.quick else parts_of(where), args)
        rows += some
        ours |= checked
    path = expected(__file__, "quick" if args.quick else "")
    write(output_folder(path) / "table.csv", ["set", "quantity", "value"], rows)
    check(ours, path, set_names(sets))


if __name__ == "__main__":
    main()
