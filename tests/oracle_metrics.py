"""Metrics in plain Python: the formula for one order of one list, and the mean over every way to break ties."""

import math
from itertools import permutations, product


def orders(s):
    """Every order of the retrieved rows (s > -inf) by descending score, tied rows in all their orders."""
    levels = sorted({x for x in s if x > -math.inf}, reverse=True)
    blocks = [[i for i, x in enumerate(s) if x == level] for level in levels]
    return [[i for block in choice for i in block] for choice in product(*(permutations(b) for b in blocks))]


def over_ties(value):
    """Make a function of (order, grade, ...) a function of (s, grade, ...): its mean over the orders of tied rows."""

    def mean(s, *args, **params):
        values = [value(order, *args, **params) for order in orders(s)]
        return sum(values) / len(values)

    return mean


def dcg(gains, discount):
    return sum(g * discount(i) for i, g in enumerate(gains, start=1))


def log2_discount(i):
    return 1 / math.log2(1 + i)


@over_ties
def ndcg(order, grade, k=None, gain=lambda r: 2**r - 1, discount=log2_discount):
    best = dcg(sorted((gain(r) for r in grade), reverse=True)[:k], discount)
    return dcg([gain(grade[i]) for i in order][:k], discount) / best if best > 0 else math.nan


@over_ties
def average_precision(order, grade, k=None, relevant=lambda r: r > 0):
    total = sum(relevant(r) for r in grade)
    hits, value = 0, 0.0
    for place, i in enumerate(order[:k], start=1):
        if relevant(grade[i]):
            hits += 1
            value += hits / place
    return value / total if total else math.nan


@over_ties
def precision(order, grade, k=None, relevant=lambda r: r > 0):
    if not any(relevant(r) for r in grade):
        return math.nan
    places = len(order) if k is None else k
    return sum(relevant(grade[i]) for i in order[:k]) / places if places else 0.0


@over_ties
def recall(order, grade, k=None, relevant=lambda r: r > 0):
    total = sum(relevant(r) for r in grade)
    return sum(relevant(grade[i]) for i in order[:k]) / total if total else math.nan


@over_ties
def mrr(order, grade, k=None, relevant=lambda r: r > 0):
    if not any(relevant(r) for r in grade):
        return math.nan
    return next((1 / place for place, i in enumerate(order[:k], start=1) if relevant(grade[i])), 0.0)


@over_ties
def err(order, grade, k=None, max_grade=4):
    if not any(r > 0 for r in grade):
        return math.nan
    value, reading = 0.0, 1.0
    for place, i in enumerate(order[:k], start=1):
        v = (2 ** grade[i] - 1) / 2**max_grade
        value += reading * v / place
        reading *= 1 - v
    return value


@over_ties
def psp_sum(order, grade, k, propensity):
    return sum((grade[i] > 0) / propensity[i] for i in order[:k]) / k


@over_ties
def psdcg_share(order, grade, k, propensity):
    true = sum(r > 0 for r in grade)
    flat = dcg([1.0] * min(k, true), log2_discount)
    return dcg([(grade[i] > 0) / propensity[i] for i in order[:k]], log2_discount) / flat if true else 0.0


def novel_gains(order, judged, alpha):
    """Gain at each place: each subtopic is worth 1 - alpha times less each time it has been seen."""
    worth = [1.0] * (len(judged[0]) if judged else 0)
    gains = []
    for i in order:
        gains.append(sum(w for w, j in zip(worth, judged[i]) if j))
        worth = [w * (1 - alpha) if j else w for w, j in zip(worth, judged[i])]
    return gains


def greedy_order(judged, alpha):
    left, order = list(range(len(judged))), []
    while left:
        best = max(left, key=lambda i: (novel_gains([*order, i], judged, alpha)[-1], judged[i]))
        order.append(best)
        left.remove(best)
    return order


@over_ties
def alpha_ndcg(order, judged, k=None, alpha=0.5):
    best = dcg(novel_gains(greedy_order(judged, alpha), judged, alpha)[:k], log2_discount)
    return dcg(novel_gains(order, judged, alpha)[:k], log2_discount) / best if best > 0 else math.nan


@over_ties
def err_ia(order, judged, k=None, alpha=0.5):
    topics = sum(any(row[t] for row in judged) for t in range(len(judged[0]))) if judged else 0
    if topics == 0:
        return math.nan
    places = len(judged) if k is None else k
    full = topics * sum((1 - alpha) ** (i - 1) / i for i in range(1, places + 1))
    return sum(g / i for i, g in enumerate(novel_gains(order, judged, alpha)[:k], start=1)) / full


def kendall_tau(s, grade):
    signs = [
        ((s[i] > s[j]) - (s[i] < s[j]), (grade[i] > grade[j]) - (grade[i] < grade[j]))
        for i in range(len(s))
        for j in range(i)
    ]
    a, b = sum(x * x for x, _ in signs), sum(y * y for _, y in signs)
    return sum(x * y for x, y in signs) / math.sqrt(a * b) if a * b else math.nan


def mean_ranks(x):
    return [sum(y > v for y in x) + (sum(y == v for y in x) + 1) / 2 for v in x]


def spearman_rho(s, grade):
    a, b = mean_ranks(s), mean_ranks(grade)
    m = (len(a) + 1) / 2
    xx, yy = sum((x - m) ** 2 for x in a), sum((y - m) ** 2 for y in b)
    return sum((x - m) * (y - m) for x, y in zip(a, b)) / math.sqrt(xx * yy) if xx * yy else math.nan


def footrule(s, grade):
    return sum(abs(x - y) for x, y in zip(mean_ranks(s), mean_ranks(grade)))


def rbo_of_orders(a, b, k, p):
    agreement = [len(set(a[:d]) & set(b[:d])) / d for d in range(1, min(k, len(a)) + 1)]
    series = sum(x * p**d for d, x in enumerate(agreement, start=1))
    return agreement[-1] * p ** len(agreement) + (1 - p) / p * series


def rbo(s, grade, k=None, p=0.9):
    if not s:
        return math.nan
    values = [rbo_of_orders(a, b, k or len(s), p) for a in orders(s) for b in orders(grade)]
    return sum(values) / len(values)
