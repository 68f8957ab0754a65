"""Reading of paths and open files, plain or compressed, as bytes, text or lines; atomic writing by rename."""

import contextlib
import errno
import io
import os
import secrets
import select
import shutil
import stat
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from placet.data import DataError
from placet.data.engines.memory import refuse_beyond_memory
from placet.io.compression import COMPRESSED, FIRST_BYTES, ZIP, compressing, decompressed, one_table, zip_members

HEAD = 1 << 16
"""The number of bytes in the head of a file, by which its format and layout are found."""


INSPECT_START = "_journal/start.json"
"""The member that every ``.eval`` archive of Inspect has, finished or not."""
OWN_KINDS = frozenset({"[Content_Types].xml", "xl/workbook.xml", "xl/workbook.bin", "mimetype", INSPECT_START})
"""Members of zip archives that are files of their own kind: workbooks of Excel, documents of LibreOffice, logs of
Inspect."""


class OpenedFile:
    """A file that is opened once: its ``head``, decompressed, and all of its bytes from the start.

    ``path`` is that of a regular, uncompressed file, which other libraries can read directly; else None.  ``layout`` is
    what the format found in the head, for its reader.  A function that takes a path takes it, and opens it again.
    A zip archive is the one table in it, whose ``name`` ends in that of the member, unless it is a file of its own
    kind, such as a workbook: that has ``members``, and its bytes are those of the archive.
    """

    def __init__(self, raw: IO[bytes], name: str, path: str | None) -> None:
        self.name, self._raw, self._start, self._given = name, raw, raw.tell(), name
        self.members: tuple[str, ...] = ()
        self._member = ""
        self.layout: Any = None
        self.head = raw.read(HEAD)
        known = FIRST_BYTES.match(self.head)
        self._compression = known.lastgroup if known else None
        if self._compression == "zip":
            self._look_into_archive()
        self.path = None if self._compression else path
        self._unread: IO[bytes] | None = None
        if self._compression:
            file = self._unread = self._decompressed(self._compression)
            self.head = file.peek()[:HEAD]

    def _look_into_archive(self) -> None:
        self._raw.seek(self._start)
        found = zip_members(self._raw, self.name)
        names = tuple(one.filename for one in found)
        if OWN_KINDS & set(names):
            self.members, self._compression = names, None
            return
        self._member = one_table(found, self.name)
        self.name = f"{self.name}/{self._member}"

    def _decompressed(self, kind: str) -> io.BufferedReader:
        self._raw.seek(self._start)
        return decompressed(self._raw, kind, self.name, self._member)

    def __fspath__(self) -> str:
        return self._given

    def stream(self) -> IO[bytes]:
        """All bytes from the start, decompressed, as a file."""
        if self._compression is None:
            self._raw.seek(self._start)
            return self._raw
        file, self._unread = self._unread, None
        return file or self._decompressed(self._compression)

    def read(self) -> bytes:
        """All bytes, decompressed; a small file is its head."""
        return self.head if len(self.head) < HEAD else self.stream().read()


Source = str | os.PathLike[str] | IO[Any]


def layout_of(source: Any) -> Any:
    """The layout that was found in the head of an open file; None if nobody looked."""
    return source.layout if isinstance(source, OpenedFile) else None


def name_of(source: Source) -> str:
    """The name of a source in messages."""
    if isinstance(source, OpenedFile):
        return source.name
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<stream>"


def bare_suffix(source: Source) -> str:
    """The suffix of a name before any compression suffix, in lower case: ``.csv`` for ``votes.CSV.gz``."""
    path = Path(name_of(source))
    return (Path(path.stem) if path.suffix.lower() in COMPRESSED else path).suffix.lower()


@contextlib.contextmanager
def _raw(source: Source) -> Iterator[IO[bytes]]:
    """A seekable binary file at the start of ``source``; only files opened here are closed here."""
    if isinstance(source, str | os.PathLike):
        if is_pipe(os.fspath(source)):
            yield spool(os.fspath(source))
            return
        with open(source, "rb") as file:
            yield file
        return
    if isinstance(source, NamedBytes):
        yield io.BytesIO(source.getvalue())  # always from the start: it may be read several times
        return
    if not hasattr(source, "read"):
        raise TypeError(f"expected a path or an open file, not {type(source).__name__}")
    seekable = getattr(source, "seekable", lambda: False)()
    if seekable and not isinstance(source, io.TextIOBase) and source.read(0) == b"":
        yield source
        return
    try:
        data = source.read()
    except UnicodeDecodeError as error:
        raise DataError(f"{name_of(source)}: {error}; open it with the encoding it was written in") from None
    yield io.BytesIO(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data)


