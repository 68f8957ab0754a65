"""Choice models: textbook digits, peers, an oracle of differences, groups of choosers, and data without an answer."""

import os
from pathlib import Path

import numpy as np
import pytest

import placet
from placet.data import DataError
from placet.rank.choices.latent_classes import ChoiceFamily, fit_classes
from placet.simulate import choices

DATA = Path(os.environ.get("PLACET_DATA") or Path(__file__).parents[4] / "shared" / "data") / "choice"
B = {"price": -1.0, "comfort": 0.5}
real = pytest.mark.skipif(not DATA.is_dir(), reason=f"the sets of choices are not in {DATA}")

TEXTBOOK = {  # as printed for R's mlogit: estimates and standard errors
    "constant:boat": (5.2728e-01, 2.2279e-01),
    "constant:charter": (1.6944e00, 2.2405e-01),
    "constant:pier": (7.7796e-01, 2.2049e-01),
    "price": (-2.5117e-02, 1.7317e-03),
    "catch": (3.5778e-01, 1.0977e-01),
    "income:boat": (8.9440e-05, 5.0067e-05),
    "income:charter": (-3.3292e-05, 5.0341e-05),
    "income:pier": (-1.2758e-04, 5.0640e-05),
}


@real
def test_fishing_has_the_digits_of_textbooks():
    plain = placet.choice(DATA / "fishing.csv.xz", constants=False)
    assert {name: f"{plain.coefficients[name].value:.7f}" for name in plain.coefficients.names} == {
        "price": "-0.0204765",
        "catch": "0.9530985",
    }
    assert f"{plain.log_likelihood:.1f}" == "-1312.0"
    full = placet.choice(DATA / "fishing.csv.xz", case="income")
    for name, printed in TEXTBOOK.items():
        found = full.coefficients[name]
        assert tuple(f"{number:.4e}" for number in found[:2]) == tuple(f"{number:.4e}" for number in printed), name
    assert f"{full.log_likelihood:.1f}" == "-1215.1"


def fits(rows, **options):
    fit = placet.choice(rows, **options)
    X = np.column_stack([rows[name] for name in fit.coefficients.names])
    return fit, X


def test_errors_equal_those_of_statsmodels():
    conditional = pytest.importorskip(
        "statsmodels.discrete.conditional_models", reason="statsmodels, the peer, is not installed"
    )
    rows = choices(B, 300, per_agent=3, spread=0.5)
    fit, X = fits(rows, errors="observed")
    model = conditional.ConditionalLogit(rows["chosen"], X, groups=rows["choice_set"])
    peer = model.fit(start_params=fit.coefficients.values + 0.1, disp=0)
    np.testing.assert_allclose(fit.coefficients.values, peer.params, rtol=1e-3)  # it stops in the fourth digit
    assert np.abs(model.score(fit.coefficients.values)).max() < 1e-8
    assert np.abs(model.score(peer.params)).max() > 1e-8
    np.testing.assert_allclose(fit.coefficients.stderr, peer.bse, rtol=1e-3)
    assert abs(fit.log_likelihood - model.loglike(fit.coefficients.values)) < 1e-8


def test_errors_equal_those_of_xlogit():
    xlogit = pytest.importorskip("xlogit", reason="xlogit, the peer, is not installed")
    rows = choices(B, 300)
    fit, X = fits(rows, errors="observed")
    peer = xlogit.MultinomialLogit()
    peer.fit(X, rows["chosen"], list(B), rows["alternative"], rows["choice_set"], verbose=0, robust=False)
    np.testing.assert_allclose(fit.coefficients.values, peer.coeff_, rtol=1e-3)
    np.testing.assert_allclose(fit.coefficients.stderr, peer.stderr, rtol=2e-2)  # from an approximate Hessian


def log_likelihood(rows, coefficients):
    """Plain sums over choices, one by one."""
    total = 0.0
    for q in np.unique(rows["choice_set"]):
        at = np.flatnonzero(rows["choice_set"] == q)
        s = sum(b * rows[name][at] for name, b in coefficients.items())
        total += float(s[rows["chosen"][at] == 1][0] - np.log(np.exp(s).sum()))
    return total


