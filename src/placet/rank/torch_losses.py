"""Losses in PyTorch operations, for any device, differentiable any number of times, without loops over data.

Lists are rows of a padded table (lists, rows) with a mask, or one column split by offsets (padded here).  The values
are those of the kernels of ``LOSSES``; float16 and bfloat16 scores are converted to float32.
`torch_loss` (``placet.rank.neural``) supports every loss but copies scores to the CPU; these stay on the device.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from placet.data.errors import one_of
from placet.rank.neural import pytorch

NODES = 128
CUT = 34.0  # the integrand is cut off at e^-34 of its peak
SATURATED = 6.5  # above this u, 1 - exp(-e^u) rounds to 1 in float64


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
    ``reduction``: "sum", "mean" (per unit weight) or "none" (one value per list).  ``params``: parameters of the loss.

    >>> torch = pytorch()
    >>> s = torch.zeros(1, 3, requires_grad=True)
    >>> value = native_loss("pl-partition", s, torch.tensor([[1, 1, 0]]))
    >>> round(value.item(), 4)  # log 3: each of three equals may be the last
    1.0986
    """
    torch = pytorch()
    one_of(loss, NATIVE, "loss")
    one_of(reduction, ("sum", "mean", "none"), "reduction")
    if offsets is not None:
        if scores.ndim != 1 or mask is not None:
            raise ValueError(f"offsets cut one column of scores (rows,), not {tuple(scores.shape)}; a table has a mask")
        scores, mask = pad(scores, offsets)
        grade, _ = pad(torch.as_tensor(grade, device=scores.device), offsets)
    grade = torch.as_tensor(grade, device=scores.device)
    if scores.ndim != 2 or scores.shape != grade.shape:
        raise ValueError(
            f"scores have shape {tuple(scores.shape)} and grades {tuple(grade.shape)}; both must be (lists, rows)"
        )
    mask = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.to(scores.device, torch.bool)
    if mask.shape != scores.shape:
        raise ValueError(f"the mask has shape {tuple(mask.shape)}; the scores have {tuple(scores.shape)}")
    kind = torch.promote_types(scores.dtype, torch.float32)
    s = torch.where(mask, scores.to(kind), 0.0)
    values = NATIVE[loss](s, torch.where(mask, grade, 0).to(kind), mask, **params)
    weight = torch.ones_like(values) if weight is None else torch.as_tensor(weight, device=s.device).to(values.dtype)
    if reduction == "none":
        return weight * values
    total = (weight * values).sum()
    return total if reduction == "sum" else total / weight.sum()


def pad(column: Any, offsets: Any) -> tuple[Any, Any]:
    """Pad a column (rows,), split by offsets (lists + 1,), to a table (lists, longest list); return it with its mask.

    >>> torch = pytorch()
    >>> table, mask = pad(torch.tensor([1.0, 2.0, 3.0]), [0, 2, 3])
    >>> table.tolist(), mask.tolist()
    ([[1.0, 2.0], [3.0, 0.0]], [[True, True], [True, False]])
    """
    torch = pytorch()
    given = offsets if isinstance(offsets, torch.Tensor) else np.array(offsets)  # a copy: Placet's are read-only
    cut = torch.as_tensor(given, device=column.device, dtype=torch.int64)
    if cut.ndim != 1 or len(cut) < 1 or int(cut[0]) != 0 or int(cut[-1]) != len(column) or bool((cut.diff() < 0).any()):
        raise ValueError(f"offsets must rise from 0 to the number of rows, {len(column)}")
    place = torch.arange(int(cut.diff().max()) if len(cut) > 1 else 0, device=column.device)
    mask = place < cut.diff()[:, None]
    row = torch.where(mask, cut[:-1, None] + place, 0)
    if not len(column):
        return column.new_zeros(mask.shape), mask
    return torch.where(mask, column[row], column.new_zeros(())), mask


def _listnet(s: Any, grade: Any, mask: Any) -> Any:
    """Cross-entropy of softmax(grade) and softmax(s)."""
    torch = pytorch()
    p = torch.softmax(_mask_padding(grade, mask), dim=1)
    log_sum = torch.logsumexp(_mask_padding(s, mask), dim=1, keepdim=True)
    several = mask.sum(dim=1) > 1
    return torch.where(several, torch.where(mask, p * (log_sum - s), 0.0).sum(dim=1), 0.0)


