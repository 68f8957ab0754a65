"""Fit candidates in sequence on splits of the queries, within a time limit, and keep the best few."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any, NamedTuple

import numpy as np

from placet.data import Queries
from placet.data.arrays import Floats
from placet.data.parameters import check_parameters
from placet.metrics import metric as metric_of, summary
from placet.rank.ranker import Ranker, TrainingProgress, ranker_class
from placet.rank.search.blend import spread
from placet.rank.search.candidates import Candidate
from placet.rank.validation import Best

FIT_ERRORS = (ImportError, ValueError, TypeError, ArithmeticError)
"""Errors that end the trial but not the search: a missing package, data that the ranker cannot use, divergence."""

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
class FittedCandidate:
    """A fitted candidate: one ranker per split, and the spread of its scores on the validation part.

    ``scores`` maps the index of a split to the validation scores there, divided by their spread.
    """

    trial: Trial
    rankers: tuple[Ranker, ...]
    spreads: tuple[float, ...]
    scores: Mapping[int, Floats]


class HeldOut(NamedTuple):
    """A fit on one split: the spread of its scores on the validation part, the scores divided by it, and the metric."""

    ranker: Ranker
    spread: float
    scores: Floats
    values: Floats


class OutOfTime(KeyboardInterrupt):
    """Raised in a fit when time runs out; as after Ctrl-C, the fit keeps its best state so far."""


class TimeLimit:
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

    def interrupt_if_over(self, *_: Any) -> None:
        """Progress callback that interrupts a fit when the time is up."""
        if self.over:
            raise OutOfTime


class CandidateSearch:
    """Fit candidates on every split and keep the ``size`` best by ``metric``; ties go to the earlier candidate.

    With ``rotate``, each candidate is fitted on one split only, in turn.
    """

    def __init__(
        self,
        splits: Sequence[Split],
        metric: str,
        size: int,
        random_state: int,
        clock: TimeLimit,
        tell: TrainingProgress | None,
        rotate: bool = False,
    ) -> None:
        self.splits, self.metric, self.size, self.random_state = splits, metric, size, random_state
        self.clock, self.tell, self.rotate = clock, tell, rotate
        self.trials: list[Trial] = []
        self.failures: list[Exception] = []
        self.done = 0  # fits that are over, including those of failed candidates
        self.fits_on = [0] * len(splits)  # candidates fitted on each split
        self.failed_on = [0] * len(splits)  # candidates that failed on each split since the last that did not

    def run(
        self, candidates: Sequence[Candidate], draws: Iterable[Candidate] | None = None
    ) -> Best[list[FittedCandidate]]:
        """Try the candidates in order, then ``draws`` until time is up; the best members are the state returned."""
        best: Best[list[FittedCandidate]] = Best()
        total = None if draws is not None else len(candidates) * len(self._next_splits())
        with best:
            for candidate in chain(candidates, draws or ()):
                if len(self.trials) >= len(candidates) if best.empty else self.clock.over:
                    break
                found, interrupted = self._try(candidate, total, best)
                if found is not None:
                    kept = [*([] if best.empty else best.state), found]
                    best.consider(best_first(kept)[: self.size])
                self._report(total, best)
                if interrupted and not self.clock.over:
                    raise KeyboardInterrupt
        if best.empty:
            kind = type(self.failures[0])
            words = f"none of the {len(self.trials)} candidates could be fitted: {self.failures[0]}"
            raise kind(words) from self.failures[0]
        return best

    def _try(
        self, candidate: Candidate, total: int | None, best: Best[list[FittedCandidate]]
    ) -> tuple[FittedCandidate | None, bool]:
        """Fit a candidate on its splits; return it, or None if that failed, and whether a fit was interrupted."""
        start, own, before = time.perf_counter(), self._next_splits(), self.done
        fits: list[HeldOut] = []
        failure, interrupted = "", False
        for number, k in enumerate(own, 1):
            late = f"time was up in fit {number} of {len(own)}"
            try:
                fits.append(self._fit(candidate, k, None if best.empty else self.clock.interrupt_if_over))
                interrupted = fits[-1].ranker.fit_summary_["interrupted"]
            except FIT_ERRORS as error:
                self.failures.append(error)
                failure = str(error) or type(error).__name__
            except OutOfTime:
                interrupted, failure = True, late
            if interrupted and not failure and number < len(own):
                if not self.clock.over:
                    raise KeyboardInterrupt
                failure = late
            if failure:
                self.done = before + len(own)
                self.failed_on[k] += 1
                self.trials.append(Trial(*candidate, np.nan, np.nan, time.perf_counter() - start, failure))
                return None, interrupted
            self.done += 1
            if number < len(own):
                self._report(total, best)
        for k in own:
            self.fits_on[k], self.failed_on[k] = self.fits_on[k] + 1, 0
        member = _summarize_fits(candidate, dict(zip(own, fits)), start)
        self.trials.append(member.trial)
        return member, interrupted

    def _fit(self, candidate: Candidate, k: int, progress: TrainingProgress | None) -> HeldOut:
        """Fit a candidate on split ``k`` and evaluate it there."""
        train, valid = self.splits[k]
        ranker = build_ranker(*candidate, self.metric, self.random_state).fit(train, valid=valid, progress=progress)
        s = ranker.predict(valid)
        unit = spread(s, valid.offsets)
        return HeldOut(ranker, unit, s / unit, metric_of(self.metric)(s, valid.grade, valid.offsets))

    def _next_splits(self) -> list[int]:
        """Indices of the splits on which to fit the next candidate.

        With ``rotate``, the one with the fewest fits; ties are resolved cyclically, by the number of trials.  From
        the third failure in a row on, failures count as fits: a split on which all fail does not take every candidate.
        """
        every = range(len(self.splits))
        if not self.rotate:
            return list(every)
        turns = [fits + max(0, failed - 2) for fits, failed in zip(self.fits_on, self.failed_on)]
        return [min(every, key=lambda k: (turns[k], (k - len(self.trials)) % len(every)))]

    def _report(self, total: int | None, best: Best[list[FittedCandidate]]) -> None:
        """Report the number of fits and their total, extrapolated from elapsed time if only time ends the search."""
        if self.tell is None:
            return
        if total is None:
            share = self.clock.spent / self.clock.seconds if self.clock.seconds else 1.0
            total = max(self.done, int(self.done / max(share, 1e-9)))
        self.tell(self.done, total, None if best.empty else best.state[0].trial.value)


def _summarize_fits(candidate: Candidate, fits: Mapping[int, HeldOut], start: float) -> FittedCandidate:
    """Summarize the fits of a candidate, given by split."""
    found = summary(np.concatenate([fit.values for fit in fits.values()]))
    trial = Trial(*candidate, found.mean, found.stderr, time.perf_counter() - start)
    rankers, spreads = [fit.ranker for fit in fits.values()], [fit.spread for fit in fits.values()]
    return FittedCandidate(trial, tuple(rankers), tuple(spreads), {k: fit.scores for k, fit in fits.items()})


def best_first(members: Iterable[FittedCandidate]) -> list[FittedCandidate]:
    """Sort members by value; if they were evaluated on different splits, the best of each split, then the second, ...

    Ties go to the earlier member.
    """
    by_split: dict[tuple[int, ...], list[FittedCandidate]] = {}
    for member in sorted(members, key=lambda member: -member.trial.value):
        by_split.setdefault(tuple(member.scores), []).append(member)
    return [member for row in zip_longest(*by_split.values()) for member in row if member is not None]


def build_ranker(name: str, params: Mapping[str, Any], metric: str, random_state: int) -> Ranker:
    """Build the ranker of a candidate, whose ``base`` may itself be a candidate."""
    kind = ranker_class(name)
    known = kind._get_param_names()
    common = {"random_state": random_state, "metric": metric}
    own, base = dict(params), params.get("base")
    if isinstance(base, tuple):
        own["base"] = build_ranker(base[0], base[1], metric, random_state)
    return kind(**{**{key: value for key, value in common.items() if key in known}, **own})


def check_candidates(candidates: Sequence[Candidate], metric: str) -> None:
    """Raise a ``ValueError`` if a candidate has an unknown ranker, parameter, loss or metric, before the first fit."""
    for number, candidate in enumerate(candidates, 1):
        try:
            _check_candidate(candidate, metric)
        except ValueError as error:
            raise ValueError(f"candidate {number} of {len(candidates)}: {error}") from None


def _check_candidate(candidate: Any, metric: str) -> None:
    pair = isinstance(candidate, Sequence) and not isinstance(candidate, str) and len(candidate) == 2
    if not pair or not isinstance(candidate[1], Mapping):
        raise ValueError(f"{candidate!r} is not a pair (name, parameters), such as ('linear', {{'l2': 0.01}})")
    name, params = candidate
    kind = ranker_class(name)
    check_parameters(kind, params, kind.__name__)
    if isinstance(params.get("base"), tuple):
        _check_candidate(params["base"], metric)
    build_ranker(name, params, metric, 0).check_names()
