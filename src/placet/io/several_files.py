"""Several files as one data set: each is read by itself, and items, agents and instances are matched by name."""

import os
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from placet.data import Comparisons, DataError, Games, Queries, Rankings, Scores, concat
from placet.data.arrays import set_columns
from placet.io.formats import FORMATS, choose_format, formats_with, read
from placet.io.sparse.letor import LetorAgg
from placet.io.sparse.xmc import MultiLabel
from placet.io.tables.tables import open_head
from placet.io.text import OnError
from placet.io.trec import Qrels

KINDS = {Rankings: "ballots", Comparisons: "votes", Scores: "scores", Queries: "graded rows", Games: "games"}
"""The kinds of data that several files may hold together, in plain words."""
_OTHERS = {LetorAgg: "rank lists by engines", MultiLabel: "documents with labels", Qrels: "judgments"}


def read_files(
    files: Sequence[str | os.PathLike[str]], format: str | None = None, *, on_error: OnError = "raise", **options: Any
) -> Any:
    r"""Read each file with `placet.read`, and concatenate the data by name; errors name the files.

    Rank lists by engines (LETOR-agg) become ballots with the queries as instances.  Rank lists of several files that
    have the same tag for the same topic come from different engines, which are then named after the files.  The
    ``notes`` are those of all files, without duplicates.

    Returns
    -------
    Comparisons, Rankings, Scores, Queries, ...
        What the files hold together.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name, row in (("may", "ant,bee,a"), ("june", "bee,cat,tie")):
    ...     _ = (folder / f"{name}.csv").write_text(f"model_a,model_b,winner\n{row}\n")
    >>> read_files(sorted(folder.glob("*.csv")))
    Comparisons(2 pairs, 3 items, 2 votes)
    """
    paths = [Path(file) for file in files]
    parts = [ballots_of(read(path, format, on_error=on_error, **options)) for path in paths]
    if len(parts) == 1:
        return parts[0]
    for path, part in zip(paths, parts):
        _refuse_other_kind(paths[0], parts[0], path, part)
    try:
        return _concat(paths, parts)
    except DataError as error:
        raise DataError(f"{', '.join(map(str, paths))}: {error}") from error


def kind_of_file(file: str | os.PathLike[str], format: str | None, options: Mapping[str, Any]) -> type:
    """The type of the data in a file, from its beginning; ``options`` are those that any kind of data may have."""
    with open_head([file], "raise", options) as head:
        return FORMATS[choose_format(head, formats_with(options, format))[0]].kind


def ballots_of(data: Any) -> Any:
    """The ballots of rank lists by engines, with the queries as instances; any other data unchanged."""
    return data.rankings if isinstance(data, LetorAgg) else data


def kind_of(data: Any) -> str:
    """What data are, in plain words: votes, ballots, ratings, graded rows."""
    if isinstance(data, Rankings) and data.score is not None and data.agent is not None and data.instance is None:
        return "ratings"
    return (KINDS | _OTHERS).get(type(data), type(data).__name__)


def to_aggregate(data: Any, name: str) -> "Rankings | Comparisons | Scores | Games":
    """The data if they can be aggregated, else a ``DataError`` that begins with ``name``, such as that of the file.

    Returns
    -------
    Comparisons, Rankings, Scores or Games
        The same data.

    >>> to_aggregate(Rankings.from_orders([["a", "b"]]), "ballots.txt")
    Rankings(1 ballots, 2 items, 2 rows)
    >>> to_aggregate(3, "three.txt")
    Traceback (most recent call last):
        ...
    placet.data.errors.DataError: three.txt: int cannot be aggregated; votes, ballots, ratings or scores can
    """
    if not isinstance(data, Rankings | Comparisons | Scores | Games):
        raise DataError(f"{name}: {kind_of(data)} cannot be aggregated; votes, ballots, ratings or scores can")
    return data


def _refuse_other_kind(first: Path, data: Any, path: Path, other: Any) -> None:
    if type(other) not in KINDS:
        raise DataError(f"{path}: {kind_of(other)} cannot be read together with other files; read the file alone")
    if type(other) is not type(data):
        joined = f"{first.stem}={first} {path.stem}={path} --target {first.stem}"
        raise DataError(
            f"{first} holds {kind_of(data)} and {path} {kind_of(other)}; "
            f"as sources of one fit: placet aggregate {joined}"
        )


def _concat(files: Sequence[Path], parts: list[Any]) -> Any:
    lists = [part for part in parts if isinstance(part, Rankings) and part.instance is not None]
    if len(lists) < len(parts):
        return concat(parts)
    if all(part.agent is None for part in lists):
        return concat([of_one_agent(part, _name(file, files)) for file, part in zip(files, lists)])
    if any(part.agent is None for part in lists) or not _meet_twice(lists):
        return concat(lists)
    tags = Counter(tag for part in lists for tag in set(part.agents or ()))
    joined = concat([_renamed(part, _name(file, files), tags) for file, part in zip(files, lists)])
    twice = next(tag for tag, count in tags.items() if count > 1)
    note = f"several files have the tag {twice!r}; their runs are named after the files"
    set_columns(joined, notes=(*joined.notes, note))
    return joined


def of_one_agent(part: Any, name: Hashable) -> Any:
    """Ballots or votes without agents as those of one, such as rank lists of an engine."""
    return replace(part, agent=np.zeros(len(part), np.int64), agents=(name,))


def _renamed(part: Rankings, name: str, tags: Counter[Hashable]) -> Rankings:
    """Rank lists whose tags in several files are told apart by the name of the file."""
    own = part.agents or ()
    agents = tuple(name if len(own) == 1 else f"{name}:{tag}" if tags[tag] > 1 else tag for tag in own)
    return replace(part, agents=agents)


def _meet_twice(lists: Sequence[Rankings]) -> bool:
    """Whether two files have rank lists of one tag for one topic."""
    met: Counter[tuple[Hashable, Hashable]] = Counter()
    for part in lists:
        pairs = zip(part.agent.tolist(), part.instance.tolist())  # type: ignore[union-attr]
        met.update({(part.agents[a], part.instances[k]) for a, k in pairs})  # type: ignore[index]
    return max(met.values(), default=0) > 1


def _name(file: Path, files: Sequence[Path]) -> str:
    """The file's name, or its path if another file has the same name."""
    return file.name if sum(other.name == file.name for other in files) == 1 else str(file)
