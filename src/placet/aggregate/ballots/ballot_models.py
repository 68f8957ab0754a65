"""Likelihood models of ballots: Plackett-Luce and the probabilistic models over ordered partitions."""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit

from placet.aggregate.ballots.ballot_heights import ballot_roots
from placet.aggregate.data_facts import data_kind, notes_of_data, refuse_design, unused_note, with_votes_counted
from placet.aggregate.instances import refuse_instances
from placet.aggregate.likelihood import information
from placet.aggregate.likelihood.ballot_objective import (
    Ballots,
    fit_optima,
    uncertainty_of_optima,
)
from placet.aggregate.likelihood.ballot_part import WeightOf, part_weight
from placet.aggregate.likelihood.ballot_prior import learn_prior
from placet.aggregate.likelihood.ballot_units import errors_by_agent, errors_by_ballot, fits_by_agent
from placet.aggregate.likelihood.existence import agent_factor, factor_by_agent
from placet.aggregate.likelihood.information import Stderr
from placet.aggregate.likelihood.prior import LEARN, WIDEST_PRIOR, check_prior, prior_note
from placet.aggregate.resample import agents_note, busy_agents
from placet.aggregate.result.initial_scores import kept_if_lost
from placet.aggregate.result.result import Consensus
from placet.aggregate.result.uncertainty import MOST_SIMULATED
from placet.data import Comparisons, Parts, Rankings
from placet.data.arrays import Floats
from placet.data.engines.memory import refuse_square
from placet.data.parameters import Estimator
from placet.losses.pairwise import win_probability

NOT_BY_AGENT = (
    "standard errors take the ballots of one agent as independent, as the gradients of all agents exceed a quarter of "
    "PLACET_MEMORY; a bootstrap is by agent"
)


MOST_ROUNDING = 1e-5
"""Rounding of scores from which a note says so."""


