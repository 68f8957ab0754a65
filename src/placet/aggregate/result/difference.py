"""Differences between two boards (dates, methods or slices), and which of them are statistically significant."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from placet.aggregate.result import display, separation
from placet.aggregate.result.result import Consensus
from placet.aggregate.result.scales import in_log_odds
from placet.aggregate.result.uncertainty import check_level
from placet.data.arrays import Floats
from placet.data.errors import DataError
from placet.stats import holm

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False, repr=False)
class Difference:
    """Board ``b`` compared with board ``a`` over the ``items`` (m,) they have in common.

    ``change`` (m,): changes of the scores, each board centered to mean zero over these items, with ``stderr`` and ``p``
    (m,).  They are None, and only ranks are compared, unless both boards have scores on one scale and standard errors.
    ``beyond`` (m,): which changes are significant, with joint confidence ``level``: by Holm's correction of the
    p-values, or without p-values by disjoint rank sets.  ``flips``: pairs that a and b order in opposite ways, both
    significantly.  ``only_a`` and ``only_b`` are the items on one board only.

    The boards are assumed independent, as those of different dates or slices are.  Methods applied to the same votes
    are not: their errors are correlated, so the comparison is conservative and finds too few differences.
    """

    a: Consensus
    b: Consensus
    level: float
    items: tuple[Hashable, ...]
    change: Floats | None
    stderr: Floats | None
    p: Floats | None
    beyond: NDArray[np.bool_]
    flips: tuple[tuple[Hashable, Hashable], ...]
    only_a: tuple[Hashable, ...]
    only_b: tuple[Hashable, ...]

    def to_frame(self) -> "pl.DataFrame":
        """A row for each item in the order of ``b``: ranks and scores on both boards, the change and whether it is
        significant.  Items on one board only have nulls.
        """
        import polars as pl

        at = {name: k for k, name in enumerate(self.items)}
        order = [self.b.items[k] for k in self.b.order] + list(self.only_a)
        of_a, of_b = ({name: k for k, name in enumerate(c.items)} for c in (self.a, self.b))
        pick = lambda values, index, name: None if name not in index else values[index[name]].item()  # noqa: E731
        known = lambda values, name: None if values is None or name not in at else values[at[name]].item()  # noqa: E731
        rows = {
            "item": [str(name) for name in order],
            "rank_a": [pick(self.a.ranks, of_a, name) for name in order],
            "rank_b": [pick(self.b.ranks, of_b, name) for name in order],
            "score_a": [pick(self.a.scores, of_a, name) for name in order],
            "score_b": [pick(self.b.scores, of_b, name) for name in order],
            "change": [known(self.change, name) for name in order],
            "stderr": [known(self.stderr, name) for name in order],
            "p": [known(self.p, name) for name in order],
            "beyond_chance": [known(self.beyond, name) for name in order],
        }
        kinds = {"rank_a": pl.Int64, "rank_b": pl.Int64, "beyond_chance": pl.Boolean, "item": pl.String}
        return pl.DataFrame(rows, schema={name: kinds.get(name, pl.Float64) for name in rows})

    def _repr_html_(self) -> str:
        return display.html_changes(self)

    def plot(self, most: int = 30, axes: Any = None) -> Any:
        """Plot the changes of the best ``most`` items of ``b`` with intervals by matplotlib; returns the axes."""
        return display.plot_changes(self, most, axes)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that summarize the changes."""
        moved, n = int(self.beyond.sum()), len(self.items)
        how = "" if self.p is not None else ", by ranks alone, because the scores are on different scales"
        notes = [f"{moved} of {n} items changed beyond chance ({self.level:.0%}, all at once{how})"]
        if self.flips:
            x, y = self.flips[0]
            word = "pair is" if len(self.flips) == 1 else "pairs are"
            notes.append(f"{len(self.flips)} {word} reversed beyond chance, first {x!r} above {y!r} in a, below in b")
        for only, board in ((self.only_a, "first"), (self.only_b, "second")):
            if only:
                notes.append(f"{len(only)} items are on the {board} board alone, first {only[0]!r}")
        if self.a.method != self.b.method:
            notes.append(f"methods differ: {self.a.method} and {self.b.method}")
        return tuple(notes)

    def __repr__(self) -> str:
        return f"Difference({self.notes[0]})"


