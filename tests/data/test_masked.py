"""Masked arrays are not data, wherever numbers are given: what the mask hides would count."""

import numpy as np
import pytest

import placet
from placet.data import DataError, Lists
from placet.losses import LOSSES
from placet.metrics import METRICS, compare, interrater, propensities
from placet.metrics.metric_table import BY_SUBTOPIC
from placet.rank import LinearRanker, probabilities

HIDDEN = np.ma.masked_array([1.0, 2.0], [False, True])
TABLE = np.ma.masked_array(np.eye(3), np.eye(3))
PLAIN = np.array([1.0, 0.0])
RANKER = LinearRanker("ranknet")


def metric(name, s, grade):
    more = {"propensity": np.ones(2)} if name in ("psp", "psndcg") else {}
    return METRICS[name](s, grade[:, None] if name in BY_SUBTOPIC else grade, [0, 2], **more)


PLACES = {
    **{f"{name}, scores": lambda name=name: metric(name, HIDDEN, PLAIN) for name in METRICS},
    **{f"{name}, grades": lambda name=name: metric(name, PLAIN, HIDDEN) for name in METRICS},
    **{f"{name}, scores": lambda name=name: LOSSES[name](HIDDEN, Lists(PLAIN, [0, 2])) for name in LOSSES},
    **{f"{name}, grades": lambda name=name: LOSSES[name](PLAIN, Lists(HIDDEN, [0, 2])) for name in LOSSES},
    "weights": lambda: LOSSES["ranknet"](np.zeros(4), Lists(np.zeros(4), [0, 2, 4], HIDDEN)),
    "predict": lambda: RANKER.fit(placet.simulate.queries(8, 4, 3, random_state=1)).predict(TABLE),
    "alpha": lambda: interrater.krippendorff_alpha(TABLE),
    "W": lambda: interrater.kendall_w(TABLE),
    "compare": lambda: compare(HIDDEN, PLAIN),
    "propensities": lambda: propensities(HIDDEN, 10),
    "score table": lambda: placet.Scores.from_table(TABLE),
    "scores by row": lambda: placet.Scores.from_rows(["a", "b"], ["t", "t"], HIDDEN),
    "simulate": lambda: placet.simulate.battles(HIDDEN, 5),
    "places": lambda: probabilities.place_probabilities(HIDDEN),
    "tiers": lambda: probabilities.most_probable_tiers(HIDDEN, "davidson", {}),
}


@pytest.mark.jit
@pytest.mark.parametrize("place", PLACES)
def test_a_masked_array_is_refused(place):
    with pytest.raises(DataError, match="a masked array hides [13] of its [29] values"):
        PLACES[place]()


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_probabilities_of_places_and_tiers_need_finite_scores(wrong):
    with pytest.raises(DataError, match="row 1: a score is not finite"):
        probabilities.place_probabilities([0.0, wrong])
    with pytest.raises(DataError, match="row 1: a score is not finite"):
        probabilities.most_probable_tiers([0.0, wrong], "davidson", {})
