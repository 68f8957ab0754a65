"""Fits of games: scores with a normal prior, whose width is learned unless given, and a forecast of further games."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from placet import optim
from placet.aggregate.games.game_design import Design, decayed_weight, goal_design, half_lives, margin_design
from placet.aggregate.games.game_likelihoods import GameLaw, OrderedMargins, PoissonGoals
from placet.aggregate.likelihood.information import SCORE_TOLERANCE, with_mean_zero
from placet.aggregate.result.learned.control_effects import Controls
from placet.aggregate.result.learned.game_forecast import GameForecast
from placet.aggregate.result.result import Consensus
from placet.data import DataError
from placet.data.arrays import Floats
from placet.data.contests.games import Games
from placet.data.engines.memory import refuse_square

LEARN = "learn"
EFFECT_WIDTH = 10.0
"""Standard deviation of the prior of controls, the level and the law's own numbers: wide."""
DIFFERENCE = 1e-4
"""Of row scores, for third derivatives."""
FIRST_WIDTH, NARROWEST, WIDEST = 1.0, 1e-3, 1e3
MOST_ROUNDS, ROUND_ACCURACY = 50, 1e-2


def margins(
    games: Games,
    half_life: str | float | None = None,
    prior: float | Literal["learn"] = "learn",
    levels: int = 5,
    max_iter: int = 100,
) -> Consensus:
    """Ordered margins: a win by more says more.  Cumulative logit of the margin (see `OrderedMargins`).

    Parameters
    ----------
    half_life : games that long before the last one count half ("2y" for dates, a number for numbers); None: all alike
    prior : standard deviation of the scores' normal prior, or "learn"
    levels : number of classes into which the margins of wins are cut: those that occur, or by their frequency
    max_iter : maximum number of Newton steps

    >>> games = Games.from_results(["x", "y", "x"], ["y", "z", "z"], [3, 2, 5], [0, 1, 0])
    >>> margins(games, prior=1.0).ranking
    ['x', 'y', 'z']
    """
    if levels < 1:
        raise ValueError(f"levels must be at least 1, not {levels}")
    weight = decayed_weight(games, half_life)
    law = OrderedMargins(margin_bounds(games.margin, weight, levels), bool((games.margin == 0).any()))
    return _board(games, weight, law, margin_design, "margins", half_life, prior, max_iter, {"levels": levels})


def goals(
    games: Games,
    half_life: str | float | None = None,
    prior: float | Literal["learn"] = "learn",
    shared: bool = False,
    draws: bool = True,
    most: int | None = None,
    max_iter: int = 100,
) -> Consensus:
    """Goals: both sides score by Poisson's law, at rates that follow from the attack of the one and the defense of the
    other (see `PoissonGoals`).

    Parameters
    ----------
    half_life, prior, max_iter : as in `margins`
    shared : bivariate: a third Poisson count is added to both sides, so that their goals correlate
    draws : learn how much likelier draws are than by Poisson's law, if there are any; False: Poisson's law alone
    most : more goals of a side count as that many, so that a few games do not decide; None: all count

    >>> games = Games.from_results(["x", "y", "x"], ["y", "z", "z"], [3, 2, 5], [0, 1, 0])
    >>> goals(games, prior=1.0).ranking
    ['x', 'y', 'z']
    """
    wrong = (games.points < 0) | (games.points % 1 != 0)
    if wrong.any():
        row = int(np.argmax(wrong.any(axis=1)))
        raise DataError(
            f"game {row}: goals {games.points[row].tolist()} are not whole numbers from 0 on; use 'margins'"
        )
    if most is not None:
        if most < 1:
            raise ValueError(f"most must be at least 1, not {most}")
        games = replace(games, points=np.minimum(games.points, most))
    given = {"shared": shared, "draws": draws, "most": most}
    weight = decayed_weight(games, half_life)
    tied = (games.margin == 0) & (weight > 0)
    law = PoissonGoals(shared, drawn=draws and bool(tied.any()) and not bool(tied[weight > 0].all()))
    return _board(games, weight, law, goal_design, "goals", half_life, prior, max_iter, given)


def margin_bounds(margin: Floats, weight: Floats, levels: int) -> Floats:
    """The least margins of up to ``levels`` classes of wins, each of about the same weight if more margins occur.

    >>> margin_bounds(np.array([1.0, -1.0, 2.0, 5.0, 0.0, 3.0, 9.0]), np.ones(7), 3)
    array([1., 2., 5.])
    """
    won = np.abs(margin) > 0
    found, which = np.unique(np.abs(margin[won]), return_inverse=True)
    if not len(found):
        raise DataError("all games are drawn, so nothing is known about who is better")
    if len(found) <= levels:
        return found
    share = np.cumsum(np.bincount(which, weight[won])) / float(weight[won].sum())
    first = [int(np.searchsorted(share, k / levels - 1e-12)) + (k > 0) for k in range(levels)]
    return found[np.unique(np.minimum(first, len(found) - 1))]


