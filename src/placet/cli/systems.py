"""``placet compare --all-pairs``: every pair of systems, corrected for their number, and tiers of systems."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from placet.cli.evaluate import value_per_query
from placet.cli.output import deliver, progress_bar, say, show_table


def named_systems(given: Sequence[Path]) -> dict[str, list[Path]]:
    """The files of each system: ``name=path`` gives a name, and files with the same name are runs of one system."""
    out: dict[str, list[Path]] = {}
    for path in given:
        name, sign, rest = str(path).partition("=")
        if sign and name and not path.exists():
            out.setdefault(name, []).append(Path(rest))
        else:
            if str(path) in out:
                raise ValueError(f"{path} is given twice; name runs of one system alike: name=first name=second")
            out[str(path)] = [path]
    return out


def show_all_pairs(
    metrics: Sequence[Any],
    systems: dict[str, list[Any]],
    labels: Path,
    *,
    correction: str,
    level: float,
    random_state: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Print systems in tiers and all pairs (to ``out``, if given) by each metric.

    ``systems`` maps names to runs, matched with the judgments in the file ``labels``.
    """
    from placet.metrics import compare_systems

    system_head = ["metric", "system", "tier", "mean", "stderr", "queries", "runs", "spread of runs"]
    pair_head = ["metric", "a", "b", "a minus b", "low", "high", "p", "p holm", "p max-t", "queries"]
    system_rows: list[list[Any]] = []
    pair_rows: list[list[Any]] = []
    for spec in metrics:
        values = {name: [value_per_query(spec, run, labels) for run in runs] for name, runs in systems.items()}
        with progress_bar(f"comparing by {spec!r}"):
            found = compare_systems(values, correction=correction, level=level, random_state=random_state)
        for name, own, n_runs, spread, tier in zip(
            found.names, found.summaries, found.n_runs, found.run_spread, found.tier
        ):
            shown = None if n_runs == 1 else spread
            system_rows.append([repr(spec), name, tier, own.mean, own.stderr, own.n_lists, n_runs, shown])
        for pair in found.pairs:
            gap = pair.gap
            p = [gap.p_value, pair.p_holm, pair.p_max_t, gap.n_lists]
            pair_rows.append([repr(spec), pair.a, pair.b, gap.difference, gap.low, gap.high, *p])
        left_out = max(own.n_undefined for own in found.summaries)
        if left_out:
            say(f"{spec!r}: up to {left_out} queries have no value and are left out")
    tables = {"systems": (system_head, system_rows), "pairs": (pair_head, pair_rows)}
    if not as_json:
        show_table(system_head, system_rows)
        if out is None:
            print()
    both = {key: [dict(zip(head, row)) for row in rows] for key, (head, rows) in tables.items()}
    deliver(out, as_json, pair_head, pair_rows, both)
