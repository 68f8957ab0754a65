"""Large files: counting, votes end to end, ballots on a cluster, features out of core; side by side in one run.

    python -m benchmarks.bench_scale [part ...] [--quick]

Every contestant runs in its own process: first on a few rows, for imports and compilation, then on all rows.  Seconds and CPU
seconds (of all its threads and child processes) are those of the second run; peak memory is that of the whole process, including
imports.  Files are written to a temporary folder and removed.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.harness import RESULTS, main

FEATURES = 50
PRIOR = 2.0  # a fixed prior, because learning it takes several fits


# Files


def make_votes(folder: Path, n: int, models: int = 200) -> None:
    """Write votes of about 28 bytes each as CSV, and the same as Parquet."""
    import polars as pl

    rng = np.random.default_rng(0)
    strength = rng.normal(size=models)
    names = np.array([f"model-{k:03d}" for k in range(models)])
    a, b = rng.integers(0, models, n), rng.integers(0, models - 1, n)
    b += b >= a
    won = rng.random(n) < 1 / (1 + np.exp(strength[b] - strength[a]))
    winner = np.where(rng.random(n) < 0.2, "tie", np.where(won, "model_a", "model_b"))
    frame = pl.DataFrame({"model_a": names[a], "model_b": names[b], "winner": winner})
    frame.write_csv(folder / "votes.csv")
    frame.write_parquet(folder / "votes.parquet")


def make_ballots(folder: Path, n: int, items: int = 500, files: int = 8) -> None:
    """Write ratings of 5 items each, many of them tied, in several files."""
    import polars as pl

    rng = np.random.default_rng(1)
    strength = rng.normal(size=items)
    for k, own in enumerate(np.array_split(np.arange(n), files)):
        user = np.repeat(own, 5)
        item = (rng.integers(0, items, (len(own), 1)) + np.arange(5) * 97) % items
        rating = np.clip(np.round(3 + strength[item.ravel()] + rng.normal(size=len(user))), 1, 5)
        frame = pl.DataFrame({"user": user, "item": item.ravel(), "rating": rating})
        frame.write_parquet(folder / f"ballots-{k}.parquet")


def make_queries(folder: Path, rows: int, files: int = 8) -> None:
    """Write graded rows, 20 per query, in several files."""
    import polars as pl

    rng = np.random.default_rng(2)
    w = rng.normal(size=FEATURES)
    for k, own in enumerate(np.array_split(np.arange(rows // 20), files)):
        X = rng.normal(size=(20 * len(own), FEATURES))
        grade = np.clip(np.round(X @ w / 5 + 1 + rng.normal(size=len(X))), 0, 4)
        columns = {f"f{j}": X[:, j] for j in range(FEATURES)}
        pl.DataFrame({"qid": np.repeat(own, 20), "label": grade, **columns}).write_parquet(
            folder / f"queries-{k}.parquet"
        )


# Contestants: functions of the folder, each run in its own process; their return values are printed


def count_placet_parquet(folder: Path) -> int:
    import placet

    return len(placet.read_battles(folder / "votes.parquet"))


def count_placet_csv(folder: Path) -> int:
    import placet

    return len(placet.read_battles(folder / "votes.csv"))


def count_parts_csv(folder: Path) -> int:
    import placet

    return placet.scan(folder / "votes.csv").n_lists


def _count_polars(scan) -> int:
    return len(scan.group_by("model_a", "model_b", "winner").len().collect(engine="streaming"))


def count_polars_parquet(folder: Path) -> int:
    import polars as pl

    return _count_polars(pl.scan_parquet(folder / "votes.parquet"))


def count_polars_csv(folder: Path) -> int:
    import polars as pl

    return _count_polars(pl.scan_csv(folder / "votes.csv"))


def _count_duckdb(path: Path) -> int:
    import duckdb

    return len(duckdb.sql(f"select model_a, model_b, winner, count(*) from '{path}' group by all").fetchall())


def count_duckdb_parquet(folder: Path) -> int:
    return _count_duckdb(folder / "votes.parquet")


def count_duckdb_csv(folder: Path) -> int:
    return _count_duckdb(folder / "votes.csv")


def votes_placet(folder: Path) -> str:
    import placet

    return placet.consensus(placet.read_battles(folder / "votes.csv"), "bradley-terry").ranking[0]


def votes_arena_rank(folder: Path) -> str:
    import pandas as pd
    from arena_rank.models.bradley_terry import BradleyTerry
    from arena_rank.utils.data_utils import PairDataset

    data = PairDataset.from_pandas(pd.read_csv(folder / "votes.csv"))
    model = BradleyTerry(n_competitors=len(data.competitors))
    table = model.compute_ratings_and_cis(data, significance_level=0.05)
    return str(table["competitors"][int(np.argmax(np.asarray(table["ratings"])))])


def votes_choix_pandas(folder: Path) -> str:
    import choix
    import pandas as pd

    frame = pd.read_csv(folder / "votes.csv")
    codes, names = pd.factorize(pd.concat([frame.model_a, frame.model_b]))
    a, b = codes[: len(frame)], codes[len(frame) :]
    won = np.zeros((len(names), len(names)))
    won_a, tied = (frame.winner == "model_a").to_numpy(), (frame.winner == "tie").to_numpy()
    np.add.at(won, (np.where(won_a, a, b), np.where(won_a, b, a)), np.where(tied, 0.5, 1.0))
    np.add.at(won, (np.where(won_a, b, a), np.where(won_a, a, b)), np.where(tied, 0.5, 0.0))
    return str(names[np.argmax(choix.ilsr_pairwise_dense(won, alpha=0.01))])


def ballots_serial(folder: Path) -> dict:
    import placet

    told: list = []
    parts = placet.scan(str(folder / "ballots-*.parquet")).watched(told.append)
    start = time.perf_counter()
    result = placet.consensus(parts, "plackett-luce", prior=PRIOR)
    return {"fit seconds": time.perf_counter() - start, "passes": len(told), "digest": hash(result.scores.tobytes())}


def ballots_one_thread(folder: Path) -> dict:
    from placet.threads import set_threads

    set_threads(1)
    return ballots_serial(folder)


def ballots_dask(folder: Path) -> dict:
    from distributed import Client, LocalCluster

    import placet
    from placet.data.engines import dask

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        engine = dask(client)
        told: list = []
        parts = placet.scan(str(folder / "ballots-*.parquet"), engine=engine).watched(told.append)
        start = time.perf_counter()
        result = placet.consensus(parts, "plackett-luce", prior=PRIOR)
        seconds = time.perf_counter() - start
        idle = []
        for _ in range(20):
            begin = time.perf_counter()
            parts.sum(_nothing)
            idle.append(time.perf_counter() - begin)
        overhead = float(np.median(idle))
    digest = hash(result.scores.tobytes())
    return {"fit seconds": seconds, "passes": len(told) - 20, "overhead of a pass": overhead, "digest": digest}


def _nothing(data) -> float:
    return 0.0


def linear_memory(folder: Path) -> dict:
    import placet
    from placet.rank import LinearRanker

    return {"weights": LinearRanker("pmop-fd").fit(placet.read(str(folder / "queries-*.parquet"))).coef_.tolist()}


def linear_parts(folder: Path) -> dict:
    import placet
    from placet.rank import LinearRanker

    told: list = []
    parts = placet.scan(str(folder / "queries-*.parquet")).watched(told.append)
    fitted = LinearRanker("pmop-fd").fit(parts)
    return {"weights": fitted.coef_.tolist(), "passes": len(told), "read": sum(one.bytes_read for one in told)}


def linear_parts_tight(folder: Path) -> dict:
    os.environ["PLACET_MEMORY"] = "1M"
    return linear_parts(folder)


# Runs


def run_alone(contestant: Callable[[Path], object], warm: Path, folder: Path) -> dict:
    """Wall and CPU seconds, peak memory in MB, and the answer of a contestant run in its own process."""
    code = (
        "import json, os, pathlib, time\n"
        "if __name__ == '__main__':\n"
        f"    from benchmarks.bench_scale import {contestant.__name__} as run\n"
        f"    run(pathlib.Path({str(warm)!r}))\n"
        "    before, start = os.times(), time.perf_counter()\n"
        f"    answer = run(pathlib.Path({str(folder)!r}))\n"
        "    after = os.times()\n"
        "    cpu = sum(after[:4]) - sum(before[:4])\n"
        "    print(json.dumps({'seconds': time.perf_counter() - start, 'cpu': cpu, 'answer': answer}))\n"
    )
    script = folder / f"{contestant.__name__}.py"
    script.write_text(code)
    root = Path(__file__).parent.parent
    env = os.environ | {"PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}", "PYTHONHASHSEED": "0"}
    command = [sys.executable, str(script)]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    peak = 0
    while process.poll() is None:
        peak = max(peak, _resident(process.pid))
        time.sleep(0.02)
    out, err = process.communicate()
    if process.returncode:
        return {"error": err.strip().splitlines()[-1][:90] if err.strip() else "failed"}
    return {**json.loads(out.splitlines()[-1]), "peak MB": peak / 2**20}


def _resident(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass  # the process has ended
    return 0


def show(name: str, rows: dict[str, dict], n_rows: int) -> None:
    """Print the rows and write them to a file."""
    table = Table("contestant", "seconds", "CPU s", "us CPU a row", "peak MB", "says", title=name, title_justify="left")
    for who, row in rows.items():
        if "error" in row:
            table.add_row(who, "", "", "", "", row["error"])
            continue
        each = f"{row['cpu'] / n_rows * 1e6:.3f}"
        answer = row["answer"]
        said = {k: v for k, v in answer.items() if k != "weights"} if isinstance(answer, dict) else answer
        table.add_row(who, f"{row['seconds']:.2f}", f"{row['cpu']:.2f}", each, f"{row['peak MB']:.0f}", str(said)[:100])
    Console(width=170).print(table)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"scale-{name.split()[0]}.json").write_text(json.dumps({"name": name, "rows": rows}, indent=1) + "\n")


def run_all(name: str, make: Callable[[Path, int], None], n: int, n_rows: int, contestants: list) -> dict:
    with tempfile.TemporaryDirectory() as warm, tempfile.TemporaryDirectory() as folder:
        make(Path(warm), 2000)
        make(Path(folder), n)
        rows = {one.__name__: run_alone(one, Path(warm), Path(folder)) for one in contestants}
    show(name, rows, n_rows)
    return rows


def counting(quick: bool) -> None:
    n = 500_000 if quick else 5_000_000
    parquet = [count_placet_parquet, count_polars_parquet, count_duckdb_parquet]
    csv = [count_placet_csv, count_parts_csv, count_polars_csv, count_duckdb_csv]
    run_all(f"counting {n:,} votes", make_votes, n, n, [*parquet, *csv])


def votes(quick: bool) -> None:
    n = 500_000 if quick else 5_000_000
    contestants = [votes_placet, votes_arena_rank, votes_choix_pandas]
    run_all(f"votes {n:,} from CSV to ranking", make_votes, n, n, contestants)


def ballots(quick: bool) -> None:
    n = 40_000 if quick else 400_000
    contestants = [ballots_one_thread, ballots_serial, ballots_dask]
    rows = run_all(f"ballots {5 * n:,} rows in 8 files", make_ballots, n, 5 * n, contestants)
    one, threads, workers = (rows[who.__name__].get("answer") for who in contestants)
    if one and threads and workers:
        print(f"same bytes: {one['digest'] == threads['digest'] == workers['digest']}")
        seconds = one["fit seconds"]
        print(f"speed-up of the fit by the threads of one process: {seconds / threads['fit seconds']:.2f}")
        print(f"speed-up of the fit by two Dask workers: {seconds / workers['fit seconds']:.2f}")
        print(f"overhead of a pass of 8 tasks: {1000 * workers['overhead of a pass']:.0f} ms")


def linear(quick: bool) -> None:
    n = 100_000 if quick else 1_000_000
    contestants = [linear_memory, linear_parts, linear_parts_tight]
    rows = run_all(f"linear ranker on {n:,} rows", make_queries, n, n, contestants)
    weights = [np.array(row["answer"]["weights"]) for row in rows.values() if "answer" in row]
    gaps = [float(np.abs(own - weights[0]).max()) for own in weights[1:]]
    print(f"largest difference of weights from those in memory: {gaps}")


if __name__ == "__main__":
    main(__doc__, {"counting": counting, "votes": votes, "ballots": ballots, "linear": linear})