class _BallotModel(Estimator):
    """Base class of the ballot models; each defines its method, its loss and its win probability of a pair."""

    method: str
    loss: str
    win: Callable[..., Any]
    fits_parts = True
    level_prior = False  # whether a learned prior has the mean 0 for every item; mixtures set it
    _follows = False  # whether the mean of the prior follows the support
    _told = True  # whether the data say anything about a learned prior
    existence = "order"  # condition for finite scores, see `notes_of_rankings`
    fixes_ties = False  # whether the model says how often ballots tie, so that errors come from the scatter of ballots

    def __init__(
        self,
        prior: float | str | None = "learn",
        stderr: Stderr = "auto",
        agent_weight: Any = None,
        max_iter: int = 200,
        tol: float = 1e-10,
        random_state: int = 0,
    ):
        self.prior = prior
        self.stderr = stderr
        self.agent_weight = agent_weight
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, data: Rankings | Comparisons | Parts, start: Any = None) -> Any:
        """Fit to ballots, or to votes as ballots of two; ``start`` are scores to start from."""
        data = with_votes_counted(data)
        ballots = self._checked_ballots(data)
        weight: Floats | WeightOf
        if isinstance(ballots, Parts):
            weight = partial(part_weight, factor_by_agent(self.agent_weight, ballots.agents))
        else:
            weight = ballots.weight * agent_factor(self.agent_weight, ballots)
        b = self._objective(ballots, weight)
        with kept_if_lost(data.items, b.best):
            return self._fit_objective(b, data, start, ballots)

    def _checked_ballots(self, data: Rankings | Comparisons | Parts) -> Rankings | Parts:
        """The data as ballots, after a check of data and parameters."""
        self.check_parameters()
        check_prior(self.prior)
        if isinstance(data, Parts):
            return data
        data_kind(data)
        refuse_instances(data, self.method)
        return Rankings.from_comparisons(data) if isinstance(data, Comparisons) else data

    def _objective(self, ballots: Rankings | Parts, weight: Floats | WeightOf) -> Ballots:
        return Ballots(ballots, weight, self.loss, self.first_prior, self.existence)

    @property
    def first_prior(self) -> float | None:
        """The prior's width, or the initial one if it is learned."""
        return WIDEST_PRIOR if self.prior == LEARN else self.prior  # type: ignore[return-value]

    def _fit_objective(self, b: Ballots, data: Rankings | Comparisons | Parts, start: Any, ballots: Any) -> Any:
        """Minimize the objective ``b`` of the data and of their ``ballots``; keep the result."""
        found = b.notes(data.items, self.first_prior)
        if b.n <= MOST_SIMULATED:
            refuse_square(b.n, information.WHAT, information.WAY_OUT)
        theta = np.zeros(b.n)
        theta[: b.n_items] = 0.0 if start is None else start
        self.prior_ = self.first_prior
        if self.prior == LEARN:
            learned, theta = learn_prior(b, theta, self.max_iter, self.random_state, level=self.level_prior)
            b, self.prior_, self._told = b.with_prior(learned), learned.width, learned.told
        given = None if start is None else np.append(np.asarray(start, np.float64), np.zeros(b.n - b.n_items))
        optima = fit_optima(b, theta, given, self.max_iter, self.tol, data.items)
        self.fit_ = optima.fits[0]
        x, n = np.array(b.average(optima.mean())), b.n_items
        x[:n] -= x[:n].mean() if n else 0.0
        self.theta_ = x[:n]
        fields, more = self._errors(b, optima, x, ballots)
        covariance = fields["covariance"]
        effects = b.effects(x, covariance)
        own = None if covariance is None else covariance[:n, :n]
        fields |= {"covariance": own, "effects": effects, "support": b.support}
        self._follows = b.trend.shape[1] > 0
        notes = [*found, *optima.notes(data.items), *_tied_together(b, data.items)]
        notes += [*(effects.notes() if effects is not None else ()), *more]
        notes += _coarse(b)
        self.consensus_ = self.result(data, notes, tolerance=b.tolerance, **fields)
        return self

    def _errors(self, b: Ballots, optima: Any, x: Floats, ballots: Any) -> tuple[dict[str, Any], list[str]]:
        """Fields of the result with the errors of the scores, by agent if agents give several ballots; and notes."""
        rng, said = np.random.default_rng(self.random_state), []
        small = b.n <= MOST_SIMULATED or b.n == b.n_items  # no errors of controls beside very many items
        if self.stderr in ("auto", "sandwich") and small and len(optima.fits) == 1:
            used = busy_agents(ballots)
            if used is not None and fits_by_agent(b):
                fields, notes = errors_by_agent(b, used, x, rng)
                return fields, [agents_note(ballots, int(used.sum()), "ballots"), *notes]
            said = [] if used is None else [NOT_BY_AGENT]
        kind = "sandwich" if self.stderr == "auto" and self.fixes_ties else self.stderr
        if kind == "sandwich" and self.fixes_ties and len(optima.fits) == 1:
            fields, notes = errors_by_ballot(b, x, rng)
        else:
            covariance, stderr, notes = uncertainty_of_optima(b, optima, x, kind, self.random_state)
            fields = {"covariance": covariance, "stderr": stderr}
        if (
            self.stderr in ("auto", "observed")
            and fields["covariance"] is not None
            and not said
            and len(optima.fits) == 1
        ):
            wider = fields["covariance"] if kind == "sandwich" else None
            fields["roots"] = ballot_roots(b, optima.fits[0].x, wider)
        return fields, [*said, *notes]

    def result(self, data: Rankings | Comparisons | Parts, notes: list[str], **fields: Any) -> Consensus:
        """The result of the fit: the data's notes and support, notes on the fit, and its other fields."""
        said = [] if self.prior_ is None else [prior_note(self.prior_, self.prior == LEARN, self._follows, self._told)]
        said += notes if self.fit_.converged else [*notes, self.fit_.message]
        unused = unused_note(data, self.method) if fields.get("effects") is None else []
        return Consensus(
            data.items,
            self.theta_,
            method=self.method,
            params=self.get_params(deep=False),
            win=type(self).win,
            fit=self.fit_,
            notes=(*notes_of_data(data), *said, *unused),
            prior=self.prior_,
            **fields,
        )


def _tied_together(b: Ballots, items: Sequence[Hashable]) -> list[str]:
    """A note on items that share one score because no ballot distinguishes them."""
    if b.group is None:
        return []
    sizes = np.bincount(b.group, minlength=1)
    shown = [
        "[" + ", ".join(str(items[k]) for k in np.flatnonzero(b.group == g).tolist()) + "]"
        for g in np.flatnonzero(sizes > 1)
    ]
    more = f" and {len(shown) - 5} more groups" if len(shown) > 5 else ""
    return [f"always tied together, so they share one score: {'; '.join(shown[:5])}{more}"] if shown else []


def _coarse(b: Ballots) -> list[str]:
    """A note if the ballots weigh so much that rounding shows in what only the prior bounds."""
    if b.tolerance < MOST_ROUNDING:
        return []
    return [
        f"the ballots weigh {b.scale:.2g} in all, beside which float64 hardly resolves the prior: scores that only the "
        f"prior bounds are accurate to about {b.tolerance:.1g}"
    ]