def test_the_fit_is_the_maximum_and_its_errors_the_curvature_there():
    rows = choices(B, 60, per_agent=2, random_state=2)
    fit, _ = fits(rows, errors="observed")
    at = dict(zip(B, fit.coefficients.values))
    assert abs(log_likelihood(rows, at) - fit.log_likelihood) < 1e-8
    h = 1e-3
    H = np.zeros((2, 2))
    for a, first in enumerate(B):
        for b, second in enumerate(B):
            for i in (-1, 1):
                for j in (-1, 1):
                    moved = dict(at)
                    moved[first] += i * h
                    moved[second] += j * h
                    H[a, b] -= i * j * log_likelihood(rows, moved) / (4 * h * h)
    np.testing.assert_allclose(fit.coefficients.covariance, np.linalg.inv(H), rtol=1e-4)
    assert fit.aic == 4 - 2 * fit.log_likelihood
    assert abs(fit.log_likelihood_equal + 60 * np.log(4)) < 1e-9
    assert str(fit).startswith("Conditional logit: 60 choices among 4 alternatives by 30 persons")


def test_errors_follow_persons_who_repeat_themselves():
    once = choices(B, 100, random_state=3)
    thrice = {name: np.tile(column, 3) for name, column in once.items()}
    thrice["choice_set"] = np.repeat(np.arange(300), 4)
    one, three = placet.choice(once, errors="choice"), placet.choice(thrice)
    assert three.coefficients.errors == "cluster"
    np.testing.assert_allclose(three.coefficients.values, one.coefficients.values, rtol=1e-8)
    np.testing.assert_allclose(three.coefficients.stderr, one.coefficients.stderr, rtol=1e-6)
    assert (placet.choice(thrice, errors="observed").coefficients.stderr < 0.7 * one.coefficients.stderr).all()
    weighted = placet.choice({**once, "weight": np.full(400, 3)}, errors="observed")
    other = placet.choice(thrice, errors="observed")
    np.testing.assert_allclose(weighted.coefficients.covariance, other.coefficients.covariance, rtol=1e-6)


def test_another_base_shifts_the_constants_alone():
    rows = choices(B, 200, alternatives=3, random_state=5)
    named = {**rows, "alternative": np.array(["bus", "car", "tram"])[rows["alternative"] - 1]}
    first, other = placet.choice(named, errors="observed"), placet.choice(named, base="tram", errors="observed")
    assert first.coefficients.names == ("constant:car", "constant:tram", "price", "comfort")
    assert abs(first.log_likelihood - other.log_likelihood) < 1e-8
    assert abs(first.coefficients["constant:tram"].value + other.coefficients["constant:bus"].value) < 1e-7
    assert first.coefficients["price"].stderr == pytest.approx(other.coefficients["price"].stderr, rel=1e-7)


