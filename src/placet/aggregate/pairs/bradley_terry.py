"""Bradley-Terry on pair counts, with Rao-Kupper or Davidson ties and controls such as an order effect."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np

from placet.aggregate.data_facts import notes_of_data, support, with_votes_counted
from placet.aggregate.instances import refuse_instances
from placet.aggregate.likelihood.controls import control_names, refuse_row_controls
from placet.aggregate.likelihood.existence import agent_factor, data_kind, notes_of_pairs
from placet.aggregate.likelihood.information import SCORE_TOLERANCE, WAY_OUT, WHAT, Stderr
from placet.aggregate.likelihood.prior import LEARN, check_prior, prior_note
from placet.aggregate.pairs import pair_likelihood
from placet.aggregate.pairs.ballot_pairs import INDEPENDENT_PAIRS, counted_pairs
from placet.aggregate.pairs.pair_likelihood import Derivatives, PairCounts
from placet.aggregate.result.control_effects import Controls
from placet.aggregate.result.result import Consensus
from placet.aggregate.result.uncertainty import MOST_SIMULATED
from placet.data import Comparisons, DataError, Parts, Rankings
from placet.data.arrays import Floats
from placet.data.memory import refuse_square
from placet.data.parameters import Estimator
from placet.losses.pairwise import TIES, win_probability

TieModel = Literal["none", "rao-kupper", "davidson"]


class BradleyTerry(Estimator):
    """Item i beats item j with probability 1 / (1 + e^-d), d = theta_i - theta_j.

    Parameters
    ----------
    ties : "none", "rao-kupper" or "davidson"
        "none" counts a tie as half a win for either side.  The other two have a tie parameter, ``consensus_.tie``:
        in "rao-kupper" P(i) = 1 / (1 + (1 + e^tie) e^-d) and ties have the remaining probability; in "davidson" the
        probabilities of i, j and a tie are proportional to e^{d/2}, e^{-d/2} and e^tie.
    order_effect : bool
        A constant is added to d for the item that came first (``Comparisons`` with ``ordered=True``); equivalent to a
        control "order" that is 1 in every row.
    prior : float, "learn" or None
        Standard deviation of the normal prior of the scores, with mean 0.  "learn", the default: the value that
        maximizes the marginal likelihood (`placet.aggregate.likelihood.prior`; ``consensus_.prior``), so that items
        with few votes are shrunk toward the mean as much as the spread of all items suggests.  The tie parameter and
        the effect of each control, in units of its root mean square, have a standard deviation of 10 in either case.
        None: no prior, and a ``DataError`` if no finite scores exist.
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

    method = "bradley-terry"
    fits_parts = True
    drift_: float  # with drift=: the standard deviation of the change of a score in one time step

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

    def fit(self, data: Rankings | Comparisons | Parts, start: Any = None, progress: Any = None) -> "BradleyTerry":
        """Fit to votes, or to all pairs on the same ballot; ``start`` are scores to start from.

        ``progress(done, expected)`` is called while drift is learned.
        """
        data = with_votes_counted(data)
        self._check(data)
        if self.agents or self.drift is not None:
            self._extension()(self, data, start, progress)
            return self
        counts, found = self._counts(data)
        self.prior_, x = self._width(counts, start)
        p = self._pairs(counts)
        notes = [*self.prior_notes(), *found, *self.existence_notes(p, counts.items)]
        fit, at = self._minimum(p, pair_likelihood.start_of(p, start) if x is None else x, counts)
        self.fit_ = pair_likelihood.per_vote(p, fit)
        self.set_scores(self.fit_.x[: counts.n_items])
        notes += [] if self.fit_.converged else [self.fit_.message]
        covariance, stderr, beside, more = self._errors(p, at)
        fields = self.beside(counts, p, beside)
        self.consensus_ = self.result(data, [*notes, *more], covariance=covariance, stderr=stderr, **fields)
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
            from placet.aggregate.pairs.pair_bootstrap import bootstrap_draws

            counts, _ = self._counts(data)
            p = self._pairs(counts)
            draws = bootstrap_draws(counts, p, self.fit_.x, rounds, rng, self.max_iter, self.tol)
        note = f"uncertainty from {rounds} bootstrap rounds of multinomial counts"
        return replace(self.consensus_, stderr=None, covariance=None, draws=draws, notes=(*self.consensus_.notes, note))

    def _check(self, data: Any) -> None:
        self.check_parameters()
        check_prior(self.prior)
        if self.order_effect and not getattr(data, "ordered", False):
            raise ValueError("order_effect=True needs to know who came first: Comparisons made with ordered=True")
        if not isinstance(data, Parts):
            data_kind(data)
            refuse_instances(data, self.method)
            refuse_row_controls(data, self.method)

    def _extension(self) -> Callable[..., None]:
        """The function that fits individual raters, drifting scores or both; each is a module of its own."""
        if self.drift is None:
            from placet.aggregate.pairs.vote_raters import fit_rated_votes

            return fit_rated_votes
        if self.agents:
            from placet.aggregate.pairs.drift_with_raters import fit_rated_drift

            return fit_rated_drift
        from placet.aggregate.pairs.drift import fit_drift

        return fit_drift

    def _counts(self, data: Rankings | Comparisons | Parts) -> tuple[Comparisons, list[str]]:
        """One row per pair, with agents pooled by their weights; and notes."""
        notes: list[str] = []
        factor = agent_factor(self.agent_weight, data) if isinstance(data, Comparisons) else 1.0
        if not isinstance(data, Comparisons):
            data = counted_pairs(data, self.agent_weight)
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

    def _pairs(self, counts: Comparisons) -> PairCounts:
        return pair_likelihood.pair_counts(counts, TIES[self.ties], self.prior_, self.order_effect)

    def _width(self, counts: Comparisons, start: Any) -> tuple[float | None, Any]:
        """The standard deviation of the scores' prior, and parameters close to the fit if it is learned (else None)."""
        if self.prior is None or isinstance(self.prior, int | float):
            return self.prior, None
        model = TIES[self.ties]
        return pair_likelihood.learn_prior(counts, model, self.order_effect, start, self.max_iter, self.random_state)

    def _minimum(self, p: PairCounts, x: Floats, counts: Comparisons) -> tuple[Any, Derivatives]:
        """The fit from ``x`` and the derivatives there; controls without a prior are checked before and after it."""
        names = control_names(counts, self.order_effect)
        if self.prior is not None or not names:
            return pair_likelihood.fit_counts(p, x, max_iter=self.max_iter, tol=self.tol)
        from placet.aggregate.pairs.unidentified_effects import fit_identified

        return fit_identified(p, x, names, max_iter=self.max_iter, tol=self.tol)

    def _errors(self, p: PairCounts, at: Derivatives) -> tuple[Any, Any, Any, list[str]]:
        """Covariance or standard errors of the scores, standard errors of the other unknowns, and notes."""
        n, robust = p.n_items, None
        if self.stderr is None:
            return None, None, None, []
        if self.stderr == "sandwich":
            robust = pair_likelihood.gradient_products(p, self.fit_.x)
        if n <= MOST_SIMULATED:
            refuse_square(n + p.n_extra, WHAT, WAY_OUT)
            full = pair_likelihood.covariance_of(p, at, robust)
            return full[:n, :n], None, np.sqrt(np.diag(full)[n:]), []
        stderr = pair_likelihood.stderr_of_many(p, at, np.random.default_rng(self.random_state), robust)
        note = f"more than {MOST_SIMULATED} items: standard errors are sampled and differences leave correlations out"
        return None, stderr, pair_likelihood.extra_stderr(p, at, robust), [note]

    # Shared with the extensions

    def prior_notes(self) -> list[str]:
        """A note on the prior of the scores, if there is one."""
        return [] if self.prior_ is None else [prior_note(self.prior_, self.prior == LEARN)]

    def existence_notes(self, p: Any, items: Any) -> list[str]:
        """Notes on what only the prior determines; without a prior, a ``DataError`` if no finite values exist."""
        notes = notes_of_pairs(p.i, p.j, p.wins_i, p.wins_j, p.ties, items, self.prior)
        if self.prior is None and p.tie and not (p.wins_i.any() or p.wins_j.any()):
            raise DataError("every result is a tie, so the tie parameter has no finite value; give a prior")
        return notes

    def set_scores(self, theta: Floats) -> None:
        """Keep the scores, with mean zero."""
        self.theta_ = theta - theta.mean() if len(theta) else theta

    def beside(self, counts: Comparisons, p: PairCounts, stderr: Floats | None) -> dict[str, Any]:
        """Fields of the result from the unknowns other than scores, whose standard errors are ``stderr``."""
        tie, slope = pair_likelihood.tie_parameter(p, self.fit_.x)
        found: dict[str, Any] = {"win": partial(win_probability, family=p.model, tie=tie)}
        if self.ties != "none":
            found["tie"] = tie
        if stderr is not None and p.tie:
            found["tie_stderr"] = slope * float(stderr[0])  # the delta method
        names = control_names(counts, self.order_effect)
        if names:
            effect = pair_likelihood.parameters(p, self.fit_.x)[2]
            errors = None if stderr is None else stderr[int(p.tie) :]
            found["effects"] = Controls.in_units(names, effect, errors, p.unit)
        return found

    def result(self, data: Rankings | Comparisons | Parts, notes: list[str], **fields: Any) -> Consensus:
        """The result of the fit: the data's notes and support, the fit's notes, and its other fields."""
        effects = fields.get("effects")
        return Consensus(
            data.items,
            self.theta_,
            method=self.method,
            params=self.get_params(deep=False),
            fit=self.fit_,
            notes=(*notes_of_data(data), *notes, *(effects.notes() if effects is not None else ())),
            tolerance=SCORE_TOLERANCE,
            support=support(data),
            prior=self.prior_,
            **fields,
        )
