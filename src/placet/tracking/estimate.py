"""Parameter estimation by maximum likelihood over a grid or by stochastic EM, with a check of identifiability."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit
from scipy.stats import norm

from placet.data.arrays import Floats
from placet.data.errors import as_choices
from placet.tracking.geometry import displacements
from placet.tracking.motion import end_moments, free_motion
from placet.tracking.observation_model import associations, probable_distances
from placet.tracking.observations import Arrivals
from placet.tracking.tracker import RankedSignalTracker, SampledTracks

PARAMETERS = ("detection", "clutter_rate", "sigma", "diffusion")
LONGER = 1.9  # step length in the first half of stochastic EM, relative to plain EM
DROP = 2.0  # a parameter is identified when the log-likelihood falls by this much on both sides of the estimate


class NotIdentified(UserWarning):
    """The data contain little information about the value of a parameter.

    >>> issubclass(NotIdentified, UserWarning)
    True
    """


@dataclass(frozen=True)
class Estimate:
    """Result of an estimation.

    ``tracker`` is the given tracker with the estimated parameters; ``history`` the parameters and log-likelihood of
    every run; ``identified`` tells for each parameter whether the data rule out smaller and larger values.

    >>> from placet.simulate import ranked_signals
    >>> from placet.tracking import Beacons, RankedSignalTracker, estimate_on_grid
    >>> beacons = Beacons([[0, 0], [10, 0], [0, 10]], speed=1.0)
    >>> drawn = ranked_signals(beacons, [[3, 4]] * 20, sigma=0.1, detection=0.9, clutter_rate=0.1, window=(0, 20))
    >>> tracker = RankedSignalTracker(beacons=beacons, sigma=0.3, clutter_rate=0.1, diffusion=0.1, particles=500)
    >>> found = estimate_on_grid(tracker, drawn.arrivals, (3, 4), grid={"sigma": [0.01, 0.1, 1.0]})
    >>> found.tracker.sigma, found.identified
    (0.1, {'sigma': True})
    """

    tracker: RankedSignalTracker
    log_likelihood: float
    history: list[dict[str, float]]
    identified: dict[str, bool]

    def summary(self) -> str:
        """The parameters, one per line.

        Returns
        -------
        str
            A line per parameter.

        >>> from placet.simulate import ranked_signals
        >>> from placet.tracking import Beacons, RankedSignalTracker, estimate_on_grid
        >>> beacons = Beacons([[0, 0], [10, 0], [0, 10]], speed=1.0)
        >>> drawn = ranked_signals(beacons, [[3, 4]] * 20, sigma=0.1, detection=0.9, clutter_rate=0.1, window=(0, 20))
        >>> tracker = RankedSignalTracker(beacons=beacons, sigma=0.3, clutter_rate=0.1, diffusion=0.1, particles=500)
        >>> found = estimate_on_grid(tracker, drawn.arrivals, (3, 4), grid={"sigma": [0.01, 0.1, 1.0]})
        >>> print(found.summary())
        log-likelihood -35.1 with
          sigma = 0.1
        """
        words = [f"log-likelihood {self.log_likelihood:.1f} with"]
        for name, known in self.identified.items():
            value = np.round(getattr(self.tracker, name), 6).tolist()
            words.append(f"  {name} = {value}" + ("" if known else "  (not identified by these data)"))
        return "\n".join(words)


def estimate_on_grid(
    tracker: RankedSignalTracker, arrivals: Arrivals, start: ArrayLike, end: ArrayLike | None = None, *,
    grid: dict[str, Sequence[float]], start_day: float | None = None, end_day: float | None = None,
) -> Estimate:  # fmt: skip
    """Find the best combination of the values in ``grid`` ({"sigma": [1, 2, 5], ...}).

    The criterion is the filter's log-likelihood; every run uses the same random numbers.  A parameter whose profile
    likelihood is flat, or peaks at an end of its grid, is not identified and raises a warning.  O(product of the grid
    sizes) filter runs.

    Returns
    -------
    Estimate
        The tracker with the best values, and which of them the data identify.

    >>> from placet.simulate import ranked_signals
    >>> from placet.tracking import Beacons, RankedSignalTracker, estimate_on_grid
    >>> beacons = Beacons([[0, 0], [10, 0], [0, 10]], speed=1.0)
    >>> drawn = ranked_signals(beacons, [[3, 4]] * 20, sigma=0.1, detection=0.9, clutter_rate=0.1, window=(0, 20))
    >>> tracker = RankedSignalTracker(beacons=beacons, sigma=0.3, clutter_rate=0.1, diffusion=0.1, particles=500)
    >>> found = estimate_on_grid(tracker, drawn.arrivals, (3, 4), grid={"sigma": [0.01, 0.1, 1.0]})
    >>> found.tracker.sigma
    0.1
    """
    unknown = set(grid) - set(PARAMETERS)
    if unknown or not grid:
        raise ValueError(f"grid names {sorted(unknown)}; choose from {as_choices(PARAMETERS)}")
    history: list[dict[str, float]] = []
    for values in product(*grid.values()):
        chosen: dict[str, Any] = dict(zip(grid, (float(v) for v in values)))
        value = _log_likelihood(replace(tracker, **chosen), arrivals, start, end, start_day, end_day)
        history.append(chosen | {"log_likelihood": value})
    best = max(history, key=lambda run: run["log_likelihood"])
    identified = {}
    for name in grid:
        profile = [max(r["log_likelihood"] for r in history if r[name] == float(v)) for v in grid[name]]
        k = int(np.argmax(profile))
        # The lowest point on each side: the peak must be inside the grid and fall by DROP in both directions.
        sides = [min(part, default=np.inf) for part in (profile[:k], profile[k + 1 :])]
        identified[name] = max(sides) <= profile[k] - DROP
    _warn(identified, "or are best at the edge of the grid; widen it, ")
    parameters: dict[str, Any] = {name: best[name] for name in grid}
    return Estimate(replace(tracker, **parameters), best["log_likelihood"], history, identified)


def estimate_by_em(
    tracker: RankedSignalTracker, arrivals: Arrivals, start: ArrayLike, end: ArrayLike | None = None, *,
    parameters: Sequence[str] = PARAMETERS, n_rounds: int = 40, start_day: float | None = None,
    end_day: float | None = None,
) -> Estimate:  # fmt: skip
    """Stochastic EM starting from the tracker's parameters: draw whole tracks, maximize over each parameter given them.

    The associations are marginalized exactly for each track drawn, including signals that were heard but not recorded.
    The first half of the iterations takes longer steps (EM is slow far from convergence); the estimate is the geometric
    mean (of the odds, for P_D) over the last quarter.

    Returns
    -------
    Estimate
        The tracker with the estimates, and how they were found.

    >>> from placet.simulate import ranked_signals
    >>> from placet.tracking import Beacons, RankedSignalTracker, estimate_by_em
    >>> beacons = Beacons([[0, 0], [10, 0], [0, 10]], speed=1.0)
    >>> drawn = ranked_signals(beacons, [[3, 4]] * 20, sigma=0.1, detection=0.9, clutter_rate=0.1, window=(0, 20))
    >>> tracker = RankedSignalTracker(beacons=beacons, sigma=0.3, clutter_rate=0.1, diffusion=0.1, particles=500)
    >>> found = estimate_by_em(tracker, drawn.arrivals, (3, 4), parameters=("sigma",), n_rounds=12)
    >>> round(float(found.tracker.sigma), 1)
    0.1
    """
    if set(parameters) - set(PARAMETERS):
        raise ValueError(f"parameters {list(parameters)}: choose from {as_choices(PARAMETERS)}")
    if tracker.keep != "earliest":
        raise ValueError("stochastic EM needs keep='earliest'; use estimate_on_grid for the strongest")
    if np.ndim(tracker.detection) or np.ndim(tracker.sigma):
        raise ValueError(
            "stochastic EM estimates one detection and one sigma for all beacons; start from one number each"
        )
    history: list[dict[str, float]] = []
    found: list[dict[str, Any]] = []
    current = tracker
    for iteration in range(n_rounds):
        drawn = replace(current, random_state=tracker.random_state + iteration).sample(
            arrivals, start, end, start_day=start_day, end_day=end_day
        )
        best = _maximize(current, drawn)
        stretch = LONGER if iteration < n_rounds // 2 else 1.0
        values = {name: _extrapolate(name, getattr(current, name), best[name], stretch) for name in parameters}
        current = replace(current, **values)
        found.append(values)
        plain = {name: float(np.mean(np.atleast_1d(values[name]))) for name in parameters}
        history.append(plain | {"log_likelihood": drawn.log_likelihood})
    late = found[-max(1, n_rounds // 4) :]
    means: dict[str, Any] = {name: _average(name, [values[name] for values in late]) for name in parameters}
    current = replace(tracker, **means)
    value, identified, better = _profile(current, parameters, arrivals, start, end, start_day, end_day)
    if better:
        warnings.warn(f"{', '.join(better)}: not yet at the best value; raise n_rounds above {n_rounds}", stacklevel=2)
    _warn(identified, "")
    return Estimate(current, value, history, identified)


def _log_likelihood(
    tracker: RankedSignalTracker, arrivals: Arrivals, start: ArrayLike, end: ArrayLike | None, start_day: float | None,
    end_day: float | None,
) -> float:  # fmt: skip
    """The filter's log-likelihood, or minus infinity if no particle explains the data."""
    from placet.data import DataError

    try:
        return tracker.track(arrivals, start, end, start_day=start_day, end_day=end_day, smooth=False).log_likelihood
    except DataError as error:
        if "no particle can explain" in str(error):
            return -np.inf
        raise


