"""Figure 4: OHSUMED, StructRank fully connected, disconnected and with random connections, beside the paper's baselines.

NDCG and MAP by truncation, five folds, the same queries for all, paired intervals at NDCG@10 and MAP.  Settings of the
paper: Nadaraya-Watson scores with diagonal bandwidths, the sum over pairs of edges, rate 0.5, halved until a step is
feasible (and it stays so) and divided by sqrt(2) after each of ten epochs; three random starts in [0, 1] and norms 50 and
100 (a start is some 24 long), of which, after the last epoch, the validation part chooses by MAP.  Beside them RankNet,
ListNet, ListMLE and RankSVM (our linear rankers, the penalty chosen on the validation part), RankBoost and AdaRank.

"untrained start" is the best of the same three starts without a step.  A kernel smoother with random bandwidths ranks
well already, so "linear scores" (connected, one start, norm 50), whose start is nearly a random order, shows that training trains.
"default steps" is the connected network by the library's default in place of the published schedule: no step may raise the loss of its
list, norm 50, the best epoch kept.

What differs: LETOR 3.0 has 45 features (the paper's 2.0 has 25).  The full run takes 12 minutes of one free core;
``--methods A B`` fits some of the methods and keeps their values beside the output, which ``--resume`` then takes.
First the loss, the smoother and small fits are held to their formulas: no few queries tell connected from disconnected.
``--quick``: one fold of simulated queries, linear scores.
"""

import numpy as np
from sklearn.base import clone

from experiments.common import (
    Timer,
    check_first,
    check_sets,
    expected,
    letor_folds,
    letor_parts,
    output_folder,
    paired,
    parser,
    set_names,
    simulated_parts,
    skip,
    stacked,
    write,
)
from experiments.formulas import off_formula
from placet.data import concat
from placet.metrics import average_precision, ndcg
from placet.rank import AdaRank, LinearRanker, RankBoost, StructRank

DEPTHS = tuple(range(1, 11))
METRICS = [*(f"ndcg@{k}" for k in DEPTHS), *(f"map@{k}" for k in DEPTHS), "map"]


def tuned(loss):
    def fit(train, valid):
        tried = [
            LinearRanker(loss, l2=l2, metric="average_precision", max_iter=300).fit(train, valid=valid)
            for l2 in (1e-4, 1e-2, 1.0)
        ]
        return max(tried, key=lambda r: r.fit_summary_["validation"])

    return fit


def struct(connections, args, **changes):
    options = {
        "epochs": 10,
        "starts": 3,
        "halving": "rate",
        "keep": "run",
        "precision": "single",
        "norm": (50.0, 100.0),
    }
    if args.quick:
        options = {"epochs": 4, "starts": 1, "scorer": "linear", "reduction": "mean"}
    options |= {"random_state": args.seed, **changes}
    return lambda train, valid: StructRank(connections=connections, **options).fit(train, valid=valid)


def boosted(ranker):
    return lambda train, valid: clone(ranker).set_params(metric="average_precision").fit(train, valid=valid)


def values(s, queries):
    found = {f"ndcg@{k}": ndcg(s, queries.grade, queries.offsets, k) for k in DEPTHS}
    found |= {f"map@{k}": average_precision(s, queries.grade, queries.offsets, k) for k in DEPTHS}
    return found | {"map": average_precision(s, queries.grade, queries.offsets)}


def fitted_values(fit, parts, n_folds):
    """Values of the test queries of all folds, and, for StructRank, the training loss after over that before."""
    found, ratios = [], []
    for train, valid, test in letor_folds(parts, n_folds):
        ranker = fit(train, valid)
        found.append(values(ranker.predict(test), test))
        about = ranker.fit_summary_
        ratios.append(about["loss after"] / about["loss before"] if "loss before" in about else np.nan)
    return {**stacked(found), "loss ratio": np.array(ratios)}


def identity(seed: int) -> dict[str, float]:
    """Loss and scores by their formulas, in small fits to simulated queries; and whether w1 and w2 are learned."""
    parts = simulated_parts(6, seed)
    train, test = concat(parts[:2]), parts[2]
    options = {"epochs": 3, "starts": 1, "random_state": seed, "reduction": "mean"}
    found, fits = {}, {}
    for name, connections in (("connected", "full"), ("disconnected", "none")):
        found[f"{name}, off its formula"] = off_formula("structrank", {"connections": connections}, seed)
        fits[name] = StructRank(connections=connections, **options).fit(train)
        ours = fits[name].fit_summary_["loss after"]
        found[f"{name}, training loss over that by the formula"] = ours / mean_loss(fits[name], train, connections)
    start = StructRank(**{**options, "epochs": 1, "learning_rate": 1e-12}).fit(train)
    found["connected, largest change of w1 and w2"] = np.abs(fits["connected"].theta_ - start.theta_)[-2:].max()
    off = np.abs(fits["connected"].predict(test) - smoothed_labels(fits["connected"].theta_[:-2], train, test.X))
    found["Nadaraya-Watson, largest error of a score"] = off.max()
    return {f"simulated, {name}": float(value) for name, value in found.items()}


