"""Mean ratings adjusted for who rated: rating = level of the user + score of the item + noise."""

import math
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtri

from placet.aggregate.ballots.two_way import TwoWay
from placet.aggregate.data_facts import notes_of_data
from placet.aggregate.instances import refuse_instances
from placet.aggregate.likelihood.existence import WAY_OUT, agent_factor
from placet.aggregate.likelihood.information import WAY_OUT as FEWER, Stderr, inverse_of, with_mean_zero
from placet.aggregate.likelihood.prior import LEARN, check_prior
from placet.aggregate.places import ballots_of
from placet.aggregate.result.result import Consensus
from placet.aggregate.result.uncertainty import MOST_SIMULATED, SAMPLED
from placet.data import DataError, Rankings
from placet.data.arrays import Floats, tier_runs
from placet.data.engines.memory import refuse_square
from placet.data.parameters import Estimator
from placet.losses.pairwise import win_probability
from placet.optim import Fit

LEAST_RATIO, MOST_RATIO = 1e-6, 1e6
"""Bounds of the variance of ratings over that of item scores."""

MOST_EXACT, PROBES, DRAWS = 400, 8, 16
"""Items up to which traces are exact; random vectors for traces and for standard errors of very many items."""

MODEL_RATINGS = 10.0
"""Number of ratings of an item at which its own scatter counts as much as that of all items in its error."""

MOST_WEIGHT = 1e100
"""Weights are scaled to at most this, whose products are finite: beside such weights neither prior nor error counts."""

RESOLVED = 1e-13
"""Least ratio of variances beside the largest weight of an item: float64 solves no equations with less."""

ROUNDS, ACCURACY = 30, 2e-3
WIDEST_BAND = 30.0
LOGISTIC = 1.702  # the logistic function of LOGISTIC x is within 0.01 of the normal one of x


