"""The particle filter and the backward pass: arrays in, moments out; threads share fixed ranges of particles."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from placet.data import DataError
from placet.data.arrays import Floats
from placet.kernels import tracking_motion
from placet.threads import map_ordered
from placet.tracking.geometry import moments, two_clouds
from placet.tracking.model import Evidence, association_probabilities, log_likelihood
from placet.tracking.motion import Plan

PARTICLES_PER_RANGE = 2048
TRAJECTORIES_PER_RANGE = 50
SHAPE_PARTICLES, ASSOCIATION_PARTICLES = 512, 128  # enough for what is told of a step beside its moments


class Filtered(NamedTuple):
    """Moments after each step; ``cloud`` holds equally weighted states for the backward pass (empty when none is
    wanted).
    """

    mean: Floats  # (steps, 2)
    covariance: Floats  # (steps, 2, 2)
    ess: Floats  # (steps,)
    split: Floats  # (steps,): how far the particles are two clouds
    association: list[Floats]  # (signals, active beacons) for each step
    log_likelihood: float
    cloud: list[Floats]


def _over_ranges(work: Callable[[slice], object], n: int, size: int) -> None:
    """``work(range)`` for ranges that depend on ``n`` alone, so that no result depends on the number of threads."""
    map_ordered(lambda k: work(slice(k * size, min((k + 1) * size, n))), -(-n // size))


def particle_filter(
    steps: list[Evidence], days: Floats, plan: Plan, start: Floats, start_sd: float, geometry: str, n: int,
    rng: Generator, threshold: float = 0.5, keep: int = 0,
) -> Filtered:  # fmt: skip
    """Bootstrap filter with log weights.

    Systematic resampling when the effective sample size falls below ``threshold * n``; ``keep``
    states of each step are kept for the backward pass.  O(steps x n x likelihood); memory O(n + steps x keep).
    """
    geographic = geometry == "geographic"
    state = _initial(n, plan, start, start_sd, geographic, rng)
    log_weight = np.full(n, -np.log(n))
    t = len(days)
    result = Filtered(np.empty((t, 2)), np.empty((t, 2, 2)), np.empty(t), np.empty(t), [], 0.0, [])
    log_weight += _reach_from_start(plan, state, geographic)
    total = _log_sum(log_weight)
    log_weight -= total
    for k, item in enumerate(steps):
        _advance(state, log_weight, plan, k, item, geometry, rng.standard_normal(state.shape))
        gain = _log_sum(log_weight)
        if not gain > -np.inf:
            raise DataError(
                f"day {days[k]:g}: no particle can explain its {len(item.step.time)} signals; raise sigma, "
                "diffusion, clutter_rate or particles, and check the start and the labels"
            )
        total += gain
        log_weight -= gain
        weight = np.exp(log_weight)
        result.ess[k] = 1 / np.square(weight).sum()
        result.mean[k], result.covariance[k] = moments(np.ascontiguousarray(state[:, :2]), weight, geometry)
        u = rng.random(3)
        few = state[_draw(weight, u[0], SHAPE_PARTICLES), :2]
        result.split[k] = two_clouds(few, geometry)
        few = np.ascontiguousarray(few[:: SHAPE_PARTICLES // ASSOCIATION_PARTICLES])
        result.association.append(association_probabilities(item, few, geometry).mean(axis=0))
        if keep:
            result.cloud.append(state[_draw(weight, u[1], keep)])
        if result.ess[k] < threshold * n:
            state = state[_draw(weight, u[2], n)]
            log_weight[:] = -np.log(n)
    return result._replace(log_likelihood=total)


def backward_pass(filtered: Filtered, plan: Plan, geometry: str, n: int, rng: Generator) -> Floats:
    """``n`` trajectories (steps, n, d) drawn from the smoothing distribution, last step first.  O(steps x n x kept
    states).
    """
    clouds = filtered.cloud
    out = np.empty((len(clouds), n, clouds[0].shape[1]))
    out[-1] = clouds[-1][_evenly(len(clouds[-1]), n)]
    has_end = plan.end is not None
    end = plan.end if plan.end is not None else np.zeros(2)
    for k in range(len(clouds) - 2, -1, -1):
        move = plan.moves[k + 1]
        u = rng.random(n)

        def work(rows: slice, k=k, move=move, u=u) -> None:
            tracking_motion.trace_back(
                clouds[k], out[k + 1, rows], u[rows], move.F, move.Q_root, has_end, end, move.ahead,
                move.reach_root, geometry == "geographic", out[k, rows],
            )  # fmt: skip

        _over_ranges(work, n, TRAJECTORIES_PER_RANGE)
    return out


def _initial(n: int, plan: Plan, start: Floats, start_sd: float, geographic: bool, rng: Generator) -> Floats:
    """States at the start: the known position with its standard deviation, velocities from their stationary law."""
    state = np.zeros((n, plan.dimension))
    state[:, :2] = start
    step = np.zeros((n, plan.dimension))
    step[:, :2] = start_sd * rng.standard_normal((n, 2))
    if plan.dimension == 4:
        step[:, 2:] = rng.standard_normal((n, 2)) @ plan.velocity_root.T
    tracking_motion.place_all(state, step, geographic)
    return state


def _reach_from_start(plan: Plan, state: Floats, geographic: bool) -> Floats:
    """log density of the known end given each first state; zeros without an end."""
    out = np.zeros(len(state))
    if plan.end is not None:
        first = plan.moves[0]
        tracking_motion.log_reach_all(state, plan.end, first.ahead, first.reach_root, geographic, out)
    return out


def _advance(
    state: Floats,
    log_weight: Floats,
    plan: Plan,
    k: int,
    item: Evidence,
    geometry: str,
    normal: Floats,
) -> None:
    """One step of every particle, in place: the move, then the likelihood of the signals added to the log weights."""
    move = plan.moves[k]
    geographic = geometry == "geographic"

    def work(rows: slice) -> None:
        if plan.end is None:
            tracking_motion.move(state[rows], normal[rows], move.F, move.L, geographic)
        else:
            tracking_motion.move_towards(
                state[rows], normal[rows], move.F, move.Q_root, move.K, move.AF, move.L, plan.end, move.ahead,
                move.reach_root, move.next_ahead, move.next_root, geographic, log_weight[rows],
            )  # fmt: skip
        log_likelihood(item, np.ascontiguousarray(state[rows, :2]), geometry, log_weight[rows])

    _over_ranges(work, len(state), PARTICLES_PER_RANGE)


def _log_sum(log_weight: Floats) -> float:
    top = float(log_weight.max())
    return top + float(np.log(np.exp(log_weight - top).sum())) if top > -np.inf else -np.inf


def _draw(weight: Floats, u: float, n: int) -> np.ndarray:
    out = np.empty(n, np.int64)
    tracking_motion.systematic(weight, u, out)
    return out


def _evenly(n: int, k: int) -> np.ndarray:
    """``k`` of ``n`` equally weighted states, spread over their (systematic, hence sorted by ancestor) order."""
    return np.arange(k) * n // k
