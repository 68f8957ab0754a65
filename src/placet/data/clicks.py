"""A log of clicks: what was shown at which position, and what was clicked."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.data.arrays import (
    Floats,
    Ints,
    Lists,
    Names,
    data_html,
    encode,
    frozen,
    integers,
    is_sparse,
    list_of_rows,
    numbers,
    offsets_from_sizes,
    offsets_of,
    refuse_masked_or_complex,
    rows_of,
    set_columns,
    unique_names,
)
from placet.data.errors import DataError


class Choices(NamedTuple):
    """Clicks as choices: each is a list of the clicked row, with grade 1, and the rows shown with it, with grade 0.

    ``row`` (rows of the lists,): the row of the log; ``n_silent``: impressions without information (no click, or a
    single row).
    """

    row: Ints
    lists: Lists
    n_silent: int


def _marks(clicked: Any) -> NDArray[np.bool_]:
    """Read-only column of booleans, from booleans or from 0 and 1; anything else, such as text, is a ``DataError``."""
    refuse_masked_or_complex(clicked)
    array = np.asarray(clicked)
    if array.dtype.kind in "biuf":
        wrong = (array != 0) & (array != 1)
    else:  # text is no mark: "0" would count as a click
        known = (bool, np.bool_, int, float, np.number)
        wrong = np.array([not (isinstance(mark, known) and mark in (0, 1)) for mark in array.ravel().tolist()], bool)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"row {row}: clicked {array.ravel().tolist()[row]!r} is not True, False, 0 or 1 ({int(wrong.sum())} such "
            "rows); correct them"
        )
    return frozen(array, np.bool_)


@dataclass(frozen=True, eq=False)
class Clicks:
    """Impressions: rows ``offsets[k]:offsets[k + 1]`` were shown together for query ``query[k]``.

    ``document`` (rows,) and ``query`` (impressions,) are codes of ``documents`` and ``queries``; ``position`` (rows,)
    counts from 1; ``clicked`` (rows,) says whether a row was clicked.

    >>> clicks = Clicks([0], [0, 1, 2], [1, 2, 3], [False, True, False], [0, 3], ["q"], ["a", "b", "c"])
    >>> clicks
    Clicks(1 impressions of 1 queries, 3 rows, 1 clicks)
    >>> clicks.choices().lists.grade.tolist()
    [0.0, 1.0, 0.0]
    """

    query: Ints
    document: Ints
    position: Ints
    clicked: NDArray[np.bool_]
    offsets: Ints
    queries: Names
    documents: Names
    weight: Floats = None  # type: ignore[assignment]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        document, position = integers(self.document, "document"), integers(self.position, "position")
        offsets = offsets_of(self.offsets, len(document))
        n, query = len(offsets) - 1, integers(self.query, "query")
        clicked = _marks(self.clicked)
        weight = numbers(np.ones(n) if self.weight is None else self.weight, "weight", positive=True, unit="impression")
        queries, documents = unique_names(self.queries, "query"), unique_names(self.documents, "document")
        for name, values, size, unit in (
            ("query", query, n, "impressions"),
            ("weight", weight, n, "impressions"),
            ("position", position, len(document), "rows"),
            ("clicked", clicked, len(document), "rows"),
        ):
            if len(values) != size:
                raise DataError(f"{name} has {len(values)} entries; there are {size} {unit}")
        for name, values, names in (("query", query, queries), ("document", document, documents)):
            if len(values) and not 0 <= values.min() <= values.max() < len(names):
                raise DataError(f"{name} {int(values.max())} is not among the {len(names)} names")
        if len(position) and position.min() < 1:
            row = int(position.argmin())
            raise DataError(f"row {row}: position {position[row]} is below 1; the first position is 1")
        set_columns(self, query=query, document=document, position=position, clicked=clicked, offsets=offsets)
        set_columns(self, queries=queries, documents=documents, weight=weight)

    def __setstate__(self, state: dict[str, Any]) -> None:
        set_columns(self, **state)  # unpickled arrays are writable

    @classmethod
    def from_columns(
        cls,
        query: Sequence[Hashable],
        document: Sequence[Hashable],
        position: ArrayLike,
        clicked: ArrayLike,
        *,
        session: Sequence[Hashable] | None = None,
    ) -> "Clicks":
        """Build clicks from one row per document shown; rows with the same ``session`` and query are an impression.

        Without sessions, an impression is a run of rows of one query with increasing positions: the next one begins
        where the position does not increase or the query changes.

        Returns
        -------
        Clicks
            The log, by impression.

        >>> Clicks.from_columns(["q"] * 4, ["x", "y", "y", "x"], [1, 2, 1, 2], [0, 1, 1, 0])
        Clicks(2 impressions of 1 queries, 4 rows, 2 clicks)
        """
        place = integers(position, "position")
        code, queries = encode(query, "query")
        item, documents = encode(document, "document")
        n = len(place)
        marks = _marks(clicked)
        visit = None if session is None else encode(session, "session")[0]
        for name, values in (("query", code), ("document", item), ("clicked", marks), ("session", visit)):
            if values is not None and len(values) != n:
                raise DataError(f"{name} has {len(values)} entries; position has {n}")
        notes: tuple[str, ...] = ()
        order: Ints = np.arange(n)
        if visit is None:
            begins = np.ones(n, bool)
            begins[1:] = (code[1:] != code[:-1]) | (place[1:] <= place[:-1])
            notes = ("without a session, an impression is a run of rows of one query with rising positions",)
        else:
            group = visit * max(len(queries), 1) + code
            order = np.lexsort((place, group))
            begins = np.ones(n, bool)
            begins[1:] = group[order][1:] != group[order][:-1]
            same = ~begins[1:] & (place[order][1:] == place[order][:-1])
            if same.any():
                row = int(order[1:][same][0])
                raise DataError(
                    f"row {row}: position {place[row]} occurs twice in its session ({same.sum()} such rows)"
                )
        start = np.flatnonzero(begins)
        offsets = offsets_from_sizes(np.diff(np.append(start, n)))
        return cls(
            code[order][start], item[order], place[order], marks[order], offsets, queries, documents, notes=notes
        )

    def choices(self) -> Choices:
        """Each click against all rows shown with it, whether these were clicked as well or not.

        If a user chooses one row, in proportion to e^s, Plackett-Luce for the first place is the likelihood.  If each
        row of an impression is clicked with a probability in proportion to e^s, independently or not, the sum over the
        clicks is a pseudo-likelihood: its expected gradient, the sum of E[click] - E[clicks] softmax(s), is 0 at the
        true s.  Against the unclicked rows alone, s would be the log odds of a click.

        Returns
        -------
        Choices
            A list for each click.

        >>> log = Clicks.from_columns(["q"] * 4, ["x", "y", "y", "x"], [1, 2, 1, 2], [0, 1, 1, 0])
        >>> log.choices().lists.offsets
        array([0, 2, 4])
        """
        impression = list_of_rows(self.offsets)
        useful = (np.bincount(impression, self.clicked, len(self)) > 0) & (np.diff(self.offsets) > 1)
        click = np.flatnonzero(self.clicked & useful[impression])
        of = impression[click]
        row, offsets = rows_of(self.offsets, of)
        own = row == np.repeat(click, np.diff(offsets))
        return Choices(row, Lists(own.astype(float), offsets, self.weight[of]), int((~useful).sum()))

    def rows_of(self, keys: Sequence[tuple[Hashable, Hashable]], values: Any = None) -> Ints:
        """For each row of the log, the index of its (query, document) in ``keys``, the names of a table's rows.

        Names are compared as text where either side is text: the query '7' of a file of clicks is the query 7 of a
        LETOR file.  A pair may occur again only with the same row of ``values`` (pairs, columns); the first is taken.

        Returns
        -------
        array of int
            One for each row of the log.

        >>> log = Clicks.from_columns(["q"] * 2, ["x", "y"], [1, 2], [0, 1])
        >>> log.rows_of([("q", "y"), ("q", "x")])
        array([1, 0])
        """
        own, given = [self.queries, self.documents], [tuple(key[k] for key in keys) for k in (0, 1)]
        for k in (0, 1):
            if any(isinstance(name, str) for name in (*own[k], *given[k])):
                own[k], given[k] = tuple(map(str, own[k])), tuple(map(str, given[k]))
        place: dict[Any, int] = {}
        first = np.array([place.setdefault(key, k) for k, key in enumerate(zip(*given))], np.int64)
        _refuse_other_values(first, values, keys)
        pairs = np.column_stack([self.query[list_of_rows(self.offsets)], self.document])
        distinct, inverse = np.unique(pairs, axis=0, return_inverse=True)
        found = [place.get((own[0][q], own[1][d]), -1) for q, d in distinct.tolist()]
        absent = [k for k, row in enumerate(found) if row < 0]
        if absent:
            q, d = distinct[absent[0]].tolist()
            raise DataError(
                f"document {self.documents[d]!r} of query {self.queries[q]!r} has no features ({len(absent)} such "
                "pairs); give a row for each, or leave them out of the log"
            )
        return np.array(found, dtype=np.int64)[inverse.ravel()]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    _repr_html_ = data_html

    def __repr__(self) -> str:
        return (
            f"Clicks({len(self)} impressions of {len(self.queries)} queries, {len(self.document)} rows, "
            f"{int(self.clicked.sum())} clicks)"
        )


def _refuse_other_values(first: Ints, values: Any, keys: Sequence[tuple[Hashable, Hashable]]) -> None:
    """Refuse keys that occur again with another row of ``values``; ``first`` (keys,): where each occurs first."""
    again = np.flatnonzero(first != np.arange(len(first)))
    if not len(again):
        return
    other = np.ones(len(again), bool)
    if values is not None and is_sparse(values):
        rows = values.tocsr()
        other = np.diff((rows[again] != rows[first[again]]).tocsr().indptr) > 0
    elif values is not None:
        new, old = np.asarray(values)[again], np.asarray(values)[first[again]]
        other = ~((new == old) | ((new != new) & (old != old))).reshape(len(again), -1).all(axis=1)  # NaN equals NaN
    if other.any():
        row = int(again[np.argmax(other)])
        query, document = keys[row]
        raise DataError(
            f"row {row}: document {document!r} of query {query!r} occurs again after row {first[row]}"
            f"{'' if values is None else ', with other features'} ({int(other.sum())} such rows); keep one row for "
            "each document of a query"
        )
