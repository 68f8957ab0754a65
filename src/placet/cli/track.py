"""``placet track``: track a float from recorded arrivals."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from placet.cli.common.console_output import progress_bar, say
from placet.cli.common.options import METHOD, MODEL, OUTPUT, SeedOption, check_target, in_group


def track(
    arrivals: Annotated[Path, typer.Argument(help="Table of signals: day, arrival_s[, confidence, source].")],
    beacons: Annotated[Path, typer.Option(help="Table of beacons: id, lat, lon (or x, y)[, ping_offset_s, ...].")],
    start: Annotated[str, typer.Option(metavar="LAT,LON", help="Known first position: LAT,LON (or X,Y).")],
    end: Annotated[str, typer.Option(metavar="LAT,LON", help="Known last position: LAT,LON (or X,Y).")] = "",
    out: Annotated[
        Path | None,
        in_group(
            "Track to write: .csv, .geojson or .nc (else CSV on stdout).",
            OUTPUT,
            "",
            "--out",
            "-o",
            callback=check_target,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        in_group("Picture to write: .png, .pdf or .svg.", OUTPUT, callback=check_target),
    ] = None,
    signals: Annotated[
        Path | None,
        in_group("CSV of every signal with its most probable source.", OUTPUT, callback=check_target),
    ] = None,
    detection: Annotated[float, in_group("P_D, the chance to hear a beacon.", MODEL)] = 0.9,
    clutter_rate: Annotated[
        float, in_group("Mean number of false signals a day; P_C = rate / (1 + rate).", MODEL)
    ] = 1.0,
    sigma: Annotated[float, in_group("Standard deviation of an arrival time, s.", MODEL)] = 5.0,
    diffusion: Annotated[float, in_group("Variance of the position gained per day, km^2.", MODEL)] = 25.0,
    persistence: Annotated[float, in_group("Days over which the velocity lasts; 0 for a random walk.", MODEL)] = 0.0,
    estimate: Annotated[bool, in_group("Estimate detection, clutter rate, sigma and diffusion first.", MODEL)] = False,
    speed: Annotated[float, in_group("Speed of sound, km/s, where the table gives none.", MODEL)] = 1.5,
    window: Annotated[
        str,
        in_group("FIRST,LAST second of listening; else 0 and the last arrival.", "What was heard", "FIRST,LAST"),
    ] = "0,inf",
    capacity: Annotated[
        int,
        in_group("Signals the float stores a day; 0: the most it did store.", "What was heard"),
    ] = 0,
    keep: Annotated[
        str,
        in_group("Which signals are stored: earliest or strongest.", "What was heard", "NAME"),
    ] = "earliest",
    clock: Annotated[
        str,
        in_group("Float clock minus true time at the FIRST,LAST day, s.", "What was heard", "FIRST,LAST"),
    ] = "0,0",
    emission: Annotated[
        str,
        in_group(
            "known, unknown (only differences between beacons are), or the delay of a day: SD or FIRST,LAST in s.",
            "What was heard",
            "NAME",
        ),
    ] = "known",
    labels: Annotated[bool, in_group("Use the column source: labels made by hand.", "What was heard")] = False,
    epoch: Annotated[str, in_group("Date of day 0.", "What was heard", "DATE")] = "1970-01-01",
    particles: Annotated[int, in_group("Particles in each chain.", METHOD)] = 10_000,
    chains: Annotated[int, in_group("Independent runs, to see whether the track is determined.", METHOD)] = 4,
    smooth: Annotated[bool | None, in_group("Use later signals too; by default with --end.", METHOD)] = None,
    seed: SeedOption = 0,
) -> None:
    """Track a float from the first few unlabeled arrivals of each day, and say whether the track is determined."""
    from placet.tracking.delays import emission_of
    from placet.tracking.track_files import read_arrivals, read_beacons, write_associations, write_csv, write_track
    from placet.tracking.tracker import RankedSignalTracker

    sources = read_beacons(beacons, speed=speed, epoch=epoch)
    heard = read_arrivals(
        arrivals, capacity=capacity or None, window=_pair(window, "window"), clock=_pair(clock, "clock"), epoch=epoch,
        beacons=sources, labels=labels,
    )  # fmt: skip
    tracker = RankedSignalTracker(
        beacons=sources, detection=detection, clutter_rate=clutter_rate, sigma=sigma, diffusion=diffusion,
        persistence=persistence, keep=keep, emission=emission_of(emission), particles=particles,
        chains=chains, random_state=seed,
    )  # fmt: skip
    ends = _pair(start, "start"), _pair(end, "end") if end else None
    if estimate:
        from placet.tracking.estimate import estimate_by_em

        with progress_bar("estimating"):
            found = estimate_by_em(tracker, heard, *ends)
        tracker = found.tracker
        say(found.summary())
    with progress_bar("tracking"):
        result = tracker.track(heard, *ends, smooth=smooth)
    say(result.summary())
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
