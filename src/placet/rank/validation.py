"""Keep the best state of a training run by validation quality, with early stopping and after an interrupt."""

import math
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, cast

State = TypeVar("State")

EVERY_STEP = 10  # with `thin`, judge each of the first 10 steps, then whenever the step count has grown by 10 %


class Best(Generic[State]):
    """The best state of a training run so far.

    ``judge(state)`` returns the quality of a state, higher is better (NaN is the worst); without a judge, the latest
    state counts as the best.  Ties go to the earlier state.  ``patience``: ``stale`` is true after this many steps
    without a better state.  ``thin`` judges every step at first and only some later, so that judging takes a small
    fraction of the training time.  ``copy`` is applied to a state to be kept; ``tell(step, quality or None)`` is called
    after each step, and within long ones.  ``validates``: whether the judge uses a validation set; only then does
    ``summary`` report the quality.  ``values(quality)``: the metrics of the state judged last, by name; the ``history``
    has them for every step that was judged.  ``least``: only a rise of the quality by more than this counts against
    ``patience``.

    As a context manager, it suppresses an interrupt (Ctrl-C) and keeps the best state, if there is one.

    >>> best = Best(judge=lambda x: -abs(x - 2), patience=3)
    >>> with best:
    ...     for x in range(10):
    ...         quality = best.see(x)
    ...         if best.stale:
    ...             break
    >>> best.state, best.quality, best.steps
    (2, 0, 6)
    """

    def __init__(
        self,
        judge: Callable[[State], float] | None = None,
        *,
        patience: int | None = None,
        thin: bool = False,
        copy: Callable[[State], State] | None = None,
        tell: Callable[[int, float | None], None] | None = None,
        validates: bool = True,
        values: Callable[[float], Mapping[str, float]] | None = None,
        least: float = 0.0,
    ) -> None:
        self.judge, self.patience, self.thin, self.copy, self.tell = judge, patience, thin, copy, tell
        self.validates, self.values, self.least = validates, values, least
        self.history: dict[int, Mapping[str, float]] = {}  # number of steps -> metrics
        self._state: State | None = None
        self.quality: float | None = None
        self.steps = self.best_step = self._judged = self._rise_step = 0
        self._risen_to = math.nan  # quality after the last rise by more than ``least``
        self.interrupted = False
        self.empty = True  # no state yet

    def see(self, state: State) -> float | None:
        """Count one step, consider the state after it, and return its quality (None if it was not judged)."""
        self.steps += 1
        found = None
        if not self.thin or self.judge is None or self.steps <= EVERY_STEP or self.steps >= 1.1 * self._judged:
            found = self.consider(state)
        if self.tell is not None:
            self.tell(self.steps, found)
        return found

    def report_within_step(self) -> None:
        """Report progress in the middle of a long step, so that the caller can interrupt it."""
        if self.tell is not None:
            self.tell(self.steps, None)

    def consider(self, state: State) -> float | None:
        """Judge a state, keep it if it is the best so far, and return its quality, without counting a step."""
        found = None
        if self.judge is not None:
            self._judged, found = self.steps, self.judge(state)
            if self.values is not None:
                self.history[self.steps] = self.values(found)
        if self.empty or found is None or self.quality is None or found > self.quality:
            self._state = state if self.copy is None else self.copy(state)
            self.quality = None if found is None or math.isnan(found) else found
            self.best_step, self.empty = self.steps, False
            if self.quality is None or not self.quality <= self._risen_to + self.least:
                self._rise_step, self._risen_to = self.steps, math.nan if self.quality is None else self.quality
        return found

    @property
    def state(self) -> State:
        """The best state; there must be one."""
        if self.empty:
            raise RuntimeError("no state has been seen")
        return cast(State, self._state)

    @property
    def stale(self) -> bool:
        """Whether ``patience`` steps have passed without a better state."""
        waited = self.steps - self._rise_step
        return self.judge is not None and self.patience is not None and waited >= self.patience

    def summary(self) -> dict[str, Any]:
        """Entries that every ranker adds to its ``fit_summary_``."""
        found = {"validation": self.quality if self.validates else None, "interrupted": self.interrupted}
        if not self.history:
            return found
        names = next(iter(self.history.values()))
        columns = {name: [_or_none(row[name]) for row in self.history.values()] for name in names}
        return {**found, "history": {"step": list(self.history), **columns}}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> bool:
        if kind is None or not issubclass(kind, KeyboardInterrupt) or self.empty:
            return False
        self.interrupted = True
        return True


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
