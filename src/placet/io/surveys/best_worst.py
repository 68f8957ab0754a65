"""Best-worst choices (MaxDiff): of the items shown together, which is best and which is worst.

Each answer is an ordered partition: the best item, then all others shown, then the worst.
"""

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from placet.data import DataError, Rankings
from placet.data.arrays import Ints, offsets_from_sizes, recode, set_columns
from placet.data.errors import one_of
from placet.data.parameters import with_checked_options
from placet.io.files import Source
from placet.io.tables.cells import Column, as_number, join_columns, repeated_pairs
from placet.io.tables.column_names import COUNTS, WHO, find_column, plain_name, roles_by_column, split_names
from placet.io.tables.tables import FileHead, Table, TableRows, read_table, write_table
from placet.io.text import OnError

Answers = Literal["names", "positions"]
BEST = ("best", "most", "most_important", "most_preferred", "best_item", "best_choice", "max")
WORST = ("worst", "least", "least_important", "least_preferred", "worst_item", "worst_choice", "min")
ITEMS = ("item", "option", "alternative", "alt", "attribute", "item_id", "message", "name")
SETS = ("set", "set_id", "task", "task_id", "question", "question_id", "screen", "block", "choice_set", "trial")
PEOPLE = ("agent", *WHO, "person", "person_id", "subject", "subject_id")
_SHOWN = re.compile(r"(?:item|option|alternative|alt|attribute|shown|message|choice|concept|image)_?([0-9]{1,3})")
_NAME_THEM = "name the columns with shown=, best= and worst=, or with item=, question=, best= and worst="
_LEAST_SHOWN = 2


class BestWorstColumns(NamedTuple):
    """The columns of best-worst choices: ``shown`` in a wide table, ``item`` and ``question`` in a long one."""

    best: str
    worst: str | None
    shown: tuple[str, ...] = ()
    item: str | None = None
    question: str | None = None
    agent: str | None = None
    weight: str | None = None

    def column_names(self) -> list[str]:
        named = (*self.shown, self.agent, self.question, self.item, self.best, self.worst, self.weight)
        return [name for name in named if name]

    def roles(self) -> dict[str, str]:
        """The role of each column: the option of the reader that names it."""
        return roles_by_column(self._asdict())


def looks_like_best_worst(head: FileHead) -> BestWorstColumns | None:
    """Match a table with a column of best and of worst items, and those of the items shown."""
    return None if head.table is None else _find(head.table, head.pick(*BestWorstColumns._fields))


def _find(table: Table, given: Mapping[str, Any]) -> BestWorstColumns | None:
    best, worst = given["best"] or table.find(BEST), given["worst"] or table.find(WORST)
    if best is None or (worst is None and not (given["shown"] and given["best"])):
        return None
    others = [name for name in table.names if name not in (best, worst)]
    agent = given["agent"] or find_column(others, PEOPLE)
    weight = given["weight"] or find_column(others, COUNTS)
    shown = tuple(split_names(given["shown"])) if given["shown"] else _find_shown(others)
    if given["item"] is None and len(shown) >= _LEAST_SHOWN:
        return BestWorstColumns(best, worst, shown, agent=agent, weight=weight)
    item = given["item"] or find_column(others, ITEMS)
    question = given["question"] or find_column(others, SETS)
    if item is None or worst is None or (question is None and agent is None):
        return None
    return BestWorstColumns(best, worst, (), item, question, agent, weight)


def _find_shown(names: Sequence[str]) -> tuple[str, ...]:
    """The columns of one word with numbers, ``item1``, ``item2``, ..., in the order of the numbers."""
    found: dict[str, dict[int, str]] = {}
    for name in names:
        plain = plain_name(name)
        if match := _SHOWN.fullmatch(plain):
            found.setdefault(plain.rstrip("0123456789_"), {})[int(match[1])] = name
    numbered = max(found.values(), key=len, default={})
    return tuple(numbered[k] for k in sorted(numbered))