def difference(a: Consensus, b: Consensus, level: float = 0.95) -> Difference:
    """Compare board ``b`` with board ``a``: changes of scores (or of ranks) and their significance.

    Returns
    -------
    Difference
        A row per item of both boards, and the pairs that changed places.

    >>> old = Consensus(("x", "y", "z"), [1.0, 0.0, -1.0], method="m", stderr=[0.1, 0.1, 0.1])
    >>> new = Consensus(("x", "y", "z"), [0.0, 1.0, -1.0], method="m", stderr=[0.1, 0.1, 0.1])
    >>> difference(old, new)
    Difference(2 of 3 items changed beyond chance (95%, all at once))
    >>> difference(old, new).flips
    (('x', 'y'),)
    """
    check_level(level)
    if _scale(a) != _scale(b):
        a, b = in_log_odds(a), in_log_odds(b)
    known = set(b.items)
    items = tuple(name for name in a.items if name in known)
    if len(items) < 2:
        raise DataError(f"the boards have {len(items)} items in common; two are needed to compare them")
    own = set(a.items)
    ia, ib = (np.array([c._number(name) for name in items]) for c in (a, b))
    change = stderr = p = None
    if a.stderr is not None and b.stderr is not None and _comparable(a, b):
        change, stderr = _changes(a, b, ia, ib)
        p = 2 * ndtr(-np.abs(np.divide(change, stderr, out=np.zeros(len(items)), where=stderr > 0)))
        beyond = holm(p) <= 1 - level
    else:
        beyond = _ranks_apart(a, b, ia, ib, level)
    return Difference(
        a,
        b,
        level,
        items,
        change,
        stderr,
        p,
        beyond,
        _flips(a, b, ia, ib, items, level),
        tuple(name for name in a.items if name not in known),
        tuple(name for name in b.items if name not in own),
    )


def _scale(c: Consensus) -> object:
    return None if c.scale is None else c.scale.unit


def _comparable(a: Consensus, b: Consensus) -> bool:
    """Whether scores are on one scale: from the same method, or both in log odds."""
    odds = all(c.win is not None and c.spread is None for c in (a, b))
    return a.method == b.method or odds


def centered_errors(c: Consensus, at: NDArray[np.int64]) -> Floats:
    """Covariance (m, m) of the scores of the items ``at``, centered to mean zero."""
    assert c.stderr is not None
    full = c._covariance_or_draws()
    own = np.diag(c.stderr[at] ** 2) if full is None else full[np.ix_(at, at)]
    rows = own - own.mean(axis=0)
    return rows - rows.mean(axis=1, keepdims=True)


def _changes(a: Consensus, b: Consensus, ia: NDArray[np.int64], ib: NDArray[np.int64]) -> tuple[Floats, Floats]:
    x, y = a.scores[ia], b.scores[ib]
    errors = np.diag(centered_errors(a, ia)) + np.diag(centered_errors(b, ib))
    return (y - y.mean()) - (x - x.mean()), np.sqrt(np.maximum(errors, 0))


def _ranks_apart(
    a: Consensus, b: Consensus, ia: NDArray[np.int64], ib: NDArray[np.int64], level: float
) -> NDArray[np.bool_]:
    """Which items have disjoint rank sets, each at half the error rate; none if a board has no standard errors."""
    if a.stderr is None or b.stderr is None or len(a.items) != len(b.items):
        return np.zeros(len(ia), bool)
    (low_a, high_a), (low_b, high_b) = (c.rank_interval((1 + level) / 2) for c in (a, b))
    return (high_a[ia] < low_b[ib]) | (high_b[ib] < low_a[ia])


def _flips(
    a: Consensus, b: Consensus, ia: NDArray[np.int64], ib: NDArray[np.int64], items: tuple[Hashable, ...], level: float
) -> tuple[tuple[Hashable, Hashable], ...]:
    """Pairs that both boards separate significantly, in opposite orders."""
    if a.stderr is None or b.stderr is None or max(len(a.items), len(b.items)) > separation.MOST_PAIRED:
        return ()
    above_a, above_b = (c.separated((1 + level) / 2)[np.ix_(k, k)] for c, k in ((a, ia), (b, ib)))
    return tuple((items[i], items[j]) for i, j in np.argwhere(above_a & above_b.T).tolist())
