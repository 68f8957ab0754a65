"""One board for each slice of the data (languages, dates, groups of voters), and which items differ between slices."""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import chdtrc

from placet.aggregate.result.consensus_set import ConsensusSet
from placet.aggregate.result.difference import centered_errors
from placet.aggregate.result.result import Consensus
from placet.stats import holm

if TYPE_CHECKING:
    import polars as pl


def compare_slices(found: ConsensusSet, level: float = 0.95) -> "pl.DataFrame":
    """A row for each item, by mean rank: its rank in every slice, and whether the slices differ beyond chance.

    For items in all slices, with standard errors: Q = sum of (x_s - mean)^2 / stderr_s^2, where scores x_s are relative
    to the mean over the items common to all slices and the mean is weighted by 1 / stderr^2, is compared with
    chi-square, its degrees of freedom one less than the number of slices; ``differs`` applies Holm's correction over
    the items.  Null for other items.
    """
    import polars as pl

    boards = list(found.values())
    names = list(dict.fromkeys(name for c in boards for name in c.items))
    ranks: dict[str, list[int | None]] = {}
    for slice_name, c in found.items():
        rank = dict(zip(c.items, c.ranks.tolist()))
        ranks[str(slice_name)] = [rank.get(name) for name in names]
    p = _heterogeneity(boards, names)
    known = ~np.isnan(p)
    beyond: list[bool | None] = [None] * len(names)
    for k, differs in zip(np.flatnonzero(known), holm(p[known]) <= 1 - level):
        beyond[k] = bool(differs)
    mean = np.array([np.mean([r[k] for r in ranks.values() if r[k] is not None]) for k in range(len(names))])
    order = np.argsort(mean, kind="stable")
    columns: dict[str, Any] = {"item": pl.Series([str(names[k]) for k in order])}
    columns |= {f"rank {name}": pl.Series([r[k] for k in order], dtype=pl.Int64) for name, r in ranks.items()}
    columns["p"] = pl.Series(p[order]).fill_nan(None)
    columns["differs"] = pl.Series([beyond[k] for k in order], dtype=pl.Boolean)
    return pl.DataFrame(columns)


def _heterogeneity(boards: list[Consensus], names: list[Hashable]) -> Any:
    """(items,): p-values; NaN for items that are not in all slices, or if fewer than two are or errors are unknown."""
    common = [name for name in boards[0].items if all(name in c._index for c in boards)]
    p = np.full(len(names), np.nan)
    if len(common) < 2 or any(c.stderr is None for c in boards):
        return p
    at = {name: k for k, name in enumerate(common)}
    x, variance = [], []
    for c in boards:
        own = np.array([c._number(name) for name in common])
        x.append(c.scores[own] - c.scores[own].mean())
        variance.append(np.diag(centered_errors(c, own)))
    scores, spread = np.array(x), np.array(variance)
    usable = np.asarray((spread > 0).all(axis=0))
    weight = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
    middle = (weight * scores).sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-300)
    value = (weight * (scores - middle) ** 2).sum(axis=0)
    for k, name in enumerate(names):
        if name in at and usable[at[name]]:
            p[k] = chdtrc(len(boards) - 1, value[at[name]])
    return p
