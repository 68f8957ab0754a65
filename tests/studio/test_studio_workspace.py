"""The folder of a workspace: whose it is, what is in it, and what happens when the disk is full."""

import asyncio
import errno
import os
import sqlite3
import stat
import threading

import pytest

pytest.importorskip("starlette")
pytest.importorskip("httpx")
from starlette.testclient import TestClient
from test_studio import TOKEN, Browser
from test_studio_polls import PNG

from placet.studio import workspace
from placet.studio.app import application
from placet.studio.store import Store

NAMES = ["x.part", "votes.csv.part", ".part", "part", "lock", "studio.sqlite", "incoming", "votes.PART", "a.csv.gz"]


def opened(folder):
    return TestClient(application(Store(folder), TOKEN), raise_server_exceptions=False)


def test_names_of_users_never_meet_names_of_our_own(tmp_path):
    with opened(tmp_path / "w") as client:
        browser = Browser(client)
        keys = {name: browser.upload(name, name.encode()).json()["id"] for name in NAMES}
    store = Store(tmp_path / "w")  # the next start clears what was left of interrupted uploads, and nothing else
    try:
        for name, key in keys.items():
            data = store.dataset(key)
            assert data.name == name
            with open(data.path, "rb") as file:
                assert file.read() == name.encode()
    finally:
        store.close()


def test_what_an_interrupted_upload_left_is_cleared_and_nothing_else(tmp_path):
    store = Store(tmp_path / "w")
    store.close()
    (tmp_path / "w/incoming/0123456789abcdef.part").write_bytes(b"half")
    (tmp_path / "w/incoming/mine.part").write_bytes(b"a person's")
    (tmp_path / "w/files/fedcba9876543210.part").write_bytes(b"an upload's")
    Store(tmp_path / "w").close()
    assert [path.name for path in (tmp_path / "w/incoming").iterdir()] == ["mine.part"]
    assert [path.name for path in (tmp_path / "w/files").iterdir()] == ["fedcba9876543210.part"]


def test_a_second_studio_is_refused_and_the_first_is_not_touched(tmp_path):
    store = Store(tmp_path / "w")
    try:
        (tmp_path / "w/incoming/0123456789abcdef.part").write_bytes(b"an upload in flight")
        with pytest.raises(ValueError, match=rf"open in another studio \(process {os.getpid()}\).*--workspace"):
            Store(tmp_path / "w")
        assert list((tmp_path / "w/incoming").iterdir())
    finally:
        store.close()
    Store(tmp_path / "w").close()


def database(*statements):
    def make(path, good):
        connection = sqlite3.connect(path)
        connection.executescript(";".join(statements))
        connection.close()

    return make


BAD = {
    "random bytes": (lambda path, good: path.write_bytes(bytes(range(256)) * 40), "cannot be read"),
    "text": (lambda path, good: path.write_text("hello"), "cannot be read"),
    "zeros": (lambda path, good: path.write_bytes(bytes(8192)), "cannot be read"),
    "cut in its first page": (lambda path, good: path.write_bytes(good[:60]), "cannot be read"),
    "cut after two pages": (lambda path, good: path.write_bytes(good[:8192]), "cannot be read"),
    "a page of noise": (
        lambda path, good: path.write_bytes(good[:8192] + b"\xa5" * 4096 + good[12288:]),
        "cannot be read",
    ),
    "another program's table": (database("CREATE TABLE book (a, b)"), "another program's"),
    "a table that has our name": (database("CREATE TABLE vote (a, b)"), "another program's"),
    "another program's number": (database("PRAGMA application_id = 77"), "another program's"),
    "a newer version": (database("PRAGMA user_version = 9"), "newer Placet"),
    "a folder": (lambda path, good: path.mkdir(), "this is a folder"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_database_is_refused_in_words_and_left_as_it_is(tmp_path, what):
    make, words = BAD[what]
    store = Store(tmp_path / "good")
    store.fact("a", lambda: "b" * 9000)
    store.close()
    path = tmp_path / "bad/studio.sqlite"
    path.parent.mkdir(mode=0o700)
    make(path, (tmp_path / "good/studio.sqlite").read_bytes())
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(ValueError, match=words) as caught:
        Store(path.parent)
    assert str(path) in str(caught.value)
    assert "--workspace" in str(caught.value)
    assert before is None or path.read_bytes() == before


def test_a_broken_database_is_closed_again(tmp_path, monkeypatch):
    """One that breaks while it is opened, too."""
    opened = []

    class Connection(sqlite3.Connection):
        def __init__(self, *given, **options):
            super().__init__(*given, **options)
            opened.append(self)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **options: connect(*given, factory=Connection, **options))
    path = tmp_path / "studio.sqlite"
    path.write_bytes(bytes(range(256)) * 40)
    for schema in ("CREATE TABLE t (x)", "no statement"):
        with pytest.raises(ValueError, match="cannot be read"):
            workspace.open_database(path, schema)
        path.unlink()
    assert len(opened) == 2
    for connection in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")


def test_a_workspace_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "w").write_text("x")
    with pytest.raises(ValueError, match="this is a file"):
        Store(tmp_path / "w")


