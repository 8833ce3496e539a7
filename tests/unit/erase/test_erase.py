"""Deletion of a run: the tombstone, what is erased behind it, and the receipt."""

from collections.abc import Callable

import pytest

from functions.adapters.attributes import from_attributes
from functions.adapters.dynamodb import DynamoDBTable
from functions.adapters.dynamodb_tenant_deletion import DynamoDBTenantData
from functions.api import shapes
from functions.api.runs import CallsWanted, RunsWanted
from functions.core import keys
from functions.core.errors import NotFound, Rejected
from functions.core.keys import RunRef
from functions.erase import handler
from functions.erase.erase import Erase
from tests import build, published
from tests.build import RUN
from tests.event_files import event
from tests.fakes.calls import Hook, client_error
from tests.memory_stage import DEAD_LETTERS, ERASURES, QUIET_S, RECOUNTS, MemoryStage

TOMBSTONE = {"PK", "SK", "v", "buckets", "deleted_at", "expires_at", "deletion"}
"""What is left of a run, in the end."""


def recorded(stage: MemoryStage, run: RunRef = RUN, steps: int = 12, buckets: int = 3) -> None:
    """A run with every kind of item, and an object that came by way of the inbox."""
    start = build.started(session_id="s", attributes={"customer": "c"})
    stage.ingest(build.body(start, run=run, buckets=buckets))
    many = [build.step(n, phase="plan", payload={"n": n}) for n in range(1, steps)]
    stage.ingest_claimed(run, build.body(*many, build.log(50, "x"), run=run).encode())
    last = build.step(steps, cost_usd="0.5")
    assert stage.ingest(build.body(last, build.ended(result="done"), run=run)) == []
    stage.drain()


def left_of(stage: MemoryStage, run: RunRef = RUN) -> tuple[list[str], list[str]]:
    """Sort keys and objects, all versions of them."""
    below = (keys.objects_of_run(run), keys.inbox_prefix(run))
    objects = [key for key in {*stage.s3.objects, *stage.s3.older} if key.startswith(below)]
    return [item[keys.SORT] for item in stage.items_of(run)], sorted(objects)


@pytest.fixture
def stage() -> MemoryStage:
    stage = MemoryStage()
    recorded(stage)
    return stage


def test_nothing_is_left_of_a_deleted_run_but_its_tombstone(stage: MemoryStage) -> None:
    before, objects = left_of(stage)
    assert {"RUN", "RESULT", "TOTALS", "PREVIEW", "SUMMARY"} < set(before)
    assert len(objects) == 4
    stage.api.delete_run(RUN)
    stage.erase_all()
    assert left_of(stage) == (["RUN"], [])
    receipt = stage.api.read_deletion(RUN)
    assert receipt == shapes.Deletion(
        run_id=RUN.run_id,
        status="finished",
        requested_at="2026-11-30T00:53:20.000000000Z",
        finished_at="2026-11-30T01:03:20.000000000Z",
        items=len(before) - 1,
        objects=4,
        versions=4,
        looks=2,
    )


def test_from_its_first_moment_on_the_run_is_gone_for_everybody(stage: MemoryStage) -> None:
    stage.api.delete_run(RUN)
    stage.dynamodb.settle()
    with pytest.raises(NotFound):
        stage.api.read_run(RUN, CallsWanted())
    assert list(stage.api.list_runs("acme", RunsWanted()).rows) == []


def test_the_tombstone_says_nothing_of_the_run(stage: MemoryStage) -> None:
    """Whatever comes to stand on RUN one day has to be removed here, too."""
    run = stage.item(RUN, keys.RUN)
    assert run is not None
    stage.api.delete_run(RUN)
    unfinished = {keys.OPEN_RUNS_PARTITION, keys.OPEN_RUNS_SORT}
    assert set(stage.item(RUN, keys.RUN) or {}) == TOMBSTONE | unfinished
    stage.erase_all()
    assert set(stage.item(RUN, keys.RUN) or {}) == TOMBSTONE


