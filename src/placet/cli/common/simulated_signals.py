"""``placet simulate ranked-signals``: simulated signals of a float."""

from pathlib import Path
from typing import Annotated

import typer

from placet.cli.common.options import SeedOption


def simulate_ranked_signals(
    out: Annotated[Path, typer.Option(help="Folder for arrivals.csv, beacons.csv and truth.csv.")],
    path: Annotated[str, typer.Option(help="The way of the float: line, spiral or walk.")] = "line",
    steps: Annotated[int, typer.Option(help="Number of days.")] = 300,
    n_beacons: Annotated[int, typer.Option("--beacons", help="Beacons, spread at random over a 10 x 10 square.")] = 10,
    capacity: Annotated[int, typer.Option(help="Signals the float stores a day.")] = 4,
    detection: Annotated[float, typer.Option(help="P_D, the chance to hear a beacon.")] = 0.7,
    clutter_rate: Annotated[float, typer.Option(help="Mean number of false signals a day.")] = 4.0,
    sigma: Annotated[float, typer.Option(help="Standard deviation of an arrival time, s.")] = 0.02,
    seed: SeedOption = 0,
) -> None:
    """Simulate the signals of a float in the plane (speed 1), with the true sources and positions."""
    import numpy as np

    from placet.io.tables.tables import write_table
    from placet.simulate.signals import ranked_signals, simulated_path
    from placet.tracking.observations import Beacons
    from placet.tracking.track_files import write_arrivals, write_beacons

    rng = np.random.default_rng(seed)
    beacons = Beacons(rng.uniform(0, 10, (n_beacons, 2)), speed=1.0)
    drawn = ranked_signals(
        beacons, simulated_path(path, steps, rng), capacity=capacity, detection=detection, clutter_rate=clutter_rate,
        sigma=sigma, window=(0.0, 10.0), random_state=rng,
    )  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    names = [beacons.names[i] if i >= 0 else "clutter" for i in drawn.source]
    write_arrivals(drawn.arrivals, out / "arrivals.csv", names)
    write_beacons(beacons, out / "beacons.csv")
    x, y = drawn.position.T.tolist()
    write_table(out / "truth.csv", {"day": drawn.arrivals.day.tolist(), "x": x, "y": y}, "csv")
