"""The main entry point: any ballots or votes, any method, one problem or many."""

import inspect
import math
import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np

from placet.aggregate.asking.counted_votes import with_votes
from placet.aggregate.data_facts import data_kind, notes_of_data, refuse_design, support, unused_note
from placet.aggregate.defaults import default_of
from placet.aggregate.instances import sources_by_instance, split, without_empty_instances
from placet.aggregate.likelihood.prior import LEARN
from placet.aggregate.method import Method
from placet.aggregate.method_table import EVERY, GAMES, METHODS, MOST_DENSE, MethodName, method_name, method_of
from placet.aggregate.resample import busy_agents, resample, resampling_words, units_of, units_of_parts
from placet.aggregate.result.asked import Asked
from placet.aggregate.result.consensus_set import ConsensusSet
from placet.aggregate.result.groups import Groups
from placet.aggregate.result.independent_units import Units, with_bootstrap
from placet.aggregate.result.initial_scores import start_scores
from placet.aggregate.result.result import Consensus
from placet.aggregate.scores.score_consensus import consensus_of_scores
from placet.data import Comparisons, DataError, Parts, Rankings
from placet.data.arrays import Floats, tier_runs, with_columns
from placet.data.contests.games import Games
from placet.data.errors import as_choices
from placet.data.parameters import check_seed
from placet.data.scores import Scores
from placet.data.sources import Sources
from placet.optim import Progress
from placet.threads import algebra_threads

if TYPE_CHECKING:
    from placet.aggregate.mixture.mixture import Mixture

NO_PARAMETERS: Mapping[str, Any] = {}

REFIT_SHARE = 0.35
"""Time of a bootstrap round of a model, which starts from the fit and has no errors, in that of a fit."""

FITS_WITH_RATERS = 20
"""About as many fits as learn how far the raters differ."""

MOST_COVARIANCES = 1 << 27
"""Total size of the covariances of all instances, in numbers (1 GB), above which only standard errors are kept."""


@overload
def consensus(
    data: Rankings | Comparisons | Scores | Parts | Games | Sources,
    method: MethodName | str | None = ...,
    *,
    bootstrap: int = ...,
    random_state: int = ...,
    progress: Progress | None = ...,
    start: Any = ...,
    engine: Any = ...,
    **params: Any,
) -> Consensus: ...
@overload
def consensus(
    data: Rankings | Comparisons | Scores | Parts | Games | Mapping[Any, Any],
    method: "MethodName | str | Mixture | None" = ...,
    *,
    bootstrap: int = ...,
    random_state: int = ...,
    progress: Progress | None = ...,
    start: Any = ...,
    engine: Any = ...,
    **params: Any,
) -> Consensus | ConsensusSet: ...
def consensus(
    data: Rankings | Comparisons | Scores | Parts | Games | Mapping[Any, Any],
    method: "MethodName | str | Mixture | None" = None,
    *,
    bootstrap: int = 0,
    random_state: int = 0,
    progress: Progress | None = None,
    start: Any = None,
    engine: Any = None,
    **params: Any,
) -> Consensus | ConsensusSet:
    """Consensus of votes, ballots, ratings or scores by a method of `METHODS`.

    Each instance (query, topic, race) is a separate problem over the items on its ballots, and data with instances give
    a `ConsensusSet`, which their type does not tell; all other data give a `Consensus`.  Models that learn about agents
    see all instances at once.

    Parameters
    ----------
    data : ballots, votes or a table of scores (`placet.read_scores`); `Parts` of ballots or votes (`placet.scan`),
        which need not fit in memory; games with points (`placet.read_games`); a mapping of names
        to data (`placet.read_slices`), each solved separately; or `placet.Sources`, fitted jointly
    method : a name of `METHODS`, by default `default_method` of the data; or a `Mixture` of one of the models, which
        gives `Groups` of voters
    bootstrap : number of resampling rounds, 0 for none.  Ballots (of each instance) or votes are resampled by
        multinomial counts and the method is run on each sample, which gives every method standard errors and rank
        intervals.
    random_state : seed of everything random
    progress : called as ``progress(done, total)`` after each fit, and during a fit that learns drift
    start : an earlier `Consensus`, a mapping of names to scores, or the path of a checkpoint: initial scores for a
        model, matched by name
    engine : where parts are processed: a `distributed.Client`, or None for this process
    **params : parameters of the method

    Returns
    -------
    Consensus or ConsensusSet
        Scores, ranks and their uncertainty; one `Consensus` for each instance, slice or group of voters in a set.

    Examples
    --------
    >>> board = consensus(Rankings.from_orders([["a", "b"], ["b", "a"], ["a", "b"]]), "borda")
    >>> board.ranking, board["a"].rank
    (['a', 'b'], 1)
    >>> lists = Rankings.from_orders([["a", "b"], ["y", "x"], ["y", "x"]], instance=["cats", "dogs", "dogs"])
    >>> consensus(lists, "borda").ranking
    {'cats': ['a', 'b'], 'dogs': ['y', 'x']}
    """
    check_seed(random_state)
    if bootstrap < 0 or bootstrap == 1:
        raise ValueError(f"bootstrap must be 0 or at least 2 rounds, not {bootstrap}")
    result = _find_consensus(data, method, bootstrap, random_state, progress, start, engine, params)
    if isinstance(result, Consensus) and not isinstance(data, Games) and (method is None or isinstance(method, str)):
        known = None if method is None else method_name(method)
        asked = Asked(data, known, params, bootstrap, random_state, consensus, _fragility, _certificate, _seconds)
        object.__setattr__(result, "asked", asked)  # a field that the methods, which run below the door, cannot know
    return result


