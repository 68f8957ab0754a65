"""Tables in, tracks out, pictures, the command, and the parameters estimated from data."""

import json
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import placet
from placet.cli.simulate import simulate_ranked_signals
from placet.cli.track import track as track_command
from placet.data import DataError
from placet.simulate.signals import ranked_signals, simulated_path
from placet.tracking import (
    Arrivals,
    Beacons,
    NotIdentified,
    RankedSignalTracker,
    estimate_by_em,
    estimate_on_grid,
    plot_track,
    read_arrivals,
    read_beacons,
    write_arrivals,
    write_associations,
    write_beacons,
    write_track,
)

SEA = """id,lat,lon,ping_offset_s,clock_drift_s_per_day,deployed,recovered
A,-60,179.0,0,0,2009-01-01,2011-01-01
B,-56,-179.0,100,0.1,2009-01-01,
C,-58,-175.0,,,,
"""
LAND = "id,x,y\nA,0,0\nB,9,0\nC,0,9\n"
ARRIVALS = """day,arrival_s,confidence,source
2009-01-25,300,50,A
2009-01-25,400,80,
2009-01-26,,0,
2009-01-28,310,70,clutter
"""


def text(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content)
    return path


def sea_track(tmp_path, n=8):
    beacons = read_beacons(text(tmp_path, "beacons.csv", SEA))
    way = np.column_stack([np.full(n, -58.0), (179.6 + np.linspace(0, 0.8, n) + 180) % 360 - 180])
    day = 14270.0 + np.arange(n)
    drawn = ranked_signals(
        beacons,
        way,
        detection=0.9,
        clutter_rate=1.0,
        sigma=2.0,
        window=(0, 1000),
        day=day,
        random_state=0,
    )
    tracker = RankedSignalTracker(
        beacons=beacons, detection=0.9, clutter_rate=1.0, sigma=2.0, diffusion=60.0, particles=1500
    )
    return tracker.track(drawn.arrivals, way[0], way[-1]), drawn, way


def test_beacons_are_read_with_their_dates_and_defaults(tmp_path):
    beacons = read_beacons(text(tmp_path, "b.csv", SEA), speed=1.48)
    assert beacons.names == ("A", "B", "C")
    assert beacons.geometry == "geographic"
    assert beacons.since.tolist() == [14245.0, 14245.0, -np.inf]
    assert beacons.until[0] == 14975.0
    assert beacons.until[1] == np.inf
    assert beacons.emission_times(14255.0).tolist() == [0.0, 101.0, 0.0]
    assert beacons.speed.tolist() == [1.48] * 3
    assert read_beacons(text(tmp_path, "p.csv", LAND)).geometry == "plane"


def test_arrivals_are_read_with_silent_days_and_missing_days(tmp_path):
    path = text(tmp_path, "a.csv", ARRIVALS)
    arrivals = read_arrivals(path, window=(0, 500))
    assert arrivals.day.tolist() == [14269.0, 14270.0, 14272.0]
    assert arrivals.offsets.tolist() == [0, 2, 2, 3]
    assert arrivals.confidence.tolist() == [50, 80, 70]
    assert arrivals.source is None
    assert arrivals.capacity == 2
    labeled = read_arrivals(path, beacons=read_beacons(text(tmp_path, "b.csv", LAND)), labels=True)
    assert labeled.source.tolist() == [0, -1, -2]
    truncated = read_arrivals(text(tmp_path, "t.csv", "day,arrival_s\n14856,300\n"), epoch="1968-05-24")
    assert truncated.day.tolist() == [14856.0]


BAD_TABLES = [
    ("day,arrival_s\n2,1\n1,1\n", r"a.csv:3: day 1 comes after 2 \(1 such lines\); sort by day"),
    ("day,arrival_s\n1,2\n1,1\n", "sort within each day"),
    ("day,arrival_s\n1,x\n", r"a.csv:2: arrival_s 'x' is not a finite number"),
    ("day,arrival_s\n1,nan\n", "not a finite number"),
    ("day,arrival_s\nsoon,1\n", "a.csv:2: day 'soon' is not a day"),
    ("day,arrival_s\n,1\n", "is not a day"),
    ("day,time\n1,1\n", "column 'arrival_s' is not there"),
    ("day,arrival_s\n1,1\n1,\n", "its day has other rows"),
    ("day,arrival_s\n", "no arrivals|empty"),
]


@pytest.mark.parametrize(("content", "words"), BAD_TABLES)
def test_bad_tables_are_told_by_line(tmp_path, content, words):
    with pytest.raises(DataError, match=words):
        read_arrivals(text(tmp_path, "a.csv", content))


