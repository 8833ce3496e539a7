"""HTTP requests of API Gateway's own form to the api's real handler, over a MemoryStage."""

import base64
import gzip
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import parse_qsl, urlencode

from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_tenants import DynamoDBTenants
from functions.adapters.telemetry import Telemetry
from functions.api.http import Http
from functions.api.tenants import ManageTenants
from tests.memory_stage import MemoryStage

LAMBDA_LIMIT_BYTES = 6_291_556
"""What the gateway reports when an answer of Lambda is larger."""


def manage_tenants(
    stage: MemoryStage, random: Callable[[int], bytes] = secrets.token_bytes
) -> ManageTenants:
    tenants = DynamoDBTenants(DynamoDBTable(cast("Any", stage.dynamodb), "t"))
    return ManageTenants(tenants, lambda: stage.now_ns, random)


def issue_key(stage: MemoryStage, tenant_id: str) -> str:
    """A new key of a tenant, which is made when there is none."""
    manage = manage_tenants(stage)
    if manage.tenants.load_tenant(tenant_id) is None:
        manage.create_tenant(tenant_id)
    return manage.create_key(tenant_id, "test").secret


def request_event(
    method: str,
    path: str,
    *,
    query: dict[str, str] | str = "",
    headers: dict[str, str] | None = None,
    body: bytes | str | None = None,
) -> dict[str, Any]:
    """Format 2.0: https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html"""
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "ANY /api/v1/{proxy+}",
        "rawPath": path,
        "rawQueryString": query if isinstance(query, str) else urlencode(query),
        "headers": {name.lower(): value for name, value in (headers or {}).items()},
        "requestContext": {
            "accountId": "000000000000",
            "apiId": "a1b2c3d4e5",
            "domainName": "a1b2c3d4e5.execute-api.us-east-1.amazonaws.com",
            "domainPrefix": "a1b2c3d4e5",
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "203.0.113.7",
                "userAgent": "curl/8.10",
            },
            "requestId": "JKJaXmPLvHcESHA=",
            "routeKey": "ANY /api/v1/{proxy+}",
            "stage": "$default",
            "time": "30/Nov/2026:02:46:01 +0000",
            "timeEpoch": 1796006761000,
        },
        "pathParameters": {"proxy": path.removeprefix("/api/v1/")},
        "isBase64Encoded": False,
    }
    for name, value in parse_qsl(event["rawQueryString"], keep_blank_values=True):
        given = event.setdefault("queryStringParameters", {})
        given[name] = f"{given[name]},{value}" if name in given else value
    if isinstance(body, bytes):
        event |= {"body": base64.b64encode(body).decode(), "isBase64Encoded": True}
    elif body:
        event["body"] = body
    return event


@dataclass(frozen=True)
class Answer:
    """What a client gets. `encoded_bytes` is the size of Lambda's own answer."""

    status: int
    headers: dict[str, str]
    body: bytes
    encoded_bytes: int

    @property
    def json(self) -> Any:
        """Under a strict parser: no NaN, no key twice."""
        return json.loads(self.body, parse_constant=_refuse, object_pairs_hook=_once)


class HttpClient:
    """A client with a key. Every answer is checked for its size and its form."""

    def __init__(
        self,
        stage: MemoryStage,
        key: str,
        *,
        gzipped: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.http = Http(stage.api, Telemetry("api"), clock)
        self.key = key
        self.gzipped = gzipped

    def get(self, path: str, **query: str) -> Answer:
        return self.send("GET", path, query=query)

    def send(self, method: str, path: str, **more: Any) -> Answer:
        headers = {"Authorization": f"Bearer {self.key}", **more.pop("headers", {})}
        if self.gzipped:
            headers = {"Accept-Encoding": "gzip, br", **headers}
        return self.answer(request_event(method, f"/api/v1{path}", headers=headers, **more))

    def answer(self, event: dict[str, Any]) -> Answer:
        answered = self.http(event, None)
        encoded = len(json.dumps(answered).encode())
        assert encoded < LAMBDA_LIMIT_BYTES, encoded
        body = answered.get("body") or ""
        content = base64.b64decode(body) if answered["isBase64Encoded"] else body.encode()
        headers = {name.lower(): value for name, value in answered["headers"].items()}
        if headers.get("content-encoding") == "gzip":
            content = gzip.decompress(content)
        if "json" in headers["content-type"]:
            json.loads(content, parse_constant=_refuse)
        return Answer(answered["statusCode"], headers, content, encoded)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    assert len(set(names)) == len(names), names
    return dict(pairs)
