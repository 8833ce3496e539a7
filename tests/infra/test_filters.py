"""Which stream records reach summarize, by the synthesised filters and an independent matcher.

A wrong filter drops records without a trace, or feeds summarize with its own writes for ever.
"""

import json
from typing import Any

import pytest

from cdk.bundle import ROOT
from functions.core import keys
from functions.core.keys import RunRef
from tests.infra.assembly import resources_of, synthesise
from tests.infra.event_pattern import passes

RUN = RunRef("acme", "nightly-42")
STEP_ID = "1795984949123456789-9f3a1c02"


@pytest.fixture(scope="module")
def patterns() -> list[dict[str, Any]]:
    (stream,) = (
        mapping
        for mapping in resources_of(
            synthesise("prod").pipeline, "AWS::Lambda::EventSourceMapping"
        ).values()
        if "FilterCriteria" in mapping
    )
    return [json.loads(each["Pattern"]) for each in stream["FilterCriteria"]["Filters"]]


def stream_record(event_name: str, sort: str, **new_image: dict[str, Any]) -> dict[str, Any]:
    """One element of `Records`, in the shape that Lambda filters and delivers."""
    key = {
        keys.PARTITION: {"S": keys.run_partition(RUN)},
        keys.SORT: {"S": sort},
    }
    old = {**key, "expires_at": {"N": "1798576949"}}
    change: dict[str, Any] = {
        "ApproximateCreationDateTime": 1795984950,
        "Keys": key,
        "SequenceNumber": "111100000000000000000001",
        "SizeBytes": 412,
        "StreamViewType": "NEW_AND_OLD_IMAGES",
    }
    if event_name != "REMOVE":
        change["NewImage"] = {**key, "expires_at": {"N": "1798576949"}, **new_image}
    if event_name != "INSERT":
        change["OldImage"] = old
    return {
        "eventID": "c4ca4238a0b923820dcc509a6f75849b",
        "eventName": event_name,
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "us-east-1",
        "eventSourceARN": "arn:aws:dynamodb:us-east-1:111122223333:table/t/stream/2026-11-29",
        "dynamodb": change,
    }


def run(event_name: str, status: str) -> dict[str, Any]:
    return stream_record(
        event_name,
        keys.RUN,
        status={"S": status},
        start={"M": {"at": {"N": "1795984949123456789"}}},
        pipeline={"S": "nightly"},
    )


def step(event_name: str) -> dict[str, Any]:
    return stream_record(
        event_name,
        keys.step_item(RUN, 1, STEP_ID).sort,
        status={"S": "succeeded"},
        cost_usd={"N": "0.0125"},
    )


def expired(sort: str) -> dict[str, Any]:
    """What DynamoDB's own clean-up leaves in the stream."""
    service = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
    return {**stream_record("REMOVE", sort), "userIdentity": service}


WANTED = {
    "a new step": step("INSERT"),
    "an end that comes later": run("MODIFY", "succeeded"),
    "an end that failed": run("MODIFY", "failed"),
    "an end that was cancelled": run("MODIFY", "cancelled"),
    "a run first known by its end": run("INSERT", "succeeded"),
}

ENDED = {"status": {"S": "succeeded"}}
WITHOUT_SORT_KEY = stream_record("INSERT", keys.RUN, **ENDED)
for image in (WITHOUT_SORT_KEY["dynamodb"]["NewImage"], WITHOUT_SORT_KEY["dynamodb"]["Keys"]):
    image.pop(keys.SORT)

