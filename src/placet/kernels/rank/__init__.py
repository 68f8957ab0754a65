"""Kernels of rankers: trees, weak learners, similarities, labels."""

from placet.kernels import modules_on_use

__getattr__ = modules_on_use(__name__)
