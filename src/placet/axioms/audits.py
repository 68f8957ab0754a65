"""Audits: which axioms a consensus satisfies on its ballots, and how narrowly; and the worst a method can do."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, overload

import numpy as np

from placet.aggregate import Consensus, ConsensusSet, consensus
from placet.aggregate.instances import split
from placet.aggregate.method_table import record_of
from placet.axioms.checks import CLOSE, least_shares
from placet.axioms.evidence import beyond_chance
from placet.axioms.findings import (
    Duel,
    Finding,
    ballot_findings,
    findings_frame,
    instance_findings,
    verdict_finding,
)
from placet.axioms.outcome import Above, ExaminedMethod, as_method, relation, tiers
from placet.axioms.profiles import PairWeights, first_shares, pair_weights
from placet.axioms.rule_agreement import RuleAgreement, compare_methods
from placet.axioms.sensitivity import Sensitivity, sensitivity
from placet.axioms.verdict import Verdict, theorems, verdicts
from placet.data import Comparisons, Rankings
from placet.data.errors import one_of
from placet.output.markup import render

MOST_THEORY = 200
"""Maximum number of items for which an audit works out the theory of a positional rule (n^2 tables of places)."""


class _Findings:
    """Base class of all audits: findings, as sentences and as a table."""

    findings: tuple[Finding, ...]

    def sentences(self) -> list[str]:
        """The findings as plain sentences, in order."""
        return [finding.text for finding in self.findings]

    def to_frame(self) -> Any:
        """A Polars frame of the findings: check, verdict, margin, text."""
        return findings_frame(self.findings)

    def _repr_html_(self) -> str:
        return render("axioms/templates/notebook_audit.html", findings=self.findings)


@dataclass(frozen=True, eq=False, repr=False)
class Audit(_Findings):
    """Which axioms a consensus satisfies and violates on the ballots it was computed from.

    ``from_pairs`` is True if the data are pairwise votes, ``partial`` if some ballots omit items.
    ``condorcet_winner`` beats every other item head to head; ``majority_winner`` is first on more than half of the
    weight (None if there is no such item or the data are pairs).  ``pareto`` lists the pairs (x, y) with x above y on
    all ballots, ``pareto_broken`` those that the consensus does not follow.  ``contradicted`` lists all majorities
    that it does not follow, widest first, and ``epsilon`` is the widest margin among them: every majority beyond it is
    followed.  The duels in ``near`` are followed, but won by a margin of at most the audit's ``near``.
    ``condorcet_beyond`` tells whether all wins of the ``condorcet_winner`` are beyond chance.  ``theory`` holds the
    verdicts on the method itself (empty if nothing is proved about it).

    >>> import placet
    >>> votes = placet.Rankings.from_orders([["A", "B", "C"]] * 3 + [["B", "C", "A"]] * 2)
    >>> found = placet.audit(votes, "borda")
    >>> found.condorcet_winner, found.consensus.ranking
    ('A', ['B', 'A', 'C'])
    >>> round(found.epsilon, 3)  # every majority of a larger margin is followed
    0.1
    """

    method: str
    consensus: Consensus
    from_pairs: bool
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
    agreement: RuleAgreement
    theory: tuple[Verdict, ...]
    condorcet_beyond: bool = False

    @property
    def epsilon(self) -> float:
        return max((duel.margin for duel in self.contradicted), default=0.0)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:  # type: ignore[override]
        """All findings of the audit, in order."""
        return tuple(ballot_findings(self))

    def pairs_frame(self) -> Any:
        """A Polars frame of the contradicted majorities: x, y, wins, losses, ties, share, margin, tied, beyond."""
        import polars as pl

        names = ("x", "y", "wins", "losses", "ties", "share", "margin", "tied", "beyond")
        rows = [[str(d.x), str(d.y), *(getattr(d, name) for name in names[2:])] for d in self.contradicted]
        kinds = (pl.String, pl.String, *[pl.Float64] * 5, pl.Boolean, pl.Boolean)
        return pl.DataFrame(rows, schema=dict(zip(names, kinds)), orient="row")

    def __repr__(self) -> str:
        return (
            f"Audit({self.method}: {len(self.contradicted)} of {self.majorities} majorities contradicted, "
            f"epsilon {self.epsilon:.4g}, {len(self.pareto_broken)} of {len(self.pareto)} unanimous pairs broken)"
        )


class AuditSet(_Findings, Mapping[Hashable, Audit]):
    """The audit of every instance, by name; ``findings`` summarizes them.

    >>> import placet
    >>> lists = placet.Rankings.from_orders([["a", "b"], ["x", "y"]], instance=["cats", "dogs"])
    >>> found = placet.audit(lists, "borda")
    >>> found["cats"].consensus.ranking, list(found)
    (['a', 'b'], ['cats', 'dogs'])
    """

    def __init__(self, method: str, audits: Mapping[Hashable, Audit]):
        self.method = method
        self._audits = dict(audits)

    def __getitem__(self, instance: Hashable) -> Audit:
        return self._audits[instance]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._audits)

    def __len__(self) -> int:
        return len(self._audits)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:  # type: ignore[override]
        """Findings that summarize all audits."""
        return tuple(instance_findings(self._audits))

    def instances_frame(self) -> Any:
        """A Polars frame with one row per instance: its winners and the figures of its audit."""
        import polars as pl

        text = lambda name: None if name is None else str(name)  # noqa: E731
        rows = [
            {
                "instance": str(name),
                "items": len(a.consensus.items),
                "first": " = ".join(str(x) for x in a.agreement.winners[0]),
                "condorcet_winner": text(a.condorcet_winner),
                "majority_winner": text(a.majority_winner),
                "majorities": a.majorities,
                "contradicted": len(a.contradicted),
                "epsilon": a.epsilon,
                "pareto": len(a.pareto),
                "pareto_broken": len(a.pareto_broken),
                "to_change": None if a.sensitivity is None else a.sensitivity.to_change,
            }
            for name, a in self._audits.items()
        ]
        schema = {"condorcet_winner": pl.String, "majority_winner": pl.String, "to_change": pl.Int64}
        return pl.DataFrame(rows, schema_overrides=schema)

    def __repr__(self) -> str:
        contradicted = sum(len(a.contradicted) for a in self.values())
        majorities = sum(a.majorities for a in self.values())
        return f"AuditSet({self.method}: {len(self)} instances, {contradicted} of {majorities} majorities contradicted)"


@dataclass(frozen=True, eq=False, repr=False)
class MethodAudit(_Findings):
    """Audit of a method without ballots: the verdict on every axiom for ``n_items`` items.

    >>> import placet
    >>> found = placet.audit(None, "borda", items=3)
    >>> [one.axiom for one in found.verdicts if one.kept]
    ['non-dictatorship', 'transitivity', 'pareto', 'anonymity', 'monotonicity', 'consistency', 'neutrality']
    """

    method: str
    n_items: int
    verdicts: tuple[Verdict, ...]

    @cached_property
    def findings(self) -> tuple[Finding, ...]:  # type: ignore[override]
        """One finding per axiom."""
        return tuple(map(verdict_finding, self.verdicts))

    @property
    def proved(self) -> bool:
        """Whether any verdict rests on a theorem, not on a search."""
        return any(v.proved for v in self.verdicts)

    def __repr__(self) -> str:
        broken = [v.axiom for v in self.verdicts if v.kept is False]
        return f"MethodAudit({self.method}, {self.n_items} items: breaks {', '.join(broken) or 'nothing'})"


class Options(NamedTuple):
    """Options of an audit of ballots; see `audit`."""

    near: float
    rivals: int
    compare: Sequence[Any] | None


@overload
def audit(data: None, method: Any = ..., *, items: int, **options: Any) -> MethodAudit: ...
@overload
def audit(data: Rankings | Comparisons, method: Any = ..., **options: Any) -> Audit | AuditSet: ...
def audit(
    data: Rankings | Comparisons | None,
    method: Any = "borda",
    *,
    items: int | None = None,
    instance: Hashable | None = None,
    near: float = 0.02,
    rivals: int = 3,
    compare: Sequence[Any] | None = None,
    voters: int = 4,
    ties: bool = False,
    **params: Any,
) -> Audit | AuditSet | MethodAudit:
    """Audit a method on ballots, or on its own.

    Ties are reported, never broken.  Data with instances give an ``AuditSet``, one audit per instance.
    O(pairs on ballots + n^2) plus the runs of the methods.

    Parameters
    ----------
    data : ballots or pairs, or None for the method alone (a ``MethodAudit`` over ``items`` items).
    method : a name in ``RULES`` or ``MODELS`` (``params`` are its parameters), a function from ballots to scores, a
        model, or the ``Consensus`` (``ConsensusSet``) computed from these ballots.
    items : the number of items, if there are no data.
    instance : the only instance to audit, if the data have instances.
    near : the margin up to which a majority counts as narrow.
    rivals : how many of the runners-up to try in the search for the fewest ballots that change the winner
        (0: report the number only if it is exact without a search).
    compare : the methods to compare with; () for none.
    voters : without data, the maximum number of voters in a search.
    ties : without data, whether ballots in a search may tie items.

    Returns
    -------
    Audit, AuditSet or MethodAudit
        Which axioms hold, which do not, and on which ballots.

    >>> votes = Rankings.from_orders([["A", "B", "C"]] * 3 + [["B", "C", "A"]] * 2)
    >>> found = audit(votes, "borda")
    >>> found
    Audit(borda: 1 of 3 majorities contradicted, epsilon 0.1, 0 of 1 unanimous pairs broken)
    >>> found.contradicted[0].sentence()
    'Three of five voters put A above B, yet B ends above A.'
    >>> audit(None, "plurality", items=5)
    MethodAudit(plurality, 5 items: breaks universality, pareto, iia, condorcet, strong-condorcet)
    """
    if data is None:
        if items is None or items < 2:
            raise ValueError(f"without data, items must be the number of items, 2 or more, not {items}")
        chosen = as_method(method, **params)
        return MethodAudit(chosen.name, items, tuple(verdicts(chosen, items, voters=voters, ties=ties)))
    if not isinstance(data, Rankings | Comparisons):
        raise TypeError(f"data must be Rankings or Comparisons, not {type(data).__name__}")
    if items is not None:
        raise ValueError(f"items={items} is for a method without data; these data have {data.n_items} items")
    options = Options(near, rivals, compare)
    if isinstance(data, Rankings) and data.instances is not None:
        return _audit_instances(data, method, instance, options, params)
    if instance is not None:
        raise ValueError(f"instance {instance!r} is unknown; these data have no instances")
    return _audit_ballots(data, *_run(data, method, params), options)


def _audit_instances(
    data: Rankings, method: Any, instance: Hashable | None, options: Options, params: dict[str, Any]
) -> "Audit | AuditSet":
    """Audit each instance over the items on its ballots; models that learn about agents are fitted to all instances."""
    assert data.instances is not None  # the caller has checked
    if isinstance(method, Consensus):
        raise ValueError("one consensus cannot be audited on many instances; give the name of its method")
    if instance is not None:
        one_of(instance, data.instances, "instance")
    if isinstance(method, str) and record_of(method).shares_agents:
        method = consensus(data, method, **params)
    whole = method if isinstance(method, ConsensusSet) else None
    audits: dict[Hashable, Audit] = {}
    for name, ballots in split(data):
        if (instance is None or name == instance) and len(ballots.item):
            own = ballots if whole is None else ballots.restricted(whole[name].items)
            audits[name] = _audit_ballots(own, *_run(own, whole[name] if whole else method, params), options)
    if instance is not None:
        return audits[instance]
    return AuditSet(whole.method if whole else as_method(method, **params).name, audits)


def _run(data: Rankings | Comparisons, method: Any, params: dict[str, Any]) -> tuple[ExaminedMethod, Consensus]:
    """Return the method and its consensus on the data."""
    if isinstance(method, Consensus):
        if tuple(method.items) != tuple(data.items):
            raise ValueError("the consensus and the ballots differ in their items; give the ballots that it came from")
        return as_method(method, **params), method
    chosen = as_method(method, **params)
    fitted = getattr(method, "consensus_", None)
    answer = fitted if isinstance(fitted, Consensus) and tuple(fitted.items) == tuple(data.items) else chosen.run(data)
    if isinstance(answer, Consensus):
        return chosen, answer
    if np.ndim(answer) != 1:
        raise ValueError(f"{chosen.name!r} gave a table of pairs, not scores; only AXIOMS can examine such a method")
    return chosen, Consensus(data.items, answer, method=chosen.name)


def _audit_ballots(
    data: Rankings | Comparisons,
    method: ExaminedMethod,
    result: Consensus,
    options: Options,
) -> Audit:
    above = relation(result, data.n_items)
    pairs = pair_weights(data)
    share = pairs.share
    with np.errstate(invalid="ignore"):
        ahead = share > 0.5 + CLOSE
        unanimous = share >= 1 - CLOSE
        close = ahead & (share <= 0.5 + options.near + CLOSE) & above
    first = first_shares(data) if isinstance(data, Rankings) else None
    total = float(data.weight.sum()) if isinstance(data, Rankings) else None
    broken = np.argwhere(ahead & ~above)
    order = np.argsort(-share[broken[:, 0], broken[:, 1]], kind="stable")
    name_pairs = lambda mask: tuple((data.items[x], data.items[y]) for x, y in np.argwhere(mask))  # noqa: E731
    least = least_shares(share)
    sure = beyond_chance(pairs)
    winner = _winner(data.items, least)
    duel = lambda x, y: _duel(data.items, pairs, above, total, sure, x, y)  # noqa: E731
    return Audit(
        method=method.name,
        consensus=result,
        from_pairs=total is None,
        partial=total is not None and _skips_items(pairs, total),
        ties=tuple(tuple(data.items[k] for k in tier) for tier in tiers(above) if len(tier) > 1),
        condorcet_winner=winner,
        majority_winner=None if first is None else _winner(data.items, first),
        pareto=name_pairs(unanimous),
        pareto_broken=name_pairs(unanimous & ~above),
        majorities=int(ahead.sum()),
        contradicted=tuple(duel(*broken[k]) for k in order),
        near=tuple(duel(x, y) for x, y in np.argwhere(close)),
        near_winners=_near_winners(data.items, first, least, share, options.near),
        sensitivity=sensitivity(data, method, above, options.rivals) if isinstance(data, Rankings) else None,
        agreement=compare_methods(data, options.compare, first=(method.name, above)),
        theory=tuple(theorems(method, data.n_items)) if _has_theory(method, data) else (),
        condorcet_beyond=winner is not None and int(sure[data.items.index(winner)].sum()) == data.n_items - 1,
    )


def _has_theory(method: ExaminedMethod, data: Rankings | Comparisons) -> bool:
    return method.h is not None and isinstance(data, Rankings) and 2 <= data.n_items <= MOST_THEORY


def _skips_items(pairs: PairWeights, total: float) -> bool:
    """Whether some pair is not on every ballot."""
    others = ~np.eye(len(pairs.wins), dtype=bool)
    return bool((pairs.compared[others] < total * (1 - 1e-9)).any())


def _winner(items: Sequence[Hashable], share: Any) -> Hashable | None:
    won = np.flatnonzero(share > 0.5 + CLOSE)
    return items[won[0]] if len(won) == 1 else None


def _duel(
    items: Sequence[Hashable], pairs: PairWeights, above: Above, total: float | None, sure: Any, x: int, y: int
) -> Duel:
    wins, losses, ties = (float(v) for v in (pairs.wins[x, y], pairs.wins[y, x], pairs.ties[x, y]))
    silent = 0.0 if total is None else max(total - float(pairs.compared[x, y]), 0.0)
    tied = not (above[x, y] or above[y, x])
    silent = silent if silent > 1e-9 * (total or 1.0) else 0.0
    noun = "vote" if total is None else "voter"
    return Duel(items[x], items[y], wins, losses, ties, tied, silent, noun, bool(sure[x, y]))


def _near_winners(items: Sequence[Hashable], first: Any, least: Any, share: Any, near: float) -> tuple[Finding, ...]:
    """Findings on items that just miss being the Condorcet or the majority winner, if there is no such winner."""
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
