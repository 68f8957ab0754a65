"""Battles: pairs of items and who won, from delimited text, JSON, Parquet or any data frame."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from placet.data import Comparisons, DataError
from placet.data.arrays import WeightKind
from placet.data.comparisons import OUTCOMES, Outcome
from placet.data.errors import as_choices
from placet.data.parameters import with_checked_options
from placet.io.files import Source
from placet.io.tables.cells import Column, as_number, join_columns
from placet.io.tables.column_names import COUNTS, SIDES, WHO, find_pair, plain_name, roles_by_column, split_names
from placet.io.tables.controls import control_table, find_terms, read_times
from placet.io.tables.tables import FileHead, Table, TableRows, read_table, write_table
from placet.io.text import OnError

# Words that the winner column may contain, in any case; otherwise it contains the name of the winning item.
WORDS: dict[Outcome, tuple[str, ...]] = {
    "a": ("a", "model_a", "model a", "a wins", "left", "x", "model_x", "first", "1", "1.0", "win", "w", "1-0"),
    "b": ("b", "model_b", "model b", "b wins", "right", "y", "model_y", "second", "0", "0.0", "loss", "l", "0-1"),
    "tie": (
        *("tie", "draw", "both", "bothbad", "both bad", "both_bad", "both good", "tie (bothbad)", "tie (both bad)"),
        *("tie (both_bad)", "equal", "same", "neither", "=", "0.5", "1/2", "1/2-1/2", "½-½", "0.5-0.5", "d", "t"),
    ),
}
_MEANING: dict[str, Outcome] = {word: outcome for outcome, words in WORDS.items() for word in words}
# Columns that say who won, and pairs of scores.
WINNERS = ("winner", "result", "outcome", "preference", "preferred", "verdict", "vote", "choice", "ftr")
SCORES = (
    ("score_a", "score_b"),
    ("score1", "score2"),
    ("home_score", "away_score"),
    ("home_goals", "away_goals"),
    ("fthg", "ftag"),
    ("points_a", "points_b"),
    ("points1", "points2"),
    ("left_score", "right_score"),
)
WON_LOST = (("winner", "loser"), ("winner_name", "loser_name"), ("winner_id", "loser_id"), ("better", "worse"))
_NAME_THEM = "name the columns with a=, b= and winner= (or scores=), or with winner= and loser="


class BattleColumns(NamedTuple):
    """The columns of battles: two sides, and one way to tell who won (if none, the first side always won)."""

    a: str
    b: str
    winner: str | None = None
    scores: tuple[str, str] | None = None
    flags: tuple[str, ...] | None = None
    agent: str | None = None
    weight: str | None = None

    @property
    def won_lost(self) -> bool:
        """Whether the sides are the winner and the loser."""
        return not (self.winner or self.scores or self.flags)

    def column_names(self) -> list[str]:
        said = (self.winner,) if self.winner else (*(self.scores or ()), *(self.flags or ()))
        return [self.a, self.b, *said]

    def roles(self) -> dict[str, str]:
        """The role of each column: the option of the reader that names it."""
        first, second = ("winner", "loser") if self.won_lost else ("a", "b")
        said = {"winner": self.winner or self.flags, "scores": self.scores, "agent": self.agent, "weight": self.weight}
        return {self.a: first, self.b: second} | roles_by_column(said)


def looks_like_battles(head: FileHead) -> BattleColumns | None:
    """Match a table with the columns of battles."""
    return None if head.table is None else find_layout(head.table, **head.pick(*_COLUMNS))


_COLUMNS = ("a", "b", "winner", "loser", "scores", "agent", "weight")


def find_layout(
    table: Table,
    a: str | None = None,
    b: str | None = None,
    winner: str | Sequence[str] | None = None,
    loser: str | None = None,
    scores: str | Sequence[str] | None = None,
    agent: str | None = None,
    weight: str | None = None,
) -> BattleColumns | None:
    """The columns of battles in a table: those given, or else those with known names; None if there are none."""
    found = _find_sides(table, a, b, winner, loser, scores)
    if found is None:
        return None
    return found._replace(agent=agent or table.find(("agent",)), weight=weight or table.find(COUNTS))


def _find_sides(
    table: Table,
    a: str | None,
    b: str | None,
    winner: str | Sequence[str] | None,
    loser: str | None,
    scores: str | Sequence[str] | None,
) -> BattleColumns | None:
    columns = () if winner is None else tuple(split_names(winner))
    flags = columns if len(columns) > 1 else None
    said = columns[0] if len(columns) == 1 else None
    pair = cast("tuple[str, str]", tuple(split_names(scores))) if scores is not None else None
    if pair is not None and len(pair) != 2:
        raise ValueError(f"scores must name two columns, not {list(pair)}")
    if loser is not None:
        return BattleColumns(said or table.find(WINNERS[:1]) or "winner", loser)
    if a is None and b is None and not flags and pair is None:
        won_lost = find_pair(table, WON_LOST, _NAME_THEM, 'winner="{}", loser="{}"')
        if won_lost is not None:
            return BattleColumns(*won_lost)
    sides = (a or "model_a", b or "model_b") if a or b else find_pair(table, SIDES, _NAME_THEM, 'a="{}", b="{}"')
    if sides is None:
        return None
    if said or pair or flags:
        return BattleColumns(*sides, said, pair, flags)
    return _find_result(table, sides)


def _find_result(table: Table, sides: tuple[str, str]) -> BattleColumns | None:
    """The columns that say who won: one per outcome, one of outcomes, or two of scores."""
    hot = [table.find((f"winner_{plain_name(side)}", f"{plain_name(side)}_wins")) for side in sides]
    if hot[0] and hot[1]:
        tie = table.find(("winner_tie", "tie", "draw"))
        return BattleColumns(*sides, flags=(hot[0], hot[1], *((tie,) if tie else ())))
    if (found := table.find(WINNERS)) is not None:
        return BattleColumns(*sides, found)
    if (both := find_pair(table, SCORES, "name the columns with scores=", 'scores="{},{}"')) is not None:
        return BattleColumns(*sides, scores=both)
    return None


@with_checked_options
def read_battles(
    source: Source | Any,
    *,
    a: str | None = None,
    b: str | None = None,
    winner: str | Sequence[str] | None = None,
    loser: str | None = None,
    scores: str | tuple[str, str] | None = None,
    agent: str | None = None,
    weight: str | None = None,
    outcomes: Mapping[str, Outcome] | Literal["words", "names"] | None = None,
    control: str | Sequence[str] | None = None,
    time: str | None = None,
    items: Sequence[Hashable] | None = None,
    ignore: str | Sequence[str] = (),
    ordered: bool = False,
    weights: WeightKind = "counts",
    separator: str | None = None,
    sheet: str | None = None,
    format: str | None = None,
    on_error: OnError = "raise",
) -> Comparisons:
    """Read comparisons from a table with a row per battle: a path, an open file, or a frame.

    Columns that are not given are found by their names: two sides (``SIDES``, such as ``model_a, model_b`` or
    ``white, black``) with a winner (``WINNERS``), a pair of scores (``SCORES``: the higher wins, equal ones tie) or a
    column of 0 and 1 for each outcome (``winner_model_a, winner_model_b, winner_tie``); or ``winner, loser``.
    Columns named ``agent`` and ``weight`` (or ``count``) are read too.  ``notes`` list the columns used.

    Parameters
    ----------
    a, b : columns of the two sides.
    winner : column that says who won: a word from ``WORDS`` (in any case), the name of a side's column, or the name of
        the winning item; or the names of two or three columns of 0 and 1 (a, b, tie).
    loser : column of the losing item; ``winner`` is then the column of the winning one.
    scores : two numeric columns.
    agent, weight : columns with who judged, and with the weight (count) of each row.
    outcomes : the meaning of other words, {"word": "a" | "b" | "tie"}; or "words" or "names" to say what the winner
        column contains, if it could be either.
    control : numeric columns that may have helped ``a`` against ``b`` (`placet.io.tables.controls`): ``"bold"``, the
        difference ``"length_a - length_b"`` (or ``"length"``, if there is no such column), ``"one-hot(slot_a -
        slot_b)"`` for a column per value.  Votes with different controls are then kept apart.
    time : column of dates (2024-06-01) or numbers.
    items : names of all items, in order; by default those in the table, by first appearance.
    ignore : columns to ignore when finding the others.
    ordered : record who was ``a``.
    weights : "design" if the weight of a row is not how often it was seen but how many voters it stands for
        (`Comparisons.from_battles`).
    separator, format : of the file, if they cannot be inferred from its first lines and suffix.
    sheet : the sheet of a workbook, by name; needed if several have cells.

    Names are text if the file is text.

    Returns
    -------
    Comparisons
        Wins and ties of each pair.

    >>> votes = read_battles({"white": ["ann", "bob"], "black": ["bob", "cid"], "result": ["1-0", "1/2-1/2"]})
    >>> votes
    Comparisons(2 pairs, 3 items, 2 votes)
    >>> votes.notes
    ('read as votes: white, black, result',)
    """
    table = read_table(source, on_error, format, separator=separator, sheet=sheet).without(split_names(ignore))
    layout: BattleColumns | None = table.layout or find_layout(table, a, b, winner, loser, scores, agent, weight)
    if layout is None:
        raise DataError(f"{table.name}: the columns {table.names} are not those of battles; {_NAME_THEM}")
    if layout.won_lost and ordered:
        raise DataError(
            f"{table.name}: {layout.a}, {layout.b} say who won and not who came first, so there is no effect of coming "
            "first to estimate; name the two sides with a= and b= and the winner with winner=, or leave ordered out"
        )
    agent, weight = layout.agent, layout.weight
    terms = find_terms(table.names, control)
    own = layout.column_names()
    used = [*own, *(name for name in (agent, weight, time) if name), *(name for term in terms for name in term.columns)]
    for name in used:
        table.require(name, _NAME_THEM if name in own else "name it with agent=, weight=, time= or control=")
    apart = bool(agent or terms or time or weights == "design")
    rows = table.rows(*dict.fromkeys(used), distinct=not apart)
    first, second = rows.labels(layout.a), rows.labels(layout.b)
    both = join_columns([first, second])  # codes into one list of names
    x, y = both.code[: len(rows)], both.code[len(rows) :]
    rows.reject(x == y, "self", lambda row: f"{both.values[x[row]]!r} meets itself", "a battle has two different items")
    won = battle_outcomes(rows, layout, both, x, y, outcomes)
    agents = None if agent is None else rows.labels(agent)
    counts = np.ones(len(rows)) if weight is None else rows.numbers(weight, positive=True)
    controls = control_table(rows, terms)
    times = None if time is None else read_times(rows, time)
    good = rows.good_rows()
    if not len(good):
        raise DataError(f"{table.name}: no votes in it; a row has two items and who won")
    if layout.won_lost:
        _refuse_one_sided(table.name, layout, {name: values[good] for name, values in controls.items()})
    return Comparisons.from_codes(
        x[good],
        y[good],
        won[good],
        both.values,
        weight=(counts * rows.count)[good],
        agent=None if agents is None else agents.take(good).codes_and_values,
        items=items,
        ordered=ordered,
        notes=(table.note("votes", list(dict.fromkeys(used))), *_unused_agent(table, agent, used)),
        control=None if not terms else {name: values[good] for name, values in controls.items()},
        time=None if times is None else times[good],
        weights=weights,
    )


def _unused_agent(table: Table, agent: str | None, used: list[str]) -> list[str]:
    """A note on a column that may say who voted, if none is used as such."""
    found = None if agent else table.find(WHO)
    if found is None or found in used:
        return []
    return [
        f"column {found!r} may say who voted and was not used, so votes count as independent; with agent={found!r} "
        "errors are by agent"
    ]


def _refuse_one_sided(name: str, layout: BattleColumns, controls: Mapping[str, NDArray[Any]]) -> None:
    """Raise a ``DataError`` for a control of winners and losers whose sign reveals the winner in every row."""
    for control, values in controls.items():
        if len(values) > 1 and values.any() and ((values >= 0).all() or (values <= 0).all()):
            sign = "negative" if (values >= 0).all() else "positive"
            raise DataError(
                f"{name}: control {control!r} is never {sign} in a table of winners and losers, so that it would tell "
                f"every winner; a control is what helped {layout.a} less what helped {layout.b}, such as "
                '"winner_age - loser_age"'
            )


def battle_outcomes(
    rows: TableRows,
    layout: BattleColumns,
    both: Column,
    x: NDArray[Any],
    y: NDArray[Any],
    outcomes: Mapping[str, Outcome] | Literal["words", "names"] | None,
) -> NDArray[np.int8]:
    """The index of each row's outcome in ``OUTCOMES``; rows without one are rejected."""
    if layout.scores is not None:
        of_a, of_b = (rows.numbers(name, "name the columns with scores=") for name in layout.scores)
        return np.where(of_a > of_b, 0, np.where(of_a < of_b, 1, 2)).astype(np.int8)
    if layout.flags is not None:
        return _by_flags(rows, layout.flags)
    if layout.winner is None:
        return np.zeros(len(rows), np.int8)
    return _by_winner(rows, layout, both, x, y, outcomes)


