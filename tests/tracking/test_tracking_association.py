"""The likelihood of ranked signals against every association written out, against integrals, and against simulation."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import expon

from placet.kernels.tracking import association
from placet.tracking import Arrivals, Beacons, SignalModel, min_factor_inference
from placet.tracking.minfactor import factor_messages
from placet.tracking.observation_model import association_probabilities, evidence, log_likelihood

WINDOW = (0.0, 6.0)


def associations(n_signals, n_sources):
    """Every way to give each signal a source of its own or none (clutter)."""
    for choice in itertools.product(range(-1, n_sources), repeat=n_signals):
        used = [i for i in choice if i >= 0]
        if len(set(used)) == len(used):
            yield choice


def normal_pdf(x, mean, sigma):
    return math.exp(-0.5 * ((x - mean) / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi))


def normal_cdf(x, mean, sigma):
    return 0.5 * math.erfc((mean - x) / (sigma * math.sqrt(2)))


def oracle(mean, sigma, detection, rate, time, capacity, ranked=True, label=None):
    """The formula of ``placet.tracking.observation_model``, association by association: density and P(signal j from source i)."""
    low, high = WINDOW
    cut = time[-1] if len(time) == capacity else high
    total, share = 0.0, np.zeros((len(time), len(mean)))
    for choice in associations(len(time), len(mean)):
        if label is not None and any(want != -1 and got != max(want, -1) for got, want in zip(choice, label)):
            continue
        value = math.exp(-rate * (cut - low) / (high - low))
        for j, i in enumerate(choice):
            if i < 0:
                value *= rate / (high - low)
            else:
                value *= detection[i] * normal_pdf(time[j], mean[i], sigma[i])
        for i in set(range(len(mean))) - set(choice):
            outside = normal_cdf(low, mean[i], sigma[i]) + normal_cdf(-cut, -mean[i], sigma[i])
            value *= 1 - detection[i] + (detection[i] * outside if ranked else 0.0)
        total += value
        for j, i in enumerate(choice):
            if i >= 0:
                share[j, i] += value
    return total, share / total if total > 0 else share


def agrees(case, **options):
    """Whether value and marginals are the oracle's, as far as that can be trusted (it multiplies plain numbers)."""
    expected, probability = oracle(*case, **options)
    value, share = density(*case, **options)
    if expected < 1e-250:
        assert value < -500
        return
    assert value == pytest.approx(math.log(expected), abs=1e-9)
    np.testing.assert_allclose(share, probability, atol=1e-9)


def prepared(mean, sigma, detection, rate, time, capacity, **options):
    """One step of the library's own model in which source i is at distance mean_i from the origin."""
    label = options.pop("label", None)
    window = options.pop("window", WINDOW)
    beacons = Beacons([[m, 0.001 * i] for i, m in enumerate(mean)], speed=1.0)
    model = SignalModel(np.asarray(detection), rate, np.asarray(sigma), **options)
    source = None if label is None else np.asarray(label)
    [item] = evidence(model, beacons, Arrivals.from_lists([time], capacity=capacity, window=window, source=source))
    return item


def density(mean, sigma, detection, rate, time, capacity, **options):
    item = prepared(mean, sigma, detection, rate, time, capacity, **options)
    # The tiny second coordinate only keeps the beacons apart; the means are passed on as they are.
    far = np.asarray(mean, dtype=np.float64)[None]
    out = np.zeros(1)
    association.log_likelihood(far, item.step, item.exact, out)
    share = np.empty((1, len(time), len(mean)))
    association.log_sums(far, item.step, item.exact, np.empty(1), share)
    return out[0], share[0]


