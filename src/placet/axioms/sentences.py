"""Findings as plain sentences, for readers who do not know the theory."""

from collections.abc import Hashable, Sequence

from placet.aggregate import METHODS
from placet.axioms.outcome import Above, place_range, tiers
from placet.axioms.profiles import Profile, pair_weights
from placet.axioms.rule_agreement import Contested, RuleAgreement
from placet.axioms.sensitivity import Sensitivity
from placet.axioms.witness import Witness

SMALL = "no one two three four five six seven eight nine ten".split()
MEANING = {
    "non-dictatorship": "no single voter always gets their way",
    "universality": "there is always one full ranking, without ties",
    "transitivity": "if A is above B and B above C, then A is above C",
    "pareto": "if everyone prefers one item to another, it ranks higher",
    "iia": "whether A is above B depends only on how voters rank A against B",
    "anonymity": "it does not matter who cast which ballot",
    "monotonicity": "moving up on a ballot never hurts",
    "consistency": "who wins in two groups of voters wins with both together",
    "majority": "an item put first by more than half of the voters wins",
    "condorcet": "an item that beats every other head to head wins",
    "strong-condorcet": "every majority between two items is followed",
    "neutrality": "it does not matter what the items are called",
    "clone-independence": "a near copy of an item neither helps nor harms",
    "participation": "voting never brings a worse winner than staying away",
    "reversal-symmetry": "the winner does not also win when all ballots are reversed",
    "smith": "the winner is in the smallest group that beats everybody else",
    "mutual-majority": "a group that more than half put above all others has the winner",
    "later-no-harm": "naming a further choice never harms an earlier one",
}
"""What each axiom requires of a rule."""


def ordinal(n: int) -> str:
    """A place as text, from 1.

    >>> [ordinal(n) for n in (1, 2, 3, 4, 11, 22)]
    ['1st', '2nd', '3rd', '4th', '11th', '22nd']
    """
    ending = "th" if 10 <= n % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n:,}{ending}"


def in_words(value: float) -> str:
    """A count spelled out up to ten, in digits beyond; fractions with two decimals."""
    if value != round(value):
        return f"{value:.2f}"
    return SMALL[round(value)] if 0 <= value <= 10 else f"{round(value):,}"


def voters_put(weight: float, total: float, noun: str = "voter", which: str = "") -> str:
    """ "three of five voters put", or a percentage if weights are not counts; ``which`` follows the noun."""
    if abs(total - round(total)) > 1e-9 or abs(weight - round(weight)) > 1e-9:
        return f"{weight / total:.1%} of the {noun}s{which} put"
    weight, total = round(weight), round(total)
    if weight == total:
        everyone = {1: f"the one {noun}{which} puts", 2: f"both {noun}s{which} put"}
        return everyone.get(total, f"all {in_words(total)} {noun}s{which} put")
    return f"{in_words(weight)} of {in_words(total)} {noun}s{which} {'puts' if weight == 1 else 'put'}"


def count_of(n: int, one: str, many: str) -> str:
    """A count with its noun: 1 pair, 2 pairs."""
    return f"{n:,} {one if n == 1 else many}"


def capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


def join_names(names: Sequence[Hashable], most: int = 5) -> str:
    """Names as "A, B and C"; beyond ``most`` names, the number of those omitted."""
    shown = [str(name) for name in names[:most]]
    if len(names) > most:
        return ", ".join(shown) + f" and {len(names) - most} more"
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1] if shown else "nothing"


def format_ranking(above: Above, items: Sequence[Hashable]) -> str:
    """A ranking as text: A > B = C."""
    return " > ".join(" = ".join(str(items[k]) for k in level) for level in tiers(above))


def format_profile(profile: Profile) -> str:
    """A profile as text: 2 x A > B > C; 1 x B = C > A.

    Returns
    -------
    str
        The ballots, separated by semicolons.

    >>> from placet.axioms.positional import rotations
    >>> format_profile(rotations(3))
    '1 x A > B > C; 1 x B > C > A; 1 x C > A > B'
    """
    pooled = profile.pool()
    texts = []
    for ballot, weight in zip(pooled.ballots, pooled.weight):
        levels = [
            [str(profile.items[k]) for k, t in enumerate(ballot) if t == level] for level in range(max(ballot) + 1)
        ]
        texts.append(f"{weight:.4g} x " + " > ".join(" = ".join(level) for level in levels))
    return "; ".join(texts)


