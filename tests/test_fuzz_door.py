"""Random small problems at the one door, always the same ones; ``make fuzz`` tries 30,000."""

import contextlib
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1] / "fuzz"))
import fuzz_door

from placet.aggregate.likelihood.information import inverse_of
from placet.aggregate.result.result import Consensus
from placet.optim import Fit

EACH = 90


@pytest.mark.parametrize("first", range(0, 8 * EACH, EACH))
def test_an_answer_that_keeps_its_promises_or_an_error_of_ours(first):
    said = {number: fuzz_door.verdict(number) for number in range(first, first + EACH)}
    assert {number: words for number, words in said.items() if words.startswith("BAD")} == {}
    assert list(said.values()).count("answered") > EACH / 2


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ({"stderr": [np.nan, 1.0]}, "stderr is"),
        ({"support": [np.inf, 1.0]}, "support is"),
        ({"stderr": [1.0, 1.0], "win": lambda x, y: np.full(np.broadcast(x, y).shape, 0.7)}, "win probabilities"),
        ({"stderr": [1.0, 1.0], "tie": np.inf}, "tie is"),
    ],
)
def test_the_fuzzer_sees_broken_promises(broken, words):
    assert fuzz_door.broken(Consensus(("a", "b"), [1.0, 0.0], method="borda")) is None
    assert fuzz_door.broken(Consensus(("a", "b"), [1.0, 0.0], method="borda", **broken)).startswith(words)


def test_the_fuzzer_sees_another_order_of_input_and_errors_of_others():
    one, other = (Consensus(("a", "b"), scores, method="borda") for scores in ([1.0, 0.0], [1.0, 0.1]))
    assert fuzz_door.changed(one, one) is None
    assert "in another order" in fuzz_door.changed(one, other)
    with pytest.raises(ValueError) as caught:
        np.random.default_rng(-1)
    assert not fuzz_door.is_ours(caught.value)
    with pytest.raises(ValueError) as caught:  # raised in our code, but not in words that help
        inverse_of(-np.eye(2))
    assert not fuzz_door.is_ours(caught.value)


def test_the_fuzzer_draws_every_kind_of_data_and_of_question():
    """Votes, ballots, score tables, slices, parts and sources; bootstrap, controls, drift, agents, instances."""
    drawn = []
    for number in range(8 * EACH):
        with contextlib.suppress(ValueError):  # data that are refused when they are made
            drawn.append(fuzz_door.problem(number))
    kinds = {type(one.data).__name__ for one in drawn}
    assert kinds == {"Comparisons", "Rankings", "Scores", "dict", "Parts", "Sources"}
    assert {"bootstrap", "drift", "agents", "agent_weight"} <= {name for one in drawn for name in one.params}
    assert any(getattr(one.data, "control", None) is not None for one in drawn)
    assert any(getattr(one.data, "instance", None) is not None for one in drawn)
    assert {one.method for one in drawn} >= set(fuzz_door.METHODS)


def test_what_says_that_it_did_not_converge_may_depend_a_little_on_the_order():
    def answer(scores, reached):
        return Consensus(("a", "b"), scores, method="bradley-terry", fit=Fit(np.zeros(2), 0.0, 0.0, 1, reached, ""))

    for reached in (True, False):
        assert fuzz_door.converged(answer([1.0, 0.0], reached)) == reached
        near = fuzz_door.changed(answer([1.0, 0.0], True), answer([1.0, 0.005], reached))
        assert (near is not None) == reached
        assert fuzz_door.changed(answer([1.0, 0.0], reached), answer([1.0, 0.02], reached)) is not None
    assert fuzz_door.converged(Consensus(("a", "b"), [1.0, 0.0], method="m"))


@pytest.mark.parametrize("number", [5080, 23462, 29272, 29819])
def test_problems_that_once_failed(number):
    assert fuzz_door.verdict(number) == "answered"
