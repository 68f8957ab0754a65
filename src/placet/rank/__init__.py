"""Rankers: scores computed from features, fitted to any loss."""

from placet.rank.files import load
from placet.rank.linear import LinearRanker
from placet.rank.trees import TreeRanker, objective

__all__ = ["LinearRanker", "TreeRanker", "load", "objective"]
