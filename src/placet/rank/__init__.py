"""Rankers: scores computed from features, fitted to any loss."""

from placet.rank.auto import autorank
from placet.rank.blend import Blend
from placet.rank.boosting import ConsistentBooster
from placet.rank.crf import ContinuousCRF
from placet.rank.diversity import DiversityReranker, mmr
from placet.rank.files import load
from placet.rank.fusion import SupervisedFusion
from placet.rank.labels import LabelRanker
from placet.rank.linear import LinearRanker
from placet.rank.neural import NeuralRanker
from placet.rank.reranker import ListwiseReranker
from placet.rank.slopes import objective
from placet.rank.structrank import StructRank
from placet.rank.surrogate import SurrogateSearch
from placet.rank.training import torch_loss
from placet.rank.trees import TreeRanker

__all__ = [
    "Blend",
    "ConsistentBooster",
    "ContinuousCRF",
    "DiversityReranker",
    "LabelRanker",
    "LinearRanker",
    "ListwiseReranker",
    "NeuralRanker",
    "StructRank",
    "SupervisedFusion",
    "SurrogateSearch",
    "TreeRanker",
    "autorank",
    "load",
    "mmr",
    "objective",
    "torch_loss",
]
