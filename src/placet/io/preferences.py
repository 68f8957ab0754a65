"""Arbitrary pairwise preferences, grouped in lists: text ``list: a > b > c``, or a table of pairs.

Stated pairs are votes of one agent.  They are ballots only if the pairs of every list are exactly those of an ordered
partition: all pairs across its tiers, and no others.  The choice is made for the whole file, since a choice by list
would depend on who won: of the pairs (a, b) and (b, c), a > b and c > b are a partition, a > b and b > c are not.
"""

from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations, permutations
from typing import Any, Literal, get_args

import numpy as np

from placet.data import Comparisons, DataError, Rankings
from placet.data.arrays import set_columns, unique_names
from placet.data.breaking import partition
from placet.data.errors import one_of
from placet.data.parameters import with_checked_options
from placet.io.ballots import is_table
from placet.io.files import Source, name_of, read_lines, write_lines
from placet.io.tables.column_names import find_roles
from placet.io.tables.tables import FileHead, read_table, write_table
from placet.io.text import OnError, Problems, parse_tiers, quoted_name

# Column names that are recognized by default.
KNOWN = {
    "ballot": ("ballot", "list", "voter", "agent", "query", "qid", "user", "session"),
    "better": ("over",),
    "worse": ("under",),
}
_SHAPE = 'a line is: list: A > B (or a chain A > B > C), with quotes around names that hold one of > = # : "'

PreferenceKind = Literal["auto", "votes", "ballots"]
Edge = tuple[Any, Any, int]  # the preferred item, the other, and the line of text or row of the table


def looks_like_preferences(head: FileHead) -> dict[str, str] | None:
    """Match a table with a column of each kind in ``KNOWN``; text is recognized only by its suffix."""
    return None if head.table is None else find_roles(head.table, KNOWN, head.pick(*KNOWN))


@with_checked_options
def read_preferences(
    source: Source | Any,
    *,
    ballot: str | None = None,
    better: str | None = None,
    worse: str | None = None,
    items: Sequence[Hashable] | None = None,
    separator: str | None = None,
    sheet: str | None = None,
    kind: PreferenceKind = "auto",
    format: str | None = None,
    on_error: OnError = "raise",
) -> Rankings | Comparisons:
    """Read each stated pair as a vote of its list, or one ballot per list where the lists are ordered partitions.

    Text has an edge or a chain on each line, ``anna: tea > milk``; a chain states all its pairs, and lines of one list
    need not be adjacent.  A table has columns for the list, the preferred item and the other item, given or found by
    the names in ``KNOWN``.  A list whose preferences form a cycle is an error that shows it, or is skipped.

    ``kind``: "votes"; "ballots", the finest ordered partition of each list, which loses the pairs within its tiers
    (`Rankings.from_preferences`); "auto": ballots if the pairs of every list are all those across the tiers of a
    partition, else votes.

    Returns
    -------
    Rankings or Comparisons
        As ``kind`` says.

    >>> import io
    >>> read_preferences(io.StringIO("anna: tea > milk > water\\nbert: milk > tea")).orders()
    [['tea', 'milk', 'water'], ['milk', 'tea']]
    >>> read_preferences(io.StringIO("anna: tea > milk\\nanna: milk > water"))
    Comparisons(2 pairs, 3 items, 2 votes)
    """
    one_of(kind, get_args(PreferenceKind), "kind")
    note = "read as preferences"
    if format is not None or separator is not None or is_table(source, sheet):
        table = read_table(source, on_error, format, separator=separator, sheet=sheet)
        given = {"ballot": ballot, "better": better, "worse": worse}
        names: dict[str, str] = table.layout or {what: given[what] or table.find(KNOWN[what]) or what for what in given}
        for name in names.values():
            table.require(name, "name the columns with ballot=, better=, worse=")
        rows = table.rows(*names.values())
        columns = [rows.labels(name) for name in names.values()]
        good = rows.good_rows()
        lists, over, under = (column.take(good) for column in columns)
        edges: dict[Hashable, list[Edge]] = {}
        for k, row in enumerate(good.tolist()):
            who, a, b = (column.values[column.code[k]] for column in (lists, over, under))
            edges.setdefault(who, []).append((a, b, int(rows.place[row])))
        problems = Problems(table.name, on_error, unit="list", locate=table.locate)
        note = table.note("preferences", list(names.values()))
    else:
        edges = _edges_of_text(source, on_error)
        problems = Problems(name_of(source), on_error, unit="list")
    return _votes_or_ballots(edges, items, problems, note, kind)


def _edges_of_text(source: Source, on_error: OnError) -> dict[Hashable, list[Edge]]:
    problems = Problems(name_of(source), on_error)
    edges: dict[Hashable, list[Edge]] = {}
    for number, line in read_lines(source):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, colon, chain = _split(line)
        tiers = parse_tiers(chain) if colon and name else f"{line.strip()[:60]!r} names no list"
        if isinstance(tiers, str):
            problems.add(number, None, tiers, _SHAPE)
        elif len(tiers) < 2 or any(len(tier) > 1 for tier in tiers):
            way_out = "write what is over what; items that tie have no edge between them"
            problems.add(number, "no edge", f"{chain.strip()[:60]!r} is not a preference", way_out)
        else:
            found = [(a[0], b[0], number) for a, b in combinations(tiers, 2)]
            edges.setdefault(name, []).extend(found)
    problems.close()
    return edges


