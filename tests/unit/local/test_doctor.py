"""`runtally doctor`: each thing that can be wrong with a stage is found, and says what to do."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import pytest

from functions.adapters.settings import SCHEMA_VERSION, VERSION
from functions.core import keys
from local import alarms, checks, doctor, skew
from local.canary import Canary
from local.checks import Finding
from local.doctor import examine
from local.stage import Stage
from tests.build import RUN, SECOND, T0, ended, started, step
from tests.fakes.calls import client_error
from tests.fakes.cloud import MemoryCloud
from tests.unit.local.terminal import Terminal
from tests.unit.local.test_stage import OUTPUTS

TOPIC = "arn:aws:sns:eu-west-1:1:t"
HERE = {VERSION: version("runtally-stage"), SCHEMA_VERSION: "1"}
FUNCTIONS = Stage.of_outputs({**OUTPUTS, "ApiUrl": ""}, MemoryCloud()).functions
TLS = '{"Statement":[{"Effect":"Deny","Condition":{"Bool":{"aws:SecureTransport":"false"}}}]}'


def healthy_queue() -> dict[str, str]:
    return {
        "RedrivePolicy": '{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:1:d"}',
        "Policy": TLS,
        "ApproximateNumberOfMessages": "0",
        "ApproximateNumberOfMessagesNotVisible": "0",
        "ApproximateNumberOfMessagesDelayed": "0",
    }


def healthy_mapping(function: str) -> dict[str, Any]:
    mapping: dict[str, Any] = {
        "State": "Enabled",
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
        "EventSourceArn": "arn:aws:sqs:eu-west-1:1:q",
    }
    if function == "summarize":
        mapping |= {
            "EventSourceArn": "arn:aws:dynamodb:eu-west-1:1:table/t/stream/x",
            "BisectBatchOnFunctionError": True,
            "DestinationConfig": {"OnFailure": {"Destination": "arn:aws:s3:::failed"}},
        }
    return mapping


def healthy_alarm(name: str) -> dict[str, Any]:
    return {
        "AlarmName": name,
        "AlarmDescription": "docs/operations.md says what to do",
        "ActionsEnabled": True,
        "AlarmActions": [TOPIC],
        "StateValue": "OK",
        "StateReason": "because",
        "StateUpdatedTimestamp": datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
    }


@dataclass
class Described:
    """A deployed stage as AWS describes it, healthy until a test makes it something else."""

    table: dict[str, Any] = field(
        default_factory=lambda: {
            "TableStatus": "ACTIVE",
            "StreamSpecification": {
                "StreamEnabled": True,
                "StreamViewType": "NEW_AND_OLD_IMAGES",
            },
        }
    )
    ttl: dict[str, str] = field(
        default_factory=lambda: {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires_at"}
    )
    recovery: str = "ENABLED"
    mappings: dict[str, list[dict[str, Any]]] = field(
        default_factory=lambda: {
            name: [healthy_mapping(name)]
            for name in ("ingest", "summarize", "recount", "erase", "dead-jobs")
        }
    )
    alarms: list[dict[str, Any]] = field(default_factory=lambda: [healthy_alarm(n) for n in "ab"])
    subscriptions: list[str] = field(default_factory=lambda: ["arn:aws:sns:eu-west-1:1:t:1"])
    told: dict[str, dict[str, str]] = field(default_factory=dict)
    queues: dict[str, dict[str, str]] = field(default_factory=dict)
    runtimes: dict[str, str] = field(default_factory=dict)
    http: dict[str, int | OSError] = field(
        default_factory=lambda: {"openapi.json": 200, "pipeline-runs": 401}
    )
    deny: str = ""

    def stage(self, name: str = "dev") -> Stage:
        services = ("dynamodb", "lambda", "sqs", "cloudwatch", "sns")
        clients = dict.fromkeys(services, self)
        outputs = {**OUTPUTS, "ApiUrl": "https://api", "Stage": name}
        return Stage.of_outputs(outputs, MemoryCloud(**clients))

    def fetch(self, url: str) -> int:
        answer = self.http[url.removeprefix("https://api/api/v1/")]
        if isinstance(answer, OSError):
            raise answer
        return answer

    def describe_table(self, **_: str) -> dict[str, Any]:
        if self.deny:
            raise client_error("DescribeTable", "AccessDeniedException", self.deny)
        return {"Table": self.table}

    def describe_time_to_live(self, **_: str) -> dict[str, Any]:
        return {"TimeToLiveDescription": self.ttl}

    def describe_continuous_backups(self, **_: str) -> dict[str, Any]:
        described = {"PointInTimeRecoveryStatus": self.recovery}
        return {"ContinuousBackupsDescription": {"PointInTimeRecoveryDescription": described}}

    def list_event_source_mappings(self, **request: str) -> dict[str, Any]:
        return {"EventSourceMappings": self.mappings[request["FunctionName"]]}

    def get_function_configuration(self, **request: str) -> dict[str, Any]:
        name = request["FunctionName"]
        return {
            "Runtime": self.runtimes.get(name, "python3.13"),
            "Environment": {"Variables": self.told.get(name, HERE)},
        }

    def get_paginator(self, operation: str) -> Any:
        """A thing a page, so that whoever reads the first page alone misses most."""
        self.asked = operation
        return self

    def paginate(self, **request: str) -> list[dict[str, Any]]:
        if self.asked == "list_subscriptions_by_topic":
            assert request == {"TopicArn": TOPIC}
            return [{"Subscriptions": [{"SubscriptionArn": arn}]} for arn in self.subscriptions]
        assert (self.asked, request) == ("describe_alarms", {"AlarmNamePrefix": "runtally-dev-"})
        return [{"MetricAlarms": [alarm]} for alarm in self.alarms]

    def get_queue_attributes(self, **request: Any) -> dict[str, Any]:
        attributes = self.queues.get(request["QueueUrl"].rpartition("/")[2], healthy_queue())
        if request["AttributeNames"] == ["All"]:
            return {"Attributes": attributes}
        return {"Attributes": {name: attributes[name] for name in request["AttributeNames"]}}


def found(described: Described, name: str = "dev") -> list[Finding]:
    """Of all checks but the canary."""
    in_order: list[checks.Check] = [
        checks.outputs,
        checks.versions,
        skew.deployed_version,
        checks.table,
        checks.event_sources,
        checks.queue_policies,
        checks.dead_letters,
        alarms.alarms,
        checks.http_api(described.fetch),
    ]
    return list(checks.findings(described.stage(name), iter(in_order)))


def test_a_healthy_stage_has_nothing_wrong() -> None:
    findings = found(Described())
    assert len(findings) == 24
    assert [finding for finding in findings if not finding.ok or finding.advice] == []


def test_the_local_stage_says_what_it_cannot_look_at() -> None:
    queues = {name: healthy_queue() | {"Policy": "{}"} for name in ("events", "recounts")}
    findings = found(Described(ttl={}, recovery="DISABLED", queues=queues), "local")
    skipped = [finding.check for finding in findings if finding.ok is None]
    assert skipped == ["expiry", "point-in-time recovery", "alarms"]
    assert all(finding.ok is not False for finding in findings)


def change(where: Callable[[Described], dict[str, Any]], **to: Any) -> Callable[[Described], None]:
    return lambda described: where(described).update(to)


def queue(name: str, **to: str) -> Callable[[Described], None]:
    return lambda described: described.queues.update({name: healthy_queue() | to})


@pytest.mark.parametrize(
    ("break_it", "check", "said"),
    [
        (change(lambda d: d.table, TableStatus="UPDATING"), "table", "UPDATING"),
        (change(lambda d: d.table, StreamSpecification=None), "table's stream", "off"),
        (change(lambda d: d.ttl, TimeToLiveStatus="DISABLED"), "expiry", "DISABLED"),
        (change(lambda d: d.ttl, AttributeName="ttl"), "expiry", "by ttl"),
        (change(lambda d: d.__dict__, recovery="DISABLED"), "recovery", "DISABLED"),
        (change(lambda d: d.mappings, ingest=[]), "of ingest", "none"),
        (change(lambda d: d.mappings["recount"][0], State="Disabled"), "of recount", "Disabled"),
        (
            change(lambda d: d.mappings["ingest"][0], FunctionResponseTypes=[]),
            "of ingest",
            "which items failed",
        ),
        (
            change(lambda d: d.mappings["summarize"][0], BisectBatchOnFunctionError=False),
            "of summarize",
            "bisect",
        ),
        (
            change(lambda d: d.mappings["summarize"][0], DestinationConfig=None),
            "of summarize",
            "destination",
        ),
        (queue("events", RedrivePolicy=""), "queue of events", "no dead-letter queue"),
        (queue("research", Policy="{}"), "queue of jobs/research", "without TLS"),
        (
            queue("recounts-dead", ApproximateNumberOfMessages="1200"),
            "dead letters of recounts",
            "1,200 there",
        ),
        (change(lambda d: d.http, **{"openapi.json": 500}), "GET openapi.json", "500"),
        (change(lambda d: d.http, **{"pipeline-runs": 200}), "GET pipeline-runs", "200, not 401"),
        (
            change(lambda d: d.http, **{"openapi.json": OSError("no route")}),
            "GET openapi.json",
            "no route",
        ),
        (change(lambda d: d.runtimes, ingest="python3.12"), "versions", "python3.12"),
        (change(lambda d: d.__dict__, alarms=[]), "alarms", "there are none"),
        (change(lambda d: d.alarms[1], ActionsEnabled=False), "alarm b", "actions are off"),
        (change(lambda d: d.alarms[1], AlarmActions=[]), "alarm b", "tells nobody"),
        (change(lambda d: d.alarms[1], StateValue="ALARM"), "alarm b", "gone off: because"),
        (
            change(lambda d: d.alarms[1], StateValue="INSUFFICIENT_DATA"),
            "alarm b",
            "no figures since 2026-01-02 03:04 UTC",
        ),
        (change(lambda d: d.__dict__, subscriptions=[]), "subscriptions of t", "0 confirmed of 0"),
        (
            change(lambda d: d.__dict__, subscriptions=["PendingConfirmation"]),
            "subscriptions of t",
            "0 confirmed of 1",
        ),
        (
            change(lambda d: d.told, ingest=HERE | {VERSION: "0.0.1"}),
            "deployed version",
            "0.0.1, schema 1: ingest",
        ),
        (
            change(lambda d: d.told, **dict.fromkeys(FUNCTIONS, HERE | {SCHEMA_VERSION: "2"})),
            "deployed version",
            "schema 2; this command line is",
        ),
        (
            change(lambda d: d.told, **{name: {} for name in FUNCTIONS}),
            "deployed version",
            "unknown, schema unknown",
        ),
        (change(lambda d: d.__dict__, deny="not authorized: x"), "table", "not authorized: x"),
    ],
)
def test_each_fault_is_found_alone_and_says_what_to_do(
    break_it: Callable[[Described], None], check: str, said: str
) -> None:
    described = Described()
    break_it(described)
    (fault,) = (finding for finding in found(described) if not finding.ok)
    assert check in fault.check
    assert said in fault.said
    assert fault.advice


def deliver(terminal: Terminal) -> list[str]:
    """What the event sources do: events to ingest, in another order than they were sent."""
    sent = terminal.memory.sqs.queues.pop(terminal.stage.event_queue_url, [])
    bodies = [message.body for message in reversed(sent)]
    assert terminal.memory.ingest(*bodies) == []
    terminal.memory.drain()
    return bodies


def test_a_canary_comes_back_exact_and_says_how_long_it_took(terminal: Terminal) -> None:
    sent: list[str] = []
    findings = list(Canary(terminal.stage, lambda: sent.extend(deliver(terminal))).findings())
    assert [finding.check.removeprefix("canary ") for finding in findings] == [
        "sent", "stored", "counted", "summarised", "canary's sums", "canary's payload",
    ]  # fmt: skip
    assert all(finding.ok for finding in findings)
    assert all(finding.ms is not None for finding in findings[:4])
    step_ids = re.findall(r'"step_id":"([^"]+)"', "".join(sent))
    assert (len(step_ids), len(set(step_ids))) == (4, 3)
    assert "金丝雀" in "".join(sent)
    terminal.memory.dynamodb.settle()
    assert terminal.json("runs")["runs"] == []


def spoiled(terminal: Terminal, how: str) -> Callable[[], None]:
    memory = terminal.memory

    def wait() -> None:
        if how == "ingest":
            return
        sent = memory.sqs.queues.pop(terminal.stage.event_queue_url, [])
        bodies = [message.body for message in sent]
        if how == "sums":
            bodies = [body.replace('"cost_usd":"0.1"', '"cost_usd":"0.2"') for body in bodies]
        memory.ingest(*bodies)
        if how == "payload":
            memory.s3.objects.clear()
        if how != "summarize":
            memory.drain()

    return wait


@pytest.mark.parametrize(
    ("how", "check"),
    [
        ("ingest", "canary stored"),
        ("summarize", "canary counted"),
        ("sums", "canary's sums"),
        ("payload", "canary's payload"),
    ],
)
def test_a_canary_that_does_not_come_back_well_says_where_to_look(
    terminal: Terminal, how: str, check: str
) -> None:
    wait = spoiled(terminal, how)
    findings = list(Canary(terminal.stage, wait, within_s=0.05).findings())
    (fault,) = (finding for finding in findings if not finding.ok)
    assert fault.check == check
    assert fault.advice


def test_a_queue_that_takes_nothing_ends_the_canary(terminal: Terminal) -> None:
    def refuse(call: str, when: str) -> None:
        raise client_error("SendMessageBatch", "AccessDenied")

    terminal.memory.sqs.calls.hook = refuse
    (fault,) = Canary(terminal.stage, lambda: None).findings()
    assert (fault.check, fault.ok) == ("canary sent", False)


def test_every_check_is_part_of_the_examination() -> None:
    described = Described()
    described.queues["events"] = healthy_queue()
    findings = examine(described.stage(), described.fetch, lambda: None)
    assert [f.check for f in before_the_canary(findings)] == [f.check for f in found(Described())]


def before_the_canary(findings: Iterator[Finding]) -> Iterator[Finding]:
    for finding in findings:
        yield finding
        if finding.check == "GET pipeline-runs without a key":
            return


@pytest.mark.parametrize(("ok", "code"), [(True, 0), (None, 0), (False, 1)])
def test_a_line_a_check_and_the_exit_code(
    ok: bool | None,
    code: int,
    terminal: Terminal,
    capsys: pytest.CaptureFixture[str],
) -> None:
    findings = [Finding("one", True, "fine"), Finding("two", ok, "[x]", "Mend it.")]
    assert doctor.report(iter(findings), as_json=False) == code
    shown = capsys.readouterr().out
    assert "✓ one  fine" in shown
    assert f"{'✓' if ok else '–' if ok is None else '✗'} two  [x]\n    Mend it." in shown
    assert doctor.report(iter(findings), as_json=True) == code
    assert f'"ok":{str(ok is not False).lower()}' in capsys.readouterr().out


def test_a_new_alarm_without_figures_is_no_fault_yet() -> None:
    fresh = healthy_alarm("a") | {"StateValue": "INSUFFICIENT_DATA"}
    described = Described(alarms=[fresh | {"StateUpdatedTimestamp": datetime.now(UTC)}])
    assert all(finding.ok for finding in found(described))


@pytest.mark.parametrize(("schema", "ok"), [(1, True), (2, False)])
def test_items_of_a_newer_schema_are_found(terminal: Terminal, schema: int, ok: bool) -> None:
    (nothing,) = skew.schema_of_items(terminal.stage)
    assert nothing.ok is None
    terminal.record("old", started(T0), step(1), ended())
    terminal.record("new", started(T0 + SECOND), step(2), ended())
    newest = keys.item_of_run(RUN._replace(run_id="new"), keys.SUMMARY)
    terminal.memory.dynamodb.items[newest]["v"] = {"N": str(schema)}
    (finding,) = skew.schema_of_items(terminal.stage)
    assert (finding.ok, bool(finding.advice)) == (ok, not ok)
    assert finding.said.startswith(f"{schema},")
