"""Audits and worst cases against their budgets: 10,000 ballots over 50 items in 2 s, a linear program of 5 items in 5 s, of 6 in 60 s.

Peers have no such audit; pref_voting's search for a Condorcet winner and Pareto pairs on the same ballots serves as a yardstick for the
part that both do.  ``--quick`` uses 500 ballots over 10 items, and programs of 5 items.
"""

import warnings

import numpy as np

from benchmarks.harness import compare, main
from placet.aggregate.rules.positional import positional_vector
from placet.axioms import audit, worst_case
from placet.data import Rankings


def draw_ballots(n_ballots: int, n_items: int) -> tuple[Rankings, np.ndarray]:
    """Draw noisy orders around a common order."""
    rng = np.random.default_rng(0)
    order = np.argsort(3 * rng.normal(size=(n_ballots, n_items)) + np.linspace(0, 1, n_items), axis=1)
    return Rankings.from_ranks(np.argsort(order, axis=1)), order


def peer(order: np.ndarray):
    """The Condorcet winner, Borda winner and unanimous pairs, computed by pref_voting."""
    from pref_voting.profiles import Profile
    from pref_voting.scoring_methods import borda

    profile = Profile(order.tolist())
    n = order.shape[1]
    pareto = [(x, y) for x in range(n) for y in range(n) if x != y and profile.support(x, y) == profile.num_voters]
    return profile.condorcet_winner(), borda(profile), pareto


def of_ballots(quick: bool) -> None:
    n_ballots, n_items = (500, 10) if quick else (10_000, 50)
    votes, order = draw_ballots(n_ballots, n_items)
    runs = {"placet audit": lambda: audit(votes, "borda")}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = peer(order)
        found = audit(votes, "borda")
        assert theirs[0] == found.condorcet_winner
        assert [found.consensus.items[k] for k in np.flatnonzero(found.consensus.ranks == 1)] == theirs[1]
        assert sorted(theirs[2]) == sorted(found.pareto)
        runs["pref_voting, three of its checks"] = lambda: peer(order)
    except ImportError:
        print("pref_voting is not installed; ours alone")
    compare(f"audit borda, {n_ballots:,} ballots, {n_items} items", runs, repeat=3)


def worst_cases(quick: bool) -> None:
    for n in (5,) if quick else (5, 6):
        h = positional_vector("log", n)
        contestants = {
            axiom: lambda axiom=axiom, h=h: worst_case(axiom, h) for axiom in ("condorcet", "iia", "majority")
        }
        compare(f"worst case by linear program, {n} items", contestants, repeat=3)


PARTS = {"audit": of_ballots, "worst-case": worst_cases}


if __name__ == "__main__":
    main(__doc__, PARTS)
