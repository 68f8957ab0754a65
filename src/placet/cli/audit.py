"""``placet audit``: which axioms a consensus satisfies, on a file of ballots or in theory."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from placet.cli.common.console_output import check_suffix, deliver, progress_bar, say
from placet.cli.common.options import (
    AsJson,
    FormatName,
    MethodText,
    Out,
    Param,
    check_reading,
    formats_to_rank,
    reads,
)

if TYPE_CHECKING:
    from placet.axioms import Audit, AuditSet, MethodAudit


@reads("qid", "label")
def audit(
    file: Annotated[Path | None, typer.Argument(help="Ballots, PrefLib, votes, ratings; none for the theory.")] = None,
    method: MethodText = "borda",
    format: FormatName = "",
    param: Param = None,
    instance: Annotated[str, typer.Option(metavar="NAME", help="Audit this instance (topic, query) alone.")] = "",
    near: Annotated[float, typer.Option(help="The margin up to which a majority is narrow.")] = 0.02,
    items: Annotated[
        str, typer.Option(metavar="NAME,...", help="Names of all items, comma-separated; without a file: their number.")
    ] = "",
    voters: Annotated[int, typer.Option(help="Without a file: the most voters of a search.")] = 4,
    ties: Annotated[bool, typer.Option(help="Without a file: let ballots tie items in a search.")] = False,
    out: Out = None,
    as_json: AsJson = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Show which axioms a consensus satisfies, which it violates, how badly, and on which ballots.

    For positional rules (borda, plurality, anti-plurality, log, squared) the theory is exact; for other rules it
    rests on a search.  A file with instances is audited instance by instance, and the table summarizes them.
    """
    from placet.aggregate.consensus_door import check_method
    from placet.axioms import MethodAudit, audit as run
    from placet.data.parameters import parse_parameters
    from placet.io.tables.column_names import split_names

    check_suffix(out)
    check_reading(reading, formats_to_rank(format), "placet audit")
    values = parse_parameters(param or [])
    check_method(method, values)
    if file is None:
        if not items.isdecimal() or int(items) < 2:
            raise ValueError("give a file of ballots, or --items with the number of items (2 or more) for theory alone")
        with progress_bar(f"searching {method}"):
            found: Audit | AuditSet | MethodAudit = run(
                None, method, items=int(items), voters=voters, ties=ties, **values
            )
    elif items.isdecimal():
        raise ValueError(
            f"--items {items} is a number, for the theory alone; name the items of {file}, or leave one of the two out"
        )
    else:
        with progress_bar(f"auditing {method}"):
            data = _read(file, format, reading | ({"items": split_names(items)} if items else {}))
            found = run(data, method, near=near, instance=_name(data, instance), **values)
    if isinstance(found, MethodAudit) and not found.proved:
        most = max(v.searched for v in found.verdicts)
        say(f"{method} is not positional: up to {most:,} profiles of at most {voters} voters were searched per axiom")
    frame = found.to_frame()
    deliver(out, as_json, frame.columns, frame.rows(), _value(found) if as_json or out is not None else None)


def _value(found: "Audit | AuditSet | MethodAudit") -> Any:
    """The content of an audit for JSON."""
    from placet.axioms import AuditSet, MethodAudit

    if isinstance(found, MethodAudit):
        return _verdicts(found)
    if isinstance(found, AuditSet):
        instances = found.instances_frame().to_dicts()
        return {"method": found.method, "instances": instances, "findings": found.to_frame().to_dicts()}
    return _facts(found)


def _read(file: Path, format: str, options: dict[str, Any]) -> Any:
    from placet.data import Comparisons, DataError, Rankings, Scores
    from placet.io import read_files
    from placet.io.several_files import kind_of

    data = read_files([file], format or None, **options)
    data = data.to_rankings() if isinstance(data, Scores) else data  # one ballot per task
    if not isinstance(data, Rankings | Comparisons):
        raise DataError(f"{file}: {kind_of(data)} cannot be audited; votes, ballots or ratings can")
    return data


def _name(data: Any, instance: str) -> Any:
    """The name of the instance as it is in the data, text or number; None if none is requested."""
    named = {str(name): name for name in getattr(data, "instances", None) or ()}
    return named.get(instance, instance or None)


def _facts(found: "Audit") -> dict[str, Any]:
    return {
        "method": found.method,
        "ranking": found.consensus.ranking,
        "ties": found.ties,
        "condorcet_winner": found.condorcet_winner,
        "majority_winner": found.majority_winner,
        "pareto_pairs": len(found.pareto),
        "pareto_broken": found.pareto_broken,
        "majorities": found.majorities,
        "epsilon": found.epsilon,
        "contradicted": found.pairs_frame().to_dicts(),
        "sensitivity": None if found.sensitivity is None else vars(found.sensitivity),
        "agreement": {
            "winners": dict(zip(found.agreement.methods, found.agreement.winners)),
            "distance": found.agreement.distance,
            "tied_by_some": found.agreement.tied_by_some,
            "contested": [vars(pair) for pair in found.agreement.contested],
        },
        "findings": found.to_frame().to_dicts(),
    }


def _verdicts(found: "MethodAudit") -> list[dict[str, Any]]:
    from placet.axioms import MEANING, format_profile

    return [
        {
            "axiom": v.axiom,
            "asks": MEANING[v.axiom],
            "verdict": line.verdict,
            "epsilon": line.margin,
            "text": line.text,
            "proved": v.proved,
            "searched": v.searched,
            "complete": v.complete,
            "profiles": [format_profile(p) for p in v.witness.profiles] if v.witness else [],
        }
        for v, line in zip(found.verdicts, found.findings)
    ]
