"""A stated list of rankers, tried in order: the best on a validation set, or the mean of the few best."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from placet.data import DataError, Queries
from placet.metrics import Summary, summary
from placet.metrics import metric as metric_of
from placet.rank.blend import Blend
from placet.rank.ranker import Ranker, ranker_class
from placet.rank.validation import Best

Candidate = tuple[str, Mapping[str, Any]]

SECOND_STAGE: Mapping[str, Any] = {
    "kernels": ("cosine", "gaussian"),
    "average": True,
    "positive": True,
    "l2": (1e-2, 1e-1, 1.0),
}
"""How a listwise second stage is fitted over any base: means of two kernels, the base itself among the choices."""

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
    ("trees", {"loss": "pmop-fd", "learning_rate": 0.05, "leaves": 31, "feature_fraction": 0.5, "subsample": 0.7}),
    ("linear", {"loss": "pl-partition", "l2": 1e-1}),
    ("trees", {"loss": "attrank", "learning_rate": 0.05, "leaves": 15}),
    ("trees", {"loss": "xendcg", "learning_rate": 0.05, "leaves": 15}),
    ("linear", {"loss": "xendcg", "l2": 1e-3}),
    ("trees", {"loss": "lambdarank", "learning_rate": 0.05, "leaves": 15}),
    ("linear", {"loss": "lambdaloss", "l2": 1e-3}),
    ("listwise", {"base": ("linear", {"loss": "pmop-fd", "l2": 1e-2})}),
    ("listwise", {"base": ("trees", {"loss": "pmop-fd", "learning_rate": 0.05, "leaves": 15})}),
    ("reranker", {"base": ("linear", {"loss": "pmop-fd", "l2": 1e-3}), **SECOND_STAGE}),
    ("reranker", {"base": ("trees", {"loss": "pmop-fd", "learning_rate": 0.05, "leaves": 15}), **SECOND_STAGE}),
)
"""What ``autorank`` tries, in this order: two kinds of ranker, likelihoods, pairs and losses that aim at NDCG; then
whole lists: features of the list beside those of the row, and a listwise second stage."""

LOSSES_TO_DRAW = {
    "linear": ("pmop-fd", "pl-partition", "pl-lower-bound", "bregman-ce", "attrank", "ranknet", "cosine"),
    "trees": ("pmop-fd", "pl-partition", "pl-lower-bound", "attrank", "ranknet"),
    "booster": ("pmop-fd", "pl-partition", "bregman-ce", "attrank", "ranknet"),
}
"""Which losses ``draw_candidates`` gives to which ranker."""


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
    """What ``autorank`` chose and what it tried.

    ``ranker`` (fitted) is the one that was ``best`` by ``metric`` on the validation set, or the blend of the
    ``members``, best first; ``value`` is its own mean of the metric there.  ``interrupted``: whether Ctrl-C ended it.
    """

    ranker: Any
    best: Trial
    metric: str
    trials: tuple[Trial, ...] = field(repr=False)
    members: tuple[Trial, ...] = field(repr=False)
    value: float
    interrupted: bool = False

    def __repr__(self) -> str:
        lines = [f"{self.metric} on the validation set, {len(self.trials)} tried:"]
        if len(self.members) > 1:
            lines[0] += f" {self.value:.4f} by the mean of {len(self.members)} (*)"
        for trial in self.trials:
            mark = "*" if any(trial is member for member in self.members) else " "
            what = f"{trial.value:.4f} +- {trial.stderr:.4f}" if not trial.failure else f"failed: {trial.failure}"
            params = ", ".join(f"{key}={value}" for key, value in trial.params.items())
            lines.append(f"{mark} {trial.ranker}({params})  {what}  {trial.seconds:.1f} s")
        return "\n".join(lines)


def draw_candidates(n: int, random_state: int | np.random.Generator = 0) -> list[Candidate]:
    """``n`` candidates at random: linear, trees or boosted columns, each with a loss and settings of its own.

    Penalties, rates and sizes are uniform in their logarithm, shares uniform.  Boosted columns are features, or (twice
    as often) their products with similarities to the rest of the list.  The first of many draws are those of few.

    >>> draw_candidates(1, 11)
    [('linear', {'loss': 'pmop-fd', 'l2': 0.0099})]
    """
    rng = np.random.default_rng(random_state)
    return [_draw(rng) for _ in range(n)]


def _draw(rng: np.random.Generator) -> Candidate:
    def between(low: float, high: float) -> float:
        return float(f"{np.exp(rng.uniform(np.log(low), np.log(high))):.2g}")

    def share(low: float) -> float:
        return float(f"{rng.uniform(low, 1):.2g}")

    name = list(LOSSES_TO_DRAW)[rng.integers(len(LOSSES_TO_DRAW))]
    params: dict[str, Any] = {"loss": str(rng.choice(LOSSES_TO_DRAW[name]))}
    if name == "linear":
        params |= {"l2": between(1e-4, 1)}
    elif name == "trees":
        params |= {"learning_rate": between(0.02, 0.2), "leaves": int(between(4, 33)), "min_rows": int(between(5, 101))}
        params |= {"l2": between(0.1, 100), "subsample": share(0.5), "feature_fraction": share(0.2)}
    else:
        params |= {"learning_rate": between(0.1, 1), "subsample": share(0.5)}
        kernels = (None, ("cosine",), ("gaussian",))[rng.integers(3)]
        params |= {"feature_fraction": share(0.2)} if kernels is None else {"learners": "listwise", "kernels": kernels}
    return name, params


def autorank(
    train: Queries,
    valid: Queries,
    budget: int | None = None,
    *,
    metric: str = "ndcg@10",
    candidates: Sequence[Candidate] = SHORT_LIST,
    blend: int = 1,
    random_state: int = 0,
    progress: Callable[[int, int, float | None], None] | None = None,
) -> Choice:
    """Fit the first ``budget`` candidates (None: all) on ``train`` and keep the best by ``metric`` on ``valid``.

    ``candidates``: the ``SHORT_LIST``, ``draw_candidates(20)``, or a list of one's own; the ``base`` of a listwise
    one may be a candidate itself.  ``blend`` > 1 keeps the mean of that many best (``Blend``), which a small
    validation set misleads less than the choice of one.

    Each also stops, or keeps its best step, by the same metric on ``valid``, so the value of the best is an optimistic
    one: measure it on queries of its own.  A tie goes to the earlier.  A candidate that cannot be fitted (trees without
    LightGBM, listwise terms of sparse features) is a trial that says why.

    >>> import placet
    >>> data = placet.simulate.queries(40, 8, 3, noise=0.3, random_state=1)
    >>> choice = autorank(data[:20], data[20:30], budget=1)
    >>> choice.best.ranker, dict(choice.best.params)
    ('linear', {'loss': 'pmop-fd', 'l2': 0.001})
    """
    chosen = list(candidates)[:budget]
    if not chosen or (budget is not None and budget < 1):
        raise ValueError(f"budget {budget} of {len(candidates)} candidates leaves nothing to try; give at least 1")
    if blend < 1:
        raise ValueError(f"blend {blend} must be at least 1")
    trials: list[Trial] = []
    failures: list[Exception] = []
    best: Best[list[tuple[Trial, Ranker]]] = Best()
    with best:
        for name, params in chosen:
            ranker = unfitted(name, params, metric, random_state)
            start = time.perf_counter()
            try:
                found = _value(ranker.fit(train, valid=valid), valid)
            except (ImportError, DataError) as error:
                failures.append(error)
                trials.append(Trial(name, params, np.nan, np.nan, time.perf_counter() - start, str(error)))
                continue
            trials.append(Trial(name, params, found.mean, found.stderr, time.perf_counter() - start))
            pairs = [*([] if best.empty else best.state), (trials[-1], ranker)]
            best.consider(sorted(pairs, key=lambda pair: -pair[0].value)[:blend])
            if progress is not None:
                progress(len(trials), len(chosen), max(trial.value for trial, _ in best.state))
            if ranker.fit_summary_["interrupted"]:
                raise KeyboardInterrupt
    if best.empty:
        kind = type(failures[0])
        raise kind(f"none of the {len(trials)} candidates could be fitted: {failures[0]}") from failures[0]
    members, rankers = zip(*best.state)
    ranker = rankers[0] if len(rankers) == 1 else Blend.of(rankers, valid, metric)
    value = _value(ranker, valid).mean
    return Choice(ranker, members[0], metric, tuple(trials), members, value, best.interrupted)


def unfitted(name: str, params: Mapping[str, Any], metric: str, random_state: int) -> Ranker:
    """The ranker of a candidate; a ``base`` may be a candidate of its own."""
    kind = ranker_class(name)
    known = kind._get_param_names()
    common = {"random_state": random_state, "metric": metric}
    own, base = dict(params), params.get("base")
    if isinstance(base, tuple):
        own["base"] = unfitted(base[0], base[1], metric, random_state)
    return kind(**{**{key: value for key, value in common.items() if key in known}, **own})


def _value(ranker: Any, valid: Queries) -> Summary:
    """Mean and standard error of the ranker's own metric."""
    return summary(metric_of(ranker.metric)(ranker.predict(valid), valid.grade, valid.offsets))
