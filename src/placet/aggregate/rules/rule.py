"""The `Rule` record: a function from ballots (or pairs) to scores, with its properties."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from placet.aggregate.instances import refuse_instances
from placet.aggregate.places import ballots_of
from placet.aggregate.result.result import RELATIVE_TOLERANCE, tied_groups
from placet.data import Comparisons, Rankings
from placet.data.arrays import Floats

VotesOrBallots = Rankings | Comparisons


@dataclass(frozen=True)
class Scored:
    """Scores (n_items,), notes, and the tolerance within which two scores tie (default: 1e-9 of the largest).

    ``extras`` are passed on to the `Consensus`; those that hold names of items have a method ``renamed(items)``.
    """

    scores: Floats
    notes: tuple[str, ...] = ()
    tolerance: float | None = None
    extras: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Rule:
    """A rule of the table `RULES`; calling it returns the scores, higher is better, and equal scores tie.

    ``function(data, **params)`` returns scores or `Scored`.  ``reference``: where it was published.  ``of_pairs``:
    whether it accepts `Comparisons` too.  ``reads_scores``: whether it uses the scores on ballots.  ``power``: exponent
    of its running time in the number of items.  ``tolerance``: the difference within which two scores tie, if the scale
    of the scores is known; else 1e-9 of the largest.  ``adds``: whether the scores of two sets of ballots add up to
    those of their union.  ``beyond_pairs``: whether, though it accepts pairs, it uses more of ballots than their pairs.
    """

    name: str
    function: Callable[..., Floats | Scored]
    reference: str
    of_pairs: bool = False
    reads_scores: bool = False
    power: int = 1
    tolerance: float | None = None
    adds: bool = False
    beyond_pairs: bool = False

    @property
    def pairs_suffice(self) -> bool:
        """Whether the rule uses nothing of ballots but their pairs."""
        return self.of_pairs and not self.beyond_pairs

    def run(self, data: VotesOrBallots, *args: object, **params: object) -> Scored:
        """Scores, notes and tolerance; scores that differ only by rounding are made equal."""
        if not (self.of_pairs and isinstance(data, Comparisons)):
            data = ballots_of(data, self.name)
        refuse_instances(data, self.name)
        answer = self.function(data, *args, **params)
        return self._level_ties(answer if isinstance(answer, Scored) else Scored(answer))

    def points(self, data: Rankings, params: Mapping[str, object]) -> tuple[Floats, float, list[str]]:
        """Scores of a part, its share of the tolerance, and notes; summed over parts they give those of all."""
        answer = self.function(data, **params)
        found = answer if isinstance(answer, Scored) else Scored(answer)
        return found.scores, found.tolerance or 0.0, list(found.notes)

    def from_points(self, points: tuple[Floats, float, list[str]]) -> Scored:
        """Scores from the sum of points of all parts."""
        scores, tolerance, notes = points
        return self._level_ties(Scored(scores, tuple(dict.fromkeys(notes)), tolerance or None))

    def _level_ties(self, found: Scored) -> Scored:
        size = float(np.abs(found.scores).max(initial=0.0))
        known = self.tolerance if found.tolerance is None else found.tolerance
        close = RELATIVE_TOLERANCE * size if known is None else known
        return replace(found, scores=_level_ties(found.scores, close), tolerance=close)

    def __call__(self, data: VotesOrBallots, *args: object, **params: object) -> Floats:
        return self.run(data, *args, **params).scores

    def seconds(self, rows: int, items: int) -> float:
        """A rough estimate of the running time for ballots with ``rows`` rows over ``items`` items."""
        pairs = 1e-9 * rows * items if self.of_pairs else 0.0
        return 1e-4 + 1e-7 * rows + pairs + 1e-8 * float(items) ** self.power

    @property
    def parameters(self) -> frozenset[str]:
        """Names of the parameters of the function."""
        return frozenset(inspect.signature(self.function).parameters)


def _level_ties(scores: Floats, close: float) -> Floats:
    """Replace the scores of each tied group by the middle of the group, so that ties are equal to the last bit."""
    tier, size = tied_groups(scores, close)
    if (size == 1).all():
        return scores
    high, low = np.full(len(size), -np.inf), np.full(len(size), np.inf)
    np.maximum.at(high, tier, scores)
    np.minimum.at(low, tier, scores)
    return np.where(size[tier] > 1, (low + (high - low) / 2)[tier], scores)
