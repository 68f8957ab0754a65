"""Random small problems at the one door: `placet.consensus` gives an answer that keeps its promises, or an error of ours.

    python fuzz/fuzz_door.py --problems 30000
    python fuzz/fuzz_door.py --only 17,4711                       (problems by number, told in full)

A problem is data of any kind (votes, ballots, score tables, slices, parts, sources), any method of `METHODS`, any values
of its parameters, with or without bootstrap.  An answer survives if its numbers are finite (an error that cannot be known
is infinite, never NaN), every rank lies in its own interval of each kind, probabilities lie in 0..1 and sum to one, and
the same rows in another order give the same scores (roughly, if the result says that it did not converge).  An error
survives if it is a ``ValueError`` (a ``DataError`` is one) raised by Placet.  Any other exception and any warning but our
own fail; the exit code is then 1.  Each problem is made from its number alone, so a failure can be had again.
"""

import argparse
import resource
import sys
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import numpy as np

import placet
from placet.aggregate import METHODS
from placet.aggregate.result.consensus_set import ConsensusSet
from placet.aggregate.result.result import Consensus
from placet.data import Comparisons, Parts, Rankings
from placet.data.parameters import _defaults_and_hints
from placet.data.scores import Scores
from placet.optim import ConvergenceWarning

HOME = str(Path(placet.__file__).parent)
NAMES = ("ant", "bee", "cat", "dog", "eel", "fox")
VOTERS = ("u", "v", "w", "x")
DAYS = ("2023-01-01", "2023-06-15", "2024-01-01", "2024-02-29", "2025-12-31")
KINDS = ("votes", "ballots", "scores", "slices", "parts", "sources")
PRIORS = ("learn", "learn", None, 1.0, 0.05, 30.0, 1e-300, 1e160, -1.0)
VALUES: dict[str, tuple[Any, ...]] = {
    "adherence": (None, "learn", {"u": 2.0}, {"u": 0.0}),
    "agent_weight": (None, {"u": 2.0}, {"u": 0.0, "v": 0.5}, {"u": 1e300}, {"nobody": 1.0}),
    "agents": (None, "sharpness", "ties", "side", "all", "sharpness+side", "luck"),
    "drift": (None, "learn", 0.5, 1e-9, 1e3, -1.0),
    "max_iter": (200, 1, 3),
    "points": ((3.0, 2.0, 1.0), (1.0, 0.0), ()),
    "prior": PRIORS,
    "random_state": (0, 1, -1),
    "seats": (1, 2, 9),
    "step": ("1y", "1d", 1.0, "3m"),
    "stderr": ("observed", "sandwich", None),
    "tol": (1e-10, 1e-3),
    "top": (1.0, 100.0),
    "unit": ("task", "question"),
}
"""Values of parameters whose annotation does not list them; unknown names are left at their defaults."""

SAME = {"rule": 1e-7, "model": 1e-4, "score method": 1e-5}
"""How closely scores agree when rows come in another order, as a share of the largest score (or of 1)."""

ROUGHLY = 0.01
"""The same, if the result says that it did not converge."""


@dataclass
class Problem:
    """Data, a method with its parameters, and the same data in another order if that must not matter."""

    data: Any
    method: str | None
    params: dict[str, Any] = field(default_factory=dict)
    twin: Any = None

    def __repr__(self) -> str:
        return f"{self.data!r} {self.method} {self.params}"


# Problems


def problem(number: int) -> Problem:
    """The problem of a number."""
    rng = np.random.default_rng([31, number])
    names = NAMES[: int(rng.integers(1, 7))]
    kind = KINDS[rng.choice(len(KINDS), p=[0.34, 0.34, 0.12, 0.08, 0.06, 0.06])]
    data, twin = MAKERS[kind](rng, names)
    fitting = [name for name, record in METHODS.items() if kind_of(data) in record.takes]
    some = list(METHODS) if rng.random() < 0.1 or not fitting else fitting
    method = str(rng.choice(some)) if rng.random() < 0.95 else None
    params = parameters(rng, method) if method is not None and rng.random() < 0.7 else {}
    if rng.random() < 0.25 or kind == "scores":  # a score table's default is a thousand rounds
        params["bootstrap"] = int(rng.choice([2, 3, 10, -1], p=[0.5, 0.3, 0.15, 0.05]))
    return Problem(data, method, params, twin)