def format_pair(above: Above, x: int, y: int, names: Sequence[Hashable]) -> str:
    """Clause that says which of x and y ends above the other."""
    if above[y, x]:
        return f"{names[y]} ends above {names[x]}"
    return f"{names[x]} ends above {names[y]}" if above[x, y] else f"{names[x]} and {names[y]} tie"


def explain(witness: Witness) -> str:
    """One sentence that says what a witness shows.

    Returns
    -------
    str
        The sentence.

    >>> from placet.axioms.checks import strong_condorcet
    >>> from placet.data import Rankings
    >>> votes = Rankings.from_orders([["A", "B", "C"]] * 3 + [["B", "C", "A"]] * 2)
    >>> explain(strong_condorcet(votes, "borda"))
    'Three of five voters put A above B, yet B ends above A.'
    """
    return capitalize(_EXPLANATIONS[witness.axiom](witness)) + "."


def _item_codes(w: Witness) -> list[int]:
    items = w.profiles[0].items
    return [items.index(name) for name in w.items]


def _outcome(w: Witness, which: int = 0) -> Above:
    above = w.outcomes[which]
    assert above is not None  # only universality has witnesses without an outcome
    return above


def _universality(w: Witness) -> str:
    if w.outcomes[0] is None:
        return f"on these {in_words(len(w.profiles[0].ballots))} ballots the rule has no answer: {w.reason}"
    return f"{w.items[0]} and {w.items[1]} tie, so there is no single ranking"


def _transitivity(w: Witness) -> str:
    x, y, z = w.items
    return f"{x} ends above {y} and {y} above {z}, yet {x} does not end above {z}"


def _pair(w: Witness) -> str:
    x, y = _item_codes(w)
    pairs = pair_weights(w.profiles[0])
    tied = f" and {in_words(pairs.ties[x, y])} tie them" if pairs.ties[x, y] else ""
    who = voters_put(float(pairs.wins[x, y]), float(pairs.compared[x, y]))
    return f"{who} {w.items[0]} above {w.items[1]}{tied}, yet {format_pair(_outcome(w), x, y, w.profiles[0].items)}"


def _condorcet(w: Witness) -> str:
    x, y = _item_codes(w)
    end = format_pair(_outcome(w), x, y, w.profiles[0].items)
    return f"at least {w.share:.1%} of the voters put {w.items[0]} above each other item in turn, yet {end}"


def _majority(w: Witness) -> str:
    x, y = _item_codes(w)
    total = w.profiles[0].total
    who = voters_put((w.share or 0.0) * total, total)
    return f"{who} {w.items[0]} first, yet {format_pair(_outcome(w), x, y, w.profiles[0].items)}"


def _iia(w: Witness) -> str:
    x, y = _item_codes(w)
    items = w.profiles[0].items
    both = f"in two elections the same share of voters, {w.share:.1%}, puts {w.items[0]} above {w.items[1]}"
    one, other = (format_pair(_outcome(w, k), x, y, items) for k in (0, 1))
    return f"{both}, yet {one} in the one and {other} in the other"


def _monotonicity(w: Witness) -> str:
    x = _item_codes(w)[0]
    before, after = (place_range(_outcome(w, k), x) for k in (0, 1))
    return f"{w.items[0]} moves up on one ballot and drops from {_place(*before)} to {_place(*after)}"


def _place(best: int, worst: int) -> str:
    """A place, or the places shared in a tie, as text; 0 is the first."""
    return ordinal(best + 1) if best == worst else f"a tie for {ordinal(best + 1)}"


def _consistency(w: Witness) -> str:
    parts = f"{in_words(len(w.profiles[0].ballots))} and {in_words(len(w.profiles[1].ballots))}"
    return f"{w.items[0]} wins with either group of voters ({parts}), yet not with both together"


def _neutrality(w: Witness) -> str:
    return f"{w.items[0]} and {w.items[1]} swap names on every ballot, and the outcome does not follow"


def _anonymity(w: Witness) -> str:
    items = w.profiles[0].items
    before, after = (format_ranking(_outcome(w, k), items) for k in (0, 1))
    return f"the same ballots in another order give {after} instead of {before}"


def _dictator(w: Witness) -> str:
    return f"voter {(w.voter or 0) + 1} gets their way on every profile that was tried"


