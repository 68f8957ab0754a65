"""The record of a loss, and a loss bound to its lists: inputs checked, rows sorted and weights normalized once."""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placet.data import Lists
from placet.data.arrays import Floats, Ints, descending_order
from placet.data.engines.memory import refuse_beyond_memory
from placet.data.errors import as_choices, one_of
from placet.data.gains import GainError
from placet.data.parameters import check_parameters
from placet.kernels import ranges
from placet.losses.list_columns import (
    FAR,
    NO_ROWS,
    ListColumns,
    checked_lists,
    cut_into_ranges,
    near_zero,
    read_only,
    row_vector,
)
from placet.threads import get_threads, map_ordered

Kernel = Callable[..., None]
Law = Literal["order", "pairs", "partition"]
Second = Literal["curvature", "hvp"]

TRAINING_TOLERANCE = 1e-4
"""Tolerance of the integrals of a loss in training, unless the fit itself requires a smaller one."""


class Plan(NamedTuple):
    """The kernels of a loss and their arguments, for given lists and parameters.

    ``value`` is called as ``kernel(s, grade, offsets, weight, values, grad, [slopes,] *args)`` and fills ``values``
    (lists,), ``grad`` (rows,) and, if the loss learns parameters, ``slopes`` (lists, parameters), all initially zero;
    ``curvature`` is called as ``kernel(s, grade, offsets, weight, out, *args)``; ``hvp`` has v before ``args``.
    Kernels of ``reweights`` losses receive the scores that determine the places before ``args`` (and before v); if
    empty, the places are those of ``s``.  ``grade`` (rows,), if given, replaces the grades.  ``draw`` draws additional
    arguments of ``value`` from a generator at each call.  ``backward``: pass the lists reversed and the scores negated.
    ``scratch``: how many numbers a thread stores for the longest list, if more than a few for every row.
    """

    value: tuple[Any, ...]
    curvature: tuple[Any, ...] | None = None
    hvp: tuple[Any, ...] | None = None
    grade: Floats | None = None
    draw: Callable[[np.random.Generator], tuple[Any, ...]] | None = None
    backward: bool = False
    scratch: int = 0


