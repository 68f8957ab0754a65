"""The server that runs the studio: prints its address when it is ready, and shuts down cleanly."""

import asyncio
import contextlib
import secrets
import signal
import socket
import sys
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import quote

import uvicorn
from uvicorn.config import LOGGING_CONFIG

from placet.studio.app import MOST_UPLOAD, application
from placet.studio.connections import BoundedProtocol, Crowd, close_late
from placet.studio.security import LEAST_TOKEN, network_of
from placet.studio.store import Store

AT_ONCE = 64
"""Connections accepted before the first of them is looked at, and counted."""

RESERVED_FILES = 64 + 2 * AT_ONCE
"""Open files besides the connections that are counted: database, uploads, pipes, connections just come or gone."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Server(uvicorn.Server):
    """A server that prints its address when it is ready, and shuts down on a signal without raising it again."""

    def __init__(self, config: uvicorn.Config, url: str, browser: bool, close: Callable[[], None]) -> None:
        """``close`` is called when the server is to shut down, while requests are still being answered."""
        super().__init__(config)
        self.url, self.browser, self.close = url, browser, close
        self.handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    async def startup(self, sockets: list[Any] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or []:
            listener.listen(2048)  # of those who wait in the system, there may be more than are accepted at once
        asyncio.get_running_loop().set_exception_handler(_tell_in_a_line)
        try:
            if sys.stdout is None:
                raise OSError("no stdout")
            print(self.url, flush=True)
        except (OSError, ValueError):  # stdout is closed, or there is none
            say_on_stderr(f"placet: the studio is ready; stdout is closed, so here is its address: {self.url}")
        if self.browser:
            webbrowser.open(self.url)

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:  # once a second
            close_late(self.server_state.connections)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[Any] | None = None) -> None:
        await asyncio.to_thread(self.close)  # first, so that those who wait have an answer
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """On a signal, call the handler that was installed before the server's, then shut down cleanly."""
        before = {number: signal.getsignal(number) for number in self.handlers}  # asyncio's, which would cancel it

        def end(number: int, frame: FrameType | None) -> None:
            handler = self.handlers[signal.Signals(number)]
            if callable(handler):
                with contextlib.suppress(KeyboardInterrupt):
                    handler(number, frame)
            self.handle_exit(number, frame)

        for number in before:
            signal.signal(number, end)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _tell_in_a_line(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report what the system refuses, such as one more open file, without a traceback."""
    error = context.get("exception")
    if isinstance(error, OSError):
        say_on_stderr(f"placet: {context.get('message', 'connection')}: {error.strerror}")
    else:
        loop.default_exception_handler(context)


def say_on_stderr(words: str) -> None:
    """Print on stderr, if there is one."""
    with contextlib.suppress(OSError, AttributeError, ValueError):
        print(words, file=sys.stderr, flush=True)


def serve(
    files: Sequence[Path],
    *,
    workspace: Path,
    join: bool = False,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str = "",
    names: Sequence[str] = (),
    proxies: Sequence[str] = (),
    browser: bool = True,
    most_upload: int = MOST_UPLOAD,
) -> None:
    """Run the studio until it is interrupted; its address is printed on stdout when it is ready.

    ``join`` reads the files as one dataset.  ``names`` are further names by which browsers call it; ``proxies`` are
    addresses whose X-Forwarded-For and X-Forwarded-Proto are believed.
    """
    token = _token(token, host, bool(names or proxies))
    listener = _listen(host, port)
    try:
        store = Store(workspace)
    except BaseException:
        listener.close()
        raise
    opened = [store.add_file(path) for path in files]
    if join:
        opened = [store.join([data.id for data in opened])]
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{listener.getsockname()[1]}/?token={quote(token, safe='')}"
    app = application(store, token, most_upload=most_upload, names=[*_own_names(host), *names], opened=opened)
    Server(_config(app, proxies), url, browser, app.state.jobs.close).run(sockets=[listener])


def _token(token: str, host: str, named: bool) -> str:
    """The token, or a new one; one that is missing or short is refused if the studio is opened to others."""
    if host not in LOOPBACK and not token:
        raise ValueError(
            f"--host {host} opens the studio to others: the polls to anybody, all else to whoever has the token; "
            "choose one with --token-file FILE or PLACET_TOKEN"
        )
    if token and len(token) < LEAST_TOKEN and (host not in LOOPBACK or named):
        raise ValueError(
            f"the token has {len(token)} characters, which others can guess; take {LEAST_TOKEN} at least, such as "
            f"{secrets.token_urlsafe(24)}"
        )
    return token or secrets.token_urlsafe(24)


def _own_names(host: str) -> list[str]:
    """The names of this machine by which a studio that is open to others is called."""
    return [] if host in LOOPBACK else [host, socket.gethostname(), socket.getfqdn()]


def _config(app: Any, proxies: Sequence[str]) -> uvicorn.Config:
    trusted = frozenset(map(network_of, proxies))
    overall = _raise_file_limit()
    bounds = replace(BoundedProtocol.bounds, trusted=trusted, overall=min(BoundedProtocol.bounds.overall, overall))
    return uvicorn.Config(
        app,
        http=type("StudioProtocol", (BoundedProtocol,), {"bounds": bounds, "crowd": Crowd()}),
        ws="none",
        log_config=LOGGING_CONFIG if sys.stdout is not None else None,  # its formatters ask for the terminal
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        backlog=AT_ONCE,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=1,
    )


def _raise_file_limit() -> int:
    """Allow as many open files as the system does; returns the number of connections that they suffice for."""
    try:
        import resource
    except ImportError:  # a system without such limits
        return 1 << 16
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = hard if hard != resource.RLIM_INFINITY else 1 << 16
    if soft < most:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 1 << 16), hard))
            soft = min(most, 1 << 16)
    return max(64, soft - RESERVED_FILES)


def _listen(host: str, port: int) -> socket.socket:
    way_out = "choose another with --port, or --port 0 for any that is free"
    if not 0 <= port <= 65535:
        raise ValueError(f"--port {port} is not in 0..65535; {way_out}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # lets asyncio send without delay
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise ValueError(f"cannot listen on {host} port {port} ({error.strerror}); {way_out}") from None
    return listener
