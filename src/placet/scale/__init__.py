"""Computation on several machines: a Dask cluster processes parts, with the same bytes as a single process.

Importing this is cheap; `distributed` (extra ``dask``) is imported when a client is given or a cluster started.
"""

from placet.data.engine import EngineError
from placet.scale.engine import Dask, connect, dask

__all__ = ["Dask", "EngineError", "connect", "dask"]