@pytest.mark.parametrize(("retention_days", "kept_days"), [(30, 730), (700, 730), (730, 760)])
def test_the_tombstone_outlives_every_event_that_could_still_be_accepted(
    retention_days: int, kept_days: int
) -> None:
    """Also once the retention is raised: two years at least."""
    stage = MemoryStage(retention_days=retention_days)
    recorded(stage)
    stage.api.delete_run(RUN)
    tombstone = stage.item(RUN, keys.RUN)
    assert tombstone is not None
    assert tombstone["expires_at"] == stage.now_ns // 10**9 + kept_days * 86_400


def test_a_second_deletion_answers_with_the_same_receipt(stage: MemoryStage) -> None:
    once = stage.api.delete_run(RUN)
    stage.pass_time(5)
    assert stage.api.delete_run(RUN) == once
    assert len(stage.sqs.queues[ERASURES]) == 2  # the first may have been lost
    stage.erase_all()
    finished = stage.api.read_deletion(RUN)
    assert finished.status == "finished"
    assert stage.api.delete_run(RUN) == finished
    assert not stage.sqs.queues[ERASURES]


@pytest.mark.parametrize("of", ["another tenant", "nobody"])
def test_what_is_not_there_cannot_be_deleted(stage: MemoryStage, of: str) -> None:
    run = RUN
    if of == "another tenant":
        run = RUN._replace(tenant_id="globex")
    else:
        run = RUN._replace(run_id="other")
    before = dict(stage.dynamodb.items)
    with pytest.raises(NotFound):
        stage.api.delete_run(run)
    with pytest.raises(NotFound):
        stage.api.read_deletion(run)
    assert stage.dynamodb.items == before
    assert not stage.sqs.queues.get(ERASURES)


def test_a_run_past_its_time_that_ttl_left_is_erased_too(stage: MemoryStage) -> None:
    stage.now_ns += 366 * 86_400 * 10**9
    stage.api.delete_run(RUN)
    stage.erase_all()
    assert left_of(stage) == (["RUN"], [])


@pytest.mark.parametrize("run", [RunRef("acme/r-1", "r"), RunRef("acme", "r/1"), RunRef("", "r")])
def test_what_can_be_no_run_is_refused(stage: MemoryStage, run: RunRef) -> None:
    before = len(stage.calls.made)
    with pytest.raises(Rejected):
        stage.api.delete_run(run)
    assert len(stage.calls.made) == before


def test_an_old_tombstone_is_no_receipt_and_no_run(stage: MemoryStage) -> None:
    """TTL takes days to remove it."""
    stage.api.delete_run(RUN)
    stage.erase_all()
    stage.now_ns += 731 * 86_400 * 10**9
    for ask in (stage.api.read_deletion, stage.api.delete_run):
        with pytest.raises(NotFound):
            ask(RUN)


def test_a_request_as_lambda_delivers_it(stage: MemoryStage) -> None:
    stage.api.delete_run(RUN)
    answer = handler.process(event("erase/one-request"), stage.erase_parts, lambda: False)
    assert answer == {"batchItemFailures": []}
    assert left_of(stage) == (["RUN"], [])


@pytest.mark.usefixtures("metrics_on")
def test_a_request_without_a_tombstone_erases_nothing(
    stage: MemoryStage, capsys: pytest.CaptureFixture[str]
) -> None:
    before = dict(stage.dynamodb.items), dict(stage.s3.objects)
    for run in (RUN, RUN._replace(run_id="other")):
        stage.erase_parts.erase.erasures.request_erasure(run)
    published.read(capsys)
    stage.erase_all()
    assert published.read(capsys) == {"Erasures": 2, "ErasuresDropped": 2}
    assert (stage.dynamodb.items, stage.s3.objects) == before


@pytest.mark.parametrize("body", ["{", '{"tenant_id":"a/b","run_id":"r"}', '{"tenant_id":"a"}'])
def test_what_is_no_request_is_delivered_again_and_touches_nothing(
    stage: MemoryStage, body: str
) -> None:
    before = dict(stage.dynamodb.items), dict(stage.s3.objects)
    stage.sqs.send_message(QueueUrl=ERASURES, MessageBody=body)
    assert len(stage.erase()) == 1
    assert (stage.dynamodb.items, stage.s3.objects) == before


