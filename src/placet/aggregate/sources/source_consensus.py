"""The consensus of several sources: the target's board, what each source is worth and where it differs."""

from functools import partial
from typing import Any, Literal

import numpy as np
from scipy.sparse.csgraph import connected_components

from placet.aggregate.data_facts import support, with_votes_counted
from placet.aggregate.likelihood.information import SCORE_TOLERANCE, with_mean_zero
from placet.aggregate.method_table import SOURCES
from placet.aggregate.result.learned.control_effects import Controls
from placet.aggregate.result.learned.source_parameters import SourceParameters
from placet.aggregate.result.result import Consensus
from placet.aggregate.sources.item_response import Response
from placet.aggregate.sources.joint_mode import Widths, add_square
from placet.aggregate.sources.paired_votes import PairedRows, PairedVotes, paired_rows
from placet.aggregate.sources.posterior_mean import score_covariances
from placet.aggregate.sources.source_fit import SourceFit, fit_sources
from placet.aggregate.sources.source_likelihood import VoteLikelihood, likelihood_of
from placet.aggregate.sources.source_worth import deviations, worth
from placet.data import Comparisons, DataError, Parts, Rankings, Scores
from placet.data.arrays import Floats, Ints
from placet.data.engines.memory import refuse_square
from placet.data.errors import as_choices
from placet.data.sources import Sources, evidence_count
from placet.losses.pairwise import TIES, win_probability

ROUNDING = 1e-9
"""What a source says about two items together, relative to each alone, below which it says nothing."""

KINDS = {Comparisons: "votes", Rankings: "ballots", Scores: "scores"}


def consensus_of_sources(
    sources: Sources,
    ties: Literal["none", "rao-kupper", "davidson"] = "davidson",
    response: Response = "auto",
    order_effect: bool = False,
    max_iter: int = 200,
) -> Consensus:
    """The consensus of several sources of evidence in one fit (`placet.aggregate.sources.width_evidence`).

    Parameters
    ----------
    sources : Sources
    ties : "davidson", "rao-kupper" or "none"
        How votes tie, each source with a tie parameter of its own; "none" counts a tie as half a win for either side.
    response : "auto", "share" or "number"
        What the scores of tables are: shares of questions solved, in 0..1, or other numbers; "auto" looks.
    order_effect : bool
        Learn the advantage of coming first, of every source whose votes know who did.
    max_iter : int
        Maximum number of Newton steps of each fit.
    """
    n = sources.n_items
    refuse_square(n, "the information of the sources", "take fewer items", 6.0 + 4 * len(sources))
    ids = sources.target if sources.paired else None
    data = {name: with_votes_counted(part, agents=name == ids) for name, part in sources.items()}
    if order_effect and not any(getattr(part, "ordered", False) for part in data.values()):
        raise DataError("order_effect=True needs to know who came first: no source has votes that do (ordered=True)")
    own = {name: likelihood_of(part, sources.index(name), ties, response, order_effect) for name, part in data.items()}
    others = [name for name in sources if name != sources.target]
    target = None if sources.target is None else own[sources.target]
    rows = paired_rows(sources, data, order_effect) if sources.paired else None
    if rows is not None:
        judge = own[rows.source]
        target = PairedVotes(rows, sources.index(sources.target), ties, judge, others.index(rows.source))
        own[sources.target] = target
    found = fit_sources(target, [own[name] for name in others], n, max_iter)
    level = 1.0 if target is not None else float(np.exp(found.z[1 : 1 + len(others)].mean()))
    learned = parameters_of(sources, found, others, level)
    covariance = with_mean_zero(level**2 * found.covariance, n)
    win, effects = None, effects_of(own, found, sources.target, others)
    if isinstance(target, VoteLikelihood):
        win = partial(win_probability, family=target.counts.model, tie=target.tie(found.joint.of_target(found.x)))
    return Consensus(
        sources.item_names,
        level * (found.mean - found.mean.mean()),
        method=SOURCES.name,
        params={"target": sources.target, "ties": ties, "response": response, "order_effect": order_effect},
        covariance=covariance,
        win=win,
        fit=found.fit,
        notes=(
            *sources.notes,
            *_notes(sources, found),
            *learned.notes(),
            *_pairing_notes(sources, rows, found),
            *(effects.notes() if effects is not None else ()),
        ),
        effects=effects,
        tolerance=SCORE_TOLERANCE,
        support=_support(sources, data),
        prior=level * found.widths.w,
        sources=learned,
    )


