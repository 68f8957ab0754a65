"""Raters who differ: how sharply each tells items apart, how readily it calls a tie, and which side it favors.

Rater n sees  d = a_n (theta_i - theta_j) + b_n + z . gamma  and ties by the parameter  tie + t_n,  with
a_n ~ N(1, w_a^2), b_n ~ N(0, w_b^2), t_n ~ N(0, w_t^2).  The widths are learnt: MacKay's update of the evidence, under
Laplace's approximation, puts w^2 to (sum of squares) / (number of raters - sum of posterior variances / w^2).

Given what the raters share (scores, tie parameter, controls: "shared", N unknowns) the raters are independent, so the
Hessian is an arrow: [A, B; B', C] with C made of one small block for each rater.  A step costs O(votes + N^3).
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve

from placet import optim
from placet.aggregate import pairs
from placet.aggregate.information import with_mean_zero
from placet.aggregate.prior import NARROWEST, WIDEST_PRIOR
from placet.aggregate.uncertainty import MOST_SIMULATED
from placet.data import Comparisons
from placet.data.arrays import Floats, Names
from placet.losses.pairwise import PAIR_MODELS, outcome_probabilities

if TYPE_CHECKING:
    import polars as pl

KINDS = ("sharpness", "ties", "side")
FIRST_WIDTH = 0.5
MOST_ROUNDS = 60
ROUND_ACCURACY = 0.01
"""Relative change of every width at which learning them ends."""

LOWEST = 1e-3
"""A width below this is taken as none: raters do not differ."""


def parse_kinds(agents: Any) -> tuple[str, ...]:
    """The kinds of difference asked for: ``"sharpness+ties+side"``, ``"all"``, any subset; () for None."""
    if agents is None or agents == "":
        return ()
    asked = KINDS if agents == "all" else tuple(part.strip() for part in str(agents).replace(",", "+").split("+"))
    unknown = [kind for kind in asked if kind not in KINDS]
    if unknown:
        raise ValueError(f'agents {unknown[0]!r} is unknown; choose from {list(KINDS)}, joined by +, or "all"')
    return tuple(kind for kind in KINDS if kind in asked)


class Rows(NamedTuple):
    """What the model says of each row at x: the difference of scores, d, and derivatives by d and the tie parameter."""

    gap: Floats
    slope: Floats
    curvature: Floats
    cross: Floats
    tie_slope: Floats
    tie_curvature: Floats


@dataclass(frozen=True)
class Arrow:
    """A Hessian [A, B; B', C], factored: A (N, N), B sparse (N, raters r), C one block (r, r) for each rater."""

    inverse_blocks: Any  # sparse, of C
    back: Any  # sparse B C^-1
    schur: Any  # Cholesky factor of A - B C^-1 B'

    @classmethod
    def factored(cls, H: Any, n_shared: int, r: int) -> "Arrow":
        """A ``LinAlgError`` where H is not positive definite."""
        A, B = H[:n_shared, :n_shared].toarray(), H[:n_shared, n_shared:].tocsr()
        blocks = H[n_shared:, n_shared:].tobsr(blocksize=(r, r))
        blocks.sort_indices()
        if len(blocks.data) and np.linalg.eigvalsh(blocks.data).min() <= 0:
            raise np.linalg.LinAlgError("a rater's block is not positive definite")
        inverse = sparse.bsr_matrix((np.linalg.inv(blocks.data), blocks.indices, blocks.indptr), shape=blocks.shape)
        back = (B @ inverse).tocsr()
        return cls(inverse, back, cho_factor(A - (back @ B.T).toarray(), lower=True))

    def solve(self, g: Floats) -> Floats:
        """H^-1 g."""
        n = self.back.shape[0]
        shared = cho_solve(self.schur, g[:n] - self.back @ g[n:])
        return np.concatenate([shared, self.inverse_blocks @ g[n:] - self.back.T @ shared])

    @cached_property
    def covariance(self) -> Floats:
        """The part (N, N) of H^-1 of what raters share."""
        n = self.back.shape[0]
        return np.asarray(cho_solve(self.schur, np.eye(n)))

    def variances(self) -> Floats:
        """The diagonal of H^-1 of the raters' unknowns (raters r,)."""
        through = (self.back.T @ self.covariance) * self.back.T.toarray() if self.back.shape[1] else np.zeros((0, 1))
        return np.asarray(self.inverse_blocks.diagonal() + through.sum(axis=1))


class RaterVotes:
    """Minus the log posterior of votes with agents, in x = (scores, tie parameter, effects of controls, raters).

    Raters come agent by agent, ``kinds`` inside; ``widths`` are the standard deviations of the scores and of the kinds.
    """

    def __init__(self, c: Comparisons, family: str, kinds: tuple[str, ...], order: bool) -> None:
        assert c.agent is not None
        assert c.agents is not None
        self.c, self.kinds, self.r = c, kinds, len(kinds)
        self.n, self.m, self.agent = c.n_items, len(c.agents), c.agent
        self.tied = family != "bradley-terry" and bool((c.ties > 0).any())
        self.law = PAIR_MODELS[family if self.tied else "bradley-terry"]
        self.family = family if self.tied else "bradley-terry"
        self.order = order
        self.control, self.unit = pairs.controls_of(c, order)
        self.n_shared = self.n + int(self.tied) + self.control.shape[1]
        self.bounds = np.searchsorted(self.agent, np.arange(self.m + 1))
        self.precision = np.zeros(self.n_shared + self.m * self.r)
        self.precision[self.n : self.n_shared] = 1 / pairs.EXTRA_PRIOR**2

    def set_widths(self, prior: float, widths: Mapping[str, float]) -> None:
        """Standard deviations of the scores' prior and of what raters differ in."""
        self.precision[: self.n] = 1 / prior**2
        by_kind = [1 / max(widths[kind], LOWEST) ** 2 for kind in self.kinds]
        self.precision[self.n_shared :] = np.tile(by_kind, self.m)

    def split(self, x: Floats) -> tuple[Floats, float, Floats, dict[str, Floats]]:
        """Scores (n,), tie parameter, effects (k,), and the raters' deviations (raters,) by kind."""
        shared, own = x[: self.n_shared], x[self.n_shared :].reshape(self.m, self.r)
        tie = float(shared[self.n]) if self.tied else -np.inf
        return shared[: self.n], tie, shared[self.n + int(self.tied) :], dict(zip(self.kinds, own.T))

    def _advantage(self, x: Floats) -> tuple[Floats, Floats, list[tuple[slice, float]]]:
        """The gap of scores and d of each row (rows,), and ranges of rows with the tie parameter in each."""
        theta, tie, effect, own = self.split(x)
        gap = theta[self.c.i] - theta[self.c.j]
        d = self.control @ effect + gap
        if "sharpness" in own:
            d += own["sharpness"][self.agent] * gap
        if "side" in own:
            d += own["side"][self.agent]
        if "ties" not in own or not self.tied:
            return gap, d, [(slice(0, len(d)), tie)]
        ranges = [(slice(a, z), tie + t) for a, z, t in zip(self.bounds, self.bounds[1:], own["ties"]) if z > a]
        return gap, d, ranges

    def _counts(self, rows: slice) -> tuple[Floats, Floats, Floats]:
        return self.c.wins_i[rows], self.c.wins_j[rows], self.c.ties[rows]

    def value(self, x: Floats) -> float:
        """Minus the log posterior without constants.  O(votes)."""
        _, d, ranges = self._advantage(x)
        total = 0.5 * float(self.precision @ x**2)
        for rows, tie in ranges:
            win, loss, tied = np.empty((3, rows.stop - rows.start))
            self.law.costs(d[rows], self.law.inner(tie) if self.tied else 0.0, win, loss, tied)
            won, lost, even = self._counts(rows)
            total += float(won @ win + lost @ loss + even @ (tied if self.tied else (win + loss) / 2))
        return total

    def rows(self, x: Floats) -> Rows:
        """Derivatives of each row by d and by the tie parameter.  O(votes)."""
        gap, d, ranges = self._advantage(x)
        out = Rows(gap, *np.zeros((5, len(d))))
        for rows, tie in ranges:
            t = self.law.inner(tie) if self.tied else 0.0
            self.law.slopes(d[rows], t, *self._counts(rows), *(column[rows] for column in out[1:]))
            if self.tied:  # from the number in which the model is convex to the tie parameter itself
                _, first, second = self.law.outer(t)
                out.tie_curvature[rows] = (out.tie_curvature[rows] - out.tie_slope[rows] * second / first) / first**2
                out.tie_slope[rows] /= first
                out.cross[rows] /= first
        return out

    def jacobians(self, x: Floats, gap: Floats) -> tuple[Any, Any]:
        """Sparse (rows, unknowns): derivatives of d and of the tie parameter of each row."""
        own = self.split(x)[3]
        rows, size = len(gap), len(x)
        k = self.control.shape[1]
        a = 1 + own["sharpness"][self.agent] if "sharpness" in own else np.ones(rows)
        first = self.n_shared + self.agent * self.r
        columns = [self.c.i, self.c.j, *(np.full(rows, self.n_shared - k + e) for e in range(k))]
        values = [a, -a, *self.control.T]
        for kind, value in (("sharpness", gap), ("side", np.ones(rows))):
            if kind in own:
                columns.append(first + self.kinds.index(kind))
                values.append(value)
        of_d = _by_rows(values, columns, size)
        if not self.tied:
            return of_d, sparse.csr_matrix((rows, size))
        ties = [np.full(rows, self.n)] + ([first + self.kinds.index("ties")] if "ties" in own else [])
        return of_d, _by_rows([np.ones(rows)] * len(ties), ties, size)

    def gradient(self, x: Floats) -> Floats:
        """Gradient of the value.  O(votes)."""
        at = self.rows(x)
        of_d, of_tie = self.jacobians(x, at.gap)
        return np.asarray(of_d.T @ at.slope + of_tie.T @ at.tie_slope + self.precision * x)

    def arrow(self, x: Floats) -> Arrow:
        """The Hessian, or where it is not positive definite, without the terms that may make it so."""
        at = self.rows(x)
        of_d, of_tie = self.jacobians(x, at.gap)
        mixed = of_d.T @ of_tie.multiply(at.cross[:, None]).tocsr()
        H = of_d.T @ of_d.multiply(at.curvature[:, None]).tocsr() + mixed + mixed.T
        H = (H + of_tie.T @ of_tie.multiply(at.tie_curvature[:, None]).tocsr() + sparse.diags(self.precision)).tocsr()
        if "sharpness" in self.kinds:
            try:
                return Arrow.factored(H + self._bilinear(at.slope, len(x)), self.n_shared, self.r)
            except np.linalg.LinAlgError:
                pass  # away from the optimum; what is left is convex in d
        return Arrow.factored(H, self.n_shared, self.r)

    def _bilinear(self, slope: Floats, size: int) -> Any:
        """The slope by d times the second derivatives of d: sharpness times score."""
        column = self.n_shared + self.agent * self.r + self.kinds.index("sharpness")
        rows, columns = np.concatenate([self.c.i, self.c.j]), np.tile(column, 2)
        half = sparse.coo_matrix((np.concatenate([slope, -slope]), (rows, columns)), shape=(size, size))
        return (half + half.T).tocsr()

    def start(self, theta: Any = None) -> Floats:
        """Scores as given or from the odds of winning, the tie parameter from the share of ties, raters alike."""
        p = pairs.pair_counts(self.c, self.family, 1.0, False, (self.control[:, :0], np.zeros(0)))
        shared = pairs.start_of(p, theta)
        x = np.zeros(self.n_shared + self.m * self.r)
        x[: self.n] = shared[: self.n]
        if self.tied:
            x[self.n] = self.law.outer(float(shared[self.n]))[0]
        return x

    def fit(self, x: Floats, max_iter: int, tol: float) -> tuple[optim.Fit, Arrow]:
        """Newton's method; the fit, and the Hessian there."""
        last: tuple[Floats, Arrow] | None = None

        def solve(x: Floats, gradient: Floats) -> Floats:
            nonlocal last
            last = x, self.arrow(x)
            return last[1].solve(gradient)

        fun = lambda x: (self.value(x), self.gradient(x))  # noqa: E731
        found = optim.newton(fun, solve, x, step_tol=np.sqrt(tol), max_iter=max_iter)
        return found, self.arrow(found.x)


def _by_rows(values: list[Floats], columns: list[Any], size: int) -> Any:
    """A sparse matrix (rows, size) with the same number of entries in each row."""
    rows, each = len(values[0]), len(values)
    data, place = np.column_stack(values).ravel(), np.column_stack(columns).ravel()
    return sparse.csr_matrix((data, place, np.arange(0, rows * each + 1, each)), shape=(rows, size))


def learn_widths(
    v: RaterVotes, x: Floats, prior: float | None, max_iter: int
) -> tuple[float, dict[str, float], Floats]:
    """Widths of the scores' prior (unless given) and of the kinds of difference, and unknowns near to the fit.

    The evidence is raised by MacKay's fixed point, w^2 = sum u^2 / (number - sum of variances / w^2).
    """
    theta_width = float(np.std(x[: v.n])) or 1.0 if prior is None else prior
    widths = dict.fromkeys(v.kinds, FIRST_WIDTH)
    for _ in range(MOST_ROUNDS):
        v.set_widths(theta_width, widths)
        fit, arrow = v.fit(x, max_iter, pairs.ROUGH)
        x = fit.x
        variances = arrow.variances().reshape(v.m, v.r)
        own = x[v.n_shared :].reshape(v.m, v.r)
        before = [theta_width, *widths.values()]
        for k, kind in enumerate(v.kinds):
            widths[kind] = _evidence(own[:, k], variances[:, k], widths[kind], v.m)
        if prior is None:
            spread = np.diag(with_mean_zero(arrow.covariance, v.n))[: v.n]
            theta_width = _evidence(x[: v.n] - x[: v.n].mean(), spread, theta_width, max(v.n - 1, 1))
        change = np.abs(np.log(np.array([theta_width, *widths.values()]) / before))
        if change.max() < ROUND_ACCURACY:
            break
    return theta_width, widths, x


def _evidence(u: Floats, variance: Floats, width: float, count: int) -> float:
    """The next width: squares over how many of the unknowns the data determine; within bounds."""
    determined = max(count - float(variance.sum()) / width**2, 1e-3 * count)
    return float(
        np.clip(np.sqrt(float(u @ u) / determined), LOWEST if width < NARROWEST else NARROWEST / 2, WIDEST_PRIOR)
    )


@dataclass(frozen=True)
class Raters:
    """What each rater is like: (raters,) sharpness around 1, tie parameter, side (what the first gains), and errors.

    ``widths``: how much raters differ, as standard deviations; ``typical_tie`` and ``order`` (the effect of coming
    first) are those of the typical rater.
    """

    agents: Names
    votes: Floats
    family: str
    tie: Floats
    columns: Mapping[str, Floats]
    stderr: Mapping[str, Floats]
    widths: Mapping[str, float]
    typical_tie: float
    order: float

    def probabilities(self, agents: Sequence[Hashable], gap: Floats) -> tuple[Floats, Floats, Floats]:
        """Probabilities that each vote is for the first, for the second, or a tie; ``gap`` (votes,) of their scores.

        An agent who is not known is taken as typical.
        """
        index = {name: k for k, name in enumerate(self.agents)}
        code = np.array([index.get(name, len(index)) for name in agents], np.int64)
        sharpness = np.append(self.columns.get("sharpness", np.ones(len(index))), 1.0)
        side = np.append(self.columns.get("side", np.full(len(index), self.order)), self.order)
        tie = np.append(self.tie, self.typical_tie)
        d = sharpness[code] * gap + side[code]
        out = np.empty((3, len(d)))
        for k in np.unique(code):
            out[:, code == k] = outcome_probabilities(d[code == k], self.family, float(tie[k]))
        return out[0], out[1], out[2]

    def to_frame(self) -> "pl.DataFrame":
        """A Polars frame, most votes first: agent, votes, sharpness, tie_rate, side with standard errors, and a word.

        ``tie_rate`` is the probability that the rater calls two items of equal score a tie.
        """
        import polars as pl

        order = np.lexsort((np.arange(len(self.agents)), -self.votes))
        names = [self.agents[k] for k in order]
        same = len({type(name) for name in names}) <= 1
        frame: dict[str, Any] = {"agent": names if same else [str(name) for name in names], "votes": self.votes[order]}
        for kind in ("sharpness", "side"):
            if kind in self.columns:
                frame |= {kind: self.columns[kind][order], f"{kind}_stderr": self.stderr[kind][order]}
        if self.family != "bradley-terry":
            rate = self.tie_rates()
            frame |= {"tie_rate": rate[order]}
            if "ties" in self.columns:
                frame |= {"tie_stderr": self.stderr["ties"][order]}
        words = self.words()
        return pl.DataFrame(frame | {"note": [words[k] for k in order]})

    def tie_rates(self) -> Floats:
        """(raters,) the probability of a tie between items of equal score."""
        return np.array([float(outcome_probabilities(0.0, self.family, float(t))[2]) for t in self.tie])

    def words(self) -> list[str]:
        """What stands out about each rater beyond chance, in a few words."""
        z = 1.645
        found = []
        sharpness, side = self.columns.get("sharpness"), self.columns.get("side")
        rate = self.tie_rates() if "ties" in self.columns else None
        for k in range(len(self.agents)):
            said = []
            if sharpness is not None:
                a, e = float(sharpness[k]), float(self.stderr["sharpness"][k])
                if a + z * e < 0:
                    said.append("answers the other way round")
                elif a - z * e < 0 and a + z * e < 0.5:
                    said.append("answers like a coin")
                elif a + z * e < 1:
                    said.append("less sharp than most")
                elif a - z * e > 1:
                    said.append("sharper than most")
            if rate is not None:
                low = self.tie[k] - z * self.stderr["ties"][k]
                sure = float(outcome_probabilities(0.0, self.family, float(low))[2])
                if sure > 0.8:
                    said.append("calls nearly everything a tie")
                elif rate[k] < 0.02:
                    said.append("hardly ever calls a tie")
            if side is not None and abs(side[k]) - z * self.stderr["side"][k] > 0.5:
                said.append(f"favors the {'first' if side[k] > 0 else 'second'}")
            found.append(", ".join(said))
        return found

    def notes(self) -> list[str]:
        """How much raters differ, and how many stand out."""
        spread = ", ".join(f"{kind} {self.widths[kind]:.2g}" for kind in self.columns)
        found = [f"raters differ by these standard deviations, learnt from the data: {spread}"]
        words = self.words()
        for text in ("answers like a coin", "answers the other way round"):
            who = [str(self.agents[k]) for k, said in enumerate(words) if text in said]
            if who:
                more = f" and {len(who) - 5} more" if len(who) > 5 else ""
                found.append(f"{text}: {', '.join(who[:5])}{more}")
        return found


def raters_of(v: RaterVotes, x: Floats, arrow: Arrow, widths: Mapping[str, float]) -> Raters:
    """What the fit says of each rater; errors of sums with what raters share leave the share's own error out."""
    c = v.c
    _, tie, effect, own = v.split(x)
    errors = np.sqrt(np.maximum(arrow.variances(), 0.0)).reshape(v.m, v.r)
    order = float(effect[-1] / v.unit[-1]) if v.order else 0.0
    columns = {kind: values + {"sharpness": 1.0, "side": order}.get(kind, 0.0) for kind, values in own.items()}
    ties = tie + own["ties"] if "ties" in own else np.full(v.m, tie)
    votes = np.bincount(v.agent, c.wins_i + c.wins_j + c.ties, v.m).astype(np.float64)
    assert c.agents is not None
    return Raters(c.agents, votes, v.family, ties, columns, dict(zip(v.kinds, errors.T)), dict(widths), tie, order)


def checked_votes(data: Any, kinds: tuple[str, ...], ties: str) -> Comparisons:
    """Votes of which it is known who gave them, or an error that says what is missing."""
    if not isinstance(data, Comparisons) or data.agent is None:
        raise ValueError("agents= needs votes that say who gave them: read_battles(agent=) or from_battles(agent=)")
    if "side" in kinds and not data.ordered:
        raise ValueError('agents="side" needs to know who came first: Comparisons made with ordered=True')
    if "ties" in kinds and ties == "none":
        raise ValueError('agents="ties" needs a model of ties: ties="davidson" or "rao-kupper"')
    if data.n_items > MOST_SIMULATED:
        raise ValueError(f"agents= takes at most {MOST_SIMULATED} items, and these are {data.n_items}")
    return data