def test_the_last_look_begins_after_the_quiet_time_and_finds_what_came_meanwhile(
    stage: MemoryStage,
) -> None:
    late = next(item for item in stage.items_of(RUN, "AGENT#"))
    stage.api.delete_run(RUN)
    assert stage.erase() == []
    assert left_of(stage) == (["RUN"], [])
    assert stage.api.read_deletion(RUN).status == "running"
    # What an invocation was about to write that had read RUN before:
    object_key = keys.object_of_run(RUN, "late")
    stage.s3.put_object(Key=object_key, Body=b"late")
    stage.dynamodb.put_item(Item={"PK": {"S": late["PK"]}, "SK": {"S": late["SK"]}})
    stage.pass_time(QUIET_S - 1)
    assert stage.erase() == []  # nothing is due yet
    assert len(left_of(stage)[1]) == 1
    stage.pass_time(1)
    assert stage.erase() == []
    assert left_of(stage) == (["RUN"], [])
    receipt = stage.api.read_deletion(RUN)
    assert (receipt.status, receipt.looks) == ("running", 2)  # it found something: once more
    assert stage.erase() == []
    receipt = stage.api.read_deletion(RUN)
    assert (receipt.status, receipt.looks) == ("finished", 3)


def test_an_early_request_waits_like_the_others(stage: MemoryStage) -> None:
    stage.api.delete_run(RUN)
    stage.erase()
    stage.api.delete_run(RUN)
    calls = len(stage.calls.made)
    assert stage.erase() == []
    assert stage.calls.made[calls:] == ["dynamodb.get_item", "sqs.send_message"]
    assert stage.api.read_deletion(RUN).looks == 1
    stage.erase_all()
    assert stage.api.read_deletion(RUN).looks == 2


def test_all_versions_and_delete_markers_are_erased_and_each_name_is_counted_once(
    stage: MemoryStage,
) -> None:
    _, objects = left_of(stage)
    for _ in range(3):
        stage.s3.put_object(Key=objects[0], Body=b"again")
    for key in objects[:2]:
        stage.s3.delete_objects(Delete={"Objects": [{"Key": key}]})
    for most in (1, 2, 3, 5):
        twin = MemoryStage()
        twin.dynamodb.items = dict(stage.dynamodb.items)
        twin.s3.objects, twin.s3.older = dict(stage.s3.objects), dict(stage.s3.older)
        twin.s3._ids = dict(stage.s3._ids)
        twin.s3.most_versions = most
        twin.api.delete_run(RUN)
        twin.erase_all()
        receipt = twin.api.read_deletion(RUN)
        assert receipt.versions == 4 + 3 + 2
        assert receipt.objects == 4  # also where a part holds less than the versions of one name
        assert left_of(twin) == (["RUN"], [])


def test_an_object_that_cannot_be_deleted_keeps_the_deletion_unfinished(
    stage: MemoryStage,
) -> None:
    _, objects = left_of(stage)
    stage.s3.undeletable.add(objects[1])
    stage.api.delete_run(RUN)
    assert len(stage.erase()) == 1
    assert left_of(stage) == (["RUN"], [objects[1], objects[3]])  # the inbox's turn never came
    receipt = stage.api.read_deletion(RUN)
    assert (receipt.objects, receipt.versions) == (2, 2)
    stage.s3.undeletable.clear()
    stage.erase_all()
    receipt = stage.api.read_deletion(RUN)
    assert (receipt.status, receipt.objects, receipt.versions) == ("finished", 4, 4)


def test_items_that_dynamodb_leaves_over_are_asked_for_again(stage: MemoryStage) -> None:
    stage.dynamodb.batch_deletes = 3
    stage.api.delete_run(RUN)
    stage.erase_all()
    assert left_of(stage) == (["RUN"], [])


def test_a_batch_of_which_nothing_is_taken_is_tried_again_later(stage: MemoryStage) -> None:
    items = len(stage.items_of(RUN)) - 1
    stage.dynamodb.batch_deletes = 0
    stage.api.delete_run(RUN)
    assert len(stage.erase()) == 1
    stage.dynamodb.batch_deletes = 25
    stage.erase_all()
    assert stage.api.read_deletion(RUN).items == items


