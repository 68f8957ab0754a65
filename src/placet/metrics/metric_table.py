"""The table of metrics, and metrics as objects: ``metric("ndcg@10")``."""

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from placet.data import Parts, Queries
from placet.data.arrays import Floats
from placet.data.errors import as_choices
from placet.data.gains import DISCOUNTS, GAINS
from placet.metrics.conventions import CONVENTIONS
from placet.metrics.order_agreement import footrule, kendall_tau, rbo, spearman_rho
from placet.metrics.propensity import NORMALIZE, psndcg, psp
from placet.metrics.ranking import rank
from placet.metrics.relevance import RowScores, average_precision, err, mrr, ndcg, precision, recall
from placet.metrics.subtopics import alpha_ndcg, err_ia

METRICS: dict[str, Callable[..., Floats]] = {
    "ndcg": ndcg,
    "err": err,
    "average_precision": average_precision,
    "precision": precision,
    "recall": recall,
    "mrr": mrr,
    "psp": psp,
    "psndcg": psndcg,
    "alpha_ndcg": alpha_ndcg,
    "err_ia": err_ia,
    "kendall_tau": kendall_tau,
    "spearman_rho": spearman_rho,
    "footrule": footrule,
    "rbo": rbo,
}

ALIASES = {
    "map": "average_precision",
    "ap": "average_precision",
    "p": "precision",
    "r": "recall",
    "rr": "mrr",
    "tau": "kendall_tau",
    "rho": "spearman_rho",
    "alpha-ndcg": "alpha_ndcg",
    "err-ia": "err_ia",
}

CHOICES = {"gain": tuple(GAINS), "discount": tuple(DISCOUNTS), "compat": tuple(CONVENTIONS), "normalize": NORMALIZE}

BY_SUBTOPIC = ("alpha_ndcg", "err_ia")  # metrics that take judgments (rows, subtopics) instead of grades
DISTANCES = ("footrule",)  # metrics of which the lowest value is the best
PER_ROW = ("name", "propensity")  # columns passed with the data, not part of a specification

Value = str | int | float | bool


@dataclass(frozen=True, repr=False)
class Metric:
    """A metric with its depth and parameters: a function of (s, grade, offsets) that returns one value per list.

    Its repr is its specification; two metrics are equal if their specifications are.

    >>> import placet
    >>> ndcg = placet.metric("ndcg@2")
    >>> ndcg, ndcg.k
    (ndcg@2, 2)
    >>> ndcg([3.0, 2.0, 1.0], [0, 2, 1], [0, 3]).round(3)
    array([0.521])
    """

    name: str
    k: int | None = None
    params: tuple[tuple[str, Value], ...] = ()

    def __repr__(self) -> str:
        depth = "" if self.k is None else f"@{self.k}"
        params = ",".join(f"{key}={value}" for key, value in self.params)
        return f"{self.name}{depth}({params})" if params else f"{self.name}{depth}"

    def __call__(
        self,
        s: RowScores,
        grade: ArrayLike,
        offsets: ArrayLike,
        *,
        name: ArrayLike | None = None,
        propensity: ArrayLike | None = None,
    ) -> Floats:
        """One value per list.  ``name`` and ``propensity`` (rows,) are passed to the metrics that use them."""
        function = METRICS[self.name]
        accepted = inspect.signature(function).parameters
        given = {"k": self.k, "name": name, "propensity": propensity}
        columns = {key: value for key, value in given.items() if key in accepted and value is not None}
        return function(s, grade, offsets, **columns, **dict(self.params))


def metric(spec: str | Metric) -> Metric:
    """Parse a specification: a name in ``METRICS`` or ``ALIASES``, then ``@k``, then parameters in parentheses.

    Returns
    -------
    Metric
        Called as ``metric(scores, grades, offsets)``.

    >>> metric("NDCG@10")
    ndcg@10
    >>> metric("map(threshold=2)")
    average_precision(threshold=2)
    >>> metric("ndcg@5(gain=linear, compat=letor)") == metric("ndcg@5(compat=letor,gain=linear)")
    True
    """
    if isinstance(spec, Metric):
        return spec
    parts = re.fullmatch(r"\s*([A-Za-z][\w-]*)\s*(?:@\s*([^\s()]+))?\s*(?:\((.*)\))?\s*", spec)
    if parts is None:
        raise ValueError(f"metric {spec!r} is not of the form name, name@k or name@k(parameter=value,...)")
    name = parts[1].lower()
    name = ALIASES.get(name, name)
    if name not in METRICS:
        raise ValueError(
            f"metric {parts[1]!r} is unknown; choose from {as_choices(METRICS)} "
            f"or the short forms {as_choices(ALIASES)}"
        )
    accepted = inspect.signature(METRICS[name]).parameters
    k = _depth(spec, parts[2])
    if k is not None and "k" not in accepted:
        raise ValueError(f"metric {spec!r}: {name} takes no depth; write {name}")
    known = [p.name for p in accepted.values() if p.kind is p.KEYWORD_ONLY and p.name not in PER_ROW]
    params: dict[str, Value] = {}
    for part in filter(str.strip, (parts[3] or "").split(",")):
        key, equals, text = (x.strip() for x in part.partition("="))
        if not equals or key not in known or key in params:
            raise ValueError(f"metric {spec!r}: {part.strip()!r} is not parameter=value, each once, of {known}")
        params[key] = _value(spec, key, text)
    return Metric(name, k, tuple(sorted(params.items())))