def _ranknet(s: Any, grade: Any, mask: Any) -> Any:
    """Sum over i above j of log(1 + e^{-(s_i - s_j)})."""
    torch = pytorch()
    above = (grade[:, :, None] > grade[:, None, :]) & mask[:, :, None] & mask[:, None, :]
    cost = torch.nn.functional.softplus(s[:, None, :] - s[:, :, None])
    return torch.where(above, cost, 0.0).sum(dim=(1, 2))


def _lambdaloss(s: Any, grade: Any, mask: Any, *, k: int | None = None, sigma: float = 1.0, mu: float = 10.0) -> Any:
    """NDCG-Loss2++ with gains 2^r - 1 and discounts 1 / log2(1 + rank); see ``placet.losses.ndcg.lambdaloss``."""
    torch = pytorch()
    with torch.no_grad():
        weight = _swap_weights(s, grade, mask, k, mu)
    above = (grade[:, :, None] > grade[:, None, :]) & mask[:, :, None] & mask[:, None, :]
    cost = torch.nn.functional.softplus(sigma * (s[:, None, :] - s[:, :, None])) / math.log(2.0)
    return torch.where(above, weight * cost, 0.0).sum(dim=(1, 2))


def _swap_weights(s: Any, grade: Any, mask: Any, k: int | None, mu: float) -> Any:
    """(lists, rows, rows): the mean over all orders of tied scores of rho + mu delta, times the difference in gain.

    As in ``placet.kernels.lambdas``, by prefix sums of the discounts over the ranks low..high of a tied block.
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
    gain = torch.where(mask, torch.exp2(grade) - 1.0, 0.0)
    ideal = (torch.sort(gain, dim=1, descending=True).values[:, :cut] * discount[:cut]).sum(dim=1)
    gain = gain / torch.where(ideal > 0, ideal, 1.0)[:, None]
    return weight.clamp(min=0.0) * (gain[:, :, None] - gain[:, None, :]).abs()


def _pmop_fd(s: Any, grade: Any, mask: Any) -> Any:
    """Full decomposition over ordered partitions: sum_k log sum_{R_k} e^s - log sum_{X_k} e^s + log(C_k abs(X_k))."""
    torch = pytorch()
    s, mask, tier, first, size = _sorted_tiers(s, grade, mask)
    left = _log_sums_below(s, mask)
    own = _log_sums_of_tiers(s, mask, tier)
    rows = mask.sum(dim=1, keepdim=True)
    n = (rows - torch.arange(s.shape[1], device=s.device)).clamp(min=1).to(s.dtype)
    log_subsets = n * math.log(2.0) + torch.log1p(-torch.exp2(-n))
    constant = log_subsets - torch.log(n) + torch.log(_at_rows(size, tier).clamp(min=1).to(s.dtype))
    return torch.where(first, left - _at_rows(own, tier) + constant, 0.0).sum(dim=1)


def _pl_partition(s: Any, grade: Any, mask: Any, *, nodes: int = NODES) -> Any:
    """Exact likelihood of the ordered partition, by the trapezoid rule in x = x0 + c sinh(z) around the mode.

    The sum over stages of -log of the integral of exp(x - e^x) prod_i (1 - exp(-a_i e^x)), log a_i = s_i - log sum of
    e^s over the rows below (as in ``placet.kernels.quadrature``, but with a fixed number of nodes).
    """
    torch = pytorch()
    s, mask, tier, first, _ = _sorted_tiers(s, grade, mask)
    left = _log_sums_below(s, mask)
    is_last = tier == _last(tier, mask)
    stage = mask & ~is_last
    start = _start_of_next(tier, mask)
    d = torch.where(stage, s - torch.gather(left, 1, start), 0.0)
    tier = torch.where(stage, tier, s.shape[1] - 1)  # unused by stages: a tier is below each of them
    with torch.no_grad():
        x, log_weight = _nodes(d.detach(), stage, tier, nodes)
    terms = torch.where(stage[:, :, None], _log_factor(d[:, :, None] + _rows_of(x, tier)), 0.0)
    total = x - torch.exp(x) + log_weight + torch.zeros_like(x).scatter_add(1, _wide(tier, nodes), terms)
    log_p = torch.logsumexp(total, dim=2)
    return -torch.where(first & stage, _at_rows(log_p, tier), 0.0).sum(dim=1)


NATIVE: dict[str, Callable[..., Any]] = {
    "pl-partition": _pl_partition,
    "pmop-fd": _pmop_fd,
    "listnet": _listnet,
    "ranknet": _ranknet,
    "lambdaloss": _lambdaloss,
}
"""Losses by name: ``f(scores, grade, mask, **params) -> (lists,)`` of padded tables."""


# --- tiers of padded tables -------------------------------------------------------------------------------------------


def _mask_padding(x: Any, mask: Any) -> Any:
    """x with padded rows set to a value so low that its exponential vanishes."""
    torch = pytorch()
    return torch.where(mask, x, torch.finfo(x.dtype).min / 8)


def _sorted_tiers(s: Any, grade: Any, mask: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Sort rows by descending grade, padding last; return scores, mask, tier of each row, whether a tier starts
    there, and the number of rows in each tier (lists, tiers).
    """
    torch = pytorch()
    order = torch.argsort(_mask_padding(grade, mask), dim=1, descending=True, stable=True)
    s, grade, mask = (torch.gather(x, 1, order) for x in (s, grade, mask))
    first = torch.ones_like(mask)
    first[:, 1:] = (grade[:, 1:] != grade[:, :-1]) | ~mask[:, 1:]
    tier = torch.cumsum(first.to(torch.int64), dim=1) - 1
    size = torch.zeros_like(tier).scatter_add(1, tier, mask.to(torch.int64))
    return s, mask, tier, first & mask, size


