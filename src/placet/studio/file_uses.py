"""What the files of a workspace can be used for, from their first bytes and columns alone."""

from collections.abc import Sequence

from placet.data import Queries
from placet.io.formats import FORMATS, choose_format, formats_with
from placet.io.tables.tables import open_head
from placet.studio.file_lists import paths_of
from placet.studio.store import Dataset

ARRIVALS, BEACONS = {"day", "arrival_s"}, ({"id", "lat", "lon"}, {"id", "x", "y"})
"""Columns of the two tables that a track needs."""


def uses_of_file(data: Dataset) -> set[str]:
    """The uses of a dataset: "rankers", "arrivals", "beacons"; none if its beginning cannot be read."""
    options = {name: value for name, value in data.reading.items() if name not in ("format", "on_error")}
    found: set[str] = set()
    try:
        possible = formats_with(options, data.reading.get("format"))
        with open_head(paths_of(data.path), "skip", options) as head:
            names = set(head.open_table().names) if head.is_table else set()
            found |= {"arrivals"} if names >= ARRIVALS else set()
            found |= {"beacons"} if any(names >= one for one in BEACONS) else set()
            graded = [name for name in possible if FORMATS[name].kind is Queries]
            if head.is_table:  # other formats of tables look at cells, of which there may be many
                trained = any(FORMATS[name].looks_like(head) is not None for name in graded)
            else:
                trained = choose_format(head, possible)[0] in graded
            found |= {"rankers"} if trained else set()
    except (ValueError, OSError):  # the page of the dataset says what is wrong
        return found
    return found


def usable(datasets: Sequence[Dataset], *uses: str) -> dict[str, list[Dataset]]:
    """For each use, the datasets that have it."""
    every = [(data, uses_of_file(data)) for data in datasets]
    return {use: [data for data, own in every if use in own] for use in uses}