def test_bad_labels_and_beacons_are_told_by_line(tmp_path):
    beacons = read_beacons(text(tmp_path, "b.csv", LAND))
    with pytest.raises(DataError, match="a.csv:2: source 'Z' is not a beacon"):
        read_arrivals(text(tmp_path, "a.csv", "day,arrival_s,source\n1,1,Z\n"), beacons=beacons, labels=True)
    with pytest.raises(DataError, match="ping_offset_s 'late' is not a finite number"):
        read_beacons(text(tmp_path, "c.csv", "id,x,y,ping_offset_s\nA,0,0,late\nB,1,1,\n"))
    with pytest.raises(ValueError, match="pass beacons"):
        read_arrivals(text(tmp_path, "a.csv", "day,arrival_s,source\n1,1,A\n"), labels=True)
    with pytest.raises(ValueError, match="epoch"):
        read_arrivals(text(tmp_path, "a.csv", "day,arrival_s\n1,1\n"), epoch="today")


def test_tables_go_round(tmp_path):
    arrivals = Arrivals.from_lists([[1.5, 2.0], [], [3.25]], window=(0, 9), capacity=3)
    write_arrivals(arrivals, tmp_path / "a.csv")
    again = read_arrivals(tmp_path / "a.csv", window=(0, 9), capacity=3)
    for name in ("day", "time", "offsets"):
        np.testing.assert_array_equal(getattr(again, name), getattr(arrivals, name))
    beacons = Beacons([[0, 1], [2, 3]], emission=[5, 6], drift=0.5, speed=[1, 2], since=[-np.inf, 3], names=("p", "q"))
    write_beacons(beacons, tmp_path / "b.csv")
    back = read_beacons(tmp_path / "b.csv")
    for name in ("position", "emission", "drift", "speed", "since", "until"):
        np.testing.assert_array_equal(getattr(back, name), getattr(beacons, name))
    assert back.names == beacons.names


def test_netcdf_is_a_cf_trajectory(tmp_path):
    netCDF4 = pytest.importorskip("netCDF4")
    track, drawn, _ = sea_track(tmp_path)
    write_track(track, tmp_path / "t.nc")
    with netCDF4.Dataset(tmp_path / "t.nc") as data:
        assert data.featureType == "trajectory"
        assert data.Conventions.startswith("CF-1")
        assert data["trajectory"].cf_role == "trajectory_id"
        assert (data["lat"].units, data["lat"].standard_name) == ("degrees_north", "latitude")
        assert (data["lon"].units, data["lon"].standard_name) == ("degrees_east", "longitude")
        assert data["time"].units == "days since 1970-01-01"
        assert data["time"].dimensions == data["lat"].dimensions == data["lon"].dimensions == ("time",)
        for name in ("var_lat", "cov_lat_lon", "var_lon", "ess", "agree"):
            assert set(data[name].coordinates.split()) == {"time", "lat", "lon"}
        np.testing.assert_array_equal(data["lon"][:], track.position[:, 1])
        np.testing.assert_array_equal(data["association"][:], track.association)
        assert data["step"][:].tolist() == np.repeat(np.arange(8), np.diff(drawn.arrivals.offsets)).tolist()
        assert list(data["beacon_name"][:]) == ["A", "B", "C"]
        when = netCDF4.num2date(data["time"][0], data["time"].units)
        assert (when.year, when.month, when.day) == (2009, 1, 26)
        assert data.source == f"Placet {placet.__version__}"
        assert data.parameter_sigma == track.parameters["sigma"]
        assert float(data.parameter_particles) > 0


def test_geojson_is_cut_at_the_date_line(tmp_path):
    track, _, _ = sea_track(tmp_path)
    write_track(track, tmp_path / "t.geojson")
    got = json.loads((tmp_path / "t.geojson").read_text())
    line = got["features"][0]["geometry"]
    assert line["type"] == "MultiLineString"
    assert len(line["coordinates"]) == 2
    assert line["coordinates"][0][-1][0] == 180
    assert line["coordinates"][1][0][0] == -180
    for part in line["coordinates"]:
        assert (np.abs(np.diff([lon for lon, _ in part])) < 1).all()
    assert len(got["features"]) == 1 + len(track)
    assert got["features"][1]["properties"]["date"] == "2009-01-26T00:00:00Z"


