"""``placet aggregate --groups``: groups of similar voters."""

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placet.cli.common.console_output import say

if TYPE_CHECKING:
    from placet.aggregate import Consensus, ConsensusSet, Mixture


def split_parameters(
    groups: str, members: Path | None, by: str, params: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split parameters into those of the model and those of the mixture."""
    if not groups:
        if members is not None:
            raise ValueError("--members needs --groups: a number of groups, or auto")
        return params, {}
    from placet.aggregate import Mixture
    from placet.data.parameters import check_parameters

    if by:
        raise ValueError(f"--groups finds groups of voters in all the data; --by {by} cuts them up: give only one")
    if groups != "auto" and not groups.isdecimal():
        raise ValueError(f"--groups must be a number of groups or auto, not {groups!r}")
    names = [name for name in inspect.signature(Mixture).parameters if name not in ("model", "k", "random_state")]
    own = {name: value for name, value in params.items() if name in names}
    check_parameters(Mixture, own, "the mixture")
    return {name: value for name, value in params.items() if name not in names}, own


def mixture_of(groups: str, method: str, params: dict[str, Any], own: dict[str, Any], seed: int) -> "Mixture":
    """The mixture specified by --groups."""
    from placet.aggregate import Mixture
    from placet.aggregate.method_table import MIXED
    from placet.data.errors import one_of

    model = MIXED[one_of(method, MIXED, "method of --groups")](**params)
    return Mixture(model, groups if groups == "auto" else int(groups), random_state=seed, **own)


def say_groups(result: "Consensus | ConsensusSet", members: Path | None) -> None:
    """Report shares and favorites of the groups; write the memberships to the file ``members``."""
    from placet.aggregate import Groups

    if not isinstance(result, Groups):
        return
    for row in result.summary():
        error = "" if row["share_stderr"] is None else f" ± {row['share_stderr']:.3f}"
        say(f"group {row['group']}: {row['share']:.1%} of voters{error}, {row['first']}")
    if members is not None:
        from placet.io.tables.tables import write_table

        write_table(members, result.membership_frame().to_dict())
        say(f"members: {members}")
