"""Plots of a track: the arrivals over time colored by association, and the path with its uncertainty."""

from pathlib import Path
from typing import Any

import numpy as np

from placet.data.arrays import Floats
from placet.output.markup import render
from placet.tracking.track_result import Track

GRAY = "0.75"
COLORS = [0, 2, 4, 6, 8, 10, 12, 16, 18, 1, 3, 5, 7, 9, 11, 13, 17, 19]  # strong ones first; gray is for clutter


def plot_track(track: Track, target: str | Path, truth: Floats | None = None) -> None:
    """Write both plots side by side to ``target`` (.png, .pdf, .svg).

    >>> from placet.tracking import Arrivals, Beacons, RankedSignalTracker
    >>> beacons = Beacons([[0, 0], [10, 0], [0, 10]], speed=1.0)
    >>> arrivals = Arrivals.from_lists([[5.0, 6.71, 8.06]] * 5, window=(0, 20))
    >>> tracker = RankedSignalTracker(beacons=beacons, sigma=0.05, clutter_rate=0.1, diffusion=0.1, particles=500)
    >>> track = tracker.track(arrivals, start=(3, 4))
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "track.svg"
    >>> plot_track(track, file)
    >>> file.exists()
    True
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 5.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_arrivals(left, track)
    draw_way(right, track, truth)
    figure.savefig(target, dpi=120)


def show_track(track: Track, truth: Floats | None = None) -> Any:
    """Draw both plots side by side in a new pyplot figure; return their axes."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plot() needs matplotlib; install it with: pip install 'placet[plot]'") from None
    _, axes = plt.subplots(1, 2, figsize=(13, 5.5), layout="constrained")
    draw_arrivals(axes[0], track)
    draw_way(axes[1], track, truth)
    return axes


def html_track(track: Track) -> str:
    """HTML for notebooks: a drawing of the path with its ellipses and the beacons, and a one-sentence summary."""
    way, beacons = track.on_map(track.position), track.on_map(track.beacons.position)
    outline = track.on_map(track.outline(0.95))
    every = np.concatenate([way, beacons, outline.reshape(-1, 2)])
    low, high = every.min(axis=0), every.max(axis=0)
    scale = 360 / (float((high - low).max()) or 1.0)
    width, height = (high - low) * scale + 20
    placed = lambda places: (places - low) * (scale, -scale) + (10, height - 10)  # noqa: E731
    chosen = np.unique(np.linspace(0, len(track) - 1, 25).astype(int))
    state = {True: "determined", False: "NOT DETERMINED: chains disagree", None: "one chain"}[track.determined]
    words = (
        f"{len(track)} steps, {len(track.time)} arrivals, {len(track.beacons)} beacons; {state}; "
        f"median standard deviation {np.median(track.sd()):.3g}; ellipses hold 95 %"
    )
    return render(
        "tracking/templates/notebook_track.html",
        width=round(width),
        height=round(height),
        ellipses=[_points(placed(outline[k])) for k in chosen],
        way=_points(placed(way)),
        beacons=[(name, *place) for name, place in zip(track.beacons.names, placed(beacons).round(1).tolist())],
        words=words,
    )


def _points(places: Floats) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def draw_arrivals(axes: Any, track: Track) -> None:
    """Plot arrival times against days, each signal in the color of its most probable source; clutter is gray."""
    day = np.repeat(dates_of(track), np.diff(track.offsets))
    source = track.source
    junk = source < 0
    axes.scatter(day[junk], track.time[junk], s=8, color=GRAY, label="clutter", linewidths=0)
    for i in np.unique(source[~junk]):
        mine = source == i
        axes.scatter(day[mine], track.time[mine], s=8, color=_color(i), label=track.beacons.names[i], linewidths=0)
    axes.set(xlabel="date", ylabel="arrival (s, float clock)", title="signals by most probable source")
    axes.tick_params(axis="x", labelrotation=30)
    axes.legend(fontsize=7, markerscale=2, ncols=2)


def dates_of(track: Track) -> np.ndarray:
    """The date and time (steps,) of every step, to the second."""
    seconds = np.round(track.day * 86_400).astype("timedelta64[s]")
    return np.asarray(np.datetime64(track.epoch, "s") + seconds)


def draw_way(axes: Any, track: Track, truth: Floats | None = None) -> None:
    """Plot the beacons, the track with 95 % ellipses, each chain as a thin line, and the true path if given."""
    geographic = track.geometry == "geographic"

    def xy(points: Floats) -> tuple[Floats, Floats]:
        shown = track.on_map(points)
        return shown[..., 0], shown[..., 1]

    axes.scatter(
        *xy(track.beacons.position), marker="^", color=[_color(i) for i in range(len(track.beacons))], zorder=3
    )
    for name, x, y in zip(track.beacons.names, *xy(track.beacons.position)):
        axes.annotate(name, (x, y), xytext=(4, 4), textcoords="offset points", fontsize=7)
    _ellipses(axes, track)
    for chain in track.chain_position:
        axes.plot(*xy(chain), color="tab:blue", linewidth=0.5, alpha=0.6)
    axes.plot(*xy(track.position), color="tab:red", linewidth=1.4, label="track")
    if truth is not None:
        axes.plot(*xy(np.asarray(truth)), color="black", linewidth=1, linestyle="--", label="truth")
    x, y = xy(track.position)
    apart = ~track.agree
    axes.scatter(x[apart], y[apart], s=10, color="tab:orange", label="chains apart", zorder=2) if apart.any() else None
    labels = ("longitude", "latitude") if geographic else ("x", "y")
    axes.set(
        xlabel=labels[0],
        ylabel=labels[1],
        title="track with 95 % ellipses" + (": NOT DETERMINED" if track.determined is False else ""),
    )
    axes.set_aspect(
        1 / np.cos(np.radians(track.position[:, 0].mean())) if geographic else "equal", adjustable="datalim"
    )
    axes.legend(fontsize=7)


def _ellipses(axes: Any, track: Track, most: int = 25) -> None:
    outline = track.on_map(track.outline(0.95))
    for k in np.unique(np.linspace(0, len(track) - 1, most).astype(int)):
        axes.fill(outline[k, :, 0], outline[k, :, 1], color="tab:red", alpha=0.12, linewidth=0)


def _color(i: int) -> Any:
    from matplotlib import colormaps

    return colormaps["tab20"](COLORS[i % len(COLORS)])