@st.composite
def cases(draw, max_signals=3, max_sources=4):
    s = draw(st.integers(1, max_sources))
    n = draw(st.integers(0, max_signals))
    number = st.floats(0.05, 5.9)
    mean = draw(st.lists(number, min_size=s, max_size=s))
    time = sorted(draw(st.lists(number, min_size=n, max_size=n)))
    sigma = draw(st.lists(st.floats(0.1, 2.0), min_size=s, max_size=s))
    detection = draw(st.lists(st.sampled_from([0.0, 0.2, 0.7, 0.95, 1.0]), min_size=s, max_size=s))
    rate = draw(st.sampled_from([0.1, 1.0, 4.0]))
    return mean, sigma, detection, rate, time, max(1, n + draw(st.integers(0, 1)))


@settings(max_examples=150)
@given(cases(), st.booleans())
def test_exact_is_the_sum_over_all_associations(case, ranked):
    agrees(case, ranked=ranked)


@settings(max_examples=60)
@given(cases(), st.data())
def test_labels_restrict_the_sum(case, data):
    mean, _, detection, _, time, _ = case
    sources = [i for i in range(len(mean)) if detection[i] > 0]
    label = [data.draw(st.sampled_from([-1, -2, *sources])) for _ in time]
    known = [i for i in label if i >= 0]
    if len(set(known)) < len(known):
        label = [-1] * len(time)
    agrees(case, label=label)


def test_without_clutter_and_far_from_the_data_it_stays_a_logarithm():
    mean, sigma, detection, time = [1.0, 2.0, 3.0], [0.001] * 3, [1.0] * 3, [1.5, 2.5]
    value, share = density(mean, sigma, detection, 0.0, time, 2)
    # Sources 0 and 1 are each off by 500 standard deviations and source 2 is late; all else is less likely by far.
    assert value == pytest.approx(-250_000 - 2 * math.log(0.001 * math.sqrt(2 * math.pi)))
    assert np.isfinite(share).all()
    assert share.sum(axis=1) == pytest.approx(1)


def test_what_cannot_happen_has_no_likelihood():
    assert density([1.0], [0.1], [0.0], 0.0, [1.0], 1)[0] == -np.inf
    with pytest.raises(ValueError, match="2 signals but only 1 beacons"):
        density([1.0], [0.1], [0.5], 0.0, [1.0, 2.0], 2)


def gauss(n, low, high):
    node, weight = np.polynomial.legendre.leggauss(n)
    return low + (node + 1) / 2 * (high - low), weight / 2 * (high - low)


@pytest.mark.parametrize("keep", ["earliest", "strongest"])
@pytest.mark.parametrize("clutter", [None, expon(scale=2.0)])
def test_the_likelihood_is_a_density(keep, clutter):
    """Summed over 0, 1 and 2 recorded signals and integrated over their times it is 1."""
    case = [2.0, 3.5, 5.8], [0.4, 0.5, 0.3], [0.7, 0.9, 0.5], 0.8
    node, weight = gauss(60, *WINDOW)
    options = {"keep": keep, "clutter": clutter}
    total = math.exp(density(*case, [], 2, **options)[0])
    total += sum(w * math.exp(density(*case, [t], 2, **options)[0]) for t, w in zip(node, weight))
    inner, inner_weight = gauss(32, 0, 1)
    item = prepared(*case, [1.0, 2.0], 2, **options)
    for t, w in zip(node, weight):  # second signal at t, first before it
        for u, v in zip(inner, inner_weight):
            time = np.array([u * t, t])
            step = item.step._replace(time=time)
            fresh = prepared(*case, list(time), 2, **options).step if keep == "earliest" else None
            rate = 0.8 * (clutter.pdf(time) / (clutter.cdf(6) - clutter.cdf(0)) if clutter else np.full(2, 1 / 6))
            step = fresh if fresh is not None else step._replace(clutter=rate)
            out = np.zeros(1)
            association.log_likelihood(np.array([case[0]]), step, True, out)
            total += w * v * t * math.exp(out[0])
    assert total == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("keep", ["earliest", "strongest"])
