"""Parameters of individual raters, as a fit found them: sharpness, ties and the side that each favors."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from placet.data.arrays import Floats, Names, plain_names
from placet.losses.pairwise import outcome_probabilities

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Raters:
    """Parameters of each rater: (raters,) sharpness around 1, tie parameter, side (advantage of the first), and errors.

    ``votes`` (raters,): number of votes, or ballots (``unit``), from each.  ``widths``: standard deviations between
    raters; ``typical_tie`` and ``order`` (the effect of coming first) are those of the typical rater.
    """

    agents: Names
    votes: Floats
    family: str
    tie: Floats
    columns: Mapping[str, Floats]
    stderr: Mapping[str, Floats]
    widths: Mapping[str, float]
    typical_tie: float
    order: float
    unit: str = "votes"

    def probabilities(self, agents: Sequence[Hashable], gap: Floats) -> tuple[Floats, Floats, Floats]:
        """Probabilities that each vote is for the first, for the second, or a tie, given score gaps ``gap`` (votes,).

        An unknown agent is treated as typical.
        """
        index = {name: k for k, name in enumerate(self.agents)}
        code = np.array([index.get(name, len(index)) for name in agents], np.int64)
        sharpness = np.append(self.columns.get("sharpness", np.ones(len(index))), 1.0)
        side = np.append(self.columns.get("side", np.full(len(index), self.order)), self.order)
        tie = np.append(self.tie, self.typical_tie)
        d = sharpness[code] * gap + side[code]
        out = np.empty((3, len(d)))
        for k in np.unique(code):
            out[:, code == k] = outcome_probabilities(d[code == k], self.family, float(tie[k]))
        return out[0], out[1], out[2]

    def to_frame(self) -> "pl.DataFrame":
        """A Polars frame, most votes first: agent, votes (or ballots), sharpness, tie_rate and side with standard
        errors, and a note.

        ``tie_rate`` is the probability that the rater calls two items of equal score a tie.
        """
        import polars as pl

        order = np.lexsort((np.arange(len(self.agents)), -self.votes))
        names = plain_names([self.agents[k] for k in order])
        frame: dict[str, Any] = {"agent": names, self.unit: self.votes[order]}
        for kind in ("sharpness", "side"):
            if kind in self.columns:
                frame |= {kind: self.columns[kind][order], f"{kind}_stderr": self.stderr[kind][order]}
        if self.family != "bradley-terry":
            rate = self.tie_rates()
            frame |= {"tie_rate": rate[order]}
            if "ties" in self.columns:
                frame |= {"tie_stderr": self.stderr["ties"][order]}
        words = self.words()
        return pl.DataFrame(frame | {"note": [words[k] for k in order]})

    def tie_rates(self) -> Floats:
        """(raters,): probability of a tie between items of equal score."""
        return np.array([float(outcome_probabilities(0.0, self.family, float(t))[2]) for t in self.tie])

    def words(self) -> list[str]:
        """A few words on what is unusual about each rater beyond chance."""
        z = 1.645
        found = []
        sharpness, side = self.columns.get("sharpness"), self.columns.get("side")
        rate = self.tie_rates() if "ties" in self.columns else None
        for k in range(len(self.agents)):
            said = []
            if sharpness is not None:
                a, e = float(sharpness[k]), float(self.stderr["sharpness"][k])
                if a + z * e < 0:
                    said.append("answers the other way round")
                elif a - z * e < 0 and a + z * e < 0.5:
                    said.append("answers like a coin")
                elif a + z * e < 1:
                    said.append("less sharp than most")
                elif a - z * e > 1:
                    said.append("sharper than most")
            if rate is not None:
                low = self.tie[k] - z * self.stderr["ties"][k]
                sure = float(outcome_probabilities(0.0, self.family, float(low))[2])
                if sure > 0.8:
                    said.append("calls nearly everything a tie")
                elif rate[k] < 0.02:
                    said.append("hardly ever calls a tie")
            if side is not None and abs(side[k]) - z * self.stderr["side"][k] > 0.5:
                said.append(f"favors the {'first' if side[k] > 0 else 'second'}")
            found.append(", ".join(said))
        return found

    def notes(self) -> list[str]:
        """Notes on how much raters differ, and on those who stand out."""
        spread = ", ".join(f"{kind} {self.widths[kind]:.2g}" for kind in self.columns)
        found = [f"raters differ by these standard deviations, learned from the data: {spread}"]
        words = self.words()
        for text in ("answers like a coin", "answers the other way round"):
            who = [str(self.agents[k]) for k, said in enumerate(words) if text in said]
            if who:
                more = f" and {len(who) - 5} more" if len(who) > 5 else ""
                found.append(f"{text}: {', '.join(who[:5])}{more}")
        return found
