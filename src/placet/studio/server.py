"""The server that runs the studio: prints its address when it is ready, and shuts down cleanly."""

import contextlib
import secrets
import signal
import socket
import webbrowser
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from placet.studio.app import MOST_UPLOAD, application
from placet.studio.store import Store

LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Server(uvicorn.Server):
    """A server that prints its address when it is ready, and shuts down on a signal without raising it again."""

    def __init__(self, config: uvicorn.Config, url: str, browser: bool) -> None:
        super().__init__(config)
        self.url, self.browser = url, browser
        self.handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    async def startup(self, sockets: list[Any] | None = None) -> None:
        await super().startup(sockets)
        print(self.url, flush=True)
        if self.browser:
            webbrowser.open(self.url)

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


def serve(
    files: Sequence[Path],
    *,
    workspace: Path,
    join: bool = False,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str = "",
    browser: bool = True,
    most_upload: int = MOST_UPLOAD,
) -> None:
    """Run the studio until it is interrupted; its address is printed on stdout when it is ready.

    ``join`` reads the files as one dataset.
    """
    to_others = host not in LOOPBACK
    if to_others and not token:
        raise ValueError(
            f"--host {host} opens the studio to others: the polls to anybody, all else to whoever has the token; "
            "choose one with --token"
        )
    token = token or secrets.token_urlsafe(24)
    listener = _listen(host, port)
    store = Store(workspace)
    opened = [store.add_file(path) for path in files]
    if join:
        opened = [store.join([data.id for data in opened])]
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{listener.getsockname()[1]}/?token={token}"
    app = application(store, token, most_upload=most_upload, to_others=to_others, opened=opened)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=1,
    )

    Server(config, url, browser).run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # lets asyncio send without delay
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        way_out = "choose another with --port, or --port 0 for any that is free"
        raise ValueError(f"cannot listen on {host} port {port} ({error.strerror}); {way_out}") from None
    return listener
