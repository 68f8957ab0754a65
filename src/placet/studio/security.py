"""Access control: a token in the URL, then a cookie; a CSRF token on every write; a strict policy on every page.

Paths under ``/p/`` (polls) and ``/static/`` are open to anyone who can reach the port; all others are the owner's.
"""

import asyncio
import hashlib
import hmac
import ipaddress
import re
import time
from collections import OrderedDict
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

OPEN = ("/p/", "/static/")
SAFE = ("GET", "HEAD", "OPTIONS")
MOST_TEXT = 1 << 20
MOST_GUESSES = 20
LOCAL_NAMES = frozenset(("127.0.0.1", "localhost", "::1"))
CLOSING = "the studio is being closed; start it again and ask then"
LEAST_TOKEN = 16
"""Characters of a token that opens the studio to others."""

PLOT_STYLES = (  # hashes of the style elements that the vendored Observable Plot adds to its charts
    "'sha256-jSYQUrW7J0b3jPqhZP9C2Xh1PyJKHKXd4s0fpGGKrww='",
    "'sha256-/jg3HOQ97BIOLIR7iXhepLJanBbw11P39q1Ne1E+6Jc='",
)
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        f"style-src 'self' {' '.join(PLOT_STYLES)}",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s:/\[\]@]+))(?::\d{1,5})?")
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


class Keys:
    """Keys derived from the token: the owner's cookie and the CSRF token of writes."""

    def __init__(self, token: str, secret: str) -> None:
        self.token, self._secret = token, secret.encode()
        self.cookie = "placet_" + hashlib.sha256(token.encode()).hexdigest()[:8]
        self.session = self.sign("session", token)

    def sign(self, *parts: str) -> str:
        """A signature that only this workspace can produce."""
        return hmac.new(self._secret, "\0".join(parts).encode(), hashlib.sha256).hexdigest()

    def csrf(self, who: str) -> str:
        """The CSRF token that every write by a person must carry."""
        return self.sign("csrf", who)

    def is_token(self, text: str) -> bool:
        return same(text, self.token)

    def is_owner(self, request: Request) -> bool:
        return same(request.cookies.get(self.cookie, ""), self.session)


def same(one: str, other: str) -> bool:
    """Whether two strings are equal, compared in constant time."""
    return hmac.compare_digest(one.encode(), other.encode())


class Rate:
    """Rate limit: at most ``most`` events per key within ``seconds``."""

    def __init__(self, most: int, seconds: float, most_keys: int = 10_000) -> None:
        self.most, self.seconds, self._most_keys = most, seconds, most_keys
        self._begun: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def allows(self, key: str) -> bool:
        """Count an event and return whether it is within the limit."""
        now = time.monotonic()
        start, count = self._begun.pop(key, (now, 0))
        if now - start > self.seconds:
            start, count = now, 0
        self._begun[key] = (start, count + 1)
        while len(self._begun) > self._most_keys:
            self._begun.popitem(last=False)
        return count < self.most

    def is_spent(self, key: str) -> bool:
        """Whether the limit is reached; does not count an event."""
        start, count = self._begun.get(key, (0.0, 0))
        return count >= self.most and time.monotonic() - start <= self.seconds


def refusal(status: int, words: str) -> Response:
    """An error response with a message."""
    return JSONResponse({"error": words}, status_code=status)


def address(request: Request) -> str:
    """The address that limits count: that of the client, or its network of 64 bits, which is one client's own."""
    return network_of(request.client.host if request.client else "")


def network_of(host: str) -> str:
    """An address as limits count it.

    >>> network_of("192.0.2.7"), network_of("2001:db8:1:2:3:4:5:6")
    ('192.0.2.7', '2001:db8:1:2::/64')
    """
    if ":" not in host:
        return host
    try:
        return str(ipaddress.ip_network((host.partition("%")[0], 64), strict=False))
    except ValueError:
        return host


def host_name(header: str) -> str | None:
    """The name in a Host header, in lower case and without the port; None if it is malformed.

    >>> host_name("Localhost:8642"), host_name("[::1]:80"), host_name("evil]:1")
    ('localhost', '::1', None)
    """
    match = _HOST.fullmatch(header.strip().lower())
    return None if match is None else (match[1] or match[2].rstrip("."))


class Guard:
    """Middleware before every route: checks the host and the tokens, and sets security headers."""

    def __init__(self, app: ASGIApp, keys: Keys, names: frozenset[str]) -> None:
        """``names`` are those by which the studio is called, besides the address at which a connection arrived."""
        self.app, self.keys, self.names = app, keys, names
        self.guesses = Rate(MOST_GUESSES, 60)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        answer = self._refuse(request)

        begun = False

        async def with_headers(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if not scope["path"].startswith("/static/"):
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            await (answer or self.app)(scope, receive, with_headers)
        except asyncio.CancelledError:  # the server shuts down, and a client still owes its body or reads no answer
            if not begun:
                await refusal(503, CLOSING)(scope, receive, with_headers)

    def _refuse(self, request: Request) -> Response | None:
        """The error response to a request that is refused; None if it may pass."""
        path, headers = request.scope["path"], Headers(scope=request.scope)
        hosts, server = headers.getlist("host"), request.scope.get("server")
        name = host_name(hosts[0]) if len(hosts) == 1 else None
        if name is None or (name not in self.names and (server is None or name != server[0])):
            called = ", ".join(hosts)[:100]
            return refusal(400, f"the studio is not called {called!r}; if it should be, start it with --name")
        if path.startswith(OPEN):
            return None
        if "token" in request.query_params:
            return self._enter(request)
        if not self.keys.is_owner(request):
            return refusal(403, "open the studio with the address that `placet serve` printed, with its token")
        if request.method not in SAFE and not same(headers.get("x-csrf", ""), self.keys.csrf(self.keys.session)):
            return refusal(403, "this write carries no valid token of this studio; load the page again")
        return None

    def _enter(self, request: Request) -> Response:
        """Turn a valid token in the URL into a cookie, and redirect to the URL without it."""
        who = address(request)
        if self.guesses.is_spent(who):
            return refusal(429, "too many wrong tokens; wait a minute")
        if request.method not in SAFE or not self.keys.is_token(request.query_params["token"]):
            self.guesses.allows(who)
            return refusal(403, "the token is wrong; it is in the address that `placet serve` printed")
        rest = [(k, v) for k, v in parse_qsl(request.url.query, keep_blank_values=True) if k != "token"]
        path = "/" + request.url.path.lstrip("/")  # two slashes would begin the name of another host
        answer = RedirectResponse(path + ("?" + urlencode(rest) if rest else ""), status_code=303)
        answer.set_cookie(
            self.keys.cookie,
            self.keys.session,
            httponly=True,
            samesite="strict",
            path="/",
            secure=is_encrypted(request),
        )
        return answer


def is_encrypted(request: Request) -> bool:
    """Whether the browser came by TLS, to a proxy that is believed."""
    return bool(request.url.scheme == "https")
