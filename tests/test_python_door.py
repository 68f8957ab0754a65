"""What a reader of the first page does in Python: typed, one import away, and boards that are read item by item."""

import copy
import functools
import inspect
import pickle
import re
import subprocess
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import get_args, get_overloads, get_type_hints

import pytest

import placet
from placet.aggregate import METHODS
from placet.aggregate.method_table import MethodName
from placet.axioms import AXIOMS
from placet.cli import PANELS
from placet.io.formats import FORMATS, BallotFormat
from placet.metrics import METRICS
from placet.rank import RANKERS

NO_DATA = {"completion", "demo", "serve"}  # what they do is for people at a terminal


def test_the_first_example_is_typed():
    first = get_type_hints(get_overloads(placet.consensus)[0])
    assert {placet.Rankings, placet.Comparisons, placet.Scores} <= set(get_args(first["data"]))
    assert first["return"] is placet.Consensus
    typed = {get_type_hints(one)["return"] for one in get_overloads(placet.read)}
    assert {placet.Rankings, placet.Comparisons, placet.Scores, placet.Queries} <= typed


def test_every_format_of_ballots_has_their_type():
    assert set(get_args(BallotFormat)) == {name for name, one in FORMATS.items() if one.kind is placet.Rankings}


def test_a_board_is_read_item_by_item():
    votes = placet.simulate.battles([2.0, 0.0, -2.0], 300, items=["ant", "bee", "cat"], random_state=0)
    board = placet.consensus(votes)
    rows = list(board)
    assert len(board) == len(rows) == 3
    assert [row.item for row in rows] == board.ranking
    frame = board.to_frame().to_dicts()
    assert [row._asdict() for row in rows] == frame
    assert board.to_pandas().to_dict("records") == frame
    assert "ant" in board
    assert "eel" not in board
    with pytest.raises(ValueError, match="'eel' is not among the 3 items"):
        board["eel"]
    rule = placet.consensus(votes, "copeland")["ant"]
    assert (rule.rank, rule.stderr, rule.tier) == (1, None, None)


def test_methods_have_literal_names():
    assert list(get_args(MethodName)) == list(METHODS)
    asked = get_type_hints(get_overloads(placet.consensus)[0])["method"]
    assert set(get_args(MethodName)) <= {name for one in get_args(asked) for name in get_args(one)}


def commands_in_python():
    """The rows of the table in the documentation: command -> expressions."""
    text = (Path(__file__).parents[1] / "docs/reference/commands.md").read_text()
    return {
        name: re.findall(r"`([^`]+)`", cell) for name, cell in re.findall(r"^\| `placet (\w+)` \| (.+) \|$", text, re.M)
    }


def test_every_command_is_one_import_away():
    """Each is a name of ``placet``, or a method of what such a name gives."""
    table = commands_in_python()
    assert set(table) == {getattr(one, "__name__", "simulate") for panel in PANELS.values() for one in panel} - NO_DATA
    places = {"board": placet.Consensus, "data": placet.Rankings, "ranker": placet.LinearRanker, "placet": placet}
    for name, expressions in table.items():
        assert expressions, name
        for expression in expressions:
            first, *attributes = re.match(r"[\w.]+", expression)[0].split(".")
            found = functools.reduce(getattr, attributes, places[first])
            assert callable(found) or isinstance(found, Mapping | types.ModuleType), (name, expression)


def test_names_given_to_a_class_are_told_where_they_go():
    with pytest.raises(TypeError, match=r"Comparisons\.from_battles makes them of names"):
        placet.Comparisons([("a", "b")])
    with pytest.raises(TypeError, match=r"Rankings\.from_orders makes them of lists of names"):
        placet.Rankings([["a", "b"]])
    votes, ballots = placet.Comparisons.from_battles("a", "b", ["a"]), placet.Rankings.from_orders([["a", "b"]])
    assert repr(pickle.loads(pickle.dumps(votes))) == repr(copy.copy(votes)) == repr(votes)
    assert repr(pickle.loads(pickle.dumps(ballots))) == repr(copy.copy(ballots)) == repr(ballots)


def test_nothing_heavy_is_imported_at_first():
    light = "import sys, placet; assert 'numpy' not in sys.modules and 'placet.report' not in sys.modules"
    subprocess.run([sys.executable, "-c", light], check=True)


