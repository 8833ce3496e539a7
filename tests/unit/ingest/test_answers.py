"""The first answer to an invocation counts: in any order, however often, whatever its size."""

import hashlib
import itertools
import json
from typing import Any, Literal, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.adapters.attributes import to_attributes
from functions.core import keys
from functions.core.keys import InvocationRef
from functions.core.times import SECOND
from functions.ingest.handler import process
from runtally import wire
from runtally.job import open_job
from runtally.worker import JobWorker
from tests import build, published
from tests.build import RUN
from tests.event_files import event
from tests.fakes.calls import client_error
from tests.fakes.dynamodb import item_size
from tests.memory_stage import JOBS, NOW_NS, MemoryStage


def settled(stage: MemoryStage, *answers: wire.InvocationEnded) -> None:
    for answer in answers:
        assert stage.ingest(build.answer_body(answer)) == []


def objects(stage: MemoryStage) -> dict[str, bytes]:
    return {key: content for key, content in stage.s3.objects.items() if "invocations/" in key}


def claim_of(stage: MemoryStage, body: str, tenant_id: str = "acme", inbox: str = "_") -> str:
    """The message that stands for a body in the inbox."""
    content = body.encode()
    sha256 = hashlib.sha256(content).hexdigest()
    claim = wire.Claim(f"inbox/{tenant_id}/{inbox}/{sha256}", sha256, len(content))
    stage.s3.objects[claim.key] = content
    return wire.encode_event(wire.Head(1, tenant_id, claim=claim)).decode()  # type: ignore[arg-type]


