"""Opening and writing: every kind of source, compressed or not, whole or broken, in whatever encoding."""

import bz2
import errno
import gzip
import io
import lzma
import os
import pathlib
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest
import zstandard

import placet.io as pio
from placet.data import Comparisons, DataError, Rankings
from placet.data.engines import memory
from placet.io import files
from placet.io.compression import decompression_limit
from placet.io.files import (
    HEAD,
    bare_suffix,
    first_lines,
    open_bytes,
    opened,
    read_bytes,
    read_text,
    spool,
    write_lines,
    writing,
)
from placet.io.tables import row_sources

PACK = {
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}
BALLOTS = "3: A > B\n1: B > A = C\n"
# one valid text for every reader
TEXTS = {
    "letor": "1 qid:1 1:0.5 2:1\n0 qid:1 1:0.25 2:3\n",
    "letor-agg": "1 qid:1 1:3 2:NULL #docid = a\n0 qid:1 1:1 2:1 #docid = b\n",
    "preflib": "# DATA TYPE: toi\n# NUMBER ALTERNATIVES: 3\n# ALTERNATIVE NAME 1: x\n2: 1,{2,3}\n1: 3\n",
    "ballots": BALLOTS,
    "battles": "model_a,model_b,winner\nx,y,tie\ny,z,model_a\n",
    "ratings": "1\t10\t3\t881250949\n1\t11\t5\t881250949\n2\t10\t1\t881250949\n",
    "trec-run": "301 Q0 d1 1 2.5 tag\n301 Q0 d2 2 1.5 tag\n",
    "qrels": "301 0 d1 1\n301 0 d2 0\n",
    "xmc": "2 3 4\n0,2 0:1 2:0.5\n 1:2\n",
    "preferences": "anna: tea > milk > water\nbert: milk > tea\n",
    "features": "qid,label,f0,f1\n7,2,0.5,1\n7,0,0.25,3\n",
}


@pytest.mark.parametrize("kind", TEXTS)
def test_every_source_gives_the_same(kind, tmp_path):
    read, text = pio.FORMATS[kind].read, TEXTS[kind]
    path = tmp_path / "file.txt"
    path.write_text(text)
    expected = read(path)
    assert read(str(path)) == expected
    with open(path, "rb") as binary, open(path) as words:
        assert read(binary) == expected
        assert read(words) == expected
        assert not binary.closed
    assert read(io.StringIO(text)) == expected
    assert read(io.BytesIO(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())) == expected
    for suffix, pack in PACK.items():
        packed = tmp_path / f"file.txt{suffix}"
        packed.write_bytes(pack(text.encode()))
        assert read(packed) == expected
        assert read(io.BytesIO(packed.read_bytes())) == expected
        misnamed = tmp_path / "packed.txt"
        misnamed.write_bytes(packed.read_bytes())
        assert read(misnamed) == expected


