"""What people bring: frozen columns with offsets, checked once where they are made."""

from placet.data.errors import DataError
from placet.data.lists import Lists

__all__ = ["DataError", "Lists"]
