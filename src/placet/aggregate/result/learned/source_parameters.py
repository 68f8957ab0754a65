"""What a joint fit found about each source: its scale, its width, its agreement with the target, its worth."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr

from placet.data.arrays import Floats, Names, plain_names
from placet.stats import holm

if TYPE_CHECKING:
    import polars as pl

LEVEL = 0.05
SURE = 0.95
"""Probability from which on a source is taken to be related to the target without a word."""

NOTHING = 0.005
"""A source worth less than this share of the target's own votes adds nothing."""


@dataclass(frozen=True)
class SourceParameters:
    """Columns (sources,) in the order of ``names``; the target has scale 1, width 0 and agreement 1.

    ``scale``: how far apart the source sees the items, relative to the target; ``width``: standard deviation of its
    deviations from the target, on the target's scale; ``agreement``: correlation of the source's true scores with those
    asked for; ``related``: probability that it has anything to do with the target; ``worth``: votes of the target that
    would have made the errors of its items as small, 0 if it is more likely unrelated (None without a target, or if no
    number of them would).  ``deviation`` and ``deviation_stderr``: by source, (items of the source,) on the target's
    scale, with its ``members``, the names of these items.
    """

    names: Names
    target: Hashable
    kind: tuple[str, ...]
    amount: Floats
    scale: Floats
    scale_stderr: Floats
    width: Floats
    width_stderr: Floats
    agreement: Floats
    agreement_stderr: Floats
    related: Floats
    worth: tuple[float | None, ...]
    members: Mapping[Hashable, Names]
    deviation: Mapping[Hashable, Floats]
    deviation_stderr: Mapping[Hashable, Floats]

    def to_frame(self) -> "pl.DataFrame":
        """A Polars frame with a row per source: source, kind, amount, scale, width, agreement with their standard
        errors, related, worth, and favors: what it puts higher or lower than the target beyond chance.
        """
        import polars as pl

        columns: dict[str, Any] = {"source": plain_names(list(self.names)), "kind": self.kind, "amount": self.amount}
        for name in ("scale", "width", "agreement"):
            columns |= {name: getattr(self, name), f"{name}_stderr": getattr(self, f"{name}_stderr")}
        favors = ["; ".join(self.favors(name)) for name in self.names]
        worth = pl.Series([None if value is None else float(value) for value in self.worth], dtype=pl.Float64)
        return pl.DataFrame(columns | {"related": self.related, "worth": worth, "favors": favors})

    def deviations_frame(self) -> "pl.DataFrame":
        """A Polars frame with a row per source and item: source, item, deviation, stderr, p (Holm's, per source)."""
        import polars as pl

        rows = []
        for name in self.deviation:
            chance = self.chance(name)
            for k, item in enumerate(self.members[name]):
                rows.append((name, item, self.deviation[name][k], self.deviation_stderr[name][k], chance[k]))
        frame = {
            "source": plain_names([row[0] for row in rows]),
            "item": plain_names([row[1] for row in rows]),
            "deviation": [float(row[2]) for row in rows],
            "stderr": [float(row[3]) for row in rows],
            "p": [float(row[4]) for row in rows],
        }
        return pl.DataFrame(frame)

    def chance(self, name: Hashable) -> Floats:
        """(items of the source,): Holm's p-values of its deviations."""
        error = self.deviation_stderr[name]
        z = np.divide(self.deviation[name], error, out=np.zeros(len(error)), where=error > 0)
        return holm(2 * ndtr(-np.abs(z)))

    def favors(self, name: Hashable) -> list[str]:
        """What the source puts higher or lower than the target beyond chance, the largest first; nothing of a source
        that is more likely unrelated, which differs everywhere.
        """
        if name not in self.deviation or self.related[self.names.index(name)] < 0.5:
            return []
        d, e, p = self.deviation[name], self.deviation_stderr[name], self.chance(name)
        found = [k for k in np.argsort(-np.abs(d), kind="stable") if p[k] < LEVEL]
        words = [(("favors" if d[k] > 0 else "puts down"), self.members[name][k], abs(d[k]), e[k]) for k in found]
        return [f"{verb} {item} by {size:.2g} ± {error:.1g}" for verb, item, size, error in words]

    def notes(self) -> list[str]:
        """What each source is worth, and how it differs, in plain words."""
        found = []
        own = None if self.target is None else float(self.amount[self.names.index(self.target)])
        asked = "" if self.target is None else f"{self.target} {self.kind[self.names.index(self.target)]}"
        for k, name in enumerate(self.names):
            if name == self.target:
                continue
            value = self.worth[k]
            said = f"{name} agrees with {'the others' if own is None else self.target} "
            said += f"at {self.agreement[k]:.2f} (correlation of scores)"
            if value is None and own is not None:
                said += f", and tells what no number of {asked} like these would"
            if value is not None and own is not None:
                said = f"{name} is worth {_votes(value)} {asked} here"
                if self.related[k] < SURE:
                    said += f", if it agrees with {self.target} at all (probability {self.related[k]:.2f})"
                if self.related[k] < 0.5:
                    said = f"{name} adds nothing here: it does not agree with {self.target} beyond chance"
                elif value <= NOTHING * own:
                    said = f"{name} adds nothing here"
            differs = self.favors(name)[:3]
            found.append(said + (f"; it {', '.join(differs)}" if differs else ""))
        return found


def _votes(value: float) -> str:
    """A number of votes with two digits that count."""
    if value < 10:
        return f"{value:.1g}"
    digits = int(np.floor(np.log10(value))) - 1
    return f"{round(value / 10**digits) * 10**digits:,}"
