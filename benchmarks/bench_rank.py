"""Speed of the rankers: python -m benchmarks.bench_rank [part ...] [--threads 1] [--quick]

Parts are the keys of PARTS at the end.  The number of threads applies to the losses, BLAS, PyTorch and LightGBM.

In CPU seconds on a busy machine of two cores, one thread: 20 trees on 998,168 rows with "pmop-fd" 30.2, with LightGBM's own lambdarank 36.8; an
evaluation of a linear ranker's objective on 1,200,000 rows 0.133 with "pmop-fd" and 0.244 with "pl-partition", its two matrix products alone 0.098.
50 trees on 502,448 rows: LightGBM's lambdarank 21.3 and 410 MB beside the table; ratios to it: "pl-partition" 1.08 and 1.08, "pmop-fd" 0.94 and 1.05, "xendcg" 0.86 and
1.11, seven other losses that cost a time in proportion to the rows 0.84 to 1.00 and 1.05 to 1.08; symmetric trees by "pl-partition" 0.94 and 0.31;
on 998,168 rows "pl-partition" 59.7 and 523, lambdarank 55.1 and 478.
"""

import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from benchmarks.harness import compare, cost_in_child, main, peak_memory, save_rows
from placet.data import Queries
from placet.rank import LinearRanker, TreeRanker
from placet.rank.linear.penalized_loss import PenalizedLoss
from placet.threads import get_threads, set_threads

N_FEATURES = 136
SAME = {"num_leaves": 31, "min_data_in_leaf": 20, "learning_rate": 0.1, "lambda_l2": 1.0, "verbosity": -1}
"""Settings of trees in which LightGBM's own defaults differ from the ranker's, or must not."""

OF_ROWS = (
    "pl-partition",
    "pmop-fd",
    "xendcg",
    "pl-topk",
    "listmle",
    "pl-lower-bound",
    "listnet",
    "attrank",
    "pmop-backward",
    "rank-regress",
)
"""Losses of trees that cost a time in proportion to the rows, or nearly."""


