"""The audit of one consensus on the ballots that it came from: what it keeps, what it breaks, and how narrowly."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from placet.aggregate import Consensus
from placet.axioms.agreement import Agreement, agreement
from placet.axioms.checks import CLOSE, duels
from placet.axioms.findings import Duel, Finding, lines
from placet.axioms.outcome import Relation, Rule, relation, rule_of, tiers
from placet.axioms.profiles import Pairs, first_shares, pairs_of
from placet.axioms.search import Verdict, verdicts
from placet.axioms.sensitivity import Sensitivity, sensitivity
from placet.data import Comparisons, Rankings

MOST_THEORY = 200
"""Items up to which the theory of a positional rule is worked out in an audit (tables of n^2 places)."""


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What a consensus keeps and breaks on the ballots that it came from.

    ``of_pairs`` where the data are votes on pairs, ``partial`` where some ballots skip items.
    ``condorcet_winner`` beats every other item one against one, ``majority_winner`` is first on more than half of the
    weight (None where there is none, or the data are pairs); ``pareto`` pairs (x, y) have everybody's x above y,
    ``pareto_broken`` are those that the consensus does not follow; ``contradicted`` are all majorities that it does not
    follow, widest first, and ``epsilon`` is the widest margin: every majority beyond it is followed.  ``near`` duels
    are followed, but won by a margin of at most the audit's ``near``.  ``theory`` holds the verdicts on the rule as
    such (empty where nothing is proved about it).
    """

    rule: str
    consensus: Consensus
    of_pairs: bool
    partial: bool
    ties: tuple[tuple[Hashable, ...], ...]
    condorcet_winner: Hashable | None
    majority_winner: Hashable | None
    pareto: tuple[tuple[Hashable, Hashable], ...]
    pareto_broken: tuple[tuple[Hashable, Hashable], ...]
    majorities: int
    contradicted: tuple[Duel, ...]
    near: tuple[Duel, ...]
    near_winners: tuple[Finding, ...]
    sensitivity: Sensitivity | None
    agreement: Agreement
    theory: tuple[Verdict, ...]

    @property
    def epsilon(self) -> float:
        return max((duel.margin for duel in self.contradicted), default=0.0)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The audit line by line."""
        return tuple(lines(self))

    def sentences(self) -> list[str]:
        """The findings for a reader, in order."""
        return [finding.words for finding in self.findings]

    def to_frame(self) -> Any:
        """A Polars frame of the findings: check, verdict, margin, words."""
        import polars as pl

        names = ("check", "verdict", "margin", "words")
        schema = {name: pl.Float64 if name == "margin" else pl.String for name in names}
        return pl.DataFrame([[getattr(f, name) for name in names] for f in self.findings], schema=schema, orient="row")

    def pairs_frame(self) -> Any:
        """A Polars frame of the contradicted majorities: x, y, wins, losses, ties, share, margin, level."""
        import polars as pl

        names = ("x", "y", "wins", "losses", "ties", "share", "margin", "level")
        rows = [[str(d.x), str(d.y), *(getattr(d, name) for name in names[2:])] for d in self.contradicted]
        kinds = (pl.String, pl.String, *[pl.Float64] * 5, pl.Boolean)
        return pl.DataFrame(rows, schema=dict(zip(names, kinds)), orient="row")

    def __repr__(self) -> str:
        return (
            f"Audit({self.rule}: {len(self.contradicted)} of {self.majorities} majorities contradicted, "
            f"epsilon {self.epsilon:.4g}, {len(self.pareto_broken)} of {len(self.pareto)} unanimous pairs broken)"
        )


def audit(
    rule: Any,
    data: Rankings | Comparisons,
    *,
    near: float = 0.02,
    rivals: int = 3,
    compare: Sequence[Any] | None = None,
    **params: Any,
) -> Audit:
    """Audit a rule or model on ballots.

    ``rule`` is a name of ``RULES`` or ``MODELS`` (``params`` are its own), a function from ballots to scores, a model,
    or the ``Consensus`` that was reached on these very ballots.  ``near`` is the margin up to which a duel counts as a
    near miss; ``rivals`` is how many of the next best items are tried in the search for the fewest ballots that change
    the winner (0: only where the number is exact without a search); ``compare`` names the rules to compare with.
    Deterministic: ties are kept and shown, never broken.
    O(pairs on ballots + n^2) and the runs of the rules.

    >>> votes = Rankings.from_orders([["A", "B", "C"]] * 3 + [["B", "C", "A"]] * 2)
    >>> found = audit("borda", votes)
    >>> found
    Audit(borda: 1 of 3 majorities contradicted, epsilon 0.1, 0 of 1 unanimous pairs broken)
    >>> found.contradicted[0].words()
    'Three of five voters put A above B, yet B ends above A.'
    """
    if not isinstance(data, Rankings | Comparisons):
        raise TypeError(f"data must be Rankings or Comparisons, not {type(data).__name__}")
    chosen, result = _consensus(rule, data, params)
    above = relation(result, data.n_items)
    pairs = pairs_of(data)
    share = pairs.share
    with np.errstate(invalid="ignore"):
        ahead = share > 0.5 + CLOSE
        unanimous = share >= 1 - CLOSE
        close = (share >= 0.5 - CLOSE) & (share <= 0.5 + near + CLOSE) & above
    first = first_shares(data) if isinstance(data, Rankings) else None
    total = float(data.weight.sum()) if isinstance(data, Rankings) else None
    broken = np.argwhere(ahead & ~above)
    order = np.argsort(-share[broken[:, 0], broken[:, 1]], kind="stable")
    name_pairs = lambda mask: tuple((data.items[x], data.items[y]) for x, y in np.argwhere(mask))  # noqa: E731
    least = duels(share)
    return Audit(
        rule=chosen.name,
        consensus=result,
        of_pairs=total is None,
        partial=total is not None
        and bool((pairs.compared < total * (1 - 1e-9))[~np.eye(data.n_items, dtype=bool)].any()),
        ties=tuple(tuple(data.items[k] for k in level) for level in tiers(above) if len(level) > 1),
        condorcet_winner=_winner(data.items, least),
        majority_winner=None if first is None else _winner(data.items, first),
        pareto=name_pairs(unanimous),
        pareto_broken=name_pairs(unanimous & ~above),
        majorities=int(ahead.sum()),
        contradicted=tuple(_duel(data.items, pairs, above, total, *broken[k]) for k in order),
        near=tuple(_duel(data.items, pairs, above, total, x, y) for x, y in np.argwhere(close)),
        near_winners=_near_winners(data.items, first, least, share, near),
        sensitivity=sensitivity(chosen, data, above, rivals) if isinstance(data, Rankings) else None,
        agreement=agreement(data, compare, known=(chosen.name, above)),
        theory=tuple(verdicts(chosen, data.n_items)) if _has_theory(chosen, data) else (),
    )


def _consensus(rule: Any, data: Rankings | Comparisons, params: dict[str, Any]) -> tuple[Rule, Consensus]:
    """The rule, and its consensus on the data."""
    if isinstance(rule, Consensus):
        if tuple(rule.items) != tuple(data.items):
            raise ValueError("the consensus and the ballots differ in their items; give the ballots that it came from")
        return rule_of(rule, **params), rule
    chosen = rule_of(rule, **params)
    fitted = getattr(rule, "consensus_", None)
    answer = fitted if isinstance(fitted, Consensus) and tuple(fitted.items) == tuple(data.items) else chosen.run(data)
    if isinstance(answer, Consensus):
        return chosen, answer
    if isinstance(answer, dict):
        raise ValueError(f"{chosen.name!r} gave {len(answer)} rankings; audit one instance at a time (by_instance)")
    if np.ndim(answer) != 1:
        raise ValueError(f"{chosen.name!r} gave a table of pairs, not scores; only AXIOMS can look at such a rule")
    return chosen, Consensus(data.items, answer, method=chosen.name)


def _has_theory(rule: Rule, data: Rankings | Comparisons) -> bool:
    return rule.h is not None and isinstance(data, Rankings) and 2 <= data.n_items <= MOST_THEORY


def _partial(pairs: Pairs, total: float) -> bool:
    """Whether some pair is not on every ballot."""
    others = ~np.eye(len(pairs.wins), dtype=bool)
    return bool((pairs.compared[others] < total * (1 - 1e-9)).any())


def _winner(items: Sequence[Hashable], share: Any) -> Hashable | None:
    won = np.flatnonzero(share > 0.5 + CLOSE)
    return items[won[0]] if len(won) == 1 else None


def _duel(items: Sequence[Hashable], pairs: Pairs, above: Relation, total: float | None, x: int, y: int) -> Duel:
    wins, losses, ties = (float(v) for v in (pairs.wins[x, y], pairs.wins[y, x], pairs.ties[x, y]))
    silent = 0.0 if total is None else max(total - float(pairs.compared[x, y]), 0.0)
    level = not (above[x, y] or above[y, x])
    silent = silent if silent > 1e-9 * (total or 1.0) else 0.0
    return Duel(items[x], items[y], wins, losses, ties, level, silent, "vote" if total is None else "voter")


def _near_winners(items: Sequence[Hashable], first: Any, least: Any, share: Any, near: float) -> tuple[Finding, ...]:
    """Items that just miss being the Condorcet or the majority winner, where there is none."""
    found = []
    if len(items) > 1 and _winner(items, least) is None and least.max() >= 0.5 - near - CLOSE:
        x = int(np.argmax(least))
        y = int(np.nanargmin(np.where(np.arange(len(items)) == x, np.nan, share[x])))
        text = f"{items[x]} just misses beating every other item: {least[x]:.1%} against {items[y]} is not a majority."
        found.append(Finding("condorcet", "near miss", 0.5 - float(least[x]), text))
    if first is not None and len(items) > 1 and first.max() <= 0.5 + CLOSE and first.max() >= 0.5 - near - CLOSE:
        x = int(np.argmax(first))
        text = f"{items[x]} just misses a majority of first places: {first[x]:.1%}."
        found.append(Finding("majority", "near miss", 0.5 - float(first[x]), text))
    return tuple(found)