def test_the_likelihood_agrees_with_simulation(keep):
    """P(the store of 1 is full and its signal comes before 2.5), by integral and by drawing."""
    from placet.simulate.signals import ranked_signals

    beacons = Beacons([[2.0, 0.0], [3.5, 0.0]], speed=1.0)
    n = 20_000
    drawn = ranked_signals(
        beacons, np.zeros((n, 2)), capacity=1, detection=[0.7, 0.9], clutter_rate=0.8, sigma=[0.4, 0.5], window=WINDOW,
        keep=keep, random_state=5,
    )  # fmt: skip
    before = drawn.arrivals.time < 2.5
    case = [2.0, 3.5], [0.4, 0.5], [0.7, 0.9], 0.8
    node, weight = gauss(60, 0, 2.5)
    chance = clutter = 0.0
    for t, w in zip(node, weight):
        value, share = density(*case, [t], 1, keep=keep)
        chance += w * math.exp(value)
        clutter += w * math.exp(value) * (1 - share.sum())
    assert before.sum() / n == pytest.approx(chance, abs=4 * math.sqrt(chance / n))
    assert (before & (drawn.source == -2)).sum() / n == pytest.approx(clutter, abs=4 * math.sqrt(clutter / n))


def test_the_baseline_does_not_see_who_should_have_been_first():
    """A source expected long before the recorded signals counts against a position only in the ranked model."""
    early, late = [1.0, 4.0], [5.9, 4.0]
    case = [0.1, 0.1], [0.9, 0.9], 1.0, [4.0], 1
    ranked = [density(mean, *case)[0] for mean in (early, late)]
    plain = [density(mean, *case, ranked=False)[0] for mean in (early, late)]
    assert ranked[0] < ranked[1] - 1
    assert plain[0] == pytest.approx(plain[1], abs=1e-6)


def test_confidence_moves_the_odds_of_clutter():
    beacons = Beacons([[1.0, 0.0], [5.0, 0.0]], speed=1.0)
    sure, unsure = (
        Arrivals.from_lists([[1.2]], capacity=1, window=WINDOW, confidence=np.array([c])) for c in (0.9, 0.1)
    )
    model = SignalModel(0.8, 2.0, 0.3, confidence_ratio=lambda c: (1 - c) / c)
    probability = [
        association_probabilities(evidence(model, beacons, a)[0], np.zeros((1, 2)), "plane")[0, 0, 0]
        for a in (sure, unsure)
    ]
    plain = association_probabilities(
        evidence(SignalModel(0.8, 2.0, 0.3), beacons, sure)[0], np.zeros((1, 2)), "plane"
    )[0, 0, 0]
    odds = np.array([p / (1 - p) for p in (*probability, plain)])
    assert odds[0] == pytest.approx(9 * odds[2])
    assert odds[1] == pytest.approx(odds[2] / 9)


def test_bethe_is_exact_on_forests_and_close_elsewhere():
    rng = np.random.default_rng(2)
    worst, worst_share = 0.0, 0.0
    for trial in range(60):
        s, n = 6, 4
        apart = trial < 20
        mean = np.arange(s) * 0.9 + 0.5 if apart else rng.uniform(0.5, 5.5, s)
        sigma = [0.02] * s if apart else [0.2] * s
        time = np.sort(mean[rng.permutation(s)[:n]] + 0.02 * rng.standard_normal(n))
        case = mean, sigma, [0.7] * s, 2.0, list(time), n
        exact, share = density(*case, method="exact")
        close, close_share = density(*case, method="bethe")
        if apart:  # each signal has one possible source: a forest
            assert close == pytest.approx(exact, abs=1e-8)
            np.testing.assert_allclose(close_share, share, atol=1e-8)
        assert close <= exact + 1e-9  # the Bethe free energy bounds a permanent from below
        worst, worst_share = max(worst, exact - close), max(worst_share, np.abs(share - close_share).max())
    assert worst < 0.35
    assert worst_share < 0.15


