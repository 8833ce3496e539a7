"""What the adapters promise (core.ports), on the fakes and on the embedded AWS alike."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from functions.adapters.dynamodb import Refused
from functions.adapters.sqs import SqsDeadLetters
from functions.core import items, keys
from functions.core.errors import Rejected, Unavailable
from functions.core.keys import Pointer, RunRef
from functions.core.model import End, Order, Outcome, Run, RunStatus, Start, Summary, Totals
from functions.core.phases import summarize_steps
from functions.core.ports import Recorded, Refusal
from runtally import wire
from tests import build
from tests.contract.conftest import Services

pytestmark = pytest.mark.xdist_group("contract")

EXPIRES = 1_900_000_000
T = build.T0


def a_run(ref: RunRef, at: int = T, **changes: Any) -> Run:
    start = Start(Order(at, "d5"), pipeline="p", **changes)
    return Run(ref, buckets=2, start=start, expires_at=EXPIRES)


def recorded[E](event: E, digest: str = "d", name: str = "o") -> Recorded[E]:
    return Recorded(event, digest, Pointer(name, 0, 10), T)


def rows(*steps: wire.Step) -> list[Any]:
    run = a_run(RunRef("t", "r"))
    return [items.step_row(items.step_item(run, recorded(step))) for step in steps]


def written(services: Services, action: Any) -> float:
    """The write units that an action consumed."""
    services.table.take_consumption()
    action()
    return services.table.take_consumption()["WriteUnits"]


def test_a_run_is_opened_once_and_reads_back_as_it_was(services: Services, ref: RunRef) -> None:
    run = a_run(ref, session_id="s", attributes='{"a":1}', stale_after_s=60)
    assert services.runs.load_run(ref) is None
    assert services.runs.open_run(run) is None
    assert services.runs.load_run(ref) == run
    other = replace(run, buckets=7, start=replace(run.start, pipeline="other"))
    assert services.runs.open_run(other) == run
    assert services.runs.load_run(ref) == run


def test_opening_and_ending_a_run_cost_three_units_each(services: Services, ref: RunRef) -> None:
    """RUN and its two index entries: they appear, one of them goes."""
    run = a_run(ref)
    end = End(Order(T, "a"), RunStatus.SUCCEEDED)
    assert written(services, lambda: services.runs.open_run(run)) == 3
    assert written(services, lambda: services.runs.end_run(run, end)) == 3


def test_the_earlier_start_stands_and_an_implicit_one_yields_to_any(
    services: Services, ref: RunRef
) -> None:
    implicit = Start(Order(T + 50, ""), implicit=True)
    run = Run(ref, 1, implicit, EXPIRES)
    services.runs.open_run(run)

    def start_after(start: Start) -> Start:
        services.runs.replace_start(run, start)
        loaded = services.runs.load_run(ref)
        assert loaded is not None
        return loaded.start

    lower = replace(implicit, order=Order(T + 40, ""))
    assert start_after(replace(implicit, order=Order(T + 60, ""))) == implicit
    assert start_after(lower) == lower
    real = Start(Order(T + 70, "d5"), pipeline="p")
    assert start_after(real) == real
    assert start_after(lower) == real
    assert start_after(Start(Order(T + 70, "d6"), pipeline="q")) == real
    tie = Start(Order(T + 70, "d4"), pipeline="q")
    assert start_after(tie) == tie
    earlier = Start(Order(T + 10, "d9"), pipeline="r")
    assert start_after(earlier) == earlier
    item = services.table.get(keys.item_of_run(ref, keys.RUN))
    assert item is not None
    assert item[keys.BY_TENANT_SORT] == f"RUN#{T + 10:019d}#{ref.run_id}"


def test_the_earlier_end_stands_and_closes_the_run(services: Services, ref: RunRef) -> None:
    run = a_run(ref)
    services.runs.open_run(run)

    def end_after(end: End) -> End | None:
        services.runs.end_run(run, end)
        loaded = services.runs.load_run(ref)
        assert loaded is not None
        return loaded.end

    second = End(Order(T + 9, "b"), RunStatus.FAILED, "why")
    assert end_after(second) == second
    assert end_after(End(Order(T + 9, "c"), RunStatus.SUCCEEDED)) == second
    assert end_after(End(Order(T + 10, "a"), RunStatus.SUCCEEDED)) == second
    first = End(Order(T + 9, "a"), RunStatus.CANCELLED)
    assert end_after(first) == first
    item = services.table.get(keys.item_of_run(ref, keys.RUN))
    assert item is not None
    assert item["status"] == "cancelled"
    assert keys.OPEN_RUNS_PARTITION not in item
    services.runs.replace_start(run, Start(Order(T - 5, "a"), pipeline="earlier"))
    item = services.table.get(keys.item_of_run(ref, keys.RUN))
    assert item is not None
    assert keys.OPEN_RUNS_PARTITION not in item


def test_a_deleted_run_takes_no_change(services: Services, ref: RunRef) -> None:
    run = a_run(ref)
    services.runs.open_run(run)
    key = keys.item_of_run(ref, keys.RUN)
    services.table.update(key, "SET #deleted_at = :now", "", {":now": 1})
    before = services.table.get(key)
    services.runs.end_run(run, End(Order(T, "a"), RunStatus.FAILED))
    services.runs.replace_start(run, Start(Order(0, "a")))
    services.runs.extend_retention(replace(run, expires_at=EXPIRES + 1))
    assert services.table.get(key) == before
    loaded = services.runs.load_run(ref)
    assert loaded is not None
    assert loaded.deleted


def test_a_run_that_expired_must_be_opened_again(services: Services, ref: RunRef) -> None:
    with pytest.raises(Unavailable):
        services.runs.end_run(a_run(ref), End(Order(T, "a"), RunStatus.FAILED))


def test_retention_is_only_ever_extended(services: Services, ref: RunRef) -> None:
    run = a_run(ref)
    services.runs.open_run(run)
    for given, kept in ((EXPIRES + 5, EXPIRES + 5), (EXPIRES + 1, EXPIRES + 5)):
        services.runs.extend_retention(replace(run, expires_at=given))
        loaded = services.runs.load_run(ref)
        assert loaded is not None
        assert loaded.expires_at == kept


def test_a_step_is_stored_once_and_a_different_body_is_a_conflict(
    services: Services, ref: RunRef
) -> None:
    run = a_run(ref)
    one, two = build.step(1, name="一"), build.step(2)
    assert services.runs.append_steps(run, [recorded(one), recorded(two)]) == [Outcome.STORED] * 2
    assert services.runs.append_steps(run, [recorded(one), recorded(two, "e")]) == [
        Outcome.DUPLICATE,
        Outcome.CONFLICT,
    ]
    key = keys.step_item(ref, 2, two.step_id)
    item = services.table.get(key)
    assert item is not None
    assert item["digest"] == "d"
    assert (
        written(services, lambda: services.runs.append_steps(run, [recorded(build.step(3))])) == 1
    )
    assert services.runs.append_log(run, recorded(build.log(1, "x"))) == Outcome.STORED
    assert services.runs.append_log(run, recorded(build.log(1, "x"))) == Outcome.DUPLICATE
    assert services.runs.append_log(run, recorded(build.log(1, "y"), "e")) == Outcome.CONFLICT


def test_the_result_of_the_earlier_end_stands(services: Services, ref: RunRef) -> None:
    run = a_run(ref)
    for at, digest in ((T + 2, "b"), (T + 2, "c"), (T + 2, "a"), (T + 1, "z"), (T + 3, "a")):
        services.runs.put_result(run, recorded(build.ended(at, result=f"{at} {digest}"), digest))
    item = services.table.get(keys.item_of_run(ref, keys.RESULT))
    assert item is not None
    assert (item["at"], item["digest"], item["result"]) == (T + 1, "z", f"{T + 1} z")


def test_sums_are_added_once_per_mark_and_bucket(services: Services, ref: RunRef) -> None:
    run = a_run(ref)
    sums = Totals.of(rows(build.step(1, cost_usd="0.000000000000000001"), build.step(2)))

    def add(bucket: int, first: bytes, last: bytes) -> tuple[bool, int]:
        added, live = services.totals.add_to_totals(run, bucket, sums, first, last)
        return added, live.totals.agents_total

    assert add(0, b"\x01", b"\x03") == (True, 2)
    assert add(0, b"\x01", b"\x03") == (False, 2)
    assert add(0, b"\x03", b"\x05") == (False, 2)  # equal is counted already
    assert add(0, b"\x04", b"\x05") == (True, 4)
    assert add(1, b"\x01", b"\x02") == (True, 6)
    live = services.totals.read_totals(run)
    assert live.marks == {0: b"\x05", 1: b"\x02"}
    assert live.totals.cost_usd_total == Decimal("0.000000000000000003")
    assert live.totals.cost_unknown_total == 3
    assert not live.ended
    assert services.totals.mark_ended(run).ended
    services.totals.mark_preview_full(run)
    assert services.totals.read_totals(run).preview_full
    assert services.totals.read_totals(run).totals.agents_total == 6
    cost = written(services, lambda: services.totals.add_to_totals(run, 0, sums, b"\x06", b"\x07"))
    assert cost == 1


def test_the_preview_takes_only_what_fits_whole(services: Services, ref: RunRef) -> None:
    run = a_run(ref)
    some = rows(*(build.step(n, cost_usd="0.5", phase="长" * 100) for n in range(1, 61)))

    def extend(count: int, bucket: int, first: bytes, last: bytes) -> tuple[bool, int]:
        added, preview = services.totals.extend_preview(run, bucket, some[:count], first, last)
        return added, preview.length

    assert extend(60, 0, b"\x01", b"\x02") == (True, 60)
    assert extend(60, 0, b"\x01", b"\x02") == (False, 60)
    assert extend(41, 0, b"\x03", b"\x04") == (False, 60)
    assert extend(40, 1, b"\x03", b"\x04") == (True, 100)
    assert extend(1, 1, b"\x05", b"\x06") == (False, 100)
    item = services.table.get(keys.item_of_run(ref, keys.PREVIEW))
    assert item is not None
    assert item["agents"][0] == [build.step_id(1), "s", "model", 1000, Decimal("0.5"), "长" * 8, ""]


def test_a_summary_is_replaced_only_by_one_that_knows_more(services: Services, ref: RunRef) -> None:
    run = a_run(ref)

    def put(steps: int, at_total: int, fold_version: int = 1) -> bool:
        summary = summarize_steps(rows(*map(build.step, range(1, steps + 1))), at_total)
        return services.totals.put_summary(run, replace(summary, fold_version=fold_version))

    assert services.totals.covered_total(run) is None
    assert put(steps=3, at_total=2)
    assert services.totals.covered_total(run) == 2
    assert not put(steps=3, at_total=2)
    assert not put(steps=2, at_total=9)
    assert put(steps=3, at_total=3)
    assert not put(steps=3, at_total=1)
    assert put(steps=3, at_total=3, fold_version=2)
    assert put(steps=4, at_total=1)
    assert services.totals.covered_total(run) == 1


def test_all_steps_are_read_back_page_by_page(services: Services, ref: RunRef) -> None:
    run = replace(a_run(ref), buckets=1)
    steps = [
        build.step(n, error="e" * 300, attributes={"k": "v" * 1_900}, name="n" * 200)
        for n in range(1, 501)
    ]  # 1.2 MB, more than a page
    services.runs.append_steps(run, [recorded(step) for step in steps])
    found = list(services.totals.steps_of_run(run))
    assert sorted(row.step_id for row in found) == [step.step_id for step in steps]
    assert Totals.of(found) == Totals.of(rows(*steps))


@pytest.mark.parametrize(
    "number",
    ["0", "-0", "0.1", "0.10", "1E-20", "9" * 38, "-" + "9" * 38, "1" + "0" * 38, "1E+40"],
)
def test_numbers_read_back_as_they_were(services: Services, ref: RunRef, number: str) -> None:
    """F24. Trailing zeros count as digits until they are taken off."""
    key = keys.item_of_run(ref, keys.TOTALS)
    services.table.update(key, "SET #n = :n", "", {":n": items.money(number)})
    item = services.table.get(key)
    assert item is not None
    assert item["n"] == Decimal(number)


def test_a_number_of_39_digits_is_refused(services: Services, ref: RunRef) -> None:
    key = keys.item_of_run(ref, keys.TOTALS)
    with pytest.raises(ArithmeticError):
        services.table.update(key, "SET #n = :n", "", {":n": Decimal("1" * 39)})


def test_numbers_of_another_sdk_do_not_block_a_page(services: Services, ref: RunRef) -> None:
    """F25: 40 written digits, of which the last are zeros."""
    key = keys.item_of_run(ref, keys.TOTALS)
    written_number = "1234567895171680000000000000000000000000"
    services.dynamodb.put_item(
        TableName=services.table_name,
        Item={"PK": {"S": key.partition}, "SK": {"S": key.sort}, "n": {"N": written_number}},
    )
    item = services.table.get(key)
    assert item is not None
    assert item["n"] == Decimal(written_number)


def test_a_refusal_carries_the_item_and_is_counted(services: Services, ref: RunRef) -> None:
    key = keys.item_of_run(ref, keys.TOTALS)
    services.table.update(key, "SET #a = :a", "", {":a": 1})
    services.table.take_consumption()
    with pytest.raises(Refused) as refused:
        services.table.update(key, "SET #a = :b", "#a > :b", {":b": 2})
    assert refused.value.item is not None
    assert refused.value.item["a"] == 1
    assert services.table.take_consumption() == {"WriteUnits": 0, "RefusedWrites": 1}


def test_an_object_is_put_once_and_only_with_its_own_bytes(services: Services, ref: RunRef) -> None:
    key = keys.object_of_run(ref, "1-a")
    services.objects.put_object(key, b"bytes", 3)
    services.objects.put_object(key, b"bytes", 3)
    with pytest.raises(Unavailable):
        services.objects.put_object(key, b"other", 3)
    assert services.s3.get_object(Bucket=services.bucket, Key=key)["Body"].read() == b"bytes"


def test_a_claim_is_read_only_at_its_stated_size(services: Services, ref: RunRef) -> None:
    key = keys.inbox_prefix(ref) + "0" * 64
    services.s3.put_object(Bucket=services.bucket, Key=key, Body=b"12345")
    assert services.objects.get_claimed(key, 5) == b"12345"
    with pytest.raises(Rejected) as wrong_size:
        services.objects.get_claimed(key, 6)
    assert wrong_size.value.field == "claim.bytes"
    with pytest.raises(Rejected) as missing:
        services.objects.get_claimed(key + "1", 5)
    assert missing.value.field == "claim.key"


def test_a_dead_letter_keeps_the_body_and_says_why(services: Services) -> None:
    letters = SqsDeadLetters(services.sqs, services.queue_url, services.objects)
    body = '{"v":1,"events":["\\u0000 你好 🎉"]}'
    letters.put_dead_letter(body, [Refusal("invalid_field", "events[0].\x07", "bad \x00 你")])
    if services.table_name == "t":
        (sent,) = services.sqs.queues[services.queue_url]
        assert sent.body == body
        assert sent.attributes["field"] == "events[0].?"
        return
    answer = services.sqs.receive_message(
        QueueUrl=services.queue_url, MessageAttributeNames=["All"]
    )
    (message,) = answer["Messages"]
    assert message["Body"] == body
    attributes = {n: v["StringValue"] for n, v in message["MessageAttributes"].items()}
    assert attributes["reason"] == "invalid_field"
    assert attributes["field"] == "events[0].?"
    assert "bad" in attributes["refusals"]


def test_summaries_of_nothing_and_of_much_read_back(services: Services, ref: RunRef) -> None:
    run = a_run(ref)
    nothing = summarize_steps([], 0)
    assert services.totals.put_summary(run, nothing)
    item = services.table.get(keys.item_of_run(ref, keys.SUMMARY))
    assert item is not None
    assert (item["agents_total"], item["phases_summary"]) == (0, [])
    steps = [build.step(n, phase=f"阶段 {n}", agent="a", model="m") for n in range(1, 301)]
    much: Summary = summarize_steps(rows(*steps), 300)
    assert services.totals.put_summary(run, much)
    item = services.table.get(keys.item_of_run(ref, keys.SUMMARY))
    assert item is not None
    assert len(item["phases_summary"]) == 201
    assert item["phases_summary"][0]["agents"] == ["a"]
    assert sum(phase["calls"] for phase in item["phases_summary"]) == 300
