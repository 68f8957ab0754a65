"""Signed roots of ballots: against a slow constrained fit, and monotone in the evidence."""

import math

import numpy as np
import oracle
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize
from scipy.special import ndtr

from placet import Rankings, consensus
from placet.aggregate.ballots.ballot_heights import BallotHeights

ORACLES = {"plackett-luce": oracle.pl_partition, "pmop": oracle.pmop_exact}
ITEMS = list("abc")

ballots = st.lists(
    st.sampled_from([["a", "b"], ["b", "a"], ["a", "b", "c"], ["c", "b", "a"], [("a", "b"), "c"], ["b", ("a", "c")]]),
    min_size=1,
    max_size=6,
)


def fit(orders, method, prior=2.0, **options):
    return consensus(Rankings.from_orders(orders, items=ITEMS), method, prior=prior, **options)


@pytest.mark.parametrize("method", list(ORACLES))
@settings(max_examples=6)
@given(orders=ballots)
def test_roots_are_falls_of_the_log_posterior(method, orders):
    """The least negative log posterior by a general optimizer, free and with both scores equal."""
    tiers = [[(item,) if isinstance(item, str) else item for item in order] for order in orders]
    lists = [[(ITEMS.index(item), -k) for k, tier in enumerate(order) for item in tier] for order in tiers]

    def least(merged):
        def cost(free):
            theta = [free[0], *free] if merged else free
            own = sum(ORACLES[method]([theta[i] for i, _ in rows], [grade for _, grade in rows]) for rows in lists)
            return own + float(np.square(theta).sum()) / 8

        return minimize(cost, np.zeros(3 - merged), method="BFGS", options={"gtol": 1e-6}).fun

    found = fit(orders, method, stderr="observed")
    root = math.copysign(math.sqrt(2 * max(least(True) - least(False), 0)), found.scores[0] - found.scores[1])
    assert found.prob_above("a", "b") == pytest.approx(ndtr(root), abs=5e-4)


@pytest.mark.parametrize("method", ["plackett-luce", "pmop"])
@settings(max_examples=12)
@given(orders=ballots)
def test_another_win_never_lowers_the_probability_of_being_above(method, orders):
    before = fit(orders, method).prob_above("a", "b")
    assert fit([*orders, ["a", "b"]], method).prob_above("a", "b") >= before - 1e-6


@pytest.mark.parametrize("method", [*ORACLES, "pmop-fd"])
def test_a_perfect_record_is_no_less_sure_than_one_loss(method):
    """200 of 200 gave 0.9945 under Plackett-Luce, and 199 of 200 gave 1."""

    def board(won, lost):
        return consensus(Rankings.from_orders([["a", "b"]] * won + [["b", "a"]] * lost, items="ab"), method)

    none, one = board(200, 0), board(199, 1)
    assert none.prob_above("a", "b") >= one.prob_above("a", "b") > 0.9999
    assert none.interval()[0][0] > one.interval()[0][0]
    found = [board(won, 0).prob_above("a", "b") for won in (1, 2, 4, 8, 20, 60)]
    assert (np.diff(found) > 0).all()
    assert not board(4, 0).separated().any()
    assert board(12, 0).separated()[0, 1]


def test_perfect_records_are_those_of_ballots_that_compare():
    orders = [["a", "b", "c"], ["a", ("b", "d")], [("e", "f"), "c"], [("a", "e")], ["b", "c"]]
    data = Rankings.from_orders(orders, items="abcdefg")
    found = consensus(data, "plackett-luce", prior=2.0)
    assert isinstance(found.roots.p, BallotHeights)
    assert found.roots.p.perfect().tolist() == [True, False, True, False, False, False, False]


def test_other_errors_and_many_rows_have_no_roots():
    orders = [["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"]] * 3
    assert fit(orders, "plackett-luce").roots is not None
    data = Rankings.from_orders(orders)
    assert consensus(data, "plackett-luce", stderr="sandwich").roots is None
    agents = Rankings.from_orders(orders, agent=[0, 0, 0, 1, 1, 1, 2, 2, 2])
    assert consensus(agents, "plackett-luce").roots is None
    many = Rankings.from_orders(orders * 200)
    assert consensus(many, "plackett-luce").roots is not None
    assert consensus(many, "pmop", prior=2.0).roots is None  # its Hessian is made of products
