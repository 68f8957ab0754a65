"""``placet track``: track a float from recorded arrivals."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from placet.cli.common.console_output import progress_bar
from placet.cli.common.options import METHOD, MODEL, OUTPUT, SeedOption, check_target


def track(
    arrivals: Annotated[Path, typer.Argument(help="Table of signals: day, arrival_s[, confidence, source].")],
    beacons: Annotated[Path, typer.Option(help="Table of beacons: id, lat, lon (or x, y)[, ping_offset_s, ...].")],
    start: Annotated[str, typer.Option(metavar="LAT,LON", help="Known first position: LAT,LON (or X,Y).")],
    end: Annotated[str, typer.Option(metavar="LAT,LON", help="Known last position: LAT,LON (or X,Y).")] = "",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            callback=check_target,
            help="Track to write: .csv, .geojson or .nc (else CSV on stdout).",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(callback=check_target, help="Picture to write: .png, .pdf or .svg.", rich_help_panel=OUTPUT),
    ] = None,
    signals: Annotated[
        Path | None,
        typer.Option(
            callback=check_target, help="CSV of every signal with its most probable source.", rich_help_panel=OUTPUT
        ),
    ] = None,
    detection: Annotated[float, typer.Option(help="P_D, the chance to hear a beacon.", rich_help_panel=MODEL)] = 0.9,
    clutter_rate: Annotated[
        float, typer.Option(help="Mean number of false signals a day; P_C = rate / (1 + rate).", rich_help_panel=MODEL)
    ] = 1.0,
    sigma: Annotated[
        float, typer.Option(help="Standard deviation of an arrival time, s.", rich_help_panel=MODEL)
    ] = 5.0,
    diffusion: Annotated[
        float, typer.Option(help="Variance of the position gained per day, km^2.", rich_help_panel=MODEL)
    ] = 25.0,
    persistence: Annotated[
        float, typer.Option(help="Days over which the velocity lasts; 0 for a random walk.", rich_help_panel=MODEL)
    ] = 0.0,
    estimate: Annotated[
        bool, typer.Option(help="Estimate detection, clutter rate, sigma and diffusion first.", rich_help_panel=MODEL)
    ] = False,
    speed: Annotated[
        float, typer.Option(help="Speed of sound, km/s, where the table gives none.", rich_help_panel=MODEL)
    ] = 1.5,
    window: Annotated[
        str,
        typer.Option(
            help="FIRST,LAST second of listening; else 0 and the last arrival.",
            metavar="FIRST,LAST",
            rich_help_panel="What was heard",
        ),
    ] = "0,inf",
    capacity: Annotated[
        int,
        typer.Option(
            help="Signals the float stores a day; 0: the most it did store.", rich_help_panel="What was heard"
        ),
    ] = 0,
    keep: Annotated[
        str,
        typer.Option(
            help="Which signals are stored: earliest or strongest.", metavar="NAME", rich_help_panel="What was heard"
        ),
    ] = "earliest",
    clock: Annotated[
        str,
        typer.Option(
            help="Float clock minus true time at the FIRST,LAST day, s.",
            metavar="FIRST,LAST",
            rich_help_panel="What was heard",
        ),
    ] = "0,0",
    labels: Annotated[
        bool, typer.Option(help="Use the column source: labels made by hand.", rich_help_panel="What was heard")
    ] = False,
    epoch: Annotated[
        str, typer.Option(help="Date of day 0.", metavar="DATE", rich_help_panel="What was heard")
    ] = "1970-01-01",
    particles: Annotated[int, typer.Option(help="Particles in each chain.", rich_help_panel=METHOD)] = 10_000,
    chains: Annotated[
        int, typer.Option(help="Independent runs, to see whether the track is determined.", rich_help_panel=METHOD)
    ] = 4,
    smooth: Annotated[
        bool | None, typer.Option(help="Use later signals too; by default with --end.", rich_help_panel=METHOD)
    ] = None,
    seed: SeedOption = 0,
) -> None:
    """Track a float from the first few unlabeled arrivals of each day, and say whether the track is determined."""
    from placet.tracking.track_files import read_arrivals, read_beacons, write_associations, write_csv, write_track
    from placet.tracking.tracker import RankedSignalTracker

    sources = read_beacons(beacons, speed=speed, epoch=epoch)
    heard = read_arrivals(
        arrivals, capacity=capacity or None, window=_pair(window, "window"), clock=_pair(clock, "clock"), epoch=epoch,
        beacons=sources, labels=labels,
    )  # fmt: skip
    tracker = RankedSignalTracker(
        beacons=sources, detection=detection, clutter_rate=clutter_rate, sigma=sigma, diffusion=diffusion,
        persistence=persistence, keep=keep, particles=particles, chains=chains, random_state=seed,
    )  # fmt: skip
    ends = _pair(start, "start"), _pair(end, "end") if end else None
    if estimate:
        from placet.tracking.estimate import estimate_by_em

        with progress_bar("estimating"):
            found = estimate_by_em(tracker, heard, *ends)
        tracker = found.tracker
        print(found.summary(), file=sys.stderr)
    with progress_bar("tracking"):
        result = tracker.track(heard, *ends, smooth=smooth)
    print(result.summary(), file=sys.stderr)
    if out is not None:
        write_track(result, out)
    if signals is not None:
        write_associations(result, signals)
    if plot is not None:
        from placet.tracking.plot import plot_track

        plot_track(result, plot)
    if out is None:  # last, because stdout may be a pipe that is closed early
        write_csv(result, sys.stdout)  # type: ignore[arg-type]


def _pair(text: str, what: str) -> tuple[float, float]:
    try:
        first, second = (float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"{what} {text!r} must be two comma-separated numbers, such as -57.5,-105") from None
    return first, second
