"""Try a fixed list of rankers in order and return the best on held-out queries, or a blend of the best few."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from placet.data import DataError, Queries, concat
from placet.data.parameters import check_parameters
from placet.metrics import metric as metric_of
from placet.rank.query_rows import mean_defined
from placet.rank.ranker import TrainingProgress
from placet.rank.search.blend import Blend
from placet.rank.search.candidate_search import (
    CandidateSearch,
    FittedCandidate,
    Split,
    TimeLimit,
    Trial,
    build_ranker,
    check_candidates,
)
from placet.rank.search.candidates import SHORT_LIST, Candidate, draw_candidates, random_candidates
from placet.rank.search.distillation import distill_members
from placet.rank.search.stacking import random_parts, stacked_weights

if TYPE_CHECKING:
    import polars as pl

__all__ = ["SHORT_LIST", "Candidate", "Choice", "Trial", "autorank", "build_ranker", "draw_candidates"]

OWN_SPLIT = 5  # without a validation set, 1 / OWN_SPLIT of the training queries is held out


@dataclass(frozen=True)
class Choice:
    """The result of ``autorank``: the chosen ranker and all trials.

    ``ranker`` is fitted: the ``best`` by ``metric`` on the validation set, or the blend of the ``members``, best first,
    with their ``weights``; ``value`` is its mean of the metric there.  ``interrupted``: whether Ctrl-C ended the
    search.  ``notes`` describe the validation queries and say whether time ran out.
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
            how = "the mean" if len(set(self.weights)) == 1 else "the weighted mean"
            how = how if isinstance(self.ranker, Blend) else f"one ranker distilled from {how}"
            lines[0] += f" {self.value:.4f} by {how} of {len(self.members)} (*)"
        for trial in self.trials:
            mark = "*" if any(trial is member for member in self.members) else " "
            what = f"{trial.value:.4f} +- {trial.stderr:.4f}" if not trial.failure else f"failed: {trial.failure}"
            lines.append(f"{mark} {trial.ranker}({_format_params(trial.params)})  {what}  {trial.seconds:.1f} s")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def to_frame(self) -> "pl.DataFrame":
        """All trials as a Polars frame in the order tried: ranker, params, value, stderr, seconds, weight, failure.

        ``weight`` is the trial's weight in the chosen ranker, 0 if it is not a member.
        """
        import polars as pl

        weight = {id(member): w for member, w in zip(self.members, self.weights)}
        return pl.DataFrame(
            {
                "ranker": [trial.ranker for trial in self.trials],
                "params": [_format_params(trial.params) for trial in self.trials],
                "value": [trial.value for trial in self.trials],
                "stderr": [trial.stderr for trial in self.trials],
                "seconds": [trial.seconds for trial in self.trials],
                "weight": [weight.get(id(trial), 0.0) for trial in self.trials],
                "failure": [trial.failure for trial in self.trials],
            }
        )


