"""The page around its sections: one file that fetches nothing, runs only its own script, and embeds its data."""

import io
import json
import os
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import placet
from placet.io.escaping import in_html
from placet.io.files import writing
from placet.io.tables.tables import write_table
from placet.report import figures
from placet.report.script import SCRIPT
from placet.report.style import CSS, PAGE_CSS

STYLE = CSS + PAGE_CSS

Sections = list[tuple[str, str]]
"""Headings and HTML; a section without text is omitted."""


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; "
    f"style-src-attr 'unsafe-inline'; style-src-elem {_hash(STYLE)}; script-src {_hash(SCRIPT)}"
)
"""Content security policy: the page may apply its own style sheet, run its own script, and fetch nothing."""


@dataclass(frozen=True)
class Origin:
    """Provenance of a page: the files read, the command, the seed, and the date (UTC).

    >>> Origin(files=("votes.csv",), seed=0).facts()
    [('file', 'votes.csv'), ('seed', '0')]
    """

    files: Sequence[str] = ()
    command: str = ""
    seed: int | None = None
    date: str = ""

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


def document(title: str, lead: str, sections: Sections, origin: Origin | None, files: Mapping[str, bytes]) -> str:
    """HTML of the page; ``files`` are the downloads it embeds, by name."""
    made = [*(origin.facts() if origin is not None else ()), ("made by", f"Placet {placet.__version__}")]
    sections = [*sections, ("How it was made", figures.key_values(made, code=("command",)))]
    body = "".join(f"<section><h2>{in_html(head)}</h2>{text}</section>" for head, text in sections if text)
    date = f'<p class="soft">{in_html(origin.date)}</p>' if origin is not None and origin.date else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{in_html(title)}</title><style>{STYLE}</style></head><body><main>"
        f"<h1>{in_html(title)}</h1>{date}{lead}{_downloads(files)}{body}"
        f"<footer>Placet {placet.__version__}</footer></main><script>{SCRIPT}</script></body></html>\n"
    )


def _downloads(files: Mapping[str, bytes]) -> str:
    if not files:
        return ""
    kinds = {"csv": "text/csv", "json": "application/json"}
    links = [
        f'<a download="{in_html(name)}" href="data:{kinds[name.rsplit(".", 1)[1]]};charset=utf-8;base64,'
        f'{b64encode(content).decode()}">{in_html(name)}</a>'
        for name, content in files.items()
    ]
    return f"<p>Data to download, with all digits: {', '.join(links)}.</p>"


def data_files(frame: Any, about: Mapping[str, object]) -> dict[str, bytes]:
    """A Polars frame as CSV, and as JSON together with the metadata ``about``."""
    table = io.BytesIO()
    write_table(table, frame.to_dict(), "csv")
    rows = frame.to_dicts()
    text = json.dumps({**about, "ranking": rows}, default=str, ensure_ascii=False, indent=1)
    return {"ranking.csv": table.getvalue(), "ranking.json": text.encode("utf-8", "replace")}


def write_page(path: str | os.PathLike[str], page: str) -> None:
    """Write a page; the file appears under its name only when it is complete."""
    with writing(path) as file:
        file.write(page.encode())
