"""Bradley-Terry on pair counts, with Rao-Kupper or Davidson ties and controls such as an order effect."""

from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np

from placet.aggregate.instances import refuse_instances
from placet.aggregate.likelihood.controls import Controls, control_names, refuse_row_controls
from placet.aggregate.likelihood.existence import agent_factor, data_kind, notes_of_pairs
from placet.aggregate.likelihood.information import SCORE_TOLERANCE, Stderr, with_mean_zero
from placet.aggregate.likelihood.prior import LEARN, check_prior, prior_note
from placet.aggregate.likelihood.rater_posterior import Arrow, check_rater_options, fit_raters
from placet.aggregate.likelihood.raters import parse_kinds
from placet.aggregate.pairs import drift, drift_with_raters, pair_likelihood, vote_raters
from placet.aggregate.pairs.pair_bootstrap import bootstrap_draws
from placet.aggregate.pairs.unidentified_effects import PairEffects
from placet.aggregate.result.result import Consensus
from placet.aggregate.result.uncertainty import MOST_SIMULATED
from placet.data import Comparisons, DataError, Rankings
from placet.data.estimator import Estimator
from placet.losses.pairwise import TIES, win_probability

TieModel = Literal["none", "rao-kupper", "davidson"]

INDEPENDENT_PAIRS = "pairs of one ballot were taken as independent votes; 'plackett-luce' or bootstrap does not"


