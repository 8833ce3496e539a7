"""A client of the deployed HTTP API with a key of its own tenant; only the standard library."""

import gzip
import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_tenants import DynamoDBTenants
from functions.api.tenants import ManageTenants
from functions.core.errors import Rejected
from local.stage import Stage
from tests.memory_stage import NOW_NS


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def key_of(stage: Stage, tenant_id: str) -> str:
    """A new key, made as the command line makes one."""
    tenants = DynamoDBTenants(DynamoDBTable(stage.dynamodb, stage.table_name))
    manage = ManageTenants(tenants, lambda: NOW_NS)
    try:
        manage.create_tenant(tenant_id)
    except Rejected as rejected:
        assert rejected.reason == "tenant_exists"  # noqa: PT017 - another test made it
    return manage.create_key(tenant_id, "e2e").secret


@dataclass(frozen=True)
class DeployedApi:
    url: str
    key: str

    def get(self, path: str, **query: str) -> Answer:
        return self.send("GET", f"{path}?{urlencode(query)}" if query else path)

    def send(self, method: str, path: str, body: bytes | None = None) -> Answer:
        headers = {
            "Authorization": f"Bearer {self.key}",
            "Accept-Encoding": "gzip",
            "Content-Type": "application/json",
        }
        request = urllib.request.Request(  # noqa: S310 - http on the loopback interface
            f"{self.url}/api/v1{path}", body, headers, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answered:  # noqa: S310 - as above
                return _answer(answered.status, dict(answered.headers), answered.read())
        except urllib.error.HTTPError as refused:
            with refused:
                return _answer(refused.code, dict(refused.headers), refused.read())


def _answer(status: int, headers: dict[str, str], content: bytes) -> Answer:
    lower = {name.lower(): value for name, value in headers.items()}
    if lower.get("content-encoding") == "gzip":
        content = gzip.decompress(content)
    return Answer(status, lower, content)