class AdjustedMean(Estimator):
    """A rating is the level of its user, plus the score of the item, plus noise: the mean, adjusted for who rated.

    Levels are free, so only differences between ratings of the same user count.  Scores are normal around a line in the
    log of the number of ratings, whose slope is learned unless it is negative: items with few ratings are drawn to what
    items rated as often get.  Scores are ratings of the average user.

    Parameters
    ----------
    prior : float, "learn" or None
        Standard deviation of the scores around the line, in points of the rating scale; "learn", the default: by
        restricted maximum likelihood (``consensus_.prior``).  None: no prior, and a ``DataError`` if no finite scores
        exist.
    stderr : "sandwich", "observed" or None
        Standard errors from the scatter of users (agents, else ballots); from the model alone; or none.
    agent_weight : mapping, optional
        Agents' names to the weights of their ballots (default 1).
    random_state : int
        Seed for sampled traces and standard errors.

    Conjugate gradients: O(rows) per step; O(n^3) once for errors of up to 4,096 items, beyond that sampled.

    >>> rated = {"user": list("uuvvw"), "item": list("abbca"), "stars": [5, 4, 2, 1, 3]}
    >>> ratings = Rankings.from_scores(rated, ballot="user", item="item", score="stars")
    >>> AdjustedMean(prior=None).fit(ratings).consensus_.scores.round(2).tolist()  # u is kind, v is strict
    [3.67, 2.67, 1.67]
    """

    method = "adjusted-mean"
    fits_parts = False

    def __init__(
        self,
        prior: float | str | None = "learn",
        stderr: Stderr = "sandwich",
        agent_weight: Any = None,
        random_state: int = 0,
    ):
        self.prior = prior
        self.stderr = stderr
        self.agent_weight = agent_weight
        self.random_state = random_state

    def fit(self, data: Rankings) -> "AdjustedMean":
        """Fit to ballots with scores, as `placet.read_ratings` gives them; without, tiers are one point apart."""
        self._check(data)
        full = data.weight * agent_factor(self.agent_weight, data)
        weight = full * min(1.0, MOST_WEIGHT / max(float(full.max(initial=0.0)), 1.0))
        score = -data.tier.astype(np.float64) if data.score is None else np.asarray(data.score, np.float64)
        t = TwoWay(data, score, weight)
        notes = self._connection_notes(t, data.items)
        notes += ["there are no ratings: tiers are taken as one point apart"] if data.score is None else []
        theta, ratio, noise = self._solve_scores(t)
        if t.slope(theta) < 0:  # being rated seldom is no merit
            t.ignore_support()
            theta, ratio, noise = self._solve_scores(t)
        self.theta_, self.noise_ = theta, math.sqrt(noise)
        wide = self._noise_of_errors(t, ratio, noise)
        self.prior_ = None if self.prior is None else math.sqrt(wide / ratio)
        covariance, stderr, more = self._errors(t, data, ratio, wide)
        win, spread = _win_law(data, t, theta, noise)
        value = t.squares(theta) / max(float(weight @ t.size), 1.0)
        self.consensus_ = Consensus(
            data.items,
            theta + t.level(theta),
            method=self.method,
            params=self.get_params(deep=False),
            covariance=covariance,
            stderr=stderr,
            win=win,
            spread=None if win is None else np.full(t.n, spread),
            fit=Fit(theta, value, 0.0, 1, True, "conjugate gradients"),
            notes=(*notes_of_data(data), *self._prior_note(t), *notes, *more),
            tolerance=1e-7 * max(self.noise_, 1e-9),
            support=np.bincount(data.item, full[t.ballot], t.n).astype(np.float64),
            prior=self.prior_,
        )
        return self

    def _check(self, data: Any) -> None:
        self.check_parameters()
        check_prior(self.prior)
        refuse_instances(ballots_of(data, self.method), self.method)

    def _connection_notes(self, t: TwoWay, items: Any) -> list[str]:
        """A note if no ratings connect groups of items; without a prior, a ``DataError``."""
        group = t.groups()
        count = int(group.max(initial=-1)) + 1
        if count <= 1:
            return []
        largest = np.argsort(-np.bincount(group), kind="stable")[:2]
        first = [str(items[int(np.argmax(group == k))]) for k in largest]
        text = f"the items fall into {count} groups that no user's ratings connect (those of {', '.join(first)}, ...)"
        if self.prior is None:
            raise DataError(f"no finite scores exist: {text}; {WAY_OUT}")
        return [f"{text}, so only the prior sets the distance between them"]

    def _solve_scores(self, t: TwoWay) -> tuple[Floats, float, float]:
        """Scores (n,), the variance of ratings over that of scores, and the variance of ratings."""
        free = t.free.shape[1]
        rank, probes = t.n - free, _probes(t, self.random_state)
        ratio = 0.0 if self.prior is None else max(1.0, _least_ratio(t))
        theta, back = np.zeros((t.n, 1)), np.zeros_like(probes)
        noise = least = max(1e-9 * float(t.weight[t.ballot] @ t.deviation**2) / max(t.total, 1.0), 1e-10)
        for _ in range(ROUNDS):
            theta = t.solve(t.goal[:, None], ratio, start=theta)
            back = t.solve(probes, ratio, 1e-3, back)
            trace = max(float((probes * t.unfree(back)).sum()), 0.0) / max(probes.shape[1], 1) * (rank > 0)
            if probes.shape[1] == t.n:
                trace *= t.n  # unit vectors instead of random signs
            unknowns = max(t.n - 1 - ratio * trace, 0.0)
            noise = max(t.squares(theta[:, 0]) / max(t.total - unknowns, 1.0), least)
            if self.prior is None:
                break
            own = t.unfree(theta[:, 0])
            known = max(rank - 1 - ratio * trace, 1e-3)
            square = float(own @ own) / known if self.prior == LEARN else self.prior**2  # type: ignore[operator]
            wanted = max(min(noise / max(square, 1e-300), MOST_RATIO), _least_ratio(t))
            moved, ratio = abs(math.log(wanted / ratio)), wanted
            if moved < ACCURACY:
                break
        return t.solve(t.goal[:, None], ratio, start=theta)[:, 0], ratio, noise

    def _noise_of_errors(self, t: TwoWay, ratio: float, noise: float) -> float:
        """The variance of ratings that goes with the scores' own and ``ratio``: more than ``noise`` at the least ratio.

        Where the scores explain the ratings, items without ratings are still as uncertain as scores differ.
        """
        if self.prior is None or ratio > _least_ratio(t) or not t.n:
            return noise
        own = t.unfree(self.theta_)
        return max(noise, ratio * (float(own @ own) / t.n if self.prior == LEARN else self.prior**2))  # type: ignore[operator]

    def _prior_note(self, t: TwoWay) -> list[str]:
        if self.prior_ is None:
            return []
        how = ", learned from the data" if self.prior == LEARN else ""
        around = "their mean"
        if t.free.shape[1] > 1:
            twice = t.slope(self.theta_) * math.log(2)
            around = f"a line in the log of the number of ratings (twice as many: {twice:+.2g})"
        return [f"prior: scores are normal around {around} with standard deviation {self.prior_:.3g}{how}"]

    def _errors(self, t: TwoWay, data: Rankings, ratio: float, noise: float) -> tuple[Any, Any, list[str]]:
        """Covariance or standard errors of the scores, and notes."""
        if self.stderr is None or not t.n:
            return None, None, []
        robust = self.stderr == "sandwich"
        G = t.gradients(self.theta_, data.agent) if robust else None
        units = 0 if G is None else int((np.diff(G.indptr) > 0).sum())
        own = np.sqrt(t.own / (t.own + MODEL_RATINGS)) * (robust and units > 1)
        model = np.sqrt(1 - own**2)
        drawn = np.divide(ratio, t.own, out=np.zeros(t.n), where=own > 0)
        own = own * np.sqrt(1 + drawn) * math.sqrt(units / max(units - 1, 1))
        said = ["standard errors are from the scatter of users' ratings"] if robust else []
        if t.n > MOST_SIMULATED:
            return None, _sampled_stderr(t, G, own, model, ratio, noise, self.random_state), [*said, SAMPLED]
        refuse_square(t.n, "the information", FEWER)
        try:
            inverse = inverse_of(t.dense(ratio))
        except np.linalg.LinAlgError:
            return None, None, ["no standard errors: weights differ too much for float64 to resolve them"]
        C = noise * with_mean_zero(inverse, t.n)
        if G is not None:
            moved = (G @ inverse).T
            moved -= moved.mean(axis=0)
            C = model[:, None] * C * model + own[:, None] * (moved @ moved.T) * own
        C = with_mean_zero(C, t.n)
        np.fill_diagonal(C, np.maximum(np.diag(C), 0.0))  # a variance of almost 0 may round to less
        return C, None, said