def parameters_of(sources: Sources, found: SourceFit, others: list[Any], level: float) -> SourceParameters:
    """Scale, width, agreement, worth and deviations of every source, with standard errors by the delta method."""
    w, a, v = found.widths
    names, (S, _) = tuple(sources), found.evidence.precision(found.widths)
    error = np.sqrt(np.maximum(np.diag(found.z_covariance), 0.0))
    base: dict[Any, tuple[float, ...]] = dict.fromkeys(names, (1.0, 0.0, 0.0, 0.0, 1.0, 0.0))
    worths: dict[Any, float | None] = dict.fromkeys(names)
    deviation: dict[Any, Floats] = {}
    deviation_stderr: dict[Any, Floats] = {}
    for k, name in enumerate(others):
        base[name] = _row(found, k, w, a[k], v[k], level, error[1 + k])
        one = found.evidence.sources[k]
        e, e_error = deviations(one, a[k], v[k], found.mean, found.covariance)
        deviation[name], deviation_stderr[name] = level * e / a[k], level * e_error / a[k]
        if sources.target is not None:
            votes = evidence_count(sources[sources.target])
            add_square(S, one.items, -found.evidence.part_of(found.widths, k))
            value = worth(found.evidence.base, S, found.with_source(k), sources.index(sources.target), votes)
            worths[name] = value if found.unrelated[k] < 0.5 else 0.0
            add_square(S, one.items, found.evidence.part_of(found.widths, k))
    scale, scale_error, width, width_error, agreement, agreement_error = np.array([base[name] for name in names]).T
    amount = np.array([evidence_count(sources[name]) for name in names])
    kinds = tuple(KINDS[part.kind if isinstance(part, Parts) else type(part)] for part in sources.values())
    return SourceParameters(
        names,
        sources.target,
        kinds,
        amount,
        scale,
        scale_error,
        width,
        width_error,
        agreement,
        agreement_error,
        related=np.array([1.0 if name not in others else 1 - found.unrelated[others.index(name)] for name in names]),
        worth=tuple(worths[name] for name in names),
        members={name: tuple(sources[name].items) for name in others},
        deviation=deviation,
        deviation_stderr=deviation_stderr,
    )


def _row(found: SourceFit, k: int, w: float, a: float, v: float, level: float, a_error: float) -> tuple[float, ...]:
    """Scale, width v / a, agreement a w / sqrt(a^2 w^2 + v^2), each with its standard error."""
    count = len(found.evidence.sources)
    C = found.z_covariance
    at = [0, 1 + k, 1 + count + k]
    own = C[np.ix_(at, at)]
    width = v / a
    width_error = width * float(np.sqrt(max(np.array([0, -1, 1]) @ own @ np.array([0, -1, 1]), 0.0)))
    agreement = a * w / np.hypot(a * w, v)
    slope = agreement * (1 - agreement**2)  # d agreement / d log w, d log a, and minus d log v
    direction = slope * np.array([1.0, 1.0, -1.0])
    agreement_error = float(np.sqrt(max(direction @ own @ direction, 0.0)))
    return (a / level, a / level * a_error, level * width, level * width_error, agreement, agreement_error)