def search_data(n_queries: int, seed: int = 0) -> Queries:
    """Queries of 40 to 200 rows, 120 on average, float32 features, grades 0-4, mostly low, rows not sorted by grade."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(40, 201, n_queries)
    sizes[-1] += 120 * n_queries - sizes.sum() if abs(120 * n_queries - sizes.sum()) < sizes[-1] else 0
    n = int(sizes.sum())
    X = rng.standard_normal((n, N_FEATURES), dtype=np.float32)
    latent = X[:, :8].sum(axis=1) / 3 + rng.standard_normal(n)
    grade = np.searchsorted(np.quantile(latent, [0.5, 0.8, 0.93, 0.98]), latent).astype(float)
    return Queries(X, grade, np.append(0, np.cumsum(sizes)))


def padded_listmle(data: Queries, w: np.ndarray, batch: int = 500):
    """One pass of ListMLE in PyTorch as usually implemented: lists padded to equal length, sorted by label, in batches."""
    import torch

    sizes = np.diff(data.offsets)
    longest = int(sizes.max())
    X = torch.zeros(len(data), longest, N_FEATURES)
    grade = torch.full((len(data), longest), -1.0)
    for q in range(len(data)):
        rows = slice(data.offsets[q], data.offsets[q + 1])
        X[q, : sizes[q]] = torch.from_numpy(np.array(data.X[rows]))
        grade[q, : sizes[q]] = torch.from_numpy(data.grade[rows].astype(np.float32))
    order = grade.argsort(dim=1, descending=True, stable=True)
    absent = grade.gather(1, order) < 0

    def run() -> tuple[float, np.ndarray]:
        weights = torch.tensor(w, dtype=torch.float32, requires_grad=True)
        total = 0.0
        for a in range(0, len(data), batch):
            s = (X[a : a + batch] @ weights).gather(1, order[a : a + batch])
            s = s.masked_fill(absent[a : a + batch], -1e9)
            tails = torch.logcumsumexp(s.flip(1), dim=1).flip(1)
            loss = (tails - s).masked_fill(absent[a : a + batch], 0.0).sum()
            loss.backward()
            total += float(loss.detach())
        return total, weights.grad.numpy()

    return run


def evaluation(quick: bool) -> None:
    """One evaluation of the objective of L-BFGS: scores, loss, gradient with respect to the weights."""
    import torch

    torch.set_num_threads(get_threads())
    data = search_data(1_000 if quick else 10_000)
    w = 0.05 * np.random.default_rng(1).standard_normal(N_FEATURES)
    w32 = w.astype(np.float32)
    g32 = np.random.default_rng(2).standard_normal(len(data.grade)).astype(np.float32)
    of = {
        name: PenalizedLoss(data, name, 1e-4, True, {"tol": 1e-4} if name == "pl-partition" else {})
        for name in ("pmop-fd", "pl-partition", "listmle")
    }

    def fresh(name: str):
        def run():
            of[name]._last = of[name].parts.data._last = None  # an optimizer evaluates new points
            return of[name](w)

        return run

    compare(
        f"linear evaluation rows={len(data.grade)} threads={get_threads()}",
        {
            "placet pmop-fd": fresh("pmop-fd"),
            "two products": lambda: (data.X @ w32, g32 @ data.X),
            "placet pl-partition tol=1e-4": fresh("pl-partition"),
            "placet listmle": fresh("listmle"),
            "padded PyTorch ListMLE": padded_listmle(data, w),
        },
        repeat=7,
        notes={"two products": "X @ w and X.T @ g, without which nothing goes"},
    )


def memory(quick: bool) -> None:
    """Peak memory of training relative to the size of the table."""
    data = search_data(1_000 if quick else 10_000)
    small = search_data(200)
    LinearRanker(tol=0.1).fit(small, valid=small)  # compile before the child is forked

    def fit() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # five steps do not converge
            LinearRanker(max_iter=5).fit(data, valid=data)

    grown = peak_memory(fit)
    Console().print(
        f"memory of LinearRanker.fit, validated on the same rows: table {data.X.nbytes / 2**20:.0f} MB, "
        f"peak {1 + grown / data.X.nbytes:.2f} times that"
    )


def memory_of_trees(quick: bool) -> None:
    """Peak memory of ten trees: `TreeRanker` and LightGBM's own lambdarank, each in its own child process."""
    side_by_side(300 if quick else 2_000, 10, ("pmop-fd",))


def half_million(quick: bool) -> None:
    """50 trees on 500,000 rows."""
    side_by_side(300 if quick else 4_167, 50, OF_ROWS[:3] if quick else OF_ROWS)


def whole_million(quick: bool) -> None:
    """50 trees on a million rows."""
    side_by_side(300 if quick else 8_334, 50, ("pl-partition",))


def side_by_side(n_queries: int, n_trees: int, losses: tuple[str, ...]) -> None:
    """CPU seconds and peak memory of `TreeRanker` by each loss and of LightGBM's lambdarank, each in a child of its own.

    All draw no rows and no features, and have the same rate and limits.
    """
    import lightgbm as lgb

    data, small = search_data(n_queries), search_data(20)
    threads = {"num_threads": 1}  # a forked child has no others

    def lambdarank(some: Queries) -> None:
        table = lgb.Dataset(some.X, some.grade, group=np.diff(some.offsets))
        lgb.train({**SAME, **threads, "objective": "lambdarank"}, table, n_trees)

    plain = {"learning_rate": 0.1, "subsample": 1.0, "feature_fraction": 1.0}

    def placet(loss: str, some: Queries) -> None:
        TreeRanker(loss, n_trees, **plain, backend_params=threads).fit(some)

    def symmetric(some: Queries) -> None:
        set_threads(1)
        TreeRanker(losses[0], n_trees, **plain, backend="placet").fit(some)

    name = f"{n_trees} trees on {len(data.grade)} rows, {data.X.nbytes / 2**20:.0f} MB"
    runs = {"LightGBM lambdarank": lambdarank, **{f"placet {loss}": partial(placet, loss) for loss in losses}}
    runs[f"placet {losses[0]}, symmetric"] = symmetric
    costs = {who: cost_in_child(partial(run, data), warm_up=partial(run, small)) for who, run in runs.items()}
    theirs = costs["LightGBM lambdarank"]
    table = Table(title=name, title_justify="left")
    for heading in ("", "CPU s", "ratio", "MB more", "ratio"):
        table.add_column(heading, justify="right" if heading else "left")
    for who, (cpu, peak) in costs.items():
        table.add_row(
            who,
            f"{cpu:.1f}",
            f"{cpu / theirs.cpu:.2f}",
            f"{peak / 2**20:.0f}",
            f"{peak / max(theirs.peak, 1):.2f}",
        )
    Console(width=max(Console().width, 110)).print(table)
    rows = {who: {"cpu": cost.cpu, "peak_mb": cost.peak / 2**20} for who, cost in costs.items()}
    save_rows(name, rows, {})


