"""Controls: covariates of a vote or row that may have influenced it.

The difference of two scores is theta_i - theta_j + z . gamma, where z are the controls of the vote: how much longer the
answer of i was, or 1 if it was shown first or played at home.  Items are ranked at z = 0.
"""

from placet.data import Comparisons, DataError, Rankings

ORDER = "order"
"""The name of the control that is 1 for the item that came first."""


def control_names(data: Comparisons, order: bool) -> tuple[str, ...]:
    """The names of the controls of ``data``, followed by that of the order effect if ``order``."""
    names = data.controls or ()
    if order and ORDER in names:
        raise DataError(f"a control is called {ORDER!r}, as the effect of coming first is; rename it")
    return (*names, ORDER) if order else names


def refuse_row_controls(data: Rankings | Comparisons, method: str) -> None:
    """Raise ``DataError`` if ballots have row controls, which a model of pairs cannot use."""
    if isinstance(data, Rankings) and getattr(data, "control", None) is not None:
        raise DataError(f"{method!r} counts the pairs of ballots, which have no controls of rows; use 'plackett-luce'")
