"""Table 1: MQ2008-agg and MQ2007-agg, five folds, every method of the paper.  `--quick`: one fold, or simulated data."""

import argparse
import sys
import time
from collections.abc import Callable

import checks
import letor
import numpy as np

from placet.aggregate import MODELS, RULES
from placet.aggregate.mpm import supervised_adherence
from placet.data import Rankings
from placet.io import LetorAgg

# The paper stops gradient descent after 100 steps; narrow priors stand for that here (README.md).
BRADLEY_TERRY_PRIOR = 0.005
PLACKETT_LUCE_PRIOR = 0.1

Method = Callable[[LetorAgg, Rankings, Rankings], np.ndarray]


def borda(test: LetorAgg, ballots: Rankings, truth: Rankings) -> np.ndarray:
    return by_instance(test.rankings, lambda r: RULES["borda"](r, unlisted="last"))


def cps(distance: str) -> Method:
    def method(test: LetorAgg, ballots: Rankings, truth: Rankings) -> np.ndarray:
        taught = MODELS["cps"](distance).fit(ballots, truth)
        weight = dict(zip(ballots.agents, taught.weight_))
        return MODELS["cps"](distance, weight=weight).fit(test.rankings).theta_

    return method


def svp(test: LetorAgg, ballots: Rankings, truth: Rankings) -> np.ndarray:
    return MODELS["svp"]("rating", max_iter=1).fit(test.rankings).theta_


def bradley_terry(test: LetorAgg, ballots: Rankings, truth: Rankings) -> np.ndarray:
    def one(r: Rankings) -> np.ndarray:
        counts = without_agents(r).to_comparisons("rating")
        return MODELS["bradley-terry"](stderr=None, prior=BRADLEY_TERRY_PRIOR).fit(counts).theta_

    return by_instance(test.rankings, one)


def plackett_luce(test: LetorAgg, ballots: Rankings, truth: Rankings) -> np.ndarray:
    return by_instance(
        test.rankings,
        lambda r: MODELS["plackett-luce"](stderr=None, prior=PLACKETT_LUCE_PRIOR).fit(without_agents(r)).theta_,
    )


def theta_mpm(variance: bool) -> Method:
    def method(test: LetorAgg, ballots: Rankings, truth: Rankings) -> np.ndarray:
        adherence = supervised_adherence(ballots, truth)
        return MODELS["mpm"]("rating", adherence=adherence, variance=variance).fit(test.rankings).theta_

    return method


METHODS: dict[str, Method] = {
    "BordaCount": borda,
    "CPS spearman": cps("spearman"),
    "CPS footrule": cps("footrule"),
    "CPS kendall": cps("kendall"),
    "SVP": svp,
    "Bradley-Terry": bradley_terry,
    "Plackett-Luce": plackett_luce,
    "theta-MPM": theta_mpm(variance=False),
    "theta-MPM with variances": theta_mpm(variance=True),
}


def by_instance(r: Rankings, rule: Callable[[Rankings], np.ndarray]) -> np.ndarray:
    """Scores of a rule or model that knows nothing of instances, over the items of each instance alone."""
    scores = np.zeros(r.n_items)
    order = np.argsort(r.instance, kind="stable")
    bounds = np.searchsorted(r.instance[order], np.arange(len(r.instances) + 1))
    for k in range(len(r.instances)):
        ballots = order[bounds[k] : bounds[k + 1]]
        rows = np.concatenate([np.arange(r.offsets[b], r.offsets[b + 1]) for b in ballots])
        item, code = np.unique(r.item[rows], return_inverse=True)
        offsets = np.concatenate([[0], np.cumsum(np.diff(r.offsets)[ballots])])
        own = Rankings(
            code, r.tier[rows], offsets, r.weight[ballots], items=tuple(range(len(item))), score=r.score[rows]
        )
        scores[item] = rule(own)
    return scores


def without_agents(r: Rankings) -> Rankings:
    return Rankings(r.item, r.tier, r.offsets, r.weight, items=r.items, score=r.score)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="one fold of MQ2008-agg, or simulated data where there is none"
    )
    usual = [m for m in METHODS if m != "theta-MPM with variances"]  # hours, and no better
    parser.add_argument("--methods", nargs="*", default=usual, choices=list(METHODS))
    args = parser.parse_args()
    folder = letor.data_folder()
    if folder is None and not args.quick:
        print("no data: set PLACET_DATA to a folder with letor4/MQ2008-agg, or use --quick", file=sys.stderr)
        return 2
    ours: dict[tuple[str, str, str], float] = {}
    rows: list[list[object]] = []
    for name in letor.SETS[:1] if args.quick else letor.SETS:
        parts = letor.parts(name, folder)
        folds = letor.folds(1 if args.quick else 5)
        taught = [letor.joined([parts[k] for k in train]) for train, _, _ in folds]
        for method in args.methods:
            start = time.perf_counter()
            values = np.mean(
                [
                    letor.evaluate(METHODS[method](parts[test], *ballots_and_truth), parts[test])
                    for (_, _, test), ballots_and_truth in zip(folds, taught)
                ],
                axis=0,
            )
            ours |= {(name, method, measure): float(v) for measure, v in zip(letor.MEASURES, values)}
            rows.append([name, method, *values.tolist()])
            print(
                f"{name} {method:24s}",
                " ".join(f"{v:5.2f}" for v in values),
                f"{time.perf_counter() - start:.1f} s",
                flush=True,
            )
    if args.quick:
        ok = all(np.isfinite(v) for v in ours.values()) and ours[letor.SETS[0], "theta-MPM", "N@5"] > 25
        return 0 if ok else 1
    print(checks.write("table1", ["set", "method", *letor.MEASURES], rows))
    return 1 if checks.compare(ours, "table1") else 0


if __name__ == "__main__":
    sys.exit(main())
