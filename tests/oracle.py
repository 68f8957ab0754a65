"""The formulas in plain Python: enumeration, 40-digit arithmetic, finite differences.  Slow and obvious.

``VALUES[name](s, grade, **params)`` is the loss of one list of weight 1; ``OUTCOMES[name](n)`` yields the grades of every outcome
of n rows that a likelihood gives probability to.  Each family adds its section below and its lines to the tables at the end.
"""

import itertools
import math
from collections.abc import Callable, Iterator

import mpmath
import numpy as np

# ---- what all families share


def tiers_of(grade) -> list[list[int]]:
    """Rows of each tier, best first."""
    return [[r for r, g in enumerate(grade) if g == level] for level in sorted(set(grade), reverse=True)]


def logsumexp(values) -> float:
    values = list(values)
    top = max(values)
    return top + math.log(sum(math.exp(x - top) for x in values))


def ordered_partitions(n: int) -> Iterator[tuple[int, ...]]:
    """Grades of every ordered partition of n rows: 1, 3, 13, 75, 541, 4683 of them."""
    for grade in itertools.product(range(n), repeat=n):
        if set(grade) == set(range(max(grade) + 1)):
            yield grade


def assignments(shape) -> Iterator[tuple[int, ...]]:
    """Grades of every way to fill tiers of these sizes, best first."""
    grade = [level for level, size in zip(range(len(shape) - 1, -1, -1), shape) for _ in range(size)]
    yield from sorted(set(itertools.permutations(grade)))