def test_workspaces_of_an_earlier_version_are_opened(tmp_path):
    store = Store(tmp_path / "w")
    store.fact("a", lambda: "b")
    store.close()
    database("PRAGMA application_id = 0", "PRAGMA user_version = 0")(tmp_path / "w/studio.sqlite", b"")
    again = Store(tmp_path / "w")
    assert again.fact("a", lambda: "c") == "b"
    again.close()


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_folder_open_to_others_becomes_private(tmp_path):
    for name in ("w", "w/files", "w/images"):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o777)
    with pytest.warns(UserWarning, match="is private now"):
        Store(tmp_path / "w").close()
    assert {mode(path) for path in (tmp_path / "w", *(tmp_path / "w").iterdir()) if path.is_dir()} == {0o700}
    assert mode(tmp_path / "w/studio.sqlite") == 0o600
    (tmp_path / "w/studio.sqlite").chmod(0o644)
    Store(tmp_path / "w").close()
    assert mode(tmp_path / "w/studio.sqlite") == 0o600


def test_a_folder_with_other_things_keeps_its_mode_or_is_refused(tmp_path):
    (tmp_path / "w").mkdir()
    (tmp_path / "w").chmod(0o755)
    (tmp_path / "w/thesis.tex").write_text("x")
    Store(tmp_path / "w").close()
    Store(tmp_path / "w").close()
    assert mode(tmp_path / "w") == 0o755
    assert {mode(path) for path in (tmp_path / "w").iterdir() if path.is_dir()} == {0o700}
    (tmp_path / "v").mkdir()
    (tmp_path / "v/thesis.tex").write_text("x")
    (tmp_path / "v").chmod(0o777)
    with pytest.raises(ValueError, match="others may write here.*chmod go-w"):
        Store(tmp_path / "v")
    assert [path.name for path in (tmp_path / "v").iterdir()] == ["thesis.tex"]


def test_a_folder_of_another_user_is_refused(tmp_path, monkeypatch):
    (tmp_path / "w").mkdir()
    monkeypatch.setattr(os, "getuid", lambda: 4321)
    if (tmp_path / "w").stat().st_uid == 0:
        os.chown(tmp_path / "w", 1234, -1)
    with pytest.raises(ValueError, match="another user"):
        Store(tmp_path / "w")


# Symbolic links


