"""Candidates fitted one after the other on splits of the queries, within a time, the few best kept."""

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
"""Queries to fit on, and queries to stop and to judge by."""


@dataclass(frozen=True)
class Trial:
    """A candidate: which ranker, its parameters, the mean and standard error on the validation set, seconds.

    ``failure`` says why there is no value.
    """

    ranker: str
    params: Mapping[str, Any]
    value: float
    stderr: float
    seconds: float
    failure: str = ""


@dataclass(frozen=True, eq=False)
class Member:
    """A candidate that was fitted: one ranker for each of its splits, and the spread of each there.

    ``scores`` maps the number of a split to the ranker's scores of its validation part, over their spread.
    """

    trial: Trial
    rankers: tuple[Ranker, ...]
    spreads: tuple[float, ...]
    scores: Mapping[int, Floats]


class OutOfTime(KeyboardInterrupt):
    """Raised in a fit when the time is up: as at Ctrl-C, it keeps its best state so far."""


class Clock:
    """The time that a search may take; None is without end."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds, self.start = seconds, time.perf_counter()

    @property
    def spent(self) -> float:
        """Seconds so far."""
        return time.perf_counter() - self.start

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return self.seconds is not None and self.spent >= self.seconds

    def watch(self, *_: Any) -> None:
        """A progress callback of a fit that ends it when the time is up."""
        if self.over:
            raise OutOfTime


class Search:
    """Fits candidates on every split and keeps the ``size`` best by ``metric``; a tie goes to the earlier.

    With ``rotate`` a candidate is fitted on one split, the next candidate on the next.
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
        """Try the candidates in order, ``n`` of them (None: as many as there is time for); the best is the state."""
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
        """The candidate fitted on every split, None where it could not be; and whether a fit was interrupted."""
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
        """The numbers of the splits that the next candidate is fitted on."""
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
        """Tell how many fits are done, of how many: where only time ends them, as many as it may be enough for."""
        if self.tell is None:
            return
        if n is None and self.clock.seconds is not None:
            total = max(self.fits, int(self.fits * self.clock.seconds / max(self.clock.spent, 1e-9)))
        else:
            total = (n or 1) * len(self._own_splits())
        self.tell(self.fits, total, None if best.empty else best.state[0].trial.value)


def best_first(members: Iterable[Member]) -> list[Member]:
    """Members by their value; where they were judged on different splits, the best of each, then the second of each.

    A tie goes to the earlier.
    """
    by_split: dict[tuple[int, ...], list[Member]] = {}
    for member in sorted(members, key=lambda member: -member.trial.value):
        by_split.setdefault(tuple(member.scores), []).append(member)
    return [member for row in zip_longest(*by_split.values()) for member in row if member is not None]


def unfitted(name: str, params: Mapping[str, Any], metric: str, random_state: int) -> Ranker:
    """The ranker of a candidate; a ``base`` may be a candidate of its own."""
    kind = ranker_class(name)
    known = kind._get_param_names()
    common = {"random_state": random_state, "metric": metric}
    own, base = dict(params), params.get("base")
    if isinstance(base, tuple):
        own["base"] = unfitted(base[0], base[1], metric, random_state)
    return kind(**{**{key: value for key, value in common.items() if key in known}, **own})