def central_difference(f: Callable[[np.ndarray], np.ndarray | float], x: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """Derivative of f along each coordinate of x, stacked on the first axis."""
    rows = []
    for i in range(len(x)):
        e = np.zeros(len(x))
        e[i] = step
        rows.append((np.asarray(f(x + e)) - np.asarray(f(x - e))) / (2 * step))
    return np.array(rows)


# ---- Plackett-Luce


def order_value(s, order, places=None) -> float:
    """- log probability that the rows of ``order`` come first, second, ... (the first ``places`` of them)."""
    places = len(order) if places is None else places
    return sum(logsumexp(s[r] for r in order[j:]) - s[order[j]] for j in range(places))


def listmle(s, grade) -> float:
    """Distinct grades only: ties are broken by a shuffle that the oracle does not know."""
    return order_value(s, [tier[0] for tier in tiers_of(grade)])


def pl_topk(s, grade, k=None) -> float:
    """Every row above the lowest tier in a tier of its own."""
    tiers = tiers_of(grade)
    order = [r for tier in tiers for r in tier]
    return order_value(s, order, len(order) - len(tiers[-1]) if k is None else min(k, len(order)))


def pl_partition(s, grade) -> float:
    """- log of the sum over all permutations that agree with the tiers."""
    orders = itertools.product(*(itertools.permutations(tier) for tier in tiers_of(grade)))
    return -logsumexp(-order_value(s, [r for part in order for r in part]) for order in orders)


def pl_lower_bound(s, grade) -> float:
    """Every item of a tier against all that is left, times the number of orders."""
    tiers = tiers_of(grade)
    value = 0.0
    for k, tier in enumerate(tiers[:-1]):
        left = logsumexp(s[r] for part in tiers[k:] for r in part)
        value += sum(left - s[r] for r in tier) - math.log(math.factorial(len(tier)))
    return value


def attrank(s, grade) -> float:
    """As `listnet`, with e^grade over the rows graded above 0 alone."""
    positive = [g for g in grade if g > 0]
    if not positive:
        return 0.0
    share = sum(math.exp(g) for g in positive)
    total = math.log(sum(math.exp(x) for x in s))
    return sum(math.exp(g) / share * (total - x) for x, g in zip(s, grade) if g > 0)


def listnet(s, grade) -> float:
    total, labels = logsumexp(s), logsumexp(grade)
    return sum(math.exp(g - labels) * (total - x) for x, g in zip(s, grade))


def stage_integral(tied, rest, digits=40):
    """(log P, gradient at the tied, gradient at the rest) of "all tied before all the rest", integrated in 40 digits.

    P = integral over u in (0, 1) of prod_i (1 - u^{a_i}), a_i = e^{w_i} / sum of e^{w_j} over the rest; u = exp(-e^x).
    The trapezoid rule on an analytic function that vanishes at both ends: the step is halved until nothing changes.
    Equal scores are worked out once.
    """
    with mpmath.workdps(digits):
        scores, where, counts = np.unique(np.asarray(tied, float), return_inverse=True, return_counts=True)
        top = max(rest)
        left = mpmath.mpf(top) + mpmath.log(mpmath.fsum(mpmath.exp(mpmath.mpf(w) - top) for w in rest))
        a = [mpmath.exp(mpmath.mpf(w) - left) for w in scores]

        def log_g(x):
            v = mpmath.exp(x)
            return x - v + mpmath.fsum(int(n) * mpmath.log(-mpmath.expm1(-ai * v)) for ai, n in zip(a, counts))

        def phi(y):
            return y / mpmath.expm1(y) if y < 500 else mpmath.mpf(0)

        # log g is concave with its peak in (0, log(n + 1)): thirds of a bracket, then doubling and halving towards the ends.
        low, high = mpmath.mpf(-1), mpmath.log(len(tied) + 1) + 1
        while high - low > mpmath.mpf(10) ** -4:
            one, two = (2 * low + high) / 3, (low + 2 * high) / 3
            low, high = (one, high) if log_g(one) < log_g(two) else (low, two)
        peak, cut, ends = log_g(low), 75, []
        for sign in (-1, 1):
            near, far = mpmath.mpf(0), mpmath.mpf(1) / 64
            while log_g(low + sign * far) > peak - cut:
                near, far = far, 2 * far
            for _ in range(5):
                middle = (near + far) / 2
                near, far = (middle, far) if log_g(low + sign * middle) > peak - cut else (near, middle)
            ends.append(low + sign * far)

        def level(n, first):
            """Sums over nodes first, first + step, ... of n intervals: mass and moments."""
            h = (ends[1] - ends[0]) / n
            xs = [ends[0] + t * h for t in range(first, n, 1 + first)]
            weights = [mpmath.exp(log_g(x) - peak) for x in xs]
            nodes = [(w, mpmath.exp(x)) for w, x in zip(weights, xs) if w > mpmath.mpf(10) ** -25]
            return mpmath.fsum(weights), [mpmath.fsum(w * phi(ai * v) for w, v in nodes) for ai in a]

        n = 64
        mass, moments = level(n, 0)
        while True:
            n *= 2
            more, extra = level(n, 1)
            settled = abs(more / mass - 1) < mpmath.mpf(10) ** -9  # the error of the finer rule is the square
            mass, moments = mass + more, [m + e for m, e in zip(moments, extra)]
            if settled:
                break
        at_tied = np.array([float(m / mass) for m in moments])[where]
        total = mpmath.fsum(int(k) * m / mass for k, m in zip(counts, moments))
        at_rest = [float(-total * mpmath.exp(mpmath.mpf(w) - left)) for w in rest]
        return float(peak + mpmath.log(mass * (ends[1] - ends[0]) / n)), at_tied, np.array(at_rest)


VALUES: dict[str, Callable[..., float]] = {
    "pl-partition": pl_partition,
    "pl-topk": pl_topk,
    "listmle": listmle,
    "pl-lower-bound": pl_lower_bound,
    "attrank": attrank,
    "listnet": listnet,
}

OUTCOMES: dict[str, Callable[[int], Iterator[tuple[int, ...]]]] = {
    "pl-partition": lambda n: assignments([2, 1, n - 3]) if n > 3 else assignments([2, n - 2]),
    "pl-topk": lambda n: assignments([1, 1, n - 2]),
    "listmle": lambda n: itertools.permutations(range(n)),
}

# ---- other families: your section, then ``VALUES |= {...}`` and ``OUTCOMES |= {...}``

# ---- NDCG-consistent surrogates


def ideal_gains(grade, gain=lambda r: 2.0**r - 1.0, discount=lambda place: 1.0 / math.log2(1 + place)) -> list[float]:
    """Gains over the largest discounted sum that any order of the rows gives them."""
    g = [gain(r) for r in grade]
    best = max(sum(x * discount(k + 1) for k, x in enumerate(order)) for order in itertools.permutations(g))
    return [x / best for x in g] if best > 0 else [0.0] * len(g)


def bregman_psi(x, a, b, c, q) -> float:
    entropy = sum(t * math.log(t) - t for t in x if t > 0)
    return a * entropy + b * sum(t * t for t in x) + (c * sum(abs(t) ** q for t in x) ** (2 / q) if c else 0.0)


def bisect(f, low, high, steps=110) -> float:
    """Where the increasing function f becomes positive."""
    for _ in range(steps):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if f(middle) > 0 else (middle, high)
    return 0.5 * (low + high)


def bregman_point(s, a, b, c, q) -> list[float]:
    """x with grad psi(x) = s: for a guess N of the q-norm each x_i by bisection of its size, then N by bisection."""

    def at(norm):
        def slope(log_x):
            x = math.exp(log_x)
            return (a * log_x if a else 0.0) + 2 * b * x + (2 * c * norm * (x / norm) ** (q - 1) if c else 0.0)

        size = [bisect(lambda t, r=r: slope(t) - (r if a else abs(r)), -690.0, 25.0) if a or r else None for r in s]
        return [0.0 if t is None else math.exp(t) if a else math.copysign(math.exp(t), r) for t, r in zip(size, s)]

    if not c:
        return at(1.0)
    if not a and not any(s):
        return [0.0] * len(s)

    def below_norm(log_n):
        """Falls with the norm of x / N; the floor is for a norm that underflows."""
        return -math.log(max(sum((abs(x) / math.exp(log_n)) ** q for x in at(math.exp(log_n))), 1e-300))

    return at(math.exp(bisect(below_norm, -60.0, 25.0, 80)))


def bregman(s, grade, psi=("ce", "square", "qnorm"), alpha=(1.0, 1.0, 1.0), beta=0.01, q=None) -> float:
    """psi(p) - psi(x) - <s, p - x> with grad psi(x) = s, term by term as the divergence is defined."""
    p = ideal_gains(grade)
    if not any(p):
        return 0.0
    q = math.log(len(s)) + 2 if q is None else q
    factor = dict(zip(psi, alpha))
    a, b, c = beta * factor.get("ce", 0.0), factor.get("square", 0.0), factor.get("qnorm", 0.0)
    if not b and not c:
        x = [math.exp(t / a) for t in s]
    elif not a and not c:
        x = [t / (2 * b) for t in s]
    else:
        x = bregman_point(s, a, b, c, q)
    return bregman_psi(p, a, b, c, q) - bregman_psi(x, a, b, c, q) - sum(t * (u - v) for t, u, v in zip(s, p, x))


def cosine(s, grade) -> float:
    p = ideal_gains(grade)
    if not any(p):
        return 0.0
    size = math.hypot(*s)
    along = sum(u * t / size for u, t in zip(p, s)) if size else 0.0  # no direction: the mean over all
    return 0.5 * (sum(u * u for u in p) + 1.0) - along


# ---- StructRank


def edge_margins(s, grade) -> list[float]:
    return [s[i] - s[j] for i in range(len(s)) for j in range(len(s)) if grade[i] > grade[j]]


def structrank(s, grade, w1=1.0, w2=1.0, connections="full") -> float:
    r = edge_margins(s, grade)
    if connections == "none":
        return sum(logsumexp([0.0, -w1 * e]) for e in r)
    return sum(logsumexp([0.0, -w1 * e, -w2 * f]) for e in r for f in r)


VALUES |= {
    "bregman-ce": lambda s, grade, beta=0.01: bregman(s, grade, ("ce",), (1.0,), beta),
    "bregman-square": lambda s, grade: bregman(s, grade, ("square",), (1.0,)),
    "bregman-qnorm": lambda s, grade, q=None: bregman(s, grade, ("qnorm",), (1.0,), q=q),
    "bregman": bregman,
    "cosine": cosine,
    "structrank": structrank,
}


# ---- models over ordered partitions


def subsets(rows) -> Iterator[tuple[int, ...]]:
    """Every non-empty subset."""
    rows = list(rows)
    for m in range(1, len(rows) + 1):
        yield from itertools.combinations(rows, m)


def pmop(s, grade, log_weight) -> float:
    """Stage by stage: - log of the tier's weight over that of all subsets of what is left; ``log_weight(s, subset, stage)``."""
    tiers = tiers_of(grade)
    value = 0.0
    for k, tier in enumerate(tiers):
        left = [r for part in tiers[k:] for r in part]
        value += logsumexp(log_weight(s, subset, k) for subset in subsets(left)) - log_weight(s, tier, k)
    return value


def pmop_fd(s, grade, stage_scale=(1.0,)) -> float:
    """Weight of a subset: the mean of e^{c_k s}."""

    def log_weight(s, subset, k):
        c = stage_scale[min(k, len(stage_scale) - 1)]
        return logsumexp(c * s[r] for r in subset) - math.log(len(subset))

    return pmop(s, grade, log_weight)


def pmop_exact(s, grade) -> float:
    """Weight of a subset: e to the mean of s."""
    return pmop(s, grade, lambda s, subset, k: sum(s[r] for r in subset) / len(subset))


def pmop_backward(s, grade, form="fd", stage_scale=(1.0,)) -> float:
    """The worst tier leaves first, by the weights of -s."""
    s, grade = [-x for x in s], [-g for g in grade]
    return pmop_exact(s, grade) if form == "exact" else pmop_fd(s, grade, stage_scale)


VALUES |= {"pmop-fd": pmop_fd, "pmop-exact": pmop_exact, "pmop-backward": pmop_backward}

OUTCOMES |= dict.fromkeys(("pmop-fd", "pmop-exact", "pmop-backward"), ordered_partitions)


# ---- pairs


def ordered_pairs(grade) -> list[tuple[int, int]]:
    """(i, j) with i graded above j."""
    return [(i, j) for i in range(len(grade)) for j in range(len(grade)) if grade[i] > grade[j]]


def tied_pairs(grade) -> list[tuple[int, int]]:
    return [(i, j) for i, j in itertools.combinations(range(len(grade)), 2) if grade[i] == grade[j]]


def rao_kupper_pair(x, y, tie) -> tuple[float, float, float]:
    """Probabilities of >, =, < as the paper defines them."""
    a, b, theta = mpmath.exp(x), mpmath.exp(y), 1 + mpmath.exp(tie)
    return (
        a / (a + theta * b),
        (theta**2 - 1) * a * b / ((a + theta * b) * (theta * a + b)),
        b / (theta * a + b),
    )


def davidson_pair(x, y, tie) -> tuple[float, float, float]:
    """Probabilities of >, =, < as the paper defines them."""
    a, b, nu = mpmath.exp(x), mpmath.exp(y), mpmath.exp(tie)
    total = a + b + nu * mpmath.sqrt(a * b)
    return a / total, nu * mpmath.sqrt(a * b) / total, b / total


def pairs_with_ties(s, grade, pair, tie) -> float:
    value = -sum(mpmath.log(pair(s[i], s[j], tie)[0]) for i, j in ordered_pairs(grade))
    return float(value - sum(mpmath.log(pair(s[i], s[j], tie)[1]) for i, j in tied_pairs(grade)))


VALUES |= {
    "ranknet": lambda s, grade: sum(math.log(1 + math.exp(s[j] - s[i])) for i, j in ordered_pairs(grade)),
    "ranksvm": lambda s, grade: sum(max(0.0, 1 - (s[i] - s[j])) for i, j in ordered_pairs(grade)),
    "rank-regress": lambda s, grade: sum((1 - (s[i] - s[j])) ** 2 for i, j in ordered_pairs(grade)),
    "rao-kupper": lambda s, grade, tie=0.0: pairs_with_ties(s, grade, rao_kupper_pair, tie),
    "davidson": lambda s, grade, tie=0.0: pairs_with_ties(s, grade, davidson_pair, tie),
}

OUTCOMES |= {
    "ranknet": lambda n: itertools.permutations(range(n)),
    "rao-kupper": ordered_partitions,
    "davidson": ordered_partitions,
}


# ---- losses that aim at NDCG


def discount_of(place) -> float:
    return 1.0 / math.log2(1 + place)


def orders_of(s) -> list[list[int]]:
    """Every order of the rows from the highest score down: several where scores tie."""
    return [
        list(order)
        for order in itertools.permutations(range(len(s)))
        if all(s[a] >= s[b] for a, b in itertools.pairwise(order))
    ]


def gains_at(grade, k) -> list[float]:
    """Gains over the ideal DCG of the top k places."""
    return ideal_gains(grade, discount=lambda place: discount_of(place) if k is None or place <= k else 0.0)


def weighed_pairs(s, grade, weight, k) -> dict[tuple[int, int], float]:
    """(i, j), i graded above j -> the mean over all orders of the scores of weight(place of i, place of j) (g_i - g_j)."""
    g, orders = gains_at(grade, k), orders_of(s)
    out = {}
    for i, j in ordered_pairs(grade):
        places = [(order.index(i) + 1, order.index(j) + 1) for order in orders]
        seen = [weight(a, b) if k is None or min(a, b) <= k else 0.0 for a, b in places]
        out[i, j] = sum(seen) / len(orders) * (g[i] - g[j])
    return out


def swap(a, b) -> float:
    return abs(discount_of(a) - discount_of(b))


def lambdarank(s, grade, k=30, sigma=1.0, norm=False) -> float:
    pairs = weighed_pairs(s, grade, swap, k)
    factor = 1.0
    if norm:
        if max(s) != min(s):
            pairs = {(i, j): w / (0.01 + abs(s[i] - s[j])) for (i, j), w in pairs.items()}
        total = sum(2 * sigma * w / (1 + math.exp(sigma * (s[i] - s[j]))) for (i, j), w in pairs.items())
        factor = math.log2(1 + total) / total if total else 1.0
    return factor * sum(w * math.log(1 + math.exp(sigma * (s[j] - s[i]))) for (i, j), w in pairs.items())


def lambdaloss(s, grade, k=None, sigma=1.0, mu=10.0) -> float:
    def weight(a, b):
        return swap(a, b) + mu * (discount_of(abs(a - b)) - discount_of(abs(a - b) + 1))

    return sum(
        w * math.log2(1 + math.exp(sigma * (s[j] - s[i]))) for (i, j), w in weighed_pairs(s, grade, weight, k).items()
    )


def xendcg(s, grade, gamma=0.5) -> float:
    phi = [2.0**r - gamma for r in grade]
    if not sum(phi):
        return 0.0
    return sum(p / sum(phi) * (logsumexp(s) - x) for p, x in zip(phi, s))


def approx_ndcg(s, grade, temperature=1.0) -> float:
    g = gains_at(grade, None)
    places = [
        1 + sum(1 / (1 + math.exp((x - y) / temperature)) for j, y in enumerate(s) if j != i) for i, x in enumerate(s)
    ]
    return 1 - sum(u * discount_of(place) for u, place in zip(g, places)) if any(g) else 0.0


def neural_ndcg(s, grade, k=None, temperature=1.0, sinkhorn=0) -> float:
    g, n = gains_at(grade, k), len(s)
    if not any(g):
        return 0.0
    P = []
    for place in range(1, n + 1):
        x = [((n + 1 - 2 * place) * y - sum(abs(y - z) for z in s)) / temperature for y in s]
        P.append([math.exp(t - logsumexp(x)) for t in x])
    for _ in range(sinkhorn):
        columns = [sum(row[i] for row in P) for i in range(n)]
        P = [[p / c for p, c in zip(row, columns)] for row in P]
        P = [[p / sum(row) for p in row] for row in P]
    tops = zip(range(1, min(n, k or n) + 1), P)
    return 1 - sum(discount_of(place) * sum(p * u for p, u in zip(row, g)) for place, row in tops)


VALUES |= {
    "lambdarank": lambdarank,
    "lambdaloss": lambdaloss,
    "xendcg": xendcg,
    "approx-ndcg": approx_ndcg,
    "neural-ndcg": neural_ndcg,
}


# ---- stage weights


def dcg_shares(grade) -> list[float]:
    """What each place of the ideal order adds to NDCG, best first."""
    g = sorted(ideal_gains(grade), reverse=True)
    return [u * discount_of(place) for place, u in enumerate(g, 1)]


def weighed_stages(loss):
    """The loss with its stages weighed by their share of the ideal DCG, where asked for.

    A stage costs what the loss of all rows left costs more than that of the rows left after it.
    """

    def value(s, grade, stage_weight=None, **params):
        if stage_weight is None:
            return loss(s, grade, **params)
        shares, tiers, total = dcg_shares(grade), tiers_of(grade), 0.0
        for k, tier in enumerate(tiers):
            left, after = ([r for part in tiers[j:] for r in part] for j in (k, k + 1))
            costs = [
                loss([s[r] for r in rows], [grade[r] for r in rows], **params) if rows else 0.0
                for rows in (left, after)
            ]
            total += sum(shares[: len(tier)]) * (costs[0] - costs[1])
            shares = shares[len(tier) :]
        return total

    return value


VALUES |= {name: weighed_stages(VALUES[name]) for name in ("pl-partition", "pl-topk", "pmop-fd")}
