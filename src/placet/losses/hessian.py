"""How a kernel of second derivatives meets its lists: the vector takes the same order as the scores."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from placet.data import Lists
from placet.kernels import ranges
from placet.losses.apply import Array, checked, over_lists


def product(kernel: Callable[..., float], s: ArrayLike, lists: Lists, v: ArrayLike, *args: object) -> Array:
    """Hessian times ``v`` (rows,), from ``kernel(s, grade, offsets, weight, out, v, *args)``, whose value is unused."""
    s, lists = checked(s, lists)
    grade, offsets, weight = np.asarray(lists.grade), np.asarray(lists.offsets), lists.weight
    v = np.ascontiguousarray(v, dtype=np.float64)
    if v.shape != s.shape:
        raise ValueError(f"the vector has shape {v.shape} and the scores {s.shape}; both must be (rows,)")
    if ranges.is_descending(grade, offsets):
        return over_lists(kernel, s, Lists(grade, offsets, weight), v, *args)[1]
    order = ranges.descending_order(grade, offsets)
    out = np.empty_like(s)
    out[order] = over_lists(kernel, s[order], Lists(grade[order], offsets, weight), v[order], *args)[1]
    return out