def _format_params(params: Mapping[str, Any]) -> str:
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
    distill: bool = False,
    random_state: int = 0,
    progress: TrainingProgress | None = None,
) -> Choice:
    """Fit the first ``budget`` candidates (None: all) on ``train`` and keep the best by ``metric`` on ``valid``.

    Parameters
    ----------
    train, valid : Queries
        If ``valid`` is None, a random fifth of the training queries is held out for validation.
    budget : int, optional
        Maximum number of candidates.
    seconds : float, optional
        Time limit.  The first candidate is always fitted to the end; the one in progress when time runs out keeps its
        best step so far (with ``folds``, it is dropped if fits are missing).  Without ``candidates`` and ``budget``,
        random candidates follow the ``SHORT_LIST`` until then.
    metric : str
        Validation metric, for candidates and for the steps of each fit.
    candidates : sequence of (name, parameters), optional
        Default ``SHORT_LIST``; for example ``draw_candidates(20)``, or your own list.  The ``base`` of a listwise
        candidate may itself be a candidate.
    blend : int
        If above 1, return the mean of the ``blend`` best (``Blend``), which is less sensitive to a small validation
        set than choosing a single one.
    stack : bool
        Learn the weights of the blend from held-out scores, shrunk toward equal weights
        (`placet.rank.search.stacking`).
    folds : int, optional
        Number of cross-validation folds, of all queries including ``valid``.  Each candidate is fitted once per fold,
        with that fold held out for early stopping; its value is the mean over all queries of the metric of out-of-fold
        scores, and it is represented by the mean of its fits.
    rotate : bool
        With ``folds``, fit each candidate only once: the first without the first fold, the second without the second,
        and so on cyclically; its value is measured on the held-out fold.  The ``blend`` best are taken evenly from all
        folds.  The same number of fits then covers ``folds`` times as many kinds of rankers.  If a candidate fails, the
        next one takes its fold (unless three in a row have failed on it).
    distill : bool
        Replace the blend by one `TreeRanker` fitted to its scores: a tenth of the time and size, and an ONNX file that
        scores each row by itself.  ``value`` is then that of the trees, and ``notes`` state their loss, measured on
        queries that neither the trees nor the fits they imitate were trained on.
    random_state : int
        Seed of the splits, of random candidates and of the fits.
    progress : callable, optional
        Called after each fit as ``progress(fits, maximum number of fits, best value so far)``; the fits of a candidate
        that fails are counted.

    The same metric on ``valid`` also decides when each candidate stops or which step it keeps, so the value of the best
    is optimistic: evaluate it on separate test queries.  Ties go to the earlier candidate.  Names and parameters of all
    candidates are checked before the first fit.  If one cannot be fitted (trees without LightGBM, listwise terms of
    sparse features, too large a learning rate), its trial records the reason; if none can, the first error is raised.

    Returns
    -------
    Choice
        The fitted ``ranker``, its ``value`` by the metric, and all ``trials``.

    >>> import placet
    >>> data = placet.simulate.queries(40, 8, 3, noise=0.3, random_state=1)
    >>> choice = autorank(data[:30], budget=1)
    >>> choice.best.ranker, dict(choice.best.params)
    ('linear', {'loss': 'pmop-fd', 'l2': 0.001})
    >>> choice.notes
    ('6 of 30 queries, drawn at random, were kept for validation',)
    """
    given = {"metric": metric, "stack": stack, "rotate": rotate, "distill": distill, "random_state": random_state}
    _check(train, valid, budget=budget, seconds=seconds, blend=blend, folds=folds, **given)
    chosen = (SHORT_LIST if candidates is None else list(candidates))[:budget]
    if not chosen:
        raise ValueError("candidates is empty; give at least one, or leave it out to try the short list")
    check_candidates(chosen, metric)
    if rotate:
        _check_rotation(folds, min(blend, len(chosen)), stack)
    endless = seconds is not None and candidates is None and budget is None
    splits, notes = _split_queries(train, valid, folds, rotate, random_state)
    if folds is not None:
        _check_parts(splits, metric)
    clock = TimeLimit(seconds)
    search = CandidateSearch(splits, metric, blend, random_state, clock, progress, rotate)
    best = search.run(chosen, random_candidates(random_state) if endless else None)
    notes += _note_on_coverage(best.state, splits)
    if clock.over:
        notes += (f"time was up after {clock.spent:.0f} of {seconds:g} seconds, with {len(search.trials)} tried",)
    members = best.state
    ranker, weights = _blend_members(members, splits, metric, stack, random_state)
    value = members[0].trial.value if len(members) == 1 else _held_out_value(members, weights, splits, metric)
    if distill:
        ranker, value, note = distill_members(members, weights, ranker, splits, metric, random_state)
        notes += (note,)
    tried, of = tuple(search.trials), tuple(member.trial for member in members)
    return Choice(ranker, of[0], metric, tried, of, value, best.interrupted, tuple(weights.tolist()), notes)