@pytest.mark.usefixtures("metrics_on")
def test_answers_duplicates_conflicts_and_what_answers_nothing(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    stage = MemoryStage()
    stage.ingest_parts.telemetry.logger.setLevel("INFO")
    first, second = (stage.invoke(client_token=token).invocation_id for token in ("t-1", "t-2"))
    batch = event("ingest/invocation-ended")
    published.read(capsys)

    assert process(batch, stage.ingest_parts) == {"batchItemFailures": []}

    shown = stage.read_invocation(first)
    assert (shown.status, shown.result) == ("succeeded", '{"answer":"三个来源"}')
    assert (shown.result_bytes, shown.result_truncated, shown.error) == (25, False, None)
    other = stage.read_invocation(second)
    assert (other.status, other.result, other.result_bytes) == ("failed", None, None)
    assert (other.reason, other.error) == (None, "no such customer")
    bodies = [record["body"] for record in batch["Records"]]
    assert [(d["reason"], d["field"], d["body"]) for d in stage.dead_letters()] == [
        ("unknown_invocation", "events[0].invocation_id", bodies[4]),
        ("invalid_field", "run_id", bodies[5]),
    ]
    metrics = published.read(capsys)
    assert (metrics["Answers"], metrics["Duplicates"], metrics["Conflicts"]) == (2, 1, 1)
    assert metrics["Rejected.unknown_invocation"] == metrics["Rejected.invalid_field"] == 1
    (conflict,) = [vars(log) for log in caplog.records if log.getMessage() == "conflict"]
    assert (conflict["tenant_id"], conflict["ids"]) == ("acme", (first,))
    assert stage.items_of(RUN) == []


@pytest.mark.usefixtures("metrics_on")
def test_an_answer_to_an_invocation_that_has_failed_is_late(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    stage = MemoryStage()
    stage.ingest_parts.telemetry.logger.setLevel("INFO")
    overdue, dead = stage.invoke(deadline_s=1), stage.invoke()
    stage.dead_jobs(stage.jobs()[1])
    stage.now_ns += SECOND
    failed = [stage.read_invocation(one.invocation_id) for one in (overdue, dead)]
    assert [one.reason for one in failed] == ["deadline_passed", "job_failed"]
    published.read(capsys)
    caplog.clear()

    settled(stage, *(build.answer(one.invocation_id) for one in failed))

    assert published.read(capsys)["LateAnswers"] == 2
    assert [log.getMessage() for log in caplog.records] == ["late answer"] * 2
    assert vars(caplog.records[0])["ids"] == (overdue.invocation_id,)
    assert [stage.read_invocation(one.invocation_id) for one in failed] == failed
    assert stage.dead_letters() == []


def test_a_message_of_answers_holds_nothing_else() -> None:
    """The events that can be recorded are kept, as in every message."""
    stage = MemoryStage()
    one, two = stage.invoke().invocation_id, stage.invoke().invocation_id
    body = build.answer_body(build.answer(one), build.step(1), build.answer("?"), build.answer(two))
    assert stage.ingest(body) == []
    (letter,) = stage.dead_letters()
    assert [(r["reason"], r["field"]) for r in letter["refusals"]] == [
        ("invalid_field", "run_id"),
        ("invalid_field", "events[2].invocation_id"),
    ]
    assert letter["body"] == body
    assert {stage.read_invocation(i).status for i in (one, two)} == {"succeeded"}
    assert stage.items_of(RUN) == []


def test_a_run_keeps_its_steps_beside_a_stray_answer() -> None:
    stage = MemoryStage()
    invocation_id = stage.invoke().invocation_id
    assert stage.ingest(build.body(build.answer(invocation_id), build.step(1))) == []
    (letter,) = stage.dead_letters()
    assert (letter["reason"], letter["field"]) == ("invalid_field", "run_id")
    assert stage.read_invocation(invocation_id).status == "pending"
    assert len(stage.items_of(RUN, keys.STEP_PREFIX)) == 1


# -- sizes ------------------------------------------------------------------------------------

SIZES: dict[str, tuple[str, int]] = {
    "nothing": ("", 0),
    "299,999 ascii": ("x" * 299_999, 0),
    "300,000 ascii": ("x" * 300_000, 0),
    "300,001 ascii": ("x" * 300_001, 300_000),
    "100,000 CJK": ("你" * 100_000, 0),
    "100,001 CJK": ("你" * 100_001, 300_000),
    "one byte and 100,000 CJK": ("x" + "你" * 100_000, 299_998),
    "75,000 emoji": ("🎉" * 75_000, 0),
    "75,001 emoji": ("🎉" * 75_001, 300_000),
    "one byte and 75,000 emoji": ("x" + "🎉" * 75_000, 299_997),
    "two bytes over with an accent": ("é" * 150_001, 300_000),
    "900 KB of CJK": ("你" * 300_000, 300_000),
}
"""A result, and the bytes of it that are shown when it is cut."""


@pytest.mark.parametrize("case", SIZES, ids=str)
def test_a_long_result_is_cut_between_characters_and_kept_whole_and_has_succeeded(
    case: str,
) -> None:
    result, shown_bytes = SIZES[case]
    stage = MemoryStage()
    invocation_id = stage.invoke().invocation_id
    settled(stage, build.answer(invocation_id, result))

    shown = stage.read_invocation(invocation_id)
    assert shown.status == "succeeded"
    assert shown.result_bytes == len(result.encode())
    assert shown.result_truncated == bool(shown_bytes)
    assert shown.result is not None
    assert result.startswith(shown.result)
    assert len(shown.result.encode()) == (shown_bytes or len(result.encode()))
    item = stage.invocation_item(invocation_id)
    assert item is not None
    assert item_size(to_attributes(item)) < 310_000
    if not shown_bytes:
        assert objects(stage) == {}
        return
    ((key, content),) = objects(stage).items()
    assert content == result.encode()
    sha256 = hashlib.sha256(content).hexdigest()
    assert key == item["result_object"] == f"invocations/acme/{invocation_id}/{sha256[:16]}.txt"


def test_texts_that_no_strict_parser_takes() -> None:
    """F33: half a surrogate pair becomes U+FFFD; NaN as a result is refused as what it is."""
    stage = MemoryStage()
    one, two, three = (stage.invoke().invocation_id for _ in range(3))
    body = build.answer_body(build.answer(one, "HALF NaN", error="HALF"))
    assert stage.ingest(body.replace("HALF", r"\ud800", 1).replace("HALF", "\udfff", 1)) == []
    shown = stage.read_invocation(one)
    assert (shown.result, shown.error) == ("\ufffd NaN", "\ufffd")
    assert stage.ingest(build.answer_body(build.answer(two, "R")).replace('"R"', "NaN")) == []
    (letter,) = stage.dead_letters()
    assert (letter["reason"], letter["field"]) == ("not_finite", "events[0].result")
    assert stage.read_invocation(two).status == "pending"
    settled(stage, build.answer(three, "\x00\uffff"))
    assert stage.read_invocation(three).result == "\x00\uffff"


def test_a_result_of_one_and_a_half_megabytes_comes_through_the_bucket() -> None:
    stage = MemoryStage()
    invocation_id = stage.invoke().invocation_id
    result = "长" * 500_000
    worker = JobWorker(
        job_queue_url=JOBS["research"],
        queue_url="memory://events",
        bucket="b",
        sqs=cast("Any", stage.sqs),
        s3=cast("Any", stage.s3),
        clock=stage.sqs.clock,
    )
    received = worker.receive()
    assert received is not None
    with received as job:
        job.succeed(result)
    assert stage.jobs() == []
    assert stage.ingest(*(sent.body for sent in stage.sqs.queues["memory://events"])) == []
    assert stage.dead_letters() == []
    shown = stage.read_invocation(invocation_id)
    assert (shown.status, shown.result_bytes) == ("succeeded", 1_500_000)
    assert shown.result == "长" * 100_000
    assert list(objects(stage).values()) == [result.encode()]


@pytest.mark.parametrize(("tenant_id", "inbox"), [("acme", "run-1"), ("acme", ""), ("other", "_")])
def test_a_claim_outside_the_inbox_of_answers_is_refused(tenant_id: str, inbox: str) -> None:
    stage = MemoryStage()
    invocation_id = stage.invoke().invocation_id
    body = build.answer_body(build.answer(invocation_id), tenant_id="acme")
    message = claim_of(stage, body, tenant_id, inbox).replace(
        f'"tenant_id":"{tenant_id}"', '"tenant_id":"acme"'
    )
    assert stage.ingest(message) == []
    (letter,) = stage.dead_letters()
    assert (letter["reason"], letter["field"]) == ("invalid_claim", "claim.key")
    assert stage.read_invocation(invocation_id).status == "pending"


# -- orders and faults ------------------------------------------------------------------------


@given(st.lists(st.sampled_from([0, 1, 2]), min_size=1, max_size=6))
def test_the_first_of_many_answers_counts_however_often_they_come(order: list[int]) -> None:
    stage = MemoryStage()
    invocation_id = stage.invoke().invocation_id
    answers = [
        build.answer(invocation_id, "one"),
        build.answer(invocation_id, None, status="failed", error="why"),
        build.answer(invocation_id, "x" * 300_001, status="cancelled"),
    ]
    for n in order:
        settled(stage, answers[n])
        stage.now_ns += SECOND
    first = answers[order[0]]
    shown = stage.read_invocation(invocation_id)
    assert (shown.status, shown.error) == (first.status, first.error)
    assert shown.result == (first.result and first.result[:300_000])
    assert shown.result_truncated == (order[0] == 2)
    assert (shown.result_link is not None) == shown.result_truncated


@pytest.mark.parametrize("order", [*itertools.permutations(["answer", "deadline", "dead job"])])
def test_whatever_settles_first_stands(order: tuple[str, ...]) -> None:
    stage = MemoryStage()
    invocation_id = stage.invoke(deadline_s=1).invocation_id
    stage.now_ns += SECOND
    seen = []
    for what in order:
        if what == "answer":
            settled(stage, build.answer(invocation_id))
        elif what == "dead job":
            assert stage.dead_jobs(*stage.jobs()) == []
        else:
            stage.read_invocation(invocation_id)
        seen.append(stage.invocation_item(invocation_id))
        stage.now_ns += SECOND
    assert seen[0] == seen[1] == seen[2]
    item = seen[0]
    assert item is not None
    expected = {"answer": None, "deadline": "deadline_passed", "dead job": "job_failed"}
    assert item.get("reason") == expected[order[0]]


class Killed(BaseException):
    """The sandbox is gone: no handler may catch this."""


def invoked() -> tuple[MemoryStage, str]:
    stage = MemoryStage()
    invocation_id = stage.invoke(client_token="t").invocation_id
    stage.calls.made.clear()
    return stage, build.answer_body(build.answer(invocation_id, "你" * 100_001))


def calls_of_a_clean_answer() -> list[str]:
    stage, body = invoked()
    assert stage.ingest(body) == []
    return stage.calls.made


CLEAN = calls_of_a_clean_answer()


def test_object_then_item() -> None:
    assert CLEAN == ["dynamodb.get_item", "s3.put_object", "dynamodb.update_item"]


def test_a_long_answer_to_nothing_leaves_no_object() -> None:
    stage, _ = invoked()
    assert stage.ingest(build.answer_body(build.answer("f" * 32, "你" * 100_001))) == []
    assert objects(stage) == {}
    assert [letter["reason"] for letter in stage.dead_letters()] == ["unknown_invocation"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("how", ["kill", "error"])
@pytest.mark.parametrize("index", range(len(CLEAN)), ids=lambda n: CLEAN[n])
def test_a_fault_anywhere_and_a_redelivery_is_one_answer_whose_object_is_there(
    index: int, how: str, when: Literal["before", "after"]
) -> None:
    stage, body = invoked()
    (invocation_id,) = {open_job(job).invocation_id for job in stage.jobs()}
    seen = 0

    def fault(call: str, moment: str) -> None:
        nonlocal seen
        item = stage.invocation_item(invocation_id)
        assert item is not None
        assert item["status"] == "pending" or item["result_object"] in stage.s3.objects
        if moment != when:
            return
        seen += 1
        if seen == index + 1:
            raise Killed(call) if how == "kill" else client_error(call, "InternalServerError")

    stage.calls.hook = fault
    try:
        failed = bool(stage.ingest(body))
    except Killed:
        failed = True
    assert failed
    stage.now_ns += SECOND
    assert stage.ingest(body) == []

    shown = stage.read_invocation(invocation_id)
    assert (shown.status, shown.result_truncated) == ("succeeded", True)
    assert list(objects(stage).values()) == [("你" * 100_001).encode()]
    assert stage.dead_letters() == []
    plain, again = invoked()
    if (CLEAN[index], when) != ("dynamodb.update_item", "after"):
        plain.now_ns += SECOND
    plain.ingest(again)
    assert plain.invocation_item(invocation_id) == stage.invocation_item(invocation_id)


@pytest.mark.parametrize("code", ["ConditionalRequestConflict", "SlowDown"])
def test_a_put_that_settled_nothing_brings_the_message_again(code: str) -> None:
    """F11: 409 is not 412."""
    stage, body = invoked()

    def refuse(call: str, when: str) -> None:
        if (call, when) == ("s3.put_object", "before"):
            raise client_error(call, code)

    stage.calls.hook = refuse
    assert stage.ingest(body) == ["0"]
    assert "dynamodb.update_item" not in stage.calls.made
    assert stage.dead_letters() == []


def test_an_answer_to_an_expired_invocation_is_dead_lettered() -> None:
    """F38: though its item has not been deleted yet."""
    stage = MemoryStage(retention_days=1)
    invocation_id = stage.invoke(deadline_s=1).invocation_id
    item = stage.invocation_item(invocation_id)
    stage.now_ns += 86_401 * SECOND
    settled(stage, build.answer(invocation_id))
    assert stage.dead_letters()[0]["reason"] == "unknown_invocation"
    assert stage.invocation_item(invocation_id) == item


def test_nothing_is_counted_of_an_invocation() -> None:
    stage = MemoryStage()
    settled(stage, build.answer(stage.invoke().invocation_id))
    assert len(stage.dynamodb.stream) == 2
    assert stage.new_stream_records() == []


def test_what_stands_on_an_answered_item() -> None:
    stage = MemoryStage()
    invocation_id = stage.invoke("research", input={"n": 1}).invocation_id
    answer = build.answer(invocation_id, "done", error="e" * 5_000)
    settled(stage, answer)
    key = keys.invocation_item(InvocationRef("acme", invocation_id))
    assert stage.invocation_item(invocation_id) == {
        "PK": key.partition,
        "SK": "INVOCATION",
        "service_entry": "research",
        "status": "succeeded",
        "created_at": NOW_NS,
        "deadline_at": NOW_NS + 3_600 * SECOND,
        "ended_at": NOW_NS,
        "v": 1,
        "input_digest": hashlib.sha256(json.dumps({"n": 1}, separators=(",", ":")).encode())
        .hexdigest(),
        "digest": wire.digest(wire.encode_event(answer)),
        "result": "done",
        "result_bytes": 4,
        "error": "e" * 4_096,
        "expires_at": NOW_NS // SECOND + 3_600 + 365 * 86_400,
    }  # fmt: skip
