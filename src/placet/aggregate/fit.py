"""How an optimum was found."""

from typing import Any, NamedTuple


class Fit(NamedTuple):
    """Where the optimiser stopped and why."""

    x: Any
    value: float
    grad_norm: float
    n_iter: int
    converged: bool
    message: str
