"""Simulated graded queries with features, and sparse ratings."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from placet.data import Queries, Rankings
from placet.data.arrays import Floats, offsets_from_sizes
from placet.simulate.orders import Seed, chunks, finite_column, join_chunks

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def queries(
    n_queries: int,
    n_rows: int | tuple[int, int],
    n_features: int,
    grades: int | Sequence[float] = 5,
    *,
    w: ArrayLike | None = None,
    noise: float = 1.0,
    density: float | None = None,
    random_state: Seed = 0,
) -> Queries:
    """Queries whose rows are graded by X w + noise: normal features, a linear truth, and few grades, hence many ties.

    ``n_rows``: rows per query, or a range to draw from.  ``grades``: their number, each half as common as the one
    below, or the share of each from 0 up.  ``w``: the true weights, by default random with norm about 1; ``noise``: its
    standard deviation.  ``density``: the share of nonzero features (X is then a CSR matrix).

    Returns
    -------
    Queries
        The rows with features and grades.

    >>> queries(3, 10, 4)
    Queries(3 queries, 30 rows, 4 features)
    """
    low, high = n_rows if isinstance(n_rows, tuple) else (n_rows, n_rows)
    if n_queries < 1 or n_features < 1 or not 1 <= low <= high:
        raise ValueError(f"queries need at least one query, row and feature, not {n_queries}, {n_rows}, {n_features}")
    share = (
        0.5 ** np.arange(1, grades + 1) if isinstance(grades, (int, np.integer)) else finite_column(grades, "grades")
    )
    if not len(share) or (share < 0).any() or share.sum() <= 0:
        raise ValueError(f"grades {grades} must be a number >= 1, or shares >= 0 that are not all 0")
    rng = np.random.default_rng(random_state)
    size = rng.integers(low, high + 1, n_queries)
    n = int(size.sum())
    truth = rng.normal(size=n_features) / np.sqrt(n_features) if w is None else finite_column(w, "w")
    if truth.shape != (n_features,):
        raise ValueError(f"w has {len(truth)} entries; there are {n_features} features")
    X = rng.normal(size=(n, n_features)) if density is None else _sparse(n, n_features, density, rng)
    latent = X @ truth + noise * rng.normal(size=n)
    bounds = np.quantile(latent, np.cumsum(share / share.sum())[:-1])
    return Queries(X, np.searchsorted(bounds, latent, side="right").astype(np.float64), offsets_from_sizes(size))


def _sparse(n: int, n_features: int, density: float, rng: np.random.Generator) -> "csr_matrix":
    """CSR matrix whose entries are nonzero with probability ``density``, and then normal."""
    from scipy.sparse import csr_matrix

    if not 0 < density <= 1:
        raise ValueError(f"density must lie above 0 and not above 1, not {density}")
    per_row = rng.binomial(n_features, density, n)
    columns = [np.sort(rng.choice(n_features, k, replace=False)) for k in per_row]
    index = join_chunks(columns)
    return csr_matrix((rng.normal(size=len(index)), index, offsets_from_sizes(per_row)), shape=(n, n_features))


def ratings(
    n_users: int,
    n_items: int,
    *,
    observed: float = 0.05,
    levels: int = 5,
    theta: ArrayLike | None = None,
    bias: float = 0.5,
    noise: float = 1.0,
    popularity: float = 1.0,
    random_state: Seed = 0,
) -> Rankings:
    """Ratings 1..``levels`` of the items each user has seen; equal ratings tie, unseen items are absent.

    A rating is the middle of the scale + theta_item + a user's bias + noise, rounded and clipped to the scale; ``bias``
    and ``noise`` are standard deviations.  A user sees 1 + Poisson items, about the share ``observed`` of all, drawn
    without replacement with weight k^-``popularity`` (k an item's place in a random order: few items are seen by most).
    Users are the agents, ratings the scores.

    Returns
    -------
    Rankings
        A ballot per user, with the ratings as its scores.

    >>> ratings(50, 100)
    Rankings(50 ballots, 100 items, 267 rows)
    """
    if n_users < 0 or n_items < 1 or levels < 1:
        raise ValueError(f"ratings need items and levels, not {n_users} users, {n_items} items, {levels} levels")
    if not 0 < observed <= 1:
        raise ValueError(f"observed must lie above 0 and not above 1, not {observed}")
    rng = np.random.default_rng(random_state)
    quality = rng.normal(size=n_items) if theta is None else finite_column(theta, "theta")
    if quality.shape != (n_items,):
        raise ValueError(f"theta has {len(quality)} entries; there are {n_items} items")
    log_weight: Floats = -popularity * np.log(1.0 + rng.permutation(n_items))
    item, sizes = [], []
    for n in chunks(n_users, n_items):
        seen = np.minimum(1 + rng.poisson(max(observed * n_items - 1, 0.0), n), n_items)
        order = np.argsort(-(log_weight + rng.gumbel(size=(n, n_items))), axis=1, kind="stable")
        item.append(order[np.arange(n_items) < seen[:, None]])
        sizes.append(seen)
    size, what = join_chunks(sizes), join_chunks(item)
    user = np.repeat(np.arange(n_users), size)
    exact = (
        (levels + 1) / 2 + quality[what] + bias * rng.normal(size=n_users)[user] + noise * rng.normal(size=len(what))
    )
    score = np.clip(np.rint(exact), 1, levels)
    tier = (levels - score).astype(np.int64)
    return Rankings(
        what, tier, offsets_from_sizes(size), agent=np.arange(n_users), items=tuple(range(n_items)), score=score
    )
