"""Small, tied, partial, weighted lists and ballots: what losses, rules and models must be right on."""

import numpy as np
from hypothesis import strategies as st

from placet.data import Lists, Rankings

WEIGHTS = st.sampled_from([0.25, 0.5, 1.0, 1.0, 2.0, 3.0])


@st.composite
def lists_and_scores(draw, max_lists=3, max_rows=6, tied=True, spread=3.0):
    """``(s, Lists)``: up to ``max_lists`` lists of 0 to ``max_rows`` rows in no order, four grades (or distinct ones), weights."""
    sizes = draw(st.lists(st.integers(0, max_rows), min_size=1, max_size=max_lists))
    grade: list[float] = []
    for n in sizes:
        if tied:
            grade += draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
        else:
            grade += draw(st.permutations(range(n)))
    n_rows = sum(sizes)
    score = st.floats(-spread, spread, allow_subnormal=False).map(lambda x: round(x, 3))
    s = np.array(draw(st.lists(score, min_size=n_rows, max_size=n_rows)), dtype=float)
    weight = np.array(draw(st.lists(WEIGHTS, min_size=len(sizes), max_size=len(sizes))), dtype=float)
    return s, Lists(np.array(grade, dtype=float), np.concatenate([[0], np.cumsum(sizes)]), weight)


@st.composite
def ballots(draw, max_items=5, complete=False, min_ballots=1):
    """Ballots over up to 5 items: ties, absences, an empty ballot now and then, weights; scores that agree with tiers."""
    n = draw(st.integers(1, max_items))
    item, tier, score, sizes = [], [], [], []
    for _ in range(draw(st.integers(min_ballots, 5))):
        order = draw(st.permutations(range(n)))
        m = n if complete else draw(st.integers(0, n))
        tiers = np.cumsum([0, *draw(st.lists(st.integers(0, 1), min_size=max(m - 1, 0), max_size=max(m - 1, 0)))])[:m]
        item += order[:m]
        tier += tiers.tolist()
        score += (-2.0 * tiers).tolist()
        sizes.append(m)
    weight = draw(st.lists(st.sampled_from([0.5, 1.0, 2.0, 3.0]), min_size=len(sizes), max_size=len(sizes)))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Rankings(
        np.array(item, int),
        np.array(tier, int),
        offsets,
        weight,
        items=tuple("abcdef"[:n]),
        score=np.array(score, float),
    )
