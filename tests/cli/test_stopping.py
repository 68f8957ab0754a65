"""Signals end a command within two seconds, in Python and inside a step that notices nothing; memory runs out in words."""

import os
import resource
import signal
import subprocess
import sys
import time

import pytest

import placet
from placet.cli import app, main
from placet.cli.common import stopping
from placet.cli.common.stopping import GRACE, exit_code

BUSY = {
    "python": "while True: pass",
    "a sleep": "import time; time.sleep(60)",
    "a kernel": "deep(0)",
    "HiGHS": "import numpy as np, placet; rng = np.random.default_rng(0); "
    "placet.consensus(placet.Rankings.from_orders([rng.permutation(130).tolist() for _ in range(9)]), 'kemeny')",
    "LightGBM": "import lightgbm, numpy as np; X = np.random.default_rng(0).normal(size=(20_000, 20)); "
    "lightgbm.train({'verbosity': -1, 'num_leaves': 4000}, lightgbm.Dataset(X, X[:, 0]), 1000)",
    "threads": "from placet import threads; threads.set_threads(3); threads.map_ordered(lambda k: deep(0), 3)",
}
SCRIPT = """
import sys, time
from numba import njit
from placet.cli.common import stopping

stopping.GRACE = {grace}

@njit(nogil=True)
def deep(end):
    x = 1
    while x != end:
        x = (x * 3 + 1) % 1000003 + 1
    return x

def command():
    deep(5)  # the second value: it is compiled
    {imports}
    print("ready", flush=True)
    {busy}

stopping.run(command)
"""


# one handler answers both signals: SIGTERM is sent to Python's own loop and to a kernel alone
@pytest.mark.parametrize(
    ("where", "number"),
    [*((where, signal.SIGINT) for where in BUSY), ("python", signal.SIGTERM), ("a kernel", signal.SIGTERM)],
)
def test_a_signal_ends_it_wherever_it_is(where, number):
    first = BUSY[where].partition(";")[0]  # imports, which answer a signal in their own way
    imports = first if first.startswith("import") else ""
    grace = GRACE if (where, number) == ("a kernel", signal.SIGINT) else 0.2  # the others need not wait as long
    script = SCRIPT.format(imports=imports, busy=BUSY[where], grace=grace)
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(1.0 if where == "HiGHS" else 0.2)  # for it to begin
        process.send_signal(number)
        try:
            _, err = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    if where not in ("python", "a sleep"):
        assert process.returncode in (-signal.SIGKILL, 128 + number)
        assert process.returncode == 128 + number or "stopped" in err
    else:
        assert process.returncode == 128 + number
    assert "Traceback" not in err
    assert GRACE < 2


def test_a_signal_in_a_callback_which_drops_exceptions_is_not_lost():
    dropped = "ctypes.CFUNCTYPE(None)(lambda: [os.kill(os.getpid(), 15), *range(9)] and None)()"
    script = f"""
import ctypes, os, time
from placet.cli.common.stopping import run

def command():
    {dropped}
    time.sleep(30)

run(command)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (128 + signal.SIGTERM, "")


@pytest.mark.parametrize(("number", "code"), [(2, 130), (15, 143), (0, 1)])
def test_an_error_that_a_signal_causes_is_no_traceback(number, code):
    """As of an extension whose import was interrupted; an error of its own keeps its traceback."""
    script = f"""
import os, time
from placet.cli.common.stopping import run

def command():
    try:
        os.kill(os.getpid(), {number})
        time.sleep(0.1)
    except BaseException:
        raise ImportError("initialization failed")
    raise RuntimeError("no signal")

run(command)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == code
    assert ("Traceback" in done.stderr) == (number == 0)


def test_ctrl_c_among_the_imports_ends_without_a_word(tmp_path):
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), os.path.dirname(os.path.dirname(placet.__file__))]),
    }
    done = subprocess.run([sys.executable, "-m", "placet", "--version"], env=env, capture_output=True, text=True)
    assert done.returncode == -signal.SIGINT
    assert not done.stderr