def effects_of(own: dict[Any, Any], found: SourceFit, target: Any, others: list[Any]) -> Controls | None:
    """The effects of controls, each source's own, as `source: control`; None if there are none.

    What the scores leave open is part of the errors: with B the Hessian of what stands beside the scores and T that of
    both, the covariance is B^-1 + B^-1 T C T' B^-1.  For other sources than the target C is that at the learned
    scales: what these leave open about theta does not move a source's own scores.
    """
    covariances = score_covariances(found.evidence, found.widths, found.evidence.at(found.z).covariance)
    names: list[str] = []
    columns: list[tuple[Any, ...]] = []
    for name, one in own.items():
        k, m = len(one.effects.names), len(one.index)
        if not k:
            continue
        if name == target:
            x, C = found.joint.of_target(found.x), found.covariance[np.ix_(one.index, one.index)]
        else:
            x, C = found.joint.own(found.x, others.index(name)), covariances[1 + others.index(name)]
        H = one.derivatives(x)[1]
        beside = np.linalg.inv(H[m:, m:])
        tied = beside @ H[m:, :m]
        error = np.sqrt(np.diag(beside + tied @ C @ tied.T))[-k:]
        names += [f"{name}: {control}" for control in one.effects.names]
        columns.append((x[-k:], error, one.effects.unit, one.effects.varies))
    if not names:
        return None
    effect, error, unit, varies = (np.concatenate(column) for column in zip(*columns))
    return Controls.in_units(tuple(names), effect, error, unit, varies)


def _support(sources: Sources, data: dict[Any, Any]) -> Floats:
    """(n,): the weight of what the target (or, without one, all sources together) say about an item."""
    total = np.zeros(sources.n_items)
    for name in [sources.target] if sources.target is not None else list(sources):
        part = data[name]
        own = (~np.isnan(part.by_task())).sum(axis=1) if isinstance(part, Scores) else support(part)
        total[sources.index(name)] += own
    return total


def _notes(sources: Sources, found: SourceFit) -> list[str]:
    notes = [] if found.fit.converged else [found.fit.message]
    apart = groups_apart(found)
    if len(apart) > 1:
        one, other = (str(sources.item_names[group[0]]) for group in apart[:2])
        notes.append(
            f"the items fall into {len(apart)} groups that no source joins ({one}, ... and {other}, ...): "
            "between them only the prior decides; aggregate each group alone"
        )
    if found.rough:
        notes.append(
            "so few votes, or so many ties, leave scores, tie rates and scales open together: the fit is taken about "
            "its most probable values, and scores and errors are rougher than usual"
        )
    if sources.target is None:
        notes.append("no target: the scores are what the sources have in common; target= names the one that counts")
    return notes


def _pairing_notes(sources: Sources, rows: PairedRows | None, found: SourceFit) -> list[str]:
    """What pairing found, if it was asked for."""
    if not sources.paired:
        return []
    if rows is None:
        return [f"no source has a vote with the id of one of {sources.target}: nothing is paired"]
    target = found.joint.target
    x = found.joint.of_target(found.x)
    H = target.derivatives(x)[1]
    at = np.arange(len(target.index))
    H[at, at] += found.widths.w**-2
    gamma, error = x[target.gamma], float(np.sqrt(np.linalg.inv(H)[target.gamma, target.gamma]))
    return [
        f"{rows.source} judged the answers of {rows.answered:.10g} of {evidence_count(sources[sources.target]):.10g} "
        f"{sources.target} votes: its verdict moves their log odds by {gamma:.2f} ± {error:.1g} beyond the scores"
    ]


def groups_apart(found: SourceFit) -> list[Ints]:
    """Numbers of the items of each group that is joined by what sources say, the first item's first."""
    n = found.joint.n
    seen = np.abs(found.evidence.base)
    for k, one in enumerate(found.evidence.sources):
        add_square(
            seen, one.items, np.abs(found.evidence.part_of(Widths(1.0, 0 * found.widths.a + 1, found.widths.v), k))
        )
    size = np.sqrt(np.diag(seen))
    _, group = connected_components(seen > ROUNDING * np.outer(size, size), directed=False)
    return [np.flatnonzero(group == g) for g in dict.fromkeys(group[:n].tolist())]


def check_sources(sources: Sources, ties: str) -> None:
    """Raise an error for what a joint fit cannot take."""
    if ties not in TIES:
        raise ValueError(f"ties {ties!r} is unknown; choose from {as_choices(TIES)}")
    if len(sources) < 2:
        raise DataError("one source is not joined with any other; give at least two")