def _clones(w: Witness) -> str:
    before, after = (ranking_of(w, k) for k in (0, 1))
    return f"{w.items[0]} gets a clone next to it on every ballot, and the outcome turns from {before} to {after}"


def ranking_of(w: Witness, which: int) -> str:
    """The outcome on one of the profiles as text: A > B = C."""
    return format_ranking(_outcome(w, which), w.profiles[which].items)


def _participation(w: Witness) -> str:
    x, y = w.items
    return f"{x} wins without a ballot that puts {x} above {y}; with that ballot {y} wins"


def _reversal(w: Witness) -> str:
    return f"{w.items[0]} wins, and wins again when every ballot is reversed"


def _smith(w: Witness) -> str:
    beat = "each beat" if len(w.items) > 2 else "beats"
    return f"{w.items[0]} wins, yet {join_names(w.items[1:])} {beat} every item outside their group head to head"


def _mutual_majority(w: Witness) -> str:
    total = w.profiles[0].total
    who = voters_put((w.share or 0.0) * total, total)
    return f"{who} {join_names(w.items[1:])} above all others, yet {w.items[0]} wins"


def _later(w: Witness) -> str:
    return f"a ballot that puts {w.items[0]} above names one more item below, and {w.items[0]} no longer wins alone"


_EXPLANATIONS = {
    "non-dictatorship": _dictator,
    "universality": _universality,
    "transitivity": _transitivity,
    "pareto": _pair,
    "iia": _iia,
    "anonymity": _anonymity,
    "monotonicity": _monotonicity,
    "consistency": _consistency,
    "majority": _majority,
    "condorcet": _condorcet,
    "strong-condorcet": _pair,
    "neutrality": _neutrality,
    "clone-independence": _clones,
    "participation": _participation,
    "reversal-symmetry": _reversal,
    "smith": _smith,
    "mutual-majority": _mutual_majority,
    "later-no-harm": _later,
}


def explain_sensitivity(s: Sensitivity) -> str:
    """Sentence on how many ballots decide the winner."""
    if s.winner is None:
        return "There is no sole winner, so one ballot may decide."
    if s.to_change is None:
        return f"No change of ballots was found that takes the first place from {s.winner}."
    ballots = "ballot" if s.to_change == 1 else "ballots"
    if not s.exact:
        found = f"Changing at most {in_words(s.to_change)} {ballots} would put {s.challenger} or another"
        return f"{found} above {s.winner} ({s.tried} changes of ballots were tried)."
    level = f"; {in_words(s.to_tie or 0)} would make them tie" if s.to_tie != s.to_change else ""
    return f"Changing {in_words(s.to_change)} {ballots} would put {s.challenger} above {s.winner}{level}."


def explain_agreement(a: RuleAgreement) -> str:
    """Sentence on whether the choice of rule matters."""
    many = in_words(len(a.methods))
    common = [name for name in a.winners[0] if all(name in winners for winners in a.winners)] if a.methods else []
    if not a.contested and not a.tied_by_some:
        return f"All {many} rules give the same ranking."
    tied = f" ({a.tied_by_some:,} more are tied by some rules only)" if a.tied_by_some else ""
    pairs = f"{len(a.contested):,} of {count_of(a.pairs, 'pair', 'pairs')}"
    if not common:
        return f"{pairs}, and the winner, depend on the choice of rule{tied}."
    depend = "depends" if len(a.contested) == 1 else "depend"
    alone = f"{join_names(common)} wins by all {many} rules, alone or with others"
    return f"{pairs} {depend} on the choice of rule{tied}; {alone}."


def explain_contested(c: Contested) -> str:
    """Sentence on which rules order a contested pair which way."""
    voices = (
        (c.above, f"put {c.x} above {c.y}", f"puts {c.x} above {c.y}"),
        (c.below, f"put {c.y} above {c.x}", f"puts {c.y} above {c.x}"),
        (c.tied, "tie them", "ties them"),
    )
    said = [
        f"{join_names([_title(name) for name in who], 20)} {one if len(who) == 1 else many}"
        for who, many, one in voices
        if who
    ]
    return capitalize("; ".join(said)) + "."


def _title(method: str) -> str:
    """What people call a method, without how it is computed."""
    return METHODS[method].title.partition(",")[0] if method in METHODS else method
