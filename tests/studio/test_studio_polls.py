"""Polls over HTTP: what is asked, who votes how often, what is kept when the server is killed."""

import itertools
import json
import random
import re
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

pytest.importorskip("starlette")
pytest.importorskip("httpx")
import httpx
import numpy as np
from starlette.testclient import TestClient

import placet
from placet.aggregate.asking.pair_evidence import log_evidence
from placet.io import read
from placet.studio import polls as polls_module
from placet.studio.app import application
from placet.studio.polls import Latest, Refused, answer_of, fresh_pair, get_poll, pair_key, parse_poll, shuffled_for
from placet.studio.store import Store
from placet.studio.tasks.polls import votes_of

TOKEN = "a-token-for-tests"
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40
COUNTER = itertools.count()


def csrf_of(text):
    return re.search(r'name="csrf" content="(\w+)"', text).group(1)


class Owner:
    def __init__(self, client):
        self.client = client
        client.get(f"/?token={TOKEN}")
        self.headers = {"x-csrf": csrf_of(client.get("/").text)}

    def make(self, **values):
        answer = self.client.post(
            "/api/polls", json={"title": "Which?", "items": list("abcd"), **values}, headers=self.headers
        )
        assert answer.status_code == 201, answer.text
        return answer.json()["id"]

    def results(self, poll, votes):
        """The results once they are of this many votes."""
        while True:
            about = self.client.get(f"/api/polls/{poll}/results").json()
            if about["result"] and about["result"]["of"] == about["last"] and about["votes"] >= votes:
                return about


class Voter:
    """One browser that is not the owner's."""

    def __init__(self, app, poll):
        self.client, self.poll = TestClient(app), poll
        page = self.client.get(f"/p/{poll}")
        assert page.status_code == 200
        self.headers = {"x-csrf": csrf_of(page.text)}

    def vote(self, nonce=None, **answer):
        body = {"nonce": nonce or f"nonce-{next(COUNTER):08d}", **answer}
        return self.client.post(f"/p/{self.poll}/vote", json=body, headers=self.headers)


@pytest.fixture(scope="module")
def owner(tmp_path_factory):
    with TestClient(application(Store(tmp_path_factory.mktemp("polls") / "w"), TOKEN)) as client:
        yield Owner(client)


@pytest.fixture(scope="module")
def app(owner):
    return owner.client.app


def test_votes_are_counted_as_the_library_counts_them(owner, app):
    poll = owner.make()
    cast = [(0, 1, "a"), (1, 2, "a"), (2, 3, "tie"), (3, 0, "b"), (0, 2, "skip"), (0, 3, "a")]
    one = Voter(app, poll)
    for first, second, answer in cast:
        assert one.vote(first=first, second=second, answer=answer).status_code in (200, 201)
    about = owner.results(poll, 5)
    text = owner.client.get(f"/polls/{poll}/votes.csv").text
    assert (
        len(text.splitlines()) == 1 + 4
    )  # "cannot say" is no vote, and the second answer on 0 and 3 replaces the first
    csv = app.state.store.folder / "votes.csv"
    csv.write_text(text)
    result = placet.consensus(placet.read(csv, items=list("abcd")), "bradley-terry", ties="davidson")
    assert about["result"]["columns"]["item"] == list(result.to_frame()["item"])
    assert about["result"]["columns"]["score"] == pytest.approx(result.to_frame()["score"].to_list(), abs=1e-6)
    assert (about["votes"], about["voters"]) == (5, 1)


def test_the_same_submission_counts_once(owner, app):
    poll = owner.make(again="allow")
    one = Voter(app, poll)
    first = one.vote("the-same-nonce", first=0, second=1, answer="a")
    again = one.vote("the-same-nonce", first=0, second=1, answer="a")
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json()["state"] == "known"
    assert (
        Voter(app, poll).vote("the-same-nonce", first=0, second=1, answer="b").status_code == 201
    )  # another voter's own
    assert owner.client.get(f"/api/polls/{poll}/results").json()["votes"] == 2


