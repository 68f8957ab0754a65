"""Connections of the server: bounded in time, in the size of their headers, and in number for each address.

A client that sends half of a request, one byte at a time or nothing at all costs a socket for a few seconds.  When one
address has too many connections, those are closed first that have waited longest for a whole header.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from placet.studio.security import network_of

TOO_LARGE = "the header of this request is too large"


@dataclass(frozen=True)
class Bounds:
    """Seconds, bytes and numbers that a connection may take."""

    header_seconds: float = 10.0
    idle_seconds: float = 60.0
    header_bytes: int = 1 << 16
    per_address: int = 512
    overall: int = 4096
    trusted: frozenset[str] = frozenset()
    """Addresses of proxies, which bring the connections of many."""


class Crowd:
    """The open connections of each address, in the order in which they came."""

    def __init__(self) -> None:
        self.of: dict[str, dict[BoundedProtocol, None]] = {}
        self.size = 0

    def add(self, one: "BoundedProtocol") -> None:
        self.of.setdefault(one.key, {})[one] = None
        self.size += 1

    def remove(self, one: "BoundedProtocol") -> None:
        own = self.of.get(one.key, {})
        if one in own:
            del own[one]
            self.size -= 1
            if not own:
                del self.of[one.key]

    def make_room(self, new: "BoundedProtocol") -> None:
        """Close a connection if there are too many: of the address of a new one, or of all.

        The first to go is the oldest that is not being answered: of those that owe a request, else of the idle ones.
        """
        own, bounds = self.of[new.key], new.bounds
        crowded = len(own) > bounds.per_address and new.key not in bounds.trusted
        if not crowded and self.size <= bounds.overall:
            return
        for owes in (True, False):
            for group in [own] if crowded else self.of.values():
                for one in group:
                    if one is not new and not one.answering and (one.parsing != "between") == owes:
                        one.end()
                        return
        new.refuse(503, "too many connections; try again in a moment")


class BoundedProtocol(HttpToolsProtocol):
    """HTTP/1.1 within bounds; ``parsing`` is what the client is to send next: a header, a body, or nothing yet.

    A server has a subclass with bounds and a crowd of its own.
    """

    bounds = Bounds()
    crowd = Crowd()

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.key = network_of(self.client[0] if self.client else "")
        self.parsing, self.since, self.heard = "header", time.monotonic(), time.monotonic()
        self.fed = self.kept = self.unsent = 0
        self.crowd.add(self)
        self.crowd.make_room(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.crowd.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        before, self.heard = self.parsing, time.monotonic()
        super().data_received(data)
        self.fed = self.fed + len(data) if before == self.parsing == "header" else 0
        if self.fed > self.bounds.header_bytes and not self.transport.is_closing():
            self.refuse(431, TOO_LARGE)

    # Steps of a request, as the parser tells them

    def on_message_begin(self) -> None:
        if self.parsing != "header":
            self.parsing, self.since = "header", time.monotonic()
        self.kept = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(name + value)
        super().on_header(name, value)

    def _count(self, part: bytes) -> None:
        self.kept += len(part) + 4
        if self.kept > self.bounds.header_bytes:
            raise ValueError(TOO_LARGE)  # ends the parsing, as a malformed request does

    def on_headers_complete(self) -> None:
        self.parsing = "body"
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self.parsing = "between"
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if self.parsing == "body":
            self.since = time.monotonic()
        super().on_response_complete()

    # The end

    def send_400_response(self, msg: str) -> None:
        if self.kept > self.bounds.header_bytes:
            self.refuse(431, TOO_LARGE)
        else:
            super().send_400_response(msg)

    def end(self) -> None:
        """Close without a word; it is counted no more from now on."""
        self.crowd.remove(self)
        self.transport.abort()

    def refuse(self, status: int, words: str) -> None:
        """Answer in one line and close."""
        self.crowd.remove(self)
        text = words.encode()
        head = b"content-type: text/plain; charset=utf-8\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(text)
        self.transport.write(STATUS_LINE[status] + head + text)
        self.transport.close()

    @property
    def answering(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def is_late(self, now: float) -> bool:
        """Whether the client has taken too long over its header, its body, or reading the answer."""
        unsent = self.transport.get_write_buffer_size()
        if unsent != self.unsent:
            self.unsent, self.heard = unsent, now  # something was read, or more was written
        if self.parsing in ("header", "body") and not self.answering:  # a body that nobody waits for any more
            return now - self.since > self.bounds.header_seconds
        waits = unsent > 0 or (self.parsing == "body" and not self.flow.read_paused)
        return waits and now - self.heard > self.bounds.idle_seconds


def close_late(connections: Iterable[Any]) -> None:
    """Close the connections of clients that are too slow; called every second."""
    now = time.monotonic()
    for one in list(connections):
        if isinstance(one, BoundedProtocol) and one.is_late(now):
            one.end()
