"""Numbers as people read them: rounded to their errors, on a page and on a terminal."""

import math

import pytest
from hypothesis import given, strategies as st

from placet.output.numbers import (
    aligned_numbers,
    decimals_for,
    each_with_decimals,
    error_decimals,
    number,
    with_decimals,
    with_error,
)

FINITE = st.floats(allow_nan=False, max_value=1e300, min_value=-1e300)


@pytest.mark.parametrize(
    ("score", "stderr", "text"),
    [(0.123456, 0.0123, "0.123 ± 0.012"), (5.0, 0.0, "5"), (1234.5, 67.8, "1,234 ± 68"), (1.0, 9.99, "1 ± 10")],
)
def test_scores_are_rounded_to_two_digits_of_their_error(score, stderr, text):
    assert " ".join(with_error(score, stderr)).strip() == text


@given(FINITE)
def test_a_number_is_read_back_to_its_digits(value):
    text = number(value, 3)
    assert "e" not in text
    mantissa, _, power = text.replace("−", "-").replace(",", "").partition(" × 10")
    exponent = int(power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")) or 0)
    read = float(f"{mantissa}e{exponent}")
    assert read == pytest.approx(value, rel=0.0051, abs=1e-300)


@given(st.lists(st.tuples(FINITE, st.integers(0, 12))))
def test_a_column_is_formatted_as_each_of_its_numbers(cells):
    values, decimals = [value for value, _ in cells], [places for _, places in cells]
    assert each_with_decimals(values, decimals) == [with_decimals(*cell) for cell in cells]
    plain = [with_decimals(value, places, plain=True) for value, places in cells]
    assert plain == [text.replace("−", "-").replace(",", "") for text in each_with_decimals(values, decimals)]
    assert all(text.isascii() for text in plain)


@given(st.floats(1e-12, 1e12))
def test_an_error_keeps_two_digits_and_no_more(error):
    decimals = error_decimals(error, most=12)
    assert decimals == decimals_for([error])[0]
    shown = float(f"{error:.{decimals}f}")
    assert shown == pytest.approx(error, rel=0.051, abs=0.5e-12)
    assert decimals == 0 or error < 9.96 * 10.0 ** (1 - decimals)


def test_points_stand_below_one_another():
    texts = aligned_numbers([1234.5, 2.0, -0.25], [1, 0, 2])
    assert {len(text.lstrip("−0123456789,")) for text in texts} == {3}


def test_what_is_not_finite():
    assert [number(value) for value in (math.inf, -math.inf, math.nan)] == ["∞", "−∞", ""]