def test_bethe_takes_over_above_ten_signals_and_agrees_with_exact_there():
    rng = np.random.default_rng(3)
    mean = rng.uniform(0.5, 5.5, 14)
    time = np.sort(np.concatenate([mean[:7] + 0.1 * rng.standard_normal(7), rng.uniform(0, 6, 5)]))
    case = mean, [0.1] * 14, [0.7] * 14, 5.0, list(time), 12
    assert not prepared(*case).exact
    assert prepared(*case, method="exact").exact
    close, share = density(*case)
    exact, exact_share = density(*case, method="exact")
    assert close == pytest.approx(exact, abs=0.5)
    np.testing.assert_allclose(share, exact_share, atol=0.15)
    assert (share.sum(axis=1) <= 1 + 1e-9).all()


def test_bethe_without_clutter_matches_every_signal():
    close, share = density([1.0, 2.0, 3.0], [0.1] * 3, [0.8] * 3, 0.0, [1.05, 1.95], 2, method="bethe")
    exact, _ = density([1.0, 2.0, 3.0], [0.1] * 3, [0.8] * 3, 0.0, [1.05, 1.95], 2)
    assert close == pytest.approx(exact, abs=1e-6)
    assert share.sum(axis=1) == pytest.approx([1, 1])


def test_bethe_integrates_over_strengths_as_the_exact_sum_does():
    case = [1.0, 3.0, 5.0], [0.05] * 3, [0.7] * 3, 2.0, [1.01, 3.02], 2
    close, share = density(*case, keep="strongest", method="bethe")
    exact, exact_share = density(*case, keep="strongest")
    assert close == pytest.approx(exact, abs=1e-8)
    np.testing.assert_allclose(share, exact_share, atol=1e-8)


def min_factor(k, time, states, clutter):
    """Factor k (from 0) of ``placet.tracking.minfactor`` by its definition, up to the density of a source at T_k.

    ``states``: where each source is, as a number to compare with 2 k + 1 for T_k: even between the times, odd at one.
    """
    here = 2 * k + 1
    before = k - sum(clutter[:k])
    if clutter[k]:
        return here not in states and sum(t < here for t in states) == before
    return sorted(states)[before : before + 1] == [here] and sum(t == here for t in states) == 1


@pytest.mark.parametrize("k", [0, 1, 2])
def test_min_factor_messages_are_sums_over_all_states(k):
    """Equations 5.14 to 5.20, 5.70 and 5.71, with every source below, at or above T_k and every J written out."""
    rng = np.random.default_rng(k)
    s, here = 4, 2 * k + 1
    mass = rng.uniform(0.1, 1, (s, 3))  # at, below, above
    clutter = rng.uniform(0.1, 1, (k + 1, 2))
    got = factor_messages(mass[:, 1], mass[:, 0], mass[:, 2], clutter)
    to_source, to_clutter, total = np.zeros((s, 3)), np.zeros((k + 1, 2)), 0.0
    for which in itertools.product(range(3), repeat=s):
        states = [(here, here - 1, here + 1)[w] for w in which]
        for J in itertools.product((0, 1), repeat=k + 1):
            if not min_factor(k, None, states, J):
                continue
            value = np.prod([mass[i, w] for i, w in enumerate(which)]) * np.prod(
                [clutter[i, v] for i, v in enumerate(J)]
            )
            total += value
            for i, w in enumerate(which):
                to_source[i, w] += value / mass[i, w]
            for i, v in enumerate(J):
                to_clutter[i, v] += value / clutter[i, v]
    np.testing.assert_allclose(got.to_source, to_source)
    np.testing.assert_allclose(got.to_clutter, to_clutter)
    assert got.total == pytest.approx(total)


