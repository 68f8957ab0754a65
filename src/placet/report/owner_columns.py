"""Columns that the owner of a page adds about items (organization, license, link), and the anchors of rows."""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from placet.data.errors import DataError
from placet.io.tables.item_tables import links_of


class OwnedCells(NamedTuple):
    """The address that an item's name links to, or nothing, and the texts of the owner's columns."""

    link: str
    texts: Sequence[str]


@dataclass(frozen=True)
class OwnerColumns:
    """Headings of columns, and the cells of items; an item without cells has empty ones."""

    heads: Sequence[str] = ()
    cells: Mapping[str, OwnedCells] = field(default_factory=dict)

    def of(self, item: Hashable) -> OwnedCells:
        """The cells of an item."""
        return self.cells.get(str(item)) or OwnedCells("", [""] * len(self.heads))


NO_COLUMNS = OwnerColumns()


def owner_columns(about: Mapping[str, Mapping[str, str]] | None, items: Sequence[Hashable]) -> OwnerColumns:
    """The owner's columns about these items; the first column with web addresses is the link of their names.

    >>> owner_columns({"ant": {"kind": "insect", "link": "https://example.org"}}, ["ant", "bee"]).of("ant")
    OwnedCells(link='https://example.org', texts=['insect'])
    """
    if not about:
        return NO_COLUMNS
    known = [str(item) for item in items if str(item) in about]
    if not known:
        raise DataError(
            f"none of the {len(about):,} items described, first {next(iter(about))!r}, is among the {len(items):,} "
            f"items ranked, first {str(items[0]) if items else 'none'!r}; write their names as in the votes"
        )
    linked = next((name for item in known for name, _ in [links_of(about[item])] if name), "")
    heads = list(dict.fromkeys(name for item in known for name in about[item] if name != linked))
    cells = {}
    for item in known:
        link = links_of({linked: about[item].get(linked, "")})[1]
        cells[item] = OwnedCells(link, [about[item].get(name, "") for name in heads])
    return OwnerColumns(heads, cells)


def slug(text: object) -> str:
    """Text as a part of an address.

    >>> slug("Claude 3.5 (new)"), slug("<>")
    ('claude-3.5-new', 'x')
    """
    return re.sub(r"[^\w.]+", "-", str(text).lower()).strip("-") or "x"


def anchors(names: Sequence[Hashable], part: str = "") -> list[str]:
    """A different anchor for each row.

    >>> anchors(["Ant", "ant!", "bee"]), anchors(["ant"], "en")
    (['item-ant', 'item-ant-2', 'item-bee'], ['en-item-ant'])
    """
    start = f"{slug(part)}-item-" if part else "item-"
    found: dict[str, None] = {}
    for name in names:
        base = start + slug(name)
        numbered = (f"{base}-{k}" for k in count(2))
        found[base if base not in found else next(text for text in numbered if text not in found)] = None
    return list(found)
