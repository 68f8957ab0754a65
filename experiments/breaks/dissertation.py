"""Breaks of the experiments on listwise functions, surrogates, axioms and ranked signals."""

from dataclasses import replace
from typing import Any

import numpy as np

from experiments.breaks.mutant import Mutant, after, always, before, loss

HERE = "experiments.dissertation"
TRACKER = "placet.tracking.tracker"


def loud(model: Any, beacons: Any, arrivals: Any) -> tuple[Any, Any, Any]:
    """Noise taken for five times what it is."""
    return replace(model, sigma=5 * np.asarray(model.sigma)), beacons, arrivals


def unheard(model: Any, beacons: Any, arrivals: Any) -> tuple[Any, Any, Any]:
    """A beacon that is not heard says nothing of where the float is."""
    return replace(model, ranked=False), beacons, arrivals


def clean(model: Any, beacons: Any, arrivals: Any) -> tuple[Any, Any, Any]:
    """Hardly any clutter is expected."""
    return replace(model, clutter_rate=0.05), beacons, arrivals


def of_one_seed(original: Any) -> Any:
    """All chains draw the same numbers."""

    class Sequence(original):
        def spawn(self, n_children: int) -> list[Any]:
            return [np.random.SeedSequence(3)] * n_children

    return Sequence


def tracking(script: str) -> list[Mutant]:
    """What every tracking script must notice."""
    return [
        Mutant(script, "smoother off", f"{TRACKER}:RankedSignalTracker.track", always(smooth=False)),
        Mutant(script, "noise taken for five times what it is", f"{TRACKER}:evidence", before(loud)),
    ]


AXIOMS = [
    Mutant(
        "dissertation.table4",
        "Borda's points for the log rule",
        f"{HERE}.table4:margins",
        before(lambda rule, n: ("borda" if rule == "log" else rule, n)),
    ),
    Mutant(
        "dissertation.table4",
        "one linear program for all axioms",
        f"{HERE}.table4:worst_case",
        before(lambda axiom, points: ("majority", points)),
    ),
    Mutant(
        "dissertation.table4",
        "a place is lost in the points",
        "placet.axioms.positional:positional_vector",
        after(lambda h, *_: np.append(h[1:], h[-1])),
    ),
    Mutant(
        "dissertation.figure4_1",
        "half of each center whatever the weight",
        f"{HERE}.figure4_1:mallows_mixture",
        always(share=[0.5, 0.5]),
    ),
    Mutant(
        "dissertation.figure4_1",
        "more concentrated ballots",
        f"{HERE}.figure4_1:mallows_mixture",
        before(lambda centers, phi, n: (centers, 0.6, n)),
    ),
    Mutant(
        "dissertation.figure4_1",
        "plurality for Borda",
        f"{HERE}.figure4_1:positional_vector",
        before(lambda rule, n: ("plurality" if rule == "borda" else rule, n)),
    ),
]

SIGNALS = [
    *tracking("dissertation.figure5_6"),
    *tracking("dissertation.figure5_7"),
    *tracking("dissertation.dimes"),
    Mutant(
        "dissertation.dimes",
        "ellipses of half the level",
        "placet.tracking.track_result:Track.inside",
        always(level=0.5),
    ),
    Mutant("dissertation.figure5_6", "hardly any clutter expected", f"{TRACKER}:evidence", before(clean)),
    Mutant("dissertation.figure5_7", "hardly any clutter expected", f"{TRACKER}:evidence", before(clean)),
    Mutant("dissertation.figure5_6", "unheard beacons say nothing", f"{TRACKER}:evidence", before(unheard)),
    Mutant("dissertation.figure5_8", "the baseline for the ranked model", f"{TRACKER}:evidence", before(unheard)),
    Mutant("dissertation.figure5_8", "noise taken for five times what it is", f"{TRACKER}:evidence", before(loud)),
    Mutant(
        "dissertation.figure5_8",
        "motion taken for ten times what it is",
        f"{HERE}.figure5_8:tracker",
        always(diffusion=0.2),
    ),
    Mutant(
        "dissertation.figure5_12",
        "smoother off and end forgotten",
        f"{TRACKER}:RankedSignalTracker.track",
        before(lambda *args: args[:3]),
    ),
    Mutant(
        "dissertation.figure5_12", "all chains draw the same numbers", f"{TRACKER}:np.random.SeedSequence", of_one_seed
    ),
    Mutant(
        "dissertation.figure5_12",
        "beacons that never stop",
        "placet.tracking.observations:Beacons.active_beacons",
        after(lambda on, beacons, day: np.arange(len(beacons))),
    ),
    Mutant("dissertation.figure5_12", "noise taken for five times what it is", f"{TRACKER}:evidence", before(loud)),
]


def base_alone(scores: Any, reranker: Any, queries: Any) -> Any:
    from placet.rank.listwise.reranker import base_scores

    return base_scores(reranker.base_, queries)


def no_similarities(T: np.ndarray, *_: Any) -> np.ndarray:
    return np.zeros_like(T)


def no_norm(original: Any) -> Any:
    """Margins of boosted features are not divided by their norm."""

    class Unnormed(original):
        def __init__(self, *args: Any, **named: Any) -> None:
            super().__init__(*args, **named)
            self.norm = np.where(self.norm > 0, 1.0, 0.0)

    return Unnormed


def worst(judge: Any, *_: Any) -> Any:
    """What is best on the validation part counts as worst."""
    return lambda state: -judge(state)


RERANKER = "placet.rank.listwise.reranker"
LISTS = [
    Mutant(
        "dissertation.table2_1",
        "the reranker returns the base",
        f"{RERANKER}:ListwiseReranker._scores",
        after(base_alone),
    ),
    Mutant("dissertation.table2_1", "all similarities zero", "placet.rank.similarity:sums", after(no_similarities)),
    Mutant("dissertation.table2_1", "the worst penalty is kept", f"{RERANKER}:ListwiseReranker._judge", after(worst)),
    Mutant(
        "dissertation.whole_list",
        "the reranker returns the base",
        f"{RERANKER}:ListwiseReranker._scores",
        after(base_alone),
    ),
    Mutant("dissertation.whole_list", "all similarities zero", "placet.rank.similarity:sums", after(no_similarities)),
    Mutant(
        "dissertation.whole_list",
        "rows of the features' lists are mixed",
        "placet.rank.similarity:sums",
        after(lambda T, *_: T[np.random.default_rng(0).permutation(len(T))]),
    ),
    Mutant(
        "dissertation.figure3",
        "surrogate search keeps the worst",
        "placet.rank.linear.surrogate_search:SurrogateSearch._judge",
        after(worst),
    ),
    Mutant(
        "dissertation.figure3", "booster without its norm", "placet.rank.boosting.weak_rankers:ColumnLearner", no_norm
    ),
    Mutant("dissertation.figure3", "all similarities zero", "placet.rank.similarity:sums", after(no_similarities)),
    Mutant(
        "dissertation.figure3", "square for cross-entropy", "placet.losses:LOSSES[bregman-ce]", loss("bregman-square")
    ),
]

BREAKS = [*AXIOMS, *SIGNALS, *LISTS]