def kind_of(data: Any) -> str:
    """What a method must take to take the data."""
    one = next(iter(data.values())) if isinstance(data, dict) and data else data
    kind = one.kind if isinstance(one, Parts) else type(one)
    return {Comparisons: "votes", Scores: "scores"}.get(kind, "ballots")


def parameters(rng: np.random.Generator, method: str) -> dict[str, Any]:
    """Up to three parameters of a method, from its signature."""
    record = METHODS[method]
    known = list(record.parameters)
    hints = _defaults_and_hints(record.source)[1]
    found = {}
    for name in rng.permutation(known)[: int(rng.integers(0, 4))].tolist():
        hint = hints.get(name)
        values = get_args(hint) if get_origin(hint) is Literal else (True, False) if hint is bool else VALUES.get(name)
        if values:
            found[name] = values[int(rng.integers(len(values)))]
    if rng.random() < 0.05:
        found["no_such_parameter"] = 1
    return found


def weights(rng: np.random.Generator, n: int) -> np.ndarray | None:
    """Weights of rows: none, counts, decimals, some zero, all zero, or out of all proportion."""
    drawn = rng.integers(0, 4, n).astype(float)
    few = [
        None,
        None,
        drawn + 1,
        (drawn + 1) / 3,
        drawn,
        np.zeros(n),
        1e-300 * drawn,
        1e300 * drawn,
        10.0 ** (8 * drawn),
    ]
    return few[rng.choice(len(few), p=[0.3, 0.2, 0.12, 0.12, 0.1, 0.04, 0.04, 0.04, 0.04])]


def some_of(rng: np.random.Generator, values: tuple, n: int, share: float) -> list | None:
    """A column of ``n`` values, or none."""
    return [values[k] for k in rng.integers(0, len(values), n)] if rng.random() < share else None


def votes(rng: np.random.Generator, names: tuple[str, ...]) -> tuple[Any, Any]:
    """Votes with ties, weights, voters, times, controls and sides, each now and then."""
    n = int(rng.choice([0, 1, 2, 5, 12, 40])) if len(names) > 1 else 0
    pairs = [rng.permutation(len(names))[:2] for _ in range(n)]
    result = rng.choice(["a", "b", "tie"], n, p=[0.55, 0.3, 0.15] if rng.random() < 0.6 else [0.8, 0.2, 0.0])
    times = DAYS if rng.random() < 0.7 else (0.0, 1.0, 2.5)
    columns: dict[str, Any] = {
        "a": [names[p[0]] for p in pairs],
        "b": [names[p[1]] for p in pairs],
        "outcome": result.tolist(),
        "weight": weights(rng, n),
        "agent": some_of(rng, VOTERS, n, 0.3),
        "time": some_of(rng, times, n, 0.25),
        "control": controls(rng, n),
    }
    fixed = {"items": names, "ordered": bool(rng.random() < 0.2)}
    order = rng.permutation(n)
    return Comparisons.from_battles(**columns, **fixed), Comparisons.from_battles(**taken(columns, order), **fixed)


def controls(rng: np.random.Generator, n: int) -> dict[str, Any] | None:
    """Controls of votes or rows: none, one or two, some constant, some large."""
    if rng.random() < 0.75:
        return None
    size = float(rng.choice([1.0, 1.0, 0.0, 1e6, 1e200]))
    found = {"length": size * rng.integers(-2, 3, n)}
    return found | ({"side": rng.choice([-1.0, 1.0], n)} if rng.random() < 0.3 else {})