def _fragility(board: Consensus, asked: Asked, **options: Any) -> Any:
    """How few votes would change a result; see `placet.fragility`."""
    from placet.aggregate.proof.fragility_search import fragility_of

    return fragility_of(board, asked, **options)


def _seconds(asked: Asked, method: str) -> float:
    """Expected seconds of a fit of one problem of votes or ballots; infinite for other data."""
    if not isinstance(asked.data, Comparisons | Rankings) or getattr(asked.data, "instance", None) is not None:
        return math.inf
    return expected_seconds(asked.data, method, asked.bootstrap, asked.params)


def _certificate(board: Consensus, asked: Asked, level: float, **options: Any) -> Any:
    """The certificate of a result; see `Consensus.certificate`."""
    from placet.aggregate.proof.certificate import certificate_of

    return certificate_of(board, asked, level, **options)


def _find_consensus(
    data: Any,
    method: "str | Mixture | None",
    bootstrap: int,
    random_state: int,
    progress: Progress | None,
    start: Any,
    engine: Any,
    params: dict[str, Any],
) -> Consensus | ConsensusSet:
    """The consensus for checked settings of the door."""
    if isinstance(data, Mapping) and hasattr(data, "target"):
        return _of_sources(data, method, bootstrap, random_state, progress, params)
    if isinstance(data, Games):
        return _of_games(data, method, bootstrap, params)
    if method is None:
        named, why = default_of(data)
        return _by_method(data, named, bootstrap, random_state, progress, start, engine, params).with_note(why)
    method = method_name(method) if isinstance(method, str) else method
    return _by_method(data, method, bootstrap, random_state, progress, start, engine, params)


def _by_method(
    data: Any,
    method: "str | Mixture",
    bootstrap: int,
    random_state: int,
    progress: Progress | None,
    start: Any,
    engine: Any,
    params: dict[str, Any],
) -> Consensus | ConsensusSet:
    """`consensus` by a method whose name is one of the table."""
    if isinstance(data, Mapping):
        given: dict[str, Any] = {"bootstrap": bootstrap, "random_state": random_state, "start": start, **params}
        return cast(ConsensusSet, _of_slices(data, method, "slice", progress, **given))
    if isinstance(data, Scores):
        if isinstance(method, str) and "scores" in method_of(method).takes:
            check_method(method, params)
            return consensus_of_scores(data, METHODS[method], bootstrap, random_state, progress, **params)
        data = data.to_rankings()
    if not isinstance(data, Parts):
        data_kind(data)
        if engine is not None:
            raise ValueError("engine works on data in parts; placet.scan makes them of files, Parts.of of data")
    if not isinstance(method, str):
        return _groups(data, method, bootstrap, random_state, progress, params)
    record = EVERY[method]
    record.check(params)
    if record.kind == "game model":
        raise ValueError(f"{method!r} needs games with points, as placet.read_games gives; not {type(data).__name__}")
    if record.kind == "joint":
        raise ValueError(f"{method!r} joins several sources, as placet.Sources holds them; not {type(data).__name__}")
    if record.kind == "score method":
        raise ValueError(f"{method!r} needs a table of scores, as placet.read_scores gives; not {type(data).__name__}")
    if "random_state" in record.parameters:
        params = {"random_state": random_state, **params}
    if isinstance(data, Parts):
        from placet.aggregate.data_in_parts import seen_of_parts

        data = seen_of_parts(data if engine is None else data.on(engine), record, params)
    start = None if start is None else start_scores(start, data.items)
    run = Run(method, params, bootstrap, random_state, start)
    if not isinstance(data, Rankings) or data.instance is None:
        with _algebra(record, data.n_items):
            result = run.answer(_with_notes(data, record), FitCounter(progress, 1 + bootstrap))
        assert isinstance(result, Consensus)
        return with_votes(result, data)
    data = without_empty_instances(data)
    with _algebra(record, int(np.diff(data.offsets).max(initial=0))):  # instances are solved one by one
        if record.shares_agents:
            found = run.answer(data, FitCounter(progress, 1 + bootstrap))
            assert isinstance(found, ConsensusSet)
            return found
        results, more = run.each(data, progress)
        return ConsensusSet(results, method=method, params=params, set_notes=(*data.notes, *more))


