"""Controls of rows: numbers that may have moved the grades, fitted beside the features and held at 0 in scores."""

from typing import Any

from placet.data import Parts
from placet.data.arrays import Floats
from placet.data.comparisons import control_columns

Controls = tuple[Floats, tuple[str, ...]]
"""A table (rows, controls), its rows as those of the queries, and the names of its columns."""


def control_rows(control: Any, data: Any, in_order: bool) -> Controls | None:
    """The controls of the rows of queries, checked; ``in_order``: they come as the rows stand in the queries.

    Otherwise they come in the order of the rows that the queries were made from.
    """
    if isinstance(data, Parts) and control is not None:
        raise ValueError(
            "control is a table beside all rows and does not work on parts; load them (parts.load()) where they fit"
        )
    values, names = (None, None) if control is None else control_columns(control, None, len(data.grade))
    if values is None or names is None:
        return None
    return (values if in_order else values[data.row]), names
