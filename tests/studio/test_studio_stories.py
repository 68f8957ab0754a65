"""Methods side by side, rankers and tracks over HTTP."""

import json
import re

import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("httpx")
from starlette.testclient import TestClient

import placet
from placet import io, simulate
from placet.metrics import compare, evaluate
from placet.rank import load
from placet.studio.app import application
from placet.studio.store import Store
from placet.studio.tasks.rankers import split

TOKEN = "a-token-for-tests"


class Browser:
    def __init__(self, client):
        self.client = client
        client.get(f"/?token={TOKEN}")
        self.headers = {"x-csrf": re.search(r'name="csrf" content="(\w+)"', client.get("/").text).group(1)}

    def upload(self, path):
        answer = self.client.post("/api/data", content=path.read_bytes(), headers={**self.headers, "x-name": path.name})
        return answer.json()["id"]

    def post(self, url, body):
        return self.client.post(url, json=body, headers=self.headers)

    def result(self, url, body=None, state="done"):
        job = self.post(url, body or {})
        assert job.status_code == 202, job.text
        job = job.json()
        while job["state"] in ("waiting", "running"):
            job = self.client.get(f"/api/jobs/{job['id']}?wait=1").json()
        assert job["state"] == state, job["error"]
        return self.client.get(f"/api/jobs/{job['id']}/result").json() if state == "done" else job["error"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with TestClient(application(Store(tmp_path_factory.mktemp("stories") / "w"), TOKEN)) as client:
        yield Browser(client)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    io.write(
        simulate.plackett_luce([0.9, 0.5, 0.1, -0.5], 60, items=list("wxyz"), random_state=0), path / "ballots.txt"
    )
    io.write(simulate.battles([0.9, 0.5, 0.1], 90, items=list("abc"), random_state=0), path / "votes.csv")
    io.write(simulate.queries(30, 8, 4, random_state=0), path / "search.letor")
    (path / "beacons.csv").write_text("id,x,y\nnorth,0,60\neast,60,0\nsouth,0,-60\n")
    way = np.column_stack([np.linspace(0, 8, 9), np.linspace(0, 4, 9)])
    fixed = np.array([[0, 60], [60, 0], [0, -60]])
    heard = [(day, t) for day, at in enumerate(way) for t in sorted(np.hypot(*(fixed - at).T) / 1.5)]
    (path / "arrivals.csv").write_text("day,arrival_s\n" + "".join(f"{day},{t:.4f}\n" for day, t in heard))
    return path


@pytest.fixture(scope="module")
def ballots(browser, folder):
    return browser.upload(folder / "ballots.txt")


# Methods


def test_every_method_is_run_or_left_out_with_its_reason(browser, folder, ballots):
    found = browser.result(f"/api/methods/{ballots}")
    from placet.aggregate import MODELS, RULES

    assert {*found["methods"], *found["left_out"]} == {*MODELS, *RULES}
    assert "keep no scores" in found["left_out"]["combsum"]
    data = io.read(folder / "ballots.txt")
    for name, places in zip(found["methods"], found["positions"]):
        result = placet.consensus(data, name)
        ranks = dict(zip(map(str, result.items), result.ranks.tolist()))
        assert [ranks[item] for item in found["items"]] == places, name
    size = len(found["methods"])
    assert np.array(found["distance"]).shape == (size, size)
    assert len(found["contested"]) == found["n_contested"]
    assert browser.client.get(f"/methods/{ballots}").status_code == 200


def test_votes_alone_are_enough_for_rules_of_pairs(browser, folder):
    data = browser.upload(folder / "votes.csv")
    found = browser.result(f"/api/methods/{data}")
    assert "copeland" in found["methods"]
    assert "needs whole ballots" in found["left_out"]["irv"]


def test_the_audit_is_that_of_the_library(browser, folder, ballots):
    from placet.axioms import audit

    found = browser.result(f"/api/methods/{ballots}/audit?method=plurality")
    own = audit(io.read(folder / "ballots.txt"), "plurality", rivals=1, compare=())
    assert [one["text"] for one in found["findings"]] == [
        finding.text for finding in own.findings if finding.check != "agreement"
    ]
    assert found["witnesses"] == [duel.sentence() for duel in own.contradicted]
    assert found["command"].startswith("placet audit ")
    assert "is unknown" in browser.result(f"/api/methods/{ballots}/audit?method=x", state="failed")


# Rankers


@pytest.fixture(scope="module")
def search(browser, folder):
    return browser.upload(folder / "search.letor")


@pytest.fixture(scope="module")
def two_runs(browser, search):
    for loss in ("pmop-fd", "ranknet"):
        found = browser.result(
            f"/api/rankers/{search}/train", {"ranker": "linear", "loss": loss, "params": {"max_iter": "8"}}
        )
        assert found["history"]
        assert found["queries"] == 8  # a quarter of thirty
    while len(runs := browser.client.get(f"/api/rankers/{search}/runs").json()) < 2:
        pass
    return sorted(runs, key=lambda run: run["settings"]["loss"])


def test_a_run_is_a_model_with_the_metric_that_it_says(browser, folder, search, two_runs):
    store = browser.client.app.state.store
    data = store.dataset(search)
    _, valid = split(data.path, {}, 0.25, 0)
    for run in two_runs:
        model = load(store.models / f"{run['id']}.placet")
        values = evaluate(["ndcg@10"], model.predict(valid), valid.grade, valid.offsets)["ndcg@10"]
        assert np.nanmean(values) == pytest.approx(run["summary"]["mean"])
        saved = browser.client.get(f"/rankers/{search}/{run['id']}.placet")
        assert saved.content == (store.models / f"{run['id']}.placet").read_bytes()
    assert browser.client.get(f"/rankers/{search}/nothing.placet").status_code == 404
    for url in ("/rankers", f"/rankers/{search}"):
        assert browser.client.get(url).status_code == 200


def test_runs_are_compared_as_the_library_compares(browser, search, two_runs):
    keys = [run["id"] for run in two_runs]
    found = browser.result(f"/api/rankers/{search}/compare", {"runs": keys})
    store = browser.client.app.state.store
    _, valid = split(store.dataset(search).path, {}, 0.25, 0)
    values = [
        evaluate(["ndcg@10"], load(store.models / f"{key}.placet").predict(valid), valid.grade, valid.offsets)[
            "ndcg@10"
        ]
        for key in keys
    ]
    paired = compare(values[1], values[0])
    row = found["rows"][1]
    assert (row["difference"], row["low"], row["high"], row["p"]) == pytest.approx(
        (paired.difference, paired.low, paired.high, paired.p_value)
    )
    gaps = [abs(one["first"] - one["second"]) for one in found["differ"]]
    assert gaps == sorted(gaps, reverse=True)
    about = browser.result(f"/api/rankers/{search}/query", {"runs": keys, "query": 0})
    assert sorted(row["places"][0] for row in about["rows"]) == list(range(1, 9))
    first, second = (row["row"] for row in about["rows"][:2])
    why = browser.result(
        f"/api/rankers/{search}/explain", {"run": keys[0], "query": 0, "first": first, "second": second}
    )
    assert sum(value for _, value in why["parts"]) == pytest.approx(why["difference"])
    assert why["difference"] >= 0


def test_bad_trainings_are_refused(browser, search, ballots):
    for body in (
        {"validation": 2},
        {"validation": "x"},
        {"params": []},
        {"params": {"l2": 3}},
        {"ranker": 3},
        {"seed": "x"},
    ):
        assert browser.post(f"/api/rankers/{search}/train", body).status_code == 400, body
    for body, words in (
        ({"ranker": "x"}, "is unknown"),
        ({"ranker": "linear", "params": {"nonsense": "1"}}, "nonsense"),
        ({"ranker": "linear", "loss": "x"}, "x"),
        ({"ranker": "linear", "metric": "x"}, "x"),
    ):
        assert words in browser.result(f"/api/rankers/{search}/train", body, state="failed")
    assert "not graded rows" in browser.result(f"/api/rankers/{ballots}/train", {"ranker": "linear"}, state="failed")
    named = {"ranker": "reranker", "params": {"base": "/etc/passwd"}}  # the file of a model, on the command line
    assert "'base' cannot be set here" in browser.result(f"/api/rankers/{search}/train", named, state="failed")
    for url, body in (
        ("compare", {}),
        ("compare", {"runs": ["x"]}),
        ("query", {"runs": []}),
        ("explain", {"run": "x", "query": 0}),
        ("query", {"runs": "x", "query": -1}),
    ):
        assert browser.post(f"/api/rankers/{search}/{url}", body).status_code == 400


def test_numbers_of_queries_are_checked(browser, search, two_runs):
    run = two_runs[0]["id"]
    assert browser.post(f"/api/rankers/{search}/query", {"runs": [run], "query": -1}).status_code == 400
    assert "is not in" in browser.result(f"/api/rankers/{search}/query", {"runs": [run], "query": 999}, state="failed")


def test_a_run_can_be_removed(browser, search, two_runs):
    key = browser.post(f"/api/rankers/{search}/train", {"ranker": "linear", "params": {"max_iter": "2"}}).json()["run"]
    while key not in {run["id"] for run in browser.client.get(f"/api/rankers/{search}/runs").json()}:
        pass
    assert browser.client.delete(f"/api/rankers/{search}/runs/{key}", headers=browser.headers).status_code == 200
    assert browser.client.delete(f"/api/rankers/{search}/runs/{key}", headers=browser.headers).status_code == 404
    assert not (browser.client.app.state.store.models / f"{key}.placet").exists()


def test_rankers_are_offered_with_their_controls(browser):
    offered = browser.result("/api/rankers")
    linear = offered["rankers"][0]
    assert linear["name"] == "linear"
    assert linear["has_loss"]
    assert "l2" in {one["name"] for one in linear["controls"]}
    assert "pmop-fd" in offered["losses"]


# Tracks


def test_a_track_goes_where_the_float_went(browser, folder):
    arrivals, beacons = browser.upload(folder / "arrivals.csv"), browser.upload(folder / "beacons.csv")
    body = {
        "arrivals": arrivals,
        "beacons": beacons,
        "start": [0, 0],
        "end": [8, 4],
        "sigma": 0.5,
        "diffusion": 4,
        "clutter_rate": 0.1,
        "particles": 800,
        "chains": 2,
    }
    found = browser.result("/api/tracks", body)
    for k, step in enumerate(found["way"]):
        assert np.hypot(step["x"] - k, step["y"] - k / 2) < 2
    assert {one["source"] for one in found["arrivals"]} == {"north", "east", "south"}
    assert [one["id"] for one in found["beacons"]] == ["north", "east", "south"]
    assert np.array(found["outlines"]).shape[2] == 2
    assert browser.client.get("/tracks").status_code == 200
    for wrong, status in (
        ({"start": [0]}, 400),
        ({"start": "0,0"}, 400),
        ({"sigma": -1}, 400),
        ({"particles": True}, 400),
        ({"beacons": "x"}, 404),
    ):
        assert browser.post("/api/tracks", {**body, **wrong}).status_code == status, wrong
    assert "arrival_s" in browser.result("/api/tracks", {**body, "arrivals": beacons}, state="failed")


def test_answers_are_json_that_every_browser_reads(browser, ballots):
    """No NaN or Infinity, which JSON has not."""
    job = browser.post(f"/api/board/{ballots}/wins", {}).json()
    while job["state"] in ("waiting", "running"):
        job = browser.client.get(f"/api/jobs/{job['id']}?wait=1").json()
    text = browser.client.get(f"/api/jobs/{job['id']}/result").text

    def refuse(name):
        raise AssertionError(name)

    json.loads(text, parse_constant=refuse)
