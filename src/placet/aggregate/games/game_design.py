"""Row scores of games as linear functions of unknowns: the scores of items, and the effects of controls."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from placet.data.arrays import Floats
from placet.data.contests.games import Games
from placet.data.times import TimeSteps


@dataclass(frozen=True, eq=False)
class Design:
    """Matrices (games, unknowns), one for each row score of a game.

    The first unknowns are the scores (items,) by which items are ranked, then those of ``kinds`` - 1 other kinds.
    """

    rows: tuple[sparse.csr_matrix, ...]
    n_items: int
    kinds: int = 1

    @property
    def n_scores(self) -> int:
        return self.n_items * self.kinds

    @property
    def n_unknowns(self) -> int:
        return int(self.rows[0].shape[1])

    def scores(self, x: Floats) -> Floats:
        """Row scores (games, rows) at unknowns x."""
        return np.column_stack([matrix @ x for matrix in self.rows])

    def spread(self, covariance: Floats) -> Floats:
        """Covariance (games, rows, rows) of the row scores of each game."""
        moved = [matrix @ covariance for matrix in self.rows]
        found = np.empty((self.rows[0].shape[0], len(self.rows), len(self.rows)))
        for r, left in enumerate(moved):
            for s, matrix in enumerate(self.rows):
                found[:, r, s] = np.asarray(matrix.multiply(left).sum(axis=1)).ravel()
        return found


def sides(games: Games) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """Matrices (games, items): the share of every item in the score of the first and of the second side."""
    both = sparse.csr_matrix((games.share, games.item, games.offsets), shape=(2 * len(games), games.n_items))
    return both[0::2], both[1::2]


def margin_design(games: Games) -> Design:
    """One row score: the difference of the two sides, and what helped the first."""
    first, second = sides(games)
    return Design((sparse.hstack([first - second, _controls(games)], format="csr"),), games.n_items)


def goal_design(games: Games) -> Design:
    """Two row scores, the log rates: attack of the one side minus defense of the other, a level, and controls.

    Unknowns: strength = attack + defense, style = attack - defense (many goals on both sides), level, effects of
    controls on the goals of the first side, and on those of the second.  Items differ more in strength than in style,
    so each has a prior of its own; the log of the ratio of goals is the difference of the strengths.
    """
    first, second = sides(games)
    shown, one = _controls(games), np.ones((len(games), 1))
    none = sparse.csr_matrix(shown.shape)
    lead, style = (first - second) / 2, (first + second) / 2
    scored = sparse.hstack([lead, style, one, shown, none], format="csr")
    conceded = sparse.hstack([-lead, style, one, none, shown], format="csr")
    return Design((scored, conceded), games.n_items, kinds=2)


def _controls(games: Games) -> sparse.csr_matrix:
    values = np.zeros((len(games), 0)) if games.control is None else games.control
    return sparse.csr_matrix(values)


def half_lives(games: Games, half_life: str | float | None) -> tuple[TimeSteps | None, float]:
    """Time in half-lives, and when the last game was."""
    if half_life is None or not len(games):
        return None, 0.0
    if games.time is None:
        raise ValueError("half_life= needs to know when: read_games(..., time=) or from_results(..., time=)")
    try:
        steps = TimeSteps(half_life, games.time)
    except ValueError as error:
        raise ValueError(str(error).replace("step", "half_life", 1)) from None
    return steps, float(steps.fraction(games.time).max())


def decayed_weight(games: Games, half_life: str | float | None) -> Floats:
    """Weights (games,) that halve with every ``half_life`` before the last game."""
    steps, last = half_lives(games, half_life)
    if steps is None or games.time is None:
        return games.weight
    return games.weight * 0.5 ** (last - steps.fraction(games.time))