def test_links_to_folders_are_followed_and_those_to_nothing_refused(tmp_path):
    (tmp_path / "disk").mkdir(mode=0o700)
    (tmp_path / "w").mkdir(mode=0o700)
    (tmp_path / "w/files").symlink_to(tmp_path / "disk")
    with opened(tmp_path / "w") as client:
        browser = Browser(client)
        key = browser.upload("votes.csv", b"a,b,winner\nx,y,a\n").json()["id"]
        assert [path.suffix for path in (tmp_path / "disk").iterdir()] == [".csv"]
        browser.send("DELETE", f"/api/data/{key}")
        assert not list((tmp_path / "disk").iterdir())
    (tmp_path / "v").mkdir(mode=0o700)
    (tmp_path / "v/files").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="leads nowhere"):
        Store(tmp_path / "v")


def test_a_file_opened_by_a_link_is_what_the_link_leads_to_now(tmp_path):
    for name in ("may", "june"):
        (tmp_path / f"{name}.csv").write_text(name)
    (tmp_path / "now.csv").symlink_to(tmp_path / "may.csv")
    store = Store(tmp_path / "w")
    try:
        data = store.add_file(tmp_path / "now.csv")
        (tmp_path / "now.csv").unlink()
        (tmp_path / "now.csv").symlink_to(tmp_path / "june.csv")
        with open(data.path) as file:
            assert file.read() == "june"
        store.remove_dataset(data.id)
        assert (tmp_path / "now.csv").is_symlink()
        assert (tmp_path / "june.csv").exists()
    finally:
        store.close()


# A full disk


def is_full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_named_and_nothing_stays_of_an_upload_or_an_image(tmp_path, monkeypatch, capsys):
    with opened(tmp_path / "w") as client:
        browser = Browser(client)
        with monkeypatch.context() as patch:
            patch.setattr(workspace.os, "fsync", is_full)
            for url, content in (("/api/data", b"a,b,winner\nx,y,a\n"), ("/api/images", PNG)):
                answer = browser.send("POST", url, content=content, headers={"x-name": "votes.csv"})
                assert answer.status_code == 507
                assert "full" in answer.json()["error"]
                assert str(tmp_path / "w") in answer.json()["error"]
        for name in ("incoming", "files", "images"):
            assert not list((tmp_path / "w" / name).iterdir()), name
        assert "Traceback" not in capsys.readouterr().err
        assert browser.upload("votes.csv", b"a,b,winner\nx,y,a\n").status_code == 201


def test_a_full_database_is_named(tmp_path):
    with opened(tmp_path / "w") as client:
        browser = Browser(client)
        store = client.app.state.store
        pages = store.write(lambda c: c.execute("PRAGMA page_count").fetchone()[0]).result()
        limit = store.write(lambda c: c.execute(f"PRAGMA max_page_count = {pages}").fetchone()[0])
        assert limit.result() == pages
        body = {"title": "Which?", "items": [f"{k}" * 400 for k in range(60)]}
        answer = browser.send("POST", "/api/polls", json=body)
        assert answer.status_code == 507, answer.text
        assert "is full" in answer.json()["error"]
        assert client.get("/polls").status_code == 200
        store.write(lambda c: c.execute("PRAGMA max_page_count = 1000000").fetchone()).result()
        assert browser.send("POST", "/api/polls", json=body).status_code == 201


def test_a_write_that_nobody_waits_for_any_more_does_not_stop_the_others(tmp_path):
    store = Store(tmp_path / "w")
    try:

        async def leave():
            begun, free = threading.Event(), threading.Event()
            slow = store.write(lambda c: begun.set() or free.wait(60))
            assert begun.wait(60)  # what is queued now is of the next transaction
            left = store.execute("INSERT INTO fact VALUES ('left', '1')")
            asyncio.wrap_future(left).cancel()
            await asyncio.sleep(0)  # the loop tells the store
            assert left.cancelled()
            free.set()
            await asyncio.wait_for(asyncio.wrap_future(slow), 60)
            kept = store.execute("INSERT INTO fact VALUES ('kept', '1')")
            return await asyncio.wait_for(asyncio.wrap_future(kept), 60)

        assert asyncio.run(leave()) == 1
        assert [row["name"] for row in store.rows("SELECT name FROM fact")] == ["kept"]
    finally:
        store.close()
