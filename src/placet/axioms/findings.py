"""Findings of an audit: what was checked, the verdict, and a sentence in plain English."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placet.aggregate import Consensus
from placet.aggregate.method_table import record_of
from placet.axioms import sentences
from placet.axioms.evidence import LEVEL
from placet.axioms.outcome import Above, relation, sole_winner
from placet.axioms.verdict import Verdict

if TYPE_CHECKING:
    from placet.axioms.audits import Audit

FIRST_PLACES = "is first on more than half of the ballots"
BEATS_ALL = "beats every other item head to head"
WITHIN = "within chance"
"""Verdict if pairwise votes are not followed, but are too few to show that they should be."""


@dataclass(frozen=True)
class Duel:
    """Two items head to head: the weights that put ``x`` above ``y``, below it, and tied with it.

    ``share`` = (wins + ties / 2) / (wins + losses + ties) is at least 1/2; ``tied`` tells whether the consensus ties
    them; ``silent`` is the weight of ballots that do not list both; ``noun`` is what weights count, voters or votes;
    ``beyond`` tells whether the lead is beyond chance, tested for all pairs jointly (`placet.axioms.evidence`).

    >>> import placet
    >>> votes = placet.Rankings.from_orders([["A", "B", "C"]] * 3 + [["B", "C", "A"]] * 2)
    >>> duel = placet.audit(votes, "borda").contradicted[0]
    >>> duel.x, duel.y, duel.wins, duel.losses, duel.share
    ('A', 'B', 3.0, 2.0, 0.6)
    """

    x: Hashable
    y: Hashable
    wins: float
    losses: float
    ties: float
    tied: bool
    silent: float = 0.0
    noun: str = "voter"
    beyond: bool = False

    @property
    def share(self) -> float:
        return (self.wins + self.ties / 2) / (self.wins + self.losses + self.ties)

    @property
    def margin(self) -> float:
        return self.share - 0.5

    def sentence(self) -> str:
        """A sentence such as "Three of five voters put x above y, yet y ends above x."."""
        ties = f" and {sentences.in_words(self.ties)} tie them" if self.ties else ""
        end = f"{self.x} and {self.y} tie" if self.tied else f"{self.y} ends above {self.x}"
        which = " who rank both" if self.silent > 0 else ""
        who = sentences.voters_put(self.wins, self.wins + self.losses + self.ties, self.noun, which)
        return sentences.capitalize(f"{who} {self.x} above {self.y}{ties}, yet {end}.")


@dataclass(frozen=True)
class Finding:
    """One line of an audit: what was checked, the verdict, its margin if it has one, and a sentence.

    >>> import placet
    >>> votes = placet.Rankings.from_orders([["A", "B", "C"]] * 3 + [["B", "C", "A"]] * 2)
    >>> finding = placet.audit(votes, "borda").findings[0]
    >>> finding.check, finding.verdict
    ('ranking', 'info')
    """

    check: str
    verdict: str
    margin: float | None
    text: str


def findings_frame(findings: tuple[Finding, ...]) -> Any:
    """A Polars frame of findings: check, verdict, margin, text."""
    import polars as pl

    names = ("check", "verdict", "margin", "text")
    schema = {name: pl.Float64 if name == "margin" else pl.String for name in names}
    return pl.DataFrame([[getattr(f, name) for name in names] for f in findings], schema=schema, orient="row")


# One consensus on its ballots


def ballot_findings(audit: "Audit") -> list[Finding]:
    """The findings of an audit, from the ranking itself to the theory of its method."""
    result = audit.consensus
    n = len(result.items)
    above = relation(result, n)
    found = [Finding("ranking", "info", None, _ranking_sentence(result)), _ties_finding(audit)]
    for check, winner, meaning in (
        ("majority", audit.majority_winner, FIRST_PLACES),
        ("condorcet", audit.condorcet_winner, BEATS_ALL),
    ):
        if check == "majority" and audit.from_pairs:
            continue  # votes on pairs have no first places
        may_be_chance = check == "condorcet" and audit.from_pairs and not audit.condorcet_beyond
        found.append(_winner_finding(check, winner, meaning, result, above, may_be_chance))
    found += audit.near_winners
    found.append(_pareto_finding(audit))
    found += _majority_findings(audit)
    if audit.near:
        pairs = [f"{d.x} over {d.y} ({d.share:.1%})" for d in audit.near]
        narrow = sentences.count_of(
            len(pairs), "majority that the ranking follows is", "majorities that the ranking follows are"
        )
        text = f"{narrow} narrow: {sentences.join_names(pairs)}."
        found.append(Finding("near misses", "info", None, text))
    if audit.sensitivity is not None and n > 1:
        found.append(Finding("sensitivity", "info", None, sentences.explain_sensitivity(audit.sensitivity)))
    found.append(Finding("agreement", "info", None, sentences.explain_agreement(audit.agreement)))
    found += [Finding("agreement", "info", None, sentences.explain_contested(c)) for c in audit.agreement.contested[:3]]
    found += [_theory_finding(v, audit.method, n) for v in audit.theory if not v.kept]
    return found


def _ranking_sentence(result: Consensus) -> str:
    if not len(result.items):
        return "There are no items."
    best = result.ranking[0]
    names = best if isinstance(best, tuple) else (best,)
    return f"{sentences.join_names(names)} {'come' if len(names) > 1 else 'comes'} first by {result.method}."


def _ties_finding(audit: "Audit") -> Finding:
    chooses = ""
    if record_of(audit.method).picks_one:
        chooses = " Where several orders are equally good this rule takes one, the same each time."
    if not audit.ties:
        return Finding("universality", "kept", None, f"No two items tie, so no tie had to be broken.{chooses}")
    groups = "; ".join(sentences.join_names(group) for group in audit.ties[:5])
    more = f" and {len(audit.ties) - 5} more groups" if len(audit.ties) > 5 else ""
    return Finding("universality", "broken", None, f"Ties are shown, not broken: {groups}{more} tie.{chooses}")


def _winner_finding(
    check: str, winner: Hashable | None, meaning: str, result: Consensus, above: Above, may_be_chance: bool
) -> Finding:
    if winner is None:
        return Finding(check, "does not apply", None, f"No item {meaning}.")
    x = result.items.index(winner)
    if sole_winner(above) == x:
        return Finding(check, "kept", None, f"{winner} {meaning}, and wins.")
    rank = int(result.ranks[x])
    end = "shares the first place" if rank == 1 else f"finishes {sentences.ordinal(rank)}"
    if may_be_chance:
        text = f"{winner} {meaning}, yet {end}; the votes between them are so few that this may be chance."
        return Finding(check, WITHIN, None, text)
    return Finding(check, "broken", None, f"{winner} {meaning}, yet {end}.")


def _pareto_finding(audit: "Audit") -> Finding:
    total, broken = len(audit.pareto), audit.pareto_broken
    pairs = sentences.count_of(total, "pair", "pairs")
    voters = "votes" if audit.from_pairs else "voters who rank both items" if audit.partial else "voters"
    if not total:
        return Finding("pareto", "does not apply", None, f"On no pair of items do all {voters} agree.")
    if not broken:
        return Finding("pareto", "kept", None, f"All {voters} agree on {pairs}, and the ranking follows.")
    text = f"All {voters} agree on {pairs}; the ranking does not follow {len(broken):,} of them"
    if audit.from_pairs:
        sure = {(d.x, d.y) for d in audit.contradicted if d.beyond}
        broken = tuple(pair for pair in broken if pair in sure)
        if not broken:
            return Finding("pareto", WITHIN, None, f"{text}, none beyond chance (so few votes are on these pairs).")
        text += f", {len(broken):,} of these beyond chance"
    which = sentences.join_names([f"{x} above {y}" for x, y in broken])
    return Finding("pareto", "broken", None, f"{text}: {which}.")


def _majority_findings(audit: "Audit") -> list[Finding]:
    total, broken = audit.majorities, audit.contradicted
    if not broken:
        majorities = sentences.count_of(total, "pairwise majority", "pairwise majorities")
        return [Finding("strong-condorcet", "kept", 0.0, f"The ranking contradicts none of {majorities}.")]
    epsilon = audit.epsilon
    limit = f"it follows every one of more than {0.5 + epsilon:.1%}" if epsilon < 0.5 - 1e-9 else "some are unanimous"
    text = f"The ranking contradicts {len(broken):,} of {total:,} pairwise majorities; {limit} (epsilon {epsilon:.4f})."
    sure = [duel for duel in broken if duel.beyond]
    weight = f"{len(sure):,} of these {len(broken):,}" if sure else "None of these"
    text += f" {weight} {'are' if len(sure) > 1 else 'is'} beyond chance ({LEVEL:.0%}, all pairs at once)."
    verdict = "broken" if sure or not audit.from_pairs else WITHIN
    shown = sure + [duel for duel in broken if not duel.beyond and not audit.from_pairs]
    return [Finding("strong-condorcet", verdict, epsilon, text)] + [
        Finding("strong-condorcet", "broken", duel.margin, duel.sentence()) for duel in shown[:5]
    ]


def _theory_finding(v: Verdict, method: str, n: int) -> Finding:
    found = verdict_finding(v)
    text = f"With {n} items {method} can break '{sentences.MEANING[v.axiom]}': {found.text}"
    return Finding(f"{v.axiom} in theory", "broken", found.margin, text)


# A method without ballots


def verdict_finding(v: Verdict) -> Finding:
    """A verdict on a method, without ballots, as a finding."""
    if v.kept:
        return Finding(v.axiom, "kept", v.margin, sentences.capitalize(sentences.MEANING[v.axiom]) + ".")
    if v.witness is None:
        scope = "all" if v.complete else "a sample of"
        text = f"No violation in {scope} {v.searched:,} profiles that were searched."
        return Finding(v.axiom, "not broken", None, text)
    return Finding(v.axiom, "broken", v.margin, sentences.explain(v.witness) + _largest_share_text(v))


def _largest_share_text(v: Verdict) -> str:
    if v.margin is None or not v.proved:
        return ""
    if v.margin < 0.5 - 1e-9:
        return f" It cannot happen beyond a share of {0.5 + v.margin:.1%}."
    return " It can happen at any share."


# Many instances


def instance_findings(audits: "Mapping[Hashable, Audit]") -> list[Finding]:
    """Findings that summarize the audits of many instances."""
    every = list(audits.values())
    if not every:
        return [Finding("instances", "info", None, "There are no instances.")]
    sizes = sorted(len(a.consensus.items) for a in every)
    range_of_sizes = f"{sizes[0]:,} to {sizes[-1]:,} items each" if sizes[0] < sizes[-1] else f"{sizes[0]:,} items each"
    total = sentences.count_of(len(every), "instance was", "instances were")
    found = [Finding("instances", "info", None, f"{total} audited, {range_of_sizes}.")]
    found += [
        _ties_summary(audits),
        _winner_summary("majority", audits, FIRST_PLACES),
        _winner_summary("condorcet", audits, BEATS_ALL),
        _count_finding(
            "pareto",
            audits,
            lambda a: bool(a.pareto),
            lambda a: not a.pareto_broken,
            "all voters agree on some pair of items",
            "the ranking follows all such pairs",
        ),
    ]
    contradicted, majorities = sum(len(a.contradicted) for a in every), sum(a.majorities for a in every)
    widest = max(audits, key=lambda name: audits[name].epsilon)
    text = f"The rankings contradict {contradicted:,} of {majorities:,} pairwise majorities"
    if contradicted:
        text += f", the widest in {widest} (epsilon {audits[widest].epsilon:.4f})"
    verdict = "broken" if contradicted else "kept"
    found.append(Finding("strong-condorcet", verdict, max(a.epsilon for a in every), text + "."))
    known = [
        a.sensitivity.to_change for a in every if a.sensitivity is not None and a.sensitivity.to_change is not None
    ]
    if known:
        text = (
            f"In {sum(k == 1 for k in known):,} of {_instances(len(known))} with a sole winner one ballot decides it."
        )
        found.append(Finding("sensitivity", "info", None, text))
    compared = [a for a in every if len(a.agreement.methods) > 1]
    if compared:
        depends = sum(not set.intersection(*map(set, a.agreement.winners)) for a in compared)
        text = f"In {depends:,} of {_instances(len(compared))} the winner depends on the choice of rule."
        found.append(Finding("agreement", "info", None, text))
    return found


def _winner_summary(check: str, audits: "Mapping[Hashable, Audit]", meaning: str) -> Finding:
    def winner(a: "Audit") -> Hashable | None:
        return a.majority_winner if check == "majority" else a.condorcet_winner

    return _count_finding(
        check,
        audits,
        lambda a: winner(a) is not None,
        lambda a: a.consensus.ranking[:1] == [winner(a)],
        f"an item {meaning}",
        "it wins",
    )


def _count_finding(
    check: str, audits: "Mapping[Hashable, Audit]", applies: Any, holds: Any, premise: str, conclusion: str
) -> Finding:
    """Finding on the number of instances in which a premise applies, and in which its conclusion then holds."""
    where = {name: a for name, a in audits.items() if applies(a)}
    if not where:
        return Finding(check, "does not apply", None, f"In no instance {premise}.")
    broken = [name for name, a in where.items() if not holds(a)]
    kept, names = len(where) - len(broken), sentences.join_names(broken)
    text = f"In {len(where):,} of {_instances(len(audits))} {premise}; {conclusion} "
    if broken:
        text += f"in {kept:,} of them, not in {names}." if kept else f"in none of them ({names})."
    else:
        text += "in all of them." if kept > 1 else "there."
    return Finding(check, "broken" if broken else "kept", None, text)


def _ties_summary(audits: "Mapping[Hashable, Audit]") -> Finding:
    broken = [name for name, a in audits.items() if a.ties]
    text = f"No two items tie in {len(audits) - len(broken):,} of {_instances(len(audits))}"
    text += f"; some do in {sentences.join_names(broken)}." if broken else "."
    return Finding("universality", "broken" if broken else "kept", None, text)


def _instances(n: int) -> str:
    return sentences.count_of(n, "instance", "instances")