class PlackettLuce(_BallotModel):
    """Items are drawn one by one from those remaining, item i with probability proportional to e^{theta_i}.

    The likelihood of a ballot with ties is the exact sum over all orders consistent with it (loss "pl-partition"); a
    ballot that ties everything carries no information, and neither does an item's absence.

    Row controls (``Rankings.control``, such as the position at which an item was shown) add ``control @ effect`` to the
    score of the row; scores refer to controls of 0, and ``consensus_.controls`` has the effects.

    Parameters
    ----------
    prior : float, "learn" or None
        Standard deviation of the normal prior of the scores, with mean 0.  "learn", the default: learned from the data,
        with eight items or more around a mean that follows the items' support and mean controls
        (`placet.aggregate.likelihood.prior`; ``consensus_.prior``).  None: no prior, and a ``DataError`` if no finite
        scores exist.
    stderr : "auto", "observed", "sandwich" or None
        Standard errors from the observed information, from the robust sandwich estimator over ballots, or none.
        "auto", the default: over agents if they are known and one of them gives several ballots
        (`placet.aggregate.likelihood.ballot_units`), else "observed".
    agent_weight : mapping, optional
        Agents' names to the weights of their ballots (default 1).
    agents : "sharpness", optional
        Agents (raters) differ in how sharply they distinguish items: a row on a ballot of agent n has the score
        a_n theta[item] (`placet.aggregate.ballots.ballot_raters`); ``consensus_.agents_frame()`` has the estimates.
    max_iter, tol
        Newton's method stops when a step moves no score by more than sqrt(tol), or after ``max_iter`` steps.
    random_state : int
        Seed for sampled traces and standard errors.

    >>> ballots = Rankings.from_orders([["a", "b", "c"], ["b", "a"], ["c", "a", "b"]], weight=[3, 2, 2])
    >>> PlackettLuce().fit(ballots).consensus_.ranking
    ['a', 'b', 'c']
    """

    method = "plackett-luce"
    loss = "pl-partition"
    win = staticmethod(partial(win_probability, family="none", tie=0.0))

    def __init__(
        self,
        prior: float | str | None = "learn",
        stderr: Stderr = "auto",
        agent_weight: Any = None,
        agents: str | None = None,
        max_iter: int = 200,
        tol: float = 1e-10,
        random_state: int = 0,
    ):
        super().__init__(prior, stderr, agent_weight, max_iter, tol, random_state)
        self.agents = agents

    def fit(self, data: Rankings | Comparisons | Parts, start: Any = None) -> Any:
        """Fit to ballots, or to votes as ballots of two; ``start`` are scores to start from."""
        if not self.agents:
            return super().fit(data, start)
        from placet.aggregate.ballots.ballot_raters import fit_rated_ballots

        refuse_design(data, "agents= of a model")
        ballots = self._checked_ballots(data)
        if isinstance(ballots, Parts):
            raise ValueError("agents= does not work on parts; load them (parts.load()) where they fit in memory")
        fit_rated_ballots(self, ballots, start)
        return self

    def _objective(self, ballots: Rankings | Parts, weight: Floats | WeightOf) -> Ballots:
        if isinstance(ballots, Parts) or ballots.control is None or not isinstance(weight, np.ndarray):
            return super()._objective(ballots, weight)
        from placet.aggregate.ballots.row_controls import ControlledBallots

        return ControlledBallots(ballots, weight, self.loss, self.first_prior, self.existence)


def _two_thirds(x: Any, y: Any) -> Any:
    """Win probability of the full-decomposition model, in which two items tie with probability 1/3 at any scores."""
    return 2 / 3 * expit(np.subtract(x, y))


class PMOPFullDecomposition(_BallotModel):
    """Tiers are drawn one after the other, tier X from R with probability sum_X e^theta / (C |X| sum_R e^theta).

    Probabilistic model over ordered partitions, full decomposition (loss "pmop-fd"); C = (2^|R| - 1) / |R|.  Parameters
    as in `PlackettLuce`.  Not convex if ballots have ties: items with the same record may have mirrored optima, one
    with either far above.  All optima that descents from equal scores reach (up to 500 items) are averaged by their
    posterior probabilities, standard errors include the distance between them, and a note says so; `PMOP` has a single
    optimum.  Items that are always tied together share one score.  Standard errors are as those of `PMOP`.

    >>> import placet
    >>> ballots = placet.Rankings.from_orders([["a", ("b", "c")], ["a", "b", "c"], [("a", "b"), "c"]])
    >>> placet.consensus(ballots, "pmop-fd").ranking
    ['a', 'b', 'c']
    """

    method = "pmop-fd"
    loss = "pmop-fd"
    existence = "sums"
    fixes_ties = True
    win = staticmethod(_two_thirds)


class PMOP(_BallotModel):
    """Tiers are drawn one after the other, subset X of R with probability proportional to e^{mean of theta over X}.

    Probabilistic model over ordered partitions, general state (loss "pmop-exact"), with the exact normalizer.
    Parameters as in `PlackettLuce`, but ``stderr="auto"`` is the sandwich over ballots: the model says how often
    ballots tie, and where they tie more or less often than that the observed information is wrong.

    >>> import placet
    >>> ballots = placet.Rankings.from_orders([["a", ("b", "c")], ["a", "b", "c"], [("a", "b"), "c"]])
    >>> placet.consensus(ballots, "pmop").ranking
    ['a', 'b', 'c']
    """

    method = "pmop"
    loss = "pmop-exact"
    existence = "tiers"
    fixes_ties = True
    win = staticmethod(partial(win_probability, family="davidson", tie=0.0))
