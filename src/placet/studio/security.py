"""Who may do what: a token in the address, then a cookie; a second token on every write; a strict policy on every page.

Paths under ``/p/`` (polls) and ``/static/`` are open to everybody who reaches the port; all others are the owner's.
"""

import hashlib
import hmac
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
LOCAL_HOSTS = frozenset(("127.0.0.1", "localhost", "[::1]", "testserver"))
PLOT_STYLES = (  # of the style elements that the vendored Observable Plot adds to its charts
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
    """What is derived from the token: the cookie of the owner and the second token of writes."""

    def __init__(self, token: str, secret: str) -> None:
        self.token, self._secret = token, secret.encode()
        self.cookie = "placet_" + hashlib.sha256(token.encode()).hexdigest()[:8]
        self.session = self.sign("session", token)

    def sign(self, *parts: str) -> str:
        """A text that only this workspace can make."""
        return hmac.new(self._secret, "\0".join(parts).encode(), hashlib.sha256).hexdigest()

    def csrf(self, who: str) -> str:
        """The token that every write of a person must carry."""
        return self.sign("csrf", who)

    def is_token(self, text: str) -> bool:
        return same(text, self.token)

    def is_owner(self, request: Request) -> bool:
        return same(request.cookies.get(self.cookie, ""), self.session)


def same(one: str, other: str) -> bool:
    """Equality in constant time."""
    return hmac.compare_digest(one.encode(), other.encode())


class Rate:
    """At most ``most`` events for each key within ``seconds``."""

    def __init__(self, most: int, seconds: float, most_keys: int = 10_000) -> None:
        self.most, self.seconds, self._most_keys = most, seconds, most_keys
        self._begun: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def allows(self, key: str) -> bool:
        """Count one more event, and say whether it is within the limit."""
        now = time.monotonic()
        start, count = self._begun.pop(key, (now, 0))
        if now - start > self.seconds:
            start, count = now, 0
        self._begun[key] = (start, count + 1)
        while len(self._begun) > self._most_keys:
            self._begun.popitem(last=False)
        return count < self.most

    def is_spent(self, key: str) -> bool:
        """Whether nothing more is allowed now; nothing is counted."""
        start, count = self._begun.get(key, (0.0, 0))
        return count >= self.most and time.monotonic() - start <= self.seconds


def refusal(status: int, words: str) -> Response:
    """A refusal in words."""
    return JSONResponse({"error": words}, status_code=status)


def address(request: Request) -> str:
    return request.client.host if request.client else ""


class Guard:
    """The gate before every route: the host, the token, the second token of writes, the size of bodies, headers."""

    def __init__(self, app: ASGIApp, keys: Keys, hosts: frozenset[str] | None) -> None:
        """``hosts``: names by which the studio may be called; None for any, where it is open to others."""
        self.app, self.keys, self.hosts = app, keys, hosts
        self.guesses = Rate(MOST_GUESSES, 60)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        answer = self._refuse(request)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if not scope["path"].startswith("/static/"):
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await (answer or self.app)(scope, receive, with_headers)

    def _refuse(self, request: Request) -> Response | None:
        """Why a request may not pass, as an answer; None where it may."""
        path, headers = request.scope["path"], Headers(scope=request.scope)
        host = headers.get("host", "").rsplit(":", 1)[0] if "]" not in headers.get("host", "") else "[::1]"
        if self.hosts is not None and host not in self.hosts:
            return refusal(400, f"the studio is not called {host!r}")
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
        """A right token in the address becomes a cookie; it leaves the address at once."""
        who = address(request)
        if self.guesses.is_spent(who):
            return refusal(429, "too many wrong tokens; wait a minute")
        if request.method not in SAFE or not self.keys.is_token(request.query_params["token"]):
            self.guesses.allows(who)
            return refusal(403, "the token is wrong; it is in the address that `placet serve` printed")
        rest = [(k, v) for k, v in parse_qsl(request.url.query, keep_blank_values=True) if k != "token"]
        answer = RedirectResponse(request.url.path + ("?" + urlencode(rest) if rest else ""), status_code=303)
        answer.set_cookie(self.keys.cookie, self.keys.session, httponly=True, samesite="strict", path="/")
        return answer
