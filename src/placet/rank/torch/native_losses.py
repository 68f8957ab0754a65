"""Losses in PyTorch operations, for any device, differentiable any number of times, without loops over data.

Lists are rows of a padded table (lists, rows) with a mask, or one column split by offsets (padded here).  The values
are those of the kernels of ``LOSSES``; float16 and bfloat16 scores are converted to float32.  Padded tables compile as
one graph.  Grades and weights are checked, except while compiling; scores are not: NaN among them gives NaN.
`torch_loss` (``placet.rank.torch.neural``) supports every loss but copies scores to the CPU; these stay on the device.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from placet.data import parameters
from placet.data.errors import DataError, one_of
from placet.losses.ndcg import check_pair_weights
from placet.rank.torch.network import pytorch

NODES = 128
FEWEST_NODES = 16  # with 16 nodes values are right to about a percent
CUT = 34.0  # the integrand is cut off at e^-34 of its peak
SATURATED = 6.5  # above this u, 1 - exp(-e^u) rounds to 1 in float64
SERIES = math.log(0.05)  # below this u, a series in e^u is exact in float64
FAR = 60.0  # at scores this far from the rest, a factor equals a_i e^x, or 1, at every node


def native_loss(
    loss: str,
    scores: Any,
    grade: Any,
    *,
    offsets: Any = None,
    mask: Any = None,
    weight: Any = None,
    reduction: str = "sum",
    **params: Any,
) -> Any:
    """A loss from ``NATIVE`` as a tensor: "pl-partition", "pmop-fd", "listnet", "ranknet" or "lambdaloss".

    ``scores`` and ``grade`` are (lists, rows) with ``mask`` (True for rows of the list; None: all), or (rows,) split
    by ``offsets`` (lists + 1,).  Higher grades are better, and equal grades tie.  ``weight`` (lists,).
    ``reduction``: "sum", "mean" (per unit weight) or "none" (one value per list).  ``params``: "lambdaloss" takes
    ``k``, ``sigma`` and ``mu``, "pl-partition" takes ``nodes``, the number of nodes of its integrals.

    Returns
    -------
    torch.Tensor
        The loss, with gradients of the scores.

    >>> torch = pytorch()
    >>> s = torch.zeros(1, 3, requires_grad=True)
    >>> value = native_loss("pl-partition", s, torch.tensor([[1, 1, 0]]))
    >>> round(value.item(), 4)  # log 3: each of three equals may be the last
    1.0986
    """
    torch = pytorch()
    check_parameters(loss, params)
    one_of(reduction, ("sum", "mean", "none"), "reduction")
    scores = _tensor(scores)
    grade = _tensor(grade, scores.device)
    if offsets is not None:
        if scores.ndim != 1 or mask is not None:
            raise ValueError(f"offsets cut one column of scores (rows,), not {tuple(scores.shape)}; a table has a mask")
        if grade.shape != scores.shape:
            raise ValueError(f"{len(scores)} scores have grades of shape {tuple(grade.shape)}; both must be (rows,)")
        (scores, mask), (grade, _) = pad(scores, offsets), pad(grade, offsets)
    if scores.ndim != 2 or scores.shape != grade.shape:
        raise ValueError(
            f"scores have shape {tuple(scores.shape)} and grades {tuple(grade.shape)}; both must be (lists, rows)"
        )
    mask = torch.ones_like(scores, dtype=torch.bool) if mask is None else _tensor(mask, scores.device).to(torch.bool)
    if mask.shape != scores.shape:
        raise ValueError(f"the mask has shape {tuple(mask.shape)}; the scores have {tuple(scores.shape)}")
    kind = torch.promote_types(scores.dtype, torch.float32)
    s = torch.where(mask, scores.to(kind), 0.0)
    grade = _checked_grades(loss, grade, mask)
    values = NATIVE[loss](s, grade, mask, **params) if s.shape[1] else s.sum(dim=1)
    weight = torch.ones_like(values) if weight is None else _checked_weights(weight, values)
    if reduction == "none":
        return weight * values
    total, mass = (weight * values).sum(), weight.sum()
    return total if reduction == "sum" else total / torch.where(mass > 0, mass, 1.0)


def check_parameters(loss: str, params: Mapping[str, Any]) -> None:
    """Refuse parameters that a loss from ``NATIVE`` does not have, and values that it does not take."""
    one_of(loss, NATIVE, "loss")
    for name in params:
        if name not in PARAMETERS[loss]:
            raise ValueError(f"the loss {loss!r} has no parameter {name!r} in PyTorch; it has {list(PARAMETERS[loss])}")
    if loss == "lambdaloss":
        plain = {name: value for name, value in params.items() if not isinstance(value, pytorch().Tensor)}
        if not pytorch().compiler.is_compiling():  # it reads signatures, which cannot be traced
            parameters.check_parameters(check_pair_weights, plain, "'lambdaloss'")
        check_pair_weights(**params)
    nodes = params.get("nodes", NODES)
    if isinstance(nodes, bool) or not isinstance(nodes, int | np.integer) or nodes < FEWEST_NODES:
        raise ValueError(f"nodes must be a whole number of at least {FEWEST_NODES}, not {nodes!r}")


def _tensor(values: Any, device: Any = None) -> Any:
    """A tensor of numbers given as a tensor or as anything NumPy takes; lists of floats become float64."""
    torch = pytorch()
    if not isinstance(values, torch.Tensor):
        values = torch.as_tensor(np.array(values))  # a copy: Placet's columns are read-only
    return values if device is None else values.to(device)


def _checked_grades(loss: str, grade: Any, mask: Any) -> Any:
    """Grades (lists, rows) as int64, or float32 or float64 (not the type of the scores, which may tie them); 0 for
    padded rows.
    """
    torch = pytorch()
    wide = torch.promote_types(grade.dtype, torch.float32) if grade.is_floating_point() else torch.int64
    grade = torch.where(mask, grade.to(wide), 0)
    bad = ~torch.isfinite(grade) if grade.is_floating_point() else torch.zeros_like(mask)
    negative = loss == "lambdaloss"  # its gains are 2^grade - 1
    if negative:
        bad = bad | (grade < 0)
    if (negative or grade.is_floating_point()) and _is_any(bad):
        at, row = bad.nonzero()[0].tolist()
        raise DataError(
            f"list {at}, row {row}: grade {grade[at, row].item():g} is not a finite number"
            f"{' of at least 0' if negative else ''} ({int(bad.sum())} such rows); correct it or mask the row"
        )
    return grade


def _checked_weights(weight: Any, values: Any) -> Any:
    """Weights (lists,) in the type of the values."""
    weight = _tensor(weight, values.device)
    if weight.shape != values.shape:
        raise ValueError(
            f"weight has shape {tuple(weight.shape)}; there are {len(values)} lists: give ({len(values)},)"
        )
    bad = ~((weight >= 0) & (weight < math.inf))
    if _is_any(bad):
        at, n = int(bad.nonzero()[0]), int(bad.sum())
        raise DataError(
            f"list {at}: weight {weight[at].item():g} is not a finite number of at least 0 ({n} such lists)"
        )
    return weight.to(values.dtype)


def _is_any(bad: Any) -> bool:
    """Whether any entry is True; False where values cannot be read: in torch.compile, in vmap, without storage."""
    if pytorch().compiler.is_compiling():
        return False
    try:
        return bool(bad.any())
    except RuntimeError:
        return False


def pad(column: Any, offsets: Any) -> tuple[Any, Any]:
    """Pad a column (rows,), split by offsets (lists + 1,), to a table (lists, longest list); return it with its mask.

    >>> torch = pytorch()
    >>> table, mask = pad(torch.tensor([1.0, 2.0, 3.0]), [0, 2, 3])
    >>> table.tolist(), mask.tolist()
    ([[1.0, 2.0], [3.0, 0.0]], [[True, True], [True, False]])
    """
    torch = pytorch()
    cut = _tensor(offsets, column.device)
    whole = not cut.is_floating_point() or not bool((cut != cut.floor()).any())
    if (
        cut.ndim != 1
        or not len(cut)
        or not whole
        or bool((cut[:1] != 0).any() | (cut[-1:] != len(column)).any() | (cut[1:] < cut[:-1]).any())
    ):
        raise ValueError(f"offsets must be whole numbers that rise from 0 to the number of rows, {len(column)}")
    sizes = cut.to(torch.int64).diff()
    place = torch.arange(int(sizes.max()) if len(sizes) else 0, device=column.device)
    mask = place < sizes[:, None]
    row = torch.where(mask, cut[:-1, None].to(torch.int64) + place, 0)
    return torch.where(mask, column[row], column.new_zeros(())), mask


def _listnet(s: Any, grade: Any, mask: Any) -> Any:
    """Cross-entropy of softmax(grade) and softmax(s)."""
    torch = pytorch()
    p = torch.softmax(_mask_padding((grade - _best(grade, mask)).to(s.dtype), mask), dim=1)
    log_q = torch.log_softmax(_mask_padding(s, mask), dim=1)
    several = mask.sum(dim=1) > 1
    return -torch.where(several, torch.where(mask, p * log_q, 0.0).sum(dim=1), 0.0)


def _ranknet(s: Any, grade: Any, mask: Any) -> Any:
    """Sum over i above j of log(1 + e^{-(s_i - s_j)})."""
    torch = pytorch()
    above = (grade[:, :, None] > grade[:, None, :]) & mask[:, :, None] & mask[:, None, :]
    cost = _softplus(s[:, None, :] - s[:, :, None])
    return torch.where(above, cost, 0.0).sum(dim=(1, 2))


def _softplus(x: Any) -> Any:
    """log(1 + e^x); by default PyTorch returns x from 20 on, which is 2e-9 off."""
    return pytorch().nn.functional.softplus(x, threshold=40.0)


def _lambdaloss(s: Any, grade: Any, mask: Any, *, k: int | None = None, sigma: float = 1.0, mu: float = 10.0) -> Any:
    """NDCG-Loss2++ with gains 2^r - 1 and discounts 1 / log2(1 + rank); see ``placet.losses.ndcg.lambdaloss``."""
    torch = pytorch()
    with torch.no_grad():
        weight = _swap_weights(s, grade, mask, k, mu)
    above = (grade[:, :, None] > grade[:, None, :]) & mask[:, :, None] & mask[:, None, :]
    cost = _softplus(sigma * (s[:, None, :] - s[:, :, None])) / math.log(2.0)
    return torch.where(above, weight * cost, 0.0).sum(dim=(1, 2))


def _swap_weights(s: Any, grade: Any, mask: Any, k: int | None, mu: float) -> Any:
    """(lists, rows, rows): the mean over all orders of tied scores of rho + mu delta, times the difference in gain.

    As in ``placet.kernels.losses.lambdas``, by prefix sums of the discounts over the ranks low..high of a tied block.
    """
    torch = pytorch()
    n = s.shape[1]
    cut = n if k is None else min(k, n)
    x = _mask_padding(s, mask)
    low = (x[:, None, :] > x[:, :, None]).sum(dim=2)
    high = low + (x[:, None, :] == x[:, :, None]).sum(dim=2)
    discount = 1.0 / torch.log2(2.0 + torch.arange(n, device=s.device, dtype=s.dtype))
    sums = torch.cat([discount.new_zeros(1), torch.cumsum(discount, 0)])
    top = (high.clamp(max=cut) - low).clamp(min=0)
    size = (high - low).to(s.dtype)
    mean = (sums[high] - sums[low]) / size
    kept, kept_sum = top / size, (sums[low + top] - sums[low]) / size
    # row i in the upper block, row j below it
    i, j = (low[:, None, :] - low[:, :, None]).clamp(min=0), (high[:, None, :] - low[:, :, None]).clamp(min=0)
    t = top[:, :, None]
    delta = sums[i] - sums[(i - t).clamp(min=0)] - sums[j] + sums[(j - t).clamp(min=0)]
    apart = kept_sum[:, :, None] - kept[:, :, None] * mean[:, None, :]
    apart = apart + mu * delta / (size[:, :, None] * size[:, None, :])
    place = torch.arange(n, device=s.device)
    inner = (place >= low[:, :, None]) & (place < (low + top)[:, :, None])
    falls = (high[:, :, None] - 1 - place) * discount - (sums[high][:, :, None] - sums[1:])
    within = torch.where(inner, falls, 0.0).sum(dim=2) + mu * (
        top * sums[1] - (sums[high - low] - sums[high - low - top])
    )
    within = 2.0 * within / (size * (size - 1.0)).clamp(min=1.0)
    higher = low[:, :, None] < low[:, None, :]
    same = low[:, :, None] == low[:, None, :]
    weight = torch.where(same, within[:, :, None], torch.where(higher, apart, apart.transpose(1, 2)))
    best = _best(grade, mask)  # gains relative to 2^best: 2^grade may overflow
    gain = torch.where(mask, torch.exp2((grade - best).to(s.dtype)) - torch.exp2(-best.to(s.dtype)), 0.0)
    ideal = (torch.sort(gain, dim=1, descending=True).values[:, :cut] * discount[:cut]).sum(dim=1)
    gain = gain / torch.where(ideal > 0, ideal, 1.0)[:, None]
    return weight.clamp(min=0.0) * (gain[:, :, None] - gain[:, None, :]).abs()


def _pmop_fd(s: Any, grade: Any, mask: Any) -> Any:
    """Full decomposition over ordered partitions: sum_k log sum_{R_k} e^s - log sum_{X_k} e^s + log(C_k abs(X_k))."""
    torch = pytorch()
    s, mask, tier, first, size = _sorted_tiers(s, grade, mask)
    top, left = _log_sums_below(s, mask)
    own_top, own = _log_sums_of_tiers(s, mask, tier)
    rows = mask.sum(dim=1, keepdim=True)
    n = (rows - torch.arange(s.shape[1], device=s.device)).clamp(min=1).to(s.dtype)
    log_subsets = n * math.log(2.0) + torch.log1p(-torch.exp2(-n))
    constant = log_subsets - torch.log(n) + torch.log(_at_rows(size, tier).clamp(min=1).to(s.dtype))
    chosen = (top - _at_rows(own_top, tier)) + (left - _at_rows(own, tier))
    return torch.where(first, chosen + constant, 0.0).sum(dim=1)


def _pl_partition(s: Any, grade: Any, mask: Any, *, nodes: int = NODES) -> Any:
    """Exact likelihood of the ordered partition, by the trapezoid rule in x = x0 + c sinh(z) around the mode.

    The sum over stages of -log of the integral of exp(x - e^x) prod_i (1 - exp(-a_i e^x)), log a_i = s_i - log sum of
    e^s over the rows below (as in ``placet.kernels.losses.quadrature``, but with a fixed number of nodes).
    """
    torch = pytorch()
    s, mask, tier, first, _ = _sorted_tiers(s, grade, mask)
    top, left = _log_sums_below(s, mask)
    stage = mask & (tier != _last(tier, mask))
    start = _start_of_next(tier, mask)
    d = torch.where(stage, (s - _at_rows(top, start)) - _at_rows(left, start), 0.0)
    tier = torch.where(stage, tier, s.shape[1] - 1)  # unused by stages: a tier is below each of them
    held = d.clamp(-FAR, FAR)
    below = (d - held).clamp(max=0.0)  # beyond -FAR, the logarithm of a factor is linear in d
    with torch.no_grad():
        x, log_weight, mode = _nodes(held.detach(), stage, tier, nodes)
        peak = _log_factor(held + _at_rows(mode, tier))  # of each row, subtracted before the sum: it may be large
    terms = _log_factor(held[:, :, None] + _rows_of(x, tier)) - peak[:, :, None]
    terms = torch.where(stage[:, :, None], terms, 0.0)
    total = x - torch.exp(x) + log_weight + torch.zeros_like(x).scatter_add(1, _wide(tier, nodes), terms)
    log_p = torch.logsumexp(total, dim=2)
    rows = torch.where(first, _at_rows(log_p, tier), 0.0) + peak + below
    return -torch.where(stage, rows, 0.0).sum(dim=1)


NATIVE: dict[str, Callable[..., Any]] = {
    "pl-partition": _pl_partition,
    "pmop-fd": _pmop_fd,
    "listnet": _listnet,
    "ranknet": _ranknet,
    "lambdaloss": _lambdaloss,
}
"""Losses by name: ``f(scores, grade, mask, **params) -> (lists,)`` of padded tables."""

PARAMETERS: dict[str, tuple[str, ...]] = {
    name: tuple(p.name for p in inspect.signature(f).parameters.values() if p.kind is p.KEYWORD_ONLY)
    for name, f in NATIVE.items()
}
"""Names of the parameters of each loss."""


# --- tiers of padded tables -------------------------------------------------------------------------------------------


def _mask_padding(x: Any, mask: Any) -> Any:
    """x with padded rows set to a value so low that its exponential vanishes."""
    torch = pytorch()
    return torch.where(mask, x, torch.finfo(x.dtype).min / 8)


def _best(grade: Any, mask: Any) -> Any:
    """The highest grade of each list (lists, 1)."""
    return pytorch().where(mask, grade, grade.amin(dim=1, keepdim=True)).amax(dim=1, keepdim=True)


def _sorted_tiers(s: Any, grade: Any, mask: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Sort rows by descending grade, padding last; return scores, mask, tier of each row, whether a tier starts
    there, and the number of rows in each tier (lists, tiers).
    """
    torch = pytorch()
    order = torch.argsort(grade, dim=1, descending=True, stable=True)
    padded = torch.gather(~mask, 1, order).to(torch.uint8)
    order = torch.gather(order, 1, torch.argsort(padded, dim=1, stable=True))
    s, grade, mask = (torch.gather(x, 1, order) for x in (s, grade, mask))
    first = torch.ones_like(mask)
    first[:, 1:] = (grade[:, 1:] != grade[:, :-1]) | ~mask[:, 1:]
    tier = torch.cumsum(first.to(torch.int64), dim=1) - 1
    size = torch.zeros_like(tier).scatter_add(1, tier, mask.to(torch.int64))
    return s, mask, tier, first & mask, size


