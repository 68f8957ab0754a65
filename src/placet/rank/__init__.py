"""Rankers: scores computed from features, fitted to any loss.  ``RANKERS`` has them all by their short names."""

from placet.rank.auto import autorank
from placet.rank.blend import Blend
from placet.rank.boosting import ConsistentBooster
from placet.rank.crf import ContinuousCRF
from placet.rank.diversity import DiversityReranker, mmr
from placet.rank.fusion import SupervisedFusion
from placet.rank.labels import LabelRanker
from placet.rank.linear import LinearRanker
from placet.rank.neural import NeuralRanker, torch_loss
from placet.rank.ranker import RANKERS, load
from placet.rank.reranker import ListwiseReranker
from placet.rank.structrank import StructRank
from placet.rank.surrogate import SurrogateSearch
from placet.rank.trees import TreeRanker, boosting_objective

__all__ = [
    "RANKERS",
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
    "boosting_objective",
    "load",
    "mmr",
    "torch_loss",
]
