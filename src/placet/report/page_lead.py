"""The first sentence of the page: who leads, from how much data, and what the data leave open."""

from collections.abc import Sequence

from placet.aggregate import Consensus
from placet.aggregate.result.separation import MOST_PAIRED
from placet.data.arrays import Ints
from placet.output.numbers import percent
from placet.report.figures import Lead, Sentence, listed

MOST_NAMED, MOST_OTHERS = 5, 3


def lead_of(c: Consensus, evidence: str, level: float) -> Lead:
    """The items of the first tier; if there are several, that the data do not tell which is best."""
    n_items, whose = len(c.items), _for_whom(c)
    items = _join(f"{n_items:,} item{'' if n_items == 1 else 's'}", whose)
    if c.stderr is None or not 2 <= n_items <= MOST_PAIRED:
        best, tied = first_of(c)
        first = f" {'tie for the first place' if tied else 'comes first'} among "
        return Lead(best, _join(first, items, f", from {evidence}."))
    leaders = c.order[c.tier_numbers(level)[c.order] == 1]
    others = [k for k in c.order.tolist() if c.rank_interval(level)[0][k] == 1 and k not in set(leaders.tolist())]
    more = _could_be_first(c, others)
    if len(leaders) == n_items:
        return Lead(
            _names(c, leaders), _join(f": {evidence} {_do(evidence)} not tell which of them is best", whose, ".")
        )
    if len(leaders) > 1:
        rest = f"; {evidence} {_do(evidence)} not tell which of them is best."
        return Lead(_names(c, leaders), _join(" lead among ", items, rest, more))
    sure = ""
    if not others:
        sure = f" With probability {percent(c.top_k_probability(1)[leaders[0]], sampled=True)} it is truly first."
    return Lead(_names(c, leaders), _join(" comes first among ", items, f", from {evidence}.{sure}", more))


def _for_whom(c: Consensus) -> Sentence:
    """By whose opinion the items are ranked, if it is that of one source."""
    return ("",) if c.sources is None or c.sources.target is None else (" for ", str(c.sources.target), "")


def _join(first: str, then: Sentence, *others: Sentence | str) -> Sentence:
    """One sentence, in which texts and names take turns as in its parts."""
    joined = [first]
    for part in (then, *others):
        text, *rest = (part,) if isinstance(part, str) else part
        joined[-1] += text
        joined += rest
    return tuple(joined)


def _do(evidence: str) -> str:
    return "does" if evidence.startswith("1 ") else "do"


def _could_be_first(c: Consensus, others: Sequence[int]) -> Sentence:
    """Items below the first tier that could be first nevertheless, since little is known of them."""
    if not others:
        return ("",)
    if len(others) > MOST_OTHERS:
        return (f" {len(others):,} more could be first, too.",)
    names = _names(c, others)
    return (f" With what is known, {names[0]}", *names[1:-1], f"{names[-1]} could be first, too.")


def first_of(c: Consensus) -> tuple[Sentence, bool]:
    """The item that comes first, or those tied for first place, and whether there is a tie."""
    first = c.order[c.ranks[c.order] == 1] if len(c.items) else []
    return _names(c, first), len(first) > 1


def _names(c: Consensus, chosen: Sequence[int] | Ints) -> Sentence:
    """The names of items, at most five of them."""
    if not len(chosen):
        return ("nothing",)
    return listed([c.items[k] for k in chosen[:MOST_NAMED]], more=max(len(chosen) - MOST_NAMED, 0))
