"""Columns of categories in data frames (pandas, Polars and others): codes for trees, the same ones at prediction."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from placet.data import DataError
from placet.data.arrays import eager_frame, is_frame

CategoryLevels = dict[str, list[Any]]
"""Column -> its categories; the code of a category is its place in the list."""


def coded(X: Any, known: CategoryLevels, *, learn: bool, who: str, takes: bool) -> tuple[Any, CategoryLevels]:
    """A data frame with codes in place of categories, and the levels of each such column.

    ``learn``: columns of categories are found, and new categories are appended to those ``known``; otherwise a value
    that is not known is missing (NaN).  ``takes``: whether the ranker, ``who``, takes categories at all.
    """
    import narwhals as nw

    frame = eager_frame(X)
    found = [name for name, kind in frame.schema.items() if kind in (nw.Categorical, nw.Enum)]
    if found and not takes:
        raise DataError(
            f"column {found[0]!r} holds categories ({len(found)} such columns), which {who} does not take; use "
            "TreeRanker, or columns of numbers"
        )
    _refuse_texts(
        {name: frame[name].to_list() for name, kind in frame.schema.items() if kind == nw.String and name not in known},
        takes,
    )
    levels = {name: list(own) for name, own in known.items()}
    for name in dict.fromkeys([*(found if learn else ()), *known]):
        if name not in frame.columns:
            continue  # columns are checked elsewhere
        values = frame[name].to_list()
        present = {value for value in values if not _is_missing(value)}
        own = levels.setdefault(name, []) if learn else levels[name]
        if learn:
            own += sorted(_plain(name, present - set(own)), key=lambda value: (str(type(value)), value))
        elif present and not present & set(own):
            raise DataError(
                f"column {name!r}: none of its values ({next(iter(present))!r}, ...) is among the {len(own)} "
                f"categories of the fit ({own[0]!r}, ...)"
            )
        place = {value: float(k) for k, value in enumerate(own)}
        codes = np.array([math.nan if _is_missing(value) else place.get(value, math.nan) for value in values])
        frame = frame.with_columns(nw.new_series(name, codes, nw.Float64, backend=frame.implementation))
    return frame.to_native(), levels


def coded_rows(X: Any, known: CategoryLevels, *, learn: bool, who: str, takes: bool) -> tuple[Any, CategoryLevels]:
    """As `coded`, for anything that a ranker accepts; only data frames have categories."""
    if is_frame(X) and not isinstance(X, Mapping):
        return coded(X, known, learn=learn, who=who, takes=takes)
    if known and not hasattr(X, "offsets"):
        raise DataError(f"the ranker was fitted to columns of categories ({', '.join(known)}); give a data frame")
    return X, known


def _refuse_texts(columns: Mapping[str, list[Any]], takes: bool) -> None:
    """Raise a ``DataError`` for a column with a text that is no number."""
    found = {
        name: next((text for text in own if not _is_missing(text) and not _is_number(text)), None)
        for name, own in columns.items()
    }
    texts = [name for name, text in found.items() if text is not None]
    if texts:
        raise DataError(
            f"column {texts[0]!r} holds texts, such as {found[texts[0]]!r:.40} ({len(texts)} such columns); "
            + ("make them categories (pandas: astype('category'), Polars: pl.Categorical)" if takes else "give numbers")
        )


def _is_number(text: Any) -> bool:
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _plain(name: str, values: set[Any]) -> set[Any]:
    odd = next((value for value in values if not isinstance(value, str | int | float | bool)), None)
    if odd is not None:
        raise DataError(f"column {name!r}: the category {odd!r} is neither text nor a number; convert it")
    return values