@pytest.mark.parametrize(("again", "status", "votes"), [("allow", 201, 2), ("replace", 201, 1), ("refuse", 409, 1)])
def test_voting_twice_is_as_the_poll_says(owner, app, again, status, votes):
    for kind, answers in {
        "pairs": ({"first": 0, "second": 1, "answer": "a"}, {"first": 1, "second": 0, "answer": "a"}),
        "ballots": ({"tiers": [[0], [1]]}, {"tiers": [[1], [0]]}),
    }.items():
        poll = owner.make(kind=kind, again=again)
        one = Voter(app, poll)
        assert one.vote(**answers[0]).status_code == 201
        assert one.vote(**answers[1]).status_code == status
        assert owner.client.get(f"/api/polls/{poll}/results").json()["votes"] == votes
        lines = owner.client.get(f"/polls/{poll}/votes.raw").text.splitlines()
        assert len(lines) == (1 if again == "refuse" else 2)  # nothing that was taken is lost
        assert sum(json.loads(line)["counts"] for line in lines) == votes


def test_ballots_with_ties_and_absences(owner, app):
    poll = owner.make(kind="ballots")
    for tiers in ([[0], [1, 2]], [[1], [0], [2]], [[3], [0]]):
        assert Voter(app, poll).vote(tiers=tiers).status_code == 201
    about = owner.results(poll, 3)
    csv = app.state.store.folder / "ballots.csv"
    csv.write_text(owner.client.get(f"/polls/{poll}/votes.csv").text)
    ballots = read(csv)
    assert ballots.orders() == [["a", ("b", "c")], ["b", "a", "c"], ["d", "a"]]
    assert about["result"]["method"] == "plackett-luce"
    data = owner.client.post(f"/api/polls/{poll}/dataset", headers=owner.headers).json()["id"]
    assert owner.client.get(f"/board/{data}").status_code == 200
    mine = Voter(app, poll)
    mine.vote(tiers=[[2], [0]])
    assert "&#34;mine&#34;: [[2], [0]]" in mine.client.get(f"/p/{poll}").text


def test_asking_stops_when_the_votes_are_enough(owner, app):
    poll = owner.make(items=["good", "bad"], goal="order", again="allow", level=0.9)
    one = Voter(app, poll)
    for k in range(40):
        one.vote(first=0, second=1, answer="b" if k % 10 == 0 else "a")
    assert owner.results(poll, 40)["result"]["settled"]
    two = Voter(app, poll)
    assert "enough" in two.client.get(f"/p/{poll}/next").json()["done"]


def test_the_next_pair_is_one_that_next_pairs_names_and_the_voter_has_not_met(owner, app):
    poll = owner.make(items=list("abcdef"))
    one = Voter(app, poll)
    for i, j in itertools.combinations(range(6), 2):
        one.vote(first=i, second=j, answer="a")
    assert "Thank you" in one.client.get(f"/p/{poll}/next").json()["done"]  # all pairs are met
    owner.results(poll, 15)
    useful = {frozenset(pair) for pair in app.state.desk.latest(app.state.desk.poll(poll)).pairs.values()}
    two = Voter(app, poll)
    met = set()
    for _ in range(5):
        asked = two.client.get(f"/p/{poll}/next").json()
        pair = frozenset((asked["first"], asked["second"]))
        assert pair not in met
        assert pair in useful
        met.add(pair)
        two.vote(**{name: asked[name] for name in ("first", "second")}, answer="b")
    short = owner.make(most=1)
    three = Voter(app, short)
    assert "Thank you" in three.vote(first=0, second=1, answer="a").json()["next"]["done"]


def test_the_most_useful_pair_is_asked_first_and_each_once_before_any_twice(owner, app, monkeypatch):
    desk = app.state.desk
    poll = desk.poll(owner.make(items=list("abcdef")))
    useful = [(4, 5), (0, 3), (1, 2)]
    made = Latest(1, "{}", {pair_key(i, j): (i, j) for i, j in useful})
    monkeypatch.setattr(desk, "latest", lambda _: made)
    asked = [desk.next_question(poll, f"voter{k}") for k in range(6)]
    assert [tuple(sorted((one["first"], one["second"]))) for one in asked] == useful * 2
    one = Voter(app, poll.id)
    one.vote(first=4, second=5, answer="a")
    asked = one.client.get(f"/p/{poll.id}/next").json()
    assert {asked["first"], asked["second"]} != {4, 5}  # a voter is not asked what was answered


