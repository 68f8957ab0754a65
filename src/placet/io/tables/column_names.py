"""Column names in their various spellings: ``Model A``, ``model_a`` and ``modelA`` are the same name."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from placet.data import DataError

if TYPE_CHECKING:
    from placet.io.tables.tables import Table

COUNTS = ("weight", "count")  # optional columns with the weight (count) of each row
WHO = tuple(
    "voter voter_id judge rater rater_id annotator annotator_id user user_id username respondent respondent_id "
    "participant participant_id worker worker_id".split()
)  # columns that may say who gave a row
# Columns that describe a row and are neither items nor features.
ABOUT = frozenset(
    "id index row row_id unnamed0 timestamp date time datetime day month year created created_at updated_at "
    "submitted_at submit_date start_date end_date start_time end_time completion_time duration age gender sex email "
    "email_address name username user user_id voter voter_id respondent respondent_id response_id participant "
    "participant_id ballot ballot_id agent instance judge rater annotator session session_id ip ip_address country "
    "city state zip zip_code postcode region language comment comments note notes source url title_id doc_id docid "
    "document_id document product_id qid query query_id label grade relevance rel target precinct status progress "
    "finished".split()
)
_SPLIT = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z])")
_OTHER = re.compile(r"[^a-z0-9]+")
_DIGIT = re.compile(r"_(?=[0-9]+(?:_|$))")
_BRACKETS = re.compile(r".*\[\s*(.*?)\s*\]\s*", re.DOTALL)


@lru_cache(maxsize=4096)
def plain_name(name: str) -> str:
    """A name in lower case, with an underscore for each run of characters that are not letters or digits.

    >>> [plain_name(name) for name in ("Model A", "modelA", "HomeTeam", "player_1", "Choice 2", "FTHG")]
    ['model_a', 'model_a', 'home_team', 'player1', 'choice2', 'fthg']
    """
    text = _SPLIT.sub("_", name.strip())
    text = re.sub(r"(?<=[a-z])(?=[AB]$)", "_", text)  # modelA, modelB
    return _DIGIT.sub("", _OTHER.sub("_", text.lower()).strip("_"))


_PAIRED = ("model", "player", "team", "item", "option", "candidate", "agent", "name", "system", "image", "side")
SIDES = (
    *((f"{what}_a", f"{what}_b") for what in _PAIRED),
    *((f"{what}1", f"{what}2") for what in (*_PAIRED, "p")),
    ("a", "b"),
    ("left", "right"),
    ("white", "black"),
    ("home_team", "away_team"),
    ("home", "away"),
    ("first", "second"),
)
"""Pairs of columns that are the two sides of a battle."""


def name_in_brackets(name: str) -> str:
    """The part of a name in brackets, as in the columns of Google Forms grids; else the whole name.

    >>> name_in_brackets("Rank the fruit [Apple]"), name_in_brackets("Apple")
    ('Apple', 'Apple')
    """
    match = _BRACKETS.fullmatch(name)
    return match.group(1) if match and match.group(1) else name.strip()


def split_names(names: str | Iterable[str]) -> list[str]:
    """Column names as a list, from an iterable or from text separated by commas."""
    if isinstance(names, str):
        return [part.strip() for part in names.split(",")]
    found = list(names) if isinstance(names, Iterable) else [names]
    if wrong := [name for name in found if not isinstance(name, str)]:
        raise ValueError(f"names of columns must be texts, not {wrong[0]!r}")
    return found


def find_column(names: Sequence[str], known: Iterable[str]) -> str | None:
    """The column with the first of the ``known`` names that occurs, or None."""
    own = {plain_name(name): name for name in reversed(names)}
    return next((own[name] for name in known if name in own), None)


def find_roles(
    table: "Table", known: Mapping[str, Sequence[str]], given: Mapping[str, str | None]
) -> dict[str, str] | None:
    """The column of each role, given or found by the names ``known`` for it; None if a role has no column."""
    found = {role: given.get(role) or table.find(names) for role, names in known.items()}
    whole = {role: name for role, name in found.items() if name is not None}
    return whole if len(whole) == len(known) else None


def roles_by_column(columns: Mapping[str, str | Iterable[str] | None]) -> dict[str, str]:
    """The role of each column, from the column or columns of each role.

    >>> roles_by_column({"item": "model", "task": None, "tasks": ("math", "law")})
    {'model': 'item', 'math': 'tasks', 'law': 'tasks'}
    """
    found = {role: [names] if isinstance(names, str) else names or () for role, names in columns.items()}
    return {name: role for role, names in found.items() for name in names}


def find_pair(table: "Table", pairs: Iterable[tuple[str, str]], way_out: str, way: str) -> tuple[str, str] | None:
    """The two columns of a table that match one of ``pairs``, or None; several matches are a ``DataError``."""
    own = table.plain_names
    found = [(own[a], own[b]) for a, b in pairs if a in own and b in own]
    if len(found) > 1:
        said = " or ".join(f"{a!r}, {b!r}" for a, b in found)
        raise DataError.of_ways(
            f"{table.name}: the two sides may be {said}; {way_out}", [way.format(*one) for one in found]
        )
    return found[0] if found else None