UNWANTED = {
    "a step written again": step("MODIFY"),
    "a run that starts": run("INSERT", "running"),
    "a run that goes on": run("MODIFY", "running"),
    "a stale mark, for which the sweep asks itself": run("MODIFY", "stale"),
    "a status that only begins like an end": run("MODIFY", "succeeded-not"),
    "a status of another case": run("MODIFY", "Succeeded"),
    "a deleted run": stream_record("MODIFY", keys.RUN, deleted_at={"N": "1795984999"}),
    "a status that is a number": stream_record("MODIFY", keys.RUN, status={"N": "1"}),
    "log lines": stream_record("INSERT", keys.log_item(RUN, STEP_ID).sort),
    "a result": stream_record("INSERT", keys.RESULT, **ENDED),
    "a replaced result": stream_record("MODIFY", keys.RESULT, **ENDED),
    "new totals": stream_record("INSERT", keys.TOTALS, **ENDED),
    "totals": stream_record("MODIFY", keys.TOTALS, **ENDED),
    "a new preview": stream_record("INSERT", keys.PREVIEW, **ENDED),
    "a preview": stream_record("MODIFY", keys.PREVIEW, **ENDED),
    "a new summary": stream_record("INSERT", keys.SUMMARY, **ENDED),
    "a summary": stream_record("MODIFY", keys.SUMMARY, **ENDED),
    "an expired step": expired(keys.step_item(RUN, 1, STEP_ID).sort),
    "an expired run": expired(keys.RUN),
    "a record without a sort key": WITHOUT_SORT_KEY,
    "another kind of item": stream_record("INSERT", "TENANT", **ENDED),
    "a sort key that only begins like RUN": stream_record("INSERT", "RUNNER", **ENDED),
}


@pytest.mark.parametrize("name", WANTED)
def test_new_steps_and_ends_pass(name: str, patterns: list[dict[str, Any]]) -> None:
    assert passes(WANTED[name], patterns)


@pytest.mark.parametrize("name", UNWANTED)
def test_nothing_else_passes(name: str, patterns: list[dict[str, Any]]) -> None:
    assert not passes(UNWANTED[name], patterns)


def test_every_event_that_summarize_is_tested_with_would_reach_it(
    patterns: list[dict[str, Any]],
) -> None:
    files = list((ROOT / "events" / "summarize").glob("*.json"))
    assert files
    for file in files:
        for record in json.loads(file.read_text())["Records"]:
            assert passes(record, patterns), (file.name, record["dynamodb"]["Keys"])


def test_only_the_stream_is_filtered() -> None:
    """What a queue's filter refuses is deleted: no message may be lost that way."""
    for mapping in resources_of(
        synthesise("prod").pipeline, "AWS::Lambda::EventSourceMapping"
    ).values():
        assert ("FilterCriteria" in mapping) == ("StartingPosition" in mapping)


@pytest.mark.parametrize(
    ("pattern", "record", "expected"),
    [
        ({"a": ["x"]}, {"a": "x"}, True),
        ({"a": ["x"]}, {"a": "xy"}, False),
        ({"a": ["x"]}, {}, False),
        ({"a": ["x", "y"], "b": ["z"]}, {"a": "y", "b": "z"}, True),
        ({"a": ["x", "y"], "b": ["z"]}, {"a": "y"}, False),
        ({"a": [300]}, {"a": 300.0}, False),
        ({"a": [1]}, {"a": True}, False),
        ({"a": [{"prefix": "AG"}]}, {"a": "AGENT"}, True),
        ({"a": [{"prefix": "AG"}]}, {"a": 1}, False),
        ({"a": [{"suffix": "NT"}]}, {"a": "AGENT"}, True),
        ({"a": [{"equals-ignore-case": "agent"}]}, {"a": "AGENT"}, True),
        ({"a": [{"anything-but": ["x"]}]}, {"a": "y"}, True),
        ({"a": [{"anything-but": ["x"]}]}, {"a": "x"}, False),
        ({"a": [{"exists": False}]}, {}, True),
        ({"a": [{"exists": True}]}, {"a": {"b": 1}}, False),  # leaves only
        ({"a": {"b": ["x"]}}, {"a": "x"}, False),
        ({}, {"a": 1}, True),
    ],
)
def test_the_matcher_reads_patterns_as_aws_describes_them(
    pattern: dict[str, Any], record: dict[str, Any], expected: bool
) -> None:
    assert passes(record, [pattern]) is expected


def test_the_matcher_knows_no_operator_by_guess() -> None:
    with pytest.raises(ValueError, match="cidr"):
        passes({"a": "10.0.0.1"}, [{"a": [{"cidr": "10.0.0.0/8"}]}])