@contextlib.contextmanager
def opened(source: Source) -> Iterator[OpenedFile]:
    """Open a path, or continue with a file that is open; the compression is recognized by its first bytes.

    Truncated and damaged archives, and those that expand beyond ``decompression_limit``, raise a ``DataError``.
    """
    if isinstance(source, OpenedFile):
        yield source
        return
    with _raw(source) as raw:
        path = os.fspath(source) if isinstance(source, str | os.PathLike) else None
        yield OpenedFile(raw, name_of(source), None if isinstance(raw, NamedBytes) else path)


@contextlib.contextmanager
def open_bytes(source: Source) -> Iterator[IO[bytes]]:
    """The decompressed bytes of a path or open file, as a file."""
    with opened(source) as file:
        yield file.stream()


class NamedBytes(io.BytesIO):
    """Bytes that have already been read, with the name of their source."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(data)
        self.name = name


def is_pipe(path: str) -> bool:
    """Whether a path can be read only once: a named pipe, a shell's ``<(...)``, a terminal."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode)


PATIENCE = 3.0
"""Seconds to wait silently for the other end of a pipe."""


def spool(path: str) -> NamedBytes:
    """Read a pipe into memory, so that it can be inspected and then read; warns if it has to wait.

    A pipe that a shell names ``/dev/fd/63`` can be read only once: opening it again returns the same bytes.
    """
    if not path.startswith(("/dev/fd/", "/proc/self/fd/", "/dev/stdin")):
        return NamedBytes(_read_pipe(path), path)
    return NamedBytes(_read_pipe_once(path, os.stat(path).st_ino), path)


@lru_cache(maxsize=8)
def _read_pipe_once(path: str, _inode: int) -> bytes:
    return _read_pipe(path)


def _read_pipe(path: str) -> bytes:
    """All bytes of a pipe."""
    with open(path, "rb", buffering=0, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        _wait_for_bytes(file, path)
        os.set_blocking(file.fileno(), True)
        return _read_all(file, path)


def spool_stdin() -> NamedBytes:
    """Read standard input into memory, like `spool`."""
    name, file = "<stdin>", sys.stdin.buffer
    try:
        file.fileno()
    except (OSError, AttributeError):  # a substitute without a file descriptor
        return NamedBytes(file.read(), name)
    if os.name == "posix":
        _wait_for_bytes(file, name)
    return NamedBytes(_read_all(file, name), name)


def _wait_for_bytes(file: IO[bytes] | io.FileIO, name: str) -> None:
    if not select.select([file], [], [], PATIENCE)[0]:
        warnings.warn(f"{name}: waiting for somebody to write to this pipe; Ctrl-C ends it", stacklevel=5)
        select.select([file], [], [])


def _read_all(file: IO[bytes] | io.FileIO, name: str) -> bytes:
    """Read to the end; an error as soon as the remaining memory could not hold the joined bytes."""
    parts: list[bytes] = []
    size, looked = 0, 0
    while some := file.read(1 << 20):
        parts.append(some)
        size += len(some)
        if size - looked >= 1 << 26:
            looked = size
            refuse_beyond_memory(size, f"{name}: what came out of the pipe so far", "write it to a file and give that")
    return b"".join(parts)


def first_lines(head: bytes, n: int) -> list[str]:
    """The first ``n`` lines that are neither blank nor comments."""
    lines = head.decode("utf-8-sig", errors="replace").split("\n")
    return [line.strip("\r") for line in lines if line.strip() and not line.lstrip().startswith("#")][:n]


def read_bytes(source: Source) -> bytes:
    """The whole source, decompressed."""
    with opened(source) as file:
        return file.read()


SAVED_TENSORS = b'\0{"'
"""Bytes 7 to 9 of a safetensors file: the end of the length of its header, and the begin of that."""


def refuse_wide(name: str, data: bytes) -> None:
    """Raise a ``DataError`` if the bytes are clearly UTF-16, UTF-32 or binary."""
    if data[:4] in (ZIP, b"\xd0\xcf\x11\xe0"):
        raise DataError(f"{name}: an archive or a workbook, not text; unpack it, or save the sheet as CSV UTF-8")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError(f"{name}: the text is UTF-16, not UTF-8; {_other_encoding('utf-16')}")
    if data[7:10] == SAVED_TENSORS:
        raise DataError(f"{name}: a saved model (or other tensors), not text; placet score MODEL FILE gives its scores")
    at = data.find(b"\0")
    if at >= 0:
        line = data.count(b"\n", 0, at) + 1
        raise DataError(
            f"{name}:{line}: a zero byte ({data.count(0)} such bytes), so this is not UTF-8 text; "
            f"if it is UTF-16, {_other_encoding('utf-16')}"
        )


def _other_encoding(encoding: str) -> str:
    return f'pass open(path, encoding="{encoding}") instead of the path, or convert the file'


def decode(name: str, data: bytes) -> str:
    """Decode UTF-8 text, without its byte order mark; other encodings raise a ``DataError`` that names the line."""
    refuse_wide(name, data)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{name}:{line}: byte 0x{data[error.start]:02x} is not UTF-8; {_other_encoding('latin-1')}"
        ) from None


