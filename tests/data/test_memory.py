"""Memory is known before it is spent: of the machine, control groups and limits; methods refuse in numbers."""

import io
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import placet
from placet.aggregate import MODELS, RULES
from placet.aggregate.result import separation
from placet.aggregate.rules import linear_order
from placet.data import DataError
from placet.data.engines import memory
from placet.losses import LOSSES
from placet.metrics import METRICS, interrater
from placet.rank import probabilities

GB = 10**9


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def nearly_full(monkeypatch, left):
    """A machine with this many bytes left, of which even small tables are asked for."""
    monkeypatch.setattr(memory, "available", lambda root=None: left)
    monkeypatch.setattr(memory, "SMALL", 0)


MACHINE = {"proc/meminfo": "MemTotal: 9000000 kB\nMemAvailable:    4000000 kB\n"}


@pytest.mark.parametrize(
    ("files", "left"),
    [
        ({}, None),
        (MACHINE, 4096000000),
        ({**MACHINE, "sys/fs/cgroup/memory.max": "3000000000\n", "sys/fs/cgroup/memory.current": "1000000000\n"}, 2 * GB),
        ({**MACHINE, "sys/fs/cgroup/memory.max": "max\n", "sys/fs/cgroup/memory.current": "1000000000\n"}, 4096000000),
        (
            {
                **MACHINE, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "2000000000\n",
                "sys/fs/cgroup/a/b/memory.current": "1900000000\n", "sys/fs/cgroup/a/b/memory.stat": "anon 5\ninactive_file 400000000\n",
            },
            GB // 2,
        ),
        ({"sys/fs/cgroup/memory/memory.limit_in_bytes": "3000000000\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "2500000000\n"}, GB // 2),
        ({"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "25\n"}, None),
    ],
)  # fmt: skip
def test_what_is_left_is_the_least_of_all_limits(tmp_path, files, left):
    assert memory.available(write(tmp_path, files)) == left


def test_the_limit_of_addresses_counts():
    script = "import resource; resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))\nfrom placet.data.engines.memory import available; print(available())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert 0 < int(done.stdout) < 8 << 30


@pytest.fixture
def cyclic():
    """Ballots of 60 items that are one component: no order is without contradiction."""
    rng = np.random.default_rng(0)
    return placet.Rankings.from_orders([rng.permutation(60).tolist() for _ in range(7)])


LINEAR = {  # what they hold grows as the ballots do, or as ballots times items
    *(
        "cps",
        "svp",
        "borda",
        "plurality",
        "anti-plurality",
        "log",
        "squared",
        "positional",
        "median-rank",
        "mode",
        "rrf",
    ),
    *("combsum", "combmnz", "irv", "stv", "bucklin", "star", "approval", "dowdall"),
    *("pav", "seq-pav", "rev-seq-pav", "phragmen", "equal-shares", "chamberlin-courant"),
}


@pytest.mark.parametrize("method", [name for name in (*MODELS, *RULES) if name not in LINEAR])
def test_methods_refuse_what_they_cannot_hold(method, monkeypatch):
    rng = np.random.default_rng(0)
    votes = placet.Rankings.from_orders([rng.permutation(6).tolist() for _ in range(7)])
    nearly_full(monkeypatch, 100)
    with pytest.raises(DataError, match=r"needs about 0.* GB of memory, and 0.000 GB are left; .*(fewer|other|method)"):
        placet.consensus(votes, method)


def test_an_exact_kemeny_order_says_what_its_programs_need(cyclic, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda root=None: 2_000_000)  # enough for the pairs, not for the programs
    with monkeypatch.context() as before_the_work:
        before_the_work.delattr(linear_order, "search")
        with pytest.raises(
            DataError, match="exact Kemeny order of a component of .. items needs about 0.009 GB.*kemeny-local"
        ):
            placet.consensus(cyclic, "kemeny")
    assert len(placet.consensus(cyclic, "kemeny-local").ranking) == 60


def test_networks_and_products_of_features_refuse_what_they_cannot_hold(monkeypatch):
    data = placet.simulate.queries(6, 4, 3, random_state=1)
    nearly_full(monkeypatch, 100)
    with pytest.raises(DataError, match="products of all pairs of 3 features needs about .* leave second_order out"):
        placet.rank.LinearRanker(second_order=1).fit(data)
    pytest.importorskip("torch")
    with pytest.raises(DataError, match="network of layers of sizes 51, 16, 1 needs about .* take narrower layers"):
        placet.rank.NeuralRanker(hidden=8, epochs=1).fit(data)


SPARSE = csr_matrix(np.eye(9, 4))
ALL_TIED = placet.data.Lists(np.zeros(9), [0, 9])
ROWS = placet.simulate.queries(3, 3, 4, random_state=1)
BALLOTS = placet.Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]])
BEYOND = {  # what grows faster than the data: tables of pairs, dense copies, one column for each value
    "loss pmop-exact": lambda: placet.losses.Bound("pmop-exact", ALL_TIED),
    "loss neural-ndcg": lambda: placet.losses.Bound("neural-ndcg", ALL_TIED, {"sinkhorn": 1}),
    "alpha_ndcg": lambda: METRICS["alpha_ndcg"](np.zeros(9), SPARSE, [0, 9]),
    "err_ia": lambda: METRICS["err_ia"](np.zeros(9), SPARSE, [0, 9]),
    "krippendorff": lambda: interrater.krippendorff_alpha(np.eye(5)),
    "kendall_w": lambda: interrater.kendall_w(BALLOTS),
    "places": lambda: probabilities.place_probabilities(np.zeros(9)),
    "tiers": lambda: probabilities.most_probable_tiers(np.zeros(9), "davidson", {}),
    "completed": lambda: BALLOTS.completed(),
    "table of features": lambda: placet.io.write_features(replace(ROWS, X=csr_matrix(ROWS.X)), io.BytesIO()),
    "votes with variances": lambda: placet.simulate.multinomial_preferences(np.zeros(9), 5, gamma=np.arange(1.0, 10), random_state=0),
    "differences": lambda: separation.difference_errors(np.ones(9), None, None),
}  # fmt: skip


@pytest.mark.parametrize("what", BEYOND)
def test_tables_that_outgrow_the_data_are_refused_before_they_are_made(what, monkeypatch):
    nearly_full(monkeypatch, 40)
    with pytest.raises(DataError, match=r"needs about 0.* GB of memory, and 0.000 GB are left; "):
        BEYOND[what]()


def test_losses_state_the_tables_that_they_hold():
    """Kernels of the other losses hold a few numbers for every row of a list."""
    columns = placet.losses.Bound("listmle", ALL_TIED).columns
    plans = {name: loss.plan(columns) for name, loss in LOSSES.items()}
    assert {name: plan.scratch for name, plan in plans.items() if plan.scratch} == {"pmop-exact": 3 * 9**2}
    assert LOSSES["neural-ndcg"].plan(columns, sinkhorn=50).scratch == 2 * 9 * (9 + 50)


def test_small_tables_do_not_ask_the_system(monkeypatch):
    monkeypatch.setattr(memory, "available", None)
    memory.refuse_square(100, "a table", "take fewer")


HELD = """
import ctypes, sys, threading
import numpy as np
from placet.data.engines.memory import return_freed_memory
from pathlib import Path

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

kept = []
def work():
    blocks = [np.ones(8_000) for _ in range(2_000)]  # 128 MB in blocks too small to be mapped by themselves
    kept.append(blocks[-1])  # at the end of the pool, so that nothing before it is returned

thread = threading.Thread(target=work)
thread.start(), thread.join()
before = resident()
return_freed_memory()
print((before - resident()) / 2**20)
"""


@pytest.mark.skipif(not hasattr(memory.ctypes.CDLL(None), "malloc_trim"), reason="the C library keeps what is freed")
def test_what_a_thread_freed_goes_back_to_the_system():
    said = subprocess.run([sys.executable, "-c", HELD], capture_output=True, text=True, check=True).stdout
    assert float(said) > 80
