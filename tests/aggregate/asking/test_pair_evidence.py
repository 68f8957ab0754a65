"""Evidence for looking at every vote: the formula by integration, no expected gain under the hypothesis, Ville's bound exactly."""

import itertools

import numpy as np
import pytest
import scipy
from hypothesis import given, strategies as st

from placet.aggregate.asking.pair_evidence import growth, log_evidence, transitive_closure


def integral(won, lost, bar):
    """The average of the products of the bets over their law, Beta(3, 3) above the bar, by quadrature."""
    law = scipy.stats.beta(3, 3)
    product = lambda p: (p / bar) ** won * ((1 - p) / (1 - bar)) ** lost * law.pdf(p)  # noqa: E731
    return scipy.integrate.quad(product, bar, 1, epsabs=0, limit=200)[0] / law.sf(bar)


@pytest.mark.parametrize("bar", [0.5, 0.4, 0.2])
@pytest.mark.parametrize(("won", "lost"), [(0, 0), (1, 0), (0, 1), (7, 3), (3, 7), (60, 40), (2.5, 0.5)])
def test_evidence_is_the_average_of_the_bets(won, lost, bar):
    assert float(np.exp(log_evidence(won, lost, bar))) == pytest.approx(integral(won, lost, bar), rel=1e-9)


@given(st.integers(0, 400), st.integers(0, 400), st.sampled_from([0.5, 0.4, 0.1]), st.floats(0, 1))
def test_no_vote_is_expected_to_add_evidence_if_the_hypothesis_is_true(won, lost, bar, part):
    share = part * bar
    now, win, loss = (np.exp(log_evidence(won + a, lost + b, bar)) for a, b in ((0, 0), (1, 0), (0, 1)))
    assert share * win + (1 - share) * loss <= now * (1 + 1e-9) + 1e-280
    assert bar * win + (1 - bar) * loss == pytest.approx(now, rel=1e-9, abs=1e-280)  # at the bar it is a fair game


@pytest.mark.parametrize("alpha", [0.5, 0.05])
def test_equal_items_are_ever_separated_with_probability_alpha_at_most(alpha):
    """The chance that either of two equal items is said to be above within 600 votes, exactly, by recursion."""
    bound, crossed = np.log(2 / alpha), 0.0
    alive = np.ones(1)  # chance of each number of wins, no statement made
    for n in range(1, 601):
        alive = 0.5 * (np.append(alive, 0.0) + np.insert(alive, 0, 0.0))
        wins = np.arange(n + 1)
        said = np.maximum(log_evidence(wins, n - wins), log_evidence(n - wins, wins)) >= bound
        crossed += alive[said].sum()
        alive[said] = 0.0
    assert 0.2 * alpha < crossed <= alpha


def test_much_evidence_against_is_none_for():
    assert log_evidence(0, 100_000) == -np.inf
    assert log_evidence(100_000, 0) > 60_000
    assert log_evidence(0, 0) == 0.0


def test_evidence_grows_by_the_divergence():
    w, lost = 70_000, 30_000
    assert log_evidence(w, lost) / (w + lost) == pytest.approx(growth(0.7), rel=1e-2)
    assert growth(0.5) == 0.0
    assert growth(1.0) == pytest.approx(np.log(2))


@given(
    st.integers(1, 20).flatmap(
        lambda n: st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))).map(lambda e: (n, e))
    )
)
def test_the_closure_holds_every_path(case):
    n, edges = case
    proven = np.zeros((n, n), bool)
    for a, b in edges:
        proven[a, b] = True
    by_hand = proven.copy()
    for k, i, j in itertools.product(range(n), repeat=3):
        by_hand[i, j] |= by_hand[i, k] & by_hand[k, j]
    np.testing.assert_array_equal(transitive_closure(proven), by_hand)