@dataclass(frozen=True)
class Loss:
    """A loss of row scores and its properties.  Called as ``loss(s, lists, **params) -> (value, gradient)``.

    Attributes
    ----------
    plan : function
        ``plan(columns, **params) -> Plan``: checks parameters and selects kernels.  Its docstring gives the formula.
    reference : str
        Source of the loss, in one line.
    gives : tuple
        Available second derivatives: "curvature" (the Hessian's diagonal or a bound), "hvp" (Hessian-vector products).
    learned : mapping
        Parameters learned jointly with the scores, and their initial values.
    scaling : tuple
        Learned parameters that multiply all scores, as the norm of a weight vector does already.
    law : str or None
        Model of which the loss is the negative log likelihood: "order" (Plackett-Luce orders with weights e^s),
        "pairs" (outcomes of pairs), "partition" (ordered partitions only); None if it is not a likelihood.
    potential : "sums", "means" or None
        In a likelihood of tiers drawn one after the other: a tier has the weight of the mean of e^s over its rows
        ("sums"; its orders without ties are those of Plackett-Luce), or of e^(mean of s) ("means").
    shift_invariant : bool
        Adding a constant to a list's scores does not change the loss.
    scale_invariant : bool
        Multiplying a list's scores by a positive number does not change the loss.
    samples : bool
        The gradient is a random estimate.
    breaks_ties : bool
        Tied rows are put in a random order.
    smooth : bool
        Twice differentiable everywhere, with derivatives that finite differences can check.
    convex : bool
        Convex in the scores.
    differentiable : bool
        Has a gradient everywhere; a loss with kinks need not have a vanishing gradient at the minimum.
    exact_curvature : bool
        The curvature is the Hessian's diagonal, not an upper bound on it.
    sums_lowest_tier : bool
        Scores of the lowest tier enter only through their log-sum-exp.
    values_of_grades : bool
        The loss depends on the values of the grades, not only on their order.
    reweights : bool
        Pairs are weighted by the places of the current scores, held fixed in derivatives: the value jumps when rows
        swap places, and kernels take the scores that determine the places before other arguments (`Bound.hold`).

    >>> import placet
    >>> loss = placet.losses.LOSSES["pl-partition"]
    >>> loss.law, loss.gives, loss.shift_invariant
    ('order', ('curvature', 'hvp'), True)
    >>> value, gradient = loss([0.0, 0.0, 0.0], placet.Lists([1, 1, 0], [0, 3]))
    >>> round(value, 4)  # log 3: each of three equals may be the last
    1.0986
    """

    plan: Callable[..., Plan]
    reference: str
    gives: tuple[Second, ...] = ("curvature", "hvp")
    learned: Mapping[str, float] = field(default_factory=dict)
    scaling: tuple[str, ...] = ()
    law: Law | None = None
    potential: Literal["sums", "means"] | None = None
    shift_invariant: bool = True
    scale_invariant: bool = False
    samples: bool = False
    breaks_ties: bool = False
    smooth: bool = True
    convex: bool = True
    differentiable: bool = True
    exact_curvature: bool = True
    sums_lowest_tier: bool = False
    values_of_grades: bool = False
    reweights: bool = False

    @property
    def learnt(self) -> Mapping[str, float]:
        """``learned``, under the name that the design fixes for callers."""
        return self.learned

    def __call__(self, s: ArrayLike, lists: Lists, *, parameter_gradient: bool = False, **params: Any) -> Any:
        """Value, summed over lists with their weights, and gradient (rows,).

        ``parameter_gradient`` adds a dict of the derivatives in the learned parameters.
        """
        bound, s = self._bound(s, lists, params)
        if not parameter_gradient:
            return bound.value_and_grad(s)
        learned = {name: float(params.get(name, start)) for name, start in self.learned.items()}
        value, grad, slopes = bound.value_grad_slopes(s, learned)
        return value, grad, dict(zip(learned, slopes.tolist()))

    def per_list(self, s: ArrayLike, lists: Lists, **params: Any) -> Floats:
        """Weighted value of each list (lists,); they sum to the loss value."""
        bound, s = self._bound(s, lists, params)
        return bound.per_list(s)

    @property
    def curvature(self) -> Callable[..., Floats] | None:
        """``(s, lists, **params) -> (rows,)``: the Hessian's diagonal or its stated bound; None if not available."""
        return self._curvature if "curvature" in self.gives else None

    @property
    def hvp(self) -> Callable[..., Floats] | None:
        """``(s, lists, v, **params) -> (rows,)``: the Hessian times a vector; None if not available."""
        return self._hvp if "hvp" in self.gives else None

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return tuple(p.name for p in inspect.signature(self.plan).parameters.values() if p.kind is p.KEYWORD_ONLY)

    @property
    def draws(self) -> bool:
        """Whether the loss draws random numbers, that is, has a parameter ``random_state``."""
        return "random_state" in self.parameters

    def training_parameters(self, given: Mapping[str, Any] | None, tol: float = 1.0) -> dict[str, Any]:
        """The given parameters, with names checked, and integrals only as accurate as a fit to ``tol`` needs."""
        params = dict(given or {})
        unknown = sorted(set(params) - set(self.parameters))
        if unknown:
            raise ValueError(f"the loss has no parameter {unknown[0]!r}; it has {list(self.parameters)}")
        if "tol" in self.parameters:
            params.setdefault("tol", max(min(TRAINING_TOLERANCE, tol), 1e-14))
        return params

    def learned_beside(self, params: Mapping[str, Any], learn: Iterable[str] | None = None) -> dict[str, float]:
        """Initial values of the parameters to learn where ``params`` are given.

        ``learn`` names them; by default, all learnable ones that do not just scale the scores.
        """
        names = [k for k in self.learned if k not in self.scaling] if learn is None else learn
        return {k: float(self.learned[k]) for k in names if k not in params}

    def _curvature(self, s: ArrayLike, lists: Lists, **params: Any) -> Floats:
        bound, s = self._bound(s, lists, params)
        return bound.curvature(s)

    def _hvp(self, s: ArrayLike, lists: Lists, v: ArrayLike, **params: Any) -> Floats:
        bound, s = self._bound(s, lists, params)
        return bound.hvp(s, row_vector(v, len(s), "vector"))

    def _bound(self, s: ArrayLike, lists: Lists, params: Mapping[str, Any]) -> tuple["Bound", Floats]:
        bound = Bound(self, lists, params, total=1.0)
        s = row_vector(s, bound.n_rows, "score column")
        bad = ~np.isfinite(s)
        if bad.any():
            row = int(np.argmax(bad))
            raise ValueError(f"row {row}: score {s[row]} is not finite ({bad.sum()} such rows)")
        return bound, s