@with_checked_options
def read_best_worst(
    source: Source | Any,
    *,
    best: str | None = None,
    worst: str | None = None,
    shown: str | Sequence[str] | None = None,
    item: str | None = None,
    question: str | None = None,
    agent: str | None = None,
    weight: str | None = None,
    answers: Answers | None = None,
    items: Sequence[Hashable] | None = None,
    ignore: str | Sequence[str] = (),
    separator: str | None = None,
    sheet: str | None = None,
    format: str | None = None,
    on_error: OnError = "raise",
) -> Rankings:
    """Read best-worst choices (MaxDiff) as ballots: best > all others shown > worst.

    Wide: a row per question, a column for each item shown (``item1``, ``item2``, ...), and the columns ``best`` and
    ``worst``.  Long: a row per item shown, with the question (and who answered it), and 1 in the column ``best`` or
    ``worst`` of the item chosen, else 0 or nothing.

    Parameters
    ----------
    best, worst : columns of the items chosen; by default found by their names (``BEST``, ``WORST``).  One of the two
        cells may be empty: then only the other is known.  If ``shown`` and ``best`` are named, ``worst`` need not be.
    shown : columns of the items shown, in a wide table.
    item, question : columns of the item and of the question, in a long table.
    agent, weight : columns with who answered, and with the weight of each question.
    answers : "names" or "positions" (1 is the first item shown): what the cells of a wide table hold, if both fit.
    items : names of all items, in order; by default those in the table.
    ignore : columns to ignore.
    separator, format : of the file, if they cannot be inferred from its first lines and suffix.
    sheet : the sheet of a workbook, by name; needed if several have cells.

    Returns
    -------
    Rankings
        A ballot of up to three tiers per question.

    >>> import io
    >>> read_best_worst(io.StringIO("item1,item2,item3,best,worst\\ntea,milk,water,milk,tea\\n"), format="csv").orders()
    [['milk', 'water', 'tea']]
    """
    if answers is not None:
        one_of(answers, get_args(Answers), "answers")
    table = read_table(source, on_error, format, separator=separator, sheet=sheet).without(split_names(ignore))
    given = {"best": best, "worst": worst, "shown": shown, "item": item, "question": question}
    layout: BestWorstColumns | None = table.layout or _find(table, given | {"agent": agent, "weight": weight})
    if layout is None:
        raise DataError(f"{table.name}: the columns {table.names} are not those of best-worst choices; {_NAME_THEM}")
    used = layout.column_names()
    for name in used:
        table.require(name, _NAME_THEM)
    rows = table.rows(*dict.fromkeys(used))
    result = _from_wide(rows, layout, answers, items) if layout.shown else _from_long(rows, layout, items)
    set_columns(result, notes=(table.note("best-worst choices (best > others shown > worst)", used),))
    return result


def _from_wide(
    rows: TableRows, layout: BestWorstColumns, answers: Answers | None, items: Sequence[Hashable] | None
) -> Rankings:
    columns = [rows.column(name) for name in (*layout.shown, layout.best)]
    nothing = Column(np.zeros(len(rows), np.int64), [None])
    columns.append(nothing if layout.worst is None else rows.column(layout.worst))
    all_cells = join_columns(columns)
    cells = all_cells.code.reshape(len(columns), len(rows)).T
    empty = np.array([value is None for value in all_cells.values], bool)[cells]
    shown, there = cells[:, :-2], ~empty[:, :-2]
    rows.reject(
        there.sum(axis=1) < _LEAST_SHOWN, "shown", f"fewer than {_LEAST_SHOWN} items are shown", "fill in the others"
    )
    rows.reject(
        _has_twice(np.where(there, shown, -1 - np.arange(shown.shape[1]))),
        "twice",
        "an item is shown twice",
        "a question shows different items",
    )
    kind = answers or _kind_of_answers(rows, layout, shown, there, columns[-2:], cells[:, -2:])
    chosen = _positions(kind, shown, there, columns[-2:], cells[:, -2:])
    for k, name in enumerate((layout.best, layout.worst or layout.best)):
        wrong = ~empty[:, -2 + k] & (chosen[:, k] < 0)
        said = lambda row, name=name: f"{name} {rows.quote(name, row)} is not among the items shown"  # noqa: E731
        rows.reject(wrong, name, said, "write the name of an item shown, or its number as answers='positions'")
    _reject_without_choice(rows, layout, chosen)
    weight = None if layout.weight is None else rows.numbers(layout.weight, positive=True)
    agent = None if layout.agent is None else rows.labels(layout.agent)
    good = rows.good_rows()
    if not len(good):
        raise DataError(f"{rows.name}: no choices; a row has the items shown, the best and the worst of them")
    tier = np.ones(shown.shape, np.int64)
    for k, value in enumerate((0, 2)):
        has = np.flatnonzero(chosen[:, k] >= 0)
        tier[has, chosen[has, k]] = value
    kept = there[good]
    code, names = recode(shown[good][kept], all_cells.values, "item", items)
    return Rankings.of_rows(
        code,
        _dense(tier[good][kept], kept.sum(axis=1)),
        offsets_from_sizes(kept.sum(axis=1)),
        tuple(names),
        None if weight is None else weight[good],
        None if agent is None else list(agent.take(good)),
    )


