"""Effects of controls by simulation: how often do their intervals hold the truth, and are they unbiased?

    python -m experiments.uncertainty.effects [--quick] [--seed N]      # from the project's root

Votes of an arena: 50 models, some of them wordy, ties, and four controls with effects 0.25, 0.10, 0.05 and 0.02.  Two
standard errors miss one effect in twenty by chance alone, so that no single run decides: the share over all runs must
be the stated 95 %, within three Monte Carlo standard errors, and the errors must have no mean.  Ballots of five with two
controls of their rows in the same way.
"""

import time
from collections.abc import Iterator

import numpy as np

import placet
from experiments.common import check, expected, parser
from placet.losses.pairwise import outcome_probabilities

VOTES = np.array([0.25, 0.10, 0.05, 0.02])
BALLOTS = np.array([0.25, -0.10])
RUNS, QUICK_RUNS = 40, 60


def arena(seed: int, n_votes: int, n: int = 50) -> placet.Comparisons:
    """Votes on models whose answers differ in length."""
    rng = np.random.default_rng(seed)
    theta, style = rng.normal(size=n) / 2, rng.normal(size=n)
    a = rng.integers(0, n, n_votes)
    b = (a + rng.integers(1, n, n_votes)) % n
    Z = rng.normal(size=(n_votes, len(VOTES)))
    Z[:, 0] += 2 * (style[a] - style[b])
    win, loss, _ = outcome_probabilities(theta[a] - theta[b] + Z @ VOTES, "davidson", -0.3)
    u = rng.random(n_votes)
    outcome = np.where(u < win, "a", np.where(u < win + loss, "b", "tie"))
    return placet.Comparisons.from_battles(a, b, outcome, items=range(n), control=Z)


def ballots(seed: int, n_ballots: int, n: int = 10, size: int = 5) -> placet.Rankings:
    """Ballots of some of the items, their rows with controls."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=n)
    item = np.array([rng.choice(n, size, replace=False) for _ in range(n_ballots)])
    Z = rng.normal(size=(n_ballots, size, len(BALLOTS)))
    s = theta[item] + Z @ BALLOTS + rng.gumbel(size=item.shape)
    tier = np.argsort(np.argsort(-s, axis=1), axis=1)
    offsets = size * np.arange(n_ballots + 1)
    return placet.Rankings(item.ravel(), tier.ravel(), offsets, items=range(n), control=Z.reshape(-1, len(BALLOTS)))


def effects(kind: str, size: int, runs: int, seed: int) -> Iterator[tuple[str, float]]:
    """Share of effects within 1.96 standard errors, the largest mean error in units of its own, and seconds."""
    truth, make = (VOTES, arena) if kind == "votes" else (BALLOTS, ballots)
    method, params = ("bradley-terry", {"ties": "davidson"}) if kind == "votes" else ("plackett-luce", {})
    z, seconds = [], []
    for run in range(runs):
        data = make(seed + run, size)
        start = time.process_time()
        frame = placet.consensus(data, method, **params).controls
        seconds.append(time.process_time() - start)
        z.append((frame["coefficient"].to_numpy() - truth) / frame["stderr"].to_numpy())
    errors = np.array(z)
    name = f"simulated, {size:,} {kind}"
    yield f"{name}, effects within 1.96 standard errors", float((np.abs(errors) < 1.96).mean())
    yield f"{name}, largest mean error in its own standard errors", float(np.abs(errors.mean(axis=0)).max() * runs**0.5)
    yield f"{name}, spread of errors in standard errors", float(errors.std())
    yield f"{name}, CPU seconds of a fit", float(np.median(seconds[1:]))


def main() -> None:
    arguments = parser(__doc__).parse_args()
    runs = QUICK_RUNS if arguments.quick else RUNS
    sizes = {"votes": 3_000, "ballots": 400} if arguments.quick else {"votes": 135_000, "ballots": 2_000}
    ours: dict[str, float] = {}
    for kind, size in sizes.items():
        found = dict(effects(kind, size, runs, arguments.seed))
        print(", ".join(f"{name} {value:.3f}" for name, value in found.items()), flush=True)
        ours |= found
    check(ours, expected(__file__, "quick" if arguments.quick else ""))


if __name__ == "__main__":
    main()
