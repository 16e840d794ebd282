"""Who may use the desk: whoever has its token, in a browser that was led there by nobody else.

token in the address, once        →  a cookie (HttpOnly, SameSite=Strict)
Host                              is this machine: no other name can be made to point here
Origin, and a token in each form  of what changes or reads rows: no other page can send it
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Awaitable, Callable
from hmac import compare_digest
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from traceless.pages import style

MOST = 256 * 2**20  # bytes of a request
_STYLE = base64.b64encode(hashlib.sha256(style().encode()).digest()).decode()
HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'self' 'sha256-{_STYLE}'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


class Guard:
    """The checks of every request, before anything of it is read.

    Parameters
    ----------
    token : str
    port : int
    """

    def __init__(self, token: str, port: int) -> None:
        self.token = token
        names = "127.0.0.1", "localhost"
        self._hosts = {f"{name}:{port}" for name in names}
        self._hosts |= set(names) if port == 80 else set()  # which a browser leaves out
        self._cookie = f"traceless-{port}"  # cookies know no ports
        self.form_token = hashlib.sha256(f"form {token}".encode()).hexdigest()

    async def __call__(
        self, request: Request, proceed: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        """Answer a request, or refuse it."""
        response = self._refusal(request) or await proceed(request)
        response.headers.update(HEADERS)
        return response

    def _refusal(self, request: Request) -> Response | None:
        host, given = request.headers.get("host", ""), request.query_params.get("token")
        if host not in self._hosts:
            return PlainTextResponse("This is the desk of another machine.", 421)
        if given is not None and request.url.path == "/" and self._is(given, self.token):
            opened = RedirectResponse("/", 303)
            opened.set_cookie(self._cookie, self.token, httponly=True, samesite="strict")
            return opened
        if not self._is(request.cookies.get(self._cookie, ""), self.token):
            said = (
                "Open the address that traceless serve printed: it has a token, this one does not."
            )
            return PlainTextResponse(said, 403)
        length = request.headers.get("content-length", "0")
        if request.method == "POST" and request.headers.get("origin") != f"http://{host}":
            return PlainTextResponse("This form came from another page. Nothing was changed.", 403)
        if not length.isdecimal() or int(length) > MOST or "transfer-encoding" in request.headers:
            return PlainTextResponse("This is too much for the desk. Nothing was changed.", 413)
        return None

    def is_ours(self, form: Any) -> bool:
        """Whether a form is one of the desk."""
        return self._is(str(form.get("form_token", "")), self.form_token)

    @staticmethod
    def _is(given: str, expected: str) -> bool:
        return compare_digest(given.encode(), expected.encode())
