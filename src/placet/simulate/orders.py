"""Ballots drawn from the Plackett-Luce and Mallows models.  The same seed gives the same bytes."""

from collections.abc import Hashable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.data import Rankings
from placet.data.arrays import Floats, Ints, encode, offsets_from_sizes, refuse_masked_or_complex

Seed = int | np.random.Generator

# Random numbers are drawn for this many (ballot, item) pairs at once; changing it changes every draw.
CELLS = 1 << 21


def plackett_luce(
    theta: ArrayLike,
    n_ballots: int,
    top: int | None = None,
    partition: int | Sequence[int] | None = None,
    *,
    subset: int | tuple[int, int] | None = None,
    at_most: int = 500,
    unlisted: Literal["last", "absent"] = "last",
    items: Sequence[Hashable] | None = None,
    random_state: Seed = 0,
) -> Rankings:
    """Ballots of P(order) = prod_k e^theta_k / sum_{l >= k} e^theta_l: items sorted by theta + Gumbel noise.

    ``top`` keeps the order of the first ``top`` items; the others share the last tier, or are omitted with
    ``unlisted="absent"``.  ``partition`` drops the order within tiers: a number M cuts each ballot into M tiers at
    M - 1 places drawn from its first ``at_most``; a sequence gives the sizes of all tiers but the last.  ``subset`` is
    the number of items ranked on each ballot, drawn uniformly; a pair is a range of numbers.
    O(n_ballots n_items log n_items).

    Returns
    -------
    Rankings
        The ballots.

    >>> plackett_luce([2.0, 0.0, -2.0], 2, items="abc", random_state=1).orders()
    [['a', 'c', 'b'], ['b', 'a', 'c']]
    """
    theta = finite_column(theta, "theta")
    n_items = len(theta)
    low, high = _subset_sizes(subset, n_items)
    if top is not None and partition is not None:
        raise ValueError(f"give top ({top}) or partition ({partition}), not both")
    if top is not None and top < 1:
        raise ValueError(f"top must be at least 1, not {top}")
    rng = np.random.default_rng(random_state)
    item, tier, sizes = [], [], []
    for n in chunks(n_ballots, n_items):
        size = np.full(n, high) if low == high else rng.integers(low, high + 1, n)
        order = _gumbel_orders(theta, size, rng)
        place = np.broadcast_to(np.arange(order.shape[1]), order.shape)
        kept = place < size[:, None]
        if top is not None:
            if unlisted == "absent":
                kept = kept & (place < top)
            place = np.minimum(place, top)
        elif partition is not None:
            place = (place[:, :, None] >= _cuts(partition, size, at_most, rng)[:, None, :]).sum(axis=2)
        item.append(order[kept])
        tier.append(place[kept])
        sizes.append(kept.sum(axis=1))
    return Rankings(
        join_chunks(item), join_chunks(tier), offsets_from_sizes(join_chunks(sizes)), items=names(items, n_items)
    )


def best_worst(
    theta: ArrayLike,
    n_answers: int,
    shown: int = 5,
    *,
    items: Sequence[Hashable] | None = None,
    random_state: Seed = 0,
) -> Rankings:
    """Answers to best-worst questions (MaxDiff): of ``shown`` random items, the first and the last of a Plackett-Luce
    order; the others are tied between them.

    Returns
    -------
    Rankings
        A ballot of three tiers for each answer.

    >>> best_worst([2.0, 0.0, -2.0, 1.0], 2, 3, items="abcd", random_state=1).orders()
    [['a', 'd', 'b'], ['a', 'd', 'c']]
    """
    if shown < 2:
        raise ValueError(f"shown must be at least 2, not {shown}; a question compares items")
    tiers = [1] * (shown - 1) if shown < 4 else [1, shown - 2]
    return plackett_luce(theta, n_answers, partition=tiers, subset=shown, items=items, random_state=random_state)


