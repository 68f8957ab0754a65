"""``placet simulate``: data drawn from a model, to try things on."""

from pathlib import Path
from typing import Annotated, Any

import typer

from placet.cli.aggregate import parameters
from placet.cli.output import say


def simulate(
    model: Annotated[str, typer.Argument(help="plackett-luce, mallows, battles, ratings, queries.")],
    out: Annotated[Path, typer.Option(help="File to write; its ending chooses the format.")],
    items: Annotated[int, typer.Option(help="Items, or rows per query.")] = 10,
    n: Annotated[int, typer.Option("--n", help="Ballots, votes, users or queries.")] = 100,
    spread: Annotated[float, typer.Option(help="Standard deviation of the true scores.")] = 1.0,
    param: Annotated[
        list[str] | None, typer.Option("--param", "-p", help="name=value, passed to the simulator.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed: the same seed gives the same bytes.")] = 0,
) -> None:
    """Draw data from a model and write them to a file."""
    from placet.io import write

    data = drawn(model, items, n, spread, seed, parameters(param or []))
    write(data, out)
    say(f"{out}: {data!r}")


def drawn(model: str, items: int, n: int, spread: float, seed: int, params: dict[str, Any]) -> Any:
    """Data from a simulator; item k is called item-k, and true scores fall with k."""
    import numpy as np

    from placet import simulate as s

    if items < 1 or n < 1:
        raise ValueError(f"--items {items} and --n {n} must be at least 1")
    names = [f"item-{k + 1}" for k in range(items)]
    theta = spread * np.sort(np.random.default_rng(seed).standard_normal(items))[::-1]
    common: dict[str, Any] = {"random_state": seed, **params}
    makers = {
        "plackett-luce": lambda: s.plackett_luce(theta, n, items=names, **common),
        "mallows": lambda: s.mallows(names, n_ballots=n, **{"phi": 0.7, **common}),
        "battles": lambda: s.battles(theta, n, items=names, **common),
        "ratings": lambda: s.ratings(n, items, **common),
        "queries": lambda: s.queries(n, items, **{"n_features": 10, **common}),
    }
    if model not in makers:
        raise ValueError(f"model {model!r} is unknown; choose from {list(makers)}")
    return makers[model]()