class BradleyTerry(Estimator):
    """Item i beats item j with probability 1 / (1 + e^-d), d = theta_i - theta_j.

    Parameters
    ----------
    ties : "none", "rao-kupper" or "davidson"
        "none" counts a tie as half a win for either side.  The other two have a tie parameter, ``extras["tie"]``:
        in "rao-kupper" P(i) = 1 / (1 + (1 + e^tie) e^-d) and ties have the remaining probability; in "davidson" the
        probabilities of i, j and a tie are proportional to e^{d/2}, e^{-d/2} and e^tie.
    order_effect : bool
        A constant is added to d for the item that came first (``Comparisons`` with ``ordered=True``); equivalent to a
        control "order" that is 1 in every row.
    prior : float, "learn" or None
        Standard deviation of the normal prior of the scores, with mean 0.  "learn", the default: the value that
        maximizes the marginal likelihood (`placet.aggregate.likelihood.prior`; ``extras["prior"]``), so that items with
        few votes are shrunk toward the mean as much as the spread of all items suggests.  The tie parameter and the
        effect of each control, in units of its root mean square, have a standard deviation of 10 in either case.  None:
        no prior, and a ``DataError`` if no finite scores exist.
    stderr : "observed", "sandwich" or None
        Standard errors from the observed information, from the robust sandwich estimator over votes, or none.
    agent_weight : mapping, optional
        Agents' names to the weights of their votes (default 1).
    agents : str, optional
        What agents (raters) may differ in: "sharpness", "ties", "side", several joined by +, or "all"
        (`placet.aggregate.likelihood.raters`); ``consensus_.agents_frame()`` has the estimates.
    drift : float or "learn", optional
        Let scores change over time: the standard deviation of the change of a score in one time ``step``, or "learn" to
        estimate it by maximum marginal likelihood (`placet.aggregate.pairs.drift`; needs ``Comparisons.time``).  Scores
        are then those at the last step; ``consensus_.at(date)`` and ``consensus_.history(item)`` give the others.  With
        ``agents``, both are fitted jointly (`placet.aggregate.pairs.drift_with_raters`).
    step : str or float
        Time step, within which scores are constant: "1y", "6m", "2w", "30d" for dates, a number if times are numbers.
    max_iter, tol
        Newton's method stops when a step moves no unknown by more than sqrt(tol), or after ``max_iter`` steps.
    random_state : int
        Seed for sampled standard errors.

    Controls of the data (``Comparisons.control``: style, length, side) add ``control @ effect`` to d; scores, ranks and
    win probabilities refer to controls of 0, and ``consensus_.controls`` has the effects.

    Newton's method: O(pairs) per step, plus O(n^3) once for standard errors up to 4,096 items; beyond, sampled.

    >>> votes = Comparisons.from_battles("aabbc", "bbcca", ["a", "b", "a", "a", "b"])
    >>> model = BradleyTerry().fit(votes)
    >>> model.consensus_.ranking
    ['b', 'a', 'c']
    """

    def __init__(
        self,
        ties: TieModel = "none",
        order_effect: bool = False,
        prior: float | str | None = "learn",
        stderr: Stderr = "observed",
        agent_weight: Any = None,
        agents: str | None = None,
        drift: float | str | None = None,
        step: str | float = "1y",
        max_iter: int = 200,
        tol: float = 1e-10,
        random_state: int = 0,
    ):
        self.ties = ties
        self.order_effect = order_effect
        self.prior = prior
        self.stderr = stderr
        self.agent_weight = agent_weight
        self.agents = agents
        self.drift = drift
        self.step = step
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, data: Rankings | Comparisons, start: Any = None, progress: Any = None) -> "BradleyTerry":
        """Fit to votes, or to all pairs on the same ballot; ``start`` are scores to start from.

        ``progress(done, expected)`` is called while drift is learned.
        """
        self._check(data)
        refuse_instances(data, "bradley-terry")
        refuse_row_controls(data, "bradley-terry")
        kinds = parse_kinds(self.agents)
        if self.drift is not None:
            fit = partial(self._fit_rated_walk, kinds=kinds) if kinds else self._fit_walk
            return fit(data, start=start, progress=progress)
        if kinds:
            return self._fit_raters(vote_raters.checked_votes(data, kinds, self.ties), kinds, start)
        counts, notes = self._counts(data)
        self.prior_, x = self._width(counts, start)
        if self.prior_ is not None:
            notes.insert(0, prior_note(self.prior_, self.prior == LEARN))
        p = self._pairs(counts)
        notes += notes_of_pairs(p.i, p.j, p.wins_i, p.wins_j, p.ties, counts.items, self.prior)
        if self.prior is None and p.tie and not (p.wins_i.any() or p.wins_j.any()):
            raise DataError("every result is a tie, so the tie parameter has no finite value; give a prior")
        x = pair_likelihood.start_of(p, start) if x is None else x
        effects = PairEffects(p, x, control_names(counts, self.order_effect))
        found, at = pair_likelihood.fit_counts(p, x, max_iter=self.max_iter, tol=self.tol)
        self.fit_ = pair_likelihood.per_vote(p, found)
        effects.refuse_endless(at)
        theta = self.fit_.x[: counts.n_items]
        self.theta_ = theta - theta.mean() if len(theta) else theta
        self.consensus_ = self._consensus(counts, p, at, notes)
        return self

    def bootstrap(self, data: Rankings | Comparisons, rounds: int, *, random_state: int = 0) -> Consensus:
        """The fitted consensus with ``rounds`` bootstrap draws of resampled ballots, or votes resampled by pair.

        For votes every round starts from the fit and reuses its inverse Hessian: O(pairs + n^2) per step.
        """
        rng = np.random.default_rng(random_state)
        if isinstance(data, Rankings) or self.agents or self.drift is not None:
            from placet.aggregate.resample import resample

            again = BradleyTerry(**(self.get_params(deep=False) | {"stderr": None, "prior": self.prior_}))
            draws = np.array([again.fit(resample(data, rng), start=self.theta_).theta_ for _ in range(rounds)])
        else:
            counts, _ = self._counts(data)
            p = self._pairs(counts)
            draws = bootstrap_draws(counts, p, self.fit_.x, rounds, rng, self.max_iter, self.tol)
        note = f"uncertainty from {rounds} bootstrap rounds of multinomial counts"
        return replace(self.consensus_, stderr=None, covariance=None, draws=draws, notes=(*self.consensus_.notes, note))

    def _fit_raters(self, data: Comparisons, kinds: tuple[str, ...], start: Any) -> "BradleyTerry":
        """Fit scores and rater parameters jointly."""
        votes = self._rated_votes(data, kinds)
        v = vote_raters.RaterVotes(votes, TIES[self.ties], kinds, votes.ordered)
        given = None if isinstance(self.prior, str) else self.prior
        self.fit_, arrow, self.prior_, widths = fit_raters(v, v.start(start), given, self.max_iter, self.tol)
        theta = v.split(self.fit_.x)[0]
        self.theta_ = theta - theta.mean() if len(theta) else theta
        extras, notes = self._of_raters(v, votes, arrow, widths, given is None)
        covariance = None if self.stderr is None else with_mean_zero(v.final_errors(arrow)[0], v.n)[: v.n, : v.n]
        self.consensus_ = self._rated_result(v, votes, covariance, notes, extras)
        return self

    def _of_raters(
        self, v: vote_raters.RaterVotes, votes: Comparisons, arrow: Arrow, widths: Any, learned: bool
    ) -> tuple[dict[str, Any], list[str]]:
        """Extras (raters, ties, controls) and notes of a fit with raters."""
        from placet.metrics.interrater import describe_agreement

        _, tie, effect, _ = v.split(self.fit_.x)
        errors = np.sqrt(np.diag(with_mean_zero(v.final_errors(arrow)[0], v.n))[v.n :])
        found = vote_raters.raters_of(v, self.fit_.x, arrow, widths)
        notes = [] if self.prior_ is None else [prior_note(self.prior_, learned)]
        notes += [*found.notes(), *filter(None, [describe_agreement(votes)])]
        notes += notes_of_pairs(votes.i, votes.j, votes.wins_i, votes.wins_j, votes.ties, votes.items, self.prior)
        extras: dict[str, Any] = {"agents": found, "prior": self.prior_}
        if self.ties != "none":
            extras |= {"tie": tie, "tie_stderr": float(errors[0]) if v.tied else None}
        if v.control.shape[1]:
            k = int(v.tied)
            controls = Controls(control_names(votes, v.order), effect / v.unit, errors[k:] / v.unit, v.unit)
            extras["controls"] = controls
            notes += controls.notes()
        if not self.fit_.converged:
            notes.append(self.fit_.message)
        return extras, notes

    def _rated_result(
        self, v: vote_raters.RaterVotes, votes: Comparisons, covariance: Any, notes: list[str], extras: dict[str, Any]
    ) -> Consensus:
        win = partial(win_probability, family=v.family, tie=v.split(self.fit_.x)[1])
        return self._result(votes.items, None, covariance, win, notes, extras)

    def _rated_votes(self, data: Comparisons, kinds: tuple[str, ...]) -> Comparisons:
        """Votes with agents, multiplied by the agents' weights."""
        check_rater_options(self.prior, self.stderr)
        order = self.order_effect or "side" in kinds
        factor = agent_factor(self.agent_weight, data)
        return data.reweighted(factor, ordered=order, time=self.drift is not None)

    def _fit_rated_walk(self, data: Any, kinds: tuple[str, ...], start: Any, progress: Any) -> "BradleyTerry":
        """Fit drifting scores and rater parameters jointly."""
        dated, given = drift.checked_votes(data, self.drift, self.prior, self.stderr)
        votes = self._rated_votes(vote_raters.checked_votes(dated, kinds, self.ties), kinds)
        drift_with_raters.refuse_many(votes, self.step)
        fitting: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol}
        model = (self.step, TIES[self.ties], votes.ordered)
        first = drift.fit_walk(votes.reweighted(1.0, agents=False), *model, given, start, progress=progress, **fitting)
        found = drift_with_raters.fit_rated_walk(votes, first, kinds, given, votes.ordered, **fitting)
        v, self.fit_, self.prior_, self.drift_ = found.v, found.fit, found.prior, found.widths[drift_with_raters.DRIFT]
        history, covariance = found.results(votes, uncertain=self.stderr is not None)
        self.theta_ = history.at_step(float(v.walk.chains.step[-1]))[0]
        extras, notes = self._of_raters(v, votes, found.arrow, found.widths, given[0] is None)
        notes[1:1] = found.notes(learned=given[1] is None)
        extras |= {"history": history, "drift": self.drift_}
        self.consensus_ = self._rated_result(v, votes, covariance, notes, extras)
        return self

    def _fit_walk(self, data: Rankings | Comparisons, start: Any, progress: Any) -> "BradleyTerry":
        """Fit drifting scores."""
        votes, given = drift.checked_votes(data, self.drift, self.prior, self.stderr)
        factor = agent_factor(self.agent_weight, votes)
        votes = votes.reweighted(factor, agents=False, ordered=self.order_effect)
        fitting: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol, "progress": progress}
        found = drift.fit_walk(votes, self.step, TIES[self.ties], self.order_effect, given, start, **fitting)
        walk, self.fit_, self.prior_, self.drift_ = found.walk, found.fit, found.walk.prior, found.walk.drift
        history, covariance, stderr = found.results(votes, uncertain=self.stderr is not None)
        self.theta_ = history.at_step(float(walk.chains.step[-1]))[0]
        notes = [prior_note(self.prior_, self.prior == LEARN), *found.notes(history, learned=given[1] is None)]
        notes += notes_of_pairs(votes.i, votes.j, votes.wins_i, votes.wins_j, votes.ties, votes.items, self.prior)
        tie, _ = pair_likelihood.tie_parameter(walk.p, self.fit_.x)
        errors = np.sqrt(np.diag(np.linalg.inv(found.H.schur)) / walk.p.scale) if len(found.H.schur) else None
        extras: dict[str, Any] = {"history": history, "prior": self.prior_, "drift": self.drift_}
        extras |= self._extras(votes, walk.p, errors)
        if "controls" in extras:
            notes += extras["controls"].notes()
        if not self.fit_.converged:
            notes.append(self.fit_.message)
        win = partial(win_probability, family=walk.p.model, tie=tie)
        self.consensus_ = self._result(votes.items, stderr, covariance, win, notes, extras)
        return self

    def _result(self, items: Any, stderr: Any, covariance: Any, win: Any, notes: list[str], extras: Any) -> Consensus:
        return Consensus(
            items,
            self.theta_,
            method="bradley-terry",
            params=self.get_params(deep=False),
            stderr=stderr,
            covariance=covariance,
            win=win,
            fit=self.fit_,
            notes=tuple(notes),
            extras=extras,
            tolerance=SCORE_TOLERANCE,
        )

    def _check(self, data: Any) -> None:
        data_kind(data)
        self.check_parameters()
        check_prior(self.prior)
        if self.order_effect and not getattr(data, "ordered", False):
            raise ValueError("order_effect=True needs to know who came first: Comparisons made with ordered=True")

    def _counts(self, data: Rankings | Comparisons) -> tuple[Comparisons, list[str]]:
        """One row per pair, with agents pooled by their weights; and notes."""
        factor = agent_factor(self.agent_weight, data)
        notes: list[str] = []
        if isinstance(data, Rankings):
            weighted = data if self.agent_weight is None else replace(data, weight=data.weight * factor)
            data, factor = weighted.to_comparisons(), 1.0
            notes.append(INDEPENDENT_PAIRS)
        if data.agent is not None or data.time is not None or (data.ordered and not self.order_effect):
            data = data.reweighted(factor, agents=False, ordered=self.order_effect, time=False)
        n_ties = float(data.ties.sum())
        if n_ties and self.ties == "none":
            ties = "tie was" if n_ties == 1 else "ties were"
            notes.append(f"{n_ties:g} {ties} counted as half a win for either side")
        if not n_ties and self.ties != "none":
            notes.append("there are no ties, so the tie parameter is at its bound: no ties expected")
        return data, notes

    def _pairs(self, counts: Comparisons) -> pair_likelihood.PairCounts:
        return pair_likelihood.pair_counts(counts, TIES[self.ties], self.prior_, self.order_effect)

    def _width(self, counts: Comparisons, start: Any) -> tuple[float | None, Any]:
        """The standard deviation of the scores' prior, and parameters close to the fit if it is learned (else None)."""
        if self.prior is None or isinstance(self.prior, int | float):
            return self.prior, None
        model = TIES[self.ties]
        return pair_likelihood.learn_prior(counts, model, self.order_effect, start, self.max_iter, self.random_state)

    def _consensus(
        self, counts: Comparisons, p: pair_likelihood.PairCounts, at: pair_likelihood.Derivatives, notes: list[str]
    ) -> Consensus:
        if not self.fit_.converged:
            notes.append(self.fit_.message)
        robust = pair_likelihood.gradient_products(p, self.fit_.x) if self.stderr == "sandwich" else None
        covariance = stderr = beside = None
        n = counts.n_items
        if self.stderr is not None and n <= MOST_SIMULATED:
            full = pair_likelihood.covariance_of(p, at, robust)
            covariance, beside = full[:n, :n], np.sqrt(np.diag(full)[n:])
        elif self.stderr is not None:
            stderr = pair_likelihood.stderr_of_many(p, at, np.random.default_rng(self.random_state), robust)
            beside = pair_likelihood.extra_stderr(p, at, robust)
            notes.append(
                f"more than {MOST_SIMULATED} items: standard errors are sampled and differences leave correlations out"
            )
        tie, _ = pair_likelihood.tie_parameter(p, self.fit_.x)
        extras = self._extras(counts, p, beside)
        if "controls" in extras:
            notes += extras["controls"].notes()
        win = partial(win_probability, family=p.model, tie=tie)
        return self._result(counts.items, stderr, covariance, win, notes, extras)

    def _extras(self, counts: Comparisons, p: pair_likelihood.PairCounts, stderr: Any) -> dict[str, Any]:
        """Tie parameter and effects of controls with standard errors (for the tie parameter by the delta method)."""
        tie, slope = pair_likelihood.tie_parameter(p, self.fit_.x)
        extras: dict[str, Any] = {"prior": self.prior_} if self.prior == LEARN else {}
        if self.ties != "none":
            extras["tie"] = tie
        if stderr is not None and p.tie:
            extras["tie_stderr"] = slope * float(stderr[0])
        names = control_names(counts, self.order_effect)
        if names:
            effect = pair_likelihood.parameters(p, self.fit_.x)[2] / p.unit
            errors = None if stderr is None else stderr[int(p.tie) :] / p.unit
            extras["controls"] = Controls(names, effect, errors, p.unit)
            if self.order_effect:
                extras["order_effect"] = float(effect[-1])
            if self.order_effect and errors is not None:
                extras["order_effect_stderr"] = float(errors[-1])
        return extras
