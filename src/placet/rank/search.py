"""Fit candidates in sequence on splits of the queries, within a time limit, and keep the best few."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np

from placet.data import DataError, Queries
from placet.data.arrays import Floats
from placet.metrics import metric as metric_of
from placet.metrics import summary
from placet.rank.blend import spread
from placet.rank.candidates import Candidate
from placet.rank.ranker import Progress, Ranker, ranker_class
from placet.rank.validation import Best

Split = tuple[Queries, Queries]
"""Training queries, and validation queries for early stopping and evaluation."""


@dataclass(frozen=True)
class Trial:
    """A tried candidate: ranker, parameters, mean and standard error of the metric on the validation set, and seconds.

    ``failure`` is the reason if there is no value.
    """

    ranker: str
    params: Mapping[str, Any]
    value: float
    stderr: float
    seconds: float
    failure: str = ""


@dataclass(frozen=True, eq=False)
class Member:
    """A fitted candidate: one ranker per split, and the spread of its scores on the validation part.

    ``scores`` maps the index of a split to the validation scores there, divided by their spread.
    """

    trial: Trial
    rankers: tuple[Ranker, ...]
    spreads: tuple[float, ...]
    scores: Mapping[int, Floats]


class OutOfTime(KeyboardInterrupt):
    """Raised in a fit when time runs out; as after Ctrl-C, the fit keeps its best state so far."""


class Clock:
    """Time limit of a search; None is unlimited."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds, self.start = seconds, time.perf_counter()

    @property
    def spent(self) -> float:
        """Seconds elapsed."""
        return time.perf_counter() - self.start

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return self.seconds is not None and self.spent >= self.seconds

    def watch(self, *_: Any) -> None:
        """Progress callback that interrupts a fit when the time is up."""
        if self.over:
            raise OutOfTime


class Search:
    """Fit candidates on every split and keep the ``size`` best by ``metric``; ties go to the earlier candidate.

    With ``rotate``, each candidate is fitted on one split only, the next candidate on the next split.
    """

    def __init__(
        self,
        splits: Sequence[Split],
        metric: str,
        size: int,
        random_state: int,
        clock: Clock,
        tell: Progress | None,
        rotate: bool = False,
    ) -> None:
        self.splits, self.metric, self.size, self.random_state = splits, metric, size, random_state
        self.clock, self.tell, self.rotate = clock, tell, rotate
        self.trials: list[Trial] = []
        self.failures: list[Exception] = []
        self.fits = 0

    def run(self, candidates: Iterable[Candidate], n: int | None) -> Best[list[Member]]:
        """Try the ``n`` candidates in order (None: as many as time allows); the best members are the state returned."""
        best: Best[list[Member]] = Best()
        with best:
            for candidate in candidates:
                if self.clock.over and not best.empty:
                    break
                found, interrupted = self._try(candidate, n, best)
                if found is not None:
                    kept = [*([] if best.empty else best.state), found]
                    best.consider(best_first(kept)[: self.size])
                if interrupted and not self.clock.over:
                    raise KeyboardInterrupt
        if best.empty:
            kind = type(self.failures[0])
            words = f"none of the {len(self.trials)} candidates could be fitted: {self.failures[0]}"
            raise kind(words) from self.failures[0]
        return best

    def _try(self, candidate: Candidate, n: int | None, best: Best[list[Member]]) -> tuple[Member | None, bool]:
        """Fit a candidate on its splits; return it, or None if that failed, and whether a fit was interrupted."""
        name, params = candidate
        start = time.perf_counter()
        rankers: list[Ranker] = []
        own = self._own_splits()
        try:
            for train, valid in (self.splits[k] for k in own):
                ranker = unfitted(name, params, self.metric, self.random_state)
                rankers.append(ranker.fit(train, valid=valid, progress=None if best.empty else self.clock.watch))
                self.fits += 1
                if ranker.fit_summary_["interrupted"] and len(rankers) < len(own):
                    raise OutOfTime if self.clock.over else KeyboardInterrupt
                self._report(n, best)
        except (ImportError, DataError) as error:
            self.failures.append(error)
            self._fail(candidate, start, str(error))
            return None, False
        except OutOfTime:
            self._fail(candidate, start, f"time was up in fit {len(rankers) or 1} of {len(own)}")
            return None, True
        found = self._member(candidate, dict(zip(own, rankers)), start)
        self.trials.append(found.trial)
        return found, any(ranker.fit_summary_["interrupted"] for ranker in rankers)

    def _fail(self, candidate: Candidate, start: float, why: str) -> None:
        self.trials.append(Trial(*candidate, np.nan, np.nan, time.perf_counter() - start, why))

    def _own_splits(self) -> list[int]:
        """Indices of the splits on which to fit the next candidate."""
        every = list(range(len(self.splits)))
        return [every[len(self.trials) % len(every)]] if self.rotate else every

    def _member(self, candidate: Candidate, rankers: Mapping[int, Ranker], start: float) -> Member:
        measure = metric_of(self.metric)
        values, spreads, scores = [], [], {}
        for k, ranker in rankers.items():
            valid = self.splits[k][1]
            s = ranker.predict(valid)
            values.append(measure(s, valid.grade, valid.offsets))
            spreads.append(spread(s, valid.offsets))
            scores[k] = s / spreads[-1]
        found = summary(np.concatenate(values))
        trial = Trial(*candidate, found.mean, found.stderr, time.perf_counter() - start)
        return Member(trial, tuple(rankers.values()), tuple(spreads), scores)

    def _report(self, n: int | None, best: Best[list[Member]]) -> None:
        """Report the number of fits and their total, extrapolated from elapsed time if only time ends the search."""
        if self.tell is None:
            return
        if n is None and self.clock.seconds is not None:
            total = max(self.fits, int(self.fits * self.clock.seconds / max(self.clock.spent, 1e-9)))
        else:
            total = (n or 1) * len(self._own_splits())
        self.tell(self.fits, total, None if best.empty else best.state[0].trial.value)


def best_first(members: Iterable[Member]) -> list[Member]:
    """Sort members by value; if they were evaluated on different splits, the best of each split, then the second, ...

    Ties go to the earlier member.
    """
    by_split: dict[tuple[int, ...], list[Member]] = {}
    for member in sorted(members, key=lambda member: -member.trial.value):
        by_split.setdefault(tuple(member.scores), []).append(member)
    return [member for row in zip_longest(*by_split.values()) for member in row if member is not None]


def unfitted(name: str, params: Mapping[str, Any], metric: str, random_state: int) -> Ranker:
    """Build the ranker of a candidate, whose ``base`` may itself be a candidate."""
    kind = ranker_class(name)
    known = kind._get_param_names()
    common = {"random_state": random_state, "metric": metric}
    own, base = dict(params), params.get("base")
    if isinstance(base, tuple):
        own["base"] = unfitted(base[0], base[1], metric, random_state)
    return kind(**{**{key: value for key, value in common.items() if key in known}, **own})
