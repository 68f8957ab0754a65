"""Cross-entropy of two softmax laws over a list: the labels' and the scores'.  Here the values of the grades count."""

from numpy.typing import ArrayLike

from placet.data import Lists
from placet.data.arrays import Floats
from placet.kernels import softmax as kernels
from placet.losses.apply import over_lists


def attrank(s: ArrayLike, lists: Lists) -> tuple[float, Floats]:
    """AttRank, also ListNet (top one): - sum_i softmax(grade)_i log softmax(s)_i.  O(rows).

    Gradient: softmax(s) - softmax(grade).
    """
    return over_lists(kernels.attrank, s, lists)


def attrank_curvature(s: ArrayLike, lists: Lists) -> Floats:
    """Diagonal of the Hessian: p (1 - p), p = softmax(s)."""
    return over_lists(kernels.attrank_curvature, s, lists)[1]


def attrank_hvp(s: ArrayLike, lists: Lists, v: ArrayLike) -> Floats:
    """Hessian times ``v``: p (v - p.v), p = softmax(s)."""
    return over_lists(kernels.attrank_hvp, s, lists, rows=[v])[1]
