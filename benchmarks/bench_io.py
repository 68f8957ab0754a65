"""Reading about 200 MB of svmlight text: Placet, XGBoost and scikit-learn, in one run; peak memory is measured in separate processes.

    python -m benchmarks.bench_io [--quick]

The text is written to a temporary folder and removed: 46 features as in LETOR 4 (six decimals, a third of them explicit zeros),
100 rows per query; then the same with 17 significant digits.  ``--quick`` uses 5 MB.
"""

import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import xgboost
from sklearn.datasets import load_svmlight_file

from benchmarks.harness import compare, main, peak_memory
from placet.io import read_letor

FEATURES = 46
NUMBERS = {"six decimals": "%.6f", "17 digits": "%.17g"}


def make(path: Path, megabytes: float, number: str) -> None:
    """Write svmlight text of about the given size."""
    rng = np.random.default_rng(0)
    pattern = " ".join(f"{k + 1}:{number}" for k in range(FEATURES))
    row = size = 0
    with open(path, "w") as file:
        while size < megabytes * 1e6:
            X = rng.random((2000, FEATURES))
            X[X < 1 / 3] = 0
            lines = (f"{(row + r) % 3} qid:{(row + r) // 100} {pattern % tuple(x)}\n" for r, x in enumerate(X.tolist()))
            size += sum(map(file.write, lines))
            row += 2000


def by_xgboost(path: Path) -> xgboost.DMatrix:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # text input is deprecated since 3.1, but still read
        return xgboost.DMatrix(f"{path}?format=libsvm")


def by_sklearn(path: Path) -> object:
    return load_svmlight_file(str(path), query_id=True)


def readers(path: Path) -> dict[str, Callable[[], object]]:
    return {
        "placet": partial(read_letor, path),
        "placet float32": partial(read_letor, path, dtype=np.float32),
        "xgboost": partial(by_xgboost, path),
    }


def reading(quick: bool) -> None:
    megabytes, rounds = (5, 3) if quick else (200, 5)
    xgboost.set_config(verbosity=0)
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small.svm"
        make(small, 0.1, "%.6f")
        read_letor(small)  # compile and load the kernels
        paths = {words: Path(folder) / f"{words}.svm" for words in NUMBERS}
        peaks = {}
        for words, path in paths.items():  # before any timing: XGBoost's threads do not survive a fork
            make(path, megabytes, NUMBERS[words])
            peaks[words] = {who: peak_memory(run) for who, run in readers(path).items()}
        for words, path in paths.items():
            queries = read_letor(path)
            arrays = queries.X.nbytes + queries.grade.nbytes + queries.offsets.nbytes
            del queries
            note = {"placet": f"arrays {arrays / 2**20:.1f} MB"}
            name = f"read {megabytes:g} MB svmlight, {words}"
            rows = compare(name, readers(path), repeat=rounds, notes=note, peaks=peaks[words])
            print(f"peak memory: {rows['placet']['peak_mb'] * 2**20 / arrays:.2f} times the arrays returned\n")
        path = paths["six decimals"]
        slow = {"placet": partial(read_letor, path), "scikit-learn": partial(by_sklearn, path)}
        compare(
            f"read {megabytes:g} MB svmlight, scikit-learn", slow, repeat=1
        )  # once is enough to see a factor of ten


PARTS = {"reading": reading}


if __name__ == "__main__":
    main(__doc__, PARTS)
