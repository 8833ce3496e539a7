"""HTTP as API Gateway hands it over, in events of payload format 2.0: to an operation and back."""

import base64
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, cast
from urllib.parse import quote, unquote

import msgspec
from aws_lambda_powertools.event_handler.api_gateway import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError

from functions.adapters.telemetry import Telemetry
from functions.api import operations, otlp, otlp_http, pages, problems, shapes
from functions.api.events import BODY_LIMIT_BYTES
from functions.api.operations import OPERATIONS, PREFIX, Answer, Api, Operation, Request
from functions.api.otlp import Signal
from functions.api.pages import Page
from functions.api.payloads import Sized
from functions.core.errors import NotFound, Rejected, TooLarge
from runtally import json_text

TIME_BUDGET_S: Final = 12.0
"""After which an answer with rows is brought to its end; API Gateway gives up after 30 seconds."""
_SMALL_BYTES: Final = 1_024
_AS_TEXT_BYTES: Final = 1_000_000
"""A body that is text is escaped into Lambda's answer, and may double; larger ones go as base64."""
_GZIPPED: Final = b"\x1f\x8b"
_SPOILED: Final = "\x1f\ufffd".encode()
"""What gzip begins with after somebody took it for text."""
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Vary": "Accept-Encoding",
    "X-Content-Type-Options": "nosniff",
}

_DOCUMENT: Final = f"{PREFIX}/openapi.json"
_OTLP: Final[Mapping[str, Signal]] = {"/v1/traces": "traces", "/v1/logs": "logs"}
_ROUTES: Final = (
    ("GET", _DOCUMENT),
    *((o.method, PREFIX + o.path) for o in OPERATIONS),
    *(("POST", path) for path in _OTLP),
)