def _log_sums_below(s: Any, mask: Any) -> tuple[Any, Any]:
    """The highest score of each row and all rows after it, a constant, and the log of the sum of e^(s - highest).

    By doubling, O(rows log rows).  In two parts, as their sum would lose digits where scores are large.
    """
    torch = pytorch()
    s = _mask_padding(s, mask)
    top = s.detach()
    total = torch.exp(s - top)
    step = 1
    while step < s.shape[1]:
        higher = torch.maximum(top[:, :-step], top[:, step:])
        total = torch.cat(
            [
                total[:, :-step] * torch.exp(top[:, :-step] - higher)
                + total[:, step:] * torch.exp(top[:, step:] - higher),
                total[:, -step:],
            ],
            dim=1,
        )
        top = torch.cat([higher, top[:, -step:]], dim=1)
        step *= 2
    return top, torch.log(total)


def _log_sums_of_tiers(s: Any, mask: Any, tier: Any) -> tuple[Any, Any]:
    """The highest score of each tier (lists, tiers), a constant, and the log of the sum of e^(s - highest)."""
    torch = pytorch()
    top = torch.full_like(s, torch.finfo(s.dtype).min).scatter_reduce(1, tier, _mask_padding(s.detach(), mask), "amax")
    shifted = torch.where(mask, s - torch.gather(top, 1, tier), 0.0)
    total = torch.zeros_like(s).scatter_add(1, tier, torch.where(mask, torch.exp(shifted), 0.0))
    return top, torch.log(torch.where(total > 0, total, 1.0))