def test_a_pipe_can_be_read():
    ends = os.pipe()
    os.write(ends[1], BALLOTS.encode())
    os.close(ends[1])
    with os.fdopen(ends[0], "rb") as pipe:
        assert len(pio.read_ballots(pipe)) == 2


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("suffix", PACK)
def test_a_truncated_archive_is_an_error(kind, suffix, tmp_path):
    whole = PACK[suffix]((TEXTS[kind] * 50).encode())
    path = tmp_path / f"file.txt{suffix}"
    for size in (len(whole) - 1, len(whole) - 5, len(whole) // 2):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError, match="archive is truncated or damaged"):
            pio.FORMATS[kind].read(path)
    broken = bytearray(whole)
    broken[len(broken) // 2] ^= 0xFF
    path.write_bytes(broken)
    with pytest.raises(DataError, match=r"archive is truncated or damaged|file\.txt"):
        pio.FORMATS[kind].read(path)


def test_several_frames_of_an_archive_are_read(tmp_path):
    for pack in PACK.values():
        assert read_bytes(io.BytesIO(pack(b"3: A > B\n") + pack(b"1: B > A\n"))) == b"3: A > B\n1: B > A\n"
    whole = PACK[".zst"](b"x" * 100_000)
    with pytest.raises(DataError, match="truncated"):
        read_bytes(io.BytesIO(whole + whole[:10]))


@pytest.mark.parametrize("suffix", PACK)
def test_what_an_archive_may_expand_to_is_bounded(suffix, tmp_path, monkeypatch):
    path = tmp_path / f"bomb{suffix}"
    path.write_bytes(PACK[suffix](b"3: A > B\n" * 30_000))
    assert len(read_bytes(path)) == 270_000
    monkeypatch.setenv("PLACET_MAX_DECOMPRESSED", "200K")
    for read in (pio.read_ballots, pio.read_letor, pio.read_battles):
        for source in (path, io.BytesIO(path.read_bytes())):
            with pytest.raises(DataError, match=r"expands to more than 204,800 bytes; set .*PLACET_MAX_DECOMPRESSED"):
                read(source)
    monkeypatch.setenv("PLACET_MAX_DECOMPRESSED", "1MiB")
    assert len(read_bytes(path)) == 270_000
    monkeypatch.setenv("PLACET_MAX_DECOMPRESSED", "much")
    with pytest.raises(ValueError, match="is not a number of bytes"):
        read_bytes(path)
    monkeypatch.delenv("PLACET_MAX_DECOMPRESSED")
    assert decompression_limit(5_000) == 2**31
    assert decompression_limit(1 << 30) == 100 << 30


def test_a_small_archive_of_much_text_is_read_in_linear_steps():
    packed = zstandard.ZstdCompressor().compress(b"x" * 40_000_000)
    assert len(packed) < 10_000
    with open_bytes(io.BytesIO(packed)) as file:
        pieces = [len(piece) for piece in iter(lambda: file.read(1 << 16), b"")]
    assert sum(pieces) == 40_000_000
    frames = b"".join(zstandard.ZstdCompressor().compress(b"%d\n" % k) for k in range(3000))
    assert read_bytes(io.BytesIO(frames)) == b"".join(b"%d\n" % k for k in range(3000))


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_an_error(kind, content):
    with pytest.raises(DataError, match=r"empty|no rows|header"):
        pio.FORMATS[kind].read(io.BytesIO(content))


@pytest.mark.parametrize("kind", TEXTS)
def test_other_encodings_are_named(kind):
    read = pio.FORMATS[kind].read
    with pytest.raises(DataError, match=r'UTF-16.*encoding="utf-16"'):
        read(io.BytesIO(TEXTS[kind].encode("utf-16")))
    with pytest.raises(DataError, match=r"zero byte .*UTF-16"):
        read(io.BytesIO(TEXTS[kind].encode("utf-16-le")))


def test_latin_1_is_named_with_its_line_and_can_be_read_as_text(tmp_path):
    path = tmp_path / "votes.txt"
    path.write_bytes("A > B\nÉ > B\n".encode("latin-1"))
    with pytest.raises(DataError, match=r'votes\.txt:2: byte 0xc9 is not UTF-8.*encoding="latin-1"'):
        pio.read_ballots(path)
    with open(path, encoding="latin-1") as file:
        assert pio.read_ballots(file).items == ("A", "B", "É")
    with open(path, encoding="utf-8") as file, pytest.raises(DataError, match="open it with the encoding"):
        pio.read_ballots(file)
    with pytest.raises(DataError, match="not UTF-8"):
        pio.read_letor(io.BytesIO("1 qid:É 1:1\n".encode("latin-1")))


def test_a_missing_file_is_what_python_says():
    with pytest.raises(FileNotFoundError):
        pio.read_ballots("no/such/file")
    with pytest.raises(TypeError, match="path or an open file"):
        pio.read_letor(7)


def test_writing_is_all_or_nothing(tmp_path):
    path = tmp_path / "out.txt.gz"
    write_lines(path, iter(["a", "b"]))
    before = path.read_bytes()
    assert gzip.decompress(before) == b"a\nb\n"

    def failing():
        yield "c"
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        write_lines(path, failing())
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    write_lines(path, iter(["a", "b"]))
    assert path.read_bytes() == before  # the same bytes whatever the time


@pytest.mark.parametrize("suffix", ["", *PACK])
def test_what_is_written_is_what_is_read(suffix, tmp_path):
    path = tmp_path / f"out{suffix}"
    lines = [f"line {k} é" for k in range(25_000)]
    write_lines(path, iter(lines))
    assert read_text(path).split("\n")[:-1] == lines


def test_writing_to_open_files(tmp_path):
    ballots = Rankings.from_orders([["a", "b"]])
    binary, words = io.BytesIO(), io.StringIO()
    pio.write_ballots(ballots, binary)
    pio.write_ballots(ballots, words)
    assert binary.getvalue().decode() == words.getvalue() == "# items: a = b\n1: a > b\n"
    with writing(tmp_path / "x") as file:
        file.write(b"1")
    assert os.stat(tmp_path / "x").st_mode & 0o777 == 0o666 & ~_umask()


def put(path, data=b"new"):
    with writing(path) as file:
        file.write(data)


def test_links_modes_and_owners_stay(tmp_path):
    target, link, dangling = tmp_path / "sub" / "target.txt", tmp_path / "link.txt", tmp_path / "dangling.txt"
    target.parent.mkdir()
    target.write_bytes(b"old")
    target.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(target, 12345, 54321)
    owner = os.stat(target).st_uid, os.stat(target).st_gid
    link.symlink_to("sub/target.txt")
    put(link)
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o640
    assert (os.stat(target).st_uid, os.stat(target).st_gid) == owner
    dangling.symlink_to("sub/other.txt")
    put(dangling)
    assert dangling.is_symlink()
    assert (tmp_path / "sub" / "other.txt").read_bytes() == b"new"
    assert {path.name for path in tmp_path.rglob("*")} == {"sub", "target.txt", "other.txt", "link.txt", "dangling.txt"}


def test_devices_and_pipes_are_written_to_directly(tmp_path):
    before = os.stat(os.devnull)
    put(os.devnull)
    assert os.path.samestat(before, os.stat(os.devnull))
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    fifo = tmp_path / "pipe.gz"
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: read.append(fifo.read_bytes()))
    read = []
    reader.start()
    put(fifo, b"x" * 100_000)
    reader.join(10)
    assert gzip.decompress(read[0]) == b"x" * 100_000
    assert stat.S_ISFIFO(os.stat(fifo).st_mode)
    with pytest.raises(IsADirectoryError):
        put(tmp_path)
    circle = tmp_path / "circle"
    circle.symlink_to("circle")
    with pytest.raises(OSError, match="leads back to itself"):
        put(circle)
    assert circle.is_symlink()


def test_a_file_that_may_not_be_written_stays(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anything
    with pytest.raises(PermissionError, match="may not be written"):
        put(path)
    assert path.read_bytes() == b"old"
    monkeypatch.undo()

    def refuse(*_):
        raise OSError(errno.EBUSY, "mounted")

    monkeypatch.setattr(os, "replace", refuse)
    put(path)
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_threads_that_save_one_path_do_not_collide(tmp_path):
    path = tmp_path / ("n" * 240)
    texts = [bytes([65 + k]) * 200_000 for k in range(8)]
    failed = []

    def save(data):
        try:
            for _ in range(10):
                put(path, data)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=save, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert path.read_bytes() in texts
    assert list(tmp_path.iterdir()) == [path]


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_suffixes_and_first_lines(tmp_path):
    assert bare_suffix("a/b.CSV.gz") == ".csv"
    assert bare_suffix(pathlib.Path("x.soc")) == ".soc"
    assert bare_suffix(io.BytesIO()) == ""
    with opened(io.BytesIO(PACK[".xz"](b"# c\n\nfirst\r\nsecond"))) as file:
        assert first_lines(file.head, 2) == ["first", "second"]
        assert file.read() == b"# c\n\nfirst\r\nsecond"


@pytest.mark.parametrize("suffix", ["", *PACK])
@pytest.mark.parametrize("size", [0, 10, HEAD - 1, HEAD, 3 * HEAD + 5])
def test_an_open_file_is_read_from_its_start_as_often_as_asked(tmp_path, suffix, size):
    data = np.random.default_rng(size).integers(97, 122, size).astype(np.uint8).tobytes()
    path = tmp_path / f"x.txt{suffix}"
    path.write_bytes(PACK[suffix](data) if suffix else data)
    with opened(path) as file:
        assert file.head == data[:HEAD]
        assert file.path == (None if suffix else str(path))
        assert file.stream().read(7) == data[:7]
        assert file.stream().read() == file.read() == data
        with opened(file) as same:
            assert same is file


FIRST = {
    "votes.csv": "model_a,model_b,winner\nx,y,model_a\ny,z,tie\n",
    "votes.csv.gz": "model_a,model_b,winner\nx,y,model_a\ny,z,tie\n",
    "ballots.txt": "2: a > b\n1: b > c\n",
    "ballots.txt.xz": "2: a > b\n1: b > c\n",
    "rows.letor": "1 qid:1 1:2\n0 qid:1 1:1\n",
    "ratings.dat": "1::x::5\n1::y::3\n",
    "ratings.csv": "user,item,rating\n1,x,5\n1,y,3\n",
    "scores.json": '[{"model": "x", "t": 1, "u": 2}, {"model": "y", "t": 2, "u": 1}]',
}


@pytest.mark.parametrize("name", FIRST)
def test_a_file_is_opened_once(tmp_path, monkeypatch, name):
    data = FIRST[name].encode()
    suffix = pathlib.Path(name).suffix
    path = tmp_path / name
    path.write_bytes(PACK[suffix](data) if suffix in PACK else data)
    times = []

    def counted(file, *args, **options):
        times.append(file)
        return open(file, *args, **options)

    for module in (files, row_sources):
        monkeypatch.setattr(module, "open", counted, raising=False)
    assert len(pio.read(path)) > 0
    assert times == [path]


def test_scores_are_numbers_one_per_line():
    np.testing.assert_array_equal(pio.read_score_lines(io.StringIO("1\n\n-2.5e1\n")), [1, -25])
    with pytest.raises(
        DataError, match=r"<stream>:2: score 'nan' is not a finite number \(2 such lines\); write one number per line$"
    ):
        pio.read_score_lines(io.StringIO("1\nnan\n1_0\n"))


def test_a_pipe_is_spooled_and_then_guessed(tmp_path, monkeypatch):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    text = b"model_a,model_b,winner\n" + b"x,y,model_a\n" * 20_000  # more than a pipe holds
    writer = threading.Thread(target=lambda: path.write_bytes(text))
    writer.start()
    data = pio.read(path)
    writer.join()
    assert data.wins_i.sum() + data.wins_j.sum() == 20_000
    monkeypatch.setattr(files, "PATIENCE", 0.05)
    for reader in (lambda: spool(str(path)).getvalue(), lambda: files.read_bytes(path)):
        late = threading.Timer(0.5, lambda: path.write_bytes(text))
        late.start()
        with pytest.warns(UserWarning, match="waiting for somebody to write to this pipe"):
            held = reader()
        assert held == text
        late.join()


def test_two_substitutions_of_the_shell_are_looked_at_and_then_read(tmp_path):
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 2.0 s\nq1 Q0 d2 2 1.0 s\n")
    (tmp_path / "a.qrels").write_text("q1 0 d1 1\nq1 0 d2 0\n")
    script = f"cd {tmp_path}; {sys.executable} -m placet evaluate <(cat a.run) <(cat a.qrels) --metric ndcg"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "1.0" in done.stdout


def test_standard_input_that_nobody_writes_to_is_said(tmp_path):
    script = "from placet.io import files; files.PATIENCE = 0.05; import placet; print(placet.read('-'))"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert "<stdin>: waiting for somebody to write" in process.stderr.readline()
        out, _ = process.communicate("model_a,model_b,winner\nx,y,model_a\n")
    assert "1 votes" in out


def test_a_pipe_without_an_end_is_refused_before_memory_is_full(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda root=None: 1 << 27)
    with pytest.raises(DataError, match=r"/dev/zero: what came out of the pipe so far needs about 0.2 GB .*to a file"):
        pio.read("/dev/zero")


def test_a_pipe_that_nobody_reads_from_is_said(tmp_path, monkeypatch):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    monkeypatch.setattr(files, "PATIENCE", 0.05)
    read = []
    late = threading.Timer(0.5, lambda: read.append(path.read_bytes()))
    late.start()
    with pytest.warns(UserWarning, match="waiting for somebody to read from this pipe"):
        put(path, b"x" * 100_000)
    late.join()
    assert read == [b"x" * 100_000]


def test_a_file_that_others_may_not_read_is_never_open_to_them(tmp_path):
    path = tmp_path / "secret"
    path.touch(0o600)
    with files.writing(path) as file:
        file.write(b"x")
        (unfinished,) = tmp_path.glob(".placet-*")
        assert unfinished.stat().st_mode & 0o077 == 0
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_substitution_of_the_shell_is_read(tmp_path):
    (tmp_path / "votes.csv").write_text("model_a,model_b,winner\nx,y,model_a\n")
    script = f"{sys.executable} -c 'from placet.cli import main; main()' describe <(cat {tmp_path}/votes.csv)"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "kind\tvotes\n" in done.stdout


def test_without_the_package_zstandard_files_say_how_to_get_it(tmp_path, monkeypatch):
    path = tmp_path / "votes.csv.zst"
    path.write_bytes(zstandard.ZstdCompressor().compress(b"model_a,model_b,winner\nx,y,model_a\n"))
    assert len(pio.read(path)) == 1
    monkeypatch.setitem(sys.modules, "zstandard", None)
    for use in (
        lambda: pio.read(path),
        lambda: pio.write(Comparisons([0], [1], [1], [0], [0]), tmp_path / "new.csv.zst"),
    ):
        with pytest.raises(DataError, match=r"pip install 'placet\[zst\]'"):
            use()
    assert [file.name for file in tmp_path.iterdir()] == ["votes.csv.zst"]
