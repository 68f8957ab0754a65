"""Tables of rows to score: they need no grades, and the features are found by the names that the ranker knows."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placet.cli.output import say

if TYPE_CHECKING:
    from placet.data import Queries


def is_table(file: Path) -> bool:
    """Whether a file is a table by its suffix."""
    from placet.io.files import bare_suffix
    from placet.io.tables import SUFFIXES

    return bare_suffix(file) in SUFFIXES


def read_table_to_score(file: Path, ranker: Any, options: Mapping[str, Any], run: str = "") -> "Queries":
    """The rows of a table as queries with the features of a fitted ranker, in its order; other columns are ignored."""
    from placet.data import DataError
    from placet.io.features import read_features
    from placet.io.tables import read_table

    if run:
        raise ValueError(f"--run {run} names documents by #docid of LETOR text; {file} is a table: leave --run out")
    given = dict(options)
    form = {name: given.pop(name) for name in ("format", "separator") if name in given}
    table = read_table(str(file), given.get("on_error", "raise"), **form)
    known = [str(name) for name in ranker.features_ or ()]
    absent = [name for name in known if name not in table.names]
    if known and "features" not in given and not absent:
        given["features"] = known
    rows = read_features(table, graded=False, **given)
    for note in rows.notes:
        say(note)
    if absent and tuple(map(str, rows.features or ())) != tuple(known):
        raise DataError(
            f"{file}: no column {absent[0]!r}, a feature of the model ({len(absent)} of {len(known)} are missing); "
            f"the columns are {table.names[:20]}"
        )
    return rows
