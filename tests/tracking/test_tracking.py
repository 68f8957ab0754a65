"""The filter and the smoother against closed forms and against a grid; geometry against pyproj; bad input."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import chi2

from placet.data import DataError
from placet.kernels.tracking import association, particle_motion
from placet.simulate.signals import ranked_signals, simulated_drift, simulated_path
from placet.threads import get_threads, set_threads
from placet.tracking import Arrivals, Beacons, RankedSignalTracker, SignalModel
from placet.tracking.estimate import _diffusion, _maximize
from placet.tracking.geometry import displacements, distances, exact_distance, moments, two_clouds
from placet.tracking.motion import free_motion
from placet.tracking.observation_model import association_probabilities, evidence, log_likelihood
from placet.tracking.particles import FilterRun, Genealogy
from placet.tracking.track_result import combine_chains

SQUARE = Beacons([[0, 0], [10, 0], [0, 10], [10, 10], [5, 12]], speed=1.0)
SEA = Beacons([[-60, -110], [-56, -110], [-58, -98], [-60, -86], [-56, -86]], geometry="geographic")


def quiet(n, **columns):
    """Days on which a float that can hear nothing hears nothing."""
    return Arrivals.from_lists([[]] * n, window=(0, 3000), **columns)


def deaf(beacons, **options):
    return RankedSignalTracker(beacons=beacons, detection=0.0, clutter_rate=0.0, **options)


@settings(max_examples=100)
@given(st.floats(-80, 80), st.floats(-180, 180), st.floats(-80, 80), st.floats(-180, 180))
def test_distances_on_the_ellipsoid_are_geodesics(lat, lon, other_lat, other_lon):
    a, b = np.array([[lat, lon]]), np.array([[other_lat, other_lon]])
    exact = exact_distance(a, b, "geographic")[0]
    if exact < 15_000:
        assert distances(a, b, "geographic")[0, 0] == pytest.approx(exact, abs=0.001 + 2e-5 * exact)


def test_local_displacements_are_kilometers_even_over_the_date_line():
    here = np.array([-57.0, 179.99])
    there = np.array([[-57.01, -179.99], [-56.99, 179.98]])
    gap = displacements(there, here, "geographic")
    np.testing.assert_allclose(np.hypot(*gap.T), exact_distance(here, there, "geographic"), rtol=1e-3)
    assert gap[0, 1] > 0 > gap[1, 1]
    mean, covariance = moments(there, np.array([0.5, 0.5]), "geographic")
    assert mean[1] == pytest.approx(179.995)
    assert np.linalg.eigvalsh(covariance).min() >= -1e-12


def test_two_clouds_are_told_from_one():
    rng = np.random.default_rng(0)
    one = rng.standard_normal((20_000, 2)) @ [[3.0, 1.0], [0.0, 0.5]]
    assert two_clouds(one, "plane") == pytest.approx(2 / np.pi, abs=0.02)
    assert 0.64 < two_clouds(rng.uniform(0, 1, (20_000, 2)), "plane") < 0.78
    two = one + np.outer(rng.random(len(one)) < 0.2, [0.0, 30.0])
    assert two_clouds(two, "plane") > 0.95
    four = 0.1 * one + rng.choice([-1.0, 1.0], (len(one), 2)) * [20.0, 20.0]
    assert two_clouds(four, "plane") > 0.9
    assert two_clouds(np.ones((5, 2)), "plane") == 0


@pytest.mark.parametrize("tau", [0.0, 3.0])
def test_two_moves_are_one_longer_move(tau):
    D = np.array([[2.0, 0.5], [0.5, 1.0]])
    (F1, Q1), (F2, Q2), (F, Q) = (free_motion(dt, D, tau) for dt in (0.7, 1.8, 2.5))
    np.testing.assert_allclose(F2 @ F1, F, atol=1e-12)
    np.testing.assert_allclose(F2 @ Q1 @ F2.T + Q2, Q, atol=1e-12)


def test_persistent_velocity_spreads_like_the_walk_at_long_times():
    _, Q = free_motion(1e4, np.eye(2), 3.0)
    assert Q[0, 0] == pytest.approx(1e4, rel=1e-3)


def bridge(n, D, tau, start, end):
    """Mean and covariance of the positions of steps 1..n given the end at step n + 1: dense Gaussian conditioning."""
    d = 4 if tau else 2
    F, Q = free_motion(1.0, D, tau)
    mean = np.zeros(d)
    mean[:2] = start
    P = np.zeros((d, d))
    if tau:
        P[2:, 2:] = D / (2 * tau)
    joint = np.zeros((d * (n + 1), d * (n + 1)))
    for k in range(n + 1):
        mean = F @ mean
        P = F @ P @ F.T + Q
        block = P
        for m in range(k, n + 1):
            joint[m * d : m * d + d, k * d : k * d + d] = block
            joint[k * d : k * d + d, m * d : m * d + d] = block.T
            block = F @ block
    rows = np.concatenate([[k * d, k * d + 1] for k in range(n)])
    last = [n * d, n * d + 1]
    gain = np.linalg.solve(joint[np.ix_(last, last)], joint[np.ix_(last, rows)]).T
    means = np.tile(start, n) + gain @ (np.asarray(end) - start)
    covariance = joint[np.ix_(rows, rows)] - gain @ joint[np.ix_(last, rows)]
    gap = np.asarray(end) - start
    S = joint[np.ix_(last, last)]
    log_end = -0.5 * gap @ np.linalg.solve(S, gap) - 0.5 * np.log(np.linalg.det(2 * np.pi * S))
    return means.reshape(n, 2), np.array([covariance[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] for k in range(n)]), log_end


@pytest.mark.parametrize("tau", [0.0, 3.0])
@pytest.mark.parametrize("smooth", [False, True])
def test_a_float_that_hears_nothing_goes_the_straight_way_to_its_end(tau, smooth):
    D = np.array([[0.5, 0.2], [0.2, 0.3]])
    tracker = deaf(SQUARE, diffusion=D, persistence=tau, particles=4000, chains=1, trajectories=2000, candidates=1000)
    start, end = np.array([2.0, 3.0]), np.array([6.0, 2.0])
    track = tracker.track(quiet(6), start, end, smooth=smooth)
    mean, covariance, log_end = bridge(6, D, tau, start, end)
    np.testing.assert_allclose(track.position, mean, atol=0.12)
    np.testing.assert_allclose(track.covariance, covariance, atol=0.15)
    # In the plane every weight is the same, so the joint likelihood with the end has no Monte Carlo error
    # when there is no velocity to start with.
    assert track.log_likelihood == pytest.approx(log_end, abs=1e-9 if tau == 0 else 0.1)
    if tau == 0 and not smooth:
        np.testing.assert_allclose(track.ess, 4000)


@pytest.mark.parametrize("end", [None, (5.0, 3.0)])
@pytest.mark.parametrize("tau", [0.0, 4.0])
def test_sampled_trajectories_take_steps_that_the_motion_takes(tau, end):
    """A hundred silent days: the cloud grows far wider than a step, and few candidates lie within one of each other."""
    D = np.array([[1.0, 0.3], [0.3, 0.5]])
    tracker = deaf(SQUARE, diffusion=D, persistence=tau, particles=2000, trajectories=150, candidates=100)
    state = tracker.sample(quiet(100), (0, 0), end).state
    F, Q = free_motion(1.0, D, tau)
    rest = state[1:] - state[:-1] @ F.T
    square = np.einsum("kna,ab,knb->kn", rest, np.linalg.inv(Q), rest)
    assert square.max() < chi2.isf(1e-8, len(Q))
    # Free steps have mean square d; an end takes away at most the few degrees of freedom that it fixes.
    assert square.mean() == pytest.approx(len(Q), rel=0.03)
    share = 1 if end is None else 0.5
    if tau == 0:
        np.testing.assert_allclose(np.cov(state[49].T), share * 50 * D, atol=8)


def test_sampled_trajectories_on_the_ellipsoid_take_steps_that_the_motion_takes():
    tracker = deaf(SEA, diffusion=100.0, persistence=4.0, particles=2000, trajectories=100, candidates=100)
    state = tracker.sample(quiet(40), (-57.0, 179.9), (-57.5, -179.0)).state
    F, Q = free_motion(1.0, 100 * np.eye(2), 4.0)
    rest = np.concatenate([np.zeros_like(state[1:, :, :2]), state[1:, :, 2:]], axis=2) - state[:-1, :, 2:] @ F[:, 2:].T
    for k in range(len(rest)):
        rest[k, :, :2] += [
            displacements(b[None], a, "geographic")[0] for a, b in zip(state[k, :, :2], state[k + 1, :, :2])
        ]
    square = np.einsum("kna,ab,knb->kn", rest, np.linalg.inv(Q), rest)
    assert square.max() < chi2.isf(1e-8, 4)
    assert square.mean() == pytest.approx(4, rel=0.05)


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 30))
def test_a_genealogy_drops_only_what_nobody_descends_from(seed, n, steps):
    rng = np.random.default_rng(seed)
    kept, state, ancestor = Genealogy(), [], []
    index = np.arange(n)
    for k in range(steps):
        state.append(np.column_stack([np.full(n, k), np.arange(n)]).astype(float))
        ancestor.append(index)
        candidate = rng.integers(0, n, 3)
        kept.add(state[-1], candidate)
        index = np.arange(n)
        if rng.random() < 0.7:
            index = np.sort(rng.integers(0, n, n))
            kept.resample(index)
        for row, particle in zip(kept.candidate[k], candidate):
            for j in range(k, -1, -1):
                np.testing.assert_array_equal(kept.state[j][row], [j, particle])
                row, particle = (kept.parent[j][row] if j else 0), ancestor[j][particle]


def test_a_genealogy_holds_little_when_every_step_resamples():
    rng = np.random.default_rng(0)
    kept = Genealogy()
    for _ in range(300):
        kept.add(np.zeros((1000, 2)), rng.integers(0, 1000, 10))
        kept.resample(np.sort(rng.integers(0, 1000, 1000)))
    assert sum(len(rows) for rows in kept.state) < 60_000  # of 300,000 states


@pytest.mark.parametrize("tau", [0.0, 3.0])
def test_simulated_drift_follows_the_motion(tau):
    """Drawn way by way: moments of the bridge where there is an end, of the free motion where there is none."""
    D = np.array([[0.5, 0.2], [0.2, 0.3]])
    start, end, day = np.array([2.0, 3.0]), np.array([6.0, 2.0]), np.arange(1.0, 7.0)
    options = {"diffusion": D, "persistence": tau}
    ways = [simulated_drift(day, start, end, n_paths=40, random_state=k, **options) for k in range(600)]
    mean, covariance, _ = bridge(6, D, tau, start, end)
    np.testing.assert_allclose(np.mean(ways, axis=0), mean, atol=0.12)
    np.testing.assert_allclose([np.cov(x.T) for x in np.moveaxis(ways, 1, 0)], covariance, atol=0.15)
    free = np.array([simulated_drift(day, start, random_state=k, **options)[-1] for k in range(600)])
    _, Q = free_motion(6.0, D, tau)
    expected = Q[:2, :2] + (D / (2 * tau) * (tau * (1 - np.exp(-6 / tau))) ** 2 if tau else 0.0)
    np.testing.assert_allclose(np.cov(free.T), expected, rtol=0.15, atol=0.15)
    np.testing.assert_array_equal(ways[3], simulated_drift(day, start, end, n_paths=40, random_state=3, **options))


def test_simulated_drift_on_the_ellipsoid_reaches_its_end():
    start, end = np.array([-57.0, 179.5]), np.array([-58.0, -179.0])
    way = simulated_drift(
        np.arange(1.0, 50.0), start, end, diffusion=50.0, persistence=4.0, geometry="geographic", random_state=1
    )
    assert exact_distance(way[0], start, "geographic")[0] < 20
    assert exact_distance(way[-1], end, "geographic")[0] < 20
    step = exact_distance(way[1:], way[:-1], "geographic")
    # Speeds of sqrt(D / (2 tau)) = 2.5 km a day on each axis, and the way to the end besides.
    assert 2 < np.sqrt((step**2).mean()) < 6


@pytest.mark.parametrize("end", [None, (5.0, 3.0)])
@pytest.mark.parametrize("tau", [0.0, 4.0])
def test_the_diffusion_of_sampled_trajectories_is_the_one_they_were_drawn_with(tau, end):
    D = np.array([[1.0, 0.3], [0.3, 0.5]])
    tracker = deaf(SQUARE, diffusion=D, persistence=tau, particles=2000, trajectories=150, candidates=100)
    np.testing.assert_allclose(_diffusion(tracker, tracker.sample(quiet(60), (0, 0), end)), D, rtol=0.08)


def test_coverage_of_the_ellipses_is_near_nominal():
    """Truths drawn by the motion, tracked with their end known: about 95 % of them lie in the ellipses of 95 %."""
    rng = np.random.default_rng(5)
    beacons = Beacons(rng.uniform(0, 10, (8, 2)), speed=1.0)
    common = {"detection": 0.7, "clutter_rate": 1.0, "sigma": 0.2}
    tracker = RankedSignalTracker(
        beacons=beacons, diffusion=0.1, persistence=3.0, particles=1000, chains=1, trajectories=200, candidates=400,
        **common,
    )  # fmt: skip
    inside = []
    for k in range(40):
        way = simulated_drift(np.arange(1.0, 12.0), (5, 5), diffusion=0.1, persistence=3.0, random_state=rng)
        drawn = ranked_signals(beacons, way[:-1], capacity=4, window=(0, 14), random_state=rng, **common)
        inside.append(replace(tracker, random_state=k).track(drawn.arrivals, (5, 5), way[-1]).inside(way[:-1]))
    assert 0.9 < np.mean(inside) < 0.99


def test_on_the_ellipsoid_the_way_to_the_end_is_nearly_straight_and_weights_stay_even():
    tracker = deaf(SEA, diffusion=100.0, particles=3000, chains=1)
    start, end = np.array([-57.0, -105.0]), np.array([-58.0, -103.0])
    track = tracker.track(quiet(9), start, end, smooth=False)
    way = start + np.arange(1, 10)[:, None] / 10 * (end - start)
    assert (exact_distance(track.position, way, "geographic") < 5).all()
    assert track.ess.min() > 1500
    expected = 100 * np.arange(1, 10) * (10 - np.arange(1, 10)) / 10
    np.testing.assert_allclose(track.sd() ** 2, expected, rtol=0.25)


def test_without_signals_or_end_the_cloud_spreads_by_the_diffusion():
    track = deaf(SEA, diffusion=[100.0, 25.0], particles=20_000, chains=1).track(quiet(4), (-57, -105))
    np.testing.assert_allclose(track.covariance[3], [[400, 0], [0, 100]], rtol=0.05, atol=6)


def grid_smoother(tracker, arrivals, start, end, low, high, n):
    """FilterRun and smoothed means on a grid of positions (plane, random walk): sums where the filter has particles."""
    axis = np.linspace(low, high, n)
    points = np.array([(x, y) for x in axis for y in axis])
    D = float(tracker.diffusion)

    def step(to, of):
        gap = ((to[:, None, :] - of[None, :, :]) ** 2).sum(axis=2)
        return np.exp(-gap / (2 * D)) / (2 * np.pi * D) * (axis[1] - axis[0]) ** 2

    T = step(points, points)
    items = evidence(tracker.model, tracker.beacons, arrivals)
    like = [np.exp(log_likelihood(item, points, "plane", np.zeros(len(points)))) for item in items]
    forward = [like[0] * np.exp(-((points - start) ** 2).sum(axis=1) / (2 * D)) / (2 * np.pi * D)]
    for k in range(1, len(items)):
        forward.append(like[k] * (T @ forward[-1]))
    last = np.exp(-((points - end) ** 2).sum(axis=1) / (2 * D)) / (2 * np.pi * D) if end is not None else 1.0
    backward = [np.broadcast_to(last, len(points))]
    for k in range(len(items) - 1, 0, -1):
        backward.insert(0, T.T @ (like[k] * backward[0]))
    weight = [f * b for f, b in zip(forward, backward)]
    area = (axis[1] - axis[0]) ** 2
    total = np.log((forward[-1] * last).sum() * area)
    filtered = np.array([f @ points / f.sum() for f in forward])
    return filtered, np.array([w @ points / w.sum() for w in weight]), total


@pytest.mark.parametrize("end", [None, (5.6, 4.2)])
def test_filter_and_smoother_agree_with_sums_over_a_grid(end):
    tracker = RankedSignalTracker(
        beacons=SQUARE, detection=0.6, clutter_rate=1.0, sigma=0.3, diffusion=0.15, particles=20_000, chains=1,
        trajectories=3000, candidates=2000,
    )  # fmt: skip
    truth = [[4.4, 4.0], [4.9, 4.3], [5.2, 4.1]]
    rng = np.random.default_rng(3)
    arrivals = ranked_signals(
        SQUARE, truth, capacity=3, detection=0.6, clutter_rate=1.0, sigma=0.3, window=(0, 15), random_state=rng
    ).arrivals
    start = np.array([4.2, 4.2])
    filtered, smoothed, total = grid_smoother(tracker, arrivals, start, end, 1.5, 8.0, 56)
    got = tracker.track(arrivals, start, end, smooth=True)
    np.testing.assert_allclose(got.position, smoothed, atol=0.03)
    assert got.log_likelihood == pytest.approx(total, abs=0.05)
    if end is None:
        np.testing.assert_allclose(tracker.track(arrivals, start).position, filtered, atol=0.02)


def simulated(n=40, seed=0, **options):
    rng = np.random.default_rng(seed)
    beacons = Beacons(rng.uniform(0, 10, (10, 2)), speed=1.0)
    way = simulated_path("line", n, rng)
    settings = {"detection": 0.7, "clutter_rate": 4.0, "sigma": 0.02} | options
    drawn = ranked_signals(beacons, way, capacity=4, window=(0, 10), random_state=rng, **settings)
    return RankedSignalTracker(beacons=beacons, diffusion=0.02, particles=3000, **settings), drawn


def test_a_line_is_tracked_and_its_signals_are_told_apart():
    tracker, drawn = simulated(n=100)
    track = tracker.track(drawn.arrivals, drawn.position[0])
    assert np.median(track.error(drawn.position)) < 0.08
    assert (track.source == drawn.source).mean() > 0.75
    np.testing.assert_allclose(track.association.sum(axis=1) + track.clutter, 1)
    assert track.determined
    smoothed = tracker.track(drawn.arrivals, drawn.position[0], drawn.position[-1])
    assert smoothed.error(drawn.position).mean() < track.error(drawn.position).mean()
    assert smoothed.smoothed


def test_probabilities_of_association_are_honest():
    """Of the signals that are given to their likeliest source with probability p, a share p comes from it."""
    tracker, drawn = simulated(n=100, seed=4, sigma=0.1)
    track = tracker.track(drawn.arrivals, drawn.position[0])
    best = np.maximum(track.association.max(axis=1), track.clutter)
    right = track.source == drawn.source
    assert right.mean() == pytest.approx(best.mean(), abs=0.05)


def test_the_same_seed_gives_the_same_track_on_any_number_of_threads():
    tracker, drawn = simulated(n=12)
    before = get_threads()
    tracks = []
    try:
        for threads in (1, 2, 3):
            set_threads(threads)
            tracks.append(tracker.track(drawn.arrivals, drawn.position[0], drawn.position[-1]))
    finally:
        set_threads(before)
    for other in tracks[1:]:
        np.testing.assert_array_equal(other.position, tracks[0].position)
        np.testing.assert_array_equal(other.association, tracks[0].association)
        assert other.log_likelihood == tracks[0].log_likelihood


def test_persistent_velocity_follows_a_straight_line_through_silence():
    tracker, drawn = simulated(n=60, seed=2)
    tracker = replace(tracker, chains=1, trajectories=50, candidates=300)
    lists = np.split(drawn.arrivals.time, drawn.arrivals.offsets[1:-1])
    kept = [k for k in range(60) if not 30 <= k < 42]
    arrivals = Arrivals.from_lists([lists[k] for k in kept], day=np.array(kept) + 1.0, capacity=4, window=(0, 10))
    walk = tracker.track(arrivals, drawn.position[0], smooth=True)
    steady = replace(tracker, persistence=10.0, diffusion=0.2).track(arrivals, drawn.position[0], smooth=True)
    truth = drawn.position[kept]
    after = slice(30, 34)
    assert steady.error(truth)[after].mean() < walk.error(truth)[after].mean() + 0.02
    assert np.median(steady.error(truth)) < 0.05


def test_two_beacons_do_not_determine_a_track_and_it_says_so():
    beacons = Beacons([[2, 5], [8, 5]], speed=1.0)
    t = np.linspace(0, 1, 60)
    way = np.column_stack([2 + 6 * t, 5 + 2 * np.abs(t - 0.5)])  # touches the line between the beacons, then leaves it
    drawn = ranked_signals(
        beacons,
        way,
        capacity=4,
        detection=1.0,
        clutter_rate=0.2,
        sigma=0.05,
        window=(0, 10),
        random_state=0,
    )
    tracker = RankedSignalTracker(
        beacons=beacons, detection=0.95, clutter_rate=0.2, sigma=0.05, diffusion=0.02, particles=400, chains=8
    )
    track = tracker.track(drawn.arrivals, way[0])
    assert not track.determined
    assert track.agree[:15].all()
    assert "NOT DETERMINED" in track.summary()
    tracker, drawn = simulated(n=20)
    assert "NOT DETERMINED" not in tracker.track(drawn.arrivals, drawn.position[0]).summary()


def chain(places, log_likelihood, sd=0.1, ess=500.0, split=0.6):
    """What a filter would return for steps at the given places along a line, without signals."""
    n = len(places)
    mean = np.column_stack([places, np.zeros(n)])
    covariance = np.tile(sd**2 * np.eye(2), (n, 1, 1))
    empty = [np.zeros((0, len(SQUARE)))] * n
    return FilterRun(mean, covariance, np.full(n, split), np.full(n, ess), empty, log_likelihood, Genealogy())


def joined(*runs):
    n = len(runs[0].mean)
    return combine_chains(list(runs), [np.arange(len(SQUARE))] * n, quiet(n), SQUARE, False)


def test_a_chain_is_lost_only_where_it_is_elsewhere():
    here, there = np.zeros(8), np.array([0, 0, 5, 5, 5, 5, 5, 0.0])
    lost = joined(chain(here, -10), chain(here, -12), chain(there, -90))
    assert lost.chain_lost.tolist() == [False, False, True]
    assert lost.determined is True
    assert "1 of 3 chains lost the float" in lost.summary()
    assert "by up to 80" in lost.summary()
    noisy = joined(chain(here, -10), chain(here + 0.05, -90))
    assert not noisy.chain_lost.any()
    assert "lost" not in noisy.summary()
    assert "lower by up to 80" in noisy.summary()
    assert noisy.determined is True
    apart = joined(chain(here, -10), chain(there, -12))
    assert apart.determined is False
    assert "NOT DETERMINED" in apart.summary()
    assert joined(chain(here, -10), chain(there, -12, split=0.95)).agree.sum() == 0


def test_one_chain_left_means_that_agreement_was_not_tested():
    here = np.zeros(8)
    left = joined(chain(here, -10), chain(here + 5, -90))
    assert left.determined is None
    assert "One chain of 2 is left: whether others would agree was not tested" in left.summary()
    assert "agree: nothing" not in left.summary()
    alone = joined(chain(here, -10))
    assert alone.determined is None
    assert "One chain only: whether others would agree was not tested" in alone.summary()
    assert joined(chain(here, -10, split=0.95)).determined is False


def test_a_collapsed_cloud_is_reported():
    """Signals far more exact than the motion: one particle of 50 is nearest and takes all the weight."""
    tracker, drawn = simulated(n=12, sigma=1e-5, clutter_rate=0.1)
    options = {"particles": 50, "clutter_rate": 0.1, "chains": 2, "candidates": 50, "trajectories": 30}
    for end in (None, drawn.position[-1]):
        track = replace(tracker, **options).track(drawn.arrivals, drawn.position[0], end)
        assert track.collapsed.any()
        assert "COLLAPSED" in "".join(track.notes)
    tracker, drawn = simulated(n=12)
    track = replace(tracker, particles=8000).track(drawn.arrivals, drawn.position[0])
    assert not track.collapsed.any()
    assert "COLLAPSED" not in track.summary()
    # A chain that hardly counts adds no particles: the weights of the two are about 1 and 0.
    assert joined(chain(np.zeros(3), -10, ess=4.0), chain(np.zeros(3), -90, ess=400.0)).ess == pytest.approx(4.0)
    assert joined(chain(np.zeros(3), -10, ess=400.0), chain(np.zeros(3), -10, ess=400.0)).ess == pytest.approx(800.0)


def test_clock_offset_drift_and_emission_shift_the_arrivals():
    plain = Beacons([[0, 0], [9, 0], [0, 9]], speed=1.5)
    shifted = Beacons([[0, 0], [9, 0], [0, 9]], emission=[100, 200, 50], drift=[0.1, -0.2, 0], speed=1.5)
    way = np.column_stack([np.linspace(2, 4, 10), np.linspace(3, 5, 10)])
    tracker = {"detection": 0.95, "clutter_rate": 0.0, "sigma": 0.01, "diffusion": 0.2, "particles": 2000, "chains": 1}
    drawn = ranked_signals(
        shifted, way, detection=1.0, clutter_rate=0, sigma=0.01, window=(-5, 300), clock=(2.0, -3.0),
        random_state=1,
    )  # fmt: skip
    track = RankedSignalTracker(beacons=shifted, **tracker).track(drawn.arrivals, way[0])
    assert track.error(way).max() < 0.1
    wrong = RankedSignalTracker(beacons=plain, **tracker).track(drawn.arrivals, way[0])
    assert wrong.log_likelihood < track.log_likelihood - 1e6


def test_a_track_without_known_emission_times():
    beacons = Beacons([[0, 0], [9, 0], [0, 9], [9, 9]], speed=1.5)
    way = np.column_stack([np.linspace(2, 4, 10), np.linspace(3, 5, 10)])
    shared = {"detection": 0.95, "clutter_rate": 0.2, "sigma": 0.02}
    drawn = ranked_signals(beacons, way, window=(0, 60), emission="unknown", random_state=1, **shared)
    first = np.array([times[0] for times in np.split(drawn.arrivals.time, drawn.arrivals.offsets[1:-1]) if len(times)])
    assert np.ptp(first) > 10  # the delays, which no travel time reaches
    tracker = RankedSignalTracker(beacons=beacons, diffusion=0.2, particles=400, chains=1, emission="unknown", **shared)
    labeled = replace(drawn.arrivals, source=drawn.source)
    assert np.median(tracker.track(labeled, way[0]).error(way)) < 0.1
    track = replace(tracker, emission=(0.0, 60.0)).track(drawn.arrivals, way[0])
    assert np.median(track.error(way)) < 0.2
    assert (track.source == drawn.source).mean() > 0.7
    # A step of stochastic EM averages over the delays: from the true noise it stays there.
    best = _maximize(tracker, replace(tracker, particles=2000).sample(labeled, way[0]))
    assert 0.013 < float(best["sigma"]) < 0.027


def test_labels_made_by_hand_are_kept():
    tracker, drawn = simulated(n=15)
    arrivals = drawn.arrivals
    labeled = Arrivals(arrivals.day, arrivals.time, arrivals.offsets, 4, arrivals.window, source=drawn.source)
    track = tracker.track(labeled, drawn.position[0])
    np.testing.assert_array_equal(track.source, drawn.source)
    np.testing.assert_allclose(track.clutter, (drawn.source == -2).astype(float), atol=1e-12)


def test_labels_shorten_the_sum_over_associations():
    rng = np.random.default_rng(0)
    beacons = Beacons(rng.uniform(0, 1000, (16, 2)))
    way = np.column_stack([np.linspace(300, 400, 4), np.linspace(400, 500, 4)])
    drawn = ranked_signals(beacons, way, capacity=13, window=(0, 900), clutter_rate=2.0, random_state=1)
    arrivals = drawn.arrivals
    label = np.where(np.arange(len(drawn.source)) % 4 == 0, -1, drawn.source)
    some = Arrivals(arrivals.day, arrivals.time, arrivals.offsets, 13, arrivals.window, source=label)
    step = evidence(SignalModel(clutter_rate=2.0), beacons, some)[0]
    n, named = int((label[:13] == -1).sum()), int((label[:13] >= 0).sum())
    assert (len(step.rest.time), len(step.rest.shift), step.exact) == (n, 16 - named, True)  # 13 without labels are not
    point = way[:1] + np.array([[40.0, -30.0]])
    whole = association.log_likelihood  # the kernel restricts the sum by labels itself, over all subsets
    far, expected = distances(point, step.position, "plane"), np.zeros(1)
    whole(far, step.step, True, expected)
    np.testing.assert_allclose(log_likelihood(step, point, "plane", np.zeros(1)), expected, rtol=1e-10)
    share = np.empty((1, 13, 16))
    association.log_sums(far, step.step, True, np.empty(1), share)
    np.testing.assert_allclose(association_probabilities(step, point, "plane"), share, atol=1e-10)


def test_beacons_sound_only_while_they_are_deployed():
    beacons = Beacons([[0, 0], [9, 0], [0, 9]], speed=1.0, since=[0, 0, 5], until=[100, 3, 100])
    assert beacons.active_beacons(1).tolist() == [0, 1]
    assert beacons.active_beacons(4).tolist() == [0]
    assert beacons.active_beacons(5).tolist() == [0, 2]
    arrivals = Arrivals.from_lists([[4.0], [4.0], [4.0]], day=np.array([2.0, 4.0, 6.0]), window=(0, 20))
    track = RankedSignalTracker(beacons=beacons, sigma=0.3, diffusion=0.1, particles=500).track(arrivals, (4, 0))
    assert (track.association[0, 2], track.association[1, 1], track.association[1, 2], track.association[2, 1]) == (
        0,
    ) * 4
    labeled = Arrivals.from_lists([[4.0]], day=np.array([4.0]), window=(0, 20), source=np.array([1]))
    with pytest.raises(DataError, match="does not sound"):
        RankedSignalTracker(beacons=beacons).track(labeled, (4, 0))


def test_a_silent_day_is_evidence_and_a_missing_day_is_none():
    near = Beacons([[0, 0], [100, 0]], speed=1.0)
    tracker = RankedSignalTracker(
        beacons=near, detection=0.99, clutter_rate=0.0, sigma=0.5, diffusion=4.0, particles=4000, chains=1
    )
    heard = Arrivals.from_lists([[]], day=np.array([1.0]), window=(0, 30))
    silent = tracker.track(heard, (30.0, 0.0))
    assert silent.position[0, 0] > 30.5  # nothing heard: rather out of the beacon's reach than in it
    later = tracker.track(Arrivals.from_lists([[]], day=np.array([3.0]), window=(0, 30)), (30, 0), start_day=0.0)
    assert later.sd()[0] > 1.2 * silent.sd()[0]  # three days of motion instead of one


def test_strongest_tracks_what_earliest_would_lose():
    rng = np.random.default_rng(8)
    beacons = Beacons(rng.uniform(0, 10, (8, 2)), speed=1.0)
    way = simulated_path("line", 40, rng)
    common = {"detection": 0.8, "clutter_rate": 3.0, "sigma": 0.05}
    drawn = ranked_signals(beacons, way, capacity=4, window=(0, 12), keep="strongest", random_state=rng, **common)
    assert drawn.arrivals.confidence is not None
    options = {"beacons": beacons, "diffusion": 0.05, "particles": 3000, "chains": 1} | common
    right = RankedSignalTracker(keep="strongest", **options).track(drawn.arrivals, way[0])
    wrong = RankedSignalTracker(keep="earliest", **options).track(drawn.arrivals, way[0])
    assert np.median(right.error(way)) < 0.2
    assert np.median(wrong.error(way)) > 1
    assert right.log_likelihood > wrong.log_likelihood + 10


BAD_ARRIVALS = [
    ({"times": [[3.0, 2.0]]}, "sort within each day"),
    ({"times": [[1.0], [1.0]], "day": np.array([2.0, 1.0])}, "sort by day"),
    ({"times": [[1.0], [1.0]], "day": np.array([1.0, np.nan])}, "not finite"),
    ({"times": [[np.nan]]}, "not finite"),
    ({"times": [[1.0, 2.0]], "capacity": 1}, "raise capacity"),
    ({"times": [[1.0, 9.0]], "window": (0, 5)}, "outside the window"),
    ({"times": [[1.0]], "window": (5, 2)}, "must end after"),
    ({"times": []}, "at least one day"),
    ({"times": [[1.0]], "confidence": np.array([np.nan])}, "confidence"),
    ({"times": [[1.0]], "clock": (0.0, np.inf)}, "clock"),
]


@pytest.mark.parametrize(("columns", "words"), BAD_ARRIVALS)
def test_bad_arrivals_are_told_in_words(columns, words):
    with pytest.raises(DataError, match=words):
        Arrivals.from_lists(**columns)


BAD_BEACONS = [
    ({"position": [[1, 1], [1, 1], [1, 1]]}, "at one point"),
    ({"position": [[1, np.nan], [0, 1]]}, "not finite"),
    ({"position": [[-105, -57], [0, 1]], "geometry": "geographic"}, "latitude -105"),
    ({"position": [[88, -57], [0, 1]], "geometry": "geographic"}, "polar"),
    ({"position": [[0, 0], [1, 1]], "speed": -1.0}, "speed"),
    ({"position": [[0, 0], [1, 1]], "names": ("a", "a")}, "different names"),
    ({"position": [[0, 0], [1, 1]], "since": 5, "until": 4}, "since is after until"),
    ({"position": np.empty((0, 2))}, "no beacons"),
    ({"position": [[0, 0, 0]]}, "two columns"),
]


@pytest.mark.parametrize(("columns", "words"), BAD_BEACONS)
def test_bad_beacons_are_told_in_words(columns, words):
    with pytest.raises(DataError, match=words):
        Beacons(**columns)


def test_bad_starts_and_ends_are_told_in_words():
    arrivals = Arrivals.from_lists([[300.0, 500.0]] * 3, window=(0, 1500))
    tracker = RankedSignalTracker(beacons=SEA, particles=100)
    with pytest.raises(DataError, match="check signs"):
        tracker.track(arrivals, (57.0, 75.0))  # the other side of the earth
    with pytest.raises(DataError, match="latitude, longitude"):
        tracker.track(arrivals, (-105.0, -57.0))
    with pytest.raises(DataError, match="not finite"):
        tracker.track(arrivals, (np.nan, -105.0))
    with pytest.raises(DataError, match="start_day"):
        tracker.track(arrivals, (-57.0, -105.0), start_day=2.0)
    with pytest.raises(DataError, match="end_day"):
        tracker.track(arrivals, (-57.0, -105.0), (-57.0, -104.0), end_day=2.0)
    late = Beacons([[-60, -110], [-56, -110]], geometry="geographic", since=10)
    with pytest.raises(DataError, match="no beacon sounds"):
        RankedSignalTracker(beacons=late).track(arrivals, (-57.0, -105.0))


def test_fewer_beacons_than_signals_need_clutter():
    beacons = Beacons([[0, 0], [9, 0]], speed=1.0)
    arrivals = Arrivals.from_lists([[3.0, 5.0, 6.0]], window=(0, 20))
    with pytest.raises(DataError, match="3 signals but only 2 beacons"):
        RankedSignalTracker(beacons=beacons, clutter_rate=0.0).track(arrivals, (3, 0))
    track = RankedSignalTracker(beacons=beacons, clutter_rate=1.0, sigma=0.2, diffusion=0.1).track(arrivals, (3, 0))
    assert track.clutter[1] > 0.5


def test_bad_parameters_are_told_in_words():
    for wrong, words in (
        ({"particles": 0}, "particles"), ({"threshold": 0.0}, "threshold"), ({"persistence": -1.0}, "persistence"),
        ({"diffusion": 0.0}, "positive definite"), ({"diffusion": [[1, 2], [3, 4]]}, "symmetric"),
        ({"detection": 2.0}, "detection"), ({"sigma": -1.0}, "sigma"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            RankedSignalTracker(beacons=SQUARE, **wrong)
    arrivals = Arrivals.from_lists([[1.0, 2.0]], source=np.array([0, 0]))
    with pytest.raises(DataError, match="labeled 0; a beacon sounds once"):
        evidence(SignalModel(), SQUARE, arrivals)
    with pytest.raises(DataError, match="no confidence"):
        evidence(SignalModel(confidence_ratio=lambda c: c), SQUARE, Arrivals.from_lists([[1.0]]))


@settings(max_examples=50)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.integers(1, 40), st.floats(0, 0.999))
def test_systematic_draws_give_everyone_their_share_to_within_one(weight, n, u):
    weight = np.array(weight) + 1e-3
    out = np.empty(n, np.int64)
    particle_motion.systematic(weight, u, out)
    share = n * weight / weight.sum()
    assert (np.abs(np.bincount(out, minlength=len(weight)) - share) < 1 + 1e-6).all()
    assert (np.diff(out) >= 0).all()