def _has_twice(codes: NDArray[Any]) -> NDArray[np.bool_]:
    ordered = np.sort(codes, axis=1)
    return (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)


def _dense(tier: Ints, sizes: Ints) -> Ints:
    """Tiers 0, 1, ... of each ballot: without a best item, the others are first."""
    starts = offsets_from_sizes(sizes)[:-1]
    first = np.minimum.reduceat(tier, starts)
    tier = tier - np.repeat(first, sizes)
    middle = np.add.reduceat(tier == 1, starts) > 0  # of two items there is no middle
    return np.where((tier == 2) & ~np.repeat(middle, sizes), 1, tier)


def _positions(
    kind: Answers, shown: Ints, there: NDArray[np.bool_], columns: Sequence[Column], cells: Ints
) -> NDArray[np.int64]:
    """(rows, 2) the column of the best and of the worst item among those shown; -1 if it is none of them."""
    found = np.full((len(shown), 2), -1, np.int64)
    for k, column in enumerate(columns):
        if kind == "names":
            same = there & (shown == cells[:, [k]])
            found[:, k] = np.where(same.any(axis=1), same.argmax(axis=1), -1)
            continue
        number = column.map(lambda cell: as_number(cell) or 0.0, float)
        valid = (number >= 1) & (number <= shown.shape[1]) & (number == np.rint(number))
        at = np.where(valid, number, 1).astype(np.int64) - 1
        valid &= there[np.arange(len(shown)), at]
        found[:, k] = np.where(valid, at, -1)
    return found


def _kind_of_answers(
    rows: TableRows,
    layout: BestWorstColumns,
    shown: Ints,
    there: NDArray[np.bool_],
    columns: Sequence[Column],
    cells: Ints,
) -> Answers:
    """Whether the cells are names or positions; a ``DataError`` if all may be either, and they mean different items."""
    both: dict[Answers, NDArray[np.int64]] = {
        kind: _positions(kind, shown, there, columns, cells) for kind in get_args(Answers)
    }
    given = ~np.stack([column.is_missing() for column in columns], axis=1) & ~rows.bad[:, None]
    fits = {kind: bool((found[given] >= 0).all()) for kind, found in both.items()}
    if all(fits.values()) and (both["names"][given] != both["positions"][given]).any():
        ways = [f'format="best-worst", answers="{kind}"' for kind in get_args(Answers)]
        raise DataError.of_ways(
            f"{rows.name}: the cells of {layout.best!r} and {layout.worst!r} may be names of items or their positions; "
            f"for names say {ways[0]}; for positions, {ways[1]}",
            ways,
        )
    return "positions" if fits["positions"] and not fits["names"] else "names"


def _reject_without_choice(rows: TableRows, layout: BestWorstColumns, chosen: NDArray[np.int64]) -> None:
    rows.reject(
        (chosen < 0).all(axis=1), "none", f"neither {layout.best} nor {layout.worst} is given", "fill in one of the two"
    )
    rows.reject(
        (chosen[:, 0] >= 0) & (chosen[:, 0] == chosen[:, 1]),
        "same",
        "the best item is the worst, too",
        "choose two different items",
    )


def _from_long(rows: TableRows, layout: BestWorstColumns, items: Sequence[Hashable] | None) -> Rankings:
    assert layout.item is not None
    assert layout.worst is not None
    what = rows.labels(layout.item)
    asked = [rows.labels(name) for name in (layout.agent, layout.question) if name]
    marks = np.stack([rows.column(name).map(_mark, float) for name in (layout.best, layout.worst)], axis=1)
    weight = None if layout.weight is None else rows.numbers(layout.weight, positive=True)
    key = Column(*join_cells(asked))
    _check_questions(rows, layout, key, what, marks)
    good = rows.good_rows()
    if not len(good):
        raise DataError(f"{rows.name}: no choices; a row has an item shown, and whether it is best or worst")
    question, _ = recode(key.code[good], key.values, "question")
    code, names = recode(what.code[good], what.values, "item", items)
    order = np.argsort(question, kind="stable")
    sizes = np.bincount(question)
    first = good[order][offsets_from_sizes(sizes)[:-1]]
    tier = np.where(marks[:, 0] == 1, 0, np.where(marks[:, 1] == 1, 2, 1))[good][order]
    return Rankings.of_rows(
        code[order],
        _dense(tier, sizes),
        offsets_from_sizes(sizes),
        tuple(names),
        None if weight is None else weight[first],
        list(asked[0].take(first)) if layout.agent else None,
    )


