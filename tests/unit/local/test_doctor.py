"""`runtally doctor`: each thing that can be wrong with a stage is found, and says what to do."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from local import checks, doctor
from local.canary import Canary
from local.checks import Finding
from local.doctor import examine
from local.stage import Stage
from tests.fakes.calls import client_error
from tests.fakes.cloud import MemoryCloud
from tests.unit.local.terminal import Terminal
from tests.unit.local.test_stage import OUTPUTS

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
            for name in ("ingest", "summarize", "recount", "dead-jobs")
        }
    )
    queues: dict[str, dict[str, str]] = field(default_factory=dict)
    runtimes: dict[str, str] = field(default_factory=dict)
    http: dict[str, int | OSError] = field(
        default_factory=lambda: {"openapi.json": 200, "pipeline-runs": 401}
    )
    deny: str = ""

    def stage(self, name: str = "dev") -> Stage:
        clients = {"dynamodb": self, "lambda": self, "sqs": self}
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
        return {"Runtime": self.runtimes.get(request["FunctionName"], "python3.13")}

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
        checks.table,
        checks.event_sources,
        checks.queue_policies,
        checks.dead_letters,
        checks.http_api(described.fetch),
    ]
    return list(checks.findings(described.stage(name), iter(in_order)))


def test_a_healthy_stage_has_nothing_wrong() -> None:
    findings = found(Described())
    assert len(findings) == 18
    assert [finding for finding in findings if not finding.ok or finding.advice] == []


def test_the_local_stage_says_what_it_cannot_look_at() -> None:
    queues = {name: healthy_queue() | {"Policy": "{}"} for name in ("events", "recounts")}
    findings = found(Described(ttl={}, recovery="DISABLED", queues=queues), "local")
    skipped = [finding.check for finding in findings if finding.ok is None]
    assert skipped == ["expiry", "point-in-time recovery"]
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
        (queue("research", Policy="{}"), "queue of research", "without TLS"),
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
