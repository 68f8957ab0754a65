"""Rankers: scores computed from features, fitted to any loss."""

from placet.rank.files import load
from placet.rank.linear import LinearRanker

__all__ = ["LinearRanker", "load"]
