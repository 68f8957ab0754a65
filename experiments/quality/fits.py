"""Fits of one method on one fold, kept on disk: settings, seconds, and the scores of validation and test rows."""

import json
import os
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.common import Timer
from experiments.quality.peers import PEERS, Scorer
from placet.data import Queries
from placet.rank.search.autorank import Candidate, build_ranker, draw_candidates


class Fits(NamedTuple):
    """What the settings drawn for a method gave on one fold: scores (settings, rows) of its validation and test part."""

    params: list[Any]
    seconds: np.ndarray
    valid: np.ndarray
    test: np.ndarray


def placet_space(rng: np.random.Generator) -> Candidate:
    """What ``autorank`` would try, in one thread."""
    return one_thread(*draw_candidates(1, rng)[0])


def one_thread(name: str, params: Any) -> Candidate:
    """The candidate, with trees, also those of a base, in one thread."""
    if name == "listwise":
        return name, {**params, "base": one_thread(*params["base"])}
    return name, {**params, "backend_params": {"num_threads": 1}} if name == "trees" else params


def placet_fit(candidate: Candidate, train: Queries, valid: Queries) -> Scorer:
    return build_ranker(*candidate, "ndcg@10", 0).fit(train, valid=valid).predict


METHODS: dict[str, tuple[Any, Any]] = {"Placet": (placet_space, placet_fit), **PEERS}
"""Name of a method -> (its space, its fit)."""


def generator(*words: object) -> np.random.Generator:
    """A stream of its own for every combination of words, the same on every machine."""
    return np.random.default_rng([zlib.crc32(str(word).encode()) for word in words])


def run(method: str, budget: int, words: tuple, train: Queries, valid: Queries, test: Queries) -> Fits:
    """Draw ``budget`` settings of a method, fit each, and score."""
    space, fit = METHODS[method]
    rng = generator(method, *words)
    all_params, seconds, on_valid, on_test = [], [], [], []
    for _ in range(budget):
        with Timer() as spent:
            all_params.append(space(rng))
            scorer = fit(all_params[-1], train, valid)
        seconds.append(spent.seconds)
        on_valid.append(np.asarray(scorer(valid), dtype=np.float64))
        on_test.append(np.asarray(scorer(test), dtype=np.float64))
    return Fits(all_params, np.array(seconds), np.array(on_valid), np.array(on_test))


def kept(folder: Path, method: str, budget: int, words: tuple, *parts: Queries) -> Fits:
    """The same, read from ``folder`` if it was computed before: a run that was stopped goes on where it was."""
    name = "-".join(str(w) for w in (*words, method.replace(" ", "_").replace(":", "_"), budget))
    path = folder / f"{name}.npz"
    if path.exists():
        with np.load(path) as file:
            return Fits(json.loads(str(file["params"])), file["seconds"], file["valid"], file["test"])
    found = run(method, budget, words, *parts)
    folder.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(".part.npz")
    arrays = {name: value for name, value in found._asdict().items() if name != "params"}
    np.savez_compressed(half, params=json.dumps(found.params), **arrays)
    os.replace(half, path)
    return found
