"""Unsupervised fusion that takes being listed as evidence: engines weighed by agreement, and by how little they repeat.

A document gains from every engine that lists it  bonus + (1 - p / n) / 2 + log(600 / r) / log(600) / 2,  with p its
place among the query's n documents on that list and r its rank in the engine's whole list; from other engines
nothing.  Engines are weighed by what their points have in common on the training queries, without labels.  Labels
serve once: bonus and weighing are chosen by NDCG@5 on the queries of the fold that are not tested.  `--quick`: one
fold of simulated lists.
"""

import numpy as np

from experiments.common import check, expected, output_folder, parser, rotation, set_names, write
from experiments.mpm import letor
from placet.io import LetorAgg
from placet.metrics import ndcg

DEEPEST = 600.0
BONUSES = (0.0, 0.3, 0.6, 1.0, 1.5, 2.5)
WEIGHINGS = ("equal", "agreement", "novelty", "both")


def points(part: LetorAgg, bonus: float) -> np.ndarray:
    """(documents, engines)."""
    listed = ~np.isnan(part.rank)
    place = np.zeros(part.rank.shape)
    for a, b in zip(part.offsets, part.offsets[1:]):
        filled = np.where(listed[a:b], part.rank[a:b], np.inf)
        place[a:b] = np.argsort(np.argsort(filled, axis=0, kind="stable"), axis=0) + 1
    n = np.diff(part.offsets)[np.repeat(np.arange(len(part)), np.diff(part.offsets))][:, None]
    depth = np.log(DEEPEST / np.where(listed, np.minimum(part.rank, DEEPEST), 1.0)) / np.log(DEEPEST)
    return np.where(listed, bonus + (1 - place / n) / 2 + depth / 2, 0.0)


def covariance(parts: list[LetorAgg], bonus: float) -> np.ndarray:
    """(engines, engines) of points inside queries."""
    total = 0.0
    for part in parts:
        x = points(part, bonus)
        query = np.repeat(np.arange(len(part)), np.diff(part.offsets))
        mean = np.array([np.bincount(query, column) for column in x.T]).T / np.diff(part.offsets)[:, None]
        x = x - mean[query]
        total = total + x.T @ x
    return total / sum(len(part.grade) for part in parts)


def weights(C: np.ndarray, how: str, rounds: int = 50, ridge: float = 3.0) -> np.ndarray:
    """ "agreement": correlation with the weighted sum of the others, to its fixed point.  "novelty": (R + ridge I)^-1
    1, the weights of engines whose correlations R say that they repeat each other; negative ones are 0.  "both": their product."""
    deviation = np.sqrt(np.diag(C)) + 1e-12
    agreement = np.ones(len(C))
    for _ in range(rounds if how in ("agreement", "both") else 0):
        with_all = C @ agreement
        own = with_all - np.diag(C) * agreement
        others = agreement @ with_all - 2 * agreement * with_all + agreement**2 * np.diag(C)
        agreement = np.maximum(own / (deviation * np.sqrt(np.maximum(others, 1e-12))), 0.0)
    R = C / np.outer(deviation, deviation)
    novelty = np.maximum(np.linalg.solve(R + ridge * np.eye(len(C)), np.ones(len(C))), 0.0)
    return {"equal": np.ones(len(C)), "agreement": agreement, "novelty": novelty, "both": agreement * novelty}[how]


def value(part: LetorAgg, bonus: float, w: np.ndarray) -> float:
    return float(ndcg(points(part, bonus) @ w, part.grade, part.offsets, k=5, compat="letor").mean())


def one_fold(parts: list[LetorAgg], train: list[int], validation: int, test: int) -> tuple[np.ndarray, str]:
    """Measures on the test part, and the choice."""
    table = {b: covariance([parts[k] for k in train], b) for b in BONUSES}
    best = max(
        (np.mean([value(parts[k], b, weights(table[b], how)) for k in (*train, validation)]), b, how)
        for b in BONUSES
        for how in WEIGHINGS
    )
    _, b, how = best
    return letor.evaluate(points(parts[test], b) @ weights(table[b], how), parts[test]), f"{how}, bonus {b:g}"


def gain_of_weights(parts: list[LetorAgg]) -> float:
    """What weights by agreement, learned without labels, add to NDCG@5 in percent where all weights are alike; bonus 0.3."""
    learned, equal = (weights(covariance(parts[:3], 0.3), how) for how in ("agreement", "equal"))
    return 100 * (value(parts[4], 0.3, learned) - value(parts[4], 0.3, equal))


def main() -> None:
    args = parser(__doc__, sets=tuple(letor.SETS)).parse_args()
    ours: dict[str, float] = {}
    rows: list[list[object]] = []
    sets = [letor.SIMULATED] if args.quick else args.set
    for name, where in zip(set_names(sets), sets):
        parts = letor.parts(where, args.seed)
        found = [one_fold(parts, *fold) for fold in rotation(1 if args.quick else 5)]
        values = np.mean([v for v, _ in found], axis=0)
        rows.append([name, *values.tolist()])
        ours[f"{name}, unsupervised fusion, N@5"] = float(values[letor.MEASURES.index("N@5")])
        if args.quick:
            ours[f"{name}, weights by agreement - equal weights, N@5"] = gain_of_weights(parts)
        print(name, " ".join(f"{v:.2f}" for v in values), "|", "; ".join(choice for _, choice in found))
    path = expected(__file__, "quick" if args.quick else "")
    write(output_folder(path) / "table.csv", ["set", *letor.MEASURES], rows)
    check(ours, path, set_names(sets))


if __name__ == "__main__":
    main()
