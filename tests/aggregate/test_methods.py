"""The table of methods: what each record says is true, one default at every door, and no other list of methods."""

import ast
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

import placet
from placet.aggregate import METHODS, MODELS, RULES, Consensus, default_method
from placet.aggregate.method import MethodView
from placet.aggregate.method_table import method_name
from placet.data import Comparisons, DataError, Rankings

SOURCE = Path(placet.__file__).parent
ORDERS = Rankings.from_orders(
    [["a", "b", "c"], ["b", "a", "c"], ["a", ("b", "c")], ["c", "a", "b"]], weight=[2, 1, 1, 1]
)
VOTES = Comparisons.from_battles(list("aabbcc"), list("bcacab"), ["a", "a", "b", "tie", "a", "b"])
RATINGS = Rankings.from_scores(
    {"who": list("uuuvvvww"), "what": list("abcabcab"), "stars": [5, 3, 1, 4, 4, 2, 3, 5]},
    ballot="who",
    item="what",
    score="stars",
)


def test_models_and_rules_are_views_of_the_table():
    kinds = {kind: [name for name, method in METHODS.items() if method.kind == kind] for kind in ("model", "rule")}
    assert list(MODELS) == kinds["model"]
    assert list(RULES) == kinds["rule"]
    assert len(METHODS) == len(MODELS) + len(RULES) + 4
    assert all(name == method.name for name, method in METHODS.items())
    assert "borda" not in MODELS
    with pytest.raises(KeyError):
        MODELS["borda"]
    table = dict(METHODS)
    rules = MethodView(table, lambda method: method.kind == "rule", lambda method: method)
    del table["borda"]
    assert "borda" not in rules
    assert len(rules) == len(RULES) - 1


@pytest.mark.parametrize("name", METHODS)
def test_the_words_of_a_record_are_sentences_and_its_home_is_there(name):
    method = METHODS[name]
    assert method.title[0].isupper() or method.title[0].isdigit()
    assert re.fullmatch(r"[A-Z].*\.", method.words)
    assert method.reference
    assert callable(method.source)
    assert all(parameter.isidentifier() for parameter in method.parameters)


@pytest.mark.parametrize("name", [*MODELS, *RULES])
def test_a_method_takes_the_data_that_its_record_says(name):
    method = METHODS[name]
    data = RATINGS if method.reads_scores else ORDERS
    assert isinstance(placet.consensus(data, name), Consensus)
    if "votes" in method.takes:
        assert isinstance(placet.consensus(VOTES, name), Consensus)
    else:
        with pytest.raises(DataError, match="needs whole ballots"):
            placet.consensus(VOTES, name)


def test_unknown_methods_and_parameters_are_refused_by_the_record():
    with pytest.raises(
        ValueError, match="method 'bradly-terry' is unknown .did you mean 'bradley-terry'.*; choose from"
    ):
        placet.consensus(VOTES, "bradly-terry")
    with pytest.raises(ValueError, match="parameter 'seat' is unknown to 'stv'"):
        placet.consensus(ORDERS, "stv", seat=2)
    with pytest.raises(ValueError, match="unit"):
        METHODS["mean"].check({"unit": "week"})
    with pytest.raises(ValueError, match="'rasch' needs a table of scores"):
        placet.consensus(ORDERS, "rasch")


# What a sentence states is what the function computes; each oracle is the sentence, ballot by ballot


@st.composite
def strict_ballots(draw):
    """Whole orders of two to five items, one to five of them, counted once to three times."""
    n = draw(st.integers(2, 5))
    orders = draw(st.lists(st.permutations(range(n)), min_size=1, max_size=5))
    counts = draw(st.lists(st.integers(1, 3), min_size=len(orders), max_size=len(orders)))
    return Rankings.from_orders(orders, items=range(n), weight=counts)


def _places(r):
    """{item: place} of each ballot, and its weight."""
    for k in range(len(r)):
        own = slice(r.offsets[k], r.offsets[k + 1])
        yield {int(i): t + 1 for i, t in zip(r.item[own], r.tier[own])}, float(r.weight[k])


def _by_place(points):
    def scores(r):
        total = np.zeros(r.n_items)
        for place, weight in _places(r):
            for item, p in place.items():
                total[item] += weight * points(p, r.n_items)
        return total

    return scores


def _beats(r):
    n = r.n_items
    wins = np.zeros((n, n))
    for place, weight in _places(r):
        for i in range(n):
            for j in range(n):
                wins[i, j] += weight * (place[i] < place[j])
    return wins > wins.T


