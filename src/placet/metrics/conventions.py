"""Gains, discounts, and how other packages differ."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Curve = Callable[[NDArray[np.float64]], NDArray[np.float64]]

GAINS: dict[str, Curve] = {
    "exp2": lambda r: np.exp2(r) - 1.0,
    "linear": lambda r: r,
    "log": lambda r: np.log2(1.0 + r),
}
"""Gain of a grade r: 2^r - 1, r, log2(1 + r)."""

DISCOUNTS: dict[str, Curve] = {
    "log2": lambda i: 1.0 / np.log2(1.0 + i),
    "letor": lambda i: 1.0 / np.maximum(1.0, np.log2(i)),
    "reciprocal": lambda i: 1.0 / i,
    "none": lambda i: np.ones_like(i),
}
"""Discount of place i = 1, 2, ...: 1/log2(1 + i); 1, 1, 1/log2(3), ...; 1/i; 1."""


@dataclass(frozen=True)
class Convention:
    """What a package does where definitions differ.

    ``ties``: see ``rank``.  ``empty``: value of a list with nothing relevant.  ``threshold``: least relevant grade,
    None for grade > 0.  ``defines``: the metrics it has.
    """

    ties: str = "mean"
    gain: str = "exp2"
    discount: str = "log2"
    empty: float = float("nan")
    threshold: float | None = None
    defines: tuple[str, ...] = ()


OURS = Convention()

CONVENTIONS: dict[str, Convention] = {
    "lightgbm": Convention("input", empty=1.0, defines=("ndcg", "average_precision")),
    "xgboost": Convention("input32", empty=1.0, defines=("ndcg", "average_precision", "precision")),
    "trec_eval": Convention(
        "name",
        gain="linear",
        empty=0.0,
        threshold=1.0,
        defines=("ndcg", "average_precision", "precision", "recall", "mrr"),
    ),
    "sklearn": Convention("mean", gain="linear", empty=0.0, defines=("ndcg", "average_precision")),
    "letor": Convention("input", discount="letor", empty=0.0, defines=("ndcg", "average_precision", "precision")),
}


def convention(compat: str | None, metric: str) -> Convention:
    """The convention of a package for a metric, or a ``ValueError`` that names what there is."""
    if compat is None:
        return OURS
    if compat not in CONVENTIONS:
        raise ValueError(f"compat {compat!r} is unknown; choose from {list(CONVENTIONS)} or None")
    found = CONVENTIONS[compat]
    if metric not in found.defines:
        raise ValueError(f"compat {compat!r} does not define {metric}; it defines {list(found.defines)}")
    return found


def curve(table: dict[str, Curve], choice: str | Curve, what: str) -> Curve:
    """A gain or discount by name, or the function itself."""
    if callable(choice):
        return choice
    if choice not in table:
        raise ValueError(f"{what} {choice!r} is unknown; choose from {list(table)} or pass a function")
    return table[choice]


def discounts(choice: str | Curve, places: int) -> NDArray[np.float64]:
    """Discounts of places 1 .. ``places``."""
    d = np.asarray(curve(DISCOUNTS, choice, "discount")(np.arange(1, places + 1, dtype=np.float64)), dtype=np.float64)
    if d.shape != (places,) or not np.isfinite(d).all():
        raise ValueError(
            f"the discount must give one finite number per place; for {places} places it gave shape {d.shape}: {d}"
        )
    return d
