"""What the multinomial preference model takes from data: net wins, totals, and who agrees with known orders."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from placet.data import Comparisons, DataError, Rankings
from placet.data.arrays import Floats, Ints, Names, offsets_from_sizes
from placet.data.breaking import strength_values
from placet.kernels import mpm as kernels


@dataclass(frozen=True)
class Preferences:
    """Net wins of items with agents, instance by instance.

    Entries bounds[l]:bounds[l + 1] are the items of instance l, ``item`` their codes.  Rows are (ballot, item):
    ``entry`` and ``net`` (wins minus losses times weight); part k is agent ``part_agent[k]`` in instance
    ``part_instance[k]``, with ``total[k]`` preferences; rows belong to ``row_part``.  ``whole``: the only instance,
    with all items.
    """

    items: Names
    agents: Names
    instances: tuple[Hashable, ...]
    several: bool
    bounds: Ints
    item: Ints
    entry: Ints
    net: Floats
    row_part: Ints
    part_agent: Ints
    part_instance: Ints
    total: Floats
    data: Any
    strength: str

    @property
    def n_agents(self) -> int:
        return len(self.agents)

    @property
    def whole(self) -> bool:
        return not self.several


def preferences(data: Rankings | Comparisons, strength: str) -> Preferences:
    """Net wins and totals of every agent in every instance.  O(rows log rows)."""
    if isinstance(data, Comparisons):
        return _of_pairs(data)
    value, wins = data.net_wins(strength)  # type: ignore[arg-type]
    several = data.instance is not None
    code = np.zeros(len(data), np.int64) if data.instance is None else data.instance
    agent = np.arange(len(data)) if data.agent is None else data.agent
    agents = tuple(range(len(data))) if data.agents is None else data.agents
    if several:
        key = code[data.ballot] * data.n_items + data.item
        used, entry = np.unique(key, return_inverse=True)
        bounds = np.searchsorted(used // max(data.n_items, 1), np.arange(len(data.instances or ()) + 1))
        item = used % max(data.n_items, 1)
    else:
        entry, item, bounds = data.item, np.arange(data.n_items), np.array([0, data.n_items])
    part, part_of = np.unique(code * len(agents) + agent, return_inverse=True)
    return Preferences(
        items=data.items,
        agents=agents,
        instances=data.instances if data.instances is not None else (None,),
        several=several,
        bounds=bounds.astype(np.int64),
        item=item,
        entry=entry.astype(np.int64),
        net=value * data.weight[data.ballot],
        row_part=part_of[data.ballot],
        part_agent=part % max(len(agents), 1),
        part_instance=part // max(len(agents), 1),
        total=np.bincount(part_of, wins * data.weight, len(part)).astype(np.float64),
        data=data,
        strength=strength,
    )


def _of_pairs(data: Comparisons) -> Preferences:
    """Of pairs: every row has two entries; ties are no preferences."""
    agent = np.zeros(len(data), np.int64) if data.agent is None else data.agent
    agents = (None,) if data.agents is None else data.agents
    part, part_of = np.unique(agent, return_inverse=True)
    net = data.wins_i - data.wins_j
    return Preferences(
        items=data.items,
        agents=agents,
        instances=(None,),
        several=False,
        bounds=np.array([0, data.n_items]),
        item=np.arange(data.n_items),
        entry=np.concatenate([data.i, data.j]),
        net=np.concatenate([net, -net]),
        row_part=np.concatenate([part_of, part_of]),
        part_agent=part,
        part_instance=np.zeros(len(part), np.int64),
        total=np.bincount(part_of, data.wins_i + data.wins_j, len(part)).astype(np.float64),
        data=data,
        strength="binary",
    )


def net_tables(p: Preferences, adherence: Floats) -> Any:
    """Yields for every instance the (M, M) table of sum_n t_n (C_n(i, j) - C_n(j, i)).  O(pairs)."""
    if isinstance(p.data, Comparisons):
        net = np.zeros((len(p.items), len(p.items)))
        t = 1.0 if p.data.agent is None else adherence[p.data.agent]
        np.add.at(net, (p.data.i, p.data.j), t * (p.data.wins_i - p.data.wins_j))
        yield net - net.T
        return
    r: Rankings = p.data
    value = strength_values(p.strength, r.tier, r.score)
    agent = np.arange(len(r)) if r.agent is None else r.agent
    factor = r.weight * adherence[agent]
    code = np.zeros(len(r), np.int64) if r.instance is None else r.instance
    order = np.argsort(code, kind="stable")
    starts = np.searchsorted(code[order], np.arange(len(p.instances) + 1))
    for k in range(len(p.instances)):
        ballots = order[starts[k] : starts[k + 1]]
        M = p.bounds[k + 1] - p.bounds[k]
        net = np.zeros((M, M))
        rows = np.concatenate([np.arange(r.offsets[b], r.offsets[b + 1]) for b in ballots] or [np.zeros(0, np.int64)])
        offsets = offsets_from_sizes(np.diff(r.offsets)[ballots])
        own = p.entry[rows] - p.bounds[k]
        kernels.net_table(own, value[rows], r.tier[rows], offsets, factor[ballots], p.strength == "binary", net)
        yield net


def supervised_adherence(data: Rankings, truth: Rankings, *, rescale: bool = True) -> dict[Hashable, float]:
    """Adherence of every agent: the mean over labelled instances of 1 - Kendall distance from the truth.

    ``truth`` holds one ballot for each labelled instance.  The distance is the share of pairs with different labels,
    both on the agent's ballot, that the ballot has in the other order; its ties count half; instances without such
    pairs are left out, and an agent without any gets the mean of the others.  ``rescale`` maps the least to 0 and the
    largest to 1. O(pairs on ballots).
    """
    if data.instance is None or truth.instance is None or data.instances is None or truth.instances is None:
        raise DataError("supervised adherence needs ballots and truth that belong to instances")
    if truth.items != data.items:
        raise DataError("the truth must be over the same items as the ballots")
    if len(np.unique(truth.instance)) != len(truth):
        raise DataError("the truth must have one ballot for each instance, and has more for some")
    number = {name: k for k, name in enumerate(data.instances)}
    unknown = [truth.instances[k] for k in truth.instance if truth.instances[k] not in number]
    if unknown:
        raise DataError(f"instance {unknown[0]!r} of the truth has no ballots ({len(unknown)} such instances)")
    code = np.array([number[truth.instances[k]] for k in truth.instance], np.int64)
    key = code[truth.ballot] * data.n_items + truth.item
    order = np.argsort(key)
    wanted = data.instance[data.ballot] * data.n_items + data.item
    at = np.minimum(np.searchsorted(key[order], wanted), max(len(key) - 1, 0))
    label = np.where(key[order][at] == wanted, truth.tier[order][at], -1) if len(key) else np.full(len(wanted), -1)
    wrong, pairs = np.zeros(len(data)), np.zeros(len(data))
    kernels.discordance(data.tier, label, data.offsets, wrong, pairs)
    agents = tuple(range(len(data))) if data.agents is None else data.agents
    agent = np.arange(len(data)) if data.agent is None else data.agent
    told = pairs > 0
    if not told.any():
        raise DataError("no ballot compares two items with different labels; adherence cannot be told from this truth")
    count = np.bincount(agent[told], minlength=len(agents))
    right = np.bincount(agent[told], 1 - wrong[told] / pairs[told], len(agents))
    mean = np.divide(right, count, out=np.full(len(agents), np.nan), where=count > 0)
    mean = np.where(count > 0, mean, np.nanmean(mean))
    if rescale:
        spread = mean.max() - mean.min()
        mean = (mean - mean.min()) / spread if spread > 0 else np.ones(len(agents))
    return dict(zip(agents, mean.tolist()))