MODULES = ("io", "metrics", "losses", "axioms", "simulate", "tracking", "report", "rank", "aggregate", "data")
TABLES = {"METHODS": METHODS, "AXIOMS": AXIOMS, "FORMATS": FORMATS, "RANKERS": RANKERS, "METRICS": METRICS}


def documented():
    """Every function and class that the reference documents, once, by the first of its names."""
    api = (Path(__file__).parents[1] / "docs/api.md").read_text()
    paths = re.findall(r"^   placet\.([\w.]+)$", api, re.M)
    paths += [*placet.__all__, *(f"{module}.{name}" for module in MODULES for name in getattr(placet, module).__all__)]
    paths += [f"optim.{name}" for name, one in vars(placet.optim).items() if is_own(one, "placet.optim", name)]
    found = {path: reached(path) for path in paths}
    for table, entries in TABLES.items():
        for name, one in entries.items():
            found[f"{table} {name}"] = getattr(one, {"METHODS": "source", "FORMATS": "read"}.get(table, ""), one)
    return {
        id(one): (path, one) for path, one in reversed(found.items()) if inspect.isroutine(one) or inspect.isclass(one)
    }


def reached(path):
    """What a path names; nothing if it needs PyTorch, which may be absent."""
    try:
        return functools.reduce(getattr, path.split("."), placet)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        return None


def is_own(one, module, name):
    return not name.startswith("_") and getattr(one, "__module__", "") == module


@pytest.mark.parametrize(("path", "found"), documented().values(), ids=lambda one: one if isinstance(one, str) else "")
def test_public_names_say_what_they_return_and_show_an_example(path, found):
    text = inspect.getdoc(found)
    assert ">>> " in text, path
    if inspect.isroutine(found) and inspect.signature(found).return_annotation not in (None, "None"):
        assert re.search(r"^Returns\n-------\n\S.*\n    \S", text, re.MULTILINE), path


def test_no_documented_name_is_left_out_of_the_test():
    known = {path for path, _ in documented().values()}
    assert {"consensus", "metrics.ndcg", "io.read_helm", "optim.lbfgs", "METHODS borda", "AXIOMS pareto"} <= known
    assert len(known) > 280


DATA = (placet.Rankings, placet.Comparisons, placet.Queries, placet.Scores, placet.Games, placet.Clicks, placet.Sources)
BOARDS = (placet.Consensus, placet.ConsensusSet)
FITTED = ("fit", "predict", "score", "predict_top")


def methods_of(owner):
    """The public methods that a class defines; of a ranker, those that every ranker has."""
    if owner is placet.LinearRanker:
        return {name: getattr(owner, name) for name in FITTED}
    own = {name: getattr(owner, name) for name in vars(owner) if not name.startswith("_") and name != "plot"}
    return {name: one for name, one in own.items() if inspect.isfunction(one) or inspect.ismethod(one)}


@pytest.mark.parametrize("owner", [*DATA, *BOARDS, placet.LinearRanker], ids=lambda owner: owner.__name__)
def test_main_methods_say_what_they_return_and_show_an_example(owner):
    found = methods_of(owner)
    assert len(found) > 1
    for name, method in found.items():
        text = inspect.getdoc(method)
        assert ">>> " in text, name
        assert re.search(r"^Returns\n-------\n\S.*\n    \S", text, re.MULTILINE), name


def test_data_and_rankers_show_themselves_in_notebooks():
    votes = placet.read({"a": ["<ant>", "bee"], "b": ["bee", "cat"], "winner": ["a", "tie"], "day": [1, 2]})
    shown = votes._repr_html_()
    assert "<caption>Comparisons(2 pairs, 3 items, 2 votes)</caption>" in shown
    assert "<td>ties</td><td>1</td>" in shown
    assert "<small>read as votes: a, b, winner; ignored: day</small>" in shown
    named = placet.read({"a": ["x"], "b": ["y"], "winner": ["a"], "<b>": [1]})._repr_html_()
    assert "&lt;b&gt;" in named
    assert "<b>" not in named
    ballots = placet.Rankings.from_orders([["x", "y"]])
    queries, scores = (
        placet.simulate.queries(3, 4, 2),
        placet.Scores.from_table([[1.0, 2.0]], items=["m"], tasks=["s", "t"]),
    )
    assert all(one._repr_html_().startswith("<table><caption>") for one in (ballots, queries, scores))
    assert "LinearRanker" in placet.LinearRanker()._repr_html_()
