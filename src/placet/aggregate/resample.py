"""Bootstrap by multinomial counts: the same ballots or votes with resampled weights.

An agent that gives several ballots or votes is resampled as a whole: its answers have its taste in common, and are not
so many independent ones.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from placet.aggregate.places import tier_starts
from placet.aggregate.result.independent_units import MOST_ITEMS, MOST_UNITS, Units
from placet.data import Comparisons, DataError, Parts, Rankings
from placet.data.arrays import Floats, Ints
from placet.data.parts import as_parts

MOST_COUNTS = 2**53


def resample(data: Rankings | Comparisons, rng: np.random.Generator) -> Rankings | Comparisons:
    """The data with resampled counts: one multinomial draw over agents that give several counts, or else over ballots
    (of each instance), or over wins, losses and ties of pairs.

    Samples of units with design weights have the total weight of the data: who is drawn says
    something about the items, and how many voters these stand for does not.
    """
    group = clusters(data)
    if group is not None:
        factor = resampled_counts((np.bincount(group) > 0).astype(np.float64), rng)[group]
        drawn = _reweighted(data, factor)
        return drawn if data.weights == "counts" else _reweighted(drawn, _total(data) / _total(drawn))
    if isinstance(data, Rankings):
        weight = data.weight.copy()
        code = np.zeros(len(data), np.int64) if data.instance is None else data.instance
        for k in np.unique(code):
            weight[code == k] = resampled_counts(weight[code == k], rng)
        return replace(data, weight=weight)
    cells = resampled_counts(np.concatenate([data.wins_i, data.wins_j, data.ties]), rng)
    wins_i, wins_j, ties = np.split(cells, 3)
    return replace(data, wins_i=wins_i, wins_j=wins_j, ties=ties)


def _total(data: Rankings | Comparisons) -> float:
    weight = data.weight if isinstance(data, Rankings) else data.wins_i + data.wins_j + data.ties
    return float(weight.sum())


def _reweighted(data: Rankings | Comparisons, factor: Floats | float) -> Rankings | Comparisons:
    if isinstance(data, Rankings):
        return replace(data, weight=data.weight * factor)
    return replace(data, wins_i=data.wins_i * factor, wins_j=data.wins_j * factor, ties=data.ties * factor)


def resampled_counts(weight: Floats, rng: np.random.Generator) -> Floats:
    """Counts of a sample of the same size with replacement.

    Integer weights are counts: sum(weight) draws in proportion to them.  With other weights (or sums beyond 2^53), rows
    with a positive weight are resampled as units that keep their weight.
    """
    total = weight.sum()
    if total == 0:
        raise DataError("nothing to resample: there are no rows, or all weights are 0; leave out bootstrap=")
    if are_counts(weight):
        return rng.multinomial(int(total), weight / total).astype(np.float64)
    present = weight > 0
    drawn = np.zeros(len(weight))
    drawn[present] = rng.multinomial(present.sum(), np.full(present.sum(), 1 / present.sum()))
    return weight * drawn


def are_counts(weight: Floats) -> bool:
    """Whether weights are integers, so that a row of weight 3 represents three identical ones; else rows are units."""
    return bool(weight.sum() <= MOST_COUNTS and np.array_equal(weight, np.floor(weight)))


# Independent units


def clusters(data: Rankings | Comparisons) -> Ints | None:
    """The agent of each row if there are several and one of them gives more than one count; None if rows are units."""
    return None if busy_agents(data) is None else data.agent


def busy_agents(data: Rankings | Comparisons | Parts) -> NDArray[np.bool_] | None:
    """(agents,): who gave anything, if several did and one of them gave more than one count; None if rows are units.

    Agents of several instances are not clusters: each instance is a problem of its own.  With design weights agents are
    units whatever they gave.
    """
    if data.agents is None or getattr(data, "instance", None) is not None:
        return None
    rows, weight, fractions = as_parts(data).sum(_given_by_agent, name="agents")
    count = rows if fractions else np.maximum(rows, weight)
    used: NDArray[np.bool_] = rows > 0
    if getattr(data, "weights", "counts") == "design":
        return used if used.sum() > 1 else None
    return used if used.sum() > 1 and (count > 1).any() else None


def _given_by_agent(data: Rankings | Comparisons) -> tuple[Floats, Floats, int]:
    """Rows with a weight and total weights (agents,); and 1 if weights of ballots are not counts."""
    weight = data.weight if isinstance(data, Rankings) else data.wins_i + data.wins_j + data.ties
    n, there = len(data.agents or ()), (weight > 0).astype(np.float64)
    assert data.agent is not None
    rows, total = (np.bincount(data.agent, column, n).astype(np.float64) for column in (there, weight))
    return rows, total, int(isinstance(data, Rankings) and not are_counts(weight))


def agents_note(data: Rankings | Comparisons | Parts, n_units: int, gave: str) -> str:
    """A note on errors by agent; ``gave``: what an agent gives."""
    if getattr(data, "weights", "counts") == "design":
        return f"weights are design weights: standard errors are from the scatter of {n_units} agents or single {gave}"
    return f"standard errors are by agent: {n_units} agents, each with all its {gave}"


def resampling_words(data: Rankings | Comparisons | Parts) -> str:
    """What a bootstrap draws anew."""
    used = busy_agents(data)
    if used is None:
        return "Poisson counts" if isinstance(data, Parts) else "multinomial counts"
    return f"{int(used.sum())} agents with all they gave"


def units_of(data: Rankings | Comparisons, points: Callable[[Rankings], Floats] | None = None) -> Units | None:
    """What each independent unit adds to scores: agents that give several counts, else ballots or votes; None if many.

    ``points``: the scores of a rule whose scores of two sets of ballots add up.  Without them, a ballot adds the number
    of items below an item less that above it, and a vote adds 1 to the winner and -1 to the loser: a condition that
    the order of equal items passes by chance in no more than 1 - level of all cases, whatever the rule.
    """
    group = clusters(data)
    rows = len(data) if group is None else len(np.unique(group))
    if rows > MOST_UNITS or data.n_items > MOST_ITEMS:
        return None
    if isinstance(data, Comparisons):
        return _units_of_votes(data, group)
    weight = data.weight
    counts = group is None and are_counts(weight)
    if counts and weight.sum() > MOST_UNITS:
        return None
    if points is None:
        part = net_places(data)
    else:
        part = np.array([points(replace(data[k : k + 1], weight=np.ones(1))) for k in range(len(data))])
    if counts:
        return Units("ballot", part, weight, points is not None)
    part = part * weight[:, None]
    if group is None:
        return Units("ballot", part, np.ones(len(part)), points is not None)
    return Units("agent", _sums(part, group), np.ones(rows), points is not None)


def units_of_parts(parts: Parts) -> Units | None:
    """As `units_of` for agents whose ballots are in several parts; None if ballots are units, as they are many."""
    used = busy_agents(parts)
    if used is None or used.sum() > MOST_UNITS or parts.n_items > MOST_ITEMS:
        return None
    part = parts.sum(_net_places_by_agent, name="agents")[used]
    return Units("agent", part, np.ones(len(part)), False)


def _net_places_by_agent(data: Rankings) -> Floats:
    """(agents, n_items): sums over the ballots of each agent of `net_places`."""
    first, size = tier_starts(data)
    value = (np.diff(data.offsets)[data.ballot] - size - 2.0 * first) * data.weight[data.ballot]
    assert data.agent is not None
    assert data.agents is not None
    key = data.agent[data.ballot] * data.n_items + data.item
    sums = np.bincount(key, value, len(data.agents) * data.n_items)
    return sums.reshape(len(data.agents), data.n_items).astype(np.float64, copy=False)


def net_places(data: Rankings) -> Floats:
    """(ballots, n_items): the number of items below an item on the ballot less the number above it."""
    first, size = tier_starts(data)
    m = np.diff(data.offsets)[data.ballot]
    out = np.zeros((len(data), data.n_items))
    out[data.ballot, data.item] = m - size - 2.0 * first
    return out


def _units_of_votes(data: Comparisons, group: Ints | None) -> Units | None:
    rows = np.arange(len(data))
    lead = np.zeros((len(data), data.n_items))
    lead[rows, data.i], lead[rows, data.j] = 1.0, -1.0
    if group is not None:
        part = _sums(lead * (data.wins_i - data.wins_j)[:, None], group)
        return Units("agent", part, np.ones(len(part)), False)
    count = np.concatenate([data.wins_i, data.wins_j])
    if not are_counts(count) or count.sum() + data.ties.sum() > MOST_UNITS:
        return None
    told = count > 0
    part = np.concatenate([lead, -lead])[told]
    empty = np.zeros((1, data.n_items))  # ties
    return Units("vote", np.concatenate([part, empty]), np.append(count[told], np.floor(data.ties.sum())), False)


def _sums(part: Floats, group: Ints) -> Floats:
    used, code = np.unique(group, return_inverse=True)
    out = np.zeros((len(used), part.shape[1]))
    np.add.at(out, code, part)
    return out