def _profile(
    tracker: RankedSignalTracker, parameters: Sequence[str], *data: Any
) -> tuple[float, dict[str, bool], list[str]]:
    """The log-likelihood at the estimate, and its response to halving and doubling each parameter.

    Also returns, for each parameter, whether both changes matter, and the parameters for which one is an improvement.
    """
    value = _log_likelihood(tracker, *data)
    identified, better = {}, []
    for name in parameters:
        here = np.asarray(getattr(tracker, name), dtype=np.float64)
        if name == "detection":
            sides = [expit(logit(np.clip(here, 1e-6, 1 - 1e-6)) + shift) for shift in (-1.0, 1.0)]
        else:
            sides = [np.maximum(here, 1e-12) / 2, np.maximum(here, 1e-12) * 2]
        changes: list[dict[str, Any]] = [{name: side if side.ndim else float(side)} for side in sides]
        gains = [_log_likelihood(replace(tracker, **change), *data) - value for change in changes]
        identified[name] = min(abs(gain) for gain in gains) > DROP
        if max(gains) > DROP:
            better.append(name)
    return value, identified, better


def _warn(identified: dict[str, bool], where: str) -> None:
    unknown = [name for name, known in identified.items() if not known]
    if unknown:
        warnings.warn(
            NotIdentified(
                f"{', '.join(unknown)}: other values explain the data about as well (within {DROP:g} in "
                f"log-likelihood), {where}give more days, or fix the value"
            ),
            stacklevel=3,
        )


