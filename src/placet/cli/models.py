"""Options of ``placet aggregate`` for models with more than items, and what they add to its answer."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from placet.aggregate import Consensus, ConsensusSet

CONTROL_HELP = (
    'A column that may have moved the votes, such as "bold", "length_a - length_b" or "one-hot(slot)"; may be repeated.'
)
AGENTS_HELP = "What raters may differ in: sharpness, ties, side, joined by +, or all; -r agent=COLUMN names them."


def model_options(control: Sequence[str], agents: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of the reader and parameters of the model; what is given by -r and -p comes before both."""
    reading: dict[str, Any] = {"control": list(control)} if control else {}
    if not agents:
        return reading, {}
    from placet.aggregate.raters import parse_kinds

    kinds = parse_kinds(agents)
    if "side" in kinds:
        reading["ordered"] = True
    return reading, {"agents": agents} | ({"ties": "davidson"} if "ties" in kinds else {})


def beside(result: "Consensus | ConsensusSet") -> dict[str, object]:
    """What a result says beside the ranking, for JSON."""
    extras = getattr(result, "extras", {})
    return {name: extras[name].to_frame().to_dicts() for name in ("controls", "agents") if name in extras}
