"""Items of a newer schema are refused with a clear error, by whoever reads them; those of an older
one are read, with what they do not say yet left out."""

from collections.abc import Callable
from typing import Any

import pytest

from functions.api import problems
from functions.api.runs import CallsWanted, RunsWanted
from functions.core import invocations, items, keys, schema, tenants
from functions.core.errors import NewerSchema, Unavailable
from functions.core.keys import ItemKey
from functions.core.schema import SCHEMA_VERSION
from local.aws_errors import explained
from tests.build import RUN, answer_body, body, ended, started, step
from tests.build import answer as an_answer
from tests.memory_stage import RECOUNTS, MemoryStage

OF_RUN = keys.item_of_run(RUN, keys.RUN)
OF_SUMMARY = keys.item_of_run(RUN, keys.SUMMARY)


def recorded() -> MemoryStage:
    stage = MemoryStage()
    assert stage.ingest(body(started(), step(1, cost_usd="0.1"), ended())) == []
    stage.drain()
    stage.dynamodb.settle()
    return stage


def age(stage: MemoryStage, key: ItemKey, version: int | None) -> None:
    """Let an item be of that schema; None is from before items said so."""
    if version is None:
        del stage.dynamodb.items[key][schema.VERSION]
    else:
        stage.dynamodb.items[key][schema.VERSION] = {"N": str(version)}


def test_every_item_that_is_read_by_itself_says_its_schema() -> None:
    stage = recorded()
    stage.invoke()
    of_run = {item[keys.SORT]: item for item in stage.items_of(RUN)}
    tenant = tenants.tenant_item(tenants.Tenant("acme", 1))
    key = tenants.key_item(tenants.issue_key("acme", "page", 1, bytes(32)).key)
    (invocation,) = (item for _, item in stage.dynamodb.items.items() if "service_entry" in item)
    for item in (of_run[keys.RUN], of_run[keys.SUMMARY], tenant, key):
        assert item[schema.VERSION] == SCHEMA_VERSION
    assert invocation[schema.VERSION] == {"N": str(SCHEMA_VERSION)}


@pytest.mark.parametrize("key", [OF_RUN, OF_SUMMARY], ids=lambda key: key.sort)
def test_the_api_says_which_item_is_newer_and_nothing_wrong_of_the_run(key: ItemKey) -> None:
    stage = recorded()
    age(stage, key, SCHEMA_VERSION + 1)
    for read in (
        lambda: stage.api.read_run(RUN, CallsWanted()),
        lambda: list(stage.api.list_runs("acme", RunsWanted(), lambda: False).rows),
    ):
        with pytest.raises(NewerSchema, match=f"{key.sort} was written under schema 2") as newer:
            read()
        problem = problems.problem_of(newer.value)
        assert (problem.status, problem.reason) == (503, "newer_schema")
        assert key.sort in (problem.detail or "")
    assert "Update this command line" in explained(newer.value).advice


def test_ingest_leaves_a_newer_run_alone_and_lets_its_messages_come_again() -> None:
    stage = recorded()
    age(stage, OF_RUN, SCHEMA_VERSION + 1)
    before = dict(stage.dynamodb.items)
    assert stage.ingest(body(step(2)), body(step(3), run=RUN._replace(run_id="other"))) == ["0"]
    assert stage.dead_letters() == []
    assert {key: stage.dynamodb.items[key] for key in before} == before
    age(stage, OF_RUN, SCHEMA_VERSION)  # the functions were upgraded
    assert stage.ingest(body(step(2))) == []
    assert len(stage.items_of(RUN, keys.STEP_PREFIX)) == 2


def test_summarize_and_recount_leave_a_newer_run_alone() -> None:
    stage = recorded()
    assert stage.ingest(body(step(2))) == []
    age(stage, OF_RUN, SCHEMA_VERSION + 1)
    before = stage.item(RUN, keys.TOTALS), stage.item(RUN, keys.SUMMARY)
    assert stage.summarize(stage.new_stream_records())
    stage.sqs.send_message(
        QueueUrl=RECOUNTS, MessageBody='{"tenant_id":"acme","run_id":"run-1","agents_total":null}'
    )
    assert stage.recount()
    assert (stage.item(RUN, keys.TOTALS), stage.item(RUN, keys.SUMMARY)) == before
    age(stage, OF_RUN, SCHEMA_VERSION)
    assert stage.recount() == []
    assert stage.item(RUN, keys.SUMMARY)["agents_total"] == 2  # type: ignore[index]


@pytest.mark.parametrize("version", [None, SCHEMA_VERSION])
def test_a_run_that_says_nothing_is_read_written_and_counted(version: int | None) -> None:
    stage = recorded()
    for key in (OF_RUN, OF_SUMMARY):
        age(stage, key, version)
    assert stage.ingest(body(step(2), ended())) == []
    stage.drain()
    page = stage.api.read_run(RUN, CallsWanted())
    assert len(list(page.rows)) == 2
    assert stage.item(RUN, keys.SUMMARY)["agents_total"] == 2  # type: ignore[index]


def test_a_run_of_the_least_that_was_ever_written_is_read_with_defaults() -> None:
    partition, sort = OF_RUN
    run = items.parse_run({keys.PARTITION: partition, keys.SORT: sort})
    assert (run.buckets, run.end, run.deleted, run.start.pipeline) == (1, None, False, "")


def test_an_invocation_of_a_newer_schema_is_not_settled_by_older_code() -> None:
    stage = MemoryStage()
    invocation_id = stage.invoke().invocation_id
    key = keys.invocation_item(keys.InvocationRef("acme", invocation_id))
    age(stage, key, SCHEMA_VERSION + 1)
    with pytest.raises(NewerSchema):
        stage.read_invocation(invocation_id)
    age(stage, key, None)
    assert stage.ingest(answer_body(an_answer(invocation_id))) == []
    assert stage.read_invocation(invocation_id).status == "succeeded"


PARSERS: list[tuple[Callable[[Any], object], dict[str, Any]]] = [
    (tenants.parse_tenant, tenants.tenant_item(tenants.Tenant("acme", 1))),
    (tenants.parse_key, tenants.key_item(tenants.issue_key("acme", "p", 1, bytes(32)).key)),
    (
        invocations.parse_invocation,
        invocations.invocation_item(
            invocations.Invocation(keys.InvocationRef("acme", "i"), "research", 1, 2, "d", 3)
        ),
    ),
]


@pytest.mark.parametrize(("parse", "item"), PARSERS, ids=["TENANT", "APIKEY", "INVOCATION"])
def test_what_stands_outside_runs_is_refused_or_read_likewise(
    parse: Callable[[Any], object], item: dict[str, Any]
) -> None:
    with pytest.raises(NewerSchema):
        parse(item | {schema.VERSION: SCHEMA_VERSION + 1})
    without = {name: value for name, value in item.items() if name != schema.VERSION}
    assert parse(without) == parse(item)


def test_handlers_take_it_for_what_may_be_tried_again() -> None:
    assert issubclass(NewerSchema, Unavailable)
