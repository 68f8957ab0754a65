"""Bradley-Terry on pair counts, with Rao-Kupper or Davidson ties and controls such as an order effect."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np

from placet.aggregate.data_facts import data_kind, notes_of_data, refuse_design, support, with_votes_counted
from placet.aggregate.instances import refuse_instances
from placet.aggregate.likelihood.controls import control_names, refuse_row_controls
from placet.aggregate.likelihood.existence import agent_factor, notes_of_pairs, notes_of_tie_rate
from placet.aggregate.likelihood.information import DIRECT, SCORE_TOLERANCE, WAY_OUT, WHAT, Stderr
from placet.aggregate.likelihood.prior import LEARN, Prior, check_prior, prior_note
from placet.aggregate.likelihood.signed_roots import SignedRoots
from placet.aggregate.pairs import pair_likelihood
from placet.aggregate.pairs.ballot_pairs import INDEPENDENT_PAIRS, counted_pairs
from placet.aggregate.pairs.pair_heights import PairHeights
from placet.aggregate.pairs.pair_likelihood import Derivatives, PairCounts
from placet.aggregate.result.independent_units import MOST_UNITS
from placet.aggregate.result.learned.control_effects import Controls
from placet.aggregate.result.result import Consensus
from placet.aggregate.result.uncertainty import MOST_SIMULATED, SAMPLED
from placet.data import Comparisons, Parts, Rankings
from placet.data.arrays import Floats
from placet.data.engines.memory import refuse_square
from placet.data.parameters import Estimator
from placet.losses.pairwise import TIES, win_probability
from placet.output.numbers import count_text

TieModel = Literal["auto", "none", "rao-kupper", "davidson"]
TIE_NAMES = {"rao-kupper": "Rao and Kupper's", "davidson": "Davidson's"}


class BradleyTerry(Estimator):
    """Item i beats item j with probability 1 / (1 + e^-d), d = theta_i - theta_j.

    Parameters
    ----------
    ties : "auto", "davidson", "rao-kupper" or "none"
        In "davidson" the probabilities of i, j and a tie are proportional to e^{d/2}, e^{-d/2} and e^tie; in
        "rao-kupper" P(i) = 1 / (1 + (1 + e^tie) e^-d) and ties have the remaining probability.  ``consensus_.tie`` is
        the tie parameter, learned with the scores.  "none" counts a tie as half a win for either side.  "auto", the
        default, is "davidson" if some votes are ties and some are not, else "none".
    order_effect : bool
        A constant is added to d for the item that came first (``Comparisons`` with ``ordered=True``); equivalent to a
        control "order" that is 1 in every row.
    prior : float, "learn" or None
        Standard deviation of the normal prior of the scores, with mean 0.  "learn", the default: learned from the data
        (`placet.aggregate.likelihood.prior`; ``consensus_.prior``), so that items with few votes are shrunk toward the
        mean as much as the spread of all items suggests; with eight items or more, toward the mean of items of similar
        support and mean controls.  The tie parameter and the effect of each control, in units of its root mean square,
        have a standard deviation of 10 in either case.
        None: no prior, and a ``DataError`` if no finite scores exist.
    stderr : "auto", "observed", "sandwich" or None
        Standard errors from the observed information, from the robust sandwich estimator over votes, or none.  "auto",
        the default: over agents if they are known and one of them gives several votes
        (`placet.aggregate.pairs.vote_units`), else "observed".
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
    active_since : time, str or None
        With ``drift``: items that were not compared since are left out of the board (all are used in the fit); a time,
        or a duration such as "2y" before the last vote, which is ignored if times are numbers.  None keeps all items.
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
    prior_: Any  # the standard deviation of the scores' prior, or None
    level_prior = False  # whether a learned prior has the mean 0 for every item; mixtures set it
    _learned: Prior | None = None
    _given: Prior | None = None  # that of the fit whose data are resampled
    drift_: float  # with drift=: the standard deviation of the change of a score in one time step

    def __init__(
        self,
        ties: TieModel = "auto",
        order_effect: bool = False,
        prior: float | str | None = "learn",
        stderr: Stderr = "auto",
        agent_weight: Any = None,
        agents: str | None = None,
        drift: float | str | None = None,
        step: str | float = "1y",
        active_since: Any = "2y",
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
        self.active_since = active_since
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
        self._learned, x = self._prior(counts, start)
        self.prior_ = self.prior if self._learned is None else self._learned.width
        p = self._pairs(counts)
        notes = [*self.prior_notes(), *found, *self.existence_notes(p, counts.items)]
        fit, at = self._minimum(p, pair_likelihood.start_of(p, start) if x is None else x, counts)
        self.fit_ = pair_likelihood.per_vote(p, fit)
        self.set_scores(self.fit_.x[: counts.n_items])
        notes += [] if self.fit_.converged else [self.fit_.message]
        errors, beside, more = self._errors(p, at, data)
        self.consensus_ = self.result(data, [*notes, *more], **errors, **self.beside(counts, p, beside))
        return self

    def bootstrap(
        self,
        data: Rankings | Comparisons,
        rounds: int,
        *,
        random_state: int = 0,
        progress: Callable[[], None] = lambda: None,
    ) -> Consensus:
        """The fitted consensus with ``rounds`` bootstrap draws of resampled ballots, or votes resampled by pair.

        For votes every round starts from the fit and reuses its inverse Hessian: O(pairs + n^2) per step.  ``progress``
        is called after each round.
        """
        from placet.aggregate.resample import clusters, resample, resampling_words, units_of
        from placet.aggregate.result.independent_units import with_bootstrap

        rng = np.random.default_rng(random_state)
        if isinstance(data, Rankings) or self.agents or self.drift is not None or clusters(data) is not None:
            again = BradleyTerry(**(self.get_params(deep=False) | {"stderr": None, "prior": self.prior_}))
            again._given = self._learned
            draws = np.empty((rounds, data.n_items))
            for k in range(rounds):
                draws[k] = again.fit(resample(data, rng), start=self.theta_).theta_
                progress()
            shown = set(self.consensus_.items)  # a board of drifting scores leaves out the idle
            draws = draws[:, [name in shown for name in data.items]]
        else:
            from placet.aggregate.pairs.pair_bootstrap import bootstrap_draws

            counts, _ = self._counts(data)
            p = self._pairs(counts)
            draws = bootstrap_draws(counts, p, self.fit_.x, rounds, rng, self.max_iter, self.tol, progress)
        units = self.consensus_.units or self._vote_units(data) or units_of(data)
        return with_bootstrap(self.consensus_, draws, resampling_words(data), units)

    def _vote_units(self, data: Rankings | Comparisons) -> Any:
        """What each of few votes adds to the scores."""
        if not isinstance(data, Comparisons) or self.agents or self.drift is not None or len(data) > MOST_UNITS:
            return None
        from placet.aggregate.pairs.vote_units import units_of_votes

        counts, _ = self._counts(data)
        p = self._pairs(counts)
        return units_of_votes(counts, p, pair_likelihood.derivatives(p, self.fit_.x), self.fit_.x)

    def _check(self, data: Any) -> None:
        self.check_parameters()
        check_prior(self.prior)
        if self.order_effect and not getattr(data, "ordered", False):
            raise ValueError("order_effect=True needs to know who came first: Comparisons made with ordered=True")
        if self.agents or self.drift is not None:
            refuse_design(data, "agents= and drift= of a model")
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
        return data, [*notes, *self._tie_notes(data)]

    def _tie_notes(self, counts: Comparisons) -> list[str]:
        n_ties, model = float(counts.ties.sum()), self.tie_model(counts)
        if not n_ties and model != "none":
            return ["there are no ties, so the tie parameter is at its bound: no ties expected"]
        if not n_ties:
            return []
        ties = "1 tie was" if n_ties == 1 else f"{count_text(n_ties)} ties were"
        if model == "none":
            why = "" if self.ties == "none" else ": every vote is a tie, so no tie rate can be learned"
            return [f"{ties} counted as half a win for either side{why}"]
        return [f"{ties} fitted by {TIE_NAMES[model]} model, the tie rate learned"]

    def tie_model(self, votes: Comparisons) -> str:
        """The model of ties for these votes: what ``ties`` says, or what "auto" comes to."""
        if self.ties != "auto":
            return self.ties
        return "davidson" if votes.ties.any() and (votes.wins_i.any() or votes.wins_j.any()) else "none"

    def _pairs(self, counts: Comparisons) -> PairCounts:
        trend = None if self._learned is None else self._learned.trend
        return pair_likelihood.pair_counts(
            counts, TIES[self.tie_model(counts)], self.prior_, self.order_effect, trend=trend
        )

    def _prior(self, counts: Comparisons, start: Any) -> tuple[Prior | None, Any]:
        """The scores' prior and parameters close to the fit if it is learned, else None."""
        if self.prior != LEARN:
            return self._given, None
        model = TIES[self.tie_model(counts)]
        return pair_likelihood.learn_prior(
            counts, model, self.order_effect, start, self.max_iter, self.random_state, level=self.level_prior
        )

    def _minimum(self, p: PairCounts, x: Floats, counts: Comparisons) -> tuple[Any, Derivatives]:
        """The fit from ``x`` and the derivatives there; controls without a prior are checked before and after it."""
        names = control_names(counts, self.order_effect)
        if self.prior is not None or not names:
            return pair_likelihood.fit_counts(p, x, max_iter=self.max_iter, tol=self.tol)
        from placet.aggregate.pairs.unidentified_effects import fit_identified

        return fit_identified(p, x, names, max_iter=self.max_iter, tol=self.tol)

    def _errors(self, p: PairCounts, at: Derivatives, data: Any) -> tuple[dict[str, Any], Any, list[str]]:
        """Fields of the result with the errors of the scores, standard errors of the other unknowns, and notes."""
        n, robust = p.n_items, None
        if self.stderr is None:
            return {}, None, []
        if self.stderr != "observed" and data.agents is not None:
            from placet.aggregate.pairs.vote_units import errors_by_agent

            found = errors_by_agent(data, self, p, at)
            if found is not None:
                return found
        if self.stderr == "sandwich":
            robust = pair_likelihood.gradient_products(p, self.fit_.x)
        if n <= MOST_SIMULATED:
            refuse_square(n + p.n_extra, WHAT, WAY_OUT)
            full = pair_likelihood.covariance_of(p, at, robust, self.fit_.x[:n], self.prior_spread)
            fields: dict[str, Any] = {"covariance": full[:n, :n]}
            if robust is None and len(self.fit_.x) <= DIRECT:
                fields["roots"] = SignedRoots(PairHeights(p), self.fit_.x, np.arange(n))
            return fields, np.sqrt(np.diag(full)[n:]), []
        stderr = pair_likelihood.stderr_of_many(p, at, np.random.default_rng(self.random_state), robust)
        return {"stderr": stderr}, pair_likelihood.extra_stderr(p, at, robust), [SAMPLED]

    # Shared with the extensions

    @property
    def prior_spread(self) -> float:
        """The standard deviation of the log of the prior's width; 0 if it is given."""
        return 0.0 if self._learned is None else self._learned.spread

    def prior_notes(self) -> list[str]:
        """A note on the prior of the scores, if there is one."""
        if self.prior_ is None:
            return []
        trend = self._learned is not None and self._learned.trend.shape[1] > 0
        told = self._learned is None or self._learned.told
        return [prior_note(self.prior_, self.prior == LEARN, trend, told)]

    def existence_notes(self, p: Any, items: Any) -> list[str]:
        """Notes on what only the prior determines; without a prior, a ``DataError`` if no finite values exist."""
        notes = notes_of_pairs(p.i, p.j, p.wins_i, p.wins_j, p.ties, items, self.prior)
        if self.tie_model(p) != "none" and p.ties.any():
            notes += notes_of_tie_rate(p.i, p.j, p.wins_i, p.wins_j, p.ties, len(items), self.prior)
        return notes

    def set_scores(self, theta: Floats) -> None:
        """Keep the scores, with mean zero."""
        self.theta_ = theta - theta.mean() if len(theta) else theta

    def beside(self, counts: Comparisons, p: PairCounts, stderr: Floats | None) -> dict[str, Any]:
        """Fields of the result from the unknowns other than scores, whose standard errors are ``stderr``."""
        tie, slope = pair_likelihood.tie_parameter(p, self.fit_.x)
        found: dict[str, Any] = {"win": partial(win_probability, family=p.model, tie=tie)}
        if self.tie_model(counts) != "none":
            found["tie"] = tie
        if stderr is not None and p.tie:
            found["tie_stderr"] = slope * float(stderr[0])  # the delta method
        names = control_names(counts, self.order_effect)
        if names:
            effect = pair_likelihood.parameters(p, self.fit_.x)[2]
            errors = None if stderr is None else stderr[int(p.tie) :]
            found["effects"] = Controls.in_units(names, effect, errors, p.unit, p.control.any(axis=0))
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