def test_a_closed_poll_hands_out_no_pair(owner, app):
    poll = owner.make()
    one = Voter(app, poll)
    assert "first" in one.client.get(f"/p/{poll}/next").json()
    owner.client.put(f"/api/polls/{poll}/open", json={"open": False}, headers=owner.headers)
    assert one.client.get(f"/p/{poll}/next").json() == {"done": "This poll is closed."}


def test_results_are_shown_after_voting_by_default(owner, app):
    poll = owner.make()
    one, two = Voter(app, poll), Voter(app, poll)
    assert one.client.get(f"/p/{poll}/results").status_code == 403
    one.vote(first=0, second=1, answer="a")
    assert one.client.get(f"/p/{poll}/results").json()["votes"] == 1
    assert two.client.get(f"/p/{poll}/results").status_code == 403
    assert TestClient(app).get(f"/p/{poll}/results").status_code == 403
    assert "&#34;voted&#34;: true" in one.client.get(f"/p/{poll}").text
    assert "&#34;voted&#34;: false" in two.client.get(f"/p/{poll}").text
    owner.client.put(f"/api/polls/{poll}/open", json={"open": False}, headers=owner.headers)
    assert two.client.get(f"/p/{poll}/results").json()["votes"] == 1  # closed: it can sway nobody any more


def test_a_clock_that_jumps_changes_no_vote(owner, app, monkeypatch):
    """Years ahead and back between votes: the later answer counts, the order is that of arrival, limits still hold."""
    jumps = itertools.cycle([4e9, 0.0, 1e9, 3e9])
    poll = owner.make()
    one = Voter(app, poll)
    with monkeypatch.context() as patch:  # of the server alone: a browser's clock is its own
        patch.setattr(polls_module, "time", SimpleNamespace(time=lambda: next(jumps), monotonic=time.monotonic))
        for answer in "abab":
            assert one.vote(first=0, second=1, answer=answer).status_code == 201
    raw = owner.client.get(f"/polls/{poll}/votes.raw").text.splitlines()
    told = [json.loads(line) for line in raw]
    assert [line["answer"] for line in told] == ["a", "b", "a", "b"]
    assert [line["counts"] for line in told] == [False, False, False, True]
    assert owner.client.get("/polls").status_code == 200


def test_results_that_a_reader_has_are_not_sent_again(owner, app):
    poll = owner.make()
    Voter(app, poll).vote(first=0, second=1, answer="a")
    about = owner.results(poll, 1)
    of = about["of"]
    assert of == about["result"]["of"] == about["last"]
    again = owner.client.get(f"/api/polls/{poll}/results?have={of}").json()
    assert again == about | {"result": None}
    for have in ("", of - 1, "x", "-1", "9" * 40):
        assert owner.client.get(f"/api/polls/{poll}/results?have={have}").json() == about


def test_a_crowd_does_not_keep_the_counting_busy(owner, app, monkeypatch):
    """After a computation a poll rests, however many votes come in; then the votes of the meantime are counted."""
    from placet.studio import polls

    poll = owner.make(again="allow")
    one, desk = Voter(app, poll), app.state.desk
    one.vote(first=0, second=1, answer="a")
    monkeypatch.setattr(polls, "REST", 1e9)
    monkeypatch.setattr(polls, "MOST_REST", 1e9)
    owner.results(poll, 1)
    one.vote(first=1, second=2, answer="a")
    assert desk.latest(desk.poll(poll)).of < polls.last_vote(app.state.store, poll)
    assert poll not in desk._running
    desk._rest_until[poll] = 0.0
    assert owner.results(poll, 2)["votes"] == 2


