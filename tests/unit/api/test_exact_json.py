"""What goes in as JSON comes out as the same JSON: no digit changes on the way."""

import json

import pytest

from functions.core.keys import RunRef
from tests import build
from tests.api import HttpClient
from tests.memory_stage import EVENTS, MemoryStage

STEP = build.step_id(1)


def record(
    stage: MemoryStage, client: HttpClient, attributes: str = "{}", payload: str = "null"
) -> None:
    """Over HTTP and the queue, as a worker without AWS credentials does it."""
    message = build.body(build.started(attributes={}), build.step(1, attributes={}, payload=0))
    message = message.replace('"attributes":{}', f'"attributes":{attributes}')
    message = message.replace('"payload":0', f'"payload":{payload}')
    answer = client.send("POST", "/events", body=message)
    assert answer.json == {"accepted": 2, "refused_total": 0, "refused": []}
    assert stage.ingest(*(sent.body for sent in stage.sqs.queues[EVENTS])) == []
    stage.drain()


@pytest.mark.parametrize(
    "attributes",
    [
        '{"beyond a double":9007199254740993}',
        '{"long":100000000000000000000000001,"list":[-9007199254740993,0.1]}',
        '{"text":"9007199254740993","mixed":[null,true,"你 🎉 \\u0000 \\\\ \\""]}',
    ],
)
def test_attributes_arrive_unchanged(
    attributes: str, stage: MemoryStage, client: HttpClient
) -> None:
    record(stage, client, attributes)
    shown = client.get("/pipeline-runs/run-1").json
    (call,) = shown["calls"]
    assert shown["run"]["attributes"] == call["attributes"] == json.loads(attributes)


@pytest.mark.parametrize(
    "payload",
    [
        '{"beyond a double":9007199254740993,"beyond any":1e400,"spelled":[1.10,1E2,-0.0]}',
        '{"twice":1,"twice":2}',
        '"你 🎉 \\u0000"',
        "[]",
    ],
)
def test_a_payload_arrives_byte_for_byte(
    payload: str, stage: MemoryStage, client: HttpClient
) -> None:
    record(stage, client, payload=payload)
    answer = client.get(f"/pipeline-runs/run-1/calls/{STEP}/payload")
    assert answer.body.endswith(f'"payload":{payload}}}'.encode())
    answer = client.get(f"/pipeline-runs/run-1/calls/{STEP}/event")
    assert f'"payload":{payload}'.encode() in answer.body


def test_what_is_no_number_in_json_is_the_text_that_was_stored(
    stage: MemoryStage, client: HttpClient
) -> None:
    record(
        stage, client, payload='{"loss":NaN,"bounds":[-Infinity,Infinity],"big":9007199254740993}'
    )
    answer = client.get(f"/pipeline-runs/run-1/calls/{STEP}/payload")
    expected = '{"loss":"NaN","bounds":["-Infinity","Infinity"],"big":9007199254740993}'
    assert answer.body.endswith(f'"payload":{expected}}}'.encode())
    (pointer,) = (it["pointer"] for it in stage.items_of(RunRef("acme", "run-1"), "AGENT#"))
    assert expected.encode() in stage.line_behind(RunRef("acme", "run-1"), pointer)