def _subset_sizes(subset: int | tuple[int, int] | None, n_items: int) -> tuple[int, int]:
    low, high = (n_items, n_items) if subset is None else subset if isinstance(subset, tuple) else (subset, subset)
    if not 1 <= low <= high <= n_items:
        raise ValueError(f"subset {subset} must lie between 1 and the number of items, {n_items}")
    return low, high


def _gumbel_orders(theta: Floats, size: Ints, rng: np.random.Generator) -> Ints:
    """(ballots, largest size): ``size`` random items of each ballot, best first; entries after them are arbitrary."""
    key = theta + rng.gumbel(size=(len(size), len(theta)))
    if (size < len(theta)).any():
        chosen_first = np.argsort(rng.random(key.shape), axis=1)
        out = np.arange(len(theta)) >= size[:, None]
        np.put_along_axis(key, chosen_first, np.where(out, -np.inf, np.take_along_axis(key, chosen_first, 1)), 1)
    return np.argsort(-key, axis=1, kind="stable")[:, : int(size.max(initial=0))]


def _cuts(partition: int | Sequence[int], size: Ints, at_most: int, rng: np.random.Generator) -> Ints:
    """(ballots, tiers - 1): where tiers start, cumulative sums of given sizes or distinct random places (Floyd)."""
    if not isinstance(partition, (int, np.integer)):
        given = np.asarray(partition, np.int64)
        if given.ndim != 1 or (given < 1).any():
            raise ValueError(f"partition {partition} must hold sizes of at least 1")
        return np.broadcast_to(np.cumsum(given), (len(size), len(given)))
    last = np.minimum(size - 1, at_most)
    n_cuts = int(partition) - 1
    if n_cuts < 0 or (last < n_cuts).any():
        raise ValueError(f"partition {partition} needs from 1 to {int(last.min()) + 1} tiers for the smallest ballot")
    cuts = np.zeros((len(size), n_cuts), np.int64)
    for k in range(n_cuts):
        newest = last - n_cuts + k + 1
        draw = rng.integers(1, newest + 1)
        taken = (cuts[:, :k] == draw[:, None]).any(axis=1)
        cuts[:, k] = np.where(taken, newest, draw)
    return cuts


def mallows(
    center: Sequence[Hashable] | NDArray[np.int64],
    phi: float,
    n_ballots: int,
    *,
    items: Sequence[Hashable] | None = None,
    random_state: Seed = 0,
) -> Rankings:
    """Full orders with P(order) proportional to phi^d, d the number of pairs ordered against ``center`` (best first).

    0 <= phi <= 1: at 0 every ballot is the center, at 1 all orders are equally likely.  Repeated insertion: the k-th
    item of the center is put d places before the end with probability proportional to phi^d.  O(n_ballots n_items^2).

    Returns
    -------
    Rankings
        The ballots.

    >>> mallows("abc", 0.0, 2).orders()
    [['a', 'b', 'c'], ['a', 'b', 'c']]
    """
    return mallows_mixture([list(center)], phi, n_ballots, items=items, random_state=random_state)


