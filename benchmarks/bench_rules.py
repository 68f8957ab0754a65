"""Kemeny against the PuLP solver of corankco, the time of every rule, the multinomial preference model, and ratings.

python -m benchmarks.bench_rules            # everything
python -m benchmarks.bench_rules --quick    # small sizes
"""

import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Callable

import numpy as np

import placet
from benchmarks.harness import compare, main
from experiments.common import data_folder, letor_files
from placet.aggregate import MODELS, RULES
from placet.aggregate.rules.kemeny import kemeny_order
from placet.data import Comparisons, Rankings
from placet.io import read_letor_agg


def uniform(n: int, ballots: int, seed: int) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [rng.permutation(n).tolist() for _ in range(ballots)]


def mallows(n: int, phi: float, ballots: int, seed: int) -> list[list[int]]:
    """Draw Mallows orders around 0, 1, ..., n - 1 by repeated insertion.

    `placet.simulate.mallows` draws others from the same seed, and how hard Kemeny is depends on the draw.
    """
    rng = np.random.default_rng(seed)
    orders = []
    for _ in range(ballots):
        order: list[int] = []
        for i in range(n):
            chance = phi ** np.arange(i, -1, -1.0)
            order.insert(int(rng.choice(i + 1, p=chance / chance.sum())), i)
        orders.append(order)
    return orders


