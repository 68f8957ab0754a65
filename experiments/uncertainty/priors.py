"""Learned priors by simulation: do intervals, probabilities and effects hold where popular items are better?

    python -m experiments.uncertainty.priors [--quick] [--seed N]      # from the project's root

Exposure is independent of quality, goes with it (correlation 0.7), is a power of it, or falls with the place by
quality (Zipf); 1,000, 6,000 and 50,000 votes, and few votes for each item.  Style goes with quality (correlation 0, 0.6,
0.9).  Two boards of the same truth must not differ; a veteran beats a newcomer as often as said; and a perfect record is
no less sure than one with a loss.
"""

from collections.abc import Iterator

import numpy as np
from scipy.special import expit

import placet
from experiments.common import check, expected, parser
from placet import Comparisons, Rankings
from placet.aggregate import Consensus
from placet.aggregate.result.difference import difference

N = 30
EXPOSURES = ("independent", "correlated", "power", "zipf")
EFFECT = 0.5


def truth(exposure: str, rng: np.random.Generator, n: int = N) -> tuple[np.ndarray, np.ndarray]:
    """Scores of standard deviation 1 with mean zero, and how often each item is drawn relative to the others."""
    theta = rng.standard_normal(n)
    other = rng.standard_normal(n)
    popularity = {
        "independent": np.exp(other),
        "correlated": np.exp(1.5 * (0.7 * theta + np.sqrt(1 - 0.7**2) * other)),
        "power": np.exp(1.5 * theta),
        "zipf": 1 / (1 + np.argsort(np.argsort(-theta))),
    }[exposure]
    return theta - theta.mean(), popularity / popularity.sum()


