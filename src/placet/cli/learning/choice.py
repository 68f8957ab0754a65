"""``placet choice``: what choices among alternatives depend on, with errors."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from placet.cli.common.console_output import check_suffix, deliver, progress_bar, say
from placet.cli.common.options import (
    METHOD,
    OF_VOTES,
    READ,
    AsJson,
    Level,
    Out,
    SeedOption,
    from_stdin,
    in_group,
    reads,
)

ErrorsChoice = Literal["observed", "choice", "agent"]


@reads(*(name for name in OF_VOTES if name != "agent"), "qid", "label")
def choice(
    file: Annotated[
        Path,
        typer.Argument(
            callback=from_stdin,
            help="Choices: a row per alternative with a mark (0, 1) at the chosen one, or a row per choice with a "
            "column for each attribute of each alternative (price_bus, price_car); -: stdin.",
        ),
    ],
    chosen: Annotated[str, in_group("Column that marks or names what was chosen.", READ, "COLUMN")] = "",
    choice_set: Annotated[str, in_group("Column of the choice that a row belongs to.", READ, "COLUMN")] = "",
    alternative: Annotated[str, in_group("Column of the alternative of a row.", READ, "COLUMN")] = "",
    attributes: Annotated[str, in_group("Attributes, comma-separated; else all numbers.", READ, "COLUMN,...")] = "",
    case: Annotated[
        str, in_group("Columns of the person or choice, which act on each alternative.", READ, "COLUMN,...")
    ] = "",
    constants: Annotated[
        bool | None,
        in_group(
            "A constant for each alternative but one; by default if alternatives have names, not numbers.",
            METHOD,
            "",
            "--constants/--no-constants",
        ),
    ] = None,
    base: Annotated[str, in_group("The alternative that the others are compared with.", METHOD, "NAME")] = "",
    price: Annotated[
        str, in_group("Also give what a unit of each column is worth in this one.", METHOD, "COLUMN")
    ] = "",
    errors: Annotated[
        ErrorsChoice | None,
        in_group(
            "Errors from the information, or by sandwich over choices or over persons (default, if persons repeat).",
            METHOD,
            "observed|choice|agent",
        ),
    ] = None,
    classes: Annotated[int, in_group("Groups of choosers (latent classes).", METHOD, "N", min=1)] = 1,
    level: Level = 0.95,
    seed: SeedOption = 0,
    out: Out = None,
    as_json: AsJson = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Coefficients of a conditional logit, with standard errors, z, p and intervals."""
    from placet.rank.choices.choice_door import choice as fit_choices

    check_suffix(out)
    columns = {"chosen": chosen, "choice_set": choice_set, "alternative": alternative, "case": case}
    given: dict[str, Any] = {
        name: value for name, value in (columns | {"attributes": attributes, "base": base}).items() if value
    }
    with progress_bar("fitting"):
        found = fit_choices(
            file,
            constants=constants,
            errors=errors,
            level=level,
            classes=classes,
            random_state=seed,
            **given,
            **reading,
        )
    for note in (*found.notes, *found.lines()):
        say(note)
    head: list[str] = []
    rows: list[list[Any]] = []
    for group, table in found.tables().items():
        head, own = table.rows()
        rows += [[group, "coefficient", *row] for row in own]
        if price:
            rows += [[group, "willingness to pay", *row] for row in table.worth_rows(price)]
    kept = [*([0] if classes > 1 else []), *([1] if price else []), *range(2, len(head) + 2)]
    head = [["group", "quantity", *head][k] for k in kept]
    rows = [[row[k] for k in kept] for row in rows]
    objects = [dict(zip(head, row)) for row in rows]
    deliver(out, as_json, head, rows, {**found.facts(), "coefficients": objects})
