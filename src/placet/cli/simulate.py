"""``placet simulate``: data drawn from a model, for experiments."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from placet.cli.common.console_output import progress_bar, say
from placet.cli.common.options import SeedOption, check_target
from placet.cli.common.simulated_items import names, truth
from placet.cli.help.command_line import HELP, Command

app = typer.Typer(no_args_is_help=True, help="Draw data from a model and write them to a file.")

OutFile = Annotated[
    Path, typer.Option("--out", "-o", callback=check_target, help="File to write; its ending chooses the format.")
]
Items = Annotated[int, typer.Option(min=1, help="Number of items.")]
N = Annotated[int, typer.Option("--n", min=1, help="How many are drawn.")]
ScoreSpread = Annotated[float, typer.Option(min=0, help="Standard deviation of the true scores.")]

TIE = "Tie parameter, as the models find it: theta = 1 + e^tie (rao-kupper), nu = e^tie (davidson); -inf: no ties."


@app.command("plackett-luce", cls=Command, context_settings=HELP)
def plackett_luce(
    out: OutFile,
    items: Items = 10,
    n: N = 100,
    spread: ScoreSpread = 1.0,
    top: Annotated[int | None, typer.Option(help="Order only the best N; the others are tied last.")] = None,
    tiers: Annotated[int | None, typer.Option(help="Ties: a random partition into this many tiers.")] = None,
    subset: Annotated[int | None, typer.Option(help="Items on each ballot; the others are absent.")] = None,
    seed: SeedOption = 0,
) -> None:
    """Ballots: full orders, top-k lists, or ordered partitions with ties."""
    options = {"top": top, "partition": tiers, "subset": subset}
    _write(
        out, lambda s: s.plackett_luce(truth(items, spread, seed), n, items=names(items), random_state=seed, **options)
    )


@app.command("ordered-partitions", cls=Command, context_settings=HELP)
def ordered_partitions(
    out: OutFile,
    items: Items = 10,
    n: N = 100,
    spread: ScoreSpread = 1.0,
    form: Annotated[str, typer.Option(metavar="fd|exact", help="fd: any number of items; exact: a few.")] = "fd",
    seed: SeedOption = 0,
) -> None:
    """Ballots with ties: tiers drawn one after the other by a model over ordered partitions (PMOP)."""
    options: dict[str, Any] = {"form": form, "random_state": seed}
    _write(out, lambda s: s.ordered_partitions(truth(items, spread, seed), n, items=names(items), **options))


@app.command("best-worst", cls=Command, context_settings=HELP)
def best_worst(
    out: OutFile,
    items: Items = 10,
    n: N = 100,
    spread: ScoreSpread = 1.0,
    shown: Annotated[int, typer.Option(min=2, help="Items shown in each question.")] = 5,
    seed: SeedOption = 0,
) -> None:
    """Best-worst choices (MaxDiff): the best and the worst of the items shown; --n is the number of questions."""
    options: dict[str, Any] = {"items": names(items), "random_state": seed}
    _write(out, lambda s: s.best_worst(truth(items, spread, seed), n, shown, **options), "best-worst")


@app.command("mallows", cls=Command, context_settings=HELP)
def mallows(
    out: OutFile,
    items: Items = 10,
    n: N = 100,
    phi: Annotated[float, typer.Option(min=0, max=1, help="0: every ballot is the center; 1: all orders alike.")] = 0.7,
    seed: SeedOption = 0,
) -> None:
    """Full orders around one center."""
    _write(out, lambda s: s.mallows(names(items), phi, n, random_state=seed))


@app.command("battles", cls=Command, context_settings=HELP)
def battles(
    out: OutFile,
    items: Items = 10,
    n: N = 100,
    spread: ScoreSpread = 1.0,
    model: Annotated[str, typer.Option(metavar="NAME", help="bradley-terry, rao-kupper or davidson.")] = "davidson",
    tie: Annotated[float, typer.Option(help=TIE)] = 0.0,
    first: Annotated[float, typer.Option(help="Advantage of the one that comes first.")] = 0.0,
    seed: SeedOption = 0,
) -> None:
    """Pairwise votes with ties."""
    options: dict[str, Any] = {"model": model, "tie": tie, "first": first, "random_state": seed}
    _write(out, lambda s: s.battles(truth(items, spread, seed), n, items=names(items), **options))


@app.command("judged-votes", cls=Command, context_settings=HELP)
def judged_votes(
    out: OutFile,
    items: Items = 10,
    n: N = 100,
    judged: Annotated[int, typer.Option(min=1, help="Votes of the judge.")] = 1000,
    spread: ScoreSpread = 1.0,
    scale: Annotated[float, typer.Option(help="How far apart the judge sees the items; 0: it guesses.")] = 1.3,
    width: Annotated[float, typer.Option(min=0, help="Standard deviation of the judge's deviations.")] = 0.3,
    seed: SeedOption = 0,
) -> None:
    """Votes of people and of a judge who deviates, in a column of who voted; --n is the number of people's votes."""
    given: dict[str, Any] = {"scale": scale, "width": width, "items": names(items), "random_state": seed}
    _write(out, lambda s: _by_source(s.judged_votes(truth(items, spread, seed), n, judged, **given)))
    say(f"next: placet aggregate {out} --source agent --target human")