def taken(columns: dict[str, Any], order: np.ndarray) -> dict[str, Any]:
    """Columns in another order."""
    pick = lambda column: column[order] if isinstance(column, np.ndarray) else [column[k] for k in order]  # noqa: E731
    return {
        name: None if c is None else {k: pick(v) for k, v in c.items()} if isinstance(c, dict) else pick(c)
        for name, c in columns.items()
    }


def ballots(rng: np.random.Generator, names: tuple[str, ...]) -> tuple[Any, Any]:
    """Ballots with ties, absences, empty ones, weights, voters, instances, scores and controls, each now and then."""
    n = int(rng.choice([0, 1, 2, 4, 10, 25]))
    whole, tied = rng.random() < 0.4, rng.choice([0.0, 0.3, 1.0], p=[0.4, 0.5, 0.1])
    orders = []
    for _ in range(n):
        listed = rng.permutation(names)[: len(names) if whole else int(rng.integers(0, len(names) + 1))].tolist()
        tier = np.cumsum(rng.random(len(listed)) >= tied)
        orders.append([tuple(x for x, t in zip(listed, tier) if t == level) for level in np.unique(tier)])
    columns = {
        "orders": orders,
        "weight": weights(rng, n),
        "agent": some_of(rng, VOTERS, n, 0.35),
        "instance": some_of(rng, ("p", "q", "r"), n, 0.2),
    }
    scored, row_controls = rng.random() < 0.3, rng.random() < 0.15
    found = []
    for order in (np.arange(n), rng.permutation(n)):
        one = Rankings.from_orders(**taken(columns, order), items=names)
        if scored:
            one = replace(one, score=-2.0 * one.tier)
        if row_controls:
            one = replace(one, control={"shown": (one.item * 7 + one.tier) % 3 - 1.0})
        found.append(one)
    return found[0], found[1]


def scores(rng: np.random.Generator, names: tuple[str, ...]) -> tuple[Any, Any]:
    """Score tables with missing cells and questions, on scales from nothing to 1e300."""
    n, t = len(names), int(rng.integers(1, 5))
    value = np.round(rng.random((n, t)), int(rng.integers(0, 3))) * rng.choice(
        [1.0, 1.0, 1.0, 0.0, 100.0, -1.0, 1e140, 1e300]
    )
    value[rng.random((n, t)) < rng.choice([0.0, 0.0, 0.2, 0.6])] = np.nan
    i, c = np.nonzero(~np.isnan(value))
    if rng.random() < 0.4 and len(i):
        columns = {"item": [names[k] for k in i], "task": [f"t{k % 2}" for k in c], "score": value[i, c]}
        columns["question"] = [f"q{k}" for k in c]
        return Scores.from_rows(**columns), Scores.from_rows(**taken(columns, rng.permutation(len(i))))
    order = rng.permutation(n)
    twin = Scores.from_table(value[order], items=[names[k] for k in order], tasks=range(t))
    return Scores.from_table(value, items=names, tasks=range(t)), twin


def slices(rng: np.random.Generator, names: tuple[str, ...]) -> tuple[Any, Any]:
    """A mapping of names to votes or ballots."""
    make = votes if rng.random() < 0.5 else ballots
    found = {name: make(rng, names) for name in ("east", "west", "north")[: int(rng.integers(0, 4))]}
    return {name: one for name, (one, _) in found.items()}, {name: one for name, (_, one) in reversed(found.items())}


def parts(rng: np.random.Generator, names: tuple[str, ...]) -> tuple[Any, Any]:
    """Votes or ballots in parts, with the same data in memory as their twin."""
    data, _ = (votes if rng.random() < 0.5 else ballots)(rng, names)
    if isinstance(data, Comparisons) or data.instance is not None:
        return Parts.of([data]), data
    at = int(rng.integers(0, len(data) + 1))
    return Parts.of([data[np.arange(at)], data[np.arange(at, len(data))]]), data


