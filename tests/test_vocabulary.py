"""One vocabulary: the same thing has the same name in every signature, and names are words that a reader knows."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import placet

ROOT = Path(placet.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

INSTEAD = {
    "lr": "learning_rate",
    "eta0": "learning_rate",
    "n_iter": "max_iter, epochs, n_trees or n_rounds",
    "n_epochs": "epochs",
    "n_estimators": "n_trees",
    "num_rounds": "n_rounds",
    "row_fraction": "subsample",
    "rule_name": "method",
    "eval_set": "valid",
    "validation_set": "valid",
    "held_out": "valid or validation",
    "seed": "random_state",
    "normalise": "normalize",
}
"""Names of parameters that stand for something with another name; ``seed`` is for the command line alone."""

BRITISH = re.compile(
    r"(normalis|standardis|optimis|minimis|maximis|penalis|summaris|randomis|initialis|regularis|colour|centre|neighbour"
    r"|behaviour|judgement|labelled_|favour|generalis|organis|recognis|serialis|symmetris|vectoris)",
    re.IGNORECASE,
)
PARTICIPLES = {
    "held", "known", "told", "fitted", "scored", "packed", "unpacked", "restored", "scaled", "resampled", "shared",
    "seen", "kept", "made", "given", "said", "shown", "drawn", "taken", "written", "chosen", "lost", "tried", "added",
    "counted", "named", "started", "sampled", "judged", "joined", "checked", "used", "moved", "stated",
}  # fmt: skip
"""Participles that say nothing alone: what is held, known, scaled?"""


@cache
def functions():
    """(file, definition) of every function; parsed once for all tests."""
    return [
        (path.relative_to(ROOT).as_posix(), node)
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def parameters(node):
    return [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]


ALLOWED = {"seed": ("cli/", "kernels/", "studio/")}

ENGINES = ("data/", "io/scanning", "aggregate/", "rank/ranker", "rank/listwise/diversity")
"""Where parts come in: an ``engine`` is what processes them, and nothing else."""
TREES = ("rank/trees/", "rank/boosting/")
"""Where trees are grown: ``backend`` is the library that grows them, ``backend_params`` its own parameters."""


def test_parameters_have_one_name():
    wrong = [
        f"{path}:{node.lineno}: {node.name}({name}) -> {INSTEAD[name]}"
        for path, node in functions()
        for name in parameters(node)
        if name in INSTEAD and not path.startswith(ALLOWED.get(name, ("-",)))
    ]
    assert not wrong, "\n".join(wrong)


def test_an_engine_processes_parts_and_a_backend_grows_trees():
    wrong = []
    for path, node in functions():
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            kind = "" if argument.annotation is None else ast.unparse(argument.annotation)
            home = {"engine": ENGINES, "backend": TREES, "backend_params": TREES}.get(argument.arg, ("",))
            words = {"engine": not re.search(r"str|Mapping|dict|Literal", kind), "backend_params": "[str, Any]" in kind}
            if not path.startswith(home) or not words.get(argument.arg, True):
                wrong.append(f"{path}:{node.lineno}: {node.name}({argument.arg}: {kind})")
    assert not wrong, "\n".join(wrong)


def test_names_are_spelled_in_one_way():
    wrong = [
        f"{path}:{node.lineno}: {name}"
        for path, node in functions()
        for name in (node.name, *parameters(node))
        if BRITISH.search(name)
    ]
    assert not wrong, "\n".join(wrong)


def test_no_function_is_a_participle_alone():
    wrong = [f"{path}:{node.lineno}: {node.name}" for path, node in functions() if node.name.lstrip("_") in PARTICIPLES]
    assert not wrong, "\n".join(wrong)


def test_no_module_is_shadowed_by_a_name_of_its_package():
    for init in ROOT.rglob("__init__.py"):
        modules = {path.stem for path in init.parent.glob("*.py")} | {
            path.name for path in init.parent.iterdir() if (path / "__init__.py").exists()
        }
        imported = {
            alias.asname or alias.name
            for node in ast.walk(ast.parse(init.read_text()))
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
            if f"{node.module}.{alias.name}" != ".".join(("placet", *init.parent.relative_to(ROOT).parts, alias.name))
        }
        assert not modules & imported, f"{init.parent.name}: {sorted(modules & imported)}"


@pytest.mark.parametrize("words", [("data", "method")])
def test_data_come_first_then_the_method(words):
    for name in ("consensus",):
        first = parameters(next(node for _, node in functions() if node.name == name))
        assert tuple(first[:2]) == words


def test_one_name_is_one_thing():
    """No class or alias of types is defined twice; constants in capitals may be, each in its own module."""
    homes: dict[str, list[str]] = {}
    for path in ROOT.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                names = [node.name]
            elif isinstance(node, ast.Assign):
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            elif isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
                names = [node.target.id]
            else:
                continue
            for name in names:
                if name[0].isupper() and not name.isupper():
                    homes.setdefault(name, []).append(str(path.relative_to(ROOT)))
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}