class Bound:
    """A loss bound to its lists: a function of row scores in the caller's row order, normalized by total weight.

    Parameters
    ----------
    loss : str or Loss
    lists : Lists
    params : mapping, optional
        Parameters of the loss.
    total : float, optional
        Divisor of the weights; their sum by default (if the data come in parts, the sum over all parts).
    learn : iterable of str, optional
        Parameters to learn; by default, all learnable ones that are not in ``params`` and do not just scale the scores.

    ``learned`` holds the initial values of the parameters that are learned.

    >>> bound = Bound("listmle", Lists([2, 0, 1], [0, 3]))
    >>> value, gradient = bound.value_and_grad(np.zeros(3))
    >>> round(value, 6), gradient.round(3)
    (1.791759, array([-0.667,  0.833, -0.167]))
    """

    def __init__(
        self,
        loss: "str | Loss",
        lists: Lists,
        params: Mapping[str, Any] | None = None,
        *,
        total: float | None = None,
        learn: Iterable[str] | None = None,
    ) -> None:
        self.loss = loss if isinstance(loss, Loss) else loss_named(loss)
        self.lists, self.params = lists, dict(params or {})
        if self.params:
            check_parameters(self.loss.plan, self.params, "the loss", skip=1)
        grade, offsets, weight = checked_lists(lists)
        self.total = float(weight.sum()) if total is None else float(total)
        self.offsets, self.n_rows, self.n_lists = offsets, len(grade), len(weight)
        unit = self.total if self.total > 0 else 1.0
        weight = read_only(weight / unit) if unit != 1.0 else weight
        self._cuts = cut_into_ranges(offsets)
        self._order = None if self._descending(grade) else descending_order(grade, offsets)
        sorted_grade = grade if self._order is None else read_only(grade[self._order])
        self.columns = ListColumns(sorted_grade, offsets, weight)
        self._silent = self._rows_of_weight_zero(weight)
        self.learned = self.loss.learned_beside(self.params, learn)
        self._held: Floats | None = None
        self._plan_cache: tuple[dict[str, float], Plan] | None = None
        scratch = self._plan({}).scratch  # raises on invalid parameters
        if scratch:
            refuse_beyond_memory(
                8.0 * scratch * get_threads(),
                f"this loss on a list of {int(np.diff(offsets).max(initial=0)):,} rows",
                "give shorter lists, fewer threads, or another loss such as 'pl-partition'",
            )

    def value_and_grad(
        self, s: Floats, learned: Mapping[str, float] | None = None, rng: np.random.Generator | None = None
    ) -> tuple[float, Floats]:
        """Value and gradient (rows,) at ``s``; infinite if a score is not finite, so that a line search backs off.

        ``learned``: values of the learned parameters (default: initial values).  ``rng``: for losses that sample.
        """
        return self.value_grad_slopes(s, learned, rng)[:2]

    def value_grad_slopes(
        self, s: Floats, learned: Mapping[str, float] | None = None, rng: np.random.Generator | None = None
    ) -> tuple[float, Floats, Floats]:
        """Value, gradient, and the derivatives in the parameters of ``learned``, in the same order."""
        return self.evaluate(read_only(s), self.learned if learned is None else learned, rng)

    def evaluate(
        self, s: Floats, learned: Mapping[str, float], rng: np.random.Generator | None = None
    ) -> tuple[float, Floats, Floats]:
        """As `value_grad_slopes`, for scores that an optimizer made: float64 (rows,), which are not checked again."""
        values, grad, slopes = self._values(s, learned, rng)
        return float(values.sum()), grad, slopes[:, [list(self.loss.learned).index(k) for k in learned]].sum(axis=0)

    def per_list(self, s: Floats, learned: Mapping[str, float] | None = None) -> Floats:
        """Weighted value of each list (lists,)."""
        return self._values(read_only(s), self.learned if learned is None else learned, None)[0]

    def gradients_by_list(self, s: Floats, learned: Mapping[str, float]) -> tuple[Floats, Floats]:
        """Weighted gradient (rows,), and the derivatives (lists, learned parameters) of each list."""
        _, grad, slopes = self._values(read_only(s), learned, None)
        return grad, slopes[:, [list(self.loss.learned).index(k) for k in learned]]

    def curvature(self, s: Floats, learned: Mapping[str, float] | None = None) -> Floats:
        """Diagonal of the Hessian (rows,), or the bound stated by the loss."""
        plan = self._plan(self.learned if learned is None else learned)
        assert plan.curvature is not None, "no curvature: see `needs`"
        kernel, *args = plan.curvature
        return self._rows(kernel, plan, read_only(s), (), args)

    def hvp(self, s: Floats, v: Floats, learned: Mapping[str, float] | None = None) -> Floats:
        """Hessian times ``v`` (rows,)."""
        plan = self._plan(self.learned if learned is None else learned)
        assert plan.hvp is not None, "no Hessian products: see `needs`"
        kernel, *args = plan.hvp
        return self._rows(kernel, plan, read_only(s), (read_only(v),), args)

    def best_level(self, s: Floats, learned: Mapping[str, float] | None = None) -> float:
        """The constant shift of ``s`` that minimizes the loss, by Newton steps, halved while the slope grows.

        0 if the loss is shift-invariant or has no curvature.
        """
        if self.loss.shift_invariant or "curvature" not in self.loss.gives:
            return 0.0

        def sums(level: float) -> tuple[float, float, float]:
            grad = self.value_and_grad(s + level, learned)[1]
            return float(grad.sum()), float(self.curvature(s + level, learned).sum()), float(np.abs(grad).sum())

        level = 0.0
        slope, bend, size = sums(level)
        noise = 1e-9 * size
        for _ in range(100):
            if abs(slope) <= noise or not bend > 0:
                break
            step = -slope / bend
            while True:
                new_slope, new_bend, _ = sums(level + step)
                if abs(new_slope) < abs(slope) or abs(step) < 1e-12:
                    break
                step /= 2
            level, slope, bend = level + step, new_slope, new_bend
        return level

    def hold(self, s: Floats | None) -> None:
        """Fix the pair weights at the places given by ``s`` until the next call of ``hold``; None unfixes them.

        The loss is then smooth and convex, as a line search needs.  No effect on losses that do not reweight.
        """
        self._held = None if s is None or not self.loss.reweights else self._visible(read_only(s)).copy()

    def part(self, which: NDArray[np.integer[Any]]) -> tuple[Ints, "Bound"]:
        """Rows of the given lists, and the same loss on these lists alone, normalized by their weight."""
        sizes = np.diff(self.offsets)[which]
        offsets = np.append(0, np.cumsum(sizes))
        rows = np.repeat(self.offsets[:-1][which] - offsets[:-1], sizes) + np.arange(offsets[-1])
        weight = None if self.lists.weight is None else np.asarray(self.lists.weight)[which]
        lists = Lists(np.asarray(self.lists.grade)[rows], offsets, weight)
        return rows, Bound(self.loss, lists, self.params, learn=self.learned)

    # Internals: everything below is in the kernels' row order

    def _plan(self, learned: Mapping[str, float]) -> Plan:
        """The kernels and their arguments, cached until the learned parameters change."""
        now = dict(learned)
        if self._plan_cache is None or self._plan_cache[0] != now:
            try:
                self._plan_cache = now, self.loss.plan(self.columns, **{**self.params, **now})
            except GainError as found:  # it counts the rows in the kernels' order
                raise found if self._order is None else found.in_order(self._order) from None
        return self._plan_cache[1]

    def _values(
        self, s: Floats, learned: Mapping[str, float], rng: np.random.Generator | None
    ) -> tuple[Floats, Floats, Floats]:
        """Values (lists,), gradient (rows,) in the caller's order, slopes (lists, learned parameters)."""
        plan = self._plan(learned)
        kernel, *args = plan.value
        values, slopes = np.zeros(self.n_lists), np.zeros((self.n_lists, len(self.loss.learned)))
        if not np.isfinite(s).all():
            return np.full(self.n_lists, math.inf), np.zeros(len(s)), slopes
        if plan.draw is not None:
            args = [*plan.draw(self._generator(rng)), *args]
        x, columns, cuts, grad = self._inputs(plan, s)
        places = self._places(plan) if self.loss.reweights else ()

        def work(k: int) -> None:
            a, b = cuts[k], cuts[k + 1]
            within = columns.offsets[a : b + 1]
            ranges.clear(grad, within)
            more = (slopes[a:b],) if self.loss.learned else ()
            kernel(x, columns.grade, within, columns.weight[a:b], values[a:b], grad, *more, *places, *args)

        if len(cuts) == 2:
            work(0)
        else:
            map_ordered(work, len(cuts) - 1)
        if plan.backward:
            return values[::-1], self._back(-grad[::-1]), slopes[::-1]
        return values, self._back(grad), slopes

    def _rows(self, kernel: Kernel, plan: Plan, s: Floats, vectors: tuple[Floats, ...], args: list[Any]) -> Floats:
        """Run a kernel of second derivatives; return its output (rows,) in the caller's order."""
        if not np.isfinite(s).all():
            return np.full(len(s), math.nan)
        x, columns, cuts, out = self._inputs(plan, s)
        places = self._places(plan) if self.loss.reweights else ()
        along = [*places, *(self._forward(plan, v) for v in vectors)]

        def work(k: int) -> None:
            a, b = cuts[k], cuts[k + 1]
            within = columns.offsets[a : b + 1]
            ranges.clear(out, within)
            kernel(x, columns.grade, within, columns.weight[a:b], out, *along, *args)

        if len(cuts) == 2:
            work(0)
        else:
            map_ordered(work, len(cuts) - 1)
        return self._back(out[::-1] if plan.backward else out)

    def _inputs(self, plan: Plan, s: Floats) -> tuple[Floats, ListColumns, Ints, Floats]:
        """Scores, lists, ranges of lists to divide among threads, and an output array (rows,), in kernel order."""
        x, columns, cuts = self._forward(plan, self._visible(s)), self.columns, self._cuts
        if plan.backward:
            x, columns, cuts = read_only(-x), self._reversed, cut_into_ranges(self._reversed.offsets)
        elif plan.grade is not None:
            columns = columns._replace(grade=plan.grade)
        if self.loss.shift_invariant and ranges.begins_beyond(x, columns.offsets, FAR):
            x = read_only(near_zero(x, columns.offsets))
        return x, columns, cuts, np.empty(self.n_rows)

    def _visible(self, s: Floats) -> Floats:
        """The scores, set to 0 in lists of weight zero."""
        return s if self._silent is None else np.where(self._silent, 0.0, s)

    def _places(self, plan: Plan) -> tuple[Floats, ...]:
        """The scores that determine the places, for losses that reweight."""
        return (NO_ROWS if self._held is None else self._forward(plan, self._held),)

    def _forward(self, plan: Plan, column: Floats) -> Floats:
        """Convert a checked column to the kernels' row order, read-only as `read_only` makes it."""
        column = column if self._order is None else column[self._order]
        view = np.ascontiguousarray(column[::-1] if plan.backward else column).view()
        view.flags.writeable = False
        return view

    def _back(self, column: Floats) -> Floats:
        """Convert a column to the caller's row order."""
        if self._order is None:
            return np.ascontiguousarray(column)
        out = np.empty_like(column)
        out[self._order] = column
        return out

    @cached_property
    def _reversed(self) -> ListColumns:
        """The lists from worst to best row, last list first, with negated grades, so that sorted rows stay sorted."""
        grade, offsets, weight = self.columns
        return ListColumns(
            read_only(-grade[::-1]), read_only(len(grade) - offsets[::-1], np.int64), read_only(weight[::-1])
        )

    def _generator(self, rng: np.random.Generator | None) -> np.random.Generator:
        return np.random.default_rng(self.params.get("random_state", 0)) if rng is None else rng

    def _descending(self, grade: Floats) -> bool:
        """Whether the grades of every list are in descending order."""
        cuts, offsets = self._cuts, self.offsets
        found = map_ordered(lambda k: ranges.is_descending(grade, offsets[cuts[k] : cuts[k + 1] + 1]), len(cuts) - 1)
        return all(found)

    def _rows_of_weight_zero(self, weight: Floats) -> NDArray[np.bool_] | None:
        """Mask of the rows of lists with weight zero, whose scores are ignored; None if there are none."""
        return None if weight.all() else np.repeat(weight == 0, np.diff(self.offsets))


def loss_named(name: str) -> Loss:
    """The record of a loss; raises a ``ValueError`` that lists the valid names."""
    from placet.losses import LOSSES

    return LOSSES[one_of(name, LOSSES, "loss")]


def needs(loss: str, *what: str, who: str) -> Loss:
    """The record of a loss; raises ``ValueError`` if it lacks something that the ranker ``who`` needs.

    ``what``: "curvature", "hvp", "no learned parameters", "no sampling".

    Returns
    -------
    Loss
        The record.

    >>> needs("pl-partition", "hvp", who="LinearRanker").law
    'order'
    """
    from placet.losses import LOSSES

    lacks: dict[str, Callable[[Loss], bool]] = {
        "curvature": lambda record: "curvature" not in record.gives,
        "hvp": lambda record: "hvp" not in record.gives,
        "no learned parameters": lambda record: bool(set(record.learned) - set(record.scaling)),
        "no sampling": lambda record: record.samples,
    }
    record = loss_named(loss)
    for need in what:
        if lacks[need](record):
            able = [name for name, other in LOSSES.items() if not any(lacks[w](other) for w in what)]
            raise ValueError(
                f"{who} needs a loss with {need}, which {loss!r} does not offer; choose from {as_choices(able)}"
            )
    return record
