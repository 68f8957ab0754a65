"""Files that change while the studio shows them: nothing old is shown as new, and nothing is mixed."""

import os
import shutil

import pytest

pytest.importorskip("starlette")
pytest.importorskip("httpx")
from starlette.testclient import TestClient
from test_studio import TOKEN, Browser

from placet.studio import file_lists
from placet.studio.app import application
from placet.studio.file_lists import encode_files, stamp_of
from placet.studio.question import Question
from placet.studio.store import Store
from placet.studio.tasks import board, preview

ONE = "a,b,winner\n" + "fox,ant,a\n" * 30 + "ant,fox,a\n" * 10
OTHER = "a,b,winner\n" + "fox,ant,b\n" * 30 + "ant,fox,b\n" * 10  # as long, the other way round


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text(ONE)
    return path


def ask(path, **more):
    return board.answer(str(path), Question(method="bradley-terry", **more))


def test_a_stamp_is_that_of_the_content(file, tmp_path):
    before = stamp_of(str(file))
    os.utime(file, (1, 1))
    assert stamp_of(str(file)) == before  # touched, but the same
    file.write_text(OTHER)
    os.utime(file, (1, 1))
    assert stamp_of(str(file)) != before  # other content of the same size and time
    shutil.copy(file, tmp_path / "new.csv")
    os.replace(tmp_path / "new.csv", file)
    other = stamp_of(str(file))
    file.unlink()
    assert len({before, other, stamp_of(str(file))}) == 3
    two = encode_files([(str(file), "a"), (str(tmp_path / "b.csv"), "b")])
    gone = stamp_of(two)
    (tmp_path / "b.csv").write_text("x")
    assert stamp_of(two) != gone


def test_a_long_file_is_known_by_its_end_size_and_times(file, monkeypatch):
    monkeypatch.setattr(file_lists, "DIGESTED", 50)
    before = stamp_of(str(file))
    assert stamp_of(str(file)) == before
    with open(file, "r+b") as grown:  # the beginning alone is changed, the size and the set time are the same
        times = os.fstat(grown.fileno())
        grown.seek(12)
        grown.write(b"b")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert stamp_of(str(file)) != before
    with open(file, "a") as grown:
        grown.write("fox,ant,a\n")
    assert stamp_of(str(file)) != before


def test_no_view_mixes_an_old_board_with_new_counts(file):
    pair = board.pair(None, path=str(file), question={"method": "bradley-terry"}, first="fox", second="ant")
    assert (pair["above"], pair["for_above"], pair["for_below"]) == ("fox", 30, 10)
    file.write_text(OTHER)
    again = board.pair(None, path=str(file), question={"method": "bradley-terry"}, first="fox", second="ant")
    assert (again["above"], again["for_above"], again["for_below"]) == ("ant", 30, 10)
    assert "30 put ant first" in again["words"]
    assert again["stamp"] == stamp_of(str(file)) != pair["stamp"]


def test_a_file_that_changes_between_two_steps_of_one_view_is_not_mixed(file, monkeypatch):
    """The file is replaced while its consensus is computed: board and counts are both of the old one, and say so."""
    real = board.consensus

    def slow(*args, **options):
        found = real(*args, **options)
        file.write_text(OTHER)
        return found

    monkeypatch.setattr(board, "consensus", slow)
    old = stamp_of(str(file))
    pair = board.pair(None, path=str(file), question={"method": "bradley-terry"}, first="fox", second="ant")
    assert (pair["above"], pair["for_above"], pair["for_below"]) == ("fox", 30, 10)
    assert pair["stamp"] == old != stamp_of(str(file))


def test_a_file_that_changes_while_it_is_read_is_read_again(file, monkeypatch):
    real = preview.read_files
    contents = iter(["a,b,winner\nfox,ant,a\nfox,a"])

    def during(paths, **options):
        file.write_text(next(contents, OTHER))
        return real(paths, **options)

    monkeypatch.setattr(preview, "read_files", during)
    found = preview.load(str(file), {})
    assert found.data.wins_i.sum() + found.data.wins_j.sum() == 40
    assert found.stamp == stamp_of(str(file))


def test_a_file_that_never_rests_is_shown_as_it_was(file, monkeypatch):
    real = preview.read_files

    def during(paths, **options):
        with open(file, "a") as log:
            log.write("fox,ant,a\n")
        return real(paths, **options)

    monkeypatch.setattr(preview, "read_files", during)
    found = preview.load(str(file), {})
    assert found.stamp != stamp_of(str(file))  # so the page will say that there is more
    assert found.data.wins_i.sum() + found.data.wins_j.sum() >= 41


def test_a_line_that_is_being_written_is_noted(file):
    assert preview.load(str(file), {}).notes == []
    with open(file, "a") as log:
        log.write("fox,ant,a\nfox,ant,b")
    assert any("being written" in note for note in preview.load(str(file), {}).notes)
    assert any("being written" in note for note in ask(file).notes)
    with open(file, "a") as log:
        log.write("\n")
    assert preview.load(str(file), {}).notes == []


def test_answers_of_a_growing_file_do_not_pile_up(file):
    for _ in range(5):
        with open(file, "a") as log:
            log.write("fox,ant,a\n")
        ask(file)
    assert sum(one.path == str(file) for one in board._ANSWERS.values()) == 1


def test_the_board_of_a_file_that_grows_is_new_over_http(tmp_path, file):
    store = Store(tmp_path / "w")
    key = store.add_file(file).id
    with TestClient(application(store, TOKEN)) as client:
        browser = Browser(client)
        url = f"/api/board/{key}/board?method=borda"
        first = browser.result(url)
        assert first["columns"]["item"][0] == "fox"
        assert browser.result(url) == first
        assert client.get(f"/api/data/{key}/stamp").json() == {"stamp": first["stamp"]}
        file.write_text(OTHER)
        assert client.get(f"/api/data/{key}/stamp").json() != {"stamp": first["stamp"]}
        assert browser.result(url)["columns"]["item"][0] == "ant"
        assert "ant" in client.get(f"/board/{key}/export.csv?method=borda").text.splitlines()[1]
        file.unlink()
        gone = f"{file}: no such file or directory"
        assert browser.result(url, state="failed") == gone
        assert client.get(f"/data/{key}").status_code == 200
        assert browser.result(f"/api/data/{key}/understand", state="failed") == gone


def test_grades_are_said_in_words(tmp_path):
    path = tmp_path / "rows.letor"
    path.write_text("2 qid:1 1:0.5\n0 qid:1 1:0.1\n0 qid:2 1:0.3\n1 qid:2 1:0.2\n")
    about = preview.understand(None, path=str(path), name="rows.letor", reading={})
    assert dict(about["facts"])["grades"] == "0: 2, 1: 1, 2: 1"
