"""Access to a live view: only its own page, and with a token only users who know it."""

import contextlib
import http.client
import secrets
import socket
import urllib.error
import urllib.request
from types import SimpleNamespace

import pytest

import geomctrl as gc
from geomctrl.viewing import server as guarded

viser = pytest.importorskip("viser")
client = pytest.importorskip("websockets.sync.client")
exceptions = pytest.importorskip("websockets.exceptions")

TOKEN = secrets.token_urlsafe()


@pytest.fixture(scope="module")
def port():
    with gc.LiveView(port=0) as view:
        yield view._server.get_port()


@pytest.fixture(scope="module")
def secret():
    with gc.LiveView(port=0, token=TOKEN) as view:
        yield view


def get(port, path="/", **headers):
    """(status, headers, content) of a request with these headers alone; lists give one more than once."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        connection.putrequest("GET", path, skip_host=True)
        for name, values in headers.items():
            for value in [values] if isinstance(values, str) else values:
                connection.putheader(name, value)
        connection.endheaders()
        with connection.getresponse() as answer:
            return answer.status, answer.headers, answer.read()


def websocket(port, host=None, cookie=None, **options):
    """The status of a websocket's handshake: 101 where it opens. host: as of a name that was rebound to here."""
    options |= {"additional_headers": {"Cookie": cookie} if cookie else None, "open_timeout": 20, "proxy": None}
    address, protocol = f"ws://{host or 'localhost'}:{port}", f"viser-v{viser.__version__}"
    with socket.create_connection(("127.0.0.1", port)) as sock:
        try:
            with client.connect(address, sock=sock, subprotocols=[protocol], **options):
                return 101
        except exceptions.InvalidStatus as refused:
            return refused.response.status_code


def test_the_own_page_and_programs_of_this_machine_connect(port):
    for host in ("localhost", "127.0.0.1", "[::1]"):
        status, _, content = get(port, Host=f"{host}:{port}")
        assert status == 200
        assert b"<html" in content
        assert get(port, Host=f"{host}:{port}", Origin=f"http://{host}:{port}")[0] == 200
    assert get(port, Host="localhost:9000", Origin="http://localhost:9000")[0] == 200  # through a tunnel
    assert websocket(port, origin=f"http://localhost:{port}") == 101
    assert websocket(port) == 101


ORIGINS = ["https://evil.example", "http://localhost:1", "http://localhost", "null", "", "file://",
           "http://localhost:{port}.evil.example",
           "http://127.0.0.1:{port}", "http://user@localhost:{port}"]  # fmt: skip


@pytest.mark.parametrize("origin", ORIGINS)
def test_pages_of_other_origins_are_refused(port, origin):
    origin = origin.format(port=port)
    assert get(port, Host=f"localhost:{port}", Origin=origin)[0] == 403
    if origin:
        assert websocket(port, origin=origin) == 403


HOSTS = ["evil.example", "evil.example:8080", "localhost.evil.example", "10.0.0.1", "[", "", "evil@localhost",
         "localhost/evil", "localhost:1:2"]  # fmt: skip


@pytest.mark.parametrize("host", HOSTS)
def test_names_that_were_rebound_to_this_machine_are_refused(port, host):
    assert get(port, Host=host, Origin=f"http://{host}")[0] == 403
    assert get(port, Host=host)[0] == 403


def test_a_request_names_one_host_and_at_most_one_origin(port):
    assert get(port)[0] == 403
    assert get(port, Host=["localhost", "evil.example"])[0] == 403
    assert get(port, Host="localhost", Origin=["http://localhost", "https://evil.example"])[0] == 403
    assert websocket(port, host="evil.example", origin=f"http://evil.example:{port}") == 403


def test_a_token_is_asked_for_once_and_kept_in_a_cookie(secret):
    port = secret._server.get_port()
    host = f"localhost:{port}"
    own = f"http://{host}"
    assert secret.address == f"{own}/?token={TOKEN}"
    for path in ("/", "/?token=", f"/?token={TOKEN[:-1]}", f"/?token={TOKEN}x", "/?token=%ff%00", f"/{TOKEN}", "//[x"):
        status, headers, content = get(port, path, Host=host)
        assert status == 403
        assert "Set-Cookie" not in headers
        assert TOKEN.encode() not in content
    assert websocket(port, origin=own) == 403
    status, headers, _ = get(port, f"/?token={TOKEN}", Host=host)
    assert status == 200
    cookie, *attributes = headers["Set-Cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Strict"} <= set(attributes)
    assert get(port, Host=host, Cookie=cookie)[0] == 200
    assert get(port, Host=host, Cookie=f"other=1; {cookie}; one more")[0] == 200
    assert get(port, Host=host, Cookie=f"other={TOKEN}")[0] == 403
    assert websocket(port, origin=own, cookie=cookie) == 101
    assert websocket(port, origin="https://evil.example", cookie=cookie) == 403
    with urllib.request.urlopen(secret.address, timeout=20) as answer:
        assert b"<html" in answer.read()


@pytest.mark.parametrize(
    "bad", ["", "short", 7, b"0123456789abcdef", "with spaces in it ", "0123456789abcdef;x", "ü" * 20]
)
def test_tokens_that_are_none(bad):
    with pytest.raises(gc.ArgumentError, match="token: expected None or at least 16 letters, digits, '-' or '_'"):
        gc.LiveView(port=0, token=bad)


def test_a_viser_whose_requests_can_not_be_checked_is_refused(monkeypatch):
    stopped = []
    other = SimpleNamespace(stop=lambda: stopped.append(True))
    monkeypatch.setattr(viser, "ViserServer", lambda **options: other)
    with pytest.raises(ImportError, match="its requests can not be checked"):
        guarded.serve()
    assert stopped


def test_the_servers_of_others_are_left_alone(port):
    import websockets.asyncio.server as library

    assert library.serve.__module__ == library.__name__
    assert library.serve is not guarded.serve
    assert not hasattr(library.serve, "__wrapped__")