def _check_questions(rows: TableRows, layout: BestWorstColumns, key: Column, what: Column, marks: NDArray[Any]) -> None:
    """Reject rows with wrong marks, and all rows of a question that is not whole or has no clear choice."""
    own = "give each question its own name, with agent= and question="
    for k, name in enumerate((layout.best, layout.worst)):
        said = lambda row, name=name: f"{name} {rows.quote(name, row)} is not 0 or 1"  # noqa: E731
        rows.reject(np.isnan(marks[:, k]), name, said, "write 1 for the item chosen, else 0")
    item = layout.item or ""
    twice = repeated_pairs(key, what, np.arange(len(rows)))
    rows.reject(twice, "twice", lambda row: f"item {rows.quote(item, row)} is twice in one question", own)
    of_question = lambda value: np.bincount(key.code, value, len(key.values))[key.code]  # noqa: E731
    for k, name in enumerate((layout.best, layout.worst)):
        several = of_question(marks[:, k] == 1) > 1
        rows.reject(several, f"several {name}", f"the question has several items marked {name}", f"mark one, or {own}")
    rows.reject((marks == 1).all(axis=1), "same", "the best item is the worst, too", "choose two different items")
    nothing = of_question((marks == 1).any(axis=1)) == 0
    rows.reject(nothing, "none", "nothing is chosen in this question", "mark one item with 1")
    alone = of_question(np.ones(len(rows))) < _LEAST_SHOWN
    rows.reject(alone, "shown", "the question shows one item", "give a row to every item shown")
    if rows.table.problems.on_error == "skip":  # else the wrong row itself is named
        rows.reject(of_question(rows.bad) > 0, "rest", "another row of the question is wrong", "correct that row")


def join_cells(columns: Sequence[Column]) -> tuple[Ints, list[Any]]:
    """The codes and values of several columns together."""
    pairs = np.stack([column.code for column in columns], axis=1)
    values, code = np.unique(pairs, axis=0, return_inverse=True)
    return code.ravel(), [tuple(row) for row in values.tolist()]


def _mark(cell: Any) -> float:
    if cell is None or (isinstance(cell, bool | str) and str(cell).lower() in ("true", "false", "yes", "no", "x")):
        return float(str(cell).lower() in ("true", "yes", "x"))
    number = as_number(cell)
    return float(number) if number in (0, 1) else float("nan")


def write_best_worst(rankings: Rankings, target: Source, *, format: str | None = None) -> None:
    """Write choices as a wide table: the items shown, the best and the worst; other ballots are a ``DataError``.

    >>> import io
    >>> import placet
    >>> file = io.BytesIO()
    >>> write_best_worst(placet.Rankings.from_orders([["tea", ("milk", "juice"), "water"]]), file, format="csv")
    >>> print(file.getvalue().decode())
    item1,item2,item3,item4,best,worst
    tea,milk,juice,water,tea,water
    """
    shown: list[list[Hashable]] = []
    ends: list[tuple[Hashable, Hashable]] = []
    for k, ballot in enumerate(rankings):
        if not 2 <= len(ballot) <= 3 or len(ballot[0]) > 1 or len(ballot[-1]) > 1:
            raise DataError(f"ballot {k} is not a best item, others, and a worst item; write it as ballots")
        shown.append([name for tier in ballot for name in tier])
        ends.append((ballot[0][0], ballot[-1][0]))
    width = max(map(len, shown), default=0)
    columns: dict[str, Any] = {
        f"item{c + 1}": [row[c] if c < len(row) else None for row in shown] for c in range(width)
    }
    columns |= {"best": [best for best, _ in ends], "worst": [worst for _, worst in ends]}
    if rankings.agent is not None and rankings.agents is not None:
        columns["agent"] = [rankings.agents[k] for k in rankings.agent.tolist()]
    if (rankings.weight != 1).any():
        columns["weight"] = rankings.weight
    write_table(target, columns, format)
