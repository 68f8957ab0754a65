"""Forecasts of games from a fit: chances of a win, a draw and a loss, averaged over what is not known of the scores."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placet.aggregate.result.learned.control_effects import Controls
from placet.data import DataError
from placet.data.arrays import Floats, Ints, Names
from placet.data.contests.games import Games, SideScore
from placet.data.times import TimeSteps

NODES = 7
"""Nodes of the Gauss-Hermite quadrature over each row score of a game."""
GAMES_AT_ONCE = 256
MOST_HALF_LIVES = 10.0
"""Half-lives after the last game up to which variances grow."""


@dataclass(frozen=True, eq=False, repr=False)
class GameForecast:
    """A fitted law of games: unknowns ``x`` with their ``covariance``, and the law's ``own`` numbers.

    ``design_of(games)`` gives the row scores of games as linear functions of the unknowns.  If games lose weight with
    their age, so does what is known: variances double with every half-life (a step of ``steps``) after ``last``.
    ``effects``: of controls, on the difference of scores or the log of the ratio of goals.
    """

    law: Any
    design_of: Callable[[Games], Any]
    x: Floats
    own: Floats
    covariance: Floats
    items: Names
    controls: tuple[str, ...]
    steps: TimeSteps | None = None
    last: float = 0.0
    effects: Controls | None = None

    def __repr__(self) -> str:
        return f"GameForecast({len(self.items)} items, {type(self.law).__name__})"

    def chances(self, a: Sequence[Any], b: Sequence[Any], *, control: Any = None, side: SideScore = "sum") -> Floats:
        """Probabilities (games, 3) that ``a`` wins, draws and loses; sides and controls as in `Games.from_results`.

        Returns
        -------
        (games, 3) floats
            Averaged over the posterior of the scores: teams with few games are less sure to win.
        """
        nil = np.zeros(len(a))
        if control is None and self.controls:
            control = np.zeros((len(a), len(self.controls)))
        games = Games.from_results(a, b, nil, nil, control=control, side=side)
        if games.control is not None and np.ndim(control) == 2:
            games = Games(
                games.item, games.share, games.offsets, games.points, games.weight, games.items,
                control=games.control, controls=self.controls,
            )  # fmt: skip
        return self.chances_of(games)

    def chances_of(self, games: Games) -> Floats:
        """Probabilities (games, 3) of a win, a draw and a loss of the first side of each game."""
        games = matched(games, self.items, self.controls)
        return self._averaged(games, self.law.outcomes, 3)

    def _averaged(self, games: Games, predict: Callable[[Floats, Floats], Floats], size: int) -> Floats:
        """The mean of ``predict(eta, own)`` (games, size) over the posterior of the row scores."""
        starts = range(0, len(games), GAMES_AT_ONCE)
        parts = [self._mean_of(games[k : k + GAMES_AT_ONCE], predict, size) for k in starts]
        return np.concatenate(parts) if parts else np.zeros((0, size))

    def _mean_of(self, games: Games, predict: Callable[[Floats, Floats], Floats], size: int) -> Floats:
        design = self.design_of(games)
        eta, rows = design.scores(self.x), self.law.rows
        spread = design.spread(self.covariance) * self._growth(games)[:, None, None]
        root = np.linalg.cholesky(spread + 1e-12 * np.eye(rows))
        node, weight = np.polynomial.hermite_e.hermegauss(NODES)
        weight = weight / weight.sum()
        found = np.zeros((len(games), size))
        for index in np.ndindex(*(NODES,) * rows):
            shift = root @ node[list(index)]
            found += float(np.prod(weight[list(index)])) * predict(eta + shift, self.own)
        return found

    def _growth(self, games: Games) -> Floats:
        """Factor (games,) of the variances at the time of each game; 1 if there are no half-lives, or no times."""
        if self.steps is None or games.time is None:
            return np.ones(len(games))
        return 2.0 ** np.clip(self.steps.fraction(games.time) - self.last, 0.0, MOST_HALF_LIVES)

    def costs(self, games: Games) -> Floats:
        """-log of the probability (games,) that the forecast gave to what happened: win, draw or loss."""
        happened = np.where(games.margin > 0, 0, np.where(games.margin < 0, 2, 1))
        return -np.log(self.chances_of(games)[np.arange(len(games)), happened])

    def expected_points(self, games: Games) -> Floats:
        """Expected goals (games, 2) of both sides; for a fit of goals."""
        if self.law.rows != 2:
            raise DataError("margins say nothing about points; fit 'goals'")
        return self._averaged(matched(games, self.items, self.controls), self.law.means, 2)


def matched(games: Games, items: tuple[object, ...], controls: tuple[str, ...]) -> Games:
    """The games over the items and with the controls of a board; a ``DataError`` for others."""
    if (games.controls or ()) != controls:
        raise DataError(f"the board has the controls {list(controls)}, these games {list(games.controls or ())}")
    number = {name: k for k, name in enumerate(items)}
    unknown = [name for name in games.items if name not in number]
    if unknown:
        raise DataError(f"item {unknown[0]!r} is not on the board ({len(unknown)} such); leave its games out")
    code: Ints = np.array([number[name] for name in games.items], np.int64)
    columns = (code[games.item], games.share, games.offsets, games.points, games.weight)
    return Games(*columns, items, games.time, games.control, games.controls)
