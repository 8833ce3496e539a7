"""What lies in the objects, as the API gives it back: whole, verified, or said to be gone."""

import gzip
import json
import random
from urllib.parse import parse_qs, urlparse

import msgspec
import pytest

from functions.core import keys
from functions.core.keys import Pointer
from functions.core.times import SECOND, parse
from runtally import wire
from tests import build
from tests.api import HttpClient
from tests.build import RUN
from tests.memory_stage import MemoryStage

CALL = f"/pipeline-runs/run-1/calls/{build.step_id(1)}"
ODD = '{"big":9007199254740993,"float":1e400,"twice":1,"twice":2,"text":"你 🎉"}'.encode()


def record_payload(stage: MemoryStage, payload: bytes) -> None:
    step = msgspec.structs.replace(build.step(1), payload=msgspec.Raw(payload))
    assert stage.ingest(build.body(build.started(), step, build.step(2))) == []


def pointer_of(stage: MemoryStage) -> Pointer:
    (item,) = stage.items_of(RUN, f"{keys.STEP_PREFIX}{build.step_id(1)}")
    return Pointer.parse(item["pointer"])


def test_a_payload_comes_back_byte_for_byte(stage: MemoryStage, client: HttpClient) -> None:
    record_payload(stage, ODD)
    answer = client.get(f"{CALL}/payload")
    head = f'{{"step_id":"{build.step_id(1)}","payload_state":"ok","payload_bytes":{len(ODD)},'
    assert answer.body == head.encode() + b'"payload":' + ODD + b"}"


def test_a_call_without_a_payload_says_so(stage: MemoryStage, client: HttpClient) -> None:
    record_payload(stage, ODD)
    answer = client.get(f"/pipeline-runs/run-1/calls/{build.step_id(2)}/payload")
    assert answer.json == {"step_id": build.step_id(2), "payload_state": "none"}


def test_a_payload_whose_object_is_gone_is_missing(stage: MemoryStage, client: HttpClient) -> None:
    record_payload(stage, ODD)
    stage.s3.objects.clear()
    answer = client.get(f"{CALL}/payload")
    assert answer.status == 200
    assert answer.json == {
        "step_id": build.step_id(1),
        "payload_state": "missing",
        "payload_bytes": len(ODD),
    }
    assert client.get(f"{CALL}/event").json["event_state"] == "missing"


@pytest.mark.parametrize("damage", ["other bytes", "cut", "empty", "other line", "no gzip", "bomb"])
def test_a_damaged_object_is_never_shown(
    stage: MemoryStage, client: HttpClient, damage: str
) -> None:
    record_payload(stage, ODD)
    pointer = pointer_of(stage)
    key = keys.object_of_run(RUN, pointer.name)
    whole = stage.s3.objects[key]
    first, last = pointer.offset, pointer.offset + pointer.length

    def member(line: bytes) -> bytes:
        return gzip.compress(line, mtime=0).ljust(pointer.length, b"\0")

    damaged = {
        "other bytes": whole[:first] + bytes(b ^ 1 for b in whole[first:last]) + whole[last:],
        "cut": whole[: first + 20],
        "empty": b"",
        "other line": whole[:first] + member(b'{"type":"step"}\n') + whole[last:],
        "no gzip": whole[:first] + b"x" * pointer.length + whole[last:],
        "bomb": whole[:first] + gzip.compress(b" " * (wire.CLAIM_LIMIT_BYTES + 9), mtime=0),
    }
    stage.s3.objects[key] = damaged[damage]
    answer = client.get(f"{CALL}/payload")
    assert answer.status == 200
    assert answer.json["payload_state"] == "corrupt"
    assert "payload" not in answer.json


def test_an_unknown_call_is_not_found(stage: MemoryStage, client: HttpClient) -> None:
    record_payload(stage, ODD)
    path = f"/pipeline-runs/run-1/calls/{build.step_id(7)}"
    assert client.get(f"{path}/payload").status == client.get(f"{path}/event").status == 404
    assert client.get("/pipeline-runs/run-1/calls/7/payload").json["field"] == "step_id"


