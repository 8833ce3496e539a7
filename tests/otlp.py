"""Requests of OTLP/HTTP, made by hand, in both encodings."""

import base64
import json
from collections.abc import Mapping
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from tests import build

TRACE = "0af7651916cd43dd8448eb211c80319c"
PROTOBUF = {"Content-Type": "application/x-protobuf"}
JSON = {"Content-Type": "application/json"}


def value(given: Any) -> dict[str, Any]:
    """An AnyValue as OTLP's JSON has it."""
    match given:
        case bool():
            return {"boolValue": given}
        case int():
            return {"intValue": str(given)}
        case float():
            return {"doubleValue": given}
        case list():
            return {"arrayValue": {"values": [value(entry) for entry in given]}}
        case dict():
            return {"kvlistValue": {"values": attributes(given)}}
    return {"stringValue": given}


def attributes(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value(entry)} for key, entry in given.items()]


def span(number: int, parent: int | None = None, **more: Any) -> dict[str, Any]:
    """A span of the one trace, by default a second long, each a second after the one before."""
    at = build.T0 + (number) * build.SECOND
    parent_id = {} if parent is None else {"parentSpanId": f"{parent:016x}"}
    made: dict[str, Any] = {
        "traceId": TRACE,
        "spanId": f"{number:016x}",
        "name": f"span {number}",
        "kind": 1,
        "startTimeUnixNano": str(at),
        "endTimeUnixNano": str(at + build.SECOND),
        **parent_id,
        **more,
    }
    if isinstance(made.get("attributes"), dict):
        made["attributes"] = attributes(made["attributes"])
    return made


def traces(*spans: dict[str, Any], resource: Mapping[str, Any] | None = None) -> dict[str, Any]:
    of_resource = {"attributes": attributes(resource or {"service.name": "agents"})}
    scope = {"scope": {"name": "by hand"}, "spans": list(spans)}
    return {"resourceSpans": [{"resource": of_resource, "scopeSpans": [scope]}]}


def logs(*records: dict[str, Any], resource: Mapping[str, Any] | None = None) -> dict[str, Any]:
    of_resource = {"attributes": attributes(resource or {"service.name": "claude-code"})}
    scope = {"scope": {"name": "by hand"}, "logRecords": list(records)}
    return {"resourceLogs": [{"resource": of_resource, "scopeLogs": [scope]}]}


def as_json(request: Mapping[str, Any]) -> bytes:
    return json.dumps(request, ensure_ascii=False).encode()


def as_protobuf(request: Mapping[str, Any]) -> bytes:
    message: Any = LogsData() if "resourceLogs" in request else TracesData()
    _fill(message, request)
    content: bytes = message.SerializeToString()
    return content


def json_of(content: bytes) -> bytes:
    """A protobuf request of spans as the JSON that an exporter would have sent of it."""
    made = MessageToDict(TracesData.FromString(content), use_integers_for_enums=True)
    for of_resource in made.get("resourceSpans", []):
        for of_scope in of_resource.get("scopeSpans", []):
            for one in of_scope.get("spans", []):
                _with_hex_ids(one)
    return as_json(made)


def _fill(message: Any, given: Mapping[str, Any]) -> None:
    for field in message.DESCRIPTOR.fields:
        content = given.get(field.json_name)
        if content is None:
            continue
        if field.message_type is None:
            setattr(message, field.name, _scalar(getattr(message, field.name), content))
        elif isinstance(content, list):
            for entry in content:
                _fill(getattr(message, field.name).add(), entry)
        else:
            getattr(message, field.name).SetInParent()
            _fill(getattr(message, field.name), content)


def _scalar(default: Any, content: Any) -> Any:
    if isinstance(default, bytes):
        return bytes.fromhex(content)
    return int(content) if isinstance(default, int) else content


def _with_hex_ids(one: dict[str, Any]) -> None:
    for holder in (one, *one.get("links", [])):
        for name in ("traceId", "spanId", "parentSpanId"):
            if name in holder:
                holder[name] = base64.b64decode(holder[name]).hex()
