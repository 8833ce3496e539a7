"""The examples of the API's document, sent to a stage: what they name is there."""

import json
from typing import Final

from functions.api.openapi import EXAMPLES
from tests import build
from tests.api import HttpClient, manage_tenants
from tests.memory_stage import EVENTS, MemoryStage

TENANT: Final[str] = EXAMPLES["sendEvents"]["tenant_id"]
KEY: Final = "rt_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
"""The key in the files of events/api: it opens nothing but this stage."""


def client_of_examples(stage: MemoryStage) -> HttpClient:
    """Of a stage where the events were recorded, and the invocation answered at length."""
    manage = manage_tenants(stage, lambda size: bytes(range(size)))
    manage.create_tenant(TENANT)
    client = HttpClient(stage, manage.create_key(TENANT, "test").secret)
    assert client.key == KEY
    sent = client.send("POST", "/events", body=json.dumps(EXAMPLES["sendEvents"]))
    assert sent.status == 202, sent.body
    assert stage.ingest(*(message.body for message in stage.sqs.queues[EVENTS])) == []
    path = f"/service-entries/{EXAMPLES['name']}/invocations"
    invocation = client.send("POST", path, body=json.dumps(EXAMPLES["invoke"])).json
    assert invocation["invocation_id"] == EXAMPLES["invocation_id"]
    too_long = build.answer(invocation["invocation_id"], "完" * 100_001)
    assert stage.ingest(build.answer_body(too_long)) == []
    stage.drain()
    stage.dynamodb.settle()
    return client