@dataclass(frozen=True, eq=False)
class _Posterior:
    """-log of likelihood and prior, in units of the weight of all games, with its derivatives."""

    design: Design
    law: GameLaw
    points: Floats
    weight: Floats
    width: tuple[float, ...]

    def precision(self) -> Floats:
        """Of the prior of all unknowns."""
        wide = np.full(self.design.n_unknowns - self.design.n_scores + self.law.own, EFFECT_WIDTH)
        return np.concatenate([np.repeat(self.width, self.design.n_items), wide]) ** -2

    def fit(self, x: Floats, max_iter: int) -> tuple[optim.Fit, Floats]:
        """The mode, and the matrix of second derivatives there."""
        unit, H = float(self.weight.sum()) or 1.0, np.zeros((0, 0))

        def slopes(x: Floats) -> tuple[float, Floats]:
            nonlocal H
            value, gradient, H = self.derivatives(x)
            return value / unit, gradient / unit

        def solve(x: Floats, gradient: Floats) -> Floats:
            return np.asarray(_solve(H, gradient * unit))

        found = optim.newton(slopes, solve, x, tol=1e-9, max_iter=max_iter)
        return found, self.derivatives(found.x)[2]

    def derivatives(self, x: Floats) -> tuple[float, Floats, Floats]:
        """Value, gradient and matrix of second derivatives."""
        p, rows = self.design.n_unknowns, self.law.rows
        precision = self.precision()
        if not self.law.allows(x[p:]):
            return math.inf, np.zeros(len(x)), np.diag(precision)
        found = self.law.slopes(self.design.scores(x[:p]), x[p:], self.points)
        value = float(self.weight @ found.cost) + 0.5 * float(precision @ x**2)
        first, second = found.first * self.weight[:, None], found.second * self.weight[:, None, None]
        gradient, H = precision * x, np.diag(precision)
        gradient[p:] += first[:, rows:].sum(axis=0)
        H[p:, p:] += second[:, rows:, rows:].sum(axis=0)
        for r, left in enumerate(self.design.rows):
            gradient[:p] += left.T @ first[:, r]
            H[:p, p:] += left.T @ second[:, r, rows:]
            for s, right in enumerate(self.design.rows):
                if second[:, r, s].any():
                    H[:p, :p] += (left.T @ (sparse.diags(second[:, r, s]) @ right)).toarray()
        H[p:, :p] = H[:p, p:].T
        return value, gradient, H

    def mean_shift(self, x: Floats, covariance: Floats) -> Floats:
        """From the mode of the linear unknowns to their mean: -1/2 C sum of third derivatives times variances.

        Where items have few games, the mode lies closer to 0 than the mean, and widths learned from it are too small.
        """
        p, rows = self.design.n_unknowns, self.law.rows
        eta, spread = self.design.scores(x[:p]), self.design.spread(covariance[:p, :p])
        pull = np.zeros(p)
        for r, matrix in enumerate(self.design.rows):
            step = DIFFERENCE * np.eye(rows)[r]
            up, down = (self.law.slopes(eta + s * step, x[p:], self.points).second for s in (1, -1))
            third = ((up - down)[:, :rows, :rows] * spread).sum(axis=(1, 2)) / (2 * DIFFERENCE)
            pull += matrix.T @ (self.weight * third)
        return -0.5 * covariance[:p, :p] @ pull


def _solve(H: Floats, gradient: Floats) -> Floats:
    """H^-1 gradient; where the likelihood is not convex, of H with as much added to its diagonal as it needs."""
    added = 0.0
    while True:
        try:
            return np.asarray(cho_solve(cho_factor(H + added * np.diag(np.diag(H).clip(1e-8))), gradient))
        except LinAlgError:
            added = max(2 * added, 1e-3)


def _learn(posterior: _Posterior, x: Floats, max_iter: int) -> tuple[_Posterior, Floats]:
    """The posterior with the widths of the prior at which the evidence is largest (MacKay 1992), and its mode.

    Each round sets width^2 = sum of squares of means / effective number of scores, for each kind of scores.
    """
    n, kinds = posterior.design.n_items, posterior.design.kinds
    for _ in range(MOST_ROUNDS):
        fit, H = posterior.fit(x, max_iter)
        x = fit.x
        covariance: Floats = np.asarray(np.linalg.inv(H), np.float64)
        variance = np.diag(covariance)[: n * kinds].reshape(kinds, n).sum(axis=1)
        mean = x[: n * kinds] + posterior.mean_shift(x, covariance)[: n * kinds]
        square = (mean**2).reshape(kinds, n).sum(axis=1)
        known = np.maximum(n - variance / np.square(posterior.width), 1e-9)
        width = np.clip(np.sqrt(square / known), NARROWEST, WIDEST)
        moved = float(np.abs(np.log(width / posterior.width)).max())
        posterior = replace(posterior, width=tuple(width.tolist()))
        if moved < ROUND_ACCURACY:
            break
    return posterior, x


