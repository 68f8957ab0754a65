"""Conventions of other packages: ties, gain, discount, lists without relevant rows."""

from dataclasses import dataclass

from placet.data.errors import as_choices


@dataclass(frozen=True)
class Convention:
    """The choices of a package where definitions differ.

    ``ties``: see ``rank``.  ``empty``: value of a list without relevant rows.  ``threshold``: lowest relevant grade,
    None for grade > 0.  ``defines``: the metrics it offers.
    """

    ties: str = "mean"
    gain: str = "exp2"
    discount: str = "log2"
    empty: float = float("nan")
    threshold: float | None = None
    defines: tuple[str, ...] = ()


OURS = Convention()

CONVENTIONS: dict[str, Convention] = {
    "lightgbm": Convention("input", empty=1.0, defines=("ndcg", "average_precision")),
    "xgboost": Convention("input32", empty=1.0, defines=("ndcg", "average_precision", "precision")),
    "trec_eval": Convention(
        "name",
        gain="linear",
        empty=0.0,
        threshold=1.0,
        defines=("ndcg", "average_precision", "precision", "recall", "mrr"),
    ),
    "sklearn": Convention("mean", gain="linear", empty=0.0, defines=("ndcg", "average_precision")),
    "letor": Convention("input", discount="letor", empty=0.0, defines=("ndcg", "average_precision", "precision")),
}


def convention(compat: str | None, metric: str) -> Convention:
    """The convention of a package for a metric; raises a ``ValueError`` that lists the options."""
    if compat is None:
        return OURS
    if compat not in CONVENTIONS:
        raise ValueError(f"compat {compat!r} is unknown; choose from {as_choices(CONVENTIONS)} or None")
    found = CONVENTIONS[compat]
    if metric not in found.defines:
        raise ValueError(f"compat {compat!r} does not define {metric}; it defines {list(found.defines)}")
    return found
