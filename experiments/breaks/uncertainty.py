"""Breaks of the experiments on coverage."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from experiments.breaks.mutant import Mutant, after, always, before, give
from placet import Comparisons, Rankings
from placet.metrics import JudgedMean

CONSENSUS = "placet.aggregate.result.result:Consensus"
COVERAGE, EFFECTS, FORECASTS = "uncertainty.coverage", "uncertainty.effects", "uncertainty.forecasts"
CHOICES, DOOR = "uncertainty.choices", "placet.rank.choices.choice_door:"
TABLE = "placet.rank.linear.coefficients:CoefficientTable"
FORECAST = "placet.aggregate.result.learned.forecast:Forecast.updated"
EMISSION, SIGNALS = "uncertainty.emission", "placet.tracking.observation_model"
RELEVANCE = "uncertainty.judged_relevance"
MIXTURES, MIXTURE = "uncertainty.mixtures", "placet.aggregate.mixture.mixture:Mixture."
DRIFTING, WALK = "uncertainty.drifting", "placet.aggregate.pairs.drift:"
JUDGED_MEAN = "experiments.uncertainty.judged_relevance:judged_mean"


def any_rank(found: tuple[np.ndarray, np.ndarray], *_: Any) -> tuple[np.ndarray, np.ndarray]:
    """Sets of all ranks, which always cover."""
    return np.ones_like(found[0]), np.full_like(found[1], len(found[1]))


def low_level(consensus: Any, level: float = 0.95, *rest: Any) -> tuple[Any, ...]:
    return consensus, 0.5, *rest


def never_noted(found: list[str], *_: Any) -> list[str]:
    return []


def always_noted(found: list[str], *_: Any) -> list[str]:
    return ["differences between the groups are exaggerated"]


def halved_blocks(found: tuple[Any, ...], *_: Any) -> tuple[Any, ...]:
    """Errors of the scores as if half of the uncertainty came from memberships, and these were known."""
    return None if found[0] is None else [block / 2 for block in found[0]], *found[1:]


def standing(found: tuple[Any, Any], *_: Any) -> tuple[Any, Any]:
    """Widths of scores that do not move."""
    return found[0]._replace(drift=1e-3, spread=0.0), found[1]


def racing(found: tuple[Any, Any], *_: Any) -> tuple[Any, Any]:
    return found[0]._replace(drift=10 * found[0].drift), found[1]


def half_covariance(found: Any, *_: Any) -> Any:
    return found._replace(covariance=found.covariance / 2)


def frame(change: Callable[[pl.DataFrame], pl.DataFrame]) -> Callable[[property], property]:
    """The frame of the effects, changed."""
    return lambda original: property(lambda consensus: change(original.fget(consensus)))


def by_information(ranker: Any, rows: Any, table: Any, errors: Any, level: float) -> tuple[Any, ...]:
    return ranker, rows, table, "observed", level


def narrow(original: property) -> property:
    """Standard errors of coefficients, halved."""
    return property(lambda table: original.fget(table) / 2)  # type: ignore[misc]


def sure_groups(original: Any) -> Any:
    """Groups whose errors are a third of what they are."""

    def broken(*args: Any) -> Any:
        found = original(*args)
        return replace(found, coefficients=tuple(replace(t, covariance=t.covariance / 9) for t in found.coefficients))

    return broken


def undelayed(item: Any, far: np.ndarray, nodes: Any) -> np.ndarray:
    """Distances as if every signal came without a delay."""
    return np.ascontiguousarray(far[nodes.position])


def narrow_track(track: Any, *_: Any) -> Any:
    return replace(track, covariance=track.covariance / 4)


def coin_flips(found: tuple[Any, np.ndarray], *_: Any) -> tuple[Any, np.ndarray]:
    return found[0], np.full_like(found[1], np.log(2))


def sharper(power: float) -> Callable[..., tuple[Any, np.ndarray]]:
    """Odds raised to a power: favorites are said to be surer than they are, or less sure."""

    def change(found: tuple[Any, np.ndarray], *_: Any) -> tuple[Any, np.ndarray]:
        p = np.exp(-found[1])
        return found[0], np.log1p(((1 - p) / p) ** power)

    return change


def wide(found: tuple[np.ndarray, np.ndarray], *_: Any) -> tuple[np.ndarray, np.ndarray]:
    return found[0] - 10.0, found[1] + 10.0


def judge_for_people(found: JudgedMean, *_: Any) -> JudgedMean:
    half = 1.96 * found.judge.stderr
    return replace(found, mean=found.judge.mean, low=found.judge.mean - half, high=found.judge.mean + half)


def people_alone(found: JudgedMean, *_: Any) -> JudgedMean:
    return replace(found, mean=found.human.mean, low=found.human_low, high=found.human_high)


def half_as_wide(found: JudgedMean, *_: Any) -> JudgedMean:
    half = (found.high - found.low) / 4
    return replace(found, low=found.mean - half, high=found.mean + half)


def endless_judge(h: np.ndarray, j: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray, float]:
    """The lists of the judge alone as if there were a thousand times as many: its mean is taken for the truth."""
    alone = np.isnan(h)
    return np.r_[h, np.full(999 * alone.sum(), np.nan)], np.r_[j, np.tile(j[alone], 999)], level


def all_separated(found: np.ndarray, consensus: Any, *_: Any) -> np.ndarray:
    """Every item is above those with lower scores."""
    return consensus.scores[:, None] > consensus.scores[None]


def without_agents(data: Any, *_: Any) -> Any:
    """The same votes or ballots as if each were an agent's only one."""
    return replace(data, agent=None, agents=None)