def _algebra(method: Method, n_items: int) -> AbstractContextManager[None]:
    """Limit the threads of linear algebra; methods that only count skip this, and need not load its libraries.

    Beyond MOST_DENSE items no matrix is factored: more threads would only wait for each other in products of vectors.
    """
    return nullcontext() if method.power < 3 else algebra_threads(n_items if n_items <= MOST_DENSE else 0)


def _of_slices(data: Mapping[Any, Any], method: Any, by: str, progress: Any, **options: Any) -> Any:
    """The consensus of every slice as a `ConsensusSet`, with ``by`` as the name of the slice column."""
    if not data:
        raise DataError("no slices; give a mapping of names to ballots or votes")
    results: dict[Hashable, Consensus] = {}
    for k, (name, part) in enumerate(data.items()):
        try:
            found = consensus(part, method, **options)
        except DataError as error:
            raise DataError(f"{by} {name!r}: {error}") from error
        if isinstance(found, ConsensusSet):
            raise DataError(f"{by} {name!r} holds several instances; slice data that are one problem")
        results[name] = found
        if progress is not None:
            progress(k + 1, len(data))
    params = next(iter(results.values())).params
    return ConsensusSet(results, method=method, params=params, by=by)


def _of_sources(
    sources: Any, method: Any, bootstrap: int, random_state: int, progress: Progress | None, params: dict[str, Any]
) -> Consensus | ConsensusSet:
    """The joint fit of several sources, one for each instance; a source alone is answered as its data are."""
    if len(sources) == 1:
        (only,) = sources.values()
        alone = consensus(only, method, bootstrap=bootstrap, random_state=random_state, progress=progress, **params)
        return cast(Consensus, alone)
    from placet.aggregate.asking.source_votes import with_sources
    from placet.aggregate.method_table import SOURCES
    from placet.aggregate.sources.source_bootstrap import with_bootstrap

    if method not in (None, SOURCES.name):
        raise ValueError(f"sources are joined by a model of their own, not by {method!r}; leave the method out")
    SOURCES.check(params)
    results: dict[Hashable, Consensus] = {}
    for name, own in sources_by_instance(sources).items():
        given = params if len(own) > 1 else {}
        answer = consensus(own, bootstrap=bootstrap, random_state=random_state, **given)
        results[name] = cast(Consensus, answer)
    if results:
        return ConsensusSet(results, method=SOURCES.name, params=params, set_notes=sources.notes)
    with algebra_threads(sources.n_items):
        found = with_bootstrap(sources, bootstrap, random_state, progress, **params)
    return with_sources(found, sources)


def _of_games(games: Games, method: Any, bootstrap: int, params: dict[str, Any]) -> Consensus:
    """The fit of games with points by one of the models of games."""
    named, why = default_of(games) if method is None else (method_name(str(method)), "")
    record = EVERY[named]
    if record.kind != "game model":
        raise ValueError(f"{named!r} does not take games with points; choose from {as_choices(GAMES)}")
    if bootstrap:
        raise ValueError(f"{named!r} has standard errors of its own; leave bootstrap out")
    record.check(params)
    with _algebra(record, games.n_items):
        found: Consensus = record.function(games, **params)
    return found.with_note(why) if why else found


def _groups(
    data: Any, mixture: "Mixture", bootstrap: int, random_state: int, progress: Progress | None, params: dict[str, Any]
) -> Groups:
    """Fit a mixture and return its groups; ``params`` must be empty, as a mixture holds its own parameters."""
    if params:
        raise ValueError(f"parameters of a mixture belong to it: Mixture(..., {next(iter(params))}=...)")
    if isinstance(data, Parts):
        raise ValueError("a mixture needs all voters in memory; read the files with placet.read")
    refuse_design(data, "a mixture")
    steps = FitCounter(progress, 1 + bootstrap)
    fitted = mixture.fit(data)
    steps.step()
    if bootstrap:
        return fitted.bootstrap(data, bootstrap, random_state=random_state, progress=steps.step)
    return fitted.groups_