class Http:
    """The operations behind Powertools' resolver; answers events whatever happens."""

    def __init__(
        self, api: Api, telemetry: Telemetry, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._api = api
        self._telemetry = telemetry
        self._clock = clock
        # Bodies are JSON already, as text or as bytes, which the resolver's own cannot do.
        # Not to be switched on by the environment: in debug mode it prints events, keys and all.
        self._app = APIGatewayHttpResolver(serializer=lambda body: cast("str", body), debug=False)
        for operation in OPERATIONS:
            rule = PREFIX + operation.path.replace("{", "<").replace("}", ">")
            self._app.route(rule, operation.method)(self._route(operation))
        self._app.get(_DOCUMENT)(self._document)
        for path, signal in _OTLP.items():
            self._app.post(path)(self._otlp_route(signal))
        self._app.not_found(self._not_found)
        self._app.exception_handler(Exception)(self._problem)

    def __call__(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        started = self._clock()
        answer = self._app.resolve(event, context)
        status = answer["statusCode"]
        self._telemetry.emit(
            {
                "Requests": 1,
                "ClientErrors": 400 <= status < 500,
                "ServerErrors": status >= 500,
                "ResponseBytes": len(answer.get("body") or ""),
            },
            {"RequestTime": [(self._clock() - started) * 1000]},
        )
        return answer

    def _route(self, operation: Operation) -> Callable[..., Response[Any]]:
        def act(**path: str) -> Response[Any]:
            return self._act(operation, path)

        return act

    def _act(self, operation: Operation, path: dict[str, str]) -> Response[Any]:
        event = self._app.current_event
        until = self._clock() + TIME_BUDGET_S
        tenant_id = self._api.authenticate(event.headers.get("authorization"))
        request = Request(
            tenant_id,
            operations.path_of(operation, {name: unquote(given) for name, given in path.items()}),
            operations.query_of(operation, event.query_string_parameters or {}),
            _body_of(event.raw_event),
            lambda: self._clock() > until,
        )
        answer = operation.act(self._api, request)
        gzipped = _accepts_gzip(event.headers.get("accept-encoding"))
        body, gzipped = _encode(answer, gzipped=gzipped, late=request.late)
        response = _response(operation.status.value, body, gzipped=gzipped)
        if operation.location:
            place = {name: quote(value, safe="") for name, value in request.path.items()}
            response.headers["Location"] = PREFIX + operation.location.format_map(place)
        return response

    def _otlp_route(self, signal: Signal) -> Callable[..., Response[Any]]:
        def take() -> Response[Any]:
            return self._take_otlp(signal)

        return take

    def _take_otlp(self, signal: Signal) -> Response[Any]:
        """Answers errors, too, as OTLP has them."""
        event = self._app.current_event
        content_type = otlp_http.content_type_of(event.headers.get("content-type"))
        try:
            tenant_id = self._api.authenticate(event.headers.get("authorization"))
            body = _otlp_body_of(event.raw_event, event.headers.get("content-encoding"))
            taken = self._api.accept_otlp(
                tenant_id, signal, body, as_json=content_type == otlp_http.JSON
            )
        except Exception as error:  # noqa: BLE001 - told to the client and, if ours, to the log
            problem = self._told(error)
            answer = otlp_http.failure(problem, content_type)
            headers = {**_HEADERS, **problems.headers_of(error)}
            if problem.status < 500:
                return Response(problem.status, content_type, answer, headers=headers)
            # Exporters drop what a 500 answered, and send again what a 503 did.
            headers["Retry-After"] = str(problems.RETRY_AFTER_S)
            return Response(
                HTTPStatus.SERVICE_UNAVAILABLE.value, content_type, answer, headers=headers
            )
        return Response(
            HTTPStatus.OK.value,
            content_type,
            otlp_http.success(signal, taken, content_type),
            headers=_HEADERS,
        )

    def _document(self) -> Response[Any]:
        from functions.api import openapi  # noqa: PLC0415 - heavy, and seldom asked for

        body = openapi.document()
        gzipped = _accepts_gzip(self._app.current_event.headers.get("accept-encoding"))
        return _response(200, pages.gzip(body) if gzipped else body, gzipped=gzipped)

    def _not_found(self, _: NotFoundError) -> Response[Any]:
        """No route, that is; perhaps one for another method."""
        path, method = self._app.current_event.path, self._app.current_event.http_method
        allowed = sorted({method for method, there in _ROUTES if _matches(there, path)})
        if allowed and method not in allowed:
            return self._problem(problems.MethodNotAllowed(allowed))
        return self._problem(NotFound(f"there is nothing here; see {_DOCUMENT}"))

    def _problem(self, error: Exception) -> Response[Any]:
        problem = self._told(error)
        return Response(
            problem.status,
            problems.CONTENT_TYPE,
            problems.encode(problem),
            headers={**_HEADERS, **problems.headers_of(error)},
        )

    def _told(self, error: Exception) -> shapes.Problem:
        """What the client learns of it; what is our own fault is logged."""
        problem = problems.problem_of(error)
        if problem.status < 500:
            return problem
        request_id = self._app.current_event.request_context.request_id
        self._telemetry.logger.error(
            "request failed", extra={"request_id": request_id}, exc_info=error
        )
        return msgspec.structs.replace(problem, instance=request_id)


def _encode(answer: Answer, *, gzipped: bool, late: Callable[[], bool]) -> tuple[bytes, bool]:
    """The body, and whether it is gzipped: what is small is not worth it."""
    if isinstance(answer, Page):
        return pages.write(answer, gzipped=gzipped, late=late), gzipped
    if isinstance(answer, Sized):
        body, compressed = _encode(answer.answer, gzipped=gzipped, late=late)
        if len(body) <= pages.BODY_LIMIT_BYTES:
            return body, compressed
        answer = answer.instead()
    body = msgspec.json.encode(answer)
    if gzipped and len(body) > _SMALL_BYTES:
        return pages.gzip(body), True
    return body, False


def _response(status: int, body: bytes, *, gzipped: bool) -> Response[Any]:
    encoding = {"Content-Encoding": "gzip"} if gzipped else {}
    as_text = not gzipped and len(body) < _AS_TEXT_BYTES
    return Response(
        status,
        "application/json",
        body.decode() if as_text else body,
        headers={**_HEADERS, **encoding},
    )


def _body_of(event: dict[str, Any]) -> bytes:
    return _inflated(_raw_body_of(event), BODY_LIMIT_BYTES)


def _otlp_body_of(event: dict[str, Any], encoding: str | None) -> bytes:
    """Raises TooLarge before and after it is inflated, Rejected for what the gateway spoiled."""
    if (encoding or "gzip").strip().lower() not in {"gzip", "identity"}:
        raise Rejected("unknown_encoding", "Content-Encoding", "use gzip, or no compression")
    raw = _raw_body_of(event)
    if len(raw) > otlp.REQUEST_LIMIT_BYTES:
        raise TooLarge(
            f"a request may have {otlp.REQUEST_LIMIT_BYTES:,} bytes:"
            f" set OTEL_EXPORTER_OTLP_COMPRESSION=gzip, {otlp.SMALLER}"
        )
    if raw.startswith(_SPOILED):
        detail = "gzipped JSON does not survive the gateway: use http/protobuf, or no compression"
        raise Rejected("spoiled", "", detail)
    body = _inflated(raw, otlp.INFLATED_LIMIT_BYTES)
    if len(body) > otlp.INFLATED_LIMIT_BYTES:
        raise TooLarge(
            f"inflated, a request may have {otlp.INFLATED_LIMIT_BYTES:,} bytes: {otlp.SMALLER}"
        )
    return body


def _raw_body_of(event: dict[str, Any]) -> bytes:
    text: str = event.get("body") or ""
    return base64.b64decode(text) if event.get("isBase64Encoded") else json_text.utf8(text)


def _inflated(body: bytes, limit: int) -> bytes:
    """When it is gzipped, which its first bytes tell whatever its headers say."""
    return pages.gunzip(body, limit) if body.startswith(_GZIPPED) else body


def _accepts_gzip(header: str | None) -> bool:
    offers: dict[str, bool] = {}
    for offer in (header or "").lower().replace(" ", "").split(","):
        name, _, quality = offer.partition(";q=")
        offers[name] = not quality or quality.strip("0.") != ""
    return offers.get("gzip", offers.get("*", False))


def _matches(route: str, path: str) -> bool:
    expected, given = route.split("/"), path.split("/")
    return len(expected) == len(given) and all(
        part.startswith("{") or part == there for part, there in zip(expected, given, strict=True)
    )
