"""The sections "How few votes decide it" and "Check this page"."""

import shlex
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placet.aggregate import Consensus
from placet.aggregate.proof.places_decided import decided_places
from placet.report.figures import TEMPLATES, Figure, Notes, PageBlock, TableColumn, TableFigure, sentences

if TYPE_CHECKING:
    from placet.aggregate.proof.fragility_result import FragileClaim, Fragility

MOST_LISTED = 50
NAME = "board.cert.json"
"""The name under which the certificate is saved from the page."""


@dataclass(frozen=True, kw_only=True)
class CheckFigure(Figure):
    """How to check the page: the certificate to save (base64), its digest, and the ``command`` that checks it."""

    template = f"{TEMPLATES}/check.html"
    name: str
    content: str
    command: str
    digest: str
    files: Sequence[tuple[str, str]]


def fragility_blocks(c: Consensus) -> list[PageBlock]:
    """How few votes and voters decide the first three places, and which votes decide the first."""
    found = decided_places(c, unasked=True)
    words = [one.place_words() for one in found]
    if not any(words):
        return []
    first = found[0]
    meaning = (
        f"Without these {first.unit}s another item has the place; each set was found by ranking again without it. "
        "“At most”: a smaller set may do the same."
    )
    notes = Notes(notes=sentences([f"{text}." for text in words if text], c.items))
    return [notes, meaning, *_removed(first, first.claims[0])]


def _removed(found: "Fragility", one: "FragileClaim") -> list[PageBlock]:
    """What decides the first place, as a table."""
    removed = _counts_by_kind(one.removed)
    if not removed:
        return []
    names = list(dict.fromkeys(name for row in removed for name in row))
    numbers = ("removed", "of", "votes", "ballots", "ballot")
    columns = [TableColumn(name, "", "num" if k and name in numbers else "") for k, name in enumerate(names)]
    rows = [[_text(row.get(name, "")) for name in names] for row in removed[:MOST_LISTED]]
    label = f"The {found.unit}s that decide {one.claim.words()}"
    cut = f"{MOST_LISTED} of {len(removed):,} rows are shown." if len(removed) > MOST_LISTED else ""
    return [TableFigure(label=label, columns=columns, rows=rows, left_out=cut)]


def _counts_by_kind(removed: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows without voters, whom a page does not name, and times; rows that are then alike are counted together."""
    if not any({"voter", "time"} & set(row) for row in removed) or not all("removed" in row for row in removed):
        return [{name: value for name, value in row.items() if name != "voter"} for row in removed]
    found: dict[tuple[tuple[str, Any], ...], float] = {}
    for row in removed:
        kind = tuple((name, value) for name, value in row.items() if name not in ("voter", "time", "removed", "of"))
        found[kind] = found.get(kind, 0) + row["removed"]
    most_first = sorted(found.items(), key=lambda one: -one[1])
    return [{**dict(kind), "removed": count} for kind, count in most_first]


def _text(value: Any) -> str:
    return f"{value:,g}" if isinstance(value, int | float) else str(value)


def check_blocks(certificate: Mapping[str, Any] | None) -> list[PageBlock]:
    """How to check the page, if it carries a certificate."""
    if certificate is None:
        return []
    from placet.aggregate.proof.certificate import canonical

    files = [(str(entry["name"]), str(entry["sha256"])) for entry in certificate["files"]]
    command = shlex.join(["placet", "verify", NAME, *(name for name, _ in files)])
    content = b64encode(canonical(certificate) + b"\n").decode()
    return [CheckFigure(name=NAME, content=content, command=command, digest=str(certificate["digest"]), files=files)]
