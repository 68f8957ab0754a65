"""Listwise rankers on real sets: training of a reranker, an epoch of StructRank, 1,000 rounds of boosting, with targets.

Uses OHSUMED and MQ2008 (in PLACET_DATA, or ../shared/data) or, without them, simulated sets of the same shape.  ``--quick``
does a tenth of the work.  Contestants of the StructRank part: pairs of edges summed one by one (as published, O(E^2) for E
edges), the same sum by interpolation at Chebyshev nodes (as in Placet), and random connections.
"""

import numpy as np

import placet
from benchmarks.harness import compare, main
from experiments.common import data_folder, letor_folds, letor_parts
from placet.data import Lists, Queries
from placet.kernels.losses import edge_pairs
from placet.losses import LOSSES
from placet.rank import ConsistentBooster, LinearRanker, ListwiseReranker, StructRank, similarity


def training(name: str, shape: tuple[int, tuple[int, int], int]) -> Queries:
    """The training queries of fold 1."""
    folder = data_folder(name)
    if folder is None:
        return placet.simulate.queries(*shape, 3, random_state=0)
    return next(letor_folds(letor_parts(str(folder)), 1))[0]


def reranker(data: Queries) -> None:
    base = LinearRanker("bregman-square").fit(data)
    all_pairs = lambda A, B: A @ B.T  # noqa: E731
    unit = similarity.unit_rows(data.X, data.offsets)
    compare(
        "cosine sums",
        {
            "placet": lambda: similarity.sums(("cosine",), data.X, data.offsets),
            "all pairs": lambda: similarity.sums((all_pairs,), unit, data.offsets),
        },
        notes={"placet": "O(rows features)", "all pairs": "O(rows^2 features) by blocks"},
    )
    compare(
        "reranker training",
        {"placet": lambda: ListwiseReranker(base, ("cosine",), positive=True).fit(data)},
        repeat=3,
        notes={"placet": "goal: below 5 s on OHSUMED"},
    )


def one_by_one(s, lists: Lists) -> float:
    """The sum over pairs of edges of every list, as published."""
    total = 0.0
    for a, b in zip(lists.offsets[:-1], lists.offsets[1:]):
        g, x = lists.grade[a:b], s[a:b]
        i, j = np.nonzero(g[:, None] > g)
        r = x[j] - x[i]
        total += edge_pairs.plain_sums(r, r.copy(), np.zeros(len(r)), np.zeros(len(r)))
    return total


def structrank(data: Queries) -> None:
    lists = data.lists()
    s = LinearRanker("ranknet").fit(data).predict(data)
    nodes, loop = LOSSES["structrank"](s, lists)[0], one_by_one(s, lists)
    assert abs(nodes - loop) < 1e-9 * loop
    loss = lambda connections: lambda: LOSSES["structrank"](s, lists, connections=connections)  # noqa: E731
    compare(
        "structrank loss, all lists, full",
        {"placet": loss("full"), "one by one": lambda: one_by_one(s, lists)},
        repeat=1,
        notes={"placet": "Chebyshev nodes, O(E log E)", "one by one": "as published, O(E^2)"},
    )
    far = s * (1000.0 / np.abs(s).max())
    compare(
        "structrank loss, all lists, full, |w r| up to 1,000 and 100,000",
        {
            "1,000": lambda: LOSSES["structrank"](far, lists),
            "100,000": lambda: LOSSES["structrank"](100.0 * far, lists),
        },
        repeat=1,
        notes={"1,000": "no more than for small margins: far pairs are counted, not met"},
    )
    compare(
        "structrank loss, all lists",
        {"random share": loss(0.05), "random": loss(1), "disconnected": loss("none"), "full": loss("full")},
        notes={"random share": "a pair for every 20th edge", "random": "one partner per edge"},
    )
    for scorer in ("nadaraya-watson", "linear"):
        fit = lambda c, scorer=scorer: StructRank(scorer, c, epochs=1, starts=1).fit(data)  # noqa: E731
        compare(
            f"structrank epoch, {scorer}",
            {
                "full": lambda fit=fit: fit("full"),
                "random": lambda fit=fit: fit(1),
                "random share": lambda fit=fit: fit(0.05),
                "disconnected": lambda fit=fit: fit("none"),
            },
            repeat=1,
            notes={"full": "goal: below 60 s on OHSUMED"},
        )


def booster(data: Queries, rounds: int) -> None:
    compare(
        f"boosting {rounds} rounds, features",
        {
            loss: lambda loss=loss: ConsistentBooster(loss, rounds, min_edge=0.0).fit(data)
            for loss in ("bregman-ce", "bregman-square")
        },
        repeat=1,
        notes={"bregman-ce": "goal: 1,000 rounds below 10 s on MQ2008"},
    )


OHSUMED = ("letor3/OHSUMED", (63, (50, 300), 45))
MQ2008 = ("letor4/MQ2008", (471, (5, 35), 46))
PARTS = {
    "reranker": lambda quick: reranker(training(*OHSUMED)[: 6 if quick else None]),
    "booster": lambda quick: booster(training(*MQ2008)[: 47 if quick else None], 100 if quick else 1000),
    "structrank": lambda quick: structrank(training(*OHSUMED)[: 6 if quick else None]),
}


if __name__ == "__main__":
    main(__doc__, PARTS)
