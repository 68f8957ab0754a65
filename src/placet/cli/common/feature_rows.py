"""Read tables of rows: to train on with controls, or to score, with features matched to the ranker's by name."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placet.cli.common.console_output import say

if TYPE_CHECKING:
    from placet.data import Queries


def is_table(file: Path) -> bool:
    """Whether a file is a table by its suffix."""
    from placet.io.files import bare_suffix
    from placet.io.tables.tables import SUFFIXES

    return bare_suffix(file) in SUFFIXES


CONTROL_HELP = (
    'A column of a table that may have moved the grades, such as the place at which a row was shown: "position", '
    '"one-hot(position)", "shown - seen"; its effect is fitted beside the features and left out of the scores; may be '
    "repeated."
)


def check_control(ranker: str, control: Sequence[str], file: Path, *others: tuple[str, object]) -> None:
    """Raise a ``ValueError`` if this ranker, file or set of other options (``others``) does not allow controls."""
    from placet.rank.ranker import RANKERS, ranker_class

    said = f"--control {shlex.quote(control[0])}"
    able = [name for name in RANKERS if ranker_class(name).takes_control]
    if ranker not in able:
        raise ValueError(
            f"{said}: --ranker {ranker} fits no effects of controls beside its scores; choose from {able}, or leave "
            "--control out"
        )
    for option, given in others:
        if given:
            raise ValueError(f"{said} takes a table in memory; leave {option} out, or --control")
    if not is_table(file):
        raise ValueError(
            f"{said} names a column of a table, and {file} is text whose features have numbers only; make it a table "
            f"(placet convert {file} {file.stem}.csv; feature 7 is the column feature7), add the column to it if it is "
            "not among them, and train on that"
        )


def read_table_to_train(
    file: Path, valid: Path | None, control: Sequence[str], options: Mapping[str, Any]
) -> "tuple[Queries, dict[str, Any], Queries | None]":
    """Read the rows of a table as queries, their controls by name, and validation rows with the same features."""
    from placet.io.features import read_controlled

    rows, controls = read_controlled(str(file), control, **options)
    for note in rows.notes:
        say(note)
    if valid is None:
        return rows, controls, None
    if not is_table(valid):
        raise ValueError(f"--valid {valid}: the training rows are a table; give the validation rows as a table too")
    return rows, controls, read_known_features(valid, [str(name) for name in rows.features or ()], options)


def read_table_to_score(file: Path, ranker: Any, options: Mapping[str, Any], run: str = "") -> "Queries":
    """Read a table as queries with the features of a fitted ranker, in its order; other columns are ignored."""
    if run:
        raise ValueError(f"--run {run} names documents by #docid of LETOR text; {file} is a table: leave --run out")
    return read_known_features(file, [str(name) for name in ranker.features_ or ()], options, graded=False)


def read_known_features(
    file: Path, known: Sequence[str], options: Mapping[str, Any], *, graded: bool = True
) -> "Queries":
    """Read a table as queries with the features in ``known``, in that order; other columns are ignored."""
    from placet.data import DataError
    from placet.io.features import read_features
    from placet.io.tables.tables import read_table

    given = dict(options)
    form = {name: given.pop(name) for name in ("format", "separator") if name in given}
    table = read_table(str(file), given.get("on_error", "raise"), **form)
    absent = [name for name in known if name not in table.names]
    if known and "features" not in given and not absent:
        given["features"] = known
    rows = read_features(table, graded=graded, **given)
    for note in rows.notes:
        say(note)
    if absent and tuple(map(str, rows.features or ())) != tuple(known):
        raise DataError(
            f"{file}: no column {absent[0]!r}, a feature of the model ({len(absent)} of {len(known)} are missing); "
            f"the columns are {table.names[:20]}"
        )
    return rows