@pytest.mark.parametrize("capacity", [2, 3])
@pytest.mark.parametrize("rate", [0.0, 1.5])
def test_the_product_of_all_min_factors_is_the_sum_over_associations(rate, capacity):
    """Every source in every interval and at every signal, and every J: full record or not, a last signal that is clutter
    included.
    """
    mean, sigma, detection, time = [1.0, 1.6, 4.0], [0.5, 0.4, 0.9], [0.7, 0.9, 1.0], [1.2, 1.9]
    low, high = WINDOW
    cut = time if capacity == 2 else [*time, high]  # a count at the end of the window where the record is not full
    total = 0.0
    weights = []
    for m, sd, p in zip(mean, sigma, detection):
        edge = [normal_cdf(t, m, sd) for t in (low, *cut)]
        inside = [p * (b - a) for a, b in itertools.pairwise(edge)]
        at = {2 * j + 1: p * normal_pdf(t, m, sd) for j, t in enumerate(time)}
        weights.append({2 * g: w for g, w in enumerate([*inside, 1 - sum(inside)])} | at)
    for states in itertools.product(*weights):
        for J in itertools.product((0, 1), repeat=len(time)):
            every = [*J, 1][: len(cut)]
            if all(min_factor(k, cut, states, every) for k in range(len(cut))):
                value = np.prod([w[t] for w, t in zip(weights, states)])
                total += value * (rate / (high - low)) ** sum(J)
    total *= math.exp(-rate * (cut[-1] - low) / (high - low))
    assert math.log(total) == pytest.approx(density(mean, sigma, detection, rate, time, capacity)[0], abs=1e-9)


def by_min_factors(mean, sigma, detection, rate, time, capacity, window=WINDOW):
    low, high = window
    full = len(time) == capacity
    return min_factor_inference(
        np.asarray(mean), np.asarray(sigma), np.asarray(detection), np.asarray(time), low=low,
        clutter=np.full(len(time), rate / (high - low)), end=None if full else high,
        expected_clutter=rate * ((time[-1] if full else high) - low) / (high - low),
    )  # fmt: skip


@pytest.mark.parametrize("rate", [0.0, 0.5, 3.0])
def test_min_factors_are_exact_for_one_signal_in_a_full_record(rate):
    rng = np.random.default_rng(0)
    for _ in range(5):
        case = rng.uniform(0.5, 5.5, 5), np.full(5, 0.6), rng.uniform(0.3, 1, 5), rate, [rng.uniform(0.5, 3)], 1
        exact, share = density(*case)
        found = by_min_factors(*case)
        assert found.converged
        assert found.log_likelihood == pytest.approx(exact, abs=1e-8)
        assert found.error == pytest.approx(0, abs=1e-8)
        np.testing.assert_allclose(found.probability, share, atol=1e-8)
        np.testing.assert_allclose(found.clutter, 1 - share.sum(axis=1), atol=1e-8)


def test_min_factors_are_exact_for_signals_apart():
    rng = np.random.default_rng(0)
    mean = np.arange(6) + rng.uniform(-0.2, 0.2, 6)
    for detection in (1.0, 0.9):
        time = np.sort(mean + 0.05 * rng.standard_normal(6))[:3]
        case = mean, np.full(6, 0.05), np.full(6, detection), 0.0, list(time), 3
        exact, share = density(*case, window=(-10.0, 20.0))
        found = by_min_factors(*case, window=(-10.0, 20.0))
        assert found.converged
        assert found.log_likelihood == pytest.approx(exact, abs=1e-6)
        np.testing.assert_allclose(found.probability, share, atol=1e-6)


