"""More than one machine: parts worked on by a Dask cluster, with the bytes that one process gives.

Importing this costs nothing; `distributed` (extra ``dask``) is imported when a client is given or a cluster started.
"""

from placet.data.engine import EngineError
from placet.scale.engine import Dask, connect, dask

__all__ = ["Dask", "EngineError", "connect", "dask"]
