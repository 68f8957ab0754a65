"""The same trials for other libraries: mutated model files, odd tables, odd votes.

    python fuzz/fuzz_peers.py mutated "LightGBM (text)" 10000        (counts as JSON)
    python fuzz/fuzz_peers.py tables XGBoost

Code that may crash runs in a child that is restarted only when it dies.  The child is forked from a process that has
not yet called the library, because threads do not survive a fork.  CPU time, address space and the number of trials are
limited; wall-clock time is the last resort.
"""

import json
import math
import multiprocessing as mp
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import fuzz_models
import numpy as np

import placet

LONGEST = 5.0  # seconds of CPU per trial
ASLEEP = 120.0  # wall-clock seconds per trial, generous for a busy machine
IN_ALL = 60.0  # seconds of CPU for all trials of a peer; the remaining ones are skipped
SPARE = 2 << 30  # bytes of address space that a child may allocate in addition to those in use
BYTES = (fuzz_models.flip, fuzz_models.overwrite, fuzz_models.cut, fuzz_models.copy)


def in_children(work: Callable[[int], str], n: int, kinds: tuple[str, ...], most: float = IN_ALL) -> Counter:
    """Counts of the results of ``work(0)``, ..., ``work(n - 1)``: ``kinds``, "crash" for a signal, "hang" for a timeout.

    No more trials are started after ``most`` seconds of CPU.
    """
    context = mp.get_context("fork")
    state = context.RawArray("q", 1 + len(kinds))
    counts: Counter[str] = Counter()

    def child(first: int, seconds: float) -> None:
        null = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(null, stream)
        warnings.simplefilter("ignore")
        fuzz_models.limit_memory(SPARE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for k in range(first, n):
            state[0] = k
            if time.process_time() > seconds:
                os._exit(1)
            fuzz_models.start_timers(LONGEST, ASLEEP)
            state[1 + kinds.index(work(k))] += 1
        os._exit(0)

    first, spent = 0, 0.0
    while first < n and spent < most:
        process = context.Process(target=child, args=(first, most - spent))
        process.start()
        process.join()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = used.ru_utime + used.ru_stime
        if process.exitcode in (0, 1):
            break
        counts["hang" if process.exitcode in (-signal.SIGPROF, -signal.SIGALRM) else "crash"] += 1
        first = state[0] + 1
    counts.update({kind: state[1 + k] for k, kind in enumerate(kinds)})
    return counts


def alone(what: str, name: str, n: int = 0) -> Counter:
    """Counts of the trials of a peer, run in a separate process."""
    here = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, __file__, what, name, str(n)], env=here, stdout=subprocess.PIPE, text=True, check=True
    )
    return Counter(json.loads(done.stdout))


def models() -> dict[str, tuple[Callable[[], bytes], Callable[[bytes], object]]]:
    """For each peer, functions that create the bytes of a model, and that load them and score four rows."""
    import lightgbm as lgb
    import xgboost as xgb

    X = np.random.default_rng(0).normal(size=(200, 5))
    y = X[:, 0] + X[:, 1]

    def text() -> bytes:
        one = {"num_threads": 1, "verbosity": -1, "min_data_in_leaf": 5}
        return lgb.train(one, lgb.Dataset(X, y), 5).model_to_string().encode()

    def light(data: bytes) -> object:
        return lgb.Booster(model_str=data.decode("latin-1")).predict(X[:4], num_threads=1)

    def raw() -> bytes:
        return bytes(xgb.train({"verbosity": 0, "nthread": 1}, xgb.DMatrix(X, y), 5).save_raw("json"))

    def extreme(data: bytes) -> object:
        booster = xgb.Booster({"nthread": 1}, model_file=bytearray(data))
        return booster.predict(xgb.DMatrix(X[:4], nthread=1))

    return {"LightGBM (text)": (text, light), "XGBoost (JSON)": (raw, extreme)}


def count_mutations(name: str, n: int) -> Counter:
    """Mutations of the bytes of a peer's model: error, loaded, crash or hang."""
    make, load = models()[name]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model"
        child = mp.get_context("fork").Process(target=lambda: file.write_bytes(make()))
        child.start()
        child.join()
        data = file.read_bytes()

    def work(number: int) -> str:
        try:
            load(fuzz_models.mutate(data, random.Random(number), BYTES))
        except Exception:
            return "error"
        return "loaded"

    return in_children(work, n, ("error", "loaded"))


