"""A stated short list of rankers, tried in order, chosen on a validation set."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from placet.data import Queries
from placet.metrics import metric as metric_of
from placet.metrics import summary

Candidate = tuple[str, Mapping[str, Any]]

RANKERS = {
    "linear": "placet.rank.linear:LinearRanker",
    "trees": "placet.rank.trees:TreeRanker",
    "neural": "placet.rank.neural:NeuralRanker",
    "labels": "placet.rank.labels:LabelRanker",
}
"""Short names of the rankers that take any loss."""

SHORT_LIST: tuple[Candidate, ...] = (
    ("linear", {"loss": "pmop-fd", "l2": 1e-3}),
    ("trees", {"loss": "pmop-fd", "learning_rate": 0.05, "leaves": 15}),
    ("linear", {"loss": "pl-partition", "l2": 1e-3}),
    ("trees", {"loss": "pl-partition", "learning_rate": 0.05, "leaves": 15}),
    ("linear", {"loss": "pmop-fd", "l2": 1e-1}),
    ("trees", {"loss": "bregman-ce", "learning_rate": 0.05, "leaves": 15}),
    ("linear", {"loss": "ranknet", "l2": 1e-1}),
    ("trees", {"loss": "ranknet", "learning_rate": 0.05, "leaves": 15}),
    ("linear", {"loss": "attrank", "l2": 1e-4}),
    ("trees", {"loss": "pmop-fd", "learning_rate": 0.05, "leaves": 31, "columns": 0.5, "rows": 0.7}),
    ("linear", {"loss": "pl-partition", "l2": 1e-1}),
    ("trees", {"loss": "attrank", "learning_rate": 0.05, "leaves": 15}),
)
"""What ``autorank`` tries, in this order: two kinds of ranker, likelihoods, pairs and NDCG-consistent losses."""


@dataclass(frozen=True)
class Trial:
    """One fit: which ranker, its parameters, the mean and standard error on the validation set, seconds; or why not."""

    ranker: str
    params: Mapping[str, Any]
    value: float
    stderr: float
    seconds: float
    failure: str = ""


@dataclass(frozen=True)
class Choice:
    """What ``autorank`` chose and what it tried: ``ranker`` (fitted) was best by ``metric`` on the validation set."""

    ranker: Any
    best: Trial
    metric: str
    trials: tuple[Trial, ...] = field(repr=False)

    def __repr__(self) -> str:
        lines = [f"{self.metric} on the validation set, {len(self.trials)} tried:"]
        for trial in self.trials:
            mark = "*" if trial is self.best else " "
            what = f"{trial.value:.4f} +- {trial.stderr:.4f}" if not trial.failure else f"failed: {trial.failure}"
            params = ", ".join(f"{key}={value}" for key, value in trial.params.items())
            lines.append(f"{mark} {trial.ranker}({params})  {what}  {trial.seconds:.1f} s")
        return "\n".join(lines)


def autorank(
    train: Queries,
    valid: Queries,
    budget: int = len(SHORT_LIST),
    *,
    metric: str = "ndcg@10",
    candidates: Sequence[Candidate] = SHORT_LIST,
    random_state: int = 0,
    progress: Callable[[int, int, float | None], None] | None = None,
) -> Choice:
    """Fit the first ``budget`` candidates on ``train`` and keep the one with the best ``metric`` on ``valid``.

    Each also stops, or keeps its best step, by the same metric on ``valid``, so the value of the best is an optimistic
    one: measure it on queries of its own.  A tie goes to the earlier.  A candidate that cannot be fitted (trees without
    LightGBM, say) is a trial that says why.

    >>> import placet
    >>> data = placet.simulate.queries(40, 8, 3, noise=0.3, random_state=1)
    >>> choice = autorank(data[:20], data[20:30], budget=1)
    >>> choice.best.ranker, dict(choice.best.params)
    ('linear', {'loss': 'pmop-fd', 'l2': 0.001})
    """
    chosen = list(candidates)[:budget]
    if budget < 1 or not chosen:
        raise ValueError(f"budget {budget} of {len(candidates)} candidates leaves nothing to try; give at least 1")
    measure = metric_of(metric)
    trials: list[Trial] = []
    best: tuple[Trial, Any] | None = None
    for name, params in chosen:
        start = time.perf_counter()
        ranker = ranker_class(name)(**params, metric=metric, random_state=random_state)
        try:
            ranker.fit(train, valid=valid)
        except ImportError as error:
            trials.append(Trial(name, params, float("nan"), float("nan"), time.perf_counter() - start, str(error)))
            continue
        found = summary(measure(ranker.predict(valid), valid.grade, valid.offsets))
        trial = Trial(name, params, found.mean, found.stderr, time.perf_counter() - start)
        trials.append(trial)
        if best is None or trial.value > best[0].value:
            best = trial, ranker
        if progress is not None:
            progress(len(trials), len(chosen), best[0].value)
    if best is None:
        raise ImportError(f"none of the {len(trials)} candidates could be fitted: {trials[0].failure}")
    return Choice(best[1], best[0], metric, tuple(trials))


def ranker_class(name: str) -> Any:
    """The class of a short name."""
    if name not in RANKERS:
        raise ValueError(f"ranker {name!r} is unknown; choose from {sorted(RANKERS)}")
    module, _, attribute = RANKERS[name].partition(":")
    return getattr(import_module(module), attribute)
