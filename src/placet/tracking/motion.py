"""Motion of the float between two steps, freely or towards a known end.

Random walk: x' = x + N(0, D dt).  With ``persistence`` tau > 0 the velocity is an Ornstein-Uhlenbeck process, dv =
-v dt / tau + noise, whose stationary covariance D / (2 tau) gives the same spread D t at long times.  Both are
linear and Gaussian, so the motion given the end is known in closed form: one Kalman update of the free motion by the
end, for each step.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from placet.data import DataError
from placet.data.arrays import Floats


class Move(NamedTuple):
    """One move in the form required by ``placet.kernels.tracking.particle_motion``.

    ``ahead, reach_root`` describe the distribution of the end given the state before the move.
    """

    F: Floats
    Q_root: Floats
    K: Floats
    AF: Floats
    L: Floats
    ahead: float
    reach_root: Floats
    next_ahead: float
    next_root: Floats


class MotionPlan(NamedTuple):
    """Moves to every step from the previous one (the first from the start), and the end they lead to."""

    moves: list[Move]
    velocity_root: Floats  # (2, 2) Cholesky factor of the stationary velocity covariance
    dimension: int
    end: Floats | None
    gap: Floats  # (steps + 1,): days of each move, the last one to the end
    persistence: float


def checked_diffusion(diffusion: ArrayLike) -> Floats:
    """Covariance (2, 2) gained per day, given one variance, two, or a full matrix; it must be positive definite."""
    d = np.asarray(diffusion, dtype=np.float64)
    full = d * np.eye(2) if d.ndim == 0 else np.diag(d) if d.shape == (2,) else d
    if full.shape != (2, 2) or not np.isfinite(full).all() or not np.allclose(full, full.T):
        raise ValueError(
            f"diffusion must be one variance per day, two, or a symmetric 2 x 2 matrix, not shape {d.shape}"
        )
    if np.linalg.eigvalsh(full).min() <= 0:
        raise ValueError(
            f"diffusion {np.asarray(diffusion).tolist()} must be positive definite: without motion there is no track"
        )
    return full


def free_motion(dt: float, diffusion: Floats, tau: float) -> tuple[Floats, Floats]:
    """Transition matrix F and covariance Q of the state after ``dt`` days, relative to the previous position."""
    if tau == 0:
        return np.eye(2), diffusion * dt
    a = np.exp(-dt / tau)
    S, one = diffusion / (2 * tau), np.eye(2)
    cross = S * tau * (1 - a) ** 2
    F = np.block([[one, tau * (1 - a) * one], [0 * one, a * one]])
    Q = np.block([[S * tau**2 * _spread(dt / tau), cross], [cross, S * (1 - a * a)]])
    return F, Q


def end_moments(days: float, diffusion: Floats, tau: float, end_sd: float) -> tuple[float, Floats]:
    """Coefficient of the velocity in the mean of the end, given the state ``days`` before it, and its covariance."""
    seen = end_sd**2 * np.eye(2)
    if tau == 0:
        return 0.0, diffusion * days + seen
    return tau * (1 - np.exp(-days / tau)), diffusion * tau / 2 * _spread(days / tau) + seen


def plan_moves(
    day: Floats, diffusion: ArrayLike, tau: float, end: Floats | None = None, *, start_day: float | None = None,
    end_day: float | None = None, end_sd: float = 0.0,
) -> MotionPlan:  # fmt: skip
    """The moves that lead to each ``day`` (n,); with ``end`` (2,), conditional on the float being there on ``end_day``.

    The float is at the start on ``start_day``, by default one median step before the first day; ``end_day`` is by
    default one median step after the last.
    """
    usual = float(np.median(np.diff(day))) if len(day) > 1 else 1.0
    start_day = day[0] - usual if start_day is None else start_day
    end_day = day[-1] + usual if end_day is None else end_day
    if not start_day < day[0]:
        raise DataError(f"start_day {start_day:g} must come before the first day of the arrivals, {day[0]:g}")
    if not (end_day > day[-1] or (end_day == day[-1] and end_sd > 0)):
        raise DataError(f"end_day {end_day:g} must come after the last day of the arrivals, {day[-1]:g}")
    D = checked_diffusion(diffusion)
    before = np.concatenate([[start_day], day[:-1]])
    moves = []
    for t, u in zip(before, day):
        F, Q = free_motion(u - t, D, tau)
        d = len(F)
        root = _root(Q)
        if end is None:
            moves.append(Move(F, root, np.zeros((d, 2)), np.zeros((2, d)), root, 0.0, np.eye(2), 0.0, np.eye(2)))
            continue
        (ahead, V), (next_ahead, next_V) = (end_moments(end_day - v, D, tau, end_sd) for v in (t, u))
        A = np.hstack([np.eye(2), next_ahead * np.eye(2)])[:, :d]
        K = np.ascontiguousarray(np.linalg.solve(A @ Q @ A.T + next_V, A @ Q).T, dtype=np.float64)
        given = Q - K @ A @ Q
        L = _root((given + given.T) / 2)
        moves.append(Move(F, root, K, A @ F, L, ahead, _root(V), next_ahead, _root(next_V)))
    velocity = _root(D / (2 * tau)) if tau else np.zeros((2, 2))
    gap = np.append(day - before, end_day - day[-1])
    return MotionPlan(moves, velocity, 4 if tau else 2, end, gap, tau)


def _root(covariance: Floats) -> Floats:
    """Lower Cholesky factor."""
    return np.linalg.cholesky(covariance).astype(np.float64)


def _spread(h: float) -> float:
    """2h - 3 + 4 e^-h - e^-2h, the growth of the position's variance; by its series if the terms cancel."""
    if h < 1e-2:
        return h**3 * (2 / 3 - h / 2 + 7 * h * h / 30)
    return 2 * h - 3 + 4 * np.exp(-h) - np.exp(-2 * h)
