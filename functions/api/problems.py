"""Errors as problem details (RFC 9457): what is wrong, which field it is, and what to do."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final

import msgspec

from functions.api import shapes
from functions.api.auth import Unauthorized
from functions.core.errors import (
    Conflict,
    Forbidden,
    NewerSchema,
    NotFound,
    Rejected,
    TooLarge,
    Unavailable,
)

CONTENT_TYPE: Final = "application/problem+json"
RETRY_AFTER_S: Final = 2
_TYPES: Final = "https://runtally.dev/problems/"


def problem_of(error: Exception) -> shapes.Problem:
    """What a client is told. Of a fault of our own it learns nothing but that it is one."""
    if isinstance(error, Rejected):
        return _problem(HTTPStatus.BAD_REQUEST, error.reason, error.detail, error.field)
    if isinstance(error, Forbidden):
        return _problem(HTTPStatus.FORBIDDEN, "other_tenant", error.detail, error.field)
    if isinstance(error, Conflict):
        return _problem(HTTPStatus.CONFLICT, "conflict", error.detail, error.field)
    for kind, (status, reason, detail) in _KINDS.items():
        if isinstance(error, kind):
            return _problem(status, reason, detail or str(error))
    detail = "a fault of the API itself, which has been logged; `instance` is the request's id"
    return _problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error", detail)


class MethodNotAllowed(Exception):  # noqa: N818 - the fact, as the handler reads it
    """The path exists, for other methods."""

    def __init__(self, allowed: Sequence[str]) -> None:
        super().__init__(f"use {' or '.join(allowed)}")
        self.allowed = allowed


_KINDS: Final[Mapping[type[Exception], tuple[HTTPStatus, str, str]]] = {
    Unauthorized: (
        HTTPStatus.UNAUTHORIZED,
        "unauthorized",
        "a valid API key is needed: `Authorization: Bearer rt_…`",
    ),
    NotFound: (HTTPStatus.NOT_FOUND, "not_found", ""),
    MethodNotAllowed: (HTTPStatus.METHOD_NOT_ALLOWED, "method_not_allowed", ""),
    TooLarge: (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_large", ""),
    NewerSchema: (HTTPStatus.SERVICE_UNAVAILABLE, "newer_schema", ""),
    Unavailable: (
        HTTPStatus.SERVICE_UNAVAILABLE,
        "unavailable",
        "a service behind the API did not answer in time; the same request may be repeated",
    ),
}
"""Status and reason; with a text of ours where the error's own is not for clients."""


def headers_of(error: Exception) -> dict[str, str]:
    match error:
        case Unauthorized():
            return {"WWW-Authenticate": "Bearer"}
        case MethodNotAllowed():
            return {"Allow": ", ".join(error.allowed)}
        case Unavailable():
            return {"Retry-After": str(RETRY_AFTER_S)}
    return {}


def encode(problem: shapes.Problem) -> str:
    return msgspec.json.encode(problem).decode()


def _problem(status: HTTPStatus, reason: str, detail: str, field: str = "") -> shapes.Problem:
    return shapes.Problem(
        type=f"{_TYPES}{reason}",
        title=status.phrase,
        status=status.value,
        detail=detail,
        reason=reason,
        field=field or None,
    )