def rankers() -> dict[str, Callable]:
    """Rankers of peers: features, grades, queries -> scores."""
    import lightgbm as lgb
    import xgboost as xgb

    def light(X, y, qid):
        order = np.argsort(qid, kind="stable")
        sizes = np.unique(np.asarray(qid)[order], return_counts=True)[1]
        model = lgb.LGBMRanker(n_estimators=5, verbosity=-1, n_jobs=1)
        return model.fit(X, y, group=sizes).predict(X)

    def extreme(X, y, qid):
        return xgb.XGBRanker(n_estimators=5, verbosity=0, n_jobs=1).fit(X, y, qid=qid).predict(X)

    return {"LightGBM": light, "XGBoost": extreme}


def tables(name: str) -> Counter:
    """Odd tables: finite scores, refused, bad (scores that are not finite), crash or hang."""
    tests = Path(__file__).parents[1] / "tests"
    sys.path[:0] = [str(tests), str(tests / "rank")]
    from test_odd_tables import ODD

    fit = rankers()[name]
    cases = list(ODD.values())

    def work(k: int) -> str:
        try:
            return "finite" if np.isfinite(fit(*cases[k])).all() else "bad"
        except Exception:
            return "refused"

    return in_children(work, len(cases), ("finite", "refused", "bad"))


# votes: (winner, loser) by name, and whether they are meaningful
VOTES = {
    "an item that never lost": ([("a", "b"), ("a", "c"), ("b", "c"), ("c", "b")], "answer"),
    "two groups that never met": ([("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")], "answer"),
    "a chain a > b > c": ([("a", "b"), ("b", "c")], "answer"),
    "no votes": ([], "none"),
    "an item against itself": ([("a", "a"), ("a", "b"), ("b", "a")], "none"),
    "a name that is missing": ([("a", None), ("a", "b"), ("b", "a")], "none"),
    "a name that is NaN": ([("a", float("nan")), ("a", "b"), ("b", "a")], "none"),
    "a negative weight": ([("a", "b"), ("b", "a")], "negative"),
    "an outcome that is no outcome": ([("a", "b"), ("b", "a")], "outcome"),
}


def votes() -> dict[str, dict[str, str]]:
    """Results of odd votes by case and library."""
    libraries = {"Placet": _placet, "choix": _choix}
    for name, fit in (("evalica", _evalica), ("openskill", _openskill)):
        try:
            __import__(name)
        except ImportError:
            continue
        libraries[name] = fit
    return {
        case: {name: _outcome(fit, pairs, kind) for name, fit in libraries.items()}
        for case, (pairs, kind) in VOTES.items()
    }


class Cannot(Exception):
    """The library does not support this."""


def _outcome(fit: Callable, pairs: list, kind: str) -> str:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            scores, notes = fit(pairs, kind)
        except Cannot:
            return "-"
        except Exception:
            return "refused"
    if not all(math.isfinite(score) for score in scores):
        return "not finite"
    return "said" if notes or said else "finite"


def _placet(pairs: list, kind: str):
    outcome = ["a"] * len(pairs)
    if kind == "outcome":
        outcome[0] = "lefft"
    weight = [-1.0] + [1.0] * (len(pairs) - 1) if kind == "negative" else None
    data = placet.Comparisons.from_battles([a for a, _ in pairs], [b for _, b in pairs], outcome, weight=weight)
    result = placet.consensus(data, "bradley-terry")
    return result.scores.tolist(), result.notes


def _choix(pairs: list, kind: str):
    import choix

    if kind in ("negative", "outcome"):
        raise Cannot
    names = {name: k for k, name in enumerate(dict.fromkeys(name for pair in pairs for name in pair))}
    missing = {name for name in names if name is None or name != name}
    names |= dict.fromkeys(missing, -1)  # the code that pandas gives to a missing name
    return choix.ilsr_pairwise(len(names) or 1, [(names[a], names[b]) for a, b in pairs]).tolist(), ()


def _evalica(pairs: list, kind: str):
    import evalica

    winners: list = [evalica.Winner.X] * len(pairs)
    weights = [-1.0] + [1.0] * (len(pairs) - 1) if kind == "negative" else None
    if kind == "outcome":
        winners[0] = "lefft"
    more = {} if weights is None else {"weights": weights}
    result = evalica.bradley_terry([a for a, _ in pairs], [b for _, b in pairs], winners, **more)
    return [float(score) for score in result.scores], ()


def _openskill(pairs: list, kind: str):
    from openskill.models import BradleyTerryFull

    if kind in ("negative", "outcome"):
        raise Cannot
    model = BradleyTerryFull()
    players: dict = {}
    for a, b in pairs:
        first, second = (players.get(name) or model.rating(name=name) for name in (a, b))
        (players[a],), (players[b],) = model.rate([[first], [second]])
    return [player.mu for player in players.values()], ()


def main() -> None:
    what, name = sys.argv[1:3]
    counts = count_mutations(name, int(sys.argv[3])) if what == "mutated" else tables(name)
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