def evaluate(
    metrics: str | Metric | Iterable[str | Metric],
    s: ArrayLike,
    grade: ArrayLike,
    offsets: ArrayLike,
    *,
    name: ArrayLike | None = None,
    propensity: ArrayLike | None = None,
    judged: Any = None,
) -> dict[str, Floats]:
    """Evaluate one metric or several on the same scores, sorted once: specification -> one value per list.

    ``judged`` (rows, subtopics): judgments that ``alpha_ndcg`` and ``err_ia`` use instead of grades.

    Returns
    -------
    dict
        The specification of each metric -> its values, one per list; NaN where it is not defined.

    >>> evaluate(["ndcg@1", "map"], [2.0, 1.0], [0, 1], [0, 2])
    {'ndcg@1': array([0.]), 'average_precision': array([0.5])}
    """
    chosen = _parsed_metrics(metrics)
    ranking = rank(s, offsets)
    by_rows = {
        repr(m): m(ranking, grade, offsets, name=name, propensity=propensity)
        for m in chosen
        if judged is None or m.name not in BY_SUBTOPIC
    }
    by_topics = {repr(m): m(s, judged, offsets) for m in chosen if judged is not None and m.name in BY_SUBTOPIC}
    return {repr(m): (by_rows | by_topics)[repr(m)] for m in chosen}


def evaluate_parts(
    metrics: str | Metric | Iterable[str | Metric], scores: "Floats | Callable[[Queries], Floats]", parts: Parts
) -> dict[str, Floats]:
    """Evaluate several metrics on queries in parts: specification -> one value per query, in the order of the parts.

    ``scores`` holds the scores of all rows, in file order (as returned by a ranker's ``predict(parts)``), or is a
    function of the queries of a part, which other processes must be able to load.

    Returns
    -------
    dict
        Specification -> one value per query, in the order of the parts.

    >>> import placet
    >>> rows = placet.simulate.queries(4, 5, 2)
    >>> from placet.data.parts import Parts
    >>> values = evaluate_parts("ndcg@3", rows.X[:, 0], Parts.of([rows[:2], rows[2:]]))
    >>> values["ndcg@3"].shape
    (4,)
    """
    largest = parts.largest_grade
    chosen = [_on_scale(m, largest) for m in _parsed_metrics(metrics)]
    if callable(scores):
        found = parts.sum(_values_of_part, scores, tuple(chosen), name="metrics")
    else:
        if len(scores) != parts.n_rows:
            raise ValueError(f"there are {len(scores)} scores and {parts.n_rows} rows; give one for each row")
        found, at = [], 0
        for queries in parts:
            own = scores[at : at + len(queries.grade)]
            place = np.argsort(np.argsort(queries.row))  # rows of a query are contiguous here, but not always in files
            found.append([m(own[place], queries.grade, queries.offsets) for m in chosen])
            at += len(own)
    return {repr(m): np.concatenate([values[k] for values in found]) for k, m in enumerate(chosen)}


def _parsed_metrics(metrics: str | Metric | Iterable[str | Metric]) -> list[Metric]:
    return [metric(m) for m in ((metrics,) if isinstance(metrics, str | Metric) else metrics)]


def _values_of_part(queries: Queries, scores: Callable[[Queries], Floats], chosen: tuple[Metric, ...]) -> Any:
    s = scores(queries)
    return [[m(s, queries.grade, queries.offsets) for m in chosen]]


def _on_scale(m: Metric, largest: float) -> Metric:
    """Set ``max_grade`` of a metric to the largest grade of all parts, if it would otherwise use that of each part."""
    needs_scale = "max_grade" in inspect.signature(METRICS[m.name]).parameters and "max_grade" not in dict(m.params)
    return replace(m, params=tuple(sorted((*m.params, ("max_grade", largest))))) if needs_scale else m


def _depth(spec: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"metric {spec!r}: depth {text!r} is not a whole number of at least 1")
    return int(text)


def _value(spec: str, key: str, text: str) -> Value:
    if key in CHOICES and text in CHOICES[key]:
        return text
    if text in ("True", "False"):
        return text == "True"
    if key not in CHOICES:
        for number in (int, float):
            try:
                return number(text)
            except ValueError:
                continue
    known = f"one of {list(CHOICES[key])}" if key in CHOICES else "a number, True or False"
    raise ValueError(f"metric {spec!r}: {key} {text!r} is not {known}")
