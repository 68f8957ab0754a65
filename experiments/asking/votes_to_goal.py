"""Votes to a goal: asking what the goal needs, against random pairs with a stop that may be looked at as well.

    python -m experiments.asking.votes_to_goal [--quick] [--seed N]      # from the project's root

Best of 12, top 3 of 20, order of 12; neighbors differ by 0.3 (`spaced`), or the best item is 0.6 above eleven equal
ones (`one leader`).  Medians over 200 polls.  Random pairs stop by a fit of all votes and the normal mixture boundary
z^2 > (1 + 1 / (r I)) (log(1 + r I) - 2 log(2 a)), which is valid for many votes only, and which serves them better than
the library's stop: that counts the votes of each pair alone, and needs four to eight times as many random pairs.

The right to look is compared with designs that fixed their number of votes knowing every gap: two items, and the
leader against each of its rivals with the numbers of votes that suffice for half of the polls.
"""

import time
from typing import NamedTuple

import numpy as np
import scipy

from experiments.asking.crowds import Crowd, uniform
from experiments.common import check, expected, parser
from placet.aggregate.asking.goal_evidence import n_false
from placet.aggregate.asking.simulated_poll import votes_needed
from placet.aggregate.goal_verdict import Goal

LEVEL, GAP = 0.95, 0.3
LOOK_EVERY = 10
"""Random pairs are looked at after so many votes, which is less than 1 % of what they need."""

WIDTH = 0.5
"""Standard deviation of the differences that the mixture boundary is made for."""

PRIOR = 2.0


class Case(NamedTuple):
    name: str
    goal: Goal
    theta: np.ndarray


def spaced(n: int, gap: float = GAP) -> np.ndarray:
    return -gap * np.arange(float(n))


CASES = [
    Case("best of 12, spaced", Goal("best"), spaced(12)),
    Case("best of 12, one leader", Goal("best"), np.append(0.6, np.zeros(11))),
    Case("top 3 of 20, spaced", Goal("top", k=3), spaced(20)),
    Case("order of 12, spaced", Goal("order"), spaced(12)),
]
QUICK = [
    Case("best of 6, spaced", Goal("best"), spaced(6, 0.6)),
    Case("order of 6, spaced", Goal("order"), spaced(6, 0.6)),
]


