"""A dataset's files as one string: the path of a single file, or the paths and names of several read as one."""

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

DIGESTED = 1 << 18
"""Bytes up to which a whole file is digested; of a longer one, this many at its end."""


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


def stamp_of(path: str) -> str:
    """What tells the present content of a dataset's files from any other; a file that is not there has a stamp, too.

    A short file is known by its bytes, so that one that is only touched stays the same.  A long one is known by its
    size, its times, its number on the disk and its last bytes.
    """
    found = hashlib.blake2b(digest_size=12)
    for where in paths_of(path):
        try:
            with open(where, "rb") as file:
                about = os.fstat(file.fileno())
                facts = () if about.st_size <= DIGESTED else (about.st_mtime_ns, about.st_ctime_ns, about.st_ino)
                file.seek(max(0, about.st_size - DIGESTED))
                found.update(repr((about.st_size, *facts)).encode() + file.read(DIGESTED))
        except OSError as error:
            found.update(repr(error.errno).encode())
    return found.hexdigest()
