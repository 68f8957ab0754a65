"""Votes of the target on answers that a judge judged, too: their errors are correlated, and the pairing is used.

The votes of both factor as p(judge's verdicts | u) p(target's votes | verdicts, theta, u).  Given the verdict y in
{1, 0, -1} of a judge whose scores differ by d = u_i - u_j, the target's vote on the same answers has the log odds

    eta = kappa (theta_i - theta_j) + gamma x,   x = y - m(d),   m(d) = E[y | d]

gamma says how far the two agree about single answers beyond what the scores explain; 0 is independence.  As x has mean
0, kappa = sqrt(1 + c^2 gamma^2 E[x^2]), c = 16 sqrt(3) / (15 pi), keeps the log odds of a vote without a verdict at
theta_i - theta_j.  Both differences include the effects of controls and of coming first, each source's own; in m the
judge's, like its tie parameter, are those of the last fit.  The judge's scores enter the target's likelihood through m,
so theta and u are tied directly: with verdicts on the same answers only, little is gained and the errors stay
correlated; with many verdicts on others, m is known and x removes noise from the target's votes.  Second derivatives
are those of Gauss and Newton.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from placet.aggregate.likelihood.information import inverse_of
from placet.aggregate.pairs import pair_likelihood
from placet.aggregate.sources.joint_mode import JointPosterior
from placet.aggregate.sources.source_likelihood import FLAT, VoteLikelihood
from placet.aggregate.sources.width_evidence import Posterior, Quadratic, SourceEvidence
from placet.data import Comparisons, DataError, Parts
from placet.data.arrays import Floats, Ints
from placet.data.parts import as_parts
from placet.data.sources import Sources
from placet.losses.pairwise import TIES, outcome_probabilities

LOGISTIC = (16 * 3**0.5 / (15 * np.pi)) ** 2
"""Squared ratio of a logistic curve to the normal distribution function that is closest to it."""

PAIRING_PRIOR = 2.0
"""Standard deviation of gamma's prior."""

STEP = 1e-4
"""Step of differences, of m and of the evidence."""


class PairedRows(NamedTuple):
    """The target's ``votes`` with one row per pair, controls, verdict and what may have helped it; ``control`` (rows,
    k): the target's own; ``verdict`` and ``seen`` (rows,): what the judge said about the same answers, and whether it
    did; ``helped`` (rows, any): the judge's controls there, from the side of i, that of coming first being the last;
    ``source``, the judge's name; ``answered``, the votes with a verdict.
    """

    votes: Comparisons
    names: tuple[str, ...]
    control: Floats
    verdict: Floats
    seen: Floats
    helped: Floats
    source: Any
    answered: float


def paired_rows(sources: Sources, data: Mapping[Any, Any], order: bool = False) -> PairedRows | None:
    """The target's votes joined with the verdicts of the source that judged most of the same answers, by agent; None
    if there is no such source.

    ``data``: the sources with votes in parts counted, the target's with their agents; ``order``: whether it is learned
    what coming first is worth.
    """
    target = data[sources.target]
    if not isinstance(target, Comparisons) or target.agent is None:
        raise DataError(f"paired sources need votes of {sources.target!r} with an id of the answers as their agent")
    target, best = target.reweighted(1.0, ordered=order, time=False), None
    votes = target.wins_i + target.wins_j + target.ties
    for name, part in sources.items():
        if name == sources.target or not isinstance(data[name], Comparisons) or part.agents is None:
            continue
        verdict, helped = verdicts_on(target, part, order and data[name].ordered)
        answered = float(votes[~np.isnan(verdict)].sum())
        if answered and (best is None or answered >= best[1]):
            best = (name, answered, verdict, helped)
    if best is None:
        return None
    name, answered, verdict, helped = best
    seen = ~np.isnan(verdict)
    own = np.zeros((len(target), 0)) if target.control is None else target.control
    k = own.shape[1]
    rows = Comparisons(
        target.i,
        target.j,
        target.wins_i,
        target.wins_j,
        target.ties,
        items=target.items,
        ordered=target.ordered,
        control=np.column_stack([own, np.where(seen, verdict, 0.0), seen, helped]),
    )
    assert rows.control is not None
    control, verdict, seen, helped = np.split(rows.control, [k, k + 1, k + 2], axis=1)
    return PairedRows(rows, target.controls or (), control, verdict[:, 0], seen[:, 0], helped, name, answered)


