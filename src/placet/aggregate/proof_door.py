"""How little would change a result, and whether it is what it says: the doors to `placet.aggregate.proof`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from placet.aggregate.consensus_door import consensus
from placet.aggregate.result.result import Consensus
from placet.data import Comparisons as Comparisons, DataError

if TYPE_CHECKING:
    from placet.aggregate.proof.fragility_result import Fragility


def fragility(
    data: Any,
    method: str | None = None,
    *,
    goal: str = "best",
    k: int = 1,
    by: str = "vote",
    level: float = 0.95,
    how: str = "removed",
    bootstrap: int = 0,
    random_state: int = 0,
    **params: Any,
) -> "Fragility":
    """The fewest votes (ballots, voters, ...) found whose removal changes what the result claims, and which they are.

    Every removal was confirmed by running the method again without it.  Its size is an upper bound of the fewest that
    suffice, unless ``exact`` says that no smaller one does: for rules of points, Copeland's rule and instant runoff,
    and wherever all smaller removals could be tried.

    Parameters
    ----------
    data, method, bootstrap, random_state, **params : as for `placet.consensus`
    goal : "best" (which items come first), "place" (which have rank ``k``), "top" (which are the best ``k``) or
        "tiers" (every border between tiers)
    k : with goal "top", how many; with "place", which
    by : what is removed: single votes or ballots ("vote"), all of a "voter" (or "judge", the same), a "day", a "task"
        of a score table; of several sources, a "judge" is a source
    level : confidence level of the tiers
    how : "removed", or "changed": ballots become other ballots, the margin of victory as elections call it; exact, for
        rules of points (Borda, plurality), Copeland's rule and instant runoff

    Returns
    -------
    Fragility
        The votes whose removal changes the result, and how many they are.

    Examples
    --------
    >>> votes = Comparisons.from_battles("aaaaaaab", "bbbbbccc", ["a", "a", "a", "b", "b", "a", "a", "a"])
    >>> found = fragility(votes)
    >>> found
    Fragility(a is first: 2 of 8 votes decide it)
    >>> found.removed_frame().rows()
    [('a is first', 'a', 'b', 'win', 2, 3)]
    """
    result = consensus(data, method, bootstrap=bootstrap, random_state=random_state, **params)
    if not isinstance(result, Consensus):
        raise DataError(f"the data hold {len(result)} problems; ask about one of them at a time")
    found: Fragility = result.fragility(goal, k=k, by=by, level=level, how=how)
    return found


def verify(certificate: Mapping[str, Any], data: Any) -> list[str]:
    """What differs between a certificate (`Consensus.certificate`) and the answer computed anew; empty if nothing does.

    A ``DataError`` if the data are not those of the certificate, or if it is none.

    Returns
    -------
    list of str
        A sentence for each difference.

    >>> votes = Comparisons.from_battles("aab", "bcc", ["a", "a", "b"])
    >>> paper = consensus(votes, "borda").certificate()
    >>> verify(paper, votes)
    []
    >>> paper["answer"]["columns"]["score"][0] += 1
    >>> verify(paper, votes)[1]
    "score of 'a': 3.0 in the certificate, 2.0 computed, a difference of 1"
    """
    from placet.aggregate.proof.verification import differences_of

    return differences_of(certificate, data, consensus)