def sources(rng: np.random.Generator, names: tuple[str, ...]) -> tuple[Any, Any]:
    """Several kinds of evidence about the same items, where this Placet has them."""
    kind = getattr(placet, "Sources", None)
    if kind is None:
        return slices(rng, names)
    found = {name: (votes, ballots, scores)[int(rng.integers(3))](rng, names) for name in ("people", "judge", "tests")}
    some = dict(list(found.items())[: int(rng.integers(1, 4))])
    target = str(rng.choice(list(some))) if rng.random() < 0.7 else None
    both = [{name: pair[k] for name, pair in some.items()} for k in range(2)]
    return kind(both[0], target=target), kind(dict(reversed(both[1].items())), target=target)


MAKERS = {
    "votes": votes,
    "ballots": ballots,
    "scores": scores,
    "slices": slices,
    "parts": parts,
    "sources": sources,
}


# Promises


def verdict(number: int) -> str:
    """What became of a problem: "answered", "refused", or what is wrong with it."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            given = problem(number)
            answer = placet.consensus(given.data, given.method, **given.params)
            wrong = broken(answer)
            if wrong is None and not {"max_iter", "tol"} & set(given.params):
                fewer = given.params | ({"bootstrap": 2} if "bootstrap" in given.params else {})  # scores are the same
                wrong = changed(answer, placet.consensus(given.twin, given.method, **fewer))
            said = "answered" if wrong is None else f"BAD answer: {wrong}"
        except ValueError as error:
            said = "refused" if is_ours(error) else f"BAD error: {place(error)}"
        except Exception as error:
            said = f"BAD error: {place(error)}"
    strange = [one for one in heard if not issubclass(one.category, ConvergenceWarning)]
    if strange and not said.startswith("BAD"):
        at = Path(strange[0].filename)
        return (
            f"BAD warning: {strange[0].category.__name__}: {strange[0].message!s:.80} at {at.name}:{strange[0].lineno}"
        )
    return said


def is_ours(error: BaseException) -> bool:
    """Whether Placet itself raised the error, in its own words."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    foreign = isinstance(error, UnicodeError | np.linalg.LinAlgError)  # these are ValueErrors too
    return last.filename.startswith(HOME) and bool(str(error)) and not foreign