def _by_flags(rows: TableRows, names: tuple[str, ...]) -> NDArray[np.int8]:
    """Outcomes from one 0/1 column per outcome, exactly one of which is 1."""
    flags = np.stack([rows.column(name, "name two or three columns with winner=").map(_flag, float) for name in names])
    wrong = np.isnan(flags).any(axis=0) | (flags.sum(axis=0) != 1)
    said = ", ".join(names)
    rows.reject(
        wrong,
        "winner",
        lambda row: f"{said} are {', '.join(rows.quote(name, row) for name in names)}: not one 1 and else 0",
        "give each row one outcome",
    )
    return np.argmax(flags, axis=0).astype(np.int8)


def _flag(cell: Any) -> float:
    if isinstance(cell, bool | str) and str(cell).lower() in ("true", "false"):
        return float(str(cell).lower() == "true")
    number = as_number(cell)
    return number if number in (0, 1) else float("nan")


def _by_winner(
    rows: TableRows,
    layout: BattleColumns,
    both: Column,
    x: NDArray[Any],
    y: NDArray[Any],
    outcomes: Mapping[str, Outcome] | Literal["words", "names"] | None,
) -> NDArray[np.int8]:
    """Outcomes from words for the sides or names of items; if a column could be either, ``outcomes`` must say which."""
    winner = cast(str, layout.winner)
    said = rows.column(winner)
    explained = outcomes if isinstance(outcomes, Mapping) else {}
    for word, meaning in explained.items():
        if meaning not in OUTCOMES:
            raise ValueError(f"outcomes explains {word!r} as {meaning!r}; choose from {as_choices(OUTCOMES)}")
    own_words = {str(word).strip().lower(): OUTCOMES.index(meaning) for word, meaning in explained.items()}
    words = _words(said.values, layout) | own_words
    by_word = said.map(lambda cell: -1 if cell is None else words.get(str(cell).lower(), -1), np.int8)
    index = {name: k for k, name in enumerate(both.values) if name is not None}
    item = said.map(lambda cell: -1 if cell is None or isinstance(cell, bool) else index.get(cell, -1), np.int64)
    by_name = np.where(item < 0, -1, np.where(item == x, 0, np.where(item == y, 1, -1))).astype(np.int8)
    by_name = np.where((by_name < 0) & (by_word == 2), 2, by_name).astype(np.int8)  # a name, or a tie
    clear = said.map(lambda cell: str(cell).lower() in own_words, bool) | rows.bad
    differ = (by_word >= 0) & (by_name >= 0) & (by_word != by_name) & ~clear
    reading: str | None = outcomes if isinstance(outcomes, str) else None
    if reading is None and differ.any():
        possible = [name for name, by in (("words", by_word), ("names", by_name)) if ((by >= 0) | rows.bad).all()]
        if len(possible) != 1:
            row = int(np.argmax(differ))
            ways = ['outcomes="words"', 'outcomes="names"']
            raise DataError.of_ways(
                f"{rows.table.name}: {winner} {rows.quote(winner, row)} may be a word for a side or the name of an "
                f"item ({int(rows.count[differ].sum())} such rows); say {' or '.join(ways)}",
                ways,
            )
        reading = possible[0]
    won = by_word if reading == "words" else by_name if reading == "names" else np.where(by_word >= 0, by_word, by_name)
    way_out = 'say what it means with outcomes={"word": "a" | "b" | "tie"}'
    missing = said.is_missing()
    rows.reject(missing, "winner", f"{winner} is missing", way_out)
    rows.reject(won < 0, "winner", lambda row: f"{winner} {rows.quote(winner, row)} is not a, b or tie", way_out)
    return won.astype(np.int8)