def test_a_closed_poll_takes_no_votes(owner, app):
    poll = owner.make()
    one = Voter(app, poll)
    assert owner.client.put(f"/api/polls/{poll}/open", json={"open": False}, headers=owner.headers).json() == {
        "open": False
    }
    assert one.vote(first=0, second=1, answer="a").status_code == 409
    assert owner.client.put(f"/api/polls/{poll}/open", json={"open": True}, headers=owner.headers).status_code == 200
    assert one.vote(first=0, second=1, answer="a").status_code == 201


def test_strangers_see_the_poll_and_nothing_else(owner, app):
    poll = owner.make(results="owner")
    one = Voter(app, poll)
    for url in ("/", "/polls", f"/polls/{poll}", f"/polls/{poll}/votes.csv", f"/api/polls/{poll}/results", "/rankers"):
        assert one.client.get(url).status_code == 403, url
    assert one.client.get(f"/p/{poll}/results").status_code == 403
    assert one.client.get("/p/0123456789abcdef").status_code == 404
    shown = Voter(app, owner.make(results="voters"))
    assert shown.client.get(f"/p/{shown.poll}/results").json()["votes"] == 0
    cookie = next(iter(shown.client.cookies.jar))
    assert cookie.path == f"/p/{shown.poll}"
    assert cookie.has_nonstandard_attr("HttpOnly")


def test_a_vote_needs_its_page_its_cookie_and_its_token(owner, app):
    poll = owner.make()
    body = {"nonce": "12345678", "first": 0, "second": 1, "answer": "a"}
    assert TestClient(app).post(f"/p/{poll}/vote", json=body).status_code == 403
    one = Voter(app, poll)
    assert one.client.post(f"/p/{poll}/vote", json=body).status_code == 403
    assert one.client.post(f"/p/{poll}/vote", json=body, headers={"x-csrf": "0"}).status_code == 403
    forged = TestClient(app, cookies={f"voter_{poll}": "someone.0000"})
    assert forged.get(f"/p/{poll}/next").status_code == 403


@pytest.mark.parametrize(
    "answer",
    [
        {}, {"first": 0, "second": 0, "answer": "a"}, {"first": 0, "second": 9, "answer": "a"}, {"first": -1, "second": 1, "answer": "a"},
        {"first": "0", "second": 1, "answer": "a"}, {"first": True, "second": 0, "answer": "a"}, {"first": 0, "second": 1, "answer": "c"}, {"tiers": [[0], [1]]},
    ],
)  # fmt: skip
def test_answers_that_make_no_sense_are_refused(owner, app, answer):
    assert Voter(app, owner.make()).vote(**answer).status_code == 409


@pytest.mark.parametrize(
    "tiers", [None, [], [[]], [0, 1], [[0], [0]], [[0, 0]], [[0], [7]], [["a"]], [[True]], {"a": 1}, [[0.5]]]
)
def test_ballots_that_make_no_sense_are_refused(owner, app, tiers):
    assert Voter(app, owner.make(kind="ballots")).vote(tiers=tiers).status_code == 409


def test_a_poll_without_ties_takes_none(owner, app):
    assert Voter(app, owner.make(ties=False)).vote(first=0, second=1, answer="tie").status_code == 409
    assert Voter(app, owner.make(skip=False)).vote(first=0, second=1, answer="skip").status_code == 409
    assert Voter(app, owner.make(kind="ballots", ties=False)).vote(tiers=[[0, 1]]).status_code == 409


@pytest.mark.parametrize("nonce", ["short", "x" * 65, "has space in it", "<script>", ""])
def test_nonces_are_checked(owner, app, nonce):
    one = Voter(app, owner.make())
    body = {"nonce": nonce, "first": 0, "second": 1, "answer": "a"}
    assert one.client.post(f"/p/{one.poll}/vote", json=body, headers=one.headers).status_code == 400


