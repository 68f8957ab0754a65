"""The studio over HTTP: every route, who may use it, and bad input."""

import hashlib
import inspect
import json
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("httpx")
from starlette.routing import Route
from starlette.testclient import TestClient
from typer.testing import CliRunner

import placet
from placet import io, simulate
from placet.cli import app
from placet.studio.app import application
from placet.studio.jobs import Jobs
from placet.studio.pages import HERE
from placet.studio.question import Question
from placet.studio.security import Rate
from placet.studio.server import _listen
from placet.studio.store import Store
from placet.studio.tasks import preview

TOKEN = "a-token-for-tests"
NASTY = "<script>alert(1)<b>\"'&\u202e.csv"


class Browser:
    """A client with the cookie and the token of writes, as a page has them."""

    def __init__(self, client):
        self.client = client
        client.get(f"/?token={TOKEN}")
        self.csrf = re.search(r'name="csrf" content="(\w+)"', client.get("/").text).group(1)

    def send(self, method, url, **options):
        return self.client.request(method, url, headers={"x-csrf": self.csrf, **options.pop("headers", {})}, **options)

    def upload(self, name, content):
        return self.send("POST", "/api/data", content=content, headers={"x-name": name})

    def result(self, url, body=None, state="done"):
        job = self.send("POST", url, json=body or {})
        assert job.status_code == 202, job.text
        job = job.json()
        while job["state"] in ("waiting", "running"):
            job = self.client.get(f"/api/jobs/{job['id']}?wait=1").json()
        assert job["state"] == state, job
        return self.client.get(f"/api/jobs/{job['id']}/result").json() if state == "done" else job["error"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("studio")
    io.write(
        simulate.battles([0.9, 0.5, 0.1, -0.5, -1.0], 400, tie=-0.5, items=list("abcde"), random_state=0),
        path / "votes.csv",
    )
    ballots = simulate.plackett_luce([0.9, 0.5, 0.1, -0.5], 40, items=list("wxyz"), random_state=0)
    io.write(ballots, path / "ballots.txt")
    return path


@pytest.fixture(scope="module")
def browser(folder):
    with TestClient(application(Store(folder / "workspace"), TOKEN, most_upload=1 << 20)) as client:
        yield Browser(client)


@pytest.fixture(scope="module")
def votes(browser, folder):
    return browser.upload("votes.csv", (folder / "votes.csv").read_bytes()).json()["id"]


@pytest.fixture(scope="module")
def ballots(browser, folder):
    return browser.upload("ballots.txt", (folder / "ballots.txt").read_bytes()).json()["id"]


# Who may do what


def stranger(browser):
    return TestClient(browser.client.app, raise_server_exceptions=False)


def test_only_the_token_opens_the_studio(browser):
    client = stranger(browser)
    for method, url in [
        ("GET", "/"),
        ("GET", "/data/x"),
        ("POST", "/api/data"),
        ("POST", "/api/catalog"),
        ("GET", "/nowhere"),
    ]:
        assert client.request(method, url).status_code == 403
    assert client.get("/?token=wrong").status_code == 403
    answer = client.get(f"/?token={TOKEN}&view=x", follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/?view=x"  # the token leaves the address
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert TOKEN not in cookie


def owners_routes(app):
    """Method and address of every route that is the owner's, with something in place of its parameters."""
    for route in app.routes:
        if isinstance(route, Route) and not route.path.startswith(("/p/", "/static/")):
            for method in sorted(route.methods - {"HEAD"}):
                yield method, re.sub(r"\{\w+(:int)?\}", "1", route.path)


def test_every_route_but_the_polls_is_the_owners(browser):
    client = stranger(browser)
    routes = list(owners_routes(browser.client.app))
    assert len(routes) > 35
    for method, url in routes:
        assert client.request(method, url).status_code == 403, (method, url)
        if method != "GET":  # the owner's cookie alone, as a page of another host could send it, writes nothing
            assert browser.client.request(method, url).status_code == 403, (method, url)


def test_every_route_says_what_is_not_there_and_none_fails(browser):
    for method, url in owners_routes(browser.client.app):
        for body in (b"", b"[]", b"{", b"{}", "é".encode("latin-1")):
            answer = browser.send(method, url, content=body if method != "GET" else None)
            assert answer.status_code < 500, (method, url, body, answer.text)
            if answer.status_code >= 400:
                assert answer.json()["error"], (method, url)


def test_wrong_tokens_run_out(browser):
    client = TestClient(browser.client.app, client=("10.9.8.7", 1))
    codes = [client.get(f"/?token=guess{k}").status_code for k in range(25)]
    assert codes[0] == 403
    assert codes[-1] == 429
    assert client.get(f"/?token={TOKEN}").status_code == 429  # even the right one, from there


def test_every_write_needs_its_own_token(browser, votes):
    for method, url in [
        ("POST", "/api/data"),
        ("DELETE", f"/api/data/{votes}"),
        ("POST", f"/api/board/{votes}/board"),
        ("PUT", f"/api/data/{votes}/reading"),
        ("DELETE", "/api/jobs/x"),
    ]:
        assert browser.client.request(method, url).status_code == 403
        assert browser.client.request(method, url, headers={"x-csrf": "0" * 64}).status_code == 403
    assert browser.client.get(f"/data/{votes}").status_code == 200


def test_the_policy_allows_no_inline_script_and_no_other_host(browser, votes):
    for url in ("/", f"/data/{votes}", f"/board/{votes}", "/nowhere"):
        answer = browser.client.get(url, headers={"accept": "text/html"})
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert not re.search(r"<script(?![^>]*src=)|\son\w+=|style=", answer.text)
        assert not re.search(r'(?:src|href)="(?:https?:)?//', answer.text)


def test_other_names_of_the_host_are_refused(browser):
    assert browser.client.get("/", headers={"host": "evil.example"}).status_code == 400
    assert browser.client.get("/", headers={"host": "127.0.0.1:8642"}).status_code == 200


def test_vendored_files_are_those_named():
    listed = re.findall(r"\| (\S+\.js) \|.*\| ([0-9a-f]{64}) \|", (HERE / "static/vendor/README.md").read_text())
    assert {name for name, _ in listed} == {path.name for path in (HERE / "static/vendor").glob("*.js")}
    for name, digest in listed:
        assert hashlib.sha256((HERE / "static/vendor" / name).read_bytes()).hexdigest() == digest


def test_rates_are_limited_and_renewed(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    rate = Rate(2, 10)
    assert [rate.allows("x"), rate.allows("x"), rate.allows("x"), rate.allows("y")] == [True, True, False, True]
    assert rate.is_spent("x")
    now[0] = 11
    assert not rate.is_spent("x")
    assert rate.allows("x")


# Bringing data


def test_an_upload_is_listed_once_it_is_whole(browser, votes):
    assert "votes.csv" in browser.client.get("/").text
    assert not list((browser.client.app.state.store.folder / "incoming").iterdir())


@pytest.mark.parametrize(
    ("name", "content", "status"),
    [("", b"x", 400), ("empty.csv", b"", 400), ("large.csv", b"x" * (1 << 20) + b"x", 413)],
)
def test_bad_uploads_are_refused_and_leave_nothing(browser, name, content, status):
    before = sorted(browser.client.app.state.store.files.iterdir())
    answer = browser.send("POST", "/api/data", content=content, headers={"x-name": name})
    assert answer.status_code == status
    assert answer.json()["error"]
    assert sorted(browser.client.app.state.store.files.iterdir()) == before


def test_an_upload_of_unknown_length_is_bounded_too(browser):
    def stream():
        for _ in range(40):
            yield b"x" * (1 << 16)

    assert browser.send("POST", "/api/data", content=stream(), headers={"x-name": "long.csv"}).status_code == 413


def test_names_are_escaped_and_never_paths(browser):
    from urllib.parse import quote

    answer = browser.send(
        "POST", "/api/data", content=b"a,b,winner\nx,y,a\n", headers={"x-name": quote("../../" + NASTY)}
    )
    data = browser.client.app.state.store.dataset(answer.json()["id"])
    assert data.name == NASTY
    assert re.fullmatch(r"[0-9a-f]{16}\.csv", data.path.rsplit("/", 1)[1])
    for url in ("/", f"/data/{data.id}", f"/board/{data.id}"):
        text = browser.client.get(url).text
        assert "<script>alert" not in text
        assert "&lt;script&gt;alert" in text
    browser.send("DELETE", f"/api/data/{data.id}")
    assert browser.client.get(f"/data/{data.id}").status_code == 404


def test_every_role_that_the_preview_offers_leads_to_a_reader():
    """Roles of a menu are options of the reader, and the ones that a click assigns are on a menu of votes."""
    for name, roles in preview.ROLES.items():
        options = set(inspect.signature(io.formats.FORMATS[name].read).parameters)
        assert set(roles) - {"ignore", "source"} <= options, name  # rows of a source are read by themselves
        assert set(roles) <= set(preview.WORDS)
    offers = re.search(r"const LIKELY = \[(.*?)\n\];", (HERE / "static" / "data.js").read_text(), re.DOTALL)[1]
    likely = set(re.findall(r'^ *\["(\w+)", /', offers, re.MULTILINE))
    assert likely == {"agent", "time", "weight", "control", "source"}
    assert likely <= set(preview.ROLES["battles"])


def test_a_preview_says_what_each_column_is(browser, votes):
    about = browser.result(f"/api/data/{votes}/understand")
    assert {one["name"]: one["role"] for one in about["columns"]} == {
        "model_a": "a",
        "model_b": "b",
        "winner": "winner",
        "weight": "weight",
    }
    assert all(len(one["cells"]) == 20 for one in about["columns"])
    assert about["kind"] == "votes"
    assert dict(about["facts"])["votes"] == 400
    assert dict(about["facts"])["kind"] == "votes"
    assert "pairs that were compared" in dict(about["facts"])


@pytest.mark.parametrize(
    ("text", "reading", "roles", "kind"),
    [
        (
            "who,what,stars\nu,x,3\nu,y,4\n",
            {"format": "ratings", "user": "who", "item": "what", "rating": "stars"},
            {"who": "user", "what": "item", "stars": "rating"},
            "ballots",
        ),
        (
            "qid,label,f1,f2\n1,0,.5,1\n1,2,.1,0\n",
            {},
            {"qid": "qid", "label": "label", "f1": "features", "f2": "features"},
            "graded rows",
        ),
        (
            "model,task,score\nx,t,1\ny,t,2\n",
            {},
            {"model": "item", "task": "task", "score": "score"},
            "scores",
        ),
        (
            "model,math,law,average\nx,1,2,1.5\ny,2,2,2\n",
            {},
            {"model": "item", "math": "tasks", "law": "tasks", "average": ""},
            "scores",
        ),
        (
            "who,math,law\nx,1,2\ny,2,2\n",
            {"format": "scores", "item": "who", "tasks": ["math", "law"]},
            {"who": "item", "math": "tasks", "law": "tasks"},
            "scores",
        ),
        (
            "voter,over,under\n1,x,y\n1,y,z\n",
            {},
            {"voter": "ballot", "over": "better", "under": "worse"},
            "votes",
        ),
        ("ballot,item,rank\n1,x,1\n1,y,2\n", {}, {"ballot": "ballot", "item": "item", "rank": "rank"}, "ballots"),
        ("Apple,Pear,note\n1,2,hi\n2,1,ho\n", {}, {"Apple": "an item", "Pear": "an item", "note": ""}, "ballots"),
        ("winner,loser,count\nx,y,3\ny,z,1\n", {}, {"winner": "winner", "loser": "loser", "count": "weight"}, "votes"),
        (
            "l,r,s,t\nx,y,1,0\ny,x,2,2\n",
            {"format": "battles", "a": "l", "b": "r", "scores": ["s", "t"]},
            {"l": "a", "r": "b", "s": "scores", "t": "scores"},
            "votes",
        ),
    ],
)
def test_roles_of_columns(browser, text, reading, roles, kind):
    data = browser.upload("table.csv", text.encode()).json()["id"]
    about = browser.result(f"/api/data/{data}/understand", {"reading": reading})
    assert about["error"] == ""
    assert {one["name"]: one["role"] for one in about["columns"]} == roles
    assert about["kind"] == kind


@pytest.mark.parametrize(
    ("text", "reading", "roles"),
    [
        (
            "l,r,s,t\nx,y,1,0\n",
            {"format": "battles", "a": "l", "b": "r", "scores": "s"},  # the second column of scores is still to come
            {"l": "a", "r": "b", "s": "scores", "t": ""},
        ),
        ("date,qid,label,f\n1,1,0,3\n1,1,2,1\n", {}, {"date": "", "qid": "qid", "label": "label", "f": "features"}),
        (
            "a,b,winner,agent\nx,y,a,u\n",
            {"format": "battles", "ignore": ["agent"]},
            {"a": "a", "b": "b", "winner": "winner", "agent": ""},
        ),
    ],
)
def test_roles_are_those_that_the_reader_uses(browser, text, reading, roles):
    data = browser.upload("table.csv", text.encode()).json()["id"]
    about = browser.result(f"/api/data/{data}/understand", {"reading": reading})
    assert {one["name"]: one["role"] for one in about["columns"]} == roles


def test_a_corrected_reading_is_kept(browser):
    text = b"l,r,won\npear,fig,pear\nfig,kiwi,fig\n"
    data = browser.upload("odd.csv", text).json()["id"]
    assert "do not tell which format this is" in browser.result(f"/api/data/{data}/understand")["error"]
    begun = browser.result(f"/api/data/{data}/understand", {"reading": {"format": "battles", "a": "l"}})
    assert {one["name"]: one["role"] for one in begun["columns"]} == {
        "l": "a",
        "r": "",
        "won": "",
    }  # what was said stays
    reading = {"format": "battles", "a": "l", "b": "r", "winner": "won"}
    assert browser.result(f"/api/data/{data}/understand", {"reading": reading})["kind"] == "votes"
    assert browser.send("PUT", f"/api/data/{data}/reading", json={"reading": reading}).status_code == 200
    assert browser.result(f"/api/data/{data}/understand")["reading"] == reading
    assert browser.result(f"/api/board/{data}/board")["columns"]["item"][0] == "pear"


def test_wrong_lines_are_listed_with_their_reasons(browser):
    rows = ["a,b,winner", *["x,y,a"] * 5, "x,y,lefft", "x,x,a", "y,z,riight", "y,z,b"]
    data = browser.upload("wrong.csv", "\n".join(rows).encode()).json()["id"]
    about = browser.result(f"/api/data/{data}/understand")
    assert [one["line"] for one in about["wrong"]] == [7, 8, 9]
    assert "'lefft'" in about["wrong"][0]["text"]
    assert "meets itself" in about["wrong"][1]["text"]
    assert "'riight'" in about["wrong"][2]["text"]
    assert all(one["way_out"] for one in about["wrong"])
    assert about["can_skip"]
    assert str(browser.client.app.state.store.folder) not in about["error"]  # the name it came with, not our path
    skipped = browser.result(f"/api/data/{data}/understand", {"reading": {"on_error": "skip"}})
    assert skipped["error"] == ""
    assert any("left out 3" in note for note in skipped["notes"])
    browser.send("PUT", f"/api/data/{data}/reading", json={"reading": {"on_error": "skip"}})
    found = browser.result(f"/api/board/{data}/board")
    assert any("left out 3" in note for note in found["notes"])  # every board says so
    assert "--read on_error=skip" in found["command"]


def test_a_preview_of_cells_that_run_over_lines(browser):
    rows = "".join(f'x,y,a,"a note\nof {k} lines"\n' for k in range(40))
    data = browser.upload("notes.csv", f"a,b,winner,note\n{rows}".encode()).json()["id"]
    about = browser.result(f"/api/data/{data}/understand")
    assert about["error"] == ""
    assert len(about["columns"][3]["cells"]) == 20
    assert about["columns"][3]["cells"][0] == "a note\nof 0 lines"


def test_controls_and_times_of_votes_are_roles(browser):
    text = "a,b,winner,bold,when\n" + "".join(f"x,y,{'ab'[k % 2]},{k % 5},2026-01-{k + 1:02d}\n" for k in range(20))
    data = browser.upload("style.csv", text.encode()).json()["id"]
    reading = {"format": "battles", "control": "bold", "time": "when"}
    about = browser.result(f"/api/data/{data}/understand", {"reading": reading})
    roles = {one["name"]: one["role"] for one in about["columns"]}
    assert (roles["bold"], roles["when"]) == ("control", "time")
    browser.send("PUT", f"/api/data/{data}/reading", json={"reading": reading})
    found = browser.result(f"/api/board/{data}/board")
    assert [row["name"] for row in found["beside"]["controls"]] == ["bold"]


def test_groups_that_cannot_be_compared_are_named(browser):
    data = browser.upload("apart.csv", b"a,b,winner\nx,y,a\ny,x,a\np,q,a\nq,p,a\n").json()["id"]
    assert sorted(map(sorted, browser.result(f"/api/data/{data}/understand")["groups"])) == [["p", "q"], ["x", "y"]]


@pytest.mark.parametrize(
    "reading", [{"nonsense": "x"}, {"a": 3}, {"a": {"b": 1}}, ["a"], "a", {"source": "/etc/passwd"}]
)
def test_bad_readings_are_refused(browser, votes, reading):
    assert browser.send("PUT", f"/api/data/{votes}/reading", json={"reading": reading}).status_code == 400


@pytest.mark.parametrize("body", [b"{", b"[1]", b"\xff", b'"x"'])
def test_bodies_that_are_no_object_are_refused(browser, votes, body):
    assert browser.send("POST", f"/api/data/{votes}/understand", content=body).status_code == 400


def test_large_bodies_are_refused(browser, votes):
    assert browser.send("POST", f"/api/data/{votes}/understand", content=b" " * (2 << 20)).status_code == 413


def test_what_is_not_there_is_not_found(browser):
    for method, url in [
        ("GET", "/data/x"),
        ("GET", "/board/x"),
        ("POST", "/api/board/x/board"),
        ("GET", "/api/jobs/x"),
        ("GET", "/api/jobs/x/result"),
        ("DELETE", "/api/jobs/x"),
        ("DELETE", "/api/data/x"),
        ("GET", "/static/../store.py"),
        ("GET", "/board/x/export.csv"),
    ]:
        assert browser.send(method, url).status_code == 404, url


# Boards


def test_a_board_has_the_numbers_of_the_command_that_it_names(browser, votes):
    found = browser.result(f"/api/board/{votes}/board?method=bradley-terry&p.ties=davidson&level=0.9&p.prior=2")
    args = shlex.split(found["command"])
    assert args[0] == "placet"
    code = "from placet.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, *args[1:], "--json"], capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert [row["item"] for row in said["ranking"]] == found["columns"]["item"]
    for name in ("score", "stderr", "rank", "rank_low", "rank_high", "tier", "support"):
        assert [row[name] for row in said["ranking"]] == found["columns"][name], name
    assert said["notes"] == found["notes"]


def test_a_board_has_the_numbers_of_the_python_that_it_names(browser, folder):
    text = "voter,ballot,item,rank\n" + "".join(
        f"v{k % 3},{k},{item},{(place + k) % 3}\n" for k in range(9) for place, item in enumerate("xyz")
    )
    data = browser.upload("long.csv", text.encode()).json()["id"]
    reading = {"format": "ballots", "ballot": "ballot", "agent": "voter"}
    browser.send("PUT", f"/api/data/{data}/reading", json={"reading": reading})
    found = browser.result(f"/api/board/{data}/board?method=borda&agent=v1&agent=v2&bootstrap=20&seed=3")
    assert found["command"] == ""  # the command line has no slices by voter
    *lines, last = found["python"].splitlines()
    names = {}
    exec("\n".join(lines), names)
    frame = eval(last, names)
    assert frame["item"].to_list() == found["columns"]["item"]
    assert frame["score"].to_list() == found["columns"]["score"]
    assert frame["stderr"].to_list() == found["columns"]["stderr"]
    assert found["agents"] == ["v0", "v1", "v2"]


def test_two_items_in_words(browser, votes, ballots):
    about = browser.result(f"/api/board/{votes}/pair", {"first": "b", "second": "a"})
    assert (about["above"], about["below"]) == ("a", "b")
    data = placet.read(browser.client.app.state.store.dataset(votes).path)
    row = (data.i == data.items.index("a")) & (data.j == data.items.index("b"))
    assert (about["for_above"], about["for_below"], about["ties"]) == (
        data.wins_i[row][0],
        data.wins_j[row][0],
        data.ties[row][0],
    )
    result = placet.consensus(data, "bradley-terry")
    assert about["probability"] == result.prob_above("a", "b")
    assert about["wins"] == [result.win_probability("a", "b"), result.win_probability("b", "a")]
    about = browser.result(f"/api/board/{ballots}/pair?method=borda", {"first": "w", "second": "z"})
    assert about["for_above"] + about["for_below"] == 40
    assert len(about["ballots"]) == 20
    assert about["probability"] is None


def test_views_of_a_board(browser, votes, ballots):
    wins = browser.result(f"/api/board/{votes}/wins")
    assert len(wins["win"]) == len(wins["items"]) == 5
    assert wins["win"][0][0] is None
    assert wins["win"][0][4] > 0.5
    ranks = browser.result(f"/api/board/{ballots}/ranks?bootstrap=50&method=borda")
    assert all(abs(sum(row) - 1) < 0.05 for row in ranks["probability"])
    assert "no probability of winning" in browser.result(f"/api/board/{ballots}/wins?method=borda", state="failed")
    assert browser.send("POST", f"/api/board/{votes}/nothing").status_code == 404


def test_contests_are_boards_of_their_own(browser):
    text = "q1 Q0 d1 1 3 s\nq1 Q0 d2 2 2 s\nq2 Q0 d7 1 3 s\nq2 Q0 d9 2 1 s\n"
    data = browser.upload("engine.run", text.encode()).json()["id"]
    found = browser.result(f"/api/board/{data}/board?method=borda")
    assert [one["name"] for one in found["instances"]] == ["q1", "q2"]
    assert found["columns"]["item"] == ["d1", "d2"]
    assert browser.result(f"/api/board/{data}/board?method=borda&instance=q2")["columns"]["item"] == ["d7", "d9"]
    assert "not among the 2 contests" in browser.result(
        f"/api/board/{data}/board?method=borda&instance=q3", state="failed"
    )


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("method=nonsense", "is unknown"),
        ("p.nonsense=3", "nonsense"),
        ("agent=me", "do not say who voted"),
        ("bootstrap=1", "at least 2"),
        ("method=irv", "needs whole ballots"),
    ],
)
def test_a_computation_that_fails_says_why_and_the_studio_stays(browser, votes, query, words):
    assert words in browser.result(f"/api/board/{votes}/board?{query}", state="failed")
    assert browser.client.get("/").status_code == 200


@pytest.mark.parametrize("query", ["level=2", "level=x", "bootstrap=-1", "bootstrap=99999", "seed=x"])
def test_questions_that_make_no_sense_are_refused(browser, votes, query):
    assert browser.send("POST", f"/api/board/{votes}/board?{query}").status_code == 400


@pytest.mark.parametrize("body", [{}, {"first": "a"}, {"first": 1, "second": 2}])
def test_pairs_need_two_names(browser, votes, body):
    assert browser.send("POST", f"/api/board/{votes}/pair", json=body).status_code == 400


def test_exports(browser, votes):
    csv = browser.client.get(f"/board/{votes}/export.csv?method=borda")
    assert csv.text.splitlines()[0].startswith("item,score")
    assert len(csv.text.splitlines()) == 6
    assert "attachment" in csv.headers["content-disposition"]
    assert browser.client.get(f"/board/{votes}/export.json").json()["method"] == "bradley-terry"
    assert "<h1>Consensus of votes.csv</h1>" in browser.client.get(f"/board/{votes}/export.html").text
    assert browser.client.get(f"/board/{votes}/export.parquet").content[:4] == b"PAR1"
    assert browser.client.get(f"/board/{votes}/export.exe").status_code == 404
    assert browser.client.get(f"/board/{votes}/export.csv?method=nonsense").status_code == 422


def test_a_board_says_how_few_votes_decide_it_and_exports_its_certificate(browser, votes, folder, tmp_path):
    about = browser.result(f"/api/board/{votes}/fragility?method=borda")
    assert [one["words"].rpartition(" decide ")[2] for one in about["places"]] == [
        "the first place",
        "the second place",
        "the third place",
    ]
    assert {"item", "against", "removed", "of"} <= set(about["places"][0]["rows"][0])
    paper, page = (browser.client.get(f"/board/{votes}/export.{kind}?method=borda") for kind in ("cert.json", "html"))
    assert paper.json()["files"][0]["name"] == "votes.csv"
    for name, content in (("paper.cert.json", paper.content), ("page.html", page.content)):
        (tmp_path / name).write_bytes(content)
        assert CliRunner().invoke(app, ["verify", str(tmp_path / name), str(folder / "votes.csv")]).exit_code == 0
    assert browser.client.get(f"/board/{votes}/export.cert.json?by=a").status_code == 422


@pytest.mark.parametrize("kind", ["csv", "json", "parquet", "run"])
@pytest.mark.parametrize("query", ["by=lang", "by=lang&level=0.9&method=borda", "method=bradley-terry&p.ties=davidson"])
def test_exports_are_those_of_the_command_byte_by_byte(tmp_path, kind, query):
    from typer.testing import CliRunner

    from placet.cli import app
    from placet.studio.tasks.board import export

    path = tmp_path / "votes.csv"
    rows = ["x,y,a,en", "x,y,b,en", "y,z,a,en", "x,z,a,en", "y,x,a,de", "x,y,a,de", "z,y,tie,de", "z,x,b,de"]
    path.write_text("a,b,winner,lang\n" + "\n".join(rows) + "\n")
    asked = Question.from_query(dict(pair.split("=") for pair in query.split("&")), [], {})
    out = tmp_path / f"out.{kind}"
    words = [*shlex.split(asked.command(str(path)))[1:], "--out", str(out)]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert export(None, path=str(path), question=vars(asked), kind=kind, title="") == out.read_bytes()


def test_every_method_has_controls_that_it_takes(browser):
    from placet.aggregate.method_table import METHODS

    catalog = browser.result("/api/catalog")
    assert [one["name"] for one in catalog] == list(METHODS)
    ties = next(one for one in catalog[0]["controls"] if one["name"] == "ties")
    assert (ties["default"], ties["choices"], ties["input"]) == (
        "auto",
        ["auto", "none", "rao-kupper", "davidson"],
        "select",
    )
    assert all(one["about"] for one in catalog)


def test_a_question_survives_its_address():
    asked = Question.from_query({"method": "borda", "p.unlisted": "last", "p.k": "3", "level": "0.9"}, ["x"], {})
    assert asked.params == {"unlisted": "last", "k": 3}
    assert Question.from_json(json.loads(json.dumps(vars(asked)))) == asked
    assert Question(method="borda", reading={"format": "ballots", "ignore": ["a b", "c"]}).command("my votes.csv") == (
        "placet aggregate 'my votes.csv' --method borda --format ballots --read 'ignore=a b,c'"
    )


# Computations


def test_a_computation_can_be_cancelled_and_the_next_one_runs(browser, votes):
    job = browser.send("POST", f"/api/board/{votes}/board?bootstrap=10000&seed=5").json()
    waiting = browser.send("POST", f"/api/board/{votes}/board?bootstrap=10000&seed=6").json()
    for one in (waiting, job):
        assert browser.send("DELETE", f"/api/jobs/{one['id']}").json()["state"] == "cancelled"
    assert browser.client.get(f"/api/jobs/{job['id']}/result").status_code == 409
    assert browser.result(f"/api/board/{votes}/board?method=copeland")["method"] == "copeland"


def test_the_same_question_is_computed_once():
    jobs = Jobs()
    try:
        one = jobs.start("warm up", {"items": 3})
        assert jobs.start("warm up", {"items": 3}) is one
        jobs.cancel(one.id)
        again = jobs.start("warm up", {"items": 3})
        assert again is not one
        assert again.wait(300)
        assert again.state == "done"
        lane = jobs._lanes["boards"]
        busy = jobs.start("board", {"path": "/nowhere", "question": {}})
        assert busy.wait(300)
        assert "nowhere" in busy.error
        lane._process.kill()  # as when memory runs out
        lane._process.join()
        after = jobs.start("warm up", {"items": 3}, fresh=True)
        assert after.wait(300)
        assert after.state == "done"
    finally:
        jobs.close()


# The workspace


def test_writes_that_arrive_together_are_all_kept_or_each_refused(tmp_path):
    store = Store(tmp_path / "w")
    futures = [store.execute("INSERT INTO fact VALUES (?, ?)", f"n{k % 50}", str(k)) for k in range(100)]
    failed = [f for f in futures if f.exception() is not None]
    assert len(failed) == 50
    store.close()
    again = Store(tmp_path / "w")
    assert len(again.rows("SELECT * FROM fact")) == 50
    again.close()


def test_several_datasets_are_opened_as_one(browser, folder):
    may, june = (browser.upload(f"{name}.csv", text) for name, text in (
        ("may", b"a,b,winner\nx,y,a\ny,z,a\n"), ("june", b"a,b,winner\nx,z,b\nz,x,tie\n"),
    ))  # fmt: skip
    keys = [may.json()["id"], june.json()["id"]]
    made = browser.send("POST", "/api/data/joined", json={"datasets": keys})
    assert made.status_code == 201
    assert made.json()["name"] == "may.csv + june.csv"
    assert browser.send("POST", "/api/data/joined", json={"datasets": keys}).json() == made.json()
    key = made.json()["id"]
    about = browser.result(f"/api/data/{key}/understand")
    assert about["shape"] == "3 pairs, 3 items, 4 votes"
    assert [column["role"] for column in about["columns"]] == ["a", "b", "winner"]
    found = browser.result(f"/api/board/{key}/board?method=bradley-terry&p.prior=2")
    *lines, last = found["python"].splitlines()
    names = {}
    exec("\n".join(lines), names)
    assert eval(last, names)["score"].to_list() == found["columns"]["score"]
    assert sum(word.endswith(".csv") for word in shlex.split(found["command"])) == 2
    browser.send("DELETE", f"/api/data/{keys[0]}")  # its file stays, because another dataset needs it
    assert browser.result(f"/api/data/{key}/understand")["shape"] == "3 pairs, 3 items, 4 votes"
    kept = browser.client.app.state.store.files
    before = set(kept.iterdir())
    browser.send("DELETE", f"/api/data/{key}")
    assert len(before - set(kept.iterdir())) == 1  # that of May; June is a dataset of its own


def test_wrong_lines_of_joined_files_name_their_file(browser):
    keys = [browser.upload(f"{name}.csv", text).json()["id"] for name, text in (
        ("good", b"a,b,winner\nx,y,a\ny,z,a\n"), ("odd", b"a,b,winner\nx,z,b\nz,x,what\n"),
    )]  # fmt: skip
    key = browser.send("POST", "/api/data/joined", json={"datasets": keys}).json()["id"]
    about = browser.result(f"/api/data/{key}/understand")
    assert "odd.csv" in about["error"]
    assert "what" in about["error"]
    assert about["files"] == ["good.csv", "odd.csv"]
    assert [(one["file"], one["line"]) for one in about["wrong"]] == [("odd.csv", 3)]
    assert str(browser.client.app.state.store.files) not in about["error"]


@pytest.mark.parametrize(
    ("body", "status"),
    [({}, 400), ({"datasets": "x"}, 400), ({"datasets": [1, 2]}, 400), ({"datasets": ["x", "y"]}, 404), ({"datasets": []}, 400)],
)  # fmt: skip
def test_what_cannot_be_joined_is_refused(browser, votes, body, status):
    assert browser.send("POST", "/api/data/joined", json=body).status_code == status
    assert browser.send("POST", "/api/data/joined", json={"datasets": [votes, votes]}).status_code == 400


def test_score_tables_have_boards(browser, tmp_path):
    rng = np.random.default_rng(0)
    cells = [(f"m{k}", f"task{t}", round(0.3 + 0.1 * k + 0.1 * rng.random(), 3)) for k in range(4) for t in range(8)]
    text = "model,task,score\n" + "".join(f"{item},{task},{score}\n" for item, task, score in cells)
    key = browser.upload("scores.csv", text.encode()).json()["id"]
    about = browser.result(f"/api/data/{key}/understand")
    assert (about["kind"], about["uses"]) == ("scores", ["board", "methods"])
    (tmp_path / "scores.csv").write_text(text)
    for method in ("", "mean-win-rate", "borda"):
        found = browser.result(f"/api/board/{key}/board?method={method}")
        assert found["kind"] == "scores"
        mine = placet.consensus(placet.read(tmp_path / "scores.csv"), method or "mean")
        assert found["columns"]["item"] == [str(item) for item in mine.to_frame()["item"]]
        assert found["columns"]["score"] == mine.to_frame()["score"].to_list()
    about = browser.result(f"/api/board/{key}/pair", {"first": "m0", "second": "m3"})
    assert (about["above"], about["for_above"], about["for_below"]) == ("m3", 8, 0)
    assert all("m3" in first for first in browser.result(f"/api/methods/{key}")["winners"].values())
    assert browser.client.get(f"/board/{key}/export.csv").status_code == 200


# History


@pytest.fixture(scope="module")
def dated(browser):
    """x falls below y in the course of a year."""
    lines = [
        f"x,y,{'a' if (k * 7) % 12 >= month else 'b'},2024-{month:02d}-15\ny,z,{'b' if k % 3 == 0 else 'a'},2024-{month:02d}-15"
        for month in range(1, 13)
        for k in range(12)
    ]
    return browser.upload("dated.csv", ("a,b,winner,day\n" + "\n".join(lines) + "\n").encode()).json()["id"]


def test_votes_without_a_time_are_asked_for_the_column(browser, dated):
    found = browser.result(f"/api/board/{dated}/board")
    assert found["time"] == {"known": False, "columns": ["a", "b", "winner", "day"], "guess": "day"}
    assert "when they were given" in browser.result(f"/api/board/{dated}/history", state="failed")


def test_history_is_that_of_the_library(browser, dated, ballots):
    browser.send("PUT", f"/api/data/{dated}/reading", json={"reading": {"time": "day"}})
    assert browser.result(f"/api/board/{dated}/board")["time"] == {"known": True}
    assert browser.result(f"/api/board/{ballots}/board")["time"] is None
    about = browser.result(f"/api/board/{dated}/history", {"items": ["z"]})
    assert about["step"] == "1m"
    assert len(about["times"]) == 12
    assert about["items"][0] == "z"
    assert sorted(about["items"]) == ["x", "y", "z"]
    names = {}
    *lines, last = about["python"].splitlines()
    exec("\n".join(lines), names)
    frame = eval(last, names)
    shown = {
        (item, when): score for item, when, score in zip(*(about["columns"][key] for key in ("item", "time", "score")))
    }
    assert shown == {
        (item, str(when)): score for item, when, score in zip(frame["item"], frame["time"], frame["score"])
    }
    first, last = about["times"][0], about["times"][-1]
    assert shown["x", first] > shown["y", first]
    assert shown["x", last] < shown["y", last]
    query = f"method=bradley-terry&p.drift=learn&p.step=1m&at={first}"
    board = browser.result(f"/api/board/{dated}/board?{query}")
    assert board["columns"]["item"][0] == "x"
    assert board["command"] == ""
    names = {}
    *lines, last = board["python"].splitlines()
    exec("\n".join(lines), names)
    assert eval(last, names)["score"].to_list() == board["columns"]["score"]
    assert browser.result(f"/api/board/{dated}/wins?{query}")["items"][0] == "x"
    assert "history" not in board["beside"]
    assert "scores do not move" in browser.result(f"/api/board/{dated}/board?at=2024-01-01", state="failed")


@pytest.mark.parametrize(
    ("times", "step"),
    [
        (["2001-01-01", "2024-01-01"], "1y"), (["2024-01-01", "2024-12-31"], "1m"), (["2024-01-01", "2024-01-20"], "1d"),
        (["2024-01-01T00", "2024-01-01T20"], "1h"), (["2024-01-01", "2024-01-01"], "1y"), ([0.0, 1.0], 0.1), ([1.0, 23.0], 2.0), ([5.0, 5.0], 1.0),
    ],
)  # fmt: skip
def test_the_step_of_a_history_cuts_its_time_into_several(times, step):
    from placet.studio.tasks.scores_over_time import step_for

    found = step_for(np.array(times, "datetime64[s]" if isinstance(times[0], str) else float))
    assert found == step if isinstance(step, str) else found == pytest.approx(step)


@pytest.mark.parametrize("body", [{"items": "x"}, {"items": [1]}, {"items": ["x"] * 21}])
def test_items_of_a_history_are_names(browser, votes, body):
    assert browser.send("POST", f"/api/board/{votes}/history", json=body).status_code == 400


def test_files_of_the_command_line_stay_where_they_are(tmp_path):
    file = tmp_path / "votes.csv"
    file.write_text("a,b,winner\nx,y,a\n")
    store = Store(tmp_path / "w")
    data = store.add_file(file)
    assert store.add_file(file) == data
    store.remove_dataset(data.id)
    assert file.exists()
    store.close()


# The command


def start(*args):
    code = "from placet.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, "serve", "--no-browser", "--port", "0", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_command_prints_one_address_when_it_is_ready(tmp_path, folder):
    import httpx

    process = start("--workspace", tmp_path / "w", folder / "votes.csv")
    timer = threading.Timer(120, process.kill)
    timer.start()
    try:
        url = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=\S{20,}", url)
        with httpx.Client(follow_redirects=True, timeout=120) as client:
            assert "votes.csv" in client.get(url).text
    finally:
        process.terminate()
        rest, _ = process.communicate(timeout=120)
        timer.cancel()
    assert rest == ""  # one line, and no more


def test_ctrl_c_ends_it_quietly_and_a_port_is_named_when_it_is_taken(tmp_path):
    first = start("--workspace", tmp_path / "w")
    url = first.stdout.readline()
    port = re.search(r":(\d+)/", url).group(1)
    second = start("--workspace", tmp_path / "v", "--port", port)
    _, err = second.communicate(timeout=120)
    assert second.returncode == 2
    assert f"port {port}" in err
    assert "--port 0" in err
    assert not (tmp_path / "v").exists()
    first.send_signal(signal.SIGINT)
    out, err = first.communicate(timeout=120)
    assert (out, err) == ("", "")


def test_answers_are_sent_without_delay():
    """A listener that does not say it is TCP costs 40 ms on every answer: asyncio leaves Nagle's algorithm on."""
    listener = _listen("127.0.0.1", 0)
    listener.listen()
    with listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.proto == socket.IPPROTO_TCP


def test_opening_to_others_needs_a_token(tmp_path):
    process = start("--workspace", tmp_path / "w", "--host", "0.0.0.0")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "--token" in err
    assert not (tmp_path / "w").exists()
    process = start("--workspace", tmp_path / "w", tmp_path / "nothing.csv")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "no such file" in err


@pytest.fixture(scope="module")
def joint(browser):
    """Datasets of people's votes, a judge's and a table of scores."""
    both = simulate.judged_votes([1.0, 0.3, -0.3, -1.0], 80, 400, items=list("abcd"), random_state=1)
    found = {}
    for name, data in both.items():
        rows = zip(data.i, data.j, data.wins_i, data.wins_j)
        lines = [
            f"{data.items[i]},{data.items[j]},{side},{n:g}" for i, j, x, y in rows for side, n in (("a", x), ("b", y))
        ]
        text = "\n".join(["model_a,model_b,winner,weight", *lines])
        found[name] = browser.upload(f"{name}.csv", text.encode()).json()["id"]
    table = b"model,maths,law\na,0.9,0.8\nb,0.7,0.6\nc,0.4,\nd,0.2,0.3\n"
    return found | {"bench": browser.upload("bench.csv", table).json()["id"]}


def test_several_datasets_are_sources_of_one_fit(browser, joint):
    query = "&".join(f"data={key}" for key in joint.values()) + f"&target={joint['human']}"
    page = browser.client.get(f"/sources?{query}").text
    assert "Where the sources differ" in page
    found = browser.result(f"/api/sources?{query}")
    assert found["target"] == "human"
    assert [row["source"] for row in found["sources"]] == ["human", "judge", "bench"]
    assert {row["source"] for row in found["deviations"]} == {"judge", "bench"}
    assert any("judge is worth" in note or "judge adds" in note for note in found["notes"])
    *lines, last = found["python"].splitlines()
    names = {}
    exec("\n".join(lines), names)
    assert eval(last, names)["score"].to_list() == found["columns"]["score"]
    words = shlex.split(found["command"])
    assert [word.partition("=")[0] for word in words[2:5]] == ["human", "judge", "bench"]
    assert words[5:] == ["--target", "human"]
    report = browser.client.get(f"/sources/export.html?{query}").text
    assert "<h1>Consensus of human, judge, bench</h1>" in report
    assert "The sources" in report
    common = browser.result(f"/api/sources?{query.partition('&target')[0]}")
    assert any("no target" in note for note in common["notes"])
    assert 'id="joint"' in browser.client.get("/").text


def test_sources_that_cannot_be_fitted_are_refused(browser, joint, votes):
    human, judge = joint["human"], joint["judge"]
    for query, status, words in (
        (f"data={human}", 400, "choose 2 to 50"),
        (f"data={human}&data={human}", 400, "not 1"),
        (f"data={human}&data=nothing", 404, "not in this workspace"),
        (f"data={human}&data={judge}&target={votes}", 400, "target is not among"),
    ):
        for url in (f"/sources?{query}", f"/sources/export.html?{query}"):
            refused = browser.client.get(url)
            assert (refused.status_code, words in refused.text) == (status, True)
    other = browser.upload("human.json.csv", b"a,b,winner\nx,y,a\ny,z,a\n").json()["id"]
    said = browser.result(f"/api/sources?data={human}&data={other}", state="failed")
    assert "source 'human 2' has no item in common with 'human'" in said


@pytest.fixture(scope="module")
def judged(browser):
    """One dataset with the votes of people and of a judge, told apart by a column."""
    both = simulate.judged_votes([1.0, 0.3, -0.3, -1.0], 80, 400, items=list("abcd"), random_state=1)
    lines = ["model_a,model_b,winner,weight,judge"]
    for name, data in both.items():
        for i, j, x, y in zip(data.i, data.j, data.wins_i, data.wins_j):
            lines += [f"{data.items[i]},{data.items[j]},{side},{n:g},{name}" for side, n in (("a", x), ("b", y))]
    return browser.upload("my votes.csv", "\n".join(lines).encode()).json()["id"]


def test_a_column_of_judges_is_offered_as_sources(browser, judged):
    about = browser.result(f"/api/data/{judged}/understand")
    roles = {column["name"]: column["role"] for column in about["columns"]}
    assert roles["judge"] == ""  # used by nobody
    assert {"agent", "time", "control", "source"} <= {role for role, _ in about["menus"]["battles"]}


def test_values_of_a_column_are_sources_of_one_fit(browser, joint, judged, tmp_path):
    query = f"data={judged}&column=judge&target=human"
    page = browser.client.get(f"/sources?{query}").text
    assert "Each value of the column judge is a source." in page
    assert f'href="/data/{judged}"' in page
    found = browser.result(f"/api/sources?{query}")
    assert (found["names"], found["target"]) == (["human", "judge"], "human")
    files = browser.result(f"/api/sources?data={joint['human']}&data={joint['judge']}&target={joint['human']}")
    assert found["columns"] == files["columns"]  # as of two files
    assert found["deviations"] == files["deviations"]
    words = shlex.split(found["command"])
    assert words[3:] == ["--source", "judge", "--target", "human"]
    out = tmp_path / "board.csv"
    assert CliRunner().invoke(app, [*words[1:], "--out", str(out)]).exit_code == 0
    rows = [line.split(",") for line in out.read_text().splitlines()]
    item, score = (rows[0].index(name) for name in ("item", "score"))
    assert [row[item] for row in rows[1:]] == found["columns"]["item"]
    assert [float(row[score]) for row in rows[1:]] == pytest.approx(found["columns"]["score"], rel=1e-9)
    *lines, last = found["python"].splitlines()
    names = {}
    exec("\n".join(lines), names)
    assert eval(last, names)["score"].to_list() == found["columns"]["score"]
    assert "<h1>Consensus of human, judge</h1>" in browser.client.get(f"/sources/export.html?{query}").text
    common = browser.result(f"/api/sources?data={judged}&column=judge")
    assert any("no target" in note for note in common["notes"])
    assert common["command"].endswith(" --source judge")


def test_columns_that_are_no_sources_are_refused(browser, joint, judged):
    refused = browser.client.get(f"/sources?data={judged}&data={joint['human']}&column=judge")
    assert (refused.status_code, "one of a single dataset" in refused.text) == (400, True)
    many = "a,b,winner,judge\n" + "".join(f"x,y,a,{k}\n" for k in range(51))
    key = browser.upload("many.csv", many.encode()).json()["id"]
    for query, words in (
        (f"data={judged}&column=nothing", "nothing"),
        (f"data={judged}&column=judge&target=Eve", "target 'Eve' is not a source"),
        (f"data={key}&column=judge", "51 values; at most 50 sources"),
    ):
        assert words in browser.result(f"/api/sources?{query}", state="failed")


def test_sources_of_a_column_are_read_as_the_dataset_is(browser, tmp_path):
    rows = ["ant,bee,ant,gpt", "bee,cat,bee,gpt", "cat,ant,cat,people", "bee,ant,bee,people"] * 3
    key = browser.upload("odd.csv", "\n".join(["left,right,who,judge", *rows]).encode()).json()["id"]
    reading = {"format": "battles", "a": "left", "b": "right", "winner": "who"}
    assert browser.send("PUT", f"/api/data/{key}/reading", json={"reading": reading}).status_code == 200
    found = browser.result(f"/api/sources?data={key}&column=judge&target=people")
    words = shlex.split(found["command"])
    assert words[3:5] == ["--format", "battles"]
    out = tmp_path / "board.csv"
    assert CliRunner().invoke(app, [*words[1:], "--out", str(out)]).exit_code == 0
    items = [line.split(",")[0] for line in out.read_text().splitlines()[1:]]
    assert items == found["columns"]["item"]
