"""Reading and writing what people have: every reader checks, names the line that is wrong, and drops nothing silently."""

from placet.io.letor import read_letor, write_letor
from placet.io.problems import DataWarning

__all__ = ["DataWarning", "read_letor", "write_letor"]
