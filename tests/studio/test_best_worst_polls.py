"""Polls that ask for the best and the worst of a few (MaxDiff), over HTTP."""

import json
from collections import Counter

import pytest

pytest.importorskip("starlette")
pytest.importorskip("httpx")
from starlette.testclient import TestClient
from test_studio_polls import TOKEN, Owner, Voter

import placet
from placet.studio.app import application
from placet.studio.store import Store

ITEMS = ["tea", "milk", "water", "juice", "cocoa", "wine"]


@pytest.fixture(scope="module")
def owner(tmp_path_factory):
    with TestClient(application(Store(tmp_path_factory.mktemp("sets") / "w"), TOKEN)) as client:
        yield Owner(client)


@pytest.fixture(scope="module")
def app(owner):
    return owner.client.app


def answer_all(one):
    """Answer every question: the item with the lowest number is the best, the highest the worst; the sets shown."""
    shown = []
    asked = one.client.get(f"/p/{one.poll}/next").json()
    while "done" not in asked:
        assert one.client.get(f"/p/{one.poll}/next").json() == asked  # the same one until it is answered
        assert asked["answered"] == len(shown)
        shown.append(asked["shown"])
        done = one.vote(shown=asked["shown"], best=min(asked["shown"]), worst=max(asked["shown"]))
        assert done.status_code == 201
        asked = done.json()["next"]
    return shown


def test_answers_are_ordered_partitions_fitted_as_the_library_fits_them(owner, app):
    poll = owner.make(kind="sets", items=ITEMS, shown=4)
    sets = [shown for _ in range(4) for shown in answer_all(Voter(app, poll))]
    assert len(sets) == 4 * 5  # each item three times, rounded up
    assert len({tuple(shown) for shown in sets}) > 10
    counts = Counter(k for shown in sets for k in shown)
    assert max(counts.values()) - min(counts.values()) <= 2
    about = owner.results(poll, len(sets))
    assert (about["votes"], about["voters"]) == (20, 4)
    csv = app.state.store.folder / "sets.csv"
    csv.write_text(owner.client.get(f"/polls/{poll}/votes.csv").text)
    data = placet.read(csv, items=ITEMS)
    assert next(iter(data)) == [
        (ITEMS[min(sets[0])],),
        tuple(sorted((ITEMS[k] for k in sets[0] if k not in (min(sets[0]), max(sets[0]))), key=ITEMS.index)),
        (ITEMS[max(sets[0])],),
    ]
    result = placet.consensus(data)
    assert about["result"]["columns"]["item"] == result.ranking == ITEMS
    assert about["result"]["columns"]["score"] == pytest.approx(result.to_frame()["score"].to_list(), abs=1e-6)
    raw = [json.loads(line) for line in owner.client.get(f"/polls/{poll}/votes.raw").text.splitlines()]
    assert raw[0]["shown"] == [ITEMS[k] for k in sets[0]]
    assert (raw[0]["best"], raw[0]["worst"]) == (ITEMS[min(sets[0])], ITEMS[max(sets[0])])
    assert owner.client.post(f"/api/polls/{poll}/dataset", headers=owner.headers).status_code == 201


def test_who_cannot_say_and_who_answers_again(owner, app):
    poll = owner.make(kind="sets", items=ITEMS, shown=3, most=2, again="replace")
    one = Voter(app, poll)
    shown = one.client.get(f"/p/{poll}/next").json()["shown"]
    assert one.vote(shown=shown).status_code == 201
    assert len(owner.client.get(f"/polls/{poll}/votes.csv").text.splitlines()) == 1  # the head alone
    assert one.vote(shown=shown[::-1], best=shown[0], worst=shown[1]).json()["state"] == "replaced"
    asked = one.client.get(f"/p/{poll}/next").json()
    assert sorted(asked["shown"]) != sorted(shown)
    assert "done" in one.vote(shown=asked["shown"], best=asked["shown"][0], worst=asked["shown"][1]).json()["next"]
    strict = owner.make(kind="sets", items=ITEMS, skip=False)
    other = Voter(app, strict)
    assert other.vote(shown=other.client.get(f"/p/{strict}/next").json()["shown"]).status_code == 409


@pytest.mark.parametrize(
    "answer",
    [
        {}, {"shown": [0, 1, 2], "best": 0, "worst": 1}, {"shown": [0, 1, 2, 2], "best": 0, "worst": 1}, {"shown": [0, 1, 2, 9], "best": 0, "worst": 1},
        {"shown": [0, 1, 2, 3], "best": 0, "worst": 0}, {"shown": [0, 1, 2, 3], "best": 0}, {"shown": [0, 1, 2, 3], "best": 0, "worst": 5}, {"shown": "0123", "best": 0, "worst": 1},
        {"shown": [0, 1, 2, True], "best": 0, "worst": 1}, {"shown": [0, 1, 2, 3], "best": False, "worst": 1}, {"first": 0, "second": 1, "answer": "a"},
    ],
)  # fmt: skip
def test_answers_that_make_no_sense_are_refused(owner, app, answer):
    assert Voter(app, owner.make(kind="sets", items=ITEMS)).vote(**answer).status_code == 409


@pytest.mark.parametrize(
    "values", [{"items": ["a", "b"]}, {"shown": 2}, {"shown": 8}, {"shown": 5, "items": list("abcd")}]
)
def test_polls_that_make_no_sense_are_refused(owner, values):
    body = {"title": "Which?", "kind": "sets", "items": list("abcdefgh"), **values}
    answer = owner.client.post("/api/polls", json=body, headers=owner.headers)
    assert answer.status_code == 400, answer.text


def test_a_restarted_server_goes_on_with_what_was_shown(owner, app):
    poll = owner.make(kind="sets", items=ITEMS, shown=3, most=2)
    first = answer_all(Voter(app, poll))
    app.state.desk._shown.clear()
    app.state.desk._pending.clear()
    second = answer_all(Voter(app, poll))
    counts = Counter(k for shown in (*first, *second) for k in shown)
    assert set(counts.values()) == {2}
    assert {tuple(sorted(shown)) for shown in first} != {tuple(sorted(shown)) for shown in second}


def test_sets_close_their_poll_too(owner, app):
    poll = owner.make(kind="sets", items=["good", "bad", "ugly"], shown=3, goal="order", stop=True)
    codes = [Voter(app, poll).vote(shown=[0, 1, 2], best=0, worst=2).status_code for _ in range(20)]
    needed = codes.index(409)
    assert codes == [201] * needed + [409] * (20 - needed)
