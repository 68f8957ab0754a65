"""Compressed bytes: gzip, xz, bzip2, Zstandard and zip, recognized by their first bytes and bounded in size."""

import bz2
import contextlib
import gzip
import io
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from typing import IO, Any

from placet.data import DataError
from placet.data.engines.memory import parse_bytes

FIRST_BYTES = re.compile(
    rb"(?P<gzip>\x1f\x8b)|(?P<xz>\xfd7zXZ\x00)|(?P<zstd>\x28\xb5\x2f\xfd)|(?P<bzip2>BZh.(?:1AY&SY|\x17rE8P\x90))"
    rb"|(?P<zip>PK\x03\x04)",
    re.DOTALL,
)
"""The first bytes of compressed files; the name of the group is that of the compression."""

ZIP = b"PK\x03\x04"
_BESIDE = re.compile(
    r"(?:.*/)?(?:\..*|(?:readme|licen[cs]e|copying)[^/]*|[^/]*\.(?:md|pdf|html?))|__MACOSX/.*", re.IGNORECASE
)
COMPRESSED = (".gz", ".xz", ".zst", ".bz2")
LIMIT_VARIABLE = "PLACET_MAX_DECOMPRESSED"
BUFFER = 1 << 17


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
    """Decompressed bytes up to a limit; beyond it, and if the archive is damaged, a ``DataError`` is raised."""

    def __init__(self, file: IO[bytes], name: str, kind: str, limit: int) -> None:
        self._file, self._name, self._kind, self._limit, self._left = file, name, kind, limit, limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._file.read(len(buffer))
        except (EOFError, lzma.LZMAError, zlib.error, OSError, zipfile.BadZipFile, NotImplementedError) as error:
            raise _damaged(self._name, self._kind, error) from None
        self._left -= len(data)
        if self._left < 0:
            raise _too_large(self._name, self._limit)
        buffer[: len(data)] = data
        return len(data)


def decompression_limit(packed: int) -> int:
    """The number of bytes that an archive of ``packed`` bytes may expand to.

    This is 2 GiB or 100 times its size, whichever is larger, unless the environment variable PLACET_MAX_DECOMPRESSED
    gives a number of bytes, such as 500M or 64G.
    """
    said = os.environ.get(LIMIT_VARIABLE, "")
    return parse_bytes(said, LIMIT_VARIABLE) if said.strip() else max(2 << 30, 100 * packed)


def zip_members(raw: IO[bytes], name: str) -> list[zipfile.ZipInfo]:
    """The files in a zip archive that begins at the current position; more than the limit is a ``DataError``."""
    at = raw.tell()
    try:
        with zipfile.ZipFile(raw) as archive:
            found = [one for one in archive.infolist() if not one.is_dir()]
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError) as error:
        raise _damaged(name, "zip", error) from None
    limit = decompression_limit(raw.seek(0, os.SEEK_END) - at)
    raw.seek(at)
    if sum(one.file_size for one in found) > limit:
        raise _too_large(name, limit)
    return found


def one_table(members: Sequence[zipfile.ZipInfo], name: str) -> str:
    """The only file in a zip archive, or the only one that is not about the others, such as a README."""
    names = [one.filename for one in members]
    found = names if len(names) == 1 else [one for one in names if not _BESIDE.fullmatch(one)]
    if len(found) != 1:
        said = (
            f"{len(found)} files ({', '.join(found[:5])}{', ...' if len(found) > 5 else ''})" if found else "no table"
        )
        raise DataError(f"{name}: a zip archive with {said}; one is read, so unpack it and give the table in it")
    if next(one.flag_bits & 1 for one in members if one.filename == found[0]):
        raise DataError(f"{name}: the zip archive is encrypted; unpack it and give the table in it")
    return found[0]


def _damaged(name: str, kind: str, error: Exception) -> DataError:
    return DataError(f"{name}: the {kind} archive is truncated or damaged ({error}); fetch or make it again")


def _too_large(name: str, limit: int) -> DataError:
    return DataError(
        f"{name}: the archive expands to more than {limit:,} bytes; set the environment variable "
        f"{LIMIT_VARIABLE} to a larger number (such as 64G) if that is right, or decompress it first"
    )


def decompressed(raw: IO[bytes], kind: str, name: str, member: str = "") -> io.BufferedReader:
    """The decompressed bytes of a file from its current position; its buffer holds the first ``BUFFER`` at a peek.

    ``member``: the file in a zip archive to decompress.
    """
    at = raw.tell()
    limit = decompression_limit(raw.seek(0, os.SEEK_END) - at)
    raw.seek(at)
    return io.BufferedReader(_Bounded(_decompress(raw, kind, member), name, kind, limit), BUFFER)


def _decompress(raw: IO[bytes], kind: str, member: str) -> IO[bytes]:
    if kind == "zip":
        return zipfile.ZipFile(raw).open(member)
    if kind == "gzip":
        return gzip.GzipFile(fileobj=raw)  # type: ignore[return-value]
    if kind == "xz":
        return lzma.LZMAFile(raw)
    if kind == "bzip2":
        return bz2.BZ2File(raw)
    return io.BufferedReader(_ZstdReader(raw), BUFFER)


def _compress(raw: IO[bytes], suffix: str) -> IO[bytes]:
    if suffix == ".gz":
        return gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)  # type: ignore[return-value]
    if suffix == ".xz":
        return lzma.LZMAFile(raw, "wb")
    if suffix == ".bz2":
        return bz2.BZ2File(raw, "wb")
    return _zstandard().ZstdCompressor(write_checksum=True).stream_writer(raw, closefd=False)


@contextlib.contextmanager
def compressing(raw: IO[bytes], suffix: str) -> Iterator[IO[bytes]]:
    """A file to write to that compresses what ``raw`` receives, as the suffix says."""
    if suffix not in COMPRESSED:
        yield raw
        return
    with _compress(raw, suffix) as file:
        yield file
