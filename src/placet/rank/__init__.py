"""Rankers: scores computed from features, fitted to any loss."""

from placet.rank.auto import autorank
from placet.rank.files import load
from placet.rank.fusion import SupervisedFusion
from placet.rank.labels import LabelRanker
from placet.rank.linear import LinearRanker
from placet.rank.neural import NeuralRanker
from placet.rank.slopes import objective
from placet.rank.training import torch_loss
from placet.rank.trees import TreeRanker

__all__ = [
    "LabelRanker",
    "LinearRanker",
    "NeuralRanker",
    "SupervisedFusion",
    "TreeRanker",
    "autorank",
    "load",
    "objective",
    "torch_loss",
]
