"""Tables 2 and 3, figures 4 and 5: a consensus of ratings by Bradley-Terry, Plackett-Luce and MPM with variances.

python tables2_3.py --data PATH/ml-100k       # the published numbers are compared, figures drawn
python tables2_3.py                           # simulated ratings of the same shape
python tables2_3.py --quick                   # small simulated ratings, a minute
"""

import argparse
import sys
from pathlib import Path

import checks
import movielens
import numpy as np

from placet.aggregate import MODELS
from placet.data import Rankings

FILLS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5)


def fitted(ballots: Rankings) -> dict[str, object]:
    """The three models of the paper; the counts of pairs are rating differences for those that take them."""
    return {
        "Bradley-Terry": MODELS["bradley-terry"](stderr=None).fit(ballots.to_comparisons("rating")),
        "Plackett-Luce": MODELS["plackett-luce"](stderr=None).fit(ballots),
        "MPM": MODELS["mpm"]("rating", variance=True, tol=1e-6).fit(ballots),
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


def figures(models: dict[str, object], users: np.ndarray, by_fill: dict[str, np.ndarray], folder: Path) -> None:
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
    picture.savefig(folder / "figure4.png", dpi=120, bbox_inches="tight")
    mpm = models["MPM"]
    gamma, rank = mpm.consensus_.extras["variance"], mpm.consensus_.ranks  # type: ignore[attr-defined]
    picture, axes = plt.subplots(1, 2, figsize=(9, 3.4))
    axes[0].plot(users, gamma, ".", markersize=2)
    axes[0].set(xlabel="ratings", ylabel="variance")
    axes[1].plot(rank, gamma, ".", markersize=2)
    axes[1].set(xlabel="rank", ylabel="variance")
    picture.savefig(folder / "figure5.png", dpi=120, bbox_inches="tight")
    plt.close("all")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of MovieLens 100K: u.data and u.item")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--figures", type=Path, help="folder for figure4.png and figure5.png")
    args = parser.parse_args()
    ratings = movielens.load(args.data, args.quick)
    ballots = ratings.ballots()
    models = fitted(ballots)
    table = movielens.imputed(ratings)
    ours: dict[tuple[str, str, str], float] = {}
    rows: list[list[object]] = []
    by_fill: dict[str, np.ndarray] = {}
    users, won, lost = contests(ballots)
    for name, model in models.items():
        theta = model.theta_  # type: ignore[attr-defined]
        values = movielens.ndcg_of_users(theta, table)
        rows.append(["MovieLens" if args.data else "simulated", name, *values.tolist()])
        ours |= {("MovieLens", name, f"N@{k}"): float(v) for k, v in enumerate(values, start=1)}
        by_fill[name] = np.array([movielens.ndcg_of_users(theta, ratings.table(missing=x)) for x in FILLS])
        print(f"{name:14s}", " ".join(f"{v:5.2f}" for v in values))
        order = np.argsort(-theta, kind="stable")
        for k in [*order[:5], *order[-5:]]:
            print(f"    {ratings.title[k]:40s} {users[k]:5d} users {won[k]:8.0f} won {lost[k]:8.0f} lost")
    if args.figures:
        args.figures.mkdir(parents=True, exist_ok=True)
        figures(models, users, by_fill, args.figures)
    if args.data:
        print(checks.write("table2", ["set", "method", *(f"N@{k}" for k in range(1, 11))], rows))
        return 1 if checks.compare(ours, "table2") else 0
    # on simulated ratings: support counts, so MPM's top films have more ratings and lose least when nothing is imputed
    top = {name: np.mean(users[np.argsort(-m.theta_)[:5]]) for name, m in models.items()}  # type: ignore[attr-defined]
    return 0 if top["MPM"] > top["Bradley-Terry"] and by_fill["MPM"][0, 4] > by_fill["Bradley-Terry"][0, 4] else 1


if __name__ == "__main__":
    sys.exit(main())
