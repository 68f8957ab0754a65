"""Simulated clicks on ranked lists of graded queries."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.data import Queries
from placet.data.arrays import Floats, Ints, offsets_from_sizes
from placet.data.clicks import Clicks


def clicks(
    queries: Queries,
    score: ArrayLike,
    n_sessions: int = 10,
    *,
    shown: int = 10,
    eta: float = 1.0,
    noise: float = 0.1,
    trust: float = 0.0,
    one_click: bool = False,
    random_state: int | np.random.Generator = 0,
) -> Clicks:
    """Position-based clicks on the ``shown`` rows with the highest ``score``, in ``n_sessions`` sessions per query.

    The row at position k is examined with probability k^-eta and, if so, clicked with probability noise + (1 - noise)
    (2^grade - 1) / (2^highest grade - 1).  ``trust`` raises the noise at position k to noise + (1 - noise) trust / k:
    users click high positions even when they see that the document is irrelevant.  Rows are clicked independently or,
    with ``one_click``, one row of each session is chosen, in proportion to these probabilities.  Documents are named by
    their row in ``queries``.

    Returns
    -------
    Clicks
        The log: a row per document shown.

    >>> import placet
    >>> data = placet.simulate.queries(3, 5, 2, random_state=0)
    >>> log = clicks(data, data.X[:, 0], 100)
    >>> len(log), bool(log.clicked[log.position == 1].mean() > log.clicked[log.position == 5].mean())
    (300, True)
    """
    rng = np.random.default_rng(random_state)
    s = np.asarray(score, dtype=np.float64)
    if s.shape != queries.grade.shape:
        raise ValueError(f"score has shape {s.shape}; the queries have {len(queries.grade)} rows")
    if n_sessions < 1 or shown < 1 or not 0 <= noise <= 1 or not 0 <= trust <= 1:
        raise ValueError(
            f"n_sessions {n_sessions} and shown {shown} must be at least 1, noise {noise} and trust {trust} in [0, 1]"
        )
    top = max(float(2.0 ** queries.grade.max(initial=0.0)) - 1.0, 1.0)
    relevance = (np.exp2(queries.grade) - 1.0) / top
    rows, places, sizes, of = [], [], [], []
    for q, (a, b) in enumerate(zip(queries.offsets[:-1], queries.offsets[1:])):
        order = a + np.argsort(-s[a:b], kind="stable")[:shown]
        if len(order):
            rows.append(np.tile(order, n_sessions))
            places.append(np.tile(np.arange(1, len(order) + 1), n_sessions))
            sizes.append(np.full(n_sessions, len(order)))
            of.append(np.full(n_sessions, q))
    row, place, size, query = (np.concatenate([np.zeros(0, np.int64), *part]) for part in (rows, places, sizes, of))
    by_mistake = noise + (1.0 - noise) * trust / np.maximum(place, 1)
    liked = by_mistake + (1.0 - by_mistake) * relevance[row]
    chance = place.astype(np.float64) ** -eta * liked
    offsets = offsets_from_sizes(size)
    clicked = _choose(chance, offsets, rng) if one_click else rng.random(len(row)) < chance
    names = tuple(range(len(queries.grade)))
    return Clicks(query, row, place, clicked, offsets, queries.qid, names)


def _choose(chance: Floats, offsets: Ints, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Mark one row of each list, drawn in proportion to ``chance`` (rows,), or none where all chances are 0."""
    upto = np.concatenate([[0.0], np.cumsum(chance)])
    low, high = upto[offsets[:-1]], upto[offsets[1:]]
    drawn = np.searchsorted(upto, low + (high - low) * rng.random(len(low)), side="right") - 1
    clicked = np.zeros(len(chance), bool)
    clicked[np.minimum(drawn, offsets[1:] - 1)[high > low]] = True
    return clicked
