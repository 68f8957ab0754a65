"""The door to choice models: a table in, coefficients with their errors out."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from placet.data import DataError, Queries
from placet.data.errors import one_of
from placet.data.parameters import check_parameters
from placet.io.surveys.choice_tables import ChoiceTable, read_choices
from placet.rank.choices.choice_design import design, refuse_separation
from placet.rank.choices.latent_classes import LatentClasses, fit_classes
from placet.rank.linear.coefficients import CoefficientTable, WithError, text_table
from placet.rank.linear.linear_ranker import LinearRanker

ChoiceErrors = Literal["observed", "choice", "agent"]
"""Where errors of coefficients come from: the observed information, or a sandwich over choices or over agents."""

_KINDS = {
    "observed": "observed information",
    "query": "sandwich over choices",
    "cluster": "sandwich over {} persons",
}


@dataclass(frozen=True, eq=False)
class ChoiceFit:
    """A fitted choice model; printed, it is a summary.

    ``coefficients`` have errors, intervals and ``willingness_to_pay(price)``; with groups of choosers they are in
    ``classes``, and ``coefficients`` are those of one group of all.  ``ranker`` gives probabilities of new choices
    (``ranker.top1_probability(rows, qid)``), whose columns are ``coefficients.names``.
    ``log_likelihood_equal`` is that of alternatives chosen with equal probability; ``counts`` tell how often each
    alternative was chosen, where alternatives are named.

    >>> import placet
    >>> rows = placet.simulate.choices({"price": -1.0}, 500, alternatives=3)
    >>> found = placet.choice(rows)
    >>> found.n_choices, found.coefficients.names
    (500.0, ('price',))
    """

    coefficients: CoefficientTable
    ranker: LinearRanker
    n_choices: float
    n_agents: int | None
    counts: Mapping[str, float]
    log_likelihood: float
    log_likelihood_equal: float
    classes: LatentClasses | None = None
    notes: tuple[str, ...] = ()

    @property
    def n_parameters(self) -> int:
        """Number of free parameters; shares of groups count, too."""
        n = len(self.coefficients)
        return n if self.classes is None else len(self.classes) * (n + 1) - 1

    @property
    def aic(self) -> float:
        """Akaike's criterion."""
        return 2 * self.n_parameters - 2 * self.log_likelihood

    @property
    def bic(self) -> float:
        """Bayesian information criterion; with groups of choosers, what is counted are the choosers."""
        n = self.n_choices if self.classes is None or self.n_agents is None else self.n_agents
        return self.n_parameters * math.log(n) - 2 * self.log_likelihood

    @property
    def mcfadden(self) -> float:
        """1 - log likelihood / log likelihood of equal probabilities."""
        return 1 - self.log_likelihood / self.log_likelihood_equal

    def tables(self) -> dict[str, CoefficientTable]:
        """The coefficients by the name of their group of choosers; "" if there are no groups."""
        if self.classes is None:
            return {"": self.coefficients}
        return {f"{k + 1}": found for k, found in enumerate(self.classes.coefficients)}

    def willingness_to_pay(self, price: Hashable) -> dict[Hashable, WithError]:
        """As `CoefficientTable.willingness_to_pay`, of all choosers as one group."""
        return self.coefficients.willingness_to_pay(price)

    def facts(self) -> dict[str, Any]:
        """What was fitted, and how well."""
        return {
            "choices": self.n_choices,
            "persons": self.n_agents,
            "chosen": dict(self.counts),
            "parameters": self.n_parameters,
            "log_likelihood": self.log_likelihood,
            "log_likelihood_equal": self.log_likelihood_equal,
            "mcfadden": self.mcfadden,
            "aic": self.aic,
            "bic": self.bic,
            "errors": self.errors,
            "shares": None if self.classes is None else [share._asdict() for share in self.classes.shares],
        }

    @property
    def errors(self) -> str:
        """Where the standard errors come from, in words."""
        own = self.coefficients
        return _KINDS["observed" if self.classes else own.errors].format(own.n_clusters)

    def lines(self) -> list[str]:
        """The head of the summary."""
        among = f" among {len(self.counts)} alternatives" if self.counts else ""
        by = "" if self.n_agents is None else f" by {self.n_agents:,} persons"
        groups = "" if self.classes is None else f", {len(self.classes)} groups of choosers"
        chosen = ", ".join(f"{name} {count:g}" for name, count in self.counts.items())
        return [
            f"Conditional logit{groups}: {self.n_choices:,g} choices{among}{by}",
            *([f"Chosen: {chosen}"] if self.counts else []),
            f"Log likelihood {self.log_likelihood:.3f} (equal probabilities {self.log_likelihood_equal:.3f}), "
            f"McFadden's R2 {self.mcfadden:.4f}, AIC {self.aic:.2f}, BIC {self.bic:.2f}",
            f"Standard errors: {self.errors}; intervals {self.coefficients.level:g}",
        ]

    def __str__(self) -> str:
        out = self.lines()
        for name, table in self.tables().items():
            if self.classes is not None:
                share = self.classes.shares[int(name) - 1]
                out += ["", f"Group {name}: share {share.value:.4f} (standard error {share.stderr:.4f})"]
            head, rows = table.rows()
            out += ["", *text_table(["", *head[1:]], rows)]
        return "\n".join(out)


