"""Reading of paths and open files, plain or compressed, as bytes, text or lines; atomic writing by rename."""

import bz2
import contextlib
import errno
import gzip
import io
import lzma
import os
import secrets
import select
import shutil
import stat
import sys
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from placet.data import DataError
from placet.data.memory import parse_bytes, refuse_beyond_memory

Source = str | os.PathLike[str] | IO[Any]

_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
_BZIP2 = b"1AY&SY"  # after "BZh" and a digit
_HEAD = 16
COMPRESSED = (".gz", ".xz", ".zst", ".bz2")
LIMIT_VARIABLE = "PLACET_MAX_DECOMPRESSED"


def _zstandard() -> Any:
    """The zstandard package, or an error that says how to install it."""
    try:
        import zstandard
    except ImportError:
        raise DataError(
            "files of Zstandard (.zst) need the package zstandard; pip install 'placet[zst]', or compress with gzip"
        ) from None
    return zstandard


class _ZstdReader(io.RawIOBase):
    """Decompressed bytes of a Zstandard stream; unlike the library's own reader, it detects a truncated last frame."""

    def __init__(self, raw: IO[bytes]) -> None:
        zstandard = _zstandard()
        self._raw, self._new = raw, zstandard.ZstdDecompressor(max_window_size=2**31).decompressobj
        self._frame = self._new()
        self._started = False
        self._packed, self._ready = memoryview(b""), memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            if not self._packed:
                self._packed = memoryview(self._raw.read(1 << 17))
            if not self._packed:
                if self._started:
                    raise EOFError("the Zstandard stream ends early")
                return 0
            self._decompress_some()
        n = min(len(buffer), len(self._ready))
        buffer[:n] = self._ready[:n]
        self._ready = self._ready[n:]
        return n

    def _decompress_some(self) -> None:
        zstandard = _zstandard()
        # a few bytes at a time: four bytes can expand to a block of 128 KiB
        some, self._packed, self._started = self._packed[:2048], self._packed[2048:], True
        try:
            self._ready = memoryview(self._frame.decompress(some))
        except zstandard.ZstdError as error:
            raise OSError(str(error)) from None
        if self._frame.eof:
            rest = len(self._frame.unused_data)
            self._packed = memoryview(bytes(some[len(some) - rest :]) + bytes(self._packed)) if rest else self._packed
            self._frame, self._started = self._new(), False


class _Bounded(io.RawIOBase):
    """Decompressed bytes up to a limit, beyond which a ``DataError`` is raised."""

    def __init__(self, file: IO[bytes], name: str, limit: int) -> None:
        self._file, self._name, self._limit, self._left = file, name, limit, limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        self._left -= len(data)
        if self._left < 0:
            raise DataError(
                f"{self._name}: the archive expands to more than {self._limit:,} bytes; set the environment variable "
                f"{LIMIT_VARIABLE} to a larger number (such as 64G) if that is right, or decompress it first"
            )
        buffer[: len(data)] = data
        return len(data)


def decompression_limit(packed: int) -> int:
    """The number of bytes that an archive of ``packed`` bytes may expand to.

    This is 2 GiB or 100 times its size, whichever is larger, unless the environment variable PLACET_MAX_DECOMPRESSED
    gives a number of bytes, such as 500M or 64G.
    """
    said = os.environ.get(LIMIT_VARIABLE, "")
    return parse_bytes(said, LIMIT_VARIABLE) if said.strip() else max(2 << 30, 100 * packed)


def _compression(head: bytes) -> str | None:
    if head.startswith(b"BZh") and head[4:10] == _BZIP2:
        return "bzip2"
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)


def _decompress(raw: IO[bytes], kind: str | None) -> IO[bytes]:
    if kind == "gzip":
        return gzip.GzipFile(fileobj=raw)  # type: ignore[return-value]
    if kind == "xz":
        return lzma.LZMAFile(raw)
    if kind == "bzip2":
        return bz2.BZ2File(raw)
    if kind == "zstd":
        return io.BufferedReader(_ZstdReader(raw), 1 << 17)
    return raw


