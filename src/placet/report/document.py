"""The page around its sections: one file that fetches nothing, runs only its own script, and embeds its data."""

import io
import json
import os
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import placet
from placet.io.files import writing
from placet.io.tables.tables import write_table
from placet.output.markup import render
from placet.report.figures import TEMPLATES, Facts, Lead, PageBlock, Sections
from placet.report.owner_columns import slug

STATIC = Path(__file__).parent / "static"
TYPES = {"csv": "text/csv", "json": "application/json"}


@dataclass(frozen=True)
class Origin:
    """Provenance of a page: the files read, the command, the seed, the date (UTC), and the days of the data.

    >>> Origin(files=("votes.csv",), seed=0).facts()
    [('file', 'votes.csv'), ('seed', '0')]
    """

    files: Sequence[str] = ()
    command: str = ""
    seed: int | None = None
    date: str = ""
    period: tuple[str, str] | None = None

    def facts(self) -> list[tuple[str, object]]:
        """The known facts, as rows of a table."""
        shown = list(self.files[:10]) + ([f"and {len(self.files) - 10} more"] if len(self.files) > 10 else [])
        known = [
            ("date", self.date),
            ("file" if len(self.files) == 1 else "files", ", ".join(shown)),
            ("command", self.command),
            ("seed", "" if self.seed is None else str(self.seed)),
        ]
        return [(name, fact) for name, fact in known if fact]


def now() -> str:
    """The current time to the minute, UTC; ``$SOURCE_DATE_EPOCH``, if set, makes the output reproducible."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH")
    at = datetime.fromtimestamp(int(fixed), UTC) if fixed else datetime.now(UTC)
    return at.strftime("%Y-%m-%d %H:%M UTC")


@cache
def shared_style() -> str:
    """The style sheet that the page shares with the studio."""
    return (STATIC / "shared.css").read_text(encoding="utf-8")


@cache
def _own_parts() -> dict[str, str]:
    """Style sheet, script, and the content security policy that allows these two and nothing else."""
    style = shared_style() + (STATIC / "page.css").read_text(encoding="utf-8")
    script = (STATIC / "page.js").read_text(encoding="utf-8")
    of_style, of_script = (b64encode(sha256(text.encode()).digest()).decode() for text in (style, script))
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; "
        f"style-src-attr 'unsafe-inline'; style-src-elem 'sha256-{of_style}'; script-src 'sha256-{of_script}'; "
        "img-src data:"
    )
    icon = b64encode((STATIC / "icon.svg").read_bytes()).decode()
    return {"style": style, "script": script, "policy": policy, "icon": icon}


def document(
    title: str,
    lead: Lead,
    sections: Sections,
    origin: Origin | None,
    about: Mapping[str, object],
    frame: Any,
    log: Sequence[PageBlock] = (),
) -> str:
    """HTML of the page; the Polars ``frame`` can be downloaded from it, with the metadata ``about``.

    ``log`` stands below the facts of "How it was made".
    """
    facts = origin.facts() if origin is not None else []
    made = Facts(facts=[*facts, ("made by", f"Placet {placet.__version__}")], code=("command",))
    files = _data_files(frame, {"title": title, **about, **dict(facts)})
    return render(
        f"{TEMPLATES}/page.html",
        title=title,
        date="" if origin is None else origin.date,
        lead=lead,
        files=[(name, TYPES[name.rpartition(".")[2]], b64encode(content).decode()) for name, content in files.items()],
        summary="".join((*lead.strong, *lead.rest)),
        sections=[
            (f"section-{slug(heading)}", heading, blocks)
            for heading, blocks in [*sections, ("How it was made", [made, *log])]
            if blocks
        ],
        **_own_parts(),
    )


def _data_files(frame: Any, about: Mapping[str, object]) -> dict[str, bytes]:
    """A Polars frame as CSV, and as JSON together with the metadata ``about``."""
    table = io.BytesIO()
    write_table(table, frame.to_dict(), "csv")
    text = json.dumps({**about, "ranking": frame.to_dicts()}, default=str, ensure_ascii=False, indent=1)
    return {"ranking.csv": table.getvalue(), "ranking.json": text.encode("utf-8", "replace")}


def write_page(path: str | os.PathLike[str], page: str) -> None:
    """Write a page; the file appears under its name only when it is complete."""
    with writing(path) as file:
        file.write(page.encode())