def choice(
    source: Any,
    *,
    constants: bool | None = None,
    base: str | None = None,
    errors: ChoiceErrors | None = None,
    level: float = 0.95,
    classes: int = 1,
    restarts: int = 10,
    random_state: int = 0,
    **reading: Any,
) -> ChoiceFit:
    """Fit a conditional logit to a table of choices: P(i) = e^(x_i b) / sum_j e^(x_j b) over the alternatives j.

    Parameters
    ----------
    source : a path, an open file, a frame, or a `ChoiceTable`.
    constants : give each alternative but one a constant; by default if alternatives have names that are not numbers.
    base : the alternative without a constant; the first by name if not given.
    errors : "observed" (information), "choice" (sandwich over choices), "agent" (over persons, whose choices depend on
        one another); by default "agent" if a column of persons is there and some choose repeatedly, else "observed".
    level : of the intervals.
    classes : number of groups of choosers with coefficients of their own (latent classes), fitted by EM from
        ``restarts`` random starts; a person is in one group in all choices.
    reading : options of `placet.io.read_choices`: ``chosen=``, ``choice_set=``, ``alternative=``, ``agent=``,
        ``attributes=``, ``case=`` (variables of the person, which act on each alternative), ``weight=``, ...

    Returns
    -------
    ChoiceFit
        The coefficients with their errors, and what they predict.

    >>> import placet
    >>> rows = placet.simulate.choices({"price": -1.0, "comfort": 0.5}, 400, random_state=1)
    >>> fit = choice(rows)
    >>> bool(abs(fit.coefficients["price"].value + 1) < 3 * fit.coefficients["price"].stderr)
    True
    >>> fit.coefficients.names
    ('price', 'comfort')
    """
    check_parameters(read_choices, reading, "placet.choice", skip=1)
    table = source if isinstance(source, ChoiceTable) else read_choices(source, **reading)
    if isinstance(source, ChoiceTable) and reading:
        raise ValueError(f"{next(iter(reading))}= is an option of read_choices; the table was read already")
    rows = design(table, constants, base)
    ranker = LinearRanker("pl-partition", l2=0).fit(rows)
    if not ranker.fit_summary_["converged"]:
        refuse_separation(rows)
    found = _coefficients(ranker, rows, table, errors, level)
    groups = None
    if classes != 1:
        groups = fit_classes(rows, table, ranker.coef_, classes, level, restarts, random_state)
    total = float(table.weight.sum())
    return ChoiceFit(
        found,
        ranker,
        total,
        None if table.agent is None else len(table.agents),
        _counts(table),
        -ranker.fit_summary_["value"] * total if groups is None else groups.log_likelihood,
        -float(table.weight @ np.log(np.diff(table.offsets))),
        groups,
        table.notes if groups is None else (*table.notes, *groups.notes),
    )


def _coefficients(
    ranker: LinearRanker, rows: Queries, table: ChoiceTable, errors: ChoiceErrors | None, level: float
) -> CoefficientTable:
    repeated = table.agent is not None and len(table.agents) < len(table)
    kind = one_of(errors or ("agent" if repeated else "observed"), ("observed", "choice", "agent"), "errors")
    if kind != "agent":
        return ranker.coefficients(rows, errors="query" if kind == "choice" else "observed", level=level)
    if table.agent is None:
        raise DataError("errors by agent need a column that says who chose; name it with agent=")
    return ranker.coefficients(rows, cluster=table.agent, level=level)


def _counts(table: ChoiceTable) -> dict[str, float]:
    if table.alternative is None:
        return {}
    counts = np.bincount(table.alternative[table.chosen], table.weight, len(table.alternatives))
    return dict(zip(table.alternatives, counts.tolist()))
