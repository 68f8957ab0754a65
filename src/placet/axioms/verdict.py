"""Whether a method satisfies an axiom: by theorem for positional rules, else by a bounded search of small profiles."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from placet.axioms.checks import ORDERED, RELAXED
from placet.axioms.election_checks import AXIOMS, OF_ELECTIONS
from placet.axioms.expected_loss import DISTANCES, MOST_ITEMS, loss_worst_case
from placet.axioms.outcome import CachedMethod
from placet.axioms.positional import (
    Margins,
    condorcet_profile,
    iia_profiles,
    lifted_profiles,
    majority_profile,
    method_and_margins,
    pareto_profile,
    strong_condorcet_profile,
    tie_profile,
)
from placet.axioms.profiles import Domain, Profile
from placet.axioms.witness import Witness
from placet.data.errors import one_of

MOST_SEARCHED = 4
"""Maximum number of items for which positional rules are searched if no theorem applies."""


@dataclass(frozen=True, eq=False)
class Verdict:
    """What is known about a method and an axiom.

    ``kept`` is True or False if it is settled, and None if a search found nothing.  ``margin`` is the least epsilon
    beyond which the relaxed axiom holds: exact if ``proved``, else the largest that a witness has shown.  ``searched``
    is the number of profiles examined, and ``complete`` tells whether they cover the whole domain.

    >>> import placet
    >>> found = placet.axioms.search("condorcet", "plurality", placet.axioms.Domain(3, 5))
    >>> found.kept, found.witness
    (False, Witness(condorcet broken by plurality for ('A', 'B'), ballots: 3))
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
    method: Any,
    domain: Domain | None = None,
    *,
    epsilon: float = 0.0,
    limit: int = 20_000,
    random_state: int = 0,
) -> Verdict:
    """Look for a witness among the profiles of a domain, fewest voters first.

    All profiles of 1, 2, ... voters are examined as far as ``limit`` allows; the rest of the limit is spread evenly
    over the larger numbers of voters, whose profiles are drawn at random.  Non-dictatorship distinguishes voters.

    Returns
    -------
    Verdict
        Whether the axiom is kept, with a witness if it is broken.

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
    stream = _Counter(_limited_profiles(chosen, limit, np.random.default_rng(random_state)))
    extra = {"epsilon": epsilon} if axiom in RELAXED else {}
    witness = AXIOMS[axiom](stream, method, **extra)
    complete = witness is None and stream.count == chosen.size()
    margin = None if witness is None else witness.margin
    return Verdict(axiom, False if witness else None, False, margin, witness, stream.count, complete, chosen)


class _Counter:
    """An iterable that counts the profiles it has yielded."""

    def __init__(self, stream: Iterable[Profile]):
        self._stream = stream
        self.count = 0

    def __iter__(self) -> Iterator[Profile]:
        for profile in self._stream:
            self.count += 1
            yield profile


def _limited_profiles(domain: Domain, limit: int, rng: np.random.Generator) -> Iterator[Profile]:
    left, voters = limit, 1
    while voters <= domain.voters and domain.count(voters) <= left:
        yield from domain.with_voters(voters)
        left -= domain.count(voters)
        voters += 1
    ballots = domain.weighted_ballots()
    for v in range(voters, domain.voters + 1):
        share = left // (domain.voters + 1 - v)
        left -= share
        for _ in range(share):
            yield domain.profile(tuple(ballots[k] for k in rng.integers(len(ballots), size=v)))


def verdicts(method: Any, n_items: int, *, voters: int = 4, ties: bool = False, limit: int = 2000) -> list[Verdict]:
    """Verdicts on every axiom for a method over ``n_items`` items: by theorem if it is positional, else by search.

    The theorems concern strict ballots.  A search examines at most ``limit`` profiles of up to ``voters`` voters per
    axiom, and a tenth of that for the axioms of elections, which run the method on many variants of each profile.
    Positional rules are searched up to 4 items; beyond, only theorems apply.  For rules that minimize an expected loss
    (Kemeny, footrule, mode) the margins are exact up to 5 items, by linear programming over all strict profiles.

    Returns
    -------
    list of Verdict
        One per axiom.

    >>> found = verdicts("plurality", 3)
    >>> {one.axiom: one.kept for one in found if one.axiom in ("condorcet", "monotonicity")}
    {'monotonicity': True, 'condorcet': False}
    """
    found, margins = method_and_margins(method, n_items)
    rule = CachedMethod(found)
    proved = [] if margins is None else _theorem_verdicts(rule, margins)
    if margins is not None and n_items > MOST_SEARCHED:
        return proved
    domain, settled = Domain(n_items, voters, ties), {v.axiom for v in proved}
    share = lambda axiom: limit // 10 if axiom in OF_ELECTIONS else limit  # noqa: E731
    exact = {v.axiom: v for v in _exact_verdicts(rule, domain, limit)}
    searched = [
        exact.get(axiom) or _widest_violation(axiom, rule, domain, share(axiom))
        for axiom in AXIOMS
        if axiom not in settled
    ]
    return [*proved, *searched]


def theorems(method: Any, n_items: int) -> list[Verdict]:
    """The verdicts that theorems give on a positional rule; none for other methods."""
    found, margins = method_and_margins(method, n_items)
    return [] if margins is None else _theorem_verdicts(CachedMethod(found), margins)


def _exact_verdicts(rule: CachedMethod, domain: Domain, limit: int) -> list[Verdict]:
    """Majority, Condorcet and strong Condorcet for a rule that minimizes an expected loss, with their exact margins.

    The witness is the worst profile if the rule violates the axiom on it.  If several orders are optimal there and the
    rule picks one that complies, the witness comes from a search.
    """
    n_items = domain.n_items
    if rule.name not in DISTANCES or not 2 < n_items <= MOST_ITEMS:
        return []
    found = []
    for axiom in ("majority", "condorcet", "strong-condorcet"):
        worst = loss_worst_case(axiom, rule.name, n_items)
        margin = max(worst.margin, 0.0) if worst.profiles else 0.0
        kept = margin <= 1e-9
        witness = None if kept else AXIOMS[axiom](worst.profiles[0], rule)
        if witness is None and not kept:
            witness = search(axiom, rule, domain, limit=limit).witness
        found.append(Verdict(axiom, kept, True, margin, witness))
    return found


def _widest_violation(axiom: str, rule: CachedMethod, domain: Domain, limit: int) -> Verdict:
    """The verdict with the largest margin in the domain, found by raising epsilon until the search fails."""
    verdict = search(axiom, rule, domain, limit=limit)
    found = verdict
    while axiom in RELAXED and found.margin is not None:
        verdict = found
        found = search(axiom, rule, domain, epsilon=found.margin + 1e-9, limit=limit)
    return verdict


def _theorem_verdicts(rule: CachedMethod, m: Margins) -> list[Verdict]:
    """Verdicts by propositions 13-21; each violated axiom comes with the profile that attains its margin."""
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
        Verdict(axiom, kept[axiom], True, margin.get(axiom), None if kept[axiom] else _theorem_witness(axiom, rule, m))
        for axiom in AXIOMS
        if axiom in kept
    ]


def _theorem_witness(axiom: str, rule: CachedMethod, m: Margins) -> Witness:
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
    witness = AXIOMS[axiom](build[axiom](), rule)
    if witness is None:
        raise RuntimeError(f"{rule.name}: the construction for {axiom} with points {m.h} is not a witness")
    return witness