def check_method(method: str, params: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` for an unknown method, unknown parameters or values of the wrong type; needs no data."""
    method_of(method).check(params)


def expected_seconds(
    data: Rankings | Comparisons, method: str, bootstrap: int = 0, params: Mapping[str, Any] = NO_PARAMETERS
) -> float:
    """An estimate of the CPU time that `consensus` will take once its kernels are compiled, mostly within a factor of
    two."""
    record = method_of(method)
    if params.get("drift") and isinstance(data, Comparisons) and data.time is not None and len(data):
        from placet.aggregate.pairs import drift

        return (1 + bootstrap) * drift.expected_seconds(
            data, params.get("step", "1y"), raters=bool(params.get("agents"))
        )
    if isinstance(data, Comparisons):
        problems = [(len(data.i), len(data.items), 2)]
    elif data.instance is None:
        problems = [(len(data.item), data.n_items, int(np.diff(data.offsets).max(initial=0)))]
    else:
        rows = np.bincount(data.instance, np.diff(data.offsets))
        longest = np.zeros(len(rows), np.int64)
        np.maximum.at(longest, data.instance, np.diff(data.offsets))
        tiers = np.bincount(data.instance[data.ballot], data.tier, len(rows))  # equal for equal problems
        each = list(zip(rows.tolist(), longest.tolist(), tiers.tolist()))
        problems = [(int(r), n, n) for r, n, _ in (each if record.shares_agents else set(each))]
    rounds = bootstrap * (REFIT_SHARE if record.kind == "model" else 1.0)
    fits = FITS_WITH_RATERS if params.get("agents") else 1
    ties = record.tie_cost and record.tie_cost * _inner_ties(data)
    return (1 + rounds) * fits * (sum(record.seconds(*problem) for problem in problems) + ties)


def _inner_ties(data: Rankings | Comparisons) -> int:
    """Number of rows that tie with others above the last tier of their ballot."""
    if isinstance(data, Comparisons):
        return 0
    first, size = tier_runs(data.tier, data.offsets)
    return int(size[(size > 1) & ~np.isin(first + size, data.offsets)].sum())


class FitCounter:
    """Counts completed fits and reports progress to the caller."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.done, self.total = progress, 0, total

    def step(self, count: int = 1) -> None:
        self.done += count
        if self.progress is not None:
            self.progress(self.done, self.total)


@dataclass(frozen=True)
class Run:
    """A method with its parameters, ready to run on any data."""

    method: str
    params: dict[str, Any]
    bootstrap: int
    random_state: int
    start: Floats | None = None

    def answer(self, data: Rankings | Comparisons | Parts, steps: FitCounter) -> Consensus | ConsensusSet:
        """The result for a single problem, or for all instances if the model is fitted to them at once."""
        record = METHODS[self.method]
        if record.kind == "rule":
            scored = record.run(data, **self.params)
            result: Consensus | ConsensusSet = Consensus(
                data.items,
                scored.scores,
                method=self.method,
                params=self.params,
                notes=(*notes_of_data(data), *scored.notes, *unused_note(data, self.method)),
                record=scored.record,
                tolerance=scored.tolerance,  # type: ignore[arg-type]
                support=support(data),
            )
            again: Callable[..., Any] = lambda sample: record(sample, **self.params)  # noqa: E731
        else:
            model = record.function(**self.params)
            takes = inspect.signature(model.fit).parameters
            given: dict[str, Any] = {"start": self.start} if self.start is not None and "start" in takes else {}
            if steps.total == 1 and "progress" in takes:
                given["progress"] = steps.progress  # reports rounds within the single fit
            result = model.fit(data, **given).consensus_
            if self.bootstrap and hasattr(model, "bootstrap") and not isinstance(data, Parts):
                steps.step()
                return cast(
                    Consensus,
                    model.bootstrap(data, self.bootstrap, random_state=self.random_state, progress=steps.step),
                )
            again = lambda sample: _refit(model, sample)  # noqa: E731
        steps.step()
        if not self.bootstrap:
            return result
        draws = []
        for sample in self._samples(data):
            draws.append(again(sample))
            steps.step()
        if isinstance(data, Parts):
            return _with_draws(result, draws, resampling_words(data), units_of_parts(data))
        own = (lambda part: record(part, **self.params)) if record.kind == "rule" and record.adds else None
        units = units_of(data, own) if isinstance(result, Consensus) else None
        return _with_draws(result, draws, resampling_words(data), units)

    def _samples(self, data: Rankings | Comparisons | Parts) -> Iterator[Any]:
        """The resampled data of each bootstrap round; parts are resampled independently, or by the same agents."""
        if isinstance(data, Parts):
            agents = busy_agents(data)
            yield from (data.resampled_by(self.random_state, k, agents) for k in range(self.bootstrap))
            return
        rng = np.random.default_rng(self.random_state)
        yield from (resample(data, rng) for _ in range(self.bootstrap))

    def each(self, data: Rankings, progress: Progress | None) -> tuple[dict[Hashable, Consensus], list[str]]:
        """The result for each instance, and notes on all.  Problems that differ only in names are solved once."""
        parts = [(name, self._without_unused_scores(part)) for name, part in split(data)]
        groups: dict[tuple[bytes, ...], list[int]] = {}
        for k, (_, part) in enumerate(parts):
            groups.setdefault(_problem(part), []).append(k)
        light = sum(parts[same[0]][1].n_items ** 2 for same in groups.values()) > MOST_COVARIANCES
        steps = FitCounter(progress, len(groups) * (1 + self.bootstrap))
        found: dict[int, Consensus] = {}
        dropped = False
        for same in groups.values():
            one = self._solve(*parts[same[0]], len(same) > 1, steps)
            if light and one.covariance is not None:
                one, dropped = replace(one, covariance=None), True
            for k in same:
                found[k] = one if len(same) == 1 else _under_names(one, parts[k][1].items)
        notes = ["too many items to keep covariances: differences leave correlations out"] if dropped else []
        return {name: found[k] for k, (name, _) in enumerate(parts)}, notes

    def _without_unused_scores(self, part: Rankings) -> Rankings:
        """The part without scores unless the method reads them."""
        return part if METHODS[self.method].reads_scores or part.score is None else replace(part, score=None)

    def _solve(self, name: Hashable, part: Rankings, anonymous: bool, steps: FitCounter) -> Consensus:
        """The result for one instance; ``anonymous`` replaces item names by placeholders, to share it with others."""
        try:
            data = replace(part, items=tuple(f"\ue000{k}\ue001" for k in range(part.n_items))) if anonymous else part
            result = self.answer(data, steps)
        except DataError as error:
            text = _STAND_IN.sub(lambda m: str(part.items[int(m.group(1))]), str(error))
            raise DataError(f"instance {name!r}: {text}") from error
        assert isinstance(result, Consensus)
        return result


_STAND_IN = re.compile("\ue000([0-9]+)\ue001")


def _under_names(result: Consensus, items: tuple[Hashable, ...]) -> Consensus:
    """A result with placeholders replaced by the item names of an instance, in its notes too."""
    own = result.renamed(items)
    notes = tuple(_STAND_IN.sub(lambda m: str(items[int(m.group(1))]), note) for note in result.notes)
    object.__setattr__(own, "notes", notes)
    return own


def _problem(part: Rankings) -> tuple[bytes, ...]:
    """All that a method sees of an instance except names; equal for equal problems."""
    columns = (part.item, part.tier, part.offsets, part.weight, part.agent, part.score, part.control)
    return tuple(b"" if column is None else column.tobytes() for column in columns)


def _with_notes(data: Any, method: Method) -> Any:
    """The data, with notes if ballots may be the tops of longer lists, and on what the method does with tied votes."""
    new: list[str] = []
    if isinstance(data, Rankings):
        new = [note for note in data.heads_note() if note not in data.notes]  # a reader may have added it
    elif isinstance(data, Comparisons):
        new = method.ties_note(float(data.ties.sum()))
    return with_columns(data, notes=(*data.notes, *new)) if new else data


def _with_draws(
    result: Consensus | ConsensusSet, draws: list[Any], what: str, units: Units | None = None
) -> Consensus | ConsensusSet:
    """The result with bootstrap draws in place of its own standard errors."""
    if isinstance(result, Consensus):
        return with_bootstrap(result, np.array(draws), what, units)
    parts = {name: with_bootstrap(c, np.array([draw[name] for draw in draws]), what) for name, c in result.items()}
    return replace(result, results=parts)


def _refit(model: Any, sample: Rankings | Comparisons) -> Floats | dict[Hashable, Floats]:
    """Scores of the same model on resampled data, started from the fitted scores if the model supports it."""
    params = model.get_params(deep=False)
    if params.get("prior") == LEARN:
        params["prior"] = model.prior_
    again = type(model)(**(params | {"stderr": None} if "stderr" in params else params))
    start = {"start": model.theta_} if "start" in inspect.signature(again.fit).parameters else {}
    result: Consensus | ConsensusSet = again.fit(sample, **start).consensus_
    return {name: c.scores for name, c in result.items()} if isinstance(result, ConsensusSet) else result.scores
