"""Kernels of aggregation: rules, models of ballots, rank sets."""

from placet.kernels import modules_on_use

__getattr__ = modules_on_use(__name__)
