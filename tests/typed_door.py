"""What type checkers know of the Python door: `make types` checks this file, and no test runs it.

The first function is the example of README.md (`tests/test_release.py` compares them).
"""

from typing import Any, assert_type

import placet


def readme() -> None:
    """README's first example."""
    ballots = placet.Rankings.from_orders(
        [["ant", ("bee", "cat")], ["bee", "ant", "cat"], ["ant", "cat"], ["cat", "ant", "bee"]], weight=[3, 2, 2, 1])  # fmt: skip
    result = placet.consensus(ballots)  # Plackett-Luce, exact for ties and absences
    result.ranking  # noqa: B018
    round(result.prob_above("ant", "bee"), 2)  # how sure
    placet.consensus(ballots, "borda").ranking  # noqa: B018  or by any rule: placet methods lists them
    assert_type(result, placet.Consensus)
    assert_type(result.stderr is None, bool)


def kinds(
    votes: placet.Comparisons, scores: placet.Scores, sources: placet.Sources, slices: dict[str, placet.Comparisons]
) -> None:
    """A kind of data gives one board; slices may give several."""
    assert_type(placet.consensus(votes), placet.Consensus)
    assert_type(placet.consensus(scores, "mean", bootstrap=100), placet.Consensus)
    assert_type(placet.consensus(sources), placet.Consensus)
    assert_type(placet.consensus(slices), placet.Consensus | placet.ConsensusSet)


def reading() -> None:
    """With a format the type is known; without one only the file knows."""
    assert_type(placet.read("votes.csv", "battles"), placet.Comparisons)
    assert_type(placet.read("ballots.txt", "ballots"), placet.Rankings)
    assert_type(placet.read("ratings.csv", "ratings"), placet.Rankings)
    assert_type(placet.read("table.csv", "scores"), placet.Scores)
    assert_type(placet.read("search.letor", "letor"), placet.Queries)
    assert_type(placet.read("file"), Any)