def verdicts_on(target: Comparisons, judged: Comparisons | Parts, order: bool = False) -> tuple[Floats, Floats]:
    """(rows of the target,): the mean verdict on the same answers, 1 for i and -1 for j, NaN without one; and (rows, k)
    the mean controls of these verdicts from the side of i, with ``order`` that of coming first as the last.

    One pass over the judge's votes, which may be in parts; of these only the names of the ids are held.
    """
    code, n = {name: k for k, name in enumerate(judged.items)}, len(judged.items)
    answers = {name: k for k, name in enumerate(judged.agents or ())}
    item: Any = np.array([code.get(name, -1) for name in target.items])
    one: Any = np.array([answers.get(name, -1) for name in target.agents or ()])
    i, j, q = item[target.i], item[target.j], one[target.agent]
    there = np.flatnonzero((i >= 0) & (j >= 0) & (q >= 0))
    key, side = _keys(i[there], j[there], q[there], n)
    wanted, place = np.unique(key, return_inverse=True)
    sums = as_parts(judged).sum(_verdict_sums, wanted, n, order, name="verdicts")
    found, mean = np.zeros((len(sums) - 1, len(target))), side * np.delete(sums, 1, axis=0)[:, place]
    seen = np.zeros(len(target), bool)
    seen[there] = sums[1, place] > 0
    found[:, seen] = mean[:, seen[there]] / sums[1, place[seen[there]]]
    return np.where(seen, found[0], np.nan), found[1:].T


def _keys(i: Ints, j: Ints, q: Ints, n: int) -> tuple[Ints, Ints]:
    """One number for each id and pair, in either order, and 1 where i < j, else -1."""
    key = (q.astype(np.int64) * n + np.minimum(i, j)) * n + np.maximum(i, j)
    return key, np.where(i < j, 1, -1)


def _verdict_sums(judged: Comparisons, wanted: Ints, n: int, order: bool) -> Floats:
    """(2 + k, wanted): of the votes with each of the keys, the sum of verdicts from the lesser item's side, their
    number, and the sums of the controls; with ``order`` of coming first.
    """
    control = np.zeros((len(judged), 0)) if judged.control is None else judged.control
    if order:
        control = np.column_stack([control, np.ones(len(judged))])
    sums = np.zeros((2 + control.shape[1], len(wanted)))
    if not len(wanted):
        return sums
    agent: Any = judged.agent
    key, side = _keys(judged.i, judged.j, agent, n)
    place = np.minimum(np.searchsorted(wanted, key), len(wanted) - 1)
    hit = wanted[place] == key
    lead, total = side * (judged.wins_i - judged.wins_j), judged.wins_i + judged.wins_j + judged.ties
    for row, column in enumerate([lead, total, *(side * total * z for z in control.T)]):
        sums[row] = np.bincount(place[hit], column[hit], len(wanted))
    return sums


