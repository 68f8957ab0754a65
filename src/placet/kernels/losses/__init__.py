"""Kernels of the losses."""

from placet.kernels import modules_on_use

__getattr__ = modules_on_use(__name__)
