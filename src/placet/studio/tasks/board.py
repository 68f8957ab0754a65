"""Boards: the consensus of a dataset by a method, comparisons of two items, and exports."""

import json
import re
import tempfile
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from placet.aggregate import Consensus, ConsensusSet, consensus
from placet.aggregate.consensus_door import expected_seconds
from placet.aggregate.defaults import default_method
from placet.aggregate.method_table import method_of
from placet.aggregate.proof.certificate import digest_of_entries
from placet.aggregate.result.result_files import WRITERS, beside_json
from placet.aggregate.result.separation import MOST_PAIRED
from placet.data import Comparisons, DataError, Rankings, Scores
from placet.data.parameters import parse_value
from placet.data.sources import evidence_count
from placet.output.numbers import percent
from placet.report import write_consensus_page
from placet.report.data_words import evidence
from placet.report.page_lead import lead_of
from placet.report.slice_comparison import write_slices_page
from placet.studio.file_lists import files_of, stamp_of
from placet.studio.question import Question
from placet.studio.tasks.catalog import check_given
from placet.studio.tasks.preview import Loaded, column_names, kind_of, load

MOST_KEPT = 8
MOST_CELLS = 40
MOST_BALLOTS = 20
MOST_INSTANCES = 2000
TIME_WORDS = {"time", "date", "day", "month", "year", "timestamp", "tstamp", "when", "created", "datetime"}
BoardData = Rankings | Comparisons
T = TypeVar("T")


@dataclass(frozen=True)
class Answer:
    """The answer to a question with the very data it was computed from; ``stamp`` is that of their files."""

    path: str
    stamp: str
    data: Any
    notes: list[str]
    whole: Consensus | ConsensusSet

    def board_for(self, asked: Question) -> Consensus:
        """The board that is shown: that of the instance and time named in the question."""
        return _at(board_of(self.whole, asked.instance), asked.at)


_ANSWERS: "OrderedDict[str, Answer]" = OrderedDict()


def board(progress: Any, *, path: str, question: Mapping[str, Any]) -> dict[str, Any]:
    """The ranking with all results for each item, in columns; best first."""
    asked = Question.from_json(question)
    found = answer(path, asked, progress)
    whole, data, chosen = found.whole, found.data, found.board_for(asked)
    about: dict[str, Any] = {
        "method": whole.method,
        "kind": kind_of(first_part(data)),
        "command": replace(asked, method=whole.method).command(path),
        "python": replace(asked, method=whole.method).python(path),
        "notes": [*found.notes, *whole.notes],
        "stamp": found.stamp,
        "slices": [name for name in column_names(path) if name not in asked.reading.values()],
        "beside": {name: rows for name, rows in beside_json(chosen).items() if name != "history"},
        "time": _time_of(data, path),
        "reading": asked.reading,
        "lead": lead_of(chosen, _evidence(shown_data(data, asked)), asked.level),
        "columns": board_columns(chosen, asked.level),
        "has_wins": chosen.win is not None,
        "has_errors": chosen.stderr is not None,
        "voters": _voters(chosen),
        "agents": _agent_names(path, asked, data),
        "instances": [],
    }
    if isinstance(whole, ConsensusSet):
        about["instances"] = [
            {"name": str(name), "items": len(c.items), "first": _first(c)}
            for name, c in list(whole.items())[:MOST_INSTANCES]
        ]
        about["notes"] += [note for note in chosen.notes if note not in about["notes"]]
    return about