def test_an_event_sent_back_as_it_was_read_is_known(stage: MemoryStage, client: HttpClient) -> None:
    """F30: no digit of what identifies a call is lost on the way."""
    record_payload(stage, ODD)
    text = client.get(f"{CALL}/event").body
    event = text.partition(b'"event":')[2][:-1]
    head = wire.Head(v=1, tenant_id="acme", run_id="run-1")
    before = dict(stage.dynamodb.items)
    assert stage.ingest(wire.seal(head, [event])) == []
    assert stage.dynamodb.items == before
    assert stage.dead_letters() == []
    shown = client.get("/pipeline-runs/run-1").json["calls"][0]
    decoded = wire.decode_event(event, "event")
    assert isinstance(decoded, wire.Step)
    assert parse(shown["started_at"]) == decoded.started_at


def test_what_does_not_fit_an_answer_is_behind_a_link_to_that_slice(
    stage: MemoryStage, client: HttpClient
) -> None:
    noise = random.Random(3)  # noqa: S311 - not for secrets
    payload = msgspec.json.encode({"noise": [noise.randbytes(1_000_000).hex() for _ in range(5)]})
    step = msgspec.structs.replace(build.step(1), payload=msgspec.Raw(payload))
    sender_limit = wire.seal(
        wire.Head(v=1, tenant_id="acme", run_id="run-1"), [wire.encode_event(step)]
    )
    stage.ingest_claimed(RUN, sender_limit)
    answer = client.get(f"{CALL}/payload")
    assert answer.encoded_bytes < 10_000
    shown = answer.json
    assert (shown["payload_state"], shown["payload_bytes"]) == ("ok", len(payload))
    assert "payload" not in shown
    link = shown["link"]
    assert parse(link["expires_at"]) == stage.now_ns + 900 * SECOND
    assert link["content_encoding"] == "gzip"
    signed = {name: value for name, (value,) in parse_qs(urlparse(link["url"]).query).items()}
    assert signed["Expires"] == "900"
    assert signed["Range"] == link["headers"]["Range"]
    body = stage.s3.get_object(Key=signed["Key"], Range=signed["Range"])["Body"].read()
    assert json.loads(gzip.decompress(body))["payload"] == json.loads(payload)


def test_a_large_payload_that_compresses_is_in_the_answer_itself(
    stage: MemoryStage, client: HttpClient
) -> None:
    payload = msgspec.json.encode({"text": "the same words " * 2_000_000})
    step = msgspec.structs.replace(build.step(1), payload=msgspec.Raw(payload))
    head = wire.Head(v=1, tenant_id="acme", run_id="run-1")
    stage.ingest_claimed(RUN, wire.seal(head, [wire.encode_event(step)]))
    assert client.get(f"{CALL}/payload").body.endswith(payload + b"}")
    plain = HttpClient(stage, client.key, gzipped=False)
    assert "link" in plain.get(f"{CALL}/payload").json


@pytest.mark.parametrize("result", [None, "", "short", "你" * 24_000, "你" * 24_001])
def test_a_result_is_whole_behind_its_own_path(
    stage: MemoryStage, client: HttpClient, result: str | None
) -> None:
    stage.ingest(build.body(build.started(), build.ended(result=result)))
    whole = client.get("/pipeline-runs/run-1/result").json
    if result is None:
        assert whole == {"result_state": "none"}
        assert "result" not in client.get("/pipeline-runs/run-1").json
        return
    assert whole.get("result", "") == result
    assert whole["result_state"] == "ok"
    shown = client.get("/pipeline-runs/run-1").json["result"]
    truncated = len(result.encode()) > 72_000
    assert shown.get("result_truncated", False) is truncated
    assert shown.get("result_bytes", 0) == len(result.encode())
    assert len(shown.get("result", "").encode()) <= 72_000


def test_only_the_result_of_the_end_that_stands_is_shown(
    stage: MemoryStage, client: HttpClient
) -> None:
    stage.ingest(build.body(build.started(), build.ended(at=build.T0 + 9, result="later")))
    stage.ingest(build.body(build.ended(at=build.T0 + 5, status="failed")))
    shown = client.get("/pipeline-runs/run-1").json
    assert shown["run"]["status"] == "failed"
    assert "result" not in shown
    assert client.get("/pipeline-runs/run-1/result").json == {"result_state": "none"}
