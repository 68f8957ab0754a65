"""The metrics on the validation set after each step of a fit: checks, a table and a plot."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placet.io.files import writing
from placet.lazy import import_optional
from placet.metrics import metric as metric_of

if TYPE_CHECKING:
    import polars

PICTURES = (".svg", ".png", ".pdf")


def check_metrics(metrics: Sequence[str], validates: bool) -> tuple[str, ...]:
    """The names of further metrics to record; raise a ``ValueError`` if one is unknown, or nothing to compute it on."""
    if isinstance(metrics, str):
        metrics = (metrics,)
    for name in metrics:
        metric_of(name)
    if len(metrics) and not validates:
        raise ValueError(f"metrics {list(metrics)} are recorded on a validation set; give valid=")
    return tuple(metrics)


def history_frame(summary: Mapping[str, Any]) -> "polars.DataFrame":
    """The history in a ``fit_summary_`` as a table: ``step`` and a column for each metric."""
    import polars

    history = summary.get("history")
    if history is None:
        raise AttributeError("the fit has no history_: it had no validation set; give valid= to fit")
    return polars.DataFrame(
        history, schema={name: polars.Float64 if name != "step" else polars.Int64 for name in history}
    )


def plot_history(history: "polars.DataFrame", axes: Any = None) -> Any:
    """Plot each metric by step, with a mark at the best step of the first one; returns the axes."""
    plot = import_optional("matplotlib.pyplot", "plots need matplotlib", "pip install 'placet[plot]'")
    axes = plot.subplots(layout="constrained")[1] if axes is None else axes
    step, first, *_ = history.columns
    for name in history.columns[1:]:
        axes.plot(history[step], history[name], label=name)
    known = history.drop_nulls(first)
    best = known[first].arg_max()
    if best is not None:
        axes.plot(
            known[step][best], known[first][best], "o", color="black", label=f"best {first}: {known[first][best]:.4f}"
        )
    axes.set_xlabel("step")
    axes.set_ylabel("mean over validation queries")
    axes.legend()
    return axes


def write_history(history: "polars.DataFrame", path: str | os.PathLike[str]) -> None:
    """Write the history as a table (.csv) or a picture (.svg, .png, .pdf), by the suffix of the file."""
    suffix = check_suffix(path)
    with writing(Path(path)) as file:
        if suffix == ".csv":
            history.write_csv(file)
            return
        figure = import_optional("matplotlib.figure", "plots need matplotlib", "pip install 'placet[plot]'").Figure(
            layout="constrained"
        )
        plot_history(history, figure.subplots())
        figure.savefig(file, format=suffix[1:])


def check_suffix(path: str | os.PathLike[str]) -> str:
    """The suffix of a file for a history; raise a ``ValueError`` if it stands for no format."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".csv", *PICTURES):
        raise ValueError(f"{path}: a history is written as .csv, {', '.join(PICTURES)}, not {suffix or 'no suffix'}")
    return suffix