def answer(path: str, asked: Question, progress: Any = None) -> Answer:
    """The answer to a question; the last few are cached, and none outlives a change of its file."""
    key = json.dumps([path, stamp_of(path), asked.of_consensus()], sort_keys=True, default=str)
    if key not in _ANSWERS:
        data, notes, stamp = asked_data(path, asked)
        method = asked.method or default_method(data)
        check_given(method_of(method).source, asked.params, method)
        if progress is not None and isinstance(data, Rankings | Comparisons):
            progress(0, 0, f"about {expected_seconds(data, method, asked.bootstrap):.0f} s")
        tell = None if progress is None else lambda done, total: progress(done, total)
        found = consensus(
            data,
            asked.method or None,
            bootstrap=asked.bootstrap,
            random_state=asked.seed,
            progress=tell,
            **asked.params,
        )
        found = replace(found, by=asked.by) if isinstance(found, ConsensusSet) and asked.by else found
        for old in [name for name, one in _ANSWERS.items() if one.path == path and one.stamp != stamp]:
            del _ANSWERS[old]
        key = json.dumps([path, stamp, asked.of_consensus()], sort_keys=True, default=str)
        _ANSWERS[key] = Answer(path, stamp, data, notes, found)
        while len(_ANSWERS) > MOST_KEPT:
            _ANSWERS.popitem(last=False)
    _ANSWERS.move_to_end(key)
    return _ANSWERS[key]


def asked_data(path: str, asked: Question) -> Loaded:
    """The data of a file, restricted to the chosen voters, or as one slice per value of a column."""
    loaded = load(path, asked.reading, asked.by)
    data = loaded.data
    if asked.by:
        if asked.agents:
            raise ValueError("choose slices by a column or by voter, not both")
        return loaded
    if not isinstance(data, Rankings | Comparisons | Scores):
        raise DataError(f"{type(data).__name__} cannot be aggregated; votes, ballots, ratings or scores can")
    if not asked.agents:
        return loaded
    if isinstance(data, Scores) or data.agent is None or data.agents is None:
        raise ValueError("these data do not say who voted; there are no slices by voter")
    wanted = [k for k, name in enumerate(data.agents) if str(name) in asked.agents]
    if not wanted:
        raise ValueError(f"voter {asked.agents[0]!r} is not among the {len(data.agents)} voters")
    return loaded._replace(data=data[np.isin(data.agent, wanted)])


def shown_data(data: Any, asked: Question) -> BoardData:
    """The data of the problem that is shown: all data, or those of one slice or contest."""
    if isinstance(data, Mapping):
        data = _part_named(data, asked.instance)
    elif isinstance(data, Rankings) and data.instance is not None:
        data = _part_named(dict(data.by_instance()), asked.instance)
    return data.to_rankings() if isinstance(data, Scores) else cast(BoardData, data)  # one ballot per task


def board_of(whole: Consensus | ConsensusSet, instance: str) -> Consensus:
    """The consensus itself, or that of one instance: the one named, or the first."""
    if isinstance(whole, Consensus):
        if instance:
            raise ValueError(f"contest {instance!r} is unknown; these data are one")
        return whole
    return _part_named(whole, instance)


def _part_named(parts: Mapping[Hashable, T], instance: str) -> T:
    """The part of one instance: the one named, or the first."""
    for name, part in parts.items():
        if not instance or str(name) == instance:
            return part
    raise ValueError(f"contest {instance!r} is not among the {len(parts)} contests")


def _at(c: Consensus, when: str) -> Consensus:
    """The board at another time, if one is requested."""
    if not when:
        return c
    number = parse_value(when)
    return c.at(when if isinstance(number, str) else number)


def first_part(data: Any) -> Any:
    """The data themselves, or their first slice."""
    return next(iter(data.values()), None) if isinstance(data, Mapping) else data


def _time_of(data: Any, path: str) -> dict[str, Any] | None:
    """Whether votes have times; if not, all columns and the likely time column; None if there is no such column."""
    part = first_part(data)
    if not isinstance(part, Comparisons):
        return None
    if part.time is not None:
        return {"known": True}
    names = column_names(path)
    guess = next((name for name in names if set(re.split(r"[^a-z]+", name.lower())) & TIME_WORDS), "")
    return {"known": False, "columns": names, "guess": guess} if guess else None


def _evidence(data: BoardData) -> str:
    """How much data there are, and from when; `describe` would count far more at every look."""
    unit = "votes" if isinstance(data, Comparisons) else "weight"
    time = data.time if isinstance(data, Comparisons) else None
    period = None if time is None or not len(time) else (str(time.min()), str(time.max()))
    return evidence({unit: evidence_count(data)}, period)


