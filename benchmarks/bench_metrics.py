"""nDCG@10 and average precision of many lists: Placet and its peers from the same arrays, including the construction of their input.

Every contestant returns the two means, which must agree before anything is timed.  Gains are linear, the only definition that all of
them support.  ``--quick`` uses 300 lists instead of 10,000.  On two cores shared with other programs, Placet took a third of the CPU time
of the loop over lists, a thirteenth of pytrec_eval's, and 1/55 of ranx's.
"""

from importlib.util import find_spec
from itertools import pairwise

import numpy as np

from benchmarks.harness import compare, main
from placet.metrics import evaluate

ROWS = 120


def draw_lists(n_lists: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw scores without ties and grades 0 to 4; every list has a relevant row."""
    rng = np.random.default_rng(0)
    grade = rng.choice(5, size=n_lists * ROWS, p=[0.6, 0.2, 0.1, 0.06, 0.04])
    grade[::ROWS] = 1
    s = grade + rng.normal(0, 2, n_lists * ROWS)
    return s, grade, np.arange(0, n_lists * ROWS + 1, ROWS)


def placet(s, grade, offsets):
    values = evaluate(["ndcg@10(gain=linear)", "map"], s, grade, offsets)
    return tuple(v.mean() for v in values.values())


def numpy_loop(s, grade, offsets):
    """A straightforward implementation: an argsort and two formulas per list."""
    discount = 1 / np.log2(np.arange(2, 12))
    ndcg, ap = [], []
    for a, b in pairwise(offsets):
        r = grade[a:b][np.argsort(-s[a:b])]
        ndcg.append(r[:10] @ discount / (np.sort(r)[::-1][:10] @ discount))
        places = np.flatnonzero(r > 0) + 1
        ap.append(np.mean(np.arange(1, len(places) + 1) / places))
    return np.mean(ndcg), np.mean(ap)


def as_dicts(s, grade, offsets):
    """qrels and run as nested dictionaries, the input of TREC-style packages."""
    names = [f"d{i}" for i in range(ROWS)]
    qrels, run = {}, {}
    for q, (a, b) in enumerate(pairwise(offsets)):
        qrels[f"q{q}"] = dict(zip(names, grade[a:b].tolist(), strict=True))
        run[f"q{q}"] = dict(zip(names, s[a:b].tolist(), strict=True))
    return qrels, run


def pytrec(s, grade, offsets):
    import pytrec_eval

    qrels, run = as_dicts(s, grade, offsets)
    values = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10", "map"}).evaluate(run).values()
    return np.mean([v["ndcg_cut_10"] for v in values]), np.mean([v["map"] for v in values])


def ir_measures(s, grade, offsets):
    import ir_measures as ir

    values = ir.calc_aggregate([ir.nDCG @ 10, ir.AP], *as_dicts(s, grade, offsets))
    return values[ir.nDCG @ 10], values[ir.AP]


def ranx(s, grade, offsets):
    import ranx as rx

    qrels, run = as_dicts(s, grade, offsets)
    values = rx.evaluate(rx.Qrels(qrels), rx.Run(run), ["ndcg@10", "map"])
    return values["ndcg@10"], values["map"]


def sklearn(s, grade, offsets):
    from sklearn.metrics import average_precision_score, ndcg_score

    ap = [average_precision_score(grade[a:b] > 0, s[a:b]) for a, b in pairwise(offsets)]
    return ndcg_score(grade.reshape(-1, ROWS), s.reshape(-1, ROWS), k=10), np.mean(ap)


PEERS = {
    "placet": placet,
    "numpy loop": numpy_loop,
    "pytrec_eval": pytrec,
    "ir_measures": ir_measures,
    "ranx": ranx,
    "scikit-learn": sklearn,
}


def lists(quick: bool) -> None:
    n_lists = 300 if quick else 10_000
    small = draw_lists(50)
    absent = [name for name in ("pytrec_eval", "ir_measures", "ranx") if find_spec(name) is None]
    if absent:
        print(f"left out, not installed: {', '.join(absent)}")
    peers = {name: contestant for name, contestant in PEERS.items() if name not in absent}
    for name, contestant in peers.items():  # also warms up what compiles
        np.testing.assert_allclose(contestant(*small), numpy_loop(*small), rtol=1e-5, err_msg=name)
    data = draw_lists(n_lists)
    runs = {name: lambda contestant=contestant: contestant(*data) for name, contestant in peers.items()}
    compare(f"ndcg@10 + map, {n_lists:,} lists of {ROWS}", runs, repeat=3)


PARTS = {"lists": lists}


if __name__ == "__main__":
    main(__doc__, PARTS)
