"""Monotonicity constraints: how the score may change with each feature."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from placet.data.arrays import Ints
from placet.data.errors import one_of


def directions(monotone: Mapping[str, int] | Sequence[int] | None, names: Sequence[Any] | None, n: int) -> Ints:
    """(features,) 1, -1 or 0: whether the score may only rise, only fall, or do either, with each feature.

    ``monotone`` lists all directions, or maps feature names (or column numbers, as text) to those that are not 0.
    """
    out = np.zeros(n, np.int64)
    if isinstance(monotone, Mapping):
        columns = {str(name): k for k, name in enumerate(range(n) if names is None else names)}
        for name, sign in monotone.items():
            one_of(str(name), columns, "monotone feature")
            out[columns[str(name)]] = sign
    elif monotone is not None:
        if len(monotone) != n:
            raise ValueError(f"monotone has {len(monotone)} entries; there are {n} features")
        out[:] = monotone
    wrong = [value for value in out.tolist() if value not in (-1, 0, 1)]
    if wrong:
        raise ValueError(f"monotone holds {wrong[0]}; give 1 (rising), -1 (falling) or 0 for each feature")
    return out