def _board(
    games: Games,
    weight: Floats,
    law: GameLaw,
    design_of: Callable[[Games], Design],
    method: str,
    half_life: str | float | None,
    prior: float | str,
    max_iter: int,
    given: dict[str, Any],
) -> Consensus:
    """The fit of a law as a result."""
    if not len(games) or not weight.any():
        raise DataError("there are no games (or all have weight 0), so nothing is known about the items")
    if prior != LEARN and not (not isinstance(prior, str) and 0 < prior < math.inf):
        raise ValueError(f'prior must be a positive number or "learn", not {prior!r}')
    design = design_of(games)
    refuse_square(design.n_unknowns + law.own, "second derivatives", "leave out items with few games")
    width = FIRST_WIDTH if isinstance(prior, str) else float(prior)
    posterior = _Posterior(design, law, games.points, weight, (width,) * design.kinds)
    x = np.concatenate([np.zeros(design.n_unknowns), law.start()])
    if prior == LEARN:
        posterior, x = _learn(posterior, x, max_iter)
    fit, H = posterior.fit(x, max_iter)
    full: Floats = np.asarray(np.linalg.inv(H), np.float64)
    p = design.n_unknowns
    known = (games.items, games.controls or (), *half_lives(games, half_life))
    forecast = GameForecast(law, design_of, fit.x[:p], fit.x[p:], full[:p, :p], *known)
    n, scores = games.n_items, fit.x[: games.n_items]
    covariance = with_mean_zero(full[:n, :n], n)
    params = {"half_life": half_life, "prior": prior, **given, "max_iter": max_iter}
    support = np.bincount(games.item, np.repeat(games.weight, np.diff(games.offsets[::2])), games.n_items)
    effects = _effects(games, fit.x, full, design.n_scores, method)
    notes = [*games.notes, *_notes(posterior, prior, half_life, method, law, fit.x[p:])]
    notes += [] if fit.converged else [fit.message]
    notes += [] if effects is None else effects.notes() if method == "margins" else _goal_effects(effects)
    return Consensus(
        games.items,
        scores - scores.mean(),
        method=method,
        params=params,
        covariance=(covariance + covariance.T) / 2,
        fit=fit,
        notes=tuple(notes),
        support=support.astype(np.float64),
        prior=posterior.width[0],
        tolerance=SCORE_TOLERANCE,
        effects=effects if method == "margins" else None,
        games=replace(forecast, effects=effects),
        win=partial(win_chance, law=law, own=fit.x[p:], level=float(fit.x[2 * n]) if law.rows == 2 else 0.0),
    )


def win_chance(x: Any, y: Any, *, law: GameLaw, own: Floats, level: float) -> Any:
    """The probability that an item of score x beats one of score y, where controls are 0."""
    d = np.subtract(x, y)
    eta = d[..., None] if law.rows == 1 else np.stack([level + d / 2, level - d / 2], axis=-1)
    return law.outcomes(eta, own)[..., 0]


def _effects(games: Games, x: Floats, full: Floats, n: int, method: str) -> Controls | None:
    """Effects of controls; of goals, on the log of the ratio of goals."""
    if games.control is None or games.controls is None:
        return None
    k, size = len(games.controls), np.sqrt(np.mean(games.control**2, axis=0))
    if method == "margins":
        change = np.eye(k, len(x), n)
    else:
        change = np.eye(k, len(x), n + 1) - np.eye(k, len(x), n + 1 + k)
    return Controls(games.controls, change @ x, np.sqrt(np.diag(change @ full @ change.T)), size)


def _goal_effects(effects: Controls) -> list[str]:
    """A sentence for each control: how it changes the ratio of goals."""
    assert effects.stderr is not None
    return [
        f"control {name}: each unit multiplies the ratio of goals by {math.exp(b):.3g} (log {b:.3g} ± {e:.2g})"
        for name, b, e in zip(effects.names, effects.coefficient.tolist(), effects.stderr.tolist())
    ]


def _notes(posterior: _Posterior, prior: Any, half_life: Any, method: str, law: GameLaw, own: Floats) -> list[str]:
    learned = ", learned from the data" if prior == LEARN else ""
    found = [f"the scores have a normal prior of standard deviation {posterior.width[0]:.3g}{learned}"]
    if half_life is not None:
        found.append(f"games {half_life} before the last one count half, those before that a quarter, and so on")
    if isinstance(law, OrderedMargins):
        found.append(f"margins of wins are cut at {', '.join(f'{one:g}' for one in law.bounds)}")
    elif law.shared:
        found.append(f"goals that both sides share: {math.exp(own[0]):.2g} a game")
    if isinstance(law, PoissonGoals) and law.drawn:
        found.append(
            f"the odds of a draw are {math.exp(own[-1]):.3g} times those of Poisson's law, learned from the data"
        )
    return found
