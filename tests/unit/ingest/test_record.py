"""What recording one message accepts, refuses, cuts and leaves alone."""

import hashlib
import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_tenant_deletion import DynamoDBTenantData
from functions.core import keys
from functions.core.keys import RunRef
from runtally import wire
from tests import build, invariants
from tests.build import RUN, T0
from tests.fakes.calls import client_error
from tests.fakes.dynamodb import item_size
from tests.memory_stage import MemoryStage


def raw_step(n: int = 1, **changes: Any) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(wire.encode_event(build.step(n)))
    return event | changes


def raw_body(*events: Any, **changes: Any) -> str:
    envelope = {"v": 1, "tenant_id": "acme", "run_id": "run-1", "events": list(events)}
    return json.dumps(envelope | changes)


def claim_body(key: str, content: bytes, **changes: Any) -> str:
    claim = {"key": key, "sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    envelope = {"v": 1, "tenant_id": "acme", "run_id": "run-1"}
    return json.dumps(envelope | {"claim": claim | changes})


REFUSED: dict[str, tuple[str, str, str]] = {
    "negative cost": (raw_body(raw_step(cost_usd="-1")), "invalid_field", "events[0].cost_usd"),
    "19 decimals": (
        raw_body(raw_step(cost_usd="0." + "1" * 19)), "invalid_field", "events[0].cost_usd",
    ),
    "cost as a boolean": (
        raw_body(raw_step(cost_usd=True)), "invalid_field", "events[0].cost_usd",
    ),
    "cost as a number": (raw_body(raw_step(cost_usd=0.1)), "invalid_field", "events[0].cost_usd"),
    "cost 'NaN'": (raw_body(raw_step(cost_usd="NaN")), "invalid_field", "events[0].cost_usd"),
    "cost NaN": (
        raw_body(raw_step(cost_usd=float("nan"))), "not_finite", "events[0].cost_usd",
    ),
    "infinite attribute": (
        raw_body(raw_step(attributes={"x": float("inf")})), "not_finite", "events[0].x",
    ),
    "# in the run id": (raw_body(raw_step(), run_id="a#b"), "invalid_field", "run_id"),
    "/ in the tenant id": (raw_body(raw_step(), tenant_id="a/b"), "invalid_field", "tenant_id"),
    "dots for a tenant": (raw_body(raw_step(), tenant_id=".."), "invalid_field", "tenant_id"),
    "line feed after the id": (raw_body(raw_step(), run_id="a\n"), "invalid_field", "run_id"),
    "32-byte step id": (
        raw_body(raw_step(step_id="1" * 19 + "-" + "a" * 12)), "invalid_field",
        "events[0].step_id",
    ),
    "65 buckets": (raw_body(raw_step(), buckets=65), "invalid_field", "buckets"),
    "unknown type": (raw_body({"type": "step.updated"}), "unknown_type", "events[0].type"),
    "unknown version": (raw_body(raw_step(), v=2), "unknown_version", "v"),
    "no events": (raw_body(), "invalid_field", "events"),
    "huge integer in a field": (
        raw_body(raw_step()).replace('"kind"', f'"input_tokens":{"9" * 5000},"kind"'),
        "invalid_field", "events[0].input_tokens",
    ),
    "1970": (raw_body(raw_step(started_at=0)), "too_old", "events[0].started_at"),
    "ended in 1970": (raw_body(raw_step(ended_at=0)), "too_old", "events[0].ended_at"),
    "a run of 1970": (
        raw_body({"type": "run.started", "at": 0, "pipeline": "p"}), "too_old", "events[0].at",
    ),
    "a log of 1970": (
        raw_body({"type": "run.log", "log_id": build.step_id(1), "at": 0, "lines": []}),
        "too_old", "events[0].at",
    ),
    "an end of 1970": (
        raw_body({"type": "run.ended", "at": 0, "status": "failed"}), "too_old", "events[0].at",
    ),
    "two numbers where one is due": (
        raw_body(raw_step()).replace('"kind"', '"input_tokens":1 2,"kind"'),
        "not_json", "events[0]",
    ),
    "truncated": (raw_body(raw_step())[:-3], "not_json", "message"),
    "an answer to an invocation with a run_id": (
        raw_body({"type": "invocation.ended", "invocation_id": "i", "status": "failed"}),
        "invalid_field", "run_id",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_what_can_never_be_accepted_is_dead_lettered_with_reason_field_and_body(case: str) -> None:
    body, reason, field = REFUSED[case]
    stage = MemoryStage()
    assert stage.ingest(body) == []
    (letter,) = stage.dead_letters()
    assert (letter["reason"], letter["field"], letter["body"]) == (reason, field, body)
    assert stage.dynamodb.items == {}


@pytest.mark.parametrize("case", [c for c in REFUSED if REFUSED[c][2].startswith("events[0].")])
def test_the_good_events_of_a_message_with_a_refused_one_are_kept(case: str) -> None:
    body, _, _ = REFUSED[case]
    good = json.dumps(raw_step(2))
    stage = MemoryStage()
    assert stage.ingest(body.replace('"events": [', f'"events": [{good},', 1)) == []
    assert [i["SK"] for i in stage.items_of(RUN, "AGENT#")] == [f"AGENT#{build.step_id(2)}"]
    assert len(stage.dead_letters()) == 1
    assert stage.dead_letters()[0]["field"].startswith("events[1]")


def test_many_refusals_are_counted_and_the_first_of_them_told() -> None:
    stage = MemoryStage()
    stage.ingest(raw_body(*(raw_step(n, cost_usd="\x07" * n) for n in range(1, 41))))
    (letter,) = stage.dead_letters()
    assert letter["refused"] == "40"
    told = [refusal["field"] for refusal in letter["refusals"]]
    assert told == [f"events[{n}].cost_usd" for n in range(len(told))]
    assert len(told) > 5


def test_the_loser_of_the_race_to_open_a_run_obeys_the_winner() -> None:
    stage, winner = MemoryStage(), MemoryStage()
    winner.ingest(build.body(build.started(), buckets=5))

    def race(call: str, when: str) -> None:
        if call == "dynamodb.get_item" and when == "after":
            stage.calls.hook = lambda call, when: None
            stage.dynamodb.items.update(winner.dynamodb.items)

    stage.calls.hook = race
    steps = [build.step(n) for n in range(1, 20)]
    assert stage.ingest(build.body(*steps, buckets=2)) == []
    run = stage.item(RUN, keys.RUN)
    assert run is not None
    assert (run["buckets"], run["pipeline"]) == (5, "research")
    partitions = {item["PK"] for item in stage.items_of(RUN, "AGENT#")}
    assert partitions == {keys.run_partition(RUN, bucket) for bucket in range(5)}


def test_a_later_end_or_start_writes_nothing() -> None:
    stage = MemoryStage()
    stage.ingest(build.body(build.started(), build.ended()))
    stage.calls.made.clear()
    stage.ingest(build.body(build.started(T0 + 1), build.ended(T0 + 10**13)))
    assert "dynamodb.update_item" not in stage.calls.made


@pytest.mark.parametrize("spare", [0, 100, 300, 500, 1_000, 2_000, 3_000, 5_000, 10_000])
def test_a_refused_body_too_large_for_its_attributes_lies_in_the_bucket(spare: int) -> None:
    """However close to the limit of SQS, which attributes count towards."""
    body = raw_body(raw_step(cost_usd="-1", payload=""))
    filling = wire.SQS_LIMIT_BYTES - len(body) - spare
    body = body.replace('"payload": ""', f'"payload": "{"x" * filling}"')
    stage = MemoryStage()
    assert stage.ingest(body) == []
    (letter,) = stage.dead_letters()
    assert (letter["reason"], letter["field"]) == ("invalid_field", "events[0].cost_usd")
    kept = letter["body"]
    if spare < 300:
        kept = stage.s3.objects[json.loads(kept)["dead_letter"]["key"]].decode()
    assert kept == body


PAYLOADS: dict[str, tuple[str, str]] = {
    "big integers stay": ("9007199254740993", "9007199254740993"),
    "5,000 digits stay": ("9" * 5000, "9" * 5000),
    "repeated keys stay": ('{"a":1,"a":2}', '{"a":1,"a":2}'),
    "escapes stay": (r'"\u4f60\/\ud83d\ude00\\ud800"', r'"\u4f60\/\ud83d\ude00\\ud800"'),
    "1e999 stays": ("[1e999]", "[1e999]"),
    "not finite become strings": (
        '[NaN,Infinity,-Infinity,"NaN"]', '["NaN","Infinity","-Infinity","NaN"]',
    ),
    "half a pair becomes U+FFFD": (r'"a\ud800b\udc00\u0041"', r'"a\ufffdb\ufffd\u0041"'),
    "white space goes": ('{ "a" : [ 1 , 2 ] }', '{"a":[1,2]}'),
    "200 levels stay": ("[" * 200 + "]" * 200, "[" * 200 + "]" * 200),
    "201 levels become text": (
        "[" * 201 + '"x"' + "]" * 201, json.dumps("[" * 201 + '"x"' + "]" * 201),
    ),
    "100,000 levels become text": (
        "[" * 100_000 + "]" * 100_000, json.dumps("[" * 100_000 + "]" * 100_000),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PAYLOADS, ids=str)
def test_json_in_is_json_out_but_for_what_strict_parsers_refuse(case: str) -> None:
    """I11, F33, F34."""
    sent, stored = PAYLOADS[case]
    stage = MemoryStage()
    body = raw_body(raw_step(1, payload="HERE"), raw_step(2)).replace('"HERE"', sent)
    assert stage.ingest(body) == []
    assert stage.dead_letters() == []
    first, second = stage.items_of(RUN, "AGENT#")
    line = stage.line_behind(RUN, first["pointer"]).decode()
    assert line.endswith(f'"payload":{stored}}}')
    assert first["payload_bytes"] == len(stored)
    assert "payload_bytes" not in second
    invariants.pointers_hold(stage, RUN)


def test_half_a_pair_in_a_field_becomes_the_replacement_character() -> None:
    stage = MemoryStage()
    assert stage.ingest(raw_body(raw_step(name="a\ud800b"))) == []
    (item,) = stage.items_of(RUN, "AGENT#")
    assert item["name"] == "a\ufffdb"


def test_a_claim_is_redeemed() -> None:
    content = build.body(build.step(1, payload="长" * 700_000)).encode()
    key = f"inbox/acme/run-1/{hashlib.sha256(content).hexdigest()}"
    stage = MemoryStage()
    stage.s3.objects[key] = content
    assert stage.ingest(claim_body(key, content)) == []
    (item,) = stage.items_of(RUN, "AGENT#")
    assert item["payload_bytes"] == 2_100_002


def test_a_claimed_object_that_is_no_utf8_is_refused() -> None:
    content = build.body(build.step(1, payload="HERE")).encode().replace(b"HERE", b"\xff\xfe")
    key = f"inbox/acme/run-1/{hashlib.sha256(content).hexdigest()}"
    stage = MemoryStage()
    stage.s3.objects[key] = content
    assert stage.ingest(claim_body(key, content)) == []
    assert stage.dead_letters()[0]["reason"] == "not_json"
    assert stage.dynamodb.items == {}


OTHER = build.body(build.step(1), run=RunRef("other", "run-1")).encode()
MINE = build.body(build.step(1)).encode()
SHA = hashlib.sha256(MINE).hexdigest()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (claim_body(f"inbox/other/run-1/{SHA}", MINE), "claim.key"),
        (claim_body(f"inbox/acme/run-1/../../other/run-1/{SHA}", MINE), "claim.key"),
        (claim_body("agent-runs/acme/run-1/x.json.gz", MINE), "claim.key"),
        (claim_body(f"inbox/acme/run-1/{SHA}", MINE, bytes=65 * 2**20), "claim.bytes"),
        (claim_body(f"inbox/acme/run-1/{SHA}", MINE, bytes=5), "claim.bytes"),
        (claim_body("inbox/acme/run-1/" + "0" * 64, MINE, sha256="0" * 64), "claim.key"),
        (claim_body("inbox/acme/run-1/" + "1" * 64, MINE, sha256="1" * 64), "claim.sha256"),
        (
            claim_body(f"inbox/acme/run-1/{hashlib.sha256(OTHER).hexdigest()}", OTHER),
            "claim",
        ),
    ],
)
def test_a_claim_reaches_nothing_but_its_own_run(body: str, field: str) -> None:
    stage = MemoryStage()
    for content in (MINE, OTHER):
        key = f"inbox/acme/run-1/{hashlib.sha256(content).hexdigest()}"
        stage.s3.objects[key] = content
    stage.s3.objects["inbox/acme/run-1/" + "1" * 64] = MINE
    assert stage.ingest(body) == []
    (letter,) = stage.dead_letters()
    assert (letter["reason"], letter["field"]) == ("invalid_claim", field)
    assert stage.dynamodb.items == {}


def test_a_claim_over_the_limit_is_refused_before_it_is_read() -> None:
    stage = MemoryStage()
    size = wire.CLAIM_LIMIT_BYTES + 1
    claim = {"key": f"inbox/acme/run-1/{SHA}", "sha256": SHA, "bytes": size}
    stage.ingest(json.dumps({"v": 1, "tenant_id": "acme", "run_id": "run-1", "claim": claim}))
    assert stage.dead_letters()[0]["field"] == "claim.bytes"
    assert "s3.get_object" not in stage.calls.made


def test_claims_are_redeemed_one_at_a_time() -> None:
    """Each may take 64 MB several times over."""
    stage = MemoryStage()
    bodies = []
    for n in range(4):
        content = build.body(build.step(n)).encode()
        key = f"inbox/acme/run-1/{hashlib.sha256(content).hexdigest()}"
        stage.s3.objects[key] = content
        bodies.append(claim_body(key, content))
    inside = most = 0

    def watch(call: str, when: str) -> None:
        nonlocal inside, most
        if call == "s3.get_object" and when == "before":
            inside += 1
            most = max(most, inside)
            time.sleep(0.02)
        elif call == "s3.put_object" and when == "after":
            inside -= 1

    stage.calls.hook = watch
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(stage.ingest_parts.record, bodies))
    assert [result.stored for result in results] == [1] * 4
    assert most == 1


def test_when_one_step_cannot_be_written_the_others_are_tried() -> None:
    stage = MemoryStage()
    puts = 0

    def fail_second(call: str, when: str) -> None:
        nonlocal puts
        puts += call == "dynamodb.put_item" and when == "before"
        if puts == 3 and when == "before":  # the run's own put is the first
            raise client_error(call, "ThrottlingException")

    stage.calls.hook = fail_second
    assert stage.ingest(build.body(*(build.step(n) for n in range(1, 6)))) == ["0"]
    assert len(stage.items_of(RUN, "AGENT#")) == 4


def test_a_reported_cost_comes_before_a_computed_one_and_all_tokens_count() -> None:
    stage = MemoryStage()
    tokens = {"cache_write_tokens": 3, "reasoning_tokens": 5, "cached_tokens": 7}
    stage.ingest(
        build.body(
            build.step(1, cost_usd="1", cost_computed_usd="100", **tokens),
            build.step(2, cost_computed_usd="10"),
            build.step(3),
            build.ended(),
        )
    )
    stage.drain()
    for which in (keys.TOTALS, keys.SUMMARY):
        item = stage.item(RUN, which)
        assert item is not None
        assert (item["cost_usd_total"], item["cost_unknown_total"]) == (11, 1)
        assert {name: item[name] for name in tokens} == tokens


def test_what_a_run_tells_of_itself_is_cut_too() -> None:
    stage = MemoryStage()
    started = build.started(
        pipeline="管" * 100,
        session_id="话" * 100,
        attributes={str(n): "值" * 100 for n in range(99)},
    )
    stage.ingest(build.body(started, build.ended(status="failed", error="错" * 1_000)))
    run = stage.item(RUN, keys.RUN)
    assert run is not None
    assert run["pipeline"] == "管" * 42
    assert run["start"]["session_id"] == "话" * 42
    assert 7_000 < len(run["start"]["attributes"].encode()) <= 8_192
    assert run["end"]["error"] == "错" * 85


def test_a_real_end_takes_the_stale_mark_away_and_renews_retention() -> None:
    stage = MemoryStage()
    stage.ingest(build.body(build.started()))
    key = (keys.run_partition(RUN), keys.RUN)
    stage.dynamodb.items[key] |= {"stale_at": {"N": "1"}, "status": {"S": "stale"}}
    before = int(stage.dynamodb.items[key]["expires_at"]["N"])
    stage.now_ns += 60 * build.SECOND
    stage.ingest(build.body(build.ended()))
    run = stage.item(RUN, keys.RUN)
    assert run is not None
    assert "stale_at" not in run
    assert run["status"] == "succeeded"
    assert run["expires_at"] == before + 60


def test_every_text_is_cut_on_the_item_and_whole_in_the_object() -> None:
    long = "名" * 1_400
    fields = ("name", "phase", "agent", "session_id", "model", "provider", "price_table")
    step = build.step(
        1,
        **dict.fromkeys(fields, long),
        error="错" * 170_000,
        attributes={f"key {n}": "值" * 100 for n in range(40)},
        kind="a" * 32,
        status="cancelled",
        parent_id=build.step_id(2)[:-8] + "z" * 11,
        cost_usd="999999999999.999999999999999999",
        cost_computed_usd="999999999999.999999999999999999",
        **dict.fromkeys(("input_tokens", "output_tokens", "cached_tokens"), 10**12),
        **dict.fromkeys(("cache_write_tokens", "reasoning_tokens"), 10**12),
    )
    run = RunRef("t" * 64, "r" * 128)
    stage = MemoryStage()
    assert stage.ingest(build.body(step, run=run, buckets=64)) == []
    (item,) = stage.items_of(run, "AGENT#")
    assert item_size(next(i for k, i in stage.dynamodb.items.items() if "AGENT" in k[1])) < 4_096
    for field in fields:
        assert item[field] == "名" * 42
    assert item["error"] == "错" * 85
    assert len(item["attributes"].encode()) <= 2_048
    assert json.loads(item["attributes"])["key 0"] == "值" * 100
    assert set(item["cut"].split(",")) == {*fields, "error", "attributes"}
    whole = wire.decode_event(stage.line_behind(run, item["pointer"]), "")
    assert whole == step


def test_logs_and_results_over_their_caps_are_cut_flagged_and_whole_in_the_object() -> None:
    stage = MemoryStage()
    log = build.log(1, "short", "长" * 9_000, "never shown")
    end = build.ended(result="果" * 100_000, error="e" * 10_000)
    assert stage.ingest(build.body(log, end)) == []
    (item,) = stage.items_of(RUN, "LOG#")
    assert item["lines"][0] == "short"
    assert len(item["lines"]) == 2
    assert item["cut"] == "lines"
    assert wire.decode_event(stage.line_behind(RUN, item["pointer"]), "") == log
    result = stage.item(RUN, keys.RESULT)
    assert result is not None
    assert result["result"] == "果" * 24_000
    assert result["result_bytes"] == 300_000
    assert result["cut"] == "result"
    assert wire.decode_event(stage.line_behind(RUN, result["pointer"]), "") == end
    invariants.caps_hold(stage)


def test_the_first_body_of_an_id_wins_and_another_is_a_conflict() -> None:
    """F14: 25 messages with 3 equal step ids, two of them with different bodies."""
    stage = MemoryStage()
    bodies = [build.body(build.step(n)) for n in range(1, 23)]
    first, other = build.step(50, name="first"), build.step(50, name="other")
    assert stage.ingest(*bodies[:9]) == []
    assert stage.ingest(*bodies[9:], build.body(first), build.body(other), build.body(first)) == []
    steps = stage.items_of(RUN, "AGENT#")
    assert len(steps) == 23
    assert steps[-1]["name"] == "first"
    result = stage.ingest_parts.record(build.body(other, build.step(50, name="third")))
    assert (result.stored, result.duplicates) == (0, 0)
    assert result.conflicts == (build.step_id(50),) * 2
    assert stage.ingest_parts.record(build.body(first, first)).duplicates == 2


def test_an_object_holds_a_message_and_is_named_after_its_first_step_and_its_bytes() -> None:
    stage = MemoryStage()
    stage.ingest(build.body(build.started(), build.step(3), build.step(2), buckets=4))
    ((key, content),) = stage.s3.objects.items()
    name = f"{build.step_id(3)}-{hashlib.sha256(content).hexdigest()[:8]}"
    assert key == f"agent-runs/acme/run-1/{name}.json.gz"
    assert stage.s3.metadata[key] == {"buckets": "4"}
    for item in stage.items_of(RUN, "AGENT#"):
        assert len(item["pointer"].encode()) <= 64
        assert item["pointer"].startswith(name)


def test_an_object_without_steps_is_named_after_its_time() -> None:
    stage = MemoryStage()
    stage.ingest(build.body(build.started()))
    (key,) = stage.s3.objects
    assert key.startswith(f"agent-runs/acme/run-1/{T0}-")


def test_an_object_under_the_same_name_with_other_bytes_is_never_pointed_at() -> None:
    """F11: 412 means read back and compare."""
    stage = MemoryStage()
    body = build.body(build.step(1))
    stage.ingest(body)
    (key,) = stage.s3.objects
    stage.dynamodb.items.clear()
    stage.s3.objects[key] = b"other bytes"
    assert stage.ingest(body) == ["0"]
    assert stage.items_of(RUN, "AGENT#") == []


@pytest.mark.parametrize("code", ["ConditionalRequestConflict", "SlowDown"])
def test_a_conflict_or_throttle_of_the_object_store_settles_nothing(code: str) -> None:
    """F11: 409 is not 412."""
    stage = MemoryStage()
    body = build.body(build.step(1))

    def fail_once(call: str, when: str) -> None:
        if call == "s3.put_object":
            stage.calls.hook = lambda call, when: None
            raise client_error(call, code)

    stage.calls.hook = fail_once
    assert stage.ingest(body) == ["0"]
    assert stage.items_of(RUN, "AGENT#") == []
    assert stage.ingest(body) == []
    invariants.pointers_hold(stage, RUN)


def test_a_deleted_run_takes_nothing_more() -> None:
    stage = MemoryStage()
    stage.ingest(build.body(build.started()))
    key = (keys.run_partition(RUN), keys.RUN)
    stage.dynamodb.items[key]["deleted_at"] = {"N": "1"}
    before = dict(stage.dynamodb.items)
    result = stage.ingest_parts.record(build.body(build.step(1), build.ended()))
    assert (result.after_deletion, result.stored) == (2, 0)
    assert stage.dynamodb.items == before
    assert len(stage.s3.objects) == 1


def deleted_tenant(stage: MemoryStage) -> None:
    table = DynamoDBTable(stage.dynamodb, "t")  # type: ignore[arg-type]
    DynamoDBTenantData(table).bury_tenant(RUN.tenant_id, stage.now_ns, 10**10)


@pytest.mark.parametrize("first", [build.started(), build.step(1), build.ended()])
def test_no_message_brings_a_deleted_tenant_back(first: wire.Event) -> None:
    stage = MemoryStage()
    deleted_tenant(stage)
    before = dict(stage.dynamodb.items)
    result = stage.ingest_parts.record(build.body(first, build.log(1, "x")))
    assert (result.after_deletion, result.stored, result.whose) == (2, 0, RUN._asdict())
    answer = build.answer_body(build.answer("f" * 32, "x" * 400_000))
    refused = stage.ingest_parts.record(answer)
    assert (refused.after_deletion, refused.refusals) == (1, ())
    old = build.body(build.started(at=1))
    assert stage.ingest_parts.record(old).after_deletion == 1
    assert stage.dynamodb.items == before
    assert stage.s3.objects == {}
    assert stage.dead_letters() == []
    neighbour = RUN._replace(tenant_id=f"{RUN.tenant_id}-2")
    assert stage.ingest_parts.record(build.body(build.step(1), run=neighbour)).stored == 1


def test_the_tenant_is_read_only_when_a_run_is_opened() -> None:
    stage = MemoryStage()
    reads = []
    for number in (1, 2):
        stage.calls.made.clear()
        stage.ingest(build.body(build.step(number)))
        reads.append(stage.calls.made.count("dynamodb.get_item"))
    assert reads == [2, 1]


def test_a_run_that_goes_on_for_long_is_kept_as_long_as_its_newest_step() -> None:
    day = 86_400 * build.SECOND
    stage = MemoryStage(retention_days=10)
    stage.ingest(build.body(build.started()))
    first = stage.item(RUN, keys.RUN)
    stage.now_ns += day // 2
    stage.ingest(build.body(build.step(1)))
    assert first is not None
    assert (stage.item(RUN, keys.RUN) or {})["expires_at"] == first["expires_at"]
    stage.now_ns += 3 * day
    stage.ingest(build.body(build.step(2)))
    later = stage.item(RUN, keys.RUN)
    assert later is not None
    assert later["expires_at"] == stage.items_of(RUN, "AGENT#")[1]["expires_at"]
