"""The server under clients that are slow, many or malicious, and the command that starts it."""

import asyncio
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

pytest.importorskip("starlette")
pytest.importorskip("httpx")
pytest.importorskip("httptools")
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from test_studio import TOKEN, Browser

from placet.studio import connections, server as studio_server
from placet.studio.app import application
from placet.studio.connections import BoundedProtocol, Bounds, Crowd, close_late
from placet.studio.security import host_name, network_of
from placet.studio.server import _config, _listen, _token
from placet.studio.store import Store

# Connections


async def echo(request: Request):
    with contextlib.suppress(Exception):
        return PlainTextResponse(await request.body())
    return PlainTextResponse("gone")


async def large(request: Request):
    return PlainTextResponse("x" * (1 << 24))


class Clock:
    """Stands in for the module `time` of the connections: it goes when it is told."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(connections, "time", made)
    return made


class Running:
    """A server with bounds in a thread, and raw connections to it."""

    def __init__(self, **bounds):
        app = Starlette(routes=[Route("/", echo, methods=["GET", "POST"]), Route("/large", large)])
        kind = type("Protocol", (BoundedProtocol,), {"bounds": Bounds(**bounds), "crowd": Crowd()})
        self.server = uvicorn.Server(uvicorn.Config(app, http=kind, log_level="critical", lifespan="off"))
        self.server.capture_signals = contextlib.nullcontext
        self.listener = _listen("127.0.0.1", 0)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.listener]})
        self.open = []

    def connect(self, data=b""):
        one = socket.create_connection(self.listener.getsockname(), timeout=20)
        self.open.append(one)
        one.sendall(data)
        return one

    def closes(self, one, seconds=20):
        """What arrives until the server closes the connection."""
        one.settimeout(seconds)
        text = b""
        with contextlib.suppress(ConnectionError):
            while chunk := one.recv(1 << 16):
                text += chunk
        return text

    def is_well(self):
        one = self.connect(b"POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello")
        return self.closes(one).endswith(b"\r\n\r\nhello")

    def sweep(self):
        """What the studio's server does every second, in the thread of the loop, when it has read what was sent."""
        assert self.is_well()
        done = threading.Event()
        self.loop.call_soon_threadsafe(lambda: (close_late(self.server.server_state.connections), done.set()))
        assert done.wait(20)

    def __enter__(self):
        real = self.server.startup

        async def startup(sockets=None):
            await real(sockets)
            self.loop = asyncio.get_running_loop()

        self.server.startup = startup
        self.thread.start()
        while not hasattr(self, "loop"):
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        for one in self.open:
            one.close()
        self.server.should_exit = True
        self.thread.join(20)
        self.listener.close()
        assert not self.server.server_state.connections
        assert not self.server.config.http.crowd.of
        assert self.server.config.http.crowd.size == 0


HALF = b"GET / HTTP/1.1\r\nhost: x\r\n"