def fits(won: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(runs, n) scores and (runs, n, n) covariances by Newton's steps from ``start``, with a wide normal prior."""
    met, scores = won + won.transpose(0, 2, 1), start
    n = scores.shape[1]
    for _ in range(2):
        share = scipy.special.expit(scores[:, :, None] - scores[:, None])
        slope = (won - met * share).sum(axis=2) - scores / PRIOR**2
        weight = met * share * (1 - share)
        hessian = -weight
        hessian[:, np.arange(n), np.arange(n)] += weight.sum(axis=2) + 1 / PRIOR**2
        covariance = np.linalg.inv(hessian)
        scores = scores + np.clip((covariance @ slope[:, :, None])[:, :, 0], -1.0, 1.0)
    return scores, covariance


def is_told(scores: np.ndarray, covariance: np.ndarray, goal: Goal) -> np.ndarray:
    """(runs,): whether every difference that the goal needs is beyond the mixture boundary."""
    n = scores.shape[1]
    order = np.argsort(-scores, axis=1)
    if goal.name == "order":
        high, low = order[:, :-1], order[:, 1:]
    else:
        high, low = np.repeat(order[:, : goal.k], n - goal.k, axis=1), np.tile(order[:, goal.k :], goal.k)
    run = np.arange(len(scores))[:, None]
    gap = scores[run, high] - scores[run, low]
    variance = covariance[run, high, high] + covariance[run, low, low] - 2 * covariance[run, high, low]
    gain = WIDTH**2 / variance
    alpha = (1 - LEVEL) / n_false(goal, n)
    return np.asarray((gap**2 / variance > (1 + 1 / gain) * (np.log1p(gain) - 2 * np.log(2 * alpha))).all(axis=1))


def by_random_pairs(case: Case, runs: int, most: int, seed: int) -> np.ndarray:
    """(runs,): votes until the stop by a fit."""
    crowd = Crowd(case.theta, case.goal, runs, most, seed)
    needed, scores = np.full(runs, np.inf), np.zeros((runs, crowd.n))
    while crowd.votes < most and crowd.alive.any():
        crowd.vote(*uniform(crowd), evidence=False)
        if crowd.votes % LOOK_EVERY:
            continue
        going = np.flatnonzero(crowd.alive)
        scores[going], covariance = fits(crowd.won[going], scores[going])
        done = going[is_told(scores[going], covariance, case.goal)]
        needed[done], crowd.alive[done] = crowd.votes, False
    return needed


def fixed_pair(share: float, alpha: float, power: float) -> int:
    """The least number of votes on two items after which a binomial test, of one side and level ``alpha``, tells the one
    that wins ``share`` of them with probability ``power``.
    """
    votes = np.arange(1, 5000)
    least = scipy.stats.binom.isf(alpha, votes, 0.5) + 1  # wins needed
    reached = scipy.stats.binom.sf(least - 1, votes, share) >= power
    return int(votes[len(votes) - np.argmin(reached[::-1])])


def cost_of_looking(runs: int, seed: int) -> dict[str, float]:
    """Votes of our rule over those of fixed designs that knew the gaps."""
    alpha, found = 1 - LEVEL, {}
    pair = votes_needed([0.5, 0.0], Goal("best"), runs=runs, n=1, random_state=seed)
    for part in (0.5, 0.9):
        fixed = fixed_pair(float(scipy.special.expit(0.5)), alpha / 2, part)
        needed = float(np.quantile(pair, part))
        print(f"two items, gap 0.5, {part:.0%} of polls: {needed:.0f} votes, fixed {fixed}", flush=True)
        found[f"two items, gap 0.5, {part:.0%} of polls, votes over a fixed design's"] = needed / fixed
    return found


def fixed_star(theta: np.ndarray, power: float = 0.5) -> int:
    """Votes of a design that knows the leader and every gap: as many on each rival as suffice, all at once."""
    rivals = np.sort(theta)[::-1][1:]
    share = scipy.special.expit(theta.max() - rivals)
    each, alpha = power ** (1 / len(rivals)), (1 - LEVEL) / (2 * len(rivals))
    return sum(fixed_pair(float(one), alpha, each) for one in share)


def main() -> None:
    made = parser(__doc__)
    made.add_argument(
        "--only", nargs="+", default=[], metavar="WORD", help="cases whose name has all of these; no check"
    )
    given = made.parse_args()
    cases, runs, most = (QUICK, 30, 8_000) if given.quick else (CASES, 200, 60_000)
    ours: dict[str, float] = {}
    for case in cases:
        if not all(word in case.name for word in given.only):
            continue
        start = time.process_time()
        asked = float(np.median(votes_needed(case.theta, case.goal, runs=runs, random_state=given.seed)))
        fit = float(np.median(by_random_pairs(case, runs, most, given.seed)))
        print(f"{case.name}: our rule {asked:.0f}, random pairs {fit:.0f}", flush=True)
        ours[f"{case.name}, our rule, votes"] = asked
        ours[f"{case.name}, our rule over random pairs"] = asked / fit
        if case.goal.name == "best":
            ours[f"{case.name}, over a fixed design that knows all gaps"] = asked / fixed_star(case.theta)
        print(f"  {time.process_time() - start:.1f} CPU s", flush=True)
    ours |= cost_of_looking(runs, given.seed)
    if given.only:
        print(ours)
        return
    ours = {f"simulated, {name}": value for name, value in ours.items()}
    check(ours, expected(__file__, "quick" if given.quick else ""))


if __name__ == "__main__":
    main()