@pytest.mark.parametrize("capacity", [3, 4])
def test_min_factors_are_approximate_where_signals_compete_with_clutter(capacity):
    """Short loops: half of the runs reach a fixed point, which is consistent and a few tenths below the exact sum."""
    rng = np.random.default_rng(1)
    gaps, shares = [], []
    for _ in range(10):
        mean = rng.uniform(0.5, 5.5, 5)
        time = np.sort(np.append(mean[:2] + 0.1 * rng.standard_normal(2), rng.uniform(0.2, 5.8)))
        case = mean, np.full(5, 0.15), np.full(5, 0.7), 1.0, list(time), capacity
        exact, share = density(*case)
        found = by_min_factors(*case)
        if found.n_iter < 100:
            np.testing.assert_allclose(found.probability.sum(axis=1) + found.clutter, 1, atol=1e-8)
            gaps.append(found.log_likelihood - exact)
            assert found.error == pytest.approx(gaps[-1], abs=1e-9)  # it says how far off it is
            shares.append(np.abs(found.probability - share).max())
    assert len(gaps) >= 5
    assert -0.6 < np.min(gaps) <= np.max(gaps) < -1e-3
    assert np.median(shares) < 0.1


def test_min_factors_without_clutter_cannot_explain_more_signals_than_sources():
    found = by_min_factors([1.0], [0.2], [0.9], 0.0, [0.9, 1.1], 2)
    assert found.log_likelihood == -np.inf
    assert by_min_factors([1.0], [0.2], [0.9], 0.5, [0.9, 1.1], 2).log_likelihood > -10


