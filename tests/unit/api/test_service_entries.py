"""Service entries: an invocation is made once, answered once, and read by its own tenant alone."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from functions.adapters import clients
from functions.adapters.s3 import S3ObjectStore
from functions.api import shapes
from functions.api.service_entries import JOB_LIMIT_BYTES
from functions.core import keys
from functions.core.errors import Conflict, NotFound, Rejected, TooLarge, Unavailable
from functions.core.keys import InvocationRef
from functions.core.times import SECOND, text_of
from runtally.job import Job, open_job
from tests import build
from tests.fakes.calls import client_error
from tests.memory_stage import JOBS, NOW_NS, MemoryStage

DAY = 86_400 * SECOND


def the_job(stage: MemoryStage, service_entry: str = "research") -> Job:
    (body,) = stage.jobs(service_entry)
    return open_job(body)


def hook_once(stage: MemoryStage, call: str, when: str, action: Callable[[], Any]) -> None:
    """Do something around the next call of that name: what others did meanwhile."""

    def hook(made: str, moment: str) -> None:
        if (made, moment) == (call, when):
            stage.calls.hook = lambda call, when: None
            action()

    stage.calls.hook = hook


# -- invoking ---------------------------------------------------------------------------------


def test_an_invocation_is_pending_and_its_job_is_on_the_queue_of_the_entry(
    stage: MemoryStage,
) -> None:
    shown = stage.invoke("translate", input={"text": "你好"}, deadline_s=60)
    assert shown == shapes.Invocation(
        invocation_id=shown.invocation_id,
        service_entry="translate",
        status="pending",
        created_at=text_of(NOW_NS),
        deadline_at=text_of(NOW_NS + 60 * SECOND),
    )
    assert len(shown.invocation_id) == 32
    (sent,) = stage.sqs.queues[JOBS["translate"]]
    assert sent.group == "acme"
    job = the_job(stage, "translate")
    assert (job.tenant_id, job.service_entry) == ("acme", "translate")
    assert (job.invocation_id, job.deadline_at) == (shown.invocation_id, NOW_NS + 60 * SECOND)
    assert stage.read_invocation(shown.invocation_id) == shown
    assert stage.jobs("research") == []


@pytest.mark.parametrize(
    "text",
    [
        b"null",
        b"9007199254740993",
        b"1.10",
        b'{"b":1,  "a":2,"a":2}',
        b'"\xe4\xbd\xa0\xf0\x9f\x98\x80"',
        b'"NaN, Infinity"',
        b"[" * 200 + b"]" * 200,
        b"1" * 4_300,
    ],
)
def test_an_input_reaches_the_worker_byte_for_byte(stage: MemoryStage, text: bytes) -> None:
    stage.invoke_raw(b'{"input":' + text + b"}")
    assert bytes(the_job(stage).input) == text


@pytest.mark.parametrize("half", [rb"\ud800", rb"\udfff"])
def test_half_of_a_surrogate_pair_becomes_the_replacement_character(
    stage: MemoryStage, half: bytes
) -> None:
    stage.invoke_raw(b'{"input":"' + half + b'"}')
    assert msgspec.json.decode(the_job(stage).input) == "\ufffd"


REFUSED: dict[str, tuple[bytes, str, str]] = {
    "nothing": (b"", "not_json", ""),
    "no JSON": (b"{", "not_json", ""),
    "no UTF-8": (b'{"input":"\xff"}', "not_json", ""),
    "NaN": (b'{"input":NaN}', "not_json", ""),
    "Infinity": (b'{"input":[-Infinity]}', "not_json", ""),
    "a list": (b"[]", "invalid_field", ""),
    "no input": (b"{}", "invalid_field", "input"),
    "too deep": (b'{"input":' + b"[" * 201 + b"]" * 201 + b"}", "too_deep", "input"),
    "far too deep": (b'{"input":' + b"[" * 99_999 + b"]" * 99_999 + b"}", "not_json", ""),
    "empty token": (b'{"input":1,"client_token":""}', "invalid_field", "client_token"),
    "long token": (
        b'{"input":1,"client_token":"' + b"x" * 129 + b'"}', "invalid_field", "client_token",
    ),
    "no time": (b'{"input":1,"deadline_s":0}', "invalid_field", "deadline_s"),
    "no double": (b'{"input":{"n":1e400}}', "invalid_field", "input[...]"),
    "no int": (b'{"input":[' + b"1" * 5_000 + b"]}", "invalid_field", "input[0]"),
    "unknown": (b'{"input":1,"deadline":5}', "invalid_field", "deadline"),
    "over a week": (b'{"input":1,"deadline_s":604801}', "invalid_field", "deadline_s"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_what_is_no_request_is_refused_by_field_and_leaves_nothing(
    stage: MemoryStage, case: str
) -> None:
    body, reason, field = REFUSED[case]
    with pytest.raises(Rejected) as caught:
        stage.invoke_raw(body)
    assert (caught.value.reason, caught.value.field) == (reason, field)
    assert stage.calls.made == []


def test_an_unknown_service_entry_is_not_found(stage: MemoryStage) -> None:
    with pytest.raises(NotFound):
        stage.invoke("resarch")
    assert stage.calls.made == []


@pytest.mark.parametrize("character", ["x", "你", "\uffff"])
def test_the_largest_input_is_sent_and_one_byte_more_leaves_nothing(
    stage: MemoryStage, character: str
) -> None:
    """U+FFFF is escaped for SQS, and so takes twice its bytes."""
    width = len(character.encode()) * (2 if character == "\uffff" else 1)
    stage.invoke(input="")
    room = JOB_LIMIT_BYTES - len(stage.jobs()[0].encode())
    stage.invoke(input="x" * (room % width) + character * (room // width))
    assert len(stage.jobs()[1].encode()) == JOB_LIMIT_BYTES
    before = list(stage.calls.made)
    with pytest.raises(TooLarge):
        stage.invoke(input="x" * (room % width + 1) + character * (room // width))
    assert stage.calls.made == before


# -- client tokens ----------------------------------------------------------------------------


def test_a_repeated_token_is_the_same_invocation_whose_job_is_sent_once(
    stage: MemoryStage,
) -> None:
    first = stage.invoke(input=[1], client_token="t-1", deadline_s=60)
    stage.now_ns += SECOND
    assert stage.invoke(input=[1], client_token="t-1", deadline_s=99) == first
    assert len(stage.jobs()) == 1
    stage.ingest(build.answer_body(build.answer(first.invocation_id, "你" * 100_001)))
    again = stage.invoke(input=[1], client_token="t-1")
    assert again == stage.read_invocation(first.invocation_id)
    assert (again.status, again.result_truncated) == ("succeeded", True)
    assert again.result_link
    assert len(stage.jobs()) == 1


def test_a_token_with_another_input_is_a_conflict_that_changes_nothing(
    stage: MemoryStage,
) -> None:
    first = stage.invoke(input=[1], client_token="t-1")
    item = stage.invocation_item(first.invocation_id)
    with pytest.raises(Conflict):
        stage.invoke(input=[2], client_token="t-1")
    assert stage.invocation_item(first.invocation_id) == item
    assert len(stage.jobs()) == 1


def test_a_token_belongs_to_its_tenant_and_service_entry(stage: MemoryStage) -> None:
    ids = {
        stage.invoke(entry, tenant, input=n, client_token=token).invocation_id
        for n, (entry, tenant, token) in enumerate(
            [
                ("research", "acme", "t"),
                ("translate", "acme", "t"),
                ("research", "other", "t"),
                ("research", "acme", "T"),
                ("research", "acme", "t "),
            ]
        )
    }
    assert len(ids) == 5


def test_without_a_token_every_request_is_an_invocation_of_its_own(stage: MemoryStage) -> None:
    assert stage.invoke(input=1).invocation_id != stage.invoke(input=1).invocation_id
    assert len(stage.jobs()) == 2


def test_a_token_is_free_again_when_its_invocation_has_expired(stage: MemoryStage) -> None:
    """F38: also while DynamoDB has not deleted it."""
    first = stage.invoke(input=1, client_token="t", deadline_s=60)
    stage.now_ns += 365 * DAY + 59 * SECOND
    with pytest.raises(Conflict):
        stage.invoke(input=2, client_token="t")
    stage.now_ns += SECOND
    again = stage.invoke(input=2, client_token="t")
    assert again.invocation_id == first.invocation_id
    assert (again.status, again.created_at) == ("pending", text_of(stage.now_ns))
    assert len(stage.jobs()) == 2


def test_an_unsent_job_whose_deadline_has_passed_is_not_sent(stage: MemoryStage) -> None:
    fail(stage, "sqs.send_message")
    with pytest.raises(Unavailable):
        stage.invoke(client_token="t", deadline_s=60)
    stage.calls.hook = lambda call, when: None
    stage.now_ns += 60 * SECOND
    shown = stage.invoke(client_token="t", deadline_s=60)
    assert stage.read_invocation(shown.invocation_id).reason == "deadline_passed"
    assert stage.jobs() == []


def test_a_job_that_was_answered_before_it_was_marked_as_sent_is_not_sent_again(
    stage: MemoryStage,
) -> None:
    fail(stage, "dynamodb.update_item")
    assert stage.invoke(client_token="t").status == "pending"
    stage.calls.hook = lambda call, when: None
    stage.ingest(build.answer_body(build.answer(the_job(stage).invocation_id)))
    assert stage.invoke(client_token="t").status == "succeeded"
    assert len(stage.jobs()) == 1


# -- faults -----------------------------------------------------------------------------------


class Killed(BaseException):
    """The sandbox is gone: no handler may catch this."""


def fail(stage: MemoryStage, call: str) -> None:
    def hook(made: str, when: str) -> None:
        if (made, when) == (call, "before"):
            raise client_error(call, "InternalServerError")

    stage.calls.hook = hook


def calls_of_a_clean_invocation() -> list[str]:
    stage = MemoryStage()
    stage.invoke(client_token="t")
    return stage.calls.made


CLEAN = calls_of_a_clean_invocation()


def test_item_then_job_then_mark() -> None:
    assert CLEAN == ["dynamodb.put_item", "sqs.send_message", "dynamodb.update_item"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("how", ["kill", "error"])
@pytest.mark.parametrize("index", range(len(CLEAN)), ids=lambda n: CLEAN[n])
def test_a_fault_anywhere_and_the_same_request_again_is_one_invocation_with_a_job(
    stage: MemoryStage, index: int, how: str, when: Literal["before", "after"]
) -> None:
    seen = 0

    def fault(call: str, moment: str) -> None:
        nonlocal seen
        if stage.jobs():
            assert stage.invocation_item(open_job(stage.jobs()[0]).invocation_id)
        if moment != when:
            return
        seen += 1
        if seen == index + 1:
            raise Killed(call) if how == "kill" else client_error(call, "InternalServerError")

    stage.calls.hook = fault
    marked = how == "error" and CLEAN[index] == "dynamodb.update_item"
    # A job that is on its queue but not marked so is no reason to let the caller ask again.
    expected = nullcontext() if marked else pytest.raises(Killed if how == "kill" else Unavailable)
    with expected:
        stage.invoke(input="why?", client_token="t")
    shown = stage.invoke(input="why?", client_token="t")

    assert shown.status == "pending"
    assert len(stage.dynamodb.items) == 1
    item = stage.invocation_item(shown.invocation_id)
    assert item is not None
    assert item["sent_at"] == NOW_NS
    job_left = (index, when) in {(1, "after"), (2, "before")}
    assert len(stage.jobs()) == 1 + job_left
    assert {open_job(body).invocation_id for body in stage.jobs()} == {shown.invocation_id}


def test_without_a_token_nobody_can_ask_again_and_no_mark_is_written(stage: MemoryStage) -> None:
    stage.invoke()
    assert stage.calls.made == ["dynamodb.put_item", "sqs.send_message"]


def test_asking_again_after_the_deadline_finds_it_failed(stage: MemoryStage) -> None:
    stage.invoke(client_token="t", deadline_s=5)
    stage.now_ns += 5 * SECOND
    again = stage.invoke(client_token="t", deadline_s=5)
    assert (again.status, again.reason) == ("failed", "deadline_passed")
    assert stage.read_invocation(again.invocation_id) == again


def test_two_requests_with_one_token_at_once_are_one_invocation(stage: MemoryStage) -> None:
    other: list[shapes.Invocation] = []
    again = lambda: other.append(stage.invoke(client_token="t"))  # noqa: E731
    hook_once(stage, "dynamodb.put_item", "before", again)
    assert stage.invoke(client_token="t") == other[0]
    assert len(stage.dynamodb.items) == 1


def test_a_mark_on_an_invocation_that_is_gone_makes_none(stage: MemoryStage) -> None:
    hook_once(stage, "dynamodb.update_item", "before", stage.dynamodb.items.clear)
    shown = stage.invoke(client_token="t")
    assert stage.dynamodb.items == {}
    with pytest.raises(NotFound):
        stage.read_invocation(shown.invocation_id)


# -- reading ----------------------------------------------------------------------------------


def test_only_its_own_tenant_reads_an_invocation(stage: MemoryStage) -> None:
    shown = stage.invoke(client_token="t")
    for invocation_id, tenant_id in [
        (shown.invocation_id, "other"),
        ("unknown", "acme"),
        (f"acme#{shown.invocation_id}", "acme"),
    ]:
        with pytest.raises(NotFound):
            stage.read_invocation(invocation_id, tenant_id)
    assert stage.read_invocation(shown.invocation_id) == shown


def test_no_tenant_answers_for_another(stage: MemoryStage) -> None:
    shown = stage.invoke()
    answer = build.answer(shown.invocation_id)
    assert stage.ingest(build.answer_body(answer, tenant_id="other")) == []
    assert stage.dead_letters()[0]["reason"] == "unknown_invocation"
    assert stage.read_invocation(shown.invocation_id) == shown


def test_an_expired_invocation_is_not_found(stage: MemoryStage) -> None:
    """F38."""
    shown = stage.invoke(deadline_s=1)
    stage.now_ns += 365 * DAY + SECOND - 1
    assert stage.read_invocation(shown.invocation_id).status == "failed"
    stage.now_ns += 1
    with pytest.raises(NotFound):
        stage.read_invocation(shown.invocation_id)
    assert stage.invocation_item(shown.invocation_id)


def test_an_invocation_past_its_deadline_has_failed_from_the_first_look_on(
    stage: MemoryStage,
) -> None:
    shown = stage.invoke(deadline_s=60)
    stage.now_ns += 60 * SECOND - 1
    assert stage.read_invocation(shown.invocation_id) == shown
    stage.now_ns += 1
    failed = stage.read_invocation(shown.invocation_id)
    assert (failed.status, failed.reason) == ("failed", "deadline_passed")
    stage.calls.made.clear()
    assert stage.read_invocation(shown.invocation_id) == failed
    assert stage.calls.made == ["dynamodb.get_item"]
    assert failed.error == "no answer came before the deadline"
    assert failed.ended_at == failed.deadline_at
    stage.now_ns += SECOND
    stage.ingest(build.answer_body(build.answer(shown.invocation_id)))
    assert stage.read_invocation(shown.invocation_id) == failed


def test_an_answer_after_the_deadline_counts_when_nobody_was_told_before(
    stage: MemoryStage,
) -> None:
    shown = stage.invoke(deadline_s=60)
    stage.now_ns += 61 * SECOND
    stage.ingest(build.answer_body(build.answer(shown.invocation_id)))
    assert stage.read_invocation(shown.invocation_id).status == "succeeded"


def test_an_answer_between_look_and_verdict_stands(stage: MemoryStage) -> None:
    shown = stage.invoke(deadline_s=60)
    stage.now_ns += 60 * SECOND
    answer = build.answer_body(build.answer(shown.invocation_id, "just in time"))
    hook_once(stage, "dynamodb.update_item", "before", lambda: stage.ingest(answer))
    read = stage.read_invocation(shown.invocation_id)
    assert (read.status, read.result, read.reason) == ("succeeded", "just in time", None)
    assert stage.read_invocation(shown.invocation_id) == read


def test_an_invocation_that_goes_between_look_and_verdict_is_not_found(
    stage: MemoryStage,
) -> None:
    shown = stage.invoke(deadline_s=60)
    stage.now_ns += 60 * SECOND
    hook_once(stage, "dynamodb.update_item", "before", stage.dynamodb.items.clear)
    with pytest.raises(NotFound):
        stage.read_invocation(shown.invocation_id)


def test_a_verdict_whose_answer_was_lost_stands(stage: MemoryStage) -> None:
    shown = stage.invoke(deadline_s=60)
    stage.now_ns += 60 * SECOND

    def lose() -> None:
        raise client_error("UpdateItem", "InternalServerError")

    hook_once(stage, "dynamodb.update_item", "after", lose)
    with pytest.raises(Unavailable):
        stage.read_invocation(shown.invocation_id)
    stage.now_ns += SECOND
    assert stage.read_invocation(shown.invocation_id).ended_at == shown.deadline_at


def test_a_truncated_result_alone_has_a_link_signed_anew_for_every_reader(
    stage: MemoryStage,
) -> None:
    short, long = stage.invoke().invocation_id, stage.invoke().invocation_id
    stage.ingest(build.answer_body(build.answer(short, "x" * 300_000)))
    stage.ingest(build.answer_body(build.answer(long, "x" * 300_001)))
    assert stage.read_invocation(short).result_link is None
    first = stage.read_invocation(long).result_link
    assert first is not None
    assert first.expires_at == text_of(NOW_NS + 900 * SECOND)
    signed = parse_qs(urlsplit(first.url).query)
    assert signed["Expires"] == ["900"]
    assert stage.s3.objects[signed["Key"][0]] == b"x" * 300_001
    stage.now_ns += SECOND
    second = stage.read_invocation(long).result_link
    assert second is not None
    assert second.expires_at == text_of(NOW_NS + 901 * SECOND)


def test_links_are_signed_with_version_4(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    key = keys.result_object(InvocationRef("acme", "i:1"), "0" * 64)
    url = urlsplit(S3ObjectStore(clients.s3(), "b").link_to_result(key, 900))
    query = parse_qs(url.query)
    assert query["X-Amz-Algorithm"] == ["AWS4-HMAC-SHA256"]
    assert query["X-Amz-Expires"] == ["900"]
    assert url.path.endswith("/invocations/acme/i%3A1/0000000000000000.txt")