def _at_rows(of_tiers: Any, tier: Any) -> Any:
    return pytorch().gather(of_tiers, 1, tier)


def _last(tier: Any, mask: Any) -> Any:
    """The lowest tier of each list (lists, 1)."""
    return pytorch().where(mask, tier, -1).amax(dim=1, keepdim=True)


def _start_of_next(tier: Any, mask: Any) -> Any:
    """Start of the tier below that of each row; the row itself if there is none."""
    torch = pytorch()
    n = tier.shape[1]
    place = torch.arange(n, device=tier.device).expand_as(tier)
    size = torch.zeros_like(tier).scatter_add(1, tier, torch.ones_like(tier))
    end = torch.gather(torch.cumsum(size, dim=1), 1, tier)
    return torch.where(mask & (end < n), end, place)


# --- the integral of a stage ------------------------------------------------------------------------------------------


def _wide(tier: Any, nodes: int) -> Any:
    return tier[:, :, None].expand(-1, -1, nodes)


def _rows_of(of_tiers: Any, tier: Any) -> Any:
    """Gather values (lists, tiers, nodes) at the rows."""
    return pytorch().gather(of_tiers, 1, _wide(tier, of_tiers.shape[2]))


def _log_factor(u: Any) -> Any:
    """log(1 - exp(-e^u)), about u for very negative u and 0 for large u; finite derivatives everywhere.

    While compiling, for small y = e^u, u - y / 2 + y^2 / 24 - y^4 / 2880 + ...: compilers may replace expm1(-y) by
    exp(-y) - 1.
    """
    torch = pytorch()
    if not torch.compiler.is_compiling():
        return torch.where(u < -30.0, u, torch.log(-torch.expm1(-torch.exp(u.clamp(-30.0, SATURATED)))))
    y = torch.exp(u.clamp(max=SERIES))
    z = y * y
    small = u - 0.5 * y + z * (1 / 24 - z * (1 / 2880 - z / 181440))
    large = torch.log(-torch.expm1(-torch.exp(u.clamp(SERIES, SATURATED))))
    return torch.where(u < SERIES, small, large)