def _split(line: str) -> tuple[str, str, str]:
    """The list's name, the colon and the chain; a name with a colon must be quoted."""
    text = line.lstrip()
    if not text.startswith('"'):
        name, colon, chain = text.partition(":")
        return name.strip(), colon, chain
    end = 1
    while (end := text.find('"', end)) >= 0 and text[end + 1 : end + 2] == '"':
        end += 2
    rest = text[end + 1 :].lstrip() if end > 0 else ""
    return text[1:end].replace('""', '"'), rest[:1] if rest[:1] == ":" else "", rest[1:]


def _votes_or_ballots(
    edges: dict[Hashable, list[Edge]], items: Sequence[Hashable] | None, problems: Problems, note: str, kind: str
) -> Rankings | Comparisons:
    """The lists whose preferences contain no cycle and no unknown item, as votes or ballots."""
    known = None if items is None else set(unique_names(items, "item"))
    orders: list[list[tuple[Hashable, ...]]] = []
    lists: list[Hashable] = []
    for who, own in edges.items():
        names = list(dict.fromkeys(name for a, b, _ in own for name in (a, b)))
        code = {name: k for k, name in enumerate(names)}
        strange = [name for name in names if known is not None and name not in known]
        if strange:
            text = f"item {strange[0]!r} of {who!r} is not among the given items"
            problems.add(own[0][2], "item", text, "correct the name or the items")
            continue
        over, under = (np.array([code[edge[side]] for edge in own]) for side in (0, 1))
        try:
            tiers = partition(over, under, tuple(names), f"list {who!r}")
        except DataError as error:
            text, _, way_out = str(error).rpartition("; ")
            problems.add(own[0][2], "cycle", text, way_out)
            continue
        orders.append([tuple(names[k] for k in tier) for tier in tiers])
        lists.append(who)
    problems.close()
    if not orders:
        raise DataError(f"{problems.name}: no preferences; {_SHAPE}")
    exact = sum(_is_partition(edges[who], order) for who, order in zip(lists, orders))
    if kind == "votes" or (kind == "auto" and exact < len(orders)):
        said = f"; {exact} of {len(lists)} lists are ordered partitions" if kind == "auto" else ""
        return _votes(edges, lists, items, (note, f"every stated preference is a vote of its list{said}"))
    found = Rankings.from_orders(orders, items=items, agent=lists)
    coarse = sum(len(order) == 1 for order in orders)
    said = "the preferences of every list are an ordered partition, so they are ballots"
    notes: tuple[str, ...] = (note, said) if kind == "auto" else (note,)
    if coarse:
        notes += (f"{coarse} of {len(orders)} lists separate no two groups of items, so they carry no information",)
    set_columns(found, notes=notes)
    return found


def _is_partition(own: list[Edge], order: list[tuple[Hashable, ...]]) -> bool:
    """Whether the stated pairs are all pairs across the tiers."""
    stated = {(a, b) for a, b, _ in own}
    across = sum(len(upper) * len(lower) for upper, lower in combinations(order, 2))
    return (
        len(order) > 1
        and len(stated) == across
        and not any(p in stated for tier in order for p in permutations(tier, 2))
    )


def _votes(
    edges: dict[Hashable, list[Edge]],
    lists: list[Hashable],
    items: Sequence[Hashable] | None,
    notes: tuple[str, ...],
) -> Comparisons:
    """A vote for each pair that a list states, however often it states it."""
    rows = [(who, a, b) for who in lists for a, b in dict.fromkeys((a, b) for a, b, _ in edges[who])]
    agent, better, worse = map(list, zip(*rows))
    names = list(dict.fromkeys(name for _, a, b in rows for name in (a, b))) if items is None else items
    found = Comparisons.from_battles(better, worse, ["a"] * len(rows), agent=agent, items=names)
    set_columns(found, notes=notes)
    return found


def write_preferences(rankings: Rankings, target: Source, *, format: str | None = None) -> None:
    """Write each item over those of all later tiers, as text or as a table; ballots of one tier are an error.

    Read back with ``items=rankings.items``, the ballots are equal if weights are 1 and names are text.

    >>> import io
    >>> import placet
    >>> file = io.BytesIO()
    >>> write_preferences(placet.Rankings.from_orders([["tea", ("milk", "juice")]]), file)
    >>> print(file.getvalue().decode())
    1: tea > milk
    1: tea > juice
    """
    lists: list[Hashable] = list(range(1, len(rankings) + 1))
    if rankings.agent is not None and rankings.agents is not None:
        lists = [rankings.agents[k] for k in rankings.agent.tolist()]
    if len(set(lists)) < len(lists):
        raise DataError("an agent has several ballots, which preferences would join; write ballots instead")
    if (rankings.weight != 1).any():
        raise DataError("preferences have no place for weights; write ballots instead")
    edges = list(_edges_of_ballots(rankings, lists))
    if format is not None or is_table(target, None):
        columns = dict(zip(("ballot", "over", "under"), map(list, zip(*edges))))
        write_table(target, columns, format)
        return
    quoted = {name: quoted_name(str(name)) for name in rankings.items}
    write_lines(target, (f"{quoted_name(str(who))}: {quoted[a]} > {quoted[b]}" for who, a, b in edges))


def _edges_of_ballots(rankings: Rankings, lists: list[Hashable]) -> Iterator[tuple[Hashable, Hashable, Hashable]]:
    for who, ballot in zip(lists, rankings):
        if len(ballot) < 2:
            raise DataError(f"ballot {who!r} has {len(ballot)} tiers, so no item is over another; leave it out")
        for upper, lower in combinations(ballot, 2):
            yield from ((who, a, b) for a in upper for b in lower)
