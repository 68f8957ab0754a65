"""Ratings: MovieLens 100K from its own file (u.data), or simulated ratings of the same shape; imputation; NDCG of users."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.common import need_data
from placet.data import Rankings


class Ratings(NamedTuple):
    """One row for each rating; codes from 0; ``title`` of every film."""

    user: np.ndarray
    film: np.ndarray
    stars: np.ndarray
    title: tuple[str, ...]

    def table(self, missing: float = np.nan) -> np.ndarray:
        """(users, films)."""
        out = np.full((int(self.user.max()) + 1, len(self.title)), missing)
        out[self.user, self.film] = self.stars
        return out

    def ballots(self) -> Rankings:
        """One ballot for each user; equal ratings tie, and the ratings are kept."""
        order = np.lexsort((-self.stars, self.user))
        offsets = np.concatenate([[0], np.cumsum(np.bincount(self.user))])
        tier = (self.stars.max() - self.stars[order]).astype(int)
        return Rankings(self.film[order], tier, offsets, items=self.title, score=self.stars[order])


def load(name: str) -> Ratings:
    """MovieLens 100K: u.data and u.item in the folder given, or for the name "MovieLens" in ml-100k among the data."""
    folder = Path(name) if Path(name).is_dir() else need_data("ml-100k")
    user, film, stars = np.loadtxt(folder / "u.data", usecols=(0, 1, 2), dtype=int).T
    lines = (folder / "u.item").read_text(encoding="latin-1").splitlines()
    title = tuple(f"{k}: {line.split('|')[1]}" for k, line in enumerate(lines, start=1))
    return Ratings(user - 1, film - 1, stars.astype(float), title)


def simulated(users: int, films: int, ratings: int, seed: int = 0) -> Ratings:
    """Few films have most ratings, and users rate what they like; stars 1 .. 5 from tastes in five dimensions."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=films)
    taste = rng.normal(size=(users, 5)) @ rng.normal(size=(5, films)) / 4
    interest = np.log(rng.pareto(0.8, films) + 0.01) + 0.4 * (quality + taste) + rng.gumbel(size=(users, films))
    busy = rng.pareto(1.0, (users, 1))
    score = interest + 0.5 * np.log(busy + 0.1)
    chosen = score >= np.sort(score, axis=None)[-ratings]
    first = np.argmax(score, axis=1)
    chosen[np.arange(users), first] = True
    user, film = np.nonzero(chosen)
    stars = np.clip(np.round(3.5 + 0.7 * (quality[film] + taste[user, film]) + 0.6 * rng.normal(size=len(user))), 1, 5)
    return Ratings(user, film, stars, tuple(f"film {k}" for k in range(films)))


def imputed(ratings: Ratings, rank: int = 10, ridge: float = 10.0, rounds: int = 15, seed: int = 0) -> np.ndarray:
    """Missing ratings by probabilistic matrix factorisation: mean + biases + U V', the mode by alternating least squares."""
    rng = np.random.default_rng(seed)
    table = ratings.table()
    known = ~np.isnan(table)
    mean = ratings.stars.mean()
    gap = np.where(known, table - mean, 0.0)
    U = np.hstack([np.ones((table.shape[0], 1)), 0.1 * rng.normal(size=(table.shape[0], rank + 1))])
    V = np.hstack(
        [np.zeros((table.shape[1], 1)), np.ones((table.shape[1], 1)), 0.1 * rng.normal(size=(table.shape[1], rank))]
    )
    for _ in range(rounds):
        _solve(U, V, gap, known, fixed=0, ridge=ridge)
        _solve(V, U, gap.T, known.T, fixed=1, ridge=ridge)
    return np.where(known, table, np.clip(mean + U @ V.T, 1, 5))


def _solve(A: np.ndarray, B: np.ndarray, gap: np.ndarray, known: np.ndarray, fixed: int, ridge: float) -> None:
    """Rows of A by ridge regression on the known entries; column ``fixed`` of A stays 1 and carries B's bias."""
    free = [k for k in range(A.shape[1]) if k != fixed]
    for i in range(len(A)):
        X = B[known[i]]
        y = gap[i, known[i]] - X[:, fixed]
        X = X[:, free]
        A[i, free] = np.linalg.solve(X.T @ X + ridge * np.eye(len(free)), X.T @ y)


def ndcg_of_users(scores: np.ndarray, table: np.ndarray, most: int = 10) -> np.ndarray:
    """Percent of NDCG@1 .. ``most`` of one order for all users: gain 2^rating - 1, discount 1 / log(1 + place)."""
    order = np.argsort(-scores, kind="stable")[:most]
    discount = 1 / np.log2(np.arange(2, most + 2))
    gain = 2.0**table - 1
    ours = np.cumsum(gain[:, order] * discount, axis=1)
    best = np.cumsum(-np.sort(-gain, axis=1)[:, :most] * discount, axis=1)
    return 100 * (ours / best).mean(axis=0)