def _copeland(r):
    beats = _beats(r)
    return beats.sum(axis=1) - beats.sum(axis=0)


def _middle_place(r):
    scores = []
    for item in range(r.n_items):
        places = [p[item] for p, weight in _places(r) for _ in range(int(weight))]
        scores.append(-float(np.median(places)))
    return np.array(scores)


SENTENCES = {
    "borda": ("one point for every item that it stands above", _by_place(lambda p, n: n - p)),
    "plurality": ("counts for the item in its first place, and for no other", _by_place(lambda p, n: p == 1)),
    "anti-plurality": ("last on the fewest ballots wins", _by_place(lambda p, n: -1 if p == n else 0)),
    "log": ("fall with the logarithm of the place", _by_place(lambda p, n: -math.log(p))),
    "squared": ("fall with the square of the place", _by_place(lambda p, n: -p * p)),
    "rrf": ("1 / (60 + p) points", _by_place(lambda p, n: 1 / (60 + p))),
    "dowdall": ("A place p gives 1 / p points", _by_place(lambda p, n: 1 / p)),
    "copeland": ("the number of items it beats minus the number of items that beat it", _copeland),
    "median-rank": ("the middle one of its places on all ballots", _middle_place),
}


@pytest.mark.parametrize("name", SENTENCES)
@given(r=strict_ballots())
def test_a_sentence_with_a_formula_states_what_the_function_computes(name, r):
    said, formula = SENTENCES[name]
    assert said in METHODS[name].words
    found, expected = RULES[name](r), formula(r)
    shift = found.mean() - expected.mean() if name in ("anti-plurality", "log", "squared") else 0.0
    assert found == pytest.approx(expected + shift, abs=1e-9)


def test_every_sentence_that_states_a_formula_is_checked():
    states = re.compile(r"\d|\bscore is\b|\bpoint for\b|square|logarithm")
    stated = {name for name, method in METHODS.items() if method.kind == "rule" and states.search(method.words)}
    assert stated <= set(SENTENCES)


# One default


def test_the_default_is_the_same_at_every_door(tmp_path, answer):
    for data, name in ((VOTES, "votes.csv"), (ORDERS, "ballots.ballots")):
        path = tmp_path / name
        placet.io.write(data, path)
        method = default_method(data)
        assert placet.consensus(data).method == method
        assert json.loads(answer("aggregate", path, "--json"))["method"] == method
        assert placet.consensus({"x": data, "y": data}).method == method
        assert placet.consensus(placet.Parts.of([data])).method == method


def test_nothing_else_keeps_a_list_of_methods_or_compares_a_name():
    """Membership in a table of methods, and comparison of a method with a literal name, in at most six places."""
    found = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Compare):
                continue
            sides = [node.left, *node.comparators]
            names = {side.id for side in sides if isinstance(side, ast.Name)}
            texts = {side.value for side in sides if isinstance(side, ast.Constant) and isinstance(side.value, str)}
            asks = names & {"METHODS", "MODELS", "RULES", "SCORE_METHODS"} and path.name != "method.py"
            literal = texts & set(METHODS) and any("method" in ast.unparse(side) for side in sides)
            if asks or literal:
                found.append(f"{path.relative_to(SOURCE)}:{node.lineno}: {ast.unparse(node)}")
    assert len(found) <= 6, "\n".join(found)


def test_a_method_is_known_by_its_other_names_at_every_door():
    ballots = Rankings.from_orders([["a", "b", "c"]] * 6 + [["b", "c", "a"]] * 5 + [["c", "a", "b"]] * 2)
    for typed in ("PL", "Plackett_Luce", "plackett luce"):
        board = placet.consensus(ballots, typed)
        assert board.method == board.asked.method == board.certificate()["question"]["method"] == "plackett-luce"
    assert placet.audit(ballots, typed).method == placet.audit(None, typed, items=3).method == "plackett-luce"
    assert placet.aggregate.leave_one_out(ballots, typed).method == "plackett-luce"
    assert placet.aggregate.surprise(ballots, typed).method == "plackett-luce"
    assert placet.aggregate.influence_map(ballots, typed).method == "plackett-luce"
    assert placet.consensus(ballots, placet.aggregate.Mixture(typed, 1)).method == "plackett-luce"
    assert repr(placet.fragility(ballots, typed)) == repr(placet.fragility(ballots, "plackett-luce"))


def test_mm_is_the_model_that_it_fits():
    assert method_name("MM") == "bradley-terry"