def test_it_goes_on_by_itself_when_its_time_is_up(stage: MemoryStage) -> None:
    stage.dynamodb.page_bytes = 1
    items = len(stage.items_of(RUN)) - 1
    stage.api.delete_run(RUN)
    rounds = 0
    while stage.api.read_deletion(RUN).looks == 0:
        assert stage.erase(late=lambda: True) == []
        rounds += 1
    assert rounds > items
    stage.erase_all()
    assert stage.api.read_deletion(RUN).items == items


def _begins_at(request: int, erase: Erase) -> Hook:
    """A hook that lets another invocation do all its work at one moment of the first's."""
    moments = iter(range(1_000_000))

    def hook(call: str, when: str) -> None:
        if next(moments) == request:
            erase(RUN, lambda: False)

    return hook


def test_two_that_meet_count_nothing_twice(stage: MemoryStage) -> None:
    """The other begins in the middle of each request of the first."""
    total = len(stage.items_of(RUN)) - 1
    for begins_at in range(40):
        stage = MemoryStage()
        recorded(stage)
        stage.dynamodb.page_bytes = 400
        stage.api.delete_run(RUN)
        stage.calls.hook = _begins_at(begins_at, stage.erase_parts.erase)
        stage.erase()
        stage.calls.hook = lambda call, when: None
        stage.erase_all()
        assert left_of(stage) == (["RUN"], [])
        receipt = stage.api.read_deletion(RUN)
        assert receipt.status == "finished"
        assert receipt.items <= total
        assert receipt.objects <= 4


def test_a_tombstone_without_its_message_is_found_among_the_unfinished(
    stage: MemoryStage,
) -> None:
    """A crash between the two: whoever asks again, or the sweep, has it done."""

    def lost(call: str, when: str) -> None:
        if (call, when) == ("sqs.send_message", "before"):
            raise client_error("SendMessage", "InternalServerError")

    stage.calls.hook = lost
    with pytest.raises(Exception, match="SQS"):
        stage.api.delete_run(RUN)
    stage.calls.hook = lambda call, when: None
    assert not stage.sqs.queues.get(ERASURES)
    stage.dynamodb.settle()
    tombstone = stage.item(RUN, keys.RUN) or {}
    shards = range(keys.OPEN_RUN_SHARDS)
    spans = [keys.deletions_before(shard, stage.now_ns + 1) for shard in shards]
    (span,) = [span for span in spans if span[0] == tombstone[keys.OPEN_RUNS_PARTITION]]
    assert span[1] <= tombstone[keys.OPEN_RUNS_SORT] <= span[2]
    assert tombstone[keys.OPEN_RUNS_SORT] > keys.deletions_before(0, stage.now_ns)[2]
    stage.api.delete_run(RUN)
    stage.erase_all()
    assert stage.api.read_deletion(RUN).status == "finished"


LATER: dict[str, Callable[[], str]] = {
    "a late step": lambda: build.body(build.step(77)),
    "a start": lambda: build.body(build.started(pipeline="again")),
    "an end": lambda: build.body(build.ended(result="again")),
    "a step that is refused": lambda: build.body(build.step(78, cost_usd="-1")),
    "one good, one refused": lambda: build.body(build.step(79), build.step(80, cost_usd="-1")),
}


@pytest.mark.parametrize("what", LATER)
@pytest.mark.parametrize("after", ["the tombstone", "the last look"])
def test_what_comes_later_leaves_no_trace(stage: MemoryStage, what: str, after: str) -> None:
    """Not as a dead letter either."""
    stage.api.delete_run(RUN)
    if after == "the last look":
        stage.erase_all()
    assert stage.ingest(LATER[what]()) == []
    stage.drain()
    stage.erase_all()
    assert left_of(stage) == (["RUN"], [])
    assert not stage.sqs.queues.get(DEAD_LETTERS)
    assert not stage.sqs.queues.get(RECOUNTS)


