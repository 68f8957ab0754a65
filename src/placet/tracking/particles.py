"""The particle filter and the backward pass; threads work on fixed ranges of particles."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from placet.data import DataError
from placet.data.arrays import Floats
from placet.kernels.tracking import particle_motion
from placet.threads import map_ordered
from placet.tracking.geometry import moments, two_clouds
from placet.tracking.motion import MotionPlan
from placet.tracking.observation_model import Evidence, association_probabilities, log_likelihood

PARTICLES_PER_RANGE = 2048
TRAJECTORIES_PER_RANGE = 50
SHAPE_PARTICLES, ASSOCIATION_PARTICLES = 512, 128  # subsample sizes for bimodality and associations


class Genealogy:
    """The states of every step, each with the row of its parent state one step earlier.

    ``candidate[k]`` are rows of step k drawn in proportion to its weights.  States that are neither candidates nor
    ancestors of candidates or of current particles are pruned from time to time, so that memory stays within about
    twice what is needed: steps x n if nothing is resampled, a small fraction of it if every step is.
    """

    def __init__(self) -> None:
        self.state: list[Floats] = []
        self.parent: list[np.ndarray] = []
        self.candidate: list[np.ndarray] = []
        self._row = np.empty(0, np.int32)  # row of each particle in the last step
        self._limit = 0

    def add(self, state: Floats, candidate: np.ndarray) -> None:
        """Append a step: particle p of ``state`` (n, d) came from particle p of the previous step."""
        self.parent.append(self._row)
        self.state.append(state.copy())
        self.candidate.append(candidate)
        self._row = np.arange(len(state), dtype=np.int32)

    def resample(self, index: np.ndarray) -> None:
        """Let particle p descend from particle ``index[p]`` from now on."""
        self._row = self._row[index]
        if sum(len(rows) for rows in self.state) > self._limit:
            self._drop_the_childless()
            self._limit = 2 * (sum(len(rows) for rows in self.state) + len(index))

    def _drop_the_childless(self) -> None:
        wanted = self._row
        for k in range(len(self.state) - 1, -1, -1):
            keep = np.zeros(len(self.state[k]), dtype=bool)
            keep[wanted] = keep[self.candidate[k]] = True
            row = np.cumsum(keep, dtype=np.int32) - 1
            if k == len(self.state) - 1:
                self._row = row[self._row]
            else:
                self.parent[k + 1] = row[self.parent[k + 1]]
            self.state[k], self.candidate[k] = self.state[k][keep], row[self.candidate[k]]
            wanted = self.parent[k] = self.parent[k][keep] if k else self.parent[k]


class FilterRun(NamedTuple):
    """Moments after each step; ``genealogy`` holds the states for the backward pass (empty if none is requested)."""

    mean: Floats  # (steps, 2)
    covariance: Floats  # (steps, 2, 2)
    split: Floats  # (steps,): bimodality of the particles
    ess: Floats  # (steps,)
    association: list[Floats]  # (signals, active beacons) for each step
    log_likelihood: float
    genealogy: Genealogy


def _over_ranges(work: Callable[[slice], object], n: int, size: int) -> None:
    """Call ``work(range)`` for ranges that depend only on ``n``, so that no result depends on the number of threads."""
    map_ordered(lambda k: work(slice(k * size, min((k + 1) * size, n))), -(-n // size))


def particle_filter(
    steps: list[Evidence], days: Floats, plan: MotionPlan, start: Floats, start_sd: float, geometry: str, n: int,
    rng: Generator, threshold: float = 0.5, keep: int = 0,
) -> FilterRun:  # fmt: skip
    """Bootstrap filter with log weights.

    Resample systematically when the effective sample size falls below ``threshold * n``; store ``keep`` states of each
    step, with their ancestors, for the backward pass.  O(steps x n x likelihood).
    """
    geographic = geometry == "geographic"
    state = _initial(n, plan, start, start_sd, geographic, rng)
    log_weight = np.full(n, -np.log(n))
    t = len(days)
    result = FilterRun(np.empty((t, 2)), np.empty((t, 2, 2)), np.empty(t), np.empty(t), [], 0.0, Genealogy())
    log_weight += _log_end_from_start(plan, state, geographic)
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
            result.genealogy.add(state, _draw(weight, u[1], keep))
        if result.ess[k] < threshold * n:
            index = _draw(weight, u[2], n)
            state = state[index]
            log_weight[:] = -np.log(n)
            if keep:
                result.genealogy.resample(index)
    return result._replace(log_likelihood=total)


def backward_pass(
    genealogy: Genealogy, plan: MotionPlan, geometry: str, n: int, rng: Generator
) -> tuple[Floats, Floats]:
    """Draw ``n`` trajectories (steps, n, d) from the smoothing distribution, last step first.

    Also returns the effective number of distinct states among them in each step (steps,).  Each step back goes to a
    candidate or to the parent of the next state: the candidates are few of many particles, and possibly none of them
    is a plausible predecessor.  O(steps x n x candidates).
    """
    steps = len(genealogy.state)
    out = np.empty((steps, n, plan.dimension))
    last = genealogy.candidate[-1]
    row = last[np.arange(n) * len(last) // n]  # evenly spaced over the draws, which are sorted by ancestor
    out[-1], different = genealogy.state[-1][row], np.empty(steps)
    different[-1] = _effective_number(row)
    end = plan.end if plan.end is not None else np.zeros(2)
    for k in range(steps - 2, -1, -1):
        move = plan.moves[k + 1]
        u, choice = rng.random(n), np.empty(n, np.int64)
        candidate, parent = genealogy.candidate[k], genealogy.parent[k + 1][row]
        state, ancestor = genealogy.state[k][candidate], genealogy.state[k][parent]

        def work(rows: slice, k=k, move=move, u=u, state=state, ancestor=ancestor, choice=choice) -> None:  # type: ignore[no-untyped-def]
            particle_motion.trace_back(
                state, ancestor[rows], out[k + 1, rows], u[rows], move.F, move.Q_root, plan.end is not None, end,
                move.ahead, move.reach_root, geometry == "geographic", choice[rows],
            )  # fmt: skip

        _over_ranges(work, n, TRAJECTORIES_PER_RANGE)
        row = np.where(choice < len(candidate), np.append(candidate, 0)[choice], parent)
        out[k], different[k] = genealogy.state[k][row], _effective_number(row)
    return out, different


def draw_paths(plan: MotionPlan, start: Floats, geometry: str, n: int, rng: Generator) -> tuple[Floats, Floats]:
    """Draw ``n`` paths (steps, n, 2) from the motion model alone, with weights (n,) that sum to 1.

    Without an end every path is a draw from the motion and the weights are equal.  With an end the paths are draws from
    the motion towards it; the weights correct for the tangent planes of the ellipsoid and the prior of the first
    velocity.
    """
    geographic = geometry == "geographic"
    state = _initial(n, plan, start, 0.0, geographic, rng)
    log_weight = _log_end_from_start(plan, state, geographic)
    way = np.empty((len(plan.moves), n, 2))
    for k in range(len(plan.moves)):
        _move(state, log_weight, plan, k, geographic, rng.standard_normal(state.shape))
        way[k] = state[:, :2]
    return way, np.exp(log_weight - _log_sum(log_weight))


def _initial(n: int, plan: MotionPlan, start: Floats, start_sd: float, geographic: bool, rng: Generator) -> Floats:
    """States at the start: the known position with its standard deviation, and stationary velocities."""
    state = np.zeros((n, plan.dimension))
    state[:, :2] = start
    step = np.zeros((n, plan.dimension))
    step[:, :2] = start_sd * rng.standard_normal((n, 2))
    if plan.dimension == 4:
        step[:, 2:] = rng.standard_normal((n, 2)) @ plan.velocity_root.T
    particle_motion.apply_steps(state, step, geographic)
    return state


def _log_end_from_start(plan: MotionPlan, state: Floats, geographic: bool) -> Floats:
    """Log density of the known end given each initial state; zeros without an end."""
    out = np.zeros(len(state))
    if plan.end is not None:
        first = plan.moves[0]
        particle_motion.log_end_densities(state, plan.end, first.ahead, first.reach_root, geographic, out)
    return out


def _move(state: Floats, log_weight: Floats, plan: MotionPlan, k: int, geographic: bool, normal: Floats) -> None:
    """Apply move ``k`` to every state, in place; with an end, add its contribution to the log weight."""
    move = plan.moves[k]
    if plan.end is None:
        particle_motion.move(state, normal, move.F, move.L, geographic)
    else:
        particle_motion.move_towards(
            state, normal, move.F, move.Q_root, move.K, move.AF, move.L, plan.end, move.ahead, move.reach_root,
            move.next_ahead, move.next_root, geographic, log_weight,
        )  # fmt: skip


def _advance(
    state: Floats, log_weight: Floats, plan: MotionPlan, k: int, item: Evidence, geometry: str, normal: Floats
) -> None:
    """Advance every particle one step, in place: move it, then add the likelihood of the signals to its log weight."""

    def work(rows: slice) -> None:
        _move(state[rows], log_weight[rows], plan, k, geometry == "geographic", normal[rows])
        log_likelihood(item, np.ascontiguousarray(state[rows, :2]), geometry, log_weight[rows])

    _over_ranges(work, len(state), PARTICLES_PER_RANGE)


def _effective_number(row: np.ndarray) -> float:
    """1 / sum of the squared shares of the distinct values: their number, if all are equally frequent."""
    return float(len(row) ** 2 / np.square(np.unique(row, return_counts=True)[1]).sum())


def _log_sum(log_weight: Floats) -> float:
    top = float(log_weight.max())
    return top + float(np.log(np.exp(log_weight - top).sum())) if top > -np.inf else -np.inf


def _draw(weight: Floats, u: float, n: int) -> np.ndarray:
    out = np.empty(n, np.int64)
    particle_motion.systematic(weight, u, out)
    return out
