"""Imports point one way: a module may import modules of its own layer and of the layers before it."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import placet

ROOT = Path(placet.__file__).parent
LAYERS = (
    "data threads kernels io losses optim metrics aggregate rank axioms tracking simulate scale report cli studio __main__"
).split()
FILES = sorted(path for path in ROOT.rglob("*.py") if path.parent != ROOT or path.name != "__init__.py")


def layer(module: str) -> int:
    name = module.split(".")[1]
    return LAYERS.index("cli" if name == "studio" else name)  # the two adapters stand on one level


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


def test_a_rule_starts_without_scikit_learn_and_numba(tmp_path):
    (tmp_path / "votes.ballots").write_text("3: A > B > C > D > E > F > G\n2: B > A = C\n")
    code = (
        "import sys\n"
        "from placet.cli import main\n"
        f"sys.argv = ['placet', 'aggregate', {str(tmp_path / 'votes.ballots')!r}, '--method', 'borda']\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code, stop.code\n"
        "heavy = {'sklearn', 'numba', 'scipy.stats', 'scipy.optimize', 'lightgbm', 'torch'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