def test_parameters_are_checked():
    for wrong, words in (
        ({"detection": 1.2}, "detection"), ({"sigma": 0.0}, "sigma"), ({"clutter_rate": -1}, "clutter_rate"),
        ({"keep": "loudest"}, "choose from"), ({"method": "magic"}, "choose from"),
        ({"keep": "strongest", "confidence_ratio": lambda c: c}, "earliest"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            SignalModel(**wrong)


def test_log_likelihood_of_positions_uses_their_distances():
    item = prepared([3.0, 4.0], [0.2] * 2, [0.7] * 2, 1.0, [3.0], 1)
    positions = np.array([[0.0, 0.0], [-1.0, 0.0]])
    got = log_likelihood(item, positions, "plane", np.zeros(2))
    expected = [math.log(oracle([3.0, 4.0], [0.2] * 2, [0.7] * 2, 1.0, [3.0], 1)[0])]
    expected.append(math.log(oracle([4.0, 5.0], [0.2] * 2, [0.7] * 2, 1.0, [3.0], 1)[0]))
    np.testing.assert_allclose(got, expected, atol=1e-5)


# Emission times that are not known


def delayed_oracle(item, beacons, sigma, detection, rate, time, capacity, here, label):
    """The oracle above, with all sources delayed alike, averaged over a dense grid of the delay."""
    first, last, deviation = item.delay
    mean = np.asarray(beacons.emission) + np.hypot(*(here - beacons.position).T) / np.asarray(beacons.speed)
    delay = np.linspace(first, last, 4001) if deviation == np.inf else np.linspace(-12, 12, 4001) * deviation
    mass = np.full(4001, delay[1] - delay[0])
    mass[[0, -1]] /= 2
    mass *= 1 / (last - first) if deviation == np.inf else np.array([normal_pdf(t, 0.0, deviation) for t in delay])
    parts = [oracle(mean + t, sigma, detection, rate, time, capacity, label=label) for t in delay]
    total = sum(m * value for m, (value, _) in zip(mass, parts))
    return total, sum(m * value * share for m, (value, share) in zip(mass, parts)) / total


DELAYED = {
    "unknown": {"emission": "unknown", "time": [0.9, 1.4, 3.0], "label": None, "rate": 2.0},
    "between, cut off": {"emission": (-1.0, 1.5), "time": [1.9, 2.4], "label": None, "rate": 0.3},
    "normal and narrow": {"emission": 0.1, "time": [1.9, 2.4], "label": None, "rate": 0.3},
    "normal and wide": {"emission": 9.0, "time": [4.0], "label": None, "rate": 0.3},
    "nothing heard": {"emission": "unknown", "time": [], "label": None, "rate": 2.0},
    "labeled": {"emission": "unknown", "time": [1.5, 1.9, 2.4], "label": [0, 2, 1], "rate": 0.3},
    "one label, clutter": {"emission": "unknown", "time": [1.5, 1.9, 2.4], "label": [-2, 2, -1], "rate": 0.3},
    "label, normal": {"emission": 0.2, "time": [1.5, 1.9], "label": [-1, 2], "rate": 0.3},
    "label, normal and narrow": {"emission": 0.02, "time": [1.5, 1.9], "label": [-1, 2], "rate": 0.3},
    "label, cut off": {"emission": (-4.0, -0.5), "time": [1.5, 1.9], "label": [-1, 2], "rate": 0.3},
    "all must match": {"emission": "unknown", "time": [2.0, 3.1], "label": None, "rate": 0.0},
}


@pytest.mark.parametrize("case", DELAYED.values(), ids=DELAYED.keys())
def test_a_shared_delay_is_integrated_out(case):
    beacons = Beacons([[0, 0], [3, 0], [1, 2]], speed=[1.0, 1.2, 0.9], emission=[0.0, 0.3, 0.1])
    sigma, detection, time = [0.1, 0.3, 0.2], [0.9, 0.6, 0.8], case["time"]
    capacity = max(1, len(time))
    model = SignalModel(detection, case["rate"], sigma, emission=case["emission"])
    source = None if case["label"] is None else np.asarray(case["label"])
    [item] = evidence(model, beacons, Arrivals.from_lists([time], capacity=capacity, window=WINDOW, source=source))
    here = np.array([[1.2, 0.7]])
    total, share = delayed_oracle(item, beacons, sigma, detection, case["rate"], time, capacity, here, case["label"])
    assert log_likelihood(item, here, "plane", np.zeros(1))[0] == pytest.approx(math.log(total), abs=5e-5)
    np.testing.assert_allclose(association_probabilities(item, here, "plane")[0], share, atol=2e-5)


def test_a_labeled_step_needs_no_clock():
    beacons = Beacons([[0, 0], [3, 0], [1, 2]], speed=1.0)
    model = SignalModel(0.9, 0.5, 0.05, emission="unknown")
    here = np.array([[1.2, 0.7], [0.4, 1.9], [2.5, 0.3]])
    found = []
    for late in (0.0, 17.25):
        arrivals = Arrivals.from_lists(
            [[2.0 + late, 2.3 + late, 2.5 + late]], capacity=4, window=(-50, 100), source=np.array([2, 0, 1])
        )
        [item] = evidence(model, beacons, arrivals)
        found.append(log_likelihood(item, here, "plane", np.zeros(3)))
    assert found[0] == pytest.approx(found[1], abs=1e-9)
    assert np.ptp(found[0]) > 1  # differences of times tell positions apart


def test_a_narrow_delay_is_a_known_emission():
    beacons = Beacons([[0, 0], [3, 0], [1, 2]], speed=1.0)
    arrivals = Arrivals.from_lists([[1.0, 1.4], [2.0]], capacity=2, window=WINDOW)
    here = np.array([[1.2, 0.7], [0.4, 1.9]])
    known, narrow = (
        [log_likelihood(item, here, "plane", np.zeros(2)) for item in evidence(model, beacons, arrivals)]
        for model in (SignalModel(0.8, 0.5, 0.1), SignalModel(0.8, 0.5, 0.1, emission=1e-4))
    )
    np.testing.assert_allclose(known, narrow, atol=1e-4)


@pytest.mark.parametrize("emission", ["late", 0.0, -1.0, np.inf, (2.0, 1.0), (1.0, 2.0, 3.0), (0.0, np.inf), True])
def test_emissions_that_cannot_be_used(emission):
    with pytest.raises(ValueError, match=r"emission .* must be 'known', 'unknown', a standard deviation"):
        SignalModel(emission=emission)
