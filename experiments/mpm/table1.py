"""Table 1: MQ2008-agg and MQ2007-agg, five folds, every method of the paper.  `--quick`: one fold of simulated lists."""

from collections.abc import Callable

import numpy as np

from experiments.common import (
    Timer,
    check,
    check_first,
    expected,
    output_folder,
    parser,
    rotation,
    set_names,
    skip,
    write,
)
from experiments.mpm import letor
from experiments.mpm.pair_slopes import bradley_terry_slope, mpm_slope_left, pair_counts
from placet.aggregate import MODELS, RULES
from placet.aggregate.mpm.multinomial_preference import supervised_adherence
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
USUAL = [m for m in METHODS if m != "theta-MPM with variances"]  # hours, and no better


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


def identity(seed: int) -> dict[str, float]:
    """Slopes that the fits leave by the formulas, and what adherence and weights of engines add to NDCG@5, on simulated lists."""
    parts = letor.parts(letor.SIMULATED, seed)
    taught, test = letor.joined(parts[:3]), parts[4]
    adherence = supervised_adherence(*taught)
    theta = METHODS["theta-MPM"](test, *taught)
    half = np.full(test.rankings.n_items, 0.5)
    plain = MODELS["mpm"]("rating", stderr=None).fit(test.rankings).theta_
    equal = MODELS["cps"]("spearman", weight=dict.fromkeys(taught[0].agents, 1.0)).fit(test.rankings).theta_
    at = letor.MEASURES.index("N@5")
    found = {
        "theta-MPM, slope left": mpm_slope_left(test.rankings, theta, adherence, 10.0, half),
        "Bradley-Terry, slope left": bradley_terry_left(test),
        "theta-MPM - the same with adherence 1, N@5": (letor.evaluate(theta, test) - letor.evaluate(plain, test))[at],
        "CPS spearman - the same with equal weights, N@5": (
            letor.evaluate(METHODS["CPS spearman"](test, *taught), test) - letor.evaluate(equal, test)
        )[at],
        "adherence, five right engines - two reversed": adherence_gap(adherence),
    }
    return {f"{letor.SIMULATED}, {name}": float(value) for name, value in found.items()}


def adherence_gap(adherence: dict) -> float:
    """The least adherence of the engines that order the right way, less the largest of those that do not."""
    values = list(adherence.values())
    return min(values[:5]) - max(values[k] for k in letor.REVERSED)


def bradley_terry_left(test: LetorAgg) -> float:
    """Largest slope that Bradley-Terry on differences of ranks leaves in the first query, over that at 0."""
    r = test.rankings
    theta = bradley_terry(test, r, r)
    own = np.flatnonzero(r.instance == 0)
    W = sum(pair_counts(r, int(b)) for b in own)
    slope = bradley_terry_slope(W, theta) - theta / BRADLEY_TERRY_PRIOR**2
    listed = (W.sum(axis=0) + W.sum(axis=1)) > 0
    return float(np.abs(slope[listed]).max() / np.abs(bradley_terry_slope(W, 0 * theta)).max())


def main() -> None:
    arguments = parser(__doc__, sets=tuple(letor.SETS))
    arguments.add_argument("--methods", nargs="+", default=USUAL, choices=list(METHODS))
    args = arguments.parse_args()
    path = expected(__file__, "quick" if args.quick else "")
    ours = identity(args.seed) if args.quick else {}
    check_first(ours, path)
    rows: list[list[object]] = []
    sets = [letor.SIMULATED] if args.quick else args.set
    for name, where in zip(set_names(sets), sets):
        parts = letor.parts(where, args.seed)
        folds = rotation(1 if args.quick else 5)
        taught = [letor.joined([parts[k] for k in train]) for train, _, _ in folds]
        for method in args.methods:
            with Timer() as spent:
                values = np.mean(
                    [
                        letor.evaluate(METHODS[method](parts[test], *ballots_and_truth), parts[test])
                        for (_, _, test), ballots_and_truth in zip(folds, taught)
                    ],
                    axis=0,
                )
            ours |= {f"{name}, {method}, {measure}": float(v) for measure, v in zip(letor.MEASURES, values)}
            rows.append([name, method, *values.tolist()])
            words = " ".join(f"{v:5.2f}" for v in values)
            print(f"{name} {method:24s} {words} {spent.seconds:.1f} s", flush=True)
    write(output_folder(path) / "table.csv", ["set", "method", *letor.MEASURES], rows)
    if args.methods != USUAL:
        skip("the check is of all methods of the paper; leave --methods out")
    check(ours, path, set_names(sets))


if __name__ == "__main__":
    main()
