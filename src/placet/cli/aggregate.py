"""``placet aggregate``: from a file of votes, ballots or ratings to a consensus."""

from pathlib import Path
from typing import Annotated

import typer

from placet.cli.output import READ_HELP, parameters, say, show_json, show_table


def aggregate(
    file: Annotated[Path, typer.Argument(help="Votes, ballots, PrefLib, ratings.")],
    method: Annotated[str, typer.Option("--method", "-m", help="A model or rule; a wrong name lists them all.")] = "",
    format: Annotated[str, typer.Option(help="Format of the file; guessed if not given.")] = "",
    option: Annotated[list[str] | None, typer.Option("--read", "-r", help=READ_HELP)] = None,
    param: Annotated[list[str] | None, typer.Option("--param", "-p", help="name=value, passed to the method.")] = None,
    bootstrap: Annotated[int, typer.Option(help="Rounds of resampling; 0 for none.")] = 0,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    report: Annotated[Path | None, typer.Option(help="Write a page about the result (HTML).")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the table to a CSV file instead of stdout.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
) -> None:
    """Rank the items of a file by consensus, with standard errors and rank intervals.

    Without --method: Bradley-Terry for votes, Plackett-Luce for ballots and ratings.
    """
    from placet.aggregate import MODELS, RULES, consensus
    from placet.data import Comparisons, DataError, Rankings
    from placet.io import read

    data = read(file, format or None, **parameters(option or []))
    if not isinstance(data, Rankings | Comparisons):
        raise DataError(f"{file}: {type(data).__name__} cannot be aggregated; votes, ballots or ratings can")
    chosen = method or ("bradley-terry" if isinstance(data, Comparisons) else "plackett-luce")
    if chosen not in MODELS and chosen not in RULES:
        raise ValueError(f"method {chosen!r} is unknown; models: {sorted(MODELS)}; rules: {sorted(RULES)}")
    result = consensus(data, chosen, bootstrap=bootstrap, random_state=seed, **parameters(param or []))
    for note in result.notes:
        say(note)
    frame = result.to_frame(level)
    if out is not None:
        from placet.io.files import writing

        with writing(out) as target:
            frame.write_csv(target)
    elif as_json:
        show_json({"method": chosen, "notes": list(result.notes), "ranking": frame.to_dicts()})
    else:
        show_table(frame.columns, frame.rows())
    if report is not None:
        from placet.report import write_consensus_page

        write_consensus_page(report, result, data, title=f"Consensus of {file.name}", level=level)
        say(f"report: {report}")
