"""Bradley-Terry and Plackett-Luce against choix, evalica, scikit-learn and arena-rank; times include counting the votes.

arena-rank (`pip install arena-rank`) pins the versions of its dependencies, so it is not among the extras; it is included if installed.

    python -m benchmarks.bench_aggregate [part ...] [--quick]

votes      1,000 items, 1M votes given as arrays of item numbers and outcomes: scores, and scores with standard errors
bootstrap  100 rounds on the same votes; evalica is timed on a few rounds, and its time scaled
full       Plackett-Luce, 1,000 full rankings of 100 items
top        Plackett-Luce, top 10 of 1,000 items, 10,000 lists; choix used correctly (each place a choice) on a subset, its time scaled
ties       Plackett-Luce, 100,000 ballots of 30 items in three tiers of ten
sparse     Bradley-Terry, 100,000 items, 10M votes
"""

import importlib.util
import time
from collections.abc import Callable

import choix
import evalica
import numpy as np
import pandas
from scipy.sparse import csr_matrix, vstack
from sklearn.linear_model import LogisticRegression

from benchmarks.harness import compare, main
from placet import Comparisons, Rankings, consensus


def votes(n: int, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    theta = rng.normal(size=n)
    a = rng.integers(0, n, m)
    b = (a + rng.integers(1, n, m)) % n
    return theta, a, b, rng.random(m) < 1 / (1 + np.exp(theta[b] - theta[a]))


def orders(n: int, m: int, top: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    theta = rng.normal(size=n)
    return theta, np.stack([np.argsort(-(theta + rng.gumbel(size=n)))[:top] for _ in range(m)])


def ballots(best: np.ndarray, n: int, tier: np.ndarray) -> Rankings:
    m, size = best.shape
    return Rankings.from_codes(best.ravel(), np.tile(tier, m), np.arange(0, m * size + 1, size), range(n))


def by_choix(n: int, a: np.ndarray, b: np.ndarray, win: np.ndarray) -> np.ndarray:
    table = np.bincount(np.where(win, a * n + b, b * n + a), minlength=n * n).reshape(n, n).astype(float)
    return choix.ilsr_pairwise_dense(table)


def by_sklearn(n: int, a: np.ndarray, b: np.ndarray, win: np.ndarray) -> np.ndarray:
    c = Comparisons.from_battles(a, b, np.where(win, "a", "b"))
    rows = np.tile(np.arange(len(c)), 2)
    X = csr_matrix((np.repeat([1.0, -1.0], len(c)), (rows, np.concatenate([c.i, c.j]))), shape=(len(c), n))
    y = np.repeat([1, 0], len(c))
    model = LogisticRegression(C=100.0, fit_intercept=False)
    return model.fit(vstack([X, X]), y, sample_weight=np.concatenate([c.wins_i, c.wins_j])).coef_[0]


def by_arena(n: int, frame: pandas.DataFrame) -> np.ndarray:
    from arena_rank.models.bradley_terry import BradleyTerry
    from arena_rank.utils.data_utils import PairDataset

    model = BradleyTerry(n)
    model.fit(PairDataset.from_pandas(frame))
    return np.asarray(model.params["ratings"])


def bench_votes(quick: bool) -> None:
    n, m = (200, 50_000) if quick else (1000, 1_000_000)
    _, a, b, win = votes(n, m)
    outcome = np.where(win, "a", "b")
    names_a, names_b = a.tolist(), b.tolist()
    winners = [evalica.Winner.X if w else evalica.Winner.Y for w in win]

    def ours(**params: object) -> Callable[[], object]:
        return lambda: consensus(Comparisons.from_battles(a, b, outcome), "bradley-terry", **params)

    contestants = {
        "placet": ours(stderr=None),
        "placet with standard errors": ours(),
        "choix": lambda: by_choix(n, a, b, win),
        "evalica": lambda: evalica.bradley_terry(names_a, names_b, winners),
        "scikit-learn": lambda: by_sklearn(n, a, b, win),
    }
    if importlib.util.find_spec("arena_rank"):
        frame = pandas.DataFrame({"model_a": a, "model_b": b, "winner": np.where(win, "model_a", "model_b")})
        contestants["arena-rank"] = lambda: by_arena(n, frame)
    compare(f"bradley-terry {n} items {m} votes", contestants, repeat=5)


def bench_bootstrap(quick: bool) -> None:
    n, m, rounds = (200, 50_000, 20) if quick else (1000, 1_000_000, 100)
    _, a, b, win = votes(n, m)
    c = Comparisons.from_battles(a, b, np.where(win, "a", "b"))
    names_a, names_b = np.array(a.tolist()), np.array(b.tolist())
    winners = np.array([evalica.Winner.X if w else evalica.Winner.Y for w in win], dtype=object)
    rng = np.random.default_rng(0)

    def one_round() -> None:
        k = rng.integers(0, m, m)
        evalica.bradley_terry(names_a[k].tolist(), names_b[k].tolist(), winners[k].tolist())

    time_part_of_peers(
        f"bootstrap {n} items {m} votes {rounds} rounds",
        lambda: consensus(c, "bradley-terry", bootstrap=rounds),
        {"evalica": (one_round, rounds)},
    )


def bench_full(quick: bool) -> None:
    n, m = (30, 100) if quick else (100, 1000)
    _, best = orders(n, m, n)
    data, lists = ballots(best, n, np.arange(n)), best.tolist()
    contestants = {
        "placet": lambda: consensus(data, stderr=None),
        "placet with standard errors": lambda: consensus(data),
        "choix": lambda: choix.ilsr_rankings(n, lists, alpha=1e-3),
    }
    compare(f"plackett-luce {m} full rankings of {n}", contestants, repeat=3)


def bench_top(quick: bool) -> None:
    n, m, share = (100, 500, 5) if quick else (1000, 10_000, 100)
    theta, best = orders(n, m, 10)
    data = ballots(best, n, np.arange(10)).completed()
    choices = []
    for top in best[: m // share].tolist():
        left = set(range(n))
        for item in top:
            left.remove(item)
            choices.append((item, tuple(left)))
    print("correlation with the truth:", round(float(np.corrcoef(consensus(data).scores, theta)[0, 1]), 4))
    time_part_of_peers(
        f"plackett-luce top 10 of {n} items {m} lists",
        lambda: consensus(data),
        {"choix": (lambda: choix.ilsr_top1(n, choices, alpha=1e-3, max_iter=1000), share)},
    )


def bench_ties(quick: bool) -> None:
    m = 1000 if quick else 100_000
    theta, best = orders(30, m, 30)
    data = ballots(best, 30, np.repeat([0, 1, 2], 10))
    alone(f"plackett-luce {m} ballots of 30 items in 3 tiers", lambda: consensus(data), theta)


def bench_sparse(quick: bool) -> None:
    n, m = (5000, 100_000) if quick else (100_000, 10_000_000)
    theta, a, b, win = votes(n, m)
    outcome = np.where(win, "a", "b")
    run = lambda: consensus(Comparisons.from_battles(a, b, outcome, items=range(n)), "bradley-terry")  # noqa: E731
    alone(f"bradley-terry {n} items {m} votes", run, theta)


def alone(name: str, run: Callable[[], object], theta: np.ndarray) -> None:
    """Time one run without peers; print seconds and the correlation with the truth."""
    start = time.perf_counter()
    result = run()
    seconds = time.perf_counter() - start
    print(f"{name}: {seconds:.1f} s, correlation {np.corrcoef(result.scores, theta)[0, 1]:.4f}, {result.fit.message}")


def time_part_of_peers(
    name: str, ours: Callable[[], object], peers: dict[str, tuple[Callable[[], object], int]]
) -> None:
    """Time our whole job against a part of each peer's, whose time is multiplied by the number of such parts."""
    ours()
    start = time.perf_counter()
    ours()
    own = time.perf_counter() - start
    print(f"{name}: placet {own:.2f} s")
    for who, (part, parts) in peers.items():
        start = time.perf_counter()
        part()
        seconds = (time.perf_counter() - start) * parts
        print(f"{name}: {who} {seconds:.1f} s (one part of {parts}, scaled), ratio {seconds / own:.1f}")


PARTS = {
    "votes": bench_votes,
    "bootstrap": bench_bootstrap,
    "full": bench_full,
    "top": bench_top,
    "ties": bench_ties,
    "sparse": bench_sparse,
}


if __name__ == "__main__":
    main(__doc__, PARTS)
