"""A bounded search over small profiles for a rule of any kind, and the verdict on every axiom."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from placet.axioms.checks import AXIOMS, ORDERED, RELAXED, Witness
from placet.axioms.outcome import Observer
from placet.axioms.positional import (
    Margins,
    condorcet_profile,
    iia_profiles,
    lifted_profiles,
    majority_profile,
    pareto_profile,
    positional_of,
    strong_condorcet_profile,
    tie_profile,
)
from placet.axioms.profiles import Domain, Profile
from placet.data.errors import one_of


@dataclass(frozen=True, eq=False)
class Verdict:
    """What is known of a rule and an axiom.

    ``kept`` is True or False where it is settled, and None where a search found nothing.  ``margin`` is the least
    epsilon beyond which the relaxed axiom holds: exact where ``proved``, else the largest that a witness has shown.
    ``searched`` profiles were looked at, ``complete`` says that these are all there are of their kind.
    """

    axiom: str
    kept: bool | None
    proved: bool
    margin: float | None = None
    witness: Witness | None = None
    searched: int = 0
    complete: bool = False
    domain: Domain | None = None


def search(
    axiom: str,
    rule: Any,
    domain: Domain | None = None,
    *,
    epsilon: float = 0.0,
    limit: int = 20_000,
    random_state: int = 0,
) -> Verdict:
    """Look for a witness among the profiles of a domain, fewest voters first.

    Numbers of voters are enumerated while their profiles are no more than what is left of ``limit``; over the numbers
    that follow, what is left is spread evenly and drawn at random.  Non-dictatorship tells voters apart.

    >>> search("condorcet", "plurality", Domain(3, 5)).witness
    Witness(condorcet broken by plurality for ('A', 'B'), ballots: 3)
    >>> search("condorcet", "copeland", Domain(3, 5))
    Verdict(axiom='condorcet', kept=None, proved=False, margin=None, witness=None, searched=461, complete=True, ...)
    """
    one_of(axiom, AXIOMS, "axiom")
    if epsilon and axiom not in RELAXED:
        raise ValueError(f"axiom {axiom!r} has no relaxed form; epsilon is for {list(RELAXED)}")
    chosen = domain or Domain()
    if axiom in ORDERED:
        chosen = Domain(chosen.n_items, chosen.voters, chosen.ties, chosen.weights, ordered=True)
    stream = _Counted(_bounded(chosen, limit, np.random.default_rng(random_state)))
    extra = {"epsilon": epsilon} if axiom in RELAXED else {}
    witness = AXIOMS[axiom](rule, stream, **extra)
    complete = witness is None and stream.count == chosen.size()
    margin = None if witness is None else witness.margin
    return Verdict(axiom, False if witness else None, False, margin, witness, stream.count, complete, chosen)


class _Counted:
    """An iterable that counts what was taken."""

    def __init__(self, stream: Iterable[Profile]):
        self._stream = stream
        self.count = 0

    def __iter__(self) -> Iterator[Profile]:
        for profile in self._stream:
            self.count += 1
            yield profile


def _bounded(domain: Domain, limit: int, rng: np.random.Generator) -> Iterator[Profile]:
    left, voters = limit, 1
    while voters <= domain.voters and domain.count(voters) <= left:
        yield from domain.of(voters)
        left -= domain.count(voters)
        voters += 1
    cast = domain.cast()
    for v in range(voters, domain.voters + 1):
        share = left // (domain.voters + 1 - v)
        left -= share
        for _ in range(share):
            yield domain.profile(tuple(cast[k] for k in rng.integers(len(cast), size=v)))


def verdicts(rule: Any, n_items: int, *, voters: int = 4, ties: bool = False, limit: int = 2000) -> list[Verdict]:
    """Every axiom for a rule over ``n_items`` items: by theorem where the rule is positional, else by search.

    The theorems are about strict ballots.  A rule that is not positional is asked about at most ``limit`` profiles of
    up to ``voters`` voters for each axiom.
    """
    found, margins = positional_of(rule, n_items)
    if margins is not None:
        return _by_theorem(Observer(found), margins)
    see = Observer(found)
    domain = Domain(n_items, voters, ties)
    return [_worst(axiom, see, domain, limit) for axiom in AXIOMS]


def _worst(axiom: str, see: Observer, domain: Domain, limit: int) -> Verdict:
    """The verdict with the largest margin that the domain holds: epsilon is raised until nothing is found."""
    verdict = search(axiom, see, domain, limit=limit)
    found = verdict
    while axiom in RELAXED and found.margin is not None:
        verdict = found
        found = search(axiom, see, domain, epsilon=found.margin + 1e-9, limit=limit)
    return verdict


def _by_theorem(see: Observer, m: Margins) -> list[Verdict]:
    """Propositions 13-21; each broken axiom with the profile that attains its margin."""
    large = m.n > 2
    margin = {
        "iia": m.iia_margin,
        "majority": m.majority_margin,
        "condorcet": m.condorcet_margin,
        "strong-condorcet": m.strong_condorcet_margin,
    }
    kept = {
        "non-dictatorship": True,
        "universality": False,
        "transitivity": True,
        "pareto": m.pareto,
        "iia": not large or m.constant,
        "anonymity": True,
        "monotonicity": m.monotone,
        "consistency": True,
        "neutrality": True,
    } | {axiom: margin[axiom] <= 1e-9 for axiom in ("majority", "condorcet", "strong-condorcet")}
    return [
        Verdict(axiom, kept[axiom], True, margin.get(axiom), None if kept[axiom] else _broken(axiom, see, m))
        for axiom in AXIOMS
    ]


def _broken(axiom: str, see: Observer, m: Margins) -> Witness:
    """The witness that the theorem's proof constructs."""
    build: dict[str, Any] = {
        "universality": lambda: tie_profile(m.n),
        "pareto": lambda: pareto_profile(m),
        "iia": lambda: iia_profiles(m),
        "monotonicity": lambda: lifted_profiles(m)[0],
        "majority": lambda: majority_profile(m),
        "condorcet": lambda: condorcet_profile(m),
        "strong-condorcet": lambda: strong_condorcet_profile(m),
    }
    witness = AXIOMS[axiom](see, build[axiom]())
    if witness is None:
        raise RuntimeError(f"{see.rule.name}: the construction for {axiom} with points {m.h} is no witness")
    return witness
