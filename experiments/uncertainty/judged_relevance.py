"""NDCG from few queries judged by people and many by a judge: do intervals hold the truth, and are they shorter?

    python -m experiments.uncertainty.judged_relevance [--quick] [--seed N]      # from the project's root

Queries of 30 documents with grades 0, 1 and 2, and a run that is better on some than on others.  People grade all documents
of a few queries, a judge those of 250 more too: a good judge (one grade in ten is another), one that is too kind (a third of
the 0 become 1), one that favors whatever the run puts first, and one that draws grades at random.  The truth is the mean
NDCG@10 under people's grades over 200,000 queries.  Beside our interval: that of people alone, and the judge's mean taken
for people's, with its own error.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from experiments.common import check, expected, parser
from placet.metrics import judged_mean, ndcg

DOCS, MORE = 30, 250
RUNS, QUICK_RUNS = 2_000, 400
PEOPLE, QUICK_PEOPLE = (10, 20, 50, 200), (10, 200)
JUDGES = ("good", "kind", "fond of the run", "at random")


def world(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """People's grades and the run's scores (queries, documents); half of the queries have few relevant documents."""
    often = np.where(rng.random(n) < 0.5, 0.05, 0.3)[:, None]
    u = rng.random((n, DOCS))
    grade = np.where(u < often / 3, 2, np.where(u < often, 1, 0))
    return grade, grade * rng.uniform(0, 2, (n, 1)) + rng.normal(size=(n, DOCS))


def judged(rng: np.random.Generator, judge: str, grade: np.ndarray, score: np.ndarray) -> np.ndarray:
    """The judge's grades of the same documents."""
    u = rng.random(grade.shape)
    if judge == "at random":
        return rng.integers(0, 3, grade.shape)
    if judge == "kind":
        return np.where((grade == 0) & (u < 1 / 3), 1, grade)
    if judge == "fond of the run":
        first = score.argsort(axis=1).argsort(axis=1) >= DOCS - 10
        return np.where(first & (u < 0.4), np.minimum(grade + 1, 2), grade)
    return np.where(u < 0.1, rng.integers(0, 3, grade.shape), grade)


def quality(grade: np.ndarray, score: np.ndarray) -> np.ndarray:
    """NDCG@10 of each query, 0 where nothing is relevant."""
    n = len(grade)
    found = ndcg(score.ravel(), grade.ravel().astype(float), np.arange(n + 1) * DOCS, k=10)
    return np.nan_to_num(found)


def truth(seed: int) -> float:
    return float(np.mean([quality(*world(np.random.default_rng((seed, k)), 20_000)).mean() for k in range(10)]))


def cell(judge: str, people: int, runs: int, seed: int, true: float) -> Iterator[tuple[str, float]]:
    """Coverage of people alone, of the judge taken for people, and ours; our width beside that of people alone."""
    inside, wide, apart = np.zeros((runs, 3)), np.zeros(runs), np.zeros(runs)
    for run in range(runs):
        rng = np.random.default_rng((seed, run, people))
        grade, score = world(rng, people + MORE)
        h, j = quality(grade, score), quality(judged(rng, judge, grade, score), score)
        h[people:] = np.nan
        found = judged_mean(h, j)
        half = 1.96 * found.judge.stderr
        ends = [
            (found.human_low, found.human_high),
            (found.judge.mean - half, found.judge.mean + half),
            (found.low, found.high),
        ]
        inside[run] = [low <= true <= high for low, high in ends]
        wide[run] = (found.high - found.low) / (found.human_high - found.human_low)
        apart[run] = found.mean - true
    name = partial("simulated, judge {}, {} queries of people, {}".format, judge, people)
    yield name("covered by people alone"), float(inside[:, 0].mean())
    yield name("covered by the judge alone"), float(inside[:, 1].mean())
    yield name("covered"), float(inside[:, 2].mean())
    yield name("width beside people alone"), float(np.median(wide))
    yield name("bias beside the spread of means"), float(abs(apart.mean()) / apart.std())


def main() -> None:
    arguments = parser(__doc__).parse_args()
    runs = QUICK_RUNS if arguments.quick else RUNS
    true, ours = truth(arguments.seed), {}
    for judge in JUDGES:
        for people in QUICK_PEOPLE if arguments.quick else PEOPLE:
            found = dict(cell(judge, people, runs, arguments.seed + 1, true))
            print(
                ", ".join(f"{name.split(', ')[-1]} {value:.3f}" for name, value in found.items()),
                judge,
                people,
                flush=True,
            )
            ours |= found
    check(ours, expected(__file__, "quick" if arguments.quick else ""))


if __name__ == "__main__":
    main()