def _least_ratio(t: TwoWay) -> float:
    """The least variance of ratings over that of scores: LEAST_RATIO, unless vast weights would drown it."""
    return max(LEAST_RATIO, RESOLVED * float(t.support.max(initial=0.0)))


def _probes(t: TwoWay, random_state: int) -> Floats:
    """Vectors z with E[z z'] = I for traces: all unit vectors if few, else signs assigned in the order of the data."""
    if t.n <= MOST_EXACT:
        return np.eye(t.n)
    z = np.empty((t.n, PROBES))
    z[np.lexsort([t.goal, t.support])] = np.random.default_rng(random_state).choice([-1.0, 1.0], (t.n, PROBES))
    return z


def _sampled_stderr(
    t: TwoWay, G: Any, own: Floats, model: Floats, ratio: float, noise: float, random_state: int
) -> Floats:
    """Standard errors of very many items: what an item's own ratings give is exact, and the rest sampled."""
    rng = np.random.default_rng(random_state)
    order = np.lexsort([t.goal, t.support])
    signs = np.empty((t.n, DRAWS))
    signs[order] = rng.choice([-1.0, 1.0], (t.n, DRAWS))
    alone = 1 / (t.own + ratio)
    back = t.solve(signs, ratio, 1e-3)
    variance = noise * np.maximum(alone + (signs * (back - alone[:, None] * signs)).mean(axis=1), 0.5 * alone)
    if G is None:
        return np.sqrt(variance)
    z = G.T @ rng.standard_normal((G.shape[0], DRAWS))
    x = t.solve(z, ratio, 1e-3)
    first = np.asarray(G.multiply(G).sum(axis=0)).ravel() * alone**2
    second = (x**2 - (alone[:, None] * (z - z.mean(axis=0))) ** 2).mean(axis=1)
    return np.sqrt(model**2 * variance + own**2 * np.maximum(first + second, 0.5 * first))


def _win_law(data: Rankings, t: TwoWay, theta: Floats, noise: float) -> tuple[Any, float]:
    """The probability that a user rates one item above another, by Rao and Kupper's model, and the spread of scores.

    The difference of two ratings is normal, and they tie within a band that gives the share of ties among all pairs of
    ratings of the same user.
    """
    size, weight = t.size, t.weight
    pairs = float(weight @ (size * (size - 1) / 2))
    if pairs <= 0 or noise <= 1e-20:
        return None, 1.0
    first, length = tier_runs(data.tier, data.offsets)
    tied = float((weight[t.ballot[first]] * length * (length - 1) / 2).sum())
    own = theta[t.item]
    sums = np.bincount(t.ballot, own, len(size))
    between = float(weight @ (size * np.bincount(t.ballot, own**2, len(size)) - sums**2)) / pairs
    deviation = math.sqrt(2 * noise)
    band = math.sqrt(2 * noise + between) * float(ndtri((1 + min(tied / pairs, 0.999)) / 2)) * LOGISTIC / deviation
    tie = math.log(math.expm1(min(band, WIDEST_BAND))) if band > 0 else -math.inf
    return partial(win_probability, family="rao-kupper", tie=tie), deviation / (2 * LOGISTIC)