class PairedVotes(VoteLikelihood):
    """The target's votes given the verdicts of the judge; beside the scores: the tie parameter, if there are ties,
    gamma, and the effects of controls.  The judge's unknowns ``beside`` are set before every evaluation.
    """

    def __init__(self, rows: PairedRows, index: Ints, ties: str, judge: VoteLikelihood, link: int):
        votes, r = rows.votes, np.arange(len(rows.votes))
        control: Any = {"control": rows.control, "controls": rows.names} if rows.names else {}
        won = votes.wins_i, votes.wins_j, votes.ties
        plain = Comparisons(votes.i, votes.j, *won, items=votes.items, ordered=votes.ordered, **control)
        super().__init__(plain, index, ties, votes.ordered)
        # row r as the only vote on item r, so that its score is eta
        alone = Comparisons(r, np.full(len(r), len(r)), *won, items=tuple(range(len(r) + 1)))
        self.rows = pair_likelihood.pair_counts(alone, TIES[ties], FLAT, False)
        self.judge, self.link, self.n_ties = judge, link, self.rows.n_extra
        self.gamma = votes.n_items + self.n_ties
        self.size = votes.n_items + self.counts.n_extra + 1
        self.effect_precision = self.counts.scale * self.counts.extra_precision
        self.verdict, self.seen, self.helped = rows.verdict, rows.seen, rows.helped / judge.counts.unit
        at = {item: k for k, item in enumerate(judge.votes.items)}
        place = np.array([at.get(item, -1) for item in votes.items])
        helps = np.column_stack([rows.control, np.ones((len(r), int(votes.ordered)))]) / self.counts.unit
        self.difference = sparse.hstack([_differences(votes.i, votes.j, votes.n_items), helps]).tocsr()
        known = self.seen > 0
        self.judged = _differences(place[votes.i], place[votes.j], len(judge.votes.items), known)
        weight = (votes.wins_i + votes.wins_j + votes.ties) * self.seen
        self.share = weight / (weight.sum() or 1.0)
        self.steepness = np.ones(len(r))
        self.beside = judge.start()
        self.judge_tie = judge.tie(self.beside)  # as of the last fit, like kappa
        self.judge_shift = np.zeros(len(r))
        self.pull, self.cross, self.own = np.zeros(0), np.zeros((0, 0)), np.zeros((0, 0))

    def start(self) -> Floats:
        return np.insert(super().start(), self.gamma, 0.0)

    def _moving(self) -> Ints:
        """Numbers in x of the unknowns that a difference of scores is linear in: scores and effects."""
        return np.append(np.arange(len(self.index)), np.arange(self.gamma + 1, self.size))

    def _surprise(self) -> tuple[Floats, Floats]:
        """x and -dm/dd of every row, 0 without a verdict."""
        d = self.judged @ self.beside[: self.judged.shape[1]] + self.judge_shift

        def mean(d: Floats) -> Floats:
            won, lost, _ = outcome_probabilities(d, self.judge.counts.model, self.judge_tie)
            return np.asarray(won - lost)

        slope = (mean(d + STEP) - mean(d - STEP)) / (2 * STEP)
        return self.seen * (self.verdict - mean(d)), -self.seen * slope

    def _eta(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """The unknowns of the rows, x of `_surprise`, and its slope."""
        surprise, slope = self._surprise()
        eta = self.steepness * (self.difference @ x[self._moving()]) + x[self.gamma] * surprise
        return np.concatenate([eta, [0.0], x[len(self.index) : self.gamma]]), surprise, slope

    def value(self, x: Floats) -> float:
        effects = x[self.gamma + 1 :]
        beside = 0.5 * (x[self.gamma] / PAIRING_PRIOR) ** 2 + 0.5 * self.effect_precision * float(effects @ effects)
        return self.rows.scale * pair_likelihood.value(self.rows, self._eta(x)[0]) + beside

    def derivatives(self, x: Floats) -> tuple[Floats, Floats]:
        """Gradient and Hessian in x; ``pull``, ``own`` and ``cross`` are those in the judge's scores and both."""
        n, count, scale = len(self.index), len(self.verdict), self.rows.scale
        z, surprise, slope = self._eta(x)
        at = pair_likelihood.derivatives(self.rows, z)
        to_x = sparse.hstack([sparse.diags(self.steepness) @ self.difference, surprise[:, None]]).tocsr()
        to_u = sparse.diags(x[self.gamma] * slope) @ self.judged
        bend, down = sparse.diags(scale * at.curvature), scale * at.gradient[:count]
        g, H = np.zeros(self.size), np.zeros((self.size, self.size))
        most, ties = np.append(self._moving(), self.gamma), np.arange(n, self.gamma)
        g[most], g[ties] = to_x.T @ down, scale * at.gradient[count + 1 :]
        H[np.ix_(most, most)] = (to_x.T @ bend @ to_x).toarray()
        border = scale * at.border[:, :count]
        H[np.ix_(ties, most)] = (to_x.T @ border.T).T
        H[np.ix_(most, ties)] = H[np.ix_(ties, most)].T
        H[np.ix_(ties, ties)] = scale * at.corner
        precision = np.append(PAIRING_PRIOR**-2, np.full(self.size - self.gamma - 1, self.effect_precision))
        g[self.gamma :] += precision * x[self.gamma :]
        H[self.gamma :, self.gamma :] += np.diag(precision)
        self.pull, self.own = to_u.T @ down, (to_u.T @ bend @ to_u).toarray()
        self.cross = np.zeros((self.size, self.judged.shape[1]))
        self.cross[most] = (to_x.T @ bend @ to_u).toarray()
        self.cross[ties] = (to_u.T @ border.T).T
        return g, H

    def learn(self, x: Floats, precision: float) -> float:
        """Update kappa from gamma, and the judge's tie parameter and effects; returns the largest change of kappa's
        logarithm or of what the judge's effects amount to.
        """
        self.judge_tie = self.judge.tie(self.beside)
        shift = self.helped @ pair_likelihood.parameters(self.judge.counts, self.beside)[2]
        change = float(np.abs(shift - self.judge_shift).max(initial=0.0))
        self.judge_shift = shift
        steep = float(np.sqrt(1 + LOGISTIC * x[self.gamma] ** 2 * (self.share @ self._surprise()[0] ** 2)))
        new = np.where(self.seen > 0, steep, 1.0)
        change = max(change, float(np.abs(np.log(new / self.steepness)).max(initial=0.0)))
        self.steepness = new
        return change


def _differences(i: Ints, j: Ints, n: int, known: Any = None) -> Any:
    """(rows, n) sparse: 1 at i and -1 at j; zero rows where not ``known``."""
    r = np.arange(len(i)) if known is None else np.flatnonzero(known)
    value = np.concatenate([np.ones(len(r)), -np.ones(len(r))])
    return sparse.csr_matrix((value, (np.tile(r, 2), np.concatenate([i[r], j[r]]))), shape=(len(i), n))


class PairedPosterior(JointPosterior):
    """The joint posterior when the target's votes are `PairedVotes`: theta and the judge's scores are tied directly."""

    def __init__(self, target: PairedVotes, others: Sequence[Any], n: int):
        super().__init__(target, others, n)
        self.linked, self.judged = self.blocks[target.link], len(others[target.link].index)

    def of_target(self, x: Floats) -> Floats:
        self.target.beside = x[self.linked]
        return super().of_target(x)

    def value_and_gradient(self, x: Floats) -> tuple[float, Floats]:
        value, grad = super().value_and_gradient(x)
        if value == np.inf:
            return value, grad
        grad[self.linked][: self.judged] += self.target.pull
        return value, grad

    def _step(self, x: Floats, gradient: Floats) -> Floats:
        (w, a, v), slopes = self.widths, self.derivatives(x)
        at = self._places()
        S = np.zeros((self.n_shared, self.n_shared))
        S[np.arange(self.n), np.arange(self.n)] = 1 / w**2
        S[np.ix_(at, at)] += slopes[-1][1]
        right, kept = gradient[: self.n_shared].copy(), []
        for k, (one, block) in enumerate(zip(self.others, self.blocks)):
            m, H = len(one.index), slopes[k][1].copy()
            H[np.arange(m), np.arange(m)] += 1 / v[k] ** 2
            T = np.zeros((self.n_shared, len(H)))
            T[one.index, np.arange(m)] = -a[k] / v[k] ** 2
            if k == self.target.link:
                H[:m, :m] += self.target.own
                T[at, :m] += self.target.cross
            inverse = inverse_of(H)
            S[one.index, one.index] += a[k] ** 2 / v[k] ** 2
            S -= T @ inverse @ T.T
            right -= T @ (inverse @ gradient[block])
            kept.append((inverse, T))
        step = np.empty(self.size)
        step[: self.n_shared] = np.linalg.solve(S, right)
        for (inverse, T), block in zip(kept, self.blocks):
            step[block] = inverse @ (gradient[block] - T.T @ step[: self.n_shared])
        return step


class PairedEvidence(SourceEvidence):
    """The evidence when theta and the scores of one source are tied directly, by the matrix C of second derivatives.

    That source adds to the precision of theta a (V diag(1 / (1 + l v^2)) V' C' + its transpose) - C V diag(v^2 / (1 +
    l v^2)) V' C', and to its linear term -C V (v^2 rho / (1 + l v^2)).  Items that the source does not have are left
    out of C.  Derivatives are differences.
    """

    def __init__(self, joint: PairedPosterior, x: Floats, free: Floats):
        super().__init__(joint, x, free)
        target, k = joint.target, joint.target.link
        self.link, m = k, len(joint.target.index)
        own, u = joint.of_target(x), joint.own(x, k)[: joint.judged]
        g, H = target.derivatives(own)
        back = np.linalg.solve(H[m:, m:], np.column_stack([H[m:, :m], target.cross[m:], g[m:, None]]))
        C = target.cross[:m] - H[:m, m:] @ back[:, m:-1]
        added = target.own - target.cross[m:].T @ back[:, m:-1]
        pull = target.pull - target.cross[m:].T @ back[:, -1]
        one = self.sources[k]
        place = np.full(joint.n, -1)
        place[one.items] = np.arange(len(one.items))
        both = place[target.index] >= 0
        cross = np.zeros((len(one.items), len(one.items)))
        cross[place[target.index[both]]] = C[both]
        self.linear[target.index] += np.where(both, C @ u, 0.0)
        L = (one.vectors * one.values) @ one.vectors.T + (added + added.T) / 2
        theta = np.zeros(len(one.items))
        theta[place[target.index[both]]] = own[:m][both]
        r = one.vectors @ one.rho + added @ u + cross.T @ theta - pull
        values, vectors = np.linalg.eigh(L)
        self.sources[k] = Quadratic(one.items, np.maximum(values, 0.0), vectors, vectors.T @ r, vectors.T @ cross.T)

    def part_of(self, widths: Any, k: int) -> Floats:
        added, one = super().part_of(widths, k), self.sources[k]
        if one.cross is not None:
            den = 1 + one.values * widths.v[k] ** 2
            turn = widths.a[k] * (one.vectors / den) @ one.cross
            added = added + turn + turn.T - (one.cross.T * (widths.v[k] ** 2 / den)) @ one.cross
        return added

    def precision(self, widths: Any) -> tuple[Floats, Floats]:
        S, q = super().precision(widths)
        one, x = self.sources[self.link], widths.v[self.link] ** 2
        assert one.cross is not None
        q[one.items] -= one.cross.T @ (x * one.rho / (1 + one.values * x))
        return S, q

    def derivatives(self, z: Floats, here: Posterior) -> tuple[Floats, Floats, Floats]:
        """Gradient (z,) and Hessian (z, z) of the log evidence, and the slopes of the mean (z, n), by differences."""
        size, step = len(z), 10 * STEP
        unit, free = step * np.eye(size), self.free > 0
        value = lambda move: self.at(z + move).value  # noqa: E731
        sides = [(self.at(z + e), self.at(z - e)) if f else (here, here) for e, f in zip(unit, free)]
        grad = np.array([(up.value - down.value) / (2 * step) for up, down in sides])
        slope = np.array([(up.mean - down.mean) / (2 * step) for up, down in sides])
        H = -np.diag(1.0 - self.free)
        for j in np.flatnonzero(free):
            up, down = sides[j]
            H[j, j] = (up.value - 2 * here.value + down.value) / step**2
            for k in np.flatnonzero(free[:j]):
                near = value(unit[j] + unit[k]) - value(unit[j] - unit[k])
                H[j, k] = H[k, j] = (near - value(unit[k] - unit[j]) + value(-unit[j] - unit[k])) / (4 * step**2)
        return grad * self.free, H, slope * self.free[:, None]