def run_with_patience(run: Callable[[], float], patience: float) -> tuple[float | None, float]:
    """The result of ``run`` and its seconds, in a separate process that is killed, with its solver, after ``patience`` seconds."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def work() -> None:
        os.setsid()
        start = time.perf_counter()
        sender.send((run(), time.perf_counter() - start))

    child = context.Process(target=work)
    child.start()
    if receiver.poll(patience):
        found = receiver.recv()
        child.join()
        return found
    os.killpg(child.pid, signal.SIGKILL)
    child.join()
    return None, patience


def kemeny_against_pulp(n: int, ballots: int, patience: float = 180.0) -> None:
    from corankco.algorithms.exact.exactalgorithmpulp import ExactAlgorithmPulp
    from corankco.dataset import Dataset
    from corankco.scoringscheme import ScoringScheme

    orders = uniform(n, ballots, seed=0)
    votes = Rankings.from_orders(orders, items=range(n))
    dataset = Dataset.from_raw_list([[{x} for x in order] for order in orders])
    scheme = ScoringScheme.get_unifying_scoring_scheme_p(1.0)
    start = time.perf_counter()
    result = kemeny_order(votes)
    ours = time.perf_counter() - start
    assert result.optimal
    score, theirs = run_with_patience(
        lambda: float(ExactAlgorithmPulp().compute_consensus_rankings(dataset, scheme, True).kemeny_score), patience
    )
    said = "no answer in" if score is None else f"distance {score:g} in"
    print(
        f"kemeny exact {n} items {ballots} uniform ballots: placet distance {result.distance:g} in {ours:.2f} s; ",
        end="",
    )
    print(f"corankco PuLP {said} {theirs:.1f} s, ratio {'above ' if score is None else ''}{theirs / ours:.1f}")


def certify(name: str, orders: list[list[int]]) -> None:
    votes = Rankings.from_orders(orders, items=range(len(orders[0])))
    start = time.perf_counter()
    result = kemeny_order(votes, time_limit=120)
    print(f"{name}: {result}, {result.components} components, {time.perf_counter() - start:.2f} s")


def ratings(users: int, items: int, total: int) -> Rankings:
    """Simulated ratings, 1 to 5 stars, with popular and rare items."""
    rng = np.random.default_rng(0)
    share = rng.pareto(1.0, items) + 0.1
    user = np.sort(rng.integers(0, users, total))
    item = rng.choice(items, total, p=share / share.sum())
    key = np.unique(user * items + item)
    user, item = key // items, key % items
    stars = np.clip(np.round(3.5 + 0.7 * rng.normal(size=items)[item] + rng.normal(size=len(item))), 1, 5)
    order = np.lexsort((-stars, user))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(user, minlength=users))])
    return Rankings(item[order], (5 - stars[order]).astype(int), offsets, items=range(items), score=stars[order])


def multinomial(quick: bool) -> None:
    votes = ratings(100, 200, 5_000) if quick else ratings(943, 1682, 130_000)
    for variance in (False, True):
        MODELS["mpm"]("rating", variance=variance).fit(votes)
        start = time.perf_counter()
        model = MODELS["mpm"]("rating", variance=variance).fit(votes)
        print(f"mpm, variances {variance}: {votes}, {time.perf_counter() - start:.2f} s; {model.fit_.message}")
    letor = data_folder("letor4/MQ2008-agg")
    if letor is not None:
        parts = [read_letor_agg(path).rankings for path in letor_files(letor)]
        MODELS["mpm"]("rating").fit(parts[0])
        start = time.perf_counter()
        for part in parts:
            MODELS["mpm"]("rating").fit(part)
        print(
            f"mpm: {sum(len(part.instances) for part in parts)} queries of MQ2008-agg, {time.perf_counter() - start:.2f} s"
        )
    large = ratings(1_000, 2_000, 100_000) if quick else ratings(138_000, 27_000, 25_000_000)
    start = time.perf_counter()
    MODELS["mpm"]("rating").fit(large)
    print(f"mpm: {large}, {time.perf_counter() - start:.2f} s")


def kemeny(quick: bool) -> None:
    certify("warm up", uniform(6, 5, 0))
    for n, ballots in ((12, 9),) if quick else ((20, 25), (30, 25), (40, 25)):
        kemeny_against_pulp(n, ballots)
    certify("kemeny, Mallows phi 0.97", mallows(40 if quick else 100, 0.97, 30, 0))
    certify("kemeny, Mallows phi 0.99", mallows(40 if quick else 100, 0.99, 20, 1))


def rules(quick: bool) -> None:
    many = Rankings.from_orders(uniform(100, 200 if quick else 5_000, 1), items=range(100))
    jobs = ("borda", "copeland", "median-rank", "footrule", "mc4", "rank-centrality", "rrf", "kemeny-local")
    compare(
        f"rules on {len(many)} ballots of 100", {name: lambda name=name: RULES[name](many) for name in jobs}, repeat=3
    )


def elections(quick: bool) -> None:
    """Election rules with many items: distinct majorities, and few ballots with many ties."""
    n = 200 if quick else 1_000
    rng = np.random.default_rng(2)
    i, j = np.triu_indices(n, 1)
    share = rng.uniform(size=len(i))
    pairs = Comparisons(i, j, share, 1 - share, 0 * share)
    ballots = Rankings.from_orders(uniform(n, 25, 3), items=range(n))
    for name in ("schulze", "ranked-pairs", "minimax", "baldwin", "nanson", "black", "irv", "stv", "bucklin"):
        for data in (pairs, ballots) if RULES[name].of_pairs else (ballots,):
            RULES[name](data[:1] if isinstance(data, Rankings) else Comparisons([0], [1], [1], [0], [0]))
            start = time.perf_counter()
            RULES[name](data)
            print(f"{name}: {data}, {time.perf_counter() - start:.2f} s")


def default_of_ratings(quick: bool) -> None:
    """The default method on ratings: asked are 3 CPU s for 100,000, and 180 CPU s and 4 GB for ten million of 20,000 items."""
    sizes = ((100, 200, 5_000),) if quick else ((943, 1682, 200_000), (100_000, 20_000, 16_000_000))
    placet.consensus(ratings(50, 60, 500))  # warm up
    for users, items, total in sizes:
        votes = ratings(users, items, total)
        start = time.process_time()
        board = placet.consensus(votes)
        seconds = time.process_time() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(f"{board.method} of ratings: {votes}, {seconds:.1f} CPU s, {peak:.2f} GB at most with the simulation")


PARTS = {
    "kemeny": kemeny,
    "rules": rules,
    "elections": elections,
    "multinomial": multinomial,
    "ratings": default_of_ratings,
}

if __name__ == "__main__":
    main(__doc__, PARTS)
