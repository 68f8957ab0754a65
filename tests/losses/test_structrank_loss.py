"""StructRank's loss: RankNet as its disconnected case, random connections, large scores, learned weights, memory."""

import math
import resource

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from strategies import lists_and_scores

from placet import threads
from placet.data import Lists
from placet.kernels.losses import edge_pairs, structrank as kernels
from placet.losses import LOSSES

structrank = LOSSES["structrank"]
examples = settings(max_examples=30)
jit = pytest.mark.jit  # partners are numbered in arithmetic modulo 2^64, which NumPy warns of


@examples
@given(lists_and_scores())
def test_disconnected_is_ranknet(case):
    """With w1 = 1 the sum over edges of log(1 + e^-(s_i - s_j)), without any scaling by the number of edges."""
    s, lists = case
    value, grad = structrank(s, lists, connections="none")
    expected, slope = 0.0, np.zeros(len(s))
    for w, lo, hi in zip(lists.weight, lists.offsets, lists.offsets[1:]):
        for i in range(lo, hi):
            for j in range(lo, hi):
                if lists.grade[i] > lists.grade[j]:
                    expected += w * math.log1p(math.exp(s[j] - s[i]))
                    slope[i] -= w / (1 + math.exp(s[i] - s[j]))
                    slope[j] += w / (1 + math.exp(s[i] - s[j]))
    assert value == pytest.approx(expected, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(grad, slope, rtol=1e-11, atol=1e-12)


@jit
@examples
@given(lists_and_scores())
def test_disconnected_is_the_ranknet_of_the_table(case):
    value, grad = structrank(*case, connections="none")
    ranknet_value, ranknet_grad = LOSSES["ranknet"](*case)
    assert value == pytest.approx(ranknet_value, rel=1e-11, abs=1e-12)
    np.testing.assert_allclose(grad, ranknet_grad, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "params",
    [{}, *(pytest.param({"connections": k}, marks=jit) for k in (3, 0.4)), {"connections": "none"}],
)
@examples
@given(case=lists_and_scores())
def test_derivatives_in_scores_and_weights(params, case):
    s, lists = case
    at = {"w1": 0.7, "w2": 1.6}
    _, grad, slope = structrank(s, lists, **at, **params, parameter_gradient=True)
    expected = oracle.central_difference(lambda x: structrank(x, lists, **at, **params)[0], s)
    np.testing.assert_allclose(grad, expected, rtol=1e-6, atol=1e-6)
    for name in at:
        up, down = (structrank(s, lists, **at | {name: at[name] + e}, **params)[0] for e in (1e-5, -1e-5))
        assert slope[name] == pytest.approx((up - down) / 2e-5, rel=1e-6, abs=1e-6)
    hessian = oracle.central_difference(lambda x: structrank(x, lists, **at, **params)[1], s)
    diagonal = np.diag(hessian) if len(s) else np.zeros(0)
    curvature = LOSSES["structrank"].curvature(s, lists, **at, **params)
    if params.get("connections") == "none":
        np.testing.assert_allclose(curvature, diagonal, rtol=1e-6, atol=1e-6)
    else:
        assert (curvature >= diagonal - 1e-5).all()
        assert (curvature[np.abs(grad) > 1e-9] > 0).all()


@pytest.mark.parametrize("scale", [1.0, 60.0, 90.0, 300.0, 20_000.0])
def test_value_on_both_sides_of_the_plain_path(scale):
    """Exponents below and above the bound where 1 + e^a + e^b is computed as it stands."""
    rng = np.random.default_rng(1)
    s, grade = scale * rng.uniform(-1, 1, 9), rng.integers(0, 3, 9)
    lists = Lists(grade, [0, 9])
    value, grad = structrank(s, lists, w1=1.3, w2=0.8)
    assert value == pytest.approx(oracle.structrank(s.tolist(), grade.tolist(), 1.3, 0.8), rel=1e-12)
    assert grad.sum() == pytest.approx(0.0, abs=1e-9 * np.abs(grad).max())
    moved = structrank(s + 1e-4 * scale * np.arange(9), lists, w1=1.3, w2=0.8)[0]
    back = structrank(s - 1e-4 * scale * np.arange(9), lists, w1=1.3, w2=0.8)[0]
    if scale <= 60:
        assert grad @ np.arange(9) == pytest.approx((moved - back) / (2e-4 * scale), rel=1e-4)


def test_the_two_paths_agree():
    rng = np.random.default_rng(4)
    a, b = rng.normal(0, 40, 70), rng.normal(0, 40, 70)
    plain = np.zeros(70), np.zeros(70)
    careful = np.zeros(70), np.zeros(70)
    value = edge_pairs.plain_sums(a, b, *plain)
    other = 0.0
    for e in range(70):
        for f in range(70):
            v, pa, pb = edge_pairs.pair_term(a[e], b[f])
            other += v
            careful[0][e] += pa
            careful[1][f] += pb
    assert value == pytest.approx(other, rel=1e-13)
    np.testing.assert_allclose(plain, careful, rtol=1e-12)


@jit
@pytest.mark.parametrize("scale", [0.1, 1.0, 8.0, 30.0])
def test_nodes_give_the_sums_of_all_pairs_to_rounding(scale):
    """Against extended precision; a derivative is right to rounding of the largest one."""
    n = 800
    rng = np.random.default_rng(5)
    a = np.clip(scale * rng.normal(1, 1, n), -190, 190)
    b = np.clip(-0.7 * scale * rng.normal(1, 1, n), -190, 190)
    ea, eb = np.exp(a.astype(np.longdouble))[:, None], np.exp(b.astype(np.longdouble))
    total = 1 + ea + eb
    ga, gb = np.zeros(n), np.zeros(n)
    value, _ = edge_pairs.near_sums(a, b, np.inf, ga, gb)
    assert value == pytest.approx(float(np.log(total).sum()), rel=2e-13)
    np.testing.assert_allclose(ga, (ea / total).sum(axis=1).astype(float), rtol=1e-12, atol=1e-13 * ga.max())
    np.testing.assert_allclose(gb, (eb / total).sum(axis=0).astype(float), rtol=1e-12, atol=1e-13 * gb.max())
    assert (ga >= 0).all()


@jit
def test_many_pairs_go_through_nodes():
    rng = np.random.default_rng(8)
    a, b = rng.normal(size=2000), rng.normal(size=2000)
    results = []
    through_nodes = lambda a, b, ga, gb: edge_pairs.near_sums(a, b, np.inf, ga, gb)[0]  # noqa: E731
    for sums in (edge_pairs.all_pairs, through_nodes, edge_pairs.plain_sums):
        ga, gb = np.zeros(2000), np.zeros(2000)
        results.append((sums(a, b, ga, gb), ga.tobytes(), gb.tobytes()))
    assert results[0] == results[1]
    assert results[1] != results[2]
    assert results[1][0] == pytest.approx(results[2][0], rel=1e-13)


def spread(scale, n, seed=3):
    """Margins of a list times a weight: most in a bulk, some far out, both signs, some equal."""
    rng = np.random.default_rng(seed)
    r = scale * np.concatenate([rng.normal(size=n - n // 5), rng.uniform(-1, 1, n // 5)])
    r[::7] = r[0]
    return -r, -0.3 * r


@jit
@pytest.mark.parametrize("scale", [1.0, 30.0, 500.0, 1e5, 1e12])
def test_pairs_at_any_size_are_summed_to_rounding(scale):
    a, b = spread(scale, 300)
    ga, gb = np.zeros(300), np.zeros(300)
    value, _ = edge_pairs.near_sums(a, b, np.inf, ga, gb)
    long_a, long_b = a.astype(np.longdouble)[:, None], b.astype(np.longdouble)
    top = np.maximum(np.maximum(long_a, long_b), 0)
    total = np.exp(-top) + np.exp(long_a - top) + np.exp(long_b - top)
    assert value == pytest.approx(float((top + np.log(total)).sum()), rel=1e-12)
    expected = [(np.exp(x - top) / total).sum(axis=k).astype(float) for k, x in ((1, long_a), (0, long_b))]
    np.testing.assert_allclose(ga, expected[0], rtol=1e-11, atol=1e-12 * ga.max())
    np.testing.assert_allclose(gb, expected[1], rtol=1e-11, atol=1e-12 * gb.max())


@jit
@pytest.mark.parametrize("scale", [3.0, 100.0, 1e3, 1e5, 1e9])
def test_large_margins_do_not_bring_back_the_square_of_the_edges(scale):
    """Work is counted, not timed: pairs of points, of which 30,000 edges would have 9e8 one by one."""
    work = []
    for n in (7_500, 30_000):
        a, b = spread(scale, n)
        value, pairs = edge_pairs.near_sums(a, b, np.inf, np.zeros(n), np.zeros(n))
        assert np.isfinite(value)
        assert pairs <= 2 * edge_pairs.REACH * edge_pairs.NODES * n + edge_pairs.NODES * n
        assert edge_pairs.all_pairs(a, b, np.zeros(n), np.zeros(n)) == value  # this is the way that is taken
        work.append(pairs)
    assert work[1] <= max(6 * work[0], 10 * n)  # four times the edges: 16 times the work if all pairs were met
    assert work[1] < 3e7


@jit
def test_random_connections_are_the_ones_their_seed_names():
    rng = np.random.default_rng(2)
    s, grade = rng.normal(size=8), np.sort(rng.integers(0, 3, 8))[::-1].astype(float)
    r = oracle.edge_margins(s.tolist(), grade.tolist())
    k, n = 4, len(r)
    seed = np.random.default_rng(11).integers(2**63, size=1, dtype=np.uint64)[0]
    partners = [[kernels.partner(seed, e * k + c, n) for c in range(k)] for e in range(n)]
    assert {f for row in partners for f in row} <= set(range(n))
    expected = sum(oracle.logsumexp([0.0, -r[e], -2 * r[f]]) for e in range(n) for f in partners[e])
    assert structrank(s, Lists(grade, [0, 8]), w2=2.0, connections=k, random_state=11)[0] == pytest.approx(expected)


@jit
def test_a_share_of_the_edges_draws_both_ends_of_each_pair():
    rng = np.random.default_rng(2)
    s, grade = rng.normal(size=9), np.sort(rng.integers(0, 4, 9))[::-1].astype(float)
    r = oracle.edge_margins(s.tolist(), grade.tolist())
    n = len(r)
    seed = np.random.default_rng(11).integers(2**63, size=1, dtype=np.uint64)[0]
    draws = [(kernels.partner(seed, 2 * c, n), kernels.partner(seed, 2 * c + 1, n)) for c in range(round(0.7 * n))]
    expected = sum(oracle.logsumexp([0.0, -r[e], -2 * r[f]]) for e, f in draws)
    assert structrank(s, Lists(grade, [0, 9]), w2=2.0, connections=0.7, random_state=11)[0] == pytest.approx(expected)
    least = structrank(s, Lists(grade, [0, 9]), w2=2.0, connections=1e-9, random_state=11)[0]
    assert least == pytest.approx(oracle.logsumexp([0.0, -r[draws[0][0]], -2 * r[draws[0][1]]]))


@jit
def test_a_share_of_the_edges_needs_memory_for_rows_alone():
    """One list of 20,000 rows has 10^8 edges, 0.8 GB for one number each."""
    n = 20_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    value, _ = structrank(np.zeros(n), Lists(np.arange(n) % 2, [0, n]), connections=1e-4)
    assert value == pytest.approx(1e4 * math.log(3))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes


@jit
@pytest.mark.parametrize("k", [5, 0.3])
def test_random_connections_average_to_the_full_network(k):
    rng = np.random.default_rng(3)
    s, grade = rng.normal(size=12), rng.integers(0, 3, 12)
    lists = Lists(grade, [0, 12])
    n = len(oracle.edge_margins(s.tolist(), grade.tolist()))
    full, full_grad = structrank(s, lists, w1=0.5)
    draws = [structrank(s, lists, w1=0.5, connections=k, random_state=seed) for seed in range(400)]
    drawn = round(k * n)
    values = np.array([v for v, _ in draws]) * n * n / drawn
    assert abs(values.mean() - full) < 4 * values.std() / 20
    grads = np.array([g for _, g in draws]) * n * n / drawn
    assert (np.abs(grads.mean(axis=0) - full_grad) < 5 * grads.std(axis=0) / 20 + 1e-9).all()
    assert values.std() > 0


@jit
def test_partners_are_uniform():
    seeds = np.random.default_rng(0).integers(2**63, size=40, dtype=np.uint64)
    draws = np.array([kernels.partner(seed, c, 10) for seed in seeds for c in range(500)])
    counts = np.bincount(draws, minlength=10)
    assert ((counts - 2000) ** 2 / 2000).sum() < 27.9  # chi-square with 9 degrees of freedom, 1 in 1000


@jit
def test_same_seed_same_bytes_whatever_the_threads():
    rng = np.random.default_rng(6)
    sizes = rng.integers(0, 30, 1500)
    lists = Lists(rng.integers(0, 3, sizes.sum()), np.append(0, np.cumsum(sizes)))
    s, before, results = rng.normal(size=sizes.sum()), threads.get_threads(), []
    try:
        for n in (1, 2, 1):
            threads.set_threads(n)
            value, grad, slope = structrank(s, lists, connections=2, random_state=5, parameter_gradient=True)
            results.append((value, grad.tobytes(), slope["w1"], slope["w2"]))
    finally:
        threads.set_threads(before)
    assert results[0] == results[1] == results[2]
    assert structrank(s, lists, connections=2, random_state=6)[0] != results[0][0]


@jit
def test_fully_connected_never_stores_pairs_of_edges():
    """15,625 edges: their pairs would take 2 GB."""
    n = 250
    lists = Lists(np.arange(n) % 2, [0, n])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    value, _ = structrank(np.zeros(n), lists)
    assert value == pytest.approx((n * n / 4) ** 2 * math.log(3))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes


@pytest.mark.parametrize("name", ["w1", "w2"])
@pytest.mark.parametrize("w", [-0.1, math.nan, math.inf])
def test_weights_of_a_distribution_are_not_negative(name, w):
    with pytest.raises(ValueError, match=f"{name} must be a finite number of at least 0"):
        structrank([1.0, 2.0], Lists([1, 0], [0, 2]), **{name: w})


@pytest.mark.parametrize("connections", ["all", 0, -1, 1.5, None, np.nan, True])
def test_connections_are_checked(connections):
    with pytest.raises(
        ValueError, match=r"connections (of the loss )?must be ('full', 'none', a whole number|text or a)"
    ):
        structrank([1.0, 2.0], Lists([1, 0], [0, 2]), connections=connections)


@pytest.mark.parametrize("where", [slice(3, 4), slice(None)], ids=["one", "all"])
def test_a_margin_that_is_no_number_gives_no_number(where):
    a = np.random.default_rng(0).normal(size=400)
    a[where] = np.nan
    value = edge_pairs.all_pairs(a, a.copy(), np.zeros(400), np.zeros(400))
    assert np.isnan(value)