def _by_source(sources: Any) -> Any:
    """Votes of several sources as those of agents."""
    from placet.data import concat
    from placet.io.several_files import of_one_agent

    return concat([of_one_agent(votes, name) for name, votes in sources.items()])


@app.command("benchmark-table", cls=Command, context_settings=HELP)
def benchmark_table(
    out: OutFile,
    items: Items = 30,
    tasks: Annotated[int, typer.Option(min=1, help="Number of tasks.")] = 10,
    observed: Annotated[float, typer.Option(min=0, max=1, help="Share of cells that are there.")] = 0.5,
    dispersion: Annotated[float, typer.Option(help="Noise of a cell: between 0 and 1.")] = 0.05,
    spread: ScoreSpread = 1.0,
    seed: SeedOption = 0,
) -> None:
    """A table of models by tasks with holes: shares of questions solved."""
    given: dict[str, Any] = {
        "dispersion": dispersion,
        "observed": observed,
        "items": names(items),
        "random_state": seed,
    }
    _write(out, lambda s: s.benchmark_table(truth(items, spread, seed), truth(tasks, 1.0, seed + 1), **given))


@app.command("ratings", cls=Command, context_settings=HELP)
def ratings(
    out: OutFile,
    items: Items = 100,
    n: N = 100,
    observed: Annotated[float, typer.Option(min=0, max=1, help="Share of ratings that are there.")] = 0.05,
    levels: Annotated[int, typer.Option(min=2, help="Levels of the scale.")] = 5,
    seed: SeedOption = 0,
) -> None:
    """Ratings of items by users, mostly missing; --n is the number of users."""
    _write(out, lambda s: s.ratings(n, items, observed=observed, levels=levels, random_state=seed))


@app.command("queries", cls=Command, context_settings=HELP)
def queries(
    out: OutFile,
    rows: Annotated[int, typer.Option(min=1, help="Rows of each query.")] = 20,
    n: N = 100,
    features: Annotated[int, typer.Option(min=1, help="Number of features.")] = 10,
    grades: Annotated[int, typer.Option(min=1, help="Number of grades.")] = 5,
    noise: Annotated[float, typer.Option(min=0, help="Standard deviation of the noise beside the truth.")] = 1.0,
    seed: SeedOption = 0,
) -> None:
    """Graded search results with features and heavy ties; --n is the number of queries."""
    _write(out, lambda s: s.queries(n, rows, features, grades, noise=noise, random_state=seed))