def test_csv_and_associations_have_one_row_each(tmp_path):
    track, drawn, way = sea_track(tmp_path)
    write_track(track, tmp_path / "t.csv")
    head, *rows = (tmp_path / "t.csv").read_text().splitlines()
    assert head == "day,date,lat,lon,sd,var_lat,cov_lat_lon,var_lon,ess,agree"
    assert len(rows) == len(track)
    assert np.median(track.error(way)) < 10
    write_associations(track, tmp_path / "s.csv")
    assert len((tmp_path / "s.csv").read_text().splitlines()) == 1 + len(drawn.arrivals.time)
    with pytest.raises(ValueError, match="one of"):
        write_track(track, tmp_path / "t.xyz")
    assert not (tmp_path / "t.xyz").exists()


def test_frames_and_outlines_hold_what_a_picture_needs(tmp_path):
    track, drawn, _ = sea_track(tmp_path)
    steps, signals = track.to_frame(), track.associations_frame()
    assert steps["lon"].to_list() == track.position[:, 1].tolist()
    assert steps["sd"].to_list() == track.sd().tolist()
    assert steps["date"][0] == "2009-01-26T00:00:00Z"
    assert signals["arrival_s"].to_list() == drawn.arrivals.time.tolist()
    assert signals["day"].to_list() == np.repeat(track.day, np.diff(track.offsets)).tolist()
    names = [*track.beacons.names, "clutter"]
    every = np.column_stack([track.association, track.clutter])
    assert [names.index(name) for name in signals["source"]] == every.argmax(axis=1).tolist()
    np.testing.assert_allclose(signals["probability"].to_numpy(), every.max(axis=1))
    outline = track.outline(0.9, n_points=20)
    assert track.inside(outline[:, 3], 0.9001).all()
    assert not track.inside(outline[:, 3], 0.8999).any()
    drawn_on = track.on_map(outline)
    assert (np.abs(drawn_on[..., 0] - drawn_on[0, 0, 0]) < 2).all()  # in one piece over the date line
    np.testing.assert_allclose(drawn_on[..., 1], outline[..., 0])


def test_a_track_in_the_plane_is_not_geojson(tmp_path):
    beacons = Beacons([[0, 0], [9, 0], [0, 9]], speed=1.0)
    track = RankedSignalTracker(beacons=beacons, particles=50, diffusion=0.1, sigma=0.2).track(
        Arrivals.from_lists([[5.0]], window=(0, 20)), (3, 4)
    )
    with pytest.raises(ValueError, match="longitude and latitude"):
        write_track(track, tmp_path / "t.geojson")
    write_track(track, tmp_path / "t.nc")
    assert "One chain" not in track.summary()


def test_pictures_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    track, _, way = sea_track(tmp_path)
    plot_track(track, tmp_path / "t.png", truth=way)
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")


def test_a_track_shows_itself(tmp_path):
    track, _, way = sea_track(tmp_path)
    html = track._repr_html_()
    assert html.startswith("<svg")
    assert all(name in html for name in track.beacons.names)
    assert f"{len(track)} steps" in html
    numbers = [float(x) for x in re.findall(r"(-?[\d.]+),", html)]
    assert numbers
    assert min(numbers) >= 9.9
    assert max(numbers) <= 370.1
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    left, right = track.plot(truth=way)
    assert {line.get_label() for line in right.lines} >= {"track", "truth"}
    assert "source" in left.get_title()
    assert left.get_xlabel() == "date"
    first = pytest.importorskip("matplotlib.dates").num2date(left.collections[0].get_offsets()[0, 0])
    assert first.year == 2009
    left.figure.clear()


def command():
    app = typer.Typer()
    app.command("track")(track_command)
    app.command("ranked-signals")(simulate_ranked_signals)
    return app


def test_commands_simulate_and_track(tmp_path):
    run = CliRunner().invoke
    made = run(command(), ["ranked-signals", "--out", str(tmp_path / "sim"), "--steps", "80", "--seed", "3"])
    assert made.exit_code == 0, made.output
    options = "--detection 0.7 --clutter-rate 4 --sigma 0.02 --diffusion 0.02 --speed 1 --window 0,10 --particles 1500"
    files = ["--beacons", str(tmp_path / "sim/beacons.csv"), "--start", "2,2"]
    first = [str(tmp_path / "sim/arrivals.csv"), *files, *options.split(), "--chains", "2"]
    got = run(command(), ["track", *first])
    assert got.exit_code == 0, got.output
    rows = [line for line in got.stdout.splitlines() if line[:1].isdigit() and "T" in line]
    truth = np.loadtxt(tmp_path / "sim/truth.csv", delimiter=",", skiprows=1)
    found = np.array([[float(v) for v in (row.split(",")[2], row.split(",")[3])] for row in rows])
    assert np.median(np.hypot(*(found - truth[:, 1:]).T)) < 0.2
    out = [str(tmp_path / name) for name in ("t.nc", "t.png", "s.csv")]
    got = run(
        command(), ["track", *first, "--end", "8,8", "--out", out[0], "--plot", out[1], "--signals", out[2], "--labels"]
    )
    assert got.exit_code == 0, got.output
    assert all((tmp_path / name).exists() for name in ("t.nc", "t.png", "s.csv"))
    bad = run(command(), ["track", *first[:-2], "--start", "north"])
    assert isinstance(bad.exception, ValueError)


