"""Ballots with ties drawn from models over ordered partitions, exactly, without a Markov chain."""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from placet.data import Rankings
from placet.data.errors import one_of
from placet.kernels.losses import pmop_exact, pmop_sampling
from placet.simulate.orders import Seed, chunks, finite_column, join_chunks, names


def ordered_partitions(
    theta: ArrayLike,
    n_ballots: int,
    *,
    form: str = "fd",
    items: Sequence[Hashable] | None = None,
    random_state: Seed = 0,
) -> Rankings:
    """Ballots of all items: the first tier is a subset S of them, the next a subset of the rest, until none is left.

    ``form`` "fd": P(S) ~ mean of e^theta over S.  Its size m has weight binom(N, m); one item is drawn with weight
    e^theta, the others uniformly.  O(n_items tiers) for each ballot.
    ``form`` "exact": P(S) ~ e^{mean of theta over S}.  The weight of its size is an elementary symmetric polynomial,
    whose recurrence, traced backward, gives the items.  O(n_items^3 tiers) for each ballot.

    Returns
    -------
    Rankings
        The ballots.

    >>> ordered_partitions([3.0, 0.0, -3.0], 3, items="abc", random_state=1).orders()
    [[('a', 'b'), 'c'], [('a', 'c'), 'b'], ['a', 'b', 'c']]
    """
    theta = finite_column(theta, "theta")
    one_of(form, ("fd", "exact"), "form")
    n_items = len(theta)
    if form == "exact" and n_items > pmop_exact.MOST_ROWS:
        raise ValueError(f"form 'exact' takes at most {pmop_exact.MOST_ROWS} items, not {n_items}; form 'fd' takes any")
    rng = np.random.default_rng(random_state)
    parts = []
    for n in chunks(n_ballots, 2 * n_items):
        tier = np.empty((n, n_items), np.int64)
        pmop_sampling.draw_partitions(theta, rng.random((n, 2 * n_items)), form == "exact", tier)
        parts.append(tier.ravel())
    item = np.tile(np.arange(n_items), n_ballots)
    return Rankings(item, join_chunks(parts), n_items * np.arange(n_ballots + 1), items=names(items, n_items))
