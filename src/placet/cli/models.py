"""Options of ``placet aggregate`` for models with more than items, and what they add to its answer."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placet.aggregate import Consensus, ConsensusSet

CONTROL_HELP = (
    'A column that may have moved the votes, such as "bold", "length_a - length_b" or "one-hot(slot)"; may be repeated.'
)


def beside(result: "Consensus | ConsensusSet") -> dict[str, object]:
    """What a result says beside the ranking, for JSON."""
    extras = getattr(result, "extras", {})
    return {"controls": extras["controls"].to_frame().to_dicts()} if "controls" in extras else {}