@app.command("choices", cls=Command, context_settings=HELP)
def choices(
    out: OutFile,
    n: N = 1000,
    alternatives: Annotated[int, typer.Option(min=2, help="Alternatives of each choice.")] = 4,
    per_agent: Annotated[int, typer.Option(min=1, help="Choices of each person.")] = 1,
    spread: Annotated[float, typer.Option(min=0, help="Standard deviation of persons' tastes.")] = 0.0,
    seed: SeedOption = 0,
) -> None:
    """Choices among alternatives with a price (coefficient -1) and a comfort (0.5), a row per alternative."""
    from placet import simulate
    from placet.io.tables.tables import write_table

    options: dict[str, Any] = {"alternatives": alternatives, "per_agent": per_agent, "spread": spread}
    write_table(out, simulate.choices({"price": -1.0, "comfort": 0.5}, n, **options, random_state=seed))
    say(f"{out}: {n} choices among {alternatives} alternatives")


@app.command("ranked-signals", cls=Command, context_settings=HELP)
def simulate_ranked_signals(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder for arrivals.csv, beacons.csv and truth.csv.")
    ],
    path: Annotated[str, typer.Option(metavar="line|spiral|walk", help="The way of the float.")] = "line",
    steps: Annotated[int, typer.Option(help="Number of days.")] = 300,
    n_beacons: Annotated[int, typer.Option("--beacons", help="Beacons, spread at random over a 10 x 10 square.")] = 10,
    capacity: Annotated[int, typer.Option(help="Signals the float stores a day.")] = 4,
    detection: Annotated[float, typer.Option(help="P_D, the chance to hear a beacon.")] = 0.7,
    clutter_rate: Annotated[float, typer.Option(help="Mean number of false signals a day.")] = 4.0,
    sigma: Annotated[float, typer.Option(help="Standard deviation of an arrival time, s.")] = 0.02,
    emission: Annotated[
        str, typer.Option(metavar="NAME", help="known, unknown, or the delay of a day: SD or FIRST,LAST in s.")
    ] = "known",
    seed: SeedOption = 0,
) -> None:
    """Simulate the signals of a float in the plane (speed 1), with the true sources and positions."""
    import numpy as np

    from placet.io.tables.tables import write_table
    from placet.simulate.signals import ranked_signals, simulated_path
    from placet.tracking.delays import emission_of
    from placet.tracking.observations import Beacons
    from placet.tracking.track_files import write_arrivals, write_beacons

    rng = np.random.default_rng(seed)
    beacons = Beacons(rng.uniform(0, 10, (n_beacons, 2)), speed=1.0)
    drawn = ranked_signals(
        beacons, simulated_path(path, steps, rng), capacity=capacity, detection=detection, clutter_rate=clutter_rate,
        sigma=sigma, window=(0.0, 10.0), emission=emission_of(emission), random_state=rng,
    )  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    names = [beacons.names[i] if i >= 0 else "clutter" for i in drawn.source]
    write_arrivals(drawn.arrivals, out / "arrivals.csv", names)
    write_beacons(beacons, out / "beacons.csv")
    x, y = drawn.position.T.tolist()
    write_table(out / "truth.csv", {"day": drawn.arrivals.day.tolist(), "x": x, "y": y}, "csv")
    moved = float(np.mean(np.sum(np.diff(drawn.position, axis=0) ** 2, axis=1))) if steps > 1 else 1.0
    say(
        f"{out}: {len(drawn.source)} signals of {steps} days; next: placet track {out}/arrivals.csv --beacons "
        f"{out}/beacons.csv --start {x[0]:g},{y[0]:g} --window 0,10 --capacity {capacity} --detection {detection:g} "
        f"--clutter-rate {clutter_rate:g} --sigma {sigma:g} --diffusion {moved:.2g}"
        + (f" --emission={emission}" if emission != "known" else "")
    )


def _write(out: Path, draw: Callable[[Any], Any], format: str | None = None) -> None:
    from placet import simulate
    from placet.io import write

    with progress_bar("drawing"):
        data = draw(simulate)
        write(data, out, format)
    say(f"{out}: {data!r}")
