"""Threads: how many there are, that they survive a fork, and that small algebra keeps to one."""

import os
import subprocess
import sys

import numpy as np
import pytest

import placet
from placet import threads


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 4.0),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({}, None),
    ],
)
def test_cores_are_counted_by_the_quota(tmp_path, files, cores):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert threads.cpu_quota(tmp_path) == cores


def test_cores_are_counted_by_affinity():
    script = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nfrom placet import threads; print(threads.get_threads())"
    env = {k: v for k, v in os.environ.items() if k != "PLACET_THREADS"}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"


def test_a_wrong_number_of_threads_is_refused():
    env = {**os.environ, "PLACET_THREADS": "many"}
    done = subprocess.run([sys.executable, "-c", "import placet.threads"], env=env, capture_output=True, text=True)
    assert "PLACET_THREADS must be a whole number of at least 1, not 'many'" in done.stderr


def test_work_goes_on_in_a_child_after_a_fork():
    script = """
import os
from placet import threads
threads.set_threads(4)
assert threads.map_ordered(lambda k: k * k, 100)[9] == 81
child = os.fork()
if child == 0:
    os._exit(0 if threads.map_ordered(lambda k: k + 1, 100)[99] == 100 else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", script], check=True, timeout=60)


def test_small_algebra_keeps_to_one_thread():
    from threadpoolctl import threadpool_info

    np.linalg.inv(np.eye(3))
    with threads.algebra_threads(100):
        inside = [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]
    assert set(inside) == {1}


def test_a_ranker_fitted_to_a_small_table_keeps_to_one_thread():
    from threadpoolctl import threadpool_info

    seen = set()

    def note(*_):
        seen.update(lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas")

    placet.rank.LinearRanker("ranknet").fit(placet.simulate.queries(40, 10, 30, random_state=0), progress=note)
    assert seen == {1}


def test_a_public_name_sets_the_threads():
    before = threads.get_threads()
    try:
        placet.set_threads(3)
        assert threads.get_threads() == 3
    finally:
        placet.set_threads(before)


def _algebra():
    from threadpoolctl import threadpool_info

    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


@pytest.mark.parametrize(("items", "expected"), [(100, 1), (3000, 2), (5000, 1)])
def test_several_threads_solve_dense_systems_alone(items, expected):
    """Few items gain nothing from more threads; beyond MOST_DENSE a fit only multiplies vectors, where they would wait."""
    from placet.aggregate import METHODS
    from placet.aggregate.consensus_door import _algebra as algebra_of

    before = threads.get_threads()
    threads.set_threads(2)
    try:
        with algebra_of(METHODS["bradley-terry"], items):
            assert _algebra() == {expected}
    finally:
        threads.set_threads(before)


def test_threads_that_come_and_go_leave_algebra_as_it_was():
    """A comes, B comes, A goes, B goes: B still has one thread, and afterwards there are as many as before."""
    from threadpoolctl import threadpool_limits

    with threads.algebra_threads():
        pass  # the libraries are found
    with threadpool_limits(2, user_api="blas"):
        first, second = threads.algebra_threads(), threads.algebra_threads(10)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert _algebra() == {1}
        second.__exit__(None, None, None)
        assert _algebra() == {2}


@pytest.mark.jit
@pytest.mark.parametrize("solver", ["lbfgs", "newton"])
def test_bytes_of_rankers_do_not_follow_the_threads_of_algebra(solver):
    from threadpoolctl import threadpool_limits

    from placet.rank import LinearRanker

    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(20_000, 60)), rng.integers(0, 3, 20_000), np.repeat(np.arange(1000), 20)
    found = []
    for n in (1, 2):
        with threadpool_limits(n, user_api="blas"):
            ranker = LinearRanker("pmop-fd", solver=solver)
            found.append(ranker.fit(X, y, qid=qid).predict(X).tobytes())
    assert found[0] == found[1]


@pytest.mark.jit
def test_bytes_of_errors_do_not_follow_any_threads():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 700, 9000)
    b = (a + rng.integers(1, 700, 9000)) % 700
    votes = placet.Comparisons.from_battles(a, b, np.where(rng.random(9000) < 0.5, "a", "b"))
    before, found = threads.get_threads(), []
    try:
        for n in (1, 3):
            placet.set_threads(n)
            result = placet.consensus(votes, "bradley-terry")
            found.append((result.scores.tobytes(), result.stderr.tobytes()))
    finally:
        placet.set_threads(before)
    assert found[0] == found[1]
