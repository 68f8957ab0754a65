"""The folder of a workspace: private, open in one studio at a time, with a database that is the studio's own."""

import contextlib
import os
import re
import secrets
import sqlite3
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO

FOLDERS = ("files", "models", "images", "incoming")
DATABASE = "studio.sqlite"
APPLICATION = int.from_bytes(b"plct")
"""The number by which SQLite knows the databases of the studio."""

VERSION = 1
_NAMES = {*FOLDERS, "lock", DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm"}
_OURS = re.compile(r"[0-9a-f]{16}\.part")
_ELSEWHERE = "choose another folder with --workspace"


def prepare(folder: Path) -> None:
    """Make the folders of a workspace, and keep other users out of those that were there before."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder}: this is a file; {_ELSEWHERE}")
    own = not folder.exists() or {path.name for path in folder.iterdir()} <= _NAMES
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    before = folder.stat().st_mode & 0o077
    _keep_private(folder, own)
    if own and before:
        left = folder.stat().st_mode & 0o077
        warnings.warn(
            f"{folder} was open to other users and {'still is, on this file system' if left else 'is private now'}",
            stacklevel=2,
        )
    for path in (folder / name for name in FOLDERS):
        if path.is_symlink() and not path.exists():
            raise ValueError(f"{path}: this link leads nowhere; remove it, or {_ELSEWHERE}")
        path.mkdir(exist_ok=True, mode=0o700)
        _keep_private(path, True)


def _keep_private(path: Path, own: bool) -> None:
    """Take the permissions of others away from what is the studio's own; refuse what others could replace."""
    if not hasattr(os, "getuid"):
        return  # a system with other permissions
    about = path.stat()
    if about.st_uid not in (os.getuid(), 0):
        raise ValueError(f"{path}: this belongs to another user (number {about.st_uid}); {_ELSEWHERE}")
    if own and about.st_mode & 0o077:
        path.chmod(about.st_mode & 0o700)
    elif about.st_mode & 0o022:
        way_out = f"{_ELSEWHERE}, or take that right away: chmod go-w {path}"
        raise ValueError(f"{path}: others may write here, and it holds more than a workspace; {way_out}")


def hold(folder: Path) -> IO[bytes]:
    """The lock of a workspace, held until it is closed; a second studio on the same folder is refused."""
    file = open(folder / "lock", "a+b")  # noqa: SIM115
    try:
        _lock(file)
    except OSError:
        file.seek(0)
        process = file.read(20).decode("ascii", "replace").strip()
        file.close()
        who = f" (process {process})" if process else ""
        raise ValueError(
            f"{folder}: this workspace is open in another studio{who}; use or stop that, or {_ELSEWHERE}"
        ) from None
    file.truncate(0)
    file.write(f"{os.getpid()}\n".encode())
    file.flush()
    return file


def _lock(file: IO[bytes]) -> None:
    try:
        import fcntl
    except ImportError:
        import msvcrt

        file.seek(100)  # beyond the number of the process, which others read
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def clear_unfinished(folder: Path) -> None:
    """Delete what interrupted uploads left behind; nothing that a dataset or a person named is touched."""
    for path in (folder / "incoming").iterdir():
        if _OURS.fullmatch(path.name):
            path.unlink()


@contextlib.contextmanager
def unfinished(folder: Path) -> Iterator[Path]:
    """A name for a file that is not complete yet, where no finished file is ever looked for; gone in the end."""
    path = folder / "incoming" / f"{secrets.token_hex(8)}.part"
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def put_in_place(file: IO[bytes], path: Path, target: Path) -> None:
    """Flush a complete file to disk and give it its name, so that it survives a power failure."""
    file.flush()
    os.fsync(file.fileno())
    os.rename(path, target)
    _flush_folder(target.parent)


def save_bytes(folder: Path, target: Path, content: bytes) -> None:
    """Write a file that appears complete or not at all."""
    with unfinished(folder) as path, open(path, "xb") as file:
        file.write(content)
        put_in_place(file, path, target)


def _flush_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


# The database


def connect(path: Path) -> sqlite3.Connection:
    """A connection to the database of a workspace."""
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=30)
    with _closed_by_error(connection):
        connection.row_factory = sqlite3.Row
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "trusted_schema=OFF"):
            connection.execute(f"PRAGMA {pragma}")
    return connection


@contextlib.contextmanager
def _closed_by_error(connection: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        connection.close()
        raise


def open_database(path: Path, schema: str) -> sqlite3.Connection:
    """The database, made if it is not there; one that is broken raises a ``ValueError``."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    _keep_private(path, True)
    with _in_words(path):
        connection = connect(path)
        with _closed_by_error(connection):
            problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if problem != "ok":
                raise sqlite3.DatabaseError(problem.replace("\n", " "))
            numbers = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION};"
            connection.executescript(f"{schema}; {numbers}")
    return connection


@contextlib.contextmanager
def _in_words(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        way_out = f"put a copy in its place, or {_ELSEWHERE}"
        raise ValueError(f"{path}: the database of this workspace cannot be read ({error}); {way_out}") from None


def refuse_foreign(path: Path, schema: str) -> None:
    """Raise a ``ValueError`` for a database that is broken or another program's, before anything is changed."""
    if path.is_dir():
        raise ValueError(f"{path}: this is a folder, not a database; {_ELSEWHERE}")
    if not path.exists():
        return
    with (
        _in_words(path),
        contextlib.closing(sqlite3.connect(":memory:")) as own,
        contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as found,
    ):
        own.executescript(schema)
        number = found.execute("PRAGMA application_id").fetchone()[0]
        version = found.execute("PRAGMA user_version").fetchone()[0]
        known, there = _columns(own), _columns(found)
    if number not in (0, APPLICATION) or any(known.get(name) != columns for name, columns in there.items()):
        raise ValueError(f"{path}: this database is another program's; {_ELSEWHERE}")
    if version > VERSION:
        raise ValueError(
            f"{path}: this workspace is of a newer Placet (version {version}, not {VERSION}); {_ELSEWHERE}"
        )


def _columns(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """The names of the columns of each table."""
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    return {
        name: [row[1] for row in connection.execute(f'PRAGMA table_info("{name.replace(chr(34), chr(34) * 2)}")')]
        for (name,) in names.fetchall()
    }
