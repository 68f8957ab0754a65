"""Data containers: read-only columns with offsets, validated once on construction."""

from placet.data.arrays import Lists
from placet.data.clicks import Clicks
from placet.data.comparisons import Comparisons
from placet.data.concatenation import concat
from placet.data.contests.games import Games
from placet.data.errors import DataError
from placet.data.parts import Parts
from placet.data.queries import Queries
from placet.data.rankings import Rankings
from placet.data.scores import Scores
from placet.data.sources import Sources

__all__ = [
    "Clicks",
    "Comparisons",
    "DataError",
    "Games",
    "Lists",
    "Parts",
    "Queries",
    "Rankings",
    "Scores",
    "Sources",
    "concat",
]
