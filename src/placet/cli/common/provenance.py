"""Provenance stated on a page: files, command, seed and date."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placet.report import Origin


def origin(files: Sequence[Path], seed: int | None) -> "Origin":
    """The names of the files, the command as typed, the seed and the time."""
    from placet.report import Origin
    from placet.report.document import now

    typed = shlex.join(["placet", *sys.argv[1:]]) if sys.argv[1:2] == ["aggregate"] else ""
    return Origin(files=tuple(file.name for file in files), command=typed, seed=seed, date=now())


def page_title(files: Sequence[Path]) -> str:
    """The default heading of a page."""
    return "Consensus of " + ", ".join(file.name for file in files[:3]) + (", ..." if len(files) > 3 else "")