def test_sigterm_keeps_the_best_model_as_ctrl_c_does(tmp_path):
    placet.io.write(placet.simulate.queries(30, 8, 3, noise=0.5, random_state=1), tmp_path / "train.letor")
    script = f"""
import os, signal, sys
from placet.cli import main
from placet.rank.validation import Best
see = Best.see
def then_signal(self, state):
    found = see(self, state)
    if self.steps == 3:
        os.kill(os.getpid(), signal.SIGTERM)
    return found
Best.see = then_signal
sys.argv = ["placet", "train", {str(tmp_path / "train.letor")!r}, "--save", {str(tmp_path / "model")!r}]
main()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "holds the best model so far" in done.stderr
    assert placet.load(tmp_path / "model").fit_summary_["interrupted"] is True


def test_memory_that_runs_out_is_said():
    script = "import numpy as np\nfrom placet.cli.common.stopping import run\nrun(lambda: np.ones((1 << 45,)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 2
    assert "memory ran out" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("nth", "code"), [(2, 143), (3, -signal.SIGTERM), (4, 130)])
def test_a_signal_at_the_very_start_or_end_leaves_no_traceback(nth, code):
    """Calls of signal.signal: the handlers of both signals, then what was there before."""
    script = f"""
import os, signal
from placet.cli.common.stopping import run
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has it ignored in the background
set_handler, calls = signal.signal, []
def then_signal(*args):
    calls.append(args)
    if len(calls) == {nth}:
        os.kill(os.getpid(), signal.SIGINT if {nth} == 4 else signal.SIGTERM) if {nth} != 2 else None
    found = set_handler(*args)
    if {nth} == 2 == len(calls):
        os.kill(os.getpid(), signal.SIGTERM)
    return found
signal.signal = then_signal
run(lambda: print("done"))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert "without a word" not in done.stderr


def test_exit_codes_are_those_of_shells():
    assert exit_code([], 2) == 2
    assert exit_code([signal.SIGTERM], 1) == 143
    assert exit_code([signal.SIGINT], 0) == 0  # the best model was saved


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("kind", ["trees", "neural"])
def test_a_child_after_a_fork_predicts_and_fits(kind):
    if kind == "neural":
        pytest.importorskip("torch")
    script = f"""
import os, sys, numpy as np, placet
from placet.rank import RANKERS
data = placet.simulate.queries(40, 8, 3, noise=0.5, random_state=1)
ranker = RANKERS[{kind!r}](**({{"n_trees": 5}} if {kind!r} == "trees" else {{"hidden": 8, "epochs": 2}}))
first = ranker.fit(data).predict(data)
child = os.fork()
if child == 0:
    try:
        same = np.array_equal(ranker.predict(data), first)
        again = RANKERS[{kind!r}](**ranker.get_params()).fit(data).predict(data)
        os._exit(0 if same and np.allclose(again, first, rtol=1e-4, atol=1e-5) else 3)
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(4)
assert os.waitpid(child, 0)[1] == 0
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("limit", "busy", "code", "words"),
    [
        (1 << 30, "pass", 2, "may take 1,024 MiB of addresses"),
        (None, "os.abort()", -signal.SIGABRT, "the process ended without a word"),
    ],
)
def test_little_memory_and_crashes_are_told(limit, busy, code, words):
    script = f"import os\nfrom placet.cli.common.stopping import run\ndef command():\n    {busy}\nrun(command)"

    def limited():
        if limit:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, preexec_fn=limited)
    assert done.returncode == code
    assert words in done.stderr


def names_of_commands(app, before=()):
    own = [(*before, command.name) for command in app.registered_commands]
    return own + [
        name for group in app.registered_groups for name in names_of_commands(group.typer_instance, (group.name,))
    ]


@pytest.mark.parametrize("words", names_of_commands(app), ids=" ".join)
def test_every_command_says_that_addresses_are_too_few(words, tmp_path, monkeypatch, capfd):
    (tmp_path / "votes.csv").write_text("model_a,model_b,winner\nx,y,model_a\n")
    monkeypatch.setattr("warnings.showwarning", None)
    monkeypatch.setattr(sys, "argv", ["placet", *words, str(tmp_path / "votes.csv")])
    monkeypatch.setattr(stopping, "limit_of_space", lambda: 1 << 30)
    with pytest.raises(SystemExit, match="2"):
        main()
    out, err = capfd.readouterr()
    assert "may take 1,024 MiB of addresses (ulimit -v)" in err
    assert not out
    assert [file.name for file in tmp_path.iterdir()] == ["votes.csv"]


def test_the_server_ends_by_its_own_handlers(monkeypatch):
    import placet.cli

    ran = []
    monkeypatch.setattr(placet.cli, "_run", lambda: ran.append("alone"))
    monkeypatch.setattr(placet.cli.common.stopping, "run", lambda command: ran.append("watched"))
    for words in (["placet", "serve", "x"], ["placet", "describe", "x"]):
        monkeypatch.setattr(sys, "argv", words)
        monkeypatch.setattr("warnings.showwarning", None)
        placet.cli.main()
    assert ran == ["alone", "watched"]