def _check(train: Any, valid: Any, **given: Any) -> None:
    for name, data in (("train", train), ("valid", train if valid is None else valid)):
        if not isinstance(data, Queries):
            way_out = "Queries.from_arrays(X, y, qid) makes them" + ("" if name == "train" else "; give budget by name")
            raise ValueError(f"{name} must be Queries, not {type(data).__name__}; {way_out}")
    check_parameters(autorank, given, "autorank")
    metric_of(given["metric"])
    budget, seconds, blend, folds = (given[name] for name in ("budget", "seconds", "blend", "folds"))
    if budget is not None and budget < 1:
        raise ValueError(f"budget {budget} leaves nothing to try; give at least 1")
    if seconds is not None and not seconds > 0:
        raise ValueError(f"seconds {seconds} must be above 0")
    if blend < 1:
        raise ValueError(f"blend {blend} must be at least 1")
    if given["distill"] and blend < 2:
        raise ValueError(f"distill replaces a blend by one ranker; give blend above {blend}, the number of its members")
    if folds is not None and folds < 2:
        raise ValueError(f"folds {folds} must be at least 2; without folds there is one split")


def _check_rotation(folds: int | None, members: int, stack: bool) -> None:
    if folds is None:
        raise ValueError("rotate leaves out one part after the other; give folds, the number of parts")
    if members < folds:
        raise ValueError(f"rotate needs blend and candidates of at least folds ({folds}), one for each part")
    if stack:
        raise ValueError("stack needs scores of every query by every member; with rotate each scores one part of them")


def _split_queries(
    train: Queries, valid: Queries | None, folds: int | None, rotate: bool, random_state: int
) -> tuple[list[Split], tuple[str, ...]]:
    """Return the training and validation queries of one split or of every fold, and notes on random draws."""
    if folds is None and valid is not None:
        return [(train, valid)], ()
    whole = train if valid is None else concat([train, valid])
    n_parts = OWN_SPLIT if folds is None else folds
    if len(whole) < 2 or len(whole) < (folds or 0):
        raise DataError(
            f"{len(whole)} queries cannot be cut in {n_parts} parts to validate on; give more, or a validation set"
        )
    part = random_parts(whole, n_parts, random_state)
    splits = [(whole[part != k], whole[part == k]) for k in range(n_parts if folds is not None else 1)]
    if folds is not None:
        how = "each candidate was fitted without one, in turn, and judged on it"
        how = how if rotate else "each was judged by fits without it"
        return splits, (f"{len(whole)} queries were cut in {folds} parts; {how}",)
    n_kept = len(splits[0][1])
    return splits, (f"{n_kept} of {len(whole)} queries, drawn at random, were kept for validation",)


def _check_parts(splits: Sequence[Split], metric: str) -> None:
    """Raise a ``DataError`` if the metric is undefined in every query of a part: no candidate could be judged on it."""
    for k, (_, valid) in enumerate(splits, 1):
        if np.isnan(metric_of(metric)(np.zeros(len(valid.grade)), valid.grade, valid.offsets)).all():
            raise DataError(
                f"{metric} is undefined in all {len(valid)} queries of part {k} of {len(splits)}; give fewer folds, or "
                "more queries with something relevant"
            )


def _note_on_coverage(members: Sequence[FittedCandidate], splits: Sequence[Split]) -> tuple[str, ...]:
    """Say which parts no member left out, if there are any: the value does not include their queries."""
    covered = {k for member in members for k in member.scores}
    absent = [str(k) for k in range(1, len(splits) + 1) if k - 1 not in covered]
    if not absent:
        return ()
    n, n_all = sum(len(splits[k][1]) for k in covered), sum(len(valid) for _, valid in splits)
    unused = ", which no member was trained on" if len(covered) == 1 else ""
    parts = f"part{'s' if len(absent) > 1 else ''} {', '.join(absent)}"
    return (f"no member was fitted without {parts}; the value is that of the other {n} of {n_all} queries{unused}",)


def _blend_members(
    members: Sequence[FittedCandidate], splits: Sequence[Split], metric: str, stack: bool, random_state: int
) -> tuple[Any, Any]:
    """Combine all members into one fitted ranker; also return their weights."""
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


def _held_out_value(members: Sequence[FittedCandidate], weights: Any, splits: Sequence[Split], metric: str) -> float:
    """Mean of the metric over all queries, each scored by the members' fits that held it out."""
    values = []
    for k, (_, valid) in enumerate(splits):
        own = [weight * member.scores[k] for member, weight in zip(members, weights) if k in member.scores]
        if own:
            values.append(metric_of(metric)(np.sum(own, axis=0), valid.grade, valid.offsets))
    return mean_defined(np.concatenate(values))
