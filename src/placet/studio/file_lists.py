"""A dataset's files as one string: the path of a single file, or the paths and names of several read as one."""

import json
from collections.abc import Sequence
from pathlib import Path


def encode_files(files: Sequence[tuple[str, str]]) -> str:
    """Paths and names of several files as one string, distinguishable from a path, since all paths are absolute.

    >>> paths_of(encode_files([("/x/1.csv", "may.csv"), ("/x/2.csv", "june.csv")]))
    ['/x/1.csv', '/x/2.csv']
    """
    return json.dumps([list(file) for file in files])


def paths_of(path: str) -> list[str]:
    """The paths of a dataset's files."""
    return [where for where, _ in files_of(path)]


def files_of(path: str) -> list[tuple[str, str]]:
    """The paths and names of a dataset's files.

    >>> files_of("/x/votes.csv")
    [('/x/votes.csv', 'votes.csv')]
    """
    if not path.startswith("["):
        return [(path, Path(path).name)]
    return [(where, name) for where, name in json.loads(path)]


def source_of(path: str) -> str | list[str]:
    """The argument for `placet.read`."""
    paths = paths_of(path)
    return paths if len(paths) > 1 else paths[0]
