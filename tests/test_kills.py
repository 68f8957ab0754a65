"""SIGKILL, at every step of writing a file: under its name there is what was there before, or all of what is new."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "fuzz"))
import kills

pytestmark = pytest.mark.skipif(not hasattr(kills.os, "fork"), reason="processes are not forked on this system")


@pytest.mark.parametrize(("what", "least"), [("train", 4), ("scan", 4)])
def test_a_killed_command_leaves_no_half_file(what, least):
    """A training over an earlier model; a fit of a scanned file that writes its checkpoint over an earlier one."""
    (_, tried, survived, _), wrong = kills.each_step(what)
    assert wrong == []
    assert tried == survived >= least  # within the file, before it is opened, before it is renamed, ...


IN_PLACE = """
import json, kills
from pathlib import Path
file = Path("file.json")
write = lambda letter: file.write_text(json.dumps(letter * 200))
read = lambda: None
print(json.dumps(kills.at_each_step(kills.Step("", file.name, lambda: write("a"), lambda: write("b"), read))))
"""


def test_a_half_file_is_seen(tmp_path):
    """The check itself: a file that is written under its own name is not whole after a kill in its middle."""
    path = {**kills.os.environ, "PYTHONPATH": f"{Path(kills.__file__).parent}:{kills.os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(
        [sys.executable, "-c", IN_PLACE], cwd=tmp_path, env=path, capture_output=True, text=True, check=True
    )
    assert "101 bytes written: a third file.json" in json.loads(done.stdout)["wrong"]


def test_a_killed_scheduler_is_an_error_that_names_a_checkpoint_to_go_on_from():
    pytest.importorskip("distributed")
    (_, tried, survived, _), wrong = kills.scheduler(quick=True)
    assert wrong == []
    assert tried == survived == 1