def name_of(source: Source) -> str:
    """The name of a source in messages."""
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
def open_bytes(source: Source) -> Iterator[IO[bytes]]:
    """The decompressed bytes of a path or open file; the compression is recognized by its first bytes.

    Truncated and damaged archives, and those that expand beyond ``decompression_limit``, raise a ``DataError``.
    """
    with _raw(source) as raw:
        at = raw.tell()
        kind = _compression(raw.read(_HEAD))
        size = raw.seek(0, os.SEEK_END) - at if kind else 0
        raw.seek(at)
        if kind is None:
            yield raw
            return
        limit = decompression_limit(size)
        try:
            yield io.BufferedReader(_Bounded(_decompress(raw, kind), name_of(source), limit), 1 << 17)
        except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
            raise DataError(
                f"{name_of(source)}: the {kind} archive is truncated or damaged ({error}); fetch or make it again"
            ) from None


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


def peek(source: Source, size: int = 1 << 16) -> tuple[bytes, Source]:
    """The first bytes, decompressed, and a source to read from the start (open files are read into memory)."""
    if isinstance(source, str | os.PathLike):
        with open_bytes(source) as file:
            return file.read(size), source
    data = read_bytes(source)
    return data[:size], NamedBytes(data, name_of(source))


def plain_path(source: Source) -> str | None:
    """The path of a regular, uncompressed file, which other libraries can read directly; else ``None``."""
    if not isinstance(source, str | os.PathLike) or not os.path.isfile(source):
        return None
    with open(source, "rb") as file:
        return None if _compression(file.read(_HEAD)) else os.fspath(source)


def first_lines(head: bytes, n: int) -> list[str]:
    """The first ``n`` lines that are neither blank nor comments."""
    lines = head.decode("utf-8-sig", errors="replace").split("\n")
    return [line.strip("\r") for line in lines if line.strip() and not line.lstrip().startswith("#")][:n]


def read_bytes(source: Source) -> bytes:
    """The whole source, decompressed."""
    with open_bytes(source) as file:
        return file.read()


def refuse_wide(name: str, data: bytes) -> None:
    """Raise a ``DataError`` if the bytes are clearly UTF-16, UTF-32 or binary."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError(f"{name}: the text is UTF-16, not UTF-8; {_other_encoding('utf-16')}")
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
    name = name_of(source)
    text = decode(name, read_bytes(source))
    if not text.strip():
        raise DataError(f"{name}: the file is empty; nothing can be read from it")
    return text


def read_lines(source: Source) -> Iterator[tuple[int, str]]:
    """(line number from 1, line without its line end) of all lines, including blank ones."""
    return enumerate((line.rstrip("\r") for line in read_text(source).split("\n")), start=1)


def _compress(raw: IO[bytes], suffix: str) -> IO[bytes]:
    if suffix == ".gz":
        return gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)  # type: ignore[return-value]
    if suffix == ".xz":
        return lzma.LZMAFile(raw, "wb")
    if suffix == ".bz2":
        return bz2.BZ2File(raw, "wb")
    return _zstandard().ZstdCompressor(write_checksum=True).stream_writer(raw, closefd=False)


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
        with _compressing(buffer, suffix) as file:
            yield file
        with open(path, "wb", opener=_opened_to_write) as raw:
            raw.write(buffer.getvalue())
        return
    if before is not None and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "the file is there and may not be written", path)
    unfinished = os.path.join(os.path.dirname(path), f".placet-{secrets.token_hex(6)}.part")
    try:
        with open(unfinished, "xb", opener=_with_mode(before)) as raw, _compressing(raw, suffix) as file:
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


@contextlib.contextmanager
def _compressing(raw: IO[bytes], suffix: str) -> Iterator[IO[bytes]]:
    if suffix not in COMPRESSED:
        yield raw
        return
    with _compress(raw, suffix) as file:
        yield file


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