def _to_free_scale(name: str, value: Any) -> Floats:
    """Transform a parameter to the scale on which it is averaged: log odds, logarithm, or (full covariance) itself."""
    value = np.asarray(value, dtype=np.float64)
    if name == "detection":
        return np.asarray(logit(np.clip(value, 1e-6, 1 - 1e-6)))
    return value if value.ndim == 2 else np.log(np.maximum(value, 1e-12))


def _from_free_scale(name: str, value: Floats) -> Any:
    """The inverse of ``_to_free_scale``."""
    plain = expit(value) if name == "detection" else value if np.ndim(value) == 2 else np.exp(value)
    return float(plain) if np.ndim(plain) == 0 else plain


def _extrapolate(name: str, old: Any, new: Any, stretch: float) -> Any:
    """Move ``stretch`` times the distance from old to new (exactly to new for a full covariance)."""
    a, b = _to_free_scale(name, old), _to_free_scale(name, new)
    return _from_free_scale(name, a + (stretch if b.ndim < 2 else 1.0) * (b - a))


def _average(name: str, values: list[Any]) -> Any:
    return _from_free_scale(name, np.mean([_to_free_scale(name, value) for value in values], axis=0))


def _maximize(tracker: RankedSignalTracker, drawn: SampledTracks) -> dict[str, Any]:
    """Each parameter's maximizer of the expected complete log-likelihood under the drawn tracks."""
    heard = chances = squares = clutter = 0.0
    p_d, sigma = float(np.asarray(tracker.detection)), float(np.asarray(tracker.sigma))
    for k, item in enumerate(drawn.steps):
        step, n = item.step, drawn.state.shape[1]
        points = np.ascontiguousarray(drawn.state[k, :, :2])
        _, far, share = probable_distances(item, points, tracker.beacons.geometry)
        mean, weight = step.shift + far / step.speed, share[:, None] / n
        matched = weight[:, :, None] * associations(item, far)  # (distances, signals, beacons)
        gap = step.time[None, :, None] - mean[:, None, :]
        squares += (matched * gap**2).sum()
        left = weight - matched.sum(axis=1)
        # Heard but not recorded: P_D P(outside) / (1 - P_D P(inside)), with the second moment outside.
        a, b = (step.low - mean) / sigma, (step.cut - mean) / sigma
        inside = norm.cdf(b) - norm.cdf(a) if tracker.ranked else np.ones_like(mean)
        factor = left * p_d / np.maximum(1 - p_d * inside, 1e-300)
        unseen = factor * (1 - inside)
        second = unseen + factor * (b * norm.pdf(b) - a * norm.pdf(a)) if tracker.ranked else unseen
        squares += sigma**2 * second.sum()
        heard += matched.sum() + unseen.sum()
        chances += mean.shape[1]
        clutter += len(step.time) - matched.sum()
        # Plus the clutter expected after the cut: lambda minus the amount expected before it.
        clutter += tracker.clutter_rate + float(step.log_level[0])
    return {
        "detection": np.clip(heard / max(chances, 1.0), 1e-4, 1 - 1e-4),
        "clutter_rate": np.float64(max(clutter / len(drawn.steps), 1e-6)),
        "sigma": np.sqrt(squares / max(heard, 1e-12)) if heard > 0 else np.float64(sigma),
        "diffusion": _diffusion(tracker, drawn),
    }