def place(error: BaseException) -> str:
    """The kind and words of an error, and the last of our lines that it went through."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(HOME)]
    at = f" at {Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""
    return f"{type(error).__name__}: {error!s:.120}{at}"


def broken(answer: Any) -> str | None:
    """The first promise that an answer breaks; None if it keeps all."""
    repr(answer)
    answer.to_frame()
    for name, one in each(answer).items():
        for check in (finite, ranks_in_intervals, probabilities):
            found = check(one)
            if found is not None:
                return f"{found}" if name is None else f"{name}: {found}"
    return None


def each(answer: Any) -> dict[Any, Consensus]:
    """The results of an answer, by name."""
    return dict(answer.items()) if isinstance(answer, ConsensusSet) else {None: answer}


def converged(c: Consensus) -> bool:
    """Whether a result reached its optimum; one that did not says so, and depends a little on where it began."""
    return c.fit is None or c.fit.converged


def finite(c: Consensus) -> str | None:
    """Scores and what a fit found are finite; errors may be infinite, and are never NaN or negative."""
    for name in ("scores", "support", "spread", "prior", "drift", "dispersion"):
        value = getattr(c, name)
        if value is not None and not np.isfinite(value).all():
            return f"{name} is {value}"
    for name in ("stderr", "tie_stderr", "dispersion_stderr"):
        value = getattr(c, name)
        if value is not None and not (np.asarray(value) >= 0).all():
            return f"{name} is {value}"
    if c.tie is not None and not c.tie < np.inf:  # minus infinity: no ties are expected
        return f"tie is {c.tie}"
    if c.covariance is not None and np.isnan(c.covariance).any():
        return "the covariance has NaN"
    if c.effects is not None:
        frame = c.controls
        if not frame["coefficient"].is_finite().all() or frame["stderr"].is_nan().any():
            return f"effects {frame.rows()}"
    if c.agents is not None or c.adherence is not None:
        for column in c.agents_frame().iter_columns():
            if column.dtype.is_float() and column.is_nan().any():
                return f"agents: {column.name} has NaN"
    return None


def ranks_in_intervals(c: Consensus) -> str | None:
    """Every rank lies in its own interval of every kind, every score in its own interval, no tier splits a tie."""
    if c.stderr is None:
        return None
    for kind in ("simultaneous", "marginal", "simulated"):
        low, high = c.rank_interval(0.9, kind)
        if not ((low >= 1) & (low <= c.ranks) & (c.ranks <= high) & (high <= len(c.items))).all():
            return f"{kind}: ranks {c.ranks} outside {low}..{high}"
    low, high = c.interval(0.9)
    if not (low <= high).all() or (c.draws is None and not ((low <= c.scores) & (c.scores <= high)).all()):
        return f"interval {low}..{high} of {c.scores}"
    if sorted((x for tier in c.tiers(0.9) for x in tier), key=str) != sorted(c.items, key=str):
        return "tiers are not the items"
    return None


def probabilities(c: Consensus) -> str | None:
    """Probabilities lie in 0..1, and those of all outcomes sum to one."""
    n = len(c.items)
    if c.win is not None and n:
        win = c.win_probabilities()
        both = (win + win.T)[~np.eye(n, dtype=bool)]
        if not ((both >= 0) & (both <= 1 + 1e-9)).all() or np.nanmin(win, initial=0.0) < 0:
            return f"win probabilities {win}"
    if c.stderr is None or not n:
        return None
    at = c.rank_probabilities()
    if not (np.allclose(at.sum(axis=1), 1) and (at >= 0).all()):
        return f"rank probabilities sum to {at.sum(axis=1)}"
    if not np.isclose(c.top_k_probability(1).sum(), 1):
        return f"someone is first with probability {c.top_k_probability(1).sum()}"
    a, b = c.items[0], c.items[-1]
    if not np.isclose(c.prob_above(a, b) + c.prob_above(b, a), 1):
        return f"prob_above gives {c.prob_above(a, b)} and {c.prob_above(b, a)}"
    if c.win is not None and len(c.next_pairs(2)) > n * (n - 1) // 2:
        return "next_pairs repeats a pair"
    return None


def changed(one: Any, other: Any) -> str | None:
    """How two answers differ; None if their scores agree by name."""
    left, right = each(one), each(other)
    if set(left) != set(right):
        return f"instances {list(left)} and {list(right)}"
    for name, a in left.items():
        b = dict(zip(right[name].items, right[name].scores))
        if set(a.items) != set(b):
            return f"items {a.items} and {tuple(b)} in another order"
        again = np.array([b[item] for item in a.items])
        kind = METHODS[a.method].kind if a.method in METHODS else "model"
        same = SAME[kind] if converged(a) and converged(right[name]) else ROUGHLY
        near = same * max(1.0 if kind == "model" else 0.0, float(np.abs(a.scores).max(initial=0.0)))
        if not (np.abs(a.scores - again) <= max(near, 10 * a.tolerance, 1e-12)).all():
            return f"scores {a.scores} and, in another order, {again}"
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="number of the first problem")
    parser.add_argument("--only", help="numbers of problems, separated by commas")
    given = parser.parse_args()
    numbers = range(given.first, given.first + given.problems)
    counts: Counter[str] = Counter()
    for number in [int(k) for k in given.only.split(",")] if given.only else numbers:
        said = verdict(number)
        counts[said if not said.startswith("BAD") else "BAD"] += 1
        if given.only:
            print(problem(number))
        if given.only or said.startswith("BAD"):
            print(f"problem {number}: {said}", flush=True)
    cpu = resource.getrusage(resource.RUSAGE_SELF)
    print(f"{sum(counts.values())} problems: {dict(counts)}, {cpu.ru_utime + cpu.ru_stime:.0f} CPU s")
    sys.exit(1 if counts["BAD"] else 0)


if __name__ == "__main__":
    main()
