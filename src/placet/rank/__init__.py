"""Rankers: scores computed from features, fitted to any loss.  ``RANKERS`` lists them all by short name."""

from typing import TYPE_CHECKING

from placet.lazy import lazy_names
from placet.rank.ranker import RANKERS, load

if TYPE_CHECKING:
    from placet.rank.boosting.adarank import AdaRank as AdaRank
    from placet.rank.boosting.consistent_booster import ConsistentBooster as ConsistentBooster
    from placet.rank.boosting.coordinate_ascent import CoordinateAscent as CoordinateAscent
    from placet.rank.boosting.rankboost import RankBoost as RankBoost
    from placet.rank.choices.choice_door import ChoiceFit as ChoiceFit, choice as choice
    from placet.rank.clicks import (
        ClickFit as ClickFit,
        choose_by_clicks as choose_by_clicks,
        click_likelihood as click_likelihood,
        fit_clicks as fit_clicks,
    )
    from placet.rank.fusion import SupervisedFusion as SupervisedFusion
    from placet.rank.linear.coefficients import CoefficientTable as CoefficientTable
    from placet.rank.linear.linear_ranker import LinearRanker as LinearRanker
    from placet.rank.linear.surrogate_search import SurrogateSearch as SurrogateSearch
    from placet.rank.listwise.crf import ContinuousCRF as ContinuousCRF
    from placet.rank.listwise.diversity import DiversityReranker as DiversityReranker, mmr as mmr
    from placet.rank.listwise.listwise_features import ListwiseFeatures as ListwiseFeatures
    from placet.rank.listwise.reranker import ListwiseReranker as ListwiseReranker
    from placet.rank.listwise.structrank import StructRank as StructRank
    from placet.rank.multilabel.label_ranker import LabelRanker as LabelRanker
    from placet.rank.search.autorank import autorank as autorank
    from placet.rank.search.blend import Blend as Blend
    from placet.rank.torch.native_losses import native_loss as native_loss
    from placet.rank.torch.neural import NeuralRanker as NeuralRanker, torch_loss as torch_loss
    from placet.rank.torch.training_adapters import (
        CrossEncoderLoss as CrossEncoderLoss,
        permutation_grades as permutation_grades,
        preference_loss as preference_loss,
    )
    from placet.rank.trees.forest_ranker import ForestRanker as ForestRanker
    from placet.rank.trees.tree_ranker import TreeRanker as TreeRanker, boosting_objective as boosting_objective

# Modules of the public names that are not in RANKERS; every name is imported on first use.
_HOMES = {
    "autorank": "search.autorank",
    "boosting_objective": "trees.tree_ranker",
    "mmr": "listwise.diversity",
    "torch_loss": "torch.neural",
}
_HOMES |= dict.fromkeys(("fit_clicks", "choose_by_clicks", "click_likelihood", "ClickFit"), "clicks")
_HOMES |= dict.fromkeys(("ChoiceFit", "choice"), "choices.choice_door")
_HOMES |= {"CoefficientTable": "linear.coefficients"}
_HOMES |= {"native_loss": "torch.native_losses", "CrossEncoderLoss": "torch.training_adapters"}
_HOMES |= dict.fromkeys(("preference_loss", "permutation_grades"), "torch.training_adapters")
_HOMES |= {name: module for module, _, name in (home.partition(":") for home in RANKERS.homes.values())}

__all__ = ["RANKERS", "load", *sorted(_HOMES)]


__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
