"""``placet fragility``: how few votes would change a ranking, and which they are."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from placet.cli.common.console_output import check_suffix, deliver, progress_bar, say
from placet.cli.common.options import (
    AsJson,
    FormatName,
    Level,
    MethodText,
    Out,
    Param,
    SeedOption,
    check_reading,
    formats_to_rank,
    reads,
)
from placet.cli.common.read_files import read_or_update
from placet.cli.common.read_sources import SourceColumn, Target, check_sources, read_sources

GoalChoice = Literal["best", "place", "top", "tiers"]
HowChoice = Literal["removed", "changed"]
ByChoice = Literal["vote", "voter", "judge", "task", "day"]


@reads("qid", "label")
def fragility(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Votes, ballots, ratings or score tables; NAME=FILE a source.")
    ],
    goal: Annotated[
        GoalChoice,
        typer.Option(
            metavar="best|place|top|tiers",
            help="What must not change: the first place, place K, the best K, or tiers.",
        ),
    ] = ("best"),
    k: Annotated[
        int,
        typer.Option(
            "--top", min=1, metavar="K", help="With --goal top: how many are the best; with place: which place."
        ),
    ] = 1,
    by: Annotated[
        ByChoice,
        typer.Option(
            metavar="vote|voter|judge|task|day", help="What is removed: single votes, or all of a voter, day or task."
        ),
    ] = ("vote"),
    how: Annotated[
        HowChoice,
        typer.Option(
            metavar="removed|changed",
            help="changed: the margin of victory, ballots that become others (borda, plurality, copeland, irv).",
        ),
    ] = ("removed"),
    influence: Annotated[
        bool,
        typer.Option("--influence", help="Instead: what each voter pulls up and down, and who votes alike."),
    ] = False,
    method: MethodText = "",
    format: FormatName = "",
    param: Param = None,
    bootstrap: Annotated[int, typer.Option(min=0, metavar="N", help="Rounds of resampling, for tiers of rules.")] = 0,
    level: Level = 0.95,
    source: SourceColumn = "",
    target: Target = "",
    seed: SeedOption = 0,
    out: Out = None,
    as_json: AsJson = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Find how few votes, removed, would change the ranking, and list them.

    Every set was confirmed by ranking again without it.  "at most" marks a set of which it is not proved that no
    smaller one does the same; borda, plurality, copeland and irv are exact.
    With --influence: one row per voter, and the groups of voters that vote alike beyond chance.
    """
    from placet.aggregate import fragility as find
    from placet.aggregate.consensus_door import check_method
    from placet.data.parameters import parse_parameters

    check_suffix(out)
    check_reading(reading, formats_to_rank(format), "placet fragility")
    params = parse_parameters(param or [])
    named = check_sources(files, source, target, {f"--method {method}": method})
    if method:
        check_method(method, params)
    if named or source:
        with progress_bar("reading"):
            data = read_sources(files, named, source, target, format, reading)
    else:
        data, _ = read_or_update(files, "", format, reading)
    if influence:
        _show_influence(data, method, level, params, out, as_json)
        return
    given: dict[str, Any] = {"bootstrap": bootstrap, "random_state": seed, "level": level, **params}
    with progress_bar("refitting"):
        found = find(data, method or None, goal=goal, k=k, by=by, how=how, **given)
    for words in (*found.sentences(), *found.notes):
        say(words)
    if not found.claims:
        say("there is a single tier, and so no border that could change")
    frame = found.removed_frame()
    deliver(out, as_json, frame.columns, frame.rows(), found.to_dict())


def _show_influence(
    data: Any, method: str, level: float, params: dict[str, Any], out: Path | None, as_json: bool
) -> None:
    """The pulls of voters as a table, and the groups of voters in words."""
    from placet.aggregate import influence_map

    with progress_bar("refitting"):
        found = influence_map(data, method or None, level=level, **params)
    for words in found.sentences():
        say(words)
    frame = found.to_frame()
    groups = found.coordinated.to_frame().to_dicts() if found.coordinated is not None else []
    deliver(out, as_json, frame.columns, frame.rows(), {"voters": frame.to_dicts(), "groups": groups})