def scene(n=60):
    rng = np.random.default_rng(3)
    beacons = Beacons(rng.uniform(0, 10, (10, 2)), speed=1.0)
    way = simulated_path("walk", n, rng, diffusion=0.01)
    drawn = ranked_signals(beacons, way, detection=0.7, clutter_rate=3.0, sigma=0.05, window=(0, 12), random_state=rng)
    tracker = RankedSignalTracker(
        beacons=beacons, detection=0.6, clutter_rate=2.0, sigma=0.08, diffusion=0.02, particles=600, chains=1,
        trajectories=30, candidates=200,
    )  # fmt: skip
    return tracker, drawn


def test_stochastic_em_finds_the_parameters():
    tracker, drawn = scene()
    found = estimate_by_em(tracker, drawn.arrivals, (5, 5), n_rounds=12)
    assert found.tracker.detection == pytest.approx(0.7, abs=0.1)
    assert found.tracker.clutter_rate == pytest.approx(3.0, rel=0.3)
    assert found.tracker.sigma == pytest.approx(0.05, rel=0.35)
    assert found.tracker.diffusion == pytest.approx(0.01, rel=0.5)
    assert all(found.identified.values())
    assert found.log_likelihood > found.history[0]["log_likelihood"]
    assert "sigma" in found.summary()


def test_a_grid_finds_the_parameters_and_tells_when_its_edge_is_best():
    tracker, drawn = scene()
    tracker = replace(tracker, detection=0.7, clutter_rate=3.0, diffusion=0.01)
    found = estimate_on_grid(tracker, drawn.arrivals, (5, 5), grid={"sigma": [0.0125, 0.05, 0.2]})
    assert found.tracker.sigma == 0.05
    assert found.identified == {"sigma": True}
    with pytest.warns(NotIdentified, match=r"sigma: .*edge of the grid"):
        estimate_on_grid(tracker, drawn.arrivals, (5, 5), grid={"sigma": [0.05, 0.2]})
    with pytest.raises(ValueError, match="choose from"):
        estimate_on_grid(tracker, drawn.arrivals, (5, 5), grid={"speed": [1.0]})


def test_what_the_data_do_not_tell_is_not_identified():
    """Three silent days in the reach of no beacon say nothing about sigma."""
    beacons = Beacons([[0, 0], [9, 0]], speed=1.0)
    arrivals = Arrivals.from_lists([[], [], []], window=(0, 20), capacity=2)
    tracker = RankedSignalTracker(beacons=beacons, detection=0.1, clutter_rate=0.1, sigma=0.5, particles=200, chains=1)
    with pytest.warns(NotIdentified, match="sigma"):
        found = estimate_by_em(tracker, arrivals, (3, 4), parameters=("sigma",), n_rounds=3)
    assert found.identified == {"sigma": False}
    assert "not identified" in found.summary()


def test_estimation_checks_what_it_is_asked():
    tracker, drawn = scene(n=3)
    with pytest.raises(ValueError, match="choose from"):
        estimate_by_em(tracker, drawn.arrivals, (5, 5), parameters=("speed",))
    with pytest.raises(ValueError, match="earliest"):
        estimate_by_em(replace(tracker, keep="strongest"), drawn.arrivals, (5, 5))
    with pytest.raises(ValueError, match="one number each|single"):
        estimate_by_em(replace(tracker, sigma=np.full(10, 0.1)), drawn.arrivals, (5, 5))


def test_em_keeps_the_shape_of_the_diffusion_and_estimates_velocity_noise():
    tracker, drawn = scene(n=12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for diffusion, persistence in (([0.02, 0.02], 0.0), ([[0.02, 0.0], [0.0, 0.02]], 0.0), (0.02, 4.0)):
            start = replace(tracker, diffusion=diffusion, persistence=persistence)
            found = estimate_by_em(
                start, drawn.arrivals, (5, 5), drawn.position[-1], parameters=("diffusion",), n_rounds=2
            )
            assert np.shape(found.tracker.diffusion) == np.shape(diffusion)
