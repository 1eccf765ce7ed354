"""viser's server on this machine, with checks of the requests.

A page of another site in the same browser can reach a server on localhost. Each request must therefore name this
machine as its host, which excludes foreign names that were rebound to it, and must come from a page of this server.
With a token it must also contain the token, which other users of this machine do not know.
"""

from __future__ import annotations

import contextlib
import functools
import hmac
import io
import logging
import re
import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

from geomctrl.arguments import instance
from geomctrl.errors import ArgumentError

HOST = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]+)?", re.IGNORECASE)  # this machine, by its own names
MIN_TOKEN = 16  # characters: shorter tokens could be guessed

_starting = threading.Lock()


def serve(port: int = 0, token: str | None = None) -> Any:
    """Return viser's server, which listens on this machine only and answers only its own pages; port 0: any free port.

    token: a secret that users of the page must know. Raises ImportError without the extra, or with a version of viser
    whose requests can not be checked.
    """
    try:
        import viser
    except ImportError as error:
        raise ImportError("robots in three dimensions need viser: pip install 'geomctrl[view]'") from error
    logging.getLogger("websockets.server").setLevel(logging.CRITICAL)  # do not log disconnecting browsers
    with contextlib.redirect_stdout(io.StringIO()), _guarded(token) as guards:
        server = viser.ViserServer(host="127.0.0.1", port=port, verbose=False)
        if not guards:
            server.stop()
            raise ImportError(
                f"viser {viser.__version__}: its requests can not be checked: pip install 'geomctrl[view]'"
            )
    return server


def stop(server: Any) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        server.stop()


def checked_token(token: object) -> str | None:
    """Return token; raises ArgumentError unless it is None or a secret that a URL can contain."""
    if token is None:
        return None
    text = instance("token", token, str, f"None or at least {MIN_TOKEN} letters, digits, '-' or '_'")
    if len(text) < MIN_TOKEN or not text.isascii() or not text.replace("-", "").replace("_", "").isalnum():
        raise ArgumentError(
            f"token: expected None or at least {MIN_TOKEN} letters, digits, '-' or '_', as of secrets.token_urlsafe(),"
            f" got {len(text)} characters"
        )
    return text


@contextlib.contextmanager
def _guarded(token: str | None) -> Iterator[list[Any]]:
    """Make servers that are started in this context check requests; yields a list of their checks.

    viser has no argument for it, so this replaces `websockets.asyncio.server.serve`, which viser calls.
    """
    import websockets.asyncio.server as library

    guards: list[Any] = []
    with _starting:
        original = library.serve

        @functools.wraps(original)
        def guarded(*args: Any, process_request: Any = None, **kwargs: Any) -> Any:
            guards.append(functools.partial(_answer, token, process_request))
            return original(*args, process_request=guards[-1], **kwargs)

        library.serve = guarded  # pyright: ignore[reportAttributeAccessIssue]
        try:
            yield guards
        finally:
            library.serve = original  # pyright: ignore[reportAttributeAccessIssue]


def _answer(token: str | None, inner: Callable[[Any, Any], Any] | None, connection: Any, request: Any) -> Any:
    """The response to a request, or None to let a websocket open."""
    if why := _refusal(request.headers):
        return connection.respond(HTTPStatus.FORBIDDEN, f"{why}\n")
    cookie = f"geomctrl_{connection.local_address[1]}"
    shown = parse_qs(request.path.partition("?")[2]).get("token", [])
    if token is not None and not _is_valid_token(token, [*shown, *_cookies(request.headers, cookie)]):
        return connection.respond(HTTPStatus.FORBIDDEN, "open the address that geomctrl printed, with its token\n")
    response = inner(connection, request) if inner else None
    if response is not None and token is not None:
        response.headers["Set-Cookie"] = f"{cookie}={token}; Path=/; HttpOnly; SameSite=Strict"
    return response


def _refusal(headers: Any) -> str:
    """Why a request with these headers is refused, or an empty string."""
    hosts, origins = headers.get_all("Host"), headers.get_all("Origin")
    if len(hosts) != 1 or not HOST.fullmatch(hosts[0]):
        return "this page is served to localhost, 127.0.0.1, ::1 alone"
    if origins not in ([], [f"http://{hosts[0]}"], [f"https://{hosts[0]}"]):  # only browsers send an origin
        return "this page answers no page of another origin"
    return ""


def _cookies(headers: Any, name: str) -> list[str]:
    pairs = [x.partition("=") for line in headers.get_all("Cookie") for x in line.split(";")]
    return [value.strip() for key, _, value in pairs if key.strip() == name]


def _is_valid_token(token: str, shown: list[str]) -> bool:
    return any(hmac.compare_digest(token.encode(), x.encode(errors="replace")) for x in shown)
