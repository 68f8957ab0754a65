"""The columns of a choice model, and whether the choices determine their coefficients."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from placet.data import DataError, Queries
from placet.data.arrays import Floats, list_of_rows
from placet.io.surveys.choice_tables import ChoiceTable

REPEATS = 1e-7
"""A column repeats others if this is all that is left of it, relative to its size, after subtracting them."""

MOST_DIFFERENCES = 200_000
"""Most differences between chosen and other alternatives in the search for columns that separate them."""


def design(table: ChoiceTable, constants: bool | None, base: str | None) -> Queries:
    """The rows of a choice model: constants of alternatives, attributes, and case variables for each alternative.

    ``base`` (default: the first) is the alternative without a constant and without case variables, with which the
    others are compared.  ``constants`` by default if alternatives have names that are not numbers.
    """
    query = list_of_rows(table.offsets)
    with_constants = any(not name.isdigit() for name in table.alternatives) if constants is None else constants
    if (with_constants or table.case or base is not None) and table.alternative is None:
        raise DataError(
            "constants and case variables act on each alternative, and no column names the alternatives; name it with "
            "alternative="
        )
    others: Sequence[int] = ()
    if with_constants or table.case:
        first = table.alternatives[0] if base is None else base
        if first not in table.alternatives:
            raise ValueError(f"base {first!r} is not an alternative; they are {list(table.alternatives)}")
        others = [k for k, name in enumerate(table.alternatives) if name != first]
    columns: dict[str, Floats] = {}
    for k in others if with_constants else ():
        columns[f"constant:{table.alternatives[k]}"] = np.where(table.alternative == k, 1.0, 0.0)
    columns |= table.attributes
    for name, values in table.case.items():
        for k in others:
            columns[f"{name}:{table.alternatives[k]}"] = np.where(table.alternative == k, values[query], 0.0)
    if not columns:
        raise DataError(
            "nothing to explain the choices by: no number differs between the alternatives; name attributes=, case= "
            "or constants=True"
        )
    rows = Queries(
        np.column_stack(list(columns.values())), table.chosen.astype(np.float64), table.offsets, table.weight,
        features=tuple(columns), notes=table.notes,
    )  # fmt: skip
    refuse_never_chosen(table, with_constants or bool(table.case))
    refuse_repeats(rows)
    return rows


def refuse_never_chosen(table: ChoiceTable, has_own_columns: bool) -> None:
    """Raise if an alternative with coefficients of its own was never chosen: they would be minus infinity."""
    if not has_own_columns or table.alternative is None:
        return
    counts = np.bincount(table.alternative[table.chosen], minlength=len(table.alternatives))
    never = [name for name, count in zip(table.alternatives, counts) if not count]
    if never:
        raise DataError(
            f"alternative {never[0]!r} was never chosen ({len(never)} such), so its constant has no finite value; "
            "leave its rows out, or fit without constants (constants=False) and case variables"
        )


def within(rows: Queries) -> Floats:
    """The columns minus their means over the alternatives of each choice, which is all that a choice depends on."""
    sums = np.add.reduceat(rows.X, rows.offsets[:-1], axis=0)
    return np.asarray(rows.X - (sums / np.diff(rows.offsets)[:, None])[rows.query])


def refuse_repeats(rows: Queries) -> None:
    """Raise a ``DataError`` that names the columns if one is constant within choices, or a combination of others."""
    assert rows.features is not None
    X, size = within(rows), np.abs(rows.X).max(axis=0)
    names = [str(name) for name in rows.features]
    flat = np.abs(X).max(axis=0) <= 1e-12 * np.maximum(size, 1e-300)
    if flat.any():
        raise DataError(
            f"column {names[int(np.argmax(flat))]!r} is equal for all alternatives of each choice ({flat.sum()} such), "
            "so it cannot affect them; leave it out, or let it act on each alternative with case="
        )
    scaled = X / np.linalg.norm(X, axis=0)
    for k in range(1, len(names)):
        w, *_ = np.linalg.lstsq(scaled[:, :k], scaled[:, k], rcond=1e-12)
        if np.linalg.norm(scaled[:, k] - scaled[:, :k] @ w) < REPEATS:
            of = [name for name, share in zip(names, w) if abs(share) > 1e-6]
            raise DataError(
                f"within choices, column {names[k]!r} is a combination of {', '.join(map(repr, of[:8]))}, so their "
                "coefficients are not determined; leave one of them out"
            )


def refuse_separation(rows: Queries) -> None:
    """Raise a ``DataError`` that names the columns whose combination is never lower for the chosen alternative.

    The search is a linear program: maximize sum d w over |w| <= 1 with all d w >= 0, where d are the differences
    between a chosen alternative and another one of its choice; coefficients are infinite if the maximum is above 0.
    """
    from scipy.optimize import linprog

    assert rows.features is not None
    scale = rows.X.std(axis=0)
    scale[scale == 0] = 1.0
    X = rows.X / scale
    best = np.flatnonzero(rows.grade > 0)
    d = (X[best][rows.query] - X)[rows.grade == 0][:MOST_DIFFERENCES]
    found: Any = linprog(-d.sum(axis=0), A_ub=-d, b_ub=np.zeros(len(d)), bounds=(-1, 1), method="highs")
    if found.status != 0 or not -found.fun > 1e-6 * len(d) ** 0.5:
        raise DataError(
            "the coefficients have no finite values, or too few choices determine them; take fewer columns, or give "
            "the penalty of LinearRanker (l2) a value above 0"
        )
    share = float((d @ found.x > 1e-9).mean())
    names = [str(name) for name, w in zip(rows.features, found.x) if abs(w) > 1e-6]
    raise DataError(
        f"a combination of {', '.join(map(repr, names[:8]))} is never lower for the chosen alternative, and higher "
        f"than {share:.0%} of the others: the choices are separated, coefficients infinite; leave such columns out, "
        "or take LinearRanker with a penalty (l2)"
    )
