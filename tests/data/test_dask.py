"""A real cluster of processes: the bytes of one process, whatever happens to workers; errors that say what is wrong."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import placet
from placet.data import DataError, Parts, Rankings
from placet.data.engines import EngineError, dask
from placet.data.engines.dask_cluster import FAN_IN, _block_size, _merge
from placet.data.engines.serial import add

distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.filterwarnings("ignore::Warning:distributed"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Creating scratch directories is taking"),  # on a busy machine
    pytest.mark.filterwarnings("ignore:Port [0-9]+ is already in use"),
]


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def files(tmp_path):
    import polars as pl

    rng = np.random.default_rng(1)
    strength = rng.normal(size=12)
    for k in range(5):
        user = np.repeat(np.arange(30 * k, 30 * k + 30), 4)
        item = np.concatenate([rng.permutation(12)[:4] for _ in range(30)])
        rating = np.clip(np.round(3 + strength[item] + rng.normal(size=120)), 1, 5)
        pl.DataFrame({"user": user, "item": [f"m{i}" for i in item], "rating": rating}).write_parquet(
            tmp_path / f"{k}.parquet"
        )
    return tmp_path / "*.parquet"


def test_the_same_bytes_as_one_process(client, files):
    alone = placet.consensus(placet.scan(files), "plackett-luce")
    parts = placet.scan(files, engine=client)
    told = []
    there = placet.consensus(parts.watched(told.append), "plackett-luce")
    for name in ("scores", "covariance", "support"):
        assert getattr(there, name).tobytes() == getattr(alone, name).tobytes()
    assert there.notes == alone.notes
    assert sum(one.bytes_read for one in told) > 0
    assert told[-1].bytes_read <= parts.n_bytes


@pytest.mark.parametrize("method", ["mpm", "borda", "bradley-terry", "irv", "copeland"])
def test_every_kind_of_sum(client, files, method):
    alone = placet.consensus(placet.scan(files), method, bootstrap=2)
    there = placet.consensus(placet.scan(files), method, bootstrap=2, engine=dask(client))
    assert there.scores.tobytes() == alone.scores.tobytes()
    assert there.draws.tobytes() == alone.draws.tobytes()


def test_a_linear_ranker_has_the_same_bytes(client, tmp_path):
    from placet.rank import LinearRanker

    placet.io.write_letor(placet.simulate.queries(40, 8, 3, noise=0.5, random_state=2), tmp_path / "q.letor")
    parts = placet.scan(tmp_path / "q.letor", part_bytes=2000)
    alone = LinearRanker("ranknet").fit(parts, valid=parts)
    there = LinearRanker("ranknet").fit(parts, valid=parts.on(client), engine=client)
    assert len(parts) > 4
    assert there.coef_.tobytes() == alone.coef_.tobytes()
    assert there.predict(parts.on(client)).tobytes() == alone.predict(parts).tobytes()


def test_trees_grow_on_all_workers_together(client, tmp_path):
    from placet.rank import TreeRanker

    data = placet.simulate.queries(80, 10, 4, noise=0.4, random_state=2)
    placet.io.write_letor(data[:60], tmp_path / "q.letor")
    parts, valid = placet.scan(tmp_path / "q.letor", part_bytes=4000), data[60:]
    how = {"n_trees": 12, "min_rows": 5, "leaves": 8, "subsample": 1.0, "feature_fraction": 1.0}  # draws differ there
    alone = TreeRanker("pmop-fd", **how, backend="lightgbm").fit(data[:60])
    there = TreeRanker("pmop-fd", **how).fit(parts, engine=client)
    assert len(parts) > 4
    assert there.n_trees_ == 12
    assert np.corrcoef(there.predict(valid), alone.predict(valid))[0, 1] > 0.99
    kept = TreeRanker("pmop-fd", **how).fit(parts, valid=valid, engine=client)
    assert kept.score(valid) == pytest.approx(kept.fit_summary_["validation"])
    assert kept.score(valid) >= there.score(valid)
    assert kept.n_trees_ <= 12


def test_a_worker_killed_while_trees_grow(client, tmp_path):
    """LightGBM cannot go on without a worker: an error that says so, soon, and the next fit works."""
    from placet.rank import TreeRanker

    placet.io.write_letor(placet.simulate.queries(60, 10, 4, noise=0.4, random_state=2), tmp_path / "q.letor")
    parts = placet.scan(tmp_path / "q.letor", part_bytes=4000)
    before = TreeRanker("pmop-fd", n_trees=3, min_rows=5).fit(parts, engine=client)
    pids = client.run(os.getpid)
    address, victim = sorted(pids.items())[0]
    ended = threading.Event()

    def kill_when_growing():
        while not ended.wait(0.05):
            if any(str(key).startswith("together-") for key in client.processing().get(address, ())):
                ended.wait(0.3)
                os.kill(victim, signal.SIGKILL)
                return

    killer = threading.Thread(target=kill_when_growing)
    killer.start()
    try:
        with pytest.raises(EngineError, match=rf"worker {address} was lost while all worked together.*fit again"):
            TreeRanker("pmop-fd", n_trees=200_000, min_rows=5).fit(parts, engine=client)
    finally:
        ended.set()
        killer.join()
    client.wait_for_workers(2, timeout=300)
    assert victim not in client.run(os.getpid).values()
    again = TreeRanker("pmop-fd", n_trees=3, min_rows=5).fit(parts, engine=client)
    X = parts[0].X
    np.testing.assert_allclose(again.predict(X), before.predict(X), rtol=1e-9)


def test_a_worker_killed_in_the_third_pass(client, files):
    alone = placet.consensus(placet.scan(files), "plackett-luce")
    pids = client.run(os.getpid)
    victim = sorted(pids.values())[0]
    killed = []

    def watch(done):
        if done.name == "objective" and not killed:
            objectives.append(done)
            if len(objectives) == 2:  # the next pass is the third
                killed.append(victim)
                threading.Timer(0.005, os.kill, (victim, signal.SIGKILL)).start()

    objectives = []
    there = placet.consensus(placet.scan(files).on(client).watched(watch), "plackett-luce")
    assert killed == [victim]
    assert victim not in client.run(os.getpid).values()
    assert there.scores.tobytes() == alone.scores.tobytes()
    assert there.covariance.tobytes() == alone.covariance.tobytes()


def test_all_workers_lost_leaves_a_checkpoint(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with (
        distributed.LocalCluster(n_workers=0, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as own,
    ):
        command = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address, "--no-nanny"]
        worker = subprocess.Popen([*command, "--nthreads", "1", "--no-dashboard"], stderr=subprocess.DEVNULL)
        try:
            engine = dask(own, patience=300)
            engine.patience = 1.0

            def watch(done):
                if done.name == "objective" and done.number > 3 and worker.poll() is None:
                    worker.kill()
                    worker.wait()

            with pytest.raises(EngineError, match=r"all workers are lost.*start=") as caught:
                placet.consensus(placet.scan(files).on(engine).watched(watch), "plackett-luce")
        finally:
            worker.kill()
            worker.wait()
    assert len(json.loads(pathlib.Path(caught.value.checkpoint).read_text())["scores"]) == 12
    whole = placet.consensus(placet.scan(files), "plackett-luce")
    again = placet.consensus(placet.scan(files), "plackett-luce", start=caught.value.checkpoint)
    assert again.fit.n_iter <= whole.fit.n_iter
    np.testing.assert_allclose(again.scores, whole.scores, atol=1e-8)


def test_a_file_that_changes_is_named_by_a_worker(client, files):
    parts = placet.scan(files, engine=client)
    path = parts.pieces[2].name
    with open(path, "ab") as file:
        file.write(b"x")
    with pytest.raises(DataError, match=r"2\.parquet: the file has changed"):
        placet.consensus(parts, "borda")


def test_workers_with_another_version_or_none_are_named(client, monkeypatch):
    monkeypatch.setattr(placet, "__version__", "9.9")
    with pytest.raises(EngineError, match=r"worker tcp://.* has Placet 0\.1\.0, and this process has 9\.9"):
        dask(client)
    monkeypatch.undo()
    address = sorted(client.run(os.getpid))[0]  # those that answer
    client.run(_hide, workers=[address])
    try:
        with pytest.raises(EngineError, match=rf"worker {address} has no Placet .*install placet==0\.1\.0"):
            dask(client)
    finally:
        client.run(_show, workers=[address])


def _hide():
    sys.modules["hidden"] = sys.modules.pop("placet", None)
    sys.modules["placet"] = None


def _show():
    sys.modules.pop("placet")
    if sys.modules.get("hidden") is not None:
        sys.modules["placet"] = sys.modules.pop("hidden")


def test_each_worker_has_its_share_of_threads(client):
    client.wait_for_workers(2, timeout=300)  # one may have been killed by another test
    parts = Parts.of([Rankings.from_orders([["a", "b"]])] * 4, engine=client)
    assert parts.sum(_threads) == [max(1, placet.threads.usable_cores() // 2)] * 4


def _threads(data):
    from placet.threads import get_threads

    return [get_threads()]


def test_tasks_have_names(client, files):
    names = []
    submit = client.submit
    client.submit = lambda *args, **more: names.append(more["key"]) or submit(*args, **more)
    try:
        placet.consensus(placet.scan(files), "borda", engine=client)
    finally:
        del client.submit
    assert any(name.startswith("points-pass") and "part00000" in name for name in names)
    assert any(name.startswith("add_points-pass") for name in names)
    assert sum(name.startswith("x-points-pass") for name in names) == 1  # theta is sent once


def test_blocks_of_parts_keep_the_tree():
    from placet.data.engines.serial import tree

    for n in (*range(1, 50), 70, 200):
        for workers in (1, 2, 3):
            size = _block_size(n, workers)
            values = [(str(k),) for k in range(n)]
            merge = lambda a, b: (f"({a[0]} {b[0]})",)  # noqa: E731
            blocks = [tree(values[k : k + size], merge) for k in range(0, n, size)]
            assert tree(blocks, merge) == tree(values, merge)
            assert len(blocks) >= min(n, 4 * workers)
        results = [(value, 1) for value in values]
        while len(results) > 1:
            results = [_merge(merge, results[k : k + FAN_IN]) for k in range(0, len(results), FAN_IN)]
        assert results == [(tree(values, merge), n)]
    assert add((1, [2]), (3, [4])) == (4, [2, 4])


def test_importing_placet_does_not_import_dask():
    code = "import placet, placet.data.engines, sys; print('distributed' in sys.modules or 'dask' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
        == "False"
    )


def test_the_command_takes_a_cluster(client, files):
    address = client.scheduler.address
    code = f"import sys; sys.argv = ['placet', 'aggregate', {str(files)!r}, '--dask', {address!r}, '-m', 'borda']; from placet.cli import main; main()"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "5 parts, " in run.stderr
    assert f" read by {address}" in run.stderr
    assert len(run.stdout.splitlines()) == 13


def test_a_lost_scheduler_knows_no_workers():
    """Its client answers without any, which is no KeyError: the pass then ends in an `EngineError`."""
    from types import SimpleNamespace

    from placet.data.engines.dask_cluster import Dask

    engine = object.__new__(Dask)
    engine.client = SimpleNamespace(scheduler_info=lambda n_workers: {"type": "Scheduler", "id": None})
    assert engine._workers() == {}