def _words(cells: Sequence[Any], layout: BattleColumns) -> dict[str, int]:
    """The meaning of each word in a winner column, as an index into ``OUTCOMES``."""
    words = {word: OUTCOMES.index(outcome) for word, outcome in _MEANING.items()}
    found = {str(cell).lower() for cell in cells if cell is not None}
    for side, name in enumerate((layout.a, layout.b)):
        stem = plain_name(name)
        known = {name.lower(), stem, stem.removesuffix("_team"), stem.removesuffix("_id"), stem.removesuffix("_name")}
        words |= dict.fromkeys(known | {word for word in found if plain_name(word) in known}, side)
    if found & {"h", "home"} or plain_name(layout.a).startswith("home"):
        words |= {"h": 0, "home": 0, "a": 1, "away": 1, "d": 2, "draw": 2}
    numbers = {number for word in found if (number := as_number(word)) is not None}
    for other, meaning in ((2, {1: 0, 2: 1}), (-1, {1: 0, 0: 2, -1: 1})):  # 1 and 2, or 1, 0 and -1
        if {1, other} <= numbers <= set(meaning):
            words |= {word: meaning[int(number)] for word in found if (number := as_number(word)) is not None}
    return words


def write_battles(comparisons: Comparisons, target: Source, *, format: str | None = None) -> None:
    """Write comparisons as rows ``model_a, model_b, winner, weight`` (``agent``, controls, ``time``), one per outcome.

    Read back with ``items=comparisons.items`` (and ``ordered``) they are equal if names are text (CSV, JSON lines) or
    all of one type (Parquet); pairs without any outcome are not written.

    >>> import io
    >>> import placet
    >>> file = io.BytesIO()
    >>> write_battles(placet.Comparisons.from_battles("ab", "bc", ["a", "tie"]), file, format="csv")
    >>> print(file.getvalue().decode())
    model_a,model_b,winner,weight
    a,b,model_a,1.0
    b,c,tie,1.0
    """
    c = comparisons
    wins = np.stack([c.wins_i, c.wins_j, c.ties], axis=1)
    row, outcome = np.nonzero(wins)
    words = np.array(["model_a", "model_b", "tie"])
    columns: dict[str, list[Any]] = {
        "model_a": [c.items[k] for k in c.i[row].tolist()],
        "model_b": [c.items[k] for k in c.j[row].tolist()],
        "winner": words[outcome].tolist(),
        "weight": wins[row, outcome].tolist(),
    }
    if c.agent is not None and c.agents is not None:
        columns["agent"] = [c.agents[k] for k in c.agent[row].tolist()]
    if c.control is not None and c.controls is not None:
        columns |= {name: values.tolist() for name, values in zip(c.controls, c.control[row].T)}
    if c.time is not None:
        columns["time"] = c.time[row].astype(str).tolist() if c.time.dtype.kind == "M" else c.time[row].tolist()
    write_table(target, columns, format)