def read_text(source: Source) -> str:
    """The whole source as text; an empty one raises a ``DataError``."""
    with opened(source) as file:
        text = decode(file.name, file.read())
    if not text.strip():
        raise DataError(f"{file.name}: the file is empty; nothing can be read from it")
    return text


def read_lines(source: Source) -> Iterator[tuple[int, str]]:
    """(line number from 1, line without its line end) of all lines, including blank ones."""
    return enumerate((line.rstrip("\r") for line in read_text(source).split("\n")), start=1)


@contextlib.contextmanager
def writing(target: Source) -> Iterator[IO[bytes]]:
    """A binary file to write to; ``target`` changes only once everything is written, and its suffix sets compression.

    A path is written under a temporary name in the same folder and renamed; a symbolic link is followed and stays a
    link.  An existing file keeps its mode and owner.  Anything but a regular file (a device, a pipe), and an open file
    (text or binary), receives the bytes once they are complete; an open file stays open.
    """
    if not isinstance(target, str | os.PathLike):
        buffer = io.BytesIO()
        yield buffer
        text = isinstance(target, io.TextIOBase)
        target.write(buffer.getvalue().decode() if text else buffer.getvalue())
        return
    suffix = Path(target).suffix.lower()
    path = os.path.realpath(target)
    if os.path.islink(path):
        raise OSError(errno.ELOOP, "the link leads back to itself", path)
    before = os.stat(path) if os.path.exists(path) else None
    if before is not None and not stat.S_ISREG(before.st_mode):
        buffer = io.BytesIO()
        with compressing(buffer, suffix) as file:
            yield file
        with open(path, "wb", opener=_opened_to_write) as raw:
            raw.write(buffer.getvalue())
        return
    if before is not None and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "the file is there and may not be written", path)
    unfinished = os.path.join(os.path.dirname(path), f".placet-{secrets.token_hex(6)}.part")
    try:
        with open(unfinished, "xb", opener=_with_mode(before)) as raw, compressing(raw, suffix) as file:
            yield file
        _put_in_place(unfinished, path, before)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(unfinished)


def _opened_to_write(path: str, flags: int) -> int:
    """Open a file that is not a regular one for writing; warns if a pipe has no reader."""
    end = time.monotonic() + PATIENCE
    while stat.S_ISFIFO(os.stat(path).st_mode):
        try:
            found = os.open(path, flags | os.O_NONBLOCK)
            os.set_blocking(found, True)
            return found
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
        if time.monotonic() >= end:
            warnings.warn(f"{path}: waiting for somebody to read from this pipe; Ctrl-C ends it", stacklevel=5)
            break
        time.sleep(0.02)
    return os.open(path, flags)


def _with_mode(before: os.stat_result | None) -> Callable[[str, int], int]:
    """An opener for new files: anyone who could not read the existing file cannot read the new one either."""
    mode = 0o666 if before is None else 0o600
    return lambda path, flags: os.open(path, flags, mode)


def _put_in_place(unfinished: str, path: str, before: os.stat_result | None) -> None:
    """Rename, keeping the mode and owner of an existing file; copy if a rename cannot keep them."""
    try:
        if before is not None:
            now = os.stat(unfinished)
            if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
                os.chown(unfinished, before.st_uid, before.st_gid)
            os.chmod(unfinished, stat.S_IMODE(before.st_mode))
        os.replace(unfinished, path)
    except OSError as error:
        # another user's file in a shared folder, or a single file mounted into a container
        if before is None or error.errno not in (errno.EPERM, errno.EACCES, errno.EBUSY, errno.EXDEV):
            raise
        shutil.copyfile(unfinished, path)


def write_lines(target: Source, lines: Iterator[str]) -> None:
    """Write lines of text as UTF-8, each ending in a newline."""
    with writing(target) as file:
        block: list[str] = []
        for line in lines:
            block.append(line)
            if len(block) == 10_000:
                file.write(("\n".join(block) + "\n").encode())
                block.clear()
        if block:
            file.write(("\n".join(block) + "\n").encode())