def board_columns(c: Consensus, level: float) -> dict[str, Any]:
    """The columns of ``to_frame`` and the ends of the intervals, in the same row order."""
    frame = c.to_frame(level)
    columns = {name: frame[name].to_list() for name in frame.columns}
    columns["item"] = [str(name) for name in columns["item"]]
    if c.stderr is not None:
        columns["low"], columns["high"] = (ends[c.order].tolist() for ends in c.interval(level))
    return columns


def _first(c: Consensus) -> str:
    first = c.ranking[0] if len(c.items) else ""
    return ", ".join(map(str, first)) if isinstance(first, tuple) else str(first)


def _voters(c: Consensus) -> list[tuple[str, float]]:
    adherence = c.adherence or {}
    return sorted(((str(name), float(value)) for name, value in adherence.items()), key=lambda pair: -pair[1])[:500]


def _agent_names(path: str, asked: Question, data: Any) -> list[str]:
    """The voters to choose from: those of all data, which the data of a slice or of chosen voters do not name."""
    data = load(path, asked.reading).data if asked.by or asked.agents else data
    return [str(name) for name in (getattr(data, "agents", None) or ())[:2000]]


# Views of a board


def wins(progress: Any, *, path: str, question: Mapping[str, Any]) -> dict[str, Any]:
    """The model's probability that one of the best items beats another."""
    found = answer(path, Question.from_json(question), progress)
    c = found.board_for(Question.from_json(question))
    chosen = c.order[:MOST_CELLS]
    table = c.win_between(chosen[:, None], chosen)
    np.fill_diagonal(table, np.nan)
    return {"items": [str(c.items[k]) for k in chosen], "win": table, "total": len(c.items), "stamp": found.stamp}


def ranks(progress: Any, *, path: str, question: Mapping[str, Any]) -> dict[str, Any]:
    """The probability of every rank, for the best items."""
    found = answer(path, Question.from_json(question), progress)
    c = found.board_for(Question.from_json(question))
    chosen = c.order[:MOST_CELLS]
    probability = c.rank_probabilities()[chosen]
    last = int(np.flatnonzero((probability >= 0.005).any(axis=0)).max(initial=0)) + 1
    about = {"items": [str(c.items[k]) for k in chosen], "probability": probability[:, :last], "total": len(c.items)}
    return about | {"stamp": found.stamp}


def pair(progress: Any, *, path: str, question: Mapping[str, Any], first: str, second: str) -> dict[str, Any]:
    """Compare two items: their difference, its uncertainty, and the votes or ballots between them."""
    asked = Question.from_json(question)
    found = answer(path, asked, progress)
    c, data = found.board_for(asked), shown_data(found.data, asked)
    named = {str(name): name for name in c.items}
    for name in (first, second):
        if name not in named:
            raise ValueError(f"item {name!r} is not among the {len(c.items)} items")
    if first == second:
        raise ValueError(f"{first!r} is one item; choose another to compare it with")
    number = {name: k for k, name in enumerate(c.items)}
    a, b = named[first], named[second]
    if c.scores[number[a]] < c.scores[number[b]]:
        a, b = b, a
    i, j = number[a], number[b]
    about: dict[str, Any] = {
        "stamp": found.stamp,
        "above": str(a),
        "below": str(b),
        "ranks": [c.ranks[i], c.ranks[j]],
        "scores": [c.scores[i], c.scores[j]],
        "tied": bool(c.ranks[i] == c.ranks[j]),
        "probability": None if c.stderr is None else c.prob_above(a, b),
        "wins": None if c.win is None else [c.win_probability(a, b), c.win_probability(b, a)],
        "separated": bool(c.separated(asked.level)[i, j])
        if c.stderr is not None and len(c.items) <= MOST_PAIRED
        else None,
        **_between(data, a, b),
    }
    return about | {"words": _why(about, data, asked.level)}


