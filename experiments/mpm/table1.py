"""Table 1: MQ2008-agg and MQ2007-agg, five folds, every method of the paper.  `--quick`: one fold of simulated lists."""

from collections.abc import Callable

import numpy as np

from experiments.common import Timer, check, expected, output_folder, parser, rotation, set_names, skip, write
from experiments.mpm import letor
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


def main() -> None:
    arguments = parser(__doc__, sets=tuple(letor.SETS))
    arguments.add_argument("--methods", nargs="+", default=USUAL, choices=list(METHODS))
    args = arguments.parse_args()
    ours: dict[str, float] = {}
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
    path = expected(__file__, "quick" if args.quick else "")
    write(output_folder(path) / "table.csv", ["set", "method", *letor.MEASURES], rows)
    if args.methods != USUAL:
        skip("the check is of all methods of the paper; leave --methods out")
    check(ours, path, set_names(sets))


if __name__ == "__main__":
    main()
