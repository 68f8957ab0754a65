"""Mixtures of voters on PrefLib files: held-out log likelihood by number of groups, and the time of a fit.

python -m benchmarks.bench_mixture            # AGH courses, and sushi if PLACET_DATA has preflib/00014-sushi
python -m benchmarks.bench_mixture --quick    # one start
"""

import time
from pathlib import Path

import numpy as np

from benchmarks.harness import main
from experiments.common import data_folder
from placet.aggregate import Mixture
from placet.data import Rankings
from placet.io import read

FILES = {
    "AGH 2003": "preflib/00009-agh/00009-00000001.soc",
    "AGH 2004": "preflib/00009-agh/00009-00000002.soc",
    "sushi": "preflib/00014-sushi/00014-00000001.soc",
}


def split(votes: Rankings, share: float = 0.2, seed: int = 0) -> tuple[Rankings, Rankings]:
    """Split voters into training and held-out voters."""
    who = np.repeat(np.arange(len(votes)), votes.weight.astype(int))
    out = np.zeros(len(who), bool)
    out[np.random.default_rng(seed).permutation(len(who))[: int(share * len(who))]] = True
    left = np.bincount(who[out], minlength=len(votes)).astype(float)
    parts = []
    for weight in (votes.weight - left, left):
        part = votes[weight > 0]
        parts.append(Rankings(part.item, part.tier, part.offsets, weight[weight > 0], items=votes.items))
    return parts[0], parts[1]


def held_out_likelihood(path: Path, name: str, model: str, most: int, restarts: int) -> list[float]:
    """Mean log likelihood of a held-out voter, for 1, 2, ... groups."""
    train, test = split(read(path))
    found = []
    for k in range(1, most + 1):
        start = time.perf_counter()
        fitted = Mixture(model, k, restarts=restarts).fit(train)
        seconds = time.perf_counter() - start
        found.append(float(test.weight @ fitted.log_likelihood(test)) / float(test.weight.sum()))
        shares = ", ".join(f"{share:.2f}" for share in fitted.shares_)
        bic = fitted.groups_.bic
        print(
            f"{name}, {model}, {k} groups: {found[-1]:.4f} per voter, BIC {bic:.1f}, shares {shares}, {seconds:.1f} s"
        )
    return found


def mixtures(quick: bool) -> None:
    for name, file in FILES.items():
        folder = data_folder(str(Path(file).parent))
        if folder is None or not (Path(folder) / Path(file).name).exists():
            print(f"{name}: no file {file}; set PLACET_DATA to the folder that holds it")
            continue
        for model in ("plackett-luce", "mallows"):
            held_out_likelihood(Path(folder) / Path(file).name, name, model, 3 if quick else 6, 1 if quick else 4)


PARTS = {"mixtures": mixtures}

if __name__ == "__main__":
    main(__doc__, PARTS)