def _diffusion(tracker: RankedSignalTracker, drawn: SampledTracks) -> Floats:
    """Best diffusion given the drawn tracks, in the shape of the tracker's diffusion (one number, two, or a matrix).

    The noise of a move, (position) or (position, velocity), has the covariance q x D with q known; after whitening by
    q, each component has the covariance D.  This includes the first move, whose initial velocity is unknown, and the
    last move to the end.
    """
    state, plan = drawn.state, drawn.plan
    geometry, one = tracker.beacons.geometry, np.eye(2)
    way = np.concatenate([np.broadcast_to(drawn.start, state[:1, :, :2].shape), state[:, :, :2]])
    shift = displacements(way[1:], way[:-1], geometry)
    velocity = np.concatenate([np.zeros_like(state[:1, :, 2:]), state[:, :, 2:]])
    noise = []
    for k, dt in enumerate(plan.gap[:-1]):
        F, Q = free_motion(dt, one, plan.persistence)
        q = Q[::2, ::2]
        rest = np.stack([shift[k], velocity[k + 1]]) if plan.persistence else shift[k : k + 1]
        if plan.persistence:
            pull = F[::2, 2]
            rest = rest - pull[:, None, None] * velocity[k]
            q = q + np.outer(pull, pull) / (2 * plan.persistence) if k == 0 else q
        noise.append(np.linalg.solve(np.linalg.cholesky(q), rest.reshape(len(q), -1)).reshape(-1, 2))
    if plan.end is not None:
        ahead, V = end_moments(plan.gap[-1], one, plan.persistence, 0.0)
        rest = displacements(plan.end, way[-1], geometry) - (ahead * velocity[-1] if plan.persistence else 0.0)
        noise.append(rest / np.sqrt(V[0, 0]))
    moves = np.concatenate(noise)
    full = moves.T @ moves / len(moves)
    shape = np.ndim(tracker.diffusion)
    return np.trace(full) / 2 if shape == 0 else np.diag(full).copy() if shape == 1 else full