def _log_sums_below(s: Any, mask: Any) -> Any:
    """log sum of e^s over each row and all rows after it."""
    torch = pytorch()
    return torch.logcumsumexp(_mask_padding(s, mask).flip(1), dim=1).flip(1)


def _log_sums_of_tiers(s: Any, mask: Any, tier: Any) -> Any:
    """log sum of e^s over the rows of each tier (lists, tiers); 0 for empty tiers."""
    torch = pytorch()
    top = torch.full_like(s, torch.finfo(s.dtype).min).scatter_reduce(1, tier, _mask_padding(s.detach(), mask), "amax")
    shifted = torch.where(mask, s - torch.gather(top, 1, tier), 0.0)
    total = torch.zeros_like(s).scatter_add(1, tier, torch.where(mask, torch.exp(shifted), 0.0))
    some = total > 0
    return torch.where(some, torch.where(some, top, 0.0) + torch.log(torch.where(some, total, 1.0)), 0.0)


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
    """log(1 - exp(-e^u)), about u for very negative u and 0 for large u; finite derivatives everywhere."""
    torch = pytorch()
    inside = u.clamp(-30.0, SATURATED)
    middle = torch.log(-torch.expm1(-torch.exp(inside)))
    return torch.where(u < -30.0, u, middle)


def _slope(y: Any) -> Any:
    """y / (e^y - 1), the derivative of `_log_factor` at e^u = y."""
    torch = pytorch()
    small = y < 1e-8
    safe = torch.where(small, 1.0, y).clamp(max=600.0)
    return torch.where(small, 1.0 - 0.5 * y, safe / torch.expm1(safe))


def _nodes(d: Any, stage: Any, tier: Any, nodes: int) -> tuple[Any, Any]:
    """Nodes x and log weights (lists, tiers, nodes), with range and density adapted to the integrand."""
    torch = pytorch()

    def per_tier(values: Any) -> Any:
        return torch.zeros_like(d).scatter_add(1, tier, torch.where(stage, values, 0.0))

    def log_g(x: Any) -> Any:
        return x - torch.exp(x) + per_tier(_log_factor(d + _at_rows(x, tier)))

    d = d.clamp(-600.0, 600.0)
    n = per_tier(torch.ones_like(d))
    low, high = torch.zeros_like(d), torch.log(n + 1.0)
    for _ in range(30):
        x = 0.5 * (low + high)
        rises = 1.0 - torch.exp(x) + per_tier(_slope(torch.exp(d + _at_rows(x, tier)))) > 0
        low, high = torch.where(rises, x, low), torch.where(rises, high, x)
    mode = 0.5 * (low + high)
    y = torch.exp((d + _at_rows(mode, tier)).clamp(max=600.0))
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
    return x, torch.log(step * width)[:, :, None] + torch.log(torch.cosh(z))
