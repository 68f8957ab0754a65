"""Individual raters: how sharply each tells items apart, how readily it calls a tie, and which side it favors.

For votes, rater n sees  d = a_n (theta_i - theta_j) + b_n + z . gamma  and has the tie parameter  tie + t_n  (see
`placet.aggregate.pairs.vote_raters`); for ballots, it sees the score  a_n theta[item] + z . gamma  of each row (see
`placet.aggregate.ballots.ballot_raters`).  a_n ~ N(1, w_a^2), b_n ~ N(0, w_b^2), t_n ~ N(0, w_t^2), with learned
widths.
"""

from typing import Any

from placet.data.errors import as_choices

KINDS = ("sharpness", "ties", "side")


def parse_kinds(agents: Any) -> tuple[str, ...]:
    """Parse the requested kinds of difference: ``"sharpness+ties+side"`` or any subset, ``"all"``; () for None."""
    if agents is None or agents == "":
        return ()
    asked = KINDS if agents == "all" else tuple(part.strip() for part in str(agents).replace(",", "+").split("+"))
    unknown = [kind for kind in asked if kind not in KINDS]
    if unknown:
        raise ValueError(f'agents {unknown[0]!r} is unknown; choose from {as_choices(KINDS)}, joined by +, or "all"')
    return tuple(kind for kind in KINDS if kind in asked)