def _between(data: BoardData, a: Hashable, b: Hashable) -> dict[str, Any]:
    """Votes or ballots that compare the two: for the first, for the second, ties; and some of the ballots."""
    if isinstance(data, Rankings):
        both = data.restricted([a, b])
        table, ballots = both.to_comparisons(), _ballots(data, a, b)
    else:
        table, ballots = data, []
    i, j = table.items.index(a), table.items.index(b)
    one, other = (table.i == i) & (table.j == j), (table.i == j) & (table.j == i)
    return {
        "for_above": float(table.wins_i[one].sum() + table.wins_j[other].sum()),
        "for_below": float(table.wins_j[one].sum() + table.wins_i[other].sum()),
        "ties": float(table.ties[one | other].sum()),
        "ballots": ballots,
    }


def _ballots(data: Rankings, a: Hashable, b: Hashable) -> list[dict[str, Any]]:
    """The heaviest ballots that list both."""
    i, j = data.index[a], data.index[b]
    listed = np.bincount(data.ballot[(data.item == i) | (data.item == j)], minlength=len(data)) == 2
    which = np.flatnonzero(listed)
    which = which[np.argsort(-data.weight[which], kind="stable")][:MOST_BALLOTS]
    found = []
    for k in which.tolist():
        order = data[[k]].orders()[0]
        text = " > ".join(" = ".join(map(str, p)) if isinstance(p, tuple) else str(p) for p in order)
        found.append({"ballot": text, "weight": float(data.weight[k])})
    return found


def _why(about: Mapping[str, Any], data: BoardData, level: float) -> str:
    """Sentences on why one item is above the other."""
    a, b, what = about["above"], about["below"], "votes" if isinstance(data, Comparisons) else "ballots"
    direct = about["for_above"] + about["for_below"] + about["ties"]
    words = [f"{a} and {b} tie." if about["tied"] else f"{a} is above {b}."]
    if direct:
        words.append(
            f"Of {direct:,g} {what} that compare the two, {about['for_above']:,g} put {a} first, "
            f"{about['for_below']:,g} put {b} first and {about['ties']:,g} tie them."
        )
    else:
        words.append(f"No {what} compare the two: their order rests on what each did against others.")
    if about["for_below"] > about["for_above"] and not about["tied"]:
        words.append(f"Between the two alone {b} leads; against all others together {a} did better.")
    if about["probability"] is not None:
        words.append(f"{a} is truly above {b} with probability {percent(about['probability'])}.")
    if about["separated"] is not None:
        told = "tell them apart" if about["separated"] else "do not tell them apart"
        words.append(f"At {level:.0%} confidence for all pairs at once the data {told}.")
    return " ".join(words)


# Export of a board


def _is_certifiable(found: Answer, asked: Question) -> bool:
    return not (asked.agents or asked.by or asked.at) and isinstance(found.whole, Consensus)


def certificate_of_board(found: Answer, asked: Question, name: str) -> dict[str, Any]:
    """The certificate of a board, as ``placet aggregate --certificate`` writes it for the same files."""
    if not _is_certifiable(found, asked) or not isinstance(found.whole, Consensus):
        raise ValueError("a certificate is for one board of all votes; choose no slice, contest, voter or time")
    files = files_of(found.path)
    reading = dict(asked.reading)
    how = {"format": reading.pop("format", ""), "options": reading}
    made = found.whole.certificate(asked.level, files=[where for where, _ in files], reading=how, fragility=None)
    names = [own for _, own in files] if len(files) > 1 else [name]  # not those of the workspace
    made["files"] = [entry | {"name": own} for entry, own in zip(made["files"], names)]
    return made | {"digest": digest_of_entries(made)}


def export(progress: Any, *, path: str, question: Mapping[str, Any], kind: str, title: str, name: str = "") -> bytes:
    """The result as a file: the page of the report, CSV, JSON, Parquet or a TREC run, as written by the command."""
    asked = Question.from_json(question)
    found = answer(path, asked, progress)
    result = found.board_for(asked) if asked.at else found.whole
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / f"board.{kind}"
        if kind != "html":
            WRITERS[f".{kind}"](target, result, asked.level, found.data)
        elif isinstance(result, ConsensusSet) and asked.by:
            write_slices_page(target, result, title=title, level=asked.level)
        else:
            made = certificate_of_board(found, asked, name) if name and _is_certifiable(found, asked) else None
            write_consensus_page(target, result, found.data, title=title, level=asked.level, certificate=made)
        return target.read_bytes()