def trees(quick: bool) -> None:
    """100 trees on 2,000 queries of 120 rows."""
    grow(300 if quick else 2_000, 100, ("pmop-fd", "pl-partition"), repeat=1 if quick else 2)


def million(quick: bool) -> None:
    """20 trees on a million rows, including binning of the features."""
    grow(300 if quick else 8_334, 20, ("pmop-fd",), repeat=1)


def grow(n_queries: int, n_trees: int, losses: tuple[str, ...], repeat: int) -> None:
    """Trees with Placet's losses against LightGBM's own lambdarank, all else equal."""
    import lightgbm as lgb

    data = search_data(n_queries)

    def lambdarank() -> None:
        params = {**SAME, "objective": "lambdarank", "num_threads": get_threads()}
        lgb.train(params, lgb.Dataset(data.X, data.grade, group=np.diff(data.offsets)), n_trees)

    def ours(loss: str):
        return lambda: TreeRanker(loss, n_trees, backend_params={"num_threads": get_threads()}).fit(data)

    first, *others = losses
    compare(
        f"{n_trees} trees rows={len(data.grade)} threads={get_threads()}",
        {
            f"placet {first}": ours(first),
            "LightGBM lambdarank": lambdarank,
            **{f"placet {loss}": ours(loss) for loss in others},
        },
        repeat=repeat,
    )


def predict(quick: bool) -> None:
    """Prediction of scores for many rows."""
    train = search_data(50)
    X = np.random.default_rng(0).standard_normal((100_000 if quick else 1_000_000, N_FEATURES), dtype=np.float32)
    linear = LinearRanker(tol=0.1).fit(train)
    w = linear.coef_.astype(np.float32)
    label = f"rows={len(X)} threads={get_threads()}"
    compare(f"linear predict {label}", {"placet": lambda: linear.predict(X), "X @ w": lambda: X @ w}, repeat=7)
    import lightgbm as lgb

    forest = TreeRanker(n_trees=20, backend_params={"num_threads": get_threads()}).fit(train)
    common = {"num_threads": get_threads(), "verbosity": -1, "objective": "regression"}
    booster = lgb.train(common, lgb.Dataset(train.X, train.grade), 20)  # the same numbers of trees and leaves
    compare(
        f"trees predict {label}",
        {"placet": lambda: forest.predict(X), "LightGBM": lambda: booster.predict(X)},
        repeat=3,
    )


PARTS = {
    "memory": memory,
    "tree-memory": memory_of_trees,
    "evaluation": evaluation,
    "predict": predict,
    "trees": trees,
    "million": million,
    "half-million": half_million,
    "whole-million": whole_million,
}


def limit_threads(part: Callable[[bool], None]) -> Callable[[bool], None]:
    """The part with the number of threads of the losses also set for BLAS, PyTorch and LightGBM."""

    def run(quick: bool) -> None:
        with threadpool_limits(get_threads()):
            part(quick)

    return run


if __name__ == "__main__":
    main(__doc__, {name: limit_threads(part) for name, part in PARTS.items()}, threads=1)
