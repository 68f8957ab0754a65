"""Options of ``placet aggregate`` for controls, raters and drift."""

from collections.abc import Sequence
from typing import Any

CONTROL_HELP = (
    'A column that may have moved votes or ballots: "bold", "length_a - length_b", "one-hot(position)", "age * tea" (a '
    "number of the ballot, in the rows of that item); may be repeated."
)
AGENTS_HELP = "What raters may differ in: sharpness, ties, side, joined by +, or all; --agent names their column."


DRIFT_HELP = 'Let scores change over time: standard deviation per step, or "learn"; --time names the column of dates.'
STEP_HELP = 'Length of a time step, such as "1y", "6m", "2w", "30d", or a number where times are numbers.'


def model_options(control: Sequence[str], agents: str, drift: str, step: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of the reader and parameters of the model; those given by -r and -p take precedence."""
    from placet.data.parameters import parse_value

    reading: dict[str, Any] = {"control": list(control)} if control else {}
    moving = {"drift": parse_value(drift)} if drift else {}
    if step:
        moving["step"] = parse_value(step)
    if not agents:
        return reading, moving
    from placet.aggregate.likelihood.raters import parse_kinds

    kinds = parse_kinds(agents)
    if "side" in kinds:
        reading["ordered"] = True
    return reading, moving | {"agents": agents} | ({"ties": "davidson"} if "ties" in kinds else {})


def check_drift(drift: str, method: str) -> None:
    """Raise a ``ValueError`` for a method whose scores cannot change over time."""
    from placet.aggregate.method_table import method_of

    if drift and not method_of(method).drifts:
        raise ValueError(
            f"--drift {drift} is for votes on pairs (--method bradley-terry); scores of {method} do not move"
        )
