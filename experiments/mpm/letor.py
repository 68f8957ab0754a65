"""Rank aggregation data of LETOR 4.0 in five folds, their truth as ballots, and LETOR's evaluation of scores."""

import io

import numpy as np

from experiments.common import letor_files, letor_folder
from placet import read_letor_agg
from placet.data import Rankings
from placet.io import LetorAgg
from placet.metrics import average_precision, ndcg, precision

SETS = {"MQ2008-agg": "letor4/MQ2008-agg", "MQ2007-agg": "letor4/MQ2007-agg"}
MEASURES = tuple(f"N@{k}" for k in range(1, 6)) + tuple(f"P@{k}" for k in range(1, 6)) + ("MAP",)
SIMULATED = "simulated"


def parts(name: str, seed: int = 0) -> list[LetorAgg]:
    """S1 to S5 of a set, by its name or folder, or five small parts of the same shape for the name "simulated"."""
    if name == SIMULATED:
        return [simulated(5 * seed + k) for k in range(5)]
    return [read_letor_agg(path) for path in letor_files(letor_folder(name, SETS))]


def truth(part: LetorAgg) -> Rankings:
    """One ballot for each query: its documents by grade."""
    query = np.repeat(np.arange(len(part)), np.diff(part.offsets))
    order = np.lexsort((-part.grade, query))
    tier = (part.grade.max() - part.grade[order]).astype(int)
    items = part.rankings.items
    return Rankings(order, tier, part.offsets, instance=np.arange(len(part)), instances=part.qid, items=items)


def joined(some: list[LetorAgg]) -> tuple[Rankings, Rankings]:
    """Ballots and truth of several parts as one set each; queries of different parts are different instances."""
    shift = np.cumsum([0] + [len(p.grade) for p in some])
    queries = np.cumsum([0] + [len(p) for p in some])
    ballots, labels = [p.rankings for p in some], [truth(p) for p in some]
    items = tuple(range(shift[-1]))
    instances = tuple(range(queries[-1]))

    def together(rs: list[Rankings], agents: bool) -> Rankings:
        rows = np.cumsum([0] + [len(r.item) for r in rs])
        return Rankings(
            np.concatenate([r.item + a for r, a in zip(rs, shift)]),
            np.concatenate([r.tier for r in rs]),
            np.concatenate([[0], *(r.offsets[1:] + a for r, a in zip(rs, rows))]),
            agent=np.concatenate([r.agent for r in rs]) if agents else None,
            instance=np.concatenate([r.instance + a for r, a in zip(rs, queries)]),
            items=items,
            agents=rs[0].agents,
            instances=instances,
            score=np.concatenate([r.score for r in rs]) if agents else None,
        )

    return together(ballots, True), together(labels, False)


def evaluate(scores: np.ndarray, part: LetorAgg) -> np.ndarray:
    """Percent of MEASURES by LETOR's script; P and MAP take grades 1 and 2 as relevant (see README.md)."""
    by_place = [ndcg(scores, part.grade, part.offsets, k=k, compat="letor").mean() for k in range(1, 6)]
    hits = [precision(scores, part.grade, part.offsets, k=k, threshold=1, compat="letor").mean() for k in range(1, 6)]
    ap = average_precision(scores, part.grade, part.offsets, threshold=1, compat="letor").mean()
    return 100 * np.array([*by_place, *hits, ap])


REVERSED, NOISY = (5, 6), 7


def simulated(seed: int, queries: int = 30, engines: int = 8, documents: int = 15) -> LetorAgg:
    """Five engines of growing noise, two that order the wrong way and one that knows nothing rank a part of the documents.

    The grade is that of the document's hidden relevance; whoever trusts all engines alike does badly.
    """
    rng = np.random.default_rng(seed)
    lines = []
    for q in range(queries):
        relevance = rng.normal(size=documents)
        grade = np.digitize(relevance, [0.3, 1.2])
        place = np.full((documents, engines), np.nan)
        for e in range(engines):
            listed = rng.random(documents) < 0.7
            signal = -1.0 if e in REVERSED else 0.0 if e == NOISY else 1.0
            seen = signal * relevance + (0.3 + 0.3 * e) * rng.normal(size=documents)
            depth = 1 + np.argsort(np.argsort(-seen)) * 7 + rng.integers(0, 7, documents)
            place[listed, e] = depth[listed]
        for d in range(documents):
            ranks = " ".join(f"{e + 1}:{'NULL' if np.isnan(x) else int(x)}" for e, x in enumerate(place[d]))
            lines.append(f"{grade[d]} qid:{seed}{q:03d} {ranks} #docid = D{d}")
    return read_letor_agg(io.BytesIO("\n".join(lines).encode()))
