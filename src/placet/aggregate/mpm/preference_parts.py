"""Multinomial preferences for ballots in parts: net wins, totals and their products are sums over parts.

If all agents have adherence 1 the sums are over all agents; otherwise sums are kept per agent, and have to fit in
memory.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from placet.aggregate.mpm.preference_likelihood import Preferences, preferences
from placet.data import DataError, Parts, Rankings
from placet.data.arrays import Floats, Ints
from placet.data.engines.memory import PART_OF_MEMORY, array_bytes, memory_limit


def preferences_of_parts(parts: Parts, strength: str, *, by_agent: bool, robust: bool) -> Preferences:
    """The preferences of all agents, as those of a single one unless they are needed ``by_agent``.

    ``robust``: whether standard errors are to be by agent.
    """
    whole = all(one.whole_weights for one in parts.summaries) and parts.weight <= 2.0**53
    prepared = parts.map(_preferences, strength, whole)
    if by_agent:
        n_agents, most = len(parts.agents or ()), memory_limit() // PART_OF_MEMORY
        sums = prepared.sum(AgentSums.of, n_agents, most, name="net wins by agent", merge=AgentSums.merged)
        found: Preferences = sums.preferences(parts, strength)
        return found
    net, total, units, agents = prepared.sum(_sums, name="net wins")
    if robust and units > 1:
        _refuse_divided(parts, agents)
    one = AgentSums(sparse.csr_array(net[None]), np.array([total]), np.array([units]), np.ones(1, bool), False, 0)
    pooled = replace(one.preferences(parts, strength), agents=(None,), named=parts.agents is not None)
    return replace(pooled, parts=prepared)


@dataclass(frozen=True)
class AgentSums:
    """Net wins (agents, items) and number of preferences of every agent.

    Named agents have the same number in all parts, and their sums are added (``present``: agents with any ballot);
    otherwise every ballot is an agent, and parts are concatenated.
    """

    net: sparse.csr_array
    total: Floats
    count: Floats
    present: NDArray[np.bool_]
    named: bool
    most: int

    @classmethod
    def of(cls, p: Preferences, n_agents: int, most: int) -> "AgentSums":
        if not p.named:
            return cls(p.net, p.total, p.count, np.ones(len(p.total), bool), False, most)._refuse_large()
        rows = p.net.tocoo()
        net = sparse.csr_array((rows.data, (p.part_agent[rows.row], rows.col)), (n_agents, p.net.shape[1]))
        total = np.bincount(p.part_agent, p.total, n_agents).astype(np.float64)
        present = np.bincount(p.part_agent, minlength=n_agents) > 0
        return cls(net, total, present.astype(np.float64), present, True, most)._refuse_large()

    def merged(self, other: "AgentSums") -> "AgentSums":
        if self.named:
            present = self.present | other.present
            net, total = self.net + other.net, self.total + other.total
            return AgentSums(net, total, present.astype(np.float64), present, True, self.most)._refuse_large()
        net = sparse.vstack([self.net, other.net], format="csr")
        total, count = np.append(self.total, other.total), np.append(self.count, other.count)
        return AgentSums(net, total, count, np.append(self.present, other.present), False, self.most)._refuse_large()

    def _refuse_large(self) -> "AgentSums":
        if array_bytes(self) > self.most:
            raise DataError(
                f"mpm with adherence needs the net wins of every agent at once, and those of {len(self.total):,} "
                f"agents take more than {self.most:,} bytes (a quarter of PLACET_MEMORY); leave adherence out, and net "
                "wins are added over all agents"
            )
        return self

    def preferences(self, parts: Parts, strength: str) -> Preferences:
        agent = np.flatnonzero(self.present)
        n_items = len(parts.items)
        return Preferences(
            items=parts.items,
            agents=tuple(range(len(self.total))) if parts.agents is None else parts.agents,
            instances=(None,),
            several=False,
            bounds=np.array([0, n_items]),
            item=np.arange(n_items),
            entry=np.zeros(0, np.int64),
            net=self.net[agent],
            part_agent=agent,
            part_instance=np.zeros(len(agent), np.int64),
            total=self.total[agent],
            count=self.count[agent],
            named=self.named,
            data=None,
            strength=strength,
        )


def _preferences(number: int, data: Rankings, strength: str, whole: bool) -> Preferences:
    p = preferences(data, strength)
    if data.agent is not None or not whole:
        return p.with_count(np.ones(len(p.count)))
    return p.with_count(np.bincount(p.part_agent, data.weight, len(p.count)).astype(np.float64))


def _sums(p: Preferences) -> tuple[Floats, float, float, list[Ints]]:
    """Net wins, number of preferences, number of agents that state any, and their codes if they are named."""
    agents = [p.part_agent[p.total > 0]] if p.named else []
    net = np.asarray(p.net.sum(axis=0)).ravel()
    return net, float(p.total.sum()), float(p.count[p.total > 0].sum()), agents


def _refuse_divided(parts: Parts, agents: list[Ints]) -> None:
    """Raise `DataError` if an agent has ballots in several parts; standard errors by agent need them in one."""
    if not agents or parts.agents is None:
        return
    every = np.concatenate(agents)
    code, count = np.unique(every, return_counts=True)
    divided = code[count > 1]
    if len(divided):
        raise DataError(
            f"agent {parts.agents[int(divided[0])]!r} has ballots in several parts ({len(divided)} such agents), and "
            "standard errors are by agent; sort the files by agent, or take stderr='observed'"
        )
