"""Compiled kernels: what makes them stale, and where they are kept."""

import math
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

import placet.kernels.jit as jit


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    """A folder of three kernel modules: top calls middle, middle calls base."""
    (tmp_path / "base.py").write_text("ONE = 1\n")
    (tmp_path / "middle.py").write_text("from placet.kernels.base import ONE\n")
    (tmp_path / "top.py").write_text("import placet.kernels.middle as middle\n")
    (tmp_path / "aside.py").write_text("TWO = 2\n")
    monkeypatch.setattr(jit, "FOLDER", tmp_path)
    jit.source_stamp.cache_clear()
    yield tmp_path
    jit.source_stamp.cache_clear()


def test_an_edit_anywhere_below_makes_a_kernel_stale_and_leaves_the_others(kernels):
    before = {name: jit.source_stamp(name) for name in ("top", "middle", "base", "aside")}
    (kernels / "base.py").write_text("ONE = 1.0\n")
    jit.source_stamp.cache_clear()
    stale = {name for name, stamp in before.items() if jit.source_stamp(name) != stamp}
    assert stale == {"top", "middle", "base"}


def test_every_kernel_module_is_compiled_through_one_helper():
    for file in Path(jit.__file__).parent.rglob("*.py"):
        assert file.name == "jit.py" or "njit(cache" not in file.read_text(), file.name


FIT = "import placet; print(placet.consensus(placet.Rankings.from_orders([['a', 'b'], ['b', 'a', 'c']])).ranking[0])"


def _run(env):
    return subprocess.run(
        [sys.executable, "-c", FIT], env=env, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_it_starts_where_no_folder_can_be_written(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    env = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(blocked / "a"),
        "XDG_CACHE_HOME": str(blocked / "b"),
        "TMPDIR": str(blocked / "c"),
    }
    script = f"import placet.kernels.jit as jit; from pathlib import Path; jit.FOLDER = Path({str(blocked)!r})\n"
    script += "import tempfile; tempfile.gettempdir = lambda: " + repr(str(blocked)) + "\n"
    script += "assert jit.cache_folder() is None\n" + FIT
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() in "ab"


def test_compiled_code_is_never_loaded_from_a_folder_that_others_may_write(tmp_path):
    tmp_path.chmod(0o777)
    assert not jit._ours(tmp_path)
    tmp_path.chmod(0o700)
    assert jit._ours(tmp_path)


def test_a_second_process_finds_what_the_first_compiled(tmp_path):
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    first = _run(env)
    files = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.nbc")}
    assert files
    assert _run(env) == first
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.nbc")} == files


@jit.jit()
def below(x, at):
    """A part: of it there is machine code within `above` only."""
    if x[at] < 0:
        raise ValueError("negative")
    return math.sqrt(x[at])


@jit.jit()
def above(x, at):
    return 2.0 * below(x, at)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_what_a_kernel_calls_is_compiled_within_it_and_by_itself_once_python_calls_it():
    x = np.array([4.0, -1.0])
    assert above(x, 0) == 4.0
    assert not below.overloads
    with pytest.raises(ValueError, match="negative"):
        above(x, 1)
    assert below(x, 0) == 2.0
    with pytest.raises(ValueError, match="negative"):
        below(x, 1)
    assert len(below.overloads) == 1
    assert not above._part.overloads


CURVED = """
import numpy as np
from placet.losses import Bound
from placet.data import Lists
bound = Bound("pl-lower-bound", Lists(np.array([2.0, 2.0, 1.0, 0.0, 0.0]), np.array([0, 5]), np.ones(1)))
s = np.array([0.5, -0.25, 0.125, 0.0, 1.0])
print(*({asked}))
"""


@pytest.mark.jit
def test_parts_on_disk_serve_kernels_that_are_compiled_later(tmp_path):
    """A second process compiles the curvature from what the first lowered for the value, and gives the same."""
    one = tmp_path / "one"

    def run(asked, folder):
        env = {**os.environ, "NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)}
        code = CURVED.replace("{asked}", asked)
        return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout

    def parts():
        return {file.name: file.stat().st_mtime_ns for file in one.rglob("*tier_stages*part*")}

    assert run("bound.value_and_grad(s)[1]", one)
    lowered = parts()
    assert lowered
    assert run("bound.curvature(s)", one) == run("bound.curvature(s)", tmp_path / "other")
    assert parts() == lowered


TOLD = """
import gc
from placet import kernels
kernels.tell_when_compiling(lambda: print("told"))
import numpy as np
from placet.kernels import ranges
print(ranges.longest(np.array([0, 2, 7])), ranges.longest(np.array([0, 2], np.int32)), gc.isenabled())
"""


def test_the_first_compilation_is_told_once_and_not_where_kernels_are_kept(tmp_path):
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    lines = [
        subprocess.run([sys.executable, "-c", TOLD], env=env, capture_output=True, text=True, check=True).stdout.split()
        for _ in range(2)
    ]
    assert lines == [["told", "5", "2", "True"], ["5", "2", "True"]]
