"""MQ2008 and OHSUMED, five folds, NDCG@10: Placet beside LightGBM, XGBoost and CatBoost, with the same number of fits.

For each method and fold 20 settings are drawn at random (seeded) from a stated space (``peers.py``;
``placet.rank.search.autorank.draw_candidates`` for Placet, which has one such budget for all its kinds of rankers and losses), fitted on the
three training parts, stopped by NDCG@10 on the validation part, and ordered by the same value.  Two ways to choose are
shown for every method: the best setting, and the mean of the best 10, whose scores are divided by their deviation
inside the lists of the validation part.  The latter is ``autorank(train, valid, candidates=draw_candidates(20), blend=10)``.
A third row, "any", is the mean over settings: one chosen at random.
NDCG has gain 2^grade - 1; queries with nothing relevant are left out (564 and 105 remain).  Differences are paired over
test queries of all folds, with a 95 % bootstrap interval and the p-value of a sign-flip test.

What came out: neither set is won, and nothing can be told apart.  Mean of 10 (best setting): Placet 0.7052 (0.6979) on
MQ2008 and 0.4530 (0.4513) on OHSUMED; the largest of the six peers 0.7054 (0.7014) and 0.4568 (0.4633), the smallest
0.6990 (0.6926) and 0.4462 (0.4388).  All 24 intervals of these differences contain 0.  The tables, and what else was
tried, are in README.md.

What was looked at.  The number of members (10, of 1, 3, 5, 8, 10, 14, 20), the kinds and losses to draw and the way
scores are scaled were chosen by fits on two training parts, stopped on the third and judged on the validation part of
the fold; LightGBM's lambdarank was fitted the same way for comparison.  Parts rotate, so these validation parts are
test parts of other folds: the choice is not blind to them.  Nor is the list of kinds and losses, since earlier
experiments here had shown that linear rankers and listwise terms do well on these sets.  The spaces of the peers were
written once and not changed.  The test parts were read once, when all fits were done, but for 40 queries of one
fold that ``--quick`` printed, with two settings a method, while this script was written.  After that nothing was changed
but for the row "any" and the bounds in expected_letor.csv on the distance to the best peer, whose aim was to be above 0.

About 30 minutes of one core.  Fits are kept in letor/fits, so a run that was stopped goes on.  `--quick`: one fold of
simulated queries, two settings a method, and a check that ``autorank`` gives what the script computes.
"""

import sys
import warnings
from argparse import Namespace

import numpy as np

from experiments.common import (
    Timer,
    check,
    expected,
    letor_folds,
    letor_parts,
    need,
    output_folder,
    paired,
    parser,
    set_names,
    simulated_parts,
    write,
)
from experiments.quality import fits
from experiments.quality.peers import OBJECTIVES, mean_ndcg
from placet.data import Queries
from placet.metrics import ndcg
from placet.rank.search.autorank import autorank
from placet.rank.search.blend import spread
from placet.threads import set_threads

BUDGET, MEMBERS = 20, 10
WAYS = ("any", "best", f"mean of {MEMBERS}")
QUICK_LIBRARIES = ("LightGBM", "XGBoost")  # what the tests need anyway


def methods(args: Namespace) -> list[str]:
    """Placet first, then its peers."""
    return [m for m in fits.METHODS if m == "Placet" or not args.quick or m.startswith(QUICK_LIBRARIES)]


def blended(found: fits.Fits, valid: Queries, members: int) -> np.ndarray:
    """Test scores: the mean of the settings that were best on validation, in units of their spread there."""
    value = np.array([mean_ndcg(s, valid) for s in found.valid])
    order = np.argsort(-value, kind="stable")[:members]
    unit = np.array([spread(found.valid[k], valid.offsets) for k in order])
    return (found.test[order] / unit[:, None]).mean(axis=0)


def judged(found: fits.Fits, valid: Queries, test: Queries) -> dict[str, np.ndarray]:
    """Way to choose -> NDCG@10 of every test query: of a setting at random (their mean), of the best, of the blend."""
    values = [ndcg(s, test.grade, test.offsets, 10) for s in found.test]
    chosen = [ndcg(blended(found, valid, k), test.grade, test.offsets, 10) for k in (1, MEMBERS)]
    return dict(zip(WAYS, (np.mean(values, axis=0), *chosen)))


def per_query(name: str, parts: list[Queries], args: Namespace) -> dict[tuple[str, str], np.ndarray]:
    """(method, way) -> NDCG@10 of every test query of the folds, NaN where nothing is relevant."""
    found: dict[tuple[str, str], list[np.ndarray]] = {(m, way): [] for m in methods(args) for way in WAYS}
    kept = output_folder(expected(__file__)) / "fits"
    for fold, (train, valid, test) in enumerate(letor_folds(parts, 1 if args.quick else 5)):
        words = (name, fold, *([args.seed] if args.seed else []))
        for method in methods(args):
            with Timer() as spent:
                if args.quick:
                    made = fits.run(method, 2, words, train, valid, test)
                else:
                    made = fits.kept(kept, method, BUDGET, words, train, valid, test)
            for way, values in judged(made, valid, test).items():
                found[method, way].append(values)
            print(f"{name} fold {fold + 1} {method}: {spent.seconds:.1f} s", file=sys.stderr, flush=True)
    return {key: np.concatenate(values) for key, values in found.items()}


def difference_to_autorank(parts: list[Queries]) -> float:
    """Largest difference between the scores of ``autorank``, which users call, and those made here from the same draws."""
    train, valid, test = next(letor_folds([part[:15] for part in parts], 1))
    made = fits.run("Placet", 3, ("a",), train, valid, test)
    choice = autorank(train, valid, candidates=made.params, blend=MEMBERS)
    return float(np.abs(choice.ranker.predict(test) - blended(made, valid, MEMBERS)).max())


def main() -> None:
    args = parser(__doc__, sets=("MQ2008", "OHSUMED")).parse_args()
    need(*(library.lower() for library in (QUICK_LIBRARIES if args.quick else OBJECTIVES)))
    warnings.filterwarnings("ignore")  # of engines on arguments, and of optimisers that reach max_iter
    set_threads(1)
    rows, ours = [], {}
    sets = ["simulated"] if args.quick else args.set
    for name, where in zip(set_names(sets), sets):
        parts = simulated_parts(seed=args.seed) if args.quick else letor_parts(where)
        values = per_query(name, parts, args)
        for way in WAYS:
            best_peer = max(float(np.nanmean(values[method, way])) for method in methods(args)[1:])
            for method in methods(args):
                mean = float(np.nanmean(values[method, way]))
                gap = paired(values["Placet", way], values[method, way])
                rows.append([name, way, method, mean, *gap])
                ours[f"{name}, {method}, {way}"] = mean
                print(f"{name} {way:10s} {method:22s} {mean:.4f}  Placet - it: {gap}")
            ours[f"{name}, Placet - best peer, {way}"] = ours[f"{name}, Placet, {way}"] - best_peer
        ours[f"{name}, largest difference to autorank"] = difference_to_autorank(parts)
    path = expected(__file__, "quick" if args.quick else "")
    write(
        output_folder(path) / "table.csv", ["set", "way", "method", "ndcg@10", "placet - it", "low", "high", "p"], rows
    )
    check(ours, path, set_names(sets))


if __name__ == "__main__":
    main()
