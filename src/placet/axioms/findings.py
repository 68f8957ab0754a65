"""The audit line by line: what was checked, the verdict, and a sentence that needs no theory."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placet.aggregate import Consensus
from placet.axioms import words
from placet.axioms.checks import sole_winner
from placet.axioms.outcome import Relation, relation
from placet.axioms.search import Verdict

if TYPE_CHECKING:
    from placet.axioms.on_ballots import Audit

CHOOSES = ("kemeny", "kemeny-local", "footrule")
"""Rules that take one of several best orders."""


@dataclass(frozen=True)
class Duel:
    """Two items one against one: ``wins`` of the weight puts ``x`` above ``y``, ``losses`` below, ``ties`` level.

    ``share`` = (wins + ties / 2) / (wins + losses + ties) is at least 1/2; ``level`` says that the consensus ties them;
    ``silent`` is the weight of ballots that do not list both; ``noun`` is what weights count, voters or votes.
    """

    x: Hashable
    y: Hashable
    wins: float
    losses: float
    ties: float
    level: bool
    silent: float = 0.0
    noun: str = "voter"

    @property
    def share(self) -> float:
        return (self.wins + self.ties / 2) / (self.wins + self.losses + self.ties)

    @property
    def margin(self) -> float:
        return self.share - 0.5

    def words(self) -> str:
        """Three of five voters put x above y, yet y ends above x."""
        tied = f" and {words.number(self.ties)} tie them" if self.ties else ""
        end = f"{self.x} and {self.y} end level" if self.level else f"{self.y} ends above {self.x}"
        which = " who rank both" if self.silent > 0 else ""
        who = words.who_put(self.wins, self.wins + self.losses + self.ties, self.noun, which)
        return words.capital(f"{who} {self.x} above {self.y}{tied}, yet {end}.")


@dataclass(frozen=True)
class Finding:
    """One line of the audit: what was checked, the verdict, the margin that belongs to it, and the words."""

    check: str
    verdict: str
    margin: float | None
    words: str


def lines(f: "Audit") -> list[Finding]:
    """The findings of an audit, from the ranking itself to the theory of its rule."""
    result = f.consensus
    n = len(result.items)
    above = relation(result, n)
    found = [Finding("ranking", "info", None, _ranking_words(result)), _ties(f)]
    for check, winner, meaning in (
        ("majority", f.majority_winner, "is first on more than half of the ballots"),
        ("condorcet", f.condorcet_winner, "beats every other item one against one"),
    ):
        if check == "majority" and f.of_pairs:
            continue  # votes on pairs have no first places
        found.append(_winner_line(check, winner, meaning, result, above))
    found += f.near_winners
    found.append(_pareto_line(f))
    found += _majorities_lines(f)
    if f.near:
        pairs = [f"{d.x} over {d.y} ({d.share:.1%})" for d in f.near]
        narrow = words.counted(
            len(pairs), "majority that the ranking follows is", "majorities that the ranking follows are"
        )
        text = f"{narrow} narrow: {words.listed(pairs)}."
        found.append(Finding("near misses", "info", None, text))
    if f.sensitivity is not None and n > 1:
        found.append(Finding("sensitivity", "info", None, words.sensitivity_words(f.sensitivity)))
    found.append(Finding("agreement", "info", None, words.agreement_words(f.agreement)))
    found += [Finding("agreement", "info", None, words.contested_words(c)) for c in f.agreement.contested[:3]]
    found += [_theory_line(v, f.rule, n) for v in f.theory if not v.kept]
    return found


def _ranking_words(result: Consensus) -> str:
    if not len(result.items):
        return "There are no items."
    best = result.ranking[0]
    names = best if isinstance(best, tuple) else (best,)
    return f"{words.listed(names)} {'come' if len(names) > 1 else 'comes'} first by {result.method}."


def _ties(f: "Audit") -> Finding:
    chooses = ""
    if f.rule in CHOOSES:
        chooses = " Where several orders are equally good this rule takes one, the same each time."
    if not f.ties:
        return Finding("universality", "kept", None, f"No two items tie, so no tie had to be broken.{chooses}")
    groups = "; ".join(words.listed(group) for group in f.ties[:5])
    more = f" and {len(f.ties) - 5} more groups" if len(f.ties) > 5 else ""
    return Finding("universality", "broken", None, f"Ties are shown, not broken: {groups}{more} end level.{chooses}")


def _winner_line(check: str, winner: Hashable | None, meaning: str, result: Consensus, above: Relation) -> Finding:
    if winner is None:
        return Finding(check, "does not apply", None, f"No item {meaning}.")
    x = result.items.index(winner)
    if sole_winner(above) == x:
        return Finding(check, "kept", None, f"{winner} {meaning}, and wins.")
    rank = int(result.ranks[x])
    shares = "shares the first place" if rank == 1 else f"ends at place {rank}"
    return Finding(check, "broken", None, f"{winner} {meaning}, yet {shares}.")


def _pareto_line(f: "Audit") -> Finding:
    total, broken = len(f.pareto), f.pareto_broken
    pairs = words.counted(total, "pair", "pairs")
    voters = "votes" if f.of_pairs else "voters who rank both items" if f.partial else "voters"
    if not total:
        return Finding("pareto", "does not apply", None, f"On no pair of items do all {voters} agree.")
    if not broken:
        return Finding("pareto", "kept", None, f"All {voters} agree on {pairs}, and the ranking follows.")
    which = words.listed([f"{x} above {y}" for x, y in broken])
    text = f"All {voters} agree on {pairs}; the ranking does not follow {len(broken):,} of them: {which}."
    return Finding("pareto", "broken", None, text)


def _majorities_lines(f: "Audit") -> list[Finding]:
    total, broken = f.majorities, f.contradicted
    if not broken:
        text = f"The ranking contradicts none of {words.counted(total, 'pairwise majority', 'pairwise majorities')}."
        return [Finding("strong-condorcet", "kept", 0.0, text)]
    epsilon = max(duel.margin for duel in broken)
    beyond = f"it follows every one of more than {0.5 + epsilon:.1%}" if epsilon < 0.5 - 1e-9 else "some are unanimous"
    text = (
        f"The ranking contradicts {len(broken):,} of {total:,} pairwise majorities; {beyond} (epsilon {epsilon:.4f})."
    )
    return [Finding("strong-condorcet", "broken", epsilon, text)] + [
        Finding("strong-condorcet", "broken", duel.margin, duel.words()) for duel in broken[:5]
    ]


def verdict_words(v: Verdict) -> tuple[str, float | None, str]:
    """A verdict on a rule as such: in one word, with its margin, and in a sentence."""
    if v.kept:
        return "kept", v.margin, words.capital(words.MEANING[v.axiom]) + "."
    if v.witness is None:
        scope = "all" if v.complete else "a sample of"
        return "not broken", None, f"No violation in {scope} {v.searched:,} profiles that were searched."
    return "broken", v.margin, words.tell(v.witness) + _bound(v)


def _bound(v: Verdict) -> str:
    if v.margin is None or not v.proved:
        return ""
    if v.margin < 0.5 - 1e-9:
        return f" It cannot happen beyond a share of {0.5 + v.margin:.1%}."
    return " It can happen at any share."


def _theory_line(v: Verdict, rule: str, n: int) -> Finding:
    _, margin, text = verdict_words(v)
    return Finding(
        f"{v.axiom} in theory", "broken", margin, f"With {n} items {rule} can break '{words.MEANING[v.axiom]}': {text}"
    )
