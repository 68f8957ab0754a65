"""Tables 2 and 3, figures 4 and 5: a consensus of ratings by Bradley-Terry, Plackett-Luce and MPM with variances.

python -m experiments.mpm.tables2_3 --set PATH/ml-100k    # the published numbers are compared, figures drawn
python -m experiments.mpm.tables2_3 --quick               # small simulated ratings
"""

from pathlib import Path

import numpy as np

from experiments.common import check, expected, output_folder, parser, write
from experiments.mpm import movielens
from experiments.mpm.pair_slopes import mpm_slope_left
from placet.aggregate import MODELS
from placet.data import Rankings

FILLS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5)


def fitted(ballots: Rankings) -> dict[str, object]:
    """The three models of the paper; the counts of pairs are rating differences for those that take them."""
    return {
        "Bradley-Terry": MODELS["bradley-terry"](stderr=None).fit(ballots.to_comparisons("rating")),
        "Plackett-Luce": MODELS["plackett-luce"](stderr=None).fit(ballots),
        "MPM": MODELS["mpm"]("rating", variance=True, stderr=None).fit(ballots),
    }


def contests(ballots: Rankings) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Users, pairs won and pairs lost of every film."""
    net, _ = ballots.net_wins("binary")
    n = ballots.n_items
    users = np.bincount(ballots.item, minlength=n)
    size = np.diff(ballots.offsets)[ballots.ballot]
    same = np.zeros(len(net))
    key = ballots.ballot * (ballots.tier.max() + 1) + ballots.tier
    same = np.bincount(key)[key]
    met = size - same
    return users, np.bincount(ballots.item, (met + net) / 2, n), np.bincount(ballots.item, (met - net) / 2, n)


def figures(
    name: str, models: dict[str, object], users: np.ndarray, by_fill: dict[str, np.ndarray], folder: Path
) -> None:
    """Figure 4: NDCG by the constant that fills missing ratings; figure 5: variance by number of ratings and by rank."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    picture, axes = plt.subplots(1, 3, figsize=(12, 3.4))
    for ax, k in zip(axes, (1, 5, 10)):
        for name, values in by_fill.items():
            ax.plot(FILLS, values[:, k - 1], marker="o", label=name)
        ax.set(title=f"NDCG@{k}", xlabel="missing ratings filled with")
    axes[0].legend()
    picture.suptitle(f"{name} ratings")
    picture.savefig(folder / "figure4.png", dpi=120, bbox_inches="tight")
    mpm = models["MPM"]
    gamma, rank = mpm.consensus_.spread, mpm.consensus_.ranks  # type: ignore[attr-defined]
    picture, axes = plt.subplots(1, 2, figsize=(9, 3.4))
    picture.suptitle(f"{name} ratings")
    axes[0].plot(users, gamma, ".", markersize=2)
    axes[0].set(xlabel="ratings", ylabel="variance")
    axes[1].plot(rank, gamma, ".", markersize=2)
    axes[1].set(xlabel="rank", ylabel="variance")
    picture.savefig(folder / "figure5.png", dpi=120, bbox_inches="tight")
    plt.close("all")


def statements(
    name: str, users: np.ndarray, models: dict[str, object], by_fill: dict[str, np.ndarray]
) -> dict[str, float]:
    """What the paper says beside its numbers: support counts in MPM, and nothing imputed hurts it least."""
    top = {m: float(np.mean(users[np.argsort(-model.theta_)[:5]])) for m, model in models.items()}  # type: ignore[attr-defined]
    mpm = models["MPM"]
    variance, rank = np.log(mpm.variance_), mpm.consensus_.ranks  # type: ignore[attr-defined]
    from_middle = np.abs(rank - np.mean(rank))
    return {
        f"{name}, fewest users of a film in MPM's top five": float(users[np.argsort(-mpm.theta_)[:5]].min()),  # type: ignore[attr-defined]
        f"{name}, figure 5, correlation of variance and ratings, in logs": float(np.corrcoef(variance, np.log1p(users))[0, 1]),
        f"{name}, figure 5, correlation of log variance and distance from the middle rank": float(np.corrcoef(variance, from_middle)[0, 1]),
        f"{name}, users of the top five, MPM - Bradley-Terry": top["MPM"] - top["Bradley-Terry"],
        f"{name}, users of the top five, MPM - Plackett-Luce": top["MPM"] - top["Plackett-Luce"],
        f"{name}, N@5 with 0 for missing ratings, MPM - Bradley-Terry": by_fill["MPM"][0, 4] - by_fill["Bradley-Terry"][0, 4],
        f"{name}, N@5 with 0 for missing ratings, MPM - Plackett-Luce": by_fill["MPM"][0, 4] - by_fill["Plackett-Luce"][0, 4],
    }  # fmt: skip


def main() -> None:
    args = parser(__doc__, sets=("MovieLens",)).parse_args()
    name = "simulated" if args.quick else "MovieLens"
    ratings = movielens.simulated(100, 120, 3000, args.seed) if args.quick else movielens.load(args.set[0])
    ballots = ratings.ballots()
    models = fitted(ballots)
    table = movielens.imputed(ratings, seed=args.seed)
    ours: dict[str, float] = {}
    rows: list[list[object]] = []
    by_fill: dict[str, np.ndarray] = {}
    users, won, lost = contests(ballots)
    for method, model in models.items():
        theta = model.theta_  # type: ignore[attr-defined]
        values = movielens.ndcg_of_users(theta, table)
        rows.append([name, method, *values.tolist()])
        ours |= {f"{name}, {method}, N@{k}": float(v) for k, v in enumerate(values, start=1)}
        by_fill[method] = np.array([movielens.ndcg_of_users(theta, ratings.table(missing=x)) for x in FILLS])
        print(f"{method:14s}", " ".join(f"{v:5.2f}" for v in values))
        order = np.argsort(-theta, kind="stable")
        for k in [*order[:5], *order[-5:]]:
            print(f"    {ratings.title[k]:40s} {users[k]:5d} users {won[k]:8.0f} won {lost[k]:8.0f} lost")
    path = expected(__file__, "quick" if args.quick else "")
    figures(name, models, users, by_fill, output_folder(path))
    write(output_folder(path) / "table2.csv", ["set", "method", *(f"N@{k}" for k in range(1, 11))], rows)
    if args.quick:
        mpm = models["MPM"]
        left = mpm_slope_left(ballots, mpm.theta_, {}, mpm.prior, mpm.variance_)  # type: ignore[attr-defined]
        ours[f"{name}, MPM, slope left"] = left
    check(ours | statements(name, users, models, by_fill), path)


if __name__ == "__main__":
    main()
