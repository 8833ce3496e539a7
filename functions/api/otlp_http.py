"""The OTLP routes as HTTP: answers in the content type of the request, protobuf or JSON.

https://github.com/open-telemetry/opentelemetry-proto/blob/main/docs/specification.md#otlphttp
"""

import json
from typing import Final

from functions.api import shapes
from functions.api.otlp import Signal, Taken

PROTOBUF: Final = "application/x-protobuf"
JSON: Final = "application/json"

_REJECTED: Final[dict[Signal, str]] = {"traces": "rejectedSpans", "logs": "rejectedLogRecords"}
_GRPC_CODES: Final = {400: 3, 401: 16, 403: 7, 404: 5, 413: 8, 429: 8, 503: 14}
"""https://grpc.io/docs/guides/status-codes/: what google.rpc.Status counts by."""
_INTERNAL: Final = 13


def content_type_of(asked: str | None) -> str:
    """The type to answer in: JSON for JSON, else protobuf, which is what most send."""
    return JSON if "json" in (asked or "").lower() else PROTOBUF


def success(signal: Signal, taken: Taken, content_type: str) -> bytes:
    """An Export…ServiceResponse: empty when all was taken, else a partial success."""
    if content_type == JSON:
        told = {_REJECTED[signal]: str(taken.rejected), "errorMessage": taken.message}
        return json.dumps({"partialSuccess": told} if taken.rejected else {}).encode()
    if not taken.rejected:
        return b""
    return _bytes_field(1, _varint_field(1, taken.rejected) + _text_field(2, taken.message))


def failure(problem: shapes.Problem, content_type: str) -> bytes:
    """A google.rpc.Status."""
    code = _GRPC_CODES.get(problem.status, _INTERNAL)
    where = f"{problem.field}: " if problem.field else ""
    instance = f" ({problem.instance})" if problem.instance else ""
    message = f"{where}{problem.detail}{instance}"
    if content_type == JSON:
        return json.dumps({"code": code, "message": message}).encode()
    return _varint_field(1, code) + _text_field(2, message)


def _text_field(number: int, text: str) -> bytes:
    return _bytes_field(number, text.encode("utf-8", "replace"))


def _bytes_field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint_field(number: int, value: int) -> bytes:
    return bytes([number << 3]) + _varint(value)


def _varint(value: int) -> bytes:
    """https://protobuf.dev/programming-guides/encoding/: seven bits a byte, the lowest first."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