@pytest.mark.parametrize(
    "values",
    [
        {"title": ""}, {"items": ["a"]}, {"items": "ab"}, {"items": ["a", "a"]}, {"items": ["a", " "]}, {"kind": "x"}, {"again": "x"}, {"goal": "x"}, {"results": "x"}, {"k": 9},
        {"k": "1"}, {"level": 2}, {"level": "x"}, {"most": -1}, {"items": [{"text": "a", "image": "../x"}, "b"]}, {"items": [{"text": "a", "image": "nothere.png"}, "b"]}, {"items": [f"{k}" for k in range(1001)]},
    ],
)  # fmt: skip
def test_polls_that_make_no_sense_are_refused(owner, values):
    body = {"title": "Which?", "items": list("ab"), **values}
    answer = owner.client.post("/api/polls", json=body, headers=owner.headers)
    assert answer.status_code == 400
    assert answer.json()["error"]


def test_images_are_items(owner, app):
    image = owner.client.post("/api/images", content=PNG, headers=owner.headers).json()["image"]
    poll = owner.make(items=[{"text": "one", "image": image}, {"text": "two"}])
    one = Voter(app, poll)
    shown = one.client.get(f"/p/{poll}/image/0")
    assert shown.content == PNG
    assert shown.headers["content-type"] == "image/png"
    assert one.client.get(f"/p/{poll}/image/1").status_code == 404
    assert one.client.get(f"/p/{poll}/image/7").status_code == 404
    for content in (b"<svg onload='alert(1)'/>", b"", b"RIFF0000AVI "):
        assert owner.client.post("/api/images", content=content, headers=owner.headers).status_code == 415
    assert owner.client.post("/api/images", content=PNG + b"\0" * (9 << 20), headers=owner.headers).status_code == 413


def test_an_image_that_is_taken_back_leaves_the_workspace(owner, app):
    folder = app.state.store.images
    used, other = (
        owner.client.post("/api/images", content=PNG, headers=owner.headers).json()["image"] for _ in range(2)
    )
    poll = owner.make(items=[{"text": "one", "image": used}, {"text": "two"}])
    assert {used, other} <= {path.name for path in folder.iterdir()}
    assert owner.client.delete(f"/api/images/{other}", headers=owner.headers).status_code == 200
    assert not (folder / other).exists()
    assert owner.client.delete(f"/api/images/{other}", headers=owner.headers).status_code == 404
    shown = owner.client.delete(f"/api/images/{used}", headers=owner.headers)
    assert (shown.status_code, "a poll shows this image" in shown.json()["error"]) == (409, True)
    assert Voter(app, poll).client.get(f"/p/{poll}/image/0").content == PNG
    for name in ("..%2Fstudio.sqlite", "..", "lock", f"{used}.part"):
        assert owner.client.delete(f"/api/images/{name}", headers=owner.headers).status_code in (404, 405)
    assert app.state.store.database.exists()
    assert owner.client.delete(f"/api/images/{used}").status_code == 403  # a write needs its token


def test_names_are_escaped_on_the_voters_page(owner, app):
    nasty = "</script><script>alert(1)</script>\"'"
    poll = owner.make(title=nasty, items=[nasty, "b"])
    for client, url in ((owner.client, f"/polls/{poll}"), (TestClient(app), f"/p/{poll}"), (owner.client, "/polls")):
        text = client.get(url).text
        assert "<script>alert" not in text
        assert "alert(1)" in text


def test_too_many_answers_of_one_voter_are_refused(owner, app):
    one = Voter(app, owner.make(again="allow"))
    app.state.votes.most, before = 3, app.state.votes.most
    try:
        codes = [one.vote(first=0, second=1, answer="a").status_code for _ in range(5)]
    finally:
        app.state.votes.most = before
    assert codes == [201, 201, 201, 429, 429]


def test_pieces(tmp_path):
    poll = parse_poll({"title": "t", "items": ["a", "b"]}, tmp_path)
    assert poll["settings"]["again"] == "replace"
    assert fresh_pair(3, {"0-1", "0-2"}) in ((1, 2), (2, 1))
    assert sorted(shuffled_for("me", 9)) == list(range(9))
    assert shuffled_for("me", 9) == shuffled_for("me", 9)
    with pytest.raises(Refused):
        answer_of(
            type("P", (), {"kind": "pairs", "items": [1, 2], "settings": {"ties": True, "skip": True}}),
            {"first": None, "second": 1},
        )


