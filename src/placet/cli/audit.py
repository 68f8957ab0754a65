"""``placet audit``: what a consensus keeps and breaks, on a file of ballots or in theory alone."""

from pathlib import Path
from typing import Annotated, Any

import typer

from placet.cli.aggregate import parameters
from placet.cli.output import say, show_json, show_table


def audit(
    file: Annotated[Path | None, typer.Argument(help="Ballots, PrefLib, votes, ratings; none for the theory.")] = None,
    rule: Annotated[str, typer.Option("--rule", "-r", help="A rule or model, as in 'placet aggregate'.")] = "borda",
    items: Annotated[int, typer.Option(help="Without a file: the number of items.")] = 0,
    voters: Annotated[int, typer.Option(help="Without a file: the most voters of a search.")] = 4,
    ties: Annotated[bool, typer.Option(help="Without a file: let ballots tie items in a search.")] = False,
    near: Annotated[float, typer.Option(help="The margin up to which a majority is narrow.")] = 0.02,
    format: Annotated[str, typer.Option(help="Format of the file; guessed if not given.")] = "",
    param: Annotated[list[str] | None, typer.Option("--param", "-p", help="name=value, passed to the rule.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
) -> None:
    """Say which axioms a consensus keeps, which it breaks, how badly, and on which ballots.

    Of positional rules (borda, plurality, anti-plurality, log, squared) the theory is exact; other rules are searched.
    """
    values = parameters(param or [])
    if file is None:
        _theory(rule, items, voters, ties, values, as_json)
    elif items:
        raise ValueError(f"--items {items} is for the theory alone; leave it out, or leave out {file}")
    else:
        _ballots(file, rule, format, near, values, as_json)


def _ballots(file: Path, rule: str, format: str, near: float, values: dict[str, Any], as_json: bool) -> None:
    from placet.axioms import audit as audited
    from placet.data import Comparisons, DataError, Rankings
    from placet.io import read

    data = read(file, format=format or None)
    if not isinstance(data, Rankings | Comparisons):
        raise DataError(f"{file}: {type(data).__name__} cannot be audited; votes, ballots or ratings can")
    found = audited(rule, data, near=near, **values)
    frame = found.to_frame()
    if not as_json:
        show_table(frame.columns, frame.rows())
        return
    show_json(
        {
            "rule": found.rule,
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
                "winners": dict(zip(found.agreement.rules, found.agreement.winners)),
                "distance": found.agreement.distance,
                "levelled": found.agreement.levelled,
                "contested": [vars(pair) for pair in found.agreement.contested],
            },
            "findings": frame.to_dicts(),
        }
    )


def _theory(rule: str, items: int, voters: int, ties: bool, values: dict[str, Any], as_json: bool) -> None:
    from placet.axioms import rule_of, verdicts
    from placet.axioms.findings import verdict_words
    from placet.axioms.words import MEANING, profile_words

    if items < 2:
        raise ValueError("give a file of ballots, or --items with the number of items (2 or more) for the theory alone")
    found = verdicts(rule_of(rule, **values), items, voters=voters, ties=ties)
    if not any(v.proved for v in found):
        most = max(v.searched for v in found)
        say(
            f"{rule} is not positional: up to {most:,} profiles of at most {voters} voters were searched for each axiom"
        )
    rows = [(v.axiom, *verdict_words(v)) for v in found]
    if not as_json:
        show_table(("axiom", "verdict", "epsilon", "words"), rows)
        return
    show_json(
        [
            {
                "axiom": v.axiom,
                "asks": MEANING[v.axiom],
                "verdict": verdict,
                "epsilon": epsilon,
                "words": text,
                "proved": v.proved,
                "searched": v.searched,
                "complete": v.complete,
                "profiles": [profile_words(p) for p in v.witness.profiles] if v.witness else [],
            }
            for v, (_, verdict, epsilon, text) in zip(found, rows)
        ]
    )
