"""The OpenAPI document, made from the table of operations; loaded only when it is asked for.

python -m functions.api.openapi > events/schema/openapi-v1.json
"""

import json
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from http import HTTPStatus
from typing import Any, Final

import msgspec

from functions.api import problems, shapes
from functions.api.operations import OPERATIONS, PATH_TYPES, PREFIX, Operation

_REF: Final = "#/components/schemas/{name}"
_TYPES: Final = {str: "string", int: "integer"}
_EVERYWHERE: Final = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
_HEADERS: Final[Mapping[HTTPStatus, tuple[str, str]]] = {
    HTTPStatus.UNAUTHORIZED: ("WWW-Authenticate", "string"),
    HTTPStatus.SERVICE_UNAVAILABLE: ("Retry-After", "integer"),
}
_ABOUT: Final = """Read what runtally recorded, and record over HTTP.

Every request carries the API key of its tenant. Money is a decimal string, times are RFC 3339 with
nanoseconds. Lists end with `next` when there may be more: pass it back as `cursor`. Answers are
gzipped when the request accepts it, and stay below 6 MB."""


_RUN: Final = "nightly-2026-11-30"
_STEP: Final = "1795996741123456789-9f3a1c02"
EXAMPLES: Final[Mapping[str, Any]] = {
    "run_id": _RUN,
    "step_id": _STEP,
    "name": "research",
    "invocation_id": "cfbdece18d92411f7dc0d40651d6334b",
    "view": "summary",
    "sendEvents": {
        "v": 1,
        "tenant_id": "acme",
        "run_id": _RUN,
        "events": [
            {
                "type": "run.started",
                "at": 1795996741000000000,
                "pipeline": "nightly",
                "session_id": "s-1",
                "attributes": {"customer": "c-17"},
            },
            {
                "type": "step",
                "step_id": _STEP,
                "name": "ask",
                "phase": "answer",
                "kind": "model",
                "status": "failed",
                "started_at": 1795996741123456789,
                "ended_at": 1795996742654321000,
                "model": "m-large",
                "provider": "local",
                "input_tokens": 1200,
                "output_tokens": 85,
                "cost_usd": "0.004125",
                "error": "too slow",
                "attributes": {"temperature": 0.5, "tags": ["first"]},
                "payload": {"question": "why?"},
            },
            {
                "type": "run.log",
                "log_id": "1795996742700000000-4d5e6f70",
                "at": 1795996742700000000,
                "lines": ["giving up"],
            },
            {
                "type": "run.ended",
                "at": 1795996743000000000,
                "status": "failed",
                "result": "because",
                "error": "one call failed",
            },
        ],
    },
    "invoke": {"input": {"question": "why?"}, "client_token": "c-17"},
}
"""Parameters by name and bodies by operation. They fit: sent in order, each operation succeeds."""


@cache
def document() -> bytes:
    """OpenAPI 3.1 as JSON."""
    return msgspec.json.encode(describe())


def describe() -> dict[str, Any]:
    """The document: every operation of the table, and nothing else."""
    bodies = [operation.body for operation in OPERATIONS if operation.body]
    answers = [*(operation.answer for operation in OPERATIONS), shapes.Problem]
    queries = [operation.query for operation in OPERATIONS if operation.query]
    sent, of_bodies = _schemas(bodies, nullable=True)
    others, of_others = _schemas([*answers, *queries, *PATH_TYPES.values()], nullable=False)
    of_type, components = sent | others, of_bodies | of_others
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        place = paths.setdefault(PREFIX + operation.path, {})
        place[operation.method.lower()] = _operation(operation, of_type, components)
    for query in queries:
        components.pop(query.__name__, None)
    return {
        "openapi": "3.1.0",
        "info": {"title": "runtally", "version": "1", "description": _ABOUT},
        "servers": [{"url": "/"}],
        "security": [{"apiKey": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"apiKey": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(
    operation: Operation, of_type: dict[str, Any], components: dict[str, Any]
) -> dict[str, Any]:
    made: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [
            *(
                _parameter("path", name, of_type[_key(PATH_TYPES[name])], required=True)
                for name in operation.path_names
            ),
            *_query_parameters(operation, components),
        ],
        "responses": {
            str(operation.status.value): {
                "description": operation.status.phrase,
                "content": {"application/json": {"schema": of_type[_key(operation.answer)]}},
            },
            **_problems(of_type, (*_EVERYWHERE, *operation.errors)),
        },
    }
    if operation.location:
        header = {"required": True, "schema": {"type": "string"}}
        made["responses"][str(operation.status.value)]["headers"] = {"Location": header}
    if operation.body:
        body = {"schema": of_type[_key(operation.body)], "example": EXAMPLES[operation.name]}
        made["requestBody"] = {"required": True, "content": {"application/json": body}}
    return made


def _query_parameters(operation: Operation, components: dict[str, Any]) -> list[dict[str, Any]]:
    if operation.query is None:
        return []
    schema = components[operation.query.__name__]
    required = schema.get("required", [])
    return [
        _parameter("query", name, kind, required=name in required)
        for name, kind in schema["properties"].items()
    ]


def _parameter(place: str, name: str, schema: Any, *, required: bool) -> dict[str, Any]:
    example = {"example": EXAMPLES[name]} if name in EXAMPLES else {}
    return {"name": name, "in": place, "required": required, "schema": schema, **example}


def _problems(of_type: dict[str, Any], statuses: Sequence[HTTPStatus]) -> dict[str, Any]:
    schema = of_type[_key(shapes.Problem)]
    made: dict[str, Any] = {}
    for status in sorted(statuses):
        made[str(status.value)] = {
            "description": status.phrase,
            "content": {problems.CONTENT_TYPE: {"schema": schema}},
        }
        if status in _HEADERS:
            name, kind = _HEADERS[status]
            header = {"required": True, "schema": {"type": kind}}
            made[str(status.value)]["headers"] = {name: header}
    return made


def _schemas(kinds: Sequence[Any], *, nullable: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema of each, by `_key`, and the components that they refer to."""
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    tidy = [_tidy(schema, nullable=nullable) for schema in schemas]
    return dict(zip(map(_key, kinds), tidy, strict=True)), _tidy(components, nullable=nullable)


def _tidy(node: Any, *, nullable: bool) -> Any:
    """The same schema with a type for enumerations, and without null where what is unknown is left
    out: in answers and in queries."""
    if isinstance(node, list):
        return [_tidy(member, nullable=nullable) for member in node]
    if not isinstance(node, dict):
        return node
    made = {name: _tidy(member, nullable=nullable) for name, member in node.items()}
    if "enum" in made:
        return {"type": _TYPES[type(made["enum"][0])], **made}
    kinds = [kind for kind in made.get("anyOf", ()) if kind != {"type": "null"}]
    return kinds[0] if len(kinds) == 1 and not nullable else made


def _key(kind: Any) -> str:
    return str(kind)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(describe(), indent=2) + "\n")