def two_groups(n=150, per_agent=8):
    a = choices({"price": -2.0, "comfort": 0.0}, n * per_agent, per_agent=per_agent, random_state=1)
    b = choices({"price": 0.0, "comfort": 1.5}, n * per_agent // 2, per_agent=per_agent, random_state=2)
    b["agent"], b["choice_set"] = b["agent"] + n, b["choice_set"] + n * per_agent
    return {name: np.concatenate([a[name], b[name]]) for name in a}


def test_groups_of_choosers_are_found_with_errors_of_the_right_size():
    fit = placet.choice(two_groups(), classes=2, restarts=4)
    assert fit.classes is not None
    large, small = fit.classes.coefficients
    for table, truth in ((large, (-2.0, 0.0)), (small, (0.0, 1.5))):
        assert (np.abs(table.values - truth) < 3 * table.stderr).all()
    assert abs(fit.classes.shares[0].value - 2 / 3) < 3 * fit.classes.shares[0].stderr
    assert (fit.classes.membership[:150, 0] > 0.5).mean() > 0.9
    assert fit.n_parameters == 5
    assert fit.bic < placet.choice(two_groups()).bic
    assert "Group 2: share" in str(fit)


def test_the_errors_of_groups_are_the_curvature_of_their_likelihood():
    from placet.io import read_choices
    from placet.rank.choices.choice_design import design

    table = read_choices(two_groups(30, 4))
    rows = design(table, None, None)
    found = fit_classes(rows, table, np.zeros(2), 2, 0.95, 3, 0)
    family = ChoiceFamily(rows, table.agent, np.ones(2))

    def value(x):
        logit = np.array([0.0, x[4]])
        share = np.exp(logit) / np.exp(logit).sum()
        each = [family.log_likelihood(x[:2]), family.log_likelihood(x[2:4])]
        return np.logaddexp(each[0] + np.log(share[0]), each[1] + np.log(share[1])).sum()

    shares = [share.value for share in found.shares]
    x = np.concatenate([*(one.values for one in found.coefficients), [np.log(shares[1] / shares[0])]])
    assert abs(value(x) - found.log_likelihood) < 1e-9
    h, eye = 1e-3, np.eye(5)

    def second(a, b):
        signs = [(i, j) for i in (-1, 1) for j in (-1, 1)]
        return sum(i * j * value(x + h * (i * eye[a] + j * eye[b])) for i, j in signs) / (4 * h * h)

    C = np.linalg.inv([[-second(a, b) for b in range(5)] for a in range(5)])
    errors = np.concatenate([one.stderr for one in found.coefficients])
    np.testing.assert_allclose(errors, np.sqrt(np.diag(C))[:4], rtol=1e-3)
    slope = shares[0] * shares[1]
    assert found.shares[0].stderr == pytest.approx(slope * np.sqrt(C[4, 4]), rel=1e-3)


def separated():
    rows = choices(B, 40, random_state=6)
    return {**rows, "price": -1.0 * rows["chosen"]}


def never():
    rows = choices(B, 40, alternatives=3)
    keep = ~np.isin(rows["choice_set"], rows["choice_set"][(rows["alternative"] == 3) & (rows["chosen"] == 1)])
    return {name: column[keep] for name, column in rows.items()}


FIRST = choices(B, 50)
WRONG = {
    "separation": (separated, {}, "'price'.* is never lower for the chosen alternative"),
    "repeats": (lambda: {**FIRST, "euro": FIRST["price"] * 2 + 3}, {}, "'euro' is a combination of 'price'"),
    "flat": (lambda: FIRST, {"attributes": "price,agent"}, "column 'agent' is equal for all alternatives"),
    "never chosen": (never, {"constants": True}, "'3' was never chosen"),
    "no names": (
        lambda: {k: v for k, v in FIRST.items() if k != "alternative"}, {"constants": True}, "alternative="
    ),
    "nothing": (
        lambda: {k: FIRST[k] for k in ("choice_set", "alternative", "chosen")}, {"constants": False}, "nothing to explain"
    ),
    "base": (lambda: FIRST, {"constants": True, "base": "9"}, "base '9' is not an alternative"),
    "errors": (lambda: FIRST, {"errors": "robust"}, "errors"),
    "no agents": (lambda: {k: v for k, v in FIRST.items() if k != "agent"}, {"errors": "agent"}, "agent="),
    "groups": (lambda: FIRST, {"classes": 0}, "at least 1"),
    "too many groups": (lambda: FIRST, {"classes": 50}, "too few for 50 groups"),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "options", "words"), WRONG.values(), ids=WRONG)
def test_choices_without_an_answer_say_why(rows, options, words):
    with pytest.raises(ValueError, match=words):
        placet.choice(rows(), **options)


def test_a_read_table_takes_no_more_options():
    from placet.io import read_choices

    table = read_choices(FIRST)
    assert placet.choice(table).coefficients.names == ("price", "comfort")
    with pytest.raises(ValueError, match="read already"):
        placet.choice(table, case="income")
    with pytest.raises(DataError, match="the separated|is never lower"):
        placet.choice(separated())