def as_counts(data: Any, *_: Any) -> Any:
    """The same data with weights of 1, 2 and 8 that say how many votes or ballots a row is."""
    plain = replace(data, weights="counts", agent=None, agents=None)
    if isinstance(data, Rankings):
        return replace(plain, weight=data.weight / data.weight.min())
    return plain.reweighted(1 / (data.wins_i + data.wins_j + data.ties).min())


def asked(kind: type, method: str, **params: Any) -> Callable[[Any], Any]:
    """Data of a kind by this method, whatever the default."""

    def broken(original: Any) -> Any:
        def consensus(data: Any, *args: Any, **named: Any) -> Any:
            mine = isinstance(data, kind) and not args
            return original(data, method, **named, **params) if mine else original(data, *args, **named)

        return consensus

    return broken


def outer_products(_: np.ndarray, b: Any, theta: np.ndarray) -> np.ndarray:
    """The outer products of the ballots' gradients for their Hessian."""
    found = b.outer_products(theta)
    found[np.diag_indices(b.n)] += b.precision
    return b.with_trend(found)


BREAKS = [
    Mutant(COVERAGE, "sets of all ranks", f"{CONSENSUS}.rank_interval", after(any_rank)),
    Mutant(COVERAGE, "sets of level 0.5", f"{CONSENSUS}.rank_interval", before(low_level)),
    Mutant(COVERAGE, "separation at level 0.5", f"{CONSENSUS}.separated", before(low_level)),
    Mutant(COVERAGE, "each item's own set for all at once", f"{CONSENSUS}.rank_interval", always(kind="marginal")),
    Mutant(
        EFFECTS,
        "standard errors halved",
        f"{CONSENSUS}.controls",
        frame(lambda f: f.with_columns(pl.col("stderr") / 2)),
    ),
    Mutant(
        EFFECTS,
        "standard errors doubled",
        f"{CONSENSUS}.controls",
        frame(lambda f: f.with_columns(pl.col("stderr") * 2)),
    ),
    Mutant(
        EFFECTS,
        "effects a fifth too small",
        f"{CONSENSUS}.controls",
        frame(lambda f: f.with_columns(pl.col("coefficient") * 0.8)),
    ),
    Mutant(CHOICES, "the information for persons who repeat", f"{DOOR}_coefficients", before(by_information)),
    Mutant(CHOICES, "standard errors halved", f"{TABLE}.stderr", narrow),
    Mutant(CHOICES, "groups as sure as if they were known", f"{DOOR}fit_classes", sure_groups),
    Mutant(EMISSION, "emission taken as known", f"{SIGNALS}:delay_prior", give(lambda *_: None)),
    Mutant(EMISSION, "signals not delayed", f"{SIGNALS}:_delayed", give(undelayed)),
    Mutant(EMISSION, "ellipses half as wide", "placet.tracking.tracker:combine_chains", after(narrow_track)),
    Mutant(FORECASTS, "every match a coin flip", FORECAST, after(coin_flips)),
    Mutant(FORECASTS, "favorites twice as sure", FORECAST, after(sharper(2.0))),
    Mutant(FORECASTS, "favorites half as sure", FORECAST, after(sharper(0.5))),
    Mutant(
        "uncertainty.priors",
        "one mean for all items",
        "placet.aggregate.pairs.pair_likelihood:trend_of",
        give(lambda support, means=None: np.zeros((len(support), 0))),
    ),
    Mutant("uncertainty.priors", "intervals of level 0.5", f"{CONSENSUS}.interval", before(low_level)),
    Mutant("uncertainty.priors", "intervals far too wide", f"{CONSENSUS}.interval", after(wide)),
    Mutant("uncertainty.priors", "everything separated", f"{CONSENSUS}.separated", after(all_separated)),
    Mutant("uncertainty.few_units", "everything separated", f"{CONSENSUS}.separated", after(all_separated)),
    Mutant(
        "uncertainty.few_units", "nothing separated", f"{CONSENSUS}.separated", after(lambda found, *_: found & False)
    ),
    Mutant("uncertainty.few_units", "separation at level 0.5", f"{CONSENSUS}.separated", before(low_level)),
    Mutant(
        "uncertainty.dependence",
        "PMOP believed where ballots are not its own",
        "placet.aggregate.ballots.ballot_models:PMOP.fixes_ties",
        give(False),
    ),
    Mutant(
        "uncertainty.dependence",
        "raters at the joint mode",
        "placet.aggregate.likelihood.rater_posterior:RaterPosterior.with_raters_averaged",
        give(lambda posterior, x, arrow: x),
    ),
    Mutant("uncertainty.dependence", "intervals of level 0.5", f"{CONSENSUS}.interval", before(low_level)),
    Mutant("uncertainty.dependence", "everything separated", f"{CONSENSUS}.separated", after(all_separated)),
    Mutant(
        "uncertainty.dependence", "agents forgotten", "experiments.uncertainty.dependence:votes", after(without_agents)
    ),
    *(
        Mutant(
            "uncertainty.dependence",
            f"design weights of {kind} are counts",
            f"experiments.uncertainty.dependence:designed_{kind}",
            after(as_counts),
        )
        for kind in ("votes", "ballots")
    ),
    Mutant(
        "uncertainty.defaults",
        "half a win for a tie",
        "placet:consensus",
        asked(Comparisons, "bradley-terry", ties="none"),
    ),
    Mutant(
        "uncertainty.defaults",
        "outer products for the Hessian",
        "placet.aggregate.likelihood.ballot_objective:dense_hessian",
        after(outer_products),
    ),
    Mutant("uncertainty.defaults", "ratings by mpm", "placet:consensus", asked(Rankings, "mpm")),
    Mutant(
        "uncertainty.defaults",
        "stated pairs as partitions",
        "experiments.uncertainty.defaults:read_preferences",
        always(kind="ballots"),
    ),
    Mutant(MIXTURES, "groups that are hardly told apart are not noted", MIXTURE + "_hardly_better", after(never_noted)),
    Mutant(MIXTURES, "a prior for each group", "placet.aggregate.mixture.mixture:MOST_JOINT", lambda most: 0),
    Mutant(MIXTURES, "groups are always noted", MIXTURE + "_hardly_better", after(always_noted)),
    Mutant(
        MIXTURES,
        "memberships taken as known",
        "placet.aggregate.mixture.mixture:mixture_covariance",
        after(halved_blocks),
    ),
    Mutant(DRIFTING, "no drift", WALK + "learn_drift", after(standing)),
    Mutant(DRIFTING, "errors too small by the root of two", WALK + "WalkFit._posterior", after(half_covariance)),
    Mutant(DRIFTING, "drift ten times too fast", WALK + "learn_drift", after(racing)),
    Mutant(RELEVANCE, "the judge's mean for people's", JUDGED_MEAN, after(judge_for_people)),
    Mutant(RELEVANCE, "people alone", JUDGED_MEAN, after(people_alone)),
    Mutant(RELEVANCE, "half of the error", JUDGED_MEAN, after(half_as_wide)),
    Mutant(
        RELEVANCE, "the judge's mean has no error", "placet.metrics.human_and_judge:_by_line", before(endless_judge)
    ),
]
