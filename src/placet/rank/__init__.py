"""Rankers: scores computed from features, fitted to any loss.  ``RANKERS`` lists them all by short name."""

from typing import TYPE_CHECKING

from placet.lazy import lazy_names
from placet.rank.ranker import RANKERS, load

if TYPE_CHECKING:
    from placet.rank.adarank import AdaRank
    from placet.rank.auto import autorank
    from placet.rank.blend import Blend
    from placet.rank.boosting import ConsistentBooster
    from placet.rank.clicks import ClickFit, choose_by_clicks, click_likelihood, fit_clicks
    from placet.rank.coordinate import CoordinateAscent
    from placet.rank.crf import ContinuousCRF
    from placet.rank.diversity import DiversityReranker, mmr
    from placet.rank.extra_trees import ForestRanker
    from placet.rank.fusion import SupervisedFusion
    from placet.rank.labels import LabelRanker
    from placet.rank.linear import LinearRanker
    from placet.rank.listwise import ListwiseFeatures
    from placet.rank.neural import NeuralRanker, torch_loss
    from placet.rank.rankboost import RankBoost
    from placet.rank.reranker import ListwiseReranker
    from placet.rank.structrank import StructRank
    from placet.rank.surrogate import SurrogateSearch
    from placet.rank.torch_adapters import CrossEncoderLoss, permutation_grades, preference_loss
    from placet.rank.torch_losses import native_loss
    from placet.rank.trees import TreeRanker, boosting_objective

# Modules of the public names that are not in RANKERS; every name is imported on first use.
_HOMES = {"autorank": "auto", "boosting_objective": "trees", "mmr": "diversity", "torch_loss": "neural"}
_HOMES |= dict.fromkeys(("fit_clicks", "choose_by_clicks", "click_likelihood", "ClickFit"), "clicks")
_HOMES |= {"native_loss": "torch_losses", "CrossEncoderLoss": "torch_adapters"}
_HOMES |= dict.fromkeys(("preference_loss", "permutation_grades"), "torch_adapters")
_HOMES |= {name: module for module, _, name in (home.partition(":") for home in RANKERS.homes.values())}

__all__ = ["RANKERS", "load", *sorted(_HOMES)]


__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