def mallows_mixture(
    centers: Sequence[Sequence[Hashable]] | NDArray[np.int64],
    phi: float | Sequence[float],
    n_ballots: int,
    *,
    share: Sequence[float] | None = None,
    items: Sequence[Hashable] | None = None,
    random_state: Seed = 0,
) -> Rankings:
    """Ballots from several Mallows models, each chosen with probability ``share`` (equal by default).

    ``phi`` is one number, or one for each center.  See ``mallows``.

    Returns
    -------
    Rankings
        The ballots.

    >>> mallows_mixture(["abc", "cba"], 0.0, 4, random_state=2).orders()
    [['a', 'b', 'c'], ['a', 'b', 'c'], ['c', 'b', 'a'], ['a', 'b', 'c']]
    """
    codes, item_names = _centers(centers, items)
    n_centers, n_items = codes.shape
    dispersion = np.broadcast_to(np.asarray(phi, np.float64), (n_centers,))
    if not ((dispersion >= 0) & (dispersion <= 1)).all():
        raise ValueError(f"phi {phi} must lie between 0 (every ballot the center) and 1 (all orders equally likely)")
    weights = np.full(n_centers, 1 / n_centers) if share is None else finite_column(share, "share")
    if weights.shape != (n_centers,) or (weights < 0).any() or abs(weights.sum() - 1) > 1e-9:
        raise ValueError(f"share {weights.tolist()} must be {n_centers} numbers >= 0 that sum to 1")
    rng = np.random.default_rng(random_state)
    item, tier = [], []
    for n in chunks(n_ballots, n_items):
        component = rng.choice(n_centers, n, p=weights)
        item.append(codes[component].ravel())
        tier.append(_insertion_places(dispersion[component], n_items, rng).ravel())
    return Rankings(join_chunks(item), join_chunks(tier), n_items * np.arange(n_ballots + 1), items=item_names)


def _centers(
    centers: Sequence[Sequence[Hashable]] | NDArray[np.int64], items: Sequence[Hashable] | None
) -> tuple[Ints, tuple[Hashable, ...]]:
    """(centers, n_items) codes, and names: 0..n-1 if the centers are such numbers, else those of the first center."""
    orders = [list(center) for center in centers]
    if not orders:
        raise ValueError("a mixture needs at least one center")
    if items is None and sorted(orders[0], key=str) == sorted(range(len(orders[0])), key=str):
        items = range(len(orders[0]))
    codes, known = [], tuple(orders[0] if items is None else items)
    for order in orders:
        code, known = encode(order, "item", known)
        if len(code) != len(known) or len(np.unique(code)) != len(known):
            raise ValueError(f"center {order} must name each of the {len(known)} items once")
        codes.append(code)
    return np.array(codes), known


def _insertion_places(phi: Floats, n_items: int, rng: np.random.Generator) -> Ints:
    """(ballots, n_items): the place of the center's k-th item, by repeated insertion with truncated geometric steps."""
    place = np.zeros((len(phi), n_items), np.int64)
    uniform = rng.random((len(phi), n_items))
    inside = (phi > 0) & (phi < 1)
    log_phi = np.log(np.where(inside, phi, 0.5))
    for k in range(1, n_items):
        u = uniform[:, k]
        geometric = np.log1p(u * np.expm1((k + 1) * log_phi)) / log_phi
        back = np.where(inside, geometric, np.where(phi > 0, u * (k + 1), 0.0)).astype(np.int64)
        at = k - np.minimum(back, k)
        place[:, :k] += place[:, :k] >= at[:, None]
        place[:, k] = at
    return place


def chunks(n_ballots: int, n_items: int) -> list[int]:
    """Numbers of ballots in each chunk of draws."""
    if n_ballots < 0:
        raise ValueError(f"the number of ballots must not be negative, not {n_ballots}")
    step = max(1, CELLS // max(n_items, 1))
    return [min(step, n_ballots - start) for start in range(0, n_ballots, step)]


def join_chunks(chunks: list[Ints]) -> Ints:
    """Concatenate the chunks; no chunks give an empty array."""
    return np.concatenate(chunks) if chunks else np.zeros(0, np.int64)


def finite_column(values: ArrayLike, what: str) -> Floats:
    """``values`` as a nonempty array (n,) of finite floats, or a ``ValueError``."""
    refuse_masked_or_complex(values)
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array) or not np.isfinite(array).all():
        raise ValueError(
            f"{what} must be one or more finite numbers in one dimension, not shape {array.shape}: {array}"
        )
    return array


def names(given: Sequence[Hashable] | None, n: int) -> tuple[Hashable, ...]:
    """The given names, by default 0, 1, ..., n - 1."""
    result = tuple(range(n) if given is None else given)
    if len(result) != n:
        raise ValueError(f"{len(result)} names for {n} items")
    return result
