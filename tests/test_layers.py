"""Imports point one way: a module may import modules of its own layer and of the layers before it."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import placet

ROOT = Path(placet.__file__).parent
LAYERS = (
    "lazy escaping output threads data stats kernels io losses optim metrics aggregate rank axioms tracking simulate report cli studio __main__"
).split()
INSIDE = {
    "kernels": "jit vector sums ranges metrics parse losses aggregate rank tracking",
    "io": "text hashed_voters compression files tables surveys sparse ballots battles contests features clicks preferences preflib ratings score_tables"
    " trec judged_scores evals formats several_files scanning",
    "aggregate": "places instances data_facts goal_verdict result resample likelihood pairs ballots mpm rules committees distance games method scores"
    " method_table defaults mixture sources asking data_in_parts proof consensus_door influence voter_pulls proof_door",
    "rank": "validation controls sklearn_conventions feature_tables tree_arrays query_rows monotone"
    " similarity saving fitting tier_probabilities probabilities ranker named_ranker linear trees boosting listwise torch fusion"
    " clicks choices multilabel search",
}
"""The order of the folders and files inside a room; those of the other rooms are free."""

FILES = sorted(path for path in ROOT.rglob("*.py") if path.parent != ROOT or path.name != "__init__.py")


def layer(module: str) -> int:
    name = module.split(".")[1]
    return LAYERS.index("cli" if name == "studio" else name)  # the two adapters stand on one level


def test_the_adapters_do_not_import_each_other():
    """What both need stands below them; only ``placet serve`` starts the studio."""
    for own, other in (("cli", "studio"), ("studio", "cli")):
        paths = [path for path in FILES if path.relative_to(ROOT).parts[0] == own]
        crossing = {f"{path.stem}: {name}" for path in paths for name in imported(path) if name.split(".")[1] == other}
        assert crossing == ({"serve: placet.studio.server.serve"} if own == "cli" else set())


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}:{node.lineno}: imports are absolute"
            assert all(alias.name != "*" for alias in node.names), f"{path.name}:{node.lineno}: no star imports"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.startswith("placet.") and name.split(".")[1] in LAYERS}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_imports_point_one_way(path):
    own = "placet." + ".".join(path.relative_to(ROOT).with_suffix("").parts)
    upward = {name for name in imported(path) if layer(name) > layer(own)}
    assert not upward, f"{own} imports from a later layer: {sorted(upward)}"


@pytest.mark.parametrize("room", INSIDE)
def test_imports_inside_a_room_point_one_way(room):
    order = INSIDE[room].split()
    upward = []
    for path in FILES:
        inside = path.relative_to(ROOT).with_suffix("").parts
        if inside[0] != room or inside[1] == "__init__":
            continue
        own = order.index(inside[1])
        for name in imported(path):
            parts = name.split(".")
            if parts[1] == room and len(parts) > 2 and parts[2] in order and order.index(parts[2]) > own:
                upward.append(f"{'/'.join(inside)} imports {name}")
    assert not upward, upward


@pytest.mark.parametrize(
    ("words", "heavy"),
    [
        (["--help"], {"numpy"}),
        (
            ["aggregate", "votes.ballots", "--method", "borda"],
            {"sklearn", "numba", "scipy.linalg", "scipy.special", "polars", "lightgbm", "jinja2"},
        ),
        (
            ["aggregate", "votes.csv"],
            {"sklearn", "pandas", "numba", "scipy.stats", "scipy.optimize", "scipy.special", "polars", "jinja2"},
        ),
        (["describe", "votes.ballots"], {"sklearn", "numba", "scipy", "polars"}),
        (["describe", "votes.csv"], {"sklearn", "numba", "scipy", "pandas"}),
        (["describe", "labels.txt"], {"sklearn", "numba", "scipy", "polars"}),
        (["evaluate", "scores.txt", "labels.txt"], {"sklearn", "numba", "scipy", "polars"}),
    ],
)
def test_small_commands_import_nothing_heavy(words, heavy, tmp_path):
    (tmp_path / "votes.ballots").write_text("3: A > B > C > D > E > F > G\n2: B > A = C\n")
    (tmp_path / "votes.csv").write_text("model_a,model_b,winner\nx,y,model_a\ny,x,tie\n")
    (tmp_path / "labels.txt").write_text("2 qid:1 1:0.5\n0 qid:1 2:0.1\n" * 2000)
    (tmp_path / "scores.txt").write_text("0.5\n0.1\n" * 2000)
    code = (
        "import sys\n"
        "from placet.cli import main\n"
        f"sys.argv = {['placet', *words]!r}\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code, stop.code\n"
        f"heavy = {heavy!r} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    own = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=own, check=False
    )
    assert done.returncode == 0, done.stderr


def test_no_command_imports_another():
    """What several commands share stands in cli/common."""
    commands = {path.stem for path in FILES if path.parent == ROOT / "cli"} - {"__init__"}
    crossing = {
        f"{command} imports {name}"
        for command in commands
        for name in imported(ROOT / "cli" / f"{command}.py")
        if name.split(".")[1] == "cli" and name.split(".")[2] in commands
    }
    assert not crossing


def test_a_folder_has_at_most_17_files():
    """A reader sees them all at a glance; what is more wants a folder of its own."""
    counts = {folder: len(list(folder.glob("*.py"))) for folder in [ROOT, *ROOT.rglob("*/")] if folder.is_dir()}
    full = {folder.relative_to(ROOT).as_posix(): count for folder, count in counts.items() if count > 17}
    assert not full