def test_a_killed_server_loses_no_vote_that_it_acknowledged(tmp_path):
    """SIGKILL in the middle of votes and of an upload: what was acknowledged is there, what was not is not half there."""
    workspace = tmp_path / "w"
    code = "from placet.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", "--no-browser", "--port", "0", "--workspace", str(workspace)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    url = process.stdout.readline().strip()
    base = url.partition("/?")[0]
    kept, lock, stop, ready = [], threading.Lock(), threading.Event(), threading.Barrier(4)
    with httpx.Client(follow_redirects=True, timeout=120) as client:
        headers = {"x-csrf": csrf_of(client.get(url).text)}
        poll = client.post(
            f"{base}/api/polls", json={"title": "Which?", "items": list("abcd"), "again": "allow"}, headers=headers
        ).json()["id"]

        def half():
            yield b"a,b,winner\n" * 1000
            stop.wait(600)
            yield b"x,y,a\n"

        def upload():
            try:
                client.post(f"{base}/api/data", content=half(), headers={**headers, "x-name": "half.csv"})
            except httpx.HTTPError:
                return

        def vote(number):
            with httpx.Client(timeout=120) as voter:
                own = {"x-csrf": csrf_of(voter.get(f"{base}/p/{poll}").text)}
                ready.wait(120)  # no server is there after the 150th vote
                for k in range(10_000):
                    nonce = f"voter{number}-vote{k:06d}"
                    try:
                        answer = voter.post(
                            f"{base}/p/{poll}/vote",
                            json={"nonce": nonce, "first": k % 4, "second": (k + 1) % 4, "answer": "a"},
                            headers=own,
                        )
                    except httpx.HTTPError:
                        return
                    if answer.status_code == 201:
                        with lock:
                            kept.append(nonce)
                            if len(kept) == 150:
                                process.send_signal(signal.SIGKILL)

        threads = [threading.Thread(target=vote, args=(k,)) for k in range(4)] + [threading.Thread(target=upload)]
        for thread in threads:
            thread.start()
        process.wait(120)
        stop.set()
        for thread in threads:
            thread.join()
        process.stdout.close()
    store = Store(workspace)
    there = {row["nonce"].partition(":")[2] for row in store.rows("SELECT nonce FROM vote WHERE poll = ?", poll)}
    assert len(kept) >= 150
    assert set(kept) <= there
    assert store.datasets() == []
    assert not list(store.files.iterdir())
    assert store.row("PRAGMA integrity_check")[0] == "ok"
    store.close()


def served(workspace):
    """A server process, and its address."""
    code = "from placet.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", "--no-browser", "--port", "0", "--workspace", str(workspace)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    return process, process.stdout.readline().strip()