def test_half_a_header_or_none_is_closed_in_time_and_the_rest_is_answered(clock):
    with Running() as running:
        half, none = running.connect(HALF), running.connect()
        second = running.connect(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n" + HALF)  # half of a second request
        running.sweep()
        clock.now += 9.0
        running.sweep()
        assert len(running.server.server_state.connections) >= 3
        clock.now += 2.0
        running.sweep()
        assert running.closes(half) == b""
        assert running.closes(none) == b""
        assert running.closes(second).startswith(b"HTTP/1.1 200")


def test_a_header_that_trickles_does_not_gain_time(clock):
    with Running() as running:
        one = running.connect(HALF)
        for _ in range(4):
            running.sweep()
            clock.now += 3.0
            one.sendall(b"a: b\r\n")
        running.sweep()
        assert running.closes(one) == b""


def test_a_body_that_stalls_and_an_answer_that_is_not_read_are_closed_in_time(clock):
    with Running() as running:
        stalled = running.connect(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf")
        unread = running.connect(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n")
        slow = running.connect(b"POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 4\r\n\r\n")
        for _ in range(4):
            running.sweep()
            clock.now += 25.0
            slow.sendall(b"x")
        assert running.closes(slow).endswith(b"xxxx")  # slow, but it went on
        running.sweep()
        assert running.closes(stalled) == b""
        assert len(running.closes(unread)) < 1 << 24


@pytest.mark.parametrize(
    "header",
    [b"a: " + b"x" * 5000, b"a: b\r\n" * 900, b"x" * 5000 + b": a", b"a: b\r\n\tfolded" + b"x" * 5000],
    ids=["one value", "many", "a name", "folded"],
)
def test_large_headers_are_refused_before_they_are_kept(header):
    with Running(header_bytes=4096) as running:
        for pieces in (1, 7):
            one, text = running.connect(), HALF + header + b"\r\n\r\n"
            with contextlib.suppress(ConnectionError):
                for k in range(pieces):
                    one.sendall(text[len(text) * k // pieces : len(text) * (k + 1) // pieces])
                    time.sleep(0.02 if pieces > 1 else 0)
            assert running.closes(one)[:13] in (b"HTTP/1.1 431 ", b"HTTP/1.1 400 ", b"")
        assert running.is_well()


def test_a_header_that_never_ends_is_refused_at_the_limit():
    with Running(header_bytes=4096) as running:
        one = running.connect(HALF + b"a: ")
        with contextlib.suppress(ConnectionError):
            for _ in range(2000):
                one.sendall(b"x" * 100)
                time.sleep(0.001)
        assert running.closes(one)[:13] in (b"HTTP/1.1 431 ", b"")
        assert running.is_well()


def test_a_large_header_behind_a_request_that_is_being_answered_is_refused_too():
    with Running(header_bytes=4096) as running:
        one = running.connect(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\na" + HALF)
        with contextlib.suppress(ConnectionError):
            for _ in range(100):
                one.sendall(b"a: " + b"x" * 1000 + b"\r\n")
                time.sleep(0.002)
        assert len(running.closes(one)) < 2000
        assert running.is_well()


def test_one_address_has_a_bounded_number_and_the_oldest_half_requests_go_first():
    with Running(per_address=8) as running:
        text = b"POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 2\r\n\r\na"
        kept = running.connect(text)  # a request that is in work
        assert running.is_well()
        halves = [running.connect(HALF) for _ in range(30)]
        assert running.is_well()
        assert len(running.server.server_state.connections) <= 9
        assert running.closes(halves[0]) == b""
        kept.sendall(b"b")
        assert running.closes(kept).endswith(b"ab")


def test_all_addresses_have_a_bounded_number_and_a_proxy_may_bring_many():
    with Running(per_address=4, overall=12, trusted=frozenset(["127.0.0.1"])) as running:
        for _ in range(30):
            running.connect(HALF)
        assert running.is_well()
        time.sleep(0.05)
        assert 4 < len(running.server.server_state.connections) <= 13


def test_where_all_are_in_work_the_next_is_told_so():
    with Running(per_address=3) as running:
        for _ in range(3):
            one = running.connect(b"POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n")
            assert one.recv(1 << 16).startswith(b"HTTP/1.1 100")  # it is in work
        assert running.closes(running.connect(HALF)).startswith(b"HTTP/1.1 503")


def test_addresses_are_counted_by_networks():
    assert network_of("192.0.2.7") == "192.0.2.7"
    assert network_of("2001:db8::1") == network_of("2001:db8::2") != network_of("2001:db8:0:1::1")
    assert network_of("fe80::1%eth0") == "fe80::/64"
    assert network_of("") == ""


def test_the_server_of_the_studio_has_all_of_these_bounds():
    config = _config(Starlette(), [])
    assert issubclass(config.http, BoundedProtocol)
    assert config.http.bounds.per_address == Bounds().per_address
    assert not config.proxy_headers
    assert _config(Starlette(), ["10.0.0.1"]).http.bounds.trusted == {"10.0.0.1"}
    assert studio_server.Server.on_tick is not uvicorn.Server.on_tick


def test_a_thousand_half_requests_and_a_header_of_82_mebibytes_at_the_studios_own_bounds():
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    try:
        with Running() as running:
            for _ in range(1000):
                running.connect(HALF)
            assert running.is_well()
            assert len(running.server.server_state.connections) <= 513
            one, sent = running.connect(HALF + b"a: "), 0
            with contextlib.suppress(ConnectionError):
                while sent < 82 << 20:
                    one.sendall(b"x" * (1 << 16))
                    sent += 1 << 16
            assert sent < 20 << 20  # refused long before: the rest is what the system had in its buffers
            assert running.is_well()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# Names and addresses


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    app = application(Store(tmp_path_factory.mktemp("server") / "w"), TOKEN, names=["Studio.example.org"])
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("127.0.0.1:8642", 403), ("LOCALHOST", 403), ("[::1]:80", 403), ("studio.example.org", 403), ("testserver", 403), ("localhost.", 403),
        ("evil.example", 400), ("[evil]", 400), ("evil]", 400), ("[::1].evil.example", 400), ("127.0.0.1.evil.example", 400), ("localhost:80@evil", 400), ("", 400), ("10.0.0.1", 400), ("127.0.0.1:x", 400),
    ],
)  # fmt: skip
def test_hosts_are_exactly_the_names_served(studio, host, code):
    assert studio.get("/", headers={"host": host}).status_code == code


def test_the_name_of_the_test_client_is_not_known_elsewhere(studio):
    """The test client is answered because its connection arrived at "testserver", not because the name is known."""
    other = TestClient(studio.app, base_url="http://127.0.0.1")
    assert other.get("/").status_code == 403
    assert other.get("/", headers={"host": "testserver"}).status_code == 400
    assert host_name("testserver") == "testserver"


def test_two_hosts_are_none(studio):
    assert studio.get("/", headers=[("host", "localhost"), ("host", "evil.example")]).status_code == 400


@pytest.mark.parametrize("path", ["//evil.example/", "///evil.example", "/%2F/evil.example", "//evil.example/%2e%2e", "/\\evil.example"])  # fmt: skip
def test_the_redirect_after_the_token_stays_here(studio, path):
    answer = studio.get(f"http://testserver{path}?token={TOKEN}", follow_redirects=False)
    assert answer.status_code == 303
    assert re.match(r"/(?![/\\])", answer.headers["location"])


def test_forwarded_addresses_are_not_believed_unless_told(tmp_path):
    """Each wrong token claims another origin; they are counted as the one they are."""
    store = Store(tmp_path / "w")
    config = _config(application(store, TOKEN), [])
    config.load()
    client = TestClient(config.loaded_app, raise_server_exceptions=False)
    codes = [client.get("/?token=x", headers={"x-forwarded-for": f"10.0.0.{k}"}).status_code for k in range(25)]
    assert codes[-1] == 429
    behind = _config(application(store, TOKEN), ["testclient"])
    behind.load()
    client = TestClient(behind.loaded_app, raise_server_exceptions=False)
    codes = [client.get("/?token=x", headers={"x-forwarded-for": f"10.0.0.{k}"}).status_code for k in range(25)]
    assert codes[-1] == 403
    store.close()


def test_cookies_are_secure_behind_a_proxy_that_encrypts(tmp_path):
    store = Store(tmp_path / "w")
    for proxies, secure in ((["testclient"], True), ([], False)):
        config = _config(application(store, TOKEN), proxies)
        config.load()
        client = TestClient(config.loaded_app, raise_server_exceptions=False)
        headers = {"x-forwarded-proto": "https"}
        cookie = client.get(f"/?token={TOKEN}", headers=headers, follow_redirects=False).headers["set-cookie"]
        assert ("secure" in cookie.lower()) == secure
    store.close()


# Bodies and questions


def test_deep_json_and_halves_of_characters_are_refused(studio):
    browser = Browser(studio)
    poll = browser.send("POST", "/api/polls", json={"title": "Which?", "items": ["a", "b"]}).json()["id"]
    voter = TestClient(studio.app, raise_server_exceptions=False)
    csrf = re.search(r'name="csrf" content="(\w+)"', voter.get(f"/p/{poll}").text).group(1)
    deep = b"[" * 30_000 + b"]" * 30_000
    for body in (deep, b'{"nonce": ' + deep + b"}", b'{"a":' * 10_000 + b"1" + b"}" * 10_000):
        answer = voter.post(f"/p/{poll}/vote", content=body, headers={"x-csrf": csrf})
        assert answer.status_code == 400, answer.text
        assert "deep" in answer.json()["error"]
    for value in ('"\\ud800"', '"a\\udfffb"', '"\\udc00\\ud800"'):
        body = f'{{"title": {value}, "items": ["a", "b"]}}'.encode()
        answer = browser.send("POST", "/api/polls", content=body)
        assert answer.status_code == 400, answer.text
        assert "surrogate" in answer.json()["error"]
    whole = browser.send("POST", "/api/polls", content=b'{"title": "\\ud83e\\udd8a", "items": ["a", "b"]}')
    assert whole.status_code == 201  # a fox, in two halves


@pytest.mark.parametrize("query", ["p.start=/etc/passwd", "p.progress=1", "p.bootstrap=5", "p.random_state=1", "p.engine=x", "p.method=borda", "p.data=x", "p.params=x", "p.weight=x"])  # fmt: skip
def test_what_the_studio_sets_itself_cannot_be_set_by_a_page(tmp_path, query):
    from placet.studio.question import Question
    from placet.studio.tasks.board import board
    from placet.studio.tasks.methods import audit

    path = tmp_path / "votes.csv"
    path.write_text("a,b,winner\nx,y,a\ny,x,a\n")
    name, value = query.split("=")
    for method in ("bradley-terry", "borda", ""):
        asked = vars(Question.from_query({name: value, "method": method}, [], {}))
        for task in (board, audit):
            with pytest.raises(ValueError, match=rf"'{name[2:]}' cannot be set here; the parameters of"):
                task(lambda *_: None, path=str(path), question=asked)


# The command


def test_tokens():
    assert len(_token("", "127.0.0.1", False)) >= 32
    assert _token("short", "127.0.0.1", False) == "short"
    assert _token("x" * 16, "0.0.0.0", False) == "x" * 16
    for host, named in (("0.0.0.0", False), ("127.0.0.1", True)):
        with pytest.raises(ValueError, match=r"15 characters.*16 at least"):
            _token("x" * 15, host, named)
    with pytest.raises(ValueError, match="--token-file"):
        _token("", "0.0.0.0", False)


@pytest.mark.parametrize("port", [99999, 65536, -1])
def test_ports_that_do_not_exist_are_refused(port):
    with pytest.raises(ValueError, match=rf"--port {port} is not in 0..65535"):
        _listen("127.0.0.1", port)


def run_until_ready(tmp_path, *words, **options):
    """Start the command, wait for its address on stdout or stderr, end it; return (stdout, stderr, exit code)."""
    code = "from placet.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", "--no-browser", "--port", "0", "--workspace", str(tmp_path / "w")]
    return subprocess.Popen([*command, *words], stderr=subprocess.PIPE, text=True, **options)


def test_without_a_stdout_the_address_is_said_on_stderr(monkeypatch, capsys):
    """As of a command that is started with its stdout closed: ``placet serve >&-``."""

    async def ready(self, sockets=None):
        pass

    monkeypatch.setattr(uvicorn.Server, "startup", ready)
    monkeypatch.setattr(sys, "stdout", None)
    server = studio_server.Server(
        _config(Starlette(), []), "http://here/?token=secret", browser=False, close=lambda: None
    )
    asyncio.run(server.startup())
    assert "http://here/?token=secret" in capsys.readouterr().err


def test_a_closed_stdout_does_not_end_the_studio_and_any_token_gives_an_address_that_works(tmp_path):
    """The address is then said on stderr; the token has characters that mean something in an address."""
    import httpx

    (tmp_path / "token").write_text("a&b=c#d %41é+/?k\n", encoding="utf-8")
    read, write = os.pipe()
    os.close(read)
    process = run_until_ready(tmp_path, "--token-file", str(tmp_path / "token"), stdout=write)
    os.close(write)
    timer = threading.Timer(120, process.kill)
    timer.start()
    try:
        url = process.stderr.readline().split()[-1]
        with httpx.Client(follow_redirects=True, timeout=60, verify=False) as client:
            assert client.get(url).status_code == 200
            client.cookies.clear()
            assert client.get(url.partition("?")[0]).status_code == 403
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=120)
        timer.cancel()
    assert rest == ""


@pytest.mark.parametrize(
    ("words", "token"),
    [([], "from-the-environment"), (["--token", "given"], "given"), (["--token-file", "token"], "from-a-file")],
)
def test_a_token_comes_from_the_environment_a_file_or_an_option(tmp_path, monkeypatch, words, token):
    from typer.testing import CliRunner

    from placet.cli import app

    given = {}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLACET_TOKEN", "from-the-environment")
    monkeypatch.setattr(studio_server, "serve", lambda files, **options: given.update(options))
    (tmp_path / "token").write_text("from-a-file\nand no more\n")
    assert CliRunner().invoke(app, ["serve", *words, "--name", "x.org", "--proxy", "10.0.0.1"]).exit_code == 0
    assert (given["token"], given["names"], given["proxies"]) == (token, ["x.org"], ["10.0.0.1"])
    (tmp_path / "token").write_text("\n")
    empty = CliRunner().invoke(app, ["serve", "--token-file", "token"])
    assert "first line is empty" in str(empty.exception)


def test_a_signal_answers_those_who_wait_without_a_traceback(tmp_path):
    """A computation that others wait for, an upload and a vote that never end: no traceback, and words for each."""
    import httpx

    process = run_until_ready(tmp_path, stdout=subprocess.PIPE)
    timer = threading.Timer(120, process.kill)
    timer.start()
    url = process.stdout.readline().strip()
    base = url.partition("/?")[0]
    with httpx.Client(follow_redirects=True, timeout=100) as client:
        csrf = re.search(r'name="csrf" content="(\w+)"', client.get(url).text)[1]
        rows = "a,b,winner\n" + "".join(
            f"i{k % 50},i{(k * 7 + 1) % 50},a\n" for k in range(2000) if k % 50 != (k * 7 + 1) % 50
        )
        sent = client.post(f"{base}/api/data", content=rows.encode(), headers={"x-csrf": csrf, "x-name": "v.csv"})
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    own = f"HTTP/1.1\r\nhost: 127.0.0.1\r\ncookie: {cookie}\r\nx-csrf: {csrf}\r\n"
    slow = f"/board/{sent.json()['id']}/export.csv?method=bradley-terry&bootstrap=5000"
    requests = [f"GET {slow} {own}\r\n", f"GET {slow}&seed=1 {own}\r\n"]
    requests += [
        f"POST {path} {own}x-name: half.csv\r\ncontent-length: 100\r\n\r\nx" for path in ("/api/polls", "/api/data")
    ]
    port = int(base.rpartition(":")[2])
    some = [socket.create_connection(("127.0.0.1", port), timeout=100) for _ in requests]
    for one, text in zip(some, requests):
        one.sendall(text.encode())
    while not list((tmp_path / "w" / "incoming").iterdir()):  # until the last of them is being read
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(signal.SIGTERM)
    answers = []
    for one in some:
        with one, one.makefile("rb") as file:
            answers.append(file.read().decode())
    _, said = process.communicate(timeout=100)
    timer.cancel()
    assert "Traceback" not in said
    assert len(said.splitlines()) <= 1  # the server's own line on the two that never end
    assert process.returncode == 0
    assert [answer.split()[1] for answer in answers] == ["422", "422", "503", "503"]
    assert all("the studio is being closed" in answer for answer in answers)
