"""The workspace: one folder with an SQLite database and the uploaded files.

Acknowledged writes are on disk: the database is in WAL mode with ``synchronous=FULL``, files are flushed and renamed.
Writes that arrive together are committed together by one thread, so that many voters share one flush.
"""

import asyncio
import json
import os
import queue
import re
import secrets
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placet.studio import workspace
from placet.studio.file_lists import encode_files, files_of, paths_of

Change = Callable[[sqlite3.Connection], Any]
"""A function that writes through the connection, in its own savepoint; its return value is passed to the caller."""

MOST_TOGETHER = 500
MOST_NAME = 200
_SUFFIX = re.compile(r"(?:\.[A-Za-z0-9]{1,10}){0,2}\Z")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS fact (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS dataset (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, path TEXT NOT NULL, size INTEGER NOT NULL, reading TEXT NOT NULL,
    created REAL NOT NULL);
CREATE TABLE IF NOT EXISTS poll (
    id TEXT PRIMARY KEY, title TEXT NOT NULL, kind TEXT NOT NULL, items TEXT NOT NULL, settings TEXT NOT NULL,
    open INTEGER NOT NULL DEFAULT 1, created REAL NOT NULL);
CREATE TABLE IF NOT EXISTS vote (
    number INTEGER PRIMARY KEY, poll TEXT NOT NULL REFERENCES poll (id), voter TEXT NOT NULL, nonce TEXT NOT NULL,
    asked TEXT NOT NULL, answer TEXT NOT NULL, counts INTEGER NOT NULL DEFAULT 1, created REAL NOT NULL,
    UNIQUE (poll, nonce));
CREATE INDEX IF NOT EXISTS vote_of_voter ON vote (poll, voter, asked);
CREATE INDEX IF NOT EXISTS vote_of_poll ON vote (poll);
CREATE TABLE IF NOT EXISTS run (
    id TEXT PRIMARY KEY, dataset TEXT NOT NULL, settings TEXT NOT NULL, summary TEXT NOT NULL, created REAL NOT NULL);
"""


@dataclass(frozen=True)
class Dataset:
    """A file from the workspace or the command line, or several read as one; ``reading`` are the reader's options."""

    id: str
    name: str
    path: str
    size: int
    reading: dict[str, Any]
    created: float


class TooLarge(ValueError):
    """An upload larger than the studio accepts."""


class Store:
    """The database and files of one workspace."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder).resolve()
        self.files, self.models, self.images = (self.folder / name for name in ("files", "models", "images"))
        self.database = self.folder / workspace.DATABASE
        workspace.refuse_foreign(self.database, _SCHEMA)
        workspace.prepare(self.folder)
        self._lock = workspace.hold(self.folder)
        try:
            workspace.clear_unfinished(self.folder)
            self._reader, self._reading = workspace.open_database(self.database, _SCHEMA), threading.Lock()
        except BaseException:
            self._lock.close()
            raise
        self._queue: queue.SimpleQueue[tuple[Change, Future[Any]] | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write_all, name="studio-writer", daemon=True)
        self._writer.start()

    def close(self) -> None:
        """Finish pending writes, and close."""
        self._queue.put(None)
        self._writer.join()
        self._reader.close()
        self._lock.close()

    # Reading and writing

    def rows(self, sql: str, *values: Any) -> list[sqlite3.Row]:
        """The rows of a query."""
        with self._reading:
            return self._reader.execute(sql, values).fetchall()

    def row(self, sql: str, *values: Any) -> sqlite3.Row | None:
        """The first row of a query, or None."""
        found = self.rows(sql, *values)
        return found[0] if found else None

    def write(self, change: Change) -> "Future[Any]":
        """Queue a change; the future has its result once it is on disk, or the error that rolled it back."""
        future: Future[Any] = Future()
        self._queue.put((change, future))
        return future

    def execute(self, sql: str, *values: Any) -> "Future[Any]":
        """Queue a single statement as a change."""
        return self.write(lambda connection: connection.execute(sql, values).rowcount)

    def _write_all(self) -> None:
        connection = workspace.connect(self.database)
        while (first := self._queue.get()) is not None:
            batch = [first]
            while len(batch) < MOST_TOGETHER and not self._queue.empty():
                if (more := self._queue.get()) is None:
                    self._queue.put(None)
                    break
                batch.append(more)
            _commit(connection, batch)
        connection.close()

    def fact(self, name: str, make: Callable[[], str]) -> str:
        """A string generated once per workspace, such as a secret."""
        self.execute("INSERT OR IGNORE INTO fact VALUES (?, ?)", name, make()).result()
        found = self.row("SELECT value FROM fact WHERE name = ?", name)
        assert found is not None
        return str(found["value"])

    # Files

    async def save_upload(self, name: str, chunks: AsyncIterator[bytes], most: int) -> Dataset:
        """Save a file as it streams in; it is renamed and listed only when it is complete and flushed."""
        key, size = secrets.token_hex(8), 0
        match = _SUFFIX.search(name)
        target = self.files / f"{key}{match.group().lower() if match else ''}"
        with workspace.unfinished(self.folder) as path, open(path, "xb") as file:
            async for chunk in chunks:
                size += len(chunk)
                if size > most:
                    raise TooLarge(f"{name} is larger than {most:,} bytes; start the studio with a larger --max-upload")
                file.write(chunk)
            await asyncio.to_thread(workspace.put_in_place, file, path, target)
        return self._add_dataset(key, name, target, size)

    def add_file(self, path: Path) -> Dataset:
        """Add a file named on the command line; it is not moved, is listed once, and a link is followed each time."""
        whole = Path(os.path.abspath(path))
        known = self.row("SELECT * FROM dataset WHERE path = ?", str(whole))
        if known is not None:
            return _dataset(known)
        return self._add_dataset(secrets.token_hex(8), path.name, whole, whole.stat().st_size)

    def join(self, keys: Sequence[str]) -> Dataset:
        """Create a dataset whose files are those of several others, read as one with the options of the first."""
        parts = [self.dataset(key) for key in keys]
        files = dict.fromkeys(
            file if len(files_of(part.path)) > 1 else (part.path, part.name)
            for part in parts
            for file in files_of(part.path)
        )
        if len(files) < 2:
            raise ValueError("choose two files at least")
        path = encode_files(list(files))
        known = self.row("SELECT * FROM dataset WHERE path = ?", path)
        if known is not None:
            return _dataset(known)
        name = " + ".join(name for _, name in files)
        name = name if len(name) <= MOST_NAME else f"{name[: MOST_NAME - 20]}... ({len(files)} files)"
        made = self._add_dataset(secrets.token_hex(8), name, path, sum(part.size for part in parts))
        self.set_reading(made.id, parts[0].reading)
        return self.dataset(made.id)

    def _add_dataset(self, key: str, name: str, path: Path | str, size: int) -> Dataset:
        sql = "INSERT INTO dataset VALUES (?, ?, ?, ?, '{}', ?)"
        self.execute(sql, key, name, str(path), size, time.time()).result()
        return self.dataset(key)

    def dataset(self, key: str) -> Dataset:
        """The dataset with a key; a ``KeyError`` if there is none."""
        found = self.row("SELECT * FROM dataset WHERE id = ?", key)
        if found is None:
            raise KeyError(key)
        return _dataset(found)

    def datasets(self) -> list[Dataset]:
        """All datasets, newest first."""
        return [_dataset(row) for row in self.rows("SELECT * FROM dataset ORDER BY created DESC, id")]

    def set_reading(self, key: str, reading: dict[str, Any]) -> None:
        """Store the options for reading a dataset."""
        self.execute("UPDATE dataset SET reading = ? WHERE id = ?", json.dumps(reading), key).result()

    def remove_dataset(self, key: str) -> None:
        """Remove a dataset, and delete those of its files that the studio owns and no other dataset uses."""
        data = self.dataset(key)
        self.execute("DELETE FROM dataset WHERE id = ?", key).result()
        others = {path for other in self.datasets() for path in paths_of(other.path)}
        for path in map(Path, paths_of(data.path)):
            if path.parent == self.files and str(path) not in others:
                path.unlink(missing_ok=True)


def _dataset(row: sqlite3.Row) -> Dataset:
    return Dataset(**{**dict(row), "reading": json.loads(row["reading"])})


def _commit(connection: sqlite3.Connection, batch: list[tuple[Change, "Future[Any]"]]) -> None:
    """Commit all changes in one transaction, then acknowledge them; one that fails is rolled back alone."""
    batch = [one for one in batch if one[1].set_running_or_notify_cancel()]
    done: list[tuple[Future[Any], Any, Exception | None]] = []
    try:
        connection.execute("BEGIN IMMEDIATE")
        for change, future in batch:
            connection.execute("SAVEPOINT one")
            try:
                done.append((future, change(connection), None))
            except Exception as error:  # passed to the caller of the change
                if not connection.in_transaction:
                    raise  # SQLite has rolled all back, as it does when the disk is full
                connection.execute("ROLLBACK TO one")
                done.append((future, None, error))
            connection.execute("RELEASE one")
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        done = [(future, None, error) for _, future in batch]
    for future, result, failure in done:
        if failure is None:
            future.set_result(result)
        else:
            future.set_exception(failure)
