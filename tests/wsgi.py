"""The API as a WSGI app, for clients of that interface and, in a server, for those of HTTP."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from tests.api import HttpClient, request_event

type StartResponse = Callable[[str, list[tuple[str, str]]], object]
type App = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]


class WsgiApp:
    """Stands where API Gateway does: every request becomes its event, every answer a response."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        answer = self._client.answer(_event_of(environ))
        headers = answer.headers.copy()
        headers.pop("content-encoding", None)  # the client has decoded it
        status = HTTPStatus(answer.status)
        start_response(f"{status.value} {status.phrase}", list(headers.items()))
        return [answer.body]


def _event_of(environ: dict[str, Any]) -> dict[str, Any]:
    path = environ["REQUEST_URI"].partition("?")[0]  # as it was sent: PATH_INFO is decoded
    headers = {
        name.removeprefix("HTTP_").replace("_", "-"): value
        for name, value in environ.items()
        if name.startswith("HTTP_") or name == "CONTENT_TYPE"
    }
    content: bytes = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    return request_event(
        environ["REQUEST_METHOD"],
        path,
        query=environ["QUERY_STRING"],
        headers=headers,
        body=_as_gateway_has_it(content, environ.get("CONTENT_TYPE") or "") if content else None,
    )


def _as_gateway_has_it(content: bytes, content_type: str) -> bytes | str:
    """By the content type alone: text as it is, whatever it holds, and anything else as base64."""
    bare = content_type.partition(";")[0].strip().lower()
    return content.decode(errors="replace") if _is_text(bare) else content


def _is_text(content_type: str) -> bool:
    kind, _, what = content_type.partition("/")
    return kind == "text" or (kind == "application" and what in {"json", "xml", "javascript"})


@contextmanager
def served(app: App) -> Iterator[str]:
    """The address, on the loopback interface, where an app answers one request at a time."""
    server = WSGIServer(("127.0.0.1", 0), _Handler)
    server.set_app(app)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(WSGIRequestHandler):
    def get_environ(self) -> dict[str, Any]:
        return super().get_environ() | {"REQUEST_URI": self.path}

    def log_message(self, *told: object) -> None:
        """The output belongs to the tests."""
