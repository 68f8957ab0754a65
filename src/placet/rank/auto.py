"""A stated list of rankers, tried in order: the best on queries it was not fitted to, or a blend of the few best."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from placet.data import DataError, Queries, concat
from placet.metrics import metric as metric_of
from placet.rank.blend import Blend
from placet.rank.candidates import SHORT_LIST, Candidate, draw_candidates, drawn_without_end
from placet.rank.ranker import Progress, mean_defined
from placet.rank.search import Clock, Member, Search, Split, Trial, unfitted
from placet.rank.stacking import deal, stacked_weights

if TYPE_CHECKING:
    import polars as pl

__all__ = ["SHORT_LIST", "Candidate", "Choice", "Trial", "autorank", "draw_candidates", "unfitted"]

OWN_SPLIT = 5  # without a validation set, one part of so many becomes it


@dataclass(frozen=True)
class Choice:
    """What ``autorank`` chose and what it tried.

    ``ranker`` (fitted) is the one that was ``best`` by ``metric`` on the validation set, or the blend of the
    ``members``, best first, with their ``weights``; ``value`` is its own mean of the metric there.  ``interrupted``:
    whether Ctrl-C ended it.  ``notes`` say what was validated on, and whether the time was up.
    """

    ranker: Any
    best: Trial
    metric: str
    trials: tuple[Trial, ...] = field(repr=False)
    members: tuple[Trial, ...] = field(repr=False)
    value: float
    interrupted: bool = False
    weights: tuple[float, ...] = (1.0,)
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        lines = [f"{self.metric} on the validation set, {len(self.trials)} tried:"]
        if len(self.members) > 1:
            how = "mean" if len(set(self.weights)) == 1 else "weighted mean"
            lines[0] += f" {self.value:.4f} by the {how} of {len(self.members)} (*)"
        for trial in self.trials:
            mark = "*" if any(trial is member for member in self.members) else " "
            what = f"{trial.value:.4f} +- {trial.stderr:.4f}" if not trial.failure else f"failed: {trial.failure}"
            lines.append(f"{mark} {trial.ranker}({_words(trial.params)})  {what}  {trial.seconds:.1f} s")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def to_frame(self) -> "pl.DataFrame":
        """All trials as a Polars frame in the order tried: ranker, params, value, stderr, seconds, weight, failure.

        ``weight`` is that in the chosen ranker; 0 where a trial is no member of it.
        """
        import polars as pl

        weight = {id(member): w for member, w in zip(self.members, self.weights)}
        return pl.DataFrame(
            {
                "ranker": [trial.ranker for trial in self.trials],
                "params": [_words(trial.params) for trial in self.trials],
                "value": [trial.value for trial in self.trials],
                "stderr": [trial.stderr for trial in self.trials],
                "seconds": [trial.seconds for trial in self.trials],
                "weight": [weight.get(id(trial), 0.0) for trial in self.trials],
                "failure": [trial.failure for trial in self.trials],
            }
        )


def _words(params: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in params.items())


def autorank(
    train: Queries,
    valid: Queries | None = None,
    budget: int | None = None,
    *,
    seconds: float | None = None,
    metric: str = "ndcg@10",
    candidates: Sequence[Candidate] | None = None,
    blend: int = 1,
    stack: bool = False,
    folds: int | None = None,
    rotate: bool = False,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Choice:
    """Fit the first ``budget`` candidates (None: all) on ``train`` and keep the best by ``metric`` on ``valid``.

    Parameters
    ----------
    train, valid : Queries
        Without ``valid`` a fifth of the queries of ``train``, drawn at random, becomes it.
    budget : int, optional
        Candidates at most.
    seconds : float, optional
        Time at most.  The first candidate is fitted whatever it takes; the one that is under way when time is up
        keeps its best step so far (with ``folds`` it is left out).  Without ``candidates`` and ``budget``, draws go on
        after the ``SHORT_LIST`` until then.
    metric : str
        Judges candidates, and their steps.
    candidates : sequence of (name, parameters), optional
        ``SHORT_LIST`` unless given; ``draw_candidates(20)``, or a list of one's own.  The ``base`` of a listwise one
        may be a candidate itself.
    blend : int
        Above 1, the mean of that many best is kept (``Blend``), which a small validation set misleads less than the
        choice of one.
    stack : bool
        The weights of the blend are learnt from scores of queries that its members were not fitted to, shrunk to equal
        ones (`placet.rank.stacking`).
    folds : int, optional
        All queries, those of ``valid`` too, are cut in so many parts.  A candidate is fitted so many times, each time
        without one part, by which it stops; its value is the mean over all queries, each scored by the fit that had
        not seen it, and the mean of these fits stands for it.
    rotate : bool
        With ``folds``, a candidate is fitted once: the first without the first part, the second without the second, and
        so on, round and round; its value is that on the part left out.  The ``blend`` best are as many from each part.
        For the same number of fits this means ``folds`` times as many kinds of rankers.
    random_state : int
        Seed of parts, of draws and of the candidates.
    progress : callable, optional
        Called after each fit as ``progress(fits, fits at most, best value)``.

    Each candidate also stops, or keeps its best step, by the same metric on ``valid``, so the value of the best is an
    optimistic one: measure it on queries of its own.  A tie goes to the earlier.  A candidate that cannot be fitted
    (trees without LightGBM, listwise terms of sparse features) is a trial that says why.

    >>> import placet
    >>> data = placet.simulate.queries(40, 8, 3, noise=0.3, random_state=1)
    >>> choice = autorank(data[:30], budget=1)
    >>> choice.best.ranker, dict(choice.best.params)
    ('linear', {'loss': 'pmop-fd', 'l2': 0.001})
    >>> choice.notes
    ('6 of 30 queries, drawn at random, were kept for validation',)
    """
    _check(budget, seconds, blend, folds)
    given = SHORT_LIST if candidates is None else list(candidates)
    if not given[:budget]:
        raise ValueError(f"budget {budget} of {len(given)} candidates leaves nothing to try; give at least 1")
    if rotate:
        _check_rotation(folds, min(blend, len(given[:budget])), stack)
    endless = seconds is not None and candidates is None and budget is None
    chosen: Iterable[Candidate] = chain(given, drawn_without_end(random_state)) if endless else given[:budget]
    splits, notes = _splits(train, valid, folds, rotate, random_state)
    clock = Clock(seconds)
    search = Search(splits, metric, blend, random_state, clock, progress, rotate)
    best = search.run(chosen, None if endless else len(given[:budget]))
    if clock.over:
        notes += (f"time was up after {clock.spent:.0f} of {seconds:g} seconds, with {len(search.trials)} tried",)
    members = best.state
    ranker, weights = _combined(members, splits, metric, stack, random_state)
    value = members[0].trial.value if len(members) == 1 else _value(members, weights, splits, metric)
    tried, of = tuple(search.trials), tuple(member.trial for member in members)
    return Choice(ranker, of[0], metric, tried, of, value, best.interrupted, tuple(weights.tolist()), notes)


def _check(budget: int | None, seconds: float | None, blend: int, folds: int | None) -> None:
    if budget is not None and budget < 1:
        raise ValueError(f"budget {budget} leaves nothing to try; give at least 1")
    if seconds is not None and not seconds > 0:
        raise ValueError(f"seconds {seconds} must be above 0")
    if blend < 1:
        raise ValueError(f"blend {blend} must be at least 1")
    if folds is not None and folds < 2:
        raise ValueError(f"folds {folds} must be at least 2; without folds there is one split")


def _check_rotation(folds: int | None, members: int, stack: bool) -> None:
    if folds is None:
        raise ValueError("rotate leaves out one part after the other; give folds, the number of parts")
    if members < folds:
        raise ValueError(f"rotate needs blend and candidates of at least folds ({folds}), one for each part")
    if stack:
        raise ValueError("stack needs scores of every query by every member; with rotate each scores one part of them")


def _splits(
    train: Queries, valid: Queries | None, folds: int | None, rotate: bool, random_state: int
) -> tuple[list[Split], tuple[str, ...]]:
    """The queries to fit on and to validate on, of one split or of every fold; and words on what was drawn."""
    if folds is None and valid is not None:
        return [(train, valid)], ()
    whole = train if valid is None else concat([train, valid])
    n_parts = OWN_SPLIT if folds is None else folds
    if len(whole) < 2 or len(whole) < (folds or 0):
        raise DataError(
            f"{len(whole)} queries cannot be cut in {n_parts} parts to validate on; give more, or a validation set"
        )
    part = deal(whole, n_parts, random_state)
    splits = [(whole[part != k], whole[part == k]) for k in range(n_parts if folds is not None else 1)]
    if folds is not None:
        how = "each candidate was fitted without one, in turn, and judged on it"
        how = how if rotate else "each was judged by fits without it"
        return splits, (f"{len(whole)} queries were cut in {folds} parts; {how}",)
    n_kept = len(splits[0][1])
    return splits, (f"{n_kept} of {len(whole)} queries, drawn at random, were kept for validation",)


def _combined(
    members: Sequence[Member], splits: Sequence[Split], metric: str, stack: bool, random_state: int
) -> tuple[Any, Any]:
    """One fitted ranker of all members, and their weights."""
    weights = np.full(len(members), 1.0 / len(members))
    if stack:
        Z = np.column_stack([np.concatenate(list(member.scores.values())) for member in members])
        weights, _ = stacked_weights(Z, concat(valid for _, valid in splits), metric, random_state)
    rankers = [ranker for member in members for ranker in member.rankers]
    if len(rankers) == 1:
        return rankers[0], weights
    spreads = [unit for member in members for unit in member.spreads]
    each = np.repeat(weights, [len(member.rankers) for member in members])
    return Blend.of(rankers, splits[0][1], metric, spreads=spreads, weights=each), weights


def _value(members: Sequence[Member], weights: Any, splits: Sequence[Split], metric: str) -> float:
    """The mean of the metric over all queries, each scored by the members' fits that had not seen it."""
    values = []
    for k, (_, valid) in enumerate(splits):
        own = [weight * member.scores[k] for member, weight in zip(members, weights) if k in member.scores]
        if own:
            values.append(metric_of(metric)(np.sum(own, axis=0), valid.grade, valid.offsets))
    return mean_defined(np.concatenate(values))