@pytest.mark.parametrize("erased_first", [False, True])
def test_a_body_that_comes_to_the_inbox_after_all_looks_is_erased(
    stage: MemoryStage, erased_first: bool
) -> None:
    stage.api.delete_run(RUN)
    stage.erase_all()
    finished = stage.api.read_deletion(RUN)
    if erased_first:  # the message comes again, and its body is no longer there
        stage.ingest_claimed(RUN, build.body(build.step(77)).encode())
        stage.erase_all()
        stage.s3.objects.clear()
    stage.ingest_claimed(RUN, build.body(build.step(77)).encode())
    assert stage.sqs.queues[ERASURES]
    stage.erase_all()
    assert left_of(stage) == (["RUN"], [])
    assert not stage.sqs.queues.get(DEAD_LETTERS)
    receipt = stage.api.read_deletion(RUN)
    assert receipt.finished_at == finished.finished_at
    assert receipt.versions == finished.versions + 1 + erased_first
    assert keys.OPEN_RUNS_PARTITION not in (stage.item(RUN, keys.RUN) or {})


def tenant_deleted(stage: MemoryStage) -> None:
    table = DynamoDBTable(stage.dynamodb, "t")  # type: ignore[arg-type]
    DynamoDBTenantData(table).bury_tenant(RUN.tenant_id, stage.now_ns, 10**10)


@pytest.mark.usefixtures("metrics_on")
@pytest.mark.parametrize("late", [False, True])
def test_a_body_of_a_deleted_tenant_that_had_no_such_run_is_erased(
    capsys: pytest.CaptureFixture[str], *, late: bool
) -> None:
    stage = MemoryStage()
    tenant_deleted(stage)
    stage.ingest_claimed(RUN, build.body(build.started(), build.step(1)).encode())
    assert len(left_of(stage)[1]) == 1
    before = dict(stage.dynamodb.items)
    published.read(capsys)
    assert stage.erase(lambda: late) == []
    assert published.read(capsys) == {"Erasures": 1, "ObjectsErased": 1, "VersionsErased": 1}
    assert left_of(stage) == ([], [])
    assert stage.dynamodb.items == before
    assert len(stage.sqs.queues[ERASURES]) == late
    stage.erase_all()


def test_a_deleted_tenant_alone_erases_nothing_of_a_run_that_stands(stage: MemoryStage) -> None:
    tenant_deleted(stage)
    before = left_of(stage)
    stage.erase_parts.erase.erasures.request_erasure(RUN)
    stage.erase_all()
    assert left_of(stage) == before


def test_the_stream_of_a_deletion_moves_nothing(stage: MemoryStage) -> None:
    """Neither the tombstone nor what vanishes passes the filter of summarize."""
    assert stage.new_stream_records() == []
    stage.api.delete_run(RUN)
    stage.erase_all()
    assert stage.new_stream_records() == []
    assert len(stage.dynamodb.stream) > 30


def test_a_replayed_stream_counts_nothing_anew(stage: MemoryStage) -> None:
    stage.api.delete_run(RUN)
    stage.erase_all()
    stage.streamed = 0
    stage.drain()
    assert left_of(stage) == (["RUN"], [])


@pytest.mark.usefixtures("metrics_on")
def test_what_was_erased_is_published(
    stage: MemoryStage, capsys: pytest.CaptureFixture[str]
) -> None:
    items = len(stage.items_of(RUN)) - 1
    stage.api.delete_run(RUN)
    published.read(capsys)
    stage.erase_all()
    sums = published.read(capsys)
    assert sums.pop("WriteUnits") >= items
    assert sums == {
        "Erasures": 2,
        "DeletionsFinished": 1,
        "ItemsErased": items,
        "ObjectsErased": 4,
        "VersionsErased": 4,
    }


def test_writes_are_one_unit_an_item(stage: MemoryStage) -> None:
    items = [item for (_, sort), item in stage.dynamodb.items.items() if sort != "RUN"]
    stage.api.delete_run(RUN)
    before = stage.dynamodb.write_units
    stage.erase_all()
    large = [item for item in items if len(str(from_attributes(item))) > 1_024]
    assert stage.dynamodb.write_units - before <= len(items) + 4 * len(large) + 12
