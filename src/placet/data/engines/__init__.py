"""Engines: where parts are processed (here or on a Dask cluster, with the same bytes), and how much memory is left.

Importing this is cheap; `distributed` (extra ``dask``) is imported when a client is given or a cluster started.
"""

from placet.data.engines.dask_cluster import Dask, connect, dask
from placet.data.engines.serial import EngineError

__all__ = ["Dask", "EngineError", "connect", "dask"]
