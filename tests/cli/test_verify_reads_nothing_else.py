"""Certificates made to mislead: each ends in words with 1 or 2, and no file but the arguments is opened."""

import json
import os
import sys

import pytest

from placet.aggregate.proof.certificate import canonical, digest_of_entries
from placet.cli import main

ROWS = [("x", "y", "model_a")] * 6 + [("y", "x", "model_a")] * 3 + [("y", "z", "model_b")] * 2 + [("x", "z", "tie")]
SECRET = "/etc/hostname"
OPENED: list[str] = []
WATCHING = [False]


def _watch(event, args):
    if WATCHING[0] and event in ("open", "os.remove", "os.rename", "os.mkdir", "subprocess.Popen", "socket.connect"):
        OPENED.append(os.fsdecode(args[0]) if isinstance(args[0], str | bytes | os.PathLike) else f"{event} {args[0]}")


sys.addaudithook(_watch)  # hooks cannot be removed; this one sleeps outside of the tests below


@pytest.fixture
def made(placet_command, tmp_path):
    votes = tmp_path / "votes.csv"
    votes.write_text("\n".join(",".join(row) for row in [("model_a", "model_b", "winner"), *ROWS]) + "\n")
    paper = tmp_path / "board.cert.json"
    placet_command("aggregate", votes, "--method", "bradley-terry", "--certificate", paper)
    placet_command("verify", paper, votes)  # what is loaded late is loaded now
    return paper, votes, json.loads(paper.read_text())


@pytest.fixture
def opened_by(monkeypatch, capsys):
    """``opened_by(*words)`` runs ``placet``: what it opens besides parts of Python and Placet, its exit code, its words."""
    source = os.path.dirname(os.path.dirname(sys.modules["placet"].__file__))
    cache = os.environ.get("NUMBA_CACHE_DIR", source)
    program = (sys.prefix, sys.base_prefix, "/proc/", "/sys/", source, cache)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["placet", *map(str, words)])
        OPENED.clear()
        WATCHING[0] = True
        try:
            with pytest.raises(SystemExit) as stopped:
                main()
        finally:
            WATCHING[0] = False
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return (
            {os.path.realpath(name) for name in OPENED if not name.startswith(program)},
            stopped.value.code or 0,
            out + err,
        )

    return run


def crafted():
    """Path of an entry, its new value."""
    deep = []
    for _ in range(400):
        deep = [deep]
    return [
        (("files", 0, "name"), SECRET),
        (("files",), [{"name": SECRET, "bytes": 10**18, "sha256": "0" * 64}]),
        (("question", "reading"), {"format": "battles", "options": {"source": SECRET}}),
        (("question", "reading"), {"format": SECRET, "options": {}}),
        (("question", "reading"), {"format": "", "options": {"a": SECRET, "b": SECRET, "winner": SECRET}}),
        (("question", "method"), SECRET),
        (("question", "method"), "irv"),
        (("question", "method"), "sources"),
        (("question", "method"), "__import__('os')"),
        (("question", "params"), {"start": SECRET}),
        (("question", "params"), {"prior": deep}),
        (("question", "params"), {"prior": 1e308}),
        (("question", "params"), {"prior": "learn" * 100_000}),
        (("question", "params"), {str(k): k for k in range(10_000)}),
        (("question", "bootstrap"), 10**9),
        (("question", "level"), 0),
        (("question", "level"), 10**400),
        (("question", "random_state"), 10**400),
        (("answer", "columns", "score"), ["NaN"] * 3),
        (("answer", "columns", "item"), list(range(100_000))),
        (("answer", "columns"), deep),
        (("answer", "notes"), ["x" * 1_000_000]),
        (("answer", "fragility"), {"claims": deep}),
        (("made_with",), {"placet": deep}),
        (("data", "kind"), {}),
        (("certificate",), True),
        (("certificate",), 2),
    ]


@pytest.mark.parametrize("number", range(len(crafted())))
def test_crafted_certificates_end_in_words_and_open_nothing_else(opened_by, made, number):
    paper, votes, value = made
    path, new = crafted()[number]
    inside = value
    for name in path[:-1]:
        inside = inside[name]
    inside[path[-1]] = new
    value["digest"] = digest_of_entries(value)
    paper.write_bytes(canonical(value))
    before = sorted(paper.parent.iterdir())
    opened, code, said = opened_by("verify", paper, votes)
    assert opened <= {os.path.realpath(paper), os.path.realpath(votes)}
    assert sorted(paper.parent.iterdir()) == before
    free = (("files", 0, "name"), ("question", "random_state"))  # another name, a seed that nothing uses
    assert code in ((0,) if path in free else (1, 2)), said
    assert 0 < len(said) < 2000


@pytest.mark.parametrize(
    "text", [b"[" * 100_000, b'{"certificate": NaN}', b"\x00" * 1000, b"<!doctype html>", b"null", b'"' + b"x" * 10**6]
)
def test_what_is_no_certificate_ends_with_2(opened_by, made, text):
    paper, votes, _ = made
    paper.write_bytes(text)
    opened, code, said = opened_by("verify", paper, votes)
    assert opened <= {os.path.realpath(paper)}
    assert code == 2
    assert "certificate" in said
