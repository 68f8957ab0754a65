"""Intervals of coefficients of choice models by simulation: how often do they hold the truth?

    python -m experiments.uncertainty.choices [--quick] [--seed N]      # from the project's root

Choices among four alternatives with two attributes.  "independent": 200 persons choose once.  "repeated": 80 persons, each
with tastes of its own, choose ten times, so that their choices depend on one another; the truth is then the fit to very many
such persons, as the average of tastes is not what a logit of all estimates.  Intervals of level 0.95 from the observed
information and by sandwich over persons, of coefficients and of the willingness to pay; and of the coefficients and shares of two groups of
choosers.  Intervals from the information must fail for repeated choices: else the sandwich would not be needed, or the
simulation would not need it.
"""

from collections.abc import Iterator

import numpy as np

import placet
from experiments.common import check, expected, parser
from placet.rank import ChoiceFit
from placet.simulate import choices

B = {"price": -1.0, "comfort": 0.5}
GROUPS = ({"price": -2.0, "comfort": 0.0}, {"price": 0.0, "comfort": 1.5})
PERSONS, TASKS, SPREAD, LARGE = 80, 10, 1.0, 20_000
RUNS, QUICK_RUNS = 500, 60


def repeated(persons: int, seed: int) -> dict[str, np.ndarray]:
    return choices(B, persons * TASKS, per_agent=TASKS, spread=SPREAD, random_state=seed)


def grouped(seed: int) -> dict[str, np.ndarray]:
    """120 persons, each in the first group with probability 2/3, who choose eight times."""
    first = int(np.random.default_rng(seed).binomial(120, 2 / 3))
    parts = [
        choices(b, n * 8, per_agent=8, random_state=[seed, k])
        for k, (b, n) in enumerate(zip(GROUPS, (first, 120 - first)))
    ]
    parts[1]["agent"], parts[1]["choice_set"] = parts[1]["agent"] + first, parts[1]["choice_set"] + 8 * first
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def covers(fit: ChoiceFit, truth: np.ndarray) -> list[bool]:
    """Whether the intervals hold the true coefficients, and that of the willingness to pay its value."""
    low, high = fit.coefficients.interval
    worth = fit.willingness_to_pay("price")["comfort"]
    return [*((low <= truth) & (truth <= high)).tolist(), worth.low <= -truth[1] / truth[0] <= worth.high]


def coverage(runs: int, seed: int) -> Iterator[tuple[str, float]]:
    truth = np.array(list(B.values()))
    found = [covers(placet.choice(choices(B, 200, random_state=[seed, k])), truth) for k in range(runs)]
    yield "independent, coefficients, observed", float(np.mean([row[:2] for row in found]))
    yield "independent, willingness to pay, observed", float(np.mean([row[2] for row in found]))
    truth = placet.choice(repeated(LARGE, seed)).coefficients.values
    for errors in ("agent", "observed"):
        found = [covers(placet.choice(repeated(PERSONS, 1000 + seed + k), errors=errors), truth) for k in range(runs)]
        yield f"repeated, coefficients, {errors}", float(np.mean([row[:2] for row in found]))
        yield f"repeated, willingness to pay, {errors}", float(np.mean([row[2] for row in found]))
    held, shares = [], []
    for k in range(runs // 5):
        classes = placet.choice(grouped(seed + k), classes=2, restarts=4).classes
        assert classes is not None
        for table, b in zip(classes.coefficients, GROUPS):
            low, high = table.interval
            held.append((low <= list(b.values())) & (list(b.values()) <= high))
        shares.append(classes.shares[0].low <= 2 / 3 <= classes.shares[0].high)
    yield "groups, coefficients", float(np.mean(held))
    yield "groups, shares", float(np.mean(shares))


def main() -> None:
    arguments = parser(__doc__).parse_args()
    ours = {}
    for name, value in coverage(QUICK_RUNS if arguments.quick else RUNS, arguments.seed):
        print(f"{name} {value:.3f}", flush=True)
        ours[f"simulated, {name}"] = value
    check(ours, expected(__file__, "quick" if arguments.quick else ""))


if __name__ == "__main__":
    main()