def drawn_pairs(share: np.ndarray, votes: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of different items, each drawn with its share."""
    a, b = (rng.choice(len(share), votes, p=share) for _ in range(2))
    while (same := a == b).any():
        b[same] = rng.choice(len(share), int(same.sum()), p=share)
    return a, b


def board(theta: np.ndarray, share: np.ndarray, votes: int, rng: np.random.Generator) -> Consensus:
    """Bradley-Terry with its learned prior on drawn votes."""
    a, b = drawn_pairs(share, votes, rng)
    won = rng.random(votes) < expit(theta[a] - theta[b])
    data = Comparisons.from_battles(a, b, np.where(won, "a", "b"), items=range(len(theta)))
    return placet.consensus(data, "bradley-terry")


def ballot_board(theta: np.ndarray, share: np.ndarray, ballots: int, rng: np.random.Generator) -> Consensus:
    """Plackett-Luce with its learned prior on ballots of four."""
    orders = []
    for _ in range(ballots):
        own = rng.choice(len(theta), 4, replace=False, p=share)
        orders.append(own[np.argsort(-theta[own] - rng.gumbel(size=4))].tolist())
    return placet.consensus(Rankings.from_orders(orders, items=range(len(theta))), "plackett-luce")


def covered(c: Consensus, theta: np.ndarray) -> float:
    low, high = c.interval(0.95)
    return float(np.mean((low <= theta) & (theta <= high)))


def score_intervals(kind: str, exposure: str, size: int, runs: int, seed: int) -> Iterator[tuple[str, float]]:
    """The share of scores in their intervals, and the root mean square error."""
    rng = np.random.default_rng(seed)
    shares, errors = [], []
    for _ in range(runs):
        theta, share = truth(exposure, rng)
        c = (board if kind == "votes" else ballot_board)(theta, share, size, rng)
        shares.append(covered(c, theta))
        errors.append(np.mean((c.scores - theta) ** 2))
    name = f"simulated, {size} {kind}, {exposure} exposure"
    yield f"{name}, scores covered", float(np.mean(shares))
    yield f"{name}, error", float(np.sqrt(np.mean(errors)))


def newcomers(exposure: str, votes: int, runs: int, seed: int) -> Iterator[tuple[str, float]]:
    """Means over the ten items with most and the ten with fewest votes: probabilities said less those that are true."""
    rng = np.random.default_rng(seed)
    win, above = [], []
    for _ in range(runs):
        theta, share = truth(exposure, rng)
        c = board(theta, share, votes, rng)
        order = np.argsort(c.support)
        for new in order[:10].tolist():
            for old in order[-10:].tolist():
                win.append(c.win_probability(old, new) - expit(theta[old] - theta[new]))
                above.append(c.prob_above(old, new) - (theta[old] > theta[new]))
    name = f"simulated, {votes} votes, {exposure} exposure, veteran against newcomer"
    yield f"{name}, win probability said less true", float(np.mean(win))
    yield f"{name}, probability above said less true", float(np.mean(above))


def false_changes(exposure: str, votes: int, more: int, runs: int, seed: int) -> Iterator[tuple[str, float]]:
    """The share of runs in which two boards of the same truth have a change beyond chance at 95 %."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(runs):
        theta, share = truth(exposure, rng)
        found.append(difference(board(theta, share, votes, rng), board(theta, share, more, rng)).beyond.any())
    yield f"simulated, {votes} and {more} votes, {exposure} exposure, false change", float(np.mean(found))


def style(correlation: float, votes: int, runs: int, seed: int) -> Iterator[tuple[str, float]]:
    """The share of runs whose interval has the effect of style, and of the scores in theirs."""
    rng = np.random.default_rng(seed)
    effects, scores = [], []
    for _ in range(runs):
        theta, _ = truth("independent", rng)
        usual = correlation * theta + np.sqrt(1 - correlation**2) * rng.standard_normal(N)
        a, b = drawn_pairs(np.full(N, 1 / N), votes, rng)
        x = usual[a] - usual[b] + rng.standard_normal(votes)
        won = rng.random(votes) < expit(theta[a] - theta[b] + EFFECT * x)
        data = Comparisons.from_battles(a, b, np.where(won, "a", "b"), items=range(N), control={"style": x})
        c = placet.consensus(data, "bradley-terry")
        effects.append(abs(c.effects.coefficient[0] - EFFECT) <= 1.96 * c.effects.stderr[0])
        scores.append(covered(c, theta))
    name = f"simulated, {votes} votes, style with correlation {correlation:g}"
    yield f"{name}, effect covered", float(np.mean(effects))
    yield f"{name}, scores covered", float(np.mean(scores))


def records(runs: int, seed: int) -> Iterator[tuple[str, float]]:
    """Perfect records against one loss, and how often equal items of four votes a pair are separated."""
    one, none = (placet.consensus(Comparisons([0], [1], [w], [200.0 - w], [0.0])) for w in (199.0, 200.0))
    yield "simulated, 200 wins of 200, probability above less that of 199", none.prob_above(0, 1) - one.prob_above(0, 1)
    yield "simulated, 200 wins of 200, separated", float(none.separated()[0, 1])
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(4, 1)
    wrong = []
    for _ in range(runs):
        won = rng.binomial(4, 0.5, len(i)).astype(float)
        wrong.append(placet.consensus(Comparisons(i, j, won, 4 - won, np.zeros(len(i)))).separated().any())
    yield "simulated, four votes a pair of four equal items, separated", float(np.mean(wrong))


def settings(quick: bool, seed: int) -> Iterator[Iterator[tuple[str, float]]]:
    """All settings of a run, each as named quantities."""
    if quick:
        yield score_intervals("votes", "power", 1000, 40, seed)
        yield score_intervals("votes", "independent", 60, 40, seed)
        yield newcomers("power", 1000, 20, seed)
        yield false_changes("power", 1000, 10_000, 15, seed)
        yield style(0.9, 1000, 30, seed)
        yield records(50, seed)
        return
    for exposure in EXPOSURES:
        for votes, runs in ((60, 400), (150, 400), (1000, 400), (6000, 200), (50_000, 100)):
            yield score_intervals("votes", exposure, votes, runs, seed)
        yield score_intervals("ballots", exposure, 100, 200, seed)
        yield newcomers(exposure, 1000, 200, seed)
        yield false_changes(exposure, 1000, 10_000, 200, seed)
    for correlation in (0.0, 0.6, 0.9):
        for votes in (1000, 6000):
            yield style(correlation, votes, 200, seed)
    yield records(1000, seed)


def main() -> None:
    arguments = parser(__doc__).parse_args()
    ours: dict[str, float] = {}
    for one in settings(arguments.quick, arguments.seed):
        found = dict(one)
        print(", ".join(f"{name} {value:.3f}" for name, value in found.items()), flush=True)
        ours |= found
    check(ours, expected(__file__, "quick" if arguments.quick else ""))


if __name__ == "__main__":
    main()