class Crowd:
    """200 voters, of whom 20 answer at the same time: the earlier of two items wins nine of ten votes."""

    def __init__(self, base, poll):
        self.base, self.poll, self.cookies, self.kept, self.lock = base, poll, {}, [], threading.Lock()

    def run(self, most):
        """Until the poll is closed, the server is gone, or ``most`` votes were acknowledged."""
        threads = [threading.Thread(target=self._answer, args=(range(k, 200, 20), most)) for k in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _answer(self, voters, most):
        draw = random.Random(voters.start)
        with httpx.Client(timeout=120, base_url=self.base) as client:
            for number in itertools.islice(itertools.cycle(voters), 300):
                try:
                    if not self._one_vote(client, number, draw) or len(self.kept) >= most:
                        return
                except httpx.HTTPError:
                    return

    def _one_vote(self, client, number, draw):
        client.cookies = self.cookies.get(number, {})
        own = {"x-csrf": csrf_of(client.get(f"/p/{self.poll}").text)}
        self.cookies[number] = dict(client.cookies)
        asked = client.get(f"/p/{self.poll}/next").json()
        if "done" in asked:
            return "closed" not in asked["done"]
        first, second = asked["first"], asked["second"]
        nonce = f"voter-{number:03d}-{next(COUNTER):08d}"
        answer = "a" if (first < second) == (draw.random() < 0.9) else "b"
        body = {"nonce": nonce, "first": first, "second": second, "answer": answer}
        found = client.post(f"/p/{self.poll}/vote", json=body, headers=own)
        if found.status_code == 201:
            with self.lock:
                self.kept.append(nonce)
        return found.status_code == 201


def test_a_poll_of_200_voters_closes_with_the_vote_that_reaches_its_goal(tmp_path):
    """Killed half-way and started again: no vote that was acknowledged is lost, and none is taken beyond the goal."""
    workspace, names = tmp_path / "w", list("abcde")
    process, url = served(workspace)
    base = url.partition("/?")[0]
    with httpx.Client(follow_redirects=True, timeout=120) as client:
        headers = {"x-csrf": csrf_of(client.get(url).text)}
        about = {"title": "Which?", "items": names, "goal": "best", "stop": True, "ties": False, "skip": False}
        poll = client.post(f"{base}/api/polls", json=about, headers=headers).json()["id"]
    crowd = Crowd(base, poll)
    killing = threading.Thread(target=crowd.run, args=(10_000,))
    killing.start()
    while len(crowd.kept) < 40:
        time.sleep(0.005)
    process.kill()
    process.wait(120)
    killing.join()
    process.stdout.close()
    process, url = served(workspace)
    crowd.base = url.partition("/?")[0]
    crowd.run(10_000)
    process.terminate()
    process.wait(120)
    process.stdout.close()
    store = Store(workspace)
    rows = store.rows("SELECT * FROM vote WHERE poll = ? AND counts = 1 ORDER BY number", poll)
    there = {row["nonce"].partition(":")[2] for row in rows}
    assert set(crowd.kept) <= there
    assert len({row["voter"] for row in rows}) > 40
    assert store.row("SELECT open FROM poll WHERE id = ?", poll)["open"] == 0
    asked = get_poll(store, poll)
    store.close()
    enough = [bool(placet.consensus(votes_of(asked, rows[:n])).enough("best")) for n in (len(rows) - 1, len(rows))]
    assert enough == [False, True]


def test_a_poll_closes_by_itself_only_if_asked_and_not_again_when_reopened(owner, app):
    for stop in (False, True):
        poll = owner.make(items=["good", "bad"], goal="best", again="allow", stop=stop)
        one = Voter(app, poll)
        codes = [one.vote(first=0, second=1, answer="a").status_code for _ in range(25)]
        closed = codes.index(409) if 409 in codes else None
        needed = next(n for n in range(1, 26) if log_evidence(n, 0) >= np.log(2 / 0.05))
        assert closed == (needed if stop else None)
    assert "closed" in one.client.get(f"/p/{poll}/next").json()["done"]
    owner.client.put(f"/api/polls/{poll}/open", json={"open": True}, headers=owner.headers)
    assert [one.vote(first=0, second=1, answer="a").status_code for _ in range(2)] == [201, 201]


def test_ballots_close_their_poll_too(owner, app):
    poll = owner.make(kind="ballots", items=["good", "bad", "ugly"], goal="order", stop=True)
    codes = [Voter(app, poll).vote(tiers=[[0], [1], [2]]).status_code for _ in range(20)]
    needed = next(n for n in range(1, 21) if log_evidence(n, 0) >= np.log(6 / 0.05))
    assert codes == [201] * needed + [409] * (20 - needed)


def test_the_owner_sees_how_many_votes_are_missing(owner, app):
    poll = owner.make(goal="top", k=2)
    one = Voter(app, poll)
    for i, j in itertools.combinations(range(4), 2):
        one.vote(first=i, second=j, answer="a")
    result = owner.results(poll, 6)["result"]
    assert result["missing"] > 10
    assert result["known"] == ["in: none", "out: none"]