def smoothed_labels(a, train, X):
    """Means of the training labels, weighted by exp(-1/2 sum_f a_f^2 (x_f - x_if)^2)."""
    weight = np.exp(-0.5 * np.square((X[:, None] - train.X[None]) * a).sum(axis=2))
    return weight @ train.grade / weight.sum(axis=1)


def mean_loss(ranker, queries, connections):
    """Mean over lists of the mean over pairs of edges of log(1 + e^(-w1 r_e) + e^(-w2 r_f)); of edges, if disconnected."""
    s, (w1, w2), found = ranker.predict(queries), ranker.theta_[-2:], []
    for a, b in zip(queries.offsets, queries.offsets[1:]):
        above = queries.grade[a:b, None] > queries.grade[None, a:b]
        r = (s[a:b, None] - s[None, a:b])[above]
        other = np.exp(-w2 * r)[None] if connections == "full" else 0.0
        found += [np.log(1.0 + np.exp(-w1 * r)[:, None] + other).mean()] if len(r) else []
    return np.mean(found)


def main() -> None:
    arguments = parser(__doc__, sets=("OHSUMED",))
    arguments.add_argument("--methods", nargs="+", metavar="METHOD", help="fit these only and keep their values")
    arguments.add_argument("--resume", action="store_true", help="take the values that --methods has kept")
    args = arguments.parse_args()
    methods = {
        "connected": struct("full", args),
        "disconnected": struct("none", args),
        "random connections": struct(1, args, norm=50.0),
        "untrained start": struct("full", args, epochs=1, learning_rate=1e-12, norm=50.0),
        "default steps": struct("full", args, norm=50.0, halving="loss", keep="epoch"),
        "linear scores": struct("full", args, scorer="linear", norm=50.0, starts=1),
        "untrained linear scores": struct(
            "full", args, scorer="linear", norm=50.0, starts=1, epochs=1, learning_rate=1e-12
        ),
        "RankNet": tuned("ranknet"),
        "ListNet": tuned("listnet"),
        "ListMLE": tuned("listmle"),
        "RankSVM": tuned("ranksvm"),
        "RankBoost": boosted(RankBoost()),
        "AdaRank": boosted(AdaRank()),
    }
    sets = ["simulated"] if args.quick else args.set
    path = expected(__file__, "quick" if args.quick else "")
    folder = output_folder(path)
    ours, rows, gaps = identity(args.seed), [], []
    check_first(ours, path)
    for name, where in zip(set_names(sets), sets):
        parts = simulated_parts(seed=args.seed) if args.quick else letor_parts(where)
        found = {}
        for method in args.methods or methods:
            stored = folder / f"{name} {method}.npz"
            with Timer() as spent:
                if args.resume and stored.exists():
                    with np.load(stored) as kept:
                        found[method] = dict(kept)
                else:
                    found[method] = fitted_values(methods[method], parts, 1 if args.quick else 5)
                    np.savez(stored, **found[method])
            ratio = float(np.mean(found[method].pop("loss ratio")))
            means = {metric: float(np.nanmean(v)) for metric, v in found[method].items()}
            rows.append([name, method, *means.values()])
            ours |= {f"{name}, {method}, {metric}": means[metric] for metric in ("ndcg@10", "map")}
            if np.isfinite(ratio):
                ours[f"{name}, {method}, training loss after / before"] = ratio
            words = f"ndcg@10 {means['ndcg@10']:.4f} map {means['map']:.4f} loss ratio {ratio:.3f}"
            print(f"{method:20s} {words}  {spent.seconds:.1f} s", flush=True)
        if args.methods:
            continue
        for metric in ("ndcg@10", "map"):
            gap = paired(found["linear scores"][metric], found["untrained linear scores"][metric])
            print(f"{metric} linear scores - untrained linear scores: {gap}")
            ours[f"{name}, linear scores - untrained linear scores, {metric}"] = gap.mean
        for other in list(methods)[1:]:
            for metric in ("ndcg@1", "ndcg@10", "map"):
                gap = paired(found["connected"][metric], found[other][metric])
                gaps.append([name, metric, other, *gap])
                print(f"{metric} connected - {other}: {gap}")
                if (
                    other in ("disconnected", "random connections", "untrained start", "default steps")
                    and metric != "ndcg@1"
                ):
                    ours[f"{name}, connected - {other}, {metric}"] = gap.mean
    if args.methods:
        skip(f"only {', '.join(args.methods)} were fitted; --resume takes them")
    write(folder / "table.csv", ["set", "method", *METRICS], rows)
    write(folder / "differences.csv", ["set", "metric", "connected minus", "difference", "low", "high", "p"], gaps)
    plot(rows[: len(methods)], folder / "figure4.png")
    check_sets(ours, path, list(dict.fromkeys([*set_names(sets), "simulated"])))


def plot(rows, path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4))
    for row in rows:
        axes[0].plot(DEPTHS, row[2:12], marker="o", label=row[1])
        axes[1].plot(DEPTHS, row[12:22], marker="o")
    axes[0].set_ylabel("NDCG")
    axes[1].set_ylabel("average precision, truncated")
    for axis in axes:
        axis.set_xlabel("truncation")
    axes[0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