def _slope(y: Any) -> Any:
    """y / (e^y - 1), the derivative of `_log_factor` at e^u = y; for small y, 1 - y / 2 + y^2 / 12 - y^4 / 720 + ..."""
    torch = pytorch()
    if not torch.compiler.is_compiling():
        tiny = y < 1e-8
        safe = torch.where(tiny, 1.0, y).clamp(max=600.0)
        return torch.where(tiny, 1.0 - 0.5 * y, safe / torch.expm1(safe))
    least = math.exp(SERIES)
    low, high = y.clamp(max=least), y.clamp(least, 600.0)
    z = low * low
    return torch.where(y < least, 1.0 - 0.5 * low + z * (1 / 12 - z * (1 / 720 - z / 30240)), high / torch.expm1(high))


def _nodes(d: Any, stage: Any, tier: Any, nodes: int) -> tuple[Any, Any, Any]:
    """Nodes x and log weights (lists, tiers, nodes), with range and density adapted to the integrand; its mode."""
    torch = pytorch()

    def per_tier(values: Any) -> Any:
        return torch.zeros_like(d).scatter_add(1, tier, torch.where(stage, values, 0.0))

    def log_g(x: Any) -> Any:
        return x - torch.exp(x) + per_tier(_log_factor(d + _at_rows(x, tier)))

    n = per_tier(torch.ones_like(d))
    low, high = torch.zeros_like(d), torch.log(n + 1.0)
    for _ in range(30):
        x = 0.5 * (low + high)
        rises = 1.0 - torch.exp(x) + per_tier(_slope(torch.exp(d + _at_rows(x, tier)))) > 0
        low, high = torch.where(rises, x, low), torch.where(rises, high, x)
    mode = 0.5 * (low + high)
    y = torch.exp(d + _at_rows(mode, tier))
    p = _slope(y)
    curvature = torch.exp(mode) + per_tier(torch.where(p > 0, p * (y + p - 1.0), 0.0).clamp(min=0.0))
    peak, width = log_g(mode), 4.0 / torch.sqrt(curvature)
    ends = []
    for sign, far in ((-1.0, CUT + 2.0), (1.0, 6.0)):
        near, away = torch.zeros_like(d), torch.full_like(d, far)
        for _ in range(16):
            middle = 0.5 * (near + away)
            inside = peak - log_g(mode + sign * middle) < CUT
            near, away = torch.where(inside, middle, near), torch.where(inside, away, middle)
        ends.append(torch.asinh(sign * away / width))
    step = (ends[1] - ends[0]) / (nodes - 1)
    z = ends[0][:, :, None] + step[:, :, None] * torch.arange(nodes, device=d.device, dtype=d.dtype)
    x = mode[:, :, None] + width[:, :, None] * torch.sinh(z)
    return x, torch.log(step * width)[:, :, None] + torch.log(torch.cosh(z)), mode
